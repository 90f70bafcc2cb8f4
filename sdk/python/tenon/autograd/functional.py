"""Derivatives of a function at a point (PyTorch's torch.autograd.functional). The arguments of the function are one
tensor or a tuple of tensors, and so are its results. `tenon.func` has the same derivatives as functions.

In all functions: `create_graph` records the computation, for higher derivatives; `strict` refuses a result that does not
depend on an argument, whose derivatives are otherwise 0.
"""

from __future__ import annotations

from typing import Any, Callable

import tenon
from tenon._tenon import Tensor, is_grad_enabled

_Function = Callable[..., Any]


def _tensors(values: Any, what: str, name: str) -> tuple[Any, ...]:
    listed = values if isinstance(values, tuple) else (values,)
    for each in listed:
        if not isinstance(each, Tensor):
            raise TypeError(f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but it has type {type(each)}.")
    return listed


def _results(values: Any, name: str) -> tuple[Any, ...]:
    listed = values if isinstance(values, tuple) else (values,)
    for each in listed:
        if not isinstance(each, Tensor):
            raise TypeError(f"The outputs of the user-provided function given to {name} must be either a Tensor or a tuple of Tensors but one has type "
                            f"{type(each)}.")
    return listed


def _detached(values: Any) -> Any:
    return values.detach() if isinstance(values, Tensor) else tuple(map(_detached, values))


def _vector(v: Any, like: tuple[Any, ...], name: str, what: str) -> tuple[Any, ...]:
    """Returns v as a tuple of tensors with the shapes of others. None stands for the number 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what} a single Tensor with a single element.")
        return (tenon.ones_like(like[0]),)
    listed = _tensors(v, "vector v", name)
    if len(listed) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(listed)}.")
    for each, other in zip(listed, like):
        if tuple(each.shape) != tuple(other.shape):
            raise RuntimeError(f"v has invalid size: should be {tuple(other.shape)} but got {tuple(each.shape)}.")
    return listed


def _require_all(func: _Function, given: tuple[Any, ...]) -> None:
    """Raises an error if an output does not depend on an input."""
    with tenon.autograd.enable_grad():
        inputs = [each.detach().requires_grad_() for each in given]
        outputs = func(*inputs)
        for i, output in enumerate(_tensors(outputs, "outputs", "strict")):
            found = tenon.autograd.grad(output.sum(), inputs, retain_graph=True, allow_unused=True) if output.requires_grad else (None,) * len(inputs)
            for j, each in enumerate(found):
                if each is None:
                    raise RuntimeError(f"Output {i} of the user-provided function is independent of input {j}. This is not allowed in strict mode.")


def _recording(create_graph: bool) -> Any:
    return tenon.autograd.set_grad_enabled(create_graph and is_grad_enabled())


def _scalar(func: _Function, name: str) -> _Function:
    """The function with a result of rank 0."""
    def call(*args: Any) -> Any:
        result = func(*args)
        if not isinstance(result, Tensor):
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if result.numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        return result.reshape(())
    return call


def jacobian(func: _Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Returns the derivatives of each element of the result with respect to each element of each input.

    A block has the shape of the result followed by the shape of the input. Several results or inputs give tuples.

    Args:
        vectorize: has no effect.
        strategy: "reverse-mode", one backward per element of the results, or "forward-mode", one per element of the
            inputs. The values are the same.

    Example:
        >>> tenon.autograd.functional.jacobian(lambda x: x * x, tenon.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than inputs, '
                             '"forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".')
    given = _tensors(inputs, "inputs", "jacobian")
    if strict:
        _require_all(func, given)
    transform = tenon.func.jacfwd if strategy == "forward-mode" else tenon.func.jacrev

    def checked(*args: Any) -> Any:
        result = func(*args)
        _results(result, "jacobian")
        return result
    with _recording(create_graph):
        found = transform(checked, tuple(range(len(given))) if isinstance(inputs, tuple) else 0)(*given)
    return found if create_graph else _detached(found)


def hessian(func: _Function, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Returns the second derivatives of a function whose result has one element. Several inputs give a tuple of tuples.
    `vectorize` has no effect; outer_jacobian_strategy is the `strategy` of jacobian.

    Example:
        >>> tenon.autograd.functional.hessian(lambda x: (x ** 3).sum(), tenon.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    given = _tensors(inputs, "inputs", "hessian")
    numbers = tuple(range(len(given))) if isinstance(inputs, tuple) else 0
    first = tenon.func.grad(_scalar(func, "hessian"), numbers)
    if strict:
        _require_all(func, given)
    return jacobian(first, inputs, create_graph, False, vectorize, outer_jacobian_strategy)


def vjp(func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Returns the results of the function, and the product of v and its Jacobian.

    v has the shapes of the results; None for a single result of one element.

    Example:
        >>> tenon.autograd.functional.vjp(lambda x: x * x, tenon.tensor([1.0, 2.0]), tenon.ones(2))[1]
        tensor([2., 4.])
    """
    given = _tensors(inputs, "inputs", "vjp")
    if strict:
        _require_all(func, given)
    with _recording(create_graph):
        outputs, back = tenon.func.vjp(func, *given)
        weights = _vector(v, _results(outputs, "vjp"), "vjp", "the user-provided function returns")
        found = back(weights if isinstance(outputs, tuple) else weights[0])
    return outputs, found if isinstance(inputs, tuple) else found[0]


def jvp(func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Returns the results of the function, and the product of its Jacobian and v.

    v has the shapes of the inputs; None for a single input of one element.

    Example:
        >>> tenon.autograd.functional.jvp(lambda x: x * x, tenon.tensor([1.0, 2.0]), tenon.ones(2))[1]
        tensor([2., 4.])
    """
    given = _tensors(inputs, "inputs", "jvp")
    directions = _vector(v, given, "jvp", "the input to the user-provided function is")
    if strict:
        _require_all(func, given)
    with _recording(create_graph):
        outputs, found = tenon.func.jvp(func, given, directions)
    return outputs, found


def vhp(func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Returns the result of the function, which has one element, and the product of v and its Hessian.

    v has the shapes of the inputs; None for a single input of one element.

    Example:
        >>> tenon.autograd.functional.vhp(lambda x: (x ** 3).sum(), tenon.tensor([1.0, 2.0]), tenon.ones(2))[1]
        tensor([ 6., 12.])
    """
    return _product("vhp", func, inputs, v, create_graph, strict)


def hvp(func: _Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Returns the result of the function, which has one element, and the product of its Hessian and v. The Hessian is
    symmetric, so this is vhp."""
    return _product("hvp", func, inputs, v, create_graph, strict)


def _product(name: str, func: _Function, inputs: Any, v: Any, create_graph: bool, strict: bool) -> tuple[Any, Any]:
    given = _tensors(inputs, "inputs", name)
    weights = _vector(v, given, name, "the input to the user-provided function is")
    if strict:
        _require_all(func, given)
    both = tenon.func.grad_and_value(_scalar(func, name), tuple(range(len(given))))
    with _recording(create_graph):
        _, back, output = tenon.func.vjp(both, *given, has_aux=True)
        found = back(weights)
    return output, found if isinstance(inputs, tuple) else found[0]


__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
