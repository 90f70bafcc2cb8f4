"""ONNX models: tenon.onnx.load("model.onnx")(x), tenon.onnx.export(module, "model.onnx", x)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

from tenon import _tenon, autograd, compiling, files
from tenon._structures import flatten, rebuild

try:
    from tenon import _onnx  # type: ignore[attr-defined]
except ImportError as _error:
    raise ImportError("This build of Tenon has no ONNX (Debian: libonnx-dev when it is built).") from _error


class Cancellation:
    """A request to stop runs of models: model.run(inputs, cancellation=it).

    It cannot be withdrawn; later runs take a new one. Any thread may use it.
    """

    def __init__(self) -> None:
        self._request = _onnx._Cancellation()

    def cancel(self) -> None:
        """Ends the runs that were given this object with tenon.Cancelled, and refuses new ones."""
        self._request.cancel()

    @property
    def cancelled(self) -> bool:
        """True if cancel() was called."""
        asked: bool = self._request.cancelled()
        return asked


class ValueInfo(NamedTuple):
    """An input or output of a model.

    name: its name. type: its type as text, such as "f32[batch, 3]". shape: its dims, numbers or names; None for
    any rank. onnx_type: its type as ONNX's tools write it, such as "tensor(float)" or "seq(map(string,tensor(float)))".
    """

    name: str
    type: str
    shape: list[int | str | None] | None
    onnx_type: str


class NodeExecution(NamedTuple):
    """One launch of a run: which node it computed, where, and why there.

    A node may take several launches, and a launch may compute several nodes that were fused.
    """

    node: int  # number of the node in the file; -1: none, or several nodes, which node_name describes
    node_name: str
    op_type: str  # ONNX's name of the operator: "MatMul"
    op: str  # Tenon's name of the op: "matmul"
    device: str  # "cpu:0"
    provider: str  # "cpu"
    implementation: str  # the kernel; empty if no single kernel computed the op
    rung: str  # "native", "decomposed", "compiled" or "host"
    reason: str  # why this rung computed the op; empty on the native rung
    bytes_copied: int  # between devices, or to change the layout of inputs
    tier: str  # the tier of accuracy of a native kernel: "full", "portable" or "relaxed"
    bytes: int  # bytes that the operands hold, where the launch was prepared with the recorded model; otherwise 0
    flops: int  # the arithmetic of such a launch: 2 per multiplication of a product, else 1 per element


class Maps(list[dict[Any, float]]):
    """The result of a ZipMap of a classifier: one dict for each row, {label: probability}.

    keys: the labels. matrix: the probabilities (rows, labels) as a tensor."""

    def __init__(self, keys: list[Any], matrix: _tenon.Tensor) -> None:
        super().__init__(dict(zip(keys, row)) for row in matrix.tolist())
        self.keys = keys
        self.matrix = matrix


def _shape_of(value: Any) -> list[int]:
    """Returns the shape of nested lists, judged by their first elements."""
    return [len(value), *(_shape_of(value[0]) if value else [])] if isinstance(value, (list, tuple)) else []


def _flat(value: Any) -> list[Any]:
    return [leaf for each in value for leaf in _flat(each)] if isinstance(value, (list, tuple)) else [value]


def _strings(value: Any) -> tuple[str, list[int], list[Any]]:
    """Converts a string, nested lists or an array of strings to the form that _onnx takes."""
    shape = list(value.shape) if hasattr(value, "shape") else _shape_of(value)
    flat = _flat(value.tolist() if hasattr(value, "tolist") else value)
    wrong = next((each for each in flat if not isinstance(each, (str, bytes))), None)
    if wrong is not None:
        raise _tenon.InvalidArgument(f"{wrong!r} is not a string; the input takes a tensor of strings.")
    return "strings", shape, flat


def _value(value: Any, kind: str | None = None) -> Any:
    """Converts a value to the form that _onnx takes. Without a kind, the value decides which one that is."""
    if value is None or isinstance(value, _tenon.Tensor):
        return value
    if kind == "tensor":
        return _tenon.tensor(value)
    if kind == "sequence":
        return "sequence", [_value(each) for each in value]
    if isinstance(value, dict):
        return "map", _value(list(value.keys())), _value(list(value.values()))
    if kind == "strings" or isinstance((_flat(value) or [0])[0], (str, bytes)) or getattr(getattr(value, "dtype", None), "kind", None) in ("U", "S", "O"):
        return _strings(value)
    return _tenon.tensor(value)


def _as_python(value: Any) -> Any:
    """Converts a result of _onnx: tensors, arrays of strings, lists, dicts, None."""
    if not isinstance(value, tuple):
        return value
    kind, *parts = value
    if kind == "strings":
        import numpy
        return numpy.array(parts[1], dtype=object).reshape(parts[0])
    if kind == "sequence":
        return [_as_python(each) for each in parts[0]]
    keys = _as_python(parts[0]).tolist()
    return Maps(keys, parts[1]) if kind == "maps" else dict(zip(keys, _as_python(parts[1]).tolist()))


class Model:
    """A loaded model. Call it with tensors in the order of `inputs`, or by name. It returns its output, or a tuple
    of several.

    inputs, outputs: a ValueInfo for each. defaults: further inputs, which have a value in the file and may be
    named in a call.
    """

    def __init__(self, model: Any) -> None:
        self._model = model
        self._kinds: dict[str, str] = model.kinds()
        self.inputs = [ValueInfo(*each) for each in model.inputs()]
        self.defaults = [ValueInfo(*each) for each in model.defaults()]
        self.outputs = [ValueInfo(*each) for each in model.outputs()]
        self._output_names = frozenset(each.name for each in self.outputs)

    @property
    def info(self) -> dict[str, Any]:
        """Properties that the file states about the model."""
        info: dict[str, Any] = self._model.info()
        return info

    @property
    def device(self) -> _tenon.Device:
        """The device that holds the weights and runs the ops."""
        return _tenon.Device(self._model.device())

    @property
    def recorded(self) -> int:
        """How often the model was recorded. One recording serves all sizes that its guards allow."""
        count: int = self._model.recorded()
        return count

    def _check_outputs(self, names: Any) -> None:
        unknown = [name for name in names if name not in self._output_names]
        if unknown:
            known = ", ".join(f"'{each.name}'" for each in self.outputs)
            raise _tenon.InvalidArgument(f"The model has no output {' or '.join(repr(name) for name in unknown)}; its outputs are {known}.")

    @overload
    def run(self, inputs: dict[str, Any], outputs: Sequence[str] | None = None, *, out: dict[str, _tenon.Tensor] | None = None,
            report: Literal[False] = False, cancellation: Cancellation | None = None) -> dict[str, Any]: ...

    @overload
    def run(self, inputs: dict[str, Any], outputs: Sequence[str] | None = None, *, out: dict[str, _tenon.Tensor] | None = None,
            report: Literal[True], cancellation: Cancellation | None = None) -> tuple[dict[str, Any], list[NodeExecution]]: ...

    def run(self, inputs: dict[str, Any], outputs: Sequence[str] | None = None, *, out: dict[str, _tenon.Tensor] | None = None,
            report: bool = False, cancellation: Cancellation | None = None) -> dict[str, Any] | tuple[dict[str, Any], list[NodeExecution]]:
        """Computes outputs, by name, from the inputs, by name. Arrays and numbers become tensors.

        A tensor of strings may be given as a string, nested lists or an array; it is returned as an array of
        objects. Sequences are lists, ONNX maps are dicts, and an optional without a value is None. The result of
        a ZipMap is a Maps object.

        Args:
            outputs: the names of the outputs that are returned, in this order; None returns all. The model computes
                all of them in any case.
            out: tensors, by the names of outputs. The run writes these outputs there and returns the same tensors.
                Shape and dtype must be those of the output; the device may be another.
            report: True also returns a list with a NodeExecution for each launch, in the order of the run.
            cancellation: a Cancellation; its cancel(), on any thread, ends the run with tenon.Cancelled. What `out`
                names then holds undefined values. Ctrl-C ends a run on the main thread with KeyboardInterrupt.

        Errors: InvalidArgument for unknown or missing inputs, an input of another dtype or shape than the model
        declares, an unknown name in `outputs` or `out`, and a tensor in `out` that does not fit. Errors of ops name
        the node.

        Example:
            >>> results = model.run({"x": x}, outputs=["y"])
            >>> results, launches = model.run({"x": x}, report=True)
            >>> [(each.node_name, each.implementation) for each in launches]
        """
        if outputs is not None:
            if isinstance(outputs, str):
                raise TypeError(f"run: outputs is the string {outputs!r}; it must be a list of names: [{outputs!r}].")
            self._check_outputs(outputs)
        if out:
            self._check_outputs(out)
            wrong = next((name for name, value in out.items() if not isinstance(value, _tenon.Tensor)), None)
            if wrong is not None:
                raise TypeError(f"run: out['{wrong}'] is {type(out[wrong]).__name__}; it must be a tenon.Tensor.")
        launches: list[Any] | None = [] if report else None
        kinds = self._kinds
        results = self._model.run({name: _value(value, kinds.get(name)) for name, value in inputs.items()}, out or {}, launches,
                                  None if cancellation is None else cancellation._request)
        for name, tensor in (out or {}).items():
            results[name] = tensor
        chosen = {name: _as_python(results[name]) for name in (results if outputs is None else outputs)}
        return chosen if launches is None else (chosen, [NodeExecution(*each) for each in launches])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if len(args) > len(self.inputs):
            raise TypeError(f"the model takes {len(self.inputs)} inputs, not {len(args)}.")
        given = {info.name: value for info, value in zip(self.inputs, args)}
        twice = sorted(set(given) & set(kwargs))
        if twice:
            raise TypeError(f"the model got two values for its input '{twice[0]}'.")
        results = self.run({**given, **kwargs})
        values = tuple(results[info.name] for info in self.outputs)
        return values[0] if len(values) == 1 else values

    def __repr__(self) -> str:
        texts = [", ".join(f"{each.name}: {each.type}" for each in side) for side in (self.inputs, self.outputs)]
        return f"tenon.onnx.Model({texts[0]} -> {texts[1]})"


def load(path: str | os.PathLike[str] | bytes, *, device: Any = None, eager: bool = False, exact: bool = False,
         precision: str | None = None, fuse: bool | None = None, wait: bool | None = None, shapes: str = "exact",
         max_recorded: int = 16, external_data_root: str | os.PathLike[str] | None = None) -> Model:
    """Loads a model from a file, or from bytes.

    Args:
        device: where weights are stored and ops run; None takes the default device.
        eager: runs node by node instead of recording a program.
        exact: the recorded program gives the same bits as eager=True: no pass rewrites it that changes roundings.
        precision: how exact ops must be, as in `tenon.precision`; None takes that of the surrounding block.
        fuse: True or False decides if ops are joined into one kernel; None leaves it to TENON_FUSE.
        wait: True waits in the first run for kernels that a device compiles, so that every run launches the same ones;
            False runs op by op until they are ready; None leaves it to TENON_COMPILE.
        shapes: how strictly inputs must match the declared shapes: "exact" (all fixed dims), "rank" (only the rank;
            for files that declare lengths which are not meant) or "any" (no check).
        max_recorded: how many prepared programs the model keeps, one for each combination of input shapes. The
            least recently used one is dropped first.
        external_data_root: the folder of external weights; None takes the folder of the file. A model from bytes has
            no external weights without it.

    Errors: NotFound if there is no such file; InvalidArgument for a file that is not a model or is malformed, and for an
    option with a wrong value; Unsupported if nodes cannot run. One error lists all such nodes, one line for each.

    Example:
        >>> model = tenon.onnx.load("model.onnx", device="cpu")
        >>> y = model(x)
    """
    if not 0 < max_recorded < 2**32:
        raise _tenon.InvalidArgument(f"onnx.load: max_recorded is {max_recorded}; it must be from 1 to {2**32 - 1}.")
    options = {"device": "" if device is None else str(device), "eager": eager, "exact": exact, "precision": precision, "fuse": fuse, "wait": wait,
               "shapes": shapes, "max_recorded": max_recorded,
               "external_data_root": "" if external_data_root is None else os.fspath(external_data_root)}
    if isinstance(path, (bytes, bytearray)):
        return Model(_onnx._load_bytes(bytes(path), options))
    return Model(_onnx._load(os.fspath(path), options))


def _as_axes(name: str, axes: Any) -> dict[int, str]:
    """Converts the dynamic_axes of one input, {0: "batch"} or a list of axes, to a dict."""
    if isinstance(axes, dict):
        return {int(axis): str(called) for axis, called in axes.items()}
    if isinstance(axes, (list, tuple)):
        return {int(axis): "" for axis in axes}
    raise TypeError(f"export: dynamic_axes['{name}'] is {axes!r}; it must be a list of axes, or a dict of axes and the names of their sizes.")


def _names_of(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """Returns a name for each tensor among the arguments: the name of its parameter, with a number if it holds several
    tensors."""
    import inspect
    called = getattr(function, "forward", function)
    try:
        given = inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        return []
    names = []
    for name, value in given.items():
        held: list[_tenon.Tensor] = []
        flatten(value, held)
        names += [name] if isinstance(value, _tenon.Tensor) else [f"{name}_{i}" for i in range(len(held))]
    return names


def _recorded_call(compiled: compiling.Compiled) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Returns arguments like those of the only kind of call that was recorded."""
    if len(compiled._examples) != 1:
        kinds = len(compiled._examples)
        raise _tenon.InvalidArgument(
            f"export: the compiled function was recorded for {kinds} kinds of calls" + (
                "; say with args which one is meant." if kinds else "; call it first, or give args."))
    [(structure, examples)] = compiled._examples.items()
    tensors = [_tenon.empty(list(shape), dtype=dtype, device=device) for shape, dtype, device in examples]
    args, kwargs = rebuild(structure, iter(tensors))
    return args, kwargs


