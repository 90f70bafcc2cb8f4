"""A net that learns the heat equation by gradients of its gradients, eager and compiled, against PyTorch.

usage: torch_physics_test.py"""

import math
import pathlib
import sys
import unittest

import numpy as np
import tenon
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

SHAPES = ((2, 24), (24,), (24, 24), (24,), (24, 1), (1,))
CONDUCTIVITY = 0.1


def weights(seed):
    random = np.random.default_rng(seed)
    return [random.standard_normal(shape) * (shape[0]**-0.5 if len(shape) == 2 else 0.1) for shape in SHAPES]


def points(count, seed):
    """Places and times in the unit square; the same at time 0; the same at both ends."""
    random = np.random.default_rng(seed)
    inside = random.random((count, 2))
    start = np.stack([random.random(count), np.zeros(count)], 1)
    ends = np.stack([np.arange(count) % 2, random.random(count)], 1)
    return [inside, start, np.sin(math.pi * start[:, :1]), ends]


def temperature(lib, p, x):
    return lib.tanh(lib.tanh(x @ p[0] + p[1]) @ p[2] + p[3]) @ p[4] + p[5]


def loss_of(lib, grad, p, inside, start, wanted, ends):
    """u_t = c u_xx inside, u = wanted at the start, u = 0 at the ends; each in the mean square."""
    x = inside.detach().requires_grad_()
    first, = grad(lib.sum(temperature(lib, p, x)), [x], create_graph=True)
    second, = grad(lib.sum(first[:, :1]), [x], create_graph=True)
    equation = first[:, 1:] - CONDUCTIVITY * second[:, :1]
    at_start, at_ends = temperature(lib, p, start) - wanted, temperature(lib, p, ends)
    return lib.mean(equation * equation) + lib.mean(at_start * at_start) + lib.mean(at_ends * at_ends)


class Ours:
    """A training step in Tenon."""

    def __init__(self, dtype, compiled, rate):
        self.dtype = dtype
        self.p = [tenon.tensor(array, dtype=dtype).requires_grad_() for array in weights(1)]
        self.optimizer = tenon.optim.Adam(self.p, lr=rate, capturable=True)
        self.optimizer.prepare()
        self.step = tenon.compile(self.whole_step) if compiled else self.whole_step

    def whole_step(self, *batch):
        self.optimizer.zero_grad()
        loss = loss_of(tenon, tenon.autograd.grad, self.p, *batch)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, batch, steps):
        given = [tenon.tensor(array, dtype=self.dtype) for array in batch]
        return [float(self.step(*given)) for _ in range(steps)]


def losses_of_torch(dtype, batch, steps, rate):
    p = [torch.tensor(array, dtype=dtype, requires_grad=True) for array in weights(1)]
    optimizer = torch.optim.Adam(p, lr=rate)
    given = [torch.tensor(array, dtype=dtype) for array in batch]
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_of(torch, torch.autograd.grad, p, *given)
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    return losses


class Physics(unittest.TestCase):
    def test_losses_are_those_of_pytorch(self):
        for ours, theirs, bound in ((tenon.float64, torch.float64, 1e-9), (tenon.float32, torch.float32, 1e-3)):
            batch = points(32, 2)
            want = losses_of_torch(theirs, batch, 50, 1e-2)
            self.assertLess(want[-1], want[0] / 2)
            for compiled in (False, True):
                got = Ours(ours, compiled, 1e-2).losses(batch, 50)
                np.testing.assert_allclose(got, want, rtol=bound, err_msg=f"{ours}, compiled: {compiled}")

    def test_a_compiled_step_learns_the_heat_equation(self):
        ours = Ours(tenon.float32, True, 1e-2)
        losses = ours.losses(points(64, 3), 600)
        self.assertLess(losses[-1], 0.01 * losses[0])
        self.assertEqual(ours.step.stats()["eager"], 0)
        grid = np.stack(np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 1, 11)), -1).reshape(-1, 2)
        with tenon.no_grad():
            found = np.array(temperature(tenon, ours.p, tenon.tensor(grid, dtype=tenon.float32)))[:, 0]
        exact = np.sin(math.pi * grid[:, 0]) * np.exp(-CONDUCTIVITY * math.pi**2 * grid[:, 1])
        self.assertLess(np.abs(found - exact).max(), 0.1)


if __name__ == "__main__":
    unittest_report.main()
