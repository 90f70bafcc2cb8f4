"""Times a fresh process from exec to its first result: repeated runs of `tenon run` on the demo's model.

usage: start.py TENON MODEL INPUT [--runs 20]

MODEL and INPUT are sdk/app/examples/demo/shapes.onnx and `NAME=random`. Prints one JSON row: the median, the quartiles and
the least time in milliseconds, process start and exit included, and the bar of 100.
"""
import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

BAR_MS = 100


def once(command):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{done.stderr[-2000:]}")
    return (time.perf_counter() - begin) * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tenon")
    parser.add_argument("model")
    parser.add_argument("input")
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        command = [arguments.tenon, "run", arguments.model, "--input", arguments.input, "--output", folder,
                   "--device", "cpu"]
        once(command)
        times = sorted(once(command) for _ in range(arguments.runs))
    low, middle, high = statistics.quantiles(times, n=4)
    print(json.dumps({"row": "process start to first result, demo model", "median_ms": round(middle, 1),
                      "quartiles_ms": [round(low, 1), round(high, 1)], "least_ms": round(times[0], 1),
                      "bar_ms": BAR_MS, "ok": middle <= BAR_MS}))
    sys.exit(middle > BAR_MS)


if __name__ == "__main__":
    main()
