"""Compares every scalar function of scalar_ops.def, on every dtype of its domain, with NumPy and SciPy in double precision
(or exact integers), over random and special values: NaN, infinities, -0, denormals, integer extremes."""
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
A, B = 0.25, 0.5


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(x, 0)


def integer_pow(x, y):
    """Python's pow, wrapped to the type; a negative exponent gives 0, 1 or -1."""
    result = np.empty_like(x)
    modulus = 1 << (8 * x.dtype.itemsize)
    for i, (base, exponent) in enumerate(zip(x.tolist(), y.tolist())):
        if exponent < 0:
            value = {1: 1, -1: 1 if exponent % 2 == 0 else -1}.get(base, 0)
        else:
            value = pow(base, exponent, modulus)
        signed = np.issubdtype(x.dtype, np.signedinteger)
        value %= modulus
        result[i] = value - modulus if signed and value >= modulus // 2 else value
    return result


def shift(left):
    def apply(x, y):
        bits = 8 * x.dtype.itemsize
        out = []
        for value, count in zip(x.tolist(), y.tolist()):
            if 0 <= count < bits:
                out.append(value << count if left else value >> count)
            else:
                out.append(-1 if not left and value < 0 else 0)
        modulus = 1 << bits
        signed = np.issubdtype(x.dtype, np.signedinteger)
        wrapped = [v % modulus for v in out]
        return np.array([v - modulus if signed and v >= modulus // 2 else v for v in wrapped], x.dtype)
    return apply


def is_float(x):
    return np.issubdtype(x.dtype, np.floating)


def whole(function):
    return lambda x: function(x) if is_float(x) else x


def integer_divide(x, y):
    """Toward zero; the driver leaves out what faults."""
    if is_float(x):
        return x / y
    return np.array([int(abs(a) // abs(b)) * (1 if (a < 0) == (b < 0) else -1) for a, b in zip(x.tolist(), y.tolist())], x.dtype)


UNARY = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": lambda x: x * x, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "relu": lambda x: np.maximum(x, 0), "reciprocal": lambda x: 1 / x,
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "log2": np.log2, "log10": np.log10,
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "erf": special.erf, "floor": whole(np.floor), "ceil": whole(np.ceil), "round": whole(np.rint), "trunc": whole(np.trunc),
    "sigmoid": sigmoid, "silu": lambda x: x * sigmoid(x), "gelu": lambda x: x * 0.5 * (1 + special.erf(x / np.sqrt(2))),
    "gelu_tanh": lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
    "softplus": softplus, "softsign": lambda x: x / (1 + np.abs(x)), "mish": lambda x: x * np.tanh(softplus(x)),
    "leaky_relu": lambda x: np.where(x >= 0, x, A * x), "elu": lambda x: np.where(x > 0, x, A * np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, A * np.expm1(x / A)),
    "selu": lambda x: B * np.where(x > 0, x, A * np.expm1(x)),
    "hard_sigmoid": lambda x: np.clip(A * x + B, 0, 1), "hard_swish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "thresholded_relu": lambda x: np.where(np.isnan(x) | (x > A), x, 0),
    "shrink": None,  # its parameters are integers for integers; it has a test of its own
    "logical_not": np.logical_not, "bitwise_not": np.invert,
    "isnan": np.isnan, "isinf": np.isinf, "exp2": np.exp2, "erfc": special.erfc, "frac": lambda x: x - np.trunc(x),
    "lgamma": special.gammaln, "digamma": special.psi,
    "log_sigmoid": lambda x: -softplus(-x), "signbit": lambda x: np.signbit(x) & ~np.isnan(x), "sinc": np.sinc,
    "tanhshrink": lambda x: x - np.tanh(x), "threshold": lambda x: np.where(np.isnan(x) | (x > A), x, B),
    "nan_to_num": lambda x: np.where(np.isnan(x), A, np.clip(x, -B, B)),
    "huber": lambda x: np.where(np.abs(x) <= A, x * x / 2, A * (np.abs(x) - A / 2)),
}

BINARY = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": integer_divide,
    "floor_div": lambda x, y: np.floor_divide(x, y), "mod": lambda x, y: np.mod(x, y), "fmod": lambda x, y: np.fmod(x, y),
    "pow": lambda x, y: np.power(x, y) if is_float(x) else integer_pow(x, y),
    "maximum": np.maximum, "minimum": np.minimum, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
    "logical_xor": np.logical_xor, "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor, "shift_left": shift(True), "shift_right": shift(False),
    "prelu": lambda x, y: np.where(x >= 0, x, y * x), "atan2": np.arctan2, "hypot": np.hypot, "logaddexp": np.logaddexp,
    "logaddexp2": np.logaddexp2, "xlogy": special.xlogy, "copysign": lambda x, y: np.where(np.isnan(y), np.abs(x), np.copysign(x, y)),
    "gcd": np.gcd, "lcm": np.lcm, "heaviside": lambda x, y: np.where(x == 0, y, x > 0), "fmax": np.fmax, "fmin": np.fmin,
}

TERNARY = {
    "where": np.where, "clamp": lambda x, y, z: np.minimum(np.maximum(x, y), z), "fma": lambda x, y, z: x * y + z,
    "lerp": lambda x, y, z: np.where(np.abs(z) < 0.5, x + z * (y - x), y - (y - x) * (1 - z)),
}

REDUCE = {
    "sum": lambda x: np.sum(x, dtype=x.dtype), "prod": lambda x: np.prod(x, dtype=x.dtype), "max": np.max, "min": np.min,
    "mean": np.mean, "any": np.any, "all": np.all, "l1_norm": lambda x: np.sum(np.abs(x), dtype=x.dtype),
    "l2_norm": lambda x: np.sqrt(np.sum(x * x)), "sum_square": lambda x: np.sum(x * x, dtype=x.dtype),
    "log_sum": lambda x: np.log(np.sum(x)), "nansum": np.nansum,
}

# NumPy's own rounding of these is not the nearest double, or the row is put together otherwise: relative bound in double.
LOOSE = 1e-11
# Where the parts cancel or overflow on the way, the row's result is what its expression gives, not the true value: not
# compared beyond these magnitudes.
REACH = {"gelu": 3, "gelu_tanh": 2, "sigmoid": 700, "silu": 700, "mish": 30, "softplus": 30, "sin": 1e5, "cos": 1e5, "tan": 1e5}
STEP = {"f16": 2.0 ** -10, "f32": 2.0 ** -23, "f64": 0} | {name: kind.step for name, kind in driver.NARROW_TYPES.items()}


def range_of(dtype):
    """The least integer of one of SMALL_INTEGERS, and the one after the greatest."""
    bits, signed = driver.SMALL_INTEGERS[dtype]
    return (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)


def special_values(dtype):
    if driver.is_float(dtype):
        if dtype in driver.NARROW_TYPES:
            kind = driver.NARROW_TYPES[dtype]
            least, greatest = kind.values[kind.values > 0][0], kind.greatest
        else:
            least = {"f16": 2.0 ** -24, "f32": 2.0 ** -149, "f64": 5e-324}[dtype]
            greatest = float(np.finfo(driver.NUMPY_TYPES[dtype]).max)
        return np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.5, 3.5, 100.0, -100.0,
                         least, -least, greatest, -greatest])
    if dtype == "bool":
        return np.array([False, True])
    if dtype in driver.SMALL_INTEGERS:
        return np.arange(*range_of(dtype))
    info = np.iinfo(driver.NUMPY_TYPES[dtype])
    values = {info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7}
    if info.min < 0:
        values |= {-1, -2, -7}
    return np.array(sorted(values), driver.NUMPY_TYPES[dtype])


def random_values(dtype, rng, count, reach=8.0):
    if driver.is_float(dtype):
        return rng.uniform(-reach, reach, count)
    if dtype == "bool":
        return rng.integers(0, 2, count).astype(bool)
    if dtype in driver.SMALL_INTEGERS:
        return rng.integers(*range_of(dtype), count)
    info = np.iinfo(driver.NUMPY_TYPES[dtype])
    return rng.integers(max(info.min, -100), min(info.max, 100), count, dtype=driver.NUMPY_TYPES[dtype])


def rounded(dtype, values):
    """`values` after storage in `dtype`."""
    return driver.from_storage(dtype, driver.to_storage(dtype, values), np.shape(values))


def compute_array(dtype, values):
    """In the type the row is computed in: double, or the integer itself (the small ones in 64 bits, wrapped when stored)."""
    values = rounded(dtype, values)
    return values.astype(np.float64) if driver.is_float(dtype) else values


class ScalarRows(unittest.TestCase):
    def check(self, name, dtype, result, got, want, inputs):
        got, want = np.asarray(got), np.asarray(want)
        within = np.ones(got.shape, bool)
        if name in REACH:
            within = (np.abs(inputs[0]) <= REACH[name]) | ~np.isfinite(inputs[0])
        if result == "bool" or not driver.is_float(dtype):
            if dtype in driver.SMALL_INTEGERS and result != "bool":
                want = rounded(dtype, want.astype(np.int64))
            bad = within & (got != want.astype(got.dtype))
        else:
            near = rounded(dtype, want)
            bound = LOOSE if dtype == "f64" else 0
            same = (got == near) | (np.isnan(got) & np.isnan(near))
            close = np.abs(got - near) <= bound * np.abs(near) + (1e-300 if dtype == "f64" else 0)
            # Rounding a double that differs in its last place may cross to the neighbour, once in a long while.
            rare = np.abs(got - near) <= STEP[dtype] * np.abs(near) + 1e-45
            crossed = np.count_nonzero(within & ~(same | close))
            self.assertLess(crossed, 3, f"{name} on {dtype}: {crossed} elements are not the nearest")
            bad = within & ~(same | close | rare)
        if np.any(bad):
            at = np.flatnonzero(bad)[:5]
            lines = [f"{[np.ravel(x)[i] for x in inputs]} gave {np.ravel(got)[i]}, not {np.ravel(want)[i]}" for i in at]
            self.fail(f"{name} on {dtype}, {np.count_nonzero(bad)} of {bad.size}: " + "; ".join(lines))

    def rows(self, arity, table):
        rows = [row for row in REFERENCE.rows() if row[0] == arity]
        self.assertEqual(sorted(row[1] for row in rows), sorted(table), "every row needs its counterpart here, and no more")
        rng = np.random.default_rng(7)
        for _, name, result, parameters, *dtypes in rows:
            for dtype in dtypes:
                if table[name] is not None:
                    yield name, dtype, result, int(parameters), rng

    def test_unary_rows_agree_with_numpy(self):
        for name, dtype, result, parameters, rng in self.rows("unary", UNARY):
            with self.subTest(row=name, dtype=dtype):
                x = np.concatenate([special_values(dtype), random_values(dtype, rng, 400)])
                out = "bool" if result == "bool" else dtype
                scalars = [(dtype, value) for value in (A, B)[:parameters]]
                got = REFERENCE.run("unary", f"op={name}", [("dst", out, x.shape)], [("src", dtype, x)], scalars)
                values = compute_array(dtype, x)
                self.check(name, dtype, result, got, UNARY[name](values), [values])

    def test_shrink_agrees_with_its_definition(self):
        rng = np.random.default_rng(8)
        for dtype in ("f64", "f32", "i32", "i64"):
            a, b = (1.5, 0.5) if driver.is_float(dtype) else (20, 3)
            x = np.concatenate([special_values(dtype), random_values(dtype, rng, 400, 4.0)])
            got = REFERENCE.run("unary", "op=shrink", [("dst", dtype, x.shape)], [("src", dtype, x)], [(dtype, a), (dtype, b)])
            values = compute_array(dtype, x)
            typed = values.dtype.type
            want = np.where(values < typed(-a), values + typed(b), np.where(values > typed(a), values - typed(b),
                            np.where(np.isnan(values), values, typed(0))))
            self.check("shrink", dtype, "same", got, want, [values])

    def pairs(self, dtype, rng):
        values = special_values(dtype)
        x, y = (grid.ravel() for grid in np.meshgrid(values, values))
        return (np.concatenate([x, random_values(dtype, rng, 400)]), np.concatenate([y, random_values(dtype, rng, 400)]))

    def test_binary_rows_agree_with_numpy(self):
        for name, dtype, result, _, rng in self.rows("binary", BINARY):
            with self.subTest(row=name, dtype=dtype):
                x, y = self.pairs(dtype, rng)
                if name in ("div", "floor_div", "mod", "fmod") and not driver.is_float(dtype):
                    faults = (y == 0) | ((y == -1) & (x == x.min())) if dtype[0] == "i" else y == 0
                    x, y = x[~faults], y[~faults]
                left, right = compute_array(dtype, x), compute_array(dtype, y)
                if name == "floor_div" and driver.is_float(dtype):
                    # The quotient of numbers far apart is not a whole double: NumPy corrects it in yet another way.
                    keep = ~(np.abs(left / right) > 2.0 ** 52) | (right == 0)
                    x, y, left, right = x[keep], y[keep], left[keep], right[keep]
                out = "bool" if result == "bool" else dtype
                got = REFERENCE.run("binary", f"op={name}", [("dst", out, x.shape)], [("src", dtype, x), ("src_b", dtype, y)])
                self.check(name, dtype, result, got, BINARY[name](left, right), [left, right])

    def test_ternary_rows_agree_with_numpy(self):
        for name, dtype, result, _, rng in self.rows("ternary", TERNARY):
            with self.subTest(row=name, dtype=dtype):
                x, y = self.pairs(dtype, rng)
                z = random_values(dtype, rng, x.size)
                first = "bool" if name == "where" else dtype
                if name == "where":
                    x = rng.integers(0, 2, y.size).astype(bool)
                got = REFERENCE.run("ternary", f"op={name}", [("dst", dtype, y.shape)],
                                    [("src", first, x), ("src_b", dtype, y), ("src_c", dtype, z)])
                arrays = [compute_array(first, x), compute_array(dtype, y), compute_array(dtype, z)]
                self.check(name, dtype, result, got, TERNARY[name](*arrays), arrays)

    def test_reduce_rows_agree_with_numpy(self):
        for name, dtype, result, _, rng in self.rows("reduce", REDUCE):
            with self.subTest(row=name, dtype=dtype):
                rows = [random_values(dtype, rng, 23, 1.5) for _ in range(9)]
                wide = special_values(dtype)
                rows += [np.resize(np.roll(wide, i), 23) for i in range(3)]
                x = np.stack(rows)
                got = REFERENCE.run("reduce", f"op={name} axes=2", [("dst", dtype, (len(rows), 1))], [("src", dtype, x)])
                values = compute_array(dtype, x)
                want = np.array([REDUCE[name](row) for row in values]).reshape(-1, 1)
                if name in ("sum", "l1_norm", "sum_square", "l2_norm", "log_sum", "mean", "prod") and driver.is_float(dtype):
                    # Added in another order, sums that overflow or cancel end elsewhere: special rows test max and min.
                    got, want, values = got[:9], want[:9], values[:9]
                    self.assertTrue(np.allclose(got, rounded(dtype, want), rtol=1e-9 if dtype in ("f64", "f32") else 0.25,
                                                atol=1e-6 if dtype != "f64" else 1e-12, equal_nan=True), f"{name} {dtype}: {got.ravel()} {want.ravel()}")
                    continue
                self.check(name, dtype, result, got, want, [values[:, :1]])

    def test_signs_of_zero_are_kept(self):
        x = np.array([-0.0, 0.0])
        for name, want in (("neg", [False, True]), ("abs", [False, False]), ("sqrt", [True, False]), ("floor", [True, False]),
                           ("sin", [True, False]), ("asinh", [True, False]), ("expm1", [True, False]), ("erf", [True, False])):
            got = REFERENCE.run("unary", f"op={name}", [("dst", "f64", (2,))], [("src", "f64", x)])
            self.assertEqual(np.signbit(got).tolist(), want, name)

    def test_integer_division_faults_where_it_must(self):
        for name in ("div", "floor_div", "mod", "fmod"):
            for dtype in ("i8", "i16", "i32", "i64"):
                with self.subTest(row=name, dtype=dtype), self.assertRaises(driver.Fault) as caught:
                    REFERENCE.run("binary", f"op={name}", [("dst", dtype, (3,))], [("src", dtype, [5, 6, 7]), ("src_b", dtype, [2, 0, 3])])
                self.assertEqual((caught.exception.code, caught.exception.operand, caught.exception.value), (2, 2, 0))
                self.assertEqual(caught.exception.outputs[0][1], 0)
                self.assertEqual(caught.exception.outputs[0][2], {"div": 2, "floor_div": 2, "mod": 1, "fmod": 1}[name])

    def test_the_least_integer_by_minus_one_wraps(self):
        for name in ("div", "floor_div", "mod", "fmod"):
            for dtype in ("i8", "i16", "i32", "i64"):
                least = np.iinfo(driver.NUMPY_TYPES[dtype]).min
                with self.subTest(row=name, dtype=dtype):
                    got = REFERENCE.run("binary", f"op={name}", [("dst", dtype, (2,))], [("src", dtype, [least, 7]), ("src_b", dtype, [-1, -1])])
                    self.assertEqual(got.tolist(), [0, 0] if name in ("mod", "fmod") else [least, -7])


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
