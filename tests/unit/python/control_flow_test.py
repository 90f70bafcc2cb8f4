"""tenon.cond, while_loop and scan: eager, compiled and with gradients, against plain Python; their errors.

usage: control_flow_test.py OP_RUNNER (not used)"""

import pathlib
import sys
import unittest

import numpy as np
import tenon

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

VALUES = ([1.0, -3.0], [1.0, 3.0], [-0.5, 0.25])


def branches(x):
    return tenon.cond(x.sum() > 0, lambda x, y: {"a": [x * 2, y]}, lambda x, y: {"a": [-x, y + 1]}, (x, x.abs()))


def doubled(x):
    return tenon.while_loop(lambda i, pair: pair["z"].sum() < 100, lambda i, pair: (i + 1, {"z": pair["z"] * 2}), (tenon.tensor(0), {"z": x.abs()}))


def totals(x):
    rows = x.reshape(1, 2) * tenon.arange(1.0, 4.0).reshape(3, 1)
    return tenon.scan(lambda t, r: (t + r[0], (t * r[0], t - r[1])), tenon.zeros(2), (rows, rows * 3))


class ControlFlow(unittest.TestCase):
    def same(self, ours, expected):
        if isinstance(expected, dict):
            self.assertEqual(ours.keys(), expected.keys())
            ours, expected = list(ours.values()), list(expected.values())
        if isinstance(expected, (list, tuple)):
            self.assertEqual((type(ours), len(ours)), (type(expected), len(expected)))
            for mine, other in zip(ours, expected):
                self.same(mine, other)
        else:
            np.testing.assert_allclose(np.asarray(ours), expected, rtol=1e-6)

    def test_equals_python(self):
        def in_python(x):
            a = {"a": [x * 2, abs(x)]} if x.sum() > 0 else {"a": [-x, abs(x) + 1]}
            i, z = 0, abs(x)
            while z.sum() < 100:
                i, z = i + 1, z * 2
            t, products, differences = np.zeros(2, "f4"), [], []
            for row in x.reshape(1, 2) * np.arange(1, 4, dtype="f4").reshape(3, 1):
                products.append(t * row)
                differences.append(t - 3 * row)
                t = t + row
            return [a, (i, {"z": z}), (t, (np.stack(products), np.stack(differences)))]

        def ours(x):
            return [branches(x), doubled(x), totals(x)]
        compiled = tenon.compile(ours)
        for value in VALUES:
            with self.subTest(value=value):
                expected = in_python(np.array(value, "f4"))
                self.same(ours(tenon.tensor(value)), expected)
                self.same(compiled(tenon.tensor(value)), expected)
        self.assertEqual(compiled.stats()["recordings"], 1)

    def test_scans_along_another_axis_and_backwards(self):
        x = tenon.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        carry, sums = tenon.scan(lambda t, c: (t + c, t + c), tenon.zeros(2), x, dim=1, reverse=True)
        self.same((carry, sums), (np.array([6.0, 15.0]), np.array([[6.0, 5.0, 3.0], [15.0, 11.0, 6.0]])))

    def test_pass_gradients_eagerly(self):
        x = tenon.tensor([1.0, 2.0], requires_grad=True)
        _, y = tenon.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * x), (tenon.tensor(0), x))
        tenon.cond(y.sum() > 0, lambda y: y.sum(), lambda y: -y.sum(), (y,)).backward()
        self.same(x.grad, np.array([4.0, 32.0]))  # the gradient of x ** 4

    def test_a_plain_bool_chooses_in_python(self):
        self.assertEqual(tenon.cond(True, lambda: "yes", lambda: "no"), "yes")
        _, last = tenon.while_loop(lambda i, x: int(i) < 2, lambda i, x: (i + 1, x + 1), (tenon.tensor(0), tenon.tensor(5)))
        self.assertEqual(last.item(), 7)

    def test_differences_are_errors(self):
        x = tenon.ones(2)

        def recorded(function):
            return tenon.compile(function)(x)
        for call, text in (
                (lambda: recorded(lambda x: tenon.cond(x.sum() > 0, lambda: (x, x), lambda: (x,))), "cond: a function returned"),
                (lambda: recorded(lambda x: tenon.cond(x.sum() > 0, lambda: x, lambda: x.sum())), "cond"),
                (lambda: tenon.cond(x, lambda: x, lambda: x), "one"),
                (lambda: tenon.while_loop(lambda z: z.sum() < 9, lambda z: (z, z), (x,)), "while_loop: a function returned"),
                (lambda: tenon.while_loop(lambda z: z.sum() < 9, lambda z: (z.double() * 2,), (x,)), "f64"),
                (lambda: tenon.scan(lambda t, c: t, x, x), "combine_fn must return"),
                (lambda: tenon.scan(lambda t, c: ((t, t), c), x, x), "structure of the carry"),
                (lambda: tenon.scan(lambda t, c: (t, c), x, (x, tenon.ones(3))), "")):
            with self.assertRaises(tenon.InvalidArgument) as raised:
                call()
            self.assertIn(text, str(raised.exception))


if __name__ == "__main__":
    unittest_report.main()
