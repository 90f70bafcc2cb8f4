#!/usr/bin/env python3
"""Kernels of the compiler against PyTorch, eager and compiled, ONNX Runtime and our own primitives, in one process.

    ./dev rivals [--rows REGEX] [--rounds 5] [--shape 16384x768] [--threads 2] [--model MODELS/llama.onnx]
        [--packages FOLDER] [--json FILE]
    VENV/bin/python benchmarks/codegen/rivals.py BUILD ...

./dev makes VENV in build/rivals, with torch and onnxruntime from PyPI; torch.compile needs g++. ONNX Runtime takes part
if it can be imported together with onnx, from VENV or from --packages (the site-packages of another environment).
`cmake --build BUILD --target tenon_rivals tenon_cpu` makes our side.

Sides take turns in random order; a time is the median of the rounds. The first number of a side is its time in
milliseconds, the second is that time divided by the time of Tenon's kernel. "copy" is the best copy of the bytes that
the row reads and writes.
PyTorch runs twice: as a program calls it, and "warm", when malloc keeps its pages so that results need no new ones.
With --model, which export.py wrote with the same torch: one step of the decoder after 128 tokens.

The exit status is 1 if results differ or a row misses a bar of BARS.
"""

import argparse
import ctypes
import json
import os
import pathlib
import random
import re
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# By side: the largest allowed ratio of Tenon's time to the side's time. The bar for the copy is in the row.
BARS = {"primitives": 1.0, "eager": 1 / 5, "torch.compile": 1 / 5, "eager warm": 1 / 1.3}
BARS_OF = {"RMS norm": {"eager": 1 / 10}, "decoder": {"eager": 1 / 1.3, "torch.compile": 1.0}}
EPSILON = 1e-5
PAUSE = 0.015  # seconds; OpenMP threads spin for milliseconds after their last work


def gelu(x):
    return torch.nn.functional.gelu(x)


# By name: PyTorch's function of (x, y, weight, bias, mask), as its users write it; the number of arrays of x's size
# that are read and written; the required share of the copy's speed; the operators of ONNX, each "operator inputs >
# output".
ROWS = {
    "RMS norm": (
        lambda x, y, w, b, m: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON) * w,
        2, 0.85, ["RMSNormalization x w > o"]),
    "layer norm": (
        lambda x, y, w, b, m: torch.nn.functional.layer_norm(x, w.shape, w, b, EPSILON),
        2, 0.85, ["LayerNormalization x w b > o"]),
    "softmax": (lambda x, y, w, b, m: torch.softmax(x, -1), 2, 0.7, ["Softmax x > o"]),
    "masked softmax": (
        lambda x, y, w, b, m: torch.softmax(torch.where(m, x, -torch.inf), -1),
        2.25, 0.7, ["Where m x low > t", "Softmax t > o"]),
    "GELU": (lambda x, y, w, b, m: gelu(x), 2, 0.7, ["Gelu x > o"]),
    "SwiGLU": (
        lambda x, y, w, b, m: torch.nn.functional.silu(x) * y, 3, 0.7, ["Sigmoid x > s", "Mul x s > t", "Mul t y > o"]),
    "bias + GELU + residual": (
        lambda x, y, w, b, m: gelu(x + b) + y, 3, 0.7, ["Add x b > s", "Gelu s > t", "Add t y > o"]),
}


class Ours:
    """The library of rivals.cpp."""

    def __init__(self, build):
        os.environ.setdefault("TENON_PLUGIN_PATH", str(build / "lib" / "tenon"))
        path = build / "bin" / "bench" / "libtenon_rivals.so"
        if not path.exists():
            raise SystemExit(f"{path} is not there: cmake --build {build} --target tenon_rivals tenon_cpu")
        self.library = library = ctypes.CDLL(str(path))
        for name in ("rivals_error", "rivals_row"):
            getattr(library, name).restype = ctypes.c_char_p
        library.rivals_row.argtypes = [ctypes.c_size_t]
        library.rivals_open.restype = library.rivals_model.restype = ctypes.c_void_p
        library.rivals_open.argtypes = [ctypes.c_size_t, ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        library.rivals_model.argtypes = [ctypes.c_char_p, ctypes.c_bool]
        library.rivals_input.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_bool, ctypes.c_void_p, ctypes.c_size_t,
                                         ctypes.c_void_p]
        library.rivals_run.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        library.rivals_run.restype = library.rivals_copy.restype = ctypes.c_double
        library.rivals_result.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.rivals_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int64]

    def checked(self, result):
        if result is None or (isinstance(result, (int, float)) and result < 0):
            raise SystemExit(self.library.rivals_error().decode())
        return result

    def row(self, name, compiled, arrays):
        number = 0
        while (found := self.library.rivals_row(number)) is not None and found.decode() != name:
            number += 1
        if found is None:
            raise SystemExit(f"rivals.cpp has no row {name!r}.")
        pointers = (ctypes.c_void_p * 5)(*(array.ctypes.data for array in arrays))
        return self.side(self.library.rivals_open(number, compiled, pointers, *arrays[0].shape), arrays[0].shape)

    def model(self, path, fuse, inputs, shape):
        handle = self.checked(self.library.rivals_model(str(path).encode(), fuse))
        for name, value in inputs.items():
            dims = (ctypes.c_int64 * value.ndim)(*value.shape)
            self.checked(self.library.rivals_input(handle, name.encode(), value.dtype == np.int64, dims, value.ndim,
                                                   value.ctypes.data))
        return self.side(handle, shape)

    def side(self, handle, shape):
        self.checked(handle)

        def result():
            found = np.empty(shape, np.float32)
            self.checked(self.library.rivals_result(handle, found.ctypes.data))
            return found

        return lambda count: self.checked(self.library.rivals_run(handle, count)), result


