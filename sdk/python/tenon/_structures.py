"""Structures: nested arguments and results of a compiled function as hashable keys, with slots in place of tensors."""

from __future__ import annotations

import collections
import enum
import struct
import sys
from typing import Any, Iterator

from tenon._tenon import Device, DType, Tensor


class _Slot:
    """The position of a tensor in a structure."""

    def __repr__(self) -> str:
        return "Tensor"


SLOT = _Slot()


class _Identity:
    """A wrapper that equals only wrappers of the same object, even if the class of the object defines equality."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)

    def __repr__(self) -> str:
        return repr(self.value)


# Objects of these types are interchangeable if they are equal.
_EXACT = frozenset((int, bool, str, bytes, type(None), type(...), type(NotImplemented), DType, Device))


def _is_from_numpy(kind: type, name: str) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and issubclass(kind, getattr(numpy, name))


def _bits(value: float) -> Any:
    """Returns the bytes of NaN and zeros, for which equality does not compare the bits, and other numbers unchanged."""
    return struct.pack("<d", value) if value != value or value == 0 else value


def _number(bits: Any) -> Any:
    return struct.unpack("<d", bits)[0] if isinstance(bits, bytes) else bits


def leaf_of(value: Any) -> tuple[Any, Any]:
    """Returns a hashable key for a value without tensors. Keys are equal for values of the same type with the same
    bits; if the type has no bits, only for the same object."""
    kind: Any = type(value)
    if kind in _EXACT:
        return kind, value
    if kind is float:
        return kind, _bits(value)
    if kind is complex:
        return kind, (_bits(value.real), _bits(value.imag))
    if kind.__eq__ is object.__eq__:
        return _Identity, _Identity(value)
    if _is_from_numpy(kind, "generic") and not value.dtype.hasobject:
        return kind, (value.dtype, value.dtype.str, value.tobytes())
    if _is_from_numpy(kind, "ndarray") and not value.dtype.hasobject:
        return kind, (value.dtype, value.dtype.str, value.shape, value.tobytes())
    if kind.__module__.partition(".")[0] in sys.stdlib_module_names and kind.__hash__ is not None and kind.__module__ != "builtins":
        return kind, (value, repr(value))  # paths, dates, fractions; repr distinguishes decimals that differ in trailing zeros
    return _Identity, _Identity(value)


def _value_of(kind: Any, held: Any) -> Any:
    if kind is _Identity:
        return held.value
    if kind is float:
        return _number(held)
    if kind is complex:
        return complex(_number(held[0]), _number(held[1]))
    if kind in _EXACT:
        return held
    if _is_from_numpy(kind, "generic"):
        return sys.modules["numpy"].frombuffer(held[2], held[0])[0]
    if _is_from_numpy(kind, "ndarray"):
        return sys.modules["numpy"].frombuffer(held[3], held[0]).reshape(held[2]).copy()
    return held[0]


def _key_of(value: Any) -> Any:
    """Returns the structure of an element of a set or of a key of a dict. It has no slots."""
    tensors: list[Tensor] = []
    structure = flatten(value, tensors)
    return (_Identity, _Identity(value)) if tensors else structure


def flatten(value: Any, tensors: list[Tensor]) -> Any:
    """Returns the structure of `value`, with slots in place of its tensors, and appends the tensors to `tensors`.
    Structures are equal if everything but the tensors has the same types and bits."""
    kind = type(value)
    if kind in _EXACT:
        return kind, value
    if isinstance(value, Tensor):
        tensors.append(value)
        return SLOT
    if kind is float:
        return kind, _bits(value)
    if isinstance(value, tuple):
        return kind, tuple([flatten(each, tensors) for each in value])
    if isinstance(value, list):
        return list, tuple([flatten(each, tensors) for each in value])
    if isinstance(value, dict):
        return kind if kind is collections.OrderedDict else dict, tuple([(key if type(key) is str else _key_of(key), flatten(each, tensors)) for key, each in value.items()])
    if isinstance(value, enum.Enum):
        return _Identity, _Identity(value)
    if kind in (set, frozenset):
        return kind, frozenset(map(_key_of, value))
    if kind is slice:
        return kind, tuple([flatten(each, tensors) for each in (value.start, value.stop, value.step)])
    if kind is range:
        return kind, ((int, value.start), (int, value.stop), (int, value.step))
    if hasattr(kind, "__dataclass_fields__") and not callable(value):
        names = dict.fromkeys((*(name for name in kind.__dataclass_fields__ if hasattr(value, name)), *getattr(value, "__dict__", ())))
        return kind, tuple([(name, flatten(getattr(value, name), tensors)) for name in names])
    return leaf_of(value)


def rebuild(structure: Any, tensors: Iterator[Tensor]) -> Any:
    """Returns a copy of the value that flatten() was called with, with `tensors` in its slots."""
    if structure is SLOT:
        return next(tensors)
    kind, held = structure
    if kind in _EXACT or kind is float:
        return _value_of(kind, held)
    if kind in (dict, collections.OrderedDict):
        return kind((key if type(key) is str else rebuild(key, iter(())), rebuild(each, tensors)) for key, each in held)
    if kind in (set, frozenset):
        return kind(rebuild(each, iter(())) for each in held)
    if kind is list or kind is slice or kind is range or issubclass(kind, tuple):
        items = [rebuild(each, tensors) for each in held]
        return kind(*items) if kind in (slice, range) or hasattr(kind, "_fields") else kind(items)
    if hasattr(kind, "__dataclass_fields__"):
        made: Any = object.__new__(kind)
        for name, each in held:
            object.__setattr__(made, name, rebuild(each, tensors))
        return made
    return _value_of(kind, held)
