"""Ops that training needs: backward ops against finite differences of the forward ops' formulas in NumPy, scatter, random
numbers."""

import pathlib
import sys

import numpy as np

from numpy_runner import OPTIONS, Call, Dtype, Keep, OpTest, Ref, Refused, random, run, some, strided

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "primitives"))
import philox


def slope(function, x, weights):
    """d(sum(function(x) * weights)) / dx, by central differences."""
    result = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        result[at] = np.sum((function(x + step) - function(x - step)) * weights) / 2e-6
    return result


class Backward(OpTest):
    def near(self, got, want, tolerance=1e-6):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

    def test_layer_norm(self):
        x, g = some(3, 4, 5, dtype=np.float64), some(3, 4, 5, dtype=np.float64)
        w, b = some(4, 5, dtype=np.float64), some(4, 5, dtype=np.float64)

        def norm(x, w, b):
            return (x - x.mean((1, 2), keepdims=True)) / np.sqrt(x.var((1, 2), keepdims=True) + 0.01) * w + b

        for weight, bias in ((w, b), (None, None)):
            result, mean, rstd = run("layer_norm_with_statistics", x, [4, 5], weight, bias, 0.01)
            scale, shift = (w, b) if weight is not None else (np.ones((4, 5)), np.zeros((4, 5)))
            self.near(result, norm(x, scale, shift))
            self.near(mean, x.mean((1, 2), keepdims=True))
            self.near(rstd, 1 / np.sqrt(x.var((1, 2), keepdims=True) + 0.01))
            for given in (x, strided(x)):
                got = run("layer_norm_backward", strided(g) if given is not x else g, given, [4, 5], mean, rstd, weight)
                self.near(got[0], slope(lambda x: norm(x, scale, shift), x, g))
                self.near(got[1], slope(lambda w: norm(x, w, shift), scale, g))
                self.near(got[2], g.sum(0))
        mean32 = np.zeros((3, 1, 1), np.float32)
        if "--decompose" in OPTIONS:
            return  # no rule is asked
        self.refused("layer_norm_backward: mean is f32 but must be f64.", "layer_norm_backward", g, x, [4, 5], mean32, mean32)

    def test_batch_norm(self):
        x, g = some(3, 4, 5, dtype=np.float64), some(3, 4, 5, dtype=np.float64)
        w, b = some(4, dtype=np.float64), some(4, dtype=np.float64)

        def norm(x, w, b):
            normal = (x - x.mean((0, 2), keepdims=True)) / np.sqrt(x.var((0, 2), keepdims=True) + 0.01)
            return normal * w[:, None] + b[:, None]

        for weight, bias in ((w, b), (w, None), (None, None)):
            scale = w if weight is not None else np.ones(4)
            shift = b if bias is not None else np.zeros(4)
            result, mean, invstd = run("batch_norm_with_statistics", x, weight, bias, eps=0.01)
            self.near(result, norm(x, scale, shift))
            self.near(mean, x.mean((0, 2)))
            self.near(invstd, 1 / np.sqrt(x.var((0, 2)) + 0.01))
            for given in (x, strided(x)):
                got = run("batch_norm_backward", g, given, weight, mean, invstd)
                self.near(got[0], slope(lambda x: norm(x, scale, shift), x, g))
                self.near(got[1], slope(lambda w: norm(x, w, shift), scale, g))
                self.near(got[2], g.sum((0, 2)))

    def test_norms_in_f32(self):
        x, g = some(64, 33), some(64, 33)
        result, mean, rstd = run("layer_norm_with_statistics", x, [33])
        self.assertEqual((result.dtype, mean.dtype, mean.shape), (np.float32, np.float32, (64, 1)))
        got = run("layer_norm_backward", g, x, [33], mean, rstd)
        normal = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        self.near(got[1], (g * normal).sum(0), 1e-4)

    def test_batches_of_nothing(self):
        nothing, mean = np.zeros((0, 4, 5), np.float32), np.zeros((0, 4, 1), np.float32)
        for got in (run("layer_norm_backward", nothing, nothing, [5], mean, mean),
                    run("batch_norm_backward", nothing.swapaxes(1, 2), nothing.swapaxes(1, 2), None, np.zeros(5, np.float32), np.ones(5, np.float32))):
            self.assertEqual((got[0].size, got[1].tolist(), got[2].tolist()), (0, [0] * 5, [0] * 5))
        self.assertEqual([o.shape for o in run("layer_norm_with_statistics", nothing, [5])], [(0, 4, 5), (0, 4, 1), (0, 4, 1)])
        got = run("conv_grad_weight", np.zeros((0, 3, 5), np.float32), [2, 3, 3], np.zeros((0, 2, 3), np.float32))[0]
        self.close(got, np.zeros((2, 3, 3), np.float32))
        got = run("avg_pool_backward", np.zeros((0, 3, 4), np.float32), [0, 3, 8], 2)[0]
        self.assertEqual(got.shape, (0, 3, 8))

    def test_conv_grad_weight(self):
        for shape, weight, stride, padding, dilation, groups in (((2, 4, 7, 6), (6, 4, 3, 2), 1, 0, 1, 1), ((2, 4, 7, 9), (6, 2, 3, 3), [2, 1], [1, 2], [1, 2], 2),
                                                                 ((2, 3, 11), (5, 3, 4), 3, [1, 2], 1, 1), ((1, 3, 6, 5), (3, 1, 3, 3), 1, 1, 1, 3)):
            x, w = some(*shape, dtype=np.float64), some(*weight, dtype=np.float64)
            forward = lambda w: run("conv", x, w, None, stride, padding, dilation, groups)[0]
            g = some(*forward(w).shape, dtype=np.float64)
            want = slope(forward, w, g)
            self.near(run("conv_grad_weight", x, list(weight), g, stride, padding, dilation, groups)[0], want)
            self.near(run("conv_grad_weight", strided(x), list(weight), strided(g), stride, padding, dilation, groups)[0], want)
            single = run("conv_grad_weight", x.astype(np.float32), list(weight), g.astype(np.float32), stride, padding, dilation, groups)[0]
            self.near(single, want, 1e-4)
        if "--decompose" in OPTIONS:
            return  # no rule is asked
        with self.assertRaisesRegex(Refused, r"conv_grad_weight: grad_output has shape \[2, 6, 5, 5\], but the op gives \[2, 6, 4, 4\]."):
            run("conv_grad_weight", some(2, 4, 6, 6), [6, 4, 3, 3], some(2, 6, 5, 5))

    def test_conv_transpose_grad_weight(self):
        x, w = some(2, 3, 4, 5, dtype=np.float64), some(3, 2, 3, 2, dtype=np.float64)
        forward = lambda w: run("conv_transpose", x, w, None, 2, 1)[0]
        g = some(*forward(w).shape, dtype=np.float64)
        self.near(run("conv_grad_weight", g, [3, 2, 3, 2], x, 2, 1)[0], slope(forward, w, g))

    def test_pooling(self):
        x = random.permutation(2 * 3 * 8 * 6).astype(np.float64).reshape(2, 3, 8, 6)
        for ceil_mode in (False, True):
            window = ([3, 2], [2, 1], [1, 1])
            result, indices = run("max_pool_with_indices", x, *window, 1, ceil_mode)
            g = some(*result.shape, dtype=np.float64)
            want = slope(lambda x: run("max_pool", x, *window, 1, ceil_mode)[0], x, g)
            for gradient in (g, strided(g)):
                got = run("max_pool_with_indices_backward", gradient, [2, 3, 8, 6], *window, 1, ceil_mode, indices)[0]
                self.near(got, want)
            for include_pad in (False, True):
                want = slope(lambda x: run("avg_pool", x, *window, ceil_mode, include_pad)[0], x, g)
                self.near(run("avg_pool_backward", g, [2, 3, 8, 6], *window, ceil_mode, include_pad)[0], want)
        with self.assertRaisesRegex(Refused, "avg_pool_backward: grad_output has shape .* but the op gives"):
            run("avg_pool_backward", some(1, 1, 3), [1, 1, 8], 2)


