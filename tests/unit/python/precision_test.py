"""tenon.precision: ops, compiled functions, gradients and models with products of f32 whose factors are rounded to bf16.

usage: precision_test.py OP_RUNNER (which these tests do not use)"""

import io
import pathlib
import sys
import tempfile
import threading
import unittest

import numpy as np
import tenon

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

random = np.random.default_rng(20261129)
CHOICES = "it may be stated, relaxed, portable or full"


def rounds():
    """True if the cpu provider multiplies bf16 here."""
    info = pathlib.Path("/proc/cpuinfo")
    return info.exists() and "avx512_bf16" in info.read_text()


def drawn(*shape):
    return random.uniform(-1, 1, shape).astype("float32")


class Precision(unittest.TestCase):
    def expect_rounded(self, relaxed, full, want, magnitude):
        """`want` is computed in f64. Each product of `relaxed` may be off by 2^-8, and its sums hardly."""
        relaxed, full = np.asarray(relaxed), np.asarray(full)
        self.assertLess((np.abs(full - want) / magnitude).max(), 1e-5)
        error = (np.abs(relaxed - want) / magnitude).max()
        self.assertLess(error, 1.01 / 256)
        self.assertEqual(error > 1e-5, rounds(), f"the error is {error}")

    def setUp(self):
        self.a, self.b = drawn(100, 110), drawn(110, 120)
        self.x, self.y = tenon.tensor(self.a), tenon.tensor(self.b)
        self.want = self.a.astype("float64") @ self.b
        self.magnitude = np.abs(self.a).astype("float64") @ np.abs(self.b)

    def test_block(self):
        full = self.x @ self.y
        with tenon.precision("relaxed"):
            self.assertEqual(tenon.current_precision(), "relaxed")
            relaxed = self.x @ self.y
            with tenon.precision("full"):
                np.testing.assert_array_equal(np.asarray(self.x @ self.y), np.asarray(full))
            np.testing.assert_array_equal(np.asarray(self.x @ self.y), np.asarray(relaxed))
        self.assertEqual(tenon.current_precision(), "stated")
        np.testing.assert_array_equal(np.asarray(self.x @ self.y), np.asarray(full))
        self.assertEqual(relaxed.dtype, tenon.float32)
        self.expect_rounded(relaxed, full, self.want, self.magnitude)

    def test_block_ends_with_an_error_and_belongs_to_one_thread(self):
        seen = []
        with self.assertRaises(ZeroDivisionError), tenon.precision("relaxed"):
            other = threading.Thread(target=lambda: seen.append(tenon.current_precision()))
            other.start()
            other.join()
            raise ZeroDivisionError
        self.assertEqual((seen, tenon.current_precision()), (["stated"], "stated"))

    def test_decorator(self):
        @tenon.precision("relaxed")
        def product(x, y):
            return x @ y, tenon.current_precision()

        @tenon.precision("relaxed")
        def names():
            while True:
                yield tenon.current_precision()

        result, name = product(self.x, self.y)
        self.assertEqual(name, "relaxed")
        self.expect_rounded(result, self.x @ self.y, self.want, self.magnitude)
        generator = names()
        self.assertEqual(next(generator), "relaxed")
        self.assertEqual(tenon.current_precision(), "stated")

    def test_unknown_name(self):
        for wrong in (lambda: tenon.precision("half"), lambda: tenon.onnx.load(self.model(), precision="half")):
            with self.assertRaisesRegex(tenon.InvalidArgument, f"'half' is unknown; {CHOICES}"):
                wrong()

    def test_convolution_and_attention(self):
        x, w = drawn(2, 32, 12, 12), drawn(32, 32, 3, 3)
        q, k, v = drawn(1, 2, 50, 64), drawn(1, 2, 90, 64), drawn(1, 2, 90, 64)
        calls = {
            "conv2d": lambda: tenon.nn.functional.conv2d(tenon.tensor(x), tenon.tensor(w), padding=1),
            "attention": lambda: tenon.nn.functional.scaled_dot_product_attention(tenon.tensor(q), tenon.tensor(k), tenon.tensor(v)),
        }
        for name, call in calls.items():
            full = np.asarray(call())
            with tenon.precision("relaxed"):
                relaxed = np.asarray(call())
            difference = np.abs(relaxed - full).max() / np.abs(full).max()
            self.assertLess(difference, 0.02, name)
            self.assertEqual(difference > 1e-6, rounds(), f"{name}: {difference}")

    def test_compiled_function(self):
        function = tenon.compile(lambda x, y: tenon.relu(x @ y) + 1)
        full = np.asarray(function(self.x, self.y))
        with tenon.precision("relaxed"):
            relaxed = np.asarray(function(self.x, self.y))
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(function(self.x, self.y)), full)
            with tenon.precision("relaxed"):
                np.testing.assert_array_equal(np.asarray(function(self.x, self.y)), relaxed)
        self.expect_rounded(relaxed, full, np.maximum(self.want, 0) + 1, self.magnitude + 1)

    def test_gradients(self):
        x, w = drawn(2, 32, 12, 12), drawn(48, 32, 3, 3)
        found = {}
        for name in "stated", "relaxed":
            image, weight, a, b = (tenon.tensor(each).requires_grad_() for each in (x, w, self.a, self.b))
            with tenon.precision(name):
                loss = (tenon.nn.functional.conv2d(image, weight, padding=1) ** 2).sum() + ((a @ b) ** 2).sum()
                loss.backward()
            found[name] = [np.asarray(each.grad) for each in (image, weight, a, b)]
        for full, relaxed in zip(found["stated"], found["relaxed"]):
            difference = np.abs(relaxed - full).max() / np.abs(full).max()
            self.assertLess(difference, 0.02)
            self.assertEqual(difference > 1e-6, rounds())

    def model(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "model.onnx")
            tenon.onnx.export(lambda x: x @ self.y, path, (self.x,))
            return path.read_bytes()

    def test_models(self):
        model = self.model()
        full, relaxed = tenon.onnx.load(model), tenon.onnx.load(model, precision="relaxed")
        with tenon.precision("relaxed"):
            surrounded = tenon.onnx.load(model)
        results = [np.asarray(each(self.x)) for each in (full, relaxed, surrounded)]
        self.expect_rounded(results[1], results[0], self.want, self.magnitude)
        np.testing.assert_array_equal(results[1], results[2])
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(full(self.x)), results[0])
            np.testing.assert_array_equal(np.asarray(relaxed(self.x)), results[1])

    def test_profile(self):
        text = io.StringIO()
        with tenon.profile(file=text) as profile:
            self.x @ self.y
            with tenon.precision("relaxed"):
                self.x @ self.y
        tiers = {row.tier: row.launches for row in profile.rows if row.op == "matmul"}
        self.assertEqual(tiers, {"full": 1, "relaxed": 1} if rounds() else {"full": 2})
        self.assertIn(" relaxed " if rounds() else " full ", text.getvalue())


if __name__ == "__main__":
    unittest_report.main()
