"""Guards: the Python state that a recording depends on, and the check that it has not changed.

Values are compared by type and bits; lists, dicts, sets and arrays by their elements; other objects by identity."""

from __future__ import annotations

import collections
import types
from typing import Any, NamedTuple

from tenon import _tenon
from tenon._changes import Table, changes, replaced
from tenon._structures import leaf_of
from tenon._tenon import Tensor

# How a guard reads its owner. _tenon._first_changed uses the same numbers.
ITEMS, ATTRIBUTES, LIST, DICT, DIGEST = range(5)

ABSENT: Any = type("_Absent", (), {"__repr__": lambda self: "absent"})()


class _Guard(NamedTuple):
    kind: int
    owner: Any
    names: tuple[Any, ...]
    values: tuple[Any, ...]


def _digest(owner: Any) -> Any:
    """Returns the value to compare for an object whose elements are not compared one by one."""
    if isinstance(owner, (set, frozenset)):
        return frozenset(map(leaf_of, owner))
    if isinstance(owner, (bytearray, memoryview)):
        return bytes(owner)
    if isinstance(owner, collections.deque):
        return tuple(map(leaf_of, owner))
    return owner.dtype.str, owner.shape, owner.tobytes()


def _now(guard: _Guard) -> _Guard:
    """Returns the guard with the current values of its owner."""
    kind, owner, names, _ = guard
    if kind == ITEMS:
        return guard._replace(values=tuple([replaced.get((id(owner), name), owner.get(name, ABSENT)) for name in names]))
    if kind == ATTRIBUTES:
        return guard._replace(values=tuple([getattr(owner, name, ABSENT) for name in names]))
    if kind == LIST:
        return guard._replace(values=tuple(owner))
    if kind == DICT:
        return guard._replace(names=tuple(owner), values=tuple([replaced.get((id(owner), name), value) for name, value in owner.items()]))
    return guard._replace(values=(_digest(owner),))


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, types.MethodType):
        return a.__func__ is b.__func__ and a.__self__ is b.__self__
    return not isinstance(a, Tensor) and leaf_of(a) == leaf_of(b)


def _change(before: _Guard, now: _Guard) -> str:
    """Describes the difference, as the end of a sentence. Empty if there is none."""
    if len(before.names) != len(now.names) or len(before.values) != len(now.values) or not _is_same(before.names, now.names):
        return f"the elements of a {type(now.owner).__name__} have changed"
    for i, (was, is_now) in enumerate(zip(before.values, now.values)):
        if not _is_same(was, is_now):
            name = repr(now.names[i]) if now.names else "an element" if now.kind == LIST else "what it holds"
            return f"{name} of a {type(now.owner).__name__} was {_shown(was)} and is {_shown(is_now)} now"
    return ""


def _shown(value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)) or value is ABSENT:
        return repr(value)[:60]
    return f"a {type(value).__name__}"


def _is_counted(owner: Any) -> bool:
    """True if `owner` is the dict of a module, whose changes are counted."""
    return isinstance(owner, Table) or type(owner) is dict and isinstance(owner.get("_modules"), Table)


class Guards:
    """The values that a recording has read, as they were at their first read."""

    def __init__(self) -> None:
        self._tables: dict[tuple[int, int], tuple[Any, dict[str, Any]]] = {}  # guards of items and attributes, by kind and owner
        self._wholes: dict[int, _Guard] = {}  # by the owner
        self._plans: list[tuple[_Guard, ...]] | None = None  # guards of modules and other guards; None: made at the next check
        self._seen = -1  # the count of changes at which the guards of modules were last valid

    def note(self, kind: int, owner: Any, name: str, value: Any) -> None:
        """Records that `owner` has `value` under `name`."""
        names = self._tables.setdefault((kind, id(owner)), (owner, {}))[1]
        if name not in names:
            names[name] = replaced.get((id(owner), name), value)
            self._plans = None

    def note_whole(self, kind: int, owner: Any) -> None:
        """Records everything that `owner` holds."""
        if id(owner) not in self._wholes:
            self._wholes[id(owner)] = _now(_Guard(kind, owner, (), ()))
            self._plans = None

    def change(self) -> str:
        """Describes the first change since the recording, as the end of a sentence. Empty if nothing has changed."""
        plans = self._plans or self._make_plans()
        number = changes.number
        if number != self._seen:
            changed = self._change_in(plans, 0)
            if changed:
                return changed
            self._seen = number
        return self._change_in(plans, 1)

    def _make_plans(self) -> list[tuple[_Guard, ...]]:
        guards = [_Guard(kind, owner, tuple(names), tuple(names.values())) for (kind, _), (owner, names) in list(self._tables.items())]
        guards += list(self._wholes.values())
        self._seen = -1
        self._plans = [tuple(guard for guard in guards if _is_counted(guard.owner) is counted) for counted in (True, False)]
        return self._plans

    @staticmethod
    def _change_in(plans: list[tuple[_Guard, ...]], which: int) -> str:
        plan = plans[which]
        first = _tenon._first_changed(plan, 0, ABSENT, _digest)
        while first >= 0:
            now = _now(plan[first])
            changed = _change(plan[first], now)
            if changed:
                return changed
            plan = plans[which] = (*plan[:first], now, *plan[first + 1:])  # equal values: keeps the new objects, so the next check can compare identities
            first = _tenon._first_changed(plan, first + 1, ABSENT, _digest)
        return ""
