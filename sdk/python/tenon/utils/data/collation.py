"""Batches of samples: lists of equal structures become structures of stacked tensors."""

from __future__ import annotations

import collections.abc
from typing import Any

import tenon
from tenon import Tensor


def _is_numpy(value: Any) -> bool:
    """True for an array or a number of NumPy, which need not be installed."""
    return type(value).__module__ == "numpy" and hasattr(value, "dtype")


def _checked(value: Any, caller: str) -> Any:
    if value.dtype.kind not in "biufcV":
        raise TypeError(f"{caller}: batch must contain tensors, numpy arrays, numbers, dicts or lists; found an array of {value.dtype}")
    return value


def _like(sample: Any, values: Any) -> Any:
    """Returns the values in a sequence or mapping of the type of `sample`, or in a list or dict if it has another
    constructor."""
    try:
        return type(sample)(values)
    except TypeError:
        return values


def default_collate(batch: Any) -> Any:
    """Returns a list of samples as one batch, as DataLoader does.

    Tensors and NumPy arrays are stacked along a new first axis; numbers become a tensor; strings and bytes stay a list;
    dicts, lists and tuples become such structures of batches (a tuple becomes a list).

    Errors: TypeError for samples of other types; RuntimeError if samples have different lengths or shapes.

        default_collate([(tenon.ones(2), 1), (tenon.zeros(2), 0)])  # [a tensor of shape (2, 2), tensor([1, 0])]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return tenon.stack(list(batch))
    if _is_numpy(first):
        if first.shape == ():
            import numpy
            return tenon.as_tensor(_checked(numpy.asarray(batch), "default_collate"))
        return tenon.stack([tenon.as_tensor(_checked(each, "default_collate")) for each in batch])
    if isinstance(first, float):
        return tenon.tensor(batch, dtype=tenon.float64)
    if isinstance(first, int):
        return tenon.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        return _like(first, {key: default_collate([sample[key] for sample in batch]) for key in first})
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(samples) for samples in zip(*batch)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        made = [default_collate(samples) for samples in zip(*batch)]
        return made if isinstance(first, tuple) else _like(first, made)
    raise TypeError(f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {type(first)}")


def default_convert(data: Any) -> Any:
    """Returns a sample with its NumPy arrays as tensors, as DataLoader does with batch_size=None."""
    if _is_numpy(data):
        return tenon.as_tensor(data) if data.dtype.kind in "biuf" else data
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {key: default_convert(each) for key, each in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        made = [default_convert(each) for each in data]
        return made if isinstance(data, tuple) else _like(data, made)
    return data
