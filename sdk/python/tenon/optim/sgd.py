"""SGD: gradient descent, with momentum (Sutskever et al. 2013)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, subtract


class SGD(Optimizer):
    """buffer = momentum buffer + (1 - dampening) gradient; parameter -= lr buffer, or with nesterov lr (gradient + momentum
    buffer). The first buffer is the first gradient."""

    def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
                 maximize: bool = False) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        # Without dampening a buffer of zeros becomes the first gradient by itself.
        return {"momentum_buffer": tenon.zeros_like(parameter.detach()) if group["momentum"] != 0 and group["dampening"] == 0 else None}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            gradient = tenon.add(gradient, parameter, alpha=group["weight_decay"])
        if group["momentum"] != 0:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = gradient.clone()
            else:
                buffer.mul_(group["momentum"]).add_(gradient, alpha=1 - group["dampening"])
            gradient = tenon.add(gradient, buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        subtract(parameter, gradient, group["lr"])
