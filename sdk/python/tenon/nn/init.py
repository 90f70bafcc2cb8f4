"""Initial values of parameters. Each function overwrites the tensor and returns it. Sources: Glorot and Bengio 2010
(xavier), He et al. 2015 (kaiming), Saxe et al. 2013 (orthogonal).

fan_in is the number of inputs that each result of a layer sums up, fan_out the number of results that each input
enters.
"""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Returns the factor by which weights before this nonlinearity should be greater, as the nonlinearity shrinks
    its input."""
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
        return 1.0
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _fans(tensor: Tensor) -> tuple[int, int]:
    """Returns (fan_in, fan_out) of a weight."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.shape[1] * field, tensor.shape[0] * field


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _fans(tensor)[0 if mode == "fan_in" else 1]


def _write(tensor: Any, values: Tensor) -> Any:
    with tenon.no_grad():
        return tensor.copy_(values)


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0) -> Any:
    """Random numbers, uniform in [a, b)."""
    with tenon.no_grad():
        return tensor.uniform_(a, b)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0) -> Any:
    """Random numbers, normally distributed."""
    with tenon.no_grad():
        return tensor.normal_(mean, std)


def trunc_normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Any:
    """Random numbers, normally distributed but restricted to [a, b], by inversion of the distribution function."""
    def below(x: float) -> float:
        return (1.0 + math.erf((x - mean) / (std * math.sqrt(2.0)))) / 2.0
    low, high = 2 * below(a) - 1, 2 * below(b) - 1
    dtype = tenon.f32 if tensor.dtype in (tenon.f16, tenon.bf16) else tensor.dtype  # f16 and bf16 have few random bits
    uniform = tenon.rand(tensor.shape, dtype=dtype, device=tensor.device) * (high - low) + low
    return _write(tensor, tenon.clamp(tenon.erfinv(uniform) * (std * math.sqrt(2.0)) + mean, a, b))


def constant_(tensor: Any, val: float) -> Any:
    """Sets all elements to val."""
    with tenon.no_grad():
        return tensor.fill_(val)


def ones_(tensor: Any) -> Any:
    """Sets all elements to 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Sets all elements to 0."""
    return constant_(tensor, 0.0)


def eye_(tensor: Any) -> Any:
    """Sets a matrix to the identity."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _write(tensor, tenon.eye(tensor.shape[0], tensor.shape[1]))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """Sets the weight of a convolution so that, in each group, result channel i is input channel i."""
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.shape[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.shape[0] // groups
    middle = [size // 2 for size in tensor.shape[2:]]
    values = tenon.zeros(tensor.shape)
    for group in range(groups):
        for i in range(min(per_group, tensor.shape[1])):
            values[(group * per_group + i, i, *middle)] = 1
    return _write(tensor, values)


def xavier_uniform_(tensor: Any, gain: float = 1.0) -> Any:
    """Uniform random numbers of mean 0 and variance 2 * gain ** 2 / (fan_in + fan_out)."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Any, gain: float = 1.0) -> Any:
    """Normal random numbers of mean 0 and variance 2 * gain ** 2 / (fan_in + fan_out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def kaiming_uniform_(tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Any:
    """Uniform random numbers of mean 0 and variance gain ** 2 / fan.

    mode: "fan_in" or "fan_out". a: the negative slope, for nonlinearity "leaky_relu"."""
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu") -> Any:
    """Normal random numbers of mean 0 and variance gain ** 2 / fan. The arguments are those of kaiming_uniform_."""
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode)))


def orthogonal_(tensor: Any, gain: float = 1) -> Any:
    """Makes the rows, or the columns if there are fewer columns, orthogonal with length gain. Axes after the first
    count as one."""
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    rows, columns = tensor.shape[0], math.prod(tensor.shape[1:])
    drawn = tenon.randn((max(rows, columns), min(rows, columns)), dtype=tenon.float64)
    q, r = tenon.linalg_qr(drawn)
    q = q * tenon.sign(tenon.diagonal(r))  # makes all orthogonal matrices equally likely
    return _write(tensor, tenon.reshape(q if rows >= columns else q.T, tensor.shape) * gain)


def sparse_(tensor: Any, sparsity: float, std: float = 0.01) -> Any:
    """Normal random numbers, and 0 in a share `sparsity` of each column."""
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    zeros = math.ceil(sparsity * tensor.shape[0])
    order = tenon.argsort(tenon.rand(tensor.shape), 0)
    return _write(tensor, tenon.where(order < zeros, 0.0, tenon.randn(tensor.shape) * std))
