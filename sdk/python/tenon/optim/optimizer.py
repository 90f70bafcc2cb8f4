"""Optimizer: groups of parameters with their settings, and the state of each parameter."""

from __future__ import annotations

import copy
from typing import Any, Callable, Dict, Iterable, Tuple

import tenon
from tenon import Tensor
from tenon.compiling import is_recording


def subtract(parameter: Tensor, update: Tensor, lr: Any) -> None:
    """Computes parameter -= lr * update. A rate that is a tensor may change between runs of a compiled step."""
    if isinstance(lr, Tensor):
        parameter.sub_(update * tenon.cast(lr, update.dtype))
    else:
        parameter.add_(update, alpha=-lr)


def plain_settings(capturable: bool, foreach: bool | None, differentiable: bool) -> dict[str, Any]:
    """Returns settings of PyTorch that choose an implementation, for optimisers that have only one."""
    if capturable:
        raise tenon.Unsupported("this optimiser does not support capturable=True: it counts its steps in a Python number.")
    return {"capturable": capturable, **step_settings(foreach, differentiable)}


def step_settings(foreach: bool | None, differentiable: bool) -> dict[str, Any]:
    """Like plain_settings, without capturable. Accepts any `foreach`, since it does not change the result."""
    if differentiable:
        raise tenon.Unsupported("differentiable=True is not supported: steps are not recorded for gradients.")
    return {"foreach": foreach, "differentiable": differentiable}


def step_count(parameter: Tensor, dtype: Any = tenon.float32) -> Tensor:
    """Returns a number of steps that compiled steps count too: 0 as a tensor on the device of the parameter."""
    return tenon.zeros((), dtype=dtype, device=parameter.device)


def count_step(state: dict[str, Any]) -> None:
    """Adds 1 to the number of steps, which is a number or a tensor."""
    if isinstance(state["step"], Tensor):
        state["step"].add_(1)
    else:
        state["step"] += 1


def decay(gradient: Tensor, parameter: Tensor, group: dict[str, Any]) -> Tensor:
    """Returns the gradient plus weight_decay * parameter. Decoupled weight decay shrinks the parameter in place
    instead."""
    amount = group["weight_decay"]
    if amount == 0:
        return gradient
    if group.get("decoupled_weight_decay"):
        parameter.mul_(1 - group["lr"] * amount)
        return gradient
    return tenon.add(gradient, parameter, alpha=amount)


def zeros_as(parameter: Tensor) -> Tensor:
    """Returns zeros with the shape of the parameter, spread over ranks as the parameter is."""
    return parameter.clone().fill_(0) if parameter.is_global else tenon.zeros_like(parameter)


# A parameter, its gradient, and its state.
Ready = Tuple[Tensor, Tensor, Dict[str, Any]]


def batches(ready: list[Ready], *names: str) -> list[list[Ready]]:
    """Groups `ready` by device, dtype and the values that the states have under `names`."""
    parts: dict[Any, list[Ready]] = {}
    for each in ready:
        parameter, _, state = each
        parts.setdefault((parameter.device, parameter.dtype, *[state[name] for name in names]), []).append(each)
    return list(parts.values())


