"""Every op against NumPy, SciPy or a plain loop, through the dynamic call.

usage: numpy_test.py OP_RUNNER [--decompose]

Inputs are random, not zero, of odd sizes; half of the cases give them as strided views. A test at the end checks that no
op was left out."""

import itertools
import json
import math
import subprocess
import sys
import unittest

import numpy as np
import scipy.special

RUNNER = sys.argv.pop(1)
OPTIONS = [sys.argv.pop(1)] if sys.argv[1:] == ["--decompose"] else []
DTYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64, "bool": np.bool_, "u8": np.uint8,
          "i8": np.int8, "i16": np.int16, "f16": np.float16}
NAMES = {np.dtype(value): name for name, value in DTYPES.items()}


class Dtype:
    def __init__(self, name):
        self.name = name


class Call:
    """An argument that is the first output of another call."""

    def __init__(self, op, *args, **kwargs):
        self.call = (op, args, kwargs)


class Keep:
    """An argument that is kept under a number; Ref(number) is the same tensor, later in the same call or afterwards."""

    def __init__(self, number, value):
        self.number, self.value = number, value


class Ref:
    def __init__(self, number):
        self.number = number


class Refused(Exception):
    pass


def encode(value):
    if isinstance(value, (np.ndarray, np.generic)):
        value = np.asarray(value)
        return {"tensor": {"dtype": NAMES[value.dtype], "dims": list(value.shape), "data": value.tobytes().hex()}}
    if isinstance(value, Dtype):
        return {"dtype": value.name}
    if isinstance(value, Call):
        return {"call": encode_call(*value.call)}
    if isinstance(value, Keep):
        return {"keep": value.number, "of": encode(value.value)}
    if isinstance(value, Ref):
        return {"ref": value.number}
    if isinstance(value, tuple):
        return {"tensors": [encode(each) for each in value]}
    return value


def encode_call(op, args, kwargs):
    return {"op": op, "args": [encode(each) for each in args], "kwargs": {key: encode(value) for key, value in kwargs.items()}}


class Runner:
    def __init__(self):
        self.process = subprocess.Popen([RUNNER, *OPTIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.used = set()

    def __call__(self, op, *args, **kwargs):
        self.note(op, args, kwargs)
        self.process.stdin.write(json.dumps(encode_call(op, args, kwargs)) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{op}: the runner died")
        answer = json.loads(line)
        if "error" in answer:
            raise Refused(answer["error"])
        return [np.frombuffer(bytes.fromhex(o["data"]), DTYPES[o["dtype"]]).reshape(o["dims"]) for o in answer["outputs"]]

    def note(self, op, args, kwargs):
        self.used.add(op)
        for value in itertools.chain(args, kwargs.values()):
            if isinstance(value, Call):
                self.note(*value.call)


run = Runner()
random = np.random.default_rng(20261121)


def some(*shape, dtype=np.float32, low=-3.0, high=3.0):
    """Random numbers, none of them 0."""
    values = random.uniform(low, high, shape)
    if np.issubdtype(dtype, np.integer):
        values = np.where(np.abs(values) < 1, np.sign(values) + (values == 0), values)
    if dtype == np.bool_:
        return values > (low + high) / 2
    return np.asarray(values).astype(dtype)


def strided(array):
    """The same values as a view that is not row-major."""
    if array.ndim < 2:
        return Call("slice", np.repeat(array, 2), 0, None, None, 2) if array.ndim else array
    order = list(range(array.ndim))[::-1]
    return Call("permute", np.ascontiguousarray(array.transpose(order)), order)


class OpTest(unittest.TestCase):
    def close(self, actual, expected, rtol=2e-5, atol=2e-6):
        expected = np.asarray(expected)
        self.assertEqual(actual.shape, expected.shape)
        if actual.dtype.kind == "f":
            np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=atol)
        else:
            np.testing.assert_array_equal(actual, expected)

    def check(self, expected, op, *args, dtype=None, rtol=2e-5, atol=2e-6, **kwargs):
        """Compares a call, and the same call on strided views of its tensors."""
        expected = expected if isinstance(expected, list) else [expected]
        wanted = [NAMES[np.asarray(e).dtype] for e in expected] if dtype is None else [dtype] * len(expected)
        views = [strided(a) if isinstance(a, np.ndarray) else a for a in args]
        for given in (args, views):
            results = run(op, *given, **kwargs)
            self.assertEqual(len(results), len(expected), op)
            for actual, e, name in zip(results, expected, wanted):
                self.assertEqual(NAMES[actual.dtype], name, op)
                self.close(actual, e, rtol, atol)

    def refused(self, text, op, *args, **kwargs):
        with self.assertRaises(Refused) as raised:
            run(op, *args, **kwargs)
        self.assertEqual(str(raised.exception), text)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


UNARY = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square, "relu": lambda x: np.maximum(x, 0),
    "reciprocal": lambda x: 1 / x, "exp": np.exp, "expm1": np.expm1, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "erf": scipy.special.erf,
    "floor": np.floor, "ceil": np.ceil, "round": np.rint, "trunc": np.trunc, "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x), "gelu": lambda x: x * 0.5 * (1 + scipy.special.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "softplus": softplus, "softsign": lambda x: x / (1 + np.abs(x)), "mish": lambda x: x * np.tanh(softplus(x)),
    "leaky_relu": lambda x: np.where(x >= 0, x, 0.01 * x), "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "hard_sigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1), "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "thresholded_relu": lambda x: np.where(x > 1, x, 0),
    "shrink": lambda x: np.where(x < -0.5, x, np.where(x > 0.5, x, 0)),
}
POSITIVE = {"sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "log": np.log, "log1p": np.log1p, "log2": np.log2,
            "log10": np.log10}
