"""Which calls of each op are rows of the sweep: by its signatures in ops.yaml, or by an entry of CALLS.

The arguments of a call are Python text over these names (sides.py):

    s, r, n        the shape of the row, its rank, its number of elements; a call may name the items of its shapes
    x(...), y(...)   the first tensor, and further ones; without dims they have the row's shape; low=, high=: their range
    row, column    dims of one row and of one column of the shape
    mask, index(..., below=N), shuffled(..., dim), sorted_(n), spd(), triangle(), pairs()   bools, positions, positions
                   without repetition, ascending numbers, positive definite and triangular matrices, complex numbers
    dtype          the dtype of the row
"""

import pathlib
import sys
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "core/ops"))

from generator.model.op_list import load  # noqa: E402

TINY, LINES = ((4,),), ((1 << 14,), (1 << 18,), (1 << 22,), (65537,))
SHORT = ((300000, 1), (100000, 3), (65536, 4), (29127, 9), (20000, 17), (3, 100000), (17, 20000), (1, 300000), (64, 3, 1024))
ODD = ((1000, 257), (31, 31, 31, 9), (2, 3, 5, 7, 11, 13))
SQUARES = ((512, 512), (2048, 1024))
IMAGES = ((1, 3, 224, 224), (8, 64, 28, 28), (2, 17, 31, 33), (1, 256, 56, 56))
GENERAL = TINY + LINES + SHORT + ODD + SQUARES + IMAGES[1:]
FLAT = tuple(shape for shape in GENERAL if len(shape) == 2)
DEEP = tuple(shape for shape in GENERAL if len(shape) > 2)
WIDE = FLAT + DEEP
FEW = ((4,), (100,), (1000,), (2048,))
GRIDS = ((4, 4), (100, 257), (512, 512), (2048, 1024))
TABLES = ((4, 4), (1000, 256), (512, 512), (65536, 4), (29127, 9))
PRODUCTS = ((2, 2, 2), (1, 64, 64), (7, 13, 5), (33, 65, 129), (256, 256, 256), (512, 512, 512), (1, 1024, 1024), (1000, 3, 1000), (3, 1000, 3),
            (10000, 16, 16), (16, 10000, 16), (16, 16, 10000), (1, 1000, 10000), (10000, 1000, 1), (128, 1, 128), (255, 255, 255), (64, 4096, 64),
            (8, 512, 2048))
BATCHES = ((1, 2, 2, 2), (1000, 3, 3, 3), (1000, 4, 4, 4), (128, 16, 64, 16), (12, 128, 64, 128), (5000, 8, 8, 8), (64, 1, 128, 128), (64, 128, 128, 1),
           (2, 300, 300, 300), (32, 64, 64, 64))
MATRICES = ((2, 2), (8, 8), (100, 100), (300, 300), (1000, 4, 4), (64, 32, 32))
# Input and output channels, length of an axis, kernel, stride, padding, dilation, groups.
CONVOLUTIONS = {
    1: ((64, 64, 4096, 3, 1, 1, 1, 1), (1, 16, 16000, 400, 160, 0, 1, 1), (80, 256, 300, 3, 1, 1, 1, 1), (256, 256, 300, 5, 1, 4, 2, 1),
        (512, 512, 100, 1, 1, 0, 1, 1), (256, 256, 1000, 31, 1, 15, 1, 256)),
    2: ((3, 32, 224, 7, 2, 3, 1, 1), (5, 7, 33, 3, 1, 1, 1, 1), (17, 31, 28, 5, 1, 2, 1, 1), (64, 64, 56, 3, 1, 1, 1, 1), (64, 64, 56, 3, 1, 2, 2, 1),
        (64, 64, 56, 3, 1, 1, 1, 32), (64, 64, 56, 3, 1, 1, 1, 64), (64, 128, 56, 1, 1, 0, 1, 1), (1, 1, 512, 11, 1, 5, 1, 1), (512, 512, 7, 3, 1, 1, 1, 1),
        (96, 96, 28, 7, 1, 3, 1, 96), (32, 32, 64, 2, 2, 0, 1, 1)),
    3: ((3, 16, 32, 3, 1, 1, 1, 1), (16, 16, 16, 3, 1, 1, 1, 1), (32, 32, 8, 3, 2, 1, 1, 1), (1, 8, 48, 5, 1, 2, 1, 1))}
