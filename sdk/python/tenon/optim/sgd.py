"""SGD: gradient descent, with momentum (Sutskever et al. 2013)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor
from tenon.optim.optimizer import Optimizer, Ready, batches, step_settings, zeros_as


class SGD(Optimizer):
    """Gradient descent, with momentum (Sutskever et al. 2013). With g the gradient:

        b = momentum * b + (1 - dampening) * g      (b = g in the first step)
        p -= lr * b

    Args:
        lr: the learning rate, a number, or a tensor that compiled steps read each time.
        momentum: 0 uses g instead of b.
        weight_decay: first adds weight_decay * p to g.
        nesterov: uses g + momentum * b instead of b. It needs a momentum and no dampening.
        maximize: increases the loss instead of decreasing it.

    Example:
        >>> p = tenon.nn.Parameter(tenon.tensor([1.0]))
        >>> optimizer = tenon.optim.SGD([p], lr=0.1)
        >>> (p * p).sum().backward(); optimizer.step()
        >>> p.detach()
        tensor([0.8000])
    """

    def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: float = 0, nesterov: bool = False, *,
                 maximize: bool = False, foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None) -> None:
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {"lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
                                  "fused": fused, **step_settings(foreach, differentiable)})

    def _start(self, parameter: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        # Without dampening, a buffer of zeros equals the gradient after the first step.
        return {"momentum_buffer": zeros_as(parameter.detach()) if group["momentum"] != 0 and group["dampening"] == 0 else None}

    def _step_all(self, ready: list[Ready], group: dict[str, Any]) -> None:
        momentum = group["momentum"]
        for batch in batches(ready):
            parameters, gradients, states = (list(each) for each in zip(*batch))
            started = [state for state in states if momentum == 0 or state.get("momentum_buffer") is not None]
            if len(started) not in (0, len(states)):  # some parameters take their first step, which has no dampening
                self._step_all([each for each in batch if each[2].get("momentum_buffer") is None], group)
                self._step_all([each for each in batch if any(each[2] is state for state in started)], group)
                continue
            if not started:
                for parameter, state in zip(parameters, states):
                    state["momentum_buffer"] = zeros_as(parameter.detach())
            buffers = [state["momentum_buffer"] for state in states] if momentum != 0 else []
            tenon.fused_sgd_(parameters, gradients, buffers, lr=group["lr"], momentum=momentum, dampening=group["dampening"] if started else 0.0,
                             weight_decay=group["weight_decay"], nesterov=group["nesterov"], maximize=group["maximize"])
