"""Reads pickles of plain data without running code.

A pickle is a program for a small stack machine. Python's own reader imports any class that the pickle names and calls it.
This reader knows the instructions that plain data needs, and calls only the functions that it is given.
"""

from __future__ import annotations

import collections
import struct
from typing import Any, Callable

_MARK = object()


class Global:
    """A class or function that a pickle names. `make` replaces it in calls; None if it must not be called."""

    def __init__(self, name: str, make: Callable[..., Any] | None = None) -> None:
        self.name, self.make = name, make


class Fault(ValueError):
    """The pickle is damaged, or contains something other than plain data."""


def _complex(*parts: float) -> complex:
    if not all(type(part) is float for part in parts):
        raise Fault("a complex number has parts that are not numbers")
    return complex(*parts)


def _encoded(text: str, encoding: str) -> bytes:
    """Stands for _codecs.encode, which pickles of protocol 2 call to make bytes."""
    if type(text) is not str or encoding != "latin1":
        raise Fault(f"_codecs.encode is called for the encoding {encoding!r}")
    return text.encode("latin1")


def _counted(pairs: Any = ()) -> Any:
    if not isinstance(pairs, dict):
        raise Fault("a Counter is made of something other than a dict")
    return collections.Counter(dict(pairs))


def _keys(items: Any) -> list[Any]:
    for each in items:
        for part in each if type(each) is tuple else (each,):
            if type(part) in (tuple, list, dict, set, frozenset, bytearray) or type(part).__hash__ is None:
                raise Fault(f"a {type(part).__name__} is part of a key of a dict or set")
    return list(items)


_BUILTINS: dict[str, Callable[..., Any]] = {
    "set": lambda items=(): set(_keys(items)), "frozenset": lambda items=(): frozenset(_keys(items)),
    "bytearray": lambda *given: bytearray(_encoded(*given) if len(given) == 2 else b"".join(map(bytes, given))), "bytes": lambda: b"", "complex": _complex,
}
PLAIN: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): collections.OrderedDict, ("collections", "Counter"): _counted, ("_codecs", "encode"): _encoded,
    **{(module, name): make for module in ("builtins", "__builtin__") for name, make in _BUILTINS.items()},
}


class Reader:
    """Reads the pickles that lie one after the other in `data`.

    find(module, name) returns a value for a name outside of PLAIN, or a Global. find_stored(id) returns the object for a
    persistent id. `at` is the place after the last pickle.
    """

    def __init__(self, data: bytes, find: Callable[[str, str], Any], find_stored: Callable[[Any], Any]) -> None:
        self._data, self.at = data, 0
        self._find, self._find_stored = find, find_stored

    def load(self) -> Any:
        """Returns the object of the next pickle. Errors: Fault."""
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        try:
            while (code := self._bytes(1)) != b".":
                step = _STEPS.get(code)
                if step is None:
                    raise Fault(f"it has the instruction {code!r} at byte {self.at - 1}, which plain data does not need")
                step(self)
            return self._pop()
        except Fault:
            raise
        except (ArithmeticError, AttributeError, LookupError, NotImplementedError, RecursionError, TypeError, ValueError, struct.error) as error:
            raise Fault(f"its instruction before byte {self.at} fails: {type(error).__name__}: {error}") from error

    # ---- bytes ----

    def _bytes(self, count: int) -> bytes:
        found = self._data[self.at:self.at + count]
        if len(found) != count:
            raise Fault(f"it ends at byte {len(self._data)}, in the middle of a value")
        self.at += count
        return found

    def _number(self, layout: str) -> Any:
        return struct.unpack("<" + layout, self._bytes(struct.calcsize("<" + layout)))[0]

    def _sized(self, layout: str) -> bytes:
        return self._bytes(self._number(layout))

    def _string(self, layout: str) -> str:
        return self._sized(layout).decode("utf-8", "surrogatepass")

    def _line(self) -> str:
        end = self._data.find(b"\n", self.at, self.at + 1000)
        if end < 0:
            raise Fault(f"the name at byte {self.at} does not end")
        line = self._bytes(end + 1 - self.at)
        return line[:-1].decode()

    # ---- the stack ----

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise Fault(f"a value is missing before byte {self.at}")
        return value

    def _marked(self) -> list[Any]:
        """Removes the values after the last mark, and the mark."""
        place = next((i for i in range(len(self._stack) - 1, -1, -1) if self._stack[i] is _MARK), None)
        if place is None:
            raise Fault(f"a mark is missing before byte {self.at}")
        values = self._stack[place + 1:]
        del self._stack[place:]
        return values

    def _replace(self, count: int, make: Callable[..., Any]) -> None:
        values = [self._pop() for _ in range(count)][::-1]
        self._push(make(*values))

    def _top(self, *kinds: type) -> Any:
        if type(self._stack[-1]) not in kinds:
            raise Fault(f"a value is added to a {type(self._stack[-1]).__name__} before byte {self.at}")
        return self._stack[-1]

    def _set_items(self, values: list[Any]) -> None:
        into = self._top(dict, collections.OrderedDict, collections.Counter)
        if len(values) % 2:
            raise Fault(f"a key has no value before byte {self.at}")
        into.update(dict(zip(_keys(values[::2]), values[1::2])))

    # ---- names and calls ----

    def _named(self, module: str, name: str) -> None:
        make = PLAIN.get((module, name))
        self._push(Global(f"{module}.{name}", make) if make else self._find(module, name))

    def _call(self, function: Any, arguments: Any) -> Any:
        if not isinstance(function, Global) or function.make is None or type(arguments) is not tuple:
            raise Fault(f"it calls {function.name if isinstance(function, Global) else type(function).__name__}, which is not possible here")
        return function.make(*arguments)

    def _build(self, state: Any) -> None:
        """Leaves out the attributes of an OrderedDict: a state_dict has some that say which version wrote it."""
        self._top(collections.OrderedDict)


