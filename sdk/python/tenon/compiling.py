"""tenon.compile: a function of tensors that is recorded at its first call and runs as one program from then on."""

import functools
import threading

from tenon import _tenon
from tenon._tenon import Tensor


class _Slot:
    """The place of a tensor in a structure."""

    def __repr__(self):
        return "Tensor"


_SLOT = _Slot()


def _flatten(value, tensors):
    """The structure of `value`, with slots where it has tensors, which are appended to `tensors`."""
    if isinstance(value, Tensor):
        tensors.append(value)
        return _SLOT
    if isinstance(value, tuple):
        return (type(value), tuple(_flatten(each, tensors) for each in value))
    if isinstance(value, list):
        return (list, tuple(_flatten(each, tensors) for each in value))
    if isinstance(value, dict):
        return (dict, tuple((key, _flatten(each, tensors)) for key, each in value.items()))
    return (None, value)


def _rebuild(structure, tensors):
    if structure is _SLOT:
        return next(tensors)
    kind, held = structure
    if kind is None:
        return held
    if kind is dict:
        return {key: _rebuild(each, tensors) for key, each in held}
    items = [_rebuild(each, tensors) for each in held]
    return kind(*items) if hasattr(kind, "_fields") else kind(items)


_now = threading.local()


def is_recording() -> bool:
    """Whether this thread is inside a function that is recorded; then no tensor that is made is kept."""
    return getattr(_now, "functions", 0) > 0


class Compiled:
    """A compiled function. It is called as the function is; stats() says how its calls were served."""

    def __init__(self, function, options):
        self._function, self._options, self._programs, self._examples = function, options, {}, {}
        functools.update_wrapper(self, function, updated=())

    def _program(self, structure):
        results = {}

        def run(tensors):
            args, kwargs = _rebuild(structure, iter(tensors))
            made = []
            _now.functions = getattr(_now, "functions", 0) + 1
            try:
                found = _flatten(self._function(*args, **kwargs), made)
            finally:
                _now.functions -= 1
            # Nothing says which recording served a call, so all of them must give one structure.
            if results.setdefault("structure", found) != found:
                raise _tenon.InvalidArgument(
                    f"{self._options['name']}: it gave {results['structure']} at first and {found} now; what is no tensor in its results "
                    "must stay as it is. Give a tensor, or a function without it.")
            return made
        return _tenon._compile(run, **self._options), results

    def __call__(self, *args, **kwargs):
        tensors = []
        structure = _flatten((args, kwargs), tensors)
        # What is no tensor is part of the program: another number is another program.
        try:
            if structure not in self._programs:
                self._programs[structure] = self._program(structure)
                self._examples[structure] = [(each.shape, each.dtype, each.device) for each in tensors]
            program, results = self._programs[structure]
        except TypeError as error:
            raise TypeError(f"{self._options['name']}: arguments that are no tensors must be hashable: {error}") from None
        made = program(tensors)
        return _rebuild(results["structure"], iter(made))

    def __getattr__(self, name):
        # A compiled module still has its parameters.
        return getattr(object.__getattribute__(self, "_function"), name)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def stats(self):
        """How many kinds of calls were recorded, programs prepared, calls run as a program, and calls run eagerly."""
        total = {"recordings": 0, "executables": 0, "runs": 0, "eager": 0}
        for program, _ in self._programs.values():
            for name, count in program.stats().items():
                total[name] += count
        return total

    def memory(self):
        """Of each recording a dict of bytes, at the sizes of its first call: `saved`, what forward keeps for backward;
        `live`, the most that values take at once; both with `_before`, as if nothing were computed twice; `planned`, what
        a run of its newest program allocates for values; and `again`, what is computed twice."""
        return [row for program, _ in self._programs.values() for row in program.memory()]


def compile(function=None, *, name=None, exact=False, whole=True, check=True, fuse=None, recompute=True, memory_limit=None, frozen=()):
    """A function that is recorded at its first call and runs as one program from then on; also a decorator.

    A recording serves the calls that look alike, of every size that decided nothing in the function. Tensors from
    outside, such as the parameters of a module, are state: each run reads what they hold then, and may write them.

    exact: results have the bits of the eager run. whole: False lets the function read elements; it runs in parts then.
    check: the second call is recorded too, and an error says where it differs. fuse: whether ops become one kernel.
    recompute: what costs next to no time is computed again, in place of being kept. memory_limit: bytes that the
    values of a run may take at once, where arguments and tensors from outside do not count; values are computed again
    until they fit, and an error says the least where they do not.
    frozen: tensors from outside that are constants."""
    if function is None:
        return functools.partial(compile, name=name, exact=exact, whole=whole, check=check, fuse=fuse, recompute=recompute,
                                 memory_limit=memory_limit, frozen=frozen)
    called = name or getattr(function, "__name__", type(function).__name__)
    return Compiled(function, {"name": called, "exact": exact, "whole": whole, "check": check, "fuse": fuse, "recompute": recompute,
                               "memory_limit": memory_limit or 0, "frozen": list(frozen)})
