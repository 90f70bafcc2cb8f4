"""Control flow that a compiled function records: cond, while_loop and scan."""

from __future__ import annotations

from typing import Any, Callable, Sequence

from tenon import _tenon
from tenon._structures import flatten, rebuild
from tenon._tenon import Tensor


class _Returned:
    """Passes the tensors of a function on, and remembers the structure that all calls must return."""

    def __init__(self, name: str, function: Callable[..., Any], arguments: Any, structure: Any = None) -> None:
        self._name, self._function, self._arguments, self.structure = name, function, arguments, structure

    def __call__(self, tensors: list[Tensor]) -> list[Tensor]:
        return self.check(self._function(*rebuild(self._arguments, iter(tensors))))

    def check(self, result: Any) -> list[Tensor]:
        made: list[Tensor] = []
        found = flatten(result, made)
        if self.structure is None:
            self.structure = found
        elif self.structure != found:
            raise _tenon.InvalidArgument(f"{self._name}: a function returned {found}, where {self.structure} was expected.")
        return made


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any] = ()) -> Any:
    """Returns true_fn(*operands) if `pred` is true, else false_fn(*operands).

    A compiled function records both functions, and each run decides which one computes. In a recorded cond no argument
    may require a gradient.

    Args:
        pred: a bool, or a tensor of one bool.
        true_fn, false_fn: functions that return tensors, or nested lists, tuples and dicts of tensors, of the same
            structure, shapes and dtypes.
        operands: their arguments.

    Errors: InvalidArgument if the results differ in structure, shape or dtype.

    Example:
        >>> x = tenon.tensor([1.0, -3.0])
        >>> tenon.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,))
        tensor([-1., 3.])
    """
    if not isinstance(pred, Tensor):
        return (true_fn if pred else false_fn)(*operands)
    tensors: list[Tensor] = []
    arguments = flatten(tuple(operands), tensors)
    structures: list[Any] = [None]

    def branch(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(given: list[Tensor]) -> list[Tensor]:
            each = _Returned("cond", function, arguments, structures[0])
            made = each(given)
            structures[0] = each.structure
            return made
        return call
    made = _tenon._cond(pred, branch(true_fn), branch(false_fn), tensors)
    return rebuild(structures[0], iter(made))


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]) -> Any:
    """Replaces the carried values by body_fn(*values) as long as cond_fn(*values) is true, and returns them.

    A compiled function records both functions once. In a recorded loop no value may require a gradient.

    Args:
        cond_fn: returns a bool, or a tensor of one bool.
        body_fn: returns a tuple of the same structure, shapes and dtypes as carried_inputs.
        carried_inputs: the first values: tensors, or nested lists, tuples and dicts of tensors.

    Errors: InvalidArgument if a step changes the structure, a shape or a dtype.

    Example:
        >>> tenon.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (tenon.tensor(0), tenon.tensor(1.0)))
        (tensor(3), tensor(8.))
    """
    tensors: list[Tensor] = []
    state = flatten(tuple(carried_inputs), tensors)
    body = _Returned("while_loop", lambda *values: tuple(body_fn(*values)), state, state)

    def goes_on(given: list[Tensor]) -> list[Tensor]:
        found = cond_fn(*rebuild(state, iter(given)))
        return [found if isinstance(found, Tensor) else _tenon.tensor(bool(found))]
    return rebuild(state, iter(_tenon._while_loop(goes_on, body, tensors, None)))


def scan(combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False) -> tuple[Any, Any]:
    """Calls carry, y = combine_fn(carry, x) for each slice x of `xs` in order. Returns the last carry, and the y of all
    steps stacked along `dim`.

    A compiled function records combine_fn once. In a recorded scan no tensor may require a gradient.

    Args:
        combine_fn: returns the next carry and a result, each a tensor or a nested list, tuple or dict of tensors.
        init: the first carry; each step keeps its structure, shapes and dtypes.
        xs: tensors of the same length along `dim`.
        dim: the axis that is sliced.
        reverse: begins at the last slice; results stay in the order of the slices.

    Errors: InvalidArgument if steps differ, or if lengths differ.

    Example:
        >>> tenon.scan(lambda total, x: (total + x, total + x), tenon.tensor(0.0), tenon.tensor([1.0, 2.0, 3.0]))
        (tensor(6.), tensor([1., 3., 6.]))
    """
    carry: list[Tensor] = []
    slices: list[Tensor] = []
    carry_structure, slice_structure = flatten(init, carry), flatten(xs, slices)
    slices = [_tenon.movedim(each, dim, 0) if dim else each for each in slices]
    if reverse:
        slices = [_tenon.flip(each, (0,)) for each in slices]
    result = _Returned("scan", combine_fn, None)

    def step(now: list[Tensor], given: list[Tensor]) -> list[Tensor]:
        returned = combine_fn(rebuild(carry_structure, iter(now)), rebuild(slice_structure, iter(given)))
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise _tenon.InvalidArgument("scan: combine_fn must return a tuple of the next carry and a result.")
        following: list[Tensor] = []
        if flatten(returned[0], following) != carry_structure:
            raise _tenon.InvalidArgument("scan: a step changed the structure of the carry.")
        return following + result.check(returned[1])
    last, stacked = _tenon._scan(step, carry, slices, None)
    if reverse:
        stacked = [_tenon.flip(each, (0,)) for each in stacked]
    if dim:
        stacked = [_tenon.movedim(each, 0, dim) for each in stacked]
    return rebuild(carry_structure, iter(last)), rebuild(result.structure, iter(stacked))