def _steps() -> dict[bytes, Callable[[Reader], Any]]:
    r = Reader

    def push(value: Callable[[Reader], Any]) -> Callable[[Reader], Any]:
        return lambda self: r._push(self, value(self))

    def remember(key: Callable[[Reader], int]) -> Callable[[Reader], Any]:
        return lambda self: self._memo.__setitem__(key(self), self._stack[-1])

    return {
        b"\x80": lambda self: self._bytes(1), b"\x95": lambda self: self._bytes(8),  # protocol, frame
        b"(": push(lambda self: _MARK), b"0": lambda self: self._stack.pop(), b"1": lambda self: self._marked(), b"2": push(lambda self: self._stack[-1]),
        b"N": push(lambda self: None), b"\x88": push(lambda self: True), b"\x89": push(lambda self: False),
        b"K": push(lambda self: self._number("B")), b"M": push(lambda self: self._number("H")), b"J": push(lambda self: self._number("i")),
        b"\x8a": push(lambda self: int.from_bytes(self._sized("B"), "little", signed=True)),
        b"\x8b": push(lambda self: int.from_bytes(self._sized("I"), "little", signed=True)),
        b"G": push(lambda self: struct.unpack(">d", self._bytes(8))[0]),
        b"\x8c": push(lambda self: self._string("B")), b"X": push(lambda self: self._string("I")), b"\x8d": push(lambda self: self._string("Q")),
        b"U": push(lambda self: self._string("B")), b"T": push(lambda self: self._string("I")),
        b"C": push(lambda self: self._sized("B")), b"B": push(lambda self: self._sized("I")), b"\x8e": push(lambda self: self._sized("Q")),
        b"\x96": push(lambda self: bytearray(self._sized("Q"))),
        b")": push(lambda self: ()), b"]": push(lambda self: []), b"}": push(lambda self: {}), b"\x8f": push(lambda self: set()),
        b"t": push(lambda self: tuple(self._marked())), b"l": push(lambda self: self._marked()), b"\x91": push(lambda self: frozenset(_keys(self._marked()))),
        b"\x85": lambda self: self._replace(1, lambda *each: each), b"\x86": lambda self: self._replace(2, lambda *each: each),
        b"\x87": lambda self: self._replace(3, lambda *each: each),
        b"a": lambda self: (value := self._pop(), self._top(list).append(value)), b"e": lambda self: (values := self._marked(), self._top(list).extend(values)),
        b"s": lambda self: (value := self._pop(), key := self._pop(), self._set_items([key, value])), b"u": lambda self: self._set_items(self._marked()),
        b"\x90": lambda self: (values := self._marked(), self._top(set).update(_keys(values))),
        b"q": remember(lambda self: self._number("B")), b"r": remember(lambda self: self._number("I")), b"\x94": remember(lambda self: len(self._memo)),
        b"h": push(lambda self: self._memo[self._number("B")]), b"j": push(lambda self: self._memo[self._number("I")]),
        b"c": lambda self: self._named(self._line(), self._line()), b"\x93": lambda self: (name := self._pop(), module := self._pop(), self._named(module, name)),
        b"R": lambda self: self._replace(2, self._call), b"\x81": lambda self: self._replace(2, self._call), b"b": lambda self: self._build(self._pop()),
        b"Q": push(lambda self: self._find_stored(self._pop())),
    }


_STEPS = _steps()