class Scatter(OpTest):
    COMBINE = {"sum": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}

    def loop(self, x, axis, index, src, combine):
        result = x.copy()
        for at in np.ndindex(*index.shape):
            to = tuple(index[at] if a == axis else i for a, i in enumerate(at))
            result[to] = combine(result[to], src[at])
        return result

    def test_elements(self):
        x = some(4, 6, 5)
        for axis in range(3):
            shape = [3, 4, 2]
            shape[axis] = 9
            index = random.integers(0, x.shape[axis], shape)
            src = some(*[d + 1 for d in shape])
            self.check(self.loop(x, axis, index, src, lambda _, y: y), "scatter", x, axis, index, src)
            self.check(self.loop(x, axis, index, src, lambda _, y: np.float32(7)), "scatter", x, axis, index, 7)
            self.check(self.loop(x, axis, index, src, np.add), "scatter_add", x, axis, index, src)
            for reduce, combine in self.COMBINE.items():
                self.check(self.loop(x, axis, index, src, combine), "scatter_reduce", x, axis, index, src, reduce)

    def test_reductions_without_what_was_there(self):
        for dtype in (np.float32, np.int64, np.int32, np.uint8):
            x = some(5, 4, dtype=dtype, low=1, high=9)
            index = random.integers(0, 5, (7, 4))
            src = some(7, 4, dtype=dtype, low=1, high=9)
            counts = np.zeros((5, 4), np.int64)
            np.add.at(counts, (index, np.arange(4)), 1)
            starts = {"sum": 0, "prod": 1, "amax": 0, "amin": 127}
            for reduce, combine in self.COMBINE.items():
                self.assertGreater(counts.max(), 1)
                want = self.loop(np.where(counts > 0, starts[reduce], x).astype(dtype), 0, index, src, combine)
                self.check(want, "scatter_reduce", x, 0, index, src, reduce, include_self=False)
            sums = self.loop(np.where(counts > 0, 0, x).astype(dtype), 0, index, src, np.add)
            divide = np.divide if dtype == np.float32 else np.floor_divide
            self.check(divide(sums, np.maximum(counts, 1)).astype(dtype), "scatter_reduce", x, 0, index, src, "mean", include_self=False)
            sums = self.loop(x, 0, index, src, np.add)
            self.check(divide(sums, counts + 1).astype(dtype), "scatter_reduce", x, 0, index, src, "mean")
        truths, index, src = (np.arange(12).reshape(4, 3) % n == 0 for n in (2, 1, 3))
        index = np.array([[0, 3, 1], [0, 0, 1], [2, 3, 1], [0, 1, 1]])
        for reduce, combine in (("sum", np.logical_or), ("prod", np.logical_and), ("amax", np.logical_or), ("amin", np.logical_and)):
            self.check(self.loop(truths, 0, index, src, combine), "scatter_reduce", truths, 0, index, src, reduce)
        self.check(self.loop(truths, 0, index, src, np.logical_or), "scatter_add", truths, 0, index, src)
        self.refused("scatter_reduce: reduce is 'max'; it may be 'sum', 'prod', 'mean', 'amax' or 'amin'.", "scatter_reduce", x, 0, index, src, "max")

    def test_slices(self):
        x = some(6, 5, 4)
        for axis in range(3):
            index = random.integers(0, x.shape[axis], 9)
            source = some(*[9 if a == axis else d for a, d in enumerate(x.shape)])
            moved = np.moveaxis(x.copy(), axis, 0)
            np.add.at(moved, index, 2 * np.moveaxis(source, axis, 0))
            self.check(np.moveaxis(moved, 0, axis), "index_add", x, axis, index, source, alpha=2)
            moved = np.moveaxis(x.copy(), axis, 0)
            for i, at in enumerate(index):
                moved[at] = np.take(source, i, axis)
            self.check(np.moveaxis(moved, 0, axis), "index_copy", x, axis, index, source)

    def test_many_lines(self):
        """Enough lines that each is copied just before its updates; and fewer lines of updates than there are lines."""
        for dtype in (np.float32, np.float64, np.int64, np.int32, np.float16):
            x, source = some(13, 7, 29, dtype=dtype, low=1, high=5), some(13, 7, 40, dtype=dtype, low=1, high=5)
            at = random.integers(0, 29, 40)
            sums = x.copy()
            np.add.at(sums, (slice(None), slice(None), at), source)
            self.check(sums, "index_add", x, 2, at, source, rtol=2e-3 if dtype == np.float16 else 2e-5)
            index = random.integers(0, 29, (13, 7, 40))
            for lines in (13, 11):
                want = self.loop(x, 2, index[:lines], source, np.add)
                self.check(want, "scatter_add", x, 2, index[:lines], source, rtol=5e-3 if dtype == np.float16 else 2e-5)
                want = self.loop(x, 2, index[:lines], source, lambda _, y: y)
                self.check(want, "scatter", x, 2, index[:lines], source)
        index[12, 6, 39] = 29
        with self.assertRaisesRegex(Refused, "scatter_add: index 29 is out of range for an axis of length 29"):
            run("scatter_add", x, 2, index, source)

    def test_short_axes(self):
        """Lines too short for a strip of their own, beside axes longer than a span of updates."""
        for shape, axis in (((300, 3), 0), ((300, 3), 1), ((90, 2, 7), 1), ((4, 70, 5), 1), ((2, 5, 9, 11), 0), ((3, 40, 2), 2)):
            for dtype in (np.float32, np.int64, np.int8, np.float16):
                x, src = some(*shape, dtype=dtype, low=1, high=5), some(*shape, dtype=dtype, low=1, high=5)
                index = random.integers(0, shape[axis], shape)
                close = {"rtol": 5e-3 if dtype == np.float16 else 2e-5}
                self.check(self.loop(x, axis, index, src, np.add), "scatter_add", x, axis, index, src, **close)
                self.check(self.loop(x, axis, index, src, lambda _, y: y), "scatter", x, axis, index, src, **close)
                gaps = Call("slice", np.repeat(src, 2, -1), -1, None, None, 2)
                self.check(self.loop(x, axis, index, src, np.add), "scatter_add", x, axis, index, gaps, **close)
                rows = Call("expand", src[:1], list(shape))
                want = self.loop(x, axis, index, np.broadcast_to(src[:1], shape), np.add)
                self.check(want, "scatter_add", x, axis, index, rows, **close)

    def test_slices_of_other_strides(self):
        for shape in ((50, 3), (50, 40), (50, 300), (50, 17, 5)):
            for dtype in (np.float32, np.float16, np.int8):
                x, index = some(*shape, dtype=dtype, low=1, high=5), random.integers(-50, 50, 30)
                value = some(1, dtype=dtype)
                filled = x.copy()
                filled[index] = value
                self.check(filled, "index_put", x, (index,), value)
                rows, put = some(30, *shape[1:], dtype=dtype), x.copy()
                put[index] = rows
                self.check(put, "index_put", x, (index,), rows)
                self.check(put, "index_put", x, (index,), Call("slice", np.repeat(rows, 2, -1), -1, None, None, 2))

    def test_scalars_and_nothing(self):
        self.close(run("scatter", np.float32(2), 0, np.int64(0), np.float32(5))[0], np.float32(5))
        self.assertEqual(run("index_add", some(3), 0, np.zeros(0, np.int64), np.zeros(0, np.float32))[0].shape, (3,))
        self.refused("scatter: index of shape [2, 2] is longer than src of shape [2, 1].", "scatter", some(3, 3), 0, np.zeros((2, 2), np.int64), some(2, 1))
        self.refused("scatter_add: axis 0 of input has length 0, so every index is out of range.", "scatter_add", some(0, 2), 0, np.zeros((1, 2), np.int64), some(1, 2))
        with self.assertRaisesRegex(Refused, "scatter.*out of range"):
            run("clone", Call("scatter", some(3), 0, np.array([3]), some(1)))


