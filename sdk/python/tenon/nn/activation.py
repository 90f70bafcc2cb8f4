"""Activations and dropout as modules."""

from __future__ import annotations

from typing import Any, Callable

import tenon
from tenon import Tensor
from tenon.nn import functional
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter


class _Plain(Module):
    """A function whose only setting is `inplace`."""

    _function: Callable[..., Tensor]

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional._into(input, type(self)._function(input), self.inplace)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


def _plain(name: str, function: Callable[..., Tensor], doc: str) -> type:
    return type(name, (_Plain,), {"_function": staticmethod(function), "__doc__": doc, "__module__": __name__})


ReLU = _plain("ReLU", tenon.relu, "The greater of the input and 0.")
ReLU6 = _plain("ReLU6", tenon.relu6, "The input, held between 0 and 6.")
SELU = _plain("SELU", tenon.selu, "elu with the numbers that keep mean and variance.")
SiLU = _plain("SiLU", tenon.silu, "input sigmoid(input).")
Mish = _plain("Mish", tenon.mish, "input tanh(softplus(input)).")
Hardswish = _plain("Hardswish", tenon.hardswish, "input relu6(input + 3) / 6.")
Hardsigmoid = _plain("Hardsigmoid", tenon.hardsigmoid, "relu6(input + 3) / 6.")
Sigmoid = _plain("Sigmoid", tenon.sigmoid, "1 / (1 + exp(-input)).")
Tanh = _plain("Tanh", tenon.tanh, "The hyperbolic tangent.")
Softsign = _plain("Softsign", tenon.softsign, "input / (1 + |input|).")
Tanhshrink = _plain("Tanhshrink", tenon.tanhshrink, "input - tanh(input).")
LogSigmoid = _plain("LogSigmoid", tenon.logsigmoid, "log(sigmoid(input)).")


class GELU(Module):
    """input times the probability that a standard normal variable is below it (Hendrycks and Gimpel 2016).

    approximate="tanh" computes an approximation by tanh."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return tenon.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class _Sloped(Module):
    """A function with numeric settings, which arguments give in order, and `inplace`."""

    _settings: tuple[tuple[str, float], ...] = ()
    _function: Callable[..., Tensor]

    def __init__(self, *args: Any, inplace: bool = False, **kwargs: Any) -> None:
        super().__init__()
        self.inplace = inplace
        names = [name for name, _ in self._settings]
        if len(args) > len(names):
            raise TypeError(f"{type(self).__name__} takes {len(names)} settings, not {len(args)}")
        given = {**dict(self._settings), **dict(zip(names, args))}
        for name, value in kwargs.items():
            if name not in given:
                raise TypeError(f"{type(self).__name__} has no setting '{name}'")
            given[name] = value
        for name, value in given.items():
            setattr(self, name, value)

    def forward(self, input: Tensor) -> Tensor:
        return functional._into(input, type(self)._function(input, *(getattr(self, name) for name, _ in self._settings)), self.inplace)

    def extra_repr(self) -> str:
        if [name for name, _ in self._settings] == ["lambd"]:
            return f"{self.lambd}"
        parts = [f"{name}={getattr(self, name)}" for name, _ in self._settings] + (["inplace=True"] if self.inplace else [])
        return ", ".join(parts)


def _sloped(name: str, function: Callable[..., Tensor], doc: str, **settings: float) -> type:
    return type(name, (_Sloped,), {"_function": staticmethod(function), "_settings": tuple(settings.items()), "__doc__": doc, "__module__": __name__})


LeakyReLU = _sloped("LeakyReLU", functional.leaky_relu, "input where it is positive, else negative_slope input.", negative_slope=0.01)
ELU = _sloped("ELU", functional.elu, "input where it is positive, else alpha (exp(input) - 1).", alpha=1.0)
CELU = _sloped("CELU", functional.celu, "input where it is positive, else alpha (exp(input / alpha) - 1).", alpha=1.0)
Hardtanh = _sloped("Hardtanh", functional.hardtanh, "input, held between two numbers.", min_val=-1.0, max_val=1.0)
Hardshrink = _sloped("Hardshrink", functional.hardshrink, "input where it is further from 0 than lambd, else 0.", lambd=0.5)
Softshrink = _sloped("Softshrink", functional.softshrink, "input moved towards 0 by lambd.", lambd=0.5)
Softplus = _sloped("Softplus", functional.softplus, "log(1 + exp(beta input)) / beta.", beta=1.0, threshold=20.0)


class Threshold(Module):
    """input where it is greater than threshold, else value."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}"


class RReLU(Module):
    """LeakyReLU with a slope drawn from [lower, upper) in training, and (lower + upper) / 2 otherwise."""

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}"


class PReLU(Module):
    """LeakyReLU whose slope is a trained parameter, which begins as `init` (He et al. 2015).

    num_parameters: 1 for one slope, or the number of channels of input (N, C, ...) for one slope each."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(tenon.full((num_parameters,), float(init), dtype=dtype or tenon.float32, device=device))

    def forward(self, input: Tensor) -> Tensor:
        return tenon.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class GLU(Module):
    """The first half along the axis dim times the sigmoid of the second half (Dauphin et al. 2017)."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return tenon.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class _AlongAxis(Module):
    _function: Callable[..., Tensor]

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_AlongAxis):
    """exp(input) / sum(exp(input)) along the axis dim. See tenon.nn.functional.softmax."""

    _function = staticmethod(functional.softmax)


class LogSoftmax(_AlongAxis):
    """The logarithm of Softmax."""

    _function = staticmethod(functional.log_softmax)


class Softmin(_AlongAxis):
    """Softmax of -input."""

    _function = staticmethod(functional.softmin)


class Softmax2d(Module):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def forward(self, input: Tensor) -> Tensor:
        return tenon.softmax(input, -3)


class _Dropout(Module):
    _function: Callable[..., Tensor]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self)._function(input, self.p, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training sets each element to 0 with probability p and divides the others by 1 - p (Srivastava et al. 2014).
    Otherwise returns the input."""

    _function = staticmethod(functional.dropout)


class Dropout1d(_Dropout):
    """Dropout of whole channels of (N, C, L) or (C, L)."""

    _function = staticmethod(functional.dropout1d)


class Dropout2d(_Dropout):
    """Dropout of whole channels of (N, C, H, W) or (C, H, W)."""

    _function = staticmethod(functional.dropout2d)


class Dropout3d(_Dropout):
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    _function = staticmethod(functional.dropout3d)


class AlphaDropout(_Dropout):
    """Dropout that keeps the mean and variance of SELU's results (Klambauer et al. 2017)."""

    _function = staticmethod(functional.alpha_dropout)


__all__ = ["AlphaDropout", "CELU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish",
           "Hardtanh", "LeakyReLU", "LogSigmoid", "LogSoftmax", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
           "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold"]
