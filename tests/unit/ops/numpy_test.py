"""Every op against NumPy, SciPy or a plain loop, through the dynamic call.

usage: numpy_test.py OP_RUNNER [--decompose | --watch | --keep]; these are options of the runner
       numpy_test.py OP_RUNNER --ranks=N, tensors spread over N processes, each in another way
       numpy_test.py --python, through the Python package in place of a runner

Inputs are random, not zero, and of odd sizes; most are given again as strided and
as channels-last views. The last test checks that no
op was left out. Each family of ops has its tests in the module of its name."""

import pathlib
import sys
import unittest

from numpy_binary import Binary, Ternary
from numpy_composites import Composites
from numpy_gradients import Backward, Random, Scatter
from numpy_halves import Halves
from numpy_matrices import Fourier, LinearAlgebra, Recurrent, Resizing, Samples
from numpy_movement import Assembling, Copies, Factories, Indexing, Views
from numpy_optimisers import Optimisers
from numpy_order import Coordinates, Order, Searches, Which
from numpy_parts import Parts
from numpy_pooling import Pooling
from numpy_products import Products
from numpy_quantised import Quantised
from numpy_reductions import Norms, Reductions
from numpy_runner import run
from numpy_unary import Unary

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report


class ZeroOpsLeft(unittest.TestCase):
    def test_every_op_was_called(self):
        names = run.list()
        variants = {name + "_" for name in names} & names
        self.assertEqual(names - variants - run.used, set(), "no test calls these ops")


if __name__ == "__main__":
    unittest_report.main()
