"""Parameters: the tensors that a module trains."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


class Parameter(Tensor):
    """A tensor that becomes a parameter of the Module it is assigned to. It shares its elements with `data`."""

    def __init__(self, data: Any = None, requires_grad: bool = True) -> None:
        super().__init__(tenon.empty((0,)) if data is None else data)
        if requires_grad:
            self.requires_grad_()

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    __str__ = __repr__

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = Parameter(tenon.clone(self.detach()), self.requires_grad)
            if self.grad is not None:
                memo[id(self)].grad = tenon.clone(self.grad)
        made: Parameter = memo[id(self)]
        return made


class Buffer(Tensor):
    """A tensor that becomes a buffer of the Module it is assigned to: part of the state, but not trained."""

    def __init__(self, data: Any, persistent: bool = True) -> None:
        super().__init__(data)
        self.persistent = persistent


__all__ = ["Buffer", "Parameter"]
