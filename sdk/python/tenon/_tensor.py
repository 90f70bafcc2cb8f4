"""Methods of Tensor, besides operators and ops, that follow PyTorch and NumPy and need no C++."""

import collections
import copy

from tenon import _printing, _tenon
from tenon._tenon import Tensor

_DTYPES = {"float": _tenon.f32, "double": _tenon.f64, "half": _tenon.f16, "bfloat16": _tenon.bf16, "long": _tenon.i64, "int": _tenon.i32,
           "short": _tenon.i16, "char": _tenon.i8, "byte": _tenon.u8, "bool": _tenon.bool}

# Dtypes that Python's memoryview can read.
_READABLE = (_tenon.f32, _tenon.f64, _tenon.bool, _tenon.i8, _tenon.u8, _tenon.i16, _tenon.u16, _tenon.i32, _tenon.u32, _tenon.i64, _tenon.u64)


def method(function):
    setattr(Tensor, function.__name__, function)
    return function


def getter(function):
    setattr(Tensor, function.__name__, property(function))
    return function


# ---- metadata ----

@method
def size(self, dim=None):
    """Returns the shape, or the length of axis `dim`. A recorded program then depends only on that axis."""
    if dim is None:
        return self.shape
    axis = _axis(self, dim)
    if not self.ndim:
        raise _tenon.InvalidIndex(f"Dimension specified as {dim} but tensor has no dimensions")
    return self._size(axis)


@method
def stride(self, dim=None):
    """Returns the distance, in elements, between neighbours along each axis, or along axis `dim`."""
    return self._strides() if dim is None else self._strides()[_axis(self, dim)]


@method
def dim(self):
    """The number of axes."""
    return self.ndim


@method
def nelement(self):
    """The number of elements."""
    return self.numel()


@method
def element_size(self):
    """The bytes of one element."""
    return self.dtype.bits // 8


@method
def is_floating_point(self):
    """True if the elements are floats."""
    return self.dtype.is_floating_point


