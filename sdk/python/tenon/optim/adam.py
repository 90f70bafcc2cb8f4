"""Adam (Kingma and Ba 2014), and AdamW, whose weight decay does not go through the gradient (Loshchilov and Hutter 2017)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, Ready, batches, step_settings, zeros_as


class Adam(Optimizer):
    """parameter -= lr m / (sqrt(v) + eps), where m and v are running means of the gradient and its square, made free of
    their start at 0. capturable: the number of steps is a tensor, as a compiled step needs it."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                                  "capturable": capturable, "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
                                  **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        step: Any = tenon.zeros((), dtype=tenon.float64, device=parameter.device) if group["capturable"] else 0
        state = {"step": step, "exp_avg": zeros_as(plain), "exp_avg_sq": zeros_as(plain)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_as(plain)
        return state

    def _step_all(self, ready: list[Ready], group: dict[str, Any]) -> None:
        first, second = group["betas"]
        update = tenon.fused_adamw_ if group["decoupled_weight_decay"] else tenon.fused_adam_
        for _, _, state in ready:
            if isinstance(state["step"], Tensor):
                state["step"].add_(1)
            else:
                state["step"] += 1
        for batch in batches(ready, "step"):
            parameters, gradients, states = (list(each) for each in zip(*batch))
            greatest = [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else []
            update(parameters, gradients, [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states], greatest, states[0]["step"],
                   lr=group["lr"], beta1=first, beta2=second, weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"])


class AdamW(Adam):
    """As Adam; the weight decay shrinks the parameter itself, by lr weight_decay."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused, decoupled_weight_decay=True)
