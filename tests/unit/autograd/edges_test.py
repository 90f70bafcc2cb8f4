"""Gradients where functions have kinks, ties, poles or no elements: the numbers of PyTorch 2.15, of f64 and narrower
types, eager and compiled.

usage: edges_test.py"""

import pathlib
import sys
import unittest

import numpy as np
import tenon

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

F = tenon.nn.functional
INF, NAN = float("inf"), float("nan")


def index(*numbers):
    return tenon.tensor(np.array(numbers, np.int64))


def like(x, numbers):
    return tenon.tensor(np.array(numbers, np.float64)).to(x.dtype)


def mask():
    return tenon.tensor([True, False, True])


def written(x, write):
    y = x * 1
    write(y)
    return y


def scattered(reduce, include_self=True):
    return lambda x, y: tenon.scatter_reduce(x, 0, index(0, 0, 1, 1, 3), y, reduce, include_self=include_self)


# Name, function, arguments, gradients of the sum of its result.
KINKS = [
    ("leaky_relu", lambda x: F.leaky_relu(x, 0.1), [[-1, 0, 1]], [[0.1, 0.1, 1]]),
    ("prelu", F.prelu, [[[-1], [0], [1]], [0.2]], [[[0.2], [0.2], [1]], [-1]]),
    ("relu6", F.relu6, [[-1, 0, 3, 6, 7]], [[0, 0, 1, 0, 0]]),
    ("hardtanh", F.hardtanh, [[-2, -1, 0, 1, 2]], [[0, 0, 1, 0, 0]]),
    ("hardswish", F.hardswish, [[-4, -3, 0, 3, 4]], [[0, 0, 0.5, 1, 1]]),
    ("hardsigmoid", F.hardsigmoid, [[-4, -3, 0, 3, 4]], [[0, 0, 1 / 6, 0, 0]]),
    ("hardshrink", F.hardshrink, [[-1, -0.5, 0, 0.5, 1]], [[1, 0, 0, 0, 1]]),
    ("softshrink", F.softshrink, [[-1, -0.5, 0, 0.5, NAN]], [[1, 0, 0, 0, 1]]),
    ("threshold", lambda x: F.threshold(x, 0.5, 2), [[-1, 0.5, 1]], [[0, 0, 1]]),
    ("elu", lambda x: F.elu(x, 2.0), [[0, 1, NAN]], [[2, 1, 1]]),
    ("celu", lambda x: F.celu(x, 2.0), [[0, 1, NAN]], [[1, 1, 1]]),
    ("clamp, numbers", lambda x: tenon.clamp(x, 0, 1), [[-1, 0, 0.5, 1, 2]], [[0, 0, 1, 0, 0]]),
    ("clamp, min", lambda x: tenon.clamp(x, 0), [[-1, 0, 1]], [[0, 0, 1]]),
    ("clamp, max", lambda x: tenon.clamp(x, max=0), [[-1, 0, 1]], [[1, 0, 0]]),
    ("clamp, tensors", tenon.clamp, [[-1, 0, 1, 2, 0.5, 0.5, 0, 1], [0, 0, 0, 0, 2, 1, 0, 1], [1, 1, 1, 1, 1, 1, 0, 1]],
     [[0, 0.5, 0.5, 0, 0, 0, 1, 1], [1, 0.5, 0, 0, 0, 1, 0, 0], [0, 0, 0.5, 1, 1, 0, 0, 0]]),
    ("clamp, a tensor", lambda x, y: tenon.clamp(x, min=y), [[-1, 0, 1], [0, 0, 0]], [[0, 0.5, 1], [1, 0.5, 0]]),
    ("maximum", tenon.maximum, [[-1, 0, 1, NAN, 0], [0, 0, 0, 0, NAN]], [[0, 0.5, 1, 1, 1], [1, 0.5, 0, 1, 1]]),
    ("minimum", tenon.minimum, [[-1, 0, 1, NAN, INF], [0, 0, 0, 0, INF]], [[1, 0.5, 0, 1, 0.5], [0, 0.5, 1, 1, 0.5]]),
    ("fmax", tenon.fmax, [[-1, 0, 1, NAN, 0, NAN], [0, 0, 0, 0, NAN, NAN]], [[0, 0.5, 1, 0, 1, 1], [1, 0.5, 0, 1, 0, 0]]),
    ("fmin", tenon.fmin, [[-1, 0, 1, NAN, 0, NAN], [0, 0, 0, 0, NAN, NAN]], [[1, 0.5, 0, 0, 1, 1], [0, 0.5, 1, 1, 0, 0]]),
]

