"""Matmul on the fake driver with cuBLASLt present, too old, or no library: right results, and a log that says why it is slow.

Usage: cublaslt_test.py TOOL PROVIDER_FOLDER FAKE_FOLDER
"""
import sys

from agreement_test import make_model
from library_runs import LibraryRuns


def main():
    runs = LibraryRuns(*sys.argv[1:], make_model)
    if "slow" in runs.compare():
        runs.failures.append("with cuBLASLt there is nothing to complain of")
    runs.compare("plain kernel, which is slow", "libcublasLt.so.13 is cuBLASLt 11.8.3, and 12.0.0 is needed",
                 FAKE_CUBLASLT_VERSION="110803")
    runs.compare_without(["libcublasLt.so.12", "libcublasLt.so.13"], ["libcuda.so.1"], "plain kernel, which is slow",
                         "libcublasLt.so.13", "libcublasLt.so.12")
    return runs.end()


if __name__ == "__main__":
    sys.exit(main())
