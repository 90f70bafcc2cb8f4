"""Quantised numbers: conversions, products and sums, by their formulas in 64 bits."""

import itertools

import numpy as np

from numpy_products import conv_plain
from numpy_runner import NAMES, OPTIONS, Dtype, OpTest, channels_last, run, some, strided

RANGES = {"u8": (0, 255), "i8": (-128, 127), "i16": (-32768, 32767)}
RNG = np.random.default_rng(11)


def numbers(dtype, *shape):
    low, high = RANGES[dtype]
    return RNG.integers(low, high + 1, shape).astype({"u8": np.uint8, "i8": np.int8, "i16": np.int16}[dtype])


def near(dtype, *shape):
    """Zero points near the middle."""
    low, high = RANGES[dtype]
    middle = (low + high + 1) // 2
    return (middle + RNG.integers(-3, 4, shape)).astype(numbers(dtype, 1).dtype)


def spread(value, axis, rank):
    return value if value.ndim == 0 else value.reshape([-1 if i == axis % rank else 1 for i in range(rank)])


def quantised(x, scale, zero, dtype):
    low, high = RANGES[dtype]
    quotient = (x / scale).astype(np.float32)
    return np.where(np.isnan(quotient), low, np.clip(np.rint(quotient) + zero, low, high)).astype(numbers(dtype, 1).dtype)


def scale_of(*shape, at=1.0):
    """Powers of two, so that products are exact and few quotients lie between two steps."""
    return np.exp2(RNG.integers(-3, 0, shape)).astype(np.float32) * np.float32(at)


