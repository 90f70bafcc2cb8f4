"""Global tensors: one tensor over the processes of a launch (mpirun -n 4 python3 program.py).

    import tenon
    from tenon.global_ import placement, sbp

    everyone = placement("cpu", ranks=[0, 1])
    x = tenon.tensor(part).to_global(everyone, sbp.split(0))        # each rank holds some rows
    w = tenon.tensor(weight).to_global(everyone, sbp.broadcast)     # each rank holds all of it
    y = x @ w                                                        # split by rows; needs no communication
    y.sum().item()                                                   # the sum over all ranks, on each rank

Every rank runs the same program. The names are OneFlow's. In PyTorch's DTensor a placement is a DeviceMesh, the
SBPs are Shard(dim), Replicate() and Partial(), `to_global` is distribute_tensor and redistribute, and `to_local`
has the same name; reading elements needs no full_tensor(). `save` and `load` correspond to
torch.distributed.checkpoint, and `micro_batches` to Schedule1F1B of torch.distributed.pipelining, with placements
as stages.
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
        """Each rank holds a part along axis `dim`. The lengths of parts differ by at most one; longer parts come
        first."""
        made: Sbp = _tenon._global.split(dim)
        return made


sbp = _Sbps()


def rank() -> int:
    """Returns the number of this process in the launch; 0 without a launcher."""
    return int(_tenon._global.rank())


def world_size() -> int:
    """Returns the number of processes in the launch; 1 without a launcher."""
    return int(_tenon._global.world_size())


def placement(type: str, ranks: Iterable[Any] | None = None) -> Placement:
    """Creates a placement: the ranks that hold a tensor, and their devices. Every rank must make the call, also
    ranks that are not part of it.

    Args:
        type: "cpu"; "cuda" for the device with the number of the rank on its machine; or one device, such as "cuda:0".
        ranks: a list of ranks, or nested lists for a grid with several axes. None takes all ranks.
    """
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
    """True if `tensor` is spread over ranks."""
    return bool(_tenon._global.is_global(tensor))


def to_global(tensor: Tensor, placement: Placement | None = None, sbp: SbpLike | None = None) -> Tensor:
    """Joins the local tensors of all ranks to one global tensor, or changes the layout of a global tensor.

    placement and sbp may be None for a global tensor and then stay unchanged. The gradient of the result is
    converted back to the layout of `tensor`.

    Errors: ValueError for a local tensor without placement or sbp.
    """
    if not is_global(tensor) and (placement is None or sbp is None):
        raise ValueError("to_global: a local tensor needs a placement and an sbp.")
    at = _tenon._global.placement_of(tensor) if placement is None else placement
    spread = _tenon._global.sbp_of(tensor) if sbp is None else sbp
    made: Tensor = _tenon._global.to_global(tensor, at, _list(spread))
    return made


def to_local(tensor: Tensor) -> Tensor | None:
    """Returns the part of this rank, which shares its elements with `tensor`; None outside of the placement."""
    part: Tensor | None = _tenon._global.to_local(tensor)
    return part


def micro_batches(loss: Callable[..., Tensor], *batch: Tensor, count: int) -> Tensor:
    """Computes `loss` and its gradients for `count` parts of the batch along its rows, so that the stages of a
    pipeline work at the same time (1F1B). Returns the mean loss, without gradient history.

    `loss` must be the mean over its rows; the gradients are then those of the mean loss of the whole batch. If
    the batch is split along its rows, each rank uses its own rows. Without a launcher the parts run one after the
    other.
    """
    made: Tensor = _tenon._global.micro_batches(count, list(batch), loss)
    return made


def zeros(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Returns a global tensor of zeros. Each rank creates its part."""
    made: Tensor = _tenon._global.zeros(_size(size), placement, _list(sbp), dtype)
    return made


def ones(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Returns a global tensor of ones. Each rank creates its part."""
    made: Tensor = _tenon._global.ones(_size(size), placement, _list(sbp), dtype)
    return made


def rand(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Returns random numbers from [0, 1). They do not depend on the layout."""
    made: Tensor = _tenon._global.rand(_size(size), placement, _list(sbp), dtype)
    return made


def randn(*size: int, placement: Placement, sbp: SbpLike, dtype: Any = None) -> Tensor:
    """Returns normally distributed random numbers. They do not depend on the layout."""
    made: Tensor = _tenon._global.randn(_size(size), placement, _list(sbp), dtype)
    return made


def _size(size: tuple[Any, ...]) -> list[int]:
    return list(size[0]) if len(size) == 1 and not isinstance(size[0], int) else list(size)
