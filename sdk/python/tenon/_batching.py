"""Tensors that vmap passes to a function: each hides an axis of the batch.

An op does not know them, so it calls `tenon._spellings.otherwise`, which calls `apply`. A rule of `_batching_rules` then
computes all samples with one op; without a rule the op runs once per sample. Neither costs other calls anything.
"""

from __future__ import annotations

import types
from typing import Any, Callable, Iterator

from tenon import _tenon
from tenon._tenon import Tensor


class CannotBatch(Exception):
    """The function must run sample by sample: it reads an element in Python, or calls something that is not an op."""


class RandomError(RuntimeError):
    """A random op with randomness="error"."""


class InPlaceError(RuntimeError):
    """An op would write a result for each sample into one tensor."""


class Level:
    """One call of vmap. Calls inside it have a larger depth."""

    def __init__(self, size: int, depth: int, randomness: str) -> None:
        self.size, self.depth, self.randomness = size, depth, randomness
        self.written = False  # an op has written a tensor of the batch, so the function cannot run again


def _operator(name: str, reverse: bool = False) -> Callable[..., Any]:
    def call(self: Any, *others: Any) -> Any:
        op, others = getattr(_tenon, name), tuple(map(_operand, others))
        return op(*others, self) if reverse else op(self, *others)
    return call


def _operand(value: Any) -> Any:
    return value if isinstance(value, (Tensor, bool, int, float)) else _tenon.tensor(value)


def _reading(self: Any, *_: Any, **__: Any) -> Any:
    raise CannotBatch


class Batched:
    """A tensor of one sample for the function that vmap calls. `value` holds all samples along axis 0.

    It has the members of Tensor, and isinstance(x, Tensor) is true. `value` may be Batched of an outer level.
    """

    __slots__ = ("value", "level")

    def __init__(self, value: Any, level: Level) -> None:
        self.value, self.level = value, level

    @property
    def __class__(self) -> Any:
        return Tensor

    @__class__.setter
    def __class__(self, value: Any) -> None:
        raise TypeError("the class of a tensor inside vmap cannot be changed")

    def __getattr__(self, name: str) -> Any:
        member = Tensor.__dict__.get(name)
        if isinstance(member, (_tenon.Op, types.FunctionType)):
            return types.MethodType(member, self)
        if isinstance(member, property) and isinstance(member.fget, types.FunctionType):
            return member.fget(self)
        if member is None:
            raise AttributeError(f"'Tensor' object has no attribute '{name}'")
        raise CannotBatch

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.value.shape[1:])

    @property
    def ndim(self) -> int:
        return int(self.value.ndim) - 1

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def device(self) -> Any:
        return self.value.device

    @property
    def requires_grad(self) -> bool:
        return bool(self.value.requires_grad)

    @property
    def is_leaf(self) -> bool:
        return bool(self.value.is_leaf)

    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count

    def requires_grad_(self, requires_grad: bool = True) -> Batched:
        self.value.requires_grad_(requires_grad)
        return self

    def detach(self) -> Batched:
        return Batched(self.value.detach(), self.level)

    def _size(self, axis: int) -> int:
        return self.shape[axis]

    def _to_device(self, device: Any) -> Batched:
        return Batched(self.value._to_device(device), self.level)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return iter(_tenon.unbind(self, 0))

    def __getitem__(self, key: Any) -> Any:
        from tenon._batching_rules import indexed
        return indexed(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.level.written = True
        for i in range(self.level.size):
            sample_of(self, self.level, i)[sample_of(key, self.level, i)] = sample_of(value, self.level, i)

    def __repr__(self) -> str:
        return f"<tensor of shape {self.shape} inside vmap, for each of {self.level.size} samples>"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise CannotBatch

    def __pos__(self) -> Batched:
        return self

    __hash__ = object.__hash__
    __bool__ = __float__ = __int__ = __index__ = __contains__ = __format__ = _reading


_OPERATORS = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder", "pow": "pow", "matmul": "matmul",
              "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}
for _python, _name in _OPERATORS.items():
    setattr(Batched, f"__{_python}__", _operator(_name))
    setattr(Batched, f"__r{_python}__", _operator(_name, reverse=True))
    if hasattr(_tenon, _name + "_"):
        setattr(Batched, f"__i{_python}__", _operator(_name + "_"))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "abs"):
    setattr(Batched, f"__{_name}__", _operator(_name))
setattr(Batched, "__invert__", _operator("bitwise_not"))


