"""tenon.optim against torch.optim: the same parameters after each of 50 steps in f64, and the same rates.

usage: optim_test.py OP_RUNNER (not used)"""

import copy
import importlib.util
import io
import itertools
import pathlib
import pickle
import sys
import unittest
import warnings

import numpy as np
import tenon
from tenon import nn, optim

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

if importlib.util.find_spec("torch"):
    import torch

WITH_TORCH = unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
STEPS = 50

OPTIMIZERS = [
    "SGD(p, lr=0.05)", "SGD(p, lr=0.05, momentum=0.9)", "SGD(p, lr=0.05, momentum=0.9, nesterov=True)", "SGD(p, lr=0.05, momentum=0.8, dampening=0.3)",
    "SGD(p, lr=0.05, weight_decay=0.1)", "SGD(p, lr=0.01, momentum=0.5, weight_decay=0.1, maximize=True)",
    "Adam(p, lr=0.05)", "Adam(p, lr=0.05, betas=(0.8, 0.95), eps=1e-3, weight_decay=0.1)", "Adam(p, lr=0.05, amsgrad=True)", "Adam(p, lr=0.01, maximize=True)",
    "AdamW(p, lr=0.05)", "AdamW(p, lr=0.05, weight_decay=0.3, amsgrad=True)",
    "RMSprop(p, lr=0.01)", "RMSprop(p, lr=0.01, momentum=0.9)", "RMSprop(p, lr=0.01, centered=True, alpha=0.9)", "RMSprop(p, lr=0.01, momentum=0.5, centered=True, weight_decay=0.1)",
    "Adagrad(p, lr=0.1)", "Adagrad(p, lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)",
    "Adadelta(p, lr=0.5)", "Adadelta(p, rho=0.8, weight_decay=0.1)", "Adamax(p, lr=0.05)", "Adamax(p, lr=0.05, weight_decay=0.1)",
    "RAdam(p, lr=0.05)", "RAdam(p, lr=0.05, betas=(0.8, 0.9), weight_decay=0.1)", "Rprop(p, lr=0.01)",
    "Rprop(p, lr=0.01, etas=(0.4, 1.4), step_sizes=(1e-4, 0.1))", "ASGD(p, lr=0.05)", "ASGD(p, lr=0.05, lambd=0.1, t0=20, weight_decay=0.1)",
    "SGD([{'params': p[:1], 'lr': 0.1}, {'params': p[1:], 'momentum': 0.9}], lr=0.02)", "AdamW([{'params': p[:1], 'weight_decay': 0.0}, {'params': p[1:]}], lr=0.02)",
]

SCHEDULES = [
    "StepLR(o, 7, gamma=0.5)", "MultiStepLR(o, [5, 20, 21], gamma=0.3)", "ExponentialLR(o, 0.95)", "CosineAnnealingLR(o, 20, eta_min=0.01)", "LinearLR(o, 0.1, total_iters=10)",
    "LinearLR(o, 1.0, 0.2, 30)", "ConstantLR(o, 0.25, 8)", "LambdaLR(o, lambda e: 1 / (1 + e))", "LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 + e])", "MultiplicativeLR(o, lambda e: 0.9)",
    "OneCycleLR(o, 0.5, total_steps=60)", "OneCycleLR(o, [0.5, 0.2], epochs=6, steps_per_epoch=10, anneal_strategy='linear', three_phase=True)", "PolynomialLR(o, 30, 2.0)",
    "CosineAnnealingWarmRestarts(o, 10, 2)", "CyclicLR(o, 0.01, 0.1, 5)", "CyclicLR(o, [0.01, 0.02], [0.1, 0.2], 4, 7, mode='triangular2')",
    "CyclicLR(o, 0.01, 0.1, 5, mode='exp_range', gamma=0.9)", "ChainedScheduler([LinearLR(o, 0.1, total_iters=5), ExponentialLR(o, 0.8)])",
    "SequentialLR(o, [LinearLR(o, 0.1, total_iters=5), CosineAnnealingLR(o, 40)], [5])",
]


def targets():
    rng = np.random.default_rng(3)
    return [rng.standard_normal((4, 3)), rng.standard_normal(5)]


def loss_of(parameters, package, step):
    """A loss that is not a square, so that every element has a history of its own."""
    total = 0
    for parameter, target in zip(parameters, targets()):
        difference = parameter - package.tensor(target)
        total = total + (difference ** 2).sum() + package.sin(parameter * (1 + step % 3)).sum()
    return total


def parameters_of(package, dtype="float64"):
    rng = np.random.default_rng(1)
    return [package.tensor(each, dtype=getattr(package, dtype), requires_grad=True) for each in (rng.standard_normal((4, 3)), rng.standard_normal(5))]


