"""Schedules: learning rates as functions of the number of steps. `base` is the rate that a group began with.

    scheduler = lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    optimizer.step()
    scheduler.step()
"""

from __future__ import annotations

import bisect
import math
from typing import Any, Callable, Sequence

from tenon import Tensor
from tenon.optim.optimizer import Optimizer


def _set(group: dict[str, Any], lr: float) -> None:
    if isinstance(group["lr"], Tensor):
        group["lr"].fill_(lr)
    else:
        group["lr"] = lr


class _Kept:
    """A schedule whose state is its attributes."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the settings and the number of steps."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer" and not callable(value)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what state_dict returned."""
        self.__dict__.update(state_dict)


class LRScheduler(_Kept):
    """Base class of schedules. Subclasses define `_rate`, which returns the rate of a group after `epoch` steps.

    Creating a schedule sets the first rate. last_epoch is the number of the last step when training is resumed,
    else -1.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            if last_epoch == -1:
                group.setdefault("initial_lr", float(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError("param 'initial_lr' is not specified in param_groups when resuming an optimizer")
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._last_lr: list[float] = []
        self.step()

    def _rate(self, epoch: int, base: float, group: int) -> float:
        raise NotImplementedError

    def _rates(self, epoch: int) -> list[float]:
        return [self._rate(epoch, base, i) for i, base in enumerate(self.base_lrs)]

    def step(self) -> None:
        """Sets the rates for the next step."""
        self.last_epoch += 1
        self._last_lr = self._rates(self.last_epoch)
        for group, lr in zip(self.optimizer.param_groups, self._last_lr):
            _set(group, lr)

    def get_last_lr(self) -> list[float]:
        """Returns the current rate of each group."""
        return self._last_lr


class LambdaLR(LRScheduler):
    """base * lr_lambda(steps). A list of functions has one for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Callable[[int], float]] = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * len(optimizer.param_groups)
        if len(self.lr_lambdas) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base * self.lr_lambdas[group](epoch)

    def state_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().state_dict().items() if name != "lr_lambdas"}


class MultiplicativeLR(LambdaLR):
    """Each step multiplies the rate by lr_lambda(steps)."""

    def _rate(self, epoch: int, base: float, group: int) -> float:
        for i in range(1, epoch + 1):
            base *= float(self.lr_lambdas[group](i))
        return base


class StepLR(LRScheduler):
    """base * gamma ** (steps // step_size)."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base * self.gamma ** (epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiplies the rate by gamma at each of the milestones, which are numbers of steps."""

    def __init__(self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base * self.gamma ** bisect.bisect_right(self.milestones, epoch)


class ExponentialLR(LRScheduler):
    """base * gamma ** steps."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base * self.gamma**epoch


class ConstantLR(LRScheduler):
    """base * factor for total_iters steps, then base."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base * (self.factor if epoch < self.total_iters else 1.0)


class LinearLR(LRScheduler):
    """Changes the rate linearly from base * start_factor to base * end_factor in total_iters steps, as in a warm-up."""

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base * (self.start_factor + (self.end_factor - self.start_factor) * min(self.total_iters, epoch) / self.total_iters)


class PolynomialLR(LRScheduler):
    """base * (1 - steps / total_iters) ** power, then 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return float(base * (1 - min(self.total_iters, epoch) / self.total_iters) ** self.power)


class CosineAnnealingLR(LRScheduler):
    """eta_min + (base - eta_min) * (1 + cos(pi * steps / T_max)) / 2 (Loshchilov and Hutter 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """CosineAnnealingLR that restarts from base: first after T_0 steps, and each time after T_mult times as many."""

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1) -> None:
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        length = self.T_0
        while epoch >= length:
            epoch -= length
            length *= self.T_mult
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * epoch / length)) / 2


