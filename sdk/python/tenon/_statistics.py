"""Functions of PyTorch that have no row in the op list, written in ops: quantiles, covariances, histograms,
differences and integrals."""

import collections
import functools
import math

from tenon import _tenon
from tenon._public import decorators_of
from tenon._public import refuse as _refuse
from tenon._tenon import Tensor

public, both = decorators_of(globals())


def _flat(input, dim):
    """Returns the input with an axis to reduce, and this axis."""
    return (_tenon.flatten(input), 0) if dim is None else (_tenon.reshape(input, (1,)), 0) if input.ndim == 0 else (input, dim)


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
    result = _tenon.movedim(result, -1, 0)  # the axis of quantiles first
    if keepdim:
        result = _tenon.reshape(result, (q.numel(),) + (1,) * input.ndim) if dim is None else _tenon.unsqueeze(result, axis % max(input.ndim, 1) + 1) if input.ndim else result
    return result if q.ndim else _tenon.squeeze(result, 0)


def _place(ordered, q, ignore_nan):
    """Returns the fractional positions of the quantiles among sorted elements (..., quantiles), and a mask of NaN
    results."""
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
    """Returns the q-quantiles of the elements along dim, or of all elements. NaN if an element is NaN.

    Args:
        q: a number from 0 to 1, or a list, whose results form a new first axis.
        interpolation: between the two nearest elements: "linear", "lower", "higher", "nearest" or "midpoint".

    Example:
        >>> tenon.quantile(tenon.tensor([1.0, 2.0, 3.0]), 0.5)
        tensor(2.)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False)


@both
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear"):
    """quantile that ignores NaN."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True)


_Values = {name: collections.namedtuple(name, ["values", "indices"]) for name in ("nanmedian", "mode")}


@both
def nanmedian(input, dim=None, keepdim=False):
    """Returns the median of the elements that are not NaN, the lower one of two. NaN if there is none. With dim also
    returns its i64 position."""
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
    """Returns the most frequent element along dim, the least one of several, and the i64 position of its last
    occurrence."""
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
    """Returns the covariance matrix of the rows of input. Columns are observations.

    Args:
        correction: is subtracted from the number of observations in the divisor.
        fweights: how often each observation counts (integers). aweights: the weight of each observation (floats).
    """
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
    """Returns the correlation coefficients of the rows of input. Columns are observations."""
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
    """Counts the elements in each bin. Returns the counts and the edges of the bins.

    Args:
        bins: the number of bins, or their edges. Bins contain their left edge; the last one also contains its
            right edge.
        range: (low, high) if bins is a number. The default is the least and the greatest element.
        weight: sums up these weights instead of counting.
        density: divides by the total and by the widths of the bins.
    """
    values = _tenon.reshape(input, (-1, 1))
    hist, edges = histogramdd(values, [bins], range=None if range is None else list(range), weight=None if weight is None else _tenon.flatten(weight), density=density)
    return _Histogram(hist, edges[0])


@public
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """histogram of points (..., columns) in boxes. Each column has its own bins, and `range` holds two numbers per
    column."""
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
    """Same as trapezoid."""
    return _tenon.trapezoid(y, dx=dx, dim=dim) if x is None else _tenon.trapezoid(y, x, dim=dim)


@public
def cumulative_trapezoid(y, x=None, *, dx=1, dim=-1):
    """Returns the integrals of y along dim up to each position, by the trapezoidal rule. Samples are at x, or dx
    apart."""
    count = y.size(dim)
    pairs = (_tenon.narrow(y, dim, 1, count - 1) + _tenon.narrow(y, dim, 0, count - 1)) * 0.5
    if x is None:
        return _tenon.cumsum(pairs * dx, dim)
    steps = _tenon.diff(x, 1, -1 if x.ndim == 1 else dim)
    if x.ndim == 1:
        steps = _tenon.reshape(steps, (-1,) + (1,) * (y.ndim - 1 - dim % y.ndim))
    return _tenon.cumsum(pairs * steps, dim)


def _gradient_along(input, step, dim, edge_order):
    """Central differences, and one-sided differences of order edge_order at both ends, as in numpy.gradient."""
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
    """Estimates the derivative of input along each of the axes dim (default: all) by central differences.

    Args:
        spacing: the distance of samples, or a list that has for each axis a distance or the coordinates of the samples.
        edge_order: the order of the differences at both ends, 1 or 2.

    Returns a tuple of tensors with the shape of input, one for each axis.
    """
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
