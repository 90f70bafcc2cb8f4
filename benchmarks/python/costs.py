#!/usr/bin/env python3
"""The cost of Python: tiny ops against the same ops in C++ and against PyTorch, import, chains, optimisers.

    ./dev costs [--rows REGEX] [--rounds 9] [--json FILE]
    VENV/bin/python benchmarks/python/costs.py BUILD ...

./dev makes VENV in build/rivals, with torch from PyPI. `cmake --build BUILD --target tenon_python tenon_cpu tenon_tiny`
makes our side. The answers are compared before anything is timed. The exit status is 1 if a row misses its bar.
"""

import argparse
import ctypes
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

from rows import Report, medians, timed

# By name: the Python text, the op of tiny.cpp, the largest share of PyTorch's time, the largest time in ns. 0: no bar.
TINY = {
    "relu": ("f.relu(x)", "relu", 0, 200), "x + x": ("x + x", "add", 0.4, 0), "x[0]": ("x[0]", "select", 0.4, 0),
    "add(x, x)": ("f.add(x, x)", "add", 0, 0), "add(x, 2.0)": ("f.add(x, 2.0)", "add a number", 0, 0),
    "x * 2.0": ("x * 2.0", "mul by a number", 0, 0), "x.relu()": ("x.relu()", "relu", 0, 0),
    "x.view(2, 2)": ("x.view(2, 2)", "view", 0, 0), "sum(x, 0)": ("f.sum(x, 0)", "sum", 0, 0),
    "sum(x, dim=0)": ("f.sum(x, dim=0)", "sum", 0, 0), "matmul(x, x)": ("f.matmul(x, x)", "matmul", 0, 0),
    "clamp(x, min=0.0, max=1.0)": ("f.clamp(x, min=0.0, max=1.0)", "clamp", 0, 0),
}
SHARE = 150  # ns that an op in Python may take longer than in C++
CHAIN = 1000


def side_of(text, package, x):
    """Compiles the text into a loop that contains nothing but the op."""
    names = {"f": package, "x": x}
    exec(f"def run(count):\n begin = now()\n for _ in range(count): {text}\n return now() - begin", {"now": __import__("time").perf_counter, **names}, names)
    return names["run"]


def tiny_rows(args, report, build):
    library = ctypes.CDLL(str(build / "bin" / "bench" / "libtenon_tiny.so"))
    library.tiny_seconds.restype, library.tiny_seconds.argtypes = ctypes.c_double, [ctypes.c_char_p, ctypes.c_int64]
    values = [1.0, -1.0, 1.0, -1.0]
    torch.set_num_threads(1)
    for name, (text, op, bar, most) in TINY.items():
        if not re.search(args.rows, name):
            continue
        ours, theirs = tenon.tensor(values), torch.tensor(values)
        got, wanted = (np.asarray(eval(text, {"f": package, "x": x})) for package, x in ((tenon, ours), (torch, theirs)))
        wrong = "" if np.array_equal(got, wanted) else f"{got}, not {wanted}"
        sides = {"tenon": side_of(text, tenon, ours), "torch": side_of(text, torch, theirs),
                 "C++": lambda count, op=op.encode(): library.tiny_seconds(op, count), "loop": side_of("pass", tenon, ours)}
        times = {side: (value * 1e9, spread * 1e9) for side, (value, spread) in medians(sides, args.rounds, 0.01).items()}
        python, share = ("tenon in Python", *times["tenon"]), times["tenon"][0] - times["loop"][0] - times["C++"][0]
        report.row(f"{name}, 4 floats, Python's share in ns", "ns", python, ("tenon in C++", *times["C++"]), SHARE, "share", share, wrong)
        if most:
            report.row(f"{name}, 4 floats, in ns", "ns", python, None, most, "time", times["tenon"][0], wrong)
        report.row(f"{name}, 4 floats", "ns", python, (PEER, *times["torch"]), bar or 1, wrong=wrong)


