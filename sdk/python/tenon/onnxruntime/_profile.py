"""The file of InferenceSession.end_profiling(): the nodes of each run, in Chrome's trace format."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any

from tenon import _tenon, profiling

_lock = threading.Lock()
_users = 0  # sessions that use the trace of the process


def _acquire() -> bool:
    """Begins the trace of the process, unless another session has. False if tenon.profile or TENON_TRACE uses it."""
    global _users
    with _lock:
        if _users == 0:
            if os.environ.get("TENON_TRACE") or not profiling.profile._running.acquire(blocking=False):
                return False
            _tenon._trace_begin("")
        _users += 1
        return True


def _release() -> list[Any]:
    """Returns the spans of the trace, and ends it after the last session."""
    global _users
    with _lock:
        spans: list[Any] = _tenon._trace_spans()
        _users -= 1
        if _users == 0:
            _tenon._trace_end()
            profiling.profile._running.release()
        return spans


def _times(launches: list[Any], spans: list[Any]) -> list[tuple[int, int]]:
    """Returns the begin and end of each launch of a run, from the track whose spans are these ops in this order: by the
    clock of the device, from launch to end on a stream, or on the thread of the host. Empty if there is none, as on a
    device that runs several launches as one."""
    ops = [each.op for each in launches]
    for clock in profiling._CLOCKS:
        tracks: dict[int, list[Any]] = {}
        for span in spans:
            if span[1] == clock and span[0] != "segment":  # a segment encloses launches
                tracks.setdefault(span[5], []).append(span)
        for track in tracks.values():
            if [span[0] for span in track] == ops:
                return [(span[3], span[4]) for span in track]
    return []


class Profile:
    """The events of a session whose SessionOptions.enable_profiling is set."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.began = prefix, time.monotonic_ns()
        self._events: list[dict[str, Any]] = []
        self._runs: list[tuple[int, int, list[Any]]] = []
        self._traced, self._ended = _acquire(), False
        self._guard = threading.Lock()

    def _event(self, kind: str, name: str, begin: int, end: int, args: dict[str, Any]) -> None:
        self._events.append({"cat": kind, "pid": os.getpid(), "tid": threading.get_native_id(), "dur": (end - begin) / 1e3,
                             "ts": (begin - self.began) / 1e3, "ph": "X", "name": name, "args": args})

    def session(self, name: str, begin: int, end: int) -> None:
        """Adds a span of the session, such as its loading."""
        with self._guard:
            self._event("Session", name, begin, end, {})

    def run(self, begin: int, end: int, launches: list[Any]) -> None:
        """Adds a run and its launches (tenon.onnx.NodeExecution)."""
        with self._guard:
            self._runs.append((begin, end, launches))
            self._event("Session", "model_run", begin, end, {})

    def _nodes(self, spans: list[Any]) -> None:
        for begin, end, launches in self._runs:
            times = _times(launches, [each for each in spans if begin <= each[3] and each[4] <= end])
            for i, each in enumerate(launches):
                started, ended = times[i] if times else (begin, begin)
                args = {"node_index": str(each.node), "op_name": each.op_type or each.op, "provider": "TenonExecutionProvider", "op": each.op, "device": each.device,
                        "implementation": each.implementation, "rung": each.rung, "reason": each.reason, "tier": each.tier,
                        "bytes_copied": str(each.bytes_copied), "bytes": str(each.bytes), "flops": str(each.flops), "timed": bool(times)}
                self._event("Node", f"{each.node_name or each.op_type or each.op}_kernel_time", started, ended, args)

    def end(self) -> str:
        """Writes the file and returns its name; "" if it was written before."""
        with self._guard:
            if self._ended:
                return ""
            self._ended = True
            self._nodes(_release() if self._traced else [])
            stamp = time.strftime("%Y-%m-%d_%H-%M-%S")
            path = f"{self.prefix}_{stamp}.json" if not self.prefix.endswith("_") else f"{self.prefix}{stamp}.json"
            number = 0
            while os.path.exists(path):
                number += 1
                path = f"{path.removesuffix('.json').removesuffix(f'_{number - 1}')}_{number}.json"
            with open(path, "w", encoding="utf-8") as file:
                json.dump(sorted(self._events, key=lambda event: event["ts"]), file)
            return path