TIES = [
    ("max, dim", lambda x: x.max(1)[0], [[[1, 3, 3, 1], [0, 0, 0, 0], [1, NAN, 3, NAN]]], [[[0, 1, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]]]),
    ("min, dim, kept", lambda x: x.min(0, True)[0], [[[1, 0], [1, 0], [2, 0]]], [[[1, 1], [0, 0], [0, 0]]]),
    ("max of a number", lambda x: x.max(0)[0], [2], [1]),
    ("max", lambda x: x.max(), [[1, 3, 3, 1]], [[0, 0.5, 0.5, 0]]),
    ("max, NaN", lambda x: x.max(), [[1, NAN, 3, NAN]], [[0, 0.5, 0, 0.5]]),
    ("amin", lambda x: x.amin(1), [[[0, 0, 1], [2, 1, 1]]], [[[0.5, 0.5, 0], [0, 0.5, 0.5]]]),
    ("median", lambda x: x.median(), [[1, 3, 3, 1, 1]], [[1 / 3, 0, 0, 1 / 3, 1 / 3]]),
    ("median, NaN", lambda x: x.median(), [[1, NAN, 3, NAN]], [[0, 0.5, 0, 0.5]]),
    ("median, dim, NaN", lambda x: x.median(0)[0], [[1, NAN, 3, NAN]], [[0, 1, 0, 0]]),
    ("cummax", lambda x: tenon.cummax(x, 0)[0], [[1, 3, 3, 1]], [[1, 1, 2, 0]]),
    ("cummin", lambda x: tenon.cummin(x, 0)[0], [[1, 3, 3, 1]], [[3, 0, 0, 1]]),
    ("scatter_reduce, amax", scattered("amax"), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[1 / 3, 0, 1, 1, 1], [1 / 3, 1 / 3, 0, 1, 0]]),
    ("scatter_reduce, amin", scattered("amin"), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[1 / 3, 0.5, 1, 0, 1], [1 / 3, 1 / 3, 0.5, 0, 1]]),
    ("scatter_reduce, mean", scattered("mean"), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[1 / 3, 1 / 3, 1, 0.5, 1], [1 / 3, 1 / 3, 1 / 3, 1 / 3, 0.5]]),
    ("scatter_reduce, prod", scattered("prod"), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[1, 0, 1, 2, 1], [1, 1, 0, 0, 5]]),
    ("scatter_reduce, prod of src", scattered("prod", False), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[0, 0, 1, 0, 1], [1, 1, 2, 0, 1]]),
    ("scatter_reduce, mean of src", scattered("mean", False), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[0, 0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5, 1]]),
]

