"""Functions that layers are made of. Names and arguments are PyTorch's; the functions run on every device that the
ops do.

A function with the same arguments as an op is that op, for example `relu` or `linear`.

Terms that the docstrings share: N is the batch, C the channels, L, H, W and D are lengths of axes. `inplace=True`
writes the result into `input` and returns `input`. `reduction` of a loss is "mean", "sum", or "none" for one loss
per element.
"""

from __future__ import annotations

import functools
import math
import warnings
from typing import Any, Callable, Sequence, Union

import tenon
from tenon import Tensor
from tenon._spellings import with_out
from tenon.nn.sampling import affine_grid as affine_grid
from tenon.nn.sampling import grid_sample as grid_sample
from tenon.nn.sequences import ctc_loss as ctc_loss

Sizes = Union[int, Sequence[int]]

# ---- activations ----

relu, gelu, silu, mish, sigmoid, tanh = tenon.relu, tenon.gelu, tenon.silu, tenon.mish, tenon.sigmoid, tenon.tanh
softsign, tanhshrink, logsigmoid, relu6 = tenon.softsign, tenon.tanhshrink, tenon.logsigmoid, tenon.relu6
prelu, hardsigmoid, hardswish, glu, pixel_shuffle, pixel_unshuffle = (
    tenon.prelu, tenon.hardsigmoid, tenon.hardswish, tenon.glu, tenon.pixel_shuffle, tenon.pixel_unshuffle)
linear, bilinear, cosine_similarity, pairwise_distance, normalize, channel_shuffle = (
    tenon.linear, tenon.bilinear, tenon.cosine_similarity, tenon.pairwise_distance, tenon.normalize, tenon.channel_shuffle)
layer_norm, group_norm, rms_norm, scaled_dot_product_attention = (
    tenon.layer_norm, tenon.group_norm, tenon.rms_norm, tenon.scaled_dot_product_attention)


def _rounded_once(compute: Callable[..., Tensor], *tensors: Tensor | None) -> Tensor:
    """Calls compute(*tensors). If the first tensor is f16 or bf16, computes in f32 and rounds only the result."""
    dtype = tensors[0].dtype  # type: ignore[union-attr]
    if dtype not in (tenon.f16, tenon.bf16):
        return compute(*tensors)
    wide = [each.cast(tenon.f32) if each is not None and each.dtype in (tenon.f16, tenon.bf16) else each for each in tensors]
    return compute(*wide).cast(dtype)


def _into(input: Tensor, result: Tensor, inplace: bool) -> Tensor:
    written: Tensor = input.copy_(result) if inplace else result
    return written


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Returns input where it is positive, else negative_slope * input."""
    return _into(input, tenon.leaky_relu(input, negative_slope), inplace)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns input where it is positive, else alpha * (exp(input) - 1) (Clevert et al. 2015)."""
    return _into(input, tenon.elu(input, alpha), inplace)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Returns input where it is positive, else alpha * (exp(input / alpha) - 1) (Barron 2017)."""
    return _into(input, tenon.celu(input, alpha), inplace)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Returns scale * elu(input, alpha), with constants that keep mean 0 and variance 1 (Klambauer et al. 2017)."""
    return _into(input, tenon.selu(input), inplace)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamps input to the range from min_val to max_val."""
    return _into(input, tenon.hardtanh(input, min_val, max_val), inplace)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Returns input where it is greater than threshold, else value."""
    return _into(input, tenon.threshold(input, threshold, value), inplace)


