"""Reductions, and the norms made of them."""

import numpy as np
import scipy.special

from numpy_runner import Dtype, OpTest, Refused, run, some


REDUCE = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.amax, "amin": np.amin,
          "l1_norm": lambda x, **k: np.sum(np.abs(x), **k), "l2_norm": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
          "sum_square": lambda x, **k: np.sum(x * x, **k), "log_sum": lambda x, **k: np.log(np.sum(x, **k)), "nansum": np.nansum,
          "log_sum_exp": scipy.special.logsumexp}


class Reductions(OpTest):
    def test_over_axes(self):
        for op, function in REDUCE.items():
            x = some(3, 4, 5, low=0.5, high=2)
            for dim, keep in (([0], False), ([-1], True), ([0, 2], False), ([1], False), ([0, 1, 2], True)):
                with self.subTest(op=op, dim=dim):
                    expected = function(x.astype(np.float64), axis=tuple(dim), keepdims=keep)
                    self.check(expected, op, x, dim, keep, dtype="f32", rtol=1e-4)
            self.check(function(x.astype(np.float64), axis=1), op, x, 1, dtype="f32", rtol=1e-4)
            self.check(np.asarray(function(x.astype(np.float64))), op, x, dtype="f32", rtol=1e-4)
            one = np.asarray(some(low=1, high=2))
            self.check(np.asarray(function(one.astype(np.float64))), op, one, dtype="f32", rtol=1e-4)

    def test_dtypes(self):
        x = some(3, 4, dtype=np.int32, low=-9, high=9)
        self.check(x.sum(0, dtype=np.int64), "sum", x, 0)
        self.assertEqual(run("sum", x, 0, dtype=Dtype("f32"))[0].dtype, np.float32)
        self.assertEqual(run("sum", x, dtype=Dtype("f64"))[0].tolist(), float(x.sum()))
        self.check(x.max(1), "amax", x, 1)
        self.check((x > 0).sum(), "sum", x > 0)
        self.check(x.mean(1).astype(np.float32), "mean", x, 1)
        flags = some(4, 5, dtype=np.bool_)
        self.check(flags.any(1), "any", flags, 1)
        self.check(flags.all(0), "all", flags, 0, False)
        for shape, axis in (((7, 3), 1), ((3, 1030), 0), ((1030, 3), 0), ((4, 5, 6), 1), ((2, 1100), 1), ((200000,), 0)):
            for likely in (0.0001, 0.4, 0.9999):
                some_flags = some(*shape, low=0, high=1) < likely
                self.check(some_flags.any(axis), "any", some_flags, axis)
                self.check(some_flags.all(axis), "all", some_flags, axis)
        self.check(np.asarray(x.all()), "all", x)
        self.check(flags.max(0), "amax", flags, 0)

    def test_of_nothing(self):
        x = np.zeros((0, 3), np.float32)
        self.check(np.zeros(3, np.float32), "sum", x, 0)
        self.check(np.ones(3, np.float32), "prod", x, 0)
        self.check(np.ones(3, bool), "all", x, 0)
        self.check(np.zeros(3, bool), "any", x, 0)
        self.assertTrue(np.isnan(run("mean", x, 0)[0]).all())
        self.assertEqual(run("sum", x, 1)[0].shape, (0,))
        with self.assertRaisesRegex(Refused, "amax"):
            run("amax", x, 0)

    def test_var_and_std(self):
        for x in (some(4, 5), some(4, 5).astype(np.float64), some(20, 30)):  # the host has a loop for few elements
            self.check(x.var(axis=1, ddof=1), "var", x, 1, rtol=1e-4)
            self.check(np.asarray(x.std(ddof=0)), "std", x, correction=0, rtol=1e-4)
            self.check(x.std(axis=0, ddof=1, keepdims=True), "std", x, 0, keepdim=True, rtol=1e-4)
        x = some(3, 4, 5)
        for axes in ([0], [1], [0, 1], [1, 2], [0, 2]):
            self.check(x.var(axis=tuple(axes), ddof=1), "var", x, axes, rtol=1e-4)

    def test_max_and_min(self):
        x, y = some(4, 5), some(5)
        self.check(np.asarray(x.max()), "max", x)
        self.check([x.max(1), x.argmax(1)], "max", x, 1)
        self.check([x.min(0, keepdims=True), x.argmin(0)[None]], "min", x, 0, True)
        self.check(np.maximum(x, y), "max", x, y)
        self.check(np.minimum(x, y), "min", x, y)
        self.check(np.asarray(x.min()), "min", x)

    def test_positions(self):
        x = np.array([[3, 1, 3], [0, 5, 5]], np.int32)
        self.check(np.array([0, 1]), "argmax", x, 1)
        self.check(np.array([2, 2]), "argmax", x, 1, last=True)
        self.check(np.array([[1], [0]]), "argmin", x, 1, True)
        self.check(np.asarray(4), "argmax", x)
        self.check(np.array([[3]]), "argmin", x, keepdim=True)
        self.refused_axis()

    def refused_axis(self):
        with self.assertRaisesRegex(Refused, r"argmax: axis 2 is out of range for rank 2"):
            run("argmax", some(2, 3), 2)


