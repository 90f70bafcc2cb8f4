#!/usr/bin/env python3
"""Models on a busy machine: endless loops, one per processor, run at the same time.

    VENV/bin/python benchmarks/busy/busy.py MODELS --tenon BUILD/bin/tenon [--turns 9] [--loops 2]
    VENV/bin/python benchmarks/busy/busy.py MODELS --serve BUILD/bin/bench/bench_serve [--callers 4] [--seconds 5]

MODELS is a folder that benchmarks/models/export.py wrote. Tenon and ONNX Runtime (the better of one and two threads, idle)
take turns with the same inputs, first on the idle machine, then with the loops. Each turn of a side is a separate process.
A row has, for each side, the median of the turns' medians, their 90th percentile and the ratio of the medians.
With --serve, several callers run one model at the same time (BERT, or ResNet-50 with --models resnet50), each with its own
request, on an idle machine. A row has the answers per second of each side, with its default number of threads. The bar:
Tenon's median is at least ONNX Runtime's.

The bars without --serve: BERT's busy ratio at most 1.2; ResNet-50's at most 1.2 times its own idle ratio; the 90th percentile of Tenon's
turns at most twice their median. The exit status is 1 if a bar is missed.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import onnxruntime

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "models"))
from compare import CASES, peer_session, peer_times, tenon_run  # noqa: E402

LOOP = "while True: pass"
RATES = ("answers_per_s", "answers_per_cpu_s")


def peer_turn(model, threads, inputs_file, repeat):
    """The main function of a process that times ONNX Runtime and prints milliseconds, one per line."""
    inputs = dict(np.load(inputs_file))
    for time_ms in peer_times(peer_session(model, threads), inputs, repeat + 2)[2:]:
        print(time_ms)


SERVED = {"bert_base": "1,128", "resnet50": "1"}  # the dims that these models leave open


def serve_peer(model, callers, seconds):
    """The main function of a process that serves `callers` threads with ONNX Runtime, and prints answers per second."""
    session = peer_session(model, 0)
    inputs = next(iter(CASES[pathlib.Path(model).stem].values()))(np.random.default_rng(5))
    want = session.run(None, inputs)[0]
    answers, begin, cpu_begin = [0] * callers, time.perf_counter(), time.process_time()

    def serve(caller):
        while time.perf_counter() < begin + seconds:
            np.testing.assert_allclose(session.run(None, inputs)[0], want, rtol=1e-3, atol=1e-4)
            answers[caller] += 1

    threads = [threading.Thread(target=serve, args=(caller,)) for caller in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rates = [sum(answers) / (time.perf_counter() - begin), sum(answers) / (time.process_time() - cpu_begin)]
    print(json.dumps(dict(zip(RATES, rates))))


def measure_serving(args, name):
    model, callers, seconds = args.folder / f"{name}.onnx", str(args.callers), str(args.seconds)
    commands = {
        "tenon": [args.serve, model, "--dims", SERVED[name], "--threads", callers, "--seconds", seconds],
        "onnxruntime": [sys.executable, __file__, "--peer-serve", model, callers, seconds],
    }
    turns = {side: [] for side in commands}
    for _ in range(args.turns):
        for side, command in commands.items():
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
            turns[side].append(json.loads(done.stdout))
    medians = {side: {rate: round(float(np.median([turn[rate] for turn in done])), 2) for rate in RATES}
               for side, done in turns.items()}
    ratio = medians["tenon"][RATES[0]] / medians["onnxruntime"][RATES[0]]
    row = {"benchmark": "serving", "model": name, "callers": args.callers} | medians
    print(json.dumps(row | {"ratio": f"{ratio:.2f} (bar 1.0)", "turns": args.turns,
                            "onnxruntime_version": onnxruntime.__version__}), flush=True)
    return ratio >= 1.0


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
    """Yields each bar of a model: its name, the value and the limit."""
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
    if sys.argv[1:2] == ["--peer-serve"]:
        model, callers, seconds = sys.argv[2:]
        return serve_peer(model, int(callers), float(seconds))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    program = parser.add_mutually_exclusive_group(required=True)
    program.add_argument("--tenon", type=pathlib.Path, help="the tenon program")
    program.add_argument("--serve", type=pathlib.Path, help="the program bench_serve")
    parser.add_argument("--models", default="bert_base,resnet50")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--repeat", type=int, default=10, help="runs per turn")
    parser.add_argument("--loops", type=int, default=2)
    parser.add_argument("--callers", type=int, default=4, help="threads that run a model at the same time, with --serve")
    parser.add_argument("--seconds", type=float, default=5, help="length of a turn, with --serve")
    args = parser.parse_args()
    if args.serve:
        names = [name for name in args.models.split(",") if name in SERVED]
        return 0 if all([measure_serving(args, name) for name in names]) else 1
    good = True
    for name in args.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            good &= measure(args, name, pathlib.Path(folder))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
