"""The example that trains on scikit-learn's digits reaches what it promises.

usage: digits_test.py OP_RUNNER (not used)"""

import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

EXAMPLE = pathlib.Path(__file__).resolve().parents[3] / "sdk/python/examples/digits.py"


@unittest.skipUnless(importlib.util.find_spec("sklearn"), "scikit-learn is not installed")
class Digits(unittest.TestCase):
    def example(self):
        spec = importlib.util.spec_from_file_location("digits", EXAMPLE)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    def test_97_of_100_are_right(self):
        for compiled in (True, False):
            with self.subTest(compiled=compiled):
                _, right, losses = self.example().train(epochs=20, compiled=compiled)
                self.assertGreaterEqual(right, 0.97)
                self.assertLess(losses[-1], 0.1 * losses[0])

    def test_what_it_learned_is_saved(self):
        import tenon
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/digits.safetensors"
            done = subprocess.run([sys.executable, "-B", str(EXAMPLE), "--epochs", "2", "--save", path], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("of the digits it has not seen are right", done.stdout)
            self.example().make_net().load_state_dict(tenon.load(path))


if __name__ == "__main__":
    unittest_report.main()
