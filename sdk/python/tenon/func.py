"""Transformations of functions: derivatives, and functions of batches (PyTorch's torch.func).

    gradient = tenon.func.grad(loss)
    per_sample = tenon.vmap(tenon.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
"""

from __future__ import annotations

import functools
import threading
import types
from typing import Any, Callable, Iterator

import tenon
from tenon import Tensor, _changes, _tenon
from tenon._structures import flatten, rebuild
from tenon._vmap import active_levels, vmap
from tenon.autograd import enable_grad, is_grad_enabled

_Function = Callable[..., Any]


class _Depth(threading.local):
    """The number of derivatives that the thread is computing, one inside the other."""

    depth = 0


_nesting = _Depth()


def _base(value: Any) -> Any:
    return _batching().base_of(value) if active_levels() else value


def _batching() -> Any:
    from tenon import _batching
    return _batching


_MOST_OBJECTS = 4096


def _captured(function: Any, seen: set[int], depth: int = 4) -> Iterator[Tensor]:
    """Yields tensors that require gradients and that a function or a container holds. Looks at a limited number of
    objects."""
    if depth == 0 or id(function) in seen or len(seen) > _MOST_OBJECTS:
        return
    seen.add(id(function))
    held: list[Any] = []
    if isinstance(function, Tensor):
        if function.requires_grad:
            yield _base(function)
        return
    if isinstance(function, tenon.nn.Module):
        held = [*function.parameters(), *function.buffers()]
    elif isinstance(function, functools.partial):
        held = [function.func, *function.args, *function.keywords.values()]
    elif isinstance(function, types.MethodType):
        held = [function.__func__, function.__self__]
    elif isinstance(function, types.FunctionType):
        names = function.__globals__
        held = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        held += [names[name] for name in function.__code__.co_names if name in names] + list(function.__defaults__ or ())
    elif isinstance(function, dict):
        held = list(function.values())
    elif isinstance(function, (list, tuple)):
        held = list(function)
    elif not isinstance(function, (type, types.ModuleType)):
        held = list(getattr(function, "__dict__", {}).values())
    for each in held:
        yield from _captured(each, seen, depth - (not isinstance(each, Tensor)))


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents
    except ValueError:
        return False
    return True


class _Run:
    """One evaluation of a function whose derivatives are wanted.

    `inputs` are copies of the differentiated tensors, which depend on the originals if those require gradients. `outer`
    is true if the results must stay differentiable: inside another derivative, or because they depend on other
    tensors that require gradients.
    """

    def __init__(self, function: _Function, chosen: Any, arguments: Callable[[list[Any]], tuple[Any, ...]], kwargs: dict[str, Any], has_aux: bool) -> None:
        self.levels = active_levels()
        given: list[Tensor] = []
        self.structure = flatten(chosen, given)
        originals = [self.everywhere(each) for each in given]
        recording = is_grad_enabled()
        self.outer = recording and (_nesting.depth > 0 or any(each.requires_grad for each in originals))
        with enable_grad():
            self.inputs: list[Any] = [_tenon.view(each, each.shape) if recording and each.requires_grad else each.detach().requires_grad_() for each in originals]
            args = arguments(self.inputs)
            _nesting.depth += 1
            try:
                result = function(*args, **kwargs)
            finally:
                _nesting.depth -= 1
        self.aux: Any = None
        if has_aux:
            if not (isinstance(result, tuple) and len(result) == 2):
                got = f"a tuple of {len(result)} elements" if isinstance(result, tuple) else type(result).__name__
                raise RuntimeError(f"has_aux=True: the function must return a pair (output, aux), but it returned {got}.")
            result, self.aux = result
        self.output = result
        self.outputs: list[Any] = []
        self.output_structure = flatten(result, self.outputs)
        self.others: list[Tensor] = []
        if recording and not self.outer:
            own = {id(_base(each)) for each in self.inputs}
            self.others = [each for each in {id(each): each for each in _captured((function, args, kwargs), set())}.values() if id(each) not in own]

    def everywhere(self, tensor: Any) -> Any:
        """Gives a tensor the batch of each vmap around the call, so that each sample has its own gradient."""
        return _batching().with_all(tensor, self.levels) if self.levels else tensor

    def finished(self, value: Any) -> Any:
        """Returns results without the history that only this derivative needed."""
        tensors: list[Tensor] = []
        structure = flatten(value, tensors)
        return value if self.outer else rebuild(structure, iter([each.detach() for each in tensors]))

    def settle(self) -> None:
        """Finds out if the results depend on captured tensors that require gradients."""
        live = [each for each in self.outputs if each.requires_grad]
        if not self.outer and self.others and live:
            sums = [_base(self.everywhere(each)) for each in live]
            found = _tenon._grad(sums, self.others, [tenon.ones_like(each) for each in sums], True, False, True)
            self.outer = any(each is not None for each in found)

    def gradients(self, outputs: list[Any], weights: list[Any] | None = None, inputs: list[Any] | None = None, again: bool = False) -> list[Any]:
        """Returns the gradients of `outputs`, each weighted by a tensor of its shape, with respect to the inputs of the
        function, or to others. Without weights the outputs have rank 0. `again`: they can be differentiated."""
        inputs = self.inputs if inputs is None else inputs
        live = [i for i, each in enumerate(outputs) if each.requires_grad]
        sums = [_base(self.everywhere(outputs[i])) for i in live]
        scales = [_base(self.everywhere(tenon.ones_like(outputs[i]) if weights is None else weights[i])) for i in live]
        bases = [_base(each) for each in inputs]
        found: list[Any] = self.derived(sums, bases, scales, again) if sums else [None] * len(bases)
        made = [tenon.zeros_like(base) if each is None else each for each, base in zip(found, bases)]
        return [_batching().like(each, input) for each, input in zip(made, inputs)] if self.levels else made

    def derived(self, outputs: list[Any], inputs: list[Any], weights: list[Any], again: bool) -> list[Any]:
        if not self.outer and not again:
            found = _tenon._grad(outputs, inputs + self.others, weights, True, False, True)
            if all(each is None for each in found[len(inputs):]):
                return list(found[:len(inputs)])
            self.outer = True
        with enable_grad():
            return list(_tenon._grad(outputs, inputs, weights, True, True, True))

    def transposed(self) -> tuple[list[Any], list[Any]]:
        """Returns weights of the outputs, and the gradients of the inputs as linear functions of these. The gradients of
        the gradients with respect to the weights are the derivatives in a direction."""
        with enable_grad():
            weights = [self.everywhere(tenon.zeros_like(each).detach()).requires_grad_() for each in self.outputs]
            return weights, self.gradients(self.outputs, weights, again=True)

    def jacobian(self, blocks: list[list[Any]]) -> Any:
        """Arranges blocks[output][input] in the structures of the results and the arguments."""
        return rebuild(self.output_structure, iter([self.rebuilt(row) for row in blocks]))

    def rebuilt(self, tensors: list[Any]) -> Any:
        """The differentiated arguments with other tensors."""
        return rebuild(self.structure, iter(tensors))


