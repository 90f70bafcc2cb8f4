"""Functions of the array API standard that rearrange elements."""

from __future__ import annotations

import math
from typing import Optional, Sequence, Union

import tenon
from tenon import Tensor
from tenon.array_api._elementwise import promote

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "concat", "expand_dims", "flip", "moveaxis",
    "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile", "unstack"]

Axes = Union[int, tuple[int, ...]]


def as_axes(axis: Optional[Axes], rank: int, name: str) -> tuple[int, ...]:
    """Returns the axes as non-negative numbers; all axes if `axis` is None.

    Errors: an axis is out of range or repeated."""
    if axis is None:
        return tuple(range(rank))
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in given:
        if not -rank <= each < rank:
            raise IndexError(f"{name}: axis {each} is out of range for {rank} axes.")
    axes = tuple(each % rank for each in given)
    if len(set(axes)) < len(axes):
        raise ValueError(f"{name}: an axis of {given} is given twice.")
    return axes


def broadcast_shapes(*shapes: tuple[Optional[int], ...]) -> tuple[Optional[int], ...]:
    """Returns the shape that the shapes broadcast to. None is an unknown length.

    Errors: they do not broadcast."""
    result: list[Optional[int]] = []
    for place in range(-max((len(shape) for shape in shapes), default=0), 0):
        lengths = {shape[place] for shape in shapes if len(shape) >= -place} - {1}
        known = lengths - {None}
        if len(known) > 1:
            raise ValueError(f"broadcast_shapes: {', '.join(map(str, shapes))} do not broadcast.")
        result.append(known.pop() if known else None if lengths else 1)
    return tuple(result)


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Returns a view of the given shape. Axes of length 1 are repeated.

    Errors: the shape of `x` does not broadcast to it."""
    return tenon.expand(x, tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Returns views of all tensors with the shape that they broadcast to."""
    return tuple(tenon.broadcast_tensors(list(arrays))) if arrays else ()


def concat(arrays: Sequence[Tensor], /, *, axis: Optional[int] = 0) -> Tensor:
    """Joins tensors along an axis; None joins them flattened. Promotes their dtypes."""
    parts = promote(*arrays)
    if axis is None:
        return tenon.cat([tenon.reshape(part, (-1,)) for part in parts], 0)
    return tenon.cat(list(parts), as_axes(axis, parts[0].ndim, "concat")[0])


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Joins tensors along a new axis. Promotes their dtypes."""
    return tenon.stack(list(promote(*arrays)), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Splits `x` into its slices along an axis, which the slices do not have."""
    place = as_axes(axis, x.ndim, "unstack")[0]
    return tuple(tenon.unbind(x, place)) if x.shape[place] else ()


def expand_dims(x: Tensor, /, axis: Axes) -> Tensor:
    """Returns a view with new axes of length 1. `axis` lists their positions in the result.

    Errors: a position is out of range or repeated."""
    rank = x.ndim + (1 if isinstance(axis, int) else len(axis))
    result = x
    for place in sorted(as_axes(axis, rank, "expand_dims")):
        result = tenon.unsqueeze(result, place)
    return result


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """Returns a view without the given axes.

    Errors: one of them does not have length 1."""
    axes = as_axes(axis, x.ndim, "squeeze")
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze: axis {each} has length {x.shape[each]}; only axes of length 1 can be removed.")
    return tenon.squeeze(x, axes) if axes else x


def flip(x: Tensor, /, *, axis: Optional[Axes] = None) -> Tensor:
    """Reverses the order of elements along the axes; None takes all axes."""
    axes = as_axes(axis, x.ndim, "flip")
    return tenon.flip(x, axes) if axes else tenon.clone(x)


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """Returns a view with the axes `source` moved to the positions `destination`. Other axes keep their order."""
    return tenon.movedim(x, source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Returns a view with the axes in the given order."""
    return tenon.permute(x, tuple(axes))


def repeat(x: Tensor, repeats: Union[int, Tensor], /, *, axis: Optional[int] = None) -> Tensor:
    """Repeats each slice along the axis. `repeats` is one number, or a number for each slice. None repeats the
    elements of the flattened `x`."""
    source = tenon.reshape(x, (-1,)) if axis is None else x
    place = 0 if axis is None else as_axes(axis, x.ndim, "repeat")[0]
    if isinstance(repeats, Tensor):
        if repeats.ndim == 0 or repeats.shape == (1,):
            repeats = tenon.expand(tenon.reshape(repeats, (1,)), (source.shape[place],))
        return tenon.repeat_interleave(source, tenon.cast(repeats, tenon.int64), place)
    return tenon.repeat_interleave(source, repeats, place)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: Optional[bool] = None) -> Tensor:
    """Returns the elements in another shape. One length may be -1 and is then computed.

    copy: True always copies, False returns a view, None returns a view if possible. Errors: copy is False and no
    view is possible.
    """
    if copy is False:
        return tenon.view(x, tuple(shape))
    result = tenon.reshape(x, tuple(shape))
    return tenon.clone(result) if copy else result


def roll(x: Tensor, /, shift: Axes, *, axis: Optional[Axes] = None) -> Tensor:
    """Moves elements by `shift` along the axes; the last ones go to the front. None rolls the flattened `x`."""
    if axis is None:
        return tenon.reshape(tenon.roll(tenon.reshape(x, (-1,)), shift, 0), x.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    return tenon.roll(x, shifts, axes)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeats `x` along each axis. repetitions and the axes are aligned at the end."""
    return tenon.tile(x, tuple(repetitions))
