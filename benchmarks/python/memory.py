#!/usr/bin/env python3
"""The memory of a compiled training step of BERT, and the time that a lower limit costs.

    VENV/bin/python benchmarks/python/memory.py BUILD [--blocks 12] [--batch 4] [--share 0.6] [--rounds 7] [--json FILE]

Sides are the step without recomputation, the default step, and the step limited to --share of the first one's memory.
Memory is the memory that a run allocates for its values, without parameters and the states of AdamW. The losses of five
steps are compared. Two threads. VENV: build/python, with numpy.

The exit status is 1 if a row misses its bar.
"""

import argparse
import os
import pathlib
import sys

import numpy as np

import nets
from rows import Report, medians, timed

LENGTH, WORDS = 128, 30522
STEPS, TOLERANCE = 5, 1e-3
BY_DEFAULT, LIMITED = 1.03, 1.1  # bars: time relative to the step without recomputation; 1.03 is parity


def side(args, **options):
    """The compiled step and the losses of its first calls. Every side begins with the same weights."""
    tenon.manual_seed(1)
    draw = np.random.default_rng(1)
    x, target = (tenon.tensor(draw.integers(0, WORDS, (args.batch, LENGTH))) for _ in range(2))
    module = nets.bert(tenon.nn, blocks=args.blocks, length=LENGTH)
    optimizer = tenon.optim.AdamW(module.parameters(), lr=1e-4, capturable=True)
    optimizer.prepare()

    def step(x, target):
        result = module(x)
        loss = tenon.nn.functional.cross_entropy(result.reshape(-1, WORDS), target.reshape(-1))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    run = tenon.compile(step, **options)
    return run, lambda: run(x, target).item(), [run(x, target).item() for _ in range(STEPS)]


def main():
    kept, by_default = side(args, recompute=False), side(args)
    before = kept[0].memory()[0]["live"]
    limited = side(args, memory_limit=int(args.share * before))
    sides = {"kept": kept, "by default": by_default, f"limit {args.share}": limited}
    times = medians({name: timed(call) for name, (_, call, _) in sides.items()}, args.rounds, 0.01)
    report = Report({}, args.json)
    peer = ("nothing twice", *(each * 1e3 for each in times["kept"]))
    for (name, (run, _, losses)), bar in zip(list(sides.items())[1:], (BY_DEFAULT, LIMITED)):
        memory = run.memory()[0]
        worst = max(abs(ours - theirs) / theirs for ours, theirs in zip(losses, kept[2]))
        wrong = "" if worst <= TOLERANCE else f"a loss differs by {worst:.1e}"
        share = memory["planned"] / kept[0].memory()[0]["planned"]
        print(f"{name}: {memory['planned'] / 1e6:.0f} MB, {share:.3f} of {kept[0].memory()[0]['planned'] / 1e6:.0f}; again: {memory['again']}")
        report.row(f"BERT of {args.blocks} blocks, {args.batch} x {LENGTH}, {name}", "ms", ("tenon", *(each * 1e3 for each in times[name])), peer, bar, wrong=wrong)
    return 1 if report.missed else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--share", type=float, default=0.6)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    args = parser.parse_args()
    os.environ.setdefault("TENON_PLUGIN_PATH", str(args.build.resolve() / "lib/tenon"))
    os.environ.setdefault("TENON_THREADS", "2")
    os.environ.setdefault("TENON_COMPILE", "wait")
    sys.path.insert(0, str(args.build.resolve() / "lib/python"))
    import tenon
    import tenon.nn
    import tenon.optim

    sys.exit(main())
