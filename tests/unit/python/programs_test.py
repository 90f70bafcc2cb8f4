"""Small programs through PyTorch and Tenon: what they give, or which error they raise, is the same.

usage: programs_test.py OP_RUNNER (not used)"""

import importlib.util
import inspect
import pathlib
import re
import sys
import unittest
import warnings

import numpy as np
import tenon

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "programs"))
import habits
import programs
import unittest_report

if importlib.util.find_spec("torch"):
    import torch

PROGRAMS = {name: each for module in (programs, habits) for name, each in vars(module).items()
            if inspect.isfunction(each) and list(inspect.signature(each).parameters) == ["T"]}


class Raised:
    def __init__(self, error):
        self.error = error


def run(program, module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(module)
        except Exception as error:
            return Raised(error)


def plain(value):
    """Tensors as arrays, and texts that name the module as if it were PyTorch."""
    if isinstance(value, tenon.Tensor):
        floats = value.dtype in (tenon.bf16,)
        return np.asarray((tenon.cast(value, tenon.f32) if floats else value).detach()), value.dtype == tenon.bf16
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, str):
        return value.replace("tenon.", "torch.")
    if type(value).__module__ == "torch":
        return value.detach().float().numpy() if value.dtype == torch.bfloat16 else value.detach().numpy(), value.dtype == torch.bfloat16
    return value


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class Programs(unittest.TestCase):
    def same(self, ours, theirs):
        if isinstance(theirs, tuple):
            self.assertEqual((ours[0].dtype, ours[0].shape, ours[1]), (theirs[0].dtype, theirs[0].shape, theirs[1]))
            np.testing.assert_allclose(ours[0].astype("f8"), theirs[0].astype("f8"), rtol=2e-6, atol=1e-6)
        elif isinstance(theirs, list):
            self.assertIsInstance(ours, list)
            self.assertEqual(len(ours), len(theirs))
            for i, (mine, other) in enumerate(zip(ours, theirs)):
                with self.subTest(result=i):
                    self.same(mine, other)
        else:
            self.assertEqual(type(ours), type(theirs))
            self.assertEqual(ours, theirs)

    def test_give_what_they_give_in_pytorch(self):
        self.assertGreater(len(PROGRAMS), 100)
        for name, program in PROGRAMS.items():
            with self.subTest(program=name):
                if name in habits.NEWER and torch.__version__ < "2":
                    ours = run(program, tenon)
                    self.assertEqual(isinstance(ours, Raised), habits.NEWER[name], getattr(ours, "error", ours))
                    continue
                theirs, ours = run(program, torch), run(program, tenon)
                if isinstance(theirs, Raised) or isinstance(ours, Raised):
                    self.assertTrue(isinstance(ours, Raised) and isinstance(theirs, Raised),
                                    f"PyTorch: {getattr(theirs, 'error', 'no error')!r}, Tenon: {getattr(ours, 'error', 'no error')!r}")
                    self.assertIsInstance(ours.error, type(theirs.error), f"{ours.error!r} for {theirs.error!r}")
                else:
                    self.same(plain(ours), plain(theirs))


if __name__ == "__main__":
    unittest_report.main()
