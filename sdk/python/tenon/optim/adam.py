"""Adam (Kingma and Ba 2014), and AdamW, whose weight decay does not go through the gradient (Loshchilov and Hutter 2017)."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, subtract


class Adam(Optimizer):
    """parameter -= lr m / (sqrt(v) + eps), where m and v are running means of the gradient and its square, made free of
    their start at 0. capturable: the number of steps is a tensor, as a compiled step needs it."""

    _decoupled = False

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 amsgrad: bool = False, *, maximize: bool = False, capturable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad, "maximize": maximize,
                                  "capturable": capturable})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        step: Any = tenon.zeros((), dtype=tenon.float64, device=parameter.device) if group["capturable"] else 0
        state = {"step": step, "exp_avg": tenon.zeros_like(plain), "exp_avg_sq": tenon.zeros_like(plain)}
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = tenon.zeros_like(plain)
        return state

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        first, second = group["betas"]
        lr, decay = group["lr"], group["weight_decay"]
        if isinstance(state["step"], Tensor):
            state["step"].add_(1)
        else:
            state["step"] += 1
        if decay != 0:
            if self._decoupled:
                parameter.mul_(tenon.cast(1 - lr * decay, parameter.dtype) if isinstance(lr, Tensor) else 1 - lr * decay)
            else:
                gradient = tenon.add(gradient, parameter, alpha=decay)
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.mul_(first).add_(gradient, alpha=1 - first)
        square.mul_(second).add_(gradient * gradient, alpha=1 - second)
        if group["amsgrad"]:
            square = state["max_exp_avg_sq"].copy_(tenon.maximum(state["max_exp_avg_sq"], square))
        step = state["step"]
        if isinstance(step, Tensor):
            of_first = tenon.cast(1 - tenon.pow(first, step), parameter.dtype)
            of_second = tenon.cast(tenon.sqrt(1 - tenon.pow(second, step)), parameter.dtype)
            subtract(parameter, mean / (of_first * (tenon.sqrt(square) / of_second + group["eps"])), lr)
        else:
            denominator = (tenon.sqrt(square) / math.sqrt(1 - second**step)).add_(group["eps"])
            subtract(parameter, mean / denominator, lr / (1 - first**step))


class AdamW(Adam):
    """As Adam; the weight decay shrinks the parameter itself, by lr weight_decay."""

    _decoupled = True

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 1e-2,
                 amsgrad: bool = False, *, maximize: bool = False, capturable: bool = False) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize, capturable=capturable)
