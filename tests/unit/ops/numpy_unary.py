"""Unary ops."""

import math

import numpy as np
import scipy.special

from numpy_runner import NAMES, Call, Keep, OpTest, Ref, Refused, run, some


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
        self.check(flags.astype(np.int64), "square", flags)
        self.check(flags, "sign", flags)
        self.refused("neg: Negation, the `-` operator, on a bool tensor is not supported. Use logical_not() to invert a mask.",
                     "neg", flags)
        self.refused("relu: Boolean inputs are not supported for relu.", "relu", flags)

    def test_classification_of_numbers(self):
        x = np.array([[1.5, np.nan, np.inf], [-np.inf, 0, -2]], np.float32)
        self.check(np.isnan(x), "isnan", x)
        self.check(np.isinf(x), "isinf", x)
        self.check(np.isfinite(x), "isfinite", x)
        self.check(np.ones((2, 3), bool), "isfinite", some(2, 3, dtype=np.int64))
        self.check(np.where(np.isnan(x), x, np.maximum(x, 0)), "relu", x)
        self.check(x == 0, "logical_not", x)
        self.check(np.where(np.isnan(x), 0, np.sign(x)).astype(np.float32), "sign", x)  # the result of PyTorch

    def test_the_inverse_of_erf(self):
        inside = np.concatenate([np.linspace(-0.999, 0.999, 401), 10.0 ** -np.arange(1, 31), 1 - 10.0 ** -np.arange(1, 16)])
        for dtype, rtol in ((np.float64, 1e-15), (np.float32, 2e-7), (np.float16, 2 ** -11)):
            y = inside.astype(dtype)
            y = y[np.abs(y) < 1]
            with self.subTest(dtype=dtype):
                self.check(scipy.special.erfinv(y.astype(np.float64)), "erfinv", y, dtype=NAMES[y.dtype], rtol=rtol, atol=1e-7 if dtype == np.float16 else 0)
        ends = np.array([1, -1, 0, -0.0, 1.5, np.nan], np.float32)
        self.check(np.array([np.inf, -np.inf, 0, 0, np.nan, np.nan], np.float32), "erfinv", ends)

    def test_integers_stay_integers(self):
        for dtype in (np.int64, np.int32, np.int8, np.uint8):
            x = np.array([0, 1, 3, 9], dtype) if dtype == np.uint8 else np.array([-7, -1, 0, 3], dtype)
            with self.subTest(dtype=dtype):
                self.check(np.clip(x.astype(np.int64), -1, 2).astype(dtype), "hardtanh", x, -1.5, 2.5)
                self.check(np.clip(x.astype(np.int64), 0, 6).astype(dtype), "relu6", x)
                self.check(np.where(x > 1, x, dtype(5)), "threshold", x, 1.5, 5.5)
                self.check(x, "threshold", x, -1e30, 5)

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
        self.refused("exp_: the result is f32, which cannot be stored in a tensor of i32.", "exp_", some(3, dtype=np.int32))
        self.refused("relu: the result of shape [1, 3] cannot be written into a tensor of shape [3].", "relu", x,
                     out=some(3))
