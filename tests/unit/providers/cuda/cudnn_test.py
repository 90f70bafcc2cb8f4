"""Convolutions on the fake driver with cuDNN present, too old, or missing: right results, and a log that says which.

Usage: cudnn_test.py TOOL PROVIDER_FOLDER FAKE_FOLDER
"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from library_runs import LibraryRuns


def make_model(path):
    random = np.random.default_rng(8)

    def weight(name, *dims):
        return numpy_helper.from_array(random.standard_normal(dims).astype(np.float32) / 4, name)

    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["a"], name="/first", pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Relu", ["a"], ["b"], name="/relu"),
        helper.make_node("ConvTranspose", ["b", "w2"], ["y"], name="/second", strides=[2, 2]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 9, 10])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4, 10, 10])
    weights = [weight("w1", 6, 3, 3, 3), weight("b1", 6), weight("w2", 6, 4, 2, 2)]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), path)


def main():
    runs = LibraryRuns(*sys.argv[1:], make_model)
    if "slower" in runs.compare():
        runs.failures.append("with cuDNN there is nothing to complain of")
    text = runs.compare("run as matrix products, which is slower", "libcudnn.so.9 is cuDNN 8.9.7, and 9.0.0 is needed",
                        FAKE_CUDNN_VERSION="8907")
    if text.count("which is slower") != 1:
        runs.failures.append(f"one line was expected:\n{text}")
    runs.compare_without(["libcudnn.so.9"], ["libcuda.so.1", "libcublasLt.so.13"], "run as matrix products", "there is no cuDNN")
    return runs.end()


if __name__ == "__main__":
    sys.exit(main())
