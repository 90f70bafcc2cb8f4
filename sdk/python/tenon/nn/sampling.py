"""Sampling of images at arbitrary positions: grid_sample, and affine_grid for affine maps."""

from __future__ import annotations

import itertools
import math
from typing import Any, Sequence

import tenon
from tenon import Tensor

_CUBIC = -0.75  # the slope of PyTorch's cubic kernel


def _places(grid: Tensor, length: int, align_corners: bool) -> Tensor:
    """Converts coordinates from -1 to 1 into positions of elements."""
    return (grid + 1) * ((length - 1) / 2) if align_corners else ((grid + 1) * length - 1) / 2


def _reflected(place: Tensor, length: int, align_corners: bool) -> Tensor:
    low, span = (0.0, float(length - 1)) if align_corners else (-0.5, float(length))
    if span <= 0:
        return tenon.zeros_like(place)
    distance = tenon.abs(place - low)
    turns, extra = tenon.floor(distance / span), tenon.fmod(distance, span)
    return tenon.where(tenon.eq(tenon.fmod(turns, 2.0), 0), extra + low, span - extra + low)


def _kept(place: Tensor, length: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Moves positions into the image, as padding_mode says. "zeros" leaves them unchanged."""
    if padding_mode == "zeros":
        return place
    if padding_mode == "reflection":
        place = _reflected(place, length, align_corners)
    return tenon.clamp(place, 0.0, float(length - 1))


class _Image:
    """An image (N, C, spatial...) whose elements are read by position."""

    def __init__(self, input: Tensor, padding_mode: str, align_corners: bool) -> None:
        self.sizes = tuple(input.shape[2:])
        self.elements = tenon.reshape(input, tuple(input.shape[:2]) + (math.prod(self.sizes),))
        self.padding_mode, self.align_corners = padding_mode, align_corners

    def at(self, corner: Sequence[Tensor]) -> Tensor:
        """Returns the elements at whole positions, given as one tensor per axis: (N, C, positions). 0 outside the
        image."""
        index: Any = 0
        inside: Any = True
        for place, length in zip(corner, self.sizes):
            within = tenon.logical_and(place >= 0, place <= length - 1)
            inside = within if inside is True else tenon.logical_and(inside, within)
            index = index * length + tenon.cast(tenon.clamp(place, 0.0, float(length - 1)), tenon.int64)
        shape = (index.shape[0], self.elements.shape[1], index.shape[1])
        taken = tenon.gather(self.elements, -1, tenon.expand(tenon.unsqueeze(index, 1), shape))
        return tenon.where(tenon.unsqueeze(inside, 1), taken, 0.0)


def _linear(image: _Image, places: list[Tensor]) -> Tensor:
    places = [_kept(each, length, image.padding_mode, image.align_corners) for each, length in zip(places, image.sizes)]
    lows = [tenon.floor(each) for each in places]
    total: Any = 0
    for sides in itertools.product((0, 1), repeat=len(places)):
        weight: Any = 1
        for place, low, side in zip(places, lows, sides):
            weight = weight * (place - low if side else low + 1 - place)
        total = total + image.at([low + side for low, side in zip(lows, sides)]) * tenon.unsqueeze(weight, 1)
    result: Tensor = total
    return result


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Weights of the four neighbours of a position that lies t behind the second one (Keys 1981)."""
    def near(x: Tensor) -> Tensor:
        return ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1

    def far(x: Tensor) -> Tensor:
        return ((x - 5) * x + 8) * x * _CUBIC - 4 * _CUBIC
    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic(image: _Image, places: list[Tensor]) -> Tensor:
    lows = [tenon.floor(each) for each in places]
    weights = [_cubic_weights(place - low) for place, low in zip(places, lows)]
    total: Any = 0
    for steps in itertools.product(range(4), repeat=len(places)):
        weight: Any = 1
        for each, step in zip(weights, steps):
            weight = weight * each[step]
        corner = [_kept(low + (step - 1), length, image.padding_mode, image.align_corners) for low, step, length in zip(lows, steps, image.sizes)]
        total = total + image.at(corner) * tenon.unsqueeze(weight, 1)
    result: Tensor = total
    return result


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Tensor:
    """Samples input at the positions in grid (Jaderberg et al. 2015).

    Args:
        input (N, C, H, W) or (N, C, D, H, W).
        grid (N, H', W', 2) or (N, D', H', W', 3): positions (x, y) or (x, y, z), where -1 and 1 are the ends of
            an axis.
        mode: "bilinear", "nearest" or "bicubic".
        padding_mode: outside the image "zeros", "border" (the nearest element) or "reflection".
        align_corners: -1 and 1 are the centres of the first and last elements, instead of their outer edges.

    Returns (N, C, H', W') or (N, C, D', H', W').

    Errors: the shapes do not fit, or mode or padding_mode has another value.
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'")
    rank = input.ndim - 2
    if rank not in (2, 3) or grid.ndim != input.ndim or grid.shape[-1] != rank or grid.shape[0] != input.shape[0]:
        raise tenon.InvalidArgument(f"grid_sample: input must be (N, C, H, W) or (N, C, D, H, W) and grid (N, ..., 2 or 3) of the same rank; "
                                    f"the shapes are {tuple(input.shape)} and {tuple(grid.shape)}.")
    if 0 in tuple(input.shape[2:]):
        raise tenon.InvalidArgument(f"grid_sample: the image must not be empty, but its shape is {tuple(input.shape)}.")
    if input.dtype in (tenon.f16, tenon.bf16):
        wide = grid_sample(tenon.cast(input, tenon.f32), tenon.cast(grid, tenon.f32), mode, padding_mode, align_corners)
        return tenon.cast(wide, input.dtype)
    outer = tuple(grid.shape[1:-1])
    flat = tenon.reshape(grid, (grid.shape[0], math.prod(outer), rank))
    image = _Image(input, padding_mode, bool(align_corners))
    places = [_places(tenon.select(flat, 2, rank - 1 - axis), length, bool(align_corners)) for axis, length in enumerate(image.sizes)]
    if mode == "nearest":
        kept = [_kept(each, length, padding_mode, bool(align_corners)) for each, length in zip(places, image.sizes)]
        result = image.at([tenon.round(each) for each in kept])
    else:
        result = (_linear if mode == "bilinear" else _cubic)(image, places)
    return tenon.cast(tenon.reshape(result, tuple(input.shape[:2]) + outer), input.dtype)


_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def grid_sampler(input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sample, with PyTorch's numbers for the modes."""
    return grid_sample(input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners)


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """Returns the grid for grid_sample that applies affine maps theta (N, 2, 3) or (N, 3, 4) to an image of the
    given size.

    size is (N, C, H, W) or (N, C, D, H, W). The result is (N, H, W, 2) or (N, D, H, W, 3).
    """
    size, rank = tuple(size), len(size) - 2
    if rank not in (2, 3) or tuple(theta.shape[1:]) != (rank, rank + 1):
        raise ValueError(f"Expected a batch of affine matrices for size {size}. Got shape {tuple(theta.shape)}.")

    def line(length: int) -> Tensor:
        if length <= 1:
            return tenon.zeros((length,), dtype=theta.dtype, device=theta.device)
        edge = 1.0 if align_corners else (length - 1) / length
        return tenon.linspace(-edge, edge, length, dtype=theta.dtype, device=theta.device)
    axes = tenon.meshgrid([line(length) for length in size[2:]], indexing="ij")
    points = tenon.stack([*(tenon.flatten(each) for each in reversed(axes)), tenon.ones((math.prod(size[2:]),), dtype=theta.dtype, device=theta.device)], 1)
    return tenon.reshape(tenon.matmul(points, tenon.transpose(theta, 1, 2)), (theta.shape[0],) + size[2:] + (rank,))
