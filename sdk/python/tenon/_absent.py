"""Names of PyTorch that this package does not have. Each says what to use instead."""

from __future__ import annotations

import types
from typing import Any

_INSTEAD = {
    "jit": "tenon.compile records a function, and tenon.onnx.export writes it to a file",
    "fx": "tenon.compile records a function",
    "hub": "download the weights and read them with tenon.load, or load an ONNX model with tenon.onnx.load",
    "distributed": "tenon.global_ has tensors over several processes; see GLOBAL.md",
    "multiprocessing": "use Python's multiprocessing with the spawn method; tensors can be pickled",
    "sparse": "all tensors are dense",
    "quantization": "quantise a model in ONNX; quantize_linear and quantized_matmul are ops of tenon",
    "xpu": "tenon.devices() lists the devices",
    "mps": "tenon.devices() lists the devices",
}


class _Absent(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        short = self.__name__.partition(".")[2]
        raise AttributeError(f"tenon has no {short}; {_INSTEAD[short]}.")

    def __repr__(self) -> str:
        return f"<absent {self.__name__}>"

    def __dir__(self) -> list[str]:
        return []


absent = {name: _Absent("tenon." + name) for name in _INSTEAD}