def take_steps(package, p, optimizer, numbers):
    for step in numbers:
        optimizer.zero_grad()
        loss_of(p, package, step).backward()
        optimizer.step()


def steps(package, text, count=STEPS):
    """The parameters after each step."""
    p = parameters_of(package)
    optimizer = eval("optim." + text, {"optim": package.optim, "p": p})
    for step in range(count):
        take_steps(package, p, optimizer, [step])
        yield [np.array(each.detach()) for each in p]


@WITH_TORCH
class AgainstPyTorch(unittest.TestCase):
    def test_optimizers(self):
        for text in OPTIMIZERS:
            with self.subTest(optimizer=text):
                near = 1e-5 if text.startswith("ASGD") else 1e-10  # PyTorch 1 keeps f32 numbers there
                for i, (ours, theirs) in enumerate(zip(steps(tenon, text), steps(torch, text))):
                    for a, b in zip(ours, theirs):
                        np.testing.assert_allclose(a, b, rtol=near, atol=near / 100, err_msg=f"step {i}")

    def test_steps_are_counted(self):
        for text in OPTIMIZERS:
            counts = []
            for package in (tenon, torch):
                p = parameters_of(package)
                optimizer = eval("optim." + text, {"optim": package.optim, "p": p})
                for step in range(3):
                    loss_of(p, package, step).backward()
                    optimizer.step()
                counts.append([float(optimizer.state[each]["step"]) if "step" in optimizer.state[each] else None for each in p])
            with self.subTest(optimizer=text):
                self.assertEqual(*counts)

    def test_states_of_pytorch_go_on_here(self):
        for text in OPTIMIZERS:
            with self.subTest(optimizer=text):
                near = 1e-5 if text.startswith("ASGD") else 1e-10
                theirs = parameters_of(torch)
                file, other = io.BytesIO(), eval("optim." + text, {"optim": torch.optim, "p": theirs})
                take_steps(torch, theirs, other, range(5))
                torch.save({"parameters": theirs, "optimizer": other.state_dict()}, file)
                file.seek(0)
                loaded = tenon.load(file)
                ours = loaded["parameters"]
                optimizer = eval("optim." + text.replace("lr=0.05", "lr=7"), {"optim": optim, "p": ours})
                optimizer.load_state_dict(loaded["optimizer"])
                take_steps(torch, theirs, other, range(5, 10))
                take_steps(tenon, ours, optimizer, range(5, 10))
                for a, b in zip(ours, theirs):
                    np.testing.assert_allclose(np.asarray(a.detach()), b.detach().numpy(), rtol=near, atol=near / 100)

    def test_lbfgs(self):
        def after(package, settings):
            p = parameters_of(package)
            optimizer = package.optim.LBFGS(p, **settings)

            def closure():
                optimizer.zero_grad()
                loss = loss_of(p, package, 0)
                loss.backward()
                return loss
            return [float(optimizer.step(closure)) for _ in range(4)], [np.array(each.detach()) for each in p]
        for settings in ({}, {"lr": 0.1, "max_iter": 5}, {"line_search_fn": "strong_wolfe"}, {"history_size": 3, "max_iter": 12, "line_search_fn": "strong_wolfe"}):
            with self.subTest(settings):
                for ours, theirs in zip(*(after(package, settings) for package in (tenon, torch))):
                    for a, b in zip(ours, theirs):
                        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)

    def test_optimisers_that_pytorch_1_has_not_find_a_minimum(self):
        """PyTorch 1 has none of the first two, and another NAdam; tests/torch_ops compares each step with the newest."""
        for text in ("Adafactor([p[0], p[1]], lr=0.1)", "Muon(p[:1], lr=0.1)", "NAdam(p, lr=0.1)"):
            with self.subTest(text):
                p = [each for each in parameters_of(tenon)]
                optimizer = eval("optim." + text, {"optim": optim, "p": p})
                losses = []
                for step in range(STEPS):
                    optimizer.zero_grad()
                    loss = loss_of(p, tenon, 0)
                    loss.backward()
                    optimizer.step()
                    losses.append(loss.item())
                self.assertLess(losses[-1], losses[0] - 1)

    def rates(self, package, text):
        p = parameters_of(package)
        o = package.optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.3}], lr=0.1, momentum=0.9)
        names = {name: getattr(package.optim.lr_scheduler, name, None) for name in optim.lr_scheduler.__all__}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scheduler = eval(text, {**names, "o": o})
            for _ in range(STEPS):
                yield [(group["lr"], group["momentum"]) for group in o.param_groups], scheduler.get_last_lr()
                o.step()
                scheduler.step()

    def test_schedules(self):
        for text in SCHEDULES:
            with self.subTest(schedule=text):
                for i, (ours, theirs) in enumerate(zip(self.rates(tenon, text), self.rates(torch, text))):
                    np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-9, atol=1e-14, err_msg=f"step {i}")
                    np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-9, atol=1e-14, err_msg=f"step {i}")

    def test_plateaus(self):
        losses = [1.0, 0.9, 0.9, 0.9, 0.9, 0.9, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.49999]
        for settings in ({"patience": 2}, {"patience": 1, "cooldown": 2, "factor": 0.5}, {"patience": 0, "mode": "max", "threshold_mode": "abs", "min_lr": 0.01}):
            rates = []
            for package in (tenon, torch):
                o = package.optim.SGD(parameters_of(package), lr=0.1)
                scheduler = package.optim.lr_scheduler.ReduceLROnPlateau(o, **settings)
                rates.append([(scheduler.step(loss), o.param_groups[0]["lr"])[1] for loss in losses])
            np.testing.assert_allclose(*rates, rtol=1e-12)

    def test_a_net_trains_as_it_does_there(self):
        x, y = np.random.default_rng(0).standard_normal((64, 8)), np.random.default_rng(1).integers(0, 4, 64)
        theirs = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.BatchNorm1d(16), torch.nn.Linear(16, 4)).double()
        ours = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 4)).double()
        ours.load_state_dict({name: each.numpy() for name, each in theirs.state_dict().items()})
        losses = []
        for package, net in ((tenon, ours), (torch, theirs)):
            optimizer = package.optim.AdamW(net.parameters(), lr=0.01)
            scheduler = package.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
            losses.append([])
            for _ in range(STEPS):
                optimizer.zero_grad()
                loss = package.nn.functional.cross_entropy(net(package.tensor(x)), package.tensor(y))
                loss.backward()
                package.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                losses[-1].append(loss.item())
        np.testing.assert_allclose(*losses, rtol=1e-9)
        self.assertLess(losses[0][-1], losses[0][0])


