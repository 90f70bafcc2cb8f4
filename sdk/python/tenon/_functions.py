"""Functions of PyTorch that are no ops of the list, in ops: statistics, parts of matrices, copies of views, and others."""

import collections
import functools
import itertools
import math

from tenon import _tenon
from tenon._tenon import Tensor

__all__ = []


def public(function):
    """Makes `function` one of the package, with the keyword out=."""
    function = _with_out(function)
    __all__.append(function.__name__)
    globals()[function.__name__] = function
    return function


def both(function):
    """As public, and a method of Tensor."""
    function = public(function)
    setattr(Tensor, function.__name__, function)
    return function


def _with_out(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        if kwargs.get("out") is None:
            kwargs.pop("out", None)
            return function(*args, **kwargs)
        from tenon._spellings import with_out
        return with_out(function)(*args, **kwargs)
    return call


def _refuse(sentence):
    raise _tenon.InvalidArgument(sentence)


def _flat(input, dim):
    """The input with one axis to reduce, and that axis."""
    return (_tenon.flatten(input), 0) if dim is None else (_tenon.reshape(input, (1,)), 0) if input.ndim == 0 else (input, dim)


def _as_sizes(size):
    return (size,) if hasattr(size, "__index__") else tuple(size)


# ---- complex numbers, of which real ones are a part ----

def _itself(name):
    def same(input):
        return input
    same.__name__, same.__doc__ = name, "input itself, since no dtype is complex."
    (both if name != "real" else public)(same)


for _name in ("conj", "conj_physical", "resolve_conj", "resolve_neg", "real"):
    _itself(_name)


@both
def angle(input):
    """0 where input is positive, pi where it is negative; NaN stays."""
    wide = input if input.dtype.is_floating_point else _tenon.cast(input, _tenon.f32)
    return _tenon.where(wide < 0, math.pi, _tenon.where(_tenon.isnan(wide), wide, 0.0))


# ---- statistics ----

def _quantile(name, input, q, dim, keepdim, interpolation, ignore_nan):
    if not input.dtype.is_floating_point:
        _refuse(f"{name}: input must hold f32 or f64, not {input.dtype.name}.")
    if interpolation not in ("linear", "lower", "higher", "nearest", "midpoint"):
        _refuse(f"{name}: interpolation is '{interpolation}'; it may be linear, lower, higher, nearest or midpoint.")
    if isinstance(q, Tensor):
        if q.dtype != input.dtype:
            _refuse(f"{name}: q must have the dtype of input, {input.dtype.name}, not {q.dtype.name}.")
        if q.ndim > 1:
            _refuse(f"{name}: q must be a number or a list, but its shape is {tuple(q.shape)}.")
    elif not 0 <= q <= 1:
        _refuse(f"{name}: q must be within 0 and 1, not {q}.")
    else:
        q = _tenon.tensor(q, dtype=input.dtype, device=input.device)
    if input.numel() == 0:
        _refuse(f"{name}: input must have an element, but its shape is {tuple(input.shape)}.")
    source, axis = _flat(input, dim)
    ordered = _tenon.sort(_tenon.movedim(source, axis, -1), -1)[0]
    place, wrong = _place(ordered, q, ignore_nan)
    result = _between(ordered, place, interpolation)
    result = _tenon.where(wrong, math.nan, result)
    result = _tenon.movedim(result, -1, 0)  # q first
    if keepdim:
        result = _tenon.reshape(result, (q.numel(),) + (1,) * input.ndim) if dim is None else _tenon.unsqueeze(result, axis % max(input.ndim, 1) + 1) if input.ndim else result
    return result if q.ndim else _tenon.squeeze(result, 0)


def _place(ordered, q, ignore_nan):
    """Where the quantiles lie among sorted elements, [..., quantiles], and whether they are NaN."""
    numbers = _tenon.sum(_tenon.logical_not(_tenon.isnan(ordered)), -1, True)
    q = _tenon.reshape(q, (-1,))
    if ignore_nan:
        count, wrong = numbers, numbers == 0
    else:
        count, wrong = _tenon.full_like(numbers, ordered.size(-1)), numbers < ordered.size(-1)
    place = _tenon.cast(_tenon.clamp(count - 1, 0), ordered.dtype) * q
    return place, _tenon.logical_or(wrong, _tenon.logical_or(q < 0, q > 1))


def _between(ordered, place, interpolation):
    low = _tenon.floor(place)
    if interpolation in ("lower", "higher", "nearest"):
        at = {"lower": _tenon.floor, "higher": _tenon.ceil, "nearest": _tenon.round}[interpolation](place)
        return _tenon.gather(ordered, -1, _tenon.cast(_tenon.clamp(at, 0, ordered.size(-1) - 1), _tenon.i64))
    low_index, high_index = (_tenon.cast(_tenon.clamp(each, 0, ordered.size(-1) - 1), _tenon.i64) for each in (low, _tenon.ceil(place)))
    weight = _tenon.full_like(place, 0.5) if interpolation == "midpoint" else place - low
    return _tenon.lerp(_tenon.gather(ordered, -1, low_index), _tenon.gather(ordered, -1, high_index), weight)


@both
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """The element below which a part q of all lies along dim, or of all without dim; a list q gives a first axis. NaN if
    there is one."""
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@both
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """quantile of what is a number."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


_Values = {name: collections.namedtuple(name, ["values", "indices"]) for name in ("nanmedian", "mode")}


@both
def nanmedian(input, dim=None, keepdim=False):
    """The middle element of what is a number, of two the lower one; along dim with its i64 position. NaN if there is none."""
    source, axis = _flat(input, dim)
    values, places = _tenon.sort(source, axis)
    numbers = _tenon.sum(_tenon.logical_not(_tenon.isnan(values)), axis, True) if input.dtype.is_floating_point else _tenon.full_like(_tenon.narrow(places, axis, 0, 1), source.size(axis))
    middle = _tenon.clamp(_tenon.floor_divide(numbers - 1, 2), 0)
    value, index = _tenon.gather(values, axis, middle), _tenon.gather(places, axis, middle)
    if dim is None:
        return _tenon.reshape(value, ())
    return _Values["nanmedian"](*_ended(input, axis, keepdim, value, index))


def _ended(input, axis, keepdim, *results):
    if input.ndim == 0:
        return [_tenon.reshape(each, ()) for each in results]
    return results if keepdim else [_tenon.squeeze(each, axis) for each in results]


@both
def mode(input, dim=-1, keepdim=False):
    """The element that is there most often along dim, of several the least, and the i64 position of its last one."""
    source, axis = _flat(input, dim)
    values, places = _tenon.sort(source, axis)
    here = _tenon.arange(source.size(axis), device=input.device)
    here = _tenon.reshape(here, (-1,) + (1,) * (source.ndim - 1 - axis % source.ndim))
    first = _tenon.concat([_tenon.ones_like(_tenon.narrow(values, axis, 0, 1), dtype=_tenon.bool),
                           _tenon.narrow(values, axis, 1, source.size(axis) - 1) != _tenon.narrow(values, axis, 0, source.size(axis) - 1)], axis)
    start = _tenon.cummax(_tenon.where(first, here, 0), axis)[0]
    last = _tenon.argmax(here - start, axis, True)
    value, index = _tenon.gather(values, axis, last), _tenon.gather(places, axis, last)
    return _Values["mode"](*_ended(input, axis, keepdim, value, index))


@both
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariance of variables, which are rows; columns are observations, each counted fweights times and weighed."""
    if input.ndim > 2:
        _refuse(f"cov: input must have rank 2 at most, but its shape is {tuple(input.shape)}.")
    rows = input if input.dtype.is_floating_point else _tenon.cast(input, _tenon.f32)
    if aweights is not None and aweights.dtype.is_floating_point:
        rows = _tenon.cast(rows, _tenon.add(_tenon.zeros((0,), dtype=rows.dtype), _tenon.zeros((0,), dtype=aweights.dtype)).dtype)
    rows = _tenon.reshape(rows, (1, -1)) if input.ndim < 2 else rows
    weights = None
    for name, each in (("fweights", fweights), ("aweights", aweights)):
        if each is None:
            continue
        if each.ndim > 1 or each.numel() != rows.size(1):
            _refuse(f"cov: {name} must be a list of {rows.size(1)} numbers, but its shape is {tuple(each.shape)}.")
        if each.dtype.is_floating_point != (name == "aweights"):
            _refuse(f"cov: {name} must hold {'floats' if name == 'aweights' else 'integers'}, not {each.dtype.name}.")
        if bool(_tenon.any(each < 0).item()):
            _refuse(f"cov: {name} must not be negative.")
        each = _tenon.cast(each, rows.dtype)
        weights = each if weights is None else weights * each
    total = float(rows.size(1)) if weights is None else _tenon.sum(weights)
    if weights is not None and float(total.item()) == 0 and rows.size(1):
        _refuse("cov: the weights must not add up to 0.")
    mean = _tenon.sum(rows if weights is None else rows * weights, 1, True) / total
    centred = rows - mean
    factor = total - correction if aweights is None else total - correction * _tenon.sum(weights * _tenon.cast(aweights, rows.dtype)) / total
    factor = _tenon.clamp(factor, 0) if isinstance(factor, Tensor) else max(factor, 0)
    product = _tenon.matmul(centred if weights is None else centred * weights, _tenon.transpose(centred, 0, 1))
    result = product / factor
    return _tenon.reshape(result, ()) if result.numel() == 1 else result


@both
def corrcoef(input):
    """The correlations of variables, which are rows: cov divided by the standard deviations, within -1 and 1."""
    if input.ndim > 2:
        _refuse(f"corrcoef: input must have rank 2 at most, but its shape is {tuple(input.shape)}.")
    covariance = cov(input)
    if covariance.ndim == 0:
        return covariance / covariance
    deviations = _tenon.sqrt(_tenon.diagonal(covariance))
    return _tenon.clamp(covariance / _tenon.unsqueeze(deviations, 1) / _tenon.unsqueeze(deviations, 0), -1.0, 1.0)


_Histogram = collections.namedtuple("histogram", ["hist", "bin_edges"])
_Histogramdd = collections.namedtuple("histogramdd", ["hist", "bin_edges"])


def _edges(values, bins, bounds):
    if isinstance(bins, Tensor):
        return bins
    low, high = bounds if bounds is not None else (values.min().item(), values.max().item()) if values.numel() else (0.0, 1.0)
    if low > high:
        _refuse(f"histogram: the range must rise, but it is {low} to {high}.")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _tenon.linspace(low, high, bins + 1, dtype=values.dtype, device=values.device)


@both
def histogram(input, bins, *, range=None, weight=None, density=False):
    """How many elements (or the sum of their weights) are in each bin, [low, high) but for the last, and the bins' edges.
    density divides by the sum and by the widths."""
    values = _tenon.reshape(input, (-1, 1))
    hist, edges = histogramdd(values, [bins], range=None if range is None else list(range), weight=None if weight is None else _tenon.flatten(weight), density=density)
    return _Histogram(hist, edges[0])


@public
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """histogram of points, the rows of the last axis of input, in boxes: a list of bins for each of its columns."""
    if not input.dtype.is_floating_point:
        _refuse(f"histogramdd: input must hold floats, not {input.dtype.name}.")
    points = _tenon.reshape(input, (-1, input.size(-1)))
    columns = points.size(1)
    bins = [bins] * columns if hasattr(bins, "__index__") else list(bins)
    if len(bins) != columns:
        _refuse(f"histogramdd: there must be bins for each of {columns} columns, not {len(bins)}.")
    edges = [_edges(points[:, i], each, None if range is None else (range[2 * i], range[2 * i + 1])) for i, each in enumerate(bins)]
    sizes = [each.numel() - 1 for each in edges]
    inside, cell = _tenon.ones((points.size(0),), dtype=_tenon.bool, device=points.device), _tenon.zeros((points.size(0),), dtype=_tenon.i64, device=points.device)
    for i, each in enumerate(edges):
        column = points[:, i].contiguous()
        at = _tenon.searchsorted(each, column, right=True) - 1
        at = _tenon.where(column == each[-1], sizes[i] - 1, at)
        inside = _tenon.logical_and(inside, _tenon.logical_and(column >= each[0], column <= each[-1]))
        cell = cell * sizes[i] + _tenon.clamp(at, 0, sizes[i] - 1)
    amounts = _tenon.ones_like(cell, dtype=input.dtype) if weight is None else _tenon.cast(_tenon.reshape(weight, (-1,)), input.dtype)
    hist = _tenon.zeros((math.prod(sizes),), dtype=input.dtype, device=input.device)
    hist = _tenon.reshape(_tenon.index_add(hist, 0, cell, _tenon.where(inside, amounts, 0.0)), tuple(sizes))
    if density:
        hist = hist / _tenon.sum(hist)
        for i, each in enumerate(edges):
            hist = hist / _tenon.reshape(_tenon.diff(each), (-1,) + (1,) * (columns - 1 - i))
    return _Histogramdd(hist, tuple(edges))


# ---- differences and integrals ----

@public
def trapz(y, x=None, *, dx=1, dim=-1):
    """trapezoid."""
    return _tenon.trapezoid(y, dx=dx, dim=dim) if x is None else _tenon.trapezoid(y, x, dim=dim)


@public
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """The integrals of y up to each place along dim by the trapezoidal rule, at the places x, or at a distance of dx."""
    count = y.size(dim)
    pairs = (_tenon.narrow(y, dim, 1, count - 1) + _tenon.narrow(y, dim, 0, count - 1)) * 0.5
    if x is None:
        return _tenon.cumsum(pairs * dx, dim)
    steps = _tenon.diff(x, 1, -1 if x.ndim == 1 else dim)
    if x.ndim == 1:
        steps = _tenon.reshape(steps, (-1,) + (1,) * (y.ndim - 1 - dim % y.ndim))
    return _tenon.cumsum(pairs * steps, dim)


def _gradient_along(input, step, dim, edge_order):
    """Central differences, and at the ends differences of first or second order (as numpy.gradient)."""
    count = input.size(dim)
    part = functools.partial(_tenon.narrow, input, dim)
    if not isinstance(step, Tensor):
        middle = (part(2, count - 2) - part(0, count - 2)) / (2 * step)
        low, high = (part(1, 1) - part(0, 1)) / step, (part(count - 1, 1) - part(count - 2, 1)) / step
        if edge_order == 2:
            low = (part(0, 1) * -1.5 + part(1, 1) * 2 - part(2, 1) * 0.5) / step
            high = (part(count - 1, 1) * 1.5 - part(count - 2, 1) * 2 + part(count - 3, 1) * 0.5) / step
        return _tenon.concat([low, middle, high], dim)
    steps = _tenon.reshape(_tenon.diff(step), (-1,) + (1,) * (input.ndim - 1 - dim % input.ndim))
    a, b = _tenon.narrow(steps, dim if steps.ndim == input.ndim else 0, 0, count - 2), _tenon.narrow(steps, dim if steps.ndim == input.ndim else 0, 1, count - 2)
    middle = part(0, count - 2) * (-b / (a * (a + b))) + part(1, count - 2) * ((b - a) / (a * b)) + part(2, count - 2) * (a / (b * (a + b)))
    first, second, last, before = (_tenon.select(step, 0, i) for i in (0, 1, count - 1, count - 2))
    low, high = (part(1, 1) - part(0, 1)) / (second - first), (part(count - 1, 1) - part(count - 2, 1)) / (last - before)
    if edge_order == 2:
        h1, h2 = second - first, _tenon.select(step, 0, 2) - second
        low = part(0, 1) * (-(h1 * 2 + h2) / (h1 * (h1 + h2))) + part(1, 1) * ((h1 + h2) / (h1 * h2)) - part(2, 1) * (h1 / (h2 * (h1 + h2)))
        h1, h2 = before - _tenon.select(step, 0, count - 3), last - before
        high = part(count - 3, 1) * (h2 / (h1 * (h1 + h2))) - part(count - 2, 1) * ((h2 + h1) / (h1 * h2)) + part(count - 1, 1) * ((h2 * 2 + h1) / (h2 * (h1 + h2)))
    return _tenon.concat([low, middle, high], dim)


@public
def gradient(input, *, spacing=1, dim=None, edge_order=1):
    """The derivative of input along each axis of dim, all without it, by central differences. spacing is a distance, one for
    each axis, or for each axis a list of places."""
    axes = list(range(input.ndim)) if dim is None else [dim] if hasattr(dim, "__index__") else list(dim)
    spacing = 1 if spacing is None else spacing
    steps = list(spacing) if isinstance(spacing, (tuple, list)) else [spacing] * len(axes)
    if len(steps) != len(axes):
        _refuse(f"gradient: spacing must have an entry for each of {len(axes)} axes, not {len(steps)}.")
    if edge_order not in (1, 2):
        _refuse(f"gradient: edge_order is {edge_order}; it may be 1 or 2.")
    if len({axis % max(input.ndim, 1) for axis in axes}) < len(axes):
        _refuse(f"gradient: dim names an axis twice: {axes}.")
    for axis, step in zip(axes, steps):
        if input.size(axis) < edge_order + 1:
            _refuse(f"gradient: each axis must be at least {edge_order + 1} long, but the shape is {tuple(input.shape)}.")
        if isinstance(step, Tensor) and (step.ndim != 1 or step.numel() != input.size(axis)):
            _refuse(f"gradient: the places along axis {axis} must be a list of {input.size(axis)}, but their shape is {tuple(step.shape)}.")
    wide = input if input.dtype.is_floating_point else _tenon.cast(input, _tenon.f32)
    return tuple(_gradient_along(wide, step, axis, edge_order) for axis, step in zip(axes, steps))


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
    """L and U in one matrix and the pivots, as linalg.lu_factor; with get_infos also zeros, as it throws otherwise."""
    from tenon import linalg
    factors, pivots, info = linalg.lu_factor_ex(A, pivot=pivot)
    return (factors, pivots, info) if get_infos else (factors, pivots)


@both
def lu_solve(b, LU_data, LU_pivots):
    """X with A X = b, where LU_data and LU_pivots are what linalg.lu_factor gave of A."""
    from tenon import linalg
    return linalg.lu_solve(LU_data, LU_pivots, b)


_Svd = collections.namedtuple("svd", ["U", "S", "V"])
_Qr = collections.namedtuple("qr", ["Q", "R"])
_TriangularSolve = collections.namedtuple("triangular_solve", ["solution", "cloned_coefficient"])


@both
def svd(input, some=True, compute_uv=True):
    """U, the singular values and V, of as many columns as there are values, or square unless `some`."""
    if not compute_uv:
        values = _tenon.linalg_svdvals(input)
        square = [_tenon.zeros((*input.shape[:-2], side, side), dtype=input.dtype, device=input.device) for side in input.shape[-2:]]
        return _Svd(square[0], values, square[1])
    from tenon import linalg
    u, values, vh = linalg.svd(input, not some)
    return _Svd(u, values, _tenon.transpose(vh, -2, -1))


@both
def qr(input, some=True):
    """Q and R of linalg.qr, complete unless `some`."""
    from tenon import linalg
    return _Qr(*linalg.qr(input, "reduced" if some else "complete"))


@both
def triangular_solve(b, A, upper=True, transpose=False, unitriangular=False):
    """X with A X = b, or A^T X = b, where one triangle of A is read; and A."""
    matrix = _tenon.transpose(A, -2, -1) if transpose else A
    return _TriangularSolve(_tenon.linalg_solve_triangular(matrix, b, upper=upper != transpose, unitriangular=unitriangular), _tenon.clone(A))


@both
def cholesky_inverse(input, upper=False):
    """The inverse of the matrix whose Cholesky factor is given."""
    if input.ndim < 2 or input.size(-1) != input.size(-2):
        _refuse(f"cholesky_inverse: input must hold square matrices, but its shape is {tuple(input.shape)}.")
    eye = _tenon.eye(input.size(-1), dtype=input.dtype, device=input.device)
    return _tenon.cholesky_solve(_tenon.expand(eye, tuple(input.shape)), input, upper)


@public
def svd_lowrank(A, q=6, niter=2, M=None):
    """U, the singular values and V of a matrix of rank q or less, by random projections (Halko et al. 2009)."""
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
    """svd_lowrank of columns from which, with center, their mean is taken."""
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    return svd_lowrank(A - _tenon.mean(A, -2, True) if center else A, q, niter)


# ---- shapes ----

@public
def broadcast_shapes(*shapes):
    """The shape to which all shapes broadcast."""
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
    """All choices of r elements of a list, as rows, in the order of their positions."""
    if input.ndim != 1:
        _refuse(f"combinations: input must be a list, but its shape is {tuple(input.shape)}.")
    if r < 0:
        _refuse(f"combinations: r must not be negative, but it is {r}.")
    if r == 0:
        return _tenon.empty((0,), dtype=input.dtype, device=input.device)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(input.size(0)), r))
    if not rows:
        return _tenon.empty((0, r), dtype=input.dtype, device=input.device)
    return _tenon.reshape(_tenon.index_select(input, 0, _tenon.tensor([at for row in rows for at in row], device=input.device)), (len(rows), r))


