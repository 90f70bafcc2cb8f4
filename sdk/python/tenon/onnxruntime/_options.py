"""Options of sessions and runs."""

from __future__ import annotations

import enum
import numbers
from typing import Any

from tenon.onnxruntime._refused import REFUSED_ENTRIES, refuse, with_refusals
from tenon.onnxruntime.capi import onnxruntime_pybind11_state as errors


class GraphOptimizationLevel(enum.IntEnum):
    """ORT_DISABLE_ALL: results have the same bits as a run node after node. The others may also change roundings."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Accepted; Tenon orders the launches of a model itself."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Accepted; Tenon orders the launches of a model itself."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class _Checked:
    """An object with fixed attributes, each of one type."""

    _DEFAULTS: dict[str, Any] = {}
    _entries: dict[str, str]

    def __init__(self) -> None:
        self.__dict__.update(self._DEFAULTS, _entries={})

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._DEFAULTS:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'.")
        kind = type(self._DEFAULTS[name])
        if kind is int and isinstance(value, numbers.Integral):
            value = int(value)
        if not isinstance(value, kind):
            raise TypeError(f"{type(self).__name__}.{name} is {value!r}; it must be of type {kind.__name__}.")
        self._check(name, value)
        self.__dict__[name] = value

    def _check(self, name: str, value: Any) -> None:
        pass

    def _add_entry(self, key: str, value: str) -> None:
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"{type(self).__name__}: the entry {key!r} has the value {value!r}; both must be of type str.")
        self._entries[key] = value

    def _entry(self, key: str) -> str:
        if key not in self._entries:
            raise RuntimeError(f"{type(self).__name__} does not have configuration with key: {key}")
        return self._entries[key]


@with_refusals
class SessionOptions(_Checked):
    """Options of a session.

    graph_optimization_level decides which passes rewrite the model, and enable_profiling, profile_file_prefix write the
    file of end_profiling(). The numbers of threads, the memory options, the execution mode and order, and the log
    levels are accepted and change nothing: threads are those of the process (TENON_THREADS), and TENON_LOG logs.
    An attribute that changes results and that Tenon lacks raises NotImplemented; sdk/python/ONNXRUNTIME.md lists them.
    """

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool
    _sizes: dict[str, int]
    _providers: list[tuple[str, dict[str, str]]]
    _DEFAULTS = {
        "enable_cpu_mem_arena": True, "enable_mem_pattern": True, "enable_mem_reuse": True, "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL, "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL, "inter_op_num_threads": 0, "intra_op_num_threads": 0,
        "log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "optimized_model_filepath": "",
        "profile_file_prefix": "onnxruntime_profile_", "use_deterministic_compute": False, "use_per_session_threads": True,
    }

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(_sizes={}, _providers=[])

    def _check(self, name: str, value: Any) -> None:
        if name == "optimized_model_filepath" and value:
            refuse("SessionOptions.optimized_model_filepath")

    def add_free_dimension_override_by_name(self, dim_name: str, dim_value: int) -> None:
        """Fixes the size of the axes that the model calls `dim_name`. A run with another size is an error."""
        if not isinstance(dim_value, numbers.Integral) or int(dim_value) < 0:
            raise TypeError(f"SessionOptions: the size of '{dim_name}' is {dim_value!r}; it must be an int of at least 0.")
        self._sizes[str(dim_name)] = int(dim_value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Sets an entry. "session.model_external_initializers_file_folder_path" is the folder of external weights. Entries
        that would change results raise NotImplemented; others change nothing."""
        allowed, why = REFUSED_ENTRIES.get(key, ((value,), ""))
        if value not in allowed:
            raise errors._error(errors.NotImplemented, f"the session entry {key} is {value!r}, but {why}.")
        self._add_entry(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Returns the value of an entry. Errors: RuntimeError if it was not set."""
        return self._entry(key)

    def add_provider(self, name: str, options: dict[str, str]) -> None:
        """Appends a provider, which a session uses that is made without providers."""
        self._providers.append((str(name), dict(options)))

    def has_providers(self) -> bool:
        """True if add_provider was called."""
        return bool(self._providers)

    def clear_ep_context_data_read_func(self) -> None:
        """Does nothing: there is no such function."""


@with_refusals
class RunOptions(_Checked):
    """Options of a run.

    terminate: True, set from any thread, ends the runs with these options; they raise Fail. False allows new runs.
    only_execute_path_to_fetches, the log levels and the entries are accepted and change nothing.
    """

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    terminate: bool
    _cancellation: Any
    _DEFAULTS = {"log_severity_level": -1, "log_verbosity_level": 0, "logid": "", "only_execute_path_to_fetches": False, "terminate": False}

    def __init__(self) -> None:
        super().__init__()
        from tenon import onnx
        self.__dict__.update(_cancellation=onnx.Cancellation())

    def _check(self, name: str, value: Any) -> None:
        if name != "terminate":
            return
        from tenon import onnx
        if value:
            self._cancellation.cancel()
        elif self._cancellation.cancelled:
            self.__dict__["_cancellation"] = onnx.Cancellation()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Sets an entry, which changes nothing."""
        self._add_entry(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Returns the value of an entry. Errors: RuntimeError if it was not set."""
        return self._entry(key)
