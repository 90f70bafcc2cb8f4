"""ONNX models: tenon.onnx.load("model.onnx")(x)."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from tenon import _tenon

try:
    from tenon import _onnx  # type: ignore[attr-defined]
except ImportError as _error:
    raise ImportError("This build of Tenon has no ONNX importer (Debian: libonnx-dev when it is built).") from _error

class ValueInfo(NamedTuple):
    """An input or output: its name, what it is ("f32[batch, 3]"), and its shape, None for any rank; a dim may be a name."""

    name: str
    type: str
    shape: list[int | str | None] | None


class Model:
    """A loaded model. Called with tensors in the order of `inputs`, or by name, it gives its output, or a tuple."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.inputs = [ValueInfo(*each) for each in model.inputs()]
        self.outputs = [ValueInfo(*each) for each in model.outputs()]

    @property
    def info(self) -> dict[str, Any]:
        """What the file says of itself."""
        info: dict[str, Any] = self._model.info()
        return info

    def run(self, inputs: dict[str, Any]) -> dict[str, _tenon.Tensor]:
        """The outputs by name, from the inputs by name; arrays and numbers become tensors."""
        results: dict[str, _tenon.Tensor] = self._model.run({name: value if isinstance(value, _tenon.Tensor) else _tenon.tensor(value) for name, value in inputs.items()})
        return results

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


def load(path: str | os.PathLike[str] | bytes, *, device: Any = None, eager: bool = False, exact: bool = False) -> Model:
    """Loads a model from a file, or from bytes. Whatever in it cannot run is one error, with a line for each node.

    device: where weights and ops are. eager: node after node, without a recording. exact: with the bits of that."""
    name = "" if device is None else str(device)
    if isinstance(path, (bytes, bytearray)):
        return Model(_onnx._load_bytes(bytes(path), name, eager, exact))
    return Model(_onnx._load(os.fspath(path), name, eager, exact))
