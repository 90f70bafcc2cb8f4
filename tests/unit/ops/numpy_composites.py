"""Ops that are written in others, against PyTorch: name, argument names and results are PyTorch's."""

import math
import warnings

import numpy as np
import torch
import torch.nn.functional as F

from numpy_runner import Call, Dtype, OpTest, Refused, run, some

warnings.filterwarnings("ignore", module="torch")  # warnings about future changes
TORCH_DTYPES = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64, "i32": torch.int32}


def as_torch(value):
    if isinstance(value, np.ndarray):
        return torch.from_numpy(np.array(value))
    if isinstance(value, tuple):
        return [as_torch(each) for each in value]
    if isinstance(value, Dtype):
        return TORCH_DTYPES[value.name]
    return value


def as_numpy(result):
    if isinstance(result, (tuple, list)):
        return [each.numpy() for each in result]
    return np.asarray(result) if isinstance(result, bool) else result.numpy()


def labels(*shape, classes):
    return np.arange(math.prod(shape), dtype=np.int64).reshape(shape) * 7 % classes


NAN, INF = float("nan"), float("inf")
EDGES = np.array([0.5, -0.0, 0.0, NAN, INF, -INF, -3.25, 7], np.float32)


class Composites(OpTest):
    def same(self, op, *args, oracle=None, rtol=2e-5, atol=2e-6, **kwargs):
        function = oracle or getattr(F, op, None) or getattr(torch, op, None) or getattr(torch.Tensor, op)
        with self.subTest(op=op, kwargs=kwargs):
            expected = as_numpy(function(*[as_torch(a) for a in args], **{k: as_torch(v) for k, v in kwargs.items()}))
            self.check(expected, op, *args, rtol=rtol, atol=atol, **kwargs)

    def test_other_names(self):
        x, y, inside = some(3, 5), some(3, 5), some(3, 5, low=-0.9, high=0.9)
        for op in ("absolute", "negative", "arctan", "arcsinh", "fix", "sgn"):
            self.same(op, x)
        for op in ("arccos", "arcsin", "arctanh"):
            self.same(op, inside)
        self.same("arccosh", some(4, low=1.1, high=5))
        for op in ("multiply", "subtract", "divide", "arctan2", "greater", "greater_equal", "less", "less_equal", "not_equal"):
            self.same(op, x, y)
        self.same("clip", x, -1.0, 1.0)
        self.same("logsumexp", x, 1)
        self.same("moveaxis", x, 0, 1)
        self.same("swapdims", x, 0, 1)
        self.same("swapaxes", x, 0, 1)
        for op in ("cat", "concatenate"):
            self.check(np.concatenate([x, y]), op, (x, y))
        self.same("row_stack", (x, y))
        self.same("ger", some(3), some(4))
        self.same("hardswish", some(40, low=-5, high=5))

    def test_unary_functions(self):
        x = some(4, 7)
        for op in ("exp2", "erfc", "frac", "sinc", "deg2rad", "rad2deg", "positive", "tanhshrink", "logsigmoid", "relu6", "hardsigmoid"):
            self.same(op, x)
            self.same(op, x.astype(np.float64))
        for op in ("lgamma", "digamma"):
            self.same(op, x, atol=64 * float(np.finfo(np.float32).eps))  # the error that ep_api/accuracy.def allows near roots
            self.same(op, x.astype(np.float64))
        self.same("signbit", np.array([1, -1, 0.0, -0.0, INF, -INF], np.float32))
        self.same("signbit", np.array([3, -2, 0]))
        for op in ("isposinf", "isneginf", "isreal", "nan_to_num"):
            self.same(op, EDGES)
            for dtype in (np.int8, np.uint8, np.int64, bool):
                self.same(op, np.arange(-4, 6).reshape(2, 5).astype(dtype))
        self.same("nan_to_num", EDGES.astype(np.float64), 2.5)
        self.check(np.array([0, -1, 1, 65504, -65504], np.float16), "nan_to_num", np.array([NAN, -1, 1, INF, -INF], np.float16))
        self.check(np.array([9, 3, -3, 3, -1], np.float32), "nan_to_num_within", np.array([NAN, INF, -4, 3, -1], np.float32), 9.0, 3.0)
        self.check(np.array([0.5, 0.125, 2, 0], np.float32), "huber", np.array([1, -0.5, -2.5, 0], np.float32), 1.0)
        self.same("nan_to_num", EDGES, 1.5, 2.5, -3.5)
        self.same("nan_to_num", EDGES, posinf=9.0)
        self.same("nan_to_num", np.array([1, 2]))
        p = some(9, low=0.05, high=0.95)
        self.same("logit", p)
        self.same("logit", np.array([-0.5, 0.2, 1.5], np.float32), 0.1)
        for dtype in (np.float32, np.float64):
            self.same("erfinv", np.linspace(-1, 1, 41).astype(dtype))
            self.same("erfinv", np.linspace(-0.999, 0.999, 597).astype(dtype))
            self.same("erfinv", np.array([-1.5, 1 - 1e-6, -1 + 1e-6, 1e-5, 0, NAN], dtype))
            self.same("erfc", np.linspace(-5, 9, 57).astype(dtype), rtol=1e-5, atol=0)
            gammas = np.array([-1e20, -3.5, -2.25, -2, -0.7, -0.0, 0, 1e-30, 0.3, 1, 1.4616, 2, 9.99, 10, 55, 1e6, INF, -INF, NAN], dtype)
            self.same("lgamma", gammas)
            self.same("digamma", gammas)
        self.same("threshold", x, 0.5, -2.0)
        self.same("hardtanh", x, -0.5, 1.25)
        self.same("softshrink", x, 0.75)
        self.same("hardshrink", x, 0.75)
        self.same("softmin", x, dim=1)
        self.same("glu", some(3, 6), 1)
        self.refused("glu: axis 0 has length 3, which cannot be halved.", "glu", some(3, 6), 0)
        self.refused("positive: a bool tensor has no sign.", "positive", np.array([True]))

    def test_next_numbers(self):
        """Bits: every f16, f32 and f64 of every exponent, edges and denormals, to both sides."""
        every = np.arange(65536, dtype=np.uint16).view(np.float16)
        f32 = np.random.default_rng(5).integers(0, 1 << 32, 4000, np.uint64).astype(np.uint32).view(np.float32)
        f64 = np.random.default_rng(6).integers(0, 1 << 64, 4000, np.uint64).view(np.float64)
        steps = [2.0 ** k for k in range(-149, 128)]
        tiny = np.array([5e-324, 2.2250738585072014e-308, 4.450147717014403e-308, 1.7976931348623157e308])
        for x in (every, f32, np.array(steps, np.float32), f64, tiny, EDGES):
            for to in (INF, -INF, 0, 1.5):
                target = np.full_like(x, to)
                with self.subTest(dtype=x.dtype, to=to), np.errstate(all="ignore"):
                    got = run("nextafter", x, target)[0]
                    np.testing.assert_array_equal(got, np.nextafter(x, target))
                    if x.dtype == np.float16:
                        continue  # for two equal zeros, NumPy's halves return the first; C does not
                    zeros = got == 0
                    np.testing.assert_array_equal(np.signbit(got[zeros]), np.signbit(np.nextafter(x, target)[zeros]))
        for dtype in (np.float32, np.float64):
            x, y = (np.ldexp(some(3, 201, dtype=dtype), np.random.default_rng(7).integers(-1100, 1000, (3, 201)) // (8 if dtype == np.float32 else 1)) for _ in range(2))
            y[0, ::3], x[1, ::5] = x[0, ::3], 0
            self.check(np.nextafter(x, y), "nextafter", x, y, rtol=0, atol=0)
        self.same("nextafter", np.ones((2, 1), np.float32), np.array([2, NAN, 0], np.float64).astype(np.float32))
        self.refused("nextafter: needs f64, f32, f16 or bf16, but got f8e5m2.", "nextafter",
                     Call("cast", x, Dtype("f8e5m2")), Call("cast", x, Dtype("f8e5m2")))

    def test_binary_functions(self):
        x, y = some(3, 5), some(5)
        for op in ("atan2", "hypot", "logaddexp", "logaddexp2", "copysign", "fmax", "fmin", "true_divide"):
            self.same(op, x, y)
            self.same(op, x.astype(np.float64), y.astype(np.float64))
        self.same("xlogy", np.array([0, 0, 2, 1], np.float32), np.array([0, NAN, 3, 0.5], np.float32))
        self.same("xlogy", 2.0, np.array([1, 2], np.float32))
        a, b = (grid.ravel() for grid in np.meshgrid(EDGES, EDGES))
        flags, others = some(9, dtype=np.bool_), some(9, dtype=np.bool_)
        self.close(run("ldexp", np.array([INF, 1, -1, 2], np.float32), np.array([INF, -INF, INF, 130], np.float32))[0], np.array([INF, 0, -INF, INF], np.float32))
        self.close(run("ldexp", np.array([1e-30, 1e30], np.float32), np.array([140, -140]))[0], np.array([1e-30 * 2.0 ** 140, 1e30 * 2.0 ** -140], np.float32), atol=0)
        for op, expected in (("fmax", flags | others), ("fmin", flags & others), ("heaviside", flags | others)):
            self.check(expected, op, flags, others)
        for op in ("atan2", "hypot", "fmax", "fmin", "logaddexp"):
            self.same(op, a, b)
        self.same("heaviside", np.array([-1.5, 0, 2, NAN], np.float32), np.array([0.5, 0.25, 3, 1], np.float32))
        whole = np.array([[0, 12, -18, 7, -1, 100], [0, 0, 24, -35, 9, 64]])
        for dtype in (np.int64, np.int32, np.int8):
            self.same("gcd", *whole.astype(dtype))
            limits = np.iinfo(dtype)
            wide = np.random.default_rng(5).integers(limits.min + 1, limits.max, (2, 3, 67), dtype)  # several blocks, a short last one
            wide[0] &= wide[1]  # with common bits
            wide[:, 0, :4] = [[limits.max, limits.max, 0, 1], [limits.max, limits.max - 1, limits.max, limits.max]]
            self.check(np.gcd(*wide), "gcd", *wide)
        small = np.random.default_rng(6).integers(-30000, 30000, (2, 3, 67), np.int32)
        self.check(np.lcm(*small), "lcm", *small)
        self.same("lcm", *whole)
        self.check(np.lcm(whole[0], 8), "lcm", whole[0], 8)
        self.same("rsub", x, y, alpha=2)
        self.same("rsub", x, 3)
        self.same("float_power", np.abs(x), y, rtol=1e-6)
        self.same("float_power", np.array([1, 2, 3]), 2)
        self.same("float_power", 2, np.array([1.0, 3], np.float32))
        self.same("ldexp", x, np.array([1, -2, 3, 0, 5]))
        self.same("clamp_min", x, 0.25)
        self.same("clamp_min", x, y)
        self.same("clamp_max", x, 0.25)
        self.same("clamp_max", x, y)
        bounds = some(5)
        self.check(np.clip(x, -0.5, bounds), "clamp", x, -0.5, bounds)
        self.check(np.clip(x, bounds, 2.0), "clamp", x, bounds, 2.0)
        self.same("lerp", x, some(3, 5), 0.3)
        self.same("lerp", x, some(3, 5), np.abs(some(3, 5)))
        self.same("addcmul", x, some(3, 5), y, value=0.5)
        self.same("addcmul", x, some(3, 5), y)
        self.same("addcdiv", x, some(3, 5), y, value=0.5)
        self.same("addcdiv", some(7, 61), some(7, 61), some(7, 61, low=0.5, high=2), value=-2)

    def test_comparisons_of_tensors(self):
        x = EDGES
        near = x + np.float32(1e-6)
        for equal_nan in (False, True):
            self.same("isclose", x, near, equal_nan=equal_nan)
            self.same("allclose", x, near, equal_nan=equal_nan)
        self.same("isclose", np.array([1, 100, 5]), np.array([1, 101, 6]), rtol=0.02)
        self.same("isclose", some(4), np.full(4, INF, np.float32))
        self.same("equal", x[:3], x[:3])
        self.same("equal", some(3), some(3))
        self.same("equal", some(3), some(4))
        self.refused("isclose: input is f32 and other f64; they must have one dtype.", "isclose", some(2), some(2, dtype=np.float64))

    def test_factories(self):
        for start, end, steps in ((0, 1, 11), (-3.5, 8, 6), (2, 2, 4), (5, -5, 1), (1, 2, 0)):
            self.same("linspace", start, end, steps)
            for dtype in (Dtype("f64"), Dtype("i32")):
                self.close(run("linspace", start, end, steps, dtype=dtype)[0], torch.linspace(start, end, steps, dtype=as_torch(dtype)))
            self.same("logspace", start / 4, end / 4, steps)
        self.same("logspace", 0, 3, 4, base=2.0)
        # Bounds and steps of integers are whole.
        self.close(run("logspace", 0, 1.2, 2, dtype=Dtype("i64"))[0], np.array([1, 10]))
        self.close(run("arange", -0.9, 2.1, 2.0, dtype=Dtype("i64"))[0], np.array([0, 2]))
        self.refused("arange: a step of 0.5 becomes 0 in an integer dtype.", "arange", 0.0, 2.0, 0.5, dtype=Dtype("i64"))
        self.refused("linspace: steps is -1; it must be at least 0.", "linspace", 0, 1, -1)

    def test_matrices(self):
        for x in (some(4, 6), some(2, 5, 3), some(3, 3, dtype=np.int32)):
            for k in (-2, 0, 1):
                self.same("tril", x, k)
                self.same("triu", x, k)
                self.same("diagonal", x, k)
                self.same("diagonal", x, k, -1, -2)
                self.same("diag_embed", x, k)
        self.same("diagonal", some(3, 4), 4)
        self.same("diagonal", some(2, 3, 4, 5), 1, 1, 3)
        x = some(2, 4, 12)
        for k in range(-3, 6):  # rows with gaps, and equal rows
            self.check(np.diagonal(x[..., 1::2], k, -2, -1), "diagonal", Call("slice", x, 2, 1, None, 2), k, -2, -1)
            rows = np.broadcast_to(x[:, :1], x.shape)
            self.check(np.diagonal(rows, k, -1, 1), "diagonal", Call("expand", x[:, :1], [2, 4, 12]), k, -1, 1)
        self.same("diag_embed", some(2, 3), 1, 0, 2)
        for k in (2 ** 63 - 1, -2 ** 63, 2 ** 40 + 1):
            self.refused(f"diag_embed: a matrix with a diagonal {k} is too large.", "diag_embed", some(2, 3), k)
        self.same("diag", some(4), 1)
        self.same("diag", some(4, 3), -1)
        self.same("diagflat", some(2, 2), 1)
        for k in (-3, 0, 2, 300):  # too long for one loop
            self.same("diag_embed", some(300), k)
            self.same("diag_embed", some(300), k, 1, 0)
        for k in (-2, 0, 3):
            self.same("diag_embed", some(0), k)
            self.same("diag_embed", some(5, dtype=np.int64), k)
        self.same("trace", some(4, 3))
        self.same("trace", some(2, 7, dtype=np.float64))
        self.same("trace", some(3, 3, dtype=np.int32))
        self.same("block_diag", (some(2, 3), some(3), some(1, 1)), oracle=lambda x: torch.block_diag(*x))
        self.same("vander", some(4), 3)
        self.same("vander", some(3), increasing=True)
        small = np.array([1, 2, 9], np.int8)
        self.check(np.vander(small.astype(np.int64), 8), "vander", small, 8)
        self.check(np.vander(np.array([1, 0]), 2), "vander", np.array([True, False]), 2)
        self.refused("tril: input has shape [3]; it must have rank at least 2.", "tril", some(3))
        flags = np.ones((4, 4), bool)
        self.check(np.tril(flags), "tril", flags)
        self.check(np.triu(flags, 1), "triu", flags, 1)
        self.check(np.stack([np.diag(row) for row in flags]), "diag_embed", flags)
        self.check(np.outer(flags[0], flags[1]) | flags[:, :1], "addr", flags[:, :1].copy(), flags[0], flags[1], beta=2, alpha=3)
        self.refused("diagonal: dim1 and dim2 are both axis 1.", "diagonal", some(2, 3), 0, 1, -1)

    def test_products(self):
        a, b, v = some(3, 4), some(4, 5), some(4)
        self.same("mm", a, b)
        self.same("bmm", some(2, 3, 4), some(2, 4, 5))
        self.same("mv", a, v)
        self.same("dot", v, some(4))
        self.same("vdot", v, some(4))
        for dtype in (np.float32, np.float64):  # the sum has several parts; the last one is short
            x, y = (some(n).astype(dtype) for n in (40001, 40001))
            self.check(np.asarray((x.astype(np.float64) * y).sum(), dtype), "dot", x, y, rtol=1e-4, atol=1e-3)
            self.check(np.asarray((x[::2].astype(np.float64) * y[1::2][:1]).sum(), dtype), "dot", x[::2], np.full(20001, y[1], dtype), rtol=1e-4, atol=1e-3)
        self.same("outer", v, some(3))
        self.same("inner", some(2, 3, 4), some(5, 4))
        self.same("inner", some(3), some(3))
        self.same("addmm", some(3, 5), a, b, beta=0.5, alpha=2)
        self.same("addmm", np.full(5, NAN, np.float32), a, b, beta=0)
        self.same("addmv", some(3), a, v, alpha=3)
        self.same("addr", some(4, 3), v, some(3), beta=2)
        self.same("addr", some(4, 3), v, some(3))
        for dims in ((3,), (4, 1), ()):
            self.same("addr", some(*dims), v, some(3))
        for dtype in (np.float32, np.float64):  # rows longer than a block of the loops, and matrices too large for them
            for rows, columns in ((3, 300), (300, 700)):
                x, y = some(rows, dtype=dtype), some(columns, dtype=dtype)
                self.same("outer", x, y)
                self.same("addr", some(rows, columns, dtype=dtype), x, y)
        self.same("baddbmm", some(2, 3, 5), some(2, 3, 4), some(2, 4, 5), beta=2, alpha=0.5)
        self.same("addbmm", some(3, 5), some(2, 3, 4), some(2, 4, 5), beta=2, alpha=0.5)
        self.same("bilinear", some(6, 3), some(6, 4), some(2, 3, 4), some(2))
        self.same("kron", some(2, 3), some(4, 2))
        self.same("kron", some(3), some(2, 2))
        self.same("kron", some(40, 37), some(21, 33))  # several threads
        self.same("kron", some(1, 2, 1, 2, 3), some(2, 1, 2, 2, 1))  # ten axes between the two
        self.same("kron", some(2, 2, 1, 2, 1, 2, 1, 1), some(3, 2))
        self.same("cross", some(2, 3), some(2, 3), 1)
        self.same("cross", some(3, 4), some(3, 4))
        self.same("cross", some(2, 3, 5), some(2, 3, 5))
        cube, other = some(2, 3, 3), some(2, 3, 3)
        self.check(np.cross(cube, other, axis=1), "cross", cube, other)  # the default is the first axis of length 3
        self.same("tensordot", some(2, 3, 4), some(3, 4, 5), oracle=lambda x, y: torch.tensordot(x, y, dims=2))
        self.same("tensordot", some(2, 3, 4), some(4, 5, 2), [2, 0], [0, 2], oracle=lambda x, y, i, j: torch.tensordot(x, y, dims=(i, j)))
        self.refused("mm: mat2 has shape [4]; it must have rank 2.", "mm", a, v)
        self.refused("bmm: input has 2 matrices and mat2 3; both must have the same number.", "bmm", some(2, 3, 4), some(3, 4, 5))

    def test_einsum(self):
        for equation, *shapes in (("ij,jk->ik", (3, 4), (4, 5)), ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("ii->i", (3, 3)), ("ii", (3, 3)),
                                  ("ij->ji", (2, 3)), ("ij,ij->", (3, 4), (3, 4)), ("i,j->ij", (3,), (4,)), ("ij,j", (3, 4), (4,)),
                                  ("...ij,...jk->...ik", (2, 3, 4, 5), (3, 5, 2)), ("b...,b...->b", (3, 2, 4), (3, 2, 4)),
                                  ("ij,jk,kl->il", (2, 9), (9, 8), (8, 3)), ("a,b,c->cab", (2,), (3,), (4,)),
                                  ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)), ("ijk->k", (2, 3, 4)), ("i...->...", (3, 4)),
                                  ("ij,kj->ik", (1, 4), (3, 4)), ("b i j , b j -> b i", (2, 3, 4), (2, 4)),
                                  ("ij,jk->ik", (2, 0), (0, 3)), ("ij,kj->ik", (0, 4), (3, 4)), ("ij,kj->ik", (3, 4), (0, 4)), ("ij,jk->", (0, 2), (2, 0)),
                                  ("...ij,...jk->...ik", (2, 1, 0, 3), (5, 3, 2)), ("...ij,...jk->...ik", (0, 2, 3), (1, 3, 2)), ("ii->i", (0, 0)), ("aab,bc->ac", (2, 2, 3), (3, 4))):
            arrays = tuple(some(*shape) for shape in shapes)
            self.same("einsum", equation, arrays, oracle=lambda e, x: torch.einsum(e, *x))
        self.check(np.einsum("ij,jk->ik", np.ones((2, 1)), np.ones((3, 4))), "einsum", "ij,jk->ik", (np.ones((2, 1)), np.ones((3, 4))))
        self.check(np.einsum("ij,jk->ik", np.ones((2, 3)), np.ones((3, 4))), "einsum", "ij,jk->ik", np.ones((2, 3)), np.ones((3, 4)))
        self.check(np.trace(np.ones((3, 3))), "einsum", "ii->", np.ones((3, 3)))
        self.refused("einsum: 'ij,jk' names 2 tensors, but 1 are given.", "einsum", "ij,jk", (some(2, 3),))
        self.refused("einsum: one label stands for axes of lengths 3 and 4.", "einsum", "ij,jk", (some(2, 3), some(4, 5)))
        self.refused("einsum: 'ijk' has 3 labels, but its tensor has rank 2.", "einsum", "ijk", (some(2, 3),))
        self.refused("einsum: a label of the result of 'ij->ik' occurs in no tensor, or twice in the result.", "einsum", "ij->ik", (some(2, 3),))
        self.refused("einsum: 'i;' has the sign ';'; labels are letters, and '...' may occur once.", "einsum", "i;", (some(2),))

    def test_stacks(self):
        x, y = some(2, 3), some(2, 3)
        for op in ("hstack", "vstack", "dstack", "column_stack"):
            self.same(op, (x, y))
            self.same(op, (some(4), some(4)))
        self.same("hstack", (np.full((), 3, np.float32), some(2)))
        for op in ("atleast_1d", "atleast_2d", "atleast_3d"):
            for shape in ((), (3,), (2, 3), (2, 3, 4)):
                self.same(op, some(*shape))
        self.same("broadcast_tensors", (some(3, 1), some(4)), oracle=lambda x: torch.broadcast_tensors(*x))
        for indexing in ("ij", "xy"):
            self.same("meshgrid", (some(3), some(4), some(2)), indexing=indexing, oracle=lambda x, indexing: torch.meshgrid(*x, indexing=indexing))
        self.same("cartesian_prod", (some(3), some(4)), oracle=lambda x: torch.cartesian_prod(*x))
        self.same("cartesian_prod", (some(2),) * 8, oracle=lambda x: torch.cartesian_prod(*x))
        self.refused("hstack: the list of tensors is empty.", "hstack", ())
        self.refused("meshgrid: indexing is 'ji'; it may be 'ij' or 'xy'.", "meshgrid", (some(2),), indexing="ji")

    def test_parts(self):
        x = some(6, 4, 4)
        self.same("tensor_split", x, 4)
        self.same("tensor_split", x, [1, 4], dim=1)
        self.same("tensor_split", x, [3, 2, 9, -1])
        self.refused("tensor_split: 9223372036854775807 parts are too many; there may be at most 2147483647.", "tensor_split", x, 2 ** 63 - 1)
        for op in ("hsplit", "vsplit", "dsplit"):
            self.same(op, x, 2)
            self.same(op, x, [1, 3])
        self.same("hsplit", some(6), 3)
        self.same("unbind", some(3, 4), 1)
        self.refused("vsplit: axis 0 of length 6 cannot be divided into 4 equal parts.", "vsplit", x, 4)

    def test_places(self):
        x = some(3, 4, 5)
        for k in range(-1, 5):
            self.same("rot90", some(3, 4), k, [0, 1])
        self.same("rot90", x, 1, [2, 0])
        self.same("roll", x, 2, 1)
        self.same("roll", x, [1, -3], [0, 2])
        self.same("roll", x, 7)
        self.same("fliplr", x)
        self.same("flipud", x)
        self.same("ravel", x)
        self.same("adjoint", x)
        self.close(run("view_as", np.arange(6.0), np.zeros((2, 3)))[0], np.arange(6.0).reshape(2, 3))
        self.same("reshape_as", some(2, 6), some(3, 4))
        self.same("type_as", some(3), np.array([1, 2]))
        self.same("repeat", some(2, 3), [2, 1, 3])
        self.check(np.zeros((0, 6, 0), np.float32), "repeat", np.zeros((3, 0), np.float32), [0, 2, 3])
        self.check(np.zeros((0, 6), np.float32), "repeat", some(2, 3), [0, 2])
        self.check(np.zeros((4, 0), np.float32), "tile", some(2, 3), [2, 0])
        self.same("repeat_interleave", some(2, 3), 3, 1)
        self.same("repeat_interleave", some(2, 3), 2)
        self.same("pixel_shuffle", some(2, 8, 3, 4), 2)
        wide = some(2, 1, 2, 1, 2, 4, 2, 6)  # the greatest possible rank
        self.same("pixel_shuffle", wide, 2)
        self.same("pixel_unshuffle", wide, 2)
        self.same("channel_shuffle", some(2, 6, 2, 1, 2, 1, 2, 3), 3)
        self.same("cdist", wide, some(2, 1, 2, 1, 1, 4, 3, 6), rtol=1e-4)
        self.same("bilinear", wide, wide, some(3, 6, 6), rtol=1e-4, atol=1e-5)
        for factor in (2 ** 32, 2 ** 33, 3):
            self.refused(f"pixel_shuffle: input of shape [1, 8, 3, 4] has no channels for squares of {factor} by {factor}.",
                         "pixel_shuffle", some(1, 8, 3, 4), factor)
        self.same("pixel_unshuffle", some(2, 3, 4, 6), 2)
        self.same("channel_shuffle", some(2, 6, 3, 3), 3)
        self.refused("rot90: dims names axis 0 twice.", "rot90", some(2, 2), 1, [0, 0])
        self.refused("channel_shuffle: input of shape [1, 5, 2] has no 2 groups of channels.", "channel_shuffle", some(1, 5, 2), 2)

    def test_windows(self):
        x = some(2, 3, 6, 7)
        for kwargs in ({"kernel_size": 2}, {"kernel_size": [2, 3], "dilation": [2, 1], "padding": [1, 2], "stride": [2, 1]}):
            self.same("unfold", x, oracle=F.unfold, **kwargs)
            columns = F.unfold(torch.from_numpy(x), **kwargs).numpy()
            self.same("fold", columns, [6, 7], oracle=F.fold, **kwargs)
        self.same("unfold", x[0], 3, oracle=F.unfold)
        self.refused("unfold: no window fits into input of shape [1, 1, 2, 2].", "unfold", some(1, 1, 2, 2), 3)
        self.refused("unfold: kernel_size, dilation, stride and padding may be 2147483647 at most.", "unfold", some(1, 1, 2, 2), 1, 2 ** 62)

    def test_norms_and_distances(self):
        x, y = some(4, 5), some(4, 5)
        for p in (0.0, 1.0, 2.0, 3.0):
            self.same("norm", x, p, 1)
            self.same("vector_norm", x, p, 0, True, oracle=torch.linalg.vector_norm)
            self.same("dist", x, y, p)
            self.same("pairwise_distance", x, y, p)
            self.same("cdist", x, some(6, 5), p, atol=1e-5)
        self.same("norm", x)
        self.same("normalize", x)
        self.same("normalize", x, p=1.0, dim=0)
        self.same("cosine_similarity", x, y)
        self.same("cosine_similarity", x, y, dim=0)
        self.refused("cdist: x1 has shape [2, 3] and x2 [4, 5]; both must be [.., rows, n] with one n.", "cdist", some(2, 3), some(4, 5))

    def test_statistics(self):
        x = some(4, 5)
        gaps = np.where(x > 1, np.float32(NAN), x)
        for op in ("std_mean", "var_mean"):
            self.same(op, x, oracle=lambda x, op=op: getattr(torch, op)(x, dim=(0, 1)))
            self.same(op, x, 1, correction=0, keepdim=True)
        self.same("nansum", gaps)
        self.same("nansum", gaps, 1, True)
        self.same("nanmean", gaps)
        self.same("nanmean", gaps, 0)
        self.same("aminmax", x)
        self.same("aminmax", x, dim=1, keepdim=True)

    def test_losses(self):
        x, y = some(4, 5), some(4, 5)
        p, q = some(4, 5, low=0.05, high=0.95), some(4, 5, low=0.05, high=0.95)
        signs = np.sign(y)
        for reduction in ("none", "mean", "sum"):
            kw = {"reduction": reduction}
            for op in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "poisson_nll_loss"):
                self.same(op, x, np.abs(y), **kw)
            self.same("smooth_l1_loss", x, y, beta=0.3, **kw)
            self.same("huber_loss", x, y, delta=0.3, **kw)
            self.refused("huber_loss: delta is 0; it must be above 0.", "huber_loss", x, y, delta=0, **kw)
            self.same("kl_div", np.log(p), q, **kw)
            self.same("kl_div", np.log(p), np.log(q), log_target=True, **kw)
            self.same("binary_cross_entropy", p, q, p, **kw)
            self.same("binary_cross_entropy_with_logits", x, q, **kw)
            self.same("binary_cross_entropy_with_logits", x, q, np.abs(x), pos_weight=some(5, low=0.5, high=2), **kw)
            self.same("gaussian_nll_loss", x, y, p, full=True, **kw)
            self.same("gaussian_nll_loss", x, y, p[:, 0].copy(), **kw)  # a variance for each row
            self.same("gaussian_nll_loss", x, y, p[:, :1].copy(), **kw)
            self.same("poisson_nll_loss", p, np.abs(y) * 3, False, True, **kw)
            self.same("soft_margin_loss", x, signs, **kw)
            self.same("hinge_embedding_loss", x, signs, 0.7, **kw)
            self.same("margin_ranking_loss", x, y, signs, 0.2, **kw)
            self.same("cosine_embedding_loss", x, y, signs[:, 0].copy(), 0.1, **kw)
            self.same("triplet_margin_loss", x, y, some(4, 5), 1.5, **kw)
            weight = some(5, low=0.5, high=2)
            target = labels(4, classes=5)
            for op, logs in (("nll_loss", np.log(p)), ("cross_entropy", x)):
                self.same(op, logs, target, **kw)
                self.same(op, logs, target, weight, ignore_index=2, **kw)
            images, places = some(2, 5, 3, 2), labels(2, 3, 2, classes=5)
            self.same("cross_entropy", images, places, weight, **kw)
            self.same("cross_entropy", x, target, weight, label_smoothing=0.1, ignore_index=2, **kw)
            self.same("cross_entropy", images, places, label_smoothing=0.3, **kw)
            self.same("cross_entropy", x, q, label_smoothing=0.2, **kw)
            self.same("cross_entropy", some(5), np.asarray(np.int64(3)), **kw)
        self.same("kl_div", np.log(p), q, reduction="batchmean")
        self.same("binary_cross_entropy", np.array([0, 1.0], np.float32), np.array([1, 1.0], np.float32))
        self.same("triplet_margin_loss", x, y, some(4, 5), swap=True)
        self.refused("mse_loss: reduction is 'avg'; it may be 'none', 'mean' or 'sum'.", "mse_loss", x, y, reduction="avg")
        self.same("nll_loss", some(5), np.asarray(np.int64(3)))
        with self.assertRaisesRegex(Refused, "nll_loss: index 5 is out of range"):
            run("nll_loss", x, np.int64([0, 1, 5, 2]))
        self.refused("nll_loss: target has shape [3]; of input [4, 5] it must have shape [4].", "nll_loss", x, labels(3, classes=5))
        self.refused("cross_entropy: target must be classes, which are integers, not bool.", "cross_entropy", x, np.ones(4, bool))
