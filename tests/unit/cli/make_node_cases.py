"""Writes the node cases of the Python package onnx as folders for `tenon onnx-test`.

Usage: make_node_cases.py FOLDER

Debian's libonnx-testdata has the cases of an old release; those of the newest one come from a virtual environment:
  python3 -m venv newest && newest/bin/pip install onnx && newest/bin/python make_node_cases.py cases
  tenon onnx-test cases/node
"""
import argparse
import json
import pathlib
import sys

import onnx
import onnx.backend.test.case.node as node_cases
import onnx.backend.test.cmd_tools as tools


class OneCase:
    """The interface that the tool of onnx requires of a case; node cases do not have it."""

    def __init__(self, case):
        self.case = case

    def collect_testcases(self):
        return [self.case]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    cases = node_cases.collect_testcases(None)
    for case in cases:
        tools.model_test = OneCase(case)
        tools.generate_data(argparse.Namespace(output=str(folder)))
        tolerance = {"rtol": case.rtol, "atol": case.atol}
        (folder / case.kind / case.name / "data.json").write_text(json.dumps(tolerance))
    print(f"{len(cases)} cases of onnx {onnx.__version__} are in {folder}")


if __name__ == "__main__":
    main()
