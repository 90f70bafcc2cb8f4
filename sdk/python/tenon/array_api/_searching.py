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
    """What unique_all gives; indices and counts are i64, inverse_indices have the shape of the argument."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    """What unique_counts gives."""

    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    """What unique_inverse gives."""

    values: Tensor
    inverse_indices: Tensor


# ---- indexing ----

def take(x: Tensor, indices: Tensor, /, *, axis: Optional[int] = None) -> Tensor:
    """The slices of `x` at the indices, which have rank 1, along the axis; the axis may be absent where `x` has one alone.

    Errors: an index is out of range."""
    if axis is None and x.ndim != 1:
        raise ValueError(f"take: x has {x.ndim} axes, so axis must be given.")
    place = as_axes(axis or 0, x.ndim, "take")[0]
    return tenon.index_select(x, place, _from_the_end(indices, x.shape[place]))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements of `x` at the indices along the axis; along other axes both broadcast.

    Errors: an index is out of range; the ranks differ."""
    place = as_axes(axis, x.ndim, "take_along_axis")[0]
    return tenon.take_along_dim(x, _from_the_end(indices, x.shape[place]), place)


def _from_the_end(indices: Tensor, length: int) -> Tensor:
    wide = tenon.cast(indices, tenon.int64)
    return tenon.where(wide < 0, wide + length, wide)


# ---- searching ----

def argmax(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """Where the greatest element along the axis is, the first of several; its place in the flat `x` without an axis. i64."""
    return _arg(tenon.argmax, x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: Optional[int] = None, keepdims: bool = False) -> Tensor:
    """Where the least element along the axis is, the first of several; its place in the flat `x` without an axis. i64."""
    return _arg(tenon.argmin, x, axis, keepdims)


def _arg(op: Any, x: Tensor, axis: Optional[int], keepdims: bool) -> Tensor:
    result: Tensor = op(tenon.reshape(x, (-1,)), 0) if axis is None else op(x, axis, keepdims)
    return tenon.reshape(result, (1,) * x.ndim) if axis is None and keepdims else result


def count_nonzero(x: Tensor, /, *, axis: Optional[Axes] = None, keepdims: bool = False) -> Tensor:
    """How many elements along the axes are not 0; i64."""
    axes = as_axes(axis, x.ndim, "count_nonzero")
    different = tenon.cast(x != 0, tenon.int64)
    return tenon.sum(different, axes, keepdims) if axes else different


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The places of the elements that are not 0: for each axis the indices along it, i64, row-major.

    Errors: `x` has rank 0."""
    if x.ndim == 0:
        raise ValueError("nonzero: x has rank 0, so its element has no place.")
    return tuple(tenon.unbind(tenon.nonzero(x), 1))


def searchsorted(x1: Tensor, x2: Operand, /, *, side: Literal["left", "right"] = "left", sorter: Optional[Tensor] = None) -> Tensor:
    """Where the elements of `x2` could stand in `x1`, of rank 1, so that it stays sorted: before equal ones, or after. i64.

    `sorter`: the order in which `x1` is sorted. Errors: side is neither left nor right."""
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side is '{side}'; it must be left or right.")
    ordered = x1 if sorter is None else take(x1, sorter)
    ordered, wanted = promote(ordered, x2)
    return tenon.searchsorted(ordered, wanted, right=side == "right")


def where(condition: Tensor, x1: Operand, x2: Operand, /) -> Tensor:
    """The elements of `x1` where the condition holds, those of `x2` elsewhere. All broadcast; the dtypes of both promote."""
    if not isinstance(x1, Tensor) and not isinstance(x2, Tensor):
        x1 = as_operand(x1, tenon.empty((0,), dtype=tenon.bool, device=condition.device))
    return tenon.where(condition, *promote(x1, x2))


# ---- sets ----

def isin(x1: Operand, x2: Operand, /, *, invert: bool = False) -> Tensor:
    """Whether each element of `x1` is, or with `invert` is not, among those of `x2`; the shape of `x1`."""
    elements, among = promote(x1, x2)
    return tenon.isin(elements, among, invert=invert)


def unique_values(x: Tensor, /) -> Tensor:
    """The different elements, sorted, rank 1. Each NaN is different."""
    values: Tensor = tenon.unique(x)
    return values


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The different elements, and how often each is there."""
    return UniqueCountsResult(*tenon.unique(x, return_counts=True))


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The different elements, and for each element of `x` its place among them."""
    return UniqueInverseResult(*tenon.unique(x, return_inverse=True))


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The different elements, where each is first in the flat `x`, the place of each element of `x`, and how often each is there."""
    values, inverse, counts = tenon.unique(x, return_inverse=True, return_counts=True)
    order = tenon.argsort(tenon.reshape(inverse, (-1,)), 0, stable=True)
    return UniqueAllResult(values, tenon.index_select(order, 0, tenon.cumsum(counts, 0, exclusive=True)), inverse, counts)


# ---- sorting ----

def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along the axis; NaN counts as the greatest."""
    values: Tensor = tenon.sort(x, axis, descending, stable)[0]
    return values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort `x` along the axis; i64. Equal elements keep their order if `stable`."""
    return tenon.argsort(x, axis, descending, stable)
