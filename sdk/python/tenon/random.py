"""The state of the default generator of random numbers, under PyTorch's names."""

from __future__ import annotations

import contextlib
import os
from typing import Any, Iterator, Sequence

from tenon import _tenon
from tenon._tenon import Tensor

Generator: Any = _tenon.Generator
default_generator: Any = _tenon.default_generator
_MASK = 2**64 - 1


def manual_seed(seed: int) -> Any:
    """Sets the seed of the default generator, which rand, randn, dropout and others use. Returns the generator."""
    return default_generator.manual_seed(int(seed) & _MASK)


def seed() -> int:
    """Seeds the default generator with a random number from the system, and returns the number."""
    return int(default_generator.seed())


def initial_seed() -> int:
    """Returns the seed of the default generator."""
    return int(default_generator.initial_seed())


def _seed(self: Any) -> int:
    """Seeds the generator with a random number from the system, and returns the number."""
    number = int.from_bytes(os.urandom(8), "little")
    self.manual_seed(number)
    return number


def generator_at(state: Sequence[int]) -> Any:
    """Returns a Generator with the state that Generator.get_state returned."""
    made = Generator()
    made.set_state(tuple(state))
    return made


Generator.seed = _seed
Generator.__reduce__ = lambda self: (generator_at, (self.get_state(),))


def get_rng_state() -> Tensor:
    """Returns the state of the default generator: its seed and position, as a tensor of 16 bytes."""
    state: tuple[int, int] = default_generator.get_state()
    return _tenon.tensor(list(b"".join(each.to_bytes(8, "little") for each in state)), dtype=_tenon.u8, device="cpu")


def set_rng_state(new_state: Tensor) -> None:
    """Takes over a state that get_rng_state returned.

    Errors: ValueError for anything but a tensor of 16 bytes.
    """
    if not isinstance(new_state, Tensor) or new_state.dtype is not _tenon.u8 or tuple(new_state.shape) != (16,):
        raise ValueError("set_rng_state(): the state must be a tensor of 16 bytes (uint8), as get_rng_state returns it.")
    held = bytes(new_state.tolist())
    default_generator.set_state((int.from_bytes(held[:8], "little"), int.from_bytes(held[8:], "little")))


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """A `with` block after which the default generator continues as if the block had not run."""
    state = default_generator.get_state()
    try:
        yield
    finally:
        if enabled:
            default_generator.set_state(state)
