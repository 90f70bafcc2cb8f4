"""InferenceSession and IOBinding, on tenon.onnx.Model."""

from __future__ import annotations

import collections.abc
import ctypes
import os
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

import tenon
from tenon import _tenon, onnx
from tenon.onnx import NodeExecution, _as_python, _value
from tenon.onnxruntime._options import GraphOptimizationLevel, RunOptions, SessionOptions
from tenon.onnxruntime._profile import Profile
from tenon.onnxruntime._refused import refuse, with_refusals
from tenon.onnxruntime._values import NUMPY_DTYPES, OrtDevice, OrtValue, array_of, dtype_of, numpy_dtype_of, python_of, tensor_over
from tenon.onnxruntime.capi import onnxruntime_pybind11_state as errors

_TENON, _CUDA, _CPU = "TenonExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"
# ONNX Runtime's providers. Naming one that is not available is a warning; another name is an error.
_KNOWN = ("TensorrtExecutionProvider", _CUDA, "MIGraphXExecutionProvider", "ROCMExecutionProvider", "OpenVINOExecutionProvider", "DnnlExecutionProvider",
          "VitisAIExecutionProvider", "QNNExecutionProvider", "NnapiExecutionProvider", "VSINPUExecutionProvider", "JsExecutionProvider",
          "CoreMLExecutionProvider", "ArmNNExecutionProvider", "ACLExecutionProvider", "DmlExecutionProvider", "RknpuExecutionProvider",
          "WebNNExecutionProvider", "WebGpuExecutionProvider", "XnnpackExecutionProvider", "CANNExecutionProvider", "AzureExecutionProvider", _CPU)
# A tensor over the memory of an array saves a copy; below this size the copy is faster.
_BORROWED = 65536


def get_all_providers() -> list[str]:
    """Returns the names of all providers that a session knows, also those that are not available."""
    return [_TENON, *_KNOWN]


def get_available_providers() -> list[str]:
    """Returns the names of the providers that a session can use here."""
    cuda = any(each.provider == "cuda" and each.usable for each in tenon.devices())
    return [_TENON, *([_CUDA] if cuda else []), _CPU]


def get_device() -> str:
    """Returns "CPU" if the default device is the cpu, else "GPU"."""
    return "CPU" if str(tenon.Device.current()).startswith("cpu") else "GPU"


_FAILURES = (errors.InvalidArgument, errors.Fail, errors.NotImplemented, errors.RuntimeException, errors.EPFail)


class NodeArg(NamedTuple):
    """An input or output of a model. shape: numbers, names, and None for an unknown size."""

    name: str
    type: str
    shape: list[int | str | None]


