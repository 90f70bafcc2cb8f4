"""Optimisers that adapt the step of each element: Adadelta, Adamax, NAdam, RAdam, Rprop, and averaged SGD."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, count_step, decay, plain_settings, step_count, step_settings, subtract, zeros_as


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012). With g the gradient:

        v = rho * v + (1 - rho) * g ** 2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u = rho * u + (1 - rho) * d ** 2
        p -= lr * d

    weight_decay first adds weight_decay * p to g; maximize negates g.
    """

    def __init__(self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0, foreach: bool | None = None, *,
                 capturable: bool = False, maximize: bool = False, differentiable: bool = False) -> None:
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  "capturable": capturable, **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        return {"step": step_count(parameter), "square_avg": zeros_as(plain), "acc_delta": zeros_as(plain)}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        count_step(state)
        rho, eps = group["rho"], group["eps"]
        gradient = decay(gradient, parameter, group)
        square = state["square_avg"].mul_(rho).add_(gradient * gradient, alpha=1 - rho)
        update = tenon.sqrt(state["acc_delta"] + eps) / tenon.sqrt(square + eps) * gradient
        state["acc_delta"].mul_(rho).add_(update * update, alpha=1 - rho)
        subtract(parameter, update, group["lr"])


class Adamax(Optimizer):
    """Adam with the maximum norm of the gradients (Kingma and Ba 2014, section 7.1). With t the number of steps:

        m = beta1 * m + (1 - beta1) * g
        u = max(beta2 * u, |g| + eps)
        p -= lr / (1 - beta1 ** t) * m / u

    weight_decay first adds weight_decay * p to g; maximize negates g.
    """

    def __init__(self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False, capturable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
                                  **plain_settings(capturable, foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        return {"step": 0, "exp_avg": zeros_as(plain), "exp_inf": zeros_as(plain)}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        first, second = group["betas"]
        gradient = decay(gradient, parameter, group)
        mean = state["exp_avg"].mul_(first).add_(gradient, alpha=1 - first)
        greatest = state["exp_inf"].copy_(tenon.maximum(state["exp_inf"] * second, tenon.abs(gradient) + group["eps"]))
        subtract(parameter, mean / greatest, group["lr"] / (1 - first ** state["step"]))


class NAdam(Optimizer):
    """Adam with Nesterov momentum (Dozat 2016). The weight of the momentum in step t is
    beta1 * (1 - 0.96 ** (t * momentum_decay) / 2), which grows towards beta1.

    weight_decay adds weight_decay * p to the gradient; with decoupled_weight_decay it multiplies p by 1 - lr *
    weight_decay.
    """

    def __init__(self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False,
                 capturable: bool = False, differentiable: bool = False) -> None:
        if momentum_decay < 0:
            raise ValueError(f"Invalid momentum_decay value: {momentum_decay}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
                                  "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
                                  **plain_settings(capturable, foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        return {"step": 0, "mu_product": 1.0, "exp_avg": zeros_as(plain), "exp_avg_sq": zeros_as(plain)}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        step, lr, (first, second) = state["step"], group["lr"], group["betas"]
        gradient = decay(gradient, parameter, group)

        def momentum(at: int) -> float:
            return float(first * (1 - 0.5 * 0.96 ** (at * group["momentum_decay"])))
        now, following = momentum(step), momentum(step + 1)
        state["mu_product"] *= now
        mean = state["exp_avg"].mul_(first).add_(gradient, alpha=1 - first)
        square = state["exp_avg_sq"].mul_(second).add_(gradient * gradient, alpha=1 - second)
        root = tenon.sqrt(square / (1 - second**step)) + group["eps"]
        subtract(parameter, gradient / root, lr * (1 - now) / (1 - state["mu_product"]))
        subtract(parameter, mean / root, lr * following / (1 - state["mu_product"] * following))


class RAdam(Optimizer):
    """Adam whose step is corrected for the variance of v in the first steps (Liu et al. 2019). Where the correction
    does not exist yet, the step is lr * m / (1 - beta1 ** t), without the square root.

    weight_decay adds weight_decay * p to the gradient; with decoupled_weight_decay it multiplies p by 1 - lr *
    weight_decay.
    """

    def __init__(self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8, weight_decay: float = 0,
                 decoupled_weight_decay: bool = False, *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
                 differentiable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "decoupled_weight_decay": decoupled_weight_decay,
                                  "maximize": maximize, **plain_settings(capturable, foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        return {"step": 0, "exp_avg": zeros_as(plain), "exp_avg_sq": zeros_as(plain)}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        step, (first, second) = state["step"], group["betas"]
        gradient = decay(gradient, parameter, group)
        mean = state["exp_avg"].mul_(first).add_(gradient, alpha=1 - first)
        square = state["exp_avg_sq"].mul_(second).add_(gradient * gradient, alpha=1 - second)
        update, correction = mean / (1 - first**step), 1 - second**step
        most = 2 / (1 - second) - 1
        length = most - 2 * step * second**step / correction
        if length > 5:
            rectified = math.sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
            update = update * (math.sqrt(correction) / (tenon.sqrt(square) + group["eps"])) * rectified
        subtract(parameter, update, group["lr"])


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun 1993). Each element moves against the sign of its gradient by
    its own step, which begins as lr.

    Args:
        etas: factors of the step if the sign of the gradient changes, and if it stays.
        step_sizes: the least and the greatest step.
    """

    def __init__(self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2), step_sizes: tuple[float, float] = (1e-6, 50), *,
                 capturable: bool = False, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False) -> None:
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, {"lr": lr, "etas": etas, "step_sizes": step_sizes, "maximize": maximize,
                                  "capturable": capturable, **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        return {"step": step_count(parameter), "prev": zeros_as(plain), "step_size": zeros_as(plain).fill_(float(group["lr"]))}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        count_step(state)
        less, more = group["etas"]
        agreement = gradient * state["prev"]
        factor = tenon.where(agreement > 0, more, tenon.where(agreement < 0, less, tenon.ones_like(agreement)))
        state["step_size"].copy_(tenon.clamp(state["step_size"] * factor, *group["step_sizes"]))
        gradient = tenon.where(agreement < 0, 0.0, gradient)
        parameter.sub_(tenon.sign(gradient) * state["step_size"])
        state["prev"].copy_(gradient)


class ASGD(Optimizer):
    """Averaged gradient descent (Polyak and Juditsky 1992). With t the number of steps:

        p = p * (1 - lambd * eta) - eta * g
        eta = lr / (1 + lambd * lr * t) ** alpha

    The state `ax` of each parameter is the mean of p from step t0 on, and before that p itself.
    """

    def __init__(self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6, weight_decay: float = 0,
                 foreach: bool | None = None, maximize: bool = False, differentiable: bool = False, capturable: bool = False) -> None:
        super().__init__(params, {"lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay, "maximize": maximize,
                                  **plain_settings(capturable, foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "eta": float(group["lr"]), "mu": 1.0, "ax": zeros_as(parameter.detach())}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        step, lr = state["step"], float(group["lr"])
        gradient = decay(gradient, parameter, group)
        parameter.mul_(1 - group["lambd"] * state["eta"])
        subtract(parameter, gradient, state["eta"])
        state["ax"].add_(parameter.detach() - state["ax"], alpha=state["mu"])
        state["eta"] = lr / (1 + group["lambd"] * lr * step) ** group["alpha"]
        state["mu"] = 1 / max(1, step - group["t0"])