INSIDE = {"asin": np.arcsin, "acos": np.arccos, "atanh": np.arctanh}


class Unary(OpTest):
    def every(self, table, low, high, shape=(3, 5, 7)):
        for op, function in table.items():
            for dtype in (np.float32, np.float64):
                x = some(*shape, dtype=dtype, low=low, high=high)
                with self.subTest(op=op, dtype=dtype):
                    self.check(function(x.astype(np.float64)), op, x, dtype=NAMES[x.dtype])

    def test_on_floats(self):
        self.every(UNARY, -4, 4)
        self.every(POSITIVE, 0.1, 9)
        self.every(INSIDE, -0.9, 0.9)
        self.every({"acosh": np.arccosh}, 1.1, 9)

    def test_parameters(self):
        x = some(4, 6).astype(np.float64)
        self.check(np.where(x >= 0, x, 0.3 * x), "leaky_relu", x, 0.3)
        self.check(np.where(x > 0, x, 2 * np.expm1(x)), "elu", x, 2.0)
        self.check(np.where(x > 0, x, 2 * np.expm1(x / 2)), "celu", x, alpha=2)
        self.check(3 * np.where(x > 0, x, 2 * np.expm1(x)), "selu", x, alpha=2, gamma=3)
        self.check(np.clip(0.3 * x + 0.1, 0, 1), "hard_sigmoid", x, alpha=0.3, beta=0.1)
        self.check(np.where(x > 0.7, x, 0), "thresholded_relu", x, 0.7)
        self.check(np.where(x < -1, x + 0.25, np.where(x > 1, x - 0.25, 0)), "shrink", x, 1.0, 0.25)
        self.check(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), "gelu", x, approximate="tanh")
        self.refused("gelu: approximate is 'fast'; it may be 'none' or 'tanh'.", "gelu", x, approximate="fast")

    def test_on_integers_and_bool(self):
        x = some(5, 3, dtype=np.int32, low=-9, high=9)
        for op in ("neg", "abs", "sign", "square"):
            self.check(UNARY[op](x), op, x)
        self.check(np.maximum(x, 0), "relu", x)
        self.check(np.exp(x.astype(np.float32)), "exp", x, dtype="f32")
        self.check(np.sqrt(np.abs(x).astype(np.float32)), "sqrt", np.abs(x), dtype="f32")
        flags = some(5, 3, dtype=np.bool_)
        self.check(~flags, "logical_not", flags)
        self.check(~flags, "bitwise_not", flags)
        self.check(~x, "bitwise_not", x)
        self.check(flags.astype(np.int64), "abs", flags)

    def test_classification_of_numbers(self):
        x = np.array([[1.5, np.nan, np.inf], [-np.inf, 0, -2]], np.float32)
        self.check(np.isnan(x), "isnan", x)
        self.check(np.isinf(x), "isinf", x)
        self.check(np.isfinite(x), "isfinite", x)
        self.check(np.ones((2, 3), bool), "isfinite", some(2, 3, dtype=np.int64))
        self.check(np.where(np.isnan(x), x, np.maximum(x, 0)), "relu", x)
        self.check(x == 0, "logical_not", x)

    def test_in_place_and_out(self):
        x = some(4, 3)
        for op in ("relu", "exp", "leaky_relu", "gelu"):
            expected = UNARY[op](x.astype(np.float64))
            self.close(run(op + "_", Keep(1, x))[0], expected)
            self.close(run("clone", Ref(1))[0], expected)
            self.close(run(op, x, out=Keep(2, np.full((4, 3), 7, np.float32)))[0], expected)
            self.close(run("clone", Ref(2))[0], expected)
        run("relu_", Call("slice", Keep(3, x), 0, 1, 3))
        self.close(run("clone", Ref(3))[0], np.concatenate([x[:1], np.maximum(x[1:3], 0), x[3:]]))

    def test_writes_that_are_refused(self):
        x = some(1, 3)
        with self.assertRaisesRegex(Refused, "expanded view"):
            run("relu_", Call("expand", x, [4, 3]))
        self.refused("exp: the result is f32, which cannot be stored in a tensor of i32.", "exp_", some(3, dtype=np.int32))
        self.refused("relu: the result of shape [1, 3] cannot be written into a tensor of shape [3].", "relu", x,
                     out=some(3))


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

    def test_promotes_as_pytorch(self):
        f32, f64, i32, u8 = some(3), some(3, dtype=np.float64), some(3, dtype=np.int32), some(3, dtype=np.uint8, low=1, high=9)
        flags = np.array([True, False, True])
        for x, y, dtype in ((f32, f64, "f64"), (f32, i32, "f32"), (i32, u8, "i32"), (i32, flags, "i32"),
                            (u8, some(3, dtype=np.int8), "i16"), (f32, np.float64(2), "f32"), (i32, np.float64(2), "f64"),
                            (i32, 2, "i32"), (i32, 2.5, "f32"), (f32, 2, "f32"), (flags, 2, "i64"), (flags, True, "i64"),
                            (u8, True, "u8"), (np.float16(2) * np.ones(3, np.float16), 0.5, "f16")):
            with self.subTest(x=x, y=y):
                self.check(np.add(x, y, dtype=np.float64), "add", x, y, dtype=dtype)

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

    def test_integer_division_by_zero_is_an_error(self):
        x = some(3, dtype=np.int32)
        for op in ("floor_divide", "remainder", "fmod"):
            with self.assertRaises(Refused):
                run(op, x, np.array([1, 0, 1], np.int32))
        with self.assertRaises(Refused):
            run("floor_divide", np.array([-2**31], np.int32), -1)

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
        self.refused("add: the result of shape [4, 3] cannot be written into a tensor of shape [3].", "add_", y, x)

    def test_prelu(self):
        x, w = some(2, 3, 4), some(3, 1)
        self.check(np.where(x >= 0, x, w * x), "prelu", x, w)

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
        self.close(run("clamp_", x, 0, 1)[0], np.clip(x, 0, 1))
        self.refused("clamp: both min and max are absent.", "clamp", x)

    def test_fma(self):
        x, y, z = some(3, 4), some(4), some(3, 1)
        self.check(x * y + z, "fma", x, y, z)
        self.check(x * 2 + z, "fma", x, 2, z)
        self.check(x * y + np.float32(0.5), "fma", x, y, 0.5)


