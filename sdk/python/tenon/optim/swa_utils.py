"""Averages of the parameters of a model over training (Izmailov et al. 2018).

    averaged = AveragedModel(model)
    averaged.update_parameters(model)   # after some steps, again and again
    update_bn(loader, averaged)
"""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any, Callable, Iterable

import tenon
from tenon import Tensor
from tenon.nn.module import Module
from tenon.nn.normalization import _BatchNorm
from tenon.optim.lr_scheduler import LRScheduler
from tenon.optim.optimizer import Optimizer


def _checked(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return decay


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Tensor]:
    """Returns the function decay * average + (1 - decay) * current."""
    decay = _checked(decay)

    def average(ema_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return decay * ema_param + (1 - decay) * current_param
    return average


def get_swa_avg_fn() -> Callable[..., Tensor]:
    """Returns the function that continues the mean of num_averaged tensors."""
    def average(averaged_param: Tensor, current_param: Tensor, num_averaged: Any) -> Tensor:
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)
    return average


def _of_lists(function: Callable[..., Tensor]) -> Callable[..., None]:
    def average(averaged: list[Tensor], current: list[Tensor], num_averaged: Any) -> None:
        with tenon.no_grad():
            for mine, other in zip(averaged, current):
                mine.copy_(function(mine, other, num_averaged))
    return average


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Like get_ema_avg_fn, for lists of tensors, in place."""
    return _of_lists(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Like get_swa_avg_fn, for lists of tensors, in place."""
    return _of_lists(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those that update_parameters is called with.

    Args:
        model: the model.
        device: where the copy lies; None is the device of the model.
        avg_fn: returns an average from the previous one, the current parameter, and the number of those before. None is
            the mean. get_ema_avg_fn makes one that forgets.
        multi_avg_fn: instead, a function that writes a list of averages.
        use_buffers: averages buffers too; otherwise they are copied.
    """

    def __init__(self, model: Module, device: Any = None, avg_fn: Callable[..., Tensor] | None = None, multi_avg_fn: Callable[..., None] | None = None,
                 use_buffers: bool = False) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tenon.zeros((), dtype=tenon.int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        return [each.detach() for each in (itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())]

    def update_parameters(self, model: Module) -> None:
        """Includes the current parameters of a model in the averages."""
        mine = self._averaged(self.module)
        others = [each.to(device=target.device) for each, target in zip(self._averaged(model), mine)]
        count = int(self.n_averaged.item())
        with tenon.no_grad():
            if count == 0:
                for target, each in zip(mine, others):
                    target.copy_(each)
            elif self.avg_fn is not None:
                for target, each in zip(mine, others):
                    target.copy_(self.avg_fn(target, each, self.n_averaged))
            else:
                (self.multi_avg_fn or get_swa_multi_avg_fn())(mine, others, self.n_averaged)
            if not self.use_buffers:
                for target, each in zip(self.module.buffers(), model.buffers()):
                    target.copy_(each.detach().to(device=target.device))
            self.n_averaged.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of the batch norms of a model again, as means over the batches of `loader`.

    A batch is the input of the model, or a list or tuple that begins with it. device: where the inputs are moved to.
    """
    norms: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm) and module.running_mean is not None:
            module.reset_running_stats()
            norms[module] = module.momentum
    if not norms:
        return
    training = model.training
    model.train()
    for each in norms:
        each.momentum = None
    try:
        with tenon.no_grad():
            for batch in loader:
                input = batch[0] if isinstance(batch, (list, tuple)) else batch
                model(input if device is None else input.to(device=device))
    finally:
        for each, momentum in norms.items():
            each.momentum = momentum
        model.train(training)


class SWALR(LRScheduler):
    """Moves the rate to swa_lr in anneal_epochs steps and keeps it there.

    Args:
        swa_lr: the rate, or a list with one for each group.
        anneal_strategy: "cos" or "linear".
    """

    def __init__(self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1) -> None:
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(optimizer.param_groups)
        if len(rates) != len(optimizer.param_groups):
            raise ValueError(f"Expected {len(optimizer.param_groups)} values for swa_lr, but got {len(rates)}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for group, rate in zip(optimizer.param_groups, rates):
            group["swa_lr"] = rate
        self.anneal_epochs, self.anneal_strategy = anneal_epochs, anneal_strategy
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self.anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _rates(self, epoch: int) -> list[float]:
        """Another schedule may change the rates in between, so each step continues from the current ones."""
        step = max(1, epoch) if self.anneal_epochs == 0 else epoch
        before, share = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target, lr = group["swa_lr"], float(group["lr"])
            begin = target if before == 1 else (lr - target * before) / (1 - before)
            rates.append(target * share + begin * (1 - share))
        return rates


__all__ = ["AveragedModel", "SWALR", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn", "get_swa_multi_avg_fn", "update_bn"]