POLES = [
    ("atan2", tenon.atan2, [[0, 0, 1, 0], [0, 1, 0, -1]], [[0, 1, 0, -1], [0, 0, -1, 0]]),
    ("xlogy", tenon.xlogy, [[0, 0, 0, 1], [2, 0.5, -1, 2]], [[np.log(2), np.log(0.5), 0, np.log(2)], [0, 0, 0, 0.5]]),
    ("xlogy, a number", lambda x: tenon.xlogy(x, 2.0), [[0, 1]], [[np.log(2)] * 2]),
    ("pow", tenon.pow, [[0, 0, 2, 0], [1, 2, 0, 0]], [[1, 0, 0, 0], [0, 0, np.log(2), 0]]),
    ("pow of 0", lambda y: tenon.pow(0.0, y), [[0, 1, -1]], [[0, 0, -INF]]),
    ("logaddexp", tenon.logaddexp, [[INF, 1000, -1000], [-INF, 0, 0]], [[1, 1, 0], [0, 0, 1]]),
    ("erfinv", tenon.erfinv, [[0, 0.5, -0.5, 1]], [[0.886226925452758, 1.1125848189719496, 1.1125848189719496, INF]]),
    ("logit", tenon.logit, [[0, 0.5, 1]], [[INF, 4, INF]]),
    ("logit, eps", lambda x: tenon.logit(x, 0.25), [[0, 0.25, 0.5, 0.75, 1]], [[0, 16 / 3, 4, 16 / 3, 0]]),
    ("std", lambda x: x.std(), [[1, 1, 1]], [[0, 0, 0]]),
    ("std, dim", lambda x: x.std(0, correction=0), [[[1, 2], [1, 3]]], [[[0, -0.5], [0, 0.5]]]),
    ("std_mean", lambda x: tenon.std_mean(x, 1)[0], [[[1, 1, 1], [1, 2, 3]]], [[[0, 0, 0], [-0.5, 0, 0.5]]]),
    *[(f"norm {p}", lambda x, p=p: tenon.norm(x, p, [1]), [[[0, 0], [0, 2], [3, -3]]], [[[0, 0], [0, small], [slope, -slope]]])
      for p, small, slope in ((0.5, 1, 2), (1, 1, 1), (1.5, 1, 2 ** (-1 / 3)), (2, 1, 0.5 ** 0.5), (3, 1, 2 ** (-2 / 3)),
                              (INF, 1, 0.5), (-INF, 0, 0.5), (-1, 0, 0.25))],
    ("pairwise_distance", lambda x, y: F.pairwise_distance(x, y, 3.0, 0.0), [[[0, 0]], [[0, 0]]], [[[0, 0]], [[0, 0]]]),
    ("dist", lambda x, y: tenon.dist(x, y, 1.5), [[1, 2], [1, 2]], [[0, 0], [0, 0]]),
    ("cdist 3", lambda x, y: tenon.cdist(x, y, 3.0), [[[0, 0], [0, 2]], [[0, 0]]], [[[0, 0], [0, 1]], [[0, -1]]]),
    ("cdist 0.5", lambda x, y: tenon.cdist(x, y, 0.5), [[[0, 0], [1, 1]], [[0, 0]]], [[[0, 0], [2, 2]], [[-2, -2]]]),
    ("cdist inf", lambda x, y: tenon.cdist(x, y, INF), [[[0, 0], [1, 1]], [[0, 0]]], [[[0, 0], [1, 1]], [[-1, -1]]]),
    ("normalize 3", lambda x: F.normalize(x, 3.0), [[[0, 2]]], [[[0.5, 0]]]),
    ("cosine_similarity", lambda x, y: F.cosine_similarity(x, y, eps=10.0), [[[0, 0], [0, 2]], [[1, 0], [0, 0]]],
     [[[0.01, 0], [0, 0]], [[0, 0], [0, 0.02]]]),
    ("det", tenon.det, [[[[0, 0], [0, 2]], [[1, 2], [2, 4]], [[0, 0], [0, 0]], [[1, 2], [3, 4]]]],
     [[[[2, 0], [0, 0]], [[4, -2], [-2, 1]], [[0, 0], [0, 0]], [[4, -3], [-2, 1]]]]),
    ("det, 1 by 1", tenon.det, [[[0]]], [[[1]]]),
    ("det, 3 by 3", tenon.det, [[[1, 2, 3], [2, 4, 6], [1, 0, 1]]], [[[4, 4, -4], [-2, -2, 2], [0, 0, 0]]]),
    ("binary_cross_entropy of a saturated sigmoid", lambda x: F.binary_cross_entropy(tenon.sigmoid(x), like(x, [1, 0])), [[800, -800]], [[0, 0]]),
    ("binary_cross_entropy at 0 and 1", lambda x: F.binary_cross_entropy(x, like(x, [0, 1, 0.5]), reduction="sum"), [[0, 1, 0.25]], [[0, 0, -4 / 3]]),
    ("binary_cross_entropy, weight", lambda x, w: F.binary_cross_entropy(x, like(x, [[1], [0]]), w), [[[0.5], [0.25]], [[1], [3]]],
     [[[-1], [2]], [[np.log(2) / 2], [-np.log(0.75) / 2]]]),
    *[(f"{name}, all ignored", lambda x, f=f: f(x), [[[1, 2], [3, 4]]], [[[0, 0], [0, 0]]])
      for name, f in (("cross_entropy", lambda x: F.cross_entropy(x, index(-100, -100))),
                      ("cross_entropy, sum", lambda x: F.cross_entropy(x, index(-100, -100), reduction="sum")),
                      ("cross_entropy, smoothed", lambda x: F.cross_entropy(x, index(-100, -100), label_smoothing=0.1)),
                      ("nll_loss", lambda x: F.nll_loss(x, index(-100, -100))))],
    ("gaussian_nll_loss", lambda v: F.gaussian_nll_loss(like(v, [1, 2]), like(v, [1, 1]), v, eps=0.5), [[0, 0.5]], [[0.5, -0.5]]),
    ("prod", lambda x: x.prod(), [[0, 2, 3]], [[6, 0, 0]]),
]