def _chosen(args: tuple[Any, ...], argnums: Any) -> tuple[Any, Callable[[list[Any]], tuple[Any, ...]]]:
    """Returns the differentiated arguments, and a function that returns the arguments with other tensors in these."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers or not all(isinstance(each, int) for each in numbers):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {argnums!r}")
    for each in numbers:
        if not -len(args) <= each < len(args):
            raise RuntimeError(f"Got argnum={each}, but only {len(args)} positional inputs")
    places = [each % len(args) for each in numbers]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got: {argnums}")
    structure = flatten(tuple(args[i] for i in places), [])

    def replaced(tensors: list[Any]) -> tuple[Any, ...]:
        made = list(args)
        for i, value in zip(places, rebuild(structure, iter(tensors))):
            made[i] = value
        return tuple(made)
    return tuple(args[i] for i in places) if isinstance(argnums, tuple) else args[places[0]], replaced


def grad(func: _Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> _Function:
    """Returns a function that computes the gradient of `func`, whose result has one element.

    Args:
        argnums: the arguments to differentiate by: a number, or a tuple, which gives a tuple. An argument may be a
            nested structure of tensors.
        has_aux: `func` returns a pair of the result and other values; the new function returns a pair of the gradient
            and these.

    The gradient can be differentiated again, also by tensors that `func` uses and that are not its arguments.

    Example:
        >>> tenon.func.grad(lambda x: (x ** 3).sum())(tenon.tensor([1.0, 2.0]))
        tensor([ 3., 12.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found
    return gradient


def grad_and_value(func: _Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> _Function:
    """Like grad; the new function returns a pair of the gradient and the result of `func`."""
    @functools.wraps(func)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        run = _Run(func, *_chosen(args, argnums), kwargs, has_aux)
        if not isinstance(run.output, Tensor):
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a tensor, got {type(run.output)}")
        if run.output.ndim != 0:
            raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with {run.output.ndim} dims. Maybe you wanted "
                               "to use the vjp or jacrev APIs instead?")
        found = run.rebuilt(run.gradients([run.output], None))
        value = run.finished(run.output)
        return found, (value, run.finished(run.aux)) if has_aux else value
    return gradient


def vjp(func: _Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Returns the results of func(*primals), and a function of their weights that returns the gradients of the primals.

    Args:
        has_aux: `func` returns a pair of the results and other values, which are returned as a third element.

    Example:
        >>> out, back = tenon.func.vjp(tenon.sin, tenon.zeros(2))
        >>> back(tenon.ones(2))[0]
        tensor([1., 1.])
    """
    run = _Run(func, primals, _like(primals), {}, has_aux)
    _check_tensors(run, "vjp")
    run.settle()

    def back(*cotangents: Any) -> Any:
        weights = _flat_like(cotangents[0] if len(cotangents) == 1 else cotangents, run.output_structure, run.outputs,
                             "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function.", "output")
        return run.rebuilt(run.gradients(run.outputs, weights))
    return (run.finished(run.output), back, run.finished(run.aux)) if has_aux else (run.finished(run.output), back)


def jvp(func: _Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> tuple[Any, ...]:
    """Returns the results of func(*primals), and their derivatives in the direction of `tangents`.

    Args:
        primals, tangents: tuples of equal structure.
        strict: has no effect; a result that does not depend on the primals has the derivative 0.
        has_aux: `func` returns a pair of the results and other values, which are returned as a third element.

    The derivatives are computed by differentiating backward twice.

    Example:
        >>> tenon.func.jvp(tenon.sin, (tenon.zeros(2),), (tenon.tensor([1.0, 2.0]),))[1]
        tensor([1., 2.])
    """
    if not isinstance(primals, tuple):
        raise RuntimeError("jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    run = _Run(func, primals, _like(primals), {}, has_aux)
    _check_tensors(run, "jvp")
    directions = _flat_like(tangents, run.structure, run.inputs, "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. "
                            "For example, if primals is a tuple of 3 tensors, tangents also must be.", "primal")
    run.outer = run.outer or is_grad_enabled() and any(each.requires_grad for each in directions)
    run.settle()
    weights, gradients = run.transposed()
    found = rebuild(run.output_structure, iter(run.gradients(gradients, directions, weights)))
    return (run.finished(run.output), found, run.finished(run.aux)) if has_aux else (run.finished(run.output), found)


def jacrev(func: _Function, argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False, chunk_size: int | None = None,
           _preallocate_and_copy: bool = False) -> _Function:
    """Returns a function that computes the derivatives of each element of the results of `func` by each element of an
    argument. A block has the shape of the result followed by the shape of the argument.

    Args:
        argnums: the arguments to differentiate by: a number, or a tuple, which gives a tuple in each block.
        has_aux: `func` returns a pair of the results and other values; the new function returns a pair as well.
        chunk_size: has no effect; there is one backward per element of the results.

    Example:
        >>> tenon.func.jacrev(tenon.sin)(tenon.zeros(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    def rows(run: _Run) -> list[list[Any]]:
        blocks = []
        for output in run.outputs:
            with enable_grad():
                elements = _tenon.unbind(_tenon.reshape(output, (-1,)), 0)
            found = [run.gradients([each]) for each in elements]
            blocks.append([_block([row[j] for row in found], output, input) for j, input in enumerate(run.inputs)])
        return blocks
    return _jacobian(func, argnums, has_aux, "jacrev", rows)


def jacfwd(func: _Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error") -> _Function:
    """Like jacrev, with one backward per element of the arguments: faster for functions of few numbers. `randomness`
    has no effect: the function runs once.

    Example:
        >>> tenon.func.jacfwd(lambda x: x * tenon.ones(3))(tenon.tensor(2.0))
        tensor([1., 1., 1.])
    """
    def columns(run: _Run) -> list[list[Any]]:
        weights, gradients = run.transposed()
        blocks: list[list[Any]] = [[] for _ in run.outputs]
        for input, gradient in zip(run.inputs, gradients):
            with enable_grad():
                elements = _tenon.unbind(_tenon.reshape(gradient, (-1,)), 0)
            found = [run.gradients([each], None, weights) for each in elements]
            for i, output in enumerate(run.outputs):
                block = _block([column[i] for column in found], input, output)
                blocks[i].append(_tenon.permute(block, (*range(input.ndim, block.ndim), *range(input.ndim))))
        return blocks
    return _jacobian(func, argnums, has_aux, "jacfwd", columns)


def hessian(func: _Function, argnums: int | tuple[int, ...] = 0) -> _Function:
    """Returns a function that computes the second derivatives of `func`: jacrev of jacrev.

    Example:
        >>> tenon.func.hessian(lambda x: (x ** 3).sum())(tenon.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacrev(jacrev(func, argnums), argnums)


def _jacobian(func: _Function, argnums: Any, has_aux: bool, name: str, compute: Callable[[_Run], list[list[Any]]]) -> _Function:
    @functools.wraps(func)
    def derivative(*args: Any, **kwargs: Any) -> Any:
        run = _Run(func, *_chosen(args, argnums), kwargs, has_aux)
        _check_tensors(run, name)
        run.settle()
        blocks = run.jacobian(compute(run))
        return (blocks, run.finished(run.aux)) if has_aux else blocks
    return derivative


def _block(rows: list[Any], first: Any, second: Any) -> Any:
    shape = (*first.shape, *second.shape)
    return _tenon.reshape(_tenon.stack(rows, 0), shape) if rows else tenon.zeros(shape, dtype=second.dtype, device=second.device)


def _like(args: tuple[Any, ...]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """Returns a function that returns `args` with other tensors."""
    structure = flatten(args, [])
    return lambda tensors: rebuild(structure, iter(tensors))


def _flat_like(values: Any, structure: Any, tensors: list[Any], wrong: str, what: str) -> list[Any]:
    """Returns the tensors in `values`, which must have a structure, and tensors of the shapes of others."""
    found: list[Any] = []
    if flatten(values, found) != structure:
        raise RuntimeError(wrong)
    for each, other in zip(found, tensors):
        if tuple(each.shape) != tuple(other.shape):
            raise RuntimeError(f"Mismatch in shape: a weight has shape {tuple(each.shape)} and its {what} has shape {tuple(other.shape)}.")
    return found


def _check_tensors(run: _Run, name: str) -> None:
    if not isinstance(run.output, (Tensor, tuple, list, dict)):
        raise RuntimeError(f"{name}(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(run.output)}")
    if not run.outputs:
        raise RuntimeError(f"{name}(f, *primals): Expected f to be a function that has non-empty output (got output = {run.output})")


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True,
                    strict: bool = False) -> Any:
    """Calls a module with other tensors in place of its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: tensors by path, as in state_dict, or several dicts. The module keeps those that are
            not named.
        args: a tuple of arguments, or one argument.
        tie_weights: a tensor that the module holds under several paths is replaced under all of them.
        strict: missing and unknown paths are an error.

    Example:
        >>> net = tenon.nn.Linear(2, 1)
        >>> tenon.func.functional_call(net, {"weight": tenon.ones(1, 2), "bias": tenon.zeros(1)}, tenon.ones(2))
        tensor([2.])
    """
    given = _merged(parameter_and_buffer_dicts)
    places: dict[str, tuple[dict[str, Any], str]] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        for held in (part._parameters, part._buffers):
            places.update({f"{path}.{name}" if path else name: (held, name) for name, each in held.items() if each is not None})
    missing, unknown = [name for name in places if name not in given], [name for name in given if name not in places]
    if tie_weights:
        paths: dict[int, list[str]] = {}
        for path, (held, name) in places.items():
            paths.setdefault(id(held[name]), []).append(path)
        for tied in paths.values():
            values = [given[path] for path in tied if path in given]
            if any(value is not values[0] for value in values):
                raise ValueError(f"functional_call got different values for {', '.join(tied)}, which are tied. Pass tie_weights=False to use them as they are.")
            given.update({path: values[0] for path in tied if values})
        missing = [name for name in missing if name not in given]
    if strict and (missing or unknown):
        lines = [f"Unexpected key(s): {', '.join(map(repr, unknown))}."] * bool(unknown) + [f"Missing key(s): {', '.join(map(repr, missing))}."] * bool(missing)
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(lines))
    saved = [(*places[path], value) for path, value in given.items() if path in places]
    originals = [held[name] for held, name, _ in saved]
    try:
        for (held, name, value), original in zip(saved, originals):
            _changes.replaced.setdefault((id(held), name), original)
            dict.__setitem__(held, name, value)  # not a change of the module, which compiled functions would record again
        return module(*args if isinstance(args, tuple) else () if args is None else (args,), **(kwargs or {}))
    finally:
        for (held, name, _), original in zip(saved, originals):
            dict.__setitem__(held, name, original)
            if _changes.replaced.get((id(held), name)) is original:
                del _changes.replaced[id(held), name]


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, (list, tuple)):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}")
    if not all(isinstance(each, dict) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    merged: dict[str, Any] = {}
    for each in dicts:
        twice = [name for name in each if name in merged]
        if twice:
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        merged.update(each)
    return merged


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns the parameters and the buffers of modules of one class, each stacked along a new first axis, for vmap over
    functional_call.

    Errors: there is no model, the classes differ, or only some of the models are in training mode.

    Example:
        >>> params, buffers = tenon.func.stack_module_state([tenon.nn.Linear(2, 1) for _ in range(3)])
        >>> params["weight"].shape
        (3, 1, 2)
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(each.training != models[0].training for each in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(each) is not type(models[0]) for each in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    states = [dict(each.named_parameters()) for each in models], [dict(each.named_buffers()) for each in models]
    parameters = {name: _tenon.stack([state[name].detach() for state in states[0]], 0).requires_grad_(states[0][0][name].requires_grad) for name in states[0][0]}
    return parameters, {name: _tenon.stack([state[name].detach() for state in states[1]], 0) for name in states[1][0]}


__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "stack_module_state", "vjp", "vmap"]
