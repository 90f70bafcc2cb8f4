"""Adagrad (Duchi et al. 2011)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, count_step, decay, step_count, step_settings, subtract, zeros_as


class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011). With g the gradient:

        sum += g ** 2
        p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps)

    Args:
        lr: the learning rate. lr_decay: how fast it falls.
        weight_decay: first adds weight_decay * p to g.
        initial_accumulator_value: the first value of sum.
        maximize: increases the loss instead of decreasing it.
    """

    def __init__(self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0, initial_accumulator_value: float = 0, eps: float = 1e-10,
                 foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, fused: bool | None = None) -> None:
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                                  "initial_accumulator_value": initial_accumulator_value, "maximize": maximize, "fused": fused,
                                  **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        step: Any = step_count(parameter) if group["lr_decay"] == 0 else 0
        return {"step": step, "sum": zeros_as(parameter.detach()).fill_(group["initial_accumulator_value"])}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        rate = group["lr"]
        if group["lr_decay"] != 0:
            rate = rate / (1 + state["step"] * group["lr_decay"])
        count_step(state)
        gradient = decay(gradient, parameter, group)
        total = state["sum"].add_(gradient * gradient)
        subtract(parameter, gradient / (tenon.sqrt(total) + group["eps"]), rate)
