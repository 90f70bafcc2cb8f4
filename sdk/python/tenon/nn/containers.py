"""Modules that hold modules or parameters: Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict."""

from __future__ import annotations

import operator
from typing import Any, Iterable, Iterator, Mapping

from tenon.nn.module import Module
from tenon.nn.parameter import Parameter


class _List(Module):
    """Children that are numbered from 0."""

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = self._modules
        return parts

    def _name(self, index: Any) -> str:
        size, place = len(self), operator.index(index)
        if not -size <= place < size:
            raise IndexError(f"index {place} is out of range")
        return str(place % size)

    def _replace(self, values: Iterable[Any]) -> None:
        self._parts().clear()
        for i, value in enumerate(values):
            setattr(self, str(i), value)

    def __len__(self) -> int:
        return len(self._parts())

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parts().values()))

    def __contains__(self, item: object) -> bool:
        return any(each is item for each in self)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self._of(list(self)[index])
        return list(self)[int(self._name(index))]

    def __setitem__(self, index: Any, value: Any) -> None:
        values = list(self)
        values[int(self._name(index))] = value
        names = list(self._parts())
        setattr(self, names[int(self._name(index))], value)

    def __delitem__(self, index: Any) -> None:
        values = list(self)
        if isinstance(index, slice):
            del values[index]
        else:
            del values[int(self._name(index))]
        self._replace(values)

    def _of(self, values: list[Any]) -> Any:
        made: Any = type(self)
        return made(values)

    def append(self, value: Any) -> Any:
        """Adds a child at the end."""
        setattr(self, str(len(self)), value)
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Adds several children at the end."""
        for value in values:
            self.append(value)
        return self

    def insert(self, index: int, value: Any) -> None:
        """Inserts a child before position `index`."""
        values = list(self)
        values.insert(index, value)
        self._replace(values)


class Sequential(_List):
    """Modules that run one after the other; each receives the result of the previous one."""

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], Mapping) else ((str(i), each) for i, each in enumerate(args))
        for name, module in named:
            self.add_module(name, module)

    def _of(self, values: list[Any]) -> Any:
        names = {id(module): name for name, module in self._modules.items()}
        return Sequential({names[id(each)]: each for each in values})

    def forward(self, input: Any) -> Any:
        for module in self._modules.values():
            input = module(input)
        return input


class ModuleList(_List):
    """A list of modules."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())


class ParameterList(_List):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = self._parameters
        return parts

    def append(self, value: Any) -> Any:
        """Adds a parameter at the end."""
        return super().append(value if isinstance(value, Parameter) else Parameter(value))

    def extra_repr(self) -> str:
        return ", ".join(f"{name}: {each.dtype!r} {tuple(each.shape)}" for name, each in self._parameters.items())


class _Dict(Module):
    """Children by name."""

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = self._modules
        return parts

    def __len__(self) -> int:
        return len(self._parts())

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts())

    def __contains__(self, key: object) -> bool:
        return key in self._parts()

    def __getitem__(self, key: str) -> Any:
        return self._parts()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._parts()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._parts()[key]

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._parts().keys()

    def values(self) -> Iterable[Any]:
        """The children."""
        return self._parts().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Names and children."""
        return self._parts().items()

    def clear(self) -> None:
        """Removes all children."""
        self._parts().clear()

    def pop(self, key: str) -> Any:
        """Removes the child `key` and returns it."""
        return self._parts().pop(key)

    def update(self, other: Any) -> None:
        """Adds children by name, from a dict or pairs."""
        for key, value in other.items() if hasattr(other, "items") else other:
            self[key] = value


class ModuleDict(_Dict):
    """Modules by name."""

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        self.update(modules or {})

    def __setitem__(self, key: str, value: Any) -> None:
        self.add_module(key, value)


class ParameterDict(_Dict):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self.update(parameters or {})

    def _parts(self) -> dict[str, Any]:
        parts: dict[str, Any] = self._parameters
        return parts

    def __setitem__(self, key: str, value: Any) -> None:
        self._parameters[key] = value if isinstance(value, Parameter) else Parameter(value)


__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
