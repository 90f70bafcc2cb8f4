"""tenon.cuda: what programs for PyTorch ask about CUDA devices, answered from tenon.devices().

A CUDA device needs the cuda plug-in and an NVIDIA driver. Without them is_available() is False, and `tenon.doctor()`
says what is missing.
"""

from __future__ import annotations

from typing import Any

import tenon
from tenon import _tenon
from tenon.amp import GradScaler, autocast


class _Amp:
    autocast, GradScaler = autocast, GradScaler


amp = _Amp


def _names() -> list[str]:
    return [row.spelling for row in _tenon.devices() if row.provider == "cuda" and row.usable]


def is_available() -> bool:
    """True if a CUDA device can be used."""
    return bool(_names())


def device_count() -> int:
    """Returns the number of CUDA devices."""
    return len(_names())


def _device(device: Any = None) -> Any:
    if isinstance(device, int):
        device = f"cuda:{device}"
    return tenon.device("cuda:0" if device is None else str(device))


def current_device() -> int:
    """Returns the number of the CUDA device on which this thread makes tensors; 0 if that is another device."""
    kind, _, number = str(tenon.device.current()).partition(":")
    return int(number or 0) if kind == "cuda" else 0


def set_device(device: Any) -> None:
    """Makes new tensors of this thread on a CUDA device, given as a number or a spelling."""
    _tenon.set_device(_device(device))


def get_device_name(device: Any = None) -> str:
    """Returns the name of a CUDA device, such as "NVIDIA H100"."""
    return str(_device(device).name)


def synchronize(device: Any = None) -> None:
    """Waits for all work of a CUDA device."""
    _device(device).synchronize()


def memory_allocated(device: Any = None) -> int:
    """Returns the bytes that tensors of a CUDA device occupy."""
    return int(_device(device).memory_stats()["live"])


def max_memory_allocated(device: Any = None) -> int:
    """Returns the most bytes that tensors of a CUDA device occupied at once."""
    return int(_device(device).memory_stats()["peak"])


def memory_reserved(device: Any = None) -> int:
    """Returns the bytes that the allocator of a CUDA device holds."""
    return int(_device(device).memory_stats()["reserved"])


def manual_seed(seed: int) -> None:
    """Seeds the generator of all devices, as tenon.manual_seed does."""
    _tenon.manual_seed(seed)


manual_seed_all = manual_seed
