"""Pooling, padding and resizing."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.nn import functional
from tenon.nn.functional import _tuple
from tenon.nn.module import Module


class _MaxPool(Module):
    _rank = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, kernel_size if stride is None else stride, padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor) -> Any:
        return functional._max_pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices, self._rank)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPool):
    """Maximum of each window of (N, C, L). See tenon.nn.functional.max_pool2d."""

    _rank = 1


class MaxPool2d(_MaxPool):
    """Maximum of each window of (N, C, H, W). See tenon.nn.functional.max_pool2d."""

    _rank = 2


class MaxPool3d(_MaxPool):
    """Maximum of each window of (N, C, D, H, W). See tenon.nn.functional.max_pool2d."""

    _rank = 3


class _AvgPool(Module):
    _rank = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, count_include_pad: bool = True,
                 divisor_override: int | None = None) -> None:
        super().__init__()
        if divisor_override is not None and self._rank == 1:
            raise TypeError("AvgPool1d takes no divisor_override")
        self.divisor_override = divisor_override
        self.kernel_size: Any
        self.stride: Any
        self.padding: Any
        settings = (kernel_size, kernel_size if stride is None else stride, padding)
        # Like PyTorch, only the 1-D layer stores its settings as tuples.
        self.kernel_size, self.stride, self.padding = (_tuple(each, 1) for each in settings) if self._rank == 1 else settings
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return functional._avg_pool(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self._rank,
                                    self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Mean of each window of (N, C, L). See tenon.nn.functional.avg_pool2d."""

    _rank = 1


class AvgPool2d(_AvgPool):
    """Mean of each window of (N, C, H, W). See tenon.nn.functional.avg_pool2d."""

    _rank = 2


class AvgPool3d(_AvgPool):
    """Mean of each window of (N, C, D, H, W). See tenon.nn.functional.avg_pool2d."""

    _rank = 3


class _Adaptive(Module):
    _rank = 0

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Any:
        return getattr(functional, f"adaptive_avg_pool{self._rank}d")(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(functional, f"adaptive_max_pool{self._rank}d")(input, self.output_size, self.return_indices)


class AdaptiveAvgPool1d(_Adaptive):
    """Means of output_size windows along the last axis. See tenon.nn.functional.adaptive_avg_pool2d."""

    _rank = 1


class AdaptiveAvgPool2d(_Adaptive):
    """Means of output_size windows over the last two axes; None keeps an axis. See
    tenon.nn.functional.adaptive_avg_pool2d."""

    _rank = 2


class AdaptiveAvgPool3d(_Adaptive):
    """Means of output_size windows over the last three axes; None keeps an axis. See
    tenon.nn.functional.adaptive_avg_pool2d."""

    _rank = 3


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Maxima of output_size windows along the last axis."""

    _rank = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maxima of output_size windows over the last two axes; None keeps an axis."""

    _rank = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Maxima of output_size windows over the last three axes; None keeps an axis."""

    _rank = 3


class _LPPool(Module):
    _rank = 0

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type, self.kernel_size, self.stride, self.ceil_mode = norm_type, kernel_size, stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return functional._lp_pool(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode, self._rank)

    def extra_repr(self) -> str:
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPool):
    """The p-norm of each window of (N, C, L)."""

    _rank = 1


class LPPool2d(_LPPool):
    """The p-norm of each window of (N, C, H, W)."""

    _rank = 2


class LPPool3d(_LPPool):
    """The p-norm of each window of (N, C, D, H, W)."""

    _rank = 3


class _MaxUnpool(Module):
    _rank = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = _tuple(kernel_size, self._rank)
        self.stride = self.kernel_size if stride is None else _tuple(stride, self._rank)
        self.padding = _tuple(padding, self._rank)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        return functional._max_unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size, self._rank)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Writes each element to the index that MaxPool1d returned for it; other elements are 0."""

    _rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Writes each element to the index that MaxPool2d returned for it; other elements are 0."""

    _rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Writes each element to the index that MaxPool3d returned for it; other elements are 0."""

    _rank = 3


class _Pad(Module):
    _rank, _mode = 0, "constant"

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _tuple(padding, 2 * self._rank)

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, list(self.padding), self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return tenon.pad(input, list(self.padding), "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


def _pads(base: type, name: str, mode: str, doc: str, ranks: tuple[int, ...]) -> list[type]:
    return [type(f"{name}{rank}d", (base,), {"_rank": rank, "_mode": mode, "__doc__": doc, "__module__": __name__}) for rank in ranks]


ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _pads(_Pad, "ReflectionPad", "reflect", "Pads by reflection at the edge.", (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _pads(_Pad, "ReplicationPad", "replicate", "Pads with the element at the edge.", (1, 2, 3))
CircularPad1d, CircularPad2d, CircularPad3d = _pads(_Pad, "CircularPad", "circular", "Pads with the elements from the opposite end.", (1, 2, 3))
ZeroPad1d, ZeroPad2d, ZeroPad3d = _pads(_Pad, "ZeroPad", "constant", "Pads with 0.", (1, 2, 3))
ConstantPad1d, ConstantPad2d, ConstantPad3d = _pads(_ConstantPad, "ConstantPad", "constant", "Pads with one number.", (1, 2, 3))


class Upsample(Module):
    """Resizes the axes after the first two. The arguments are those of tenon.nn.functional.interpolate."""

    def __init__(self, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None) -> None:
        super().__init__()
        self.size, self.scale_factor, self.mode, self.align_corners = size, scale_factor, mode, align_corners

    def forward(self, input: Tensor) -> Tensor:
        return functional.interpolate(input, self.size, self.scale_factor, self.mode, self.align_corners)

    def extra_repr(self) -> str:
        how = f"scale_factor={float(self.scale_factor)}" if self.scale_factor is not None else f"size={self.size}"
        return f"{how}, mode={self.mode}"


class PixelShuffle(Module):
    """Rearranges (N, C * r * r, H, W) to (N, C, H * r, W * r), where r is upscale_factor (Shi et al. 2016)."""

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return tenon.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearranges (N, C, H * r, W * r) to (N, C * r * r, H, W), where r is downscale_factor."""

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return tenon.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
           "AvgPool1d", "AvgPool2d", "AvgPool3d", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d",
           "ConstantPad3d", "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d",
           "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d",
           "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Upsample", "ZeroPad1d", "ZeroPad2d",
           "ZeroPad3d"]