class Copies(OpTest):
    def test_casts(self):
        x = np.array([[-1.9, 0.0, 1.9], [300.0, np.nan, 7.5]], np.float32)
        self.check(np.array([[-1, 0, 1], [300, 0, 7]], np.int32), "cast", x, Dtype("i32"))
        self.check(x != 0, "cast", x, Dtype("bool"))
        self.check(x.astype(np.float64), "cast", x, Dtype("f64"))
        self.check(x, "cast", x, Dtype("f32"))

    def test_copies_are_row_major(self):
        x = some(3, 4, 5)
        self.check(x, "contiguous", x)
        self.check(x, "clone", x)

    def test_writes(self):
        x, y = some(3, 4), some(4, dtype=np.int32)
        self.close(run("copy_", Keep(1, x), y)[0], np.broadcast_to(y, (3, 4)))
        self.close(run("fill_", Call("slice", Ref(1), 1, 1, 3), 5)[0], np.full((3, 2), 5))
        self.close(run("zero_", Call("select", Ref(1), 0, 0))[0], np.zeros(4))
        expected = np.broadcast_to(y, (3, 4)).astype(np.float32).copy()
        expected[:, 1:3] = 5
        expected[0] = 0
        self.close(run("clone", Ref(1))[0], expected)
        run("copy_", Call("slice", Keep(2, np.arange(6.0)), 0, 1), Call("slice", Ref(2), 0, 0, 5))
        self.close(run("clone", Ref(2))[0], np.array([0, 0, 1, 2, 3, 4.0]))
        self.refused("copy_: shape [4] of src does not broadcast to shape [3] of input.", "copy_", some(3), some(4))


