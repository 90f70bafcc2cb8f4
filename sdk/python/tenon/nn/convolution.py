"""Convolutions and transposed convolutions over one, two and three axes."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional, init
from tenon.nn.functional import _tuple
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter

_PADDINGS = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    _rank = 0
    _transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
                 bias: bool = True, padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if padding_mode not in _PADDINGS:
            raise ValueError(f"padding_mode must be one of {set(_PADDINGS)}, but got padding_mode='{padding_mode}'")
        self.in_channels, self.out_channels, self.groups, self.padding_mode = in_channels, out_channels, groups, padding_mode
        self.kernel_size, self.stride, self.dilation = (_tuple(each, self._rank) for each in (kernel_size, stride, dilation))
        self.padding: Any = padding if isinstance(padding, str) else _tuple(padding, self._rank)
        self.output_padding: tuple[int, ...] = (0,) * self._rank
        channels = (in_channels, out_channels // groups) if self._transposed else (out_channels, in_channels // groups)
        made = dtype or tenon.float32
        self.weight = Parameter(tenon.empty(channels + self.kernel_size, dtype=made, device=device))
        self.register_parameter("bias", Parameter(tenon.empty((out_channels,), dtype=made, device=device)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new random parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan = math.prod(self.weight.shape[1:])
        if self.bias is not None and fan != 0:
            init.uniform_(self.bias, -1 / math.sqrt(fan), 1 / math.sqrt(fan))

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * self._rank:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * self._rank:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * self._rank:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Forward(_Convolution):
    def forward(self, input: Tensor) -> Tensor:
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            if isinstance(padding, str):
                total = [d * (k - 1) if padding == "same" else 0 for d, k in zip(self.dilation, self.kernel_size)]
                sides = [part for each in reversed(total) for part in (each // 2, each - each // 2)]
            else:
                sides = [each for each in reversed(padding) for _ in range(2)]
            input, padding = functional.pad(input, sides, self.padding_mode), 0
        return functional._convolution(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups, self._rank)


class Conv1d(_Forward):
    """1-D cross-correlation of input (N, C, L) with weight (out, C / groups, k). Conv2d describes the arguments."""

    _rank = 1


class Conv2d(_Forward):
    """2-D cross-correlation of input (N, C, H, W) with weight (out, C / groups, kh, kw), plus bias (out,).

    Args:
        in_channels, out_channels: C of the input and of the result.
        kernel_size, stride, padding, dilation, groups: as in tenon.nn.functional.conv2d.
        bias: adds a trained number to each channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular", as in tenon.nn.functional.pad.

    Example:
        >>> tenon.nn.Conv2d(3, 8, 3, padding=1)(tenon.ones(1, 3, 4, 4)).shape
        (1, 8, 4, 4)

    Errors: ValueError if groups does not divide both numbers of channels.
    """

    _rank = 2


class Conv3d(_Forward):
    """3-D cross-correlation of input (N, C, D, H, W) with weight (out, C / groups, kd, kh, kw). Conv2d describes the
    arguments."""

    _rank = 3


class _Transposed(_Convolution):
    _transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0, output_padding: Any = 0, groups: int = 1,
                 bias: bool = True, dilation: Any = 1, padding_mode: str = "zeros", device: Any = None, dtype: Any = None) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, padding_mode, device, dtype)
        self.output_padding = _tuple(output_padding, self._rank)

    def _extra(self, input: Tensor, output_size: Any) -> tuple[int, ...]:
        """Returns the output padding that produces output_size."""
        wanted = list(output_size)[-self._rank:]
        least = [(length - 1) * s - 2 * p + d * (k - 1) + 1 for length, s, p, d, k in
                 zip(input.shape[-self._rank:], self.stride, self.padding, self.dilation, self.kernel_size)]
        extra = tuple(size - low for size, low in zip(wanted, least))
        if any(not 0 <= each < max(s, d) for each, s, d in zip(extra, self.stride, self.dilation)):
            raise ValueError(f"requested an output size of {wanted}, but each valid size exceeds {least} by 0 to stride - 1")
        return extra

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        padding = self.output_padding if output_size is None else self._extra(input, output_size)
        return functional._transposed(input, self.weight, self.bias, self.stride, self.padding, padding, self.groups, self.dilation, self._rank)


class ConvTranspose1d(_Transposed):
    """Transposed 1-D convolution of input (N, C, L) with weight (C, out / groups, k). ConvTranspose2d describes the
    arguments."""

    _rank = 1


class ConvTranspose2d(_Transposed):
    """Transposed 2-D convolution of input (N, C, H, W) with weight (C, out / groups, kh, kw): the gradient of Conv2d.

    The arguments are those of tenon.nn.functional.conv_transpose2d. A call may give output_size, the size of the
    result.

    Example:
        >>> tenon.nn.ConvTranspose2d(3, 8, 2, stride=2)(tenon.ones(1, 3, 4, 4)).shape
        (1, 8, 8, 8)
    """

    _rank = 2


class ConvTranspose3d(_Transposed):
    """Transposed 3-D convolution of input (N, C, D, H, W) with weight (C, out / groups, kd, kh, kw). ConvTranspose2d
    describes the arguments."""

    _rank = 3


class Fold(Module):
    """Adds up columns (N, C * kh * kw, windows) at the positions that Unfold reads them from."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size, self.kernel_size, self.dilation, self.padding, self.stride = output_size, kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return functional.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


class Unfold(Module):
    """Copies each window of (N, C, H, W) into a column: (N, C * kh * kw, windows)."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold"]