@both
def sum_to_size(self, *size):
    """The sum over the axes along which a tensor of this size would be broadcast."""
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
    """A copy of input with src in the place of diagonal(input, offset, dim1, dim2)."""
    places = _tenon.reshape(_tenon.arange(input.numel(), device=input.device), tuple(input.shape))
    at = _tenon.diagonal(places, offset, dim1, dim2)
    if tuple(at.shape) != tuple(src.shape):
        _refuse(f"diagonal_scatter: src has shape {tuple(src.shape)}, but the diagonal {tuple(at.shape)}.")
    return _tenon.put(input, at, _tenon.cast(src, input.dtype))


def _copies(name, of, keep=public):
    def copy(input, *args, **kwargs):
        made = of(input, *args, **kwargs)
        return tuple(_tenon.clone(each) for each in made) if isinstance(made, (tuple, list)) else _tenon.clone(made)
    copy.__name__, copy.__doc__ = name, f"A copy of what {name.removesuffix('_copy')} gives."
    keep(copy)


_copies("narrow_copy", _tenon.narrow, both)
for _name in ("expand", "diagonal", "view", "permute", "squeeze", "unsqueeze", "transpose", "t", "unbind"):
    _copies(_name + "_copy", getattr(_tenon, _name))
_copies("alias_copy", lambda input: input)


