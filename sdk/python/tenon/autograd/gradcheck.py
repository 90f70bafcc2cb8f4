"""Checks of gradients against differences of the function."""

from __future__ import annotations

import warnings
from typing import Any, Callable

import tenon
from tenon._tenon import Tensor

_Function = Callable[..., Any]


class GradcheckError(RuntimeError):
    """A gradient differs from the differences of the function."""


def gradcheck(func: _Function, inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
              masked: bool | None = None) -> bool:
    """Compares the gradients of a function with (func(x + eps) - func(x - eps)) / (2 eps). Returns True if they agree.

    Args:
        func: a function whose results are a float tensor or a tuple with such.
        inputs: its arguments, a tensor or a tuple. Tensors that require gradients are checked; they should be f64.
        eps: the step of the differences.
        atol, rtol: how much the gradients may differ, as in tenon.allclose.
        raise_exception: raises GradcheckError if they do not agree; otherwise returns False.
        nondet_tol: how much two runs of backward may differ.
        check_grad_dtypes: gradients must have the dtypes of their inputs.
        check_forward_ad: also compares tenon.func.jvp.
        check_backward_ad: False leaves backward out.

    The other arguments have no effect.

    Example:
        >>> tenon.autograd.gradcheck(tenon.sin, tenon.rand(3, dtype=tenon.f64).requires_grad_())
        True
    """
    given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    checked = [i for i, each in enumerate(given) if isinstance(each, Tensor) and each.requires_grad]
    if not checked:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")
    for i in checked:
        if given[i].dtype != tenon.f64:
            warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point. This check will likely fail if all the inputs are not "
                          "of double precision floating point.", stacklevel=2)
    try:
        _check(func, tuple(given), checked, eps, atol, rtol, nondet_tol, check_grad_dtypes, check_backward_ad, check_forward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: _Function, given: tuple[Any, ...], checked: list[int], eps: float, atol: float, rtol: float, nondet_tol: float, dtypes: bool,
           backward: bool, forward: bool) -> None:
    def call(*values: Any) -> tuple[Any, ...]:
        args = list(given)
        for i, value in zip(checked, values):
            args[i] = value
        result = func(*args)
        return tuple(each for each in ((result,) if isinstance(result, Tensor) else result) if isinstance(each, Tensor) and each.is_floating_point())

    inputs = [given[i] for i in checked]
    with tenon.no_grad():
        expected = _differences(call, [each.detach() for each in inputs], eps)
    numbers = tuple(range(len(inputs)))
    if backward:
        found = _backward(call, inputs, dtypes, checked)
        _compare(found, expected, checked, atol, rtol, "analytical")
        for i, (row, again) in enumerate(zip(found, _backward(call, inputs, dtypes, checked))):
            for j, (first, second) in enumerate(zip(row, again)):
                if not tenon.allclose(first, second, 0.0, nondet_tol, equal_nan=True):
                    raise GradcheckError(f"Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives different "
                                         f"values, although analytical gradient matches numerical gradient (output {i}, input {checked[j]}).")
    if forward:
        _compare(tenon.func.jacfwd(call, numbers)(*inputs), expected, checked, atol, rtol, "forward")


def _differences(call: _Function, inputs: list[Any], eps: float) -> list[list[Any]]:
    """The derivatives of each output by each input, by differences."""
    outputs, values = [each.shape for each in call(*inputs)], list(inputs)
    columns: list[list[list[Any]]] = []
    for place, input in enumerate(inputs):
        columns.append([])
        for k in range(input.numel()):
            sides = []
            for step in (eps, -eps):
                moved = tenon.clone(input.reshape(-1))
                moved[k] += step
                values[place] = moved.reshape(tuple(input.shape))
                sides.append([tenon.clone(each.detach()) for each in call(*values)])
            columns[-1].append([(after - before) / (2 * eps) for after, before in zip(*sides)])
        values[place] = input
    return [[_block([column[i] for column in found], shape, input) for found, input in zip(columns, inputs)] for i, shape in enumerate(outputs)]


