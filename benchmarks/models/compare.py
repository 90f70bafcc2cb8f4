#!/usr/bin/env python3
"""Runs exported models on Tenon and its peers with the same inputs, compares the results, and prints latency ratios.

    VENV/bin/python compare.py FOLDER --tenon BUILD/bin/tenon [--models resnet50,...] [--device cpu] [--threads 1,2]

The peers are ONNX Runtime and, if it is installed, OpenVINO (f32, latency hint, the same number of threads). With
--precision relaxed Tenon may round the factors of products, OpenVINO has its bf16 hint, and ONNX Runtime stays f32.

export.py writes FOLDER. Each model gets two shapes; the second text input has padding with a mask of zero. Before
anything is timed, the results must agree within 1e-4 of the range of ONNX Runtime's (narrow forms: tolerance_of). Then
both sides take turns, so that a busy minute of the machine slows both. The script prints one JSON row per model and shape:
medians and quartiles in milliseconds, and the ratio to the faster peer. ONNX Runtime gets all its optimisations and the
better of the given thread counts. The exit status is 1 if a result differs, or, with --bar 2.0, if a ratio exceeds the bar.
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

try:
    import openvino
except ImportError:
    openvino = None

TOLERANCE = 1e-4
RELAXED_TOLERANCE = 5e-2  # a deep model adds up errors of bf16
F16_TOLERANCE = 2e-2  # ONNX Runtime rounds to f16 between other operators than Tenon does


def numbers_of(**shapes):
    return lambda rng: {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}


def image_inputs(batch, side):
    return numbers_of(image=(batch, 3, side, side))


def text_inputs(batch, sequence, padded):
    def make(rng):
        mask = np.ones((batch, sequence), np.int64)
        for row in range(batch if padded else 0):
            mask[row, sequence - rng.integers(1, sequence // 2) :] = 0
        ids = rng.integers(1, 30522, (batch, sequence)) * mask
        segments = (np.arange(sequence) > sequence // 2).astype(np.int64) * mask
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}

    return make


def cache_values(dims):
    """The values with which decode.cpp fills the cache."""
    count = np.arange(np.prod(dims), dtype=np.uint32) * np.uint32(2654435761)
    return ((count >> np.uint32(8)).astype(np.float32) / np.float32(8388608) - np.float32(1)).reshape(dims)


def decoder_inputs(past, layers=16):
    def make(rng):
        names = [f"past.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
        caches = {name: cache_values((1, 4, past, 64)) for name in names}
        return {"token": np.array([[past * 7919 % 32000]]), "position": np.array([[past]])} | caches

    return make


def tokens_of(batch, sequence):
    def make(rng):
        mask = np.ones((batch, sequence), np.int64)
        return {"input_ids": rng.integers(1, 4000, (batch, sequence)), "attention_mask": mask}

    return make


def step_inputs(past, sequence, layers=3):
    def make(rng):
        names = [f"past.{layer}.{part}" for layer in range(layers) for part in ("key", "value")]
        caches = {name: rng.standard_normal((1, 8, past, 64), np.float32) for name in names}
        encoded = rng.standard_normal((1, sequence, 512), np.float32)
        return {"token": np.array([[7]]), "encoded": encoded, "attention_mask": np.ones((1, sequence), np.int64)} | caches

    return make


def loop_inputs(steps):
    return lambda rng: image_inputs(1, 256)(rng) | {"steps": np.array(steps)}


CASES = {
    "resnet50": {f"{batch}x3x224x224": image_inputs(batch, 224) for batch in (1, 3, 8)},
    "mobilenet_v2": {"1x3x224x224": image_inputs(1, 224), "3x3x224x224": image_inputs(3, 224)},
    "vit_b16": {"1x3x224x224": image_inputs(1, 224)},
    "unet": {"1x3x256x256": image_inputs(1, 256)},
    "llama": {"1 after 128": decoder_inputs(128)},
    "bert_base": {"1x128": text_inputs(1, 128, False), "3x50 padded": text_inputs(3, 50, True)},
    "resnet50_qdq": {"1x3x224x224": image_inputs(1, 224)},
    "mobilenet_v2_qdq": {"1x3x224x224": image_inputs(1, 224), "3x3x224x224": image_inputs(3, 224)},
    "bert_base_qdq": {"1x128": text_inputs(1, 128, False)},
    "yolo_anchors": {"1x3x320x320": image_inputs(1, 320)},
    "yolo_focus": {"1x3x320x320": image_inputs(1, 320)},
    "yolo_split": {"1x3x320x320": image_inputs(1, 320)},
    "speech_gru": {"1x150": numbers_of(frames=(1, 150, 161))},
    "speech_lstm": {"1x8192": numbers_of(samples=(1, 8192), hidden=(2, 1, 128), cell=(2, 1, 128))},
    "speech_one_channel": {"1x900x120": numbers_of(spectrogram=(1, 900, 120))},
    "table_loop": {"40 steps": loop_inputs(40)},
    "text_encoder_int8": {"1x64": tokens_of(1, 64)},
    "text_decoder_int8": {"1 after 20": step_inputs(20, 64)},
    "resnet50_f16": {"1x3x224x224": image_inputs(1, 224)},
    "mobilenet_v2_f16": {"1x3x224x224": image_inputs(1, 224)},
    "bert_base_f16": {"1x128": text_inputs(1, 128, False)},
}


def tolerance_of(name, expected, model, inputs, precision):
    """RELAXED_TOLERANCE under precision relaxed. The tolerance of a quantised model: one quantisation step of its results;
    or, if greater, the difference between ONNX Runtime with and without optimisations, since a deep model amplifies a
    number that is rounded to another step."""
    if precision == "relaxed":
        return RELAXED_TOLERANCE
    if name.endswith("_f16"):
        return F16_TOLERANCE
    if not name.endswith(("_qdq", "_int8")):
        return TOLERANCE
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    plain = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"]).run(None, inputs)
    own = largest_difference(expected, dict(zip(expected, plain)))
    step = max(1.01 * np.diff(np.unique(value)).min() / np.ptp(value) for value in expected.values())
    return max(step, *own.values())


def peer_session(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # it warns of each step of a loop whose results grow
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def peer_times(session, inputs, repeat):
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        session.run(None, inputs)
        times.append((time.perf_counter() - start) * 1e3)
    return times


class OpenVino:
    """A model with the shapes of `inputs`. `run` has the form of ONNX Runtime's session."""

    def __init__(self, path, inputs, threads, precision):
        core = openvino.Core()
        model = core.read_model(str(path))
        model.reshape({name: list(value.shape) for name, value in inputs.items()})
        hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads,
                 "INFERENCE_PRECISION_HINT": "bf16" if precision == "relaxed" else "f32"}
        self.request = core.compile_model(model, "CPU", hints).create_infer_request()

    def run(self, _, inputs):
        return list(self.request.infer(inputs, share_inputs=True).values())