class Factories(OpTest):
    def test_filled(self):
        self.assertEqual(run("empty", [2, 0, 3])[0].shape, (2, 0, 3))
        self.check(np.full((2, 3), 1.5, np.float32), "full", [2, 3], 1.5)
        self.check(np.full((2,), 7, np.int64), "full", [2], 7)
        self.check(np.full((), True), "full", [], True)
        self.check(np.zeros((3, 1), np.float32), "zeros", [3, 1])
        self.assertEqual(run("ones", [4], dtype=Dtype("u8"))[0].tolist(), [1] * 4)
        x = some(2, 3, dtype=np.float64)
        self.check(np.zeros((2, 3)), "zeros_like", x)
        self.check(np.ones((2, 3)), "ones_like", x)
        self.check(np.full((2, 3), 4.0), "full_like", x, 4)
        self.assertEqual(run("empty_like", x)[0].shape, (2, 3))
        self.refused("empty: rank 9 is more than 8.", "empty", [1] * 9)
        with self.assertRaisesRegex(Refused, "zeros|full"):
            run("zeros", [-1])

    def test_ranges(self):
        self.check(np.arange(5), "arange", 5)
        self.check(np.arange(2, 11, 3), "arange", 2, 11, 3)
        self.check(np.arange(5, 0, -2), "arange", 5, 0, -2)
        self.check(np.arange(0, 1, 0.25, dtype=np.float32), "arange", 0, 1, 0.25)
        self.assertEqual(run("arange", 3, 3)[0].shape, (0,))
        self.check(np.eye(3, 4, dtype=np.float32), "eye", 3, 4)
        self.check(np.eye(2, dtype=np.float32), "eye", 2)
        self.refused("arange: step is 0.", "arange", 0, 3, 0)
        self.refused("arange: a step of -1 does not lead from 0 to 3.", "arange", 0, 3, -1)

    def test_one_hot(self):
        x = np.array([[0, 2], [1, 1]])
        self.check(np.eye(3, dtype=np.int64)[x], "one_hot", x, 3)
        self.refused("one_hot: num_classes is 0; it must be at least 1.", "one_hot", x, 0)


REDUCE = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.amax, "amin": np.amin,
          "l1_norm": lambda x, **k: np.sum(np.abs(x), **k), "l2_norm": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
          "sum_square": lambda x, **k: np.sum(x * x, **k), "log_sum": lambda x, **k: np.log(np.sum(x, **k)),
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
        x = some(4, 5)
        self.check(x.var(axis=1, ddof=1), "var", x, 1, rtol=1e-4)
        self.check(np.asarray(x.std(ddof=0)), "std", x, correction=0, rtol=1e-4)
        self.check(x.std(axis=0, ddof=1, keepdims=True), "std", x, 0, keepdim=True, rtol=1e-4)

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
        self.refused("layer_norm: normalized_shape [4] is not the end of shape [3, 4, 5] of x.", "layer_norm", x, [4])
        self.refused("layer_norm: weight has shape [4, 5], but the shape normalised is [5].", "layer_norm", x, [5], w)

    def test_rms_norm(self):
        x, w = some(3, 4, 5), some(5)
        expected = x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-6) * w
        self.check(expected, "rms_norm", x, [5], w, dtype="f32", rtol=1e-4)

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