@with_out
def softplus(input: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """Returns log(1 + exp(beta * input)) / beta, or input itself where beta * input is greater than threshold."""
    if beta == 1:
        return tenon.where(input > threshold, input, tenon.softplus(input))
    return _rounded_once(lambda x: tenon.where(x * beta > threshold, x, tenon.softplus(x * beta) / beta), input)


@with_out
def softshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Moves each element towards 0 by lambd. Elements whose magnitude is at most lambd become 0."""
    return tenon.softshrink(input, lambd)


@with_out
def hardshrink(input: Tensor, lambd: float = 0.5) -> Tensor:
    """Returns input where its magnitude is greater than lambd, else 0."""
    return tenon.hardshrink(input, lambd)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """leaky_relu whose slope is random: in training drawn per element from [lower, upper), else (lower + upper) / 2."""
    return _into(input, tenon.rrelu(input, lower, upper, training), inplace)


def _dim_of(input: Tensor, dim: int | None) -> int:
    return (0 if input.ndim in (0, 1, 3) else 1) if dim is None else dim


def softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """Returns exp(input) / sum(exp(input)) along the axis dim. The result has the shape of input.

    Args:
        dim: the axis whose elements sum to 1. None takes axis 0 for rank 0, 1 and 3, and axis 1 for other ranks.
        dtype: the dtype that input is converted to first, and of the result.

    Example:
        >>> tenon.nn.functional.softmax(tenon.tensor([[0.0, 0.0]]), dim=1)
        tensor([[0.5000, 0.5000]])
    """
    return tenon.softmax(input, _dim_of(input, dim), dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """Returns the logarithm of softmax(input, dim). Does not overflow."""
    return tenon.log_softmax(input, _dim_of(input, dim), dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, *, dtype: Any = None) -> Tensor:
    """Returns softmax(-input, dim)."""
    return tenon.softmax(-input, _dim_of(input, dim), dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, dim: int = -1) -> Tensor:
    """Draws from the categories along dim, differentiably: softmax((logits + Gumbel noise) / tau) (Jang et al. 2016).

    Args:
        logits (..., C): unnormalised log-probabilities.
        tau: the temperature. Small values give results close to one-hot.
        hard: returns one-hot vectors, with the gradient of the soft result.
    """
    def drawn(x: Tensor) -> Tensor:
        return tenon.softmax((x - tenon.log(tenon.exponential(tenon.ones_like(x.detach())))) / tau, dim)
    soft = _rounded_once(drawn, logits)
    if not hard:
        return soft
    chosen = tenon.movedim(tenon.one_hot(tenon.argmax(soft, dim), soft.shape[dim], dtype=soft.dtype), -1, dim)
    return chosen - soft.detach() + soft


# ---- padding ----

def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Pads the last axes of input, or crops them where a number is negative.

    Args:
        pad: pairs (before, after) of element counts, beginning with the last axis.
        mode: "constant" fills with value (default 0), "reflect" mirrors without the edge, "replicate" repeats the edge,
            "circular" continues at the other end.

    Example:
        >>> tenon.nn.functional.pad(tenon.tensor([1.0, 2.0]), (1, 2))
        tensor([0., 1., 2., 0., 0.])
    """
    if mode in ("reflect", "replicate") and any(each < 0 for each in pad):
        grown = tenon.pad(input, [max(each, 0) for each in pad], mode)
        return tenon.pad(grown, [min(each, 0) for each in pad])
    if mode != "circular":
        return tenon.pad(input, list(pad), mode, value)
    kept = tenon.pad(input, [min(each, 0) for each in pad])  # the elements that cropping keeps are wrapped
    for i in range(0, len(pad), 2):
        axis, before, after = input.ndim - 1 - i // 2, max(pad[i], 0), max(pad[i + 1], 0)
        size = kept.shape[axis]
        if max(before, after) > size:
            raise tenon.InvalidArgument(f"pad: {max(before, after)} elements are more than the {size} elements of axis {axis}, which circular padding repeats once.")
        if before or after:
            kept = tenon.concat([tenon.narrow(kept, axis, size - before, before), kept, tenon.narrow(kept, axis, 0, after)], axis)
    return kept


# ---- dropout ----

def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training sets each element to 0 with probability p and divides the others by 1 - p. Otherwise returns input.

    Errors: ValueError if p is not within 0 and 1."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return _into(input, tenon.dropout(input, p, training), inplace)


def _dropout_channels(input: Tensor, p: float, training: bool, inplace: bool, channels: int) -> Tensor:
    if not training or p == 0:
        return input
    kept = tenon.dropout(tenon.ones(tuple(input.shape[:channels]) + (1,) * (input.ndim - channels), dtype=input.dtype, device=input.device), p, True)
    return _into(input, input * kept, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels. input is (N, C, L) or (C, L)."""
    return _dropout_channels(input, p, training, inplace, input.ndim - 1)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels. input is (N, C, H, W) or (C, H, W)."""
    return _dropout_channels(input, p, training, inplace, input.ndim - 2)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """dropout of whole channels. input is (N, C, D, H, W) or (C, D, H, W)."""
    return _dropout_channels(input, p, training, inplace, input.ndim - 3)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels. input is (N, C, ...)."""
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, input * 0, inplace)
    low = -1.7580993408473766
    shape = tuple(input.shape[:2]) + (1,) * (input.ndim - 2)
    kept = tenon.bernoulli(tenon.full(shape, 1 - p, dtype=input.dtype, device=input.device))
    scale = ((1 - p) * (1 + p * low**2)) ** -0.5
    return _into(input, tenon.where(kept > 0, input, low) * scale - scale * low * p, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """dropout that keeps the mean and variance of selu's results (Klambauer et al. 2017)."""
    if not training or p == 0:
        return input
    if p == 1:
        return _into(input, input * 0, inplace)
    low = -1.7580993408473766
    kept = tenon.bernoulli(tenon.full(input.shape, 1 - p, dtype=tenon.f32, device=input.device))
    scale = ((1 - p) * (1 + p * low**2)) ** -0.5
    return _into(input, _rounded_once(lambda x: tenon.where(kept > 0, x, low) * scale - scale * low * p, input), inplace)


# ---- convolutions ----

def _tuple(value: Any, rank: int) -> tuple[int, ...]:
    listed = (int(value),) if hasattr(value, "__index__") else tuple(int(each) for each in value)
    return listed * rank if len(listed) == 1 else listed


def _convolution(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Any, dilation: Sizes, groups: int, rank: int) -> Tensor:
    alone = input.ndim == rank + 1
    if alone:
        input = input[None]
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string '{padding}', should be one of 'same', 'valid'")
        if padding == "same" and any(each != 1 for each in _tuple(stride, rank)):
            raise ValueError("padding='same' is not supported for strided convolutions")
        total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(_tuple(dilation, rank), weight.shape[2:])]
        if any(each % 2 for each in total):
            input = tenon.pad(input, [part for each in reversed(total) for part in (0, each % 2)])
        padding = [each // 2 for each in total]
    result = tenon.conv(input, weight, bias, list(_tuple(stride, rank)), list(_tuple(padding, rank)), list(_tuple(dilation, rank)), groups)
    return result[0] if alone else result


def conv1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Any = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """1-D cross-correlation of input with weight, plus bias. The arguments have the meaning that conv2d describes.

    Args:
        input (N, C, L) or (C, L).
        weight (out, C / groups, k).
        bias (out,), or None.

    Returns (N, out, L') or (out, L').

    Example:
        >>> tenon.nn.functional.conv1d(tenon.ones(1, 1, 4), tenon.ones(1, 1, 2))
        tensor([[[2., 2., 2.]]])
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 1)


def conv2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Any = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """2-D cross-correlation of input with weight, plus bias.

    Args:
        input (N, C, H, W), or (C, H, W) without a batch.
        weight (out, C / groups, kh, kw).
        bias (out,), or None.
        stride: the distance between windows, a number or a pair (rows, columns).
        padding: zeros added at both ends of each axis, a number or a pair; "valid" adds none, and "same" as many as
            give the result the size of the input (stride 1 only).
        dilation: the distance between the elements of a window, a number or a pair.
        groups: splits the channels into this many groups, each convolved with its own part of weight. It must divide C
            and out; groups=C is a depthwise convolution.

    Returns (N, out, H', W') or (out, H', W'), where
    H' = floor((H + 2 * padding - dilation * (kh - 1) - 1) / stride) + 1, and W' likewise.

    Example:
        >>> tenon.nn.functional.conv2d(tenon.ones(1, 1, 3, 3), tenon.ones(1, 1, 2, 2))
        tensor([[[[4., 4.],
                  [4., 4.]]]])

    Errors: ValueError for another padding string, or for "same" with a stride other than 1.
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 2)


def conv3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Any = 0, dilation: Sizes = 1, groups: int = 1) -> Tensor:
    """3-D cross-correlation of input with weight, plus bias. The arguments have the meaning that conv2d describes.

    Args:
        input (N, C, D, H, W) or (C, D, H, W).
        weight (out, C / groups, kd, kh, kw).
        bias (out,), or None.

    Returns (N, out, D', H', W') or (out, D', H', W').

    Example:
        >>> tenon.nn.functional.conv3d(tenon.ones(1, 1, 2, 2, 2), tenon.ones(1, 1, 2, 2, 2))
        tensor([[[[[8.]]]]])
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups, 3)


def _transposed(input: Tensor, weight: Tensor, bias: Tensor | None, stride: Sizes, padding: Sizes, output_padding: Sizes, groups: int, dilation: Sizes, rank: int) -> Tensor:
    alone = input.ndim == rank + 1
    result = tenon.conv_transpose(input[None] if alone else input, weight, bias, list(_tuple(stride, rank)), list(_tuple(padding, rank)),
                                  list(_tuple(output_padding, rank)), groups, list(_tuple(dilation, rank)))
    return result[0] if alone else result


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                     groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """1-D transposed convolution: the gradient of conv1d with respect to its input. conv_transpose2d describes the
    arguments.

    Args:
        input (N, C, L) or (C, L).
        weight (C, out / groups, k).
        bias (out,), or None.

    Returns (N, out, L') or (out, L').

    Example:
        >>> tenon.nn.functional.conv_transpose1d(tenon.tensor([[[1.0, 2.0]]]), tenon.ones(1, 1, 2), stride=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 1)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                     groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """2-D transposed convolution: the gradient of conv2d with respect to its input.

    Args:
        input (N, C, H, W) or (C, H, W).
        weight (C, out / groups, kh, kw).
        bias (out,), or None.
        stride, padding, dilation, groups: those of the conv2d whose gradient this is.
        output_padding: rows and columns added at one end of the result, to choose between the input sizes for which
            conv2d gives the same output size. A number or a pair.

    Returns (N, out, H', W') or (out, H', W'), where
    H' = (H - 1) * stride - 2 * padding + dilation * (kh - 1) + output_padding + 1, and W' likewise.

    Example:
        >>> tenon.nn.functional.conv_transpose2d(tenon.ones(1, 1, 1, 2), tenon.ones(1, 1, 1, 2), stride=2)
        tensor([[[[1., 1., 1., 1.]]]])
    """
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 2)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: Sizes = 1, padding: Sizes = 0, output_padding: Sizes = 0,
                     groups: int = 1, dilation: Sizes = 1) -> Tensor:
    """3-D transposed convolution: the gradient of conv3d with respect to its input. conv_transpose2d describes the
    arguments.

    Args:
        input (N, C, D, H, W) or (C, D, H, W).
        weight (C, out / groups, kd, kh, kw).
        bias (out,), or None.

    Returns (N, out, D', H', W') or (out, D', H', W').
    """
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, 3)


