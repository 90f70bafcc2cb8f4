"""weight_norm and spectral_norm in PyTorch's older form: a hook computes the weight before each call, and the state_dict has
`weight_g` and `weight_v`, or `weight_orig`, `weight_u` and `weight_v`. `parametrizations` has the newer form."""

from __future__ import annotations

from typing import Any

import tenon
from tenon.nn.functional import normalize
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter
from tenon.nn.utils.parametrizations import as_matrix, first_dim, iterate, largest, norm_except


class _Hook:
    """Computes a weight before each call of its module."""

    def __init__(self, name: str) -> None:
        self.name = name

    def add(self, module: Any) -> None:
        for hook in module._forward_pre_hooks.values():
            if type(hook) is type(self) and hook.name == self.name:
                raise RuntimeError(f"Cannot register two {self.what} hooks on the same parameter {self.name}")
        self.split(module)
        setattr(module, self.name, self.compute(module))
        self.handle = module.register_forward_pre_hook(self)

    def __call__(self, module: Any, _: Any) -> None:
        setattr(module, self.name, self.compute(module))

    def remove(self, module: Any) -> None:
        weight = self.compute(module, last=True).detach()
        delattr(module, self.name)
        for suffix in self.suffixes:
            delattr(module, f"{self.name}_{suffix}")
        module.register_parameter(self.name, Parameter(weight))
        self.handle.remove()

    what = ""
    suffixes: tuple[str, ...] = ()

    def split(self, module: Any) -> None:
        raise NotImplementedError

    def compute(self, module: Any, last: bool = False) -> Any:
        raise NotImplementedError


class _WeightNorm(_Hook):
    what, suffixes = "weight_norm", ("g", "v")

    def __init__(self, name: str, dim: int | None) -> None:
        super().__init__(name)
        self.dim = None if dim == -1 else dim

    def split(self, module: Any) -> None:
        weight = getattr(module, self.name).detach()
        delattr(module, self.name)
        module.register_parameter(self.name + "_g", Parameter(norm_except(weight, self.dim)))
        module.register_parameter(self.name + "_v", Parameter(weight))

    def compute(self, module: Any, last: bool = False) -> Any:
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        return v * (g / norm_except(v, self.dim))


class _SpectralNorm(_Hook):
    what, suffixes = "spectral_norm", ("orig", "u", "v")

    def __init__(self, name: str, count: int, eps: float, dim: int) -> None:
        super().__init__(name)
        self.count, self.eps, self.dim = count, eps, dim

    def split(self, module: Any) -> None:
        weight = getattr(module, self.name)
        delattr(module, self.name)
        module.register_parameter(self.name + "_orig", weight)
        for suffix, size in zip(("u", "v"), as_matrix(weight, self.dim).shape):
            module.register_buffer(f"{self.name}_{suffix}", normalize(tenon.randn((size,), dtype=weight.dtype, device=weight.device), dim=0, eps=self.eps))

    def compute(self, module: Any, last: bool = False) -> Any:
        weight, u, v = (getattr(module, f"{self.name}_{suffix}") for suffix in self.suffixes)
        matrix = as_matrix(weight, self.dim)
        if module.training and not last:
            iterate(matrix.detach().mT, v, u, self.count, self.eps)  # v first
        return weight / largest(matrix, u, v)


def _removed(module: Module, name: str, kind: type[_Hook]) -> Module:
    for hook in module._forward_pre_hooks.values():
        if type(hook) is kind and hook.name == name:
            hook.remove(module)
            return module
    raise ValueError(f"{kind.what} of '{name}' not found in {module}")


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains the norm of a weight, `weight_g`, and its direction, `weight_v`, apart. Returns the module.

    The arguments are those of parametrizations.weight_norm."""
    _WeightNorm(name, dim).add(module)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again, with its current value."""
    return _removed(module, name, _WeightNorm)


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divides a weight by its largest singular value in each call; `weight_orig` is trained. Returns the module.

    The arguments are those of parametrizations.spectral_norm."""
    if n_power_iterations <= 0:
        raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
    _SpectralNorm(name, n_power_iterations, eps, first_dim(module, dim)).add(module)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight a parameter again, with its current value."""
    return _removed(module, name, _SpectralNorm)
