"""Compares quantise, dequantise and products of quantised operands with NumPy, from the formulas of ep_api.h."""
import itertools
import pathlib
import sys
import unittest

import numpy as np

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

np.seterr(all="ignore")
REFERENCE = None
INTEGERS = {"i4": (-8, 7), "u4": (0, 15), "i8": (-128, 127), "u8": (0, 255), "i16": (-32768, 32767), "u16": (0, 65535),
            "i32": (-2**31, 2**31 - 1)}
FLOATS = {"f8e4m3fn": 448.0, "f8e5m2": 57344.0}
SHAPE = (4, 6, 10)
# (attributes, shape of scale and zero point, how many elements of SHAPE share one of them along each axis)
LAYOUTS = [
    ("", (1, 1, 1), (4, 6, 10)),
    ("{}.axes=2", (1, 6, 1), (4, 1, 10)),
    ("{}.axes=5", (4, 1, 10), (1, 6, 1)),
    ("{}.axes=7 {}.block_axis=2 {}.block=4", (4, 6, 3), (1, 1, 4)),
    ("{}.axes=1 {}.block=3", (2, 1, 1), (3, 6, 10)),
    ("{}.axes=7 {}.block_axis=1 {}.block=4,5", (4, 2, 2), (1, 4, 5)),
]


def spread(values, blocks):
    """`values` of SHAPE's blocks, repeated to SHAPE."""
    for axis, block in enumerate(blocks):
        values = np.take(np.repeat(values, block, axis), range(SHAPE[axis]), axis)
    return values


def attributes(layout, name):
    return layout.replace("{}", name)


def f32(values):
    return np.asarray(values, np.float64).astype(np.float32)


def quantised(x, scale, zero_point, dtype):
    """x and scale are arrays of f32, as the header wants them."""
    quotient = (x / scale).astype(np.float32).astype(np.float64)
    if dtype in FLOATS:
        bounded = np.clip(quotient, -FLOATS[dtype], FLOATS[dtype])
        return driver.from_storage(dtype, driver.to_storage(dtype, np.where(np.isnan(quotient), np.nan, bounded)), x.shape)
    low, high = INTEGERS[dtype]
    return np.where(np.isnan(quotient), low, np.clip(np.rint(quotient) + zero_point, low, high))


def real(q, scale, zero_point):
    return (np.asarray(q, np.longdouble) - zero_point) * np.asarray(scale, np.longdouble)


