"""Optimisers, clipping and learning rates against PyTorch's, over 50 steps.

usage: torch_test.py OPTIM_RUNNER"""

import pathlib
import subprocess
import sys
import unittest

import numpy as np
import torch

RUNNER = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

STEPS = 50
SHAPES = ((3, 4), (5,), (700,))


def parameters(dtype):
    made = []
    for k, shape in enumerate(SHAPES):
        data = np.sin(0.7 * np.arange(np.prod(shape)) + k).reshape(shape)
        made.append(torch.nn.Parameter(torch.tensor(data, dtype=dtype)))
    return made


def make_gradients(all_parameters, step):
    for k, p in enumerate(all_parameters):
        p.grad = None
        if k == 1 and step % 3 == 1:
            continue
        at = torch.tensor(np.arange(p.numel()) * 0.3 * (step + 1) + k).reshape(p.shape)
        p.grad = (0.1 * p.detach().double() + torch.cos(at)).to(p.dtype)


def theirs(optimizer_of, dtype=torch.float64, schedule_of=None, clip=None, groups=False, losses=None, plateau=None):
    """A row per step, as the runner writes it."""
    p = parameters(dtype)
    optimizer = optimizer_of([{"params": p[:2]}, {"params": p[2:], "lr": 0.5, "weight_decay": 0.25}] if groups else p)
    schedule = schedule_of(optimizer) if schedule_of else None
    plateau = plateau(optimizer) if plateau else None
    rows = []
    for step in range(STEPS):
        make_gradients(p, step)
        norm = float(clip(p)) if clip else 0.0
        row = [optimizer.param_groups[0]["lr"], norm]
        optimizer.step()
        if schedule:
            schedule.step()
        if plateau:
            plateau.step(losses[step % len(losses)])
        rows.append(np.concatenate([row] + [each.detach().double().numpy().ravel() for each in p]))
    return np.array(rows)


class Runner:
    def __init__(self):
        self.process = subprocess.Popen([RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        lines = [self.process.stdout.readline() for _ in range(STEPS)]
        return np.array([[float(word) for word in line.split()] for line in lines])


ours = Runner()


class AgainstTorch(unittest.TestCase):
    def same(self, got, want, tolerance=1e-11):
        self.assertEqual(got.shape, want.shape)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

    def test_sgd(self):
        for options in ({}, {"weight_decay": 0.1}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
                        {"momentum": 0.8, "nesterov": 1}, {"momentum": 0.5, "maximize": 1}):
            words = " ".join(f"{name}={value}" for name, value in options.items())
            torch_options = {name: bool(value) if name in ("nesterov", "maximize") else value for name, value in options.items()}
            with self.subTest(words):
                self.same(ours(f"SGD lr=0.05 {words}"), theirs(lambda p: torch.optim.SGD(p, lr=0.05, **torch_options)))

    def test_adam_and_adamw(self):
        for name in ("Adam", "AdamW"):
            for options in ({}, {"weight_decay": 0.3}, {"amsgrad": 1, "beta1": 0.5, "beta2": 0.8}, {"maximize": 1, "eps": 1e-2},
                            {"weight_decay": 0.1, "amsgrad": 1, "maximize": 1}):
                words = " ".join(f"{key}={value}" for key, value in options.items())
                torch_options = {"betas": (options.get("beta1", 0.9), options.get("beta2", 0.999))}
                for key in ("weight_decay", "eps"):
                    torch_options |= {key: options[key]} if key in options else {}
                for key in ("amsgrad", "maximize"):
                    torch_options[key] = bool(options.get(key, 0))
                with self.subTest(f"{name} {words}"):
                    made = getattr(torch.optim, name)
                    self.same(ours(f"{name} lr=0.05 {words}"), theirs(lambda p: made(p, lr=0.05, **torch_options)))

    def test_groups(self):
        self.same(ours("AdamW lr=0.01 groups"), theirs(lambda p: torch.optim.AdamW(p, lr=0.01), groups=True))
        self.same(ours("SGD lr=0.01 momentum=0.9 groups"), theirs(lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), groups=True))

    def test_f32(self):
        for name in ("Adam", "AdamW"):
            made = getattr(torch.optim, name)
            self.same(ours(f"{name} lr=0.01 f32"), theirs(lambda p: made(p, lr=0.01), torch.float32), 2e-5)
        self.same(ours("SGD lr=0.01 momentum=0.9 f32"), theirs(lambda p: torch.optim.SGD(p, lr=0.01, momentum=0.9), torch.float32), 2e-5)

    def test_clipping(self):
        for norm in (2.0, 1.0, 3.0, float("inf")):
            with self.subTest(norm):
                want = theirs(lambda p: torch.optim.SGD(p, lr=0.1),
                              clip=lambda p: torch.nn.utils.clip_grad_norm_([x for x in p if x.grad is not None], 1.5, norm))
                self.same(ours(f"SGD lr=0.1 clip=1.5 norm={norm}"), want)

        def clip_value(p):
            torch.nn.utils.clip_grad_value_(p, 0.4)
            return 0.0

        self.same(ours("SGD lr=0.1 clip_value=0.4"), theirs(lambda p: torch.optim.SGD(p, lr=0.1), clip=clip_value))

    def test_learning_rates(self):
        rates = torch.optim.lr_scheduler
        cases = {
            "constant:0.25,7": lambda o: rates.ConstantLR(o, 0.25, 7),
            "linear:0.25,0.75,20": lambda o: rates.LinearLR(o, 0.25, 0.75, 20),
            "exponential:0.95": lambda o: rates.ExponentialLR(o, 0.95),
            "step:8,0.3": lambda o: rates.StepLR(o, 8, 0.3),
            "multi_step:5,30,0.2": lambda o: rates.MultiStepLR(o, [5, 30], 0.2),
            "polynomial:30,2": lambda o: rates.PolynomialLR(o, 30, 2),
            "cosine:20,0.01": lambda o: rates.CosineAnnealingLR(o, 20, 0.01),
            "restarts:7,1,0.01": lambda o: rates.CosineAnnealingWarmRestarts(o, 7, 1, 0.01),
            "restarts:6,2,0.02": lambda o: rates.CosineAnnealingWarmRestarts(o, 6, 2, 0.02),
            "one_cycle:0.5,51,0.3": lambda o: rates.OneCycleLR(o, 0.5, total_steps=51, pct_start=0.3, cycle_momentum=False),
            "sequence:10,0.9": lambda o: rates.SequentialLR(o, [rates.LinearLR(o, 0.1, 1, 10), rates.ExponentialLR(o, 0.9)], [10]),
        }
        for text, schedule_of in cases.items():
            with self.subTest(text):
                self.same(ours(f"SGD lr=0.1 curve={text}"), theirs(lambda p: torch.optim.SGD(p, lr=0.1), schedule_of=schedule_of))

    def test_plateau(self):
        losses = [1, 0.9, 0.9, 0.95, 0.9, 0.91, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6]
        text = ",".join(map(str, losses))
        want = theirs(lambda p: torch.optim.SGD(p, lr=0.1), losses=losses,
                      plateau=lambda o: torch.optim.lr_scheduler.ReduceLROnPlateau(o, factor=0.5, patience=2, cooldown=1))
        self.same(ours(f"SGD lr=0.1 losses={text}"), want)


if __name__ == "__main__":
    unittest_report.main()
