"""Layers that take their number of input channels from their first input."""

from __future__ import annotations

from typing import Any

from tenon import Tensor
from tenon.nn import convolution, linear, normalization
from tenon.nn.module import Module


class _Lazy(Module):
    """A layer that creates its parameters when it is first called. It then becomes an instance of the class without
    "Lazy", its `cls_to_become`."""

    cls_to_become: Any = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        self._settings = (args, kwargs)

    def _channels(self, input: Tensor) -> int:
        raise NotImplementedError

    def has_uninitialized_params(self) -> bool:
        """True until the first call."""
        return "_settings" in self.__dict__

    def forward(self, input: Tensor, *args: Any) -> Tensor:
        settings, kwargs = self._settings
        made = self.cls_to_become(self._channels(input), *settings, **kwargs)
        for name, value in vars(made).items():
            if not name.startswith("_") and name != "training":
                setattr(self, name, value)
        for held in ("_parameters", "_buffers"):
            for name, value in vars(made)[held].items():
                vars(self)[held][name] = value
        del self._settings
        self.__class__ = self.cls_to_become
        result: Tensor = self.forward(input, *args)
        return result

    def load_state_dict(self, state_dict: Any, strict: bool = True) -> Any:
        if self.has_uninitialized_params():
            raise RuntimeError(f"{type(self).__name__} has no parameters before its first call; call the net once before load_state_dict.")
        return super().load_state_dict(state_dict, strict)

    def extra_repr(self) -> str:
        return ", ".join(["0", *map(str, self._settings[0]), *(f"{name}={value}" for name, value in self._settings[1].items())])


class _LazyConvolution(_Lazy):
    def _channels(self, input: Tensor) -> int:
        rank: int = self.cls_to_become._rank
        return input.shape[input.ndim - rank - 1]


class _LazyLast(_Lazy):
    def _channels(self, input: Tensor) -> int:
        return input.shape[-1]


class _LazyNorm(_Lazy):
    def __init__(self, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True, track_running_stats: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(eps, momentum, affine, track_running_stats, device=device, dtype=dtype)

    def _channels(self, input: Tensor) -> int:
        ranks = self.cls_to_become._ranks
        if input.ndim not in ranks:
            raise ValueError(f"expected {' or '.join(f'{rank}D' for rank in ranks)} input (got {input.ndim}D input)")
        unbatched = issubclass(self.cls_to_become, normalization._InstanceNorm) and input.ndim == ranks[0]
        return input.shape[0 if unbatched else 1]


def _lazy(base: type, made: Any, channels: str) -> type:
    return type("Lazy" + made.__name__, (base,), {"cls_to_become": made, "__doc__": f"A {made.__name__} that takes {channels} from its first input.",
                                                  "__module__": __name__})


LazyLinear = _lazy(_LazyLast, linear.Linear, "in_features")
LazyConv1d, LazyConv2d, LazyConv3d, LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = (
    _lazy(_LazyConvolution, getattr(convolution, name), "in_channels")
    for name in ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"))
LazyBatchNorm1d, LazyBatchNorm2d, LazyBatchNorm3d, LazyInstanceNorm1d, LazyInstanceNorm2d, LazyInstanceNorm3d = (
    _lazy(_LazyNorm, getattr(normalization, name), "num_features")
    for name in ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"))

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d",
           "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear"]
