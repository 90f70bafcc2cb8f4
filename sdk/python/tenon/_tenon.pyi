"""The extension module, for type checkers: its public names are those of tenon."""

from typing import Any

from tenon import Tensor as Tensor
from tenon import is_grad_enabled as is_grad_enabled
from tenon import is_inference_mode_enabled as is_inference_mode_enabled

def __getattr__(name: str) -> Any: ...