class Heap:
    """Switches whether malloc keeps the pages of freed large blocks."""

    MOST_MAPPED, TRIM_ABOVE = -4, -1  # parameters of glibc's mallopt

    def __init__(self):
        self.mallopt = ctypes.CDLL(None).mallopt

    def keep(self, keeps):
        self.mallopt(self.MOST_MAPPED, 0 if keeps else 65536)
        self.mallopt(self.TRIM_ABOVE, 2**31 - 1 if keeps else 128 << 10)


def timed(call):
    def run(count):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - begin

    return run


def torch_side(function, inputs):
    def result():
        found = function(*inputs)
        return (found[0] if isinstance(found, tuple) else found).numpy()

    return timed(lambda: function(*inputs)), result


def onnxruntime_side(operators, arrays, threads):
    import onnx
    import onnxruntime

    types = [onnx.TensorProto.FLOAT] * 4 + [onnx.TensorProto.BOOL]
    nodes = [onnx.helper.make_node(line.split()[0], line.split(">")[0].split()[1:], [line.split("> ")[1]],
                                   **({"epsilon": EPSILON} if "Normalization" in line else {})) for line in operators]
    used = [name for name in "xywbm" if any(name in node.input for node in nodes)]
    values = dict(zip("xywbm", zip(types, arrays)))
    low = [onnx.helper.make_tensor("low", onnx.TensorProto.FLOAT, [], [-np.inf])] if "low" in nodes[0].input else []
    graph = onnx.helper.make_graph(
        nodes, "row", [onnx.helper.make_tensor_value_info(n, values[n][0], values[n][1].shape) for n in used],
        [onnx.helper.make_tensor_value_info("o", onnx.TensorProto.FLOAT, arrays[0].shape)], low)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 23)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), session_options(threads), ["CPUExecutionProvider"])
    binding, output = session.io_binding(), np.empty(arrays[0].shape, np.float32)
    for name in used:
        binding.bind_ortvalue_input(name, onnxruntime.OrtValue.ortvalue_from_numpy(values[name][1]))
    binding.bind_ortvalue_output("o", onnxruntime.OrtValue.ortvalue_from_numpy(output))

    def run():
        session.run_with_iobinding(binding)
        return output  # kept, because the binding does not keep it

    return timed(run)


