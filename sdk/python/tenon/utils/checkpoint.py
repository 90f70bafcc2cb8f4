"""Gradients with less memory, with the names of torch.utils.checkpoint."""

from __future__ import annotations

from typing import Any, Callable

import tenon
from tenon.compiling import is_recording


def _with_same_random_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose later calls draw the random numbers of its first call."""
    first: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        before = tenon.get_rng_state()
        if not first:
            first.append(before)
            return function(*args, **kwargs)
        tenon.set_rng_state(first[0])
        try:
            return function(*args, **kwargs)
        finally:
            tenon.set_rng_state(before)
    return call


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               determinism_check: str = "default", debug: bool = False, early_stop: bool = True, **kwargs: Any) -> Any:
    """Returns function(*args, **kwargs) without saving intermediate values for backward, as tenon.autograd.checkpoint
    does. Backward runs the function again.

    Args:
        preserve_rng_state: the second run draws the random numbers of the first, as dropout needs. Compiled functions
            ignore it.
        use_reentrant, determinism_check, debug, early_stop: accepted as in PyTorch; they do not change the result.
    """
    repeats = preserve_rng_state and not is_recording()
    return tenon.autograd.checkpoint(_with_same_random_numbers(function) if repeats else function, *args, **kwargs)


__all__ = ["checkpoint"]