def import_row(args, report):
    if not re.search(args.rows, "import"):
        return
    text = "import time; begin = time.perf_counter(); import tenon; print(time.perf_counter() - begin)"
    seconds = sorted(float(subprocess.run([sys.executable, "-c", text], check=True, capture_output=True, text=True).stdout) for _ in range(args.rounds))
    report.row("import tenon, in s", "s", ("tenon", seconds[len(seconds) // 2], seconds[-1] - seconds[0]), None, 0.1, "time", seconds[len(seconds) // 2])


def chain_row(args, report):
    if not re.search(args.rows, "chain"):
        return
    sides, gradients = {}, {}
    for name, package in (("tenon", tenon), ("torch", torch)):
        x, c = package.tensor([1.0, -1.0, 1.0, -1.0], requires_grad=True), package.tensor([1.0, -1.0, 1.0, -1.0])

        def once(relu=package.relu, x=x, c=c, ones=package.ones(4)):
            y = x
            for _ in range(CHAIN // 2):
                y = relu(y) * c
            y.backward(ones)

        once()
        gradients[name], sides[name] = np.asarray(x.grad).copy(), timed(once)
    times = medians(sides, args.rounds, 0.02)
    wrong = "" if np.array_equal(gradients["tenon"], gradients["torch"]) else f"the gradient is {gradients['tenon']}, not {gradients['torch']}"
    ours, theirs = ((label, *(each * 1e9 / CHAIN for each in times[side])) for label, side in (("tenon", "tenon"), (PEER, "torch")))
    report.row("a chain of 1,000 ops and its backward, per op", "ns", ours, theirs, 0.35, wrong=wrong)


def optimizer_row(args, report, count, elements, bar):
    name = f"AdamW, {count} parameters of {elements:,}"
    if not re.search(args.rows, name):
        return
    torch.set_num_threads(2)
    sides, first = {}, {}
    draw = np.random.default_rng(1)
    values, gradient = (draw.standard_normal(elements).astype(np.float32) for _ in range(2))
    for side, package, settings in (("tenon", tenon, {}), ("torch", torch, {"fused": True})):
        parameters = [package.tensor(values, requires_grad=True) for _ in range(count)]
        for each in parameters:
            each.grad = package.tensor(gradient)
        optimizer = package.optim.AdamW(parameters, lr=1e-3, **settings)
        for _ in range(3):
            optimizer.step()
        first[side], sides[side] = np.asarray(parameters[-1].detach()).copy(), timed(optimizer.step)
    times = medians(sides, args.rounds, 0.02)
    difference = float(np.abs(first["tenon"] - first["torch"]).max())
    ours, theirs = ((label, *(each * 1e6 for each in times[side])) for label, side in (("tenon", "tenon"), (f"{PEER}, fused", "torch")))
    report.row(name, "us", ours, theirs, bar, wrong="" if difference < 1e-6 else f"a parameter differs by {difference} after 3 steps")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="the build folder of Tenon")
    parser.add_argument("--rows", default="", help="a regular expression: run only rows whose name contains a match")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each side")
    parser.add_argument("--json", help="append a line per row to this file")
    args = parser.parse_args()
    global tenon, torch, PEER
    build = args.build.resolve()
    os.environ.setdefault("TENON_PLUGIN_PATH", str(build / "lib" / "tenon"))
    os.environ["PYTHONPATH"] = str(build / "lib" / "python")
    sys.path.insert(0, os.environ["PYTHONPATH"])
    import tenon
    import tenon.optim
    import torch

    PEER = f"PyTorch {torch.__version__.split('+')[0]}"
    report = Report({"torch": torch.__version__}, args.json)
    tiny_rows(args, report, build)
    import_row(args, report)
    chain_row(args, report)
    optimizer_row(args, report, 100, 1000, 0.5)
    optimizer_row(args, report, 100, 1_000_000, 1.0)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
