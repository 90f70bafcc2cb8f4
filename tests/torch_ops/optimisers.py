"""The cases of one entry of optim_db, eight steps each, and of the schedules of learning rates."""

import tenon
import torch
from torch.testing._internal.common_optimizers import optim_db
from torch.testing._internal.opinfo.core import SampleInput

from compare import compare
from names import Missing, NotApplicable
from record import Record
from values import Memo, back, converted, error_text, to_tenon

STEPS = 8
SCHEDULED_STEPS = 12


def title_of(info):
    return "optim " + info.optim_cls.__name__


def run(channel, index, start):
    info = optim_db[index]
    record = Record(channel, title_of(info), start)
    cls = getattr(tenon.optim, info.optim_cls.__name__, None)
    if cls is None:
        return record.end(False)
    for dtype in (torch.float32, torch.float64):
        for given in info.optim_inputs_func(device="cpu"):
            sample = SampleInput(given.desc, kwargs=dict(given.kwargs))
            for groups in (False, True):
                case = Case(info, cls, dtype, given, groups)
                record.case("groups" if groups else "params", dtype, sample, case.faults)
                record.case("state_dict", dtype, sample, lambda case=case: case.state)
    return record.end(True, "tenon.optim." + info.optim_cls.__name__)


class Case:
    """Parameters on both sides, which both optimisers move by the same gradients."""

    def __init__(self, info, cls, dtype, given, groups):
        self.info, self.cls, self.dtype, self.given, self.groups = info, cls, dtype, given, groups
        self.state = []  # faults of the state after the last step

    def faults(self):
        torch.manual_seed(5)
        shapes = [(4, 3), (4, 3)] if self.info.optim_cls.__name__ == "Muon" else [(4, 3), (4,), (2, 3, 2)]
        self.theirs = [torch.nn.Parameter(torch.randn(shape, dtype=self.dtype)) for shape in shapes]
        self.ours = [tenon.nn.Parameter(to_tenon(each.detach())) for each in self.theirs]
        try:
            expected = self._made(self.info.optim_cls, self.theirs, lambda value: value)
        except Exception:
            return "torch-raises"
        try:
            given = self._made(self.cls, self.ours, lambda value: converted(value, Memo()))
        except (Missing, NotApplicable):
            raise
        except Exception as error:
            return [("constructor", error_text(error))]
        return self._steps(expected, given, shapes)

    def _made(self, cls, parameters, convert):
        kwargs = {name: convert(value) for name, value in self.given.kwargs.items()}
        if self.groups:
            return cls([{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.003}], **kwargs)
        return cls(parameters, **kwargs)

    def _steps(self, expected, given, shapes):
        self.generator = torch.Generator().manual_seed(2)
        self.targets = [torch.randn(shape, generator=self.generator, dtype=self.dtype) for shape in shapes]
        self.own_targets = [to_tenon(each) for each in self.targets]
        for step in range(STEPS):
            theirs, ours = self._arguments(expected, given, step)
            try:
                expected.step(*theirs)
            except Exception:
                return "torch-raises"
            try:
                given.step(*ours)
            except Exception as error:
                return [("error", error_text(error))]
            faults = []
            for i, (x, y) in enumerate(zip(self.theirs, self.ours)):
                faults += compare(back(y), x.detach(), None, slack=2, path=f"step {step} parameter {i} ")
            if faults:
                return faults[:2]
        self.state = _state(expected.state_dict(), given.state_dict())
        return []

    def _arguments(self, expected, given, step):
        """The arguments of step() on both sides: a closure, or nothing once the gradients are set. In one step some are absent."""
        if self.info.step_requires_closure:
            return [_closure(expected, self.theirs, self.targets)], [_closure(given, self.ours, self.own_targets)]
        for x, y in zip(self.theirs, self.ours):
            gradient = torch.randn(x.shape, generator=self.generator, dtype=self.dtype)
            absent = step == 3 and x.dim() == 1
            x.grad, y.grad = (None, None) if absent else (gradient, to_tenon(gradient))
        return [], []


