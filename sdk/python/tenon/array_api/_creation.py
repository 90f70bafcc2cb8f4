"""Functions of the array API standard that create tensors."""

from __future__ import annotations

import builtins
from typing import Any, Literal, Optional, Sequence, Union

import tenon
from tenon import Device, DType, Tensor
from tenon.array_api._dtypes import Scalar, default_dtype
from tenon.array_api._elementwise import as_operand

__all__ = [
    "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "full", "full_like", "linspace", "meshgrid",
    "ones", "ones_like", "tril", "triu", "zeros", "zeros_like"]

Shape = Union[int, tuple[int, ...]]
Place = Union[Device, str, None]


def asarray(obj: Any, /, *, dtype: Optional[DType] = None, device: Place = None, copy: Optional[bool] = None) -> Tensor:
    """Creates a tensor from a number, nested lists, an array, or an object with DLPack.

    copy: True always copies, False never copies, None copies if the memory cannot be shared.
    Errors: copy is False and the memory cannot be shared.
    """
    made = obj if isinstance(obj, Tensor) else _shared(obj)
    if made is None:
        if copy is False:
            raise ValueError("asarray: copy is False, but Python numbers have no memory to share.")
        return tenon.tensor(obj, dtype=dtype, device=device)
    moved = made.to(dtype=dtype, device=device)
    if copy is False and moved is not made:
        raise ValueError("asarray: copy is False, but another dtype or device needs a copy.")
    return tenon.clone(moved) if copy and moved is made else moved


def _shared(obj: Any) -> Optional[Tensor]:
    if isinstance(obj, (builtins.bool, int, float, list, tuple, range)):
        return None
    for share in (tenon.from_numpy, tenon.from_dlpack):
        try:
            return share(obj)
        except (TypeError, ValueError, BufferError):
            continue
    return None


def from_dlpack(x: Any, /, *, device: Place = None, copy: Optional[bool] = None) -> Tensor:
    """Creates a tensor over the memory of an object with DLPack. `copy` is that of asarray.

    Errors: copy is False and the tensor must be moved to another device."""
    made = tenon.from_dlpack(x)
    moved = made.to(device=device)
    if copy is False and moved is not made:
        raise ValueError("from_dlpack: copy is False, but another device needs a copy.")
    return tenon.clone(moved) if copy and moved is made else moved


def arange(start: Union[int, float], /, stop: Union[int, float, None] = None, step: Union[int, float] = 1, *,
           dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """The numbers start, start + step, ... before `stop`, as a tensor of rank 1. A single argument is `stop`, with
    start 0.

    Errors: step is 0.
    """
    first, last = (0, start) if stop is None else (start, stop)
    if dtype is None and any(isinstance(each, float) for each in (first, last, step)):
        dtype = tenon.float32
    if (last - first) * step <= 0:
        if step == 0:
            raise ValueError("arange: step is 0.")
        return tenon.zeros((0,), dtype=dtype or tenon.int64, device=device)
    return tenon.arange(first, last, step, dtype=dtype, device=device)


def linspace(start: Union[int, float], stop: Union[int, float], /, num: int, *, dtype: Optional[DType] = None,
             device: Place = None, endpoint: bool = True) -> Tensor:
    """`num` evenly spaced numbers from start to stop, as a tensor of rank 1. Contains stop if `endpoint`.

    Errors: num is negative."""
    dtype = dtype or tenon.float32
    if endpoint:
        return tenon.linspace(start, stop, num, dtype=dtype, device=device)
    return tenon.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def empty(shape: Shape, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """A tensor with undefined elements; f32 by default."""
    return tenon.empty(_dims(shape), dtype=dtype or tenon.float32, device=device)


def zeros(shape: Shape, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """A tensor of zeros; f32 by default."""
    return tenon.zeros(_dims(shape), dtype=dtype or tenon.float32, device=device)


def ones(shape: Shape, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """A tensor of ones; f32 by default."""
    return tenon.ones(_dims(shape), dtype=dtype or tenon.float32, device=device)


def full(shape: Shape, fill_value: Scalar, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """A tensor filled with one number. The default dtype depends on the number: bool, i64 or f32."""
    dtype = dtype or default_dtype(fill_value)
    like = tenon.empty((0,), dtype=dtype, device=device)
    return tenon.clone(tenon.expand(tenon.cast(as_operand(fill_value, like), dtype), _dims(shape)))


def empty_like(x: Tensor, /, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """Like empty, with the shape of `x`, and by default its dtype and device."""
    return empty(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def zeros_like(x: Tensor, /, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """Like zeros, with the shape of `x`, and by default its dtype and device."""
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Tensor, /, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """Like ones, with the shape of `x`, and by default its dtype and device."""
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def full_like(x: Tensor, /, fill_value: Scalar, *, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """Like full, with the shape of `x`, and by default its dtype and device."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def eye(n_rows: int, n_cols: Optional[int] = None, /, *, k: int = 0, dtype: Optional[DType] = None, device: Place = None) -> Tensor:
    """A matrix (n_rows, n_cols) of ones on diagonal k and zeros elsewhere. n_cols defaults to n_rows."""
    columns = n_rows if n_cols is None else n_cols
    rows, across = tenon.arange(n_rows, device=device), tenon.arange(columns, device=device)
    shift = max(-n_rows, min(k, columns))  # diagonals outside the matrix are empty
    return tenon.cast(tenon.unsqueeze(rows, 1) + shift == across, dtype or tenon.float32)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices (..., m, n) with zeros above diagonal k."""
    return tenon.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices (..., m, n) with zeros below diagonal k."""
    return tenon.triu(x, k)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Coordinate grids from tensors of rank 1: result i varies along axis i. indexing "xy" exchanges the first two
    axes."""
    return tenon.meshgrid(list(arrays), indexing=indexing) if arrays else ()


def _dims(shape: Union[int, Sequence[int]]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)
