"""Functions for tests: assert_close compares, make_tensor makes random tensors (PyTorch's torch.testing)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import tenon
from tenon import Tensor

_TOLERANCES = {tenon.float16: (1e-3, 1e-5), tenon.bfloat16: (1.6e-2, 1e-5), tenon.float32: (1.3e-6, 1e-5), tenon.float64: (1e-7, 1e-7)}


def _tolerances(*dtypes: Any, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """The larger ones of the dtypes, if none are given."""
    if (rtol is None) != (atol is None):
        raise ValueError(f"rtol and atol must both be specified or both be unspecified, but got rtol={rtol} and atol={atol}")
    if rtol is not None and atol is not None:
        return rtol, atol
    pairs = [_TOLERANCES.get(each, (0.0, 0.0)) for each in dtypes]
    return max(each[0] for each in pairs), max(each[1] for each in pairs)


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True, check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raises an AssertionError that describes the difference unless |actual - expected| <= atol + rtol * |expected|.

    Args:
        actual, expected: tensors, numbers, arrays, or sequences and mappings of these.
        allow_subclasses: False expects the same class of tensors.
        rtol, atol: the tolerances, both or none. None depends on the dtype: 1.3e-6 and 1e-5 for f32, 1e-7 and 1e-7 for
            f64, 1e-3 and 1e-5 for f16, 1.6e-2 and 1e-5 for bf16, and 0 for integers.
        equal_nan: NaN equals NaN.
        check_device, check_dtype, check_stride: devices, dtypes and strides must be equal.
        check_layout: has no effect.
        msg: the text of the error, or a function that makes it from the usual text.

    Example:
        >>> tenon.testing.assert_close(tenon.tensor([1.0, 2.0]), tenon.tensor([1.0, 2.0]))
    """
    def compare(mine: Any, other: Any, path: str) -> str | None:
        """Returns the difference as text, None if there is none."""
        if isinstance(mine, str) or isinstance(other, str):
            raise TypeError(f"No comparison pair was able to handle inputs of type {type(mine)} and {type(other)}.")
        if isinstance(mine, Mapping) and isinstance(other, Mapping):
            if set(mine) != set(other):
                return (f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(set(other) - set(mine))}\n"
                        f"Additional keys in the actual mapping: {sorted(set(mine) - set(other))}")
            return first((mine[key], other[key], f"{path}[{key!r}]") for key in mine)
        if isinstance(mine, Sequence) and isinstance(other, Sequence):
            if len(mine) != len(other):
                return f"The length of the sequences mismatch: {len(mine)} != {len(other)}"
            return first((x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(mine, other)))
        found = tensors(mine, other)
        return found and found + (f"\n\nThe failure occurred for item {path}" if path else "")

    def first(pairs: Any) -> str | None:
        return next((found for found in (compare(*pair) for pair in pairs) if found), None)

    def tensors(mine: Any, other: Any) -> str | None:
        if mine is None and other is None:
            return None
        numbers = isinstance(mine, (bool, int, float)) and isinstance(other, (bool, int, float))
        if not numbers:
            if mine is None or other is None:
                return f"None mismatch: {mine} is not {other}"
            if not allow_subclasses and type(mine) is not type(other):
                raise TypeError(f"No comparison pair was able to handle inputs of type {type(mine)} and {type(other)}.")
            try:
                mine, other = tenon.as_tensor(mine).detach(), tenon.as_tensor(other).detach()
            except (TypeError, ValueError):
                raise TypeError(f"No comparison pair was able to handle inputs of type {type(mine)} and {type(other)}.") from None
            for asked, name, values in ((True, "shape", (tuple(mine.shape), tuple(other.shape))), (check_device, "device", (mine.device, other.device)),
                                        (check_dtype, "dtype", (mine.dtype, other.dtype)), (check_stride, "stride()", (mine.stride(), other.stride()))):
                if asked and values[0] != values[1]:
                    return f"The values for attribute '{name}' do not match: {values[0]} != {values[1]}."
        else:
            mine, other = (tenon.tensor(each, dtype=tenon.float64 if isinstance(each, float) else tenon.int64 if type(each) is int else tenon.bool)
                           for each in (mine, other))
        limits = _tolerances(mine.dtype, other.dtype, rtol=rtol, atol=atol)
        return _difference(mine.to(device="cpu"), other.to(device="cpu"), limits, equal_nan, numbers)

    found = compare(actual, expected, "")
    if found:
        raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


