#!/usr/bin/env python3
"""Whole models on an NVIDIA GPU: Tenon against PyTorch on the same device, f32, from inputs on the host to outputs there.

    benchmarks/cuda/models.py BUILD [--models resnet50,...] [--repeat 30] [--compile]

Needs PyTorch with CUDA. The models are those of benchmarks/models/export.py with random weights, each with the inputs that
it is exported with. Outputs must agree within 1e-4 of their range. Prints the medians, the ratio and the time of the first
run of each model; with --compile also for torch.compile. The exit status is 1 if an output differs.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "models"))
import export

TOLERANCE = 1e-4
WARM_UP = 10


def tensors_in(values):
    """The tensors of nested lists, in order."""
    if isinstance(values, torch.Tensor):
        return [values]
    return [tensor for value in values for tensor in tensors_in(value)]


def moved(values):
    return values.cuda() if isinstance(values, torch.Tensor) else type(values)(moved(value) for value in values)


def median(times):
    return sorted(times)[len(times) // 2]


def tenon_run(args, path, names, inputs, folder):
    """The outputs in their order, the median of the runs and the first run, in ms."""
    command = [str(args.build / "bin" / "tenon"), "run", str(path), "--device", "cuda", "--json", "--output", str(folder / "out"),
               "--repeat", str(args.repeat + WARM_UP)]
    for name, value in zip(names, inputs):
        np.save(folder / f"{name}.npy", value.numpy())
        command += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nended with {done.returncode}:\n{done.stderr}{done.stdout}")
    report = json.loads(done.stdout)
    return [np.load(each["file"]) for each in report["outputs"]], median(report["runs_ms"][WARM_UP:]), report["first_run_ms"]


def torch_run(args, module, example):
    times = []
    with torch.inference_mode():
        for _ in range(args.repeat + WARM_UP):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            outputs = [each.cpu() for each in tensors_in(module(*moved(example)))]
            times.append((time.perf_counter() - begin) * 1e3)
    return [each.numpy() for each in outputs], median(times[WARM_UP:]), times[0]


def measure(args, name, folder):
    path = folder / f"{name}.onnx"
    model, example, names = export.export(name, path, 14)
    example = example if isinstance(example, tuple) else (example,)
    ours, tenon_ms, first_ms = tenon_run(args, path, names, tensors_in(example), folder)
    module = model.cuda().eval()
    theirs, torch_ms, _ = torch_run(args, module, example)
    worst = max(float(np.abs(a - b).max() / np.ptp(b)) for a, b in zip(ours, theirs))
    text = f"{name:13} tenon {tenon_ms:7.2f} ms (first {first_ms:6.1f}), PyTorch {torch_ms:7.2f} ms: {tenon_ms / torch_ms:.2f}"
    if args.compile:
        _, compiled_ms, compile_ms = torch_run(args, torch.compile(module), example)
        text += f"; torch.compile {compiled_ms:7.2f} ms (first {compile_ms:8.1f}): {tenon_ms / compiled_ms:.2f}"
    print(f"{text}; differs by {worst:.1e} of the range{'' if worst <= TOLERANCE else ': WRONG'}", flush=True)
    return worst <= TOLERANCE


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(export.MODELS))
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--compile", action="store_true")
    args = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    with tempfile.TemporaryDirectory() as folder:
        right = [measure(args, name, pathlib.Path(folder)) for name in args.models.split(",")]
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