def _closure(optimizer, parameters, targets):
    def compute():
        optimizer.zero_grad()
        loss = sum(((x - target) ** 2).sum() for x, target in zip(parameters, targets))
        loss.backward()
        return loss
    return compute


def _state(theirs, ours):
    faults = [("state_dict", f"param_groups lack {name!r}") for name in theirs["param_groups"][0] if name not in ours["param_groups"][0]]
    mine = ours["state"].get(0, {})
    return faults + [("state_dict", f"state lacks {name!r} (has {list(mine)})") for name in theirs["state"].get(0, {}) if name not in mine]


# ---- schedules ----

SCHEDULES = (
    ("StepLR", dict(step_size=3, gamma=.5)), ("MultiStepLR", dict(milestones=[2, 5], gamma=.1)), ("ConstantLR", dict(factor=.5, total_iters=4)),
    ("LinearLR", dict(start_factor=.25, total_iters=5)), ("ExponentialLR", dict(gamma=.9)), ("CosineAnnealingLR", dict(T_max=6, eta_min=.001)),
    ("CosineAnnealingWarmRestarts", dict(T_0=3, T_mult=2)), ("PolynomialLR", dict(total_iters=6, power=2.0)), ("OneCycleLR", dict(max_lr=.1, total_steps=14)),
    ("OneCycleLR", dict(max_lr=.1, total_steps=14, anneal_strategy="linear", three_phase=True)), ("CyclicLR", dict(base_lr=.01, max_lr=.1, step_size_up=3)),
    ("CyclicLR", dict(base_lr=.01, max_lr=.1, step_size_up=3, mode="exp_range", gamma=.9)), ("LambdaLR", dict(lr_lambda=lambda epoch: .9 ** epoch)),
    ("MultiplicativeLR", dict(lr_lambda=lambda epoch: .9)), ("ReduceLROnPlateau", dict(patience=1, factor=.5)), ("SequentialLR", None),
    ("ChainedScheduler", None))


def run_schedules(channel, index, start):
    record = Record(channel, "schedulers", start)
    for name, kwargs in SCHEDULES:
        record.case("lr", torch.float32, None, lambda name=name, kwargs=kwargs: _schedule_faults(name, kwargs))
    record.end(True, "tenon.optim.lr_scheduler")


def _schedule_faults(name, kwargs):
    if not hasattr(getattr(tenon.optim, "lr_scheduler", None), name):
        return [("missing", f"lr_scheduler.{name}")]
    try:
        theirs, ours = _rates(torch, name, kwargs), _rates(tenon, name, kwargs)
    except Exception as error:
        return [("error", error_text(error))]
    near = all(abs(x - y) < 1e-9 for x, y in zip(theirs, ours))
    return [] if near else [("value", f"{name} {kwargs}: Tenon {ours} torch {theirs}")]


def _rates(library, name, kwargs):
    """The rates and momentums of each step."""
    schedules = library.optim.lr_scheduler
    parameter = library.nn.Parameter(library.zeros((2,)))
    optimizer = library.optim.SGD([parameter], lr=.05, momentum=.9)
    if name == "SequentialLR":
        parts = [schedules.LinearLR(optimizer, .1, total_iters=3), schedules.ExponentialLR(optimizer, .8)]
        schedule = schedules.SequentialLR(optimizer, parts, milestones=[3])
    elif name == "ChainedScheduler":
        schedule = schedules.ChainedScheduler([schedules.LinearLR(optimizer, .1, total_iters=3), schedules.ExponentialLR(optimizer, .8)])
    else:
        schedule = getattr(schedules, name)(optimizer, **kwargs)
    rates = [optimizer.param_groups[0]["lr"]]
    for _ in range(SCHEDULED_STEPS):
        parameter.grad = library.ones((2,))
        optimizer.step()
        schedule.step(*((1.0,) if name == "ReduceLROnPlateau" else ()))
        rates += [float(optimizer.param_groups[0]["lr"]), float(optimizer.param_groups[0]["momentum"])]
    return rates
