"""Compares recurrent with cells over whole batches in NumPy, which SciPy's and PyTorch's documents describe."""
import itertools
import pathlib
import sys
import unittest

import numpy as np
from scipy.special import expit

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

REFERENCE = None
REVERSE, LINEAR, COUPLED, TORCH = 1, 2, 4, 8
GATES = {"tanh": 1, "relu": 1, "lstm": 4, "gru": 3}
ORDERS = {("lstm", 0): "iofc", ("lstm", TORCH): "ifco", ("gru", 0): "zrh", ("gru", TORCH): "rzh"}


def split(cell, flags, rows):
    """The parts of `rows`, whose last axis holds the gates, by letter."""
    order = ORDERS.get((cell, flags & TORCH), "a")
    return dict(zip(order, np.split(rows, len(order), -1)))


def step(cell, flags, clip, x, h, c, w, r, wb, rb, p):
    """One step of all elements: the new h and c."""
    limit = (lambda a: np.clip(a, -clip, clip)) if clip else (lambda a: a)
    from_x, from_h = split(cell, flags, x @ w.T + wb), split(cell, flags, h @ r.T + rb)
    if cell in ("tanh", "relu"):
        a = limit(from_x["a"] + from_h["a"])
        return (np.tanh(a) if cell == "tanh" else np.maximum(a, 0)), c
    if cell == "lstm":
        pi, po, pf = np.split(p, 3)
        i = expit(limit(from_x["i"] + from_h["i"] + pi * c))
        f = 1 - i if flags & COUPLED else expit(limit(from_x["f"] + from_h["f"] + pf * c))
        new = f * c + i * np.tanh(limit(from_x["c"] + from_h["c"]))
        return expit(limit(from_x["o"] + from_h["o"] + po * new)) * np.tanh(new), new
    z, reset = (expit(limit(from_x[gate] + from_h[gate])) for gate in "zr")
    if flags & LINEAR:
        b = from_x["h"] + reset * from_h["h"]
    else:
        rows = split(cell, flags, np.arange(len(r)))["h"]
        b = from_x["h"] + (reset * h) @ r[rows].T + rb[rows]
    return (1 - z) * np.tanh(limit(b)) + z * h, c


class Recurrent(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(8)

    def draw(self, *shape):
        return self.rng.uniform(-1, 1, shape)

    def check(self, cell, flags, clip, biased, started, peeping, lengths, t=5, n=3, k=4, width=2):
        rows = GATES[cell] * width
        x, w, r = self.draw(t, n, k), self.draw(rows, k), self.draw(rows, width)
        wb, rb = self.draw(rows) * biased, self.draw(rows) * biased
        h, c = self.draw(n, width) * started, self.draw(n, width) * started
        p = self.draw(3 * width) * peeping
        lstm = cell == "lstm"
        inputs = [("src", "f64", x), ("weight", "f64", w)] + [("bias", "f64", wb)] * biased
        inputs += [("lengths", "i32", np.array(lengths))] * (lengths is not None) + [("recurrent_weight", "f64", r)]
        inputs += [("recurrent_bias", "f64", rb)] * biased + [("peephole", "f64", p)] * (peeping and lstm)
        inputs += [("hidden", "f64", h)] * started + [("cell", "f64", c)] * (started and lstm)
        outputs = [("dst", "f64", (t, n, width)), ("dst_hidden", "f64", (n, width))] + [("dst_cell", "f64", (n, width))] * lstm
        attributes = f"cell={cell}" + (f" flags={flags}" if flags else "") + (f" clip={clip}" if clip else "")
        got = REFERENCE.run("recurrent", attributes, outputs, inputs)
        want = np.zeros((t, n, width))
        lengths = np.full(n, t) if lengths is None else np.array(lengths)
        for at in (range(t - 1, -1, -1) if flags & REVERSE else range(t)):
            active = (at < lengths)[:, None]
            new_h, new_c = step(cell, flags, clip, x[at], h, c, w, r, wb, rb, p if lstm else None)
            h, c = np.where(active, new_h, h), np.where(active, new_c, c)
            want[at] = np.where(active, h, 0)
        for result, expected in zip(got, (want, h, c)):
            np.testing.assert_allclose(result, expected, rtol=1e-12, atol=1e-12, err_msg=attributes)

    def test_all_cells(self):
        own = {"gru": (0, LINEAR), "lstm": (0, COUPLED)}
        for cell in GATES:
            for flags, reverse, torch in itertools.product(own.get(cell, (0,)), (0, REVERSE), (0, TORCH)):
                for clip, lengths in ((0, None), (0.4, None), (0, (5, 0, 3))):
                    for bits in range(8):
                        peeping = bool(bits & 4) and cell == "lstm"
                        self.check(cell, flags | reverse | torch, clip, bool(bits & 1), bool(bits & 2), peeping, lengths)

    def test_a_length_outside_the_steps_is_a_fault(self):
        for bad, kept in ((7, 2), (-1, 0)):
            with self.assertRaises(driver.Fault) as caught:
                REFERENCE.run("recurrent", "cell=relu", [("dst", "f64", (2, 1, 1))],
                              [("src", "f64", np.ones((2, 1, 1))), ("weight", "f64", np.ones((1, 1))),
                               ("lengths", "i64", np.array([bad])), ("recurrent_weight", "f64", np.ones((1, 1)))])
            self.assertEqual((caught.exception.code, caught.exception.value, caught.exception.limit), (1, bad, 2))
            self.assertEqual(caught.exception.outputs[0].ravel().tolist(), [1, 2][:kept] + [0] * (2 - kept))


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
