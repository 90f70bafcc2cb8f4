"""Ops of several steps on f16: they compute in f32 and round once, so that no number on the way overflows."""

import math

import numpy as np

from numpy_runner import Dtype, OpTest, run

H = np.float16
NAN = float("nan")


def half(*values):
    return np.array(values, H)


def wide(x):
    return x.astype(np.float64)


WAVE = half(*[150, -150] * 32)
LINE = half(*[30] * 40)
BIG, SMALL = np.full((2, 3), 300, H), np.full((2, 3), 0.01, H)
MATRIX = np.full((3, 4), 200, H)
BATCH = np.full((5, 3, 4), 100, H)

# The result of a call on f16, computed in f64, where every step in f16 would be infinite or far off.
CALLS = [
    ("var", (WAVE,), {}, np.var(wide(WAVE), ddof=1)),
    ("std", (WAVE,), {}, np.std(wide(WAVE), ddof=1)),
    ("norm", (LINE, 3.0), {}, np.sum(wide(LINE) ** 3) ** (1 / 3)),
    ("norm", (half(8.5, 1), 6.0), {}, (8.5 ** 6 + 1) ** (1 / 6)),
    ("vector_norm", (LINE, -3.0), {}, np.sum(wide(LINE) ** -3) ** (-1 / 3)),
    ("dist", (LINE, -LINE, 4.0), {}, np.sum(wide(2 * LINE) ** 4) ** (1 / 4)),
    ("normalize", (LINE, 4.0, 0), {}, wide(LINE) / np.sum(wide(LINE) ** 4) ** (1 / 4)),
    ("pairwise_distance", (BIG, -BIG, 3.0, 0.0), {}, np.sum(wide(2 * BIG) ** 3, -1) ** (1 / 3)),
    ("cdist", (BIG, -BIG), {}, np.full((2, 2), 600 * math.sqrt(3))),
    ("cosine_similarity", (BIG, BIG), {}, np.ones(2)),
    ("log_sum_exp", (half(*[9] * 1000),), {}, 9 + math.log(1000)),
    ("addcmul", (half(-60000), half(300), half(300)), {}, np.array([30000.0])),
    ("addcmul", (half(-40000), half(300), half(300)), {"value": 0.5}, np.array([5000.0])),
    ("addcdiv", (half(-20000), half(60000), half(0.5)), {"value": 0.5}, np.array([40000.0])),
    ("add", (half(-30000), half(40000)), {"alpha": 2}, np.array([50000.0])),
    ("sub", (half(30000), half(40000)), {"alpha": 2}, np.array([-50000.0])),
    ("rsub", (half(40000), half(30000)), {"alpha": 2}, np.array([-50000.0])),
    ("div", (half(32.99), half(0.1)), {"rounding_mode": "trunc"}, np.trunc(wide(half(32.99)) / wide(half(0.1)))),
    ("ldexp", (half(0.001), np.array([20])), {}, wide(half(0.001)) * 2 ** 20),
    ("cross", (half(300, 299, 1), half(299, 300, 2)), {}, np.cross([300.0, 299, 1], [299.0, 300, 2])),
    ("addmm", (np.zeros((3, 3), H), MATRIX, MATRIX.T.copy()), {"alpha": 0.01}, np.full((3, 3), 1600.0)),
    ("addmm", (np.full((3, 3), -65504, H), MATRIX, MATRIX.T.copy()), {"alpha": 0.5}, np.full((3, 3), 80000.0 - 65504)),
    ("addmv", (half(0, 0, 0), MATRIX, half(200, 200, 200, 200)), {"alpha": 0.01}, np.full(3, 1600.0)),
    ("addr", (np.zeros((3, 3), H), half(300, 300, 300), half(300, 300, 300)), {"alpha": 0.01}, np.full((3, 3), 900.0)),
    ("baddbmm", (np.zeros((5, 3, 3), H), BATCH, BATCH.transpose(0, 2, 1).copy()), {"alpha": 0.01}, np.full((5, 3, 3), 400.0)),
    ("addbmm", (np.full((3, 3), -60000, H), BATCH, BATCH.transpose(0, 2, 1).copy()), {"alpha": 0.5}, np.full((3, 3), 40000.0)),
    ("einsum", ("i,i,i->", (half(300), half(300), half(0.01))), {}, 300 * 300 * wide(half(0.01))[0]),
    ("bilinear", (half(300), half(300), np.full((1, 1, 1), 0.01, H)), {}, 300 * 300 * wide(half(0.01))),
    ("index_add", (half(-30000), 0, np.array([0]), half(40000)), {"alpha": 2}, np.array([50000.0])),
    ("scatter_reduce", (half(0), 0, np.zeros(4096, np.int64), np.ones(4096, H), "mean"), {"include_self": False}, np.ones(1)),
    ("histc", (np.ones(4096, H), 4, 0.0, 4.0), {}, np.array([0.0, 4096, 0, 0])),
    ("histc", (half(-8), 8193, 0.0, 10.0), {}, np.zeros(8193)),
    ("embedding_bag", (np.zeros((1, 4096), np.int64), np.ones((2, 3), H)), {}, np.ones((1, 3))),
    ("mse_loss", (half(300, 0, 0, 0), half(0, 0, 0, 0)), {}, np.float64(22500)),
    ("huber_loss", (half(300, 0, 0, 0), half(0, 0, 0, 0)), {"delta": 300.0}, np.float64(11250)),
    ("l1_loss", (half(60000, 1), half(-60000, 1)), {}, np.float64(60000)),
    ("kl_div", (half(-60000, 0), half(2, 2)), {"reduction": "mean"}, np.float64((4 * math.log(2) + 120000) / 2)),
    ("gaussian_nll_loss", (half(300, 0), half(0, 0), half(10, 1)), {}, np.float64((math.log(10) + 9000) / 4)),
    ("diff", (half(-40000, 30000, 60000),), {"n": 2}, np.array([-40000.0])),
    ("trapezoid", (half(60000, 60000, 60000),), {"dx": 0.25}, np.float64(30000)),
]
CALLS = [call for call in CALLS if np.all(np.abs(call[3]) <= 65504)]


