"""A small network gives the CPU's results on cuda:0, by `tenon compare` on a model that this script makes.

Usage: agreement_test.py TOOL
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def make_model(path):
    random = np.random.default_rng(7)

    def weight(name, *dims):
        return numpy_helper.from_array(random.standard_normal(dims).astype(np.float32) / 8, name)

    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["a"], name="/first"),
        helper.make_node("Add", ["a", "b1"], ["b"], name="/bias"),
        helper.make_node("Relu", ["b"], ["c"], name="/relu"),
        helper.make_node("MatMul", ["c", "w2"], ["d"], name="/second"),
        helper.make_node("Softmax", ["d"], ["e"], name="/softmax", axis=-1),
        helper.make_node("ReduceMean", ["e"], ["f"], name="/mean", axes=[0], keepdims=1),
        helper.make_node("Mul", ["e", "f"], ["y"], name="/product"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [64, 96])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [64, 80])
    graph = helper.make_graph(nodes, "g", [x], [y], [weight("w1", 96, 128), weight("b1", 128), weight("w2", 128, 80)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def main():
    with tempfile.TemporaryDirectory() as name:
        model = pathlib.Path(name) / "model.onnx"
        make_model(model)
        done = subprocess.run([sys.argv[1], "compare", str(model), "--device", "cpu", "--device", "cuda:0"],
                              capture_output=True, text=True, timeout=240)
    print(done.stdout + done.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
