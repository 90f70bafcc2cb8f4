"""vmap: a function of single samples, applied to a batch."""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Callable, Iterator

from tenon import _tenon
from tenon._tenon import Tensor

_RANDOMNESS = ("error", "different", "same")


class _Active(threading.local):
    """The levels of vmap whose functions the thread is running, outermost first."""

    def __init__(self) -> None:
        self.levels: list[Any] = []


_active = _Active()


def active_levels() -> list[Any]:
    return list(_active.levels)


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Callable[..., Any]:
    """Returns a function that applies `func` to each sample of a batch and stacks the results.

    All samples are computed together where Tenon has a rule for an op; other ops run once per sample. If `func` reads
    elements in Python, as `if x > 0` does, the whole function runs once per sample.

    Args:
        in_dims: the axis of the batch in the arguments: a number for all, or a nested structure like the arguments.
            None for arguments that every sample receives whole.
        out_dims: the axis of the batch in the results, a number or a structure like the results.
        randomness: "error" refuses random ops on the samples, "different" draws other numbers for each sample, and
            "same" draws the same ones.
        chunk_size: the number of samples that are computed together; None for all.

    Errors: the batch has different sizes, in_dims does not fit the arguments, or a result is not a tensor.

    Example:
        >>> tenon.vmap(tenon.dot)(tenon.ones(3, 4), tenon.ones(3, 4))
        tensor([4., 4., 4.])
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return _Call(func, in_dims, out_dims, randomness, args, kwargs).run(chunk_size)
    return mapped


def _parts(value: Any) -> list[Any] | None:
    """The elements of a container; None for other values."""
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (list, tuple)) else None


def _remade(value: Any, parts: list[Any]) -> Any:
    if isinstance(value, dict):
        return type(value)(zip(value, parts))
    return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)


def _spread(dims: Any, value: Any, count: int) -> list[Any] | None:
    """The axes of the `count` elements of a container; None if `dims` has another structure."""
    if dims is None or isinstance(dims, int):
        return [dims] * count
    if isinstance(dims, dict) and isinstance(value, dict) and set(dims) == set(value):
        return [dims[key] for key in value]
    return list(dims) if isinstance(dims, (list, tuple)) and isinstance(value, (list, tuple)) and len(dims) == count else None


class _Call:
    """One call of a function that vmap returned."""

    def __init__(self, function: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.function, self.in_dims, self.out_dims, self.randomness, self.args, self.kwargs = function, in_dims, out_dims, randomness, args, kwargs
        self.name = getattr(function, "__name__", repr(function))
        if not isinstance(in_dims, (int, tuple, list)):
            raise self.wrong(f"expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}.")
        if not args:
            raise self.wrong("got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. The latter is unsupported.")
        self.dims = tuple(in_dims) if isinstance(in_dims, list) else in_dims
        sizes: list[int] = []
        self.visit(lambda leaf, dim: sizes.append(leaf.shape[dim]) if dim is not None else None)
        if not sizes:
            raise ValueError("vmap: Expected at least one Tensor to vmap over")
        if len(set(sizes)) > 1:
            raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
        self.size = sizes[0]

    def wrong(self, sentence: str) -> ValueError:
        return ValueError(f"vmap({self.name}, in_dims={self.in_dims}, ...)(<inputs>): {sentence}")

    def visit(self, function: Callable[[Any, Any], Any]) -> Any:
        """Returns the arguments with function(leaf, dim) in place of each leaf. dim is at least 0, or None."""
        return self.visited(function, self.args, self.dims)

    def visited(self, function: Callable[[Any, Any], Any], value: Any, dims: Any) -> Any:
        parts = _parts(value)
        if parts is not None:
            each = _spread(dims, value, len(parts))
            if each is None:
                raise self.wrong("in_dims is not compatible with the structure of `inputs`. "
                                 f"in_dims has structure {dims} but inputs has a {type(value).__name__} of {len(parts)} elements.")
            return _remade(value, [self.visited(function, part, dim) for part, dim in zip(parts, each)])
        if dims is None:
            return function(value, None)
        if not isinstance(dims, int):
            raise self.wrong(f"Got in_dim={dims} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(value, Tensor):
            raise self.wrong(f"Got in_dim={dims} for an input but the input is of type {type(value)}. We cannot vmap over non-Tensor arguments, please use "
                             "None as the respective in_dim")
        if not -value.ndim <= dims < value.ndim:
            raise self.wrong(f"Got in_dim={dims} for some input, but that input is a Tensor of dimensionality {value.ndim} so expected in_dim to satisfy "
                             f"{-value.ndim} <= in_dim < {value.ndim}.")
        return function(value, dims % value.ndim)

    def run(self, chunk_size: int | None) -> Any:
        if chunk_size is None or chunk_size >= self.size:
            return self.run_all(self.args, self.size)
        chunks = []
        for start in range(0, self.size, chunk_size):
            count = min(chunk_size, self.size - start)
            args = self.visit(lambda leaf, dim: leaf if dim is None else _tenon.narrow(leaf, dim, start, count))
            chunks.append(self.run_all(args, count))
        return self.collected(chunks, self.out_dims, lambda parts, dim: parts[0] if dim is None else _tenon.cat(parts, dim))

    def run_all(self, args: tuple[Any, ...], size: int) -> Any:
        return self.by_sample(args, size) if self.randomness != "error" else self.together(args, size)

    def together(self, args: tuple[Any, ...], size: int) -> Any:
        """Runs the function once, on tensors that hide the axis of the batch."""
        from tenon import _batching
        level = _batching.Level(size, len(_active.levels) + 1, self.randomness)
        hidden = self.visited(lambda leaf, dim: leaf if dim is None else _batching.Batched(_tenon.movedim(leaf, dim, 0), level), args, self.dims)
        try:
            with _inside(level):
                result = self.function(*hidden, **self.kwargs)
        except (_batching.RandomError, _batching.InPlaceError):
            raise
        except Exception as error:
            if size == 0 or level.written:
                if isinstance(error, _batching.CannotBatch):
                    raise RuntimeError(f"vmap: {self.name} reads elements in Python or calls a function that is not an op, after it wrote into a tensor of "
                                       "the batch or for an empty batch.") from None
                raise
            return self.by_sample(args, size)

        def whole(results: list[Any], dim: Any) -> Any:
            if dim is None and not _batching.is_batched(results[0], level):
                return results[0]
            return self.moved(_batching.with_batch(results[0], level), dim)
        return self.collected([result], self.out_dims, whole)

    def by_sample(self, args: tuple[Any, ...], size: int) -> Any:
        """Runs the function once per sample."""
        if size == 0:
            raise RuntimeError(f"vmap: {self.name} cannot run on an empty batch.")
        seed = int(_tenon.randint(0, 2**31 - 1, ())) if self.randomness == "same" else None
        results = []
        for i in range(size):
            if seed is not None:
                _tenon.manual_seed(seed)
            sample = self.visited(lambda leaf, dim: leaf if dim is None else _tenon.select(leaf, dim, i), args, self.dims)
            results.append(self.function(*sample, **self.kwargs))
        return self.collected(results, self.out_dims, lambda parts, dim: parts[0] if dim is None else self.moved(_tenon.stack(parts, 0), dim))

    def moved(self, value: Any, dim: Any) -> Any:
        if dim is None:
            raise ValueError(f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when out_dim is None")
        if not -value.ndim <= dim < value.ndim:
            raise IndexError(f"vmap: out_dim {dim} is out of range for a result of {value.ndim} axes with the batch.")
        return value if dim == 0 else _tenon.movedim(value, 0, dim)

    def collected(self, results: list[Any], dims: Any, join: Callable[[list[Any], Any], Any]) -> Any:
        """Joins the results of several calls, leaf by leaf."""
        first = results[0]
        parts = _parts(first)
        if parts is not None:
            each = _spread(dims, first, len(parts))
            if each is None:
                raise ValueError(f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
                                 f"out_dims has structure {dims} but outputs has a {type(first).__name__} of {len(parts)} elements.")
            columns = zip(*map(_parts, results))
            return _remade(first, [self.collected(list(column), dim, join) for column, dim in zip(columns, each)])
        if isinstance(dims, (tuple, list)) and len(dims) == 1:
            dims = dims[0]
        if dims is not None and not isinstance(dims, int):
            raise ValueError(f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`, "
                             "which is a single value.")
        if not isinstance(first, Tensor):
            if dims is None:
                return first
            raise ValueError(f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type {type(first)}. Did you mean to set out_dims= to None "
                             "for output?")
        return join(results, dims)


@contextlib.contextmanager
def _inside(level: Any) -> Iterator[None]:
    _active.levels.append(level)
    try:
        yield
    finally:
        _active.levels.pop()
