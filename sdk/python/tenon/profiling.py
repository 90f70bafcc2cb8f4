"""tenon.profile: which ops ran in a block of a program, how often, where, and how long they took."""

from __future__ import annotations

import collections
import os
import sys
import threading
import time
from typing import Any, Literal, NamedTuple

from tenon import _tenon

# Where the time of an op is read, best first: as the device told it, from launch to end on a stream, as the host saw it.
_CLOCKS = ("device", "stream", "launch", "copy")


class ProfileRow(NamedTuple):
    """One op on one device, as one implementation computed it."""

    op: str
    device: str
    implementation: str  # a kernel's name, or the rung: "decomposed", "compiled", "host"; empty for copies between devices
    launches: int
    seconds: float  # of all launches; where several implementations computed the op, shared out by their launches
    bytes_copied: int  # between devices, or to lay inputs out anew


def _counts() -> dict[tuple[str, str, str], tuple[int, int]]:
    found: dict[tuple[str, str, str], tuple[int, int]] = collections.defaultdict(lambda: (0, 0))
    for each in _tenon._executions():  # which tells reasons and tiers apart, too
        key = each["op"], each["device"], each["implementation"] or each["rung"]
        found[key] = found[key][0] + each["launches"], found[key][1] + each["bytes_copied"]
    return found


def _memory() -> dict[str, dict[str, int]]:
    """Of each device that has computed, or will by default."""
    spelled = {each["device"] for each in _tenon._executions()} | {str(_tenon.Device.current())}
    return {spelling: _tenon.Device(spelling).memory_stats() for spelling in sorted(spelled)}


def _times(events: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, float]]:
    """Launches and seconds by op and device, by the best clock that has the op there."""
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
    """Looks at the ops of a block: `with tenon.profile() as p: ...`. The ops of all threads count.

    path: the file that gets the trace, in Chrome's format (chrome://tracing, Perfetto). show: prints the table at the end of the block,
    to `file` (standard output). After the block, `rows` has a ProfileRow per op, device and implementation, the slowest first; `seconds` is
    what the block took; `memory` has bytes by device: live before and after, and the most since the process began. Work in flight is waited
    for at the end. An op takes about a microsecond more while it is looked at.

    Errors: a RuntimeError inside of another profile, and where TENON_TRACE traces the process."""

    _running = threading.Lock()

    def __init__(self, path: str | os.PathLike[str] | None = None, *, show: bool = True, file: Any = None) -> None:
        self._path, self._show, self._file = path, show, file
        self.rows: list[ProfileRow] = []
        self.memory: dict[str, dict[str, int]] = {}
        self.seconds = 0.0

    def __enter__(self) -> profile:
        import json  # here, since `import tenon` reads this file
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
        """Takes what the trace and the counters say. A method of its own, since __exit__ gives the lock back even if no memory is left."""
        with open(self._trace, encoding="utf-8") as file:
            self._add_rows(_times(self._load(file)["traceEvents"]))
        self.memory = {device: {"before": self._live.get(device, {"live": 0})["live"], "after": stats["live"], "peak": stats["peak"]}
                       for device, stats in _memory().items()}

    def _add_rows(self, times: dict[tuple[str, str], tuple[int, float]]) -> None:
        kinds: dict[tuple[str, str], list[tuple[str, int, int]]] = collections.defaultdict(list)
        for (op, device, implementation), (launches, copied) in _counts().items():
            launches_before, copied_before = self._counted.get((op, device, implementation), (0, 0))
            if launches > launches_before:
                kinds[op, device].append((implementation, launches - launches_before, copied - copied_before))
        for key, (launches, _) in times.items():
            if key not in kinds:  # what is no op, such as a download
                kinds[key].append(("", launches, 0))
        for (op, device), computed in kinds.items():
            per_launch = times.get((op, device), (0, 0.0))[1] / sum(launches for _, launches, _ in computed)
            self.rows += [ProfileRow(op, device, implementation, launches, per_launch * launches, copied) for implementation, launches, copied in computed]
        self.rows.sort(key=lambda row: (-row.seconds, row))

    def __str__(self) -> str:
        total = sum(row.seconds for row in self.rows)
        text = f"{'op':28} {'device':10} {'implementation':16} {'launches':>9} {'total ms':>10} {'mean us':>10} {'share':>6} {'copied MiB':>10}\n"
        for row in self.rows:
            text += (f"{row.op:28} {row.device:10} {row.implementation:16} {row.launches:9} {row.seconds * 1e3:10.3f} {row.seconds / row.launches * 1e6:10.1f} "
                     f"{row.seconds / total if total else 0:6.1%} {row.bytes_copied / 2**20:10.2f}\n")
        text += f"{sum(row.launches for row in self.rows)} launches, {total * 1e3:.3f} ms in them, of {self.seconds * 1e3:.3f} ms\n"
        for device, stats in self.memory.items():
            before, after, peak = (stats[name] / 2**20 for name in ("before", "after", "peak"))
            text += f"{device}: {before:.2f} MiB live before, {after:.2f} MiB after, {peak:.2f} MiB at most since the process began\n"
        return text
