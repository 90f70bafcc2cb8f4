"""Functions of PyTorch that have no row in the op list, written in ops: parts of decompositions, copies of views,
random numbers and others."""

import collections
import itertools
import math

from tenon import _tenon
from tenon._public import decorators_of
from tenon._public import refuse as _refuse
from tenon._tenon import Tensor

public, both = decorators_of(globals())


def _as_sizes(size):
    return (size,) if hasattr(size, "__index__") else tuple(size)


# ---- functions of complex numbers, for real input ----

def _itself(name):
    def same(input):
        return input
    same.__name__, same.__doc__ = name, "input itself, since no dtype is complex."
    (both if name != "real" else public)(same)


for _name in ("conj", "conj_physical", "resolve_conj", "resolve_neg", "real"):
    _itself(_name)


@both
def angle(input):
    """The angle of each real number in the complex plane: 0 for positive input, pi for negative input, NaN for NaN."""
    wide = input if input.dtype.is_floating_point else _tenon.cast(input, _tenon.f32)
    return _tenon.where(wide < 0, math.pi, _tenon.where(_tenon.isnan(wide), wide, 0.0))


# ---- matrices ----

def _of_linalg(name, as_method=True):
    def function(*args, **kwargs):
        from tenon import linalg
        return getattr(linalg, name)(*args, **kwargs)
    function.__name__, function.__doc__ = name, f"As tenon.linalg.{name}."
    (both if as_method else public)(function)


for _name in ("lu_unpack", "matrix_exp"):
    _of_linalg(_name, _name == "matrix_exp")


@both
def lu(A, pivot=True, get_infos=False):
    """L and U in one matrix, and the pivots, like linalg.lu_factor.

    get_infos also returns info, which is always 0 because failures raise errors."""
    from tenon import linalg
    factors, pivots, info = linalg.lu_factor_ex(A, pivot=pivot)
    return (factors, pivots, info) if get_infos else (factors, pivots)


@both
def lu_solve(b, LU_data, LU_pivots):
    """Returns X with A @ X = b. LU_data and LU_pivots are the results of linalg.lu_factor(A)."""
    from tenon import linalg
    return linalg.lu_solve(LU_data, LU_pivots, b)


_Svd = collections.namedtuple("svd", ["U", "S", "V"])
_Qr = collections.namedtuple("qr", ["Q", "R"])
_TriangularSolve = collections.namedtuple("triangular_solve", ["solution", "cloned_coefficient"])


@both
def svd(input, some=True, compute_uv=True):
    """Singular value decomposition: U, S and V with input = U @ diag(S) @ V.T.

    some: U (..., m, k) and V (..., n, k) with k = min(m, n); otherwise both are square. compute_uv=False returns
    zeros for U and V.
    """
    if not compute_uv:
        values = _tenon.linalg_svdvals(input)
        square = [_tenon.zeros((*input.shape[:-2], side, side), dtype=input.dtype, device=input.device) for side in input.shape[-2:]]
        return _Svd(square[0], values, square[1])
    from tenon import linalg
    u, values, vh = linalg.svd(input, not some)
    return _Svd(u, values, _tenon.transpose(vh, -2, -1))


@both
def qr(input, some=True):
    """Q and R of linalg.qr, in mode "reduced" if `some`, else "complete"."""
    from tenon import linalg
    return _Qr(*linalg.qr(input, "reduced" if some else "complete"))


@both
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """Returns X with A @ X = b (transpose: A.T @ X = b), and a copy of A. Reads only the upper (or lower) triangle
    of A."""
    matrix = _tenon.transpose(A, -2, -1) if transpose else A
    return _TriangularSolve(_tenon.linalg_solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular), _tenon.clone(A))


@both
def cholesky_inverse(input, upper=False):
    """Returns the inverse of the matrix whose Cholesky factor is input."""
    if input.ndim < 2 or input.size(-1) != input.size(-2):
        _refuse(f"cholesky_inverse: input must hold square matrices, but its shape is {tuple(input.shape)}.")
    eye = _tenon.eye(input.size(-1), dtype=input.dtype, device=input.device)
    return _tenon.cholesky_solve(_tenon.expand(eye, tuple(input.shape)), input, upper)


