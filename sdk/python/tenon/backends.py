"""tenon.backends: what programs for PyTorch ask about libraries and devices, answered truthfully.

The flags that PyTorch lets programs set are readable here, and setting one changes nothing; each says what decides
instead.
"""

from __future__ import annotations

import types
from typing import Any

import tenon
from tenon import _tenon


def _kinds() -> set[str]:
    return {row.provider for row in _tenon.devices() if row.usable}


class _Backend(types.SimpleNamespace):
    def __init__(self, is_available: Any, **flags: Any) -> None:
        super().__init__(is_available=is_available, **flags)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"tenon.backends has no flag '{name}'; the flags here are {', '.join(self.__dict__)}.")
        super().__setattr__(name, value)


def _has(kind: str) -> Any:
    def is_available() -> bool:
        return kind in _kinds()
    is_available.__doc__ = f"True if a device of the provider {kind} can be used."
    return is_available


# TF32 in products of f32 is chosen by tenon.precision("relaxed"), kernels by the provider.
cuda = _Backend(_has("cuda"), is_built=_has("cuda"), matmul=_Backend(_has("cuda"), allow_tf32=False))
cudnn = _Backend(_has("cuda"), enabled=True, benchmark=False, deterministic=False, allow_tf32=False)
vulkan = _Backend(_has("vulkan"))
opencl = _Backend(_has("opencl"))
mkldnn = _Backend(_has("cpu"), enabled=True)  # oneDNN, in the provider cpu
mps = _Backend(lambda: False, is_built=lambda: False)
mkl = _Backend(lambda: False)
openmp = _Backend(lambda: False)
