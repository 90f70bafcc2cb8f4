"""Fourier transforms, with the names and arguments of torch.fft. Complex numbers are pairs (real, imaginary) along a last
axis of 2, which dim does not count."""

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
    """The axes that are transformed: dim, or as many last ones as s has lengths, or all."""
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
    """fft along each axis of dim, cut or filled with zeros to the lengths s."""
    _require_pairs("fftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    return _each(fft, input, axes, _lengths(s, len(axes)), norm or "backward")


@with_out
def ifftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of fftn."""
    _require_pairs("ifftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    return _each(ifft, input, axes, _lengths(s, len(axes)), norm or "backward")


@with_out
def rfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """rfft along the last axis of dim, then fft along the others."""
    axes = _axes(input.ndim, s, dim)
    lengths = _lengths(s, len(axes))
    result = rfft(input, lengths[-1], axes[-1], norm or "backward")
    return _each(fft, result, axes[:-1], lengths[:-1], norm or "backward")


@with_out
def irfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn."""
    _require_pairs("irfftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    lengths = _lengths(s, len(axes))
    result = _each(ifft, input, axes[:-1], lengths[:-1], norm or "backward")
    return irfft(result, lengths[-1], axes[-1], norm or "backward")


@with_out
def hfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """fft along all axes of dim but the last, then hfft along it."""
    _require_pairs("hfftn", input)
    axes = _axes(input.ndim - 1, s, dim)
    lengths = _lengths(s, len(axes))
    result = _each(fft, input, axes[:-1], lengths[:-1], norm or "backward")
    return hfft(result, lengths[-1], axes[-1], norm or "backward")


@with_out
def ihfftn(input: Tensor, s: Sequence[int] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """The inverse of hfftn."""
    axes = _axes(input.ndim, s, dim)
    lengths = _lengths(s, len(axes))
    result = ihfft(input, lengths[-1], axes[-1], norm or "backward")
    return _each(ifft, result, axes[:-1], lengths[:-1], norm or "backward")


@with_out
def fft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """fftn along two axes."""
    return fftn(input, s, dim, norm)


@with_out
def ifft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ifftn along two axes."""
    return ifftn(input, s, dim, norm)


@with_out
def rfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """rfftn along two axes."""
    return rfftn(input, s, dim, norm)


@with_out
def irfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """irfftn along two axes."""
    return irfftn(input, s, dim, norm)


@with_out
def hfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """hfftn along two axes."""
    return hfftn(input, s, dim, norm)


@with_out
def ihfft2(input: Tensor, s: Sequence[int] | None = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
    """ihfftn along two axes."""
    return ihfftn(input, s, dim, norm)
