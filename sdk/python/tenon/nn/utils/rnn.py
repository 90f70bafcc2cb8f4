"""Sequences of different lengths in one batch: padded, or packed without padding for RNN, LSTM and GRU.

    packed = pack_sequence(sequences, enforce_sorted=False)
    output, state = lstm(packed)
    padded, lengths = pad_packed_sequence(output)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import tenon
from tenon import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """Sequences as the steps of a batch whose sequences are sorted by length, the longest first.

    Args:
        data: the elements of all sequences at step 0, then at step 1, and so on: (sum of lengths, ...).
        batch_sizes: the number of sequences that have each step.
        sorted_indices: the place of each sorted sequence in the batch; None if the batch is sorted.
        unsorted_indices: the inverse of sorted_indices.
    """

    def __new__(cls, data: Tensor, batch_sizes: Tensor, sorted_indices: Tensor | None = None, unsorted_indices: Tensor | None = None) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with(self, data: Tensor) -> PackedSequence:
        return PackedSequence(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Returns the sequences with another dtype or on another device, as Tensor.to does."""
        return self._with(self.data.to(*args, **kwargs))

    def double(self) -> PackedSequence:
        """Returns the sequences in f64."""
        return self._with(tenon.cast(self.data, tenon.float64))

    def float(self) -> PackedSequence:
        """Returns the sequences in f32."""
        return self._with(tenon.cast(self.data, tenon.float32))

    def half(self) -> PackedSequence:
        """Returns the sequences in f16."""
        return self._with(tenon.cast(self.data, tenon.float16))

    def cpu(self) -> PackedSequence:
        """Returns the sequences on the host device."""
        return self._with(self.data.cpu())


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Returns the inverse of a permutation: the place of each number in it."""
    return None if permutation is None else tenon.argsort(permutation)


def _rows(tensor: Tensor, places: list[int]) -> Tensor:
    return tenon.index_select(tensor, 0, tenon.tensor(places, dtype=tenon.int64, device=tensor.device))


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> PackedSequence:
    """Packs padded sequences.

    Args:
        input: (steps, batch, ...), or (batch, steps, ...) with batch_first.
        lengths: the length of each sequence, a list or a tensor.
        enforce_sorted: True expects the longest sequence first, False sorts the sequences.

    Example:
        >>> rnn = tenon.nn.utils.rnn
        >>> rnn.pack_padded_sequence(tenon.tensor([[1, 3], [2, 0]]), [2, 1]).data
        tensor([1, 3, 2])
    """
    counts = [int(each) for each in (lengths.tolist() if isinstance(lengths, Tensor) else lengths)]
    if batch_first:
        input = tenon.transpose(input, 0, 1)
    steps, batch = input.shape[0], input.shape[1]
    if len(counts) != batch:
        raise RuntimeError(f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})")
    if any(each <= 0 for each in counts):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if max(counts) > steps:
        raise RuntimeError(f"Expected lengths of at most {steps}, the number of steps, but got {max(counts)}")
    order = list(range(batch))
    if not enforce_sorted:
        order.sort(key=lambda i: -counts[i])
    elif counts != sorted(counts, reverse=True):
        raise RuntimeError("`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass `enforce_sorted=False` to "
                           "pack_padded_sequence and/or pack_sequence to sidestep this requirement if you do not need ONNX exportability.")
    sizes = [sum(each > step for each in counts) for step in range(max(counts))]
    places = [step * batch + order[i] for step, size in enumerate(sizes) for i in range(size)]
    data = _rows(tenon.flatten(input, 0, 1), places)
    return PackedSequence(data, tenon.tensor(sizes, dtype=tenon.int64), None if enforce_sorted else tenon.tensor(order, dtype=tenon.int64, device=input.device))


def pad_packed_sequence(sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None) -> tuple[Tensor, Tensor]:
    """Returns packed sequences as a padded tensor, (steps, batch, ...) or with batch_first (batch, steps, ...), and
    their lengths.

    total_length: the number of steps of the result; None is the largest length.
    """
    sizes = sequence.batch_sizes.tolist()
    batch, steps = sizes[0], len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(f"Expected total_length to be at least the length of the longest sequence in input, but got total_length={total_length} and "
                             f"max sequence length being {steps}")
        steps = total_length
    order = list(range(batch)) if sequence.unsorted_indices is None else sequence.unsorted_indices.tolist()
    count, starts = sequence.data.shape[0], [sum(sizes[:step]) for step in range(len(sizes))]
    places = [starts[step] + place if step < len(sizes) and place < sizes[step] else count for step in range(steps) for place in order]
    padding = tenon.full((1, *sequence.data.shape[1:]), padding_value, dtype=sequence.data.dtype, device=sequence.data.device)
    padded = tenon.unflatten(_rows(tenon.concat([sequence.data, padding], 0), places), 0, (steps, batch))
    lengths = tenon.tensor([sum(size > place for size in sizes) for place in order], dtype=tenon.int64)
    return tenon.transpose(padded, 0, 1) if batch_first else padded, lengths


def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> Tensor:
    """Stacks tensors (length, ...) of different lengths into (steps, batch, ...), or with batch_first (batch, steps,
    ...). Shorter ones are padded at their end, or at their beginning with padding_side="left".

    Example:
        >>> tenon.nn.utils.rnn.pad_sequence([tenon.tensor([1, 2]), tenon.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    listed = list(sequences.unbind(0)) if isinstance(sequences, Tensor) else list(sequences)
    if not listed:
        raise RuntimeError("received an empty list of sequences")
    steps = max(each.shape[0] for each in listed)

    def padded(each: Tensor) -> Tensor:
        missing = (steps - each.shape[0], *each.shape[1:])
        if missing[0] == 0:
            return each
        padding = tenon.full(missing, padding_value, dtype=each.dtype, device=each.device)
        return tenon.concat([each, padding] if padding_side == "right" else [padding, each], 0)
    return tenon.stack([padded(each) for each in listed], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False) -> list[Tensor]:
    """Returns the sequences of a padded tensor without padding."""
    if not batch_first:
        padded_sequences = tenon.transpose(padded_sequences, 0, 1)
    return [sequence[:length] for sequence, length in zip(tenon.unbind(padded_sequences, 0), lengths.tolist())]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs tensors (length, ...) of different lengths. enforce_sorted: as in pack_padded_sequence."""
    return pack_padded_sequence(pad_sequence(sequences), [each.shape[0] for each in sequences], enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Returns packed sequences as a list of tensors."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
