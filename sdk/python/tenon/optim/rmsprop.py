"""RMSprop (Hinton, lecture 6, 2012; centred: Graves 2013)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, count_step, decay, step_count, step_settings, subtract, zeros_as


class RMSprop(Optimizer):
    """RMSprop (Hinton 2012). With g the gradient:

        v = alpha * v + (1 - alpha) * g ** 2
        p -= lr * g / (sqrt(v) + eps)

    Args:
        weight_decay: first adds weight_decay * p to g.
        momentum: p moves by lr * b instead, where b = momentum * b + g / (sqrt(v) + eps).
        centered: subtracts the square of the running mean of g from v (Graves 2013).
        maximize: increases the loss instead of decreasing it.
    """

    def __init__(self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0, momentum: float = 0,
                 centered: bool = False, capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "alpha": alpha, "eps": eps, "weight_decay": weight_decay, "momentum": momentum, "centered": centered,
                                  "maximize": maximize, "capturable": capturable, **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        state = {"step": step_count(parameter), "square_avg": zeros_as(plain)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_as(plain)
        if group["centered"]:
            state["grad_avg"] = zeros_as(plain)
        return state

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        count_step(state)
        gradient = decay(gradient, parameter, group)
        square: Tensor = state["square_avg"]
        square.mul_(group["alpha"]).add_(gradient * gradient, alpha=1 - group["alpha"])
        if group["centered"]:
            mean = state["grad_avg"]
            mean.mul_(group["alpha"]).add_(gradient, alpha=1 - group["alpha"])
            square = square - mean * mean
        update = gradient / (tenon.sqrt(square) + group["eps"])
        if group["momentum"] > 0:
            update = state["momentum_buffer"].mul_(group["momentum"]).add_(update)
        subtract(parameter, update, group["lr"])
