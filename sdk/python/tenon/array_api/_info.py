"""What the standard's inspection asks: devices, dtypes, capabilities."""

from __future__ import annotations

from typing import Any, Optional, Union

import tenon
from tenon import Device, DType, _tenon
from tenon.array_api._creation import Place
from tenon.array_api._dtypes import KINDS

__all__ = ["__array_namespace_info__"]


class Info:
    """The object that `__array_namespace_info__` gives."""

    def capabilities(self) -> dict[str, Any]:
        """Which optional parts of the standard are there, and the highest rank."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": _tenon._max_rank}

    def default_device(self) -> Device:
        """Where tensors are made that name no device."""
        return Device.current()

    def devices(self) -> tuple[Device, ...]:
        """The devices that can be used."""
        return tuple(Device(each.spelling) for each in tenon.devices() if each.usable and not each.same_as)

    def default_dtypes(self, *, device: Place = None) -> dict[str, DType]:
        """The dtypes of tensors that name none. Complex numbers have none."""
        return {"real floating": tenon.float32, "integral": tenon.int64, "indexing": tenon.int64}

    def dtypes(self, *, device: Place = None, kind: Optional[Union[str, tuple[str, ...]]] = None) -> dict[str, DType]:
        """The dtypes of the standard that are there, all or those of a kind or of several, by name.

        Errors: a kind that the standard does not know."""
        kinds = ("bool", "numeric") if kind is None else (kind,) if isinstance(kind, str) else kind
        for each in kinds:
            if each not in KINDS:
                raise ValueError(f"dtypes: there is no kind '{each}'; there are {', '.join(KINDS)}.")
        return {name: dtype for each in kinds for name, dtype in KINDS[each].items()}


def __array_namespace_info__() -> Info:
    """What the namespace has: devices, dtypes, capabilities."""
    return Info()
