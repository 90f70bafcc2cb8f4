"""Finds what the code of a Python function reads: names from outside, and attributes of these."""

from __future__ import annotations

import dis
import types
import weakref
from typing import Any, NamedTuple

# Parts of paths that are not attributes. ALL: every attribute of the object. ALIAS: the object gets another name
# or becomes an element, so the loose names may be its attributes.
ALL, ALIAS = "*", "&"
# Prefix of a name: the code can handle an absent attribute.
MAYBE = "?"

Path = tuple[str, ...]


class Reads(NamedTuple):
    """`cfg.model.scale` is the path ("model", "scale") of "cfg". A name that is read without attributes has the path
    ()."""

    globals: dict[str, set[Path]]
    locals: dict[str, set[Path]]  # arguments and variables of enclosing functions, with the values they have at the start
    imports: dict[str, set[Path]]  # modules that the code imports
    loose: frozenset[str]  # attributes of other objects: results, elements, assigned variables
    maybe: bool  # the code catches AttributeError


_known: weakref.WeakKeyDictionary[types.CodeType, Reads] = weakref.WeakKeyDictionary()

_TRANSPARENT = frozenset(("COPY", "DUP_TOP", "EXTENDED_ARG", "CACHE", "PUSH_NULL", "NOP", "PRECALL", "RESUME", "NOT_TAKEN"))
_NAMED, _WHOLE = frozenset(("getattr", "hasattr")), frozenset(("vars", "dir"))
_BY_NAME = _NAMED | {"attrgetter", "globals"}  # the name that is read may be a constant of the code
_VARIABLE_ARGUMENTS = 0x04, 0x08  # flags of a code object: it has *args, **kwargs


class _Scan:
    """One pass over the instructions. It follows the value on top of the stack while that is a name or a path."""

    def __init__(self, code: types.CodeType) -> None:
        self.code = code
        self.globals: dict[str, set[Path]] = {}
        self.locals: dict[str, set[Path]] = {}
        self.imports: dict[str, set[Path]] = {}
        self.loose: set[str] = set()
        self.assigned: set[str] = set()
        self.top: set[Path] | None = None  # the paths of the name on top of the stack
        self.path: list[str] = []
        self.asked = ""  # "getattr", "vars" or the like, if the next value is its first argument

    def run(self) -> Reads:
        for instruction in dis.get_instructions(self.code):
            if instruction.opname not in _TRANSPARENT:
                self.step(instruction.opname, instruction.argval)
        self.end("", None)
        self.sort_locals()
        for each in self.code.co_consts:
            if isinstance(each, types.CodeType):
                self.loose |= reads_of(each).loose
            elif isinstance(each, str) and each.isidentifier() and not _BY_NAME.isdisjoint(self.code.co_names):
                self.loose.add(each)
                if "globals" in self.code.co_names:
                    self.globals.setdefault(each, set()).add(())
        return Reads(self.globals, self.locals, self.imports, frozenset(self.loose), "AttributeError" in self.code.co_names)

    def sort_locals(self) -> None:
        """Keeps the variables that come from outside. The paths of other variables become loose."""
        count = self.code.co_argcount + self.code.co_kwonlyargcount + sum(bool(self.code.co_flags & each) for each in _VARIABLE_ARGUMENTS)
        outer = {*self.code.co_varnames[:count], *self.code.co_freevars}
        for paths in (self.locals, self.globals):
            for name in list(paths):
                if name in self.assigned or (paths is self.locals and name not in outer):
                    self.loose.update(*paths[name])
        self.locals = {name: paths for name, paths in self.locals.items() if name in outer}

    def step(self, name: str, value: Any) -> None:
        if name in ("LOAD_ATTR", "LOAD_METHOD"):
            self.attribute(ALL if value == "__dict__" else value)
            return
        self.end(name, value)
        names = value if isinstance(value, tuple) else (value,)
        if name.startswith("STORE_FAST") or name in ("STORE_DEREF", "STORE_GLOBAL", "DELETE_FAST", "DELETE_DEREF", "DELETE_GLOBAL"):
            self.assigned.update(names[:1] if name.endswith("LOAD_FAST") else names)
            if name.endswith("LOAD_FAST"):
                self.begin(self.locals, names[1])
        elif name.startswith("LOAD_FAST") or name.endswith("DEREF"):
            for each in names:
                self.end(name, None)
                self.begin(self.locals, each)
        elif name in ("LOAD_GLOBAL", "LOAD_NAME") and (value in _NAMED or value in _WHOLE):
            self.asked = value
        elif name in ("LOAD_GLOBAL", "LOAD_NAME"):
            self.begin(self.globals, value)
        elif name == "IMPORT_NAME":
            self.begin(self.imports, value)
            self.imported = self.top
        elif name == "IMPORT_FROM" and self.imported is not None:
            self.imported.add((value,))
        elif name == "LOAD_SUPER_ATTR":
            self.loose.add(value)

    imported: set[Path] | None = None

    def begin(self, paths: dict[str, set[Path]], name: str) -> None:
        self.top, self.path = paths.setdefault(name, set()), []

    def attribute(self, name: str) -> None:
        if self.top is None:
            self.loose.add(name)
        else:
            self.path.append(name)

    def end(self, name: str, value: Any) -> None:
        """Records the path of the value on top of the stack. The instruction `name` follows."""
        if self.top is None:
            return
        if self.asked in _WHOLE:
            self.path.append(ALL)
        elif self.asked:
            self.path.append(MAYBE + value if name == "LOAD_CONST" and isinstance(value, str) else ALL)
        elif not self.path and name.startswith(("STORE_", "BUILD_")):
            self.path.append(ALIAS)
        self.top.add(tuple(self.path))
        self.top, self.asked = None, ""


def reads_of(code: types.CodeType) -> Reads:
    """Returns what a function with this code reads. A name that cannot be followed counts as loose."""
    known = _known.get(code)
    if known is None:
        known = _known[code] = _Scan(code).run()
    return known