class Random(OpTest):
    def test_numbers_of_a_seed(self):
        for seed, offset in ((0, 0), (-5, 7), (1 << 62, -1)):
            at = (seed % 2 ** 64, offset % 2 ** 64)
            for dtype, name in ((np.float32, "f32"), (np.float64, "f64"), (np.float16, "f16")):
                got = run("philox_uniform", [5, 7], seed, offset, dtype=Dtype(name))[0]
                self.assertEqual(got.dtype, dtype)
                np.testing.assert_array_equal(got.ravel().astype(np.float64), philox.uniform(name, *at, 35))
                got = run("philox_normal", [5, 7], seed, offset, dtype=Dtype(name))[0]
                np.testing.assert_array_equal(got.ravel(), philox.normal(*at, 35).astype(dtype))
        self.refused("philox_uniform: random numbers are f32, f64, f16 or bf16, not i32.", "philox_uniform", [2], 0, 0, dtype=Dtype("i32"))

    def test_the_default_generator_goes_on(self):
        first, second = run("rand", [4, 5])[0], run("rand", [4, 5])[0]
        self.assertTrue(np.all((first >= 0) & (first < 1)) and not np.array_equal(first, second))
        self.assertEqual(len(np.unique(np.concatenate([first.ravel(), second.ravel()]))), 40)
        bell = run("randn", [100, 100])[0]
        self.assertLess(abs(bell.mean()), 0.05)
        self.assertLess(abs(bell.std() - 1), 0.05)
        x = some(3, 4, dtype=np.float64)
        for op in ("rand_like", "randn_like"):
            self.assertEqual((run(op, x)[0].shape, run(op, x)[0].dtype), ((3, 4), np.float64))

    def test_integers_over_a_wide_range(self):
        least, most = -2 ** 63, 2 ** 63 - 1
        for low, high in ((least, most), (-2 ** 62, 2 ** 63 - 1), (0, 3 * 2 ** 61), (-5, 2 ** 41)):
            drawn = run("randint", low, high, [40000])[0]
            self.assertTrue(np.all((drawn >= low) & (drawn < high)))
            thirds = np.histogram((drawn.astype(np.float64) - low) / (high - low), 3, (0, 1))[0]
            np.testing.assert_allclose(thirds, 40000 / 3, atol=600, err_msg=f"{low} {high}")

    def test_the_upper_bound_of_uniform_numbers_is_never_reached(self):
        for dtype in (np.float16, np.float32, np.float64):
            for low, high in ((100, 101), (1, 2), (-3, -2), (0, 1000), (2047, 2049)):
                run("uniform_", Keep(8, np.zeros(200000, dtype)), low, high)
                drawn = run("clone", Ref(8))[0]
                with self.subTest(dtype=dtype, low=low, high=high):
                    self.assertTrue(np.all((drawn >= low) & (drawn < high)))
                    self.assertLess(abs(drawn.astype(np.float64).mean() - (low + high) / 2), 0.5 if dtype == np.float16 and high > 2000 else 0.01 * (high - low))

    def test_halves_are_drawn_as_finely_as_floats(self):
        # 11 random bits would give no number above -log(2^-11).
        drawn = run("exponential", np.zeros(200000, np.float16))[0].astype(np.float64)
        self.assertGreater(drawn.max(), 9)
        self.assertTrue(np.all(np.isfinite(drawn)))
        weights = np.ones(60000, np.float16)
        chosen = run("multinomial", weights, 20000)[0]
        self.assertEqual(len(np.unique(chosen)), 20000)
        self.assertLess(abs(chosen.mean() - 30000) / 30000, 0.03)
        self.assertGreater(run("rrelu", np.full(100000, -1, np.float16), 0.5, 0.5001, True)[0].min(), -0.5005)

    def test_masks(self):
        p = np.broadcast_to(np.array([0, 0.25, 1], np.float32), (4000, 3)).copy()
        mean = run("bernoulli", p)[0].mean(0)
        self.assertEqual((mean[0], mean[2]), (0, 1))
        self.assertLess(abs(mean[1] - 0.25), 0.04)
        self.assertLess(abs(run("bernoulli", p, 0.5)[0].mean() - 0.5), 0.03)
        self.refused("bernoulli: p is -0.5; it must be within 0 and 1.", "bernoulli", p, -0.5)
        self.refused("bernoulli_: p is 1.5; it must be within 0 and 1.", "bernoulli_", some(3), 1.5)
        run("bernoulli_", Keep(9, some(4000, 3, dtype=np.int32)), np.array([0, 0.25, 1], np.float32))
        mean = run("clone", Ref(9))[0].mean(0)
        self.assertEqual((mean[0], mean[2]), (0, 1))
        self.assertLess(abs(mean[1] - 0.25), 0.04)
        x = some(100, 40)
        got = run("dropout", x, 0.25)[0]
        self.assertLess(abs((got == 0).mean() - 0.25), 0.04)
        np.testing.assert_allclose(got[got != 0], (x / np.float32(0.75))[got != 0], rtol=1e-6)
        self.close(run("dropout", x, 0.25, False)[0], x)
        self.close(run("dropout", x, 1.0)[0], np.zeros_like(x))
        self.refused("dropout: p is 1.5; it must be within 0 and 1.", "dropout", x, 1.5)
