"""Module: a function of tensors that owns parameters, buffers and other modules."""

from __future__ import annotations

import collections
import itertools
from typing import Any, Callable, Iterator, Mapping

import tenon
from tenon import Tensor
from tenon._changes import Table, changes
from tenon.nn.parameter import Buffer, Parameter

LoadResult = collections.namedtuple("LoadResult", "missing_keys unexpected_keys")


class HookHandle:
    """Removes a hook."""

    _numbers = itertools.count()

    def __init__(self, hooks: dict[int, Any], hook: Any) -> None:
        self._hooks, self._number = hooks, next(HookHandle._numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Removes the hook; it is not called again."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _indented(text: str) -> str:
    first, *rest = text.split("\n")
    return "\n".join([first] + ["  " + line for line in rest])


class Module:
    """A function of tensors with state. Subclasses assign parameters and modules in __init__, after
    super().__init__(), and define forward. Calling the module calls forward."""

    training: bool

    def __init__(self) -> None:
        own = self.__dict__
        own["training"] = True
        for name in ("_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks"):
            own[name] = Table()
        own["_not_persistent"] = set()
        changes.number += 1

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the results of the module. Subclasses write it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not (self._forward_pre_hooks or self._forward_hooks or self._backward_hooks):
            return self.forward(*args, **kwargs)
        for hook in list(self._forward_pre_hooks.values()):
            changed = hook(self, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        result = self.forward(*args, **kwargs)
        for hook in list(self._forward_hooks.values()):
            changed = hook(self, args, result)
            if changed is not None:
                result = changed
        return self._with_backward_hooks(args, result) if self._backward_hooks else result

    def _with_backward_hooks(self, args: tuple[Any, ...], result: Any) -> Any:
        """Attaches the backward hooks to the result. They receive the gradients of the results, and None for the
        gradients of the arguments; a hook on the argument itself receives those."""
        hooks = list(self._backward_hooks.values())
        if isinstance(result, Tensor) and result.requires_grad:
            result.register_hook(lambda gradient: [hook(self, tuple(None for _ in args), (gradient,)) for hook in hooks] and None)
        return result

    # ---- attributes ----

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_parameters" not in own:
            if isinstance(value, (Parameter, Module)):
                raise AttributeError("cannot assign parameters or modules before Module.__init__() call")
            own[name] = value
            return
        kinds = (own["_parameters"], own["_buffers"], own["_modules"])
        if isinstance(value, Parameter):
            target = own["_parameters"]
        elif isinstance(value, Module):
            target = own["_modules"]
        elif isinstance(value, Buffer):
            target = own["_buffers"]
            (own["_not_persistent"].discard if value.persistent else own["_not_persistent"].add)(name)
        else:
            target = next((held for held in kinds if name in held), None)
            if target is own["_parameters"] and value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as parameter '{name}' (nn.Parameter or None expected)")
            if target is own["_modules"] and value is not None:
                raise TypeError(f"cannot assign '{type(value).__name__}' as child module '{name}' (nn.Module or None expected)")
            if target is None:
                object.__setattr__(self, name, value)
                changes.number += 1
                return
        for held in kinds:
            if held is not target:
                held.pop(name, None)
        own.pop(name, None)
        target[name] = value  # the assignment counts as a change of the module

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            held = self.__dict__.get(kind)
            if held is not None and name in held:
                return held[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for held in (self._parameters, self._buffers, self._modules):
            if name in held:
                del held[name]
                return
        object.__delattr__(self, name)
        changes.number += 1

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._parameters, *self._buffers, *self._modules})

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds `param` as a parameter. None registers the name without a parameter."""
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is not trained. It is part of the state_dict if persistent."""
        if "." in name or not name:
            raise KeyError(f"a buffer cannot be called '{name}'.")
        if hasattr(self, name) and name not in self._buffers:
            raise KeyError(f"attribute '{name}' already exists")
        self._buffers[name] = tensor
        (self._not_persistent.discard if persistent else self._not_persistent.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds `module` as a child."""
        if "." in name or not name:
            raise KeyError(f"a module cannot be called '{name}'.")
        self._modules[name] = module

    register_module = add_module

    # ---- parts ----

    def named_modules(self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """This module and those inside it, each once, by their paths."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and those inside it, each once."""
        for _, module in self.named_modules():
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside this one, each once."""
        seen: set[Module] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly inside this one, each once."""
        for _, module in self.named_children():
            yield module

    def _named(self, kind: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        for path, module in self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]:
            for name, value in module.__dict__[kind].items():
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Parameter]]:
        """The parameters, each once, by their paths."""
        return self._named("_parameters", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """The parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """The buffers, each once, by their paths."""
        return self._named("_buffers", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module at a path."""
        module: Module = self
        for name in target.split(".") if target else []:
            found = module._modules.get(name)
            if found is None:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = found
        return module

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a path."""
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._parameters.get(name)
        if parameter is None:
            raise AttributeError(f"`{target}` is not an nn.Parameter")
        found: Parameter = parameter
        return found

    # ---- modes and places ----

    def train(self, mode: bool = True) -> Any:
        """Sets training mode for this module and all inside it, or evaluation mode with False. Returns the module."""
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Any:
        """Sets evaluation mode: no dropout, and batch norms use their running statistics. Returns the module."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets whether the parameters require gradients. Returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of the parameters; with set_to_none=False fills them with 0."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad = tenon.zeros_like(parameter.grad)

    def apply(self, fn: Callable[[Module], Any]) -> Any:
        """Applies fn to the children, then to the module itself. Returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _converted(self, convert: Callable[[Tensor, str], Tensor]) -> Any:
        """Calls `convert` with each parameter and buffer and its name."""
        names = {id(tensor): name for name, tensor in (*self.named_parameters(), *self.named_buffers())}
        replaced: list[Parameter] = []
        others: dict[int, Parameter] = {}  # by the id of the old parameter, which several modules may share
        for module in self.modules():
            for name, parameter in module._parameters.items():
                if parameter is None:
                    continue
                if id(parameter) in others:
                    module._parameters[name] = others[id(parameter)]
                    continue
                made = convert(parameter.detach(), names[id(parameter)])
                if made.dtype == parameter.dtype and made.device == parameter.device and not made.is_global:
                    continue
                other = Parameter(made, parameter.requires_grad)
                if parameter.grad is not None:
                    other.grad = convert(parameter.grad, names[id(parameter)])
                others[id(parameter)] = module._parameters[name] = other
                replaced.append(parameter)  # keeps it alive, so that no new object gets its id
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    module._buffers[name] = convert(buffer, names[id(buffer)])
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Moves parameters and buffers to a device, and converts those of a float dtype to another float dtype.
        Returns the module.

        The parameters become other tensors, so create the optimiser afterwards.
        """
        def convert(tensor: Tensor, _: str) -> Tensor:
            moved: Tensor = tensor.to(*args, **kwargs)
            return moved if tensor.is_floating_point() or moved.dtype == tensor.dtype else tensor._to_device(moved.device)
        return self._converted(convert)

    def to_global(self, placement: Any, sbp: Any) -> Any:
        """Spreads parameters and buffers over the ranks of a placement (tenon.global_). They must be equal on all
        ranks. Returns the module.

        sbp: the layout, or a function of name and tensor that returns it. The parameters become other tensors, so
        create the optimiser afterwards.
        """
        from tenon.global_ import Sbp, sbp as ways
        whole = [ways.broadcast] * len(placement.grid)

        def spread(tensor: Tensor, name: str) -> Tensor:
            wanted = sbp(name, tensor) if callable(sbp) and not isinstance(sbp, Sbp) else sbp
            made: Tensor = tensor.to_global(placement, whole).to_global(sbp=wanted)
            return made
        return self._converted(spread)

    def _floats_to(self, dtype: Any) -> Any:
        return self._converted(lambda tensor, _: tenon.cast(tensor, dtype) if tensor.is_floating_point() else tensor)

    def float(self) -> Any:
        """Converts float parameters and buffers to f32."""
        return self._floats_to(tenon.float32)

    def double(self) -> Any:
        """Converts float parameters and buffers to f64."""
        return self._floats_to(tenon.float64)

    def half(self) -> Any:
        """Converts float parameters and buffers to f16."""
        return self._floats_to(tenon.float16)

    def bfloat16(self) -> Any:
        """Converts float parameters and buffers to bf16."""
        return self._floats_to(tenon.bfloat16)

    def cpu(self) -> Any:
        """Moves parameters and buffers to the host device."""
        return self.to("cpu")

    # ---- state ----

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Returns parameters and persistent buffers by path. The tensors share elements with the module."""
        state: dict[str, Tensor] = {}
        for path, module in self.named_modules(prefix=prefix.rstrip("."), remove_duplicate=False):
            before = f"{path}." if path else ""
            for name, parameter in module._parameters.items():
                if parameter is not None:
                    state[before + name] = parameter if keep_vars else parameter.detach()
            for name, buffer in module._buffers.items():
                if buffer is not None and name not in module._not_persistent:
                    state[before + name] = buffer if keep_vars else buffer.detach()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> LoadResult:
        """Copies tensors or arrays, by path, into parameters and buffers. A module that is spread over ranks needs
        the same tensors on every rank.

        strict: missing and unknown names are an error. Another shape always is. After an error nothing is changed.
        """
        from tenon.global_ import sbp as ways
        own = self.state_dict()
        result = LoadResult([name for name in own if name not in state_dict], [name for name in state_dict if name not in own])
        found = {name: tenon.as_tensor(value) for name, value in state_dict.items() if name in own}
        wrong = [f"size mismatch for {name}: copying a param with shape {tuple(value.shape)} from checkpoint, the shape in current model is "
                 f"{tuple(own[name].shape)}." for name, value in found.items() if value.shape != own[name].shape]
        if strict and result.unexpected_keys:
            wrong.append("Unexpected key(s) in state_dict: " + ", ".join(f'"{name}"' for name in result.unexpected_keys) + ".")
        if strict and result.missing_keys:
            wrong.append("Missing key(s) in state_dict: " + ", ".join(f'"{name}"' for name in result.missing_keys) + ".")
        if wrong:
            raise tenon.InvalidArgument(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(wrong))
        with tenon.no_grad():
            for name, value in found.items():
                target = own[name]
                if target.is_global and not value.is_global:
                    value = value.to_global(target.placement, [ways.broadcast] * len(target.placement.grid))
                target.copy_(value)
        return result

    # ---- hooks ----

    def register_forward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls hook(module, args, result) after forward. A value other than None replaces the result."""
        return HookHandle(self._forward_hooks, hook)

    def register_forward_pre_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls hook(module, args) before forward. A value other than None replaces the arguments."""
        return HookHandle(self._forward_pre_hooks, hook)

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> HookHandle:
        """Calls hook(module, argument_gradients, result_gradients) when the gradient of the result is known. The
        result must be one tensor. The gradients of the arguments are None."""
        return HookHandle(self._backward_hooks, hook)

    # ---- text ----

    def extra_repr(self) -> str:
        """Returns the text between the brackets of repr."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        parts = [f"({name}): " + _indented(repr(module)) for name, module in self._modules.items()]
        if not parts:
            return f"{type(self).__name__}({extra})"
        lines = ([extra] if extra else []) + parts
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


__all__ = ["Module"]
