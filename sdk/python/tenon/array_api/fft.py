"""The real part of the standard's fft extension: frequencies and their order.

Transforms give complex numbers, for which Tenon has no dtype. `tenon.fft_rfft` and similar ops give pairs instead."""

from __future__ import annotations

from typing import Optional, Sequence, Union

import tenon
from tenon import DType, Tensor
from tenon.array_api._creation import Place


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """The n frequencies of a transform of samples that are `d` apart: (0, 1, ..., then the negative ones) / (n * d)."""
    return tenon.fft_fftfreq(n, d, dtype=dtype or tenon.float32, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """The n // 2 + 1 frequencies of a transform of real samples that are `d` apart."""
    return tenon.fft_rfftfreq(n, d, dtype=dtype or tenon.float32, device=device)


def fftshift(x: Tensor, /, *, axes: Optional[Union[int, Sequence[int]]] = None) -> Tensor:
    """Exchanges the halves of each axis, so that frequency 0 is in the middle."""
    return tenon.fft_fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: Optional[Union[int, Sequence[int]]] = None) -> Tensor:
    """The inverse of fftshift."""
    return tenon.fft_ifftshift(x, axes)
