"""Parameters that are computed from others by modules, each time they are read.

    class Symmetric(nn.Module):
        def forward(self, x):
            return x.triu() + x.triu(1).mT

    register_parametrization(layer, "weight", Symmetric())
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any, Iterator, Sequence

import tenon
from tenon import Tensor
from tenon._changes import changes
from tenon.nn.containers import ModuleDict, ModuleList
from tenon.nn.module import Module
from tenon.nn.parameter import Parameter

_cache: dict[tuple[int, str], Tensor] | None = None


@contextlib.contextmanager
def cached() -> Iterator[None]:
    """A `with` block in which each parametrised tensor is computed once."""
    global _cache
    before = _cache
    _cache = {} if before is None else before
    try:
        yield
    finally:
        _cache = before


def _hold(module: Module, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _write(target: Tensor, value: Tensor) -> None:
    with tenon.no_grad():
        target.copy_(value)


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, and the tensor they compute it from: `original`, or `original0`, `original1`
    and so on if the first module takes several. register_parametrization creates it."""

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        with tenon.no_grad():
            new: Any = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with contextlib.suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, list, tuple)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = len(new) if isinstance(new, (list, tuple)) else 1
        shape, dtype = original.shape, original.dtype
        if isinstance(new, Tensor):
            if new.dtype != dtype:
                raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the dtype.\noriginal.dtype: {dtype}\n"
                                 f"right_inverse(original).dtype: {new.dtype}")
            if new.shape == shape:
                _write(original, new)
            else:
                original = Parameter(new.detach(), original.requires_grad) if isinstance(original, Parameter) else new
            _hold(self, "original", original)
        for i, each in enumerate(new if isinstance(new, (list, tuple)) else ()):
            if not isinstance(each, Tensor):
                raise ValueError("'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                                 f"Got element {i} of the sequence with type {type(each).__name__}.")
            _hold(self, f"original{i}", Parameter(each.detach(), original.requires_grad) if isinstance(original, Parameter) else each)
        if not unsafe:
            _check("unparametrized", shape, dtype, "parametrized", self())

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Writes the originals so that the modules compute `value`, by their right_inverse."""
        with tenon.no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
        if isinstance(value, Tensor) != self.is_tensor:
            raise ValueError(f"'right_inverse' must return {'a tensor' if self.is_tensor else 'a sequence of tensors'}. Got {type(value).__name__}.")
        values = [value] if self.is_tensor else list(value)
        if len(values) != self.ntensors:
            raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(values)}.")
        for target, each in zip(self._originals(), values):
            if each.dtype != target.dtype:
                raise ValueError(f"The tensor returned by `right_inverse` has dtype {each.dtype} while `original` has dtype {target.dtype}")
            _write(target, each)

    def forward(self) -> Tensor:
        first, *others = list(self)
        value: Tensor = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _check(before: str, shape: Any, dtype: Any, after: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
    for what, old, new in (("dtype", dtype, value.dtype), ("shape", tuple(shape), tuple(value.shape))):
        if old != new:
            raise ValueError(f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is enabled.\n{before} {what}: {old}\n"
                             f"{after} {what}: {new}")


def _own_class(module: Module) -> None:
    """Gives the module a class of its own, which can have properties."""
    base = type(module)

    def setter(self: Any, name: str, value: Any) -> None:
        if is_parametrized(self, name):
            self.parametrizations[name].right_inverse(value)
        else:
            base.__setattr__(self, name, value)

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        made = memo[id(self)] = object.__new__(base)
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        _own_class(made)
        for name in made.parametrizations:
            _add_property(made, name)
        return made

    def reduce(self: Any, protocol: Any) -> Any:
        raise RuntimeError("A parametrized module cannot be pickled. Save its state_dict().")
    object.__setattr__(module, "__class__", type(f"Parametrized{base.__name__}", (base,), {
        "__setattr__": setter, "__deepcopy__": deepcopy, "__reduce_ex__": reduce, "__module__": base.__module__}))
    changes.number += 1


def _add_property(module: Module, name: str) -> None:
    def value(self: Any) -> Tensor:
        parametrization = self.parametrizations[name]
        if _cache is None:
            result: Tensor = parametrization()
            return result
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = parametrization()
        return _cache[key]
    setattr(type(module), name, property(value))


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Module:
    """Computes a parameter or buffer of a module by another module, each time it is read. Returns the module.

    The tensor that trains becomes `module.parametrizations.<name>.original`. Several parametrisations of a tensor apply
    one after the other. If each has a method right_inverse, the tensor can be assigned.

    Args:
        tensor_name: the parameter or buffer.
        parametrization: takes the original and returns the tensor. If its right_inverse returns several tensors, it
            takes all of them.
        unsafe: allows another shape or dtype, and checks nothing.

    Errors: ValueError if the module has no such tensor, or the parametrisation changes its shape or dtype.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        held: Any = module.parametrizations[tensor_name]
        if not unsafe:
            before = getattr(module, tensor_name)
            after = parametrization(before)
            _check(f"module.{tensor_name}", before.shape, before.dtype, "parametrized", after)
            if hasattr(parametrization, "right_inverse"):
                with contextlib.suppress(NotImplementedError):
                    _check(f"module.{tensor_name}", before.shape, before.dtype, "right_inverse's", parametrization.right_inverse(after))
        held.append(parametrization)
        held.unsafe |= unsafe
        return module
    if tensor_name not in module._buffers and tensor_name not in module._parameters:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _own_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    module.parametrizations[tensor_name] = made
    made.train(module.training)
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """True if a tensor of the module, or any of them, has a parametrisation."""
    held = module.__dict__.get("_modules", {}).get("parametrizations")
    if not isinstance(held, ModuleDict):
        return False
    return len(held) > 0 if tensor_name is None else tensor_name in held


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes a tensor an ordinary parameter or buffer again, and returns the module.

    leave_parametrized: True keeps the value that the parametrisations compute, False that of the original.

    Errors: ValueError if the tensor has no parametrisation, or if it has several originals and leave_parametrized is
    False.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    held: Any = module.parametrizations[tensor_name]
    if not held.is_tensor and not leave_parametrized:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors.")
    tensor: Any = held._originals()[0]
    if leave_parametrized:
        value = getattr(module, tensor_name)
        if held.is_tensor and value.shape == tensor.shape and value.dtype == tensor.dtype:
            _write(tensor, value)
        else:
            tensor = Parameter(value.detach()) if value.requires_grad else value
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        object.__setattr__(module, "__class__", type(module).__bases__[0])
        changes.number += 1
    _hold(module, tensor_name, tensor)
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before its first parametrisation."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)
