"""Windows: lists of M numbers w(0), ..., w(M - 1), with the names and arguments of torch.signal.windows.

sym=True makes a symmetric window. sym=False makes a periodic one: the symmetric window of M + 1 numbers without
its last number. Formulas below are those of symmetric windows. Elements are f32 or f64.
"""

from __future__ import annotations

import math
from typing import Any, Iterable

import tenon
from tenon import Tensor


def _places(M: int, sym: bool, dtype: Any, device: Any) -> tuple[Tensor, float]:
    """Returns the numbers 0, 1, ..., M - 1, and the last position of the symmetric window."""
    if M < 0:
        raise ValueError(f"Requires non-negative window length, got M={M}")
    dtype = tenon.f32 if dtype is None else dtype
    if dtype not in (tenon.f32, tenon.f64):
        raise ValueError(f"Windows have elements of f32 or f64, not of {dtype}")
    return tenon.arange(M, dtype=dtype, device=device), float(M - 1 if sym else M)


def _ended(window: Tensor, requires_grad: bool) -> Tensor:
    return window.requires_grad_() if requires_grad else window


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                   requires_grad: bool = False) -> Tensor:
    """Sum over i of (-1) ** i * a[i] * cos(2 * pi * i * n / (M - 1))."""
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    a = list(a)
    if not a:
        raise ValueError("Coefficients cannot be empty")
    places, last = _places(M, sym, dtype, device)
    if M == 1:
        return _ended(tenon.ones_like(places), requires_grad)
    angles = places * (2 * math.pi / max(last, 1.0))
    total = tenon.zeros_like(places)
    for i, factor in enumerate(a):
        total = total + tenon.cos(angles * i) * (factor if i % 2 == 0 else -factor)
    return _ended(total, requires_grad)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                    requires_grad: bool = False) -> Tensor:
    """alpha - (1 - alpha) * cos(2 * pi * n / (M - 1))."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """general_hamming with alpha 0.54."""
    return general_hamming(M, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """general_hamming with alpha 0.5."""
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """general_cosine with the coefficients 0.42, 0.5 and 0.08."""
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The window of four cosine terms with the least side lobes (Nuttall 1981)."""
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, device=device, requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """1 - |2 * n / (M - 1) - 1|: a triangle that is 0 at both ends."""
    places, last = _places(M, sym, dtype, device)
    if M == 1:
        return _ended(tenon.ones_like(places), requires_grad)
    return _ended(1 - tenon.abs(places * (2 / max(last, 1.0)) - 1), requires_grad)


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """sin(pi * (n + 1 / 2) / M)."""
    places, last = _places(M, sym, dtype, device)
    if M == 1:
        return _ended(tenon.ones_like(places), requires_grad)
    return _ended(tenon.sin((places + 0.5) * (math.pi / max(last + 1, 1.0))), requires_grad)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
                requires_grad: bool = False) -> Tensor:
    """exp(-|n - center| / tau). center must be None, the middle, if sym."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    places, last = _places(M, sym, dtype, device)
    if M == 1:
        return _ended(tenon.ones_like(places), requires_grad)
    return _ended(tenon.exp(tenon.abs(places - (last / 2 if center is None else center)) * (-1 / tau)), requires_grad)


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """exp(-((n - center) / std) ** 2 / 2), where center is the middle of the window."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    places, last = _places(M, sym, dtype, device)
    if M == 1:
        return _ended(tenon.ones_like(places), requires_grad)
    scaled = (places - last / 2) / std
    return _ended(tenon.exp(scaled * scaled * -0.5), requires_grad)


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """I0(beta * sqrt(1 - (2 * n / (M - 1) - 1) ** 2)) / I0(beta), where I0 is the modified Bessel function."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    places, last = _places(M, sym, dtype, device)
    if M == 1:
        return _ended(tenon.ones_like(places), requires_grad)
    from tenon import special
    wide = tenon.cast(places, tenon.f64) * (2 / max(last, 1.0)) - 1
    inside = tenon.sqrt(tenon.clamp(1 - wide * wide, 0)) * beta
    return _ended(tenon.cast(special.i0(inside) / special.i0(tenon.tensor(beta, dtype=tenon.f64)), places.dtype), requires_grad)
