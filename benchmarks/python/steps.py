#!/usr/bin/env python3
"""Training steps of whole nets, eager and compiled, against eager PyTorch.

    ./dev steps [--rows REGEX] [--rounds 5] [--images 4x224] [--blocks 12] [--curve 0] [--json FILE]
    VENV/bin/python benchmarks/python/steps.py BUILD ...

./dev makes VENV in build/rivals, with torch from PyPI. `cmake --build BUILD --target tenon_python tenon_cpu` makes our
side. All sides begin with the same weights, and their first losses are compared: three, or as many as --curve says.
Two threads.

The exit status is 1 if a row misses its bar.
"""

import argparse
import os
import pathlib
import re
import sys

import numpy as np

import nets
from rows import Report, medians, timed

TOLERANCE = 1e-3  # for a loss
EAGER, COMPILED = 1.0, 0.8  # bars: time relative to PyTorch


class Net:
    """A net, its input and target, its loss and its optimiser, for both packages."""

    def __init__(self, make, x, target, loss, optimizer, capturable=False):
        self.make, self.x, self.target, self.loss, self.optimizer, self.capturable = make, x, target, loss, optimizer, capturable


def nets_of(args):
    draw = np.random.default_rng(1)
    batch, size = (int(number) for number in args.images.split("x"))
    words, length = 30522, 128

    def cross_entropy(nn, result, target):
        return nn.functional.cross_entropy(result.reshape(-1, result.shape[-1]), target.reshape(-1))

    return {
        f"ResNet-18, {batch} images of {size}": Net(
            nets.resnet18, draw.standard_normal((batch, 3, size, size)).astype(np.float32), draw.integers(0, 1000, batch), cross_entropy,
            lambda optim, parameters, **_: optim.SGD(parameters, lr=1e-3, momentum=0.9)),
        f"BERT of {args.blocks} blocks, 1 x {length}": Net(
            lambda nn: nets.bert(nn, blocks=args.blocks), draw.integers(0, words, (1, length)), draw.integers(0, words, (1, length)), cross_entropy,
            lambda optim, parameters, **settings: optim.AdamW(parameters, lr=1e-4, **settings), True),
    }


def weights_of(net):
    """The same random weights for all sides, by name."""
    torch.manual_seed(1)
    return {name: each.numpy() for name, each in net.make(torch.nn).state_dict().items()}


def torch_side(net, weights):
    module = net.make(torch.nn)
    module.load_state_dict({name: torch.tensor(each) for name, each in weights.items()})
    optimizer = net.optimizer(torch.optim, module.parameters(), **({"fused": True} if net.capturable else {}))
    x, target = torch.tensor(net.x), torch.tensor(net.target)

    def step():
        loss = net.loss(torch.nn, module(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.item()

    return step


def our_side(net, weights, compiled):
    module = net.make(tenon.nn)
    module.load_state_dict({name: tenon.tensor(each) for name, each in weights.items()})
    optimizer = net.optimizer(tenon.optim, module.parameters(), **({"capturable": compiled} if net.capturable else {}))
    optimizer.prepare()
    x, target = tenon.tensor(net.x), tenon.tensor(net.target)

    def step(x, target):
        loss = net.loss(tenon.nn, module(x), target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    run = tenon.compile(step) if compiled else step
    return lambda: run(x, target).item()


def make_side(side, net, weights):
    return torch_side(net, weights) if side == "torch" else our_side(net, weights, side == "compiled")


def net_rows(args, report, name, net):
    weights = weights_of(net)
    steps = {side: make_side(side, net, weights) for side in ("torch", "eager", "compiled")}
    losses = {side: [step() for _ in range(max(3, args.curve))] for side, step in steps.items()}
    times = medians({side: timed(step) for side, step in steps.items()}, args.rounds, 0.01)
    peer = (PEER, *(each * 1e3 for each in times["torch"]))
    for side, bar in (("eager", EAGER), ("compiled", COMPILED)):
        worst = max(abs(ours - theirs) / max(1e-2, abs(theirs)) for ours, theirs in zip(losses[side], losses["torch"]))
        wrong = "" if worst <= TOLERANCE else f"a loss differs by {worst:.1e}: {losses[side]}, not {losses['torch']}"
        report.row(f"{name}, a step, {side}", "ms", ("tenon", *(each * 1e3 for each in times[side])), peer, bar, wrong=wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="the build folder of Tenon")
    parser.add_argument("--rows", default="", help="a regular expression: run only rows whose name contains a match")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--images", default="4x224", help="images of ResNet-18: number x width")
    parser.add_argument("--blocks", type=int, default=12, help="blocks of BERT")
    parser.add_argument("--curve", type=int, default=0, help="number of losses to compare")
    parser.add_argument("--json", help="append a line per row to this file")
    args = parser.parse_args()
    global tenon, torch, PEER
    build = args.build.resolve()
    os.environ.setdefault("TENON_PLUGIN_PATH", str(build / "lib" / "tenon"))
    os.environ.setdefault("TENON_COMPILE", "wait")
    os.environ["TENON_THREADS"] = "2"
    sys.path.insert(0, str(build / "lib" / "python"))
    import tenon
    import tenon.nn
    import tenon.optim
    import torch

    torch.set_num_threads(2)
    PEER = f"PyTorch {torch.__version__.split('+')[0]}"
    report = Report({"torch": torch.__version__}, args.json)
    for name, net in nets_of(args).items():
        if re.search(args.rows, name):
            net_rows(args, report, name, net)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
