"""Optimisers that treat parameters as matrices: Adafactor and Muon."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, zeros_as


class Adafactor(Optimizer):
    """Adam without momentum that stores the mean squares of a matrix as means of its rows and columns (Shazeer and
    Stern 2018).

    Args:
        lr: the greatest relative rate; in step t it is min(lr, 1 / sqrt(t)), times the root mean square of the
            parameter.
        beta2_decay: the share of a new square in step t is t ** beta2_decay.
        eps: the least root of a mean square (None: the epsilon of the dtype), and the least root mean square of a
            parameter.
        d: shortens an update whose root mean square is greater than this.
        weight_decay: multiplies the parameter by 1 - lr * weight_decay.
    """

    def __init__(self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0,
                 weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False) -> None:
        if beta2_decay > 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if d < 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        super().__init__(params, {"lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay, "foreach": foreach,
                                  "maximize": maximize})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check({name: value for name, value in group.items() if name != "eps"})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        plain = parameter.detach()
        if plain.ndim < 2:
            return {"step": 0, "variance": zeros_as(plain)}
        return {"step": 0, "row_var": tenon.zeros_like(tenon.narrow(plain, -1, 0, 1)), "col_var": tenon.zeros_like(tenon.narrow(plain, -2, 0, 1))}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        state["step"] += 1
        step, lr, (least, other) = state["step"], float(group["lr"]), group["eps"]
        if least is None:
            least = 2.0 ** {tenon.float64: -52, tenon.float32: -23, tenon.float16: -10}.get(parameter.dtype, -7)
        part = float(step) ** group["beta2_decay"]
        size = float(tenon.norm(parameter).item()) / math.sqrt(parameter.numel())
        rate = max(other, size) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            parameter.mul_(1 - lr * group["weight_decay"])
        variance = self._variance(gradient, state, part, least)
        update = tenon.rsqrt(tenon.clamp(variance, least * least)) * gradient
        length = float(tenon.norm(update).item()) / (math.sqrt(update.numel()) * group["d"])
        parameter.add_(update, alpha=-rate / max(1.0, length))

    @staticmethod
    def _variance(gradient: Tensor, state: dict[str, Any], part: float, least: float) -> Tensor:
        square = gradient * gradient
        if gradient.ndim < 2:
            made: Tensor = state["variance"].add_(square - state["variance"], alpha=part)
            return made
        rows = state["row_var"].add_(tenon.mean(square, -1, True) - state["row_var"], alpha=part)
        columns = state["col_var"].add_(tenon.mean(square, -2, True) - state["col_var"], alpha=part)
        return tenon.matmul(rows, columns) / tenon.clamp(tenon.mean(rows, -2, True), least)


class Muon(Optimizer):
    """Momentum whose matrix is made orthogonal by Newton-Schulz iterations in bf16 (Jordan et al. 2024). Matrices only.

    Args:
        ns_coefficients, ns_steps: the polynomial of an iteration, and the number of iterations.
        weight_decay: multiplies the parameter by 1 - lr * weight_decay.
        adjust_lr_fn: how the rate depends on the shape: "original" (the default) by sqrt(max(1, rows / columns)),
            "match_rms_adamw" by 0.2 * sqrt(max(rows, columns)), "spectral_unclamped" by sqrt(rows / columns).

    Errors: ValueError for a parameter that is not a matrix.
    """

    def __init__(self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
                 ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
                 adjust_lr_fn: str | None = None) -> None:
        if adjust_lr_fn not in (None, "original", "match_rms_adamw", "spectral_unclamped"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        if ns_steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(ns_coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov, "ns_coefficients": ns_coefficients,
                                  "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn})

    def _check(self, group: dict[str, Any]) -> None:
        super()._check(group)
        for each in group["params"]:
            if each.ndim != 2:
                raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(each.shape)}")

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": zeros_as(parameter.detach())}

    def _step(self, parameter: Tensor, gradient: Tensor, state: dict[str, Any], group: dict[str, Any]) -> None:
        momentum, lr = group["momentum"], float(group["lr"])
        buffer = state["momentum_buffer"].add_(gradient - state["momentum_buffer"], alpha=1 - momentum)
        update = tenon.lerp(gradient, buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        parameter.mul_(1 - lr * group["weight_decay"])
        parameter.add_(tenon.cast(update, parameter.dtype), alpha=-lr * _ratio(group["adjust_lr_fn"], *parameter.shape))


def _ratio(how: str | None, rows: int, columns: int) -> float:
    """Returns the factor of the rate for a matrix of this shape."""
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(rows / columns if how == "spectral_unclamped" else max(1, rows / columns))


def _orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Returns about the nearest orthogonal matrix, by a polynomial that moves singular values towards 1."""
    a, b, c = coefficients
    turned = matrix.shape[0] > matrix.shape[1]
    x = tenon.cast(matrix, tenon.bfloat16)
    x = tenon.transpose(x, 0, 1) if turned else x
    x = x / tenon.clamp(tenon.norm(x), eps)
    for _ in range(steps):
        gram = tenon.matmul(x, tenon.transpose(x, 0, 1))
        x = tenon.addmm(x, tenon.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return tenon.transpose(x, 0, 1) if turned else x