class Halves(OpTest):
    def test_numbers_on_the_way_do_not_overflow(self):
        for op, args, kwargs, expected in CALLS:
            with self.subTest(op=op, args=args, kwargs=kwargs):
                result = run(op, *args, **kwargs)[0]
                self.assertEqual(result.dtype, H)
                np.testing.assert_allclose(wide(result), expected, rtol=2 ** -10, atol=1e-6)

    def test_results_are_rounded_once(self):
        x, y, z = (np.random.default_rng(i).uniform(-4, 4, 500).astype(H) for i in range(3))
        for op, args, kwargs, oracle in (
                ("addcmul", (x, y, z), {"value": 0.3}, lambda: wide(x) + 0.3 * wide(y) * wide(z)),
                ("addcdiv", (x, y, z), {}, lambda: wide(x) + wide(y) / wide(z)),
                ("add", (x, y), {"alpha": 0.7}, lambda: wide(x) + 0.7 * wide(y)),
                ("glu", (x,), {}, lambda: wide(x)[:250] / (1 + np.exp(-wide(x)[250:]))),
                ("logit", (np.abs(x) / H(4),), {"eps": 0.01}, lambda: self.logit(wide(np.abs(x) / H(4))))):
            with self.subTest(op=op):
                result, expected = run(op, *args, **kwargs)[0], oracle()
                # f32 on the way may move a tie.
                self.assertGreater(np.mean(result == expected.astype(H)), 0.99)

    @staticmethod
    def logit(p):
        p = np.clip(p, 0.01, 0.99)
        return np.log(p / (1 - p))

    def test_promotion_decides_what_is_rounded(self):
        x, y = half(300, -300), np.array([300, -300], np.float32)
        self.assertEqual(run("mse_loss", x, y)[0].dtype, np.float32)
        self.assertEqual(run("addcdiv", x, x, np.array(2, np.float32), value=0.5)[0].dtype, H)
        self.assertEqual(run("nanmean", half(60000, NAN, 60000))[0], H(60000))
        self.assertEqual(run("nanmean", half(60000, 60000), dtype=Dtype("f64"))[0].dtype, np.float64)
