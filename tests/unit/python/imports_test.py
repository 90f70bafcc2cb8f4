"""The package beside other libraries, whichever is imported first.

usage: imports_test.py [OP_RUNNER]"""

import importlib.util
import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

import tenon

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import unittest_report

# A computation of each library, with its threads if it has some.
OTHERS = {"numpy": "numpy.linalg.inv(numpy.eye(64))", "torch": "torch.ones(300, 300) @ torch.ones(300, 300)",
          "scipy.linalg": "scipy.linalg.svd([[2.0, 1.0], [1.0, 3.0]])", "sklearn": "__import__('sklearn.cluster').cluster.KMeans",
          "onnx": "onnx.helper.make_tensor('x', 1, [1], [2.0])", "onnxruntime": "onnxruntime.get_available_providers()",
          "pandas": "pandas.Series([1, 2]).sum()", "matplotlib.pyplot": "matplotlib.__version__"}
# Convolution and product run in oneDNN, on threads; the inverse in LAPACK.
OURS = """
x = tenon.ones((300, 300))
assert tenon.sum(x @ x).item() == 300 ** 3
assert tenon.conv2d(tenon.ones((1, 8, 32, 32)), tenon.ones((8, 8, 3, 3))).shape == (1, 8, 30, 30)
assert tenon.linalg_det(tenon.eye(3)).item() == 1
"""
FIXED_OFFSET = re.compile(r"R_\w+_(?:GOT)?TP(?:OFF|REL)\w*[ \t]+\w+[ \t]+([A-Za-z_]\S*)")  # a named thread-local
STATIC_BYTES = 640  # thread-local memory that all our libraries together may ask for when they are loaded late


def installed(name):
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def libraries():
    """The shared libraries of the package, and those of its providers."""
    package = Path(tenon.__file__).parent
    folders = [package, *map(Path, os.environ["TENON_PLUGIN_PATH"].split(":"))]
    files = {each.resolve() for folder in folders for each in folder.glob("*.so")}
    loaded = Path("/proc/self/maps").read_text()
    return sorted(files | {Path(path).resolve() for path in re.findall(r"\S*/libtenon[\w.]*\.so\S*", loaded)})


def readelf(option, path):
    return subprocess.run(["readelf", option, "-W", str(path)], capture_output=True, text=True, check=True).stdout


class Imports(unittest.TestCase):
    def run_both(self, *order):
        imports = "\n".join(f"import {name}" for name in order)
        theirs = "\n".join(OTHERS[name] for name in order if name != "tenon")
        done = subprocess.run([sys.executable, "-B", "-c", f"{imports}\n{theirs}\n{OURS}\n{theirs}"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""), order)

    def test_other_libraries_may_come_first_or_last(self):
        for name in filter(installed, OTHERS):
            with self.subTest(library=name):
                self.run_both(name, "tenon")
                self.run_both("tenon", name)

    def test_all_of_them_may_come_first(self):
        self.run_both(*filter(installed, OTHERS), "tenon")


@unittest.skipUnless(sys.platform == "linux", "the libraries are not ELF files")
class ThreadLocalMemory(unittest.TestCase):
    def test_no_library_reaches_for_that_of_another_as_if_it_were_loaded_with_the_program(self):
        """A library that was loaded late has its thread-local memory elsewhere, and the loader refuses the second one."""
        for path in libraries():
            self.assertEqual(FIXED_OFFSET.findall(readelf("-r", path)), [], path)

    def test_libraries_that_are_loaded_late_ask_for_little(self):
        """The C library keeps some 1,600 bytes for all libraries of a process that is running."""
        taken = {}
        for path in libraries():
            if "STATIC_TLS" in readelf("-d", path):
                taken[path.name] = int(re.search(r"^\s*TLS(?:\s+\S+){4}\s+0x([0-9a-f]+)", readelf("-l", path), re.MULTILINE).group(1), 16)
        self.assertLessEqual(sum(taken.values()), STATIC_BYTES, taken)


if __name__ == "__main__":
    del sys.argv[1:2]
    unittest_report.main()