def is_batched(value: Any, level: Level | None = None) -> bool:
    """True if `value` is a tensor inside vmap; with `level`, inside that call of vmap."""
    return type(value) is Batched and (level is None or value.level is level)


def _levels(values: Any) -> Iterator[Level]:
    for each in values:
        if type(each) is Batched:
            yield each.level
        elif type(each) in (list, tuple):
            yield from _levels(each)


def innermost(*values: Any) -> Level | None:
    """The innermost level of tensors in `values` and in lists and tuples inside it."""
    return max(_levels(values), key=lambda level: level.depth, default=None)


def sample_of(value: Any, level: Level, i: int) -> Any:
    """Returns `value` with sample i in place of each tensor of the level, also inside lists and tuples."""
    if is_batched(value, level):
        return _tenon.select(value.value, 0, i)
    if type(value) in (list, tuple):
        return type(value)([sample_of(each, level, i) for each in value])
    return value


def with_batch(value: Any, level: Level) -> Any:
    """Returns all samples of `value` along axis 0. A tensor without a batch is repeated."""
    if is_batched(value, level):
        return value.value
    return _tenon.expand(_tenon.unsqueeze(value, 0), (level.size, *value.shape))


def base_of(value: Any) -> Any:
    """The tensor of all samples of all levels."""
    while type(value) is Batched:
        value = value.value
    return value


def like(base: Any, value: Any) -> Any:
    """Hides the same axes of `base` as `value` hides of its base."""
    return Batched(like(base, value.value), value.level) if type(value) is Batched else base


def with_all(value: Any, levels: list[Level]) -> Any:
    """Returns `value` with the batch of each of the levels, the outermost of which is the first."""
    if not levels:
        return value
    *outer, last = levels
    return Batched(with_all(with_batch(value, last), outer), last)


def wrapped(result: Any, level: Level) -> Any:
    """Returns a result of an op, or several, as tensors of the level."""
    if isinstance(result, (tuple, list)):
        items = [wrapped(each, level) for each in result]
        return type(result)(*items) if hasattr(result, "_fields") else type(result)(items)
    if not isinstance(result, Tensor):
        raise CannotBatch
    return Batched(result, level)


def joined(results: list[Any], level: Level) -> Any:
    """Stacks the results of an op for each sample."""
    first = results[0]
    if isinstance(first, (tuple, list)):
        items = [joined(list(each), level) for each in zip(*results)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    if not isinstance(first, Tensor):
        raise CannotBatch
    return Batched(_tenon.stack(results, 0), level)


def for_each_sample(function: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls an op, or another function of tensors, once per sample."""
    if level.size == 0:
        raise CannotBatch
    results = []
    for i in range(level.size):
        results.append(function(*sample_of(args, level, i), **{name: sample_of(each, level, i) for name, each in kwargs.items()}))
    return joined(results, level)


_TAKES_GENERATOR: dict[str, bool] = {}


def _is_random(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    name = op.__name__
    if name.rstrip("_") in ("dropout", "rrelu"):
        return kwargs.get("training", args[2] if len(args) > 2 else True) is not False and kwargs.get("p", args[1] if len(args) > 1 else 0.5) != 0
    if name not in _TAKES_GENERATOR:
        _TAKES_GENERATOR[name] = any("generator?" in text for text in op.signatures) or name in ("rand_like", "randn_like", "randint_like")
    return _TAKES_GENERATOR[name]


def apply(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the result of `op` for each sample. Returns NotImplemented if no argument is inside vmap."""
    level = innermost(args, tuple(kwargs.values()))
    if level is None:
        return NotImplemented
    if _is_random(op, args, kwargs):
        if level.randomness == "error":
            raise RandomError("vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness "
                              "flags on vmap or perform the randomness operation out of vmap")
        raise CannotBatch
    name = op.__name__
    if kwargs.get("out") is not None or kwargs.get("inplace"):
        raise CannotBatch
    if name.endswith("_"):
        if not is_batched(args[0], level):
            raise InPlaceError(f"vmap: {name} cannot write into a tensor without the batch axis; create the tensor with zeros_like or new_zeros of an argument.")
        level.written = True
    from tenon._batching_rules import RULES
    rule = RULES.get(name)
    result = NotImplemented if rule is None or not args else rule(op, level, args, kwargs)
    if result is NotImplemented:
        result = for_each_sample(op, level, args, kwargs)
    return args[0] if name.endswith("_") else result
