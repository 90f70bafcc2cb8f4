"""The standard's inspection functions: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any, Optional, Union

import tenon
from tenon import Device, DType, _tenon
from tenon.array_api._creation import Place
from tenon.array_api._dtypes import KINDS

__all__ = ["__array_namespace_info__"]


class Info:
    """The result of `__array_namespace_info__`."""

    def capabilities(self) -> dict[str, Any]:
        """Returns the optional parts of the standard that are supported, and the highest rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _tenon._max_rank}

    def default_device(self) -> Device:
        """Returns the device of tensors that are created without one."""
        return Device.current()

    def devices(self) -> tuple[Device, ...]:
        """Returns the usable devices."""
        return tuple(Device(each.spelling) for each in tenon.devices() if each.usable and not each.same_as)

    def default_dtypes(self, *, device: Place = None) -> dict[str, DType]:
        """Returns the default dtypes by kind. There is none for complex numbers."""
        return {"real floating": tenon.float32, "integral": tenon.int64, "indexing": tenon.int64}

    def dtypes(self, *, device: Place = None, kind: Optional[Union[str, tuple[str, ...]]] = None) -> dict[str, DType]:
        """Returns the supported dtypes of the standard by name: all, or those of one or several kinds.

        Errors: the standard does not have this kind."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for each in kinds:
            if each not in KINDS:
                raise ValueError(f"dtypes: there is no kind '{each}'; the kinds are {', '.join(KINDS)}.")
        return {name: dtype for each in kinds for name, dtype in KINDS[each].items()}


def __array_namespace_info__() -> Info:
    """Returns an object that describes the namespace: devices, dtypes, capabilities."""
    return Info()
