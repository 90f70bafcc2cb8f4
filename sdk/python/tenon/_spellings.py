"""Calls of ops in further spellings of PyTorch, which the signatures of the op list do not have.

An op that refuses its arguments calls `otherwise` (sdk/python/op.cpp), so calls that fit a signature cost nothing
here. A function decorated with `spelling` has PyTorch's signature and the name of an op. It calls the op with a
signature of the op list.
"""

import functools
import inspect
import math
import sys
import threading

from tenon import _tenon
from tenon._public import plain_names
from tenon._tenon import Tensor

_SPELLINGS = {}
_trying = threading.local()


def spelling(function):
    _SPELLINGS[function.__name__] = function
    return function


def otherwise(op, /, *args, **kwargs):
    """Returns the result of `op` for arguments that none of its signatures takes. Returns NotImplemented if no
    spelling takes them either."""
    batching = sys.modules.get("tenon._batching")  # loaded by the first vmap
    if batching is not None:
        result = batching.apply(op, args, kwargs)
        if result is not NotImplemented:
            return result
    trying = _trying.__dict__.setdefault("ops", set())
    if op.__name__ in trying:
        return NotImplemented
    trying.add(op.__name__)
    try:
        return _called(op, args, kwargs)
    except (TypeError, AttributeError, IndexError):  # InvalidCall is a TypeError: no spelling takes these arguments
        return NotImplemented
    finally:
        trying.discard(op.__name__)


def _called(op, args, kwargs):
    out = kwargs.pop("out", None)
    finish = _plain_keywords(op, kwargs)
    args = _tensors_of_numbers(op, args)
    try:
        result = op(*args, **kwargs)
    except _tenon.InvalidCall:
        result = _spelled(op.__name__, args, kwargs)
    if result is NotImplemented:
        return result
    for each in finish:
        result = each(result)
    return result if out is None else _into(op.__name__, out, result)


def _spelled(name, args, kwargs):
    function, in_place = _SPELLINGS.get(name), False
    if function is None and name.endswith("_"):
        function, in_place = _SPELLINGS.get(name[:-1]), True
    if function is None:
        return NotImplemented
    kwargs = plain_names(_signature_of(function).parameters, kwargs)
    if not _fits(function, args, kwargs):
        return NotImplemented
    result = function(*args, **kwargs)
    return _tenon.copy_(args[0], result) if in_place else result


def _fits(function, args, kwargs):
    try:
        _signature_of(function).bind(*args, **kwargs)
    except TypeError:
        return False
    return True


_signature_of = functools.lru_cache(maxsize=None)(inspect.signature)


def _plain_keywords(op, kwargs):
    """Removes keywords from `kwargs` that have no effect, or that are applied to the result. Returns the functions
    to apply."""
    finish = []
    if not kwargs.get("pin_memory", True):
        kwargs.pop("pin_memory")
    if not op.__name__.endswith("_like"):
        return finish
    device, form = kwargs.pop("device", None), kwargs.pop("memory_format", None)
    if device is not None:
        finish.append(lambda result: result.to(device=device))
    if form not in (None, "preserve_format"):
        finish.append(lambda result: result.contiguous(memory_format=form))
    return finish


def _is_number(value):
    return isinstance(value, (bool, int, float))


_OF_NUMBERS = {"add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide"}


def _tensors_of_numbers(op, args):
    """Converts the first of two numbers to a tensor of rank 0."""
    if op.__name__ not in _OF_NUMBERS or len(args) != 2 or not all(_is_number(each) for each in args):
        return args
    return (_tenon.tensor(args[0]), args[1])


def _class_of(dtype):
    return 2 if dtype.is_floating_point else 0 if dtype == _tenon.bool else 1


def _into(name, out, result):
    """Writes results into `out`."""
    if isinstance(result, (tuple, list)):
        if len(out) != len(result):
            raise ValueError(f"{name}(): out has {len(out)} tensors, and there are {len(result)} results.")
        return type(out)([_into(name, each, value) for each, value in zip(out, result)])
    if not isinstance(out, Tensor):
        raise ValueError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if _class_of(result.dtype) > _class_of(out.dtype):
        raise _tenon.InvalidArgument(f"{name}: the result is {result.dtype.name}, which cannot be stored in a tensor of {out.dtype.name}.")
    if tuple(out.shape) != tuple(result.shape):
        raise _tenon.InvalidArgument(f"{name}: out has shape {tuple(out.shape)}, and the result {tuple(result.shape)}; a tensor's shape never changes.")
    return _tenon.copy_(out, result)


def with_out(function):
    """Adds the keyword out= to a function: a tensor with the shape of the result, or several, that receive the
    result."""
    @functools.wraps(function)
    def call(*args, out=None, **kwargs):
        result = function(*args, **kwargs)
        return result if out is None else _into(function.__name__, out, result)
    return call


def _axes(input, dim):
    return list(range(input.ndim)) if dim is None or dim == () else dim


def _is_axes(dim):
    return not isinstance(dim, bool) and (dim is None or hasattr(dim, "__index__") or isinstance(dim, (tuple, list)))