def session_options(threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def measured(sides, heap, rounds):
    """Median seconds of each side: {name: (run, is warm)}. A batch takes about 50 ms."""
    counts, times = {}, {name: [] for name in sides}
    for name, (run, warm) in sides.items():
        heap.keep(warm)
        run(2)
        counts[name] = max(1, min(200, round(0.05 / run(1))))
    for _ in range(rounds):
        for name in random.sample(list(sides), len(sides)):
            run, warm = sides[name]
            heap.keep(warm)
            time.sleep(PAUSE)
            run(1)
            times[name].append(run(counts[name]) / counts[name])
    heap.keep(False)
    return {name: float(np.median(values)) for name, values in times.items()}


def verdict(name, times, error, tolerance, share):
    """Prints the row: times, ratios to Tenon's, and missed bars."""
    ours = times["tenon"]
    bars = {side: bar for side, bar in (BARS | BARS_OF.get(name, {})).items() if side in times}
    if name == "decoder":
        bars = {side: bar for side, bar in bars.items() if side in BARS_OF[name]}
    if share:
        bars["copy"] = 1 / share
    over = sorted(side for side, bar in bars.items() if ours / times[side] > bar)
    row = {"benchmark": "rivals", "row": name, "error": error, "agrees": error <= tolerance, "over": over}
    row["ms"] = {side: round(value * 1e3, 3) for side, value in times.items()}
    row["over tenon"] = {side: round(value / ours, 3) for side, value in times.items()}
    text = " | ".join(f"{side} {value * 1e3:.2f} ms, {value / ours:.2f}" for side, value in times.items() if side != "tenon")
    print(f"{name}: tenon {ours * 1e3:.2f} ms | {text} | over: {', '.join(over) or 'none'}"
          f"{'' if row['agrees'] else f' | DIFFERS by {error}'}", flush=True)
    return row


def largest_difference(want, found):
    return float(np.abs(found - want).max() / (np.abs(want).max() + 1e-30))


def measure_rows(args, ours, heap, peers):
    rows, columns = (int(number) for number in args.shape.split("x"))
    draw = np.random.default_rng(7)
    arrays = [draw.standard_normal((rows, columns), np.float32), draw.standard_normal((rows, columns), np.float32),
              draw.uniform(0.5, 1.5, columns).astype(np.float32), draw.standard_normal(columns, np.float32),
              draw.random((rows, columns)) < 0.9]
    inputs = [torch.from_numpy(array) for array in arrays]
    blocks = [np.ones(3 * rows * columns // 2 * 4 + 64, np.uint8) for _ in range(2)]
    to, source = (block.ctypes.data + -block.ctypes.data % 64 for block in blocks)
    for name, (function, moved, share, operators) in ROWS.items():
        if not re.search(args.rows, name):
            continue
        ours_run, ours_result = ours.row(name, True, arrays)
        compiled = torch.compile(function, dynamic=False)
        bytes_copied = int(moved * rows * columns * 4 / 2) // 64 * 64
        sides = {"tenon": (ours_run, True), "primitives": (ours.row(name, False, arrays)[0], True)}
        sides["copy"] = (lambda count: ours.library.rivals_copy(to, source, bytes_copied, args.threads, count), True)
        want = function(*(torch.from_numpy(a.astype(np.float64)) if a.dtype == np.float32 else torch.from_numpy(a)
                          for a in arrays)).numpy()
        eager, fused = torch_side(function, inputs), torch_side(compiled, inputs)
        for end, warm in (("", False), (" warm", True)):
            sides["eager" + end], sides["torch.compile" + end] = (eager[0], warm), (fused[0], warm)
        if "onnxruntime" in peers:
            try:
                sides["onnxruntime"] = (onnxruntime_side(operators, arrays, args.threads), True)
            except Exception as error:  # a version without the operator
                print(f"{name}: no row of ONNX Runtime: {str(error).splitlines()[0]}", file=sys.stderr)
        times = measured(sides, heap, args.rounds)
        yield verdict(name, times, largest_difference(want, ours_result()), 1e-5, share)


def measure_decoder(args, ours, heap):
    sys.path.insert(0, str(HERE.parent / "models"))
    import export

    torch.manual_seed(2026)
    model, _, names = export.MODELS["llama"]()
    export.randomise(model)
    model.eval()
    draw, past = np.random.default_rng(5), 128
    inputs = {"token": np.array([[77]]), "position": np.array([[past]])}
    for name in names["input_names"][2:]:
        inputs[name] = draw.standard_normal((1, 4, past, 64), np.float32)
    tensors = [torch.from_numpy(inputs[name]) for name in names["input_names"]]
    shape = (1, 1, 32000)
    fused, bare = (ours.model(args.model, fuse, inputs, shape) for fuse in (True, False))
    eager, compiled = torch_side(model, tensors), torch_side(torch.compile(model, dynamic=False), tensors)
    sides = {"tenon": (fused[0], True), "no fusion": (bare[0], True), "eager": (eager[0], False),
             "eager warm": (eager[0], True), "torch.compile": (compiled[0], False)}
    times = measured(sides, heap, args.rounds)
    return verdict("decoder", times, largest_difference(eager[1](), fused[1]()), 1e-4, None)


def load_torch():
    """Loads PyTorch after all other libraries, since its thread-local data leaves no room for ours, and with global symbols.

    PyTorch 2.15 cannot load the library with which it tests vector instructions, and so would not use any: the functions
    of Sleef are not global, and its kernels call them without linking a library that has them.
    """
    os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
    before = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    global torch
    import torch

    sys.setdlopenflags(before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="the build folder of Tenon")
    parser.add_argument("--rows", default="", help="a regular expression: run only rows whose name contains a match")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each side")
    parser.add_argument("--shape", default="16384x768")
    parser.add_argument("--threads", type=int, default=2, help="threads of each side")
    parser.add_argument("--model", type=pathlib.Path, help="llama.onnx, written by export.py")
    parser.add_argument("--packages", type=pathlib.Path, help="a folder with onnxruntime and onnx")
    parser.add_argument("--json", help="append a line per row to this file")
    args = parser.parse_args()
    if args.packages:
        sys.path.append(str(args.packages))
    os.environ["TENON_THREADS"] = str(args.threads)
    ours, heap = Ours(args.build.resolve()), Heap()
    peers = {}
    try:
        import onnx  # noqa: F401
        import onnxruntime

        peers["onnxruntime"] = onnxruntime.__version__
    except ImportError as error:
        print(f"no rows of ONNX Runtime: {error}", file=sys.stderr)
    load_torch()
    torch.set_num_threads(args.threads)
    torch.set_grad_enabled(False)
    peers["torch"] = torch.__version__
    print("milliseconds, and how often Tenon's time fits in them; " + ", ".join(f"{k} {v}" for k, v in peers.items()))
    found = list(measure_rows(args, ours, heap, peers))
    if args.model and re.search(args.rows, "decoder"):
        found.append(measure_decoder(args, ours, heap))
    if args.json:
        with open(args.json, "a") as file:
            file.writelines(json.dumps(row | {"peers": peers}) + "\n" for row in found)
    sys.exit(1 if any(row["over"] or not row["agrees"] for row in found) else 0)


if __name__ == "__main__":
    main()
