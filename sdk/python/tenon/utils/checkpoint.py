"""Gradients with less memory, with the names of torch.utils.checkpoint."""

from __future__ import annotations

from typing import Any, Callable

from tenon import autograd


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
               determinism_check: str = "default", debug: bool = False, early_stop: bool = True, **kwargs: Any) -> Any:
    """Returns function(*args, **kwargs) without saving intermediate values for backward, as tenon.autograd.checkpoint
    does. Backward runs the function again.

    Args:
        preserve_rng_state: the second run draws the random numbers of the first, as dropout needs. Compiled functions
            ignore it.
        use_reentrant, determinism_check, debug, early_stop: accepted as in PyTorch; they do not change the result.
    """
    if preserve_rng_state:
        return autograd.checkpoint(function, *args, **kwargs)
    return autograd._checkpoint(function, args, kwargs)


__all__ = ["checkpoint"]
