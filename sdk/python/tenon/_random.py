"""Seeds and states of random generators: functions for the default generator, and members of Generator."""

from __future__ import annotations

import os
from typing import Any, Sequence

from tenon import _tenon

Generator: Any = _tenon.Generator
_initial_seed = 0


def manual_seed(seed: int) -> None:
    """Seeds the random numbers of all ops. A negative seed counts from 2**64, as in PyTorch."""
    global _initial_seed
    _initial_seed = seed % 2**64 if seed < 0 else seed
    _tenon.manual_seed(_initial_seed)


def seed() -> int:
    """Seeds the random numbers of all ops with a seed from the operating system, and returns it."""
    manual_seed(_new_seed())
    return _initial_seed


def initial_seed() -> int:
    """Returns the last seed of manual_seed or seed(); at first 0."""
    return _initial_seed


def get_rng_state() -> tuple[int, int]:
    """Returns the state of the default generator, for set_rng_state and for checkpoints: a pair of numbers, as
    Generator.get_state does.

    The default generator takes a new seed, which it draws. So the numbers after this call differ from the numbers
    without it, but are the same in each run, and set_rng_state repeats them.
    """
    drawn = int(_tenon.randint(0, 2**63 - 1, ()))
    _tenon.manual_seed(drawn)
    return drawn, 0


def set_rng_state(new_state: Sequence[int]) -> None:
    """Restores what get_rng_state returned.

    Errors: Unsupported for the state of a Generator that has been used.
    """
    drawn, offset = new_state
    if offset != 0:
        raise _tenon.Unsupported("set_rng_state: the state is one of a Generator that has been used; only states of get_rng_state can be restored here.")
    _tenon.manual_seed(drawn)


def _new_seed() -> int:
    return int.from_bytes(os.urandom(8), "little")


def _seed(self: Any) -> int:
    """Seeds the generator with a seed from the operating system, and returns it."""
    self.manual_seed(drawn := _new_seed())
    return drawn


def _initial_seed_of(self: Any) -> int:
    """Returns the seed."""
    found: int = self.get_state()[0]
    return found


def generator_at(state: Sequence[int]) -> Any:
    """Returns a Generator with the state that Generator.get_state returned."""
    made = Generator()
    made.set_state(tuple(state))
    return made


Generator.seed, Generator.initial_seed = _seed, _initial_seed_of
Generator.__reduce__ = lambda self: (generator_at, (self.get_state(),))
