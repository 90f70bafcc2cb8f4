"""Normalisation over the batch, over each channel, over groups of channels, and over the last axes."""

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

    def reset_running_stats(self) -> None:
        """Sets the running statistics to their start."""
        self._fill((self.running_mean, 0), (self.running_var, 1), (self.num_batches_tracked, 0))

    def reset_parameters(self) -> None:
        """Sets weight to 1, bias to 0, and the running statistics to their start."""
        self.reset_running_stats()
        self._fill((self.weight, 1), (self.bias, 0))

    def _fill(self, *pairs: Any) -> None:
        with tenon.no_grad():
            for tensor, value in pairs:
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
            if self.momentum is None:  # the running statistics are the mean over all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        batch = self.training or self.running_mean is None
        tracked = self.training is False or self.track_running_stats
        return functional.batch_norm(input, self.running_mean if tracked else None, self.running_var if tracked else None, self.weight, self.bias, batch,
                                     momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Normalises each channel of (N, C) or (N, C, L) over the batch. BatchNorm2d describes the arguments."""

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises each channel of (N, C, H, W) to mean 0 and variance 1, then multiplies by weight and adds bias
    (Ioffe and Szegedy 2015).

    In training the module uses the statistics of the batch and updates its running statistics; after eval() it
    uses these.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the share of a new batch in the running statistics; None keeps the mean over all batches.
        affine: has trained weight and bias (C,).
        track_running_stats: keeps running statistics. Without them every call uses those of its batch.
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises each channel of (N, C, D, H, W) over the batch. BatchNorm2d describes the arguments."""

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
    """Normalises each channel of each element of (N, C, L) to mean 0 and variance 1 (Ulyanov et al. 2016)."""

    _ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalises each channel of each element of (N, C, H, W) to mean 0 and variance 1 (Ulyanov et al. 2016)."""

    _ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalises each channel of each element of (N, C, D, H, W) to mean 0 and variance 1 (Ulyanov et al. 2016)."""

    _ranks = (4, 5)


class _LastAxes(Module):
    def _take(self, normalized_shape: Any) -> None:
        self.normalized_shape = (normalized_shape,) if hasattr(normalized_shape, "__index__") else tuple(normalized_shape)


class LayerNorm(_LastAxes):
    """Normalises the last axes, of shape normalized_shape, together to mean 0 and variance 1 (Ba et al. 2016). Then
    multiplies by weight and adds bias, both of that shape, if elementwise_affine."""

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
    """Divides the last axes, of shape normalized_shape, by their root mean square (Zhang and Sennrich 2019). Then
    multiplies by weight, of that shape, if elementwise_affine. eps=None takes the epsilon of f32, or of f64 for f64."""

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
    """Splits the channels of (N, C, ...) into num_groups groups and normalises each to mean 0 and variance 1 (Wu and
    He 2018)."""

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
    """input / (k + alpha * mean of the squares of `size` neighbouring channels) ** beta."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input: Tensor) -> Tensor:
        return functional.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LocalResponseNorm",
           "RMSNorm"]
