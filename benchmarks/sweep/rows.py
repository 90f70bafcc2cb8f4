"""The rows of the sweep, drawn by a seed: a call of an op with a dtype, layouts and a shape."""

import random
import re
from dataclasses import dataclass

from calls_of_ops import RANGES, calls

DTYPES = ("f32", "f16", "bf16", "f64", "i8", "u8", "i32", "i64", "bool")
# By name, the least rank of a tensor that can have the layout.
LAYOUTS = {"contiguous": 0, "transposed": 2, "channels-last": 4, "column slice": 2, "every second": 1, "offset": 1, "expanded rows": 2, "expanded columns": 1}
LIKELY = ("contiguous", "contiguous", *LAYOUTS)
OUT = 0.1  # share of the rows that write into a given tensor
PATIENCE = 60  # draws of rows that were drawn before, until an op counts as exhausted


@dataclass(frozen=True)
class Row:
    op: str
    path: str  # the function's, below `torch`; empty: found by the op's name
    text: str  # the arguments (calls_of_ops.py)
    values: tuple  # (name, number) for each name in `text`
    shape: tuple
    dtype: str
    first: str  # layout of the first tensor
    others: str
    out: bool
    range: tuple

    @property
    def name(self):
        layouts = "/".join(dict.fromkeys((self.first, self.others) if "y(" in self.text else (self.first,)))
        if "*[" in self.text and self.values:  # the text is long, and the numbers say as much
            return " ".join([f"{self.op}({', '.join(f'{name} {value}' for name, value in self.values)})", self.dtype, layouts] + ["out="] * self.out)
        return " ".join([f"{self.op}({self.text.replace('()', '')})", self.dtype, layouts, "x".join(map(str, self.shape))] + ["out="] * self.out)


class Rows:
    """The rows of one op. The filters do not change which rows a seed draws."""

    def __init__(self, op, seed):
        self.op, self.calls, self.drawn = op, calls(op), set()
        self.random = random.Random(f"{seed} {op.name}")

    def next(self):
        """A row that was not drawn before, or None if the op has no more."""
        for _ in range(PATIENCE if self.calls else 0):
            row = self._draw()
            if row not in self.drawn:
                self.drawn.add(row)
                return row
        return None

    def _draw(self):
        choice = self.random.choice
        call = choice(self.calls)
        shape, dtype, first = choice(call.shapes), choice(DTYPES), choice(LIKELY)
        names = tuple(zip(call.names.split(), shape))
        if not re.search(r"\b(x\(|y\(|pairs\(|spd\(|triangle\(|dtype\b)", call.text):
            dtype = DTYPES[0]
        if rank_of(call.text, shape, names) < LAYOUTS[first] or self.op.name.endswith("_") and first.startswith("expanded"):
            first = "contiguous"
        others, out = choice((first, "contiguous")) if "y(" in call.text else first, self.random.random() < OUT
        return Row(self.op.name, call.path.format(**dict(names)), call.text, names, shape, dtype, first, others, out, RANGES.get(self.op.name, (-3, 3)))


def rank_of(text, shape, values):
    """The rank of the first tensor in the text; 0 if there is none."""
    call = re.search(r"\bx\((?:[^()]|\([^()]*\))*\)", text)
    return eval(call[0], {"s": shape, "n": 0, "row": shape[-1:], "x": lambda *dims, **interval: len(dims) or len(shape)}, dict(values)) if call else 0


def other_names(ops):
    """By op, the names that other rows of ops.yaml give it."""
    found = {}
    for op in ops:
        if op.same_as:
            found.setdefault(op.same_as, []).append(op.name)
    return found