def conv_plain(x, w, b, stride, low, high, dilation, groups):
    """Cross-correlation by its definition."""
    n, c = x.shape[:2]
    o, per_group, kernel = w.shape[0], w.shape[1], w.shape[2:]
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + list(zip(low, high)))
    out = [(d - dil * (k - 1) - 1) // s + 1 for d, k, s, dil in zip(x.shape[2:], kernel, stride, dilation)]
    y = np.zeros((n, o, *out))
    for position in np.ndindex(*out):
        window = tuple(slice(p * s, p * s + dil * (k - 1) + 1, dil) for p, s, k, dil in zip(position, stride, kernel, dilation))
        for channel in range(o):
            first = channel // (o // groups) * per_group
            part = x[(slice(None), slice(first, first + per_group), *window)]
            y[(slice(None), channel, *position)] = (part * w[channel]).reshape(n, -1).sum(1)
    return y if b is None else y + b.reshape(-1, *[1] * len(kernel))


def transposed_plain(x, w, b, stride, low, high, dilation, groups, extra):
    """Each input element adds its weighted window to the output."""
    n, c = x.shape[:2]
    per_group, kernel = w.shape[1], w.shape[2:]
    full = [(d - 1) * s + dil * (k - 1) + 1 + e for d, s, k, dil, e in zip(x.shape[2:], stride, kernel, dilation, extra)]
    y = np.zeros((n, per_group * groups, *full))
    for position in np.ndindex(*x.shape[2:]):
        window = tuple(slice(p * s, p * s + dil * (k - 1) + 1, dil) for p, s, k, dil in zip(position, stride, kernel, dilation))
        for channel in range(c):
            first = channel // (c // groups) * per_group
            value = x[(slice(None), channel, *position)].astype(np.float64)
            y[(slice(None), slice(first, first + per_group), *window)] += value.reshape(n, 1, *[1] * len(kernel)) * w[channel]
    crop = tuple(slice(l, f - h) for l, h, f in zip(low, high, full))
    y = y[(slice(None), slice(None), *crop)]
    return y if b is None else y + b.reshape(-1, *[1] * len(kernel))


class Products(OpTest):
    def product(self, x, y):
        return np.asarray(np.matmul(x.astype(np.float64), y.astype(np.float64)))

    def test_matmul_shapes(self):
        for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((4,), (4, 5)),
                     ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((1, 4), (4, 1)), ((2, 1, 4), (4, 3))):
            x, y = some(*a), some(*b)
            with self.subTest(a=a, b=b):
                self.check(self.product(x, y), "matmul", x, y, dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(np.zeros((3, 5), np.float32), "matmul", np.zeros((3, 0), np.float32), np.zeros((0, 5), np.float32))
        with self.assertRaisesRegex(Refused, r"matmul: columns of .* \(25\) do not match rows of .* \(256\)"):
            run("matmul", some(2, 25), some(256, 3))

    def test_matmul_epilogue(self):
        x, y, bias, residual = some(2, 3, 4), some(4, 5), some(5), some(2, 3, 5)
        plain = self.product(x, y)
        tolerance = dict(dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(plain + bias, "matmul", x, y, bias=bias, **tolerance)
        self.check(np.maximum(plain + bias + residual, 0), "matmul", x, y, bias=bias, residual=residual, activation="relu",
                   **tolerance)
        self.check(np.clip(plain, -1, 2), "matmul", x, y, activation="clamp", activation_a=-1, activation_b=2, **tolerance)
        self.check(np.where(plain >= 0, plain, 0.3 * plain), "matmul", x, y, activation="leaky_relu", activation_a=0.3,
                   **tolerance)
        vector = some(4)
        self.check(np.maximum(self.product(x, vector) + 0.5, 0), "matmul", x, vector, bias=np.full((1,), 0.5, np.float32),
                   activation="relu", **tolerance)
        self.refused("matmul: activation 'sharp' is none of 'none', 'clamp' and the unary ops on floats.", "matmul", x, y,
                     activation="sharp")
        self.refused("matmul: bias of shape [4] does not broadcast to the result of shape [2, 3, 5].", "matmul", x, y,
                     bias=some(4))

    def test_linear(self):
        x, w, b = some(2, 3, 4), some(5, 4), some(5)
        plain = self.product(x, w.T)
        self.check(plain + b, "linear", x, w, b, dtype="f32", rtol=1e-4, atol=1e-5)
        gelu = UNARY["gelu"](plain + b)
        self.check(gelu, "linear", x, w, b, activation="gelu", dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(self.product(x[0, 0], w.T), "linear", x[0, 0], w, dtype="f32", rtol=1e-4, atol=1e-5)

    def test_convolution(self):
        cases = ((1, (2, 4, 9), (6, 4, 3)), (2, (2, 4, 7, 6), (6, 2, 3, 2)), (3, (1, 2, 5, 4, 6), (2, 2, 2, 3, 1)))
        for spatial, xs, ws in cases:
            groups = xs[1] // ws[1]
            x, w, b = some(*xs), some(*ws), some(ws[0])
            stride, low, high, dilation = [2] * spatial, [1] * spatial, [0] * spatial, [1] * (spatial - 1) + [2]
            expected = conv_plain(x, w, b, stride, low, high, dilation, groups)
            with self.subTest(spatial=spatial):
                self.check(expected, "conv", x, w, b, stride, low + high, dilation, groups, dtype="f32", rtol=1e-4, atol=1e-5)
                bare = conv_plain(x, w, None, [1] * spatial, [1] * spatial, [1] * spatial, [1] * spatial, groups)
                self.check(bare, f"conv{spatial}d", x, w, None, 1, 1, groups=groups, dtype="f32", rtol=1e-4, atol=1e-5)
        x, w = some(2, 6, 5, 5), some(6, 1, 3, 3)
        expected = conv_plain(x, w, None, [1, 1], [1, 1], [1, 1], [1, 1], 6)
        residual = some(2, 6, 5, 5)
        self.check(np.clip(expected + residual, 0, 6), "conv", x, w, padding=1, groups=6, residual=residual,
                   activation="clamp", activation_b=6, dtype="f32", rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(Refused, "conv2d: .* must have rank 4"):
            run("conv2d", some(1, 2, 3), w)
        self.refused("conv: stride has 3 numbers; it needs 1 or 2.", "conv", x, w, stride=[1, 1, 1])

    def test_transposed_convolution(self):
        x, w, b = some(2, 4, 5, 3), some(4, 3, 3, 2), some(6)
        expected = transposed_plain(x, w, b, [2, 3], [1, 0], [1, 0], [1, 2], 2, [1, 0])
        self.check(expected, "conv_transpose", x, w, b, [2, 3], [1, 0], [1, 0], 2, [1, 2], dtype="f32", rtol=1e-4, atol=1e-5)
        x, w = some(1, 2, 6), some(2, 3, 4)
        self.check(transposed_plain(x, w, None, [1], [0], [0], [1], 1, [0]), "conv_transpose", x, w, dtype="f32", rtol=1e-4,
                   atol=1e-5)

    def test_attention(self):
        q, k, v = some(2, 3, 5, 4), some(2, 3, 6, 4), some(2, 3, 6, 4)
        scores = self.product(q, k.swapaxes(-1, -2)) / 2
        tolerance = dict(dtype="f32", rtol=1e-4, atol=1e-5)
        op = "scaled_dot_product_attention"
        self.check(self.product(scipy.special.softmax(scores, -1), v), op, q, k, v, **tolerance)
        mask = some(5, 6)
        self.check(self.product(scipy.special.softmax(scores + mask, -1), v), op, q, k, v, mask, **tolerance)
        causal = np.tril(np.ones((5, 6), bool))
        expected = self.product(scipy.special.softmax(np.where(causal, scores, -np.inf), -1), v)
        self.check(expected, op, q, k, v, is_causal=True, **tolerance)
        self.check(expected, op, q, k, v, causal, **tolerance)
        self.refused(f"{op}: is_causal and attn_mask exclude each other.", op, q, k, v, mask, is_causal=True)


def pool_plain(x, kernel, stride, low, high, dilation, ceil_mode, reduce):
    spatial = len(kernel)
    out = []
    for d, k, s, l, h, dil in zip(x.shape[2:], kernel, stride, low, high, dilation):
        span = d + l + h - dil * (k - 1) - 1
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= d + l:
            count -= 1
        out.append(count)
    y = np.zeros((*x.shape[:2], *out))
    where = np.zeros(y.shape, np.int64)
    for position in np.ndindex(*out):
        for n, c in np.ndindex(*x.shape[:2]):
            values, places, padded = [], [], 0
            for offset in np.ndindex(*kernel):
                at = [p * s - l + o * dil for p, s, l, o, dil in zip(position, stride, low, offset, dilation)]
                if all(0 <= a < d for a, d in zip(at, x.shape[2:])):
                    values.append(x[(n, c, *at)])
                    places.append(int(np.ravel_multi_index(at, x.shape[2:])))
                if all(-l <= a < d + h for a, d, l, h in zip(at, x.shape[2:], low, high)):
                    padded += 1
            y[(n, c, *position)], index = reduce(values, padded)
            where[(n, c, *position)] = places[index]
    return y, where


def maximum_of(values, padded):
    return max(values), int(np.argmax(values))


class Pooling(OpTest):
    def test_max(self):
        for xs, kernel, stride, pad, dilation, ceil in (((2, 3, 9), [3], [2], [1], [1], False),
                                                         ((2, 3, 7, 6), [3, 2], [2, 2], [1, 0], [1, 2], False),
                                                         ((1, 2, 8, 8), [3, 3], [2, 2], [1, 1], [1, 1], True),
                                                         ((1, 2, 4, 5, 6), [2, 2, 2], [2, 1, 2], [0, 1, 0], [1, 1, 1], False)):
            x = some(*xs)
            values, places = pool_plain(x, kernel, stride, pad, pad, dilation, ceil, maximum_of)
            with self.subTest(xs=xs):
                self.check(values, "max_pool", x, kernel, stride, pad, dilation, ceil, dtype="f32")
                results = run("max_pool_with_indices", x, kernel, stride, pad, dilation, ceil)
                self.close(results[0], values)
                self.close(results[1], places)
        x = some(2, 3, 6, 6)
        self.check(pool_plain(x, [2, 2], [2, 2], [0, 0], [0, 0], [1, 1], False, maximum_of)[0], "max_pool2d", x, 2, dtype="f32")

    def test_average(self):
        x = some(2, 3, 7, 6)
        inside = pool_plain(x, [3, 2], [2, 2], [1, 1], [1, 0], [1, 1], False, lambda v, n: (sum(v) / len(v), 0))[0]
        padded = pool_plain(x, [3, 2], [2, 2], [1, 1], [1, 0], [1, 1], False, lambda v, n: (sum(v) / n, 0))[0]
        self.check(inside, "avg_pool", x, [3, 2], 2, [1, 1, 1, 0], False, False, dtype="f32")
        self.check(padded, "avg_pool", x, [3, 2], 2, [1, 1, 1, 0], dtype="f32")
        self.check(pool_plain(x, [2, 2], [2, 2], [0, 0], [0, 0], [1, 1], False, lambda v, n: (sum(v) / n, 0))[0],
                   "avg_pool2d", x, 2, dtype="f32")

    def test_adaptive(self):
        x = some(2, 3, 6, 4)
        self.check(x.mean((2, 3), keepdims=True), "adaptive_avg_pool", x, 1, rtol=1e-4)
        self.check(x.reshape(2, 3, 3, 2, 2, 2).mean((3, 5)), "adaptive_avg_pool", x, [3, 2], rtol=1e-4)
        self.refused("adaptive_avg_pool: output size 4 does not divide spatial axis 0 of length 6.", "adaptive_avg_pool", x, 4)


class Indexing(OpTest):
    def test_slices(self):
        x = some(5, 4, 3)
        for dim, index in ((0, np.array([4, 0, 2])), (1, np.array([[1, -1], [0, 3]], np.int32)), (-1, np.asarray(2))):
            self.check(np.take(x, index, dim), "take", x, index, dim)
        self.check(x[[1, 1]], "index_select", x, 0, np.array([1, 1]))
        self.check(x[[[1, 2]]], "embedding", x, np.array([[1, 2]]))
        self.check(np.zeros((0, 4, 3), np.float32), "take", x, np.zeros(0, np.int64))
        with self.assertRaisesRegex(Refused, "7"):
            run("take", x, np.array([7]))
        self.refused("take: the index must be integers, not f32.", "take", x, some(2))

    def test_elements(self):
        x = some(4, 5)
        index = random.integers(-5, 5, (4, 3))
        self.check(np.take_along_axis(x, index, 1), "gather", x, 1, index)
        index = random.integers(0, 4, (2, 5))
        self.check(np.take_along_axis(x, index, 0), "gather", x, 0, index)
        self.check(x[index[:1], np.arange(5)], "gather", x, 0, index[:1])
        self.check(np.take_along_axis(x, index[:, :1], 0), "take_along_dim", x, index[:, :1], 0)


class Assembling(OpTest):
    def test_concat(self):
        a, b, c = some(2, 3), some(1, 3), some(4, 3)
        self.check(np.concatenate([a, b, c]), "concat", (a, b, c))
        self.check(np.concatenate([a.T, c.T], 1), "concat", (Call("t", a), np.ascontiguousarray(c.T)), -1)
        self.check(np.concatenate([a, b.astype(np.float64)]), "concat", (a, b.astype(np.float64)))
        self.check(a, "concat", (np.zeros((0,), np.float32), a, np.zeros((0, 3), np.float32)))
        many = tuple(some(1, 2) for _ in range(40))
        self.check(np.concatenate(many), "concat", many)
        self.check(np.stack([a, a], 1), "stack", (a, a), 1)
        self.check(np.stack([a, a], -1), "stack", (a, a), -1)
        self.refused("concat: the list of tensors is empty.", "concat", ())
        self.refused("stack: shapes [2, 3] and [1, 3] differ.", "stack", (a, b))
        with self.assertRaisesRegex(Refused, r"concat: .*\[2, 3\].*\[2, 4\]"):
            run("concat", (a, some(2, 4)))

    def test_split(self):
        x = some(7, 4)
        self.check([x[:3], x[3:6], x[6:]], "split", x, 3)
        self.check([x[:, :1], x[:, 1:]], "split", x, [1, 3], 1)
        self.check([x[:5], x[5:]], "split_copy", x, [5, 2])
        self.check([x[:, :1], x[:, 1:2], x[:, 2:]], "split_copy", x, [1, 1, 2], 1)
        self.check([x[:3], x[3:6], x[6:]], "chunk", x, 3)
        with self.assertRaisesRegex(Refused, "split"):
            run("split", x, [1, 2], 1)
        self.refused("split: parts of 0 elements cannot be; they need 1 at least.", "split", x, 0)

    def test_pad(self):
        x = some(3, 4, 5)
        self.check(np.pad(x, [(0, 0), (0, 0), (1, 2)], constant_values=7), "pad", x, [1, 2], value=7)
        self.check(np.pad(x, [(0, 0), (2, 0), (1, 2)]), "pad", x, [1, 2, 2, 0])
        self.check(np.pad(x, [(0, 0), (2, 1), (1, 2)], "reflect"), "pad", x, [1, 2, 2, 1], "reflect")
        self.check(np.pad(x, [(1, 1), (0, 0), (0, 3)], "edge"), "pad", x, [0, 3, 0, 0, 1, 1], "replicate")
        self.check(np.pad(x[:, :, 1:], [(0, 0), (0, 0), (0, 2)]), "pad", x, [-1, 2])
        self.refused("pad: mode is 'wrap'; it may be 'constant', 'reflect' or 'replicate'.", "pad", x, [1, 1], "wrap")

    def test_tile_and_flip(self):
        x = some(2, 3)
        self.check(np.tile(x, (2, 1, 3)), "tile", x, [2, 1, 3])
        self.check(np.tile(x, (2,)), "tile", x, [2])
        self.check(np.flip(x, (0, 1)), "flip", x, [0, 1])


class Views(OpTest):
    def test_shapes(self):
        x = some(2, 3, 4)
        self.check(x.reshape(6, 4), "reshape", x, [6, 4])
        self.check(x.reshape(4, -1), "reshape", x, [4, -1])
        self.check(x.reshape(6, 4), "flatten", x, 0, 1)
        self.check(x.reshape(-1), "flatten", x)
        self.check(x.reshape(2, 3, 2, 2), "unflatten", x, -1, [2, -1])
        self.close(run("view", x, [3, 8])[0], x.reshape(3, 8))
        self.close(run("view", Call("slice", x, 2, 0, None, 2), [6, 2])[0], x[:, :, ::2].reshape(6, 2))
        with self.assertRaisesRegex(Refused, "view: .* without a copy"):
            run("view", Call("transpose", x, 0, 2), [24])
        with self.assertRaisesRegex(Refused, r"reshape: .*24.*"):
            run("reshape", x, [5, 5])

    def test_axes(self):
        x = some(2, 3, 4)
        self.check(x.transpose(2, 0, 1), "permute", x, [2, 0, 1])
        self.check(x.swapaxes(0, 2), "transpose", x, 0, -1)
        self.check(x[0].T, "t", x[0])
        self.check(np.moveaxis(x, 0, 2), "movedim", x, 0, 2)
        self.check(np.moveaxis(x, [0, 1], [-1, 0]), "movedim", x, [0, 1], [-1, 0])
        self.refused("t: a tensor of rank 3 is no matrix; use transpose.", "t", x)
        y = x[:, :1]
        self.check(y.squeeze(), "squeeze", y)
        self.check(y.squeeze(1), "squeeze", y, 1)
        self.check(y, "squeeze", y, 0)
        self.check(x[:, None], "unsqueeze", x, 1)
        self.check(x[..., None], "unsqueeze", x, -1)
        self.check(x[None, ..., None], "unsqueeze", x, [0, 4])

    def test_repeats(self):
        x = some(3, 1)
        self.check(np.broadcast_to(x, (2, 3, 4)), "expand", x, [2, -1, 4])
        self.check(np.broadcast_to(x, (3, 4)), "broadcast_to", x, [3, 4])
        self.check(np.broadcast_to(x, (3, 5)), "expand_as", x, some(3, 5))
        with self.assertRaisesRegex(Refused, "expand"):
            run("expand", x, [4, 4])

    def test_parts(self):
        x = some(7, 5)
        for start, end, step in ((1, 6, 2), (None, -2, 1), (-3, None, 1), (100, None, 1), (5, 1, -2), (None, None, -1), (0, 3, -1)):
            with self.subTest(start=start, end=end, step=step):
                self.check(x[start:end:step], "slice", x, 0, start, end, step)
        self.check(x[:, 1:4], "narrow", x, 1, 1, 3)
        self.check(x[-2], "select", x, 0, -2)
        self.refused("narrow: 3 elements from 3 are not all inside axis 1 of length 5.", "narrow", x, 1, 3, 3)
        with self.assertRaisesRegex(Refused, "select: .*5"):
            run("select", x, 1, 5)
        with self.assertRaisesRegex(Refused, "slice: .*0"):
            run("slice", x, 0, 0, 3, 0)

    def test_share_their_storage(self):
        x = some(4, 3)
        run("zero_", Call("transpose", Call("narrow", Keep(1, x), 0, 1, 2), 0, 1))
        expected = x.copy()
        expected[1:3] = 0
        self.close(run("clone", Ref(1))[0], expected)


class ZeroOpsLeft(unittest.TestCase):
    def test_every_op_was_called(self):
        listed = subprocess.run([RUNNER, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
        names = {line.split("\t")[0] for line in listed}
        variants = {name + "_" for name in names} & names
        self.assertEqual(names - variants - run.used, set(), "no test calls these ops")


if __name__ == "__main__":
    unittest.main()
