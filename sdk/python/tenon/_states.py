"""Training states as tensors by name and one text, which a safetensors file holds.

The text is JSON: {"version": 1, "state": value}. None, booleans, strings, most numbers and lists are JSON's own. Each
JSON object stands for another value and has one entry, its kind:

    {"int": "0x..."} {"float": "inf"} {"complex": [real, imaginary]}
    {"tensor": [name, word...]}         the words "parameter" and "requires_grad" if they apply
    {"packed": [dtype, shape, name]}    a tensor of less than 8 bits per element; the name is that of its bytes
    {"bytes": name} {"bytearray": name} the name of a tensor of u8
    {"array": [dtype, shape, name]} {"scalar": [dtype, shape, name]}    of NumPy
    {"tuple": [...]} {"set": [...]} {"frozenset": [...]}
    {"dict": {...}} {"dict": [[key, value]...]} {"OrderedDict": [[key, value]...]} {"Counter": [[key, value]...]}
    {"dtype": name} {"device": spelling} {"generator": [seed, offset]}
"""

from __future__ import annotations

import collections
import functools
import json
import math
import re
import sys
from typing import Any, Callable

from tenon import _tenon
from tenon.random import generator_at
from tenon._tenon import Tensor

# Errors that Python raises where a damaged file is read.
FAULTS = (ArithmeticError, AttributeError, EOFError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError)
_KEY = "tenon.state"
_VERSION = 1
_DEEPEST = 100
_ARRAY_KINDS = "biufcSUMm"
_ARRAY_DTYPE = re.compile(rf"[<>|][{_ARRAY_KINDS}]\d+(\[\d*\w+\])?")
_DICTS: dict[str, type] = {each.__name__: each for each in (dict, collections.OrderedDict, collections.Counter)}
_LISTS: dict[str, type] = {each.__name__: each for each in (tuple, set, frozenset)}


def encoded(state: Any) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Returns the tensors by name, and the texts by name. Errors: TypeError for a value that a state does not hold."""
    writer = _Writer()
    tree = {"version": _VERSION, "state": writer.encode(state, ())}
    return writer.tensors, {_KEY: json.dumps(tree, separators=(",", ":"), allow_nan=False)}


def decoded(path: str, tensors: dict[str, Tensor], texts: dict[str, str], device: Any) -> Any:
    """Returns the state that `encoded` received. Without the text, the file is one of tensors by name, which are
    returned. Errors: InvalidArgument that names the file and the fault."""
    if _KEY not in texts:
        return tensors
    try:
        tree = json.loads(texts[_KEY])
        if tree["version"] != _VERSION:
            raise ValueError(f"it has version {tree['version']} of the format, and this Tenon reads version {_VERSION}")
        return _Reader(tensors, device).decode(tree["state"])
    except FAULTS as error:
        raise _tenon.InvalidArgument(f"load(): the state in the file {path} cannot be read: {type(error).__name__}: {error}") from error


def _numpy() -> Any:
    """NumPy if the program has imported it: otherwise no value is of its types."""
    return sys.modules.get("numpy")


class _Writer:
    """Turns values into JSON, and collects their tensors."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self._names: dict[Any, str] = {}  # by place in memory: the tensors that have been added

    def encode(self, value: Any, path: tuple[Any, ...]) -> Any:
        if len(path) > _DEEPEST:
            raise ValueError(f"save(): '{_text(path[:4])}...' is nested more than {_DEEPEST} levels deep, or contains itself.")
        kind, numpy = type(value), _numpy()
        if value is None or kind in (bool, str):
            return value
        if kind is int:
            return value if value.bit_length() <= 64 else {"int": hex(value)}
        if kind is float:
            return value if math.isfinite(value) else {"float": repr(value)}
        if kind is complex:
            return {"complex": [self.encode(each, path) for each in (value.real, value.imag)]}
        if kind is list:
            return self._items(value, path)
        if kind.__name__ in _LISTS and kind is _LISTS[kind.__name__]:
            return {kind.__name__: self._items(value, path)}
        if kind.__name__ in _DICTS and kind is _DICTS[kind.__name__]:
            return {kind.__name__: self._pairs(value, path)}
        if isinstance(value, Tensor):
            return self._tensor(value, path)
        if kind in (bytes, bytearray):
            return {kind.__name__: self._add_bytes(bytes(value), path)}
        if isinstance(value, _tenon.DType):
            return {"dtype": value.name}
        if isinstance(value, _tenon.Device):
            return {"device": str(value)}
        if isinstance(value, _tenon.Generator):
            return {"generator": list(value.get_state())}
        if numpy and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in _ARRAY_KINDS and kind is not numpy.ma.MaskedArray:
            return {"array" if isinstance(value, numpy.ndarray) else "scalar": [value.dtype.str, list(value.shape), self._add_bytes(value.tobytes(), path)]}
        raise TypeError(f"save(): {repr(_text(path)) if path else 'the object'} is a {kind.__module__}.{kind.__qualname__}. " + _advice(value))

    def _items(self, items: Any, path: tuple[Any, ...]) -> list[Any]:
        return [self.encode(each, (*path, i)) for i, each in enumerate(items)]

    def _pairs(self, items: Any, path: tuple[Any, ...]) -> Any:
        if type(items) is dict and all(type(key) is str for key in items):
            return {key: self.encode(each, (*path, key)) for key, each in items.items()}
        return [[self.encode(key, (*path, key)), self.encode(each, (*path, key))] for key, each in items.items()]

    def _tensor(self, value: Tensor, path: tuple[Any, ...]) -> Any:
        if value.is_global:
            raise TypeError(f"save(): '{_text(path)}' is a tensor over several processes. Save it with tenon.global_.save, or save its to_local().")
        plain = value.detach()
        if plain.dtype.bits < 8:
            return {"packed": [plain.dtype.name, list(plain.shape), self._add_bytes(_tenon._elements_of(plain), path)]}
        words = [word for word, applies in (("parameter", _is_parameter(value)), ("requires_grad", value.requires_grad)) if applies]
        place: Any = (plain.data_ptr(), plain.shape, plain.stride(), plain.dtype, plain.device) if plain.numel() else None
        if place is None or place[0] == 0:  # no elements, or not in host memory
            place = id(value)
        if place not in self._names:
            self._names[place] = self._add(plain, path)
        return {"tensor": [self._names[place], *words]}

    def _add_bytes(self, value: bytes, path: tuple[Any, ...]) -> str:
        return self._add(_tenon._from_elements(value, (len(value),), _tenon.u8, "cpu"), path)

    def _add(self, tensor: Tensor, path: tuple[Any, ...]) -> str:
        name = base = _text(path).encode("utf-8", "replace").decode() or "tensor"
        number = 1
        while name in self.tensors or name == "__metadata__":
            number += 1
            name = f"{base}#{number}"
        self.tensors[name] = tensor
        return name


