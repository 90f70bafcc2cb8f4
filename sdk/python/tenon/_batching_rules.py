"""Rules of vmap: how one op computes all samples, whose batch lies along axis 0.

A rule is called with the op, the level, and the arguments. It returns the result, or NotImplemented for arguments that
it does not cover; the op then runs once per sample, so a rule only has to be right, not complete.
"""

from __future__ import annotations

from typing import Any, Callable

from tenon import _tenon
from tenon._batching import Batched, CannotBatch, Level, for_each_sample, is_batched, with_batch, wrapped
from tenon._tenon import Tensor

Rule = Callable[[Any, Level, tuple[Any, ...], dict[str, Any]], Any]
RULES: dict[str, Rule] = {}


def _rule(names: str) -> Callable[[Rule], Rule]:
    def add(function: Rule) -> Rule:
        for name in names.split():
            RULES[name] = function
        return function
    return add


def _only_first(level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if the first argument has the batch and no other tensor does."""
    others = [*args[1:], *kwargs.values()]
    return is_batched(args[0], level) and not any(is_batched(each, level) or type(each) in (list, tuple) and any(is_batched(item, level) for item in each)
                                                  for each in others)


# ---- one element after the other ----

_ELEMENTWISE = """
abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor cast ceil celu clamp clamp_max clamp_min clip clone copysign cos cosh
deg2rad digamma div divide elu eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fma fmax fmin fmod frac full_like gcd ge gelu
gelu_tanh greater greater_equal gt hard_sigmoid hard_swish hardshrink hardsigmoid hardswish hardtanh heaviside hypot i0 igamma igammac isclose
isfinite isinf isnan isneginf isposinf lcm ldexp le leaky_relu lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2 logical_and
logical_not logical_or logical_xor logit logsigmoid lt masked_fill maximum minimum mish mul multiply nan_to_num ne neg negative nextafter
not_equal ones_like positive pow rad2deg reciprocal relu relu6 remainder round rsqrt rsub selu sgn sigmoid sign signbit silu sin sinc sinh
softplus softshrink softsign sqrt square sub subtract tan tanh tanhshrink threshold true_divide trunc where xlogy zeros_like
"""


@_rule(_ELEMENTWISE)
def elementwise(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Gives all tensors of the batch the same rank, so that the samples broadcast as they would alone."""
    tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
    if len({each.dtype for each in tensors}) > 1 and any(is_batched(each, level) and each.ndim == 0 for each in tensors):
        return NotImplemented  # a tensor of rank 0 does not widen the dtype of others, and with a batch it has rank 1
    rank = max(each.ndim for each in tensors)

    def aligned(value: Any) -> Any:
        if not is_batched(value, level):
            return value
        held, missing = value.value, rank - value.ndim
        return _tenon.unsqueeze(held, tuple(range(1, missing + 1))) if missing else held
    return Batched(op(*map(aligned, args), **{name: aligned(each) for name, each in kwargs.items()}), level)


@_rule("copy_ fill_ " + " ".join(name + "_" for name in _ELEMENTWISE.split() if hasattr(_tenon, name + "_")))
def in_place(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An element-wise op that writes its first argument, which has the largest rank."""
    if any(isinstance(each, Tensor) and each.ndim > args[0].ndim for each in args):
        return NotImplemented
    return elementwise(op, level, args, kwargs)


# ---- along axes ----

def _axis(dim: Any, rank: int) -> int:
    """The axis of the batch tensor for an axis of a sample."""
    dim = dim.__index__()
    if not -rank <= dim < rank:
        raise CannotBatch  # the op itself says what is wrong
    return int(dim % rank) + 1


def _axes(dims: Any, rank: int) -> Any:
    return _axis(dims, rank) if hasattr(dims, "__index__") else tuple(_axis(dim, rank) for dim in dims)


def _along(position: int, name: str = "dim", default: Any = None, several: bool = False, of_all: bool = False) -> Rule:
    """The rule of an op whose argument at `position` names axes. `of_all`: without it the op reads all axes."""
    def rule(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not _only_first(level, args, kwargs):
            return NotImplemented
        held, rank = args[0].value, args[0].ndim
        given = args[position] if len(args) > position else kwargs.get(name, default)
        whole = given is None or isinstance(given, (tuple, list)) and not given
        if rank == 0 or whole and (not of_all or len(args) > position + 1 or kwargs.get("keepdim")):
            return NotImplemented
        if whole:
            held, given = _tenon.reshape(held, (level.size, -1)), 0
            rank = 1
        elif isinstance(given, (tuple, list)) and not several or isinstance(given, (bool, Tensor)):
            return NotImplemented
        axes = _axes(given, rank)
        if len(args) > position:
            args = (*args[:position], axes, *args[position + 1:])
        elif position == 1:
            args = (*args, axes)
            kwargs = {key: value for key, value in kwargs.items() if key != name}
        else:
            kwargs = {**kwargs, name: axes}
        return wrapped(op(held, *args[1:], **kwargs), level)
    return rule


for _name in "sum mean prod amax amin var std nansum nanmean argmax argmin any all count_nonzero".split():
    RULES[_name] = _along(1, several=True, of_all=True)
for _name in "softmax log_softmax softmin cumsum cumprod cummax cummin logcumsumexp".split():
    RULES[_name] = _along(1)
RULES["logsumexp"] = _along(1, several=True)
for _name in ("sort", "argsort"):
    RULES[_name] = _along(1, default=-1)
for _name in ("topk", "kthvalue"):
    RULES[_name] = _along(2, default=-1)
for _name in ("split", "chunk", "tensor_split"):
    RULES[_name] = _along(2, default=0)
RULES["split_with_sizes"] = _along(2, default=0)
RULES["flip"] = _along(1, "dims", several=True)
RULES["roll"] = _along(2, "dims", several=True)
RULES["unbind"] = _along(1, default=0)
for _name in ("norm", "vector_norm"):
    RULES[_name] = _along(2, several=True, of_all=True)
for _name in ("select", "narrow", "index_select"):
    RULES[_name] = _along(1)


@_rule("max min")
def extreme(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """max and min: of all elements, along an axis, or of two tensors."""
    if len(args) == 2 and isinstance(args[1], Tensor):
        return elementwise(op, level, args, kwargs)
    if len(args) == 1 and not kwargs:
        return RULES["amax"](_tenon.amax if op.__name__ == "max" else _tenon.amin, level, args, kwargs)
    return _along(1)(op, level, args, kwargs)


@_rule("gather scatter scatter_add")
def by_index(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ops whose index has the rank of the input."""
    if kwargs or len(args) < 3 or not hasattr(args[1], "__index__"):
        return NotImplemented
    given = [each for each in args if isinstance(each, Tensor)]
    rank = given[0].ndim
    if rank == 0 or any(each.ndim != rank for each in given):
        return NotImplemented
    return Batched(op(*[with_batch(each, level) if isinstance(each, Tensor) else _axis(each, rank) if i == 1 else each for i, each in enumerate(args)]), level)


# ---- shapes ----

def _sizes(args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(args[1]) if len(args) == 2 and not hasattr(args[1], "__index__") else tuple(args[1:])


@_rule("reshape view")
def reshape(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or not is_batched(args[0], level):
        return NotImplemented
    sizes = _sizes(args)
    if any(not hasattr(each, "__index__") for each in sizes):
        return NotImplemented
    return Batched(op(args[0].value, (level.size, *sizes)), level)


@_rule("expand broadcast_to")
def expand(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or not is_batched(args[0], level):
        return NotImplemented
    sizes, held = _sizes(args), args[0].value
    missing = len(sizes) - args[0].ndim
    if missing < 0:
        return NotImplemented
    return Batched(op(_tenon.unsqueeze(held, tuple(range(1, missing + 1))) if missing else held, (level.size, *sizes)), level)


@_rule("tile repeat")
def repeat(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    sizes = _sizes(args)
    if kwargs or not is_batched(args[0], level) or len(sizes) != args[0].ndim:
        return NotImplemented
    return Batched(op(args[0].value, (1, *sizes)), level)


@_rule("permute")
def permute(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs:
        return NotImplemented
    return Batched(op(args[0].value, (0, *_axes(_sizes(args), args[0].ndim))), level)


@_rule("transpose swapaxes swapdims movedim moveaxis")
def transpose(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 3 or args[0].ndim == 0:
        return NotImplemented
    return Batched(op(args[0].value, *[_axes(each, args[0].ndim) for each in args[1:]]), level)


@_rule("unsqueeze")
def unsqueeze(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 2 or not hasattr(args[1], "__index__"):
        return NotImplemented
    return Batched(op(args[0].value, _axis(args[1], args[0].ndim + 1)), level)


@_rule("squeeze")
def squeeze(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) > 2 or args[0].ndim == 0:
        return NotImplemented
    axes = _axes(args[1], args[0].ndim) if len(args) == 2 else tuple(i + 1 for i, size in enumerate(args[0].shape) if size == 1)
    return Batched(op(args[0].value, axes) if axes != () else args[0].value, level)


@_rule("flatten")
def flatten(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    start, end = (default if given is None else given for given, default in zip(_named(("input", "start_dim", "end_dim"), args, kwargs)[1:], (0, -1)))
    if args[0].ndim == 0:
        return Batched(_tenon.unsqueeze(args[0].value, 1), level)
    return Batched(op(args[0].value, _axis(start, args[0].ndim), _axis(end, args[0].ndim)), level)


@_rule("tril triu contiguous det inverse logdet matrix_exp slogdet linalg_cholesky linalg_det linalg_eigh linalg_eigvalsh linalg_inv linalg_slogdet linalg_svd "
       "linalg_svd_reduced linalg_svdvals")
def last_axes(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Ops that treat leading axes alike."""
    if args[0].ndim < 2 and op.__name__ != "contiguous" or not _only_first(level, args, kwargs):
        return NotImplemented
    return wrapped(op(args[0].value, *args[1:], **kwargs), level)


@_rule("one_hot")
def one_hot(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if len(args) != 2 or args[1] < 0:
        return NotImplemented
    return Batched(op(args[0].value, *args[1:], **kwargs), level)


@_rule("cat concat concatenate stack")
def cat(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
    tensors = list(args[0])
    if set(kwargs) - {"dim"} or not all(isinstance(each, Tensor) for each in tensors):
        return NotImplemented
    rank = tensors[0].ndim + (op.__name__ == "stack")
    if any(each.ndim != tensors[0].ndim for each in tensors):
        return NotImplemented
    return Batched(op([with_batch(each, level) for each in tensors], _axis(dim, rank)), level)


def indexed(tensor: Batched, key: Any) -> Any:
    """tensor[key] for each sample."""
    keys = key if isinstance(key, tuple) else (key,)
    plain = all(each is None or each is ... or isinstance(each, slice) or type(each) is int for each in keys)
    lists = [each for each in keys if not (each is None or each is ... or isinstance(each, slice))]
    alone = len(lists) == 1 and isinstance(lists[0], (Tensor, list)) and not is_batched(lists[0])
    if plain or alone:
        return Batched(tensor.value[(slice(None), *keys)], tensor.level)
    return for_each_sample(lambda sample, at: sample[at], tensor.level, (tensor, key), {})


# ---- products ----

@_rule("matmul mm mv dot bmm")
def matmul(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Vectors become matrices, and the batch an axis before the axes of batches of matrices."""
    if kwargs or len(args) != 2:
        return NotImplemented
    expected = {"mm": (2, 2), "mv": (2, 1), "dot": (1, 1), "bmm": (3, 3)}.get(op.__name__)
    ranks = tuple(each.ndim for each in args)
    if 0 in ranks or expected not in (None, ranks):
        return NotImplemented
    rank = max(2, *ranks)

    def matrices(value: Any, axis: int) -> Any:
        held, own = (value.value, value.ndim) if is_batched(value, level) else (value, value.ndim)
        if own == 1:
            held, own = _tenon.unsqueeze(held, axis), 2
        missing = rank - own if is_batched(value, level) else 0
        return _tenon.unsqueeze(held, tuple(range(1, missing + 1))) if missing else held
    result = _tenon.matmul(matrices(args[0], -2), matrices(args[1], -1))
    if ranks[1] == 1:
        result = _tenon.squeeze(result, -1)
    if ranks[0] == 1:
        result = _tenon.squeeze(result, -1 if ranks[1] == 1 else -2)
    return Batched(result, level)


@_rule("linear")
def linear(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    input, weight, bias = _named(("input", "weight", "bias"), args, kwargs)
    if input.ndim == 0 or weight.ndim != 2:
        return NotImplemented
    if not is_batched(weight, level) and not is_batched(bias, level):
        return Batched(op(input.value, weight, bias), level)
    result = _tenon.matmul(input, _tenon.transpose(weight, 0, 1))
    return result if bias is None else _tenon.add(result, bias)


def _named(names: tuple[str, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The arguments in the order of `names`; None for an absent one."""
    return [args[i] if i < len(args) else kwargs.get(name) for i, name in enumerate(names)]


@_rule("einsum")
def einsum(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or not isinstance(args[0], str) or "->" not in args[0]:
        return NotImplemented
    operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
    inputs, _, output = args[0].replace(" ", "").partition("->")
    letter = next(each for each in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" if each not in args[0])
    terms = [letter + term if is_batched(each, level) else term for term, each in zip(inputs.split(","), operands)]
    held = [each.value if is_batched(each, level) else each for each in operands]
    return Batched(op(",".join(terms) + "->" + letter + output, held), level)


# ---- layers ----

@_rule("conv conv1d conv2d conv3d")
def convolution(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The batch joins the images; if the weights have it too, each sample is a group of channels."""
    input, weight, bias, *_ = _named(("input", "weight", "bias"), args, kwargs)
    if not isinstance(weight, Tensor) or input.ndim != weight.ndim:
        return NotImplemented
    size, count = level.size, input.shape[0]
    settings = dict(zip(("stride", "padding", "dilation", "groups"), args[3:]), **{name: each for name, each in kwargs.items() if name not in ("input", "weight", "bias")})
    if not is_batched(weight, level) and not is_batched(bias, level):
        folded = op(_tenon.reshape(input.value, (size * count, *input.shape[1:])), weight, bias, **settings)
        return Batched(_tenon.reshape(folded, (size, count, *folded.shape[1:])), level)
    images = _tenon.reshape(_tenon.transpose(with_batch(input, level), 0, 1), (count, size * input.shape[1], *input.shape[2:]))
    weights = _tenon.reshape(with_batch(weight, level), (size * weight.shape[0], *weight.shape[1:]))
    biases = None if bias is None else _tenon.reshape(with_batch(bias, level), (-1,))
    settings["groups"] = size * settings.get("groups", 1)
    made = op(images, weights, biases, **settings)
    return Batched(_tenon.transpose(_tenon.reshape(made, (count, size, weight.shape[0], *made.shape[2:])), 0, 1), level)


@_rule("max_pool avg_pool max_pool_with_indices")
def pool(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The batch joins the images."""
    input = args[0]
    if kwargs or not _only_first(level, args, kwargs) or not isinstance(args[1], (list, tuple)) or input.ndim != len(args[1]) + 2:
        return NotImplemented
    folded = op(_tenon.reshape(input.value, (-1, *input.shape[1:])), *args[1:])
    parts = [_tenon.reshape(each, (level.size, input.shape[0], *each.shape[1:])) for each in ([folded] if isinstance(folded, Tensor) else folded)]
    return wrapped(parts[0] if isinstance(folded, Tensor) else tuple(parts), level)


@_rule("scaled_dot_product_attention")
def attention(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The batch joins the first axis of queries, keys and values, which have the same leading axes."""
    given = args[:3]
    if len(args) != 3 or kwargs.get("attn_mask") is not None or any(each.ndim not in (3, 4) or each.shape[:-2] != args[0].shape[:-2] for each in given):
        return NotImplemented
    result = op(*[_tenon.flatten(with_batch(each, level), 0, 1) for each in given], **kwargs)
    return Batched(_tenon.unflatten(result, 0, (level.size, args[0].shape[0])), level)


@_rule("layer_norm rms_norm")
def layer_norm(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("input", "normalized_shape", "weight", "bias", "eps") if op.__name__ == "layer_norm" else ("input", "normalized_shape", "weight", "eps")
    given = dict(zip(names, args), **kwargs)
    input, weight, bias = given.pop("input"), given.get("weight"), given.get("bias")
    if not is_batched(input, level):
        return NotImplemented
    if not is_batched(weight, level) and not is_batched(bias, level):
        return Batched(op(input.value, **given), level)
    result = op(input, **{name: each for name, each in given.items() if name not in ("weight", "bias")})
    if weight is not None:
        result = _tenon.mul(result, weight)
    return result if bias is None else _tenon.add(result, bias)


@_rule("embedding")
def embedding(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 2 or is_batched(args[0], level):
        return NotImplemented
    return Batched(op(args[0], args[1].value), level)


@_rule("mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss")
def loss(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Losses of single elements, and their mean or sum."""
    reduction = kwargs.get("reduction", "mean")
    if len(args) < 2 or any(each is not None for each in args[2:]) or kwargs.get("pos_weight") is not None or reduction not in ("mean", "sum", "none"):
        return NotImplemented
    losses = elementwise(op, level, args[:2], {**kwargs, "reduction": "none"})
    return losses if losses is NotImplemented or reduction == "none" else getattr(_tenon, reduction)(losses)


@_rule("cross_entropy")
def cross_entropy(op: Any, level: Level, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The batch joins the rows of the input, whose targets are classes."""
    input, target, weight = _named(("input", "target", "weight"), args, kwargs)
    settings = {name: each for name, each in kwargs.items() if name not in ("input", "target", "weight")}
    reduction, ignored = settings.pop("reduction", "mean"), settings.get("ignore_index", -100)
    if weight is not None or input.ndim not in (1, 2) or target.ndim != input.ndim - 1 or reduction not in ("mean", "sum", "none"):
        return NotImplemented
    rows, classes = with_batch(input, level), with_batch(target, level)
    losses = op(_tenon.reshape(rows, (-1, input.shape[-1])), _tenon.reshape(classes, (-1,)), reduction="none", **settings)
    losses = Batched(_tenon.reshape(losses, classes.shape), level)
    if reduction == "none":
        return losses
    total = _tenon.sum(losses)
    return total if reduction == "sum" else _tenon.div(total, _tenon.sum(_tenon.cast(_tenon.ne(Batched(classes, level), ignored), input.dtype)))