# Axes, input and output channels, length, kernel, stride, padding.
TRANSPOSED = ((2, 64, 32, 28, 4, 2, 1), (2, 512, 256, 7, 4, 2, 1), (2, 16, 1, 64, 2, 2, 0), (1, 512, 256, 50, 16, 8, 4), (1, 32, 1, 8000, 4, 2, 1),
              (3, 16, 8, 8, 4, 2, 1))
# Axes, channels, length, kernel, stride, padding.
POOLS = ((2, 64, 112, 3, 2, 1), (2, 64, 56, 2, 2, 0), (2, 512, 7, 7, 1, 0), (2, 3, 224, 5, 1, 2), (1, 64, 4000, 4, 4, 0), (3, 8, 32, 2, 2, 0),
         (2, 16, 28, 13, 1, 6))
# Queries, keys, heads, width.
ATTENTIONS = ((1, 128, 12, 64), (1, 2048, 32, 128), (16, 16, 8, 32), (100, 1000, 8, 64), (256, 256, 12, 64), (577, 577, 12, 64), (1024, 1024, 4, 40))
RESIZES = ((1, 3, 480, 640, 224, 224), (1, 64, 32, 32, 64, 64), (8, 3, 32, 32, 224, 224), (1, 3, 224, 224, 540, 960))
# Steps, batch, input features, state features, layers.
RECURRENT = ((100, 1, 64, 128, 1), (1, 1, 64, 128, 1), (1, 32, 256, 256, 1), (256, 16, 32, 32, 1), (50, 8, 128, 128, 2))
FFTS = ((4,), (1024,), (1 << 16,), (100003,), (8, 1009), (64, 1000), (1024, 64))


@dataclass(frozen=True)
class Call:
    """The text of the arguments; the shapes that the call may have; names for the items of a shape."""

    text: str
    shapes: tuple = GENERAL
    names: str = ""
    path: str = ""  # of the function below `torch`, if it is not named as the op is; it may use the names


def each(texts, shapes=GENERAL, names="", path=""):
    return tuple(Call(text.strip(), shapes, names, path) for text in texts.split(";"))


def convolution(axes):
    return each(f"x(1, i, *[a] * {axes}), y(o, i // g, *[k] * {axes}), None, stride, pad, dil, g", CONVOLUTIONS[axes],
                "i o a k stride pad dil g")


def pool(path, text):
    return each(text, POOLS, "axes c a k stride pad", path)


def recurrent(kind):
    return each("i, h, layers; i, h, layers, bidirectional=True", RECURRENT, "t b i h layers", f"nn.{kind}")