@public
def unfold_copy(input, dimension, size, step):
    """The windows of `size` elements along an axis, `step` apart: the axis counts them, and a last one holds their elements."""
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
    """chunk."""
    return _tenon.chunk(input, chunks, dim)


@both
def unsafe_split(input, split_size, dim=0):
    """split."""
    return _tenon.split(input, split_size, dim)


@both
def split_with_sizes(input, split_sizes, dim=0):
    """Views of parts of the lengths split_sizes along dim."""
    return _tenon.split(input, list(split_sizes), dim)


@public
def unravel_index(indices, shape):
    """The coordinates of positions that count row-major in a tensor of this shape: a tensor for each axis."""
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
    """A tensor with undefined elements whose axes lie in memory in the order physical_layout, the outermost first."""
    size, order = tuple(size), tuple(physical_layout)
    if sorted(axis % max(len(size), 1) for axis in order) != list(range(len(size))):
        _refuse(f"empty_permuted: physical_layout must name each of {len(size)} axes once, not {order}.")
    made = _tenon.empty([size[axis] for axis in order], dtype=dtype or _tenon.f32, device=device)
    made = _tenon.permute(made, [order.index(axis) for axis in range(len(size))])
    return made.requires_grad_() if requires_grad else made


@public
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A number as a tensor of rank 0, of f32 unless dtype says otherwise."""
    return _tenon.tensor(s, dtype=_tenon.f32 if dtype is None else dtype, device=device, requires_grad=requires_grad)


@public
def fill(input, value):
    """A tensor of input's shape, dtype and device with one value everywhere, a number or a tensor of rank 0."""
    if isinstance(value, Tensor):
        if value.ndim:
            _refuse(f"fill: value must have rank 0, but its shape is {tuple(value.shape)}.")
        return _tenon.cast(_tenon.expand(value, tuple(input.shape)), input.dtype).clone()
    return _tenon.full_like(input, value)