class Quantised(OpTest):
    def same(self, expected, op, *args, rtol=2e-6, atol=0, **kwargs):
        """As OpTest.check; the op has a keyword dtype. Integers are equal."""
        for way in (lambda a: a, strided, channels_last):
            if way is channels_last and not any(isinstance(a, np.ndarray) and 3 <= a.ndim <= 5 for a in args):
                continue
            given = [way(a) if isinstance(a, np.ndarray) and (way is not channels_last or a.ndim >= 3) else a for a in args]
            (actual,) = run(op, *given, **kwargs)
            self.assertEqual(NAMES[actual.dtype], NAMES[expected.dtype], op)
            self.assertEqual(actual.shape, expected.shape, op)
            if expected.dtype == np.float32:
                np.testing.assert_allclose(actual, expected, rtol, atol)
            else:
                np.testing.assert_array_equal(actual, expected)

    def test_quantize_linear(self):
        x = some(4, 6, 5) * 20
        for dtype, axis in itertools.product(RANGES, (None, 0, 1, -1)):
            shape = () if axis is None else (x.shape[axis],)
            scale, zero = np.float32(RNG.uniform(0.05, 0.3, shape)), near(dtype, *shape)
            want = quantised(x, spread(np.asarray(scale), axis or 0, 3), spread(np.asarray(zero).astype(int), axis or 0, 3), dtype)
            with self.subTest(dtype=dtype, axis=axis):
                self.same(want, "quantize_linear", x, scale, zero, 0 if axis is None else axis, dtype=Dtype(dtype))
        self.same(quantised(x, np.float32(0.1), 0, "u8"), "quantize_linear", x, np.float32(0.1))
        special = np.tile(np.array([np.nan, np.inf, -np.inf, 0], np.float32), 9)
        for dtype, (low, high) in RANGES.items():
            zero = near(dtype)
            want = np.tile([low, high, low, int(zero)], 9).astype(zero.dtype)
            self.same(want, "quantize_linear", special, np.float32(0.5), zero, dtype=Dtype(dtype))

    def test_dequantize_linear(self):
        for dtype, axis in itertools.product(RANGES, (None, 0, 1, -1)):
            q = numbers(dtype, 4, 6, 5)
            shape = () if axis is None else (q.shape[axis],)
            scale, zero = np.float32(RNG.uniform(0.05, 0.3, shape)), near(dtype, *shape)
            want = (q.astype(int) - spread(np.asarray(zero).astype(int), axis or 0, 3)) * spread(np.asarray(scale), axis or 0, 3)
            with self.subTest(dtype=dtype, axis=axis):
                self.same(want.astype(np.float32), "dequantize_linear", q, scale, zero, 0 if axis is None else axis)
        q, scale = numbers("i8", 4, 6), np.float32(RNG.uniform(0.1, 1, (4, 2)))
        self.same(q * np.repeat(scale, 3, 1), "dequantize_linear", q, scale, None, 1, 3)
        i32 = RNG.integers(-9999, 9999, 5).astype(np.int32)
        self.same((i32 * 0.25).astype(np.float32), "dequantize_linear", i32, np.float32(0.25))
        if not OPTIONS:  # taken apart, another op refuses
            self.refused("dequantize_linear: scale has shape [3] but must have shape [6].", "dequantize_linear", q, scale_of(3))

    def test_quantized_matmul(self):
        shapes = (((9, 70), (70, 40)), ((2, 3, 33), (33, 5)), ((3, 17, 8), (3, 8, 33)), ((1, 64), (64, 96)), ((15, 3), (3, 1)))
        for (left, right), a_type, b_type, column in itertools.product(shapes, ("u8", "i8"), ("u8", "i8"), (False, True)):
            a, b, n = numbers(a_type, *left), numbers(b_type, *right), right[-1]
            a_zero, b_zero = near(a_type), near(b_type, *((n,) if column else ()))
            a_scale, b_scale = scale_of(), scale_of(*((n,) if column else ()))
            sums = np.matmul(a.astype(int) - int(a_zero), b.astype(int) - np.asarray(b_zero).astype(int))
            real = sums * (a_scale * b_scale).astype(float)
            bias = np.rint(some(n) * 8).astype(np.float32)
            scale = np.float32(2.0 ** np.ceil(np.log2(np.abs(real).max() / 100)))
            with self.subTest(a=left, b=right, types=(a_type, b_type), column=column):
                self.same(sums.astype(np.int32), "quantized_matmul", a, None, a_zero, b, None, b_zero, dtype=Dtype("i32"))
                self.same((real + bias).astype(np.float32), "quantized_matmul", a, a_scale, a_zero, b, b_scale, b_zero, bias,
                          atol=1e-5)
                self.same(quantised(real + bias, scale, 120, "u8"), "quantized_matmul", a, a_scale, a_zero, b, b_scale,
                           b_zero, bias, scale, np.uint8(120), dtype=Dtype("u8"))
        a, b, bias = numbers("u8", 5, 40), numbers("i8", 40, 33), np.full(33, np.nan, np.float32)
        for dtype, (low, _) in RANGES.items():
            zero = near(dtype)
            self.same(np.full((5, 33), low, zero.dtype), "quantized_matmul", a, scale_of(), None, b, scale_of(), None, bias,
                      scale_of(), zero, dtype=Dtype(dtype))
        a, b = numbers("u8", 3, 4), numbers("i8", 4, 5)
        self.same((a.astype(int) @ b.astype(int)).astype(np.int32), "quantized_matmul", a, None, None, b, None, None, dtype=Dtype("i32"))
        x, blocks = some(3, 4), scale_of(2, 5)
        self.same(x @ (b * np.repeat(blocks, 2, 0)), "quantized_matmul", x, None, None, b, blocks, None, block_size=2,
                  rtol=1e-5, atol=1e-5)
        if not OPTIONS:  # taken apart, another op refuses
            self.refused("quantized_matmul: no scale and no zero point is given.", "quantized_matmul", x, None, None, some(4, 5),
                         None, None)

    def test_quantized_conv(self):
        cases = ((20, 37, (3, 3), 1, 1, 1, 1), (3, 40, (5, 3), 2, 2, 1, 1), (21, 8, (3, 3), 2, 1, 2, 1), (16, 33, (1, 1), 1, 0, 1, 1),
                 (6, 4, (3, 3), 1, 1, 1, 2), (40, 40, (3, 3), 1, 1, 1, 40), (19, 19, (5, 3), 2, 2, 1, 19), (33, 33, (4,), 1, 2, 2, 33),
                 (5, 7, (4,), 1, 2, 1, 1))
        for (c, o, kernel, stride, pad, dilation, groups), a_type in itertools.product(cases, ("u8", "i8")):
            rank = len(kernel)
            a, w = numbers(a_type, 2, c, *(9, 8)[:rank]), numbers("i8", o, c // groups, *kernel)
            a_zero, a_scale, w_scale = near(a_type), scale_of(), scale_of(o)
            real = conv_plain(a.astype(float) - int(a_zero), w.astype(float), None, [stride] * rank, [pad] * rank, [pad] * rank,
                              [dilation] * rank, groups)
            real = real * (a_scale * w_scale.astype(float)).reshape(-1, *[1] * rank)
            bias = np.rint(some(o) * 8).astype(np.float32)
            real += bias.reshape(-1, *[1] * rank)
            scale = np.float32(2.0 ** np.ceil(np.log2(np.abs(real).max() / 100)))
            how = {"stride": stride, "padding": pad, "dilation": dilation, "groups": groups}
            with self.subTest(channels=c, kernel=kernel, groups=groups, a_type=a_type):
                self.same(quantised(real, scale, 3, "i8"), "quantized_conv", a, a_scale, a_zero, w, w_scale, np.zeros(o, np.int8),
                           bias, scale, np.int8(3), dtype=Dtype("i8"), **how)
                self.same(real.astype(np.float32), "quantized_conv", a, a_scale, a_zero, w, w_scale, None, bias, atol=1e-5,
                          **how)

    def test_sums_and_products(self):
        for dtype, (left, right) in itertools.product(("u8", "i8"), (((4, 33), (4, 33)), ((2, 3, 5), (5,)), ((2, 1), (1, 7)))):
            a, b = numbers(dtype, *left), numbers(dtype, *right)
            zeros, scales = [near(dtype) for _ in range(3)], [scale_of(), scale_of(), scale_of(at=8)]
            x, y = ((q.astype(int) - int(zero)) * float(scale) for q, zero, scale in zip((a, b), zeros, scales))
            given = (a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2])
            with self.subTest(dtype=dtype, a=left, b=right):
                for op, value in (("quantized_add", x + y), ("quantized_mul", x * y)):
                    self.same(quantised(value, scales[2], int(zeros[2]), dtype), op, *given, dtype=Dtype(dtype))
