#!/usr/bin/env python3
"""Models on a machine that other programs use too: endless loops run beside, one per processor.

    VENV/bin/python benchmarks/busy/busy.py MODELS --tenon BUILD/bin/tenon [--turns 9] [--loops 2]

MODELS is a folder that benchmarks/models/export.py wrote. Tenon and ONNX Runtime (the better of one and two threads, idle)
take turns with the same inputs, first on the idle machine, then beside the loops. A turn is a process of its own on both
sides. A row says, of each side, the median of the turns' medians, their 90th percentile and the ratio of the medians.
The bars: BERT's busy ratio at most 1.2; ResNet-50's at most 1.2 times its own idle ratio; the 90th percentile of Tenon's
turns at most twice their median. The exit status is 1 if a bar is missed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from compare import CASES, peer_session, peer_times, tenon_run  # noqa: E402

LOOP = "while True: pass"


def peer_turn(model, threads, inputs_file, repeat):
    """The main function of a process that times ONNX Runtime and prints milliseconds, one a line."""
    inputs = dict(np.load(inputs_file))
    for time_ms in peer_times(peer_session(model, threads), inputs, repeat + 2)[2:]:
        print(time_ms)


def peer_medians(args, model, threads, inputs_file):
    command = [sys.executable, __file__, "--peer", str(model), str(threads), str(inputs_file), str(args.repeat)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(np.median([float(line) for line in done.stdout.split()]))


def turns(args, model, threads, inputs, folder):
    """The medians of each side's turns, in milliseconds."""
    inputs_file = folder / "inputs.npz"
    np.savez(inputs_file, **inputs)
    ours, theirs = [], []
    for _ in range(args.turns):
        ours.append(float(np.median(tenon_run(args, model, inputs, args.repeat + 2, folder)[1]["runs_ms"][1:])))
        theirs.append(peer_medians(args, model, threads, inputs_file))
    return ours, theirs


def row_of(name, state, ours, theirs):
    row = {"benchmark": "busy", "model": name, "machine": state}
    for side, times in (("tenon", ours), ("onnxruntime", theirs)):
        row[side] = {"median_ms": round(float(np.median(times)), 2),
                     "p90_ms": round(float(np.percentile(times, 90)), 2),
                     "turns_ms": [round(value, 1) for value in times]}
    row["ratio"] = round(float(np.median(ours) / np.median(theirs)), 3)
    return row


def bars(name, idle, busy):
    """Yields each bar of a model: what, its value and the most it may be."""
    if name == "bert_base":
        yield "busy ratio", busy["ratio"], 1.2
    else:
        yield "busy ratio to idle ratio", busy["ratio"] / idle["ratio"], 1.2
    yield "90th percentile to median", busy["tenon"]["p90_ms"] / busy["tenon"]["median_ms"], 2.0


def measure(args, name, folder):
    model = args.folder / f"{name}.onnx"
    inputs = next(iter(CASES[name].values()))(np.random.default_rng(5))
    idle_times = {count: np.median(peer_times(peer_session(model, count), inputs, 7)[2:]) for count in (1, 2)}
    threads = min(idle_times, key=idle_times.get)
    rows = [row_of(name, "idle", *turns(args, model, threads, inputs, folder))]
    loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(args.loops)]
    try:
        time.sleep(1)
        rows.append(row_of(name, f"{args.loops} endless loops beside", *turns(args, model, threads, inputs, folder)))
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
    met = True
    for what, value, most in bars(name, *rows):
        met &= value <= most
        rows[1][what] = f"{value:.2f} (bar {most})"
    for row in rows:
        print(json.dumps(row | {"onnxruntime_version": onnxruntime.__version__, "threads": threads}), flush=True)
    return met


def main():
    if sys.argv[1:2] == ["--peer"]:
        model, threads, inputs_file, repeat = sys.argv[2:]
        return peer_turn(model, int(threads), inputs_file, int(repeat))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tenon", type=pathlib.Path, required=True, help="the tenon program")
    parser.add_argument("--models", default="bert_base,resnet50")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--repeat", type=int, default=10, help="runs per turn")
    parser.add_argument("--loops", type=int, default=2)
    args = parser.parse_args()
    good = True
    for name in args.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            good &= measure(args, name, pathlib.Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
