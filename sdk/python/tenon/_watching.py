"""Watching: adds everything that a function reads while it is recorded to its guards (_guards.py).

A profile function sees each Python function that begins. The code of that function says what it reads (_reads.py). The
values that existed before the recording are guarded.
"""

from __future__ import annotations

import collections
import collections.abc
import functools
import os
import sys
import threading
import types
import warnings
import weakref
from typing import Any, Iterable, Iterator

from tenon._guards import ABSENT, ATTRIBUTES, DICT, DIGEST, ITEMS, LIST, Guards
from tenon._reads import ALIAS, ALL, MAYBE, Path, Reads, reads_of
from tenon._tenon import Tensor

# Longer lists, and bytes of longer arrays, are not compared.
_MOST_ELEMENTS, _MOST_BYTES = 4096, 1 << 16

_KINDS = "_parameters", "_buffers", "_modules"
_PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes, range, slice, types.BuiltinFunctionType, types.CodeType, *weakref.ProxyTypes))
_WRITING = frozenset(("append", "appendleft", "extend", "extendleft", "insert", "add", "update", "clear"))  # methods of containers that write and do not read
_VIEWS = tuple(map(type, ({}.keys(), {}.values(), {}.items())))
_ITERATORS = tuple(map(type, map(iter, ([], (), {}, {}.values(), {}.items()))))


@functools.lru_cache(None)
def _is_constant(module: Any) -> bool:
    """True if the names of this module never change: modules of Tenon, NumPy and Python itself."""
    top = module.partition(".")[0] if isinstance(module, str) else ""
    if top not in sys.stdlib_module_names or top == "builtins":
        return top in ("tenon", "numpy", "builtins")
    file = getattr(sys.modules.get(top), "__file__", None)  # a user's module may have the name of a module of Python
    return file is None or os.path.dirname(file).startswith(os.path.dirname(os.__file__))


@functools.lru_cache(None)
def _has_state(module: Any) -> bool:
    """True if functions of this module may read state of the user: all modules that are not constant, layers and
    optimisers."""
    return not _is_constant(module) or module.startswith(("tenon.nn", "tenon.optim"))


def _dict_of(owner: Any) -> dict[str, Any] | None:
    try:
        held = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        return None
    return held if type(held) is dict else None


def _elements_of(value: Any) -> Iterable[Any] | None:
    """Returns the elements of a container; None if `value` is not a container."""
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        return value
    if isinstance(value, weakref.ref):
        return (value(),)
    if any(each.__module__ == "tenon.nn.containers" for each in type(value).__mro__):
        return [each for kind in _KINDS for each in (_dict_of(value) or {}).get(kind, {}).values()]
    return None


