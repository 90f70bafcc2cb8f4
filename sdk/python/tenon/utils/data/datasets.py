"""Datasets: samples by number, or one after the other."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from typing import Any, Generic, Iterable, Iterator, Sequence, TypeVar

import tenon
from tenon import Generator, Tensor

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Dataset(Generic[T_co]):
    """Base class of datasets of numbered samples. Subclasses define __getitem__, and __len__ for most samplers. If they
    define __getitems__, it receives the numbers of a batch and returns a list of samples."""

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> ConcatDataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets that produce samples one after the other. Subclasses define __iter__. Each worker of a
    loader iterates over the whole dataset, unless get_worker_info() tells it which part is its own."""

    def __add__(self, other: Dataset[T_co]) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset["tuple[Tensor, ...]"]):
    """Sample i is the tuple of the i-th parts of the tensors, along their first axis."""

    def __init__(self, *tensors: Tensor) -> None:
        assert all(tensors[0].shape[0] == tensor.shape[0] for tensor in tensors), "Size mismatch between tensors"
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].shape[0])


class StackDataset(Dataset[Any]):
    """Sample i has sample i of each dataset: a tuple, or a dict for datasets that are given by name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if bool(args) == bool(kwargs):
            raise ValueError("StackDataset takes datasets either by position or by name" if args else "At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = {len(each) for each in (args or kwargs.values())}
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {name: dataset[index] for name, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The samples of several datasets, one dataset after the other."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        assert self.datasets, "datasets should not be an empty iterable"
        for each in self.datasets:
            assert not isinstance(each, IterableDataset), "ConcatDataset does not support IterableDataset"
        self.cumulative_sizes = list(itertools.accumulate(len(each) for each in self.datasets))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> T_co:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        number = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[number][index - (self.cumulative_sizes[number - 1] if number else 0)]


class ChainDataset(IterableDataset[Any]):
    """The samples of several iterable datasets, one dataset after the other."""

    def __init__(self, datasets: Iterable[Any]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for each in self.datasets:
            assert isinstance(each, IterableDataset), "ChainDataset only supports IterableDataset"
            yield from each

    def __len__(self) -> int:
        return sum(len(each) for each in self.datasets)


class Subset(Dataset[T_co]):
    """The samples of a dataset that have the given numbers."""

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[each] for each in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        numbers = [self.indices[each] for each in indices]
        many = getattr(self.dataset, "__getitems__", None)
        return list(many(numbers)) if many else [self.dataset[each] for each in numbers]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset[T], lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset[T]]:
    """Returns disjoint subsets of random samples.

    Args:
        lengths: the number of samples of each subset, or fractions whose sum is 1. Samples that rounding leaves over
            go to the first subsets, one each.

    Errors: ValueError if the lengths do not add up to that of the dataset.

        train, test = random_split(dataset, [0.8, 0.2])
    """
    size = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        counts = [math.floor(size * fraction) for fraction in lengths]
        for i in range(size - sum(counts)):
            counts[i % len(counts)] += 1
        for i, count in enumerate(counts):
            if count == 0:
                warnings.warn(f"Length of split at index {i} is 0. This might result in an empty dataset.", stacklevel=2)
    else:
        counts = list(lengths)  # type: ignore[arg-type]
    if sum(counts) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = tenon.randperm(size, generator=generator).tolist()
    return [Subset(dataset, order[end - count:end]) for count, end in zip(counts, itertools.accumulate(counts))]


__all__ = ["ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset", "TensorDataset", "random_split"]