class Optimizers(unittest.TestCase):
    def saved(self, state):
        file = io.BytesIO()
        tenon.save(state, file)
        file.seek(0)
        return tenon.load(file)

    def test_states_are_saved_and_loaded(self):
        for text in [*OPTIMIZERS, "NAdam(p, lr=0.1)", "Adafactor(p, lr=0.1)", "Adam(p, lr=0.05, capturable=True)"]:
            with self.subTest(optimizer=text):
                p = parameters_of(tenon)
                optimizer = eval("optim." + text)
                take_steps(tenon, p, optimizer, range(5))
                loaded = self.saved({"parameters": p, "optimizer": optimizer.state_dict()})
                q = loaded["parameters"]
                other = eval("optim." + text.replace("(p", "(q").replace("p[", "q["))
                other.load_state_dict(loaded["optimizer"])
                for parameters, each in ((p, optimizer), (q, other)):
                    take_steps(tenon, parameters, each, range(5, 9))
                for a, b in zip(p, q):
                    np.testing.assert_array_equal(np.asarray(a.detach()), np.asarray(b.detach()))

    def test_states_of_schedules_are_saved_and_loaded(self):
        for text in [*SCHEDULES, "ReduceLROnPlateau(o, patience=2, cooldown=1)"]:
            with self.subTest(schedule=text), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                pairs, rates = [], []
                for _ in range(2):
                    p = parameters_of(tenon)
                    o = optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.3}], lr=0.1, momentum=0.9)
                    pairs.append((o, eval(text, {**vars(optim.lr_scheduler), "o": o})))
                metric = [1.0] if "Plateau" in text else []
                for _ in range(7):
                    pairs[0][1].step(*metric)
                for old, new in zip(*pairs):
                    new.load_state_dict(self.saved(old.state_dict()))
                for o, schedule in pairs:
                    rates.append([(schedule.step(*metric), [(group["lr"], group["momentum"]) for group in o.param_groups]) for _ in range(STEPS)])
                self.assertEqual(*rates)

    def test_state_goes_on_where_it_was(self):
        for text in ("SGD(p, lr=0.05, momentum=0.9)", "Adam(p, lr=0.05)", "RMSprop(p, lr=0.01, momentum=0.5)", "Adagrad(p)", "Adam(p, lr=0.05, capturable=True)"):
            with self.subTest(optimizer=text):
                whole = list(steps(tenon, text, 6))[-1]
                p = parameters_of(tenon)
                optimizer = eval("optim." + text, {"optim": optim, "p": p})
                for step in range(6):
                    if step == 3:  # another optimiser takes over
                        state = pickle.loads(pickle.dumps(optimizer.state_dict()))
                        p = [each.detach().clone().requires_grad_() for each in p]
                        optimizer = eval("optim." + text.replace("lr=0.05", "lr=7"), {"optim": optim, "p": p})
                        optimizer.load_state_dict(state)
                    optimizer.zero_grad()
                    loss_of(p, tenon, step).backward()
                    optimizer.step()
                for a, b in zip(p, whole):
                    np.testing.assert_array_equal(np.asarray(a.detach()), b)

    def test_steps_that_are_tensors_give_the_same(self):
        plain, captured = list(steps(tenon, "AdamW(p, lr=0.05)")), list(steps(tenon, "AdamW(p, lr=0.05, capturable=True)"))
        for a, b in zip(plain[-1], captured[-1]):
            np.testing.assert_allclose(a, b, rtol=1e-12)

    def test_a_step_is_compiled(self):
        for text in ("SGD(p, lr=r, momentum=0.9)", "AdamW(p, lr=r, capturable=True)", "RMSprop(p, lr=r)", "Adagrad(p, lr=r)", "Adadelta(p, lr=r)", "Rprop(p)"):
            with self.subTest(optimizer=text):
                losses, recordings = [], itertools.count()
                for compiled in (False, True):
                    p, r = parameters_of(tenon), tenon.tensor(0.05, dtype=tenon.f64)
                    optimizer = eval("optim." + text, {"optim": optim, "p": p, "r": r})
                    optimizer.prepare()

                    def step(scale):
                        next(recordings)
                        loss = sum((each * each * scale).sum() for each in p)
                        loss.backward()
                        optimizer.step()
                        optimizer.zero_grad()
                        return loss

                    run = tenon.compile(step) if compiled else step
                    losses.append([])
                    for i in range(6):
                        r.fill_(0.05 / (1 + i))
                        losses[-1].append(run(tenon.tensor(1.5, dtype=tenon.f64)).item())
                np.testing.assert_allclose(*losses, rtol=1e-10)
                self.assertLessEqual(next(recordings), 6 + 2)
                self.assertEqual(float(optimizer.state[p[0]].get("step", 6)), 6)

    def test_state_that_a_recording_would_lose_is_refused(self):
        for text in ("SGD(p, lr=0.05, momentum=0.9)", "Adam(p, capturable=True)", "Adam(p)"):
            with self.subTest(optimizer=text):
                p = parameters_of(tenon)
                optimizer = eval("optim." + text)

                @tenon.compile
                def step(scale):
                    sum((each * each * scale).sum() for each in p).backward()
                    optimizer.step()

                with self.assertRaisesRegex(tenon.Error, r"inside of a compiled function.*prepare\(\)"):
                    step(tenon.tensor(1.5, dtype=tenon.f64))
                self.assertFalse(tenon.compiling.is_recording())

    def test_closures_are_called(self):
        p = parameters_of(tenon)
        optimizer = optim.SGD(p, lr=0.01)

        def closure():
            optimizer.zero_grad()
            loss = loss_of(p, tenon, 0)
            loss.backward()
            return loss

        self.assertGreater(optimizer.step(closure).item(), optimizer.step(closure).item())

    def test_settings_that_mean_nothing_are_refused(self):
        p = parameters_of(tenon)
        for wrong, text in ((lambda: optim.SGD(p, lr=-1), "Invalid lr"), (lambda: optim.Adam(p, betas=(1.0, 0.9)), "beta parameter at index 0"), (lambda: optim.SGD([]), "empty parameter list"),
                            (lambda: optim.SGD(p[0]), "iterable of Tensors"), (lambda: optim.SGD([1.0]), "only optimize Tensors"), (lambda: optim.SGD([p[0] * 2]), "non-leaf"),
                            (lambda: optim.SGD(p, nesterov=True), "Nesterov"), (lambda: optim.SGD([{"params": p}, {"params": p[:1]}]), "more than one"),
                            (lambda: optim.lr_scheduler.OneCycleLR(optim.SGD(p), 0.1), "total_steps")):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                wrong()

    def test_parameters_without_gradients_stay(self):
        p = parameters_of(tenon)
        before = copy.deepcopy(p)
        optimizer = optim.Adam(p)
        (p[0] * 1.0).sum().backward()
        optimizer.step()
        self.assertFalse(tenon.equal(p[0], before[0]))
        self.assertTrue(tenon.equal(p[1], before[1]))

    def test_groups_print(self):
        self.assertIn("lr: 0.5", repr(optim.SGD(parameters_of(tenon), lr=0.5)))


if __name__ == "__main__":
    unittest_report.main()