# A value that is a tensor of rank 0 has its gradient, also where it is written.
FILLS = [
    ("masked_fill", lambda x, v: x.masked_fill(mask(), v), [[1, 2, 3], 5], [[0, 1, 0], 2]),
    ("masked_fill_", lambda x, v: written(x, lambda y: y.masked_fill_(mask(), v)), [[1, 2, 3], 5], [[0, 1, 0], 2]),
    ("index_fill", lambda x, v: x.index_fill(0, index(0, 0, 2), v), [[1, 2, 3], 5], [[0, 1, 0], 2]),
    ("index_fill_", lambda x, v: written(x, lambda y: y.index_fill_(0, index(0, 2), v)), [[1, 2, 3], 5], [[0, 1, 0], 2]),
    ("fill_", lambda x, v: written(x, lambda y: y.fill_(v)) * x, [[1, 2, 3], 5], [[5, 5, 5], 6]),
    ("matrix_power 0", lambda x: tenon.matrix_power(x, 0), [[[1, 2], [3, 4]]], [[[0, 0], [0, 0]]]),
]

# Gradients of the sum of the gradients above.
SECOND = [
    ("std", lambda x: x.std(), [[1, 1, 1]], [[0, 0, 0]]),
    ("norm 2", lambda x: tenon.norm(x), [[0, 0]], [[0, 0]]),
    ("norm 3", lambda x: tenon.norm(x, 3.0, [1]), [[[0, 0], [3, -3]]], [[[0, 0], [2 ** (1 / 3) / 3, 2 ** (1 / 3) / 3]]]),
    ("norm 1.5", lambda x: tenon.norm(x, 1.5), [[0, 0]], [[0, 0]]),
    ("erfinv", tenon.erfinv, [[0, 0.5]], [[0, 1.1807463499933994]]),
    ("atan2", tenon.atan2, [[1], [0]], [[1], [1]]),
    ("hardswish", F.hardswish, [[-3, 0, 3]], [[0, 1 / 3, 0]]),
    ("huber_loss", lambda x: F.huber_loss(x, like(x, [0] * 4), reduction="sum"), [[-1, 0, 1, 2]], [[0, 1, 0, 0]]),
    ("smooth_l1_loss", lambda x: F.smooth_l1_loss(x, like(x, [0] * 3), reduction="sum", beta=2.0), [[-1, 2, 3]], [[0.5, 0, 0]]),
    ("det", tenon.det, [[[[0, 0], [0, 2]], [[1, 2], [2, 4]], [[1, 2], [3, 4]]]], [[[[1, -1], [-1, 1]]] * 3]),
    ("prod", lambda x: x.prod(), [[0, 0, 1]], [[1, 1, 0]]),
    ("binary_cross_entropy", lambda x: F.binary_cross_entropy(x, like(x, [1.0])), [[0.5]], [[4]]),
    ("scatter_reduce, prod", scattered("prod"), [[1, 0, 3, 5, 2], [1, 1, 0, 2, 2]], [[2, 2, 0, 1, 0], [2, 2, 2, 0, 1]]),
    ("cross_entropy, all ignored", lambda x: F.cross_entropy(x, index(-100)), [[[1, 2]]], [[[0, 0]]]),
]


def first(function, *leaves):
    return tenon.autograd.grad([function(*leaves).sum()], list(leaves))


def second(function, *leaves):
    slopes = tenon.autograd.grad([function(*leaves).sum()], list(leaves), create_graph=True)
    total = sum(slope.sum() for slope in slopes)
    return tenon.autograd.grad([total], list(leaves))


class Edges(unittest.TestCase):
    def tensors(self, arguments, dtype):
        return [tenon.tensor(np.array(x, np.float64)).to(dtype).requires_grad_() for x in arguments]

    def check(self, table, gradients, dtypes, compiled=False):
        bounds = {tenon.float64: 1e-6, tenon.float32: 1e-5, tenon.float16: 4e-3, tenon.bfloat16: 3e-2}
        for name, function, arguments, expected in table:
            for dtype in dtypes:
                with self.subTest(name, dtype=str(dtype), compiled=compiled):
                    run = lambda *leaves: gradients(function, *leaves)
                    found = (tenon.compile(run) if compiled else run)(*self.tensors(arguments, dtype))
                    for got, want in zip(found, expected, strict=True):
                        self.assertEqual(got.dtype, dtype)
                        np.testing.assert_allclose(np.array(got.detach().to(tenon.float64)), np.array(want, np.float64), rtol=bounds[dtype], atol=bounds[dtype])

    def test_kinks(self):
        self.check(KINKS, first, (tenon.float64, tenon.float32, tenon.float16, tenon.bfloat16))

    def test_ties(self):
        self.check(TIES, first, (tenon.float64, tenon.float32))

    def test_poles(self):
        self.check(POLES, first, (tenon.float64, tenon.float32))

    def test_values_that_are_tensors(self):
        self.check(FILLS, first, (tenon.float64, tenon.bfloat16))
        function, arguments = FILLS[0][1:3]
        with self.assertRaisesRegex(tenon.InvalidArgument, "value has shape .3.; it must be a number or a tensor of rank 0"):
            function(*self.tensors([arguments[0], arguments[0]], tenon.float32))
        with self.assertRaisesRegex(tenon.InvalidCall, "must be float, not Tensor"):
            F.leaky_relu(tenon.zeros(2), tenon.tensor(0.1).requires_grad_())

    def test_second_order(self):
        self.check(SECOND, second, (tenon.float64,))

    def test_compiled(self):
        for table in (KINKS, TIES, POLES, FILLS):
            self.check(table, first, (tenon.float64,), compiled=True)
        self.check(SECOND, second, (tenon.float64,), compiled=True)

    def test_narrow_types(self):
        narrow = {"std", "std, dim", "atan2", "xlogy", "max, dim", "median", "binary_cross_entropy of a saturated sigmoid",
                  *(f"norm {p}" for p in (0.5, 1.5, 3, INF)), "cdist 3", "erfinv"}
        self.check([row for row in POLES + TIES if row[0] in narrow], first, (tenon.float16, tenon.bfloat16))


