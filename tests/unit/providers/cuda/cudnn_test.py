"""Convolutions on the fake driver with cuDNN present, too old, or missing: right results, and a log that says which.

Usage: cudnn_test.py TOOL PROVIDER_FOLDER FAKE_FOLDER
"""
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


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
    tool, providers, fake = sys.argv[1:]
    failures = []

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model = folder / "model.onnx"
        make_model(model)

        def compare(libraries, *words, **variables):
            environment = {**os.environ, **variables, "TENON_PLUGIN_PATH": providers, "LD_LIBRARY_PATH": str(libraries)}
            done = subprocess.run([tool, "compare", str(model), "--device", "cpu", "--device", "cuda:0"],
                                  capture_output=True, text=True, env=environment, timeout=240)
            text = done.stdout + done.stderr
            if done.returncode != 0:
                failures.append(f"exit code {done.returncode} with {variables}\n{text}")
            for word in words:
                if word not in text:
                    failures.append(f"'{word}' is missing with {libraries}, {variables}:\n{text}")
            return text

        if "slower" in compare(fake):
            failures.append("with cuDNN there is nothing to complain of")
        text = compare(fake, "run as matrix products, which is slower", "libcudnn.so.9 is cuDNN 8.9.7, and 9.0.0 is needed",
                       FAKE_CUDNN_VERSION="8907")
        if text.count("which is slower") != 1:
            failures.append(f"one line was expected:\n{text}")
        without = folder / "without"
        without.mkdir()
        for library in ("libcuda.so.1", "libcublasLt.so.13"):
            os.symlink(os.path.join(fake, library), without / library)
        (without / "libcudnn.so.9").write_text("this is no library\n" * 100)
        if not os.path.exists("/usr/local/cuda/lib64/libcudnn.so.9"):
            compare(without, "run as matrix products", "there is no cuDNN", "invalid ELF header")

    for failure in failures:
        print(failure)
    print(f"{len(failures)} things wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
