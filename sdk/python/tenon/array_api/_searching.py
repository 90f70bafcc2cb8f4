"""Functions of the array API standard that find elements: indexing, searching, sets, sorting."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Optional

import tenon
from tenon import Tensor
from tenon.array_api._elementwise import Operand, as_operand, promote
from tenon.array_api._manipulation import Axes, as_axes

__all__ = [
    "argmax", "argmin", "argsort", "count_nonzero", "isin", "nonzero", "searchsorted", "sort", "take",
    "take_along_axis", "unique_all", "unique_counts", "unique_inverse", "unique_values", "where"]


class UniqueAllResult(NamedTuple):
    """The result of unique_all. Indices and counts are i64. inverse_indices has the shape of the argument."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """The result of unique_counts."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """The result of unique_inverse."""

    values: Tensor
    inverse_indices: Tensor


# ---- indexing ----

def take(x: Tensor, indices: Tensor, /, *, axis: Optional[int] = None) -> Tensor:
    """Returns the slices of `x` at the indices along an axis. The indices have rank 1. The axis may be omitted if
    `x` has rank 1.

    Errors: an index is out of range.
    """
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: x has {x.ndim} axes, so axis must be given.")
    place = as_axes(axis or 0, x.ndim, "take")[0]
    return tenon.index_select(x, place, _from_the_end(indices, x.shape[place]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Returns the elements of `x` at the indices along the axis. Other axes broadcast.

    Errors: an index is out of range; the ranks differ."""
    place = as_axes(axis, x.ndim, "take_along_axis")[0]
    return tenon.take_along_dim(x, _from_the_end(indices, x.shape[place]), place)


def _from_the_end(indices: Tensor, length: int) -> Tensor:
    wide = tenon.cast(indices, tenon.int64)
    return tenon.where(wide < 0, wide + length, wide)


# ---- searching ----

def argmax(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """Returns the i64 index of the first greatest element along the axis, or in the flattened `x`."""
    return _arg(tenon.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """Returns the i64 index of the first least element along the axis, or in the flattened `x`."""
    return _arg(tenon.argmin, x, axis, keepdims)


def _arg(op: Any, x: Tensor, axis: Optional[int], keepdims: bool) -> Tensor:
    result: Tensor = op(tenon.reshape(x, (-1,)), 0) if axis is None else op(x, axis, keepdims)
    return tenon.reshape(result, (1,) * x.ndim) if axis is None and keepdims else result


def count_nonzero(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """Returns the i64 number of nonzero elements along the axes."""
    axes = as_axes(axis, x.ndim, "count_nonzero")
    different = tenon.cast(x != 0, tenon.int64)
    return tenon.sum(different, axes, keepdims) if axes else different


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Returns the i64 indices of the nonzero elements, one tensor for each axis, in row-major order.

    Errors: `x` has rank 0."""
    if x.ndim == 0:
        raise ValueError("nonzero: x has rank 0, so its element has no position.")
    return tuple(tenon.unbind(tenon.nonzero(x), 1))


def searchsorted(x1: Tensor, x2: Operand, /, *, side: Literal["left", "right"] = "left", sorter: Optional[Tensor] = None) -> Tensor:
    """Returns the i64 indices in `x1`, of rank 1, before which the elements of `x2` would have to be inserted to
    keep it sorted.

    side: "left" inserts before equal elements, "right" after them. sorter: the indices that sort `x1`.
    Errors: another side.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is '{side}'; it must be left or right.")
    ordered = x1 if sorter is None else take(x1, sorter)
    ordered, wanted = promote(ordered, x2)
    return tenon.searchsorted(ordered, wanted, right=side == "right")


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """Returns elements of `x1` where the condition is true, else of `x2`. All broadcast; the dtypes of x1 and x2
    promote."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        x1 = as_operand(x1, tenon.empty((0,), dtype=tenon.bool, device=condition.device))
    return tenon.where(condition, *promote(x1, x2))


# ---- sets ----

def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """True for each element of `x1` that is among the elements of `x2`. invert negates the result."""
    elements, among = promote(x1, x2)
    return tenon.isin(elements, among, invert=invert)


def unique_values(x: Tensor, /) -> Tensor:
    """Returns the distinct elements, sorted, as a tensor of rank 1. Each NaN is distinct."""
    values: Tensor = tenon.unique(x)
    return values


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """Returns the distinct elements and how often each occurs."""
    return UniqueCountsResult(*tenon.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """Returns the distinct elements, and for each element of `x` its index among them."""
    return UniqueInverseResult(*tenon.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """Returns the distinct elements, the index of the first occurrence of each in the flattened `x`, for each
    element of `x` its index among them, and how often each occurs."""
    values, inverse, counts = tenon.unique(x, return_inverse=True, return_counts=True)
    order = tenon.argsort(tenon.reshape(inverse, (-1,)), 0, stable=True)
    return UniqueAllResult(values, tenon.index_select(order, 0, tenon.cumsum(counts, 0, exclusive=True)), inverse, counts)


# ---- sorting ----

def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Sorts the elements along the axis. NaN counts as the greatest."""
    values: Tensor = tenon.sort(x, axis, descending, stable)[0]
    return values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Returns the i64 indices that sort `x` along the axis. Equal elements keep their order if `stable`."""
    return tenon.argsort(x, axis, descending, stable)