def _block(columns: list[Any], shape: Any, input: Any) -> Any:
    whole = (*shape, *input.shape)
    return tenon.stack(columns, -1).reshape(whole) if columns else tenon.zeros(whole, dtype=input.dtype)


def _backward(call: _Function, inputs: list[Any], dtypes: bool, checked: list[int]) -> list[list[Any]]:
    """The derivatives of each output by each input, by backward."""
    with tenon.enable_grad():
        copies = [each.detach().requires_grad_() for each in inputs]
        blocks = []
        for output in call(*copies):
            rows = []
            for element in output.reshape(-1).unbind(0):
                found = tenon.autograd.grad(element, copies, retain_graph=True, allow_unused=True) if output.requires_grad else [None] * len(copies)
                for i, gradient, input in zip(checked, found, copies):
                    if dtypes and gradient is not None and gradient.dtype != input.dtype:
                        raise GradcheckError(f"Gradient has dtype mismatch: the gradient of input {i} is {gradient.dtype.name}, and the input is {input.dtype.name}.")
                rows.append([tenon.zeros_like(input) if gradient is None else gradient for gradient, input in zip(found, copies)])
            blocks.append([tenon.stack([row[j] for row in rows], 0).reshape((*output.shape, *input.shape)) if rows else
                           tenon.zeros((*output.shape, *input.shape), dtype=input.dtype) for j, input in enumerate(copies)])
    return blocks


def _compare(found: Any, expected: Any, checked: list[int], atol: float, rtol: float, name: str) -> None:
    for i, (row, wanted) in enumerate(zip(found, expected)):
        for j, (mine, other) in enumerate(zip(row, wanted)):
            if not tenon.allclose(tenon.cast(mine, other.dtype), other, rtol, atol):
                raise GradcheckError(f"Jacobian mismatch for output {i} with respect to input {checked[j]},\nnumerical:{other}\n{name}:{mine}\n")


def gradgradcheck(func: _Function, inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
                  check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """Checks the second derivatives of a function: the gradients of its gradients, as gradcheck does.

    Args:
        grad_outputs: the weights of the results, a tensor or a tuple; None draws random ones.

    The other arguments are those of gradcheck.

    Example:
        >>> tenon.autograd.gradgradcheck(tenon.sin, tenon.rand(3, dtype=tenon.f64).requires_grad_())
        True
    """
    given = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        results = func(*given)
        outputs = [each for each in ((results,) if isinstance(results, Tensor) else results) if isinstance(each, Tensor) and each.is_floating_point()]
        weights = tuple(tenon.randn(each.shape, dtype=each.dtype).requires_grad_() for each in outputs)
    else:
        weights = tuple(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else (grad_outputs,)

    def gradients(*args: Any) -> tuple[Any, ...]:
        first, scales = args[:len(given)], args[len(given):]
        results = func(*first)
        outputs = [each for each in ((results,) if isinstance(results, Tensor) else results) if isinstance(each, Tensor) and each.is_floating_point()]
        wanted = [each for each in first if isinstance(each, Tensor) and each.requires_grad]
        pairs = [(output, scale) for output, scale in zip(outputs, scales) if output.requires_grad]
        found = tenon.autograd.grad([each for each, _ in pairs], wanted, [each for _, each in pairs], create_graph=True, allow_unused=True)
        return tuple(each for each in found if each is not None)
    with_grad = [isinstance(each, Tensor) and each.requires_grad for each in given]

    def enabled(*args: Any) -> tuple[Any, ...]:
        with tenon.enable_grad():
            return gradients(*[each.detach().requires_grad_() if wanted and not each.requires_grad else each
                               for each, wanted in zip(args, with_grad + [False] * len(weights))])
    return gradcheck(enabled, (*given, *weights), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_grad_dtypes=check_grad_dtypes)


__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