POSITIONS = "x(), 0, index(*s, below=s[0]){}; x(), -1, index(*s, below=s[-1]){}"
SLICES = "x(), 0, index(s[0], below=s[0]){}; x(), -1, index(s[-1], below=s[-1]){}"
UNIQUE = "x(), 0, shuffled(s[0]), y(); x(), -1, shuffled(s[-1]), y()"
IN_UNIT = "x(low=.01, high=.99), y(low=.01, high=.99)"
PAIRS = each("pairs()", FFTS)
CALLS = {
    # made from nothing
    **{op: each("s, dtype=dtype") for op in ("empty", "zeros", "ones", "rand", "randn")},
    "full": each("s, 3, dtype=dtype"), "arange": each("n; float(n); 0, n, 2"), "eye": each("s[0], s[1], dtype=dtype", GRIDS),
    "linspace": each("0.0, 1.0, n"), "logspace": each("0.0, 1.0, n"), "randperm": each("n"), "randint": each("0, 1000, s"),
    **{op: each("s[0], s[1]", GRIDS) for op in ("tril_indices", "triu_indices")},
    **{op: each("n") for op in ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "fft_fftfreq", "fft_rfftfreq")},
    "one_hot": each("index(n, below=17), 17", LINES),
    # random
    "randint_like": each("x(), 0, 100"), "normal": each("x(), y(low=.5, high=1)"), "multinomial": each("x(low=.1), 1", FLAT),
    "exponential": each("x()", path="Tensor.exponential_"), "bernoulli": each("x(low=0, high=1)"), "dropout": each("x(), 0.5, True"), "glu": each("x(), 0; x(), -1", TINY + SQUARES + IMAGES[1::2]),
    "bernoulli_": each("x(), 0.25"),
    # elements
    "cast": tuple(call for name in "float32 float16 bfloat16 float64 int8 uint8 int32 int64 bool".split()
                  for call in each(f"x(low=0, high=100), torch.{name}", path="Tensor.to")),
    "clamp": each("x(), -1, 1; x(), y(), y()"), "where": each("mask(), x(), y(); mask(), x(), 3; mask(*column), x(), y(*row)"),
    "masked_fill": each("x(), mask(), 3"), "lerp": each("x(), y(), 0.3; x(), y(), y()"), "threshold": each("x(), 1.0, 0.0"),
    "prelu": each("x(), y(1); x(), y(s[1])", WIDE), "copy_": each("x(), y()"), "fill_": each("x(), 3"), "histc": each("x(), 100, -3, 3"),
    "clone": each("x(), memory_format=torch.contiguous_format"),
    "equal": each("x(low=1, high=1), y(low=1, high=1)"), "allclose": each("x(low=1, high=1), y(low=1, high=1)"),
    "contiguous": each("x()") + each("x(), memory_format=torch.channels_last", IMAGES),
    # order
    "topk": each("x(), 1; x(), min(10, s[-1]); x(), min(10, s[0]), 0"), "kthvalue": each("x(), 1 + s[-1] // 2"),
    "searchsorted": each("sorted_(1024), x()"), "bucketize": each("x(), sorted_(1024)"), "isin": each("x(), y(64)"),
    "bincount": each("index(n, below=1000)", TINY + LINES), "masked_select": each("x(), mask()"),
    # norms
    **{op: each("x(), s[-1:]; x(), s[-1:], y(*row)" + ("; x(), s[-1:], y(*row), y(*row)" if op == "layer_norm" else "")) for op in ("layer_norm", "rms_norm")},
    "batch_norm": each("x(), y(c), y(c, low=.5, high=2), y(c), y(c); x(), None, None, y(c), y(c), True", IMAGES, "b c h w", "nn.functional.batch_norm"),
    "group_norm": each("x(), 1, y(c), y(c)", IMAGES, "b c h w") + each("x(), c // 4, y(c), y(c)", IMAGES[1::2], "b c h w"),
    "instance_norm": each("x(); x(), weight=y(c), bias=y(c)", IMAGES, "b c h w", "nn.functional.instance_norm"),
    # products
    "matmul": each("x(m, k), y(k, n)", PRODUCTS, "m k n") + each("x(b, m, k), y(b, k, n); x(b, m, k), y(k, n)", BATCHES, "b m k n"),
    "mm": each("x(m, k), y(k, n)", PRODUCTS, "m k n"), "addmm": each("x(m, n), y(m, k), y(k, n); x(n), y(m, k), y(k, n)", PRODUCTS, "m k n"),
    "linear": each("x(m, k), y(n, k); x(m, k), y(n, k), y(n)", PRODUCTS, "m k n"), "bmm": each("x(b, m, k), y(b, k, n)", BATCHES, "b m k n"),
    "baddbmm": each("x(b, m, n), y(b, m, k), y(b, k, n)", BATCHES, "b m k n"),
    "addbmm": each("x(m, n), y(b, m, k), y(b, k, n)", BATCHES, "b m k n"),
    "mv": each("x(), y(s[1])", FLAT), "addmv": each("x(s[0]), y(*s), y(s[1])", FLAT), "addr": each("x(), y(s[0]), y(s[1])", FLAT),
    **{op: each("x(), y()", TINY + LINES) for op in ("dot", "vdot")}, "outer": each("x(), y(*s)", FEW),
    "inner": each("x(m, k), y(n, k)", PRODUCTS, "m k n"), "kron": each("x(), y(3, 5)", ((4, 4), (300, 257), (1000, 9))),
    "tensordot": each("x(m, k), y(k, n), 1", PRODUCTS, "m k n") + each("x(b, m, k), y(m, k, n), 2", BATCHES, "b m k n"),
    "einsum": each("'ij,kj->ik', x(m, k), y(n, k)", PRODUCTS, "m k n") + each("'bij,bkj->bik', x(b, m, k), y(b, n, k)", BATCHES, "b m k n"),
    "bilinear": each("x(64, s[0]), y(64, s[0]), y(16, s[0], s[0])", ((4,), (33,), (128,))),
    "cross": each("x(n, 3), y(n, 3)", TINY + LINES[:2]),
    "cdist": each("x(m, k), y(n, k); x(m, k), y(n, k), 1.0", ((2, 2, 2), (500, 64, 500), (1000, 3, 1000), (100, 300, 257)), "m k n"),
    "conv1d": convolution(1), "conv2d": convolution(2), "conv3d": convolution(3),
    "conv_transpose": each("x(1, i, *[a] * axes), y(i, o, *[k] * axes), None, stride, pad", TRANSPOSED, "axes i o a k stride pad",
                           "nn.functional.conv_transpose{axes}d"),
    "scaled_dot_product_attention": each("x(1, h, q, w), y(1, h, k, w), y(1, h, k, w)", ATTENTIONS, "q k h w")
    + each("x(1, h, q, w), y(1, h, q, w), y(1, h, q, w), is_causal=True", ATTENTIONS[4:], "q k h w"),
    **{op: recurrent(kind) for op, kind in (("lstm", "LSTM"), ("gru", "GRU"), ("rnn_tanh", "RNN"))},
    # windows
    "max_pool": pool("nn.functional.max_pool{axes}d", "x(1, c, *[a] * axes), k, stride, pad"),
    "avg_pool": pool("nn.functional.avg_pool{axes}d", "x(1, c, *[a] * axes), k, stride, pad"),
    "lp_pool": pool("nn.functional.lp_pool{axes}d", "x(1, c, *[a] * axes, low=0, high=3), 2.0, k, stride"),
    "max_pool_with_indices": pool("nn.functional.max_pool{axes}d", "x(1, c, *[a] * axes), k, stride, pad, return_indices=True"),
    "max_pool2d": each("x(), 2; x(), 3, 2, 1", IMAGES), "avg_pool2d": each("x(), 2; x(), 3, 2, 1", IMAGES),
    "adaptive_avg_pool": each("x(), 1; x(), (7, 5)", IMAGES, path="nn.functional.adaptive_avg_pool2d"),
    "interpolate": each("; ".join(f"x(b, c, h, w), size=(p, q), mode='{mode}'" for mode in ("nearest", "bilinear", "bicubic")), RESIZES, "b c h w p q"),
    "unfold": each("x(), 3, padding=1", IMAGES[:3], path="nn.functional.unfold"),
    "fold": each("x(1, 9 * s[0], s[1] ** 2), (s[1], s[1]), 3, padding=1", ((3, 128), (16, 64)), path="nn.functional.fold"),
    "pad": each("x(), (1, 2)") + each("x(), (1, 1, 2, 2)", WIDE) + each("; ".join(f"x(), (3, 2, 1, 3), mode='{m}'" for m in ("reflect", "replicate", "circular")), IMAGES),
    "pixel_shuffle": each("x(), 2", ((1, 64, 64, 64), (2, 16, 33, 31))), "pixel_unshuffle": each("x(), 2", ((1, 16, 128, 128), (2, 4, 66, 62))),
    "channel_shuffle": each("x(), 2", IMAGES[1::2]),
    # positions
    "gather": each(POSITIONS.replace("{}", "")), "take": each("x(), index(*s, below=n)"), "index_select": each(SLICES.replace("{}", "")),
    "take_along_dim": each("x(), index(*s, below=s[0]), 0; x(), index(*s, below=s[-1]), -1"),
    "embedding": each("index(4096, below=s[0]), x()", TABLES, path="nn.functional.embedding"),
    "embedding_bag": each("index(256, 4, below=s[0]), x(); index(256, 4, below=s[0]), x(), mode='sum'", TABLES, path="nn.functional.embedding_bag"),
    "scatter": each("x(), 0, index(*s, below=s[0]), 3; x(), 0, shuffled(*s), y(); x(), -1, index(*s, below=s[-1]), 3"),
    "scatter_add": each(POSITIONS.replace("{}", ", y()")),
    "scatter_reduce": each(POSITIONS.replace("{}", ", y(), 'sum'") + ";" + POSITIONS.replace("{}", ", y(), 'amax'")),
    "index_add": each(SLICES.replace("{}", ", y()")), "index_copy": each(UNIQUE), "index_fill": each(SLICES.replace("{}", ", 3")),
    "put": each("x(), shuffled(n), y(n)"), "index_put": each("x(), (index(1000, below=s[0]), ), y(1); x(), (shuffled(s[0]), ), y()"),
    "masked_scatter": each("x(), mask(), y()"), "slice_scatter": each("x(), y(s[0] // 2, *s[1:]), 0, 0, s[0] // 2"),
    "select_scatter": each("x(), y(*s[1:]), 0, 0", WIDE), "nll_loss": each("x(), index(s[0], below=s[1])", FLAT),
    "cross_entropy": each("x(), index(s[0], below=s[1])", FLAT),
    # parts
    **{op: each("[x(), y()], 0; [x(), y()], -1; [x(), x()], 0") for op in ("concat", "stack")},
    **{op: each("[x(), y()]") for op in ("hstack", "vstack", "dstack", "column_stack")}, "block_diag": each("x(), y()", GRIDS[:3]),
    "cartesian_prod": each("x(), y(*s)", FEW[:3]), "meshgrid": each("x(), y(*s), indexing='ij'", FEW), "broadcast_tensors": each("x(), y(*row)"),
    "split_with_sizes_copy": each("x(), [s[0] // 2, s[0] - s[0] // 2]; x(), [s[-1] // 2, s[-1] - s[-1] // 2], -1"),
    "tile": each("x(), (2, )"), "repeat": each("x(), (2, *[1] * (r - 1))"), "repeat_interleave": each("x(), 2, 0; x(), 2, -1"), "flip": each("x(), (0, ); x(), (-1, )") + each("x(), (0, 1)", WIDE), "roll": each("x(), 1; x(), 1, 0; x(), 1, -1"),
    "rot90": each("x()", WIDE), **{op: each("x()", FEW) for op in ("diag", "diagflat", "diag_embed", "vander")},
    **{op: each("x()", WIDE) for op in ("tril", "triu", "diagonal", "trace", "fliplr", "flipud", "adjoint")},
    # views
    "split": each("x(), 1 + s[0] // 3; x(), 1 + s[-1] // 3, -1"), "unbind": each("x(); x(), -1", GRIDS[:3]),
    "reshape": each("x(), (-1, )"), "view": each("x(), (-1, )"), "unflatten": each("x(), 0, (-1, 1)"), "permute": each("x(), tuple(reversed(range(r)))"),
    "transpose": each("x(), 0, -1"), "swapaxes": each("x(), 0, -1"), "movedim": each("x(), 0, -1"), "expand": each("x(1, *s[1:]), s"),
    "broadcast_to": each("x(1, *s[1:]), s"), "expand_as": each("x(1, *s[1:]), y()"), "narrow": each("x(), 0, 0, 1"), "select": each("x(), 0, 0"),
    "slice": each("x(), (..., slice(None, None, 2))", path="Tensor.__getitem__"),
    # losses
    **{op: each("x(), y()", path=f"nn.functional.{op}") for op in ("kl_div", "binary_cross_entropy_with_logits")},
    "binary_cross_entropy": each(IN_UNIT), "gaussian_nll_loss": each("x(), y(), y(low=.5, high=2)"),
    "margin_ranking_loss": each("x(), y(), y(low=1, high=1)"), "cosine_embedding_loss": each("x(), y(), y(s[0], low=1, high=1)", FLAT),
    # spectra
    **{op: PAIRS for op in ("fft_fft", "fft_ifft", "fft_irfft", "fft_hfft")}, **{op: PAIRS for op in ("fft_fft2", "fft_ifft2", "fft_fftn", "fft_ifftn", "fft_irfftn")},
    **{op: each("x()", FFTS) for op in ("fft_rfft", "fft_ihfft", "fft_rfftn")},
    "stft": each("x(), 512, 128, window=y(512), return_complex=True", LINES[:2]),
    # matrices
    **{op: each("x()", MATRICES) for op in ("linalg_inv", "linalg_det", "linalg_slogdet", "linalg_lu_factor", "linalg_qr", "linalg_svd", "linalg_svdvals",
                                            "linalg_pinv", "linalg_matrix_rank", "linalg_cond", "inverse", "det", "slogdet", "pinverse")},
    **{op: each("spd()", MATRICES) for op in ("linalg_cholesky", "logdet", "linalg_eigh", "linalg_eigvalsh")},
    **{op: each("x(), 3", MATRICES) for op in ("linalg_matrix_power", "matrix_power")},
    "linalg_solve": each("x(), y()", MATRICES), "linalg_lstsq": each("x(), y()", MATRICES), "cholesky_solve": each("x(), triangle()", MATRICES),
    "linalg_solve_triangular": each("triangle(), y(), upper=False", MATRICES),
    # functions of PyTorch with these names do something else
    "resize": (), "cholesky": (), "rnn_relu": (), "istft": (),
}
# The range of an op's arguments, if not -3 to 3.
RANGES = {
    **{op: (.1, 3) for op in ("log", "log2", "log10", "sqrt", "rsqrt", "pow", "float_power", "lgamma", "digamma", "xlogy", "reciprocal")},
    **{op: (-.9, .9) for op in ("log1p", "asin", "acos", "atanh", "erfinv")}, "acosh": (1.1, 5), "logit": (.1, .9), "prod": (.9, 1.1), "cumprod": (.9, 1.1),
    **{op: (0, 4) for op in ("bitwise_left_shift", "bitwise_right_shift", "ldexp")}, "poisson_nll_loss": (0, 3), "nan_to_num": (-3, 3),
    **{op: (-1, 1) for op in ("matmul", "mm", "bmm", "linear", "addmm", "conv1d", "conv2d", "conv3d", "conv_transpose")}}


