"""Compares every kind of primitives.def but the scalar ones with NumPy and SciPy, written in another way."""
import itertools
import pathlib
import sys
import unittest

import numpy as np
from scipy import special

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

np.seterr(all="ignore")
REFERENCE = None
ALL_TYPES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "f8e4m3fn", "f8e5m2",
             *driver.SMALL_INTEGERS, *sorted(set(driver.NARROW_TYPES) - {"bf16", "f8e4m3fn", "f8e5m2"})]
MOVED = ["f32", "f16", "i8", "i64", "bool", "u16", "f8e5m2", "i4"]


def text(values):
    return ",".join(str(int(v)) for v in values)


def integer_range(dtype):
    if dtype in driver.SMALL_INTEGERS:
        bits, signed = driver.SMALL_INTEGERS[dtype]
        return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    info = np.iinfo(driver.NUMPY_TYPES[dtype])
    return int(info.min), int(info.max)


def some(dtype, rng, shape):
    if driver.is_float(dtype):
        return rng.uniform(-4, 4, shape)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low, high = integer_range(dtype)
    return rng.integers(max(low, -100), min(high, 100) + 1, shape)


def stored(dtype, values):
    return driver.from_storage(dtype, driver.to_storage(dtype, values), np.shape(values))


class Kinds(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(11)

    def same(self, got, want, dtype="f64", rtol=1e-12):
        want = np.asarray(want)
        if driver.is_float(dtype) and dtype != "f64":
            want = stored(dtype, want)
        np.testing.assert_allclose(np.asarray(got, np.float64), np.asarray(want, np.float64), rtol=rtol, atol=1e-13)

    # --- fill and copy ---

    def test_fill_writes_the_scalar_everywhere(self):
        for dtype in ALL_TYPES:
            value = 1.5 if driver.is_float(dtype) else 1
            got = REFERENCE.run("fill", "", [("dst", dtype, (3, 5))], [], [(dtype, value)])
            self.assertTrue(np.all(np.asarray(got, np.float64) == stored(dtype, np.array([value]))), dtype)

    def cast(self, values, from_type, to_type):
        """The result of a copy, in Python's exact numbers."""
        result = []
        for value in values.tolist():
            if driver.is_float(to_type):
                result.append(float(value))  # rounded by the storage below; float(int) rounds to nearest even, once
                continue
            if to_type == "bool":
                result.append(value != 0)
                continue
            low, high = integer_range(to_type)
            if driver.is_float(from_type):
                whole = 0 if value != value else low if value < low else high if value > high else int(value)
                result.append(min(max(whole, low), high))
            else:
                count = high - low + 1
                result.append((int(value) - low) % count + low)
        return result

    def test_copy_casts_between_all_pairs_of_types(self):
        for from_type, to_type in itertools.product(ALL_TYPES, ALL_TYPES):
            with self.subTest(cast=f"{from_type} to {to_type}"):
                if driver.is_float(from_type):
                    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 126.6, -129.2, 255.9, 300.0, 448.0, 463.0,
                                  465.0, 65519.0, 65520.0, -7e4, 2.0 ** 31, -2.0 ** 31, 2.0 ** 63, 1e30, 1e-7, 2.0 ** -10, 3 * 2.0 ** -10,
                                  2.0 ** -24, 2.0 ** -25, 3 * 2.0 ** -25, 1 + 2.0 ** -8, 1 + 3 * 2.0 ** -8, 1 + 2.0 ** -11])
                    x = np.concatenate([x, self.rng.uniform(-300, 300, 200)])
                elif from_type == "bool":
                    x = np.array([False, True, True])
                else:
                    low, high = integer_range(from_type)
                    x = np.array([low, low + 1, -1 if low < 0 else 5, 0, 1, 2, 3, 7, high - 1, high], dtype=object)
                    if high > 2 ** 31:
                        large = [v for v in (2 ** 53 + 1, 2 ** 24 + 1, 2 ** 24 + 3, 65505, 257) if v <= high]
                        x = np.concatenate([x, np.array(large, dtype=object)])
                    x = x.astype(driver.NUMPY_TYPES.get(from_type, np.int64))
                got = REFERENCE.run("copy", "", [("dst", to_type, x.shape)], [("src", from_type, x)])
                source = stored(from_type, x)
                want = np.array(self.cast(source, from_type, to_type), dtype=np.float64 if driver.is_float(to_type) else object)
                if driver.is_float(to_type):
                    want = stored(to_type, want)
                    self.assertTrue(np.array_equal(got, want, equal_nan=True), f"{source[got != want]} {got[got != want]} {want[got != want]}")
                    numbers = ~np.isnan(want)
                    self.assertTrue(np.array_equal(np.signbit(got)[numbers], np.signbit(want)[numbers]))
                else:
                    self.assertEqual([int(v) for v in got], [int(v) for v in want])

    # --- along axes ---

    def test_reduce_takes_any_axes(self):
        x = self.rng.uniform(-2, 2, (3, 4, 5))
        for mask in range(1, 8):
            axes = tuple(a for a in range(3) if mask >> a & 1)
            shape = tuple(1 if a in axes else d for a, d in enumerate(x.shape))
            got = REFERENCE.run("reduce", f"op=sum axes={mask}", [("dst", "f64", shape)], [("src", "f64", x)])
            self.same(got, np.sum(x, axis=axes, keepdims=True))

    def test_arg_reduce_finds_first_or_last_and_counts_nan(self):
        plain = self.rng.integers(-3, 4, (4, 7, 5)).astype(np.float64)
        with_nan = plain.copy()
        with_nan[1, 3, 2] = with_nan[1, 5, 2] = np.nan
        for x, op, axis in itertools.product((plain, with_nan), ("max", "min"), range(3)):
            shape = tuple(1 if a == axis else d for a, d in enumerate(x.shape))
            numpy_arg = np.argmax if op == "max" else np.argmin
            got = REFERENCE.run("arg_reduce", f"op={op} axis={axis}", [("dst", "i64", shape)], [("src", "f64", x)])
            self.same(got, np.expand_dims(numpy_arg(x, axis), axis))
            got = REFERENCE.run("arg_reduce", f"op={op} axis={axis} last=1", [("dst", "i64", shape)], [("src", "f64", x)])
            self.same(got, np.expand_dims(x.shape[axis] - 1 - numpy_arg(np.flip(x, axis), axis), axis))

    def test_softmax_agrees_with_scipy(self):
        x = self.rng.uniform(-30, 30, (3, 6, 4))
        x[0, 2, 1] = -np.inf
        for axis in range(3):
            for log, function in ((0, special.softmax), (1, special.log_softmax)):
                got = REFERENCE.run("softmax", f"axis={axis} log={log}", [("dst", "f64", x.shape)], [("src", "f64", x)])
                self.same(got, function(x, axis))

    def test_softmax_of_only_minus_infinity_is_nan(self):
        got = REFERENCE.run("softmax", "axis=0", [("dst", "f32", (3,))], [("src", "f32", np.full(3, -np.inf))])
        self.assertTrue(np.all(np.isnan(got)))

    # --- products ---

    def test_matmul_agrees_with_numpy(self):
        a, b, bias = self.rng.uniform(-1, 1, (2, 3, 4, 5)), self.rng.uniform(-1, 1, (2, 3, 5, 6)), self.rng.uniform(-1, 1, (2, 3, 4, 6))
        operands = [("src", "f64", a), ("src_b", "f64", b), ("bias", "f64", bias)]
        got = REFERENCE.run("matmul", "", [("dst", "f64", bias.shape)], operands)
        self.same(got, a @ b + bias)

    def test_integer_matmul_is_exact_and_widens(self):
        a, b = self.rng.integers(-128, 128, (9, 50)), self.rng.integers(-128, 128, (50, 7))
        got = REFERENCE.run("matmul", "", [("dst", "i32", (9, 7))], [("src", "i8", a), ("src_b", "i8", b)])
        self.same(got, a @ b)

    def test_matmul_applies_its_epilogues_in_order(self):
        a, b, residual = self.rng.uniform(-1, 1, (4, 5)), self.rng.uniform(-1, 1, (5, 6)), self.rng.uniform(-1, 1, (4, 6))
        got = REFERENCE.run("matmul", "epilogue=add(epilogue_0) epilogue=relu epilogue=mul(scalar)@5", [("dst", "f64", (4, 6))],
                            [("src", "f64", a), ("src_b", "f64", b), ("epilogue_0", "f64", residual)], [("f64", 3)] * 6)
        self.same(got, np.maximum(a @ b + residual, 0) * 3)

    def scattered(self, x, w, bias, groups, stride, dilation, low, shape):
        """Transposed convolution in another way: every input element adds its weighted kernel to the output."""
        rank = x.ndim - 2
        per_in, per_out = x.shape[1] // groups, w.shape[1]
        out = np.zeros((x.shape[0], per_out * groups) + tuple(shape))
        for n, c in np.ndindex(x.shape[:2]):
            for at in np.ndindex(x.shape[2:]):
                for o in range(per_out):
                    for tap in np.ndindex(w.shape[2:]):
                        place = tuple(at[i] * stride[i] - low[i] + tap[i] * dilation[i] for i in range(rank))
                        if all(0 <= p < s for p, s in zip(place, shape)):
                            out[(n, c // per_in * per_out + o) + place] += x[(n, c) + at] * w[(c, o) + tap]
        return out if bias is None else out + bias.reshape((1, -1) + (1,) * rank)

    def correlated(self, x, w, bias, groups, stride, dilation, low, high):
        rank = x.ndim - 2
        padded = np.pad(x, [(0, 0), (0, 0)] + list(zip(low, high)))
        extent = [dilation[i] * (w.shape[i + 2] - 1) + 1 for i in range(rank)]
        views = np.lib.stride_tricks.sliding_window_view(padded, extent, axis=tuple(range(2, 2 + rank)))
        views = views[(slice(None), slice(None)) + tuple(slice(None, None, s) for s in stride) + tuple(slice(None, None, d) for d in dilation)]
        parts = []
        for part, weight in zip(np.split(views, groups, 1), np.split(w, groups, 0)):
            taps = [part.ndim - rank + i for i in range(rank)]
            parts.append(np.moveaxis(np.tensordot(part, weight, axes=([1] + taps, [1] + list(range(2, 2 + rank)))), -1, 1))
        out = np.concatenate(parts, 1)
        return out if bias is None else out + bias.reshape((1, -1) + (1,) * rank)

    CONVOLUTIONS = [
        # src, weight, groups, stride, dilation, pad_low, pad_high
        ((2, 3, 9), (4, 3, 4), 1, (2,), (1,), (1,), (2,)),
        ((1, 4, 7, 8), (6, 2, 3, 2), 2, (1, 2), (2, 1), (2, 0), (1, 1)),
        ((2, 3, 5, 5), (3, 1, 3, 3), 3, (1, 1), (1, 1), (1, 1), (1, 1)),
        ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 1, (1, 2, 1), (1, 1, 2), (0, 1, 1), (1, 0, 1)),
    ]

    def test_convolution_agrees_with_sliding_windows(self):
        for src, weight, groups, stride, dilation, low, high in self.CONVOLUTIONS:
            for with_bias in (False, True):
                x, w = self.rng.uniform(-1, 1, src), self.rng.uniform(-1, 1, weight)
                bias = self.rng.uniform(-1, 1, weight[0]) if with_bias else None
                want = self.correlated(x, w, bias, groups, stride, dilation, low, high)
                attributes = (f"spatial_rank={len(stride)} groups={groups} stride={text(stride)} dilation={text(dilation)} "
                              f"pad_low={text(low)} pad_high={text(high)}")
                operands = [("src", "f64", x), ("weight", "f64", w)] + ([("bias", "f64", bias)] if with_bias else [])
                self.same(REFERENCE.run("convolution", attributes, [("dst", "f64", want.shape)], operands), want)

    def test_transposed_convolution_agrees_with_scattering(self):
        for groups, stride, dilation, low, high, extra in ((1, (2, 1), (1, 2), (1, 0), (0, 1), (1, 0)), (2, (3, 2), (1, 1), (0, 1), (0, 1), (0, 1))):
            x, w = self.rng.uniform(-1, 1, (2, 4, 4, 5)), self.rng.uniform(-1, 1, (4, 3, 3, 2))
            bias = self.rng.uniform(-1, 1, 3 * groups)
            shape = [(x.shape[i + 2] - 1) * stride[i] - low[i] - high[i] + dilation[i] * (w.shape[i + 2] - 1) + 1 + extra[i] for i in range(2)]
            want = self.scattered(x, w, bias, groups, stride, dilation, low, shape)
            attributes = (f"spatial_rank=2 transposed=1 groups={groups} stride={text(stride)} dilation={text(dilation)} "
                          f"pad_low={text(low)} pad_high={text(high)}")
            operands = [("src", "f64", x), ("weight", "f64", w), ("bias", "f64", bias)]
            self.same(REFERENCE.run("convolution", attributes, [("dst", "f64", want.shape)], operands), want)

    # --- windows ---

    def test_pooling_agrees_with_sliding_windows(self):
        x = self.rng.integers(-9, 9, (2, 3, 9, 8)).astype(np.float64)
        x[0, 1, 4, 4] = np.nan
        kernel, stride, dilation, low, high = (3, 2), (2, 1), (1, 2), (1, 1), (1, 0)
        extent = [dilation[i] * (kernel[i] - 1) + 1 for i in range(2)]

        def windows(values, fill):
            padded = np.pad(values, [(0, 0), (0, 0), (low[0], high[0]), (low[1], high[1])], constant_values=fill)
            views = np.lib.stride_tricks.sliding_window_view(padded, extent, axis=(2, 3))
            return views[:, :, ::stride[0], ::stride[1], ::dilation[0], ::dilation[1]]

        inside = windows(np.ones_like(x), 0).sum((-1, -2))
        greatest = windows(x, -np.inf)
        total = windows(x, 0).sum((-1, -2))
        shape = total.shape
        attributes = (f"spatial_rank=2 kernel={text(kernel)} stride={text(stride)} dilation={text(dilation)} pad_low={text(low)} "
                      f"pad_high={text(high)}")
        places = windows(np.broadcast_to(np.arange(72.0).reshape(9, 8), x.shape), -1)
        flat, flat_places = greatest.reshape(shape + (-1,)), places.reshape(shape + (-1,))
        first = np.take_along_axis(flat_places, np.argmax(flat, -1)[..., None], -1)[..., 0]
        got, indices = REFERENCE.run("pooling", "op=max " + attributes, [("dst", "f64", shape), ("dst_indices", "i64", shape)], [("src", "f64", x)])
        self.same(got, np.max(greatest, (-1, -2)))
        self.same(indices, first)
        got = REFERENCE.run("pooling", "op=average " + attributes, [("dst", "f64", shape)], [("src", "f64", x)])
        self.same(got, total / inside)
        got = REFERENCE.run("pooling", "op=average_include_pad " + attributes, [("dst", "f64", shape)], [("src", "f64", x)])
        self.same(got, total / np.prod(kernel))
        for p in (1, 2, 3.5):
            got = REFERENCE.run("pooling", f"op=lp p={p} " + attributes, [("dst", "f64", shape)], [("src", "f64", x)])
            want = (np.abs(windows(x, 0)) ** p).sum((-1, -2)) ** (1 / p)
            np.testing.assert_allclose(got, want, rtol=1e-12)

    def test_pooling_windows_of_ceil_mode_stick_out(self):
        x = np.arange(1.0, 6.0).reshape(1, 1, 5)
        attributes = "spatial_rank=1 kernel=2 stride=2 dilation=1"
        for op, want in (("max", [2, 4, 5]), ("average", [1.5, 3.5, 5]), ("average_include_pad", [1.5, 3.5, 5])):
            self.same(REFERENCE.run("pooling", f"op={op} {attributes}", [("dst", "f64", (1, 1, 3))], [("src", "f64", x)]), [[want]])

    # --- norms ---

    def test_layer_norm_agrees_with_numpy(self):
        x = self.rng.uniform(-3, 5, (3, 4, 5))
        scale, shift = self.rng.uniform(-1, 1, (4, 5)), self.rng.uniform(-1, 1, (4, 5))
        mean, variance = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
        got, got_mean, got_inv_std = REFERENCE.run(
            "layer_norm", "axis=1", [("dst", "f64", x.shape), ("mean", "f64", (3, 1, 1)), ("inv_std", "f64", (3, 1, 1))],
            [("src", "f64", x), ("scale", "f64", scale), ("shift", "f64", shift)], [("f64", 0.001)])
        self.same(got, (x - mean) / np.sqrt(variance + 0.001) * scale + shift)
        self.same(got_mean, mean)
        self.same(got_inv_std, 1 / np.sqrt(variance + 0.001))

    def test_batch_norm_agrees_with_numpy(self):
        x = self.rng.uniform(-3, 5, (2, 4, 3))
        scale, shift, mean = (self.rng.uniform(-1, 1, 4) for _ in range(3))
        variance = self.rng.uniform(0.1, 2, 4)
        got = REFERENCE.run("batch_norm", "axis=1", [("dst", "f64", x.shape)],
                            [("src", "f64", x), ("scale", "f64", scale), ("shift", "f64", shift), ("mean", "f64", mean),
                             ("variance", "f64", variance)], [("f64", 0.001)])
        column = [v.reshape(1, 4, 1) for v in (scale, shift, mean, variance)]
        self.same(got, (x - column[2]) / np.sqrt(column[3] + 0.001) * column[0] + column[1])

    # --- elements that move ---

    def test_gather_agrees_with_numpy(self):
        for dtype, index_type in itertools.product(MOVED, ("i32", "i64")):
            x = some(dtype, self.rng, (4, 6, 5))
            source = stored(dtype, x)
            for axis in range(3):
                taken = self.rng.integers(-x.shape[axis], x.shape[axis], (2, 3))
                want = np.take(source, taken, axis)
                got = REFERENCE.run("gather", f"axis={axis} mode=slices", [("dst", dtype, want.shape)], [("src", dtype, x), ("indices", index_type, taken)])
                self.same(got, want)
                shape = [3, 4, 2]
                shape[axis] = 7
                taken = self.rng.integers(-x.shape[axis], x.shape[axis], shape)
                part = source[tuple(slice(None) if a == axis else slice(shape[a]) for a in range(3))]
                got = REFERENCE.run("gather", f"axis={axis} mode=elements", [("dst", dtype, shape)], [("src", dtype, x), ("indices", index_type, taken)])
                self.same(got, np.take_along_axis(part, taken, axis))

    def test_gather_faults_on_an_index_out_of_range(self):
        x = np.arange(1.0, 9.0)
        for bad in (8, -9):
            with self.assertRaises(driver.Fault) as caught:
                REFERENCE.run("gather", "axis=0 mode=slices", [("dst", "f32", (3,))], [("src", "f32", x), ("indices", "i64", [2, bad, -1])])
            fault = caught.exception
            self.assertEqual((fault.code, fault.operand, fault.value, fault.limit), (1, 2, bad, 8))
            self.assertEqual(fault.outputs[0].tolist(), [3, 0, 8])

    def test_concat_and_split_agree_with_numpy(self):
        for dtype, axis in itertools.product(MOVED, range(3)):
            x = some(dtype, self.rng, (4, 6, 8))
            source = stored(dtype, x)
            cuts = [1, 3]
            parts = np.split(source, cuts, axis)
            operands = [(f"src_{i}", dtype, part) for i, part in enumerate(np.split(x, cuts, axis))]
            self.same(REFERENCE.run("concat", f"axis={axis}", [("dst", dtype, x.shape)], operands), source)
            outputs = [(f"dst_{i}", dtype, part.shape) for i, part in enumerate(parts)]
            for got, want in zip(REFERENCE.run("split", f"axis={axis}", outputs, [("src", dtype, x)]), parts):
                self.same(got, want)

    def test_pad_agrees_with_numpy(self):
        for dtype, (mode, numpy_mode) in itertools.product(MOVED, (("constant", "constant"), ("reflect", "reflect"), ("edge", "edge"))):
            x = some(dtype, self.rng, (3, 5, 4))
            low, high = (2, 0, 3), (1, 4, 0)
            keywords = {"constant_values": 1} if mode == "constant" else {}
            want = np.pad(stored(dtype, x), list(zip(low, high)), numpy_mode, **keywords)
            got = REFERENCE.run("pad", f"mode={mode} low={text(low)} high={text(high)}", [("dst", dtype, want.shape)],
                                [("src", dtype, x)], [(dtype, 1)] if mode == "constant" else [])
            self.same(got, want)


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