def unfold(input: Tensor, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Copies each window of input (N, C, H, W) into a column. Returns (N, C * kh * kw, windows).

    kernel_size, dilation, padding and stride have the meaning that conv2d describes.

    Example:
        >>> tenon.nn.functional.unfold(tenon.ones(1, 3, 4, 4), 2).shape
        (1, 12, 9)
    """
    return tenon.unfold(input, _tuple(kernel_size, 2), _tuple(dilation, 2), _tuple(padding, 2), _tuple(stride, 2))


def fold(input: Tensor, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> Tensor:
    """Adds up columns (N, C * kh * kw, windows) at the positions that unfold reads them from. Returns (N, C, H, W).

    Args:
        output_size: (H, W) of the result. The other arguments are those of unfold.
    """
    return tenon.fold(input, _tuple(output_size, 2), _tuple(kernel_size, 2), _tuple(dilation, 2), _tuple(padding, 2), _tuple(stride, 2))


# ---- pooling ----

def _pooled(op: Callable[..., Any], input: Tensor, rank: int, *args: Any) -> Any:
    if input.ndim == rank + 2:
        return op(input, *args)
    if input.ndim != rank + 1:
        raise tenon.InvalidArgument(f"Expected {rank + 1}D or {rank + 2}D input, but got a tensor of shape {tuple(input.shape)}.")
    results = op(input[None], *args)
    return results[0] if isinstance(results, Tensor) else tuple(each[0] for each in results)


def _max_pool(input: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, dilation: Sizes, ceil_mode: bool, return_indices: bool, rank: int) -> Any:
    kernel = list(_tuple(kernel_size, rank))
    args = (kernel, list(kernel if stride is None else _tuple(stride, rank)) or kernel, list(_tuple(padding, rank)), list(_tuple(dilation, rank)), ceil_mode)
    if any(2 * side > reach * (length - 1) + 1 for length, side, reach in zip(kernel, args[2], args[3])):
        raise tenon.InvalidArgument(f"max_pool{rank}d: padding {tuple(args[2])} must be at most half of the window of {tuple(kernel)} with dilation {tuple(args[3])}.")
    return _pooled(tenon.max_pool_with_indices if return_indices else tenon.max_pool, input, rank, *args)


def max_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """Returns the maximum of each window of input (N, C, L) or (C, L). max_pool2d describes the arguments.

    Example:
        >>> tenon.nn.functional.max_pool1d(tenon.tensor([[1.0, 3.0, 2.0, 0.0]]), 2)
        tensor([[3., 2.]])
    """
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 1)


def max_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """Returns the maximum of each window of input (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the size of a window, a number or a pair (rows, columns).
        stride: the distance between windows; None takes kernel_size.
        padding: elements added at both ends of each axis, which are never the maximum. At most half of the window.
        dilation: the distance between the elements of a window.
        ceil_mode: rounds the number of windows up instead of down.
        return_indices: also returns the i64 position of each maximum in its plane of H * W elements, for max_unpool2d.

    Returns (N, C, H', W'), where H' = floor((H + 2 * padding - dilation * (kh - 1) - 1) / stride) + 1, and W'
    likewise; with return_indices a pair of such tensors.

    Example:
        >>> tenon.nn.functional.max_pool2d(tenon.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)
        tensor([[[4.]]])
    """
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 2)


def max_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, dilation: Sizes = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """Returns the maximum of each window of input (N, C, D, H, W) or (C, D, H, W). max_pool2d lists the arguments."""
    return _max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices, 3)


def _avg_pool(input: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, ceil_mode: bool, count_include_pad: bool, rank: int,
              divisor_override: int | None = None) -> Tensor:
    kernel, sides = list(_tuple(kernel_size, rank)), list(_tuple(padding, rank))
    steps = list(kernel if stride is None else _tuple(stride, rank)) or kernel
    if divisor_override is None:
        result: Tensor = _pooled(tenon.avg_pool, input, rank, kernel, steps, sides, ceil_mode, count_include_pad)
        return result
    if divisor_override == 0:
        raise tenon.InvalidArgument("avg_pool: divisor_override must not be 0.")
    whole = not input.dtype.is_floating_point
    result = _pooled(tenon.avg_pool, tenon.cast(input, tenon.f64) if whole else input, rank, kernel, steps, sides, ceil_mode, True)
    for axis, (length, k, step, side) in enumerate(zip(input.shape[-rank:], kernel, steps, sides)):
        ends = [(min(i * step - side + k, length + side), i * step - side) for i in range(result.shape[axis - rank])]
        counts = tenon.tensor([end - begin for end, begin in ends], dtype=result.dtype, device=input.device)
        result = result * tenon.reshape(counts, (-1,) + (1,) * (rank - 1 - axis))
    return tenon.cast(tenon.trunc(tenon.round(result) / divisor_override), input.dtype) if whole else result / divisor_override


def avg_pool1d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True) -> Tensor:
    """Returns the mean of each window of input (N, C, L) or (C, L). avg_pool2d describes the arguments."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, 1)


@with_out
def avg_pool2d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """Returns the mean of each window of input (N, C, H, W) or (C, H, W).

    Args:
        kernel_size: the size of a window, a number or a pair (rows, columns).
        stride: the distance between windows; None takes kernel_size.
        padding: zeros added at both ends of each axis.
        ceil_mode: rounds the number of windows up instead of down.
        count_include_pad: counts padding as elements of the window.
        divisor_override: divides each sum by this number instead of the number of elements.

    Example:
        >>> tenon.nn.functional.avg_pool2d(tenon.tensor([[[1.0, 2.0], [3.0, 4.0]]]), 2)
        tensor([[[2.5000]]])
    """
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, 2, divisor_override)


@with_out
def avg_pool3d(input: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, ceil_mode: bool = False, count_include_pad: bool = True,
               divisor_override: int | None = None) -> Tensor:
    """Returns the mean of each window of input (N, C, D, H, W) or (C, D, H, W). avg_pool2d describes the arguments."""
    return _avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, 3, divisor_override)