@public
def svd_lowrank(A, q=6, niter=2, M=None):
    """Approximate U, S and V of the q greatest singular values, by random projections (Halko et al. 2009).

    niter: power iterations, each of which makes the result more precise. M: is subtracted from A first."""
    A = A if M is None else A - _tenon.broadcast_to(M, tuple(A.shape))
    m, n = A.shape[-2:]
    turned = m < n
    B = _tenon.transpose(A, -2, -1) if turned else A
    q_ = _tenon.linalg_qr(_tenon.matmul(B, _tenon.randn((B.size(-1), q), dtype=A.dtype, device=A.device)))[0]
    for _ in range(niter):
        q_ = _tenon.linalg_qr(_tenon.matmul(_tenon.transpose(B, -2, -1), q_))[0]
        q_ = _tenon.linalg_qr(_tenon.matmul(B, q_))[0]
    u, values, vh = _tenon.linalg_svd(_tenon.matmul(_tenon.transpose(q_, -2, -1), B), False)
    u, v = _tenon.matmul(q_, u), _tenon.transpose(vh, -2, -1)
    return (v, values, u) if turned else (u, values, v)


@public
def pca_lowrank(A, q=None, center=True, niter=2):
    """svd_lowrank of A. `center` first subtracts the mean of each column."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    return svd_lowrank(A - _tenon.mean(A, -2, True) if center else A, q, niter)


# ---- shapes ----

@public
def broadcast_shapes(*shapes):
    """Returns the shape that all shapes broadcast to."""
    listed = [_as_sizes(each) for each in shapes]
    result = []
    for lengths in itertools.zip_longest(*(reversed(each) for each in listed), fillvalue=1):
        longer = {length for length in lengths if length != 1}
        if len(longer) > 1 or any(length < 0 for length in lengths):
            _refuse(f"broadcast_shapes: shapes {', '.join(map(str, listed))} do not broadcast.")
        result.append(longer.pop() if longer else 1)
    return tuple(reversed(result))


@public
def combinations(input, r=2, with_replacement=False):
    """Returns all combinations of r elements of a list, one per row, in the order of their positions."""
    if input.ndim != 1:
        _refuse(f"combinations: input must be a list, but its shape is {tuple(input.shape)}.")
    if r < 0:
        _refuse(f"combinations: r must not be negative, but it is {r}.")
    if r == 0:
        return _tenon.empty((0,), dtype=input.dtype, device=input.device)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.size(0)), r))
    if not rows:
        return _tenon.reshape(_tenon.narrow(input, 0, 0, 0), (0, r))
    return _tenon.reshape(_tenon.index_select(input, 0, _tenon.tensor([at for row in rows for at in row], device=input.device)), (len(rows), r))


@both
def sum_to_size(self, *size):
    """Sums over the axes along which a tensor of this size would be broadcast to the shape of self."""
    size = tuple(size[0]) if len(size) == 1 and not hasattr(size[0], "__index__") else size
    if not size:
        return _tenon.sum(self)
    shape = tuple(self.shape)
    padded = (1,) * (len(shape) - len(size)) + tuple(size)
    if len(size) > len(shape) or any(want not in (1, have) for want, have in zip(padded, shape)):
        _refuse(f"sum_to_size: size {size} is not expandable to size {shape}.")
    axes = [i for i, (want, have) in enumerate(zip(padded, shape)) if want != have]
    summed = _tenon.sum(self, axes, True) if axes else self
    return _tenon.reshape(summed, size)


@both
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """Returns a copy of input whose diagonal(input, offset, dim1, dim2) is replaced by src."""
    places = _tenon.reshape(_tenon.arange(input.numel(), device=input.device), tuple(input.shape))
    at = _tenon.diagonal(places, offset, dim1, dim2)
    if tuple(at.shape) != tuple(src.shape):
        _refuse(f"diagonal_scatter: src has shape {tuple(src.shape)}, but the diagonal {tuple(at.shape)}.")
    return _tenon.put(input, at, _tenon.cast(src, input.dtype))


def _copies(name, of, keep=public):
    def copy(input, *args, **kwargs):
        made = of(input, *args, **kwargs)
        return tuple(_tenon.clone(each) for each in made) if isinstance(made, (tuple, list)) else _tenon.clone(made)
    copy.__name__, copy.__doc__ = name, f"Like {name.removesuffix('_copy')}, but returns a copy."
    keep(copy)


_copies("narrow_copy", _tenon.narrow, both)
for _name in ("expand", "diagonal", "view", "permute", "squeeze", "unsqueeze", "transpose", "t", "unbind"):
    _copies(_name + "_copy", getattr(_tenon, _name))
_copies("alias_copy", lambda input: input)


@public
def unfold_copy(input, dimension, size, step):
    """Returns windows of `size` elements along the axis `dimension`, `step` apart. That axis counts the windows, and
    a new last axis holds their elements."""
    whole = input.ndim == 0
    input = _tenon.reshape(input, (1,)) if whole else input
    axis, length = dimension % input.ndim, input.size(dimension)
    if not 0 <= size <= length or step <= 0:
        _refuse(f"unfold_copy: size must be within 0 and {length}, and step above 0; they are {size} and {step}.")
    count = (length - size) // step + 1
    places = _tenon.unsqueeze(_tenon.arange(count, device=input.device) * step, 1) + _tenon.arange(size, device=input.device)
    windows = _tenon.movedim(_tenon.gather_slices(input, axis, places), axis + 1, -1)
    return _tenon.reshape(windows, (size,)) if whole else windows


@both
def unsafe_chunk(input, chunks, dim=0):
    """Same as chunk."""
    return _tenon.chunk(input, chunks, dim)


@both
def unsafe_split(input, split_size, dim=0):
    """Same as split."""
    return _tenon.split(input, split_size, dim)


@both
def split_with_sizes(input, split_sizes, dim=0):
    """Returns views of consecutive parts along dim, of the lengths split_sizes."""
    return _tenon.split(input, list(split_sizes), dim)


@public
def unravel_index(indices, shape):
    """Converts positions in a flattened tensor of this shape to coordinates: one tensor for each axis."""
    shape = _as_sizes(shape)
    if indices.dtype.is_floating_point or indices.dtype == _tenon.bool:
        _refuse(f"unravel_index: indices must hold integers, not {indices.dtype.name}.")
    indices = _tenon.cast(indices, _tenon.i64)
    if any(length < 0 for length in shape):
        _refuse(f"unravel_index: the shape must not be negative, but it is {shape}.")
    count = math.prod(shape)
    if indices.numel() and bool(_tenon.any(_tenon.logical_or(indices < -count, indices >= count)).item()):
        _refuse(f"unravel_index: an index is outside of the {count} elements of shape {shape}.")
    result, rest = [], _tenon.where(indices < 0, indices + count, indices)
    for length in reversed(shape):
        result.append(_tenon.remainder(rest, max(length, 1)))
        rest = _tenon.floor_divide(rest, max(length, 1))
    return tuple(reversed(result))


@public
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """Returns a tensor with undefined elements. physical_layout lists its axes in their order in memory, outermost
    first."""
    size, order = tuple(size), tuple(physical_layout)
    if sorted(axis % max(len(size), 1) for axis in order) != list(range(len(size))):
        _refuse(f"empty_permuted: physical_layout must name each of {len(size)} axes once, not {order}.")
    made = _tenon.empty([size[axis] for axis in order], dtype=dtype or _tenon.f32, device=device)
    made = _tenon.permute(made, [order.index(axis) for axis in range(len(size))])
    return made.requires_grad_() if requires_grad else made


@public
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Returns a number as a tensor of rank 0, f32 by default."""
    return _tenon.tensor(s, dtype=_tenon.f32 if dtype is None else dtype, device=device, requires_grad=requires_grad)


