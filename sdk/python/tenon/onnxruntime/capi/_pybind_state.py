"""Another name of onnxruntime_pybind11_state."""

from tenon.onnxruntime.capi.onnxruntime_pybind11_state import *
from tenon.onnxruntime.capi.onnxruntime_pybind11_state import __getattr__