class ModelMetadata(NamedTuple):
    """Properties that the file states about the model."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


def _chosen(providers: Any, provider_options: Any) -> list[tuple[str, dict[str, str]]]:
    """Returns providers and their options, checked as ONNX Runtime checks them."""
    if not isinstance(providers, collections.abc.Sequence) or isinstance(providers, str):
        raise ValueError("'providers' should be a sequence.")
    if provider_options is not None:
        if not isinstance(provider_options, collections.abc.Sequence):
            raise ValueError("'provider_options' should be a sequence.")
        if len(providers) != len(provider_options):
            raise ValueError("'providers' and 'provider_options' should be the same length if both are given.")
        if not all(isinstance(each, str) for each in providers):
            raise ValueError("Only string values for 'providers' are supported if 'provider_options' is given.")
        if not all(isinstance(each, dict) for each in provider_options):
            raise ValueError("'provider_options' values must be dicts.")
        providers = list(zip(providers, provider_options))
    available = get_available_providers()
    found: dict[str, dict[str, str]] = {}
    for each in providers:
        name, options = (each, {}) if isinstance(each, str) else each if isinstance(each, tuple) and len(each) == 2 else (None, None)
        if not isinstance(name, str) or not isinstance(options, dict):
            raise ValueError("'providers' values must be either strings or (string, dict) tuples.")
        if name not in available:
            warnings.warn(f"Specified provider '{name}' is not in available provider names.Available providers: '{', '.join(available)}'", stacklevel=4)
        if name in found:
            warnings.warn(f"Duplicate provider '{name}' encountered, ignoring.", stacklevel=4)
            continue
        found[name] = {str(key): str(value) for key, value in options.items()}
    for name in found:
        if name not in available and name not in _KNOWN:
            raise RuntimeError(f"Unknown Provider Type: {name}")
    return [(name, options) for name, options in found.items() if name in available]


def _flag(text: str) -> bool | None:
    return {"1": True, "true": True, "0": False, "false": False, "none": None}[text.lower()]


# Options of TenonExecutionProvider: how the text becomes an argument of tenon.onnx.load.
_LOAD_OPTIONS: dict[str, Callable[[str], Any]] = {"device": str, "precision": str, "exact": _flag, "eager": _flag, "fuse": _flag, "wait": _flag, "shapes": str,
                                                  "max_recorded": int}


def _load_arguments(name: str, options: dict[str, str]) -> dict[str, Any]:
    """Returns arguments of tenon.onnx.load for a provider."""
    if name == _CPU:
        return {"device": "cpu"}
    if name == _CUDA:
        return {"device": f"cuda:{options.get('device_id', 0)}"}
    made = {}
    for key, text in options.items():
        if key not in _LOAD_OPTIONS:
            raise errors._error(errors.InvalidArgument, f"Unknown provider option: '{key}'. {_TENON} has {', '.join(_LOAD_OPTIONS)}.")
        try:
            made[key] = _LOAD_OPTIONS[key](text)
        except (ValueError, KeyError):
            raise errors._error(errors.InvalidArgument, f"The option '{key}' of {_TENON} is '{text}', which is not a value of it.") from None
    return made


@with_refusals
class InferenceSession:
    """A model that is ready to run. It has the interface of onnxruntime.InferenceSession.

    Args:
        path_or_bytes: the file of the model, or its content.
        sess_options: SessionOptions; they are read now.
        providers: names, or tuples of a name and a dict of options, the preferred one first. "TenonExecutionProvider"
            takes the options of tenon.onnx.load, such as {"device": "vulkan:0"}; without a device it uses Tenon's
            default device. "CPUExecutionProvider" is the cpu, and "CUDAExecutionProvider" a CUDA device ("device_id").
            None: the default device. A provider that is not available is a warning, and the next one is used; the cpu
            is the last.
        provider_options: a dict for each of `providers`.

    Errors: NoSuchFile, InvalidProtobuf (no model), InvalidGraph (a malformed model), NotImplemented (an operator that
    Tenon lacks; the text has a line for each such node). Providers that do not exist are a warning; with
    enable_fallback=0 they are a RuntimeError, and providers of a wrong form are a ValueError.

    Example:
        >>> session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
        >>> [y] = session.run(["y"], {"x": numpy.ones((2, 3), "f4")})

    `tenon_model` is the tenon.onnx.Model that runs.
    """

    def __init__(self, path_or_bytes: str | bytes | os.PathLike[str], sess_options: SessionOptions | None = None, providers: Any = None,
                 provider_options: Any = None, **kwargs: Any) -> None:
        if not isinstance(path_or_bytes, (str, os.PathLike, bytes)):
            raise TypeError(f"Unable to load from type '{type(path_or_bytes)}'")
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise TypeError(f"InferenceSession: sess_options is {type(sess_options).__name__}; it must be SessionOptions of tenon.onnxruntime.")
        if not isinstance(path_or_bytes, bytes) and os.fspath(path_or_bytes).endswith(".ort"):
            refuse("ORT format")
        self._source = path_or_bytes
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._fallback = int(kwargs.get("enable_fallback", 1)) == 1
        self._profile = Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        if self._profile is not None:
            weakref.finalize(self, self._profile.end)  # a session that ends writes its file
        self._profile_began = self._profile.began if self._profile is not None else time.monotonic_ns()
        self._open(providers, provider_options)

    def _open(self, providers: Any, provider_options: Any) -> None:
        if providers is None and self._options._providers:
            providers = self._options._providers
        try:
            chosen = _chosen(providers, provider_options) if providers is not None else [(_TENON, {})]
        except (ValueError, RuntimeError) as error:
            if not self._fallback:
                raise
            warnings.warn(f"EP Error {error} when using {providers}. Falling back to ['{_CPU}'].", stacklevel=3)
            chosen = []
        chosen = chosen or [(_CPU, {})]
        arguments = _load_arguments(*chosen[0])
        if self._options.graph_optimization_level == GraphOptimizationLevel.ORT_DISABLE_ALL:
            arguments.setdefault("exact", True)
        folder = self._options._entries.get("session.model_external_initializers_file_folder_path")
        began = time.monotonic_ns()
        try:
            self.tenon_model = onnx.load(self._source, external_data_root=folder, **arguments)
        except _tenon.Error as error:
            raise errors._of_load(error) from error
        if self._profile is not None:
            self._profile.session("model_loading_array" if isinstance(self._source, bytes) else "model_loading_uri", began, time.monotonic_ns())
            self._profile.session("session_initialization", began, time.monotonic_ns())
        if chosen[0][0] == _TENON:
            chosen[0] = _TENON, {**chosen[0][1], "device": str(self.tenon_model.device)}
        self._providers = dict(chosen)
        self._providers.setdefault(_CPU, {})
        self._describe()

    def _describe(self) -> None:
        model, sizes = self.tenon_model, self._options._sizes

        def described(infos: list[onnx.ValueInfo]) -> list[NodeArg]:
            return [NodeArg(info.name, info.onnx_type, [sizes.get(dim, dim) if isinstance(dim, str) else dim for dim in info.shape or []]) for info in infos]

        self._inputs, self._outputs, self._defaults = described(model.inputs), described(model.outputs), described(model.defaults)
        self._args = {each.name: each for each in (*self._inputs, *self._defaults)}
        self._fixed = {each.name: each.shape for each in self._args.values()} if sizes else {}
        self._required = frozenset(each.name for each in self._inputs if not each.type.startswith("optional"))
        self._output_names = [each.name for each in self._outputs]
        self._output_types = {each.name: each.type for each in self._outputs}
        self._kinds = model._kinds
        self._run = model._model.run

    # ---- the model and the session ----

    def get_inputs(self) -> list[NodeArg]:
        """Returns a NodeArg for each input without an initialiser."""
        return self._inputs

    def get_outputs(self) -> list[NodeArg]:
        """Returns a NodeArg for each output. Shapes are those that the file declares; [] is also an unknown rank."""
        return self._outputs

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Returns a NodeArg for each input that has an initialiser and may be fed."""
        return self._defaults

    def get_modelmeta(self) -> ModelMetadata:
        """Returns the properties that the file states about the model."""
        info = self.tenon_model.info
        # ONNX Runtime's number for a file without a version.
        return ModelMetadata(info["producer"], info["graph"], info["domain"], info["description"], "",
                             info["version"] or 2**63 - 1, dict(info["metadata"]))

    def get_providers(self) -> list[str]:
        """Returns the names of the providers in use. The first one runs the model."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Returns the options of each provider in use."""
        return {name: dict(options) for name, options in self._providers.items()}

    def set_providers(self, providers: Any = None, provider_options: Any = None) -> None:
        """Loads the model again with other providers."""
        self._open(providers, provider_options)

    def get_session_options(self) -> SessionOptions:
        """Returns the options that the session was made with."""
        return self._options

    def enable_fallback(self) -> None:
        """Lets set_providers fall back to the cpu."""
        self._fallback = True

    def disable_fallback(self) -> None:
        """Makes wrong providers an error in set_providers."""
        self._fallback = False

    # ---- running ----

    def _input(self, name: str, value: Any) -> Any:
        """Converts an input to the form that _onnx takes."""
        kind = self._kinds[name]
        if isinstance(value, OrtValue):
            value = value._value
        if self._fixed:
            self._check_sizes(name, value)
        if kind != "tensor":
            if kind == "sequence":
                self._check_elements(name, value)
            return _value(value, kind)
        if isinstance(value, _tenon.Tensor):
            return value
        if value is None:
            if name in self._required:
                raise errors._error(errors.InvalidArgument, f"Input '{name}' is None; it must be {self._args[name].type}.")
            return value
        if isinstance(value, numpy.ndarray):
            if value.dtype.kind in "USOMmc":
                raise errors._error(errors.InvalidArgument, f"Unexpected input data type for '{name}'. Actual: (an array of {value.dtype}) , "
                                                            f"expected: ({self._args[name].type})")
            return tensor_over(value) if value.nbytes >= _BORROWED else _tenon.tensor(value)
        if isinstance(value, list):
            return _tenon.tensor(numpy.array(value, dtype=NUMPY_DTYPES.get(self._args[name].type)))
        raise RuntimeError(f"Unable to handle object of type {type(value)} for input '{name}'; give an array, a list or an OrtValue.")

    def _check_elements(self, name: str, value: Any) -> None:
        """Checks that a sequence is a list, and that its arrays have the declared dtype."""
        expected = self._args[name].type
        if value is None and name not in self._required:
            return
        if not isinstance(value, (list, tuple)):
            raise errors._error(errors.InvalidArgument, f"Input '{name}' must be a list, for {expected}, but {type(value).__name__} was given.")
        dtype = NUMPY_DTYPES.get(expected[expected.rfind("(") - len("tensor"):].rstrip(")") + ")")
        for each in value:
            if isinstance(each, numpy.ndarray) and dtype is not None and each.dtype != dtype:
                raise errors._error(errors.InvalidArgument, f"Input '{name}' must be {expected}, but a list with an array of {each.dtype} was given.")

    def _check_sizes(self, name: str, value: Any) -> None:
        """Checks the axes that SessionOptions.add_free_dimension_override_by_name has fixed."""
        shape, wanted = getattr(value, "shape", None), self._fixed.get(name)
        if shape is None or wanted is None or len(shape) != len(wanted):
            return
        for axis, size in enumerate(wanted):
            if isinstance(size, int) and size >= 0 and shape[axis] != size:
                raise errors._error(errors.InvalidArgument, f"Got invalid dimensions for input: {name} for the following indices\n index: {axis} "
                                                            f"Got: {shape[axis]} Expected: {size}\n Please fix either the inputs/outputs or the model.")

    def _values(self, input_feed: Any) -> dict[str, Any]:
        """Returns all inputs of a run. Errors: ValueError for missing ones, InvalidArgument for unknown ones."""
        if not self._required <= input_feed.keys():
            missing = [each.name for each in self._inputs if each.name not in input_feed and each.name in self._required]
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(input_feed)}).")
        for name in input_feed:
            if name not in self._kinds:
                raise errors._error(errors.InvalidArgument, f"Invalid input name: {name}. The inputs are {', '.join(self._args)}.")
        try:
            return {name: self._input(name, value) for name, value in input_feed.items()}
        except _tenon.Error as error:
            raise errors._of_run(error) from error

    def _names(self, output_names: Any) -> Sequence[str]:
        if not output_names:
            return self._output_names
        if isinstance(output_names, str):
            raise TypeError(f"run(): output_names is the string {output_names!r}; it must be a list of names: [{output_names!r}].")
        for name in output_names:
            if name not in self._output_types:
                raise errors._error(errors.InvalidArgument, f"Invalid output name:{name}. The outputs are {', '.join(self._output_names)}.")
        return output_names  # type: ignore[no-any-return]

    def _results(self, values: dict[str, Any], run_options: RunOptions | None, bound: dict[str, _tenon.Tensor]) -> dict[str, Any]:
        """Runs the model: its results by name, in the form that _onnx gives."""
        try:
            if run_options is None and self._profile is None:
                return self._run(values, bound, None, None)  # type: ignore[no-any-return]
            request = None if run_options is None else run_options._cancellation._request
            launches: list[Any] | None = None if self._profile is None else []
            began = time.monotonic_ns()
            results: dict[str, Any] = self._run(values, bound, launches, request)
            if self._profile is not None and launches is not None:
                self.tenon_model.device.synchronize()
                self._profile.run(began, time.monotonic_ns(), [NodeExecution(*each) for each in launches])
            return results
        except _tenon.Error as error:
            raise errors._of_run(error) from error

    def _arrays(self, names: Sequence[str], results: dict[str, Any]) -> list[Any]:
        made = []
        for name in names:
            value = results[name]
            try:
                made.append(array_of(value) if isinstance(value, _tenon.Tensor) else python_of(_as_python(value)))
            except _tenon.Error as error:
                raise errors._of_run(error) from error
        return made

    def run(self, output_names: Sequence[str] | None, input_feed: dict[str, Any], run_options: RunOptions | None = None) -> list[Any]:
        """Computes outputs: a list with an array (a list or dict for a sequence or map) for each.

        Args:
            output_names: the outputs that are returned; None: all.
            input_feed: inputs by name: arrays, lists, OrtValues or tensors. Strings are arrays of str.
            run_options: RunOptions; their `terminate` ends the run.

        Errors: ValueError for a missing input; InvalidArgument for an unknown name, and for an input of another dtype or
        shape than the model declares; Fail for a run that was ended; NotImplemented and Fail for an op that failed.
        """
        names = self._names(output_names)
        return self._arrays(names, self._results(self._values(input_feed), run_options, {}))

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: dict[str, OrtValue],
                            run_options: RunOptions | None = None) -> list[OrtValue]:
        """Like run(), with OrtValues as inputs and results. The results stay on the model's device."""
        names = self._names(output_names)
        results = self._results(self._values(input_dict_ort_values), run_options, {})
        return [OrtValue(_as_python(results[name]), onnx_type=self._output_types[name]) for name in names]

    def run_async(self, output_names: Sequence[str] | None, input_feed: dict[str, Any], callback: Callable[[list[Any], Any, str], None], user_data: Any,
                  run_options: RunOptions | None = None) -> None:
        """Like run(), on another thread: returns at once, and later calls callback(results, user_data, error) there. `error`
        is "" if the run succeeded, else its text; `results` is then empty."""
        names, values, refused = self._names(output_names), {}, None
        try:
            values = self._values(input_feed)
        except (RuntimeError, *_FAILURES) as raised:
            refused = raised

        def work() -> None:
            try:
                if refused is not None:
                    raise refused
                results, error = self._arrays(names, self._results(values, run_options, {})), ""
            except Exception as raised:
                results, error = [], errors._plain(raised)
            try:
                callback(results, user_data, error)
            except Exception:
                traceback.print_exc()

        threading.Thread(target=work, name="tenon.onnxruntime.run_async").start()

    def io_binding(self) -> IOBinding:
        """Returns an IOBinding for this session."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Runs with the inputs of the binding and writes the outputs where it says.

        Errors: ValueError for the binding of another session; RuntimeError for all other errors, with the text that
        run() would give.
        """
        if iobinding._session is not self:
            raise ValueError("IOBinding must be used with the session that created it.")
        if not iobinding._outputs:
            raise RuntimeError("Error in execution: At least one output should be requested.")
        try:
            values = self._values(iobinding._inputs)
            bound = {name: value.tensor for name, value in iobinding._outputs.items() if isinstance(value, OrtValue)}
            results = self._results(values, run_options, bound)
            iobinding._results = [iobinding._placed(name, results[name]) for name in iobinding._outputs]
        except (ValueError, *_FAILURES) as error:
            raise RuntimeError(f"Error in execution: {errors._plain(error)}") from error

    def create_ortvalue_from_shape_and_type(self, shape: Sequence[int], element_type: Any, device_type: str, device_id: int = 0, vendor_id: int = -1) -> OrtValue:
        """Like OrtValue.ortvalue_from_shape_and_type."""
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type, device_type, device_id, vendor_id)

    # ---- profiling ----

    def end_profiling(self) -> str:
        """Ends the profile that SessionOptions.enable_profiling began, and returns the name of its file: Chrome's trace
        format, with an event for each launch of each run, its node, kernel and device. Returns "" without a profile.

        The times of launches come from the trace of the process, which tenon.profile and TENON_TRACE may occupy. An event
        with "timed": false has no times.
        """
        profile, self._profile = self._profile, None
        return profile.end() if profile is not None else ""

    def get_profiling_start_time_ns(self) -> int:
        """Returns the begin of the profile on the clock of time.monotonic_ns()."""
        return self._profile_began


