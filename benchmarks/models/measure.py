#!/usr/bin/env python3
"""Measures first answers, memory, decoding and recording. compare.py measures steady latency.

    VENV/bin/python measure.py FOLDER --build BUILD [--rows first,memory,decode,record] [--models resnet50,...] [--turns 5]

export.py writes FOLDER. Every turn of every side is a separate process, with the files in the page cache. A row has the
medians of the turns, and the ratio to the better peer: ONNX Runtime and, if it is installed, OpenVINO, both with f32 and
two threads.

first: milliseconds from the start of loading to the first answer, minus a steady run.
memory: the peak resident memory of loading and ten runs, including mapped pages, minus the memory of a process that only
  loads the library (Tenon: a graph of one op on the processor; peers: the import).
decode: steps of the decoder with a growing cache, for tokens 129 to 256; --steps takes fewer. The logits of the last step
  must agree.
record: milliseconds of recording, passes and preparing; the first time includes packing, later ones do not. Then the
  first run, which prepares, and a steady run at each of eight further sizes.
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

from compare import CASES, OpenVino, cache_values, openvino, peer_session

FIRST_TOKEN = 128
LAYERS = 16
# The bytes that a step of the decoder reads: all weights except the embeddings of other tokens (export.py).
WEIGHT_BYTES = 4 * (LAYERS * (2 * 1024 * 1024 + 2 * 1024 * 256 + 3 * 1024 * 2816) + 1024 * 32000)


def session_of(side, model, inputs, threads=2):
    return peer_session(model, threads) if side == "onnxruntime" else OpenVino(model, inputs, threads)


def peer_turn(side, model, inputs_file, repeat):
    """The main function of a process: loads, runs `repeat` times (0: does not load), and prints times and memory."""
    times = {}
    if int(repeat):
        inputs = dict(np.load(inputs_file))
        begin = time.perf_counter()
        session = session_of(side, model, inputs)
        runs = []
        for _ in range(int(repeat)):
            start = time.perf_counter()
            session.run(None, inputs)
            runs.append((time.perf_counter() - start) * 1e3)
            times.setdefault("first_ms", (time.perf_counter() - begin) * 1e3)
        times["steady_ms"] = float(np.median(runs[1:]))
    print(json.dumps(times))


def peer_decode(side, model, steps, logits_file):
    """The main function of a process that decodes, and prints the milliseconds of each step."""
    names = [f"past.{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    caches = {name: cache_values((1, 4, FIRST_TOKEN, 64)) for name in names}
    step = ort_step(model, caches) if side == "onnxruntime" else openvino_step(model, caches)
    times = []
    for number in range(FIRST_TOKEN, FIRST_TOKEN + int(steps)):
        token, position = np.array([[number * 7919 % 32000]]), np.array([[number]])
        if number == FIRST_TOKEN:
            step(token, position, False)
        begin = time.perf_counter()
        logits = step(token, position, True)
        times.append((time.perf_counter() - begin) * 1e3)
    logits.astype(np.float32).tofile(logits_file)
    print(json.dumps({"steps_ms": times}))


def ort_step(model, caches):
    session = peer_session(model, 2)
    names = [output.name for output in session.get_outputs()]
    kept = {name: onnxruntime.OrtValue.ortvalue_from_numpy(value) for name, value in caches.items()}

    def step(token, position, keep):
        binding = session.io_binding()
        binding.bind_cpu_input("token", token)
        binding.bind_cpu_input("position", position)
        for name, value in kept.items():
            binding.bind_ortvalue_input(name, value)
        for name in names:
            binding.bind_output(name, "cpu")
        session.run_with_iobinding(binding)
        outputs = binding.get_outputs()
        if keep:
            kept.update((name.replace("present.", "past."), value) for name, value in zip(names[1:], outputs[1:]))
        return outputs[0].numpy()

    return step


def openvino_step(model, caches):
    core = openvino.Core()
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 2}
    compiled = core.compile_model(core.read_model(model), "CPU", hints)
    request = compiled.create_infer_request()
    names = [output.any_name for output in compiled.outputs]
    kept = dict(caches)

    def step(token, position, keep):
        outputs = dict(zip(names, request.infer(kept | {"token": token, "position": position}, share_inputs=True).values()))
        if keep:
            kept.update((name.replace("present.", "past."), value) for name, value in outputs.items() if name != "logits")
        return outputs["logits"]

    return step


# A process begins with the peak memory of its parent, so a small process starts the measured ones.
LAUNCHER = """import os, sys
process = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))"""


def checked(command):
    """Runs `command`; returns its output and its peak memory in kB."""
    command = list(map(str, command))
    with tempfile.NamedTemporaryFile("r") as peak:
        launch = [sys.executable, "-I", "-S", "-c", LAUNCHER, peak.name]
        done = subprocess.run(launch + command, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}")
        return done.stdout, int(peak.read())


class Sides:
    """One turn of each side."""

    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.tenon = args.build / "bin" / "tenon"
        self.read_gbs = 0.0  # two threads reading memory, the best of all turns of the decoder
        self.peers = ["onnxruntime"] + (["openvino"] if openvino is not None else [])

    def inputs(self, name):
        inputs = next(iter(CASES[name].values()))(np.random.default_rng(5))
        np.savez(self.folder / "inputs.npz", **inputs)
        for key, value in inputs.items():
            np.save(self.folder / f"{key}.npy", value)
        return inputs

    def run_tenon(self, model, inputs, repeat):
        command = [self.tenon, "run", model, "--device", "cpu", "--repeat", repeat, "--json"]
        for name in inputs:
            command += ["--input", f"{name}={self.folder / f'{name}.npy'}"]
        text, peak = checked(command + ["--output", self.folder / "out"])
        report = json.loads(text)
        first, steady = report["load_ms"] + report["first_run_ms"], float(np.median(report["runs_ms"]))
        return {"first_ms": first, "steady_ms": steady, "peak_kb": peak}

    def run_peer(self, side, model, repeat):
        command = [sys.executable, __file__, "--peer", side, model, self.folder / "inputs.npz", repeat]
        text, peak = checked(command)
        return json.loads(text) | {"peak_kb": peak}

    def turn(self, side, model, inputs, repeat):
        return self.run_tenon(model, inputs, repeat) if side == "tenon" else self.run_peer(side, model, repeat)

    def library_only(self, side):
        if side == "tenon":
            text = self.folder / "tiny.txt"
            text.write_text('graph "tiny"\n%1 = input f32[1] on cpu:0\n%2 = relu(%1)\nreturn %2\n')
            return checked([self.tenon, "graph", text, "--run"])[1]
        return self.run_peer(side, self.args.folder, 0)["peak_kb"]

    def decode(self, side, model, steps):
        file = self.folder / f"{side}.logits"
        command = [sys.executable, __file__, "--peer-decode", side, model, steps, file]
        if side == "tenon":
            last = FIRST_TOKEN + steps - 1
            program = self.args.build / "bin" / "bench" / "bench_decode"
            command = [program, model, "--first", FIRST_TOKEN, "--last", last, "--logits", file]
        printed = json.loads(checked(command)[0])
        self.read_gbs = max(self.read_gbs, printed.get("read_gbs", 0))
        return printed["steps_ms"], np.fromfile(file, np.float32)


def row_of(row, model, sides):
    """`sides`: by side, the values of its turns; lower is better."""
    medians = {side: float(np.median(values)) for side, values in sides.items()}
    best = min((side for side in medians if side != "tenon"), key=medians.get)
    found = {"benchmark": row, "model": model} | {side: [round(v, 2) for v in values] for side, values in sides.items()}
    return found | {"ratio": round(medians["tenon"] / medians[best], 3), "to": best}


def measure_model(sides, args, name, rows):
    inputs, model = sides.inputs(name), args.folder / f"{name}.onnx"
    turns = {side: [] for side in ["tenon"] + sides.peers}
    for _ in range(args.turns):
        for side, done in turns.items():
            done.append(sides.turn(side, model, inputs, 11))
    if "first" in rows:
        first = {side: [turn["first_ms"] - turn["steady_ms"] for turn in done] for side, done in turns.items()}
        yield row_of("first answer less a steady run, ms", name, first)
    if "memory" in rows:
        bare = {side: sides.library_only(side) for side in turns}
        peaks = {side: [(turn["peak_kb"] - bare[side]) / 1024 for turn in done] for side, done in turns.items()}
        yield row_of("peak memory less the library's, MiB", name, peaks)


def measure_decoding(sides, args):
    model, steps, logits = args.folder / "llama.onnx", {side: [] for side in ["tenon"] + sides.peers}, {}
    for _ in range(args.turns):
        for side, done in steps.items():
            times, logits[side] = sides.decode(side, model, args.steps)
            done.append(times)
    row = row_of("decoding, ms per token", "llama", {side: [float(np.median(t)) for t in done] for side, done in steps.items()})
    row["worst step / median"] = {side: [round(max(t) / float(np.median(t)), 2) for t in done] for side, done in steps.items()}
    want = logits["onnxruntime"]
    row["ms to read the weights"] = round(WEIGHT_BYTES / sides.read_gbs / 1e6, 2)
    row["error"] = float(np.abs(want - logits["tenon"]).max() / (want.max() - want.min()))
    yield row | {"agrees": row["error"] <= 1e-4}


def measure_recording(sides, args, dims="1,128"):
    command = [args.build / "bin" / "bench" / "bench_record", args.folder / "bert_base.onnx", "--dims", dims, "--sizes", "8"]
    yield {"benchmark": "recording, passes and preparing", "model": "bert_base"} | json.loads(checked(command)[0])


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer_turn(*sys.argv[2:])
    if sys.argv[1:2] == ["--peer-decode"]:
        return peer_decode(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="the build folder of Tenon")
    parser.add_argument("--rows", default="first,memory,decode,record")
    parser.add_argument("--models", default="resnet50,mobilenet_v2,bert_base,vit_b16")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=128, help="steps of the decoder")
    args = parser.parse_args()
    rows, good = args.rows.split(","), True
    with tempfile.TemporaryDirectory() as folder:
        sides = Sides(args, pathlib.Path(folder))
        found = []
        if "first" in rows or "memory" in rows:
            for name in args.models.split(","):
                found += measure_model(sides, args, name, rows)
        if "decode" in rows:
            found += measure_decoding(sides, args)
        if "record" in rows:
            found += measure_recording(sides, args)
    for row in found:
        good &= row.get("agrees", True)
        print(json.dumps(row), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
