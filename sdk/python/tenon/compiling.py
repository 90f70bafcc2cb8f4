"""tenon.compile: a function of tensors that is recorded at its first call and runs as one program from then on."""

import functools
import threading
import warnings
import weakref

from tenon import _tenon
from tenon._structures import flatten, rebuild

# The most states of Python that a call is recorded in, and the most structures of arguments that are not tensors.
_MOST_STATES, _MOST_STRUCTURES = 8, 256


class _Now(threading.local):
    functions = 0  # that are recorded, each inside the one before
    program = None  # that was called
    watch = None  # of its recording, until the call is over: gradients are recorded after the function has returned


_now = _Now()
_making = threading.RLock()


def is_recording() -> bool:
    """True if this thread is inside a function that is being recorded. Tensors made there must not be kept."""
    return _now.functions > 0


class _Program:
    """The recordings for one structure of arguments and one state of Python."""

    def __init__(self, function, options, structure):
        from tenon._guards import Guards  # at the first call, since it loads modules that few programs need
        self._function, self._name, self._structure = function, options["name"], structure
        self._guards, self._results, self._runs = Guards(), None, 0
        program = weakref.ref(self)  # what C++ holds is nothing that Python's garbage collector sees
        self._list = _tenon._compile(lambda tensors: program()._run(tensors), **options)
        self.change, self.stats, self.memory = self._guards.change, self._list.stats, self._list.memory

    def __call__(self, tensors):
        before, before_watch, _now.program, _now.watch = _now.program, _now.watch, self, None
        try:
            made = self._list(tensors)
        finally:
            if _now.watch is not None:
                _now.watch.__exit__()
            _now.program, _now.watch = before, before_watch
        return rebuild(self._results, iter(made))

    def _run(self, tensors):
        called = _now.program is self
        if not called:
            self._check_state()
        args, kwargs = rebuild(self._structure, iter(tensors))
        made = []
        if called and self._is_recorded() and _now.watch is None:
            from tenon._watching import Watch
            _now.watch = Watch(self._guards, self._name, self._function, args, kwargs)
            _now.watch.__enter__()
        _now.functions += 1
        try:
            result = self._function(*args, **kwargs)
        finally:
            _now.functions -= 1
        found = flatten(result, made)
        if self._results is None:
            self._results = found
        # Nothing says which recording served a call, so all of them must give one structure.
        if self._results != found:
            raise _tenon.InvalidArgument(
                f"{self._name}: it gave {self._results} at first and {found} now; what is no tensor in its results "
                "must stay as it is. Give a tensor, or a function without it.")
        return made

    def _is_recorded(self):
        """False where the function runs in parts, or has been recorded for too many kinds of tensors: it is called each
        time then."""
        self._runs += 1
        return self._runs < 20 or not self.stats()["eager"]

    def _check_state(self):
        """Raises an error if the state has changed: a gradient of a gradient records the function as it was at the call."""
        changed = self.change()
        if changed:
            raise _tenon.InvalidArgument(f"backward: {self._name} is recorded again, for the gradient of its gradient, and {changed}. "
                                         "Call backward before that changes.")


class Compiled:
    """A compiled function. Call it like the original function; stats() says how its calls were served."""

    def __init__(self, function, options):
        own = self.__dict__
        own.update(_function=function, _options=options, _programs={}, _examples={}, _eager=[0], _told=set())
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args, **kwargs):
        if _now.functions:
            return self._function(*args, **kwargs)
        tensors = []
        structure = flatten((args, kwargs), tensors)
        programs = self._programs.get(structure)
        if programs and not programs[0].change():
            return programs[0](tensors)
        program = self._program_of(structure, tensors)
        if program is None:
            self._eager[0] += 1
            return self._function(*args, **kwargs)
        try:
            return program(tensors)
        except BaseException:
            if not program.stats()["recordings"]:
                self._forget(structure, program)
            raise

    def _program_of(self, structure, tensors):
        """The program for the state that Python has now, which becomes the first of its kind; None: there are too many."""
        with _making:
            programs, change = self._programs.get(structure, ()), ""
            for program in programs:
                changed = program.change()
                if not changed:
                    self._programs[structure] = (program, *(each for each in programs if each is not program))
                    return program
                change = change or changed
            if len(programs) >= _MOST_STATES:
                return self._tell(f"for {_MOST_STATES} states of Python", change, "Make what changes a tensor, which each run reads.")
            if not programs and len(self._programs) >= _MOST_STRUCTURES:
                return self._tell(f"with {_MOST_STRUCTURES} kinds of arguments", "what is no tensor in its arguments has changed",
                                  "Make what changes a tensor.")
            program = _Program(self._function, self._options, structure)
            self._programs[structure] = (program, *programs)
            self._examples[structure] = [(each.shape, each.dtype, each.device) for each in tensors]
            return program

    def _forget(self, structure, program):
        with _making:
            programs = tuple(each for each in self._programs.get(structure, ()) if each is not program)
            if programs:
                self._programs[structure] = programs
            else:
                self._programs.pop(structure, None)
                self._examples.pop(structure, None)

    def _tell(self, often, change, remedy):
        if often not in self._told:
            self._told.add(often)
            warnings.warn(f"{self._options['name']}: it was recorded {often}, and {change}; such calls run eagerly. {remedy}", RuntimeWarning,
                          stacklevel=4)

    def __getattr__(self, name):
        # A compiled module still has its parameters.
        return getattr(object.__getattribute__(self, "_function"), name)

    def __setattr__(self, name, value):
        if name.startswith("__"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._function, name, value)

    def __get__(self, instance, owner=None):
        return self if instance is None else functools.partial(self, instance)

    def _all(self):
        return [program for programs in list(self._programs.values()) for program in programs]

    def stats(self):
        """How many kinds of calls were recorded, programs prepared, calls run as a program, and calls run eagerly."""
        total = {"recordings": 0, "executables": 0, "runs": 0, "eager": self._eager[0]}
        for program in self._all():
            for name, count in program.stats().items():
                total[name] += count
        return total

    def memory(self):
        """Of each recording a dict of bytes, at the sizes of its first call: `saved`, what forward keeps for backward;
        `live`, the most that values take at once; both with `_before`, as if nothing were computed twice; `planned`, what
        a run of its newest program allocates for values; and `again`, what is computed twice."""
        return [row for program in self._all() for row in program.memory()]


def compile(function=None, *, name=None, exact=False, whole=True, check=True, fuse=None, recompute=True, memory_limit=None, frozen=()):
    """A function that is recorded at its first call and runs as one program from then on; also a decorator.

    A recording holds for the state of Python that it has read: arguments that are no tensors, global variables and
    those of enclosing functions, attributes of modules and other objects (`training` too), defaults, and what lists,
    dicts, sets and arrays hold, by their types and bits. Where some of it changes, the function is recorded anew, for up
    to eight states, and runs eagerly after that; a warning says what has changed. An earlier state has its program
    still. Not compared are containers of more than 4096 elements and arrays of more than 64 KiB: a warning says so at
    the first call. Not seen is what does not stand in Python code: the time, files, random numbers of Python and NumPy,
    iterators, the state of extension modules and of Python's own, nor what is written into the `__dict__` of a module; the
    second call is recorded too, to find it.

    A recording serves the calls that look alike, of every size that decided nothing in the function. Tensors from
    outside, such as the parameters of a module, are state: each run reads what they hold then, and may write them. What
    else the function does in Python, as to write an attribute or print, is done when it is recorded. Lists, dicts and
    dataclasses among its arguments are copies.

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