EMPTY = [
    ("mean", (0, 3), lambda x: x.mean(-1)), ("mean of all", (0, 3), lambda x: x.mean()), ("mean of no elements", (3, 0), lambda x: x.mean(-1)),
    ("var", (0, 3), lambda x: x.var(-1)), ("std", (0, 3), lambda x: x.std(-1)), ("prod", (0, 3), lambda x: x.prod(-1)),
    ("adaptive_avg_pool1d", (0, 2, 3), lambda x: F.adaptive_avg_pool1d(x, 1)), ("softmax", (0, 3), lambda x: x.softmax(-1)),
    ("adaptive_avg_pool2d", (0, 2, 4, 4), lambda x: F.adaptive_avg_pool2d(x, 2)), ("avg_pool2d", (0, 2, 4, 4), lambda x: F.avg_pool2d(x, 2)),
    ("layer_norm", (0, 3), lambda x: F.layer_norm(x, (3,))), ("rms_norm", (0, 3), lambda x: F.rms_norm(x, (3,))),
    ("group_norm", (0, 4, 3), lambda x: F.group_norm(x, 2)), ("norm", (0, 3), lambda x: tenon.norm(x, 3.0, [1])),
    ("cat", (0, 3), lambda x: tenon.cat([x, x])), ("stack", (0, 3), lambda x: tenon.stack([x, x])), ("pad", (0, 3), lambda x: F.pad(x, (1, 1, 1, 0))),
    ("cdist", (0, 3), lambda x: tenon.cdist(x, x)), ("max, dim", (0, 3), lambda x: x.max(1)[0]), ("sort", (0, 3), lambda x: x.sort(-1)[0]),
    ("tile", (2, 3), lambda x: x.tile(0, 1)), ("repeat", (2, 3), lambda x: x.repeat(0, 1)), ("flip", (0, 3), lambda x: x.flip(0)), ("clone", (0, 3), lambda x: x.clone()),
    ("gather", (2, 3), lambda x: x.gather(0, tenon.zeros(0, 3, dtype=tenon.int64))), ("index_select", (2, 3), lambda x: x.index_select(0, index())),
    ("matmul", (0, 3), lambda x: x @ x.t()), ("conv1d", (0, 2, 5), lambda x: F.conv1d(x, tenon.ones(3, 2, 3))), ("cumsum", (0, 3), lambda x: x.cumsum(0)),
    ("solve_triangular", (0, 3), lambda x: tenon.linalg_solve_triangular(tenon.zeros(0, 0), x, upper=False)),
    ("det", (0, 2, 2), tenon.det), ("inverse", (0, 2, 2), tenon.inverse), ("svdvals", (0, 2, 2), tenon.linalg_svdvals),
]


class Empty(unittest.TestCase):
    def check(self, name, gradients):
        for row, shape, function in EMPTY:
            with self.subTest(row):
                x = tenon.zeros(*shape).requires_grad_()
                self.assertTrue(function(x).requires_grad)
                found = gradients(function, x)[0]
                self.assertEqual(tuple(found.shape), shape)
                self.assertEqual(np.count_nonzero(np.array(found)), 0)

    def test_first_order(self):
        self.check("first", first)

    def test_second_order(self):
        def both(function, x):
            slope, = tenon.autograd.grad([function(x).sum()], [x], create_graph=True)
            return tenon.autograd.grad([slope.sum()], [x]) if slope.requires_grad else [slope]

        self.check("second", both)


if __name__ == "__main__":
    unittest_report.main()