class OneCycleLR(LRScheduler):
    """Raises the rate from max_lr / div_factor to max_lr, then lowers it to max_lr / (div_factor * final_div_factor)
    (Smith and Topin 2017).

    Args:
        total_steps, or epochs and steps_per_epoch: the length of the cycle. Stepping further raises ValueError.
        pct_start: the share of steps in which the rate rises.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: moves momentum, or the first beta, between max_momentum and base_momentum the opposite way.
        three_phase: first lowers the rate to its start, then to its end.
    """

    def __init__(self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None, steps_per_epoch: int | None = None,
                 pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: float = 0.85, max_momentum: float = 0.95,
                 div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        groups = optimizer.param_groups
        self.total_steps, self.anneal_strategy, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        self.momenta = (max_momentum, base_momentum)
        self.max_lrs = [float(each) for each in max_lr] if isinstance(max_lr, (list, tuple)) else [float(max_lr)] * len(groups)
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        end = float(total_steps - 1)
        top = float(pct_start * total_steps) - 1
        # A phase is its last step, then the indices in (start, greatest, least) of the rates it begins and ends with.
        self.phases = [(top, 0, 1), (2 * top if three_phase else end, 1, 0 if three_phase else 2)] + ([(end, 0, 2)] if three_phase else [])
        if last_epoch == -1:
            for group, greatest in zip(groups, self.max_lrs):
                group["initial_lr"] = greatest / div_factor
        if cycle_momentum and not all("momentum" in group or "betas" in group for group in groups):
            raise ValueError("optimizer must support momentum or betas with `cycle_momentum` option enabled")
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _place(self, epoch: int) -> tuple[int, int, float]:
        begin = 0.0
        for last, source, target in self.phases:
            if epoch <= last or last == self.phases[-1][0]:
                return source, target, (epoch - begin) / (last - begin)
            begin = last
        raise AssertionError

    def _rate(self, epoch: int, base: float, group: int) -> float:
        if epoch >= self.total_steps:
            raise ValueError(f"Tried to step {epoch + 1} times. The specified number of total steps is {self.total_steps}")
        start = self.max_lrs[group] / self.div_factor
        levels = (start, self.max_lrs[group], start / self.final_div_factor)
        source, target, part = self._place(epoch)
        return self._between(levels[source], levels[target], part)

    def step(self) -> None:
        super().step()
        if not self.cycle_momentum:
            return
        source, target, part = self._place(self.last_epoch)
        most, least = self.momenta
        levels = (most, least, most)
        momentum = self._between(levels[source], levels[target], part)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """Raises the rate from base_lr to max_lr in step_size_up steps and lowers it in step_size_down, repeatedly
    (Smith 2015).

    Args:
        mode: the height of each cycle. "triangular" keeps it, "triangular2" halves it each time, "exp_range" multiplies
            it by gamma ** steps.
        scale_fn: replaces mode: a function of the number of the cycle, or of steps if scale_mode is not "cycle".
        cycle_momentum: moves momentum, or the first beta, between max_momentum and base_momentum the opposite way.
    """

    def __init__(self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000, step_size_down: int | None = None, mode: str = "triangular",
                 gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
                 base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1) -> None:
        if scale_fn is None and mode not in ("triangular", "triangular2", "exp_range"):
            raise ValueError("mode is invalid and scale_fn is None")
        groups = optimizer.param_groups
        lows, highs = ([float(x) for x in each] if isinstance(each, (list, tuple)) else [float(each)] * len(groups) for each in (base_lr, max_lr))
        self.max_lrs, self.total_size = highs, float(step_size_up + (step_size_up if step_size_down is None else step_size_down))
        self.step_ratio, self.mode, self.gamma, self.scale_fn, self.scale_mode = step_size_up / self.total_size, mode, gamma, scale_fn, scale_mode
        self.cycle_momentum, self.momenta = cycle_momentum, (max_momentum, base_momentum)
        if cycle_momentum and not all("momentum" in group or "betas" in group for group in groups):
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        if last_epoch == -1:
            for group, low in zip(groups, lows):
                group["initial_lr"] = low
        super().__init__(optimizer, last_epoch)

    def _scale(self, epoch: int, cycle: float) -> float:
        if self.scale_fn is not None:
            return self.scale_fn(cycle if self.scale_mode == "cycle" else epoch)
        return float({"triangular": 1.0, "triangular2": 1 / 2.0 ** (cycle - 1), "exp_range": self.gamma**epoch}[self.mode])

    def _height(self, epoch: int) -> float:
        """Returns how far the rate is between base_lr (0) and max_lr (1), times the scale of the cycle."""
        cycle = math.floor(1 + epoch / self.total_size)
        part = 1.0 + epoch / self.total_size - cycle
        rise = part / self.step_ratio if part <= self.step_ratio else (part - 1) / (self.step_ratio - 1)
        return rise * self._scale(epoch, cycle)

    def _rate(self, epoch: int, base: float, group: int) -> float:
        return base + (self.max_lrs[group] - base) * self._height(epoch)

    def step(self) -> None:
        super().step()
        if not self.cycle_momentum:
            return
        most, least = self.momenta
        momentum = most - (most - least) * self._height(self.last_epoch)
        for group in self.optimizer.param_groups:
            if "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            else:
                group["momentum"] = momentum


class ChainedScheduler:
    """Applies several schedules of one optimiser together: each takes the rate of the previous one as its base."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self._schedulers, self.optimizer = list(schedulers), optimizer or schedulers[0].optimizer
        if any(each.optimizer is not self.optimizer for each in self._schedulers):
            raise ValueError("ChainedScheduler expects all schedulers to belong to the same optimizer")
        self._apply()

    def _apply(self) -> None:
        self._last_lr = []
        for i, group in enumerate(self.optimizer.param_groups):
            rate = group["initial_lr"]
            for each in self._schedulers:
                rate = each._rate(each.last_epoch, rate, i)
            self._last_lr.append(rate)
            _set(group, rate)

    def step(self) -> None:
        """Sets the rates for the next step."""
        for each in self._schedulers:
            each.step()
        self._apply()

    def get_last_lr(self) -> list[float]:
        """Returns the current rate of each group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Returns the state of each schedule."""
        return {"_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what state_dict returned."""
        for each, state in zip(self._schedulers, state_dict["_schedulers"]):
            each.load_state_dict(state)
        self._apply()


class SequentialLR:
    """Applies one schedule after the other. Each begins at its milestone, with step 0."""

    def __init__(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int]) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(schedulers)} schedules have {len(schedulers) - 1} milestones between them, not {len(milestones)}")
        self.optimizer, self._schedulers, self._milestones, self.last_epoch = optimizer, list(schedulers), list(milestones), 0
        self._apply()

    def _apply(self) -> None:
        place = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[place]
        scheduler.last_epoch = self.last_epoch - (self._milestones[place - 1] if place > 0 else 0) - 1
        scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def step(self) -> None:
        """Sets the rates for the next step."""
        self.last_epoch += 1
        self._apply()

    def get_last_lr(self) -> list[float]:
        """Returns the current rate of each group."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """Returns the number of steps and the state of each schedule."""
        return {"_milestones": self._milestones, "last_epoch": self.last_epoch, "_last_lr": self._last_lr, "_schedulers": [each.state_dict() for each in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restores what state_dict returned."""
        self._milestones, self.last_epoch, self._last_lr = (state_dict[name] for name in ("_milestones", "last_epoch", "_last_lr"))
        for each, state in zip(self._schedulers, state_dict["_schedulers"]):
            each.load_state_dict(state)


