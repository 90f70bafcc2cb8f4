"""Binary and ternary ops."""

import itertools

import numpy as np

from numpy_runner import Call, Keep, OpTest, Ref, Refused, run, some


BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "floor_divide": np.floor_divide, "remainder": np.mod, "fmod": np.fmod,
}
COMPARE = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
LOGIC = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


class Binary(OpTest):
    shapes = (((3, 5), (3, 5)), ((2, 1, 4), (3, 1)), ((), (4, 2)), ((1,), (5,)), ((7, 3), ()))

    def test_broadcasts(self):
        for (op, function), (a, b) in itertools.product(BINARY.items(), self.shapes):
            for dtype in (np.float32, np.int64):
                x, y = some(*a, dtype=dtype, high=9, low=-9), some(*b, dtype=dtype, high=4, low=1)
                with self.subTest(op=op, a=a, b=b, dtype=dtype):
                    self.check(np.asarray(function(x, y)), op, x, y)

    def test_short_rows_of_one_element_each(self):
        """Enough of them for several threads; of one operand, of the other, and of the first of three."""
        for dtype, (rows, n) in itertools.product((np.float32, np.float64), ((3, 700), (40, 33), (257, 5))):
            for x, y in ((some(rows, 6, 9, 1, dtype=dtype), some(6, 1, n, dtype=dtype)),
                         (some(rows, 6, 1, n, dtype=dtype), some(rows, 1, 9, 1, dtype=dtype))):
                for op, function in (("mul", np.multiply), ("sub", np.subtract), ("div", np.divide), ("maximum", np.maximum)):
                    self.check(function(x, y), op, x, y)
                    self.check(function(y, x), op, y, x)
                self.check(np.less(x, y), "lt", x, y)
                self.check(np.less(y, x), "lt", y, x)
            x, y, z = some(rows * 9, 1, dtype=dtype), some(n, dtype=dtype), some(rows * 9, n, dtype=dtype)
            self.check(x * y + z, "fma", x, y, z)
            self.check(y * x + z, "fma", y, x, z)
            self.check(z * y + x, "fma", z, y, x)

    def test_compares(self):
        for op, function in COMPARE.items():
            x, y = some(4, 5, dtype=np.int32), some(5, dtype=np.int32)
            self.check(function(x, y), op, x, y)
            self.check(function(x, 2), op, x, 2)
            self.check(function(2, x), op, 2, x)
            self.check(function(x, 0.5), op, x, 0.5)
        self.check(np.array([False, True]), "ne", np.array([False, True]), np.array([False, False]))

    def test_logic_and_bits(self):
        x, y = np.array([0, 1, 2, 0], np.int32), np.array([0, 0, 4, 5], np.int32)
        for op, function in LOGIC.items():
            self.check(function(x, y), op, x, y)
            self.check(function(x > 1, y > 4), op, x > 1, y > 4)
        for op, function in BITS.items():
            self.check(function(x, y), op, x, y)
            self.check(function(x > 1, y > 4), op, x > 1, y > 4)
        self.check(x << 3, "bitwise_left_shift", x, 3)
        self.check(np.array([-8, 7]) >> np.array([1, 2]), "bitwise_right_shift", np.array([-8, 7]), np.array([1, 2]))

    def test_numbers_on_either_side(self):
        x = some(3, 4)
        for op in ("add", "sub", "mul", "maximum", "minimum"):
            self.check(BINARY[op](x, np.float32(1.5)), op, x, 1.5)
            self.check(BINARY[op](np.float32(1.5), x), op, 1.5, x)

    def test_bools_compute_as_pytorch(self):
        x, y = np.array([True, True, False, False]), np.array([True, False, True, False])
        for op, expected in (("add", x | y), ("mul", x & y), ("maximum", x | y), ("minimum", x & y)):
            self.check(expected, op, x, y)
            self.check(expected[2:], op, x[2:], y[2:])
            self.check(expected.reshape(2, 2)[0], op, np.asarray(True), y[:2])
            self.close(run(op + "_", x.copy(), y)[0], expected)
            self.close(run(op, x, y, out=np.zeros(4, bool))[0], expected)
        self.check(x, "mul", x, True)
        self.check(np.ones(4, bool), "add", True, x)
        self.check(x | y, "add", x, y, alpha=2)
        self.check(x, "add", x, y, alpha=0)
        self.check(x + np.int64(1), "add", x, 1)
        self.check(x.astype(np.int64) + 6, "add", x, 2, alpha=3)
        self.check(np.divide(x, 1, dtype=np.float32), "div", x, True)
        self.refused("add: alpha must not be a floating-point number where the arguments are bool.", "add", x, y, alpha=0.5)
        self.refused("sub: alpha must not be a floating-point number where the arguments are i64.", "sub",
                     np.array([1]), np.array([2]), alpha=0.5)

    def test_bools_are_not_subtracted(self):
        flags, numbers = np.array([True, False]), np.array([1.5, 2], np.float32)
        both = "sub: Subtraction, the `-` operator, with two bool tensors is not supported. Use logical_xor()."
        one = "sub: Subtraction, the `-` operator, with a bool tensor is not supported. Use logical_not() to invert a mask."
        for x, y, text in ((flags, flags, both), (flags, True, both), (True, flags, both), (numbers, flags, one),
                           (flags, numbers, one), (1, flags, one), (flags, 1, one), (numbers, True, one), (True, numbers, one)):
            self.refused(text, "sub", x, y)
            self.refused(text, "sub", x, y, alpha=2)

    def test_promotes_as_pytorch(self):
        f32, f64, i32, u8 = some(3), some(3, dtype=np.float64), some(3, dtype=np.int32), some(3, dtype=np.uint8, low=1, high=9)
        flags = np.array([True, False, True])
        for x, y, dtype in ((f32, f64, "f64"), (f32, i32, "f32"), (i32, u8, "i32"), (i32, flags, "i32"),
                            (u8, some(3, dtype=np.int8), "i16"), (f32, np.float64(2), "f32"), (i32, np.float64(2), "f64"),
                            (i32, 2, "i32"), (i32, 2.5, "f32"), (f32, 2, "f32"), (flags, 2, "i64"),
                            (u8, True, "u8"), (np.float16(2) * np.ones(3, np.float16), 0.5, "f16")):
            with self.subTest(x=x, y=y):
                self.check(np.add(x, y, dtype=np.float64), "add", x, y, dtype=dtype)

    def test_halves_are_computed_as_f32(self):
        x, y = some(3, 37, dtype=np.float16), some(3, 37, dtype=np.float16)
        x[0, :6], y[0, :6] = [np.inf, -np.inf, np.nan, 6e-8, 65504, 0], [np.inf, np.inf, 1, 2, 65504, 0]
        with np.errstate(all="ignore"):
            for op, function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("div", np.divide)):
                want = function(x.astype(np.float32), y.astype(np.float32)).astype(np.float16)
                self.check(want, op, x, y, rtol=0, atol=0)
                self.check(want[:, 1:], op, x[:, 1:].copy(), y[:, 1:].copy(), rtol=0, atol=0)
                self.check(function(x.astype(np.float32), y[1].astype(np.float32)).astype(np.float16), op, x, y[1], rtol=0, atol=0)

    def test_alpha(self):
        x, y = some(3, 4), some(4)
        self.check(x + 2 * y, "add", x, y, alpha=2)
        self.check(x - np.float32(0.5) * y, "sub", x, y, alpha=0.5)
        self.check(x + 6, "add", x, 3, alpha=2)
        self.check(3 - 2 * y, "sub", 3, y, alpha=2)

    def test_divides(self):
        x, y = some(4, 3, dtype=np.int32, low=-9, high=9), some(3, dtype=np.int32, low=1, high=4)
        self.check((x / y).astype(np.float32), "div", x, y)
        self.check((x / 2).astype(np.float32), "div", x, 2)
        self.check((2 / x).astype(np.float32), "div", 2, x)
        self.check(np.trunc(x / y).astype(np.int32), "div", x, y, rounding_mode="trunc")
        self.check(x // y, "div", x, y, rounding_mode="floor")
        f, g = some(4, 3), some(4, 3)
        self.check(f / g, "div", f, g)
        self.check(np.trunc(f / g), "div", f, g, rounding_mode="trunc")
        self.check(np.floor_divide(f, g), "div", f, g, rounding_mode="floor")
        self.refused("div: rounding_mode is 'up'; it may be None, 'trunc' or 'floor'.", "div", f, g, rounding_mode="up")

    def test_power(self):
        x, y = some(4, 3, low=0.5), some(3)
        self.check(np.power(x, y), "pow", x, y, rtol=1e-4)
        self.check(x * x, "pow", x, 2)
        self.check(np.sqrt(x), "pow", x, 0.5)
        self.check(np.power(x, np.float32(3)), "pow", x, 3, rtol=1e-4)
        self.check(np.power(2, y), "pow", 2, y, rtol=1e-4)
        i = some(4, dtype=np.int64, low=-5, high=5)
        self.check(i**3, "pow", i, 3)
        self.check(i**2, "pow", i, 2)
        self.check((i * 1.0) ** -1, "pow", i, -1.0, dtype="f32")
        self.refused("pow: integers to the negative integer power -2 have no integer result; cast to f32.", "pow", i, -2)

    def test_power_of_doubles_beyond_their_range(self):
        x = np.array([4.9e-324, 1e-310, 0.5, 0.999999, 1.0000001, 2, 1e300, 1.7e308])[:, None]
        y = np.array([1e30, -1e30, 1e18, -1e18, 1e99, -1e99, 1e5, -1074, 1024, 1e-300])
        with np.errstate(all="ignore"):
            self.check(np.power(x, y), "pow", x, y, rtol=1e-14)

    def test_integer_division_by_zero_is_an_error(self):
        x = some(3, dtype=np.int32)
        for op in ("floor_divide", "remainder", "fmod"):
            with self.assertRaises(Refused):
                run(op, x, np.array([1, 0, 1], np.int32))

    def test_the_least_integer_by_minus_one_wraps(self):
        for dtype in (np.int8, np.int16, np.int32, np.int64):
            least = np.iinfo(dtype).min
            x = np.array([[least, least + 1, 7, 0, -1]] * 40, dtype)
            y = np.full(x.shape, -1, dtype)
            for op, want in (("floor_divide", -x), ("remainder", x * 0), ("fmod", x * 0)):
                with self.subTest(op=op, dtype=dtype.__name__):
                    self.check(want, op, x, y)
                    self.check(want, op, x, -1)
                    self.check(want[:1, :1], op, int(least), y[:1, :1])

    def test_in_place_and_out(self):
        x, y = some(4, 3), some(3)
        self.close(run("add_", Keep(1, x), y)[0], x + y)
        self.close(run("mul_", Ref(1), 2)[0], (x + y) * 2)
        self.close(run("sub_", Ref(1), Ref(1))[0], np.zeros((4, 3)))
        self.close(run("add", x, y, out=Keep(2, np.full((4, 3), 9, np.float64)))[0], x + y)
        self.close(run("lt", x, y, out=np.zeros((4, 3), bool))[0], x < y)
        base = some(6)
        run("add_", Call("slice", Keep(3, base), 0, 1, 6), Call("slice", Ref(3), 0, 0, 5))
        self.close(run("clone", Ref(3))[0], np.concatenate([base[:1], base[1:] + base[:-1]]))
        self.refused("add_: the result of shape [4, 3] cannot be written into a tensor of shape [3].", "add_", y, x)

    def test_prelu(self):
        x, w = some(2, 3, 4), some(3, 1)
        self.check(np.where(x >= 0, x, w * x), "prelu", x, w)
        # A list has a number for each channel, though the last axis is as long.
        for shape in ((2, 3), (2, 3, 3), (2, 3, 4, 3), (2, 3, 2, 2, 3)):
            x, slopes = some(*shape), some(3)
            each = slopes.reshape((3,) + (1,) * (len(shape) - 2))
            self.check(np.where(x >= 0, x, each * x), "prelu", x, slopes)
            self.check(np.where(x >= 0, x, slopes[0] * x), "prelu", x, slopes[:1].copy())
        self.check(np.float32(-0.5), "prelu", np.array(-2, np.float32), np.array([0.25], np.float32))
        self.refused("prelu: weight has 4 elements, but input of shape [2, 3, 4] has 3 channels.", "prelu", some(2, 3, 4), some(4))

    def test_shapes_that_do_not_broadcast(self):
        with self.assertRaisesRegex(Refused, r"add: .*\[2, 3\].*\[4\]"):
            run("add", some(2, 3), some(4))


class Ternary(OpTest):
    def test_where(self):
        c, x, y = some(3, 4, dtype=np.bool_), some(4), some(3, 1)
        self.check(np.where(c, x, y), "where", c, x, y)
        self.check(np.where(c, x, np.float32(0.5)), "where", c, x, 0.5)
        self.check(np.where(c, np.float32(0.5), y), "where", c, 0.5, y)
        self.check(np.where(c, 1, 2), "where", c, 1, 2)
        self.check(np.where(c, x, y.astype(np.float64)), "where", c, x, y.astype(np.float64))
        self.refused("where: the condition must be bool, not f32.", "where", x, x, y)

    def test_masked_fill(self):
        x, mask = some(3, 4), some(4, dtype=np.bool_)
        self.check(np.where(mask, np.float32(-7), x), "masked_fill", x, mask, -7)
        flags = some(3, 4, dtype=np.bool_)
        self.check(np.where(mask, False, flags), "masked_fill", flags, mask, 0)
        self.check(np.where(mask, True, flags), "masked_fill", flags, mask, 2)
        whole = some(3, 4, dtype=np.int32)
        self.check(np.where(mask, np.int32(1), whole), "masked_fill", whole, mask, 1.5)

    def test_clamp(self):
        x = some(5, 4)
        self.check(np.clip(x, -1, 1), "clamp", x, -1, 1)
        self.check(np.maximum(x, -1), "clamp", x, -1)
        self.check(np.minimum(x, 1), "clamp", x, max=1)
        low, high = some(4, low=-2, high=-1), some(5, 1, low=0, high=1)
        self.check(np.clip(x, low, high), "clamp", x, low, high)
        i = some(5, dtype=np.int32, low=-9, high=9)
        self.check(np.clip(i, -2, 3), "clamp", i, -2, 3)
        self.check(np.clip(i, -2.5, 3), "clamp", i, -2.5, 3, dtype="f32")
        u, s = np.array([0, 1, 255], np.uint8), np.array([-128, 0, 127], np.int8)  # bounds outside the dtype
        self.check(np.minimum(u, 1), "clamp", u, -1, 1)
        self.check(u, "clamp", u, -1, 300)
        self.check(u, "clamp_min", u, -1)
        self.check(u, "clamp_max", u, 256)
        self.check(s, "clamp", s, -200, 200)
        self.close(run("clamp_", x, 0, 1)[0], np.clip(x, 0, 1))
        self.refused("clamp: both min and max are absent.", "clamp", x)

    def test_fma(self):
        x, y, z = some(3, 4), some(4), some(3, 1)
        self.check(x * y + z, "fma", x, y, z)
        self.check(x * 2 + z, "fma", x, 2, z)
        self.check(x * y + np.float32(0.5), "fma", x, y, 0.5)
