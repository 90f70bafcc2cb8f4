"""Adam (Kingma and Ba 2014), and AdamW with decoupled weight decay (Loshchilov and Hutter 2017)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, Ready, batches, count_step, step_count, step_settings, zeros_as


class Adam(Optimizer):
    """Adam (Kingma and Ba 2014). With g the gradient and t the number of steps:

        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g ** 2
        p -= lr * (m / (1 - beta1 ** t)) / (sqrt(v / (1 - beta2 ** t)) + eps)

    Args:
        lr: the learning rate, a number, or a tensor that compiled steps read each time.
        betas: (beta1, beta2).
        weight_decay: first adds weight_decay * p to g; with decoupled_weight_decay multiplies p by 1 - lr *
            weight_decay.
        amsgrad: uses the greatest v so far (Reddi et al. 2018).
        maximize: increases the loss instead of decreasing it.
        capturable: keeps the number of steps in a tensor. Compiled steps need it.
        foreach, fused: accepted for PyTorch's sake; they change nothing.

    Example:
        >>> p = tenon.nn.Parameter(tenon.tensor([1.0]))
        >>> optimizer = tenon.optim.Adam([p], lr=0.1)
        >>> (p * p).sum().backward(); optimizer.step()
        >>> p.detach()
        tensor([0.9000])

    Errors: tenon.Unsupported for differentiable=True.
    """

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None, decoupled_weight_decay: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                                  "capturable": capturable, "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
                                  **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        step: Any = step_count(parameter, tenon.float64) if group["capturable"] else 0
        state = {"step": step, "exp_avg": zeros_as(plain), "exp_avg_sq": zeros_as(plain)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_as(plain)
        return state

    def _step_all(self, ready: list[Ready], group: dict[str, Any]) -> None:
        first, second = group["betas"]
        update = tenon.fused_adamw_ if group["decoupled_weight_decay"] else tenon.fused_adam_
        for _, _, state in ready:
            count_step(state)
        for batch in batches(ready, "step"):
            parameters, gradients, states = (list(each) for each in zip(*batch))
            greatest = [state["max_exp_avg_sq"] for state in states] if group["amsgrad"] else []
            update(parameters, gradients, [state["exp_avg"] for state in states], [state["exp_avg_sq"] for state in states], greatest, states[0]["step"],
                   lr=group["lr"], beta1=first, beta2=second, weight_decay=group["weight_decay"], eps=group["eps"], maximize=group["maximize"])


class AdamW(Adam):
    """Adam with decoupled weight decay: each step multiplies p by 1 - lr * weight_decay (Loshchilov and Hutter
    2017)."""

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
                         differentiable=differentiable, fused=fused, decoupled_weight_decay=True)