@public
def fill(input, value):
    """Returns a tensor with the shape, dtype and device of input whose elements all are `value`, a number or a
    tensor of rank 0."""
    if isinstance(value, Tensor):
        if value.ndim:
            _refuse(f"fill: value must have rank 0, but its shape is {tuple(value.shape)}.")
        return _tenon.cast(_tenon.expand(value, tuple(input.shape)), input.dtype).clone()
    return _tenon.full_like(input, value)


@public
def constant_pad_nd(input, pad, value=0):
    """Same as pad with mode "constant"."""
    return _tenon.pad(input, list(pad), "constant", value)


@both
def nonzero_static(input, *, size, fill_value=-1):
    """Returns the first `size` rows of nonzero(input). Missing rows are filled with fill_value."""
    if size < 0:
        _refuse(f"nonzero_static: 'size' must be an non-negative integer, not {size}.")
    positions, count = _tenon.nonzero_padded(input, size)
    positions = positions if input.ndim else _tenon.narrow(positions, 1, 0, 0)
    return _tenon.where(_tenon.unsqueeze(_tenon.arange(size, device=input.device) < count, 1), positions, fill_value)


# ---- element by element ----

_Frexp = collections.namedtuple("frexp", ["mantissa", "exponent"])


@both
def frexp(input):
    """Returns mantissa and i32 exponent with input = mantissa * 2 ** exponent and 0.5 <= |mantissa| < 1."""
    if not input.dtype.is_floating_point:
        _refuse(f"frexp: input must hold floats, not {input.dtype.name}.")
    wide = _tenon.cast(input, _tenon.f64)
    regular = _tenon.logical_and(_tenon.isfinite(wide), wide != 0)
    magnitude = _tenon.where(regular, _tenon.abs(wide), 1.0)
    exponent = _tenon.floor(_tenon.log2(magnitude)) + 1
    mantissa = magnitude * _tenon.exp2(-exponent)
    exponent = _tenon.where(mantissa >= 1, exponent + 1, _tenon.where(mantissa < 0.5, exponent - 1, exponent))
    exponent = _tenon.where(regular, exponent, 0.0)
    half = _tenon.exp2(_tenon.trunc(exponent * -0.5))
    mantissa = wide * half * _tenon.exp2(-exponent - _tenon.trunc(exponent * -0.5))
    return _Frexp(_tenon.cast(_tenon.where(regular, mantissa, wide), input.dtype), _tenon.cast(exponent, _tenon.i32))