def _sizes_of_windows(op: str, input: Tensor, output_size: Any, rank: int) -> list[Any]:
    """Returns output_size as a list with a number or None per axis. Checks the arguments of adaptive pools."""
    if input.ndim not in (rank + 1, rank + 2):
        raise tenon.InvalidArgument(f"{op}: input must have rank {rank + 1} or {rank + 2}, but its shape is {tuple(input.shape)}.")
    if any(input.size(axis) == 0 for axis in range(-rank, 0)):
        raise tenon.InvalidArgument(f"{op}: the axes that are pooled must not be empty, but the shape is {tuple(input.shape)}.")
    sizes = [output_size] * rank if output_size is None or hasattr(output_size, "__index__") else list(output_size)
    if len(sizes) != rank:
        raise tenon.InvalidArgument(f"{op}: output_size must have {rank} numbers, not {len(sizes)}.")
    if any(size is not None and size < 0 for size in sizes):
        raise tenon.InvalidArgument(f"{op}: output_size must not be negative, but it is {tuple(sizes)}.")
    return sizes


def _adaptive(input: Tensor, output_size: Any, rank: int, greatest: bool) -> Tensor:
    if not greatest:
        return _rounded_once(lambda x: _windows(x, output_size, rank, tenon.mean), input)
    return _windows(input, output_size, rank, tenon.amax)


_MOST_PARTS = 256  # up to this many windows of an axis are reduced one by one


