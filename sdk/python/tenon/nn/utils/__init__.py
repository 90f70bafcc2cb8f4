"""Functions of parameters: of all together, in training loops, and parameters that are computed from others."""

from __future__ import annotations

import math
from typing import Any, Iterable

import tenon
from tenon import Tensor
from tenon.nn.utils import parametrizations as parametrizations
from tenon.nn.utils import parametrize as parametrize
from tenon.nn.utils import rnn as rnn
from tenon.nn.utils.fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from tenon.nn.utils.fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from tenon.nn.utils.fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from tenon.nn.utils.fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from tenon.nn.utils.norms import remove_spectral_norm as remove_spectral_norm
from tenon.nn.utils.norms import remove_weight_norm as remove_weight_norm
from tenon.nn.utils.norms import spectral_norm as spectral_norm
from tenon.nn.utils.norms import weight_norm as weight_norm


def _gradients(parameters: Any) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [each.grad for each in listed if each.grad is not None]


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """Scales all gradients by one factor so that their joint norm is at most max_norm. Returns the norm before.

    error_if_nonfinite: raises an error if the norm is infinite or NaN."""
    gradients = _gradients(parameters)
    if not gradients:
        return tenon.tensor(0.0)
    with tenon.no_grad():
        if norm_type == math.inf:
            total = tenon.amax(tenon.stack([tenon.amax(tenon.abs(each)) for each in gradients], 0))
        else:
            total = tenon.vector_norm(tenon.stack([tenon.vector_norm(each, float(norm_type)) for each in gradients], 0), float(norm_type))
        if error_if_nonfinite and not math.isfinite(total.item()):
            raise RuntimeError(f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped.")
        factor = tenon.clamp(max_norm / (total + 1e-6), max=1.0)
        for each in gradients:
            each.mul_(tenon.cast(factor, each.dtype))
    return total


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Limits each element of each gradient to the range from -clip_value to clip_value."""
    with tenon.no_grad():
        for each in _gradients(parameters):
            each.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns all elements of all parameters as one list."""
    return tenon.concat([tenon.reshape(each, (-1,)) for each in parameters], 0)


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Writes consecutive elements of vec into the parameters."""
    at = 0
    with tenon.no_grad():
        for each in parameters:
            each.copy_(tenon.reshape(vec[at:at + each.numel()], each.shape))
            at += each.numel()
