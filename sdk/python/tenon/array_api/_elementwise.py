"""Elementwise functions of the array API standard: Tenon's ops, with the standard's promotion.

Tensors of rank 0 count for the dtype of the result like others. The ops follow PyTorch instead, which ignores them."""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import tenon
from tenon import Tensor
from tenon.array_api._dtypes import Scalar, result_type

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj", "copysign",
    "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater", "greater_equal", "hypot",
    "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log1p", "log2", "log10", "logaddexp",
    "logical_and", "logical_not", "logical_or", "logical_xor", "maximum", "minimum", "multiply", "negative",
    "nextafter", "not_equal", "positive", "pow", "real", "reciprocal", "remainder", "round", "sign", "signbit",
    "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh", "trunc"]

Operand = Union[Tensor, Scalar]


def as_operand(value: Operand, x: Tensor) -> Tensor:
    """Returns a tensor unchanged. Converts a number to a tensor of rank 0 on the device of `x`, with the dtype that
    both promote to."""
    if isinstance(value, Tensor):
        return value
    return tenon.tensor(value, dtype=result_type(x, value), device=x.device)


def promote(*values: Operand) -> tuple[Tensor, ...]:
    """Converts the operands to tensors of one dtype.

    Errors: no operand is a tensor."""
    first = next((each for each in values if isinstance(each, Tensor)), None)
    if first is None:
        raise TypeError("At least one argument must be a tensor; asarray converts a number.")
    dtype = result_type(*values)
    return tuple(tenon.cast(as_operand(each, first), dtype) for each in values)


def _named(function: Callable[..., Any], name: str, op: Any) -> None:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "tenon.array_api"
    function.__doc__ = op.__doc__


def _unary(name: str, op_name: Optional[str] = None) -> Callable[[Tensor], Tensor]:
    op = getattr(tenon, op_name or name)

    def function(x: Tensor, /) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}: x must be a tensor, not {type(x).__name__}; asarray converts it.")
        result: Tensor = op(x)
        return result
    _named(function, name, op)
    return function


def _binary(name: str, op_name: Optional[str] = None) -> Callable[[Operand, Operand], Tensor]:
    op = getattr(tenon, op_name or name)

    def function(x1: Operand, x2: Operand, /) -> Tensor:
        result: Tensor = op(*promote(x1, x2))
        return result
    _named(function, name, op)
    return function


acos, acosh, asin, asinh = _unary("acos"), _unary("acosh"), _unary("asin"), _unary("asinh")
atan, atanh, cos, cosh = _unary("atan"), _unary("atanh"), _unary("cos"), _unary("cosh")
sin, sinh, tan, tanh = _unary("sin"), _unary("sinh"), _unary("tan"), _unary("tanh")
exp, expm1, log, log1p = _unary("exp"), _unary("expm1"), _unary("log"), _unary("log1p")
log2, log10, sqrt, square = _unary("log2"), _unary("log10"), _unary("sqrt"), _unary("square")
abs, negative, positive = _unary("abs"), _unary("negative"), _unary("positive")
ceil, floor, round, trunc = _unary("ceil"), _unary("floor"), _unary("round"), _unary("trunc")
isfinite, isinf, isnan, signbit = _unary("isfinite"), _unary("isinf"), _unary("isnan"), _unary("signbit")
reciprocal, logical_not, bitwise_invert = _unary("reciprocal"), _unary("logical_not"), _unary("bitwise_invert", "bitwise_not")



def sign(x: Tensor, /) -> Tensor:
    """-1, 0 or 1; NaN for NaN."""
    result = tenon.sign(x)
    return tenon.where(tenon.isnan(x), x, result) if x.dtype.is_floating_point else result


add, subtract, multiply, divide = _binary("add"), _binary("subtract"), _binary("multiply"), _binary("divide")
floor_divide, remainder, pow = _binary("floor_divide"), _binary("remainder"), _binary("pow")
equal, not_equal = _binary("equal", "eq"), _binary("not_equal")
less, less_equal = _binary("less"), _binary("less_equal")
greater, greater_equal = _binary("greater"), _binary("greater_equal")
maximum, minimum = _binary("maximum"), _binary("minimum")
atan2, hypot, logaddexp = _binary("atan2"), _binary("hypot"), _binary("logaddexp")
copysign, nextafter = _binary("copysign"), _binary("nextafter")
logical_and, logical_or, logical_xor = _binary("logical_and"), _binary("logical_or"), _binary("logical_xor")
bitwise_and, bitwise_or, bitwise_xor = _binary("bitwise_and"), _binary("bitwise_or"), _binary("bitwise_xor")
bitwise_left_shift, bitwise_right_shift = _binary("bitwise_left_shift"), _binary("bitwise_right_shift")


def clip(x: Tensor, /, min: Optional[Operand] = None, max: Optional[Operand] = None) -> Tensor:
    """Limits the elements to at least `min` and at most `max`, which broadcast. Keeps the dtype and NaN."""
    result = x
    if min is not None:
        result = maximum(result, min)
    if max is not None:
        result = minimum(result, max)
    return tenon.clone(x) if result is x else tenon.cast(result, x.dtype)


def real(x: Tensor, /) -> Tensor:
    """The real part: returns `x`, since no dtype is complex."""
    return x


def imag(x: Tensor, /) -> Tensor:
    """The imaginary part: zeros, since no dtype is complex."""
    return tenon.zeros_like(x)


def conj(x: Tensor, /) -> Tensor:
    """The conjugate: returns `x`, since no dtype is complex."""
    return x
