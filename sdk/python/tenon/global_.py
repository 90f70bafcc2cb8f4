"""Global tensors: one tensor over the processes of a launch (mpirun -n 4 python3 program.py).

    import tenon
    from tenon.global_ import placement, sbp

    everyone = placement("cpu", ranks=[0, 1])
    x = tenon.tensor(part).to_global(everyone, sbp.split(0))        # rows of this rank
    w = tenon.tensor(weight).to_global(everyone, sbp.broadcast)     # the same on every rank
    y = x @ w                                                        # rows again, without a message
    y.sum().item()                                                   # over all ranks, on each of them

Every rank runs the same program. Names are OneFlow's; PyTorch's DTensor calls a placement DeviceMesh, and the SBPs
Shard(dim), Replicate() and Partial(); `to_global` is distribute_tensor and redistribute, `to_local` is to_local, and
reading elements needs no full_tensor(). `save` and `load` are those of torch.distributed.checkpoint, `micro_batches` is
Schedule1F1B of torch.distributed.pipelining, whose stages are placements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Union

from tenon import _tenon
from tenon._checkpoints import load, save
from tenon._tenon import Tensor

if TYPE_CHECKING:
    class Sbp:
        """How a tensor is spread along one axis of the grid of a placement."""

    class Placement:
        """The ranks that hold a tensor, as a grid, and the device of each."""

        device_type: str
        grid: tuple[int, ...]
        ranks: list[int]
        here: bool
else:
    Placement = _tenon._global.Placement
    Sbp = _tenon._global.Sbp

SbpLike = Union[Sbp, Sequence[Sbp]]

__all__ = ["Placement", "Sbp", "is_global", "load", "micro_batches", "ones", "placement", "rand", "randn", "rank", "save", "sbp", "to_global", "to_local",
           "world_size", "zeros"]


class _Sbps:
    """How a tensor is spread along one axis of the grid of a placement."""

    broadcast: Sbp = _tenon._global.broadcast
    """Each rank holds all of the tensor."""
    partial_sum: Sbp = _tenon._global.partial_sum
    """The tensor is the sum of what the ranks hold."""

    @staticmethod
    def split(dim: int) -> Sbp:
        """Each rank holds a part along axis `dim`; the parts differ by one position at most, the longer ones first."""
        made: Sbp = _tenon._global.split(dim)
        return made


sbp = _Sbps()


def rank() -> int:
    """The number of this process in the launch; 0 without a launcher."""
    return int(_tenon._global.rank())


def world_size() -> int:
    """How many processes the launch has."""
    return int(_tenon._global.world_size())


def placement(type: str, ranks: Iterable[Any] | None = None) -> Placement:
    """The ranks that hold a tensor: a list of them, or lists of lists, a grid; None: all. `type` is "cpu" or "cuda", the device
    with the number of the rank on its machine, or "cuda:0". Every rank makes the placement, those outside of it too."""
    listed = list(range(world_size())) if ranks is None else ranks
    grid: list[int] = []
    level = listed
    while not isinstance(level, int):
        level = list(level)
        grid.append(len(level))
        level = level[0] if level else 0
    made: Placement = _tenon._global.placement(type, grid, _flat(listed, grid, 0))
    return made


def _flat(level: Any, grid: list[int], depth: int) -> list[int]:
    if depth == len(grid):
        return [level]
    parts = list(level)
    if len(parts) != grid[depth]:
        raise ValueError(f"placement: a grid has rows of one length; one has {grid[depth]} and another {len(parts)}.")
    return [rank for part in parts for rank in _flat(part, grid, depth + 1)]


def _list(spread: SbpLike) -> list[Sbp]:
    return [spread] if isinstance(spread, Sbp) else list(spread)


def is_global(tensor: Tensor) -> bool:
    """Whether elements of `tensor` are spread over ranks."""
    return bool(_tenon._global.is_global(tensor))


def to_global(tensor: Tensor, placement: Placement | None = None, sbp: SbpLike | None = None) -> Tensor:
    """A local tensor: the parts of all ranks as one tensor. A global one: the same elements in another layout. What is None
    stays as it is. Gradients go back to the layout of `tensor`."""
    if not is_global(tensor) and (placement is None or sbp is None):
        raise ValueError("to_global: a local tensor needs a placement and an sbp.")
    at = _tenon._global.placement_of(tensor) if placement is None else placement
    spread = _tenon._global.sbp_of(tensor) if sbp is None else sbp
    made: Tensor = _tenon._global.to_global(tensor, at, _list(spread))
    return made


def to_local(tensor: Tensor) -> Tensor | None:
    """The part of this rank, which shares the elements; None outside of the placement."""
    part: Tensor | None = _tenon._global.to_local(tensor)
    return part


def micro_batches(loss: Callable[..., Tensor], *batch: Tensor, count: int) -> Tensor:
    """Calls `loss` for `count` parts of the tensors of `batch`, along their rows, and goes backward through each, so that the
    stages of a pipeline work at the same time (1F1B). Gradients add up to those of the mean loss of the batch, where each loss is
    the mean over its rows; the result is that mean, without a history. Of a batch that is split along its rows each rank gives
    rows of its own. Without a launch it adds up gradients."""
    made: Tensor = _tenon._global.micro_batches(count, list(batch), loss)
    return made


def zeros(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Zeros, spread; each rank makes its part."""
    made: Tensor = _tenon._global.zeros(_size(size), placement, _list(sbp), dtype)
    return made


def ones(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Ones, spread; each rank makes its part."""
    made: Tensor = _tenon._global.ones(_size(size), placement, _list(sbp), dtype)
    return made


def rand(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Random numbers in [0, 1), the same however they are spread."""
    made: Tensor = _tenon._global.rand(_size(size), placement, _list(sbp), dtype)
    return made


def randn(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Normal random numbers, the same however they are spread."""
    made: Tensor = _tenon._global.randn(_size(size), placement, _list(sbp), dtype)
    return made


def _size(size: tuple[Any, ...]) -> list[int]:
    return list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
