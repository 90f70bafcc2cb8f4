#!/usr/bin/env python3
"""Compares ONNX Runtime with PyTorch on the cases of make_exports.py, and writes the cases with its results instead.

    VENV/bin/python peer.py CASES OUT && BUILD/bin/tenon onnx-test --device cpu OUT

VENV has numpy, onnx and onnxruntime from PyPI."""

import pathlib
import shutil
import sys

import numpy as np
import onnx
import onnx.numpy_helper
import onnxruntime

TOLERANCE = 1e-4


def read(path):
    return onnx.numpy_helper.to_array(onnx.load_tensor(str(path)))


def main():
    cases, out = map(pathlib.Path, sys.argv[1:])
    shutil.rmtree(out, ignore_errors=True)
    shutil.copytree(cases, out)
    for case in sorted(out.glob("exported_*")):
        session = onnxruntime.InferenceSession(str(case / "model.onnx"), providers=["CPUExecutionProvider"])
        worst = 0.0
        for place in sorted(case.glob("test_data_set_*")):
            inputs = {entry.name: read(place / f"input_{i}.pb") for i, entry in enumerate(session.get_inputs())}
            for i, (entry, found) in enumerate(zip(session.get_outputs(), session.run(None, inputs))):
                expected = read(place / f"output_{i}.pb")
                worst = max(worst, np.abs(found - expected).max() / max(np.ptp(expected), 1e-30))
                tensor = onnx.numpy_helper.from_array(np.asarray(found), entry.name)
                (place / f"output_{i}.pb").write_bytes(tensor.SerializeToString())
        print(f"{case.name}: ONNX Runtime {onnxruntime.__version__} is within {worst:.1e} of the range of PyTorch's results")
        if worst > TOLERANCE:
            sys.exit(1)


if __name__ == "__main__":
    main()
