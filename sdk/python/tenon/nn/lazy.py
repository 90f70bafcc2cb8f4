"""Convolutions that take the number of input channels from their first input."""

from __future__ import annotations

from typing import Any

from tenon import Tensor
from tenon.nn import convolution
from tenon.nn.module import Module


class _Lazy(Module):
    """A layer that creates its parameters when it is first called. It then becomes an instance of the class without
    "Lazy"."""

    _made: Any = None

    def __init__(self, out_channels: int, kernel_size: Any, *args: Any, **kwargs: Any) -> None:
        Module.__init__(self)
        self._settings = ((out_channels, kernel_size, *args), kwargs)

    def forward(self, input: Tensor, *args: Any) -> Tensor:
        settings, kwargs = self._settings
        made = self._made(input.shape[input.ndim - self._made._rank - 1], *settings, **kwargs)
        for name, value in vars(made).items():
            if not name.startswith("_") and name != "training":
                setattr(self, name, value)
        for name, parameter in made._parameters.items():
            self.register_parameter(name, parameter)
        del self._settings
        self.__class__ = self._made
        result: Tensor = self.forward(input, *args)
        return result

    def extra_repr(self) -> str:
        return ", ".join(["0", *map(str, self._settings[0])])


def _lazy(name: str) -> type:
    made = getattr(convolution, name)
    return type("Lazy" + name, (_Lazy,), {"_made": made, "__doc__": f"A {name} that takes in_channels from its first input.", "__module__": __name__})


LazyConv1d, LazyConv2d, LazyConv3d = _lazy("Conv1d"), _lazy("Conv2d"), _lazy("Conv3d")
LazyConvTranspose1d, LazyConvTranspose2d, LazyConvTranspose3d = _lazy("ConvTranspose1d"), _lazy("ConvTranspose2d"), _lazy("ConvTranspose3d")

__all__ = ["LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]
