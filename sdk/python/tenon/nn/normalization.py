"""Norms: over the batch, over the channels of one element, over groups, over the last axes."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter


class _ChannelNorm(Module):
    _ranks: tuple[int, ...] = ()

    def __init__(self, num_features: int, eps: float, momentum: float | None, affine: bool, track_running_stats: bool, device: Any, dtype: Any,
                 bias: bool) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum, self.affine, self.track_running_stats = num_features, eps, momentum, affine, track_running_stats
        made = dtype or tenon.float32
        self.register_parameter("weight", Parameter(tenon.ones((num_features,), dtype=made, device=device)) if affine else None)
        self.register_parameter("bias", Parameter(tenon.zeros((num_features,), dtype=made, device=device)) if affine and bias else None)
        self.register_buffer("running_mean", tenon.zeros((num_features,), dtype=made, device=device) if track_running_stats else None)
        self.register_buffer("running_var", tenon.ones((num_features,), dtype=made, device=device) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", tenon.zeros((), dtype=tenon.int64, device=device) if track_running_stats else None)

    def _check(self, input: Tensor) -> None:
        if input.ndim not in self._ranks:
            ranks = " or ".join(f"{rank}D" for rank in self._ranks)
            raise ValueError(f"expected {ranks} input (got {input.ndim}D input)")

    def reset_parameters(self) -> None:
        """Weights 1, biases 0, and nothing learned of the batches."""
        with tenon.no_grad():
            for tensor, value in ((self.weight, 1), (self.bias, 0), (self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0)):
                if tensor is not None:
                    tensor.fill_(value)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"track_running_stats={self.track_running_stats}")


class _BatchNorm(_ChannelNorm):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        momentum: Any = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            with tenon.no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        batch = self.training or self.running_mean is None
        tracked = self.training is False or self.track_running_stats
        return functional.batch_norm(input, self.running_mean if tracked else None, self.running_var if tracked else None, self.weight, self.bias, batch,
                                     momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Each channel of (N, C) or (N, C, L) with mean 0 and variance 1."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel of (N, C, H, W) with mean 0 and variance 1."""

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Each channel of (N, C, D, H, W) with mean 0 and variance 1."""

    _ranks = (5,)


class _InstanceNorm(_ChannelNorm):
    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False, track_running_stats: bool = False,
                 device: Any = None, dtype: Any = None, *, bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check(input)
        alone = input.ndim == self._ranks[0]
        result = functional.instance_norm(input[None] if alone else input, self.running_mean, self.running_var, self.weight, self.bias,
                                          self.training or not self.track_running_stats, self.momentum or 0.0, self.eps)
        return result[0] if alone else result


class InstanceNorm1d(_InstanceNorm):
    """Each channel of each element of (N, C, L) with mean 0 and variance 1."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Each channel of each element of (N, C, H, W) with mean 0 and variance 1."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Each channel of each element of (N, C, D, H, W) with mean 0 and variance 1."""

    _ranks = (4, 5)


class _LastAxes(Module):
    def _take(self, normalized_shape: Any) -> None:
        self.normalized_shape = (normalized_shape,) if hasattr(normalized_shape, "__index__") else tuple(normalized_shape)


class LayerNorm(_LastAxes):
    """The last axes together with mean 0 and variance 1."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self._take(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = dtype or tenon.float32
        self.register_parameter("weight", Parameter(tenon.ones(self.normalized_shape, dtype=made, device=device)) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(tenon.zeros(self.normalized_shape, dtype=made, device=device)) if elementwise_affine and bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return tenon.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(_LastAxes):
    """The last axes together with a mean square of 1."""

    def __init__(self, normalized_shape: Any, eps: float | None = None, elementwise_affine: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self._take(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        self.register_parameter("weight", Parameter(tenon.ones(self.normalized_shape, dtype=dtype or tenon.float32, device=device)) if elementwise_affine else None)

    def forward(self, input: Tensor) -> Tensor:
        return tenon.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Groups of channels of each element with mean 0 and variance 1."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, device: Any = None, dtype: Any = None, *,
                 bias: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        made = dtype or tenon.float32
        self.register_parameter("weight", Parameter(tenon.ones((num_channels,), dtype=made, device=device)) if affine else None)
        self.register_parameter("bias", Parameter(tenon.zeros((num_channels,), dtype=made, device=device)) if affine and bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return tenon.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """Each channel divided by a power of its neighbours' mean square."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LocalResponseNorm",
           "RMSNorm"]