def _difference(mine: Tensor, other: Tensor, limits: tuple[float, float], equal_nan: bool, numbers: bool) -> str | None:
    rtol, atol = limits
    whole = not mine.is_floating_point() and not other.is_floating_point() and rtol == 0 and atol == 0
    if whole:
        close = mine == other
        x, y = tenon.cast(mine, tenon.float64), tenon.cast(other, tenon.float64)
    else:
        x, y = tenon.cast(mine, tenon.float64), tenon.cast(other, tenon.float64)
        close = tenon.isclose(x, y, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if bool(close.all()):
        return None
    gap = tenon.abs(x - y)
    share = gap / tenon.abs(y)

    def allowed(limit: float) -> str:
        return f" (up to {limit} allowed)" if rtol or atol else ""
    if numbers or mine.ndim == 0:
        title = "Scalars are not equal!" if whole else "Scalars are not close!"
        return (f"{title}\n\nExpected {other.item()} but got {mine.item()}.\nAbsolute difference: {gap.item()}{allowed(atol)}\n"
                f"Relative difference: {share.item()}{allowed(rtol)}")

    def greatest(values: Tensor) -> tuple[float, tuple[int, ...]]:
        flat = tenon.where(close, -1.0, tenon.where(tenon.isnan(values), math.inf, values)).reshape(-1)
        place = rest = int(flat.argmax().item())
        at = []
        for size in reversed(values.shape):
            at.append(rest % size)
            rest //= size
        return values.reshape(-1)[place].item(), tuple(reversed(at))
    wrong, count = int((~close).sum().item()), mine.numel()
    lines = [f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"]
    for name, values, limit in (("absolute", gap, atol), ("relative", share, rtol)):
        value, index = greatest(values)
        lines.append(f"Greatest {name} difference: {value} at index {index}{allowed(limit)}")
    return f"Tensor-likes are not {'equal' if whole else 'close'}!\n\n" + "\n".join(lines)


def make_tensor(*shape: Any, dtype: Any, device: Any = None, low: float | None = None, high: float | None = None, requires_grad: bool = False,
                noncontiguous: bool = False, exclude_zero: bool = False, memory_format: Any = None) -> Tensor:
    """Returns a tensor of random numbers, uniform in [low, high).

    Args:
        low, high: by default -9 and 9 for floats, -9 and 10 for signed integers, 0 and 10 for unsigned ones.
        noncontiguous: the elements do not lie in row-major order.
        exclude_zero: replaces 0 by the smallest normal number, or by 1.
        memory_format: the order of the elements, such as "channels_last".

    Errors: low is not smaller than high.

    Example:
        >>> tenon.testing.make_tensor((2, 3), dtype=tenon.float32).shape
        (2, 3)
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and not isinstance(shape[0], int) else shape
    kind = tenon.zeros((0,), dtype=dtype).dtype
    floats = kind.is_floating_point
    unsigned = kind in (tenon.uint8, tenon.uint16, tenon.uint32, tenon.uint64)
    least: float = -9.0 if floats else 0 if unsigned else -9
    most: float = 9.0 if floats else 10
    if kind == tenon.bool:
        least, most = 0, 2
    least, most = least if low is None else low, most if high is None else high
    if math.isnan(least) or math.isnan(most):
        raise ValueError(f"`low` and `high` cannot be NaN, but got low={least!r} and high={most!r}")
    if least > most or (least == most and not floats):
        raise ValueError(f"`low` must be less than `high`, but got {least} >= {most}")
    if memory_format is not None and noncontiguous:
        raise ValueError(f"The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got noncontiguous={noncontiguous} and "
                         f"memory_format={memory_format}")
    if floats:
        made = tenon.cast(tenon.rand(sizes, dtype=tenon.float64, device=device) * (most - least) + least, kind)
        made = tenon.where(made < most, made, tenon.full_like(made, least))  # rounding may reach `high`
    else:
        made = tenon.cast(tenon.randint(math.ceil(least), math.ceil(most), sizes, device=device), kind)
    if exclude_zero and kind != tenon.bool:
        made = tenon.where(made == 0, tenon.full_like(made, 2.0**-126 if kind in (tenon.float32, tenon.bfloat16) else 2.0**-14 if floats and kind != tenon.float64
                                                      else 2.0**-1022 if floats else 1), made)
    if noncontiguous and made.numel() > 1:
        made = tenon.repeat_interleave(made, 2, dim=-1)[..., ::2]
    if memory_format is not None:
        made = made.contiguous(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


__all__ = ["assert_close", "make_tensor"]