@both
def renorm(input, p, dim, maxnorm):
    """Scales down the slices along dim whose p-norm is greater than maxnorm, so that it is maxnorm."""
    if not p > 0 or maxnorm < 0:
        _refuse(f"renorm: p must be above 0 and maxnorm at least 0, not {p} and {maxnorm}.")
    if input.ndim < 2:
        _refuse(f"renorm: input must have rank at least 2, but its shape is {tuple(input.shape)}.")
    axes = [axis for axis in range(input.ndim) if axis != dim % input.ndim]
    wide = _tenon.cast(input, _tenon.f32) if input.dtype in (_tenon.f16, _tenon.bf16) else input
    lengths = _tenon.vector_norm(wide, float(p), axes, True)
    return _tenon.cast(wide * _tenon.where(lengths > maxnorm, maxnorm / (lengths + 1e-7), 1.0), input.dtype)


def _of_special(name, method=None, as_method=True):
    def function(*args, **kwargs):
        from tenon import special
        return getattr(special, method or name)(*args, **kwargs)
    function.__name__, function.__doc__ = name, f"As tenon.special.{method or name}."
    (both if as_method else public)(function)


for _name, _other in (("i0", None), ("igamma", "gammainc"), ("igammac", "gammaincc"), ("mvlgamma", "multigammaln")):
    _of_special(_name, _other)
_of_special("polygamma", as_method=False)


