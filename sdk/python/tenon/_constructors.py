"""PyTorch's old constructors of one dtype, such as FloatTensor and LongTensor."""

from __future__ import annotations

from typing import Any

from tenon import _tenon
from tenon._tenon import Tensor

_DTYPES = {"FloatTensor": "float32", "DoubleTensor": "float64", "HalfTensor": "float16", "BFloat16Tensor": "bfloat16", "ByteTensor": "uint8",
           "CharTensor": "int8", "ShortTensor": "int16", "IntTensor": "int32", "LongTensor": "int64", "BoolTensor": "bool"}


def _constructor(name: str, dtype: _tenon.DType) -> Any:
    def make(*data: Any) -> Tensor:
        if len(data) == 1 and not isinstance(data[0], int):
            return _tenon.tensor(data[0], dtype=dtype)
        return _tenon.empty(list(data) or [0], dtype=dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"{name}(data) is tensor(data, dtype={dtype}); {name}(3, 4) is empty((3, 4), dtype={dtype})."
    return make


constructors = {name: _constructor(name, getattr(_tenon, dtype)) for name, dtype in _DTYPES.items()}