@public
def constant_pad_nd(input, pad, value=0):
    """pad with a constant."""
    return _tenon.pad(input, list(pad), "constant", value)


@both
def nonzero_static(input, *, size, fill_value=-1):
    """The first `size` rows of nonzero; rows of fill_value where there are fewer."""
    if size < 0:
        _refuse(f"nonzero_static: 'size' must be an non-negative integer, not {size}.")
    positions, count = _tenon.nonzero_padded(input, size)
    positions = positions if input.ndim else _tenon.narrow(positions, 1, 0, 0)
    return _tenon.where(_tenon.unsqueeze(_tenon.arange(size, device=input.device) < count, 1), positions, fill_value)


# ---- element by element ----

_Frexp = collections.namedtuple("frexp", ["mantissa", "exponent"])


@both
def frexp(input):
    """The mantissa, of a magnitude within 1/2 and 1, and the i32 exponent: mantissa 2^exponent is input."""
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
    """Slices along dim whose norm of order p is over maxnorm, made shorter to it."""
    if not p > 0 or maxnorm < 0:
        _refuse(f"renorm: p must be above 0 and maxnorm at least 0, not {p} and {maxnorm}.")
    if input.ndim < 2:
        _refuse(f"renorm: input must have rank 2 at least, but its shape is {tuple(input.shape)}.")
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
    """A copy of input in which slices along dim at the positions of index (a list) are combined with those of source by
    reduce: prod, mean, amax or amin."""
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
    """As polygamma, written into the tensor."""
    from tenon import special
    return _tenon.copy_(self, special.polygamma(n, self))