# ---- copies ----

@spelling
def clone(input, *, memory_format="preserve_format"):
    made = _tenon.clone(input)
    return made if memory_format in (None, "preserve_format") else _tenon.contiguous(made, memory_format=memory_format)


# ---- reductions ----

def _reduction(name):
    op = getattr(_tenon, name)

    def reduce(input, dim=None, keepdim=False, *, dtype=None):
        typed = {} if dtype is None else {"dtype": dtype}
        return op(input, _axes(input, dim), keepdim, **typed)
    reduce.__name__ = name
    spelling(reduce)


for _name in ("sum", "prod", "mean", "nansum", "nanmean", "amax", "amin", "any", "all", "logsumexp"):
    _reduction(_name)


def _count(input, axes):
    axes = axes if isinstance(axes, (tuple, list)) else [axes]
    return math.prod(input.shape[axis] for axis in axes)


def _deviation(name):
    """Defines var, std and the like for (input, unbiased), (input, dim, unbiased, keepdim) and
    (input, dim, *, correction, keepdim)."""
    op, variance = getattr(_tenon, name), getattr(_tenon, name.replace("std", "var"))

    def deviation(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if not _is_axes(dim):
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        axes = _axes(input, dim)
        if correction == int(correction):
            return op(input, axes, correction=int(correction), keepdim=keepdim)
        count = _count(input, axes)
        result = variance(input, axes, correction=0, keepdim=keepdim)
        factor = count / (count - correction) if count > correction else math.inf
        first = (result[0] if isinstance(result, tuple) else result) * factor
        first = _tenon.sqrt(first) if name.startswith("std") else first
        return (first, result[1]) if isinstance(result, tuple) else first
    deviation.__name__ = name
    spelling(deviation)


for _name in ("var", "std", "var_mean", "std_mean"):
    _deviation(_name)


@spelling
def norm(input, p="fro", dim=None, keepdim=False, *, dtype=None):
    if dtype is not None:
        input = _tenon.cast(input, dtype)
    if p == "nuc":
        matrices = input if dim is None else _tenon.movedim(input, list(dim), [-2, -1])
        result = _tenon.sum(_tenon.linalg_svdvals(matrices), -1)
        return result if not keepdim else _tenon.unsqueeze(result, sorted(axis % input.ndim for axis in (dim or (-2, -1))))
    if isinstance(p, str) and p != "fro":
        raise _tenon.InvalidArgument(f"norm: p is '{p}'; it may be a number, 'fro' or 'nuc'.")
    return _tenon.norm(input, 2.0 if p in ("fro", None) else float(p), _axes(input, dim), keepdim)


# ---- element by element ----

@spelling
def round(input, *, decimals=0):
    if decimals == 0:
        return _tenon.round(input)
    if not input.dtype.is_floating_point:
        raise _tenon.InvalidArgument(f"round: decimals is {decimals}; integers, as the {input.dtype.name} given, can only be rounded to 0 decimals.")
    scale = 10.0 ** abs(decimals)
    return _tenon.round(input * scale) / scale if decimals > 0 else _tenon.round(input / scale) * scale


@spelling
def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if dropout_p == 0:
        return _tenon.scaled_dot_product_attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa)
    if enable_gqa:
        times = query.size(-3) // key.size(-3)
        key, value = (_tenon.repeat_interleave(each, times, -3) for each in (key, value))
    scores = _tenon.matmul(query, _tenon.transpose(key, -2, -1)) * (1 / math.sqrt(query.size(-1)) if scale is None else scale)
    if is_causal:
        attn_mask = _tenon.tril(_tenon.ones((query.size(-2), key.size(-2)), device=query.device)) > 0
    if attn_mask is not None:
        scores = _tenon.where(attn_mask, scores, -math.inf) if attn_mask.dtype == _tenon.bool else scores + attn_mask
    return _tenon.matmul(_tenon.dropout(_tenon.softmax(scores, -1), dropout_p), value)


# ---- differences, orders, searches ----

@spelling
def diff(input, n=1, dim=-1, prepend=None, append=None):
    parts = [each for each in (prepend, input, append) if each is not None and (n or each is input)]
    return _tenon.diff(_tenon.concat(parts, dim) if len(parts) > 1 else input, n, dim)


@spelling
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    if compute_mode not in (None, "use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _tenon.cdist(x1, x2, float(p))


@spelling
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None):
    if side not in (None, "left", "right"):
        raise _tenon.InvalidArgument(f"searchsorted: side is '{side}'; it may be 'left' or 'right'.")
    if side == "left" and right:
        raise _tenon.InvalidArgument("searchsorted: side is 'left', and right is set; they mean opposite things.")
    if sorter is not None:
        if sorter.dtype != _tenon.i64 or tuple(sorter.shape) != tuple(sorted_sequence.shape):
            raise _tenon.InvalidArgument(f"searchsorted: sorter must hold i64 positions of shape {tuple(sorted_sequence.shape)}, not {sorter.dtype.name} of {tuple(sorter.shape)}.")
        sorted_sequence = _tenon.gather(sorted_sequence, -1, sorter)
    number = not isinstance(input, Tensor)
    result = _tenon.searchsorted(sorted_sequence, _tenon.full((1,), input, dtype=sorted_sequence.dtype, device=sorted_sequence.device) if number else input, out_int32=out_int32, right=right or side == "right")
    return _tenon.squeeze(result, 0) if number else result


