"""Modules under the names that programs import them by: `from tenon.onnxruntime.capi import onnxruntime_pybind11_state`."""