class Optimizer:
    """Base class of optimisers. Subclasses define `_start`, which returns the state of a new parameter, and `_step`.

    Args:
        params: parameters, or dicts {"params": ..., "lr": ...}, one for each group with its own settings.
        defaults: the settings of groups that do not have their own.

    A learning rate is a number, or a tensor of rank 0, which compiled steps read each time.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: dict[Tensor, dict[str, Any]] = {}
        self.param_groups: list[dict[str, Any]] = []
        if isinstance(params, Tensor):
            raise TypeError(f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {type(params).__name__}")
        listed = list(params)
        if not listed:
            raise ValueError("optimizer got an empty parameter list")
        for group in listed if isinstance(listed[0], dict) else [{"params": listed}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group of parameters with its own settings: {"params": ..., "lr": 0.1}."""
        given = param_group["params"]
        group = {**copy.copy(self.defaults), **param_group, "params": [given] if isinstance(given, Tensor) else list(given)}
        known = {each for other in self.param_groups for each in other["params"]}
        for parameter in group["params"]:
            if not isinstance(parameter, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(parameter).__name__}")
            if not parameter.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
            if parameter in known:
                raise ValueError("some parameters appear in more than one parameter group")
        self._check(group)
        self.param_groups.append(group)

    def _check(self, group: dict[str, Any]) -> None:
        for name in ("lr", "weight_decay", "momentum", "eps", "lr_decay", "initial_accumulator_value"):
            value = group.get(name, 0)
            if not isinstance(value, Tensor) and value < 0:
                raise ValueError(f"Invalid {name} value: {value}")
        for i, beta in enumerate(group.get("betas", ())):
            if not 0 <= beta < 1:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        """Returns the state of a parameter before its first step."""
        return {}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _step_all(self, ready: list[Ready], group: dict[str, Any]) -> None:
        """Moves parameters of one group, one after the other. Optimisers whose ops take lists override it."""
        for parameter, gradient, state in ready:
            self._step(parameter, -gradient if group.get("maximize") else gradient, state, group)

    def _state_of(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        known = self.state.get(parameter)
        if known is None:
            state = self._start(parameter, group)
            if state and is_recording():
                raise tenon.InvalidArgument(f"{type(self).__name__} makes {', '.join(state)} inside of a compiled function, which would be lost. "
                                            "Call prepare() before.")
            known = self.state[parameter] = state
        return known

    def prepare(self) -> None:
        """Creates the state of all parameters now instead of at the first step. Call it before compiling a step."""
        with tenon.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    self._state_of(parameter, group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves every parameter that has a gradient. If there is a closure, first calls it to compute the gradients,
        and returns its result."""
        result = None
        if closure is not None:
            with tenon.enable_grad():
                result = closure()
        with tenon.no_grad():
            for group in self.param_groups:
                gradients = ((parameter, parameter.grad) for parameter in group["params"])
                ready = [(parameter, gradient, self._state_of(parameter, group)) for parameter, gradient in gradients if gradient is not None]
                if ready:
                    self._step_all(ready, group)
        return result

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Removes the gradients of all parameters; with set_to_none=False fills them with 0."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad = None if set_to_none else tenon.zeros_like(parameter.grad)

    def _numbers(self) -> dict[Tensor, int]:
        parameters: Iterable[Tensor] = (each for group in self.param_groups for each in group["params"])
        return {parameter: i for i, parameter in enumerate(parameters)}

    def state_dict(self) -> dict[str, Any]:
        """Returns settings and state. Parameters are replaced by their numbers."""
        numbers = self._numbers()
        return {"state": {numbers[parameter]: dict(state) for parameter, state in self.state.items()},
                "param_groups": [{**group, "params": [numbers[each] for each in group["params"]]} for group in self.param_groups]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what state_dict returned, here or in PyTorch. Tensors are copied and take the dtype of their parameter."""
        given = state_dict["param_groups"]
        if [len(group["params"]) for group in given] != [len(group["params"]) for group in self.param_groups]:
            raise ValueError("loaded state dict has a different number of parameter groups, or a group of another size")
        for group, other in zip(self.param_groups, given):
            group.update({name: copy.deepcopy(value) for name, value in other.items() if name != "params"})
        places = {number: parameter for group, other in zip(self.param_groups, given) for parameter, number in zip(group["params"], other["params"])}

        groups = {parameter: group for group in self.param_groups for parameter in group["params"]}

        def taken(name: str, value: Any, parameter: Tensor) -> Any:
            if isinstance(value, Tensor) and value is self.state.get(parameter, {}).get(name):
                return value  # the optimiser's own tensor, which a compiled step may use
            if not isinstance(value, Tensor):
                return copy.deepcopy(value)
            if value.ndim == 0 and isinstance(own := self._start(parameter, groups[parameter]).get(name), (int, float)):
                return type(own)(value.item())  # PyTorch keeps it in a tensor
            made = value.detach().clone()
            return made if name == "step" else made.to(parameter.dtype if made.is_floating_point() else made.dtype).to(parameter.device)
        self.state = {places[number]: {name: taken(name, value, places[number]) for name, value in state.items()} for number, state in state_dict["state"].items()}

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n" + "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params").rstrip("\n")
        return text + "\n)"