@spelling
def bucketize(input, boundaries, *, out_int32=False, right=False):
    made = _tenon.bucketize(_tenon.full((1,), input, dtype=boundaries.dtype, device=boundaries.device), boundaries, out_int32=out_int32, right=right)
    return _tenon.squeeze(made, 0)


# ---- tensors as separate arguments instead of a list ----

def _variadic(name):
    op = getattr(_tenon, name)

    def call(*tensors, **kwargs):
        if not tensors or not all(isinstance(each, Tensor) for each in tensors):
            raise TypeError
        return op(list(tensors), **kwargs)
    call.__name__ = name
    spelling(call)


for _name in ("meshgrid", "cartesian_prod", "block_diag", "broadcast_tensors"):
    _variadic(_name)


def _at_least(name):
    op = getattr(_tenon, name)

    def call(*tensors):
        listed = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
        if not listed or not all(isinstance(each, Tensor) for each in listed):
            raise TypeError
        return tuple(op(each) for each in listed)
    call.__name__ = name
    spelling(call)


for _name in ("atleast_1d", "atleast_2d", "atleast_3d"):
    _at_least(_name)


# ---- new tensors ----

def _space(name):
    op = getattr(_tenon, name)

    def call(start, end, *args, **kwargs):
        start, end = (each.item() if isinstance(each, Tensor) else each for each in (start, end))
        return op(start, end, *args, **kwargs)
    call.__name__ = name
    spelling(call)


for _name in ("linspace", "logspace"):
    _space(_name)


# ---- Fourier transforms (complex numbers are always pairs) ----

@spelling
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None,
         return_complex=None):
    return _tenon.stft(input, n_fft, hop_length, win_length, window, center, pad_mode, bool(normalized), onesided is not False)


@spelling
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None, return_complex=False):
    return _tenon.istft(input, n_fft, hop_length, win_length, window, center, bool(normalized), onesided, length)



# ---- positions and random numbers ----

@spelling
def nonzero(input, *, as_tuple=False):
    positions = _tenon.nonzero(input)
    if not as_tuple:
        return positions
    return tuple(_tenon.select(positions, 1, axis) for axis in range(input.ndim)) if input.ndim else (_tenon.nonzero(_tenon.reshape(input, (1,)))[:, 0],)


@spelling
def scatter(input, dim, index, src=None, value=None, *, reduce=None):
    if src is None:
        src = value
    if reduce is None:
        return _tenon.scatter(input, dim, index, src)
    if reduce not in ("add", "multiply"):
        raise _tenon.InvalidArgument(f"scatter: reduce is '{reduce}'; it may be 'add' or 'multiply'.")
    if not isinstance(src, Tensor):
        src = _tenon.full(tuple(index.shape), src, dtype=input.dtype, device=input.device)
    return _tenon.scatter_reduce(input, dim, index, src, "sum" if reduce == "add" else "prod")


@spelling
def randint_like(input, low, high=None, *, dtype=None):
    low, high = (0, low) if high is None else (low, high)
    return _tenon.randint_like(input, *(int(each.item()) if isinstance(each, Tensor) else each for each in (low, high)), dtype=dtype)


@spelling
def normal(mean, std=1.0, size=None, *, generator=None, dtype=None, device=None):
    if size is not None:
        drawn = _tenon.randn(size, dtype=_tenon.f32 if dtype is None else dtype, device=device, generator=generator)
        if std < 0:
            raise _tenon.InvalidArgument(f"normal: std must be at least 0, not {std}.")
        return drawn * std + mean
    if not isinstance(mean, Tensor):
        mean = _tenon.full(tuple(std.shape), mean, dtype=std.dtype, device=std.device)
    if not isinstance(std, Tensor):
        std = _tenon.full(tuple(mean.shape), std, dtype=mean.dtype, device=mean.device)
    return _tenon.normal(mean, std, generator=generator)


@spelling
def tensordot(a, b, dims=2):
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if hasattr(dims, "__index__"):
        return _tenon.tensordot(a, b, int(dims))
    first, second = ([each] if hasattr(each, "__index__") else list(each) for each in dims)
    for i, j in zip(first, second):  # an axis of length 1 matches every length
        a = _tenon.sum(a, i, True, dtype=a.dtype) if b.size(j) == 1 else a
        b = _tenon.sum(b, j, True, dtype=b.dtype) if a.size(i) == 1 else b
    return _tenon.tensordot(a, b, first, second)


@spelling
def linalg_lu_factor(input, *, pivot=True):
    if not pivot:
        raise _tenon.Unsupported("linalg_lu_factor: pivot=False is not supported; rows are always exchanged.")
    return _tenon.linalg_lu_factor(input)
