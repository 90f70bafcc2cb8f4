"""Random calls of ops, most of whose arguments make no sense. A call is a line of Python, which says it again."""
import random
import re

import numpy as np
import tenon

DTYPES = ["f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool"]
STORED = ["f8e4m3fn", "f8e5m2", "f4e2m1", "i4", "u4", "i2", "u2", "f6e2m3fn", "f8e8m0"]  # dtypes that can only be stored
SHAPES = [(), (0,), (1,), (2,), (3,), (7,), (17,), (0, 3), (3, 0), (1, 1), (2, 3), (3, 3), (4, 4), (5, 1), (2, 0, 3), (2, 3, 4),
          (1, 2, 1, 3), (2, 2, 5, 5), (1, 3, 2, 4, 4), (1, 1, 1, 1, 1, 1, 1, 2), (2, 1, 2, 1, 2, 1, 2, 1)]
FILLS = ["ones", "count", "negative", "specials", "random", "large", "index"]
LAYOUTS = ["plain", "reversed", "sliced", "expanded"]
INTS = [0, 1, -1, 2, 3, 5, -2, -9, 8, 16, 100, 2**31 - 1, -2**31, 2**32, 2**62, 2**63 - 1, -2**63, 2**63, 2**70]
FLOATS = [0.0, -0.0, 0.5, 1.0, -1.5, 2.0, 1e-320, 1e300, -1e300, 3.4e38, float("inf"), float("-inf"), float("nan")]
TEXTS = ["", "nonsense", "sum", "mean", "none", "linear", "nearest", "cubic", "bilinear", "reflect", "constant", "reduced", "complete", "r", "tanh",
         "floor", "trunc", "ij", "xy", "ij,jk->ik", "...i,i->", "ii->i", "i->j", "->", "a" * 30, "f32", "int64", "cpu", "cpu:0", "cpu:99", "prod",
         "amax", "multiply", "add", "sorted", "channels_last", "contiguous_format", "upper", "\0", "\u00e9"]
OBJECTS = ["object()", "{}", "1j", "np.zeros(2)", "np.float32(2)", "np.array(3)", "b'bytes'", "slice(None)", "...", "int", "[[1], [2]]", "[None]",
           "['a']", "range(3)", "np.int64(-1)", "np.bool_(True)", "np.float16('nan')", "(lambda: 0)", "inside()", "Shrinking.list()", "Raising()",
           "[1, Raising()]", *(f"tenon.{name}.__new__(tenon.{name})" for name in ("Tensor", "Device", "DType", "Generator"))]


def inside():
    """A list that contains itself."""
    made = [1]
    made.append(made)
    return made


class Shrinking:
    """A number that empties the list in which it stands when it is read."""

    def __init__(self, holder):
        self.holder = holder

    def __index__(self):
        self.holder.clear()
        return 1

    __float__ = __index__

    @classmethod
    def list(cls):
        made = []
        made += [1, cls(made), 2, 3]
        return made


class Raising:
    def __index__(self):
        raise ValueError("no number")

    __float__ = __len__ = __getitem__ = __array__ = __dlpack__ = __index__


def values_of(fill, count):
    numbers = np.arange(count, dtype=np.float64)
    if fill == "ones":
        return np.ones(count)
    if fill == "negative":
        return -numbers - 0.5
    if fill == "specials":
        return np.resize([np.nan, np.inf, -np.inf, -0.0, 1e-40, 3e38, 1.0], count)
    if fill == "random":
        return np.random.RandomState(count).randn(count) * 3
    if fill == "large":
        return numbers * 1e18 - 3e18
    return numbers % 3 if fill == "index" else numbers


def T(dtype, shape, fill="count", layout="plain"):
    """A tensor as its description says."""
    real = shape
    if layout == "reversed":
        real = shape[::-1]
    elif layout == "sliced" and shape:
        real = (*shape[:-1], 2 * shape[-1])
    elif layout == "expanded" and shape:
        real = (1, *shape[1:])
    with np.errstate(all="ignore"):
        made = tenon.tensor(values_of(fill, int(np.prod(real, dtype=int))).reshape(real))
    made = tenon.cast(made, getattr(tenon, dtype))
    if layout == "reversed":
        return tenon.permute(made, list(range(len(shape)))[::-1])
    if layout == "sliced" and shape:
        return tenon.slice(made, -1, 0, None, 2)
    return tenon.expand(made, list(shape)) if layout == "expanded" and shape and shape[0] > 0 else made


