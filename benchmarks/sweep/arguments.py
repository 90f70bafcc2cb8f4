"""The arguments of a row: the tensors that its text names, as PyTorch's, with the values of the row's own generator."""

import math
import types
import zlib

import torch

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64, "i8": torch.int8, "u8": torch.uint8,
          "i32": torch.int32, "i64": torch.int64, "bool": torch.bool}


def sample_of(row):
    """The first argument, the others and the keywords of a row. `row.text` is Python over the methods of Arguments."""
    made = Arguments(row)
    names = {name: getattr(made, name) for name in dir(made) if not name.startswith("_")} | dict(row.values)
    args, kwargs = eval(f"call({row.text})", names | {"call": lambda *args, **kwargs: (args, kwargs), "torch": torch})
    return types.SimpleNamespace(input=args[0], args=args[1:], kwargs=kwargs, output_process_fn_grad=lambda result: result)


class Arguments:
    def __init__(self, row):
        self._row, self._generator = row, torch.Generator().manual_seed(zlib.crc32(row.name.encode()))
        self.dtype, self.s, self.r, self.n = DTYPES[row.dtype], row.shape, len(row.shape), math.prod(row.shape)
        self.row, self.column = self.s[-1:], (self.s[0], *[1] * (self.r - 1))
        self._first = None

    def x(self, *dims, low=None, high=None):
        """The first tensor, the same one each time."""
        if self._first is None:
            self._first = self._tensor(dims or self.s, low, high, self._row.first, True)
        return self._first

    def y(self, *dims, low=None, high=None):
        return self._tensor(dims or self.s, low, high, self._row.others, False)

    def mask(self, *dims):
        return self._uniform(dims or self.s, 0, 1) > .5

    def index(self, *dims, below):
        return torch.randint(0, below, dims, generator=self._generator)

    def shuffled(self, *dims):
        """The positions along the first axis, each once."""
        return self._uniform(dims, 0, 1).argsort(0)

    def sorted_(self, count):
        return self.y(count).sort().values

    def spd(self):
        x = self.x()
        return (x @ x.mT / self.s[-1] + 4 * torch.eye(self.s[-1], dtype=self.dtype)).contiguous()

    def triangle(self):
        return (torch.tril(self.y(), -1) / self.s[-1] + torch.eye(self.s[-1], dtype=self.dtype)).contiguous()

    def pairs(self):
        """A tensor of complex numbers as pairs along a last axis."""
        return self._values((*self.s, 2), None, None, True)

    def _uniform(self, dims, low, high):
        return torch.rand(dims, generator=self._generator).mul_(high - low).add_(low)

    def _values(self, dims, low, high, zeros):
        least, most = self._row.range
        low, high = least if low is None else low, most if high is None else high
        if self.dtype == torch.bool:
            return self._uniform(dims, 0, 1) > .5 if low < high else torch.ones(dims, dtype=torch.bool)
        if self.dtype.is_floating_point:
            return self._uniform(dims, low, high).to(self.dtype)
        if (low, high) == (-3, 3):
            low, high = 0 if self.dtype == torch.uint8 else -20, 50
        values = torch.randint(math.ceil(low), max(math.ceil(low), math.floor(high)) + 1, dims, generator=self._generator).to(self.dtype)
        return values if zeros else torch.where(values == 0, 1, values)

    def _tensor(self, dims, low, high, layout, zeros):
        """A tensor in a layout; contiguous if it has too few axes for the layout."""
        def make(*dims):
            return self._values(dims, low, high, zeros)
        dims = tuple(dims)
        *some, last = dims
        if layout == "transposed" and len(dims) >= 2:
            return make(*some[:-1], last, some[-1]).transpose(-1, -2)
        if layout == "channels-last" and len(dims) == 4:
            return make(*dims).to(memory_format=torch.channels_last)
        if layout == "column slice" and len(dims) >= 2:
            return make(*some, last + 3)[..., 1:-2]
        if layout == "every second":
            return make(*some, 2 * last)[..., ::2]
        if layout == "offset":
            return make(math.prod(dims) + 1)[1:].view(dims)
        if layout == "expanded rows" and len(dims) >= 2:
            return make(1, *dims[1:]).expand(dims)
        if layout == "expanded columns":
            return make(*some, 1).expand(dims)
        return make(*dims)