class IOBinding:
    """Where a session reads its inputs and writes its outputs. InferenceSession.io_binding() makes it.

    Example:
        >>> binding = session.io_binding()
        >>> binding.bind_cpu_input("x", x)
        >>> binding.bind_output("y")
        >>> session.run_with_iobinding(binding)
        >>> [y] = binding.copy_outputs_to_cpu()
    """

    def __init__(self, session: InferenceSession) -> None:
        self._session = session
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, OrtDevice | OrtValue] = {}
        self._results: list[OrtValue] = []

    def _known(self, name: str, names: Any) -> None:
        if name not in names:
            raise RuntimeError(f"Failed to find NodeArg with name: {name} in the def list; there are {', '.join(names)}.")

    def _at(self, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> OrtValue:
        """Returns a value over memory of the cpu."""
        if device_type.lower() != "cpu":
            refuse("IOBinding.bind to a pointer on a device")
        dtype, dims = numpy_dtype_of(element_type), [int(each) for each in shape]
        size = dtype.itemsize * int(numpy.prod(dims, dtype="i8"))
        if size == 0:
            return OrtValue(tenon.empty(dims, dtype=dtype_of(element_type), device="cpu"))
        memory = numpy.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(int(buffer_ptr)))
        return OrtValue(_tenon.from_numpy(memory.view(dtype).reshape(dims)))

    def bind_cpu_input(self, name: str, arr_on_cpu: Any) -> None:
        """Binds an array. Its elements are read in each run."""
        self._known(name, self._session._args)
        if isinstance(arr_on_cpu, numpy.ndarray) and self._session._kinds.get(name) == "tensor" and arr_on_cpu.dtype.kind not in "USOMmc":
            self._inputs[name] = tensor_over(arr_on_cpu)
        else:
            self._inputs[name] = arr_on_cpu

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int], buffer_ptr: int) -> None:
        """Binds memory of the cpu at an address. It must live until the last run. On another device, use
        bind_ortvalue_input."""
        self._known(name, self._session._args)
        OrtDevice.make(device_type, device_id)
        self._inputs[name] = self._at(device_type, device_id, element_type, shape, buffer_ptr).tensor

    def bind_ortvalue_input(self, name: str, ortvalue: OrtValue) -> None:
        """Binds a value on any device."""
        self._known(name, self._session._args)
        self._inputs[name] = ortvalue._value

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None, shape: Sequence[int] | None = None,
                    buffer_ptr: int | None = None) -> None:
        """Asks for an output: on a device, or in memory of the cpu at an address, which must have the shape and type of the
        output."""
        self._known(name, self._session._output_types)
        device = OrtDevice.make(device_type, device_id)
        if buffer_ptr is None:
            self._outputs[name] = device
            return
        if element_type is None or shape is None:
            raise ValueError("`element_type` and `shape` are to be provided if pre-allocated memory is provided")
        self._outputs[name] = self._at(device_type, device_id, element_type, shape, buffer_ptr)

    def bind_ortvalue_output(self, name: str, ortvalue: OrtValue) -> None:
        """Asks for an output in the memory of a tensor, which must have its shape and type."""
        self._known(name, self._session._output_types)
        self._outputs[name] = OrtValue(ortvalue.tensor)

    def _placed(self, name: str, result: Any) -> OrtValue:
        """Returns a result where the binding wants it."""
        place = self._outputs[name]
        if isinstance(place, OrtValue):
            return place
        value = _as_python(result)
        if isinstance(value, _tenon.Tensor):
            value = value.to(place._device)
        return OrtValue(value, onnx_type=self._session._output_types[name])

    def synchronize_inputs(self) -> None:
        """Does nothing: a run waits for its inputs."""

    def synchronize_outputs(self) -> None:
        """Waits until the outputs of the last run are computed."""
        for each in self._results:
            if isinstance(each._value, _tenon.Tensor):
                each._value.device.synchronize()

    def get_outputs(self) -> list[OrtValue]:
        """Returns the outputs of the last run, in the order in which they were bound."""
        return list(self._results)

    get_outputs_as_ortvaluevector = get_outputs

    def copy_outputs_to_cpu(self) -> list[Any]:
        """Returns copies of the outputs of the last run as arrays, in the order in which they were bound."""
        return [array_of(each._value).copy() if isinstance(each._value, _tenon.Tensor) else python_of(each._value) for each in self._results]

    def clear_binding_inputs(self) -> None:
        """Forgets all inputs."""
        self._inputs.clear()

    def clear_binding_outputs(self) -> None:
        """Forgets all outputs, also those of the last run."""
        self._outputs.clear()
        self._results = []
