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
    """Gives a value that was read from JSON the tuples and the key types of `before`."""
    if isinstance(before, (list, tuple)) and isinstance(found, list):
        olds = [*before, *[None] * len(found)]
        items = [_like(old, new) for old, new in zip(olds, found)]
        return tuple(items) if isinstance(before, tuple) else items
    if isinstance(before, dict) and isinstance(found, dict):
        keys = {str(key): key for key in before}
        return {keys.get(key, key): _like(before.get(keys.get(key)), value) for key, value in found.items()}
    return found


class _State:
    """The tensors of an object, and its other values as JSON texts, by the path of each. `take` writes loaded values
    back.

    A list without tensors is a single text, so it may have another length in the checkpoint than in the object.
    """

    def __init__(self, object: Any, caller: str) -> None:
        self.caller = caller
        self.tensors: dict[str, Tensor] = {}
        self.texts: dict[str, str] = {}
        self.places: dict[str, tuple[Any, Any]] = {}  # for each text: its container and key
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
            raise TypeError(f"{self.caller}: {repr(name) if name else 'the object'} is a {type(value).__name__}; only Tensors, numbers, texts, lists and dicts "
                            "of these, and objects with a state_dict are saved.") from None

    def _inside(self, container: Any, name: str, items: Any) -> None:
        for key, value in list(items):
            self._visit(value, f"{name}{_SEPARATOR}{key}" if name else str(key), container, key)

    def _add(self, where: dict[str, Any], name: str, value: Any) -> None:
        if name in self.tensors or name in self.texts:
            raise ValueError(f"{self.caller}: two objects have the name '{name}'.")
        where[name] = value

    def take(self, texts: dict[str, str]) -> None:
        """Writes loaded values into their containers, and passes loaded states to load_state_dict."""
        for name, (container, key) in self.places.items():
            try:
                container[key] = _like(container[key], json.loads(texts[name]))
            except ValueError:
                raise ValueError(f"{self.caller}: '{name}' of the checkpoint is neither a number nor a text in JSON: {texts[name]!r}.") from None
        for finish in self.finishes:
            finish()


def save(object: Any, folder: str | os.PathLike[str]) -> None:
    """Writes a checkpoint into a folder that all ranks can access. Every rank calls it and writes each part that it
    holds once.

    Args:
        object: a dict or list of tensors, numbers, texts, objects with a state_dict such as modules and optimisers, and
            dicts and lists of these. Values that are not global are taken from the first rank.
        folder: a checkpoint in it is replaced when the new one is complete.

    Errors: TypeError for other values; ValueError if two values have the same path.
    """
    state = _State(object, "save()")
    _tenon._global.save(os.fspath(folder), state.tensors, state.texts)


def load(object: Any, path: str | os.PathLike[str]) -> list[str]:
    """Reads a checkpoint, or a safetensors file, into an object like the saved one. Every rank calls it and reads
    the elements that it holds, on any number of ranks.

    Tensors are overwritten and keep their layout. Numbers and texts in dicts and lists are replaced. Returns the
    names of tensors that the object does not have.

    Errors, on every rank and before any tensor is written: a missing name, another shape or another dtype.
    """
    state = _State(object, "load()")
    texts, unread = _tenon._global.load(os.fspath(path), state.tensors, list(state.texts))
    state.take(texts)
    names: list[str] = unread
    return names
