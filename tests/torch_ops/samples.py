"""Which samples of an entry are called: those of the database, thinned, and some of our own in other layouts."""

import random
import zlib

import numpy
import torch
from torch.testing._internal.opinfo import core

DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8, torch.bool]


def seed(name, dtype):
    """Makes the samples of an entry the same in every run."""
    number = zlib.crc32((name + str(dtype)).encode()) & 0xFFFFFF
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def thin(items, most):
    """At most `most` of the items, evenly spread."""
    return items if len(items) <= most else [items[int(i * len(items) / most)] for i in range(most)]


def _values(op, shape, dtype):
    low, high = (-3, 3) if dtype.is_floating_point else (None, 3)
    made = torch.testing.make_tensor(shape, dtype=dtype, device="cpu", low=low, high=high)
    if not isinstance(op, core.UnaryUfuncInfo) or op.domain == (None, None) or not dtype.is_floating_point:
        return made
    low = -3 if op.domain[0] is None else op.domain[0] + 0.05
    high = low + 3 if op.domain[1] is None else op.domain[1] - 0.05
    return torch.rand(shape, dtype=torch.float32).mul(high - low).add(low).to(dtype)


def _layouts(make):
    """Tensors of every layout; `make` gives one of a shape."""
    yield from (make(()), make((0,)), make((2, 0, 3)), make((1,)), make((37,)), make((5003,)))
    yield make((5, 7)).t()
    yield make((3, 4, 5, 2)).permute(2, 0, 3, 1)
    yield make((2, 3, 4, 5)).to(memory_format=torch.channels_last)
    yield make((40,))[1::3]
    yield make((41,))[3:]
    yield make((6, 10))[:, ::2]
    yield make((1, 5)).expand(4, 5)
    yield make((4, 1)).expand(4, 9)
    yield make(()).expand(3, 4)
    yield make((6, 10))[2]
    yield make((6, 10))[:, 3]
    yield torch.as_strided(make((20,)), (5, 4), (2, 1))
    yield make((1, 2, 1, 3, 1, 2, 1, 2))


def _without_zeros(tensor, dtype):
    whole = not dtype.is_floating_point and dtype != torch.bool
    return torch.where(tensor == 0, torch.ones_like(tensor), tensor) if whole else tensor


def _unary(op, dtype, make):
    try:
        kwargs = op.sample_kwargs("cpu", dtype, make((2,)))[0]
    except Exception:
        kwargs = {}
    return [core.SampleInput(each, kwargs=dict(kwargs)) for each in _layouts(make)]


SHIFTS = ("bitwise_left_shift", "bitwise_right_shift")
POWERS = ("pow", "float_power", "__rpow__")
DIVISIONS = ("floor_divide", "remainder", "fmod", "div", "true_divide", "__rmod__", "__rdiv__")
BROADCASTS = (((3, 1), (1, 4)), ((2, 0), (1, 1)), ((), (3,)), ((4, 1, 3), (5, 1)), ((0,), (1,)))


def _binary(op, dtype, make):
    made = []
    if op.name not in (*SHIFTS, *POWERS, "ldexp", "polygamma"):
        for each in list(_layouts(make)):
            other = make(each.shape)
            if op.name in DIVISIONS:
                each, other = _without_zeros(each, dtype), _without_zeros(other, dtype)
            made.append(core.SampleInput(each, args=(other,)))
    if op.name not in (*SHIFTS, *POWERS):
        for first, second in BROADCASTS:
            x, y = make(first), make(second)
            made.append(core.SampleInput(_without_zeros(x, dtype), args=(_without_zeros(y, dtype),)))
    return made


def _reductions(make):
    made = []
    for each in _layouts(make):
        made.append(core.SampleInput(each))
        if each.dim():
            made += [core.SampleInput(each, kwargs=dict(dim=-1)), core.SampleInput(each, kwargs=dict(dim=0, keepdim=True))]
    return made


def layouts(op, dtype):
    """Samples of our own for element-wise ops and reductions: layouts, empty tensors, rank 0, broadcasts."""
    def make(shape):
        return _values(op, shape, dtype)
    if isinstance(op, core.UnaryUfuncInfo):
        return _unary(op, dtype, make)
    if isinstance(op, core.BinaryUfuncInfo):
        return _binary(op, dtype, make)
    return _reductions(make) if isinstance(op, core.ReductionOpInfo) else []
