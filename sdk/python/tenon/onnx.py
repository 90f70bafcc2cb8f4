"""ONNX models: tenon.onnx.load("model.onnx")(x), tenon.onnx.export(module, "model.onnx", x)."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tenon import _tenon, autograd, compiling, files
from tenon._structures import flatten, rebuild

try:
    from tenon import _onnx  # type: ignore[attr-defined]
except ImportError as _error:
    raise ImportError("This build of Tenon has no ONNX (Debian: libonnx-dev when it is built).") from _error

class ValueInfo(NamedTuple):
    """An input or output of a model.

    name: its name. type: its type as text, such as "f32[batch, 3]". shape: its dims, numbers or names; None for
    any rank.
    """

    name: str
    type: str
    shape: list[int | str | None] | None


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

    @property
    def info(self) -> dict[str, Any]:
        """Properties that the file states about the model."""
        info: dict[str, Any] = self._model.info()
        return info

    def run(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """Computes the outputs, by name, from the inputs, by name. Arrays and numbers become tensors.

        A tensor of strings may be given as a string, nested lists or an array; it is returned as an array of
        objects. Sequences are lists, ONNX maps are dicts, and an optional without a value is None. The result of
        a ZipMap is a Maps object.
        """
        results = self._model.run({name: _value(value, self._kinds.get(name)) for name, value in inputs.items()})
        return {name: _as_python(value) for name, value in results.items()}

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
         precision: str | None = None) -> Model:
    """Loads a model from a file, or from bytes.

    Args:
        device: where weights are stored and ops run; None takes the default device.
        eager: runs node by node instead of recording a program.
        exact: the recorded program gives the same bits as eager=True.
        precision: how exact ops must be, as in `tenon.precision`; None takes that of the surrounding block.

    Errors: one error lists all nodes that cannot run, one line for each.
    """
    name = "" if device is None else str(device)
    if isinstance(path, (bytes, bytearray)):
        return Model(_onnx._load_bytes(bytes(path), name, eager, exact, precision))
    return Model(_onnx._load(os.fspath(path), name, eager, exact, precision))


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
