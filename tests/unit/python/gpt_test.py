"""A GPT-style training script runs in Tenon as in PyTorch, eager and compiled, and learns.

usage: gpt_test.py OP_RUNNER (not used)"""

import importlib.util
import math
import pathlib
import sys
import unittest

import tenon

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "programs"))
import gpt
import unittest_report

LETTERS = len(set("to be or not to be that is the question "))


class Script(unittest.TestCase):
    def learns(self, module, **options):
        made = gpt.run(module, **options)
        self.assertAlmostEqual(made["first"], math.log(LETTERS), delta=0.4)  # it knows nothing yet
        self.assertLess(made["last"], 0.75 * made["first"])
        self.assertLess(made["held"], 0.75 * made["first"])
        self.assertTrue(made["same"])  # the loaded model gives the same logits
        self.assertEqual(len(made["text"]), 21)
        return made

    def test_runs_eagerly_and_compiled(self):
        eager, compiled = self.learns(tenon), self.learns(tenon, compiled=True)
        self.assertEqual(eager["count"], compiled["count"])

    def test_is_a_script_for_pytorch(self):
        if not importlib.util.find_spec("torch"):
            self.skipTest("PyTorch is not installed")
        import torch
        if torch.__version__ < "2.4":
            self.skipTest(f"PyTorch {torch.__version__} has no amp.GradScaler for every device")
        self.assertEqual(self.learns(torch)["count"], gpt.run(tenon)["count"])


if __name__ == "__main__":
    unittest_report.main()
