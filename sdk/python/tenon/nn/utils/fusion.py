"""Batch norms with running statistics, merged into the layer before them."""

from __future__ import annotations

import copy
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn.parameter import Parameter


def _scaled(weight: Tensor, bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, scale: Tensor | None, shift: Tensor | None,
            axis: int) -> tuple[Parameter, Parameter]:
    with tenon.no_grad():
        bias = tenon.zeros_like(mean) if bias is None else bias
        factor = tenon.rsqrt(var + eps) if scale is None else scale * tenon.rsqrt(var + eps)
        shape = [1] * weight.ndim
        shape[axis] = -1
        fused_weight = tenon.cast(weight * tenon.reshape(factor, shape), weight.dtype)
        fused_bias = tenon.cast((bias - mean) * factor + (0 if shift is None else shift), bias.dtype)
    return Parameter(fused_weight, weight.requires_grad), Parameter(fused_bias, bias.requires_grad)


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of a convolution that includes the batch norm after it. transpose: the convolution is
    transposed."""
    return _scaled(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
                           bn_b: Tensor | None) -> tuple[Parameter, Parameter]:
    """Returns the weight and bias of a linear layer that includes the batch norm after it."""
    return _scaled(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _fused(layer: Any, bn: Any, axis: int) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval! Call eval() of both modules.")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("The batch norm has no running statistics.")
    made = copy.deepcopy(layer)
    made.weight, made.bias = _scaled(made.weight, made.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, axis)
    return made


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Returns a convolution that includes the batch norm after it. Both must be in evaluation mode. transpose: the
    convolution is transposed."""
    return _fused(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Returns a linear layer that includes the batch norm after it. Both must be in evaluation mode."""
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, 0)