def _refuse_training(function: Any) -> None:
    """Raises an error if a module has a layer that computes something else in training."""
    from tenon import nn
    from tenon.nn import activation, normalization
    for name, module in function.named_modules() if isinstance(function, nn.Module) else ():
        differs = isinstance(module, (activation._Dropout, activation.RReLU, normalization._BatchNorm)) or getattr(module, "dropout", 0)
        if module.training and differs:
            raise _tenon.InvalidArgument(f"export: the module is in training mode, in which {name or 'it'} ({type(module).__name__}) computes "
                                         "something else. Call eval() on the module first.")


def export(function: Any, path: str | os.PathLike[str], args: Any = None, kwargs: dict[str, Any] | None = None, *,
           input_names: list[str] | None = None, output_names: list[str] | None = None, dynamic_axes: dict[str, Any] | None = None) -> None:
    """Writes a function of tensors, such as a module, as an ONNX model of opset 17.

    Args:
        function: is recorded once with args and kwargs. Tensors from outside, such as parameters, become initialisers.
        args, kwargs: example arguments; args is a tuple or a single argument. Only shapes and dtypes of tensors matter;
            other arguments become part of the model. A compiled function that was called needs none.
        input_names: by default the names of the parameters of the function.
        output_names: by default "output", or "output_0", "output_1" and so on.
        dynamic_axes: axes whose size stays open, such as {"x": {0: "batch"}} or {"x": [0]}. By default all axes whose
            size did not influence the recording; {} leaves none open.

    Errors: one error lists all ops that ONNX lacks.
    """
    target = os.fspath(path)
    compiled = function if isinstance(function, compiling.Compiled) else None
    called = compiled._function if compiled is not None else function
    if not callable(called):
        raise TypeError(f"export: the first argument is {function!r}; it must be a function, a module or a compiled function.")
    if args is None and kwargs is None and compiled is not None:
        args, kwargs = _recorded_call(compiled)
    elif args is None and kwargs is None:
        raise TypeError("export: args is missing; the function is recorded on them.")
    args, kwargs = args if isinstance(args, tuple) else () if args is None else (args,), kwargs or {}
    tensors: list[_tenon.Tensor] = []
    structure = flatten((args, kwargs), tensors)
    if not tensors:
        raise _tenon.InvalidArgument("export: no argument is a tensor; arrays and numbers would be constants of the model.")

    def run(values: list[_tenon.Tensor]) -> list[_tenon.Tensor]:
        given, named = rebuild(structure, iter(values))
        made: list[_tenon.Tensor] = []
        with autograd.no_grad():
            flatten(called(*given, **named), made)
        if not made:
            raise _tenon.InvalidArgument("export: the function gives no tensor.")
        return made

    _refuse_training(called)
    state = getattr(called, "state_dict", None)
    written = _onnx._export(run, tensors, name=getattr(called, "__name__", type(called).__name__),
                            inputs=list(input_names) if input_names is not None else _names_of(called, args, kwargs),
                            outputs=list(output_names or []),
                            dynamic_axes=None if dynamic_axes is None else {name: _as_axes(name, axes) for name, axes in dynamic_axes.items()},
                            parameters=state() if callable(state) else {})
    with files._whole_file(target) as file:
        file.write(written)
