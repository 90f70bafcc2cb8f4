"""Fourier transforms, with the names and arguments of torch.fft.

Complex numbers are pairs (real, imaginary) on a last axis of length 2. dim does not count this axis."""

from __future__ import annotations

from typing import Any, Sequence

import tenon
from tenon import Tensor
from tenon._spellings import with_out

fft, ifft, rfft, irfft, hfft, ihfft = tenon.fft_fft, tenon.fft_ifft, tenon.fft_rfft, tenon.fft_irfft, tenon.fft_hfft, tenon.fft_ihfft
fftshift, ifftshift = tenon.fft_fftshift, tenon.fft_ifftshift
fftfreq, rfftfreq = tenon.fft_fftfreq, tenon.fft_rfftfreq


def _require_pairs(op: str, input: Tensor) -> None:
    if input.ndim == 0 or input.size(-1) != 2:
        raise tenon.InvalidArgument(f"fft.{op}: input of shape {tuple(input.shape)} must hold pairs, real and imaginary part, along a last axis of 2.")


def _axes(rank: int, s: Sequence[int] | None, dim: Any) -> list[int]:
    """Returns the axes to transform: dim; without it the last len(s) axes; without both all axes."""
    if dim is not None:
        axes = [dim] if hasattr(dim, "__index__") else list(dim)
        if s is not None and len(s) != len(axes):
            raise tenon.InvalidArgument(f"When given, dim and shape arguments must have the same length; there are {len(axes)} and {len(s)}.")
        return axes
    return list(range(rank))[-len(s):] if s is not None else list(range(rank))


def _lengths(s: Sequence[int] | None, count: int) -> list[int | None]:
    return [None] * count if s is None else [None if length == -1 else length for length in s]


def _each(op: Any, input: Tensor, axes: Sequence[int], lengths: Sequence[int | None], norm: str) -> Tensor:
    for axis, length in zip(axes, lengths):
        input = op(input, length, axis, norm)
    return input


@with_out
def fftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """N-dimensional Fourier transform: fft along each of the axes dim.

    Args:
        input (..., 2): complex numbers as pairs.
        s: the length of each axis, which is cut or padded with zeros to it. -1 keeps the length.
        dim: the axes. None takes the last len(s) axes, or all.
        norm: "backward" (the default) does not scale, "ortho" divides by sqrt(n), "forward" by n, where n is the
            product of the lengths.
    """
    _require_pairs("fftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    return _each(fft, input, axes, _lengths(s, len(axes)), norm or "backward")


@with_out
def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """Inverse of fftn. norm "backward" divides by n, "ortho" by sqrt(n), "forward" does not scale."""
    _require_pairs("ifftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    return _each(ifft, input, axes, _lengths(s, len(axes)), norm or "backward")


@with_out
def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """fftn of real input: rfft along the last of the axes dim, then fft along the others. The result holds pairs."""
    axes = _axes(input.ndim, s, dim)
    lengths = _lengths(s, len(axes))
    result = rfft(input, lengths[-1], axes[-1], norm or "backward")
    return _each(fft, result, axes[:-1], lengths[:-1], norm or "backward")


@with_out
def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """Inverse of rfftn, with a real result."""
    _require_pairs("irfftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    lengths = _lengths(s, len(axes))
    result = _each(ifft, input, axes[:-1], lengths[:-1], norm or "backward")
    return irfft(result, lengths[-1], axes[-1], norm or "backward")


@with_out
def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """fft along the axes dim except the last, then hfft along the last. The result is real."""
    _require_pairs("hfftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    lengths = _lengths(s, len(axes))
    result = _each(fft, input, axes[:-1], lengths[:-1], norm or "backward")
    return hfft(result, lengths[-1], axes[-1], norm or "backward")


@with_out
def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """Inverse of hfftn."""
    axes = _axes(input.ndim, s, dim)
    lengths = _lengths(s, len(axes))
    result = ihfft(input, lengths[-1], axes[-1], norm or "backward")
    return _each(ifft, result, axes[:-1], lengths[:-1], norm or "backward")


@with_out
def fft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """fftn along two axes, the last two by default."""
    return fftn(input, s, dim, norm)


@with_out
def ifft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ifftn along two axes, the last two by default."""
    return ifftn(input, s, dim, norm)


@with_out
def rfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """rfftn along two axes, the last two by default."""
    return rfftn(input, s, dim, norm)


@with_out
def irfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """irfftn along two axes, the last two by default."""
    return irfftn(input, s, dim, norm)


@with_out
def hfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """hfftn along two axes, the last two by default."""
    return hfftn(input, s, dim, norm)


@with_out
def ihfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ihfftn along two axes, the last two by default."""
    return ihfftn(input, s, dim, norm)
