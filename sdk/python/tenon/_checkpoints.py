"""Checkpoints of global tensors: tenon.global_.save and load."""

from __future__ import annotations

import json
import os
from typing import Any, Callable

from tenon import _tenon
from tenon._tenon import Tensor

_SEPARATOR = "."


def _has_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_tensors(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_tensors(each) for each in value)
    return isinstance(value, Tensor) or hasattr(value, "state_dict")


def _like(before: Any, found: Any) -> Any:
    """What JSON made of a value, with the tuples and keys that stand in `before`."""
    if isinstance(before, (list, tuple)) and isinstance(found, list):
        olds = [*before, *[None] * len(found)]
        items = [_like(old, new) for old, new in zip(olds, found)]
        return tuple(items) if isinstance(before, tuple) else items
    if isinstance(before, dict) and isinstance(found, dict):
        keys = {str(key): key for key in before}
        return {keys.get(key, key): _like(before.get(keys.get(key)), value) for key, value in found.items()}
    return found


class _State:
    """The tensors in an object, and the texts of what else it has, by the path that leads to each; and how what was loaded comes into
    it. A list without tensors is one text, so that it may be longer when it is saved than when it is loaded."""

    def __init__(self, object: Any, caller: str) -> None:
        self.caller = caller
        self.tensors: dict[str, Tensor] = {}
        self.texts: dict[str, str] = {}
        self.places: dict[str, tuple[Any, Any]] = {}  # of the numbers: a container and a key
        self.finishes: list[Callable[[], Any]] = []
        self._visit(object, "", [object], 0)
        if "" in self.tensors or "" in self.texts:
            raise TypeError(f"{caller}: expected an object with a state_dict or a dict, not a {type(object).__name__}.")

    def _visit(self, value: Any, name: str, container: Any, key: Any) -> None:
        if isinstance(value, Tensor):
            self._add(self.tensors, name, value)
        elif hasattr(value, "state_dict"):
            if hasattr(value, "prepare"):
                value.prepare()
            state = value.state_dict()
            self._inside(state, name, state.items())
            self.finishes.append(lambda: value.load_state_dict(state))
        elif isinstance(value, dict):
            self._inside(value, name, value.items())
        elif isinstance(value, (list, tuple)) and _has_tensors(value):
            items = value if isinstance(value, list) else list(value)
            self._inside(items, name, enumerate(items))
            if isinstance(value, tuple):
                self.finishes.append(lambda: container.__setitem__(key, tuple(items)))
        else:
            self._add(self.texts, name, self._text_of(value, name))
            self.places[name] = container, key

    def _text_of(self, value: Any, name: str) -> str:
        try:
            return json.dumps(value)
        except TypeError:
            raise TypeError(f"{self.caller}: '{name or 'the object'}' is a {type(value).__name__}; only Tensors, numbers, texts, lists and dicts "
                            "of these, and objects with a state_dict are saved.") from None

    def _inside(self, container: Any, name: str, items: Any) -> None:
        for key, value in list(items):
            self._visit(value, f"{name}{_SEPARATOR}{key}" if name else str(key), container, key)

    def _add(self, where: dict[str, Any], name: str, value: Any) -> None:
        if name in self.tensors or name in self.texts:
            raise ValueError(f"{self.caller}: two things are called '{name}'.")
        where[name] = value

    def take(self, texts: dict[str, str]) -> None:
        """Puts numbers where they were, and lets objects know of their state."""
        for name, (container, key) in self.places.items():
            try:
                container[key] = _like(container[key], json.loads(texts[name]))
            except ValueError:
                raise ValueError(f"{self.caller}: '{name}' of the checkpoint is no number and no text in JSON: {texts[name]!r}.") from None
        for finish in self.finishes:
            finish()


def save(object: Any, folder: str | os.PathLike[str]) -> None:
    """Writes a state as a checkpoint, a folder that all ranks see: a dict of tensors, numbers, texts, modules, optimisers and whatever
    else has a state_dict, or lists and dicts of these. Every rank calls it, and writes the parts that it holds, each once. Of what is
    not global the first rank's is written. A checkpoint that is in the folder is replaced when the new one is complete."""
    state = _State(object, "save()")
    _tenon._global.save(os.fspath(folder), state.tensors, state.texts)


def load(object: Any, path: str | os.PathLike[str]) -> list[str]:
    """Brings a checkpoint, or one safetensors file, into an object like the one that was saved: tensors are filled where they are and
    as they are spread, on however many ranks; numbers and texts of dicts and lists are replaced. Every rank calls it, and reads the
    elements that it holds. Gives the names of tensors that the object has no place for. A name that the checkpoint has not, or another
    shape or dtype, is an error on every rank, and then no tensor was written."""
    state = _State(object, "load()")
    texts, unread = _tenon._global.load(os.fspath(path), state.tensors, list(state.texts))
    state.take(texts)
    names: list[str] = unread
    return names
