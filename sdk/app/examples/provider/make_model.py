#!/usr/bin/env python3
"""Writes model.onnx, a small network to run on the provider: y = relu(relu(x) @ w + b), x f32[batch, 8], y f32[batch, 4].

Needs the Python package onnx (Debian: python3-onnx). Change it into what your provider is to run, and run it again.
"""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

rng = np.random.default_rng(1)
weights = {"w": rng.integers(-8, 9, (8, 4)) / 8, "b": rng.integers(-8, 9, 4) / 8}
nodes = [
    helper.make_node("Relu", ["x"], ["hidden"], name="first_relu"),
    helper.make_node("MatMul", ["hidden", "w"], ["product"], name="matmul"),
    helper.make_node("Add", ["product", "b"], ["sum"], name="add_bias"),
    helper.make_node("Relu", ["sum"], ["y"], name="last_relu"),
]
graph = helper.make_graph(
    nodes,
    "small_network",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 8])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 4])],
    [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
)
save(helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 13)]), "model.onnx")
