"""Measures sides in turns and prints rows: medians, ratio, bar."""

import json
import pathlib
import random
import statistics
import sys
import time


def timed(call):
    """`call` as a side: seconds of `count` calls."""
    def run(count):
        begin = time.perf_counter()
        for _ in range(count):
            call()
        return time.perf_counter() - begin

    return run


def medians(sides, rounds, batch):
    """Median seconds of one call, and the distance between quartiles, by side. A batch takes about `batch` seconds."""
    counts, times = {}, {name: [] for name in sides}
    for name, run in sides.items():
        run(2)
        counts[name] = max(1, round(batch / max(run(1), 1e-9)))
        counts[name] = max(1, round(counts[name] * batch / max(run(counts[name]), 1e-9))) if counts[name] > 1 else 1
    for _ in range(rounds):
        for name in random.sample(list(sides), len(sides)):
            times[name].append(sides[name](counts[name]) / counts[name])
    return {name: (statistics.median(each), quartiles(each)) for name, each in times.items()}


def quartiles(values):
    if len(values) < 3:
        return max(values) - min(values)
    first, _, third = statistics.quantiles(values, n=4)
    return third - first


class Report:
    """Prints rows, appends them to a file as JSON, and counts those that miss their bars."""

    def __init__(self, peers, path=None):
        self.peers, self.path, self.missed = peers, path, 0

    def row(self, name, unit, ours, peer, bar, what="ratio", figure=None, wrong=""):
        """`ours` and `peer`: (label, median, spread) in `unit`; `peer` may be None. The bar limits `figure`, by default the
        ratio. `wrong`: the error in the answer, which makes the row void."""
        figure = ours[1] / peer[1] if figure is None else figure
        ok = not wrong and figure <= bar
        sides = " | ".join(f"{label}: {value:.4g} {unit} +-{spread:.2g}" for label, value, spread in (ours, peer) if label) if peer else \
            f"{ours[0]}: {ours[1]:.4g} {unit} +-{ours[2]:.2g}"
        print(f"{name:52} | {sides} | {what} {figure:.3f} | bar {bar:.3f} | {f'VOID: {wrong}' if wrong else 'ok' if ok else 'OVER'}", flush=True)
        self.missed += not ok
        if self.path:
            with open(self.path, "a") as file:
                file.write(json.dumps({"benchmark": pathlib.Path(sys.argv[0]).stem, "row": name, "unit": unit, "ours": ours, "peer": peer, "what": what,
                                       "figure": figure, "bar": bar, "ok": ok, "peers": self.peers}) + "\n")