def _axis(tensor, dim):
    rank = max(tensor.ndim, 1)
    if not -rank <= dim < rank:
        raise _tenon.InvalidIndex(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank if tensor.ndim else 0


@getter
def T(self):
    """The tensor with its axes in reverse order."""
    return _tenon.permute(self, tuple(range(self.ndim))[::-1])


@getter
def mT(self):
    """The tensor with the last two axes exchanged."""
    if self.ndim < 2:
        raise _tenon.InvalidArgument(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return _tenon.transpose(self, -2, -1)


@getter
def H(self):
    """Like mT, since no dtype is complex."""
    if self.ndim not in (0, 2):
        raise _tenon.InvalidArgument(f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor.")
    return _tenon.transpose(self, 0, 1) if self.ndim else self


@getter
def mH(self):
    """Like mT, since no dtype is complex."""
    return self.mT


@getter
def grad_fn(self):
    """The op that made the tensor, if it was recorded for gradients."""
    maker = _tenon._maker_of(self)
    return None if maker is None else Node(maker, self)


class Node:
    """An op that was recorded for gradients."""

    def __init__(self, name, result):
        self._name, self._result = name, result

    def name(self):
        """Returns PyTorch's name of the node, such as MulBackward0."""
        return "".join(word.capitalize() for word in self._name.rstrip("_").split("_")) + "Backward0"

    def __repr__(self):
        return f"<{self.name()}>"


def _get_data(self):
    return self.detach()


def _set_data(self, value):
    with _no_grad():
        _tenon.copy_(self, value)


Tensor.data = property(_get_data, _set_data, doc="The elements, without gradients. Assigning writes them.")


# ---- global tensors ----

@getter
def is_global(self):
    """True if the elements are spread over the processes of a launch."""
    return _tenon._global.is_global(self)


@getter
def placement(self):
    """The ranks that hold a global tensor."""
    return _tenon._global.placement_of(self)


@getter
def sbp(self):
    """How a global tensor is spread along each axis of the grid of its placement."""
    return _tenon._global.sbp_of(self)


@method
def to_global(self, placement=None, sbp=None):
    """Same as tenon.global_.to_global."""
    from tenon import global_
    return global_.to_global(self, placement, sbp)


@method
def to_local(self):
    """Same as tenon.global_.to_local."""
    return _tenon._global.to_local(self)


# ---- elements ----

@method
def tolist(self):
    """Returns the elements as nested lists of Python numbers, or as a number for rank 0."""
    plain = self.detach()
    if plain.dtype not in _READABLE:
        plain = _tenon.cast(plain, _tenon.f32 if plain.dtype.is_floating_point else _tenon.i32)
    if plain.numel() == 0:
        return _empty_lists(plain.shape)
    return memoryview(plain).tolist()


def _empty_lists(shape):
    if not shape:
        return []
    return [_empty_lists(shape[1:]) for _ in range(shape[0])]


@method
def numpy(self, *, force=False):
    """Returns a NumPy array over the same memory. A tensor that requires a gradient is an error unless `force`
    detaches it."""
    import numpy
    if self.requires_grad and not force:
        raise _tenon.InvalidArgument("numpy(): the tensor requires a gradient, and autograd does not see writes to the array; call detach() first.")
    return numpy.asarray(self.detach())


@method
def __array__(self, dtype=None, copy=None):
    """Returns a NumPy array, over the same memory if the dtype is the same. pandas looks for this method."""
    import numpy
    array = numpy.asarray(memoryview(self.detach()))
    if dtype is None or array.dtype == dtype:
        return array.copy() if copy else array
    if copy is False:
        raise ValueError(f"__array__: a tensor of {self.dtype.name} has no memory of {dtype} that an array could share.")
    return array.astype(dtype)


@method
def __repr__(self):
    return _printing.to_text(self)


@method
def __str__(self):
    return _printing.to_text(self)


@method
def __format__(self, form):
    return format(self.item(), form) if self.ndim == 0 else object.__format__(self, form)


@method
def __reversed__(self):
    return _tenon.flip(self, 0) if self.ndim else self


# ---- copies ----

def _no_grad():
    from tenon.autograd import no_grad
    return no_grad()


def _rebuild(cls, elements, shape, dtype, device, requires_grad):
    tensor = _tenon._from_elements(elements, shape, dtype, device)
    made = tensor if cls is Tensor else cls(tensor)
    if made.requires_grad != requires_grad:
        made.requires_grad_(requires_grad)
    return made


@method
def __reduce_ex__(self, protocol):
    if not self.is_leaf:
        raise _tenon.InvalidArgument("Only tensors that are leaves, which no op made, can be pickled; call detach() first.")
    plain = self.detach()
    return _rebuild, (type(self), _tenon._elements_of(plain), tuple(self.shape), self.dtype.name, str(self.device), self.requires_grad)


@method
def __copy__(self):
    made = _tenon.view(self.detach(), self.shape) if type(self) is Tensor else type(self)(self.detach())
    if made.requires_grad != self.requires_grad:
        made.requires_grad_(self.requires_grad)
    return made


@method
def __deepcopy__(self, memo):
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise _tenon.InvalidArgument("Only tensors that are leaves, which no op made, support deepcopy; call detach() first.")
    elements = _tenon.clone(self.detach())
    made = elements if type(self) is Tensor else type(self)(elements)
    if made.requires_grad != self.requires_grad:
        made.requires_grad_(self.requires_grad)
    if self.grad is not None:
        made.grad = copy.deepcopy(self.grad, memo)
    memo[id(self)] = made
    return made


# ---- conversions ----

@method
def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """Returns the tensor with another dtype, on another device, or with those of `other`: to(dtype), to(device, dtype),
    to(other)."""
    flags = [value for value in args if isinstance(value, bool)]
    copy = copy or flags[1:2] == [True]
    for value in args:
        if isinstance(value, Tensor):
            dtype, device = value.dtype, value.device
        elif isinstance(value, _tenon.Device):
            device = value
        elif isinstance(value, str):
            try:
                dtype = _dtype(value)
            except ValueError:
                device = _tenon.Device(value)
        elif isinstance(value, bool):
            pass  # non_blocking or copy as a positional argument
        elif value is not None:
            dtype = _dtype(value)
    result = self
    if device is not None and (device if isinstance(device, _tenon.Device) else _tenon.Device(device)) != self.device:
        result = result._to_device(device)
    if dtype is not None and _dtype(dtype) != self.dtype:
        result = _tenon.cast(result, dtype)
    result = _tenon.clone(result) if copy and result is self else result
    return _in_format(result, memory_format)


def _in_format(tensor, memory_format):
    return tensor if memory_format in (None, "preserve_format") else _tenon.contiguous(tensor, memory_format=memory_format)


def _dtype(value):
    return value if isinstance(value, _tenon.DType) else _tenon.zeros((0,), dtype=value).dtype


def _converter(name, dtype):
    def convert(self, *, memory_format=None):
        return _in_format(_tenon.cast(self, dtype), memory_format)
    convert.__name__ = name
    convert.__doc__ = f"The tensor with elements of {dtype.name}."
    return convert


for _name, _each in _DTYPES.items():
    setattr(Tensor, _name, _converter(_name, _each))


@method
def cpu(self, *, memory_format=None):
    """Returns the tensor on the host device."""
    return _in_format(self._to_device("cpu"), memory_format)


@method
def __array_namespace__(self, /, *, api_version=None):
    """Returns the functions of the array API standard: tenon.array_api.

    Errors: this version of the standard is not supported."""
    from tenon import array_api
    if api_version not in (None, *array_api.VERSIONS):
        raise ValueError(f"__array_namespace__: there is no version {api_version!r}; the versions are {', '.join(array_api.VERSIONS)}.")
    return array_api


@method
def to_device(self, device, /, *, stream=None):
    """Returns the tensor on another device, or itself if it is there.

    Errors: `stream` is given. Streams are not visible to callers."""
    if stream is not None:
        raise ValueError("to_device: stream must be None; the result includes all work submitted before in any case.")
    return self.to(device=device)


def _type(self, dtype=None):
    """Returns the tensor with another dtype; without an argument, the name of its dtype."""
    return f"tenon.{self.dtype.name}" if dtype is None else _tenon.cast(self, dtype)


Tensor.type = _type


def _sizes(args):
    return tuple(args[0]) if len(args) == 1 and not hasattr(args[0], "__index__") else args


def _like(self, made, requires_grad):
    return made.requires_grad_() if requires_grad else made


@method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
    """Returns a tensor made of `data`, by default with the dtype and device of this one."""
    return _tenon.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def _new(name, op):
    def make(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        return _like(self, op(_sizes(size), dtype=dtype or self.dtype, device=device or self.device), requires_grad)
    make.__name__ = name
    make.__doc__ = f"As {op.__name__}, with this tensor's dtype and device where none is given."
    setattr(Tensor, name, make)


for _name in ("zeros", "ones", "empty"):
    _new("new_" + _name, getattr(_tenon, _name))


@method
def new_full(self, size, fill_value, *, dtype=None, device=None, requires_grad=False):
    """Returns a tensor filled with one number, by default with the dtype and device of this one."""
    return _like(self, _tenon.full(size, fill_value, dtype=dtype or self.dtype, device=device or self.device), requires_grad)


# ---- ops whose methods have other arguments ----

@method
def contiguous(self, *, memory_format="contiguous_format"):
    """Returns the tensor with its elements in row-major order; the tensor itself if it already is."""
    return _tenon.contiguous(self, memory_format=memory_format)


@method
def detach_(self):
    """Removes the tensor's gradient history. The tensor must not be a view."""
    self.requires_grad_(False)
    return self


@method
def softmax(self, dim=-1, *, dtype=None):
    """Returns exp(x) / sum(exp(x)) along the axis dim."""
    return _tenon.softmax(self, dim, dtype=dtype)


@method
def index_put(self, indices, values, accumulate=False):
    """Returns a copy with `values` at the positions; accumulate adds them instead."""
    return _tenon.index_put(self, list(indices), values, accumulate)


@method
def index_put_(self, indices, values, accumulate=False):
    """Writes `values` at the positions; accumulate adds them instead."""
    return _tenon.copy_(self, _tenon.index_put(self, list(indices), values, accumulate))


@method
def random_(self, low=0, high=None, *, generator=None):
    """Fills the tensor with integers from [low, high), or from [0, low) for a single argument."""
    if high is None:
        low, high = 0, low or 2**24
    return _tenon.copy_(self, _tenon.randint(low, high, self.shape, device=self.device, generator=generator))


@method
def where(self, condition, other):
    """Returns elements of this tensor where condition is true, else of other."""
    return _tenon.where(condition, self, other)


@method
def __rdiv__(self, other):
    """Returns other / self."""
    return other / self


# ---- functions ----

def promote_types(type1, type2):
    """Returns the dtype in which ops compute for two dtypes."""
    return _tenon.add(_tenon.zeros((0,), dtype=type1), _tenon.zeros((0,), dtype=type2)).dtype


def as_tensor(data, *, dtype=None, device=None):
    """Returns a tensor with the elements of `data`. It shares the memory if possible, and copies otherwise."""
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    try:
        made = _tenon.from_numpy(data)
    except (TypeError, ValueError):
        return _tenon.tensor(data, dtype=dtype, device=device)
    return made.to(dtype=dtype, device=device)


def is_tensor(object):
    """True if `object` is a Tensor."""
    return isinstance(object, Tensor)


def is_floating_point(input):
    """True if the elements of a tensor are floats."""
    return input.dtype.is_floating_point


def numel(input):
    """The number of elements of a tensor."""
    return input.numel()


# ---- ops that return other results in Python: only the requested ones, or a bool ----

def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """Returns the distinct elements, or distinct slices along `dim`.

    sorted: sorts them. return_inverse: also returns for each element its index in the result. return_counts: also
    returns how often each occurs.
    """
    values, inverse, counts = _tenon.unique(input, sorted, return_inverse, return_counts, dim)
    return _asked(values, (return_inverse, inverse), (return_counts, counts))


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """Like unique, but only merges equal elements that are neighbours."""
    values, inverse, counts = _tenon.unique_consecutive(input, return_inverse, return_counts, dim)
    return _asked(values, (return_inverse, inverse), (return_counts, counts))


def _asked(values, *others):
    wanted = tuple(each for asked, each in others if asked)
    return (values, *wanted) if wanted else values


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """True if all elements are close: |input - other| <= atol + rtol |other|."""
    return bool(_tenon.allclose(input, other, rtol, atol, equal_nan))


def equal(input, other):
    """True if the shapes and all elements are equal."""
    return bool(_tenon.equal(input, other))


for _each in (unique, unique_consecutive, allclose, equal):
    setattr(Tensor, _each.__name__, _each)


# ---- names of several results ----

_RESULTS = {"values indices": "max min sort topk kthvalue median cummax cummin", "Q R": "linalg_qr", "U S Vh": "linalg_svd linalg_svd_reduced",
            "eigenvalues eigenvectors": "linalg_eigh", "sign logabsdet": "slogdet linalg_slogdet", "min max": "aminmax", "LU pivots": "linalg_lu_factor"}
for _fields, _ops in _RESULTS.items():
    for _name in _ops.split():
        _class = collections.namedtuple(_name, _fields.split())
        _class.__module__ = "tenon"
        _tenon._name_results(getattr(_tenon, _name), _class)


# ---- calls that no signature of an op takes ----

def _otherwise(op, /, *args, **kwargs):
    from tenon._spellings import otherwise
    return otherwise(op, *args, **kwargs)


_tenon._spell_otherwise(_otherwise)