@both
def index_reduce(input, dim, index, source, reduce, *, include_self=True):
    """Returns a copy of input in which slice index[i] along dim is combined with slice i of source.

    reduce: "prod", "mean", "amax" or "amin". include_self=False does not include the slices of input themselves."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        _refuse(f"index_reduce: reduce is '{reduce}'; it may be prod, mean, amax or amin.")
    if index.ndim > 1:
        _refuse(f"index_reduce: index must be a list, but its shape is {tuple(index.shape)}.")
    if input.dtype != source.dtype:
        _refuse(f"index_reduce: input and source must have one dtype, not {input.dtype.name} and {source.dtype.name}.")
    whole = input.ndim == 0
    input, source = (_tenon.reshape(each, (1,)) if each.ndim == 0 else each for each in (input, source))
    axis = dim % input.ndim
    shape = (-1,) + (1,) * (input.ndim - 1 - axis)
    places = _tenon.expand(_tenon.reshape(_tenon.cast(index, _tenon.i64), shape), tuple(source.shape))
    result = _tenon.scatter_reduce(input, axis, places, source, reduce, include_self=include_self)
    return _tenon.reshape(result, ()) if whole else result


def _in_place(name):
    function = globals()[name]

    def write(self, *args, **kwargs):
        result = function(self, *args, **kwargs)
        if not self.dtype.is_floating_point and result.dtype.is_floating_point:
            _refuse(f"{name}_: the result is {result.dtype.name}, which cannot be stored in a tensor of {self.dtype.name}.")
        return _tenon.copy_(self, result)
    write.__name__, write.__doc__ = name + "_", f"As {name}, written into the tensor."
    setattr(Tensor, write.__name__, write)


def _polygamma_(self, n):
    """Like polygamma, written into the tensor."""
    from tenon import special
    return _tenon.copy_(self, special.polygamma(n, self))


Tensor.polygamma_ = _polygamma_


def _polygamma(self, n):
    """Like tenon.special.polygamma."""
    return globals()["polygamma"](n, self)


Tensor.polygamma = _polygamma
for _name in ("renorm", "conj_physical", "i0", "igamma", "igammac", "mvlgamma", "index_reduce"):
    _in_place(_name)


# ---- random numbers, written into a tensor ----

def _uniform(self, generator):
    """Returns random numbers between 0 and 1, exclusive, in f32 or f64."""
    dtype = _tenon.f64 if self.dtype == _tenon.f64 else _tenon.f32
    drawn = _tenon.rand(tuple(self.shape), dtype=dtype, device=self.device, generator=generator)
    return _tenon.clamp(drawn, 2.0**-54 if dtype == _tenon.f64 else 2.0**-26)


def _drawn(name):
    def decorate(function):
        def write(self, *args, generator=None, **kwargs):
            if not self.dtype.is_floating_point and name != "geometric_":
                _refuse(f"{name}: the tensor must hold floats, not {self.dtype.name}.")
            with _no_grad():
                return _tenon.copy_(self, _tenon.cast(function(self, generator, *args, **kwargs), self.dtype))
        write.__name__, write.__doc__ = name, function.__doc__
        setattr(Tensor, name, write)
        return function
    return decorate


def _no_grad():
    from tenon.autograd import no_grad
    return no_grad()


@_drawn("cauchy_")
def _cauchy(self, generator, median=0.0, sigma=1.0):
    """Fills the tensor with random numbers of the Cauchy distribution with location `median` and scale `sigma`."""
    if sigma <= 0:
        _refuse(f"cauchy_: sigma must be above 0, not {sigma}.")
    return _tenon.tan((_uniform(self, generator) - 0.5) * math.pi) * sigma + median


@_drawn("geometric_")
def _geometric(self, generator, p):
    """Fills the tensor with random numbers of trials up to the first success, which has probability p."""
    if not 0 < p < 1:
        _refuse(f"geometric_: p must be within 0 and 1, not {p}.")
    return _tenon.ceil(_tenon.log(_uniform(self, generator)) / math.log1p(-p))


@_drawn("log_normal_")
def _log_normal(self, generator, mean=1.0, std=2.0):
    """Fills the tensor with exp(x), where x is normal with this mean and standard deviation."""
    if std <= 0:
        _refuse(f"log_normal_: std must be above 0, not {std}.")
    dtype = _tenon.f64 if self.dtype == _tenon.f64 else _tenon.f32
    return _tenon.exp(_tenon.randn(tuple(self.shape), dtype=dtype, device=self.device, generator=generator) * std + mean)


@public
def native_dropout_backward(grad_output, mask, scale):
    """The gradient of dropout with respect to its input."""
    return grad_output * _tenon.cast(mask, grad_output.dtype) * scale


@public
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Returns layer_norm, and the mean and 1 / sqrt(variance + eps) of each row."""
    axes = len(normalized_shape)
    result, mean, inverse = _tenon.layer_norm_with_statistics(input, list(normalized_shape), weight, bias, eps)
    shape = tuple(input.shape[:input.ndim - axes]) + (1,) * axes
    dtype = input.dtype
    return result, _tenon.reshape(_tenon.cast(mean, dtype), shape), _tenon.reshape(_tenon.cast(inverse, dtype), shape)


