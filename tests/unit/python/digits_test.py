"""The examples that train on scikit-learn's digits reach what they promise.

usage: digits_test.py OP_RUNNER (the tool is in the folder above it)"""

import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

TOOL = pathlib.Path(sys.argv.pop(1)).resolve().parents[1] / "tenon"
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

    @unittest.skipUnless(TOOL.exists() and importlib.util.find_spec("tenon._onnx"), "this build has no ONNX, or not the tool")
    def test_what_it_learned_is_exported_and_answers_the_same(self):
        example = str(EXAMPLE.with_name("export_digits.py"))
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-B", example, "--folder", folder, "--tool", str(TOOL), "--epochs"]
            done = subprocess.run([*command, "3"], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))  # no terminal, no bar
            self.assertIn("450 of 450 answers are those of Python", done.stdout)
            picture = xml.etree.ElementTree.parse(f"{folder}/loss.svg").getroot()
            [line] = picture.iter("{http://www.w3.org/2000/svg}polyline")
            self.assertEqual(len(line.get("points").split()), 3)
            ours, theirs = os.openpty()
            subprocess.run([*command, "1"], stdout=subprocess.DEVNULL, stderr=theirs, check=True)
            os.close(theirs)
            self.assertIn(b"] epoch 1 of 1, loss ", os.read(ours, 1 << 16))
            os.close(ours)
        done = subprocess.run([sys.executable, "-B", example, "--epochs", "0"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--epochs is 0; it must be at least 1.", done.stderr)


if __name__ == "__main__":
    unittest_report.main()
