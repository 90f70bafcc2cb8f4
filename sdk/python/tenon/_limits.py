"""Limits of dtypes: finfo and iinfo, as NumPy and PyTorch have them."""

from __future__ import annotations

from typing import Any

from tenon import _tenon
from tenon._tenon import Tensor

# Bits of the exponent and of the fraction of each float dtype.
_LAYOUTS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
_INTEGERS = {_tenon.i8, _tenon.i16, _tenon.i32, _tenon.i64, _tenon.u8, _tenon.u16, _tenon.u32, _tenon.u64}


class _Limits:
    __slots__: tuple[str, ...] = ()

    def _fill(self, *values: Any) -> None:
        for name, value in zip(self.__slots__, values):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be changed.")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.dtype is other.dtype  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash((type(self), self.dtype))  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)}' for name in self.__slots__)})"


class finfo(_Limits):
    """Limits of a float dtype.

    Attributes: bits; eps, the distance from 1 to the next number; max and min; smallest_normal, also called tiny;
    resolution, a power of ten that decimal digits reach; dtype.

    Errors: TypeError for a dtype that is not a float of 16 bits or more.

    Example:
        >>> tenon.finfo(tenon.float16).max
        65504.0
    """

    __slots__ = ("bits", "eps", "max", "min", "smallest_normal", "resolution", "dtype")
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    resolution: float
    dtype: Any

    def __init__(self, type: Any = _tenon.f32, /) -> None:
        dtype = type.dtype if isinstance(type, Tensor) else type
        layout = _LAYOUTS.get(getattr(dtype, "name", ""))
        if layout is None:
            raise TypeError(f"finfo: {dtype!r} is not a float of 16 bits or more.")
        exponent, fraction = layout
        bias = 2 ** (exponent - 1) - 1
        greatest = (2.0 - 2.0**-fraction) * 2.0**bias
        digits = int(fraction * 0.30102999566398120)
        self._fill(dtype.bits, 2.0**-fraction, greatest, -greatest, 2.0 ** (1 - bias), float(f"1e-{digits}"), dtype)

    @property
    def tiny(self) -> float:
        return self.smallest_normal


class iinfo(_Limits):
    """Limits of an integer dtype: bits, min, max and dtype.

    Errors: TypeError for a dtype that is not an integer.

    Example:
        >>> tenon.iinfo(tenon.int8).max
        127
    """

    __slots__ = ("bits", "max", "min", "dtype")
    bits: int
    max: int
    min: int
    dtype: Any

    def __init__(self, type: Any, /) -> None:
        dtype = type.dtype if isinstance(type, Tensor) else type
        if dtype not in _INTEGERS:
            raise TypeError(f"iinfo: {dtype!r} is not an integer dtype.")
        signed = dtype.name.startswith("i")
        greatest = 2 ** (dtype.bits - signed) - 1
        self._fill(dtype.bits, greatest, -greatest - 1 if signed else 0, dtype)