@public
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """Returns group_norm, and the mean and 1 / sqrt(variance + eps) of each group."""
    grouped = _tenon.reshape(input, (N, group, C * HxW // group))
    variance, mean = _tenon.var_mean(grouped, [2], correction=0)
    return _tenon.group_norm(input, group, weight, bias, eps), mean, _tenon.rsqrt(variance + eps)


def _grid_sampler(name):
    def sampler(input, grid, interpolation_mode, padding_mode, align_corners):
        from tenon.nn import sampling
        return sampling.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)
    sampler.__name__, sampler.__doc__ = name, "nn.functional.grid_sample, with the numbers of the modes in PyTorch."
    public(sampler)


for _name in ("grid_sampler_2d", "grid_sampler_3d"):
    _grid_sampler(_name)


# ---- distances ----

@public
def pdist(input, p=2.0):
    """Returns the p-norm distance of every pair of rows, (0, 1), (0, 2), ..., (1, 2), ..., as a list."""
    if input.ndim != 2:
        _refuse(f"pdist: input must have rank 2, but its shape is {tuple(input.shape)}.")
    if p < 0:
        _refuse(f"pdist: p must not be negative, but it is {p}.")
    rows, others = _tenon.triu_indices(input.size(0), input.size(0), 1, device=input.device)
    return _tenon.vector_norm(_tenon.index_select(input, 0, rows) - _tenon.index_select(input, 0, others), float(p), 1)


@both
def as_strided(input, size, stride, storage_offset=0):
    """Returns a copy whose element [i, j, ...] is element storage_offset + i * stride[0] + j * stride[1] + ... of the
    elements of a contiguous tensor.

    Errors: InvalidArgument for a tensor that is not contiguous, for lists of different lengths, and for positions outside.
    """
    size, stride, offset = tuple(size), tuple(stride), storage_offset or 0
    if len(size) != len(stride):
        _refuse(f"as_strided: size has {len(size)} numbers and stride has {len(stride)}.")
    if min((*size, *stride, offset), default=0) < 0:
        _refuse(f"as_strided: size {size}, stride {stride} and storage_offset {offset} must not be negative.")
    if not input.is_contiguous():
        _refuse("as_strided: the tensor is not contiguous; call contiguous() first.")
    last = offset + sum((length - 1) * step for length, step in zip(size, stride))
    if 0 not in size and last >= input.numel():
        _refuse(f"as_strided: position {last} is outside of the {input.numel()} elements.")
    positions = _tenon.full((1,) * len(size), offset, dtype=_tenon.i64, device=input.device)
    for axis, (length, step) in enumerate(zip(size, stride)):
        shape = [1] * len(size)
        shape[axis] = length
        positions = positions + (_tenon.arange(0, length, device=input.device) * step).reshape(shape)
    return _tenon.take(input.reshape(-1), positions.expand(size))
