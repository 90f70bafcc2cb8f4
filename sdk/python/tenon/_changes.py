"""Counts changes of modules. A compiled function checks its modules only if the count differs from its last call."""

from __future__ import annotations

from typing import Any


class _Changes:
    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0


changes = _Changes()

# Tensors that func.functional_call has replaced for the time of a call, by the id of their dict and their name. The guards
# of a recording note these, which are there again when they are checked.
replaced: dict[tuple[int, Any], Any] = {}


class Table(dict[Any, Any]):
    """A dict whose changes are counted."""

    __slots__ = ()


def _counted(plain: Any) -> Any:
    def method(self: Table, *args: Any, **kwargs: Any) -> Any:
        result = plain(self, *args, **kwargs)
        changes.number += 1
        return result
    return method


for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(Table, _name, _counted(getattr(dict, _name)))
