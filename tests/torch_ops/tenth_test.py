"""A tenth of PyTorch's operator database: no crash, and at least 99.5 % of the cases as PyTorch has them or as PYTORCH.md says.

usage: tenth_test.py PYTHON, the interpreter of an environment that has the newest PyTorch. Without one it is skipped: the
Debian package holds another database, and the one from PyPI takes gigabytes, which ./dev test does not download."""

import os
import pathlib
import subprocess
import sys

SKIPPED = 77
SEED = 36


def main():
    python = sys.argv[1]
    if not os.access(python, os.X_OK):
        print(f"skipped: there is no {python}; ./dev torch-ops makes it, with PyTorch from PyPI (gigabytes).")
        return SKIPPED
    needed = subprocess.run([python, "-c", "import torch, expecttest, pytest, tenon"], capture_output=True, text=True, check=False)
    if needed.returncode:
        print(f"skipped: {python} lacks something, which ./dev torch-ops brings: {needed.stderr.strip().splitlines()[-1]}")
        return SKIPPED
    script = pathlib.Path(__file__).with_name("torch_ops.py")
    return subprocess.run([python, "-B", str(script), "--part", "10", "--seed", str(SEED), "--jobs", "1", "--bar", "99.5"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
