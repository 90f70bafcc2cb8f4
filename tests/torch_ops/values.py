"""Values on both sides: copies of PyTorch's tensors, the same as Tenon's, Tenon's results as PyTorch's, and all as text."""

import numpy
import tenon
import torch

from names import DTYPES, NotApplicable

FORMATS = {torch.channels_last: "channels_last", torch.contiguous_format: "contiguous_format", torch.preserve_format: "preserve_format",
           torch.channels_last_3d: "channels_last_3d"}
LARGEST = 1 << 26  # bytes of a storage that is copied whole
MOST_AXES = 8


def is_named(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


def mapped(function, value):
    """`value` with `function` applied to what is not a list, tuple or dict in it."""
    if isinstance(value, torch.Size):
        return function(value)
    if is_named(value):
        return type(value)(*[mapped(function, each) for each in value])
    if isinstance(value, (list, tuple)):
        return type(value)(mapped(function, each) for each in value)
    if isinstance(value, dict):
        return {key: mapped(function, each) for key, each in value.items()}
    return function(value)


def flat(value, cls):
    """The objects of a class in nested lists and tuples."""
    if isinstance(value, cls):
        return [value]
    if isinstance(value, (list, tuple)):
        return [found for each in value for found in flat(each, cls)]
    return []


class Memo:
    """The copies made for one call. Tensors that shared memory share it afterwards."""

    def __init__(self):
        self.made = {}  # id of the original: (the value handed out, the copy of PyTorch below it, the original)
        self.storages = {}

    def all(self):
        return list(self.made.values())

    def storage(self, original):
        key = original.data_ptr()
        if key not in self.storages:
            self.storages[key] = original.clone()
        return self.storages[key]


def copy_of(tensor, memo=None):
    """A copy with the same strides and offset."""
    tensor = tensor.detach()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise NotApplicable("layout")
    if tensor.device.type != "cpu":
        raise NotApplicable("device")
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype)
    storage = tensor.untyped_storage()
    if storage.nbytes() > LARGEST:
        return tensor.clone()
    copy = torch.empty(0, dtype=tensor.dtype)
    copy.set_(storage.clone() if memo is None else memo.storage(storage), tensor.storage_offset(), tensor.size(), tensor.stride())
    return copy


def copied(value, memo):
    """`value` with copies of its tensors, for a call of PyTorch."""
    def one(each):
        if not isinstance(each, torch.Tensor):
            return each
        if id(each) not in memo.made:
            plain = each.layout == torch.strided and not each.is_quantized and each.device.type == "cpu"
            memo.made[id(each)] = (copy_of(each, memo) if plain else each, None, each)
        return memo.made[id(each)][0]
    return mapped(one, value)


def to_tenon(tensor, memo=None, grad=False):
    """A tensor of Tenon over a copy."""
    if memo is not None and id(tensor) in memo.made:
        return memo.made[id(tensor)][0]
    if tensor.is_complex():
        raise NotApplicable("complex")
    if tensor.dtype not in DTYPES:
        raise NotApplicable(f"dtype {tensor.dtype}")
    copy = copy_of(tensor, memo)
    if copy.dim() > MOST_AXES:
        raise NotApplicable(f"more than {MOST_AXES} axes")
    made = tenon.from_dlpack(copy)
    if grad and tensor.requires_grad:
        made.requires_grad_(True)
    if memo is not None:
        memo.made[id(tensor)] = (made, copy, tensor)
    return made


def converted(value, memo, grad=False):
    """`value` as Tenon takes it."""
    return mapped(lambda each: _converted(each, memo, grad), value)


def _converted(value, memo, grad):
    if isinstance(value, torch.Tensor):
        return to_tenon(value, memo, grad)
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise NotApplicable(f"dtype {value}")
        return DTYPES[value]
    if isinstance(value, torch.device):
        if value.type != "cpu":
            raise NotApplicable("device")
        return "cpu"
    if isinstance(value, torch.memory_format):
        return FORMATS[value]
    if isinstance(value, torch.Size):
        return tuple(value)
    for cls, what in ((torch.layout, "layout"), (torch.Generator, "generator"), (complex, "complex")):
        if isinstance(value, cls):
            raise NotApplicable(what)
    if isinstance(value, torch.nn.Module) or (callable(value) and getattr(value, "__module__", "").startswith("torch")):
        raise NotApplicable("callable of torch")
    return value


def arguments_of(sample, grad=False):
    """(input, args, kwargs) of a sample for Tenon, and the memo of its tensors."""
    memo, kwargs = Memo(), {}
    for name, value in sample.kwargs.items():
        if name in ("layout", "pin_memory"):
            if isinstance(value, torch.layout) and value != torch.strided:
                raise NotApplicable("layout")
            continue
        kwargs[name] = converted(value, memo, grad)
    return converted(sample.input, memo, grad), [converted(each, memo, grad) for each in sample.args], kwargs, memo


def back(value):
    """A result of Tenon as PyTorch's."""
    if is_named(value):
        return tuple(back(each) for each in value)
    return mapped(_back, value)


def _back(value):
    if isinstance(value, tenon.Tensor):
        plain = value.detach()
        try:
            return torch.from_dlpack(plain)
        except Exception:  # a dtype that DLPack or PyTorch does not take
            return torch.from_numpy(numpy.array(plain.numpy()))
    return str(value) if isinstance(value, tenon.DType) else value


def raised(value):
    """`value` with f64 for every float, so that the result can serve as the reference."""
    def one(each):
        if isinstance(each, torch.Tensor):
            return each.detach().double() if each.dtype.is_floating_point else each.detach()
        if isinstance(each, torch.dtype):
            return torch.float64 if each.is_floating_point else each
        return each
    return mapped(one, value)


# ---- text ----

def text_of(value, most=12):
    """A value as text; a tensor of more than `most` elements by its shape."""
    if isinstance(value, torch.Tensor):
        name, strides = str(value.dtype)[6:], "" if value.is_contiguous() else f" strides{tuple(value.stride())}"
        if value.numel() > most or value.layout != torch.strided:
            return f"{name}{list(value.shape)}{strides}"
        body = repr(value.detach().tolist()) if value.numel() else f"empty{list(value.shape)}"
        return f"T({body}, {name}{strides})"
    if isinstance(value, (list, tuple)):
        return ("[%s]" if isinstance(value, list) else "(%s)") % ", ".join(text_of(each, most) for each in value)
    if isinstance(value, dict):
        return "{%s}" % ", ".join(f"{key}: {text_of(each)}" for key, each in value.items())
    return repr(value)[:80]


def call_text(sample):
    parts = [text_of(each) for each in (sample.input, *sample.args)] + [f"{name}={text_of(value)}" for name, value in sample.kwargs.items()]
    return ", ".join(parts)[:600]


def size_of(value):
    """About how many elements a value has."""
    if isinstance(value, torch.Tensor):
        return value.numel() + 1
    if isinstance(value, dict):
        value = list(value.values())
    return sum(size_of(each) for each in value) if isinstance(value, (list, tuple)) else 0


def sample_size(sample):
    return size_of(sample.input) + size_of(sample.args) + size_of(sample.kwargs)


def error_text(error):
    return f"{type(error).__module__}.{type(error).__name__}: {error}"[:600]