def _contents_of(function: Any) -> Iterator[tuple[str, Any, Any]]:
    """Returns names, cells and values of the variables of enclosing functions."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell, cell.cell_contents
        except ValueError:  # the cell is empty
            pass


def _functions_of(attribute: Any) -> list[Any]:
    """Returns the functions of a class attribute: of a function, method or property."""
    held = (attribute.fget, attribute.fset) if isinstance(attribute, property) else (getattr(attribute, "__func__", attribute),)
    return [each for each in held if isinstance(each, types.FunctionType)]


class Watch:
    """A `with` block around the recording of `function`. It adds the values that are read to `guards`."""

    def __init__(self, guards: Guards, name: str, function: Any, args: Any, kwargs: Any) -> None:
        self._guards, self._name = guards, name
        self._known: dict[int, Any] = {}  # objects that existed before the recording, by id
        self._functions: dict[types.CodeType, list[Any]] = {}
        self._visited: set[tuple[int, frozenset[str]]] = set()
        self._todo: list[tuple[Any, frozenset[str]]] = []
        self._before: Any = None
        none: frozenset[str] = frozenset()
        self._todo.append((function, none))
        self._todo.extend((each, none) for each in self._met((args, kwargs)))
        self._work()

    def __enter__(self) -> None:
        self._before = sys.getprofile()
        sys.setprofile(self._event)

    def __exit__(self, *_: object) -> None:
        if hasattr(self._before, "enable"):  # cProfile's profiler, which is not a function
            sys.setprofile(None)
            self._before.enable()
        else:
            sys.setprofile(self._before)

    def _event(self, frame: types.FrameType, event: str, argument: Any) -> None:
        try:
            if event == "call":
                self._called(frame)
            elif event == "return" and argument is not None and frame.f_back is not None:
                self._returned(frame.f_back, argument)
        except Exception as error:  # the object raises errors when its attributes are read
            warnings.warn(f"{self._name}: a compiled function may miss values that {frame.f_code.co_name} reads, because reading them raised {error!r}.", RuntimeWarning)
        if callable(self._before):
            self._before(frame, event, argument)

    def _returned(self, caller: types.FrameType, result: Any) -> None:
        """`caller` has received `result` and reads its loose names."""
        if not _has_state(caller.f_globals.get("__name__")):
            return
        loose = reads_of(caller.f_code).loose
        if loose:
            self._todo.extend((each, loose) for each in self._met(result))
            self._work()

    def _called(self, frame: types.FrameType) -> None:
        """A function begins: guards the values that its code reads."""
        scope = frame.f_globals
        module = scope.get("__name__")
        if not _has_state(module) or (module, frame.f_code.co_name) == ("tenon.nn.module", "__getattr__"):  # _attribute handles Module.__getattr__
            return
        reads = reads_of(frame.f_code)
        if not _is_constant(module):
            for function in self._functions.get(frame.f_code, ()):
                self._function_runs(function)
            for name, paths in reads.globals.items():
                if name in scope:
                    self._guards.note(ITEMS, scope, name, scope[name])
                    self._follow(scope[name], paths, reads)
            for name, paths in reads.imports.items():
                self._follow(sys.modules.get(name), paths, reads)
        if reads.locals:
            variables = frame.f_locals
            for name, paths in reads.locals.items():
                for value in self._met(variables.get(name)):
                    # Elements of a container that was created for the call are read under other names.
                    self._follow(value, paths if value is variables.get(name) else {(ALIAS,)}, reads)
        self._work()

    def _met(self, value: Any, depth: int = 4) -> Iterator[Any]:
        """Yields `value` if it existed before; otherwise the elements that did, if it is a container."""
        if type(value) in _PLAIN or isinstance(value, Tensor):
            return
        if id(value) in self._known or isinstance(value, type):
            yield value
        elif depth > 0:
            inner = value
            if isinstance(value, _ITERATORS):
                inner = value.__reduce__()[1][0]  # type: ignore[index]  # its remaining elements, or the list that it iterates over
            elif isinstance(value, _VIEWS):
                inner = list(value)  # type: ignore[call-overload]
            for each in list(_elements_of(inner) or ())[:_MOST_ELEMENTS]:
                yield from self._met(each, depth - 1)

    def _function_runs(self, function: Any) -> None:
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            held = getattr(function, name)
            if held is not None:
                self._guards.note(ATTRIBUTES, function, name, held)
                if name != "__code__":
                    self._todo.append((held, frozenset()))
        reads = reads_of(function.__code__)
        for name, cell, content in _contents_of(function):
            self._guards.note(ATTRIBUTES, cell, "cell_contents", content)
            self._follow(content, reads.locals.get(name, {()}), reads)

    def _follow(self, value: Any, paths: Iterable[Path], reads: Reads) -> None:
        """Guards the attributes along each path that begins at `value`."""
        if type(value) in _PLAIN or isinstance(value, Tensor):
            return
        none: frozenset[str] = frozenset()
        for path in paths:
            held, name = value, ""
            for name in path:
                self._known[id(held)] = held
                if name == ALL:
                    self._note_all(held)
                elif name != ALIAS:
                    found = self._attribute(held, name.removeprefix(MAYBE), reads.maybe or name.startswith(MAYBE))
                    if found is ABSENT:  # a method; if it is written in Python, _called sees it
                        path = ()
                        break
                    held = found
            if name not in _WRITING or path:
                self._todo.append((held, reads.loose if path or _elements_of(held) is not None else none))

    def _work(self) -> None:
        while self._todo:
            self._visit(*self._todo.pop())

    def _visit(self, value: Any, loose: frozenset[str]) -> None:
        """Guards the elements of `value`, and its attributes with loose names."""
        mark = id(value), loose
        if type(value) in _PLAIN or isinstance(value, Tensor) or mark in self._visited:
            return
        self._visited.add(mark)
        self._known[id(value)] = value
        inner: Iterable[Any] = ()
        if isinstance(value, types.FunctionType):
            self._functions.setdefault(value.__code__, []).append(value)
            if not _has_state(value.__globals__.get("__name__")):  # a wrapper of a decorator: its code does not name what it calls
                inner = [content for _, _, content in _contents_of(value)]
        elif isinstance(value, type):
            if not _is_constant(value.__module__):  # other code may call its functions, as it calls backward
                inner = [function for each in vars(value).values() for function in _functions_of(each)]
        elif isinstance(value, types.MethodType):
            inner = value.__self__, value.__func__
        elif isinstance(value, functools.partial):
            inner = value.func, *value.args, *value.keywords.values()
        elif _elements_of(value) is not None:
            inner = self._note_elements(value)
        elif isinstance(value, (bytearray, memoryview)) or type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
            self._note_bytes(value)
        elif _is_constant(type(value).__module__) and isinstance(value, (collections.abc.Mapping, collections.abc.Sequence, collections.abc.Set)):
            self._note_all(value)  # a container class that is written in Python, such as UserDict
        else:
            inner = filter(None, [(_dict_of(value) or {}).get("__wrapped__")])  # the function inside a compiled or decorated one
        self._todo.extend((each, loose) for each in inner)
        if not isinstance(value, types.ModuleType) or not _is_constant(value.__name__):
            for name in loose:
                if name == ALL:
                    self._note_all(value)
                elif name != ALIAS:
                    self._todo.append((self._attribute(value, name.removeprefix(MAYBE), False), loose))

    def _note_elements(self, owner: Any) -> list[Any]:
        elements = list(_elements_of(owner) or ())
        if len(elements) > _MOST_ELEMENTS:
            self._tell(owner, f"its {len(elements)} elements are more than {_MOST_ELEMENTS}")
            return []
        for types_, kind in ((list, LIST), (dict, DICT), ((set, collections.deque), DIGEST)):
            if isinstance(owner, types_):
                self._guards.note_whole(kind, owner)
        return elements

    def _note_bytes(self, owner: Any) -> None:
        if getattr(owner, "nbytes", 0) > _MOST_BYTES:
            self._tell(owner, f"its {owner.nbytes} bytes are more than {_MOST_BYTES}")
        elif not getattr(getattr(owner, "dtype", None), "hasobject", False):
            self._guards.note_whole(DIGEST, owner)

    def _tell(self, owner: Any, why: str) -> None:
        warnings.warn(f"{self._name}: it reads a {type(owner).__name__} whose changes a compiled function does not see, since {why}. "
                      "Give it as a tensor.", RuntimeWarning, stacklevel=2)

    def _note_all(self, owner: Any) -> None:
        """Guards all attributes of an object."""
        own = _dict_of(owner)
        for held in (own, *((own or {}).get(kind) for kind in _KINDS)):
            if isinstance(held, dict):
                self._guards.note_whole(DICT, held)
                self._todo.extend((each, frozenset()) for each in held.values())

    def _item(self, held: dict[str, Any], name: str) -> Any:
        value = held.get(name, ABSENT)
        self._guards.note(ITEMS, held, name, value)
        return value

    def _attribute(self, owner: Any, name: str, maybe: bool) -> Any:
        """Guards an attribute and returns its value; absent for methods and properties, whose functions are seen
        when they run.

        maybe: also guards that the attribute is absent.
        """
        if isinstance(owner, types.ModuleType):
            return ABSENT if _is_constant(owner.__name__) else self._item(vars(owner), name) if maybe or name in vars(owner) else ABSENT
        if isinstance(owner, type):
            return self._of_class(owner, name)
        if isinstance(owner, threading.local):
            value = getattr(owner, name, ABSENT)
            self._guards.note(ATTRIBUTES, owner, name, value)
            return value
        own = _dict_of(owner)
        if own is not None:
            for held in (own, *filter(None, map(own.get, _KINDS))):
                if name in held:
                    return self._item(held, name)
        inherited = next((vars(each)[name] for each in type(owner).__mro__ if name in vars(each)), ABSENT)
        if own is not None and (maybe or inherited is not ABSENT):
            self._item(own, name)
        if isinstance(inherited, types.MemberDescriptorType):
            value = getattr(owner, name, ABSENT)
            self._guards.note(ATTRIBUTES, owner, name, value)
            return value
        return ABSENT if inherited is ABSENT else self._of_class(type(owner), name)

    def _of_class(self, owner: type, name: str) -> Any:
        static = next((vars(each)[name] for each in owner.__mro__ if name in vars(each)), ABSENT)
        if static is ABSENT or _is_constant(owner.__module__):
            return ABSENT
        if isinstance(static, (types.FunctionType, property)) or not hasattr(type(static), "__get__"):
            self._guards.note(ATTRIBUTES, owner, name, static)
        self._todo.extend((function, frozenset()) for function in _functions_of(static))
        return ABSENT if hasattr(type(static), "__get__") else static