def _many_windows(input: Tensor, axis: int, count: int, reduce: Callable[..., Tensor]) -> Tensor:
    """Like _windows for one axis, with a number of ops that does not depend on the number of windows. Gathers the
    elements of the windows as rows of equal length; shorter windows ignore the end of their row."""
    length = input.size(axis)
    window = tenon.arange(count, dtype=tenon.int64, device=input.device).unsqueeze(1)
    begin, end = window * length // count, ((window + 1) * length + (count - 1)) // count
    widest = min(length, -(length // -count) + 1)
    places = begin + tenon.arange(widest, dtype=tenon.int64, device=input.device)
    rows = tenon.index_select(input, axis, tenon.minimum(places, end - 1).flatten())
    shape = list(input.shape)
    rows = rows.reshape(shape[:axis] + [count, widest] + shape[axis + 1:])
    if reduce is tenon.amax:  # rows of shorter windows repeat their last element
        return tenon.amax(rows, axis + 1)
    along = [count, widest] + [1] * (input.ndim - 1 - axis)
    sums = tenon.masked_fill(rows, (places >= end).reshape(along), 0).sum(axis + 1)
    return sums / (end - begin).to(sums.dtype).reshape([count] + along[2:])


def _windows(input: Tensor, output_size: Any, rank: int, reduce: Callable[..., Tensor]) -> Tensor:
    sizes = [output_size] * rank if output_size is None or hasattr(output_size, "__index__") else list(output_size)
    for axis, size in zip(range(input.ndim - rank, input.ndim), sizes):
        length = input.size(axis)
        count = length if size is None else int(size)
        if count > _MOST_PARTS:
            input = _many_windows(input, axis, count, reduce)
            continue
        # Window i begins at floor(i length / count) and ends at ceil((i + 1) length / count).
        bounds = [(i * length // count, -((i + 1) * length // -count)) for i in range(count)]
        parts = [tenon.narrow(input, axis, begin, end - begin) for begin, end in bounds]
        pooled = [reduce(part, axis, True) for part in parts]
        input = pooled[0] if count == 1 else tenon.concat(pooled, axis)
    return input


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """Divides the last axis of input (N, C, L) or (C, L) into output_size windows of about equal length. Returns
    their means."""
    return _adaptive(input, _sizes_of_windows("adaptive_avg_pool1d", input, output_size, 1), 1, False)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """Divides the last two axes into output_size windows of about equal size and returns the mean of each.

    Args:
        input (N, C, H, W) or (C, H, W).
        output_size: (rows, columns) of the result, or one number for both. None keeps the size of an axis.

    Returns (N, C, rows, columns). Window i of an axis reaches from floor(i * H / rows) to ceil((i + 1) * H / rows).

    Example:
        >>> tenon.nn.functional.adaptive_avg_pool2d(tenon.ones(1, 3, 7, 5), 2).shape
        (1, 3, 2, 2)
    """
    return _adaptive(input, _sizes_of_windows("adaptive_avg_pool2d", input, output_size, 2), 2, False)


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """Like adaptive_avg_pool2d, for the last three axes of (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive(input, _sizes_of_windows("adaptive_avg_pool3d", input, output_size, 3), 3, False)


def _adaptive_max(op: str, input: Tensor, output_size: Any, return_indices: bool, rank: int) -> Any:
    sizes = _sizes_of_windows(op, input, output_size, rank)
    if not return_indices:
        return _adaptive(input, sizes, rank, True)
    plane = tuple(input.shape[-rank:])
    places = tenon.expand(tenon.reshape(tenon.arange(math.prod(plane), device=input.device), plane), tuple(input.shape))
    for axis in range(input.ndim - 1, input.ndim - rank - 1, -1):  # from the last axis on, so that the first of equal elements is found
        length = input.shape[axis]
        count = length if sizes[axis - input.ndim] is None else int(sizes[axis - input.ndim])
        parts = []
        for i in range(count):
            begin, end = i * length // count, -((i + 1) * length // -count)
            greatest, index = tenon.max(tenon.narrow(input, axis, begin, end - begin), axis, True)
            parts.append((greatest, tenon.gather(tenon.narrow(places, axis, begin, end - begin), axis, index)))
        if not parts:
            parts = [(tenon.narrow(input, axis, 0, 0), tenon.narrow(places, axis, 0, 0))]
        input, places = (tenon.concat(list(each), axis) for each in zip(*parts))
    return input, places


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Divides the last axis of input (N, C, L) or (C, L) into output_size windows of about equal length and returns
    the maximum of each; with return_indices also its i64 position."""
    return _adaptive_max("adaptive_max_pool1d", input, output_size, return_indices, 1)


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Like adaptive_avg_pool2d, with the maximum of each window. With return_indices also returns the i64 position
    of each maximum in its plane of H * W elements."""
    return _adaptive_max("adaptive_max_pool2d", input, output_size, return_indices, 2)


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """Like adaptive_max_pool2d, for the last three axes of (N, C, D, H, W) or (C, D, H, W)."""
    return _adaptive_max("adaptive_max_pool3d", input, output_size, return_indices, 3)


def _lp_pool(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None, ceil_mode: bool, rank: int) -> Tensor:
    kernel = list(_tuple(kernel_size, rank))
    steps = list(kernel if stride is None else _tuple(stride, rank))
    result: Tensor = _pooled(lambda x: tenon.lp_pool(x, float(norm_type), kernel, steps, ceil_mode), input, rank)
    return result


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """Returns (sum of |x| ** norm_type) ** (1 / norm_type) of each window of input (N, C, L) or (C, L)."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 1)


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """Returns (sum of |x| ** norm_type) ** (1 / norm_type) of each window of input (N, C, H, W) or (C, H, W)."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 2)


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Sizes, stride: Sizes | None = None, ceil_mode: bool = False) -> Tensor:
    """Returns (sum of |x| ** norm_type) ** (1 / norm_type) of each window of input (N, C, D, H, W) or (C, D, H, W)."""
    return _lp_pool(input, norm_type, kernel_size, stride, ceil_mode, 3)


def _max_unpool(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None, padding: Sizes, output_size: Any, rank: int) -> Tensor:
    if input.ndim not in (rank + 1, rank + 2) or tuple(input.shape) != tuple(indices.shape):
        raise tenon.InvalidArgument(f"max_unpool{rank}d: input must have rank {rank + 1} or {rank + 2} and the shape of indices; "
                                    f"the shapes are {tuple(input.shape)} and {tuple(indices.shape)}.")
    if indices.dtype != tenon.int64:
        raise tenon.InvalidArgument(f"max_unpool{rank}d: indices must hold i64, not {indices.dtype.name}.")
    kernel, sides = _tuple(kernel_size, rank), _tuple(padding, rank)
    steps = kernel if stride is None else _tuple(stride, rank)
    usual = [(length - 1) * s - 2 * p + k for length, s, p, k in zip(input.shape[-rank:], steps, sides, kernel)]
    wanted = usual if output_size is None else [int(each) for each in output_size][-rank:]
    if any(not low - s < size < low + s for size, low, s in zip(wanted, usual, steps)):
        raise ValueError(f"invalid output_size {wanted}: each length must be within a stride of {usual}")
    outer = tuple(input.shape[:-rank])
    places = math.prod(wanted)
    if indices.numel() and (int(tenon.min(indices).item()) < 0 or int(tenon.max(indices).item()) >= places):
        raise tenon.InvalidArgument(f"max_unpool{rank}d: an index is outside of the {places} places of {tuple(wanted)}.")
    empty = tenon.zeros(outer + (places,), dtype=input.dtype, device=input.device)
    flat, elements = (tenon.reshape(each, outer + (math.prod(each.shape[-rank:]),)) for each in (indices, input))
    # If several elements have one index, the last is kept, but all receive the gradient, as in PyTorch.
    result = tenon.scatter(empty, -1, flat, elements.detach()) + tenon.scatter_add(empty, -1, flat, elements - elements.detach())
    return tenon.reshape(result, outer + tuple(wanted))


def max_unpool1d(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None) -> Tensor:
    """Like max_unpool2d, for (N, C, L) or (C, L) and the indices of max_pool1d."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 1)


def max_unpool2d(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None) -> Tensor:
    """Partial inverse of max_pool2d: writes each element at its index in a plane of zeros.

    Args:
        input, indices: the two results of max_pool2d with return_indices.
        kernel_size, stride, padding: the arguments that max_pool2d was called with.
        output_size: (H, W) of the result, where several sizes lead to the size of input. None takes the usual one.

    Errors: an index is outside of the result; ValueError if output_size is not within a stride of the usual size.
    """
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 2)


def max_unpool3d(input: Tensor, indices: Tensor, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0, output_size: Any = None) -> Tensor:
    """Like max_unpool2d, for (N, C, D, H, W) or (C, D, H, W) and the indices of max_pool3d."""
    return _max_unpool(input, indices, kernel_size, stride, padding, output_size, 3)


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Resizes the axes after the first two of input (N, C, ...).

    Args:
        size: the new lengths of these axes, or one number for all.
        scale_factor: the factor by which lengths grow, one for all axes or one each. Give size or scale_factor.
        mode: "nearest", "linear" (1 axis), "bilinear" and "bicubic" (2 axes), "trilinear" (3 axes), or "area", the mean
            of the covered elements.
        align_corners: maps the centres of the corner elements onto each other, instead of the outer edges.
        recompute_scale_factor: computes the factor again from the rounded lengths.
        antialias: smooths where the result is smaller than input.

    Example:
        >>> tenon.nn.functional.interpolate(tenon.tensor([[[1.0, 2.0]]]), scale_factor=2)
        tensor([[[1., 1., 2., 2.]]])
    """
    if scale_factor is not None and not isinstance(scale_factor, (int, float)):
        factors, scale_factor = list(scale_factor), None
        size = [int(math.floor(length * factor)) for length, factor in zip(input.shape[2:], factors)]
    if size is not None:
        size = list(_tuple(size, input.ndim - 2))
    if mode == "area":
        target = size or [int(math.floor(length * scale_factor)) for length in input.shape[2:]]
        return _adaptive(input, target, input.ndim - 2, False)
    return tenon.interpolate(input, size, None if scale_factor is None else float(scale_factor), mode, bool(align_corners), bool(recompute_scale_factor), antialias)


upsample = interpolate


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode "nearest"."""
    return interpolate(input, size, scale_factor, "nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """interpolate with mode "bilinear" and align_corners."""
    return interpolate(input, size, scale_factor, "bilinear", True)


# ---- norms ----

def batch_norm(input: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None, bias: Tensor | None = None,
               training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalises each channel to mean 0 and variance 1, then multiplies by weight and adds bias (Ioffe and Szegedy
    2015).

    Args:
        input (N, C, ...).
        running_mean, running_var (C,): used if not training. In training updated in place, with a share of
            `momentum` for the statistics of the batch; None skips that.
        weight, bias (C,), or None.
        training: normalises by the statistics of the batch.
        eps: added to the variance.

    Errors: ValueError without running statistics if not training, or with one value per channel in training.
    """
    if not training:
        if running_mean is None or running_var is None:
            raise ValueError("Expected running_mean and running_var to be defined when training=False")
        return tenon.batch_norm(input, running_mean, running_var, weight, bias, eps=eps)
    if input.ndim < 2:
        raise tenon.InvalidArgument(f"batch_norm: input has the shape {tuple(input.shape)}; a batch axis and one of channels are needed.")
    count = input.numel() // max(input.shape[1], 1)
    if count == 0:  # an empty batch has no statistics: the running ones stay unchanged
        channels = input.shape[1]
        none = tenon.zeros(channels, dtype=input.dtype, device=input.device)
        return tenon.batch_norm(input, none, none + 1, weight, bias, eps=eps)
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {tuple(input.shape)}")
    result, mean, inverse = tenon.batch_norm_with_statistics(input, weight, bias, eps=eps)
    if running_mean is not None and running_var is not None:
        with tenon.no_grad():
            variance = (1.0 / tenon.square(inverse.detach()) - eps) * (count / (count - 1))
            running_mean.copy_(running_mean * (1 - momentum) + mean.detach() * momentum)
            running_var.copy_(running_var * (1 - momentum) + variance * momentum)
    return result


def instance_norm(input: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None, weight: Tensor | None = None,
                  bias: Tensor | None = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Like batch_norm, with statistics of each channel of each element of the batch (Ulyanov et al. 2016).

    use_input_stats=False normalises by running_mean and running_var instead."""
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if running_mean is not None and running_var is not None:
        with tenon.no_grad():
            axes = list(range(2, input.ndim))
            running_mean.copy_(running_mean * (1 - momentum) + tenon.mean(tenon.mean(input, axes), 0) * momentum)
            running_var.copy_(running_var * (1 - momentum) + tenon.mean(tenon.var(input, axes), 0) * momentum)
    return tenon.instance_norm(input, weight=weight, bias=bias, eps=eps)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Returns input / (k + alpha * mean of the squares of `size` neighbouring channels) ** beta (Krizhevsky et al.
    2012).

    input is (N, C, ...). Channels outside of input count as 0.
    """
    def normalised(x: Tensor) -> Tensor:
        squares = tenon.pad(tenon.square(x), [0, 0] * (x.ndim - 2) + [size // 2, (size - 1) // 2])
        windows = [tenon.narrow(squares, 1, i, x.shape[1]) for i in range(size)]
        total = windows[0]
        for each in windows[1:]:
            total = total + each
        return x / tenon.pow(total * (alpha / size) + k, beta)
    return _rounded_once(normalised, input)


# ---- embeddings ----

def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Returns 1 at the class of each element and 0 elsewhere, on a new last axis of num_classes elements.

    num_classes=-1 takes the greatest class plus one, which reads the tensor.

    Example:
        >>> tenon.nn.functional.one_hot(tenon.tensor([0, 2])).shape
        (2, 3)
    """
    return tenon.one_hot(tensor, int(tenon.max(tensor).item()) + 1 if num_classes == -1 else num_classes)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None, norm_type: float = 2.0,
              scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Returns rows of weight: (...) indices and a weight (rows, width) give (..., width).

    Args:
        padding_idx: the row that receives no gradient.
        max_norm: first shortens, in place, each used row whose norm, of order norm_type, is greater than this.
        scale_grad_by_freq: divides the gradient of a row by the number of times it is used.
        sparse: ignored; gradients are dense.

    Example:
        >>> tenon.nn.functional.embedding(tenon.tensor([1, 0]), tenon.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [1., 2.]])
    """
    if weight.ndim != 2:
        raise tenon.InvalidArgument(f"embedding: 'weight' must be 2-D, but its shape is {tuple(weight.shape)}.")
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    if padding_idx is not None and weight.requires_grad:
        row = padding_idx % weight.shape[0]
        is_padding = tenon.unsqueeze(tenon.arange(weight.shape[0], device=weight.device) == row, 1)
        weight = tenon.where(is_padding, weight.detach(), weight)
    if scale_grad_by_freq:
        weight = _scaled_by_frequency(weight, input)
    return tenon.embedding(weight, input)


def _shorten_rows(weight: Tensor, used: Tensor, max_norm: float, norm_type: float) -> None:
    """Shortens the used rows whose norm is greater than max_norm to that norm, in place."""
    with tenon.no_grad():
        numbers = tenon.unique(tenon.flatten(used))
        rows = tenon.index_select(weight.detach(), 0, numbers)
        lengths = tenon.norm(rows, float(norm_type), 1, True)
        weight.index_copy_(0, numbers, rows * tenon.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1.0))


def _scaled_by_frequency(weight: Tensor, used: Tensor) -> Tensor:
    """Returns weight. The gradient of each row is divided by the number of times the row is used."""
    counts = tenon.bincount(tenon.flatten(used), minlength=weight.shape[0])
    scale = tenon.unsqueeze(1.0 / tenon.clamp(tenon.cast(counts, weight.dtype), 1), 1)
    return weight.detach() * (1 - scale) + weight * scale


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Tensor | None = None,
                  include_last_offset: bool = False, padding_idx: int | None = None) -> Tensor:
    """Reduces the rows of each bag of indices to one row. Returns (bags, width).

    Args:
        input (bags, count), or (indices,) with offsets.
        weight (rows, width).
        offsets (bags,): the position in input at which each bag begins. With include_last_offset the end of the
            last bag follows.
        mode: "sum", "mean" or "max".
        per_sample_weights: a factor for each index, for mode "sum".
        max_norm, norm_type, scale_grad_by_freq, sparse: as in embedding.
        padding_idx: the index that is left out of its bag.
    """
    if max_norm is not None:
        _shorten_rows(weight, input, max_norm, norm_type)
    if scale_grad_by_freq:
        weight = _scaled_by_frequency(weight, input)
    return tenon.embedding_bag(input, weight, offsets, mode=mode, per_sample_weights=per_sample_weights, include_last_offset=include_last_offset,
                               padding_idx=padding_idx)


# ---- losses ----

def _warn_of_broadcast(loss: str, input: Tensor, target: Tensor) -> None:
    if input.ndim != target.ndim or input.shape != target.shape:
        warnings.warn(f"{loss}: input has shape {list(input.shape)} and target {list(target.shape)}, so each is repeated to match the other, "
                      "which is rarely meant. Give both the same shape.", stacklevel=3)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Squared error (input - target) ** 2. input and target have the same shape; a warning says if they do not."""
    _warn_of_broadcast("mse_loss", input, target)
    return tenon.mse_loss(input, target, reduction=reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Absolute error |input - target|. input and target have the same shape."""
    _warn_of_broadcast("l1_loss", input, target)
    return tenon.l1_loss(input, target, reduction=reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """With d = |input - target|: d ** 2 / (2 * beta) where d < beta, else d - beta / 2 (Girshick 2015)."""
    _warn_of_broadcast("smooth_l1_loss", input, target)
    return tenon.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """With d = |input - target|: d ** 2 / 2 where d < delta, else delta * (d - delta / 2) (Huber 1964)."""
    _warn_of_broadcast("huber_loss", input, target)
    return tenon.huber_loss(input, target, reduction=reduction, delta=delta)


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood: minus the log-probability of the class of each element, times the weight of the class.

    Args:
        input (N, C), (C,) or (N, C, ...): log-probabilities, such as log_softmax gives.
        target (N,), () or (N, ...): classes, integers from 0 to C - 1.
        weight (C,): a factor per class. The mean divides by the sum of the factors used.
        ignore_index: the class whose elements do not count.
    """
    return tenon.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Cross entropy of softmax(input, 1) and target: nll_loss of log_softmax.

    Args:
        input (N, C), (C,) or (N, C, ...): unnormalised scores.
        target: classes as for nll_loss, or probabilities of the shape of input.
        weight, ignore_index: as in nll_loss.
        label_smoothing: the share of the target, from 0 to 1, that is spread evenly over all classes.

    Example:
        >>> tenon.nn.functional.cross_entropy(tenon.tensor([[0.0, 0.0]]), tenon.tensor([1]))
        tensor(0.6931)
    """
    return tenon.cross_entropy(input, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """-weight * (target * log(input) + (1 - target) * log(1 - input)). input holds probabilities from 0 to 1."""
    return tenon.binary_cross_entropy(input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(input), without overflow. pos_weight multiplies the loss where target is 1."""
    return tenon.binary_cross_entropy_with_logits(input, target, weight, reduction=reduction, pos_weight=pos_weight)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence target * (log(target) - input), where input holds log-probabilities.

    log_target=True: target holds log-probabilities too. reduction may be "batchmean": the sum divided by the
    batch size.
    """
    if reduction == "batchmean" and input.ndim == 0:
        reduction = "sum"
    return tenon.kl_div(input, target, reduction=reduction, log_target=log_target)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood of counts `target` under Poisson distributions of rate exp(input), or input if not
    log_input: exp(input) - target * input, or input - target * log(input + eps). full adds Stirling's
    approximation of log(target!)."""
    return tenon.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood of target under normal distributions of mean input and variance var:
    (log(max(var, eps)) + (input - target) ** 2 / max(var, eps)) / 2. full adds log(2 * pi) / 2."""
    return tenon.gaussian_nll_loss(input, target, var, full, eps, reduction)


def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)), where target holds 1 and -1."""
    return tenon.soft_margin_loss(input, target, reduction=reduction)


def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """input where target is 1, and max(0, margin - input) where target is -1."""
    return tenon.hinge_embedding_loss(input, target, margin, reduction=reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin): target 1 wants input1 to be greater, and -1 wants it to be less."""
    return tenon.margin_ranking_loss(input1, input2, target, margin, reduction=reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean") -> Tensor:
    """1 - cos(input1, input2) where target is 1, and max(0, cos(input1, input2) - margin) where target is -1.

    input1 and input2 are (N, width) or (width,); target is (N,) or ()."""
    return tenon.cosine_embedding_loss(input1, input2, target, margin, reduction=reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                        reduction: str = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin), where d is the p-norm of the difference (Balntas
    et al. 2016).

    The three tensors are (N, width) or (width,). swap takes d(positive, negative) in place of d(anchor, negative)
    where it is smaller. Errors: ValueError if margin is not positive.
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return tenon.triplet_margin_loss(anchor, positive, negative, margin, float(p), eps, swap, reduction=reduction)


def _of_rows(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Extends a loss of rows (N, C) to a single row (C,) or number; the result then has no batch axis."""
    @functools.wraps(loss)
    def compute(input: Tensor, target: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if input.ndim > 1:
            return loss(input, target, *args, **kwargs)
        result = loss(tenon.reshape(input, (1, -1)), tenon.reshape(target, (1,)), *args, **kwargs)
        return tenon.squeeze(result, 0) if result.ndim and target.ndim == 0 else result
    return compute


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return tenon.mean(losses) if reduction == "mean" else tenon.sum(losses)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """binary_cross_entropy_with_logits of each class, averaged over the classes. input and target are (N, C)."""
    def loss(x: Tensor, y: Tensor, scale: Tensor | None) -> Tensor:
        losses = -(y * tenon.logsigmoid(x) + (1 - y) * tenon.logsigmoid(-x))
        return _reduced(tenon.mean(losses if scale is None else losses * scale, -1), reduction)
    return _rounded_once(loss, input, target, weight)


@_of_rows
def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """For each row, the sum over other classes i of max(0, margin - input[target] + input[i]) ** p, divided by C.

    input is (N, C) or (C,), target (N,) or (). weight (C,) multiplies each row by the factor of its class."""
    if input.ndim == 1:
        result = multi_margin_loss(input[None], tenon.reshape(target, (1,)), p, margin, weight, reduction)
        return tenon.reshape(result, tuple(target.shape)) if reduction == "none" else result

    def loss(x: Tensor, scale: Tensor | None) -> Tensor:
        classes = x.shape[-1]
        right = tenon.gather(x, -1, tenon.unsqueeze(target, -1))
        losses = tenon.pow(tenon.clamp(margin - right + x, 0), p)
        if scale is not None:
            losses = losses * tenon.unsqueeze(tenon.index_select(scale, 0, tenon.reshape(target, (-1,))), -1)
        others = 1 - tenon.one_hot(target, classes, dtype=x.dtype)
        return _reduced(tenon.sum(losses * others, -1) / classes, reduction)
    return _rounded_once(loss, input, weight)


def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """For each row, the sum of max(0, 1 - input[j] + input[i]) over target classes j and other classes i, divided by C.

    input and target are (N, C) or (C,). The target classes of a row are its numbers before the first negative one."""
    if input.ndim not in (0, 1, 2) or tuple(input.shape) != tuple(target.shape) or (input.ndim == 2 and input.shape[1] == 0):
        raise tenon.InvalidArgument(f"multilabel_margin_loss: input and target must be (N, C) or (C); the shapes are {tuple(input.shape)} and {tuple(target.shape)}.")
    rows, named = tenon.reshape(input, (-1, input.shape[-1] if input.ndim else 1)), tenon.reshape(target, (-1, target.shape[-1] if target.ndim else 1))
    classes = rows.shape[1]
    valid = tenon.cumprod(tenon.cast(named >= 0, tenon.int64), 1) > 0
    places = tenon.where(valid, named, 0)
    right = tenon.scatter_reduce(tenon.zeros_like(places), 1, places, tenon.cast(valid, tenon.int64), "amax") > 0
    gaps = tenon.relu(1 - tenon.unsqueeze(tenon.gather(rows, 1, places), 2) + tenon.unsqueeze(rows, 1))
    counted = tenon.logical_and(tenon.unsqueeze(valid, 2), tenon.logical_not(tenon.unsqueeze(right, 1)))
    losses = tenon.sum(tenon.where(counted, gaps, 0.0), [1, 2]) / classes
    return _reduced(losses if input.ndim == 2 else tenon.squeeze(losses, 0), reduction)


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *, distance_function: Callable[..., Tensor] | None = None,
                                      margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> Tensor:
    """Like triplet_margin_loss, with a distance function of the caller. The default is pairwise_distance."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise tenon.InvalidArgument(f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, "
                                    f"but got: anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = tenon.minimum(far, distance(positive, negative))
    return _reduced(tenon.clamp(near - far + margin, 0), reduction)


# ---- attention ----

def multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
                                 in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
                                 out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
                                 need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
                                 q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
                                 static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True,
                                 is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """The attention of nn.MultiheadAttention with all parameters as arguments (Vaswani et al. 2017).

    query is (length, batch, channels) or (length, channels); key and value likewise. Returns the result and, with
    need_weights, the weights (batch, length, keys), or (batch, heads, length, keys) if not average_attn_weights.
    """
    if query.shape[-1] != embed_dim_to_check:
        raise tenon.InvalidArgument(f"was expecting embedding dimension of {embed_dim_to_check}, but got {query.shape[-1]}")
    if static_k is not None or static_v is not None:
        raise tenon.Unsupported("multi_head_attention_forward: static_k and static_v are not supported.")
    if is_causal and attn_mask is None:
        raise tenon.InvalidArgument("Need attn_mask if specifying the is_causal hint.")
    alone = query.ndim == 2
    if alone:
        query, key, value = (tenon.unsqueeze(each, 1) for each in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else tenon.unsqueeze(key_padding_mask, 0)
    query, key, value = (tenon.transpose(each, 0, 1) for each in (query, key, value))
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    weights: Any = separate if use_separate_proj_weight else tenon.chunk(in_proj_weight, 3, 0)
    biases: Any = (None, None, None) if in_proj_bias is None else tenon.chunk(in_proj_bias, 3, 0)
    mask = joint_mask(attn_mask, key_padding_mask, query, num_heads)
    result, attention = multi_head_attention(query, key, value, num_heads, weights, biases, out_proj_weight, out_proj_bias, bias_k, bias_v, add_zero_attn,
                                             dropout_p, training, mask, need_weights, average_attn_weights)
    result = tenon.transpose(result, 0, 1)
    if alone:
        return tenon.squeeze(result, 1), None if attention is None else tenon.squeeze(attention, 0)
    return result, attention


def additive_mask(mask: Tensor, dtype: Any) -> Tensor:
    """Returns a mask as numbers to add to scores: -inf where a bool mask is true, else 0. Only casts other masks."""
    if mask.dtype != tenon.bool:
        return tenon.cast(mask, dtype)
    return tenon.where(mask, float("-inf"), tenon.zeros(mask.shape, dtype=dtype, device=mask.device))


def joint_mask(attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor, num_heads: int) -> Tensor | None:
    """Adds both masks into one that broadcasts to scores (batch, heads, length, keys). None if there is no mask."""
    total = None
    if attn_mask is not None:
        total = additive_mask(attn_mask, query.dtype)
        if total.ndim == 3:  # (batch heads, length, keys)
            total = tenon.reshape(total, (query.shape[0], num_heads) + tuple(total.shape[1:]))
    if key_padding_mask is not None:
        padding = additive_mask(key_padding_mask, query.dtype)[:, None, None, :]
        total = padding if total is None else total + padding
    return total


def multi_head_attention(query: Tensor, key: Tensor, value: Tensor, num_heads: int, in_weights: Sequence[Tensor], in_biases: Sequence[Tensor | None],
                         out_weight: Tensor, out_bias: Tensor | None, bias_k: Tensor | None = None, bias_v: Tensor | None = None, add_zero_attn: bool = False,
                         dropout_p: float = 0.0, training: bool = True, mask: Tensor | None = None, need_weights: bool = True,
                         average_attn_weights: bool = True) -> tuple[Tensor, Tensor | None]:
    """Attention of num_heads heads over (batch, length, channels). `mask` is added to the scores (batch, heads,
    length, keys)."""
    q, k, v = (tenon.linear(x, weight, bias) for x, weight, bias in zip((query, key, value), in_weights, in_biases))
    if bias_k is not None and bias_v is not None:
        k = tenon.concat([k, tenon.expand_as(bias_k, tenon.narrow(k, 1, 0, 1))], 1)
        v = tenon.concat([v, tenon.expand_as(bias_v, tenon.narrow(v, 1, 0, 1))], 1)
    if add_zero_attn:
        k, v = (tenon.concat([x, tenon.zeros_like(tenon.narrow(x, 1, 0, 1))], 1) for x in (k, v))
    if mask is not None and k.shape[1] > mask.shape[-1]:
        mask = tenon.pad(mask, [0, k.shape[1] - mask.shape[-1]])
    # The sizes of q are not read as numbers, so a recorded program serves all lengths and batch sizes.
    width = out_weight.shape[1] // num_heads
    q, k, v = (tenon.transpose(tenon.unflatten(x, -1, (num_heads, width)), 1, 2) for x in (q, k, v))
    if not need_weights and not (training and dropout_p > 0):
        attended, weights = tenon.scaled_dot_product_attention(q, k, v, mask), None
    else:
        scores = tenon.matmul(q * (1.0 / math.sqrt(width)), tenon.transpose(k, -2, -1))
        weights = tenon.softmax(scores if mask is None else scores + mask, -1)
        weights = tenon.dropout(weights, dropout_p, training)
        attended = tenon.matmul(weights, v)
    joined = tenon.flatten(tenon.transpose(attended, 1, 2), 2)
    result = tenon.linear(joined, out_weight, out_bias)
    if not need_weights or weights is None:
        return result, None
    return result, tenon.mean(weights, 1) if average_attn_weights else weights
