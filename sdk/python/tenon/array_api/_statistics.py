"""Functions of the array API standard that reduce or accumulate elements."""

from __future__ import annotations

import math
from typing import Any, Optional, Union

import tenon
from tenon import DType, Tensor
from tenon.array_api._dtypes import kind_of
from tenon.array_api._elementwise import promote
from tenon.array_api._manipulation import Axes, as_axes

__all__ = ["all", "any", "cumulative_prod", "cumulative_sum", "diff", "max", "mean", "min", "prod", "std", "sum", "var"]


def _reduce(op: Any, x: Tensor, axis: Optional[Axes], keepdims: bool, **keywords: Any) -> Tensor:
    axes = as_axes(axis, x.ndim, op.__name__)
    if not axes:  # no axes: each element is its own result
        result: Tensor = op(tenon.unsqueeze(x, -1), (-1,), **keywords)
    elif "*" in op.signatures[0].partition("keepdim")[0]:
        result = op(x, axes, keepdim=keepdims, **keywords)
    else:
        result = op(x, axes, keepdims, **keywords)
    return result


def _wide(x: Tensor) -> DType:
    kind = kind_of(x.dtype)
    return tenon.uint64 if kind == "unsigned integer" else x.dtype if kind == "real floating" else tenon.int64


def sum(x: Tensor, /, *, axis: Optional[Axes] = None, dtype: Optional[DType] = None, keepdims: bool = False) -> Tensor:
    """Sum along the axes, or of all elements. By default floats keep their dtype, and integers become 64 bits wide."""
    return _reduce(tenon.sum, x, axis, keepdims, dtype=dtype or _wide(x))


def prod(x: Tensor, /, *, axis: Optional[Axes] = None, dtype: Optional[DType] = None, keepdims: bool = False) -> Tensor:
    """Product along the axes, or of all elements. By default floats keep their dtype, and integers become 64 bits
    wide."""
    return _reduce(tenon.prod, x, axis, keepdims, dtype=dtype or _wide(x))


def max(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """Greatest element along the axes, or of all. NaN if there is one.

    Errors: an axis has length 0."""
    return _reduce(tenon.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """Least element along the axes, or of all. NaN if there is one.

    Errors: an axis has length 0."""
    return _reduce(tenon.amin, x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """Mean along the axes, or of all elements. NaN without elements."""
    return _reduce(tenon.mean, x, axis, keepdims)


def var(x: Tensor, /, *, axis: Optional[Axes] = None, correction: Union[int, float] = 0.0, keepdims: bool = False) -> Tensor:
    """Variance along the axes, or of all elements: the sum of squared distances from the mean, divided by n -
    correction.

    NaN if n - correction is not positive.
    """
    axes = as_axes(axis, x.ndim, "var")
    count = math.prod(x.shape[each] for each in axes)
    if count - correction <= 0:
        return tenon.full_like(_reduce(tenon.mean, x, axis, keepdims), tenon.nan)
    return _reduce(tenon.var, x, axis, keepdims, correction=0) * (count / (count - correction))


def std(x: Tensor, /, *, axis: Optional[Axes] = None, correction: Union[int, float] = 0.0, keepdims: bool = False) -> Tensor:
    """Standard deviation: the square root of var."""
    return tenon.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def all(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """True if no element along the axes is 0."""
    return _reduce(tenon.all, x, axis, keepdims)


def any(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """True if an element along the axes is not 0."""
    return _reduce(tenon.any, x, axis, keepdims)


def cumulative_sum(x: Tensor, /, *, axis: Optional[int] = None, dtype: Optional[DType] = None, include_initial: bool = False) -> Tensor:
    """Sum of each element and the ones before it along the axis. include_initial puts a 0 in front.

    The axis may be omitted if `x` has rank 1. The dtype is that of sum."""
    return _cumulative(tenon.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x: Tensor, /, *, axis: Optional[int] = None, dtype: Optional[DType] = None, include_initial: bool = False) -> Tensor:
    """Product of each element and the ones before it along the axis. include_initial puts a 1 in front.

    The axis may be omitted if `x` has rank 1. The dtype is that of prod."""
    return _cumulative(tenon.cumprod, 1, x, axis, dtype, include_initial)


def _cumulative(op: Any, first: int, x: Tensor, axis: Optional[int], dtype: Optional[DType], include_initial: bool) -> Tensor:
    if axis is None and x.ndim > 1:
        raise ValueError(f"{op.__name__}: x has {x.ndim} axes, so axis must be given.")
    source = x if x.ndim else tenon.reshape(x, (1,))
    place = as_axes(axis or 0, source.ndim, op.__name__)[0]
    result: Tensor = op(source, place, dtype=dtype or _wide(x))
    if include_initial:
        lengths = [1 if i == place else length for i, length in enumerate(source.shape)]
        result = tenon.cat([tenon.full(lengths, first, dtype=result.dtype, device=x.device), result], place)
    return result


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Optional[Tensor] = None, append: Optional[Tensor] = None) -> Tensor:
    """Differences of neighbouring elements along the axis, n times. prepend and append are joined to `x` first."""
    parts = promote(*(each for each in (prepend, x, append) if each is not None))
    joined = tenon.cat(list(parts), axis) if len(parts) > 1 else x
    return tenon.diff(joined, n, axis)