class Quantisation(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(7)

    def zero_points(self, dtype, shape):
        low, high = INTEGERS[dtype]
        middle = (low + high) // 2
        reach = min(100, (high - low) // 4)
        return self.rng.integers(middle - reach, middle + reach + 1, shape)

    def numbers(self, dtype, shape):
        if dtype in FLOATS:
            return driver.from_storage(dtype, driver.to_storage(dtype, self.rng.uniform(-400, 400, shape)), shape)
        low, high = INTEGERS[dtype]
        return self.rng.integers(low, high + 1, shape)

    def same(self, got, want):
        np.testing.assert_array_equal(np.asarray(got, np.float64), np.asarray(want, np.float64))

    def test_quantise_rounds_to_even_and_saturates(self):
        for dtype, (layout, dims, blocks) in itertools.product(list(INTEGERS) + list(FLOATS), LAYOUTS):
            x = f32(self.rng.uniform(-30, 30, SHAPE))
            x.flat[:6] = [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30]
            scale = f32(self.rng.uniform(0.01, 0.3, dims))
            inputs = [("src", "f32", x), ("dst_scale", "f32", scale)]
            zero_point = np.zeros(dims, np.int64)
            if dtype in INTEGERS:
                zero_point = self.zero_points(dtype, dims)
                inputs.append(("dst_zero_point", dtype, zero_point))
            got = REFERENCE.run("quantise", attributes(layout, "dst"), [("dst", dtype, SHAPE)], inputs)
            self.same(got, quantised(x, spread(scale, blocks), spread(zero_point, blocks), dtype))

    def test_ties_go_to_the_even_number(self):
        x = np.arange(-3, 3.25, 0.25)
        got = REFERENCE.run("quantise", "", [("dst", "i8", x.shape)], [("src", "f32", x), ("dst_scale", "f32", [0.5])])
        self.same(got, np.rint(x / 0.5))
        self.assertEqual(got[np.flatnonzero(x == 0.25)[0]], 0)
        self.assertEqual(got[np.flatnonzero(x == 0.75)[0]], 2)

    def test_odd_scales_follow_from_the_arithmetic(self):
        x = np.array([1.0, -1.0, 0.0, np.nan])
        for scale, want in ((0.0, [127, -128, -128, -128]), (-1.0, [4, 6, 5, -128]), (np.inf, [5, 5, 5, -128]),
                            (np.nan, [-128] * 4)):
            got = REFERENCE.run("quantise", "", [("dst", "i8", (4,))],
                                [("src", "f32", x), ("dst_scale", "f32", [scale]), ("dst_zero_point", "i8", [5])])
            self.same(got, want)

    def test_dequantise_rounds_the_product_to_f32(self):
        for dtype, real_type, (layout, dims, blocks) in itertools.product(list(INTEGERS) + list(FLOATS), ("f32", "f16", "bf16"), LAYOUTS):
            q = self.numbers(dtype, SHAPE)
            scale = f32(self.rng.uniform(0.001, 0.02, dims))
            inputs = [("src", dtype, q), ("src_scale", "f32", scale)]
            zero_point = np.zeros(dims, np.int64)
            if dtype in INTEGERS:
                zero_point = self.zero_points(dtype, dims)
                inputs.append(("src_zero_point", dtype, zero_point))
            got = REFERENCE.run("dequantise", attributes(layout, "src"), [("dst", real_type, SHAPE)], inputs)
            product = real(q, spread(scale, blocks), spread(zero_point, blocks)).astype(np.float32)
            self.same(got, driver.from_storage(real_type, driver.to_storage(real_type, product), SHAPE))

    def test_sums_and_products_of_quantised_numbers(self):
        for dtype, op in itertools.product(("u8", "i8"), ("add", "mul")):
            scales = {role: f32(self.rng.uniform(0.01, 0.2, (1, 1, 1))) for role in ("src", "weight")}
            scales["dst"] = f32(self.rng.uniform(0.05, 0.3 if op == "add" else 3, (1, 1, 1)))
            zeros = {role: self.zero_points(dtype, (1, 1, 1)) for role in scales}
            a, b = self.numbers(dtype, SHAPE), self.numbers(dtype, SHAPE)
            inputs = [("src", dtype, a), ("src_b", dtype, b)]
            for role in scales:
                inputs += [(role + "_scale", "f32", scales[role]), (role + "_zero_point", dtype, zeros[role])]
            got = REFERENCE.run("binary", f"op={op}", [("dst", dtype, SHAPE)], inputs)
            reals = [real(a, scales["src"], zeros["src"]), real(b, scales["weight"], zeros["weight"])]
            exact = (np.add if op == "add" else np.multiply)(*reals)
            want = quantised(exact.astype(np.float32), scales["dst"], zeros["dst"], dtype)
            # If the quotient is a tie except for rounding errors, both numbers are right.
            steps = exact / scales["dst"]
            tie = np.abs(np.abs(steps - np.floor(steps)) - 0.5) < 1e-4
            self.assertLess(tie.mean(), 0.05)
            self.same(got[~tie], want[~tie])
            self.assertLessEqual(np.abs(got.astype(int) - want)[tie].max(initial=0), 1)
            self.assertGreater(len(np.unique(got)), 20)

    def test_a_zero_point_alone_has_the_scale_one(self):
        got = REFERENCE.run("dequantise", "", [("dst", "f32", (3,))],
                            [("src", "u8", [0, 10, 255]), ("src_zero_point", "u8", [10])])
        self.same(got, [-10, 0, 245])

    # --- products ---

    def test_matmul_takes_weights_in_blocks(self):
        for dtype, dims, how in (("i8", (1, 10), "weight.axes=2"), ("u4", (3, 10), "weight.axes=3 weight.block=32"),
                                 ("f8e4m3fn", (3, 3), "weight.axes=3 weight.block=32,4")):
            a = f32(self.rng.uniform(-1, 1, (9, 70)))
            b = self.numbers(dtype, (70, 10))
            scale = f32(self.rng.uniform(0.001, 0.01, dims))
            inputs = [("src", "f32", a), ("src_b", dtype, b), ("weight_scale", "f32", scale)]
            zero_point = np.zeros(dims, np.int64)
            if dtype in INTEGERS:
                zero_point = self.zero_points(dtype, dims)
                inputs.append(("weight_zero_point", dtype, zero_point))
            block = how.split("block=")[1] if "block" in how else "70"
            rows = int(block.split(",")[0])
            columns = int(block.split(",")[1]) if "," in block else 1
            index = np.ix_(np.minimum(np.arange(70) // rows, dims[0] - 1), np.arange(10) // columns)
            want = a.astype(np.float64) @ real(b, scale[index], zero_point[index]).astype(np.float64)
            got = REFERENCE.run("matmul", how, [("dst", "f32", (9, 10))], inputs)
            np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-7)

    def test_matmul_of_numbers_is_written_as_quantise_does(self):
        a, b = self.numbers("u8", (5, 40)), self.numbers("i8", (40, 7))
        sums = (a.astype(np.int64) - 100) @ (b.astype(np.int64) - 3)
        bias = self.rng.integers(-99, 100, (7,)) * 0.5
        result = sums * 0.25 + bias
        got = REFERENCE.run("matmul", "epilogue=relu@4", [("dst", "u8", (5, 7))], [
            ("src", "u8", a), ("src_b", "i8", b), ("bias", "f32", np.broadcast_to(bias, (5, 7))), ("src_scale", "f32", [[0.5]]),
            ("src_zero_point", "u8", [[100]]), ("weight_scale", "f32", [[0.5]]), ("weight_zero_point", "i8", [[3]]),
            ("dst_scale", "f32", [[64.0]]), ("dst_zero_point", "u8", [[17]])])
        self.same(got, np.clip(np.rint(np.maximum(result, 0) / 64) + 17, 0, 255))

    def test_sums_of_integers_wrap_in_i32(self):
        a, b = self.numbers("u8", (5, 40)), self.numbers("i8", (40, 7))
        got = REFERENCE.run("matmul", "", [("dst", "i32", (5, 7))],
                            [("src", "u8", a), ("src_b", "i8", b), ("src_zero_point", "u8", [[7]])])
        self.same(got, (a.astype(np.int64) - 7) @ b)
        huge = np.full((1, 3), 2**31 - 1)
        got = REFERENCE.run("matmul", "", [("dst", "i32", (1, 1))],
                            [("src", "i32", huge), ("src_b", "i32", huge.T), ("src_zero_point", "i32", [[-1]])])
        want = sum(2**31 * (2**31 - 1) for _ in range(3)) % 2**32
        self.same(got, [[want - 2**32 if want >= 2**31 else want]])

    def test_convolution_pads_with_the_real_zero(self):
        x, w = self.numbers("u8", (1, 2, 5, 5)), self.numbers("i8", (3, 2, 3, 3))
        scale = f32(self.rng.uniform(0.001, 0.01, (3, 1, 1, 1)))
        padded = np.pad((x.astype(np.float64) - 128) * 0.25, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
        want = np.einsum("nchwij,ocij->nohw", windows, w * scale.astype(np.float64))
        how = "spatial_rank=2 groups=1 stride=1,1 dilation=1,1 pad_low=1,1 pad_high=1,1 weight.axes=1"
        got = REFERENCE.run("convolution", how, [("dst", "f32", (1, 3, 5, 5))], [
            ("src", "u8", x), ("weight", "i8", w), ("src_scale", "f32", [[[[0.25]]]]), ("src_zero_point", "u8", [[[[128]]]]),
            ("weight_scale", "f32", scale)])
        np.testing.assert_allclose(got, want, rtol=2e-7, atol=1e-6)


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
