"""The cases of the sweep, made from the rows of ops.yaml: each op at several sizes, with PyTorch's name for it.

A case is {"case": NAME, "op", "size", "dtype", "tensors": [{"dims", "dtype", "low", "high", "order"}], "args", "kwargs",
"torch": {"op", "args", "kwargs"}, "tolerance"}. An argument is a JSON value, {"t": number of a tensor}, {"ts": [...]},
{"dtype": NAME}. A row gets its arguments from its first signature, parameter by parameter; CASES has additional or other
arguments for the rows that need them.
"""

import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "core/ops"))

from generator.model.abi import read_abi  # noqa: E402
from generator.model.op_list import load  # noqa: E402

SIZES = (4, 1 << 10, 1 << 16, 1 << 20, 1 << 24)
NARROW = ("bf16", "f16", "f64")
TOLERANCE = {"f32": 2e-4, "f64": 1e-6, "f16": 4e-3, "bf16": 3e-2}
# Ops whose results change more when arguments are rounded: the condition number of a random matrix of n rows exceeds
# 100 n in one case of 50, and the error grows with it.
TOLERANCES = {"linalg_cond": 2e-2}
# Ops that are also measured in the other floating types.
MANY_TYPES = ("add", "mul", "div", "exp", "tanh", "gelu", "relu", "pow", "sum", "mean", "amax", "argmax", "softmax", "layer_norm",
              "matmul", "cast", "concat", "where", "index_select")
# PyTorch's names, if they differ.
TORCH = {"concat": "cat", "log_sum_exp": "logsumexp", "hard_sigmoid": "hardsigmoid", "hard_swish": "hardswish", "cast": "to",
         "conv": "conv2d", "conv_transpose": "conv_transpose2d", "max_pool": "max_pool2d", "avg_pool": "avg_pool2d",
         "max_pool_with_indices": "max_pool2d_with_indices", "adaptive_avg_pool": "adaptive_avg_pool2d",
         "gather_slices": "index_select", "empty": "empty", "copy_from": "copy_", "shrink": "hardshrink"}
# The range of an op's arguments, if not -3 to 3.
RANGES = {"log": (0.1, 3), "log2": (0.1, 3), "log10": (0.1, 3), "log1p": (-0.9, 3), "sqrt": (0.1, 3), "rsqrt": (0.1, 3),
          "acosh": (1.1, 5), "asin": (-0.99, 0.99), "acos": (-0.99, 0.99), "atanh": (-0.99, 0.99), "pow": (0.1, 3),
          "arccosh": (1.1, 5), "arcsin": (-0.99, 0.99), "arccos": (-0.99, 0.99), "arctanh": (-0.99, 0.99),
          "log_sum": (0.1, 3), "prod": (0.9, 1.1), "bernoulli": (0, 1)}
RANDOM = ("normal", "multinomial", "exponential", "uniform_", "normal_", "rand", "randn", "rand_like", "randn_like", "bernoulli", "bernoulli_",
          "dropout", "empty", "empty_like", "randint", "randperm", "philox_uniform", "philox_normal")


# Rows whose results have another form in PyTorch, or are one of several correct choices: complex numbers that are pairs
# here, results that are a bool there, signs of vectors, ranks of equal elements, nearly singular matrices.
OTHER_FORM = ("fft_rfft", "fft_ihfft", "fft_rfftn", "equal", "allclose", "linalg_lstsq", "linalg_svd", "linalg_eigh", "linalg_lu_factor",
              "linalg_qr", "linalg_inv", "linalg_solve", "linalg_pinv", "inverse", "pinverse", "sort", "argsort", "topk")