def ops():
    return load(ROOT / "core/ops/ops.yaml", ROOT / "ep_api")[0]


def calls(op):
    """The calls of an op; none if there is no rule for a parameter."""
    if op.name in CALLS:
        return CALLS[op.name]
    made = dict.fromkeys(call for signature in op.signatures for call in _by_signature(signature))
    if op.form in ("binary", "ternary") and any(call.text == "x(), y()" for call in made):
        made.update(dict.fromkeys(each("x(), y(*row); x(), y(*column); x(*row), y()", WIDE)))
    return tuple(made)


def _by_signature(signature):
    """The call with the parameters that have no default, along each axis if one is named dim."""
    texts, axis = [], None
    if signature.parameters[0].type == "Scalar":
        return
    for parameter in signature.parameters:
        if parameter.name in ("dim", "dims") and parameter.type in ("int", "int[1]"):
            axis = axis or ("dim={}" if parameter.default is not None or parameter.optional else "{}")
            texts += [axis] if parameter.default is None and not parameter.optional else []
        elif parameter.default is None and not parameter.keyword_only:
            texts.append(_argument(parameter, texts))
    if None in texts:
        return
    required = axis in texts
    if axis and not required:
        yield Call(", ".join(texts))
        texts.append(axis)
    text = ", ".join(texts)
    if axis is None:
        yield Call(text)
        return
    yield from (Call(text.replace("{}", "-1")), Call(text.replace("{}", "0"), WIDE), Call(text.replace("{}", "1"), DEEP))


def _argument(parameter, earlier):
    kind = parameter.type
    if kind in ("Tensor", "Tensor!", "Tensor|Scalar"):
        return ("y" if any(text.startswith("x(") for text in earlier) else "x") + "()"
    if kind == "Tensor[]":
        return "[x(), y()]"
    return {"Scalar": "3", "float": "0.5", "bool": "False", "int": "2"}.get(kind)