def _text(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _is_parameter(value: Tensor) -> bool:
    return "tenon.nn.parameter" in sys.modules and isinstance(value, sys.modules["tenon.nn.parameter"].Parameter)


def _advice(value: Any) -> str:
    if hasattr(value, "state_dict"):
        return "Save its state_dict(), and give the loaded one to load_state_dict()."
    return "A state holds Tensors, numbers, strings, bytes, None, dtypes, devices, generators, NumPy arrays, and dicts, lists, tuples and sets of these."


def stored_device(spelling: str, device: Any) -> Any:
    """Returns a device that a file contains: `device` if the caller of load named one."""
    try:
        return _tenon.Device(spelling if device is None else str(device))
    except _tenon.Error as error:
        raise ValueError(f"it contains the device '{spelling}', which cannot be opened here. map_location='cpu' replaces it. {error}") from error


def tensor_of(elements: bytes, shape: tuple[int, ...], dtype: Any, device: Any) -> Tensor:
    """Returns a tensor with these elements on `device`; None takes the default device."""
    made: Tensor = _tenon._from_elements(elements, shape, dtype, _tenon.Device.current() if device is None else device)
    return made


class _Reader:
    """Turns JSON into values."""

    def __init__(self, tensors: dict[str, Tensor], device: Any) -> None:
        self._tensors, self._device = tensors, device
        self._made: dict[tuple[Any, ...], Tensor] = {}
        self._kinds: dict[str, Callable[[Any], Any]] = {
            "int": lambda given: int(given, 16), "float": float, "complex": lambda given: complex(*map(self.decode, given)),
            "tensor": self._tensor, "packed": self._packed, "bytes": self._bytes, "bytearray": lambda given: bytearray(self._bytes(given)),
            "array": self._array, "scalar": lambda given: self._array(given)[()],
            "dtype": _dtype, "device": lambda given: stored_device(given, self._device),
            "generator": generator_at,
            **{name: functools.partial(self._list, kind) for name, kind in _LISTS.items()},
            **{name: functools.partial(self._dict, kind) for name, kind in _DICTS.items()},
        }

    def decode(self, given: Any) -> Any:
        if isinstance(given, list):
            return [self.decode(each) for each in given]
        if not isinstance(given, dict):
            return given
        (kind, content), = given.items()
        return self._kinds[kind](content)

    def _list(self, kind: Any, given: Any) -> Any:
        return kind(map(self.decode, given))

    def _dict(self, kind: Any, given: Any) -> Any:
        made = kind()
        for key, value in given.items() if isinstance(given, dict) else ((self.decode(key), value) for key, value in given):
            made[key] = self.decode(value)
        return made

    def _bytes(self, name: str) -> bytes:
        if self._tensors[name].dtype != _tenon.u8:
            raise ValueError(f"'{name}' does not hold bytes")
        elements: bytes = _tenon._elements_of(self._tensors[name])
        return elements

    def _tensor(self, given: Any) -> Tensor:
        key = tuple(given)
        if key not in self._made:
            name, *words = given
            tensor: Tensor = self._tensors[name].detach()
            if "parameter" in words:
                from tenon.nn.parameter import Parameter
                tensor = Parameter(tensor, requires_grad="requires_grad" in words)
            elif "requires_grad" in words:
                tensor.requires_grad_()
            self._made[key] = tensor
        return self._made[key]

    def _packed(self, given: Any) -> Tensor:
        dtype, shape, name = given
        elements, kind = self._bytes(name), _dtype(dtype)
        if min(shape, default=0) < 0 or (math.prod(shape) * kind.bits + 7) // 8 != len(elements):
            raise ValueError(f"'{name}' has {len(elements)} bytes, which do not fill a tensor of shape {tuple(shape)}")
        return tensor_of(elements, tuple(shape), kind, self._device)

    def _array(self, given: Any) -> Any:
        import numpy
        dtype, shape, name = given
        if not _ARRAY_DTYPE.fullmatch(dtype):
            raise ValueError(f"'{dtype}' is not a dtype of numbers or texts")
        return numpy.frombuffer(bytearray(self._bytes(name)), dtype).reshape(shape)


def _dtype(name: str) -> Any:
    found = getattr(_tenon, name, None)
    if not isinstance(found, _tenon.DType):
        raise ValueError(f"'{name}' is not a dtype")
    return found