Tensor.polygamma_ = _polygamma_


def _polygamma(self, n):
    """As tenon.special.polygamma."""
    return globals()["polygamma"](n, self)


Tensor.polygamma = _polygamma
for _name in ("renorm", "conj_physical", "i0", "igamma", "igammac", "mvlgamma", "index_reduce"):
    _in_place(_name)


# ---- random numbers, written into a tensor ----

def _uniform(self, generator):
    """Numbers within 0 and 1, without both, in f32 or f64."""
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
    """Overwrites the tensor with numbers of Cauchy's distribution around median."""
    if sigma <= 0:
        _refuse(f"cauchy_: sigma must be above 0, not {sigma}.")
    return _tenon.tan((_uniform(self, generator) - 0.5) * math.pi) * sigma + median


@_drawn("geometric_")
def _geometric(self, generator, p):
    """Overwrites the tensor with counts of trials up to the first success, which has probability p."""
    if not 0 < p < 1:
        _refuse(f"geometric_: p must be within 0 and 1, not {p}.")
    return _tenon.ceil(_tenon.log(_uniform(self, generator)) / math.log1p(-p))


@_drawn("log_normal_")
def _log_normal(self, generator, mean=1.0, std=2.0):
    """Overwrites the tensor with numbers whose logarithms are normally distributed."""
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
    """layer_norm, and the mean and 1 / sqrt(variance + eps) of each row."""
    axes = len(normalized_shape)
    result, mean, inverse = _tenon.layer_norm_with_statistics(input, list(normalized_shape), weight, bias, eps)
    shape = tuple(input.shape[:input.ndim - axes]) + (1,) * axes
    dtype = input.dtype
    return result, _tenon.reshape(_tenon.cast(mean, dtype), shape), _tenon.reshape(_tenon.cast(inverse, dtype), shape)


@public
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """group_norm, and the mean and 1 / sqrt(variance + eps) of each group."""
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


# ---- matrices of distances ----

@public
def pdist(input, p=2.0):
    """The distances of each row from each later one, as a list."""
    if input.ndim != 2:
        _refuse(f"pdist: input must have rank 2, but its shape is {tuple(input.shape)}.")
    if p < 0:
        _refuse(f"pdist: p must not be negative, but it is {p}.")
    rows, others = _tenon.triu_indices(input.size(0), input.size(0), 1, device=input.device)
    return _tenon.vector_norm(_tenon.index_select(input, 0, rows) - _tenon.index_select(input, 0, others), float(p), 1)
