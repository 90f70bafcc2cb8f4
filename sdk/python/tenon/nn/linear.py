"""Linear layers, and modules that only change shapes."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import init
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter


class Identity(Module):
    """Returns its argument. Ignores all settings."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """input @ weight.T + bias: (..., in_features) to (..., out_features).

    Example:
        >>> tenon.nn.Linear(64, 10)(tenon.ones(2, 64)).shape
        (2, 10)
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(tenon.empty((out_features, in_features), dtype=dtype or tenon.float32, device=device))
        self.register_parameter("bias", Parameter(tenon.empty((out_features,), dtype=dtype or tenon.float32, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new random parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return tenon.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """Result k is input1 @ weight[k] @ input2 + bias[k]: (..., in1_features) and (..., in2_features) to (...,
    out_features)."""

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = Parameter(tenon.empty((out_features, in1_features, in2_features), dtype=dtype or tenon.float32, device=device))
        self.register_parameter("bias", Parameter(tenon.empty((out_features,), dtype=dtype or tenon.float32, device=device)) if bias else None)
        bound = 1 / math.sqrt(in1_features)
        for each in self.parameters():
            init.uniform_(each, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return tenon.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class Flatten(Module):
    """Joins the axes start_dim to end_dim into one."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return tenon.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits the axis dim into axes of the lengths unflattened_size."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return tenon.unflatten(input, self.dim, list(self.unflattened_size))

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


__all__ = ["Bilinear", "Flatten", "Identity", "Linear", "Unflatten"]
