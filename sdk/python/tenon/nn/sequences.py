"""Losses of sequences with unknown alignment (Graves et al. 2006)."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor

_NEVER = -1e30  # the logarithm of 0; the gradient of -infinity would be NaN


def _lengths(values: Any, device: Any) -> Tensor:
    given = values if isinstance(values, Tensor) else tenon.tensor(list(values) if isinstance(values, (list, tuple)) else [values], device=device)
    return tenon.reshape(tenon.cast(given, tenon.int64), (-1,))


def _padded(targets: Tensor, lengths: Tensor, batch: int) -> Tensor:
    """Returns the targets as rows (batch, longest target)."""
    if targets.ndim == 2:
        return targets
    counts = lengths.tolist()
    longest, rows, begin = max(counts, default=0), [], 0
    for count in counts:
        row = tenon.narrow(targets, 0, begin, count)
        rows.append(tenon.pad(row, [0, longest - count]))
        begin += count
    return tenon.stack(rows) if rows else tenon.zeros((batch, 0), dtype=targets.dtype, device=targets.device)


def _forward(log_probs: Tensor, labels: Tensor, may_skip: Tensor, steps: Tensor) -> Tensor:
    """Returns, per sequence and label, the logarithm of the probability of all paths that end at the label in the
    last step of the sequence: (batch, labels)."""
    batch, count = labels.shape

    def emitted(step: int) -> Tensor:
        return tenon.gather(log_probs[step], 1, labels)
    start = tenon.arange(count, device=labels.device) < 2
    state = tenon.where(start, emitted(0), _NEVER)
    never = tenon.full((batch, 2), _NEVER, dtype=log_probs.dtype, device=log_probs.device)
    for step in range(1, log_probs.shape[0]):
        before = tenon.narrow(tenon.concat([never, state], 1), 1, 1, count)
        skipped = tenon.where(may_skip, tenon.narrow(tenon.concat([never, state], 1), 1, 0, count), _NEVER)
        greatest = tenon.maximum(tenon.maximum(state, before), skipped).detach()
        total = tenon.exp(state - greatest) + tenon.exp(before - greatest) + tenon.exp(skipped - greatest)
        moved = tenon.clamp(greatest + tenon.log(total) + emitted(step), _NEVER)
        state = tenon.where(tenon.unsqueeze(steps > step, 1), moved, state)
    return state


def _losses(log_probs: Tensor, targets: Tensor, steps: Tensor, counts: Tensor, blank: int) -> Tensor:
    batch, longest = targets.shape
    blanks = tenon.full((batch, longest), blank, dtype=tenon.int64, device=targets.device)
    labels = tenon.reshape(tenon.stack([blanks, tenon.cast(targets, tenon.int64)], 2), (batch, 2 * longest))
    labels = tenon.concat([labels, tenon.full((batch, 1), blank, dtype=tenon.int64, device=targets.device)], 1)
    two_before = tenon.concat([tenon.full((batch, 2), -1, dtype=tenon.int64, device=targets.device), labels], 1)
    may_skip = tenon.logical_and(labels != blank, labels != tenon.narrow(two_before, 1, 0, 2 * longest + 1))
    may_skip = tenon.logical_and(may_skip, tenon.arange(2 * longest + 1, device=targets.device) >= 2)
    state = _forward(log_probs, tenon.clamp(labels, 0, log_probs.shape[2] - 1), may_skip, steps)
    last = tenon.gather(state, 1, tenon.unsqueeze(counts * 2, 1))
    before = tenon.where(tenon.unsqueeze(counts > 0, 1), tenon.gather(state, 1, tenon.unsqueeze(tenon.clamp(counts * 2 - 1, 0), 1)), _NEVER)
    result = -tenon.squeeze(tenon.logaddexp(last, before), 1)
    nothing = tenon.logical_and(steps == 0, counts == 0)
    impossible = tenon.logical_or(result > 1e29, tenon.logical_and(steps == 0, counts > 0))
    return tenon.where(nothing, 0.0, tenon.where(impossible, float("inf"), result))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
             zero_infinity: bool = False) -> Tensor:
    """Negative logarithm of the probability of `targets`, summed over all alignments with log_probs (Graves et al.
    2006).

    Args:
        log_probs (T, N, C): log-probabilities of C classes at T steps, such as log_softmax gives.
        targets (N, S), or (sum of target_lengths,): classes.
        input_lengths, target_lengths (N,): the used steps and labels of each sequence.
        blank: the class that may occur between labels.
        reduction: "mean" first divides each loss by the length of its target.
        zero_infinity: infinite losses, of targets that are too long, become 0.

    Errors: the lengths do not fit; blank is not a class.
    """
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    alone = log_probs.ndim == 2
    if alone:
        log_probs = tenon.unsqueeze(log_probs, 1)
        targets = tenon.reshape(targets, (1, -1))
    steps, counts = _lengths(input_lengths, log_probs.device), _lengths(target_lengths, log_probs.device)
    batch, classes = log_probs.shape[1], log_probs.shape[2]
    if not 0 <= blank < classes:
        raise tenon.InvalidArgument(f"ctc_loss: blank must be in label range [0, {classes}), but it is {blank}.")
    if steps.numel() != batch or counts.numel() != batch:
        raise tenon.InvalidArgument(f"ctc_loss: there must be {batch} lengths of inputs and of targets, not {steps.numel()} and {counts.numel()}.")
    if targets.dtype.is_floating_point:
        raise tenon.InvalidArgument(f"ctc_loss: targets must hold integers, not {targets.dtype.name}.")
    rows = _padded(targets, counts, batch)
    if batch and (int(tenon.max(steps).item()) > log_probs.shape[0] or int(tenon.min(steps).item()) < 0 or int(tenon.max(counts).item()) > rows.shape[1]):
        raise tenon.InvalidArgument(f"ctc_loss: input lengths must be within 0 and {log_probs.shape[0]}, and target lengths within 0 and {rows.shape[1]}.")
    losses = _losses(log_probs, rows, steps, counts, blank)
    # Like PyTorch's, the gradient assumes that log_probs comes from log_softmax, and so adds exp(log_probs).
    seen = tenon.arange(log_probs.shape[0], device=log_probs.device)
    seen = tenon.unsqueeze(tenon.unsqueeze(seen, 1) < tenon.unsqueeze(steps, 0), 2)
    chances = tenon.where(seen, tenon.exp(log_probs), 0.0)
    losses = losses + tenon.sum(chances - chances.detach(), [0, 2])
    if zero_infinity:
        losses = tenon.where(tenon.isinf(losses), 0.0, losses)
    if reduction == "mean":
        return tenon.mean(losses / tenon.cast(tenon.clamp(counts, 1), losses.dtype))
    if reduction == "sum":
        return tenon.sum(losses)
    return tenon.squeeze(losses, 0) if alone else losses