def square(size):
    rows = 1 << (int(math.log2(size)) // 2)
    return [rows, size // rows]


class Case:
    """Collects the arguments of one call."""

    def __init__(self, op, size, dtype, note=""):
        self.op, self.size, self.dtype, self.note = op, size, dtype, note
        self.tensors, self.args, self.kwargs = [], [], {}
        self.peer = TORCH.get(op, op)
        self.peer_args, self.peer_kwargs, self.why_not = None, None, ""

    def tensor(self, dims, dtype=None, low=None, high=None, order=None):
        least, most = RANGES.get(self.op, (-3, 3))
        spec = {"dims": list(dims), "dtype": dtype or self.dtype, "low": least if low is None else low,
                "high": most if high is None else high}
        self.tensors.append(spec | ({"order": order} if order else {}))
        return {"t": len(self.tensors) - 1}

    def index(self, dims, length):
        return self.tensor(dims, "i64", 0, length)

    def line(self):
        line = {"case": f"{self.op}{' ' + self.note if self.note else ''}, {spelled(self.size)} {self.dtype}", "op": self.op,
                "size": self.size, "dtype": self.dtype, "tensors": self.tensors, "args": self.args, "kwargs": self.kwargs,
                "tolerance": TOLERANCES.get(self.op, TOLERANCE.get(self.dtype, 0)),
                "compare": self.op not in RANDOM and self.op not in OTHER_FORM}
        if self.why_not:
            return line | {"why_not": self.why_not}
        return line | {"torch": {"op": self.peer, "args": self.args if self.peer_args is None else self.peer_args,
                                 "kwargs": self.kwargs if self.peer_kwargs is None else self.peer_kwargs}}


def spelled(size):
    return f"{size >> 20}M" if size >= 1 << 20 else f"{size >> 10}K" if size >= 1 << 10 else str(size)


# ---- the rule for ops without an entry in CASES ----

def by_signature(case, op):
    """Arguments from the types and names of the parameters without a default."""
    dims = square(case.size)
    for parameter in op.signatures[0].parameters:
        if parameter.default is not None or parameter.keyword_only:
            break
        case.args.append(argument(case, parameter, dims))
    return [case]


def argument(case, parameter, dims):
    name, kind = parameter.name, parameter.type
    if kind in ("Tensor", "Tensor!", "Tensor|Scalar"):
        if name in ("index", "indices"):
            return case.index([dims[0]], dims[0])
        if name in ("condition", "mask"):
            return case.tensor(dims, "bool")
        return case.tensor(dims)
    if kind == "Tensor[]":
        half = [dims[0] // 2, dims[1]]
        return {"ts": [case.tensor(half)["t"], case.tensor(half)["t"]]}
    values = {"Scalar": 1.5, "float": 0.5, "bool": False, "dtype": {"dtype": "f32"}, "string": ""}
    if kind in values:
        return values[kind]
    if name in ("size", "shape", "dims") or name == "normalized_shape":
        return [dims[-1]] if name == "normalized_shape" else dims
    if kind == "int":
        return -1 if name.startswith("dim") else 2
    if kind in ("int[]", "int[1]"):
        return [-1] if name.startswith("dim") or name == "axes" else [1]
    raise KeyError(f"{case.op}: no rule for the parameter {name}")


# ---- ops that need more: a function of (op name, size, dtype) that yields cases ----

def transposed(op, size, dtype):
    a, b = square(size)
    case = Case(op, size, dtype, "of two transposed")
    case.args = [case.tensor([b, a], order=[1, 0]), case.tensor([b, a], order=[1, 0])]
    yield case


def elementwise_pair(op, size, dtype):
    dims = square(size)
    case = Case(op, size, dtype)
    case.args = [case.tensor(dims), case.tensor(dims)]
    yield case
    case = Case(op, size, dtype, "with a number")
    case.args = [case.tensor(dims), 1.5]
    yield case


def elementwise_pair_wide(op, size, dtype):
    yield from elementwise_pair(op, size, dtype)
    if dtype != "f32":
        return
    dims = square(size)
    for note, other in (("of a row", [dims[1]]), ("of a column", [dims[0], 1])):
        case = Case(op, size, dtype, note)
        case.args = [case.tensor(dims), case.tensor(other)]
        yield case
    yield from transposed(op, size, dtype)


def reduction(op, size, dtype):
    dims = square(size)
    shapes = [("to one", dims, []), ("of rows", dims, [-1]), ("of columns", dims, [0])]
    if dtype == "f32" and size >= 1024:
        shapes += [("of a middle axis", [dims[0] // 4, dims[1] // 4, 16], [1]), ("of a last axis of 3", [size // 3, 3], [-1])]
    for note, shape, axes in shapes:
        case = Case(op, size, dtype, note)
        case.args = [case.tensor(shape, "bool" if op in ("any", "all") else None)]
        if axes:
            case.args.append(axes[0] if op == "prod" else axes)
        elif op in ("log_sum_exp",):
            case.args.append([0, 1])
        orders = {"l1_norm": 1, "l2_norm": 2}
        if op in orders:
            case.peer, case.peer_args = "linalg_vector_norm", [case.args[0], orders[op]] + case.args[1:]
        elif op in ("sum_square", "log_sum"):
            case.why_not = "PyTorch has no op for it"
        yield case


def prod(op, size, dtype):
    for case in reduction(op, size, dtype):
        if len(case.args) > 1:
            case.args[1] = [case.args[1]]
            case.peer_args = [case.args[0], case.args[1][0]]
        yield case


def arg_reduction(op, size, dtype):
    for note, axis in (("of rows", -1), ("of columns", 0)):
        case = Case(op, size, dtype, note)
        case.args = [case.tensor(square(size)), axis]
        yield case


def extremum(op, size, dtype):
    case = Case(op, size, dtype, "to one")
    case.args = [case.tensor(square(size))]
    yield case
    for note, axis in (("of rows with index", -1), ("of columns with index", 0)):
        case = Case(op, size, dtype, note)
        case.args = [case.tensor(square(size)), axis]
        yield case


def softmax(op, size, dtype):
    for note, axis in (("of rows", -1), ("of columns", 0)):
        case = Case(op, size, dtype, note)
        case.args = [case.tensor(square(size)), axis]
        yield case


def norm(op, size, dtype):
    rows, columns = square(size)
    case = Case(op, size, dtype)
    case.args = [case.tensor([rows, columns]), [columns], case.tensor([columns])]
    if op == "layer_norm":
        case.args.append(case.tensor([columns]))
    yield case


def channels(op, size, dtype):
    count = max(1, min(64, size // 4))
    side = max(1, int(math.sqrt(size // count)))
    case = Case(op, size, dtype)
    x = case.tensor([1, count, side, size // count // side])
    weight, bias = case.tensor([count]), case.tensor([count])
    if op == "batch_norm":
        mean, variance = case.tensor([count]), case.tensor([count], low=0.5, high=2)
        case.args = [x, mean, variance, weight, bias]
        case.peer_args, case.peer_kwargs = [x, weight, bias, mean, variance, False, 0.1, 1e-5, False], {}
    elif op == "group_norm":
        groups = max(1, count // 8)
        case.args = [x, groups, weight, bias]
    else:
        case.args, case.kwargs = [x], {"weight": weight, "bias": bias}
        case.peer_args, case.peer_kwargs = [x, weight, bias, None, None, True, 0.1, 1e-5, False], {}
    yield case


def matmul(op, size, dtype):
    if size > 1 << 20:
        return
    m, n = square(size)
    case = Case(op, size, dtype, f"{m} x {n} x {n}")
    case.args = [case.tensor([m, n], low=-1, high=1), case.tensor([n, n], low=-1, high=1)]
    yield case
    if op == "linear" or dtype != "f32":
        return
    if size >= 1 << 10:
        case = Case(op, size, dtype, f"1 x {4 * n} x {4 * n}")
        case.args = [case.tensor([1, 4 * n], low=-1, high=1), case.tensor([4 * n, 4 * n], low=-1, high=1)]
        yield case
        case = Case(op, size, dtype, f"1 x {4 * n} x {4 * n} transposed")
        case.args = [case.tensor([1, 4 * n], low=-1, high=1), case.tensor([4 * n, 4 * n], low=-1, high=1, order=[1, 0])]
        yield case
        case = Case(op, size, dtype, "by a vector")
        case.args = [case.tensor([m, n], low=-1, high=1), case.tensor([n], low=-1, high=1)]
        yield case


def convolution(op, size, dtype):
    if not 1 << 10 <= size <= 1 << 20:
        return
    axes = {"conv1d": 1, "conv3d": 3}.get(op, 2)
    channel = 16 if size <= 1 << 10 else 32
    side = max(3, round((size / channel) ** (1 / axes)))
    kinds = [("", 1, channel)] if axes != 2 or op == "conv_transpose" else [("", 1, channel), ("depthwise stride 2", channel, channel)]
    for note, groups, outputs in kinds:
        case = Case(op, size, dtype, note)
        x = case.tensor([1, channel] + [side] * axes, low=-1, high=1)
        w = case.tensor([outputs, channel // groups] + [3] * axes, low=-1, high=1)
        stride = 2 if groups > 1 else 1
        case.args = [x, w, None, stride, 1, 1, groups]
        if op == "conv_transpose":
            case.args = [x, w, None, stride, 1, 0, groups, 1]
        yield case


def pooling(op, size, dtype):
    if size < 1 << 10:
        return
    channel = 16
    side = int(math.sqrt(size // channel))
    case = Case(op, size, dtype, "3 stride 2")
    case.args = [case.tensor([1, channel, side, side]), 3, 2, 1]
    yield case
    if op.startswith("avg"):
        case = Case(op, size, dtype, "2 stride 2")
        case.args = [case.tensor([1, channel, side, side]), 2, 2]
        yield case


def indexed(op, size, dtype):
    rows, columns = square(size)
    for note, axis in (("of rows", 0), ("of the last axis", 1)):
        case = Case(op, size, dtype, note)
        x = case.tensor([rows, columns])
        picked = case.index([rows, columns] if op in ("gather", "take_along_dim") else [[rows], [columns]][axis], [rows, columns][axis])
        case.args = [x, picked, axis] if op == "take_along_dim" else [x, axis, picked]
        yield case


def scattered(op, size, dtype):
    rows, columns = square(size)
    for note, axis in (("rows", 0), ("the last axis", 1)):
        case = Case(op, size, dtype, note)
        x, src = case.tensor([rows, columns]), case.tensor([rows, columns])
        by_slice = op in ("index_add", "index_copy")
        index = case.index([[rows], [columns]][axis] if by_slice else [rows, columns], [rows, columns][axis])
        case.args = [x, axis, index, src] + (["sum"] if op == "scatter_reduce" else [])
        case.why_not = "of several writes to one element either may stay" if op in ("scatter", "index_copy") else ""
        yield case


def attention(op, size, dtype):
    if not 1 << 16 <= size <= 1 << 20:
        return
    case = Case(op, size, dtype, f"12 x {size >> 9} x 64")
    dims = [1, 12, size >> 9, 64]
    case.args = [case.tensor(dims, low=-1, high=1) for _ in range(3)]
    yield case


def cast(op, size, dtype):
    pairs = [("f32", to) for to in ("f16", "bf16", "u8", "i64", "f64", "i32")] + [(of, "f32") for of in ("f16", "bf16", "u8", "i64", "f64")]
    for of, to in pairs if dtype == "f32" else []:
        case = Case(op, size, dtype, f"{of} to {to}")
        case.args = [case.tensor(square(size), of, 0 if "u8" in (of, to) else -100, 100), {"dtype": to}]
        case.peer, case.peer_args = "_to_copy", case.args[:1]
        case.peer_kwargs = {"dtype": {"dtype": to}}
        yield case


def made(op, size, dtype):
    values = {"full": [1.5], "eye": []}
    case = Case(op, size, dtype)
    case.args = [square(size)[0]] if op == "eye" else [square(size)] + values.get(op, [])
    case.kwargs, case.peer_kwargs = {"device": {"device": True}}, {}
    case.peer_args = case.args
    yield case


def spaced(op, size, dtype):
    """As many numbers as the size demands."""
    case = Case(op, size, dtype)
    case.args = {"randperm": [size], "linspace": [0.0, 1.0, size], "logspace": [0.0, 1.0, size]}.get(op, square(size))
    case.kwargs, case.peer_kwargs = {"device": {"device": True}}, {}
    yield case


def equal_tensors(op, size, dtype):
    """Equal tensors, because PyTorch's op stops at the first difference."""
    case = Case(op, size, dtype)
    case.args = [case.tensor(square(size), low=1, high=1), case.tensor(square(size), low=1, high=1)]
    yield case


def arange(op, size, dtype):
    case = Case(op, size, dtype)
    case.args, case.kwargs = [size * 1.0], {"device": {"device": True}}
    case.peer_kwargs = {}
    yield case


def simple(*arguments, peer=None, peer_arguments=None, note="", why_not=""):
    """Makes a function that yields one case. `X` stands for a square tensor; a function of the dims is replaced by its result."""
    def make(op, size, dtype):
        dims, case = square(size), Case(op, size, dtype, note)
        x = case.tensor(dims)
        fill = lambda values: [x if v is X else v(case, dims) if callable(v) else v for v in values]  # noqa: E731
        case.args = fill(arguments)
        case.peer, case.why_not = peer or case.peer, why_not
        if peer_arguments is not None:
            case.peer_args = fill(peer_arguments)
        yield case
    return make


def also(*makers):
    def make(op, size, dtype):
        for maker in makers:
            yield from maker(op, size, dtype)
    return make


def tensor(dims, **range_or_dtype):
    """An argument: a tensor whose dims are computed from the dims of the square tensor and from the case."""
    return lambda case, square_dims: case.tensor(dims(square_dims, case.size), **range_or_dtype)


def tensors(*dims):
    return lambda case, square_dims: {"ts": [case.tensor(each(square_dims, case.size))["t"] for each in dims]}


def batch(dims, size):
    """Eight square matrices."""
    side = max(1, int(math.sqrt(size / 8)))
    return [8, side, side]


def rows(dims, size):
    return [dims[0]]


def columns(dims, size):
    return [dims[1]]


def whole(dims, size):
    return [size]


def picture(dims, size):
    """Sixteen channels."""
    side = max(2, int(math.sqrt(size / 16)) // 2 * 2)
    return [1, 16, side, side]


X = object()
NO_PEER = "PyTorch has no op for it"
COMPLEX = "PyTorch's has complex numbers, which are pairs here"
CASES = {
    **{op: elementwise_pair_wide for op in ("add", "mul", "div", "maximum")},
    **{op: elementwise_pair for op in ("sub", "pow", "fmod", "remainder", "floor_divide", "eq", "lt", "gt", "le", "ge", "ne")},
    **{op: reduction for op in ("sum", "mean", "amax", "amin", "any", "all", "l1_norm", "l2_norm", "sum_square", "log_sum",
                                "log_sum_exp", "var", "std")},
    "prod": prod,
    **{op: arg_reduction for op in ("argmax", "argmin")},
    **{op: extremum for op in ("max", "min")},
    **{op: softmax for op in ("softmax", "log_softmax")},
    **{op: norm for op in ("layer_norm", "rms_norm")},
    **{op: channels for op in ("batch_norm", "group_norm", "instance_norm")},
    **{op: matmul for op in ("matmul", "linear")},
    **{op: convolution for op in ("conv", "conv1d", "conv2d", "conv3d", "conv_transpose")},
    **{op: pooling for op in ("max_pool", "max_pool_with_indices", "avg_pool", "max_pool2d", "avg_pool2d")},
    "adaptive_avg_pool": simple(lambda c, d: c.tensor([1, 4, d[0] // 2, d[1] // 2]), [1, 1]),
    **{op: indexed for op in ("gather", "index_select", "gather_slices", "take_along_dim")},
    **{op: scattered for op in ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy")},
    "take": simple(X, lambda c, d: c.index(d, d[0] * d[1])),
    "embedding": simple(X, lambda c, d: c.index([d[0]], d[0])),
    "scaled_dot_product_attention": attention,
    "cast": cast,
    "to": simple(X, {"device": True}, peer="alias", peer_arguments=[X]),
    "arange": arange,
    "linspace": spaced, "logspace": spaced, "randperm": spaced, "tril_indices": spaced, "triu_indices": spaced,
    "equal": equal_tensors, "bincount": simple(lambda c, d: c.tensor([c.size], "i64", 0, 1000)),
    "searchsorted": simple(lambda c, d: c.tensor([1024], low=1, high=1), lambda c, d: c.tensor(d)),
    **{op: made for op in ("empty", "full", "zeros", "ones", "eye", "rand", "randn")},
    **{op: simple([1], 1, 0, why_not="PyTorch's numbers are other ones") for op in ("philox_uniform", "philox_normal")},
    "one_hot": simple(lambda c, d: c.index([d[0]], d[1]), lambda c, d: d[1]),
    "clamp": simple(X, -1.0, 1.0),
    "where": simple(lambda c, d: c.tensor(d, "bool"), X, lambda c, d: c.tensor(d)),
    "fma": simple(X, lambda c, d: c.tensor(d), lambda c, d: c.tensor(d), peer="addcmul",
                  peer_arguments=[{"t": 2}, {"t": 0}, {"t": 1}]),
    "prelu": simple(X, lambda c, d: c.tensor([d[1]])),
    "gelu_tanh": simple(X, why_not="it is gelu with a keyword there"),
    "selu": simple(X), "hard_sigmoid": simple(X), "celu": simple(X), "shrink": simple(X, 0.5),
    "thresholded_relu": simple(X, 1.0, peer="threshold", peer_arguments=[X, 1.0, 0.0]),
    "dropout": simple(X, 0.5, True), "bernoulli": simple(X),
    "pad": simple(X, [1, 1, 1, 1]),
    "tile": simple(lambda c, d: c.tensor([max(1, d[0] // 2), d[1] // 2]), [2, 2]),
    "reshape": simple(X, [-1]), "view": simple(X, [-1]), "flatten": simple(X),
    "unflatten": simple(X, 0, [-1, 2]), "permute": simple(X, [1, 0]), "transpose": simple(X, 0, 1), "t": simple(X),
    "movedim": simple(X, [0], [1]), "squeeze": simple(X), "unsqueeze": simple(X, 0),
    "expand": simple(lambda c, d: c.tensor([1, d[1]]), lambda c, d: d),
    "broadcast_to": simple(lambda c, d: c.tensor([1, d[1]]), lambda c, d: d),
    "expand_as": simple(lambda c, d: c.tensor([1, d[1]]), X),
    "slice": also(simple(X, 0, 0, 1, 1), simple(X, 1, None, None, 2, note="step 2")),
    "narrow": simple(X, 0, 0, 1), "select": simple(X, 0, 0),
    "flip": also(simple(X, [0], note="rows"), simple(X, [1], note="the last axis"), simple(X, [0, 1], note="both")),
    "contiguous": also(simple(X), lambda op, size, dtype: [one_transposed(op, size, dtype)]),
    "clone": also(simple(X), lambda op, size, dtype: [one_transposed(op, size, dtype)]),
    "split": simple(X, 1, 0, note="into rows"), "chunk": simple(X, 2, 0),
    "split_with_sizes_copy": simple(X, lambda c, d: [d[0] // 2, d[0] // 2]),
    "slice_scatter": simple(X, lambda c, d: c.tensor([d[0] // 2, d[1]]), 0, 0, lambda c, d: d[0] // 2),
    "select_scatter": simple(X, lambda c, d: c.tensor([d[1]]), 0, 0),
    "copy_": simple(X, lambda c, d: c.tensor(d)), "copy_from": simple(X, lambda c, d: c.tensor(d)),
    "fill_": simple(X, 1.5), "zero_": simple(X),
    "mv": simple(X, tensor(columns)), "addmv": simple(tensor(rows), X, tensor(columns)),
    **{op: simple(tensor(whole), tensor(whole)) for op in ("dot", "vdot")},
    **{op: simple(tensor(rows), tensor(columns)) for op in ("outer", "ger")},
    "addr": simple(X, tensor(rows), tensor(columns)),
    "bmm": simple(tensor(batch), tensor(batch)), "baddbmm": simple(tensor(batch), tensor(batch), tensor(batch)),
    "addbmm": simple(tensor(lambda d, n: batch(d, n)[1:]), tensor(batch), tensor(batch)),
    "kron": simple(tensor(lambda d, n: square(d[0])), tensor(lambda d, n: square(d[1]))),
    "cross": simple(tensor(lambda d, n: [n // 3 or 1, 3]), tensor(lambda d, n: [n // 3 or 1, 3])),
    "einsum": simple("ij,kj->ik", lambda c, d: {"ts": [0, c.tensor(d)["t"]]}),
    "meshgrid": simple(tensors(rows, columns)),
    "cartesian_prod": simple(tensors(rows, columns)),
    "diagflat": simple(tensor(lambda d, n: rows(d, n))), "diag_embed": simple(tensor(rows)), "vander": simple(tensor(rows)),
    "swapaxes": simple(X, 0, 1),
    "repeat": simple(tensor(lambda d, n: [max(1, d[0] // 2), d[1] // 2]), [2, 2]),
    "pixel_shuffle": simple(tensor(picture), 2), "pixel_unshuffle": simple(tensor(picture), 2),
    "channel_shuffle": simple(tensor(picture), 2),
    "nll_loss": simple(X, lambda c, d: c.index([d[0]], d[1])),
    "binary_cross_entropy": simple(tensor(lambda d, n: d, low=0.01, high=0.99), tensor(lambda d, n: d, low=0.01, high=0.99)),
    "cosine_embedding_loss": simple(X, tensor(lambda d, n: d), tensor(rows, low=1, high=1)),
    "bucketize": simple(X, tensor(lambda d, n: [1024], low=1, high=1)),
    "clip": simple(X, -1.0, 1.0),
    "bernoulli_": simple(X, 0.25),
    "put": simple(X, lambda c, d: c.index([c.size], c.size), tensor(whole), why_not="of several writes either may stay"),
    "linalg_solve_triangular": "random triangles are nearly singular",
    **{op: COMPLEX for op in ("fft_c2c", "fft_c2r", "fft_fft", "fft_ifft", "fft_irfft", "fft_hfft", "fft_fftn", "fft_ifftn",
                              "fft_fft2", "fft_ifft2", "fft_irfftn", "stft", "istft")},
    **{op: "it needs a positive definite matrix, which no range of random numbers gives" for op in ("linalg_cholesky", "cholesky")},
    "dsplit": simple(tensor(lambda d, n: [2, d[0] // 2, d[1]]), 2),
    **{op: "benchmarks/gradients measures whole steps" for op in ("fused_sgd_", "fused_adam_", "fused_adamw_")},
    **{op: "benchmarks/primitives measures it" for op in ("lstm", "gru", "rnn_tanh", "rnn_relu", "recurrent_layer", "lstm_layer",
                                                         "attention", "attention_with_log_sum")},
    **{op: NO_PEER for op in ("huber", "nan_to_num_within", "one_hot_values", "nonzero_padded", "rotary_embedding",
                              "gather_nd", "scatter_nd", "resize", "quantize_linear", "dequantize_linear", "quantized_matmul", "quantized_conv", "quantized_add",
                              "quantized_mul")},
    **{op: "its peer goes by another name and other arguments" for op in ("lp_pool", "interpolate", "embedding_bag", "index_put",
                                                                         "unfold", "fold", "bilinear")},
    **{op: simple(0, 1000, lambda c, d: d, why_not="its numbers are other ones") for op in ("randint",)},
    "randint_like": simple(X, 0, 1000, why_not="its numbers are other ones"),
    "normal": simple(tensor(lambda d, n: d), tensor(lambda d, n: d, low=0.5, high=1)),
    "multinomial": simple(tensor(lambda d, n: d, low=0.1, high=1), 1),
    **{op: "it is part of a gradient, which benchmarks/gradients measures"
       for op in ("max_pool_with_indices_backward", "avg_pool_backward", "layer_norm_with_statistics", "layer_norm_backward",
                  "batch_norm_with_statistics", "batch_norm_backward", "conv_grad_weight")},
}


def one_transposed(op, size, dtype):
    a, b = square(size)
    case = Case(op, size, dtype, "of a transposed")
    case.args = [case.tensor([b, a], order=[1, 0])]
    # A clone is row-major here; PyTorch's keeps the order unless told otherwise.
    case.peer, case.peer_args, case.peer_kwargs = "clone", case.args, {"memory_format": 0}
    return case


def integer_only(op, abi):
    domain = abi.scalar_ops.get(op.form, {}).get(op.scalar_op, ("ANY",))[0]
    return domain in ("BITS", "INTEGER")


def cases(sizes=SIZES, dtypes=("f32", *NARROW)):
    """Yields (row name, case line) for every row; a row without a case has a sentence instead of the line."""
    ops, _ = load(ROOT / "core/ops/ops.yaml", ROOT / "ep_api")
    abi = read_abi(ROOT / "ep_api")
    for op in ops:
        maker = CASES.get(op.name, by_signature)
        if isinstance(maker, str):
            yield op.name, maker
            continue
        for dtype in dtypes:
            if dtype != "f32" and op.name not in MANY_TYPES:
                continue
            for size in sizes:
                yield from lines(op, maker, size, "i32" if dtype == "f32" and integer_only(op, abi) else dtype)


def lines(op, maker, size, dtype):
    try:
        made_cases = list(by_signature(Case(op.name, size, dtype), op) if maker is by_signature else maker(op.name, size, dtype))
    except KeyError as error:
        yield op.name, str(error)
        return
    for case in made_cases:
        yield op.name, case.line()
