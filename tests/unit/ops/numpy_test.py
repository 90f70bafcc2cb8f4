"""Every op against NumPy, SciPy or a plain loop, through the dynamic call.

usage: numpy_test.py OP_RUNNER [--decompose | --watch | --keep]; these are options of the runner

Inputs are random, not zero, and of odd sizes; most are given again as strided and
as channels-last views. The last test checks that no
op was left out. Each family of ops has its tests in the module of its name."""

import pathlib
import subprocess
import sys
import unittest

from numpy_binary import Binary, Ternary
from numpy_gradients import Backward, Random, Scatter
from numpy_movement import Assembling, Copies, Factories, Indexing, Views
from numpy_order import Coordinates, Order, Searches, Which
from numpy_pooling import Pooling
from numpy_products import Products
from numpy_reductions import Norms, Reductions
from numpy_runner import RUNNER, run
from numpy_unary import Unary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report


class ZeroOpsLeft(unittest.TestCase):
    def test_every_op_was_called(self):
        listed = subprocess.run([RUNNER, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
        names = {line.split("\t")[0] for line in listed}
        variants = {name + "_" for name in names} & names
        self.assertEqual(names - variants - run.used, set(), "no test calls these ops")


if __name__ == "__main__":
    unittest_report.main()
