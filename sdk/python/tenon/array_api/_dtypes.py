"""Dtypes of the array API standard: their kinds, promotion, and limits."""

from __future__ import annotations

import functools
from typing import Any, Union

import tenon
from tenon import Device, DType, Tensor, finfo, iinfo

__all__ = ["astype", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

Scalar = Union[bool, int, float]

# The dtypes of the standard by kind. The functions also accept Tenon's other dtypes.
SIGNED = {"int8": tenon.int8, "int16": tenon.int16, "int32": tenon.int32, "int64": tenon.int64}
UNSIGNED = {"uint8": tenon.uint8, "uint16": tenon.uint16, "uint32": tenon.uint32, "uint64": tenon.uint64}
FLOATING = {"float32": tenon.float32, "float64": tenon.float64}
KINDS: dict[str, dict[str, DType]] = {
    "bool": {"bool": tenon.bool}, "signed integer": SIGNED, "unsigned integer": UNSIGNED, "integral": {**SIGNED, **UNSIGNED},
    "real floating": FLOATING, "complex floating": {}, "numeric": {**SIGNED, **UNSIGNED, **FLOATING}}

def dtype_of(value: Union[DType, Tensor]) -> DType:
    """Returns the dtype of a tensor. Returns a dtype unchanged."""
    return value.dtype if isinstance(value, Tensor) else value


@functools.lru_cache(maxsize=None)
def kind_of(dtype: DType) -> str:
    """Returns the kind of the dtype: "bool", "signed integer", "unsigned integer" or "real floating"."""
    if dtype.is_floating_point:
        return "real floating"
    for kind in ("bool", "signed integer", "unsigned integer"):
        if dtype in KINDS[kind].values():
            return kind
    return "none"


def isdtype(dtype: DType, kind: Union[DType, str, tuple[Union[DType, str], ...]]) -> bool:
    """True if the dtype equals, or belongs to the kind, that is given. A tuple lists alternatives.

    Errors: the standard does not have this kind."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, each) for each in kind)
    if not isinstance(kind, str):
        return dtype == kind
    if kind not in KINDS:
        raise ValueError(f"isdtype: there is no kind '{kind}'; the kinds are {', '.join(KINDS)}.")
    return dtype in KINDS[kind].values()


@functools.lru_cache(maxsize=None)
def promoted(a: DType, b: DType) -> DType:
    """Returns the dtype in which an op computes for tensors of these two dtypes, by Tenon's rules."""
    if a == b:
        return a
    return tenon.maximum(tenon.zeros((0,), dtype=a, device="cpu"), tenon.zeros((0,), dtype=b, device="cpu")).dtype


def _with_scalar(dtype: DType, scalar: Scalar) -> DType:
    kind = kind_of(dtype)
    if isinstance(scalar, float) and kind != "real floating":
        return default_dtype(scalar) if kind == "none" else promoted(dtype, tenon.float32)
    if isinstance(scalar, int) and not isinstance(scalar, bool) and kind == "bool":
        return tenon.int64
    return dtype


def default_dtype(scalar: Scalar) -> DType:
    """Returns the dtype of a tensor that is created from this Python number."""
    return tenon.bool if isinstance(scalar, bool) else tenon.int64 if isinstance(scalar, int) else tenon.float32


def result_type(*arrays_and_dtypes: Union[Tensor, Scalar, DType]) -> DType:
    """Returns the dtype that the arguments promote to. Python numbers count only if they are of a higher kind.

    Errors: no argument."""
    dtypes = [dtype_of(each) for each in arrays_and_dtypes if isinstance(each, (Tensor, DType))]
    scalars = [each for each in arrays_and_dtypes if not isinstance(each, (Tensor, DType))]
    if not dtypes:
        if not scalars:
            raise ValueError("result_type: it needs at least one argument.")
        dtypes = [default_dtype(each) for each in scalars]
    result = functools.reduce(promoted, dtypes)
    return functools.reduce(_with_scalar, scalars, result)


def can_cast(from_: Union[DType, Tensor], to: DType, /) -> bool:
    """True if the standard's promotion can convert the dtype to `to`: a dtype of the same kind that holds all its
    values."""
    source = dtype_of(from_)
    kinds = {kind_of(source), kind_of(to)}
    if len(kinds) > 1 and kinds != {"signed integer", "unsigned integer"}:
        return False
    return source == to or (promoted(source, to) == to and to.bits > source.bits)


def astype(x: Tensor, dtype: DType, /, *, copy: bool = True, device: Union[Device, str, None] = None) -> Tensor:
    """Returns the elements with another dtype. Returns `x` itself if dtype and device are right and `copy` is False."""
    return x.to(dtype=dtype, device=device, copy=copy)