def tenon_run(args, model, inputs, repeat, folder):
    """Runs `tenon run`; returns the outputs by name and the report (`runs_ms`: each repetition after the first)."""
    command = [str(args.tenon), "run", str(model), "--device", args.device, "--repeat", str(repeat), "--json", "--precision", args.precision]
    for name, value in inputs.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder / f'{name}.npy'}"]
    done = subprocess.run(command + ["--output", str(folder / "out")], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}{done.stdout}")
    report = json.loads(done.stdout)
    return {output["name"]: np.load(output["file"]) for output in report["outputs"]}, report


def largest_difference(expected, actual):
    """The largest |difference| of each output, relative to the range of the expected output."""
    out = {}
    for name, want in expected.items():
        got = actual.get(name)
        if got is None or got.shape != want.shape or got.dtype != want.dtype:
            raise SystemExit(
                f"output '{name}': expected {want.dtype}{list(want.shape)}, got "
                + ("nothing" if got is None else f"{got.dtype}{list(got.shape)}")
            )
        span = float(want.max() - want.min())
        out[name] = (
            float(np.abs(want.astype(np.float64) - got).max() / span) if np.isfinite(got).all() else float("inf")
        )
    return out


def spread(times):
    low, middle, high = np.percentile(times, [25, 50, 75])
    return {"median_ms": round(middle, 3), "quartiles_ms": [round(low, 3), round(high, 3)]}


def compare(args, name, case, make, folder):
    model = args.folder / f"{name}.onnx"
    inputs = make(np.random.default_rng(5))
    sessions = {count: peer_session(model, count) for count in args.threads}
    warm = {count: np.median(peer_times(session, inputs, 5)[2:]) for count, session in sessions.items()}
    threads = min(warm, key=warm.get)
    session = sessions[threads]
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))
    actual, report = tenon_run(args, model, inputs, 1, folder)
    error = largest_difference(expected, actual)
    row = {
        "benchmark": "model",
        "model": name,
        "case": case,
        "precision": args.precision,
        "error": max(error.values()),
        "of": max(error, key=error.get),
        "agrees": bool(max(error.values()) <= tolerance_of(name, expected, model, inputs, args.precision)),
    }
    if args.rounds:
        peers = {"onnxruntime": session}
        if openvino is not None:
            peers["openvino"] = OpenVino(model, inputs, max(args.threads), args.precision)
            peer_times(peers["openvino"], inputs, 2)
        ours, theirs = [], {peer: [] for peer in peers}
        for _ in range(args.rounds):
            ours += tenon_run(args, model, inputs, args.repeat + 2, folder)[1]["runs_ms"][1:]
            for peer, times in theirs.items():
                times += peer_times(peers[peer], inputs, args.repeat)
        row |= {"tenon": spread(ours)} | {peer: spread(times) for peer, times in theirs.items()}
        row["onnxruntime"] |= {"version": onnxruntime.__version__, "threads": threads}
        fastest = min(theirs, key=lambda peer: np.median(theirs[peer]))
        row["ratio"] = round(float(np.median(ours) / np.median(theirs[fastest])), 3)
        row["to"] = fastest
    row |= {"device": report["device"], "load_ms": report["load_ms"], "first_run_ms": report["first_run_ms"]}
    print(json.dumps(row), flush=True)
    return row["agrees"] and (args.bar is None or row.get("ratio", 0) <= args.bar)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--tenon", type=pathlib.Path, required=True, help="the tenon program")
    parser.add_argument("--models", default=",".join(CASES))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=lambda text: [int(t) for t in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side; 0 only compares results")
    parser.add_argument("--repeat", type=int, default=10, help="runs per turn")
    parser.add_argument("--precision", choices=["stated", "relaxed"], default="stated")
    parser.add_argument("--bar", type=float, help="fail above this ratio of latencies")
    args = parser.parse_args()
    good = True
    with tempfile.TemporaryDirectory() as scratch:
        for name in args.models.split(","):
            for case, make in CASES[name].items():
                folder = pathlib.Path(scratch) / f"{name} {case}"
                folder.mkdir()
                good &= compare(args, name, case, make, folder)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