class Norms(OpTest):
    def test_softmax(self):
        for shape, dim in (((3, 5), -1), ((3, 5), 0), ((2, 3, 4), 1), ((7,), 0)):
            x = some(*shape)
            self.check(scipy.special.softmax(x.astype(np.float64), dim), "softmax", x, dim, dtype="f32")
            self.check(scipy.special.log_softmax(x.astype(np.float64), dim), "log_softmax", x, dim, dtype="f32")
        self.check(np.asarray(1.0), "softmax", some(), 0, dtype="f32")
        x = some(2, 3, dtype=np.int32)
        self.assertEqual(run("softmax", x, 1, dtype=Dtype("f64"))[0].dtype, np.float64)
        with self.assertRaisesRegex(Refused, r"softmax: axis 3 is out of range for rank 2 \(expected -2 to 1\)"):
            run("softmax", x, 3)

    def test_layer_norm(self):
        x, w, b = some(3, 4, 5), some(4, 5), some(4, 5)
        z = x.astype(np.float64)
        n = (z - z.mean((1, 2), keepdims=True)) / np.sqrt(z.var((1, 2), keepdims=True) + 1e-5)
        self.check(n * w + b, "layer_norm", x, [4, 5], w, b, dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(n, "layer_norm", x, [4, 5], dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(n + b, "layer_norm", x, [4, 5], bias=b, dtype="f32", rtol=1e-4, atol=1e-5)
        n = (z - z.mean(2, keepdims=True)) / np.sqrt(z.var(2, keepdims=True) + 0.1)
        self.check(n * w[0], "layer_norm", x, [5], w[0], eps=0.1, dtype="f32", rtol=1e-4, atol=1e-5)
        self.refused("layer_norm: normalized_shape [4] is not the end of shape [3, 4, 5] of input.", "layer_norm", x, [4])
        self.refused("layer_norm: weight has shape [4, 5], but the shape normalised is [5].", "layer_norm", x, [5], w)

    def test_rms_norm(self):
        x, w = some(3, 4, 5), some(5)
        expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * w
        self.check(expected, "rms_norm", x, [5], w, dtype="f32", rtol=1e-4)
        small = some(4, 5, low=0.001, high=0.01).astype(np.float16)  # its squares are less than the epsilon of f16
        wide = small.astype(np.float64)
        self.check(wide / np.sqrt((wide ** 2).mean(-1, keepdims=True) + 2.0 ** -23), "rms_norm", small, [5], dtype="f16", rtol=2e-3)

    def test_batch_norm(self):
        x, m, v, w, b = some(2, 3, 4, 5), some(3), some(3, low=0.5, high=2), some(3), some(3)
        c = (slice(None), None, None)
        n = (x - m[c]) / np.sqrt(v[c].astype(np.float64) + 1e-5)
        self.check(n * w[c] + b[c], "batch_norm", x, m, v, w, b, dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(n, "batch_norm", x, m, v, dtype="f32", rtol=1e-4, atol=1e-5)
        rows = some(6, 3)
        self.check((rows - m) / np.sqrt(v + 0.5), "batch_norm", rows, m, v, eps=0.5, dtype="f32", rtol=1e-4, atol=1e-5)
        self.refused("batch_norm: running_mean has shape [3], but the shape normalised is [4].", "batch_norm",
                     some(2, 4), m, v)

    def test_group_and_instance_norm(self):
        x, w, b = some(2, 6, 3, 4), some(6), some(6)
        z = x.astype(np.float64).reshape(2, 3, -1)
        n = ((z - z.mean(2, keepdims=True)) / np.sqrt(z.var(2, keepdims=True) + 1e-5)).reshape(x.shape)
        self.check(n * w[:, None, None] + b[:, None, None], "group_norm", x, 3, w, b, dtype="f32", rtol=1e-4, atol=1e-5)
        z = x.astype(np.float64)
        n = (z - z.mean((2, 3), keepdims=True)) / np.sqrt(z.var((2, 3), keepdims=True) + 1e-5)
        self.check(n, "instance_norm", x, dtype="f32", rtol=1e-4, atol=1e-5)
        self.refused("group_norm: 4 groups do not divide 6 channels.", "group_norm", x, 4)
