"""tenon.compile: records a function of tensors at its first call, and runs it as one program from then on."""

import functools
import threading
import warnings
import weakref

from tenon import _tenon
from tenon._structures import flatten, rebuild

# The greatest number of Python states that a call is recorded for, and of structures of non-tensor arguments.
_MOST_STATES, _MOST_STRUCTURES = 8, 256


class _Now(threading.local):
    functions = 0  # the number of functions being recorded, each inside the previous one
    program = None  # the program that is being called
    watch = None  # watches the recording until the call ends, since gradients are recorded after the function returned


_now = _Now()
_making = threading.RLock()


def is_recording() -> bool:
    """True if this thread is inside a function that is being recorded. Tensors made there must not be kept."""
    return _now.functions > 0


class _Program:
    """The recordings for one structure of arguments and one state of Python."""

    def __init__(self, function, options, structure):
        from tenon._guards import ATTRIBUTES, Guards  # imported at the first call, since it loads modules that few programs need
        from tenon.amp import block
        self._function, self._name, self._structure = function, options["name"], structure
        self._guards, self._results, self._runs = Guards(), None, 0
        self._guards.note(ATTRIBUTES, block, "dtype", block.dtype)
        program = weakref.ref(self)  # weak, since Python's garbage collector does not see references that C++ holds
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
                f"{self._name}: it gave {self._results} at first and {found} now; results that are not tensors must stay "
                "the same. Return a tensor, or leave the value out.")
        return made

    def _is_recorded(self):
        """True if this run is recorded. False if the function runs in parts, or was recorded for too many kinds of
        tensors: it is then called each time."""
        self._runs += 1
        return self._runs < 20 or not self.stats()["eager"]

    def _check_state(self):
        """Raises an error if the Python state has changed. The gradient of a gradient records the function again and
        needs the state of the call."""
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
        """Returns the program for the current state of Python and moves it to the front of its list. Returns None if
        there are too many."""
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
                return self._tell(f"with {_MOST_STRUCTURES} kinds of arguments", "an argument that is not a tensor has changed",
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
        """Returns the numbers of recordings, of prepared programs, of calls run as a program, and of eager calls."""
        total = {"recordings": 0, "executables": 0, "runs": 0, "eager": self._eager[0]}
        for program in self._all():
            for name, count in program.stats().items():
                total[name] += count
        return total

    def memory(self):
        """Returns for each recording a dict of bytes at the sizes of its first call.

        saved: values that forward keeps for backward. live: the most bytes that values occupy at once. saved_before and
        live_before: the same without recomputation. planned: allocated for values by a run of the newest program.
        again is a text that lists the values computed twice.
        """
        return [row for program in self._all() for row in program.memory()]


_MODES = (None, "default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
_BACKENDS = (None, "tenon", "inductor", "eager")


def compile(function=None, *, name=None, exact=False, whole=None, check=True, fuse=None, recompute=True, memory_limit=None, frozen=(),
            fullgraph=None, dynamic=None, backend=None, mode=None, options=None, disable=False):
    """Records a function at its first call and runs it as one program from then on. Also a decorator.

    A program serves all calls with arguments of the same structure, of every size that did not influence the recording.
    Tensors from outside, such as the parameters of a module, are read, and may be written, in each run. Other
    effects of the Python code, such as writing an attribute or printing, happen only while recording. Lists,
    dicts and dataclasses among the arguments are copies.

    The function is recorded again if the Python state that it reads has changed: arguments that are not tensors, global
    variables, variables of enclosing functions, attributes of modules and other objects (such as `training`),
    defaults, and the elements of lists, dicts, sets and arrays, compared by types and bits. Programs of up to
    eight states are kept. Further states run eagerly, and a warning names the change.

    Containers of more than 4096 elements and arrays of more than 64 KiB are not compared; a warning at the first
    call says so. State outside of Python code is not seen: time, files, random numbers of Python and NumPy,
    iterators, the state of extension modules and of Python's own modules, and writes into the `__dict__` of a
    module. `check` helps to find it.

    Args:
        exact: results have the same bits as an eager run.
        whole: False lets the function read elements of tensors. It then runs in parts. True is the default.
        check: also records the second call, and raises an error that says where both recordings differ.
        fuse: True or False decides if ops are joined into one kernel; None leaves it to TENON_FUSE.
        recompute: computes cheap values again instead of keeping them.
        memory_limit: the bytes that values of a run may occupy at once, without arguments and tensors from
            outside. Values are computed again until they fit. If they cannot, an error names the least limit.
        frozen: tensors from outside that are constants. A later write to one is an error.
        name: a name for messages; by default the name of the function.
        fullgraph: PyTorch's name of `whole`.
        dynamic, mode: accepted and ignored: one recording serves all sizes, and kernels are tuned in the background.
        backend: "tenon" or "inductor" compile; "eager" returns the function itself, as disable=True does.
        options: must be None or empty.

    Errors: InvalidArgument for another mode or backend, and for options.

    Example:
        >>> double = tenon.compile(lambda x: x * 2)
        >>> double(tenon.tensor([1.0, 2.0]))
        tensor([2., 4.])
    """
    if mode not in _MODES:
        raise _tenon.InvalidArgument(f"compile(): there is no mode {mode!r}; the modes are {', '.join(map(repr, _MODES[1:]))}.")
    if backend not in _BACKENDS:
        raise _tenon.InvalidArgument(f"compile(): there is no backend {backend!r}; the backends are {', '.join(map(repr, _BACKENDS[1:]))}.")
    if options:
        raise _tenon.InvalidArgument(f"compile(): there are no options such as {next(iter(options))!r}; see the arguments in help(tenon.compile).")
    if whole is not None and fullgraph is not None and whole is not fullgraph:
        raise _tenon.InvalidArgument("compile(): whole and fullgraph mean the same, and they differ.")
    whole = fullgraph if whole is None else whole
    if function is None:
        return functools.partial(compile, name=name, exact=exact, whole=whole, check=check, fuse=fuse, recompute=recompute,
                                 memory_limit=memory_limit, frozen=frozen, backend=backend, disable=disable)
    if disable or backend == "eager":
        return function
    whole = whole is not False
    called = name or getattr(function, "__name__", type(function).__name__)
    return Compiled(function, {"name": called, "exact": exact, "whole": whole, "check": check, "fuse": fuse, "recompute": recompute,
                               "memory_limit": memory_limit or 0, "frozen": list(frozen)})
