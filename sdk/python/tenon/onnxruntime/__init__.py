"""ONNX Runtime's Python interface on Tenon: programs change the line of their import.

    import tenon.onnxruntime as ort
    session = ort.InferenceSession("model.onnx", providers=[("TenonExecutionProvider", {"device": "vulkan:0"})])
    [y] = session.run(None, {"x": x})

The page sdk/python/ONNXRUNTIME.md lists the differences. `session.tenon_model` is the tenon.onnx.Model that runs.
"""

from __future__ import annotations

from typing import Any

from tenon import _tenon, onnx  # whose error says that a build has no ONNX
from tenon.onnxruntime import capi
from tenon.onnxruntime._options import ExecutionMode, ExecutionOrder, GraphOptimizationLevel, RunOptions, SessionOptions
from tenon.onnxruntime._refused import REFUSED, refusal
from tenon.onnxruntime._session import (InferenceSession, IOBinding, ModelMetadata, NodeArg, get_all_providers, get_available_providers,
                                        get_device)
from tenon.onnxruntime._values import OrtDevice, OrtValue, copy_tensors
from tenon.onnxruntime.capi import onnxruntime_pybind11_state

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "IOBinding", "InferenceSession", "ModelMetadata", "NodeArg", "OrtDevice", "OrtValue",
           "RunOptions", "SessionIOBinding", "SessionOptions", "copy_tensors", "disable_telemetry_events", "enable_telemetry_events", "get_all_providers",
           "get_available_providers", "get_build_info", "get_device", "get_version_string", "preload_dlls", "set_default_logger_severity",
           "set_default_logger_verbosity", "set_seed"]

# The version of ONNX Runtime whose interface this is, for programs that compare it. tenon.__version__ is Tenon's.
__version__ = "1.23.0"

SessionIOBinding = IOBinding


def get_version_string() -> str:
    """Returns the version of ONNX Runtime whose interface this is."""
    return __version__


def get_build_info() -> str:
    """Returns a text that names Tenon and its version."""
    return f"ORT Build Info: Tenon {_tenon.__version__}"


def set_seed(seed: int) -> None:
    """Sets the seed of the operators that draw random numbers, as tenon.manual_seed does."""
    import tenon
    tenon.manual_seed(seed)


def set_default_logger_severity(severity: int) -> None:
    """Does nothing: TENON_LOG decides what is logged."""


def set_default_logger_verbosity(verbosity: int) -> None:
    """Does nothing: TENON_LOG decides what is logged."""


def enable_telemetry_events() -> None:
    """Does nothing: Tenon sends no data."""


def disable_telemetry_events() -> None:
    """Does nothing: Tenon sends no data."""


def preload_dlls(cuda: bool = True, cudnn: bool = True, msvc: bool = True, directory: str | None = None) -> None:
    """Does nothing: a plug-in finds its libraries when it is loaded."""


def __getattr__(name: str) -> Any:
    if name in REFUSED:
        raise AttributeError(refusal(name))
    raise AttributeError(f"module 'tenon.onnxruntime' has no attribute '{name}'.")
