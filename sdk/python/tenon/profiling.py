"""tenon.profile: which ops ran in a block of a program, how often, where, and how long they took."""

from __future__ import annotations

import collections
import os
import sys
import threading
import time
from typing import Any, Literal, NamedTuple

from tenon import _tenon

# Sources of times, best first: the clock of the device, launch to end on a stream, and the time on the host.
_CLOCKS = ("device", "stream", "launch", "copy")


class ProfileRow(NamedTuple):
    """One op on one device, computed by one implementation."""

    op: str
    device: str
    implementation: str  # name of a kernel, or the rung "decomposed", "compiled" or "host"; empty for copies between devices
    tier: str  # the tier of accuracy of a kernel: "full", "portable" or "relaxed"
    launches: int
    seconds: float  # the sum over all launches; implementations of one op share its time in proportion to their launches
    bytes_copied: int  # between devices, or to change the layout of inputs


def _counts() -> dict[tuple[str, str, str, str], tuple[int, int]]:
    found: dict[tuple[str, str, str, str], tuple[int, int]] = collections.defaultdict(lambda: (0, 0))
    for each in _tenon._executions():  # has separate entries for reasons
        key = each["op"], each["device"], each["implementation"] or each["rung"], each["tier"]
        found[key] = found[key][0] + each["launches"], found[key][1] + each["bytes_copied"]
    return found


def _memory() -> dict[str, dict[str, int]]:
    """Returns the memory statistics of each device that has computed, and of the default device."""
    spelled = {each["device"] for each in _tenon._executions()} | {str(_tenon.Device.current())}
    return {spelling: _tenon.Device(spelling).memory_stats() for spelling in sorted(spelled)}


def _times(events: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, float]]:
    """Returns launches and seconds by op and device, from the best source that has the op there."""
    tracks = {each["tid"]: each["args"]["name"] for each in events if each["name"] == "thread_name"}
    found: dict[tuple[str, str, str], tuple[int, float]] = collections.defaultdict(lambda: (0, 0.0))
    for each in events:
        clock = each.get("cat", "")
        if clock in _CLOCKS:
            device = tracks[each["tid"]].split(" stream ")[0] if clock in ("stream", "device") else each["args"]["detail"]
            key = each["name"], device, clock
            found[key] = found[key][0] + 1, found[key][1] + each["dur"] * 1e-6
    best = {}
    for clock in reversed(_CLOCKS):
        best.update({(op, device): sums for (op, device, at), sums in found.items() if at == clock})
    return best


class profile:
    """Records the ops that run in a block, on all threads: `with tenon.profile() as p: ...`.

    Waits at the end for work in flight. An op takes about a microsecond longer while it is recorded.

    Args:
        path: writes the trace to this file, in Chrome's format (chrome://tracing, Perfetto).
        show: prints the table at the end of the block, to `file` (default: standard output).

    After the block:
        rows: a ProfileRow for each op, device and implementation, slowest first.
        seconds: the duration of the block.
        memory: bytes by device: live before and after the block, and the greatest number since the process began.

    Errors: RuntimeError inside another profile, and if TENON_TRACE is set.
    """

    _running = threading.Lock()

    def __init__(self, path: str | os.PathLike[str] | None = None, *, show: bool = True, file: Any = None) -> None:
        self._path, self._show, self._file = path, show, file
        self.rows: list[ProfileRow] = []
        self.memory: dict[str, dict[str, int]] = {}
        self.seconds = 0.0

    def __enter__(self) -> profile:
        import json  # imported here to keep `import tenon` fast
        import tempfile

        if os.environ.get("TENON_TRACE"):
            raise RuntimeError("profile: TENON_TRACE traces this process, which has one trace at a time.")
        if not self._running.acquire(blocking=False):
            raise RuntimeError("profile: another profile runs, and a process has one at a time.")
        try:
            _tenon.synchronize()
            self._counted, self._live, self._load = _counts(), _memory(), json.load
            self._temporary = tempfile.TemporaryDirectory()
            self._trace = os.fspath(self._path) if self._path is not None else os.path.join(self._temporary.name, "trace.json")
            _tenon._trace_begin(self._trace)
        except BaseException:
            self._running.release()
            raise
        self._begin = time.perf_counter()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> Literal[False]:
        try:
            try:
                _tenon.synchronize()
                self.seconds = time.perf_counter() - self._begin
            finally:
                _tenon._trace_end()
            self._read()
        finally:
            self._running.release()
            self._temporary.cleanup()
        if self._show and kind is None:
            (self._file or sys.stdout).write(str(self))
        return False

    def _read(self) -> None:
        """Reads the trace and the counters. A separate method, so that __exit__ releases the lock even if memory
        runs out."""
        with open(self._trace, encoding="utf-8") as file:
            self._add_rows(_times(self._load(file)["traceEvents"]))
        self.memory = {device: {"before": self._live.get(device, {"live": 0})["live"], "after": stats["live"], "peak": stats["peak"]}
                       for device, stats in _memory().items()}

    def _add_rows(self, times: dict[tuple[str, str], tuple[int, float]]) -> None:
        kinds: dict[tuple[str, str], list[tuple[str, str, int, int]]] = collections.defaultdict(list)
        for (op, device, implementation, tier), (launches, copied) in _counts().items():
            launches_before, copied_before = self._counted.get((op, device, implementation, tier), (0, 0))
            if launches > launches_before:
                kinds[op, device].append((implementation, tier, launches - launches_before, copied - copied_before))
        for key, (launches, _) in times.items():
            if key not in kinds:  # events that are not ops, such as a download
                kinds[key].append(("", "", launches, 0))
        for (op, device), computed in kinds.items():
            per_launch = times.get((op, device), (0, 0.0))[1] / sum(launches for _, _, launches, _ in computed)
            self.rows += [ProfileRow(op, device, implementation, tier, launches, per_launch * launches, copied)
                          for implementation, tier, launches, copied in computed]
        self.rows.sort(key=lambda row: (-row.seconds, row))

    def __str__(self) -> str:
        total = sum(row.seconds for row in self.rows)
        text = f"{'op':28} {'device':10} {'implementation':16} {'tier':8} {'launches':>9} {'total ms':>10} {'mean us':>10} {'share':>6} {'copied MiB':>10}\n"
        for row in self.rows:
            implementation = row.implementation + " *" if row.implementation == "plain" else row.implementation
            text += (f"{row.op:28} {row.device:10} {implementation:16} {row.tier:8} {row.launches:9} {row.seconds * 1e3:10.3f} {row.seconds / row.launches * 1e6:10.1f} "
                     f"{row.seconds / total if total else 0:6.1%} {row.bytes_copied / 2**20:10.2f}\n")
        if plain := [row for row in self.rows if row.implementation == "plain"]:
            text += f"* a loop that is not optimised: {sum(row.launches for row in plain)} launches, {sum(row.seconds for row in plain) * 1e3:.3f} ms\n"
        text += f"{sum(row.launches for row in self.rows)} launches, {total * 1e3:.3f} ms in them, of {self.seconds * 1e3:.3f} ms\n"
        for device, stats in self.memory.items():
            before, after, peak = (stats[name] / 2**20 for name in ("before", "after", "peak"))
            text += f"{device}: {before:.2f} MiB live before, {after:.2f} MiB after, {peak:.2f} MiB at most since the process began\n"
        return text
