"""Modules of the package that are loaded on first use, such as `tenon.nn`.

A `__getattr__` of the package would do the same. But the interpreter caches no lookups in a module that has one,
so each `tenon.relu` would be looked up again, which takes a third of the time that an op may cost.
importlib.util.LazyLoader lets another thread see a half-loaded module before Python 3.11.9.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import types
from typing import Any

_waiting: dict[str, Later] = {}


class Later(types.ModuleType):
    """A module that is not loaded yet. It loads when one of its attributes is read or when it is imported."""

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
    """A module whose code is running. Another thread that reads a missing attribute waits for it."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("__path__", "__file__", "__cached__"):  # Python reads these before the module is in sys.modules
            importlib.import_module(self.__name__)
        return types.ModuleType.__getattribute__(self, name)


class _Loader:
    """Loads a module into the Later object that represents it."""

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
    """Finds the modules of Later as Python would, and lets _Loader load them."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(name, path, target) if name in _waiting else None
        if spec is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


sys.meta_path.insert(0, _Finder)
