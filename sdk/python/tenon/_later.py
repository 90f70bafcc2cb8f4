"""Modules of the package that are loaded when something in them is first asked for: `tenon.nn`.

A `__getattr__` of the package would do the same. But the interpreter keeps no place of a name in a module that has one: it
would look up `relu` of each `tenon.relu` anew, which takes a third of what an op may cost. importlib.util.LazyLoader shows
another thread a module half loaded, before Python 3.11.9."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from typing import Any

_waiting: dict[str, Later] = {}


class Later(types.ModuleType):
    """A module that is not loaded yet. It becomes itself where an attribute of it is asked for, or where it is imported."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        _waiting[name] = self

    def __getattr__(self, name: str) -> Any:
        importlib.import_module(self.__name__)
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        importlib.import_module(self.__name__)
        return dir(self)


class _Loading(types.ModuleType):
    """A module whose code runs. Other threads that ask for what it has not yet wait for it."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("__path__", "__file__", "__cached__"):  # Python looks for those before the module is known to it
            importlib.import_module(self.__name__)
        return types.ModuleType.__getattribute__(self, name)


class _Loader:
    """Loads a module of Later into the object that stands for it."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module: types.ModuleType = _waiting[spec.name]
        module.__class__ = _Loading
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        try:
            self._loader.exec_module(module)
        except BaseException:
            module.__class__ = Later
            raise
        module.__class__ = types.ModuleType
        module.__loader__ = module.__spec__.loader = self._loader  # type: ignore[union-attr]
        del _waiting[module.__name__]


class _Finder:
    """Finds the modules of Later as Python would, and has them loaded by _Loader."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in _waiting else None
        if spec is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


sys.meta_path.insert(0, _Finder)