class ReduceLROnPlateau(_Kept):
    """Multiplies the rates by `factor` when a metric, such as a loss, has not improved for more than `patience` steps.

    Args:
        mode: "min" if smaller metrics are better, else "max".
        threshold, threshold_mode: the least improvement that counts, relative to the best ("rel") or absolute ("abs").
        cooldown: the steps after a change in which nothing is counted.
        min_lr: the least rate. eps: smaller changes of a rate are not made.
    """

    def __init__(self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4, threshold_mode: str = "rel",
                 cooldown: int = 0, min_lr: float = 0, eps: float = 1e-8) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(f"mode {mode} is unknown! It may be min or max, and threshold_mode rel or abs.")
        self.optimizer, self.mode, self.factor, self.patience, self.threshold, self.threshold_mode = optimizer, mode, factor, patience, threshold, threshold_mode
        self.cooldown, self.min_lr, self.eps = cooldown, min_lr, eps
        self.best, self.num_bad_epochs, self.cooldown_counter, self.last_epoch = math.inf if mode == "min" else -math.inf, 0, 0, 0

    def _better(self, value: float) -> bool:
        sign = 1 if self.mode == "min" else -1
        if math.isinf(self.best):
            return sign * value < sign * self.best
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1)
        return sign * value < sign * self.best - margin

    def step(self, metrics: Any) -> None:
        """Takes the metric of this step and sets the rates."""
        value = float(metrics)
        self.last_epoch += 1
        if self._better(value):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs <= self.patience:
            return
        for group in self.optimizer.param_groups:
            old = float(group["lr"])
            new = max(old * self.factor, self.min_lr)
            if old - new > self.eps:
                _set(group, new)
        self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0


__all__ = ["ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
           "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR"]