class Caller:
    """Draws calls. `text()` is the next one, `known` what its names mean."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.ops = {name: op for name, op in sorted(vars(tenon).items()) if isinstance(op, tenon.Op)}
        self.known = {"np": np, "tenon": tenon, "T": T, "inside": inside, "Shrinking": Shrinking, "Raising": Raising,
                      "nan": float("nan"), "inf": float("inf")}
        self.dtype, self.rank = "f32", 2

    def tensor(self):
        """Mostly one that fits those of the same call."""
        chance = self.chance
        dtype = self.dtype if chance.random() < 0.7 else chance.choice(DTYPES if chance.random() < 0.9 else STORED)
        shape = self.shape if chance.random() < 0.5 else chance.choice(SHAPES)
        layout = chance.choice(LAYOUTS) if chance.random() < 0.3 and dtype in DTYPES else "plain"
        return f"T({dtype!r}, {shape}, {chance.choice(FILLS)!r}, {layout!r})"

    def integer(self):
        return str(self.chance.choice(INTS[:9] if self.chance.random() < 0.8 else INTS))

    def listed(self, draw, most=5):
        return "[" + ", ".join(draw() for _ in range(self.chance.randrange(most))) + "]"

    def sized(self):
        return str(list(self.chance.choice(SHAPES))) if self.chance.random() < 0.5 else self.listed(self.integer)

    def floating(self):
        return repr(self.chance.choice(FLOATS))

    def draw(self, kind):
        """An argument for a parameter of type `kind`, such as "Tensor?" or "int[1]"."""
        chance = self.chance
        drawn = {"Tensor": self.tensor, "Tensor|Scalar": lambda: chance.choice((self.tensor, self.integer, self.floating))(),
                 "Tensor[]": lambda: self.listed(self.tensor, chance.choice((4, 4, 4, 12))), "int[]": self.sized,
                 "int[1]": lambda: chance.choice((self.sized, self.integer))(),
                 "int": self.integer, "float": self.floating, "Scalar": lambda: chance.choice((self.integer, self.floating, lambda: "True"))(),
                 "bool": lambda: chance.choice(("True", "False")), "dtype": lambda: f"tenon.{chance.choice(DTYPES + STORED)}",
                 "device": lambda: chance.choice(("'cpu'", "tenon.Device('cpu')", "'cpu:9'", "'nonsense'", "''")),
                 "generator": lambda: f"tenon.Generator({chance.randrange(9)})", "str": lambda: repr(chance.choice(TEXTS)),
                 "object": lambda: chance.choice(OBJECTS), "floats": lambda: self.listed(self.floating)}
        plain = kind.rstrip("?!")
        plain = {"string": "str", "float[]": "floats"}.get(plain, plain)
        if chance.random() < 0.06 or plain not in drawn:
            plain = chance.choice(sorted(drawn))
        if kind.endswith("?") and chance.random() < 0.2:
            return "None"
        return drawn[plain]()

    def text(self):
        chance = self.chance
        name = chance.choice(list(self.ops))
        self.dtype = "f32" if chance.random() < 0.5 else chance.choice(DTYPES)
        self.shape = chance.choice(SHAPES)
        if chance.random() < 0.03:
            return self.made(chance)
        signature = chance.choice(self.ops[name].signatures)
        listed = re.match(r"[^(]*\((.*?)\)(?: ->|$)", signature).group(1)
        arguments, by_name = [], False
        for part in re.split(r", (?=[A-Z*a-z])", listed) if listed else []:
            if part == "*":
                by_name = True
                continue
            kind, _, rest = part.partition(" ")
            parameter, default = rest.split(" ")[0], " = " in rest
            if default and chance.random() < 0.5:
                by_name = True
                continue
            if chance.random() < 0.02:
                continue
            value = self.draw(kind)
            if default and " = '" in rest and chance.random() < 0.6:
                value = re.search(r"= ('[^']*')", rest).group(1)
            arguments.append(f"**{{{parameter!r}: {value}}}" if by_name else value)
        if chance.random() < 0.02:
            arguments.append(f"**{{'nonsense': {self.integer()}}}")
        return f"tenon.{name}({', '.join(arguments)})"

    def made(self, chance):
        """A call that is not an op: tensors from arrays and objects, and what tensors do as objects of Python."""
        array = f"np.zeros({chance.choice(SHAPES)}, {chance.choice(['f4', '>f4', 'c8', 'O', 'S3', 'f2', 'i8', '?', 'M8[s]', 'V3'])!r})"
        seen = chance.choice([".T", "[..., ::-1]", "[..., ::2]", ".ravel()[1:]", ".view('u1')[..., 1:]", ".copy()", ""])
        return chance.choice([
            lambda: f"tenon.from_numpy({array}{seen})", lambda: f"tenon.tensor({array}{seen})",
            lambda: f"tenon.tensor({self.draw('object')})", lambda: f"tenon.tensor({self.draw('int[]')}, dtype={self.draw('dtype')})",
            lambda: f"tenon.from_dlpack({self.tensor()})", lambda: f"np.asarray({self.tensor()})",
            lambda: f"repr({self.tensor()})", lambda: f"len({self.tensor()})", lambda: f"int({self.tensor()})", lambda: f"bool({self.tensor()})",
            lambda: f"{self.tensor()} {chance.choice('+-*/%@&|^<')} {self.draw(chance.choice(['object', 'Tensor', 'str', 'int', 'floats']))}",
            lambda: f"{self.tensor()}.requires_grad_(True).backward({self.tensor()})", lambda: f"tenon.Device({self.draw('object')})",
            lambda: f"tenon.Generator({self.integer()})", lambda: f"memoryview({self.tensor()}).nbytes"])()
