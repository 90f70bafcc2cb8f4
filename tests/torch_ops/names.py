"""Which function of Tenon stands for a function of PyTorch."""

import functools
import re
import types

import tenon
import tenon.nn.functional
import torch

NAMESPACES = {"nn", "nn.functional", "linalg", "fft", "special", "Tensor", "_C", "_C._nn", "ops", "ops.aten", "random", "signal", "signal.windows",
              "masked", "functional", "testing"}
PRIVATE = re.compile(r"^(_|torch\.|jiterator|sparse\.|masked\.|ops\.)")
DTYPES = {getattr(torch, name): getattr(tenon, name) for name in (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool", "uint16", "uint32", "uint64")}


class Missing(Exception):
    """Tenon has no such function."""


class NotApplicable(Exception):
    """The case needs something that Tenon does not have by design: complex numbers, layouts, devices."""


def walk(path):
    """The object at a dotted path below `tenon`, or None."""
    here = tenon
    for part in path.split("."):
        here = getattr(here, part, None)
        if here is None:
            return None
    return here


def method_caller(name):
    def call(x, *args, **kwargs):
        return getattr(x, name)(*args, **kwargs)
    return call


def resolve(name):
    """The function for a name below `torch`, and where it was found."""
    tail = name.rsplit(".", 1)[-1]
    if name.startswith("Tensor."):
        if hasattr(tenon.Tensor, tail):
            return method_caller(tail), name
        raise Missing(name)
    for each in [name, *_spellings(name, tail)]:
        found = walk(each)
        if found is not None:
            return found, "tenon." + each
    if "." not in name and hasattr(tenon.Tensor, name):
        return method_caller(name), "Tensor." + name
    raise Missing(name)


def _spellings(name, tail):
    if name.startswith("nn.functional."):
        return [tail]
    if not name.startswith(("linalg.", "fft.", "special.")):
        return []
    alone = name.startswith("special.") or tail in ("cross", "vector_norm", "vecdot", "multi_dot", "matrix_norm")
    return [name.replace(".", "_"), *([tail] if alone else [])]


class Namespace:
    """The meaning of `torch` in a function of the database that is called with Tenon's tensors."""

    def __init__(self, path=""):
        self._path = path

    def __getattr__(self, name):
        full = f"{self._path}.{name}" if self._path else name
        if full in NAMESPACES:
            return Namespace(full)
        value = getattr(torch, name, None) if not self._path else None
        if isinstance(value, torch.dtype):
            if value not in DTYPES:
                raise NotApplicable(f"dtype {value}")
            return DTYPES[value]
        if self._path == "random":
            return getattr(torch.random, name)
        return resolve(full)[0]


def _rebuilt(function):
    """A function of the database whose `torch` is Tenon."""
    names = dict(function.__globals__, torch=Namespace(), F=Namespace("nn.functional"), wrapper_set_seed=lambda op, *a, **k: op(*a, **k))
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def function_of(op):
    """The function of Tenon for an entry of the database, and where it was found."""
    function = op.op
    if PRIVATE.match(op.name) and not op.name.startswith("__"):
        raise Missing(op.name)
    if isinstance(function, types.FunctionType) and function.__module__.startswith("torch.testing") and function.__name__ == "<lambda>":
        return _rebuilt(function), "lambda:" + op.name
    if op.name == "__rdiv__":
        return (lambda x, other: other / x), "operator"
    if op.name.startswith("__"):
        return method_caller(op.name), "Tensor." + op.name
    if isinstance(function, functools.partial):
        inner, where = resolve(op.name)
        return functools.partial(inner, *function.args, **function.keywords), where
    for name in (op.name, *(alias.name for alias in op.aliases)):
        try:
            return resolve(name)
        except Missing:
            pass
    raise Missing(op.name)
