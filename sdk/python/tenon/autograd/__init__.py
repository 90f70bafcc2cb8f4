"""Gradients: grad and backward for several tensors, custom functions, and modes that turn the recording of ops on
and off.

    class Square(tenon.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return 2 * x * grad

    y = Square.apply(x)
"""

from __future__ import annotations

import functools
import threading
import weakref
from typing import Any, Callable, TypeVar

from tenon import _tenon
from tenon._tenon import Tensor, is_grad_enabled, is_inference_mode_enabled


# ---- modes ----

_GENERATOR = 0x20  # flag of a code object: it is a generator (inspect.CO_GENERATOR)

_Called = TypeVar("_Called", bound=Callable[..., Any])


class _Decorator:
    """A `with` block that is also a decorator of a function or a generator."""

    def _parameters(self) -> tuple[Any, ...]:
        return ()

    def __call__(self, function: _Called) -> _Called:
        make = functools.partial(type(self), *self._parameters())
        if getattr(function, "__code__", None) and function.__code__.co_flags & _GENERATOR:
            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                # The mode applies while the generator runs, not while its caller runs.
                running, sent, raised = function(*args, **kwargs), None, None
                while True:
                    try:
                        with make():
                            value = running.send(sent) if raised is None else running.throw(raised)
                    except StopIteration as end:
                        return end.value
                    sent = raised = None
                    try:
                        sent = yield value
                    except GeneratorExit:
                        running.close()
                        raise
                    except BaseException as error:
                        raised = error
            return generator  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with make():
                return function(*args, **kwargs)
        return wrapped  # type: ignore[return-value]


class _Mode(_Decorator, _tenon._Mode):
    """A `with` block or decorator that turns the recording of ops on or off."""

    _enabled, _inference = True, False

    def __init__(self) -> None:
        super().__init__(self._enabled, self._inference)


class precision(_Decorator, _tenon._Precision):
    """A `with` block or decorator that sets how exact the ops inside must be.

    Args:
        name: "stated": each device computes as exactly as it states. "relaxed": products of f32 (matmul, convolution,
            attention, recurrent cells and their gradients) may round their factors to bf16 or TF32, where the device
            can; sums, arguments and results stay f32. "portable" and "full": the tier of accuracy that every op
            demands; a device below it is passed over.

    Backward and compiled functions take the precision of the block in which they are called.

        with tenon.precision("relaxed"):
            y = x @ w
    """

    def __init__(self, name: str) -> None:
        self._name = name
        super().__init__(name)

    def _parameters(self) -> tuple[Any, ...]:
        return (self._name,)


_MATMUL_PRECISIONS = {"highest": "stated", "high": "relaxed", "medium": "relaxed"}
_matmul_precision = threading.local()


def set_float32_matmul_precision(precision: str) -> None:
    """Lets products of f32 on this thread round their factors, from now on: PyTorch's name for tenon.precision.

    Args:
        precision: "highest" does not round; "high" and "medium" allow bf16 or TF32, as tenon.precision("relaxed").

    Errors: RuntimeError for another name.
    """
    chosen = _MATMUL_PRECISIONS.get(precision)
    if chosen is None:
        raise _tenon.InvalidArgument(f"set_float32_matmul_precision: there is no precision {precision!r}; it may be {', '.join(_MATMUL_PRECISIONS)}.")
    before = getattr(_matmul_precision, "block", None)
    if before is not None:
        before.__exit__(None, None, None)
    _matmul_precision.name, _matmul_precision.block = precision, _tenon._Precision(chosen)
    _matmul_precision.block.__enter__()


def get_float32_matmul_precision() -> str:
    """Returns the name that set_float32_matmul_precision got on this thread; at first "highest"."""
    name: str = getattr(_matmul_precision, "name", "highest")
    return name


def _bare_decorator(cls: Any) -> Any:
    """Lets the class be used as a decorator without brackets: @tenon.no_grad."""
    construct = cls.__new__

    def new(cls: Any, function: Any = None) -> Any:
        made = construct(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)
    cls.__new__ = new
    return cls


@_bare_decorator
class no_grad(_Mode):
    """A `with` block or decorator in which ops are not recorded: results require no gradient, and leaves may be
    written."""

    _enabled = False


@_bare_decorator
class enable_grad(_Mode):
    """A `with` block or decorator in which ops are recorded, also inside no_grad."""


class set_grad_enabled(_Mode):
    """Turns the recording of ops on or off, from now on or until the end of the `with` block."""

    def __init__(self, mode: bool) -> None:
        self._enabled = bool(mode)
        super().__init__()
        self._begin()

    def _parameters(self) -> tuple[Any, ...]:
        return (self._enabled,)

    def __call__(self, function: _Called) -> _Called:
        self.__exit__()  # as a decorator it applies only to the function
        return super().__call__(function)


class inference_mode(_Mode):
    """Like no_grad; it is also an error to require a gradient inside."""

    def __init__(self, mode: bool = True) -> None:
        self._enabled, self._inference = not mode, bool(mode)
        super().__init__()

    def _parameters(self) -> tuple[Any, ...]:
        return (self._inference,)


# ---- backward ----

def _listed(tensors: Any) -> list[Any]:
    return [tensors] if tensors is None or isinstance(tensors, Tensor) else list(tensors)


def _weights(gradients: Any) -> list[Any]:
    if gradients is None:
        return []
    return [_tenon.tensor(float(g)) if isinstance(g, (int, float)) else g for g in _listed(gradients)]


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Adds the gradients of `tensors` to `.grad` of every leaf they depend on.

    Args:
        grad_tensors: a weight for each tensor, of its shape. May be None for tensors with one element.
        retain_graph: keeps the saved values, so that another backward is possible; None: as create_graph.
        create_graph: records the backward itself, for higher derivatives.
        inputs: only these leaves receive gradients.
    """
    outputs = _listed(tensors)
    keep = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        _tenon._backward(outputs, _weights(grad_tensors), keep, create_graph)
        return
    wanted = _listed(inputs)
    if not wanted:
        raise _tenon.InvalidArgument("backward(): inputs must not be empty.")
    gradients = _tenon._grad(outputs, wanted, _weights(grad_tensors), keep, create_graph, True)
    for leaf, gradient in zip(wanted, gradients):
        if gradient is not None:
            leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         allow_unused: bool = False) -> tuple[Any, ...]:
    """Returns the gradients of `outputs`, weighted by `grad_outputs`, with respect to each of `inputs`, as a tuple.

    retain_graph and create_graph are those of backward. allow_unused gives None for inputs that outputs do not
    depend on; otherwise they are an error.

    Example:
        >>> x = tenon.tensor([3.0], requires_grad=True)
        >>> tenon.autograd.grad(x * x, x)
        (tensor([6.]),)
    """
    outputs = _listed(outputs)
    keep = create_graph if retain_graph is None else retain_graph
    return tuple(_tenon._grad(outputs, _listed(inputs), _weights(grad_outputs), keep, create_graph, allow_unused))


def _tensor_backward(self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
    """Adds the gradient of this tensor to `.grad` of every leaf it depends on. A tensor with more than one element
    needs `gradient`, the weights of its elements. The other arguments are those of tenon.autograd.backward."""
    backward(self, gradient, retain_graph, create_graph, inputs)


Tensor.backward = _tensor_backward  # type: ignore[method-assign]


# ---- hooks ----

class RemovableHandle:
    """Removes a hook."""

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def remove(self) -> None:
        """Removes the hook; it is not called again."""
        self._handle.remove()

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


def _register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Calls hook(gradient) in each backward, when the gradient of this tensor is complete. If the hook returns a
    tensor, it replaces the gradient."""
    return RemovableHandle(_tenon._add_hook(self, hook))


def _register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Calls hook(tensor) each time after a backward has added to `.grad` of this leaf."""
    # The leaf keeps its hooks alive, so a hook that kept the leaf alive would never be freed.
    leaf = weakref.ref(self)

    def call() -> None:
        tensor = leaf()
        if tensor is not None:
            hook(tensor)
    return RemovableHandle(_tenon._add_hook_after(self, call))


class saved_tensors_hooks(_tenon._SavedHooks):
    """A `with` block that changes how ops save tensors for backward. pack(tensor) returns an object to save, and
    unpack(object) returns the tensor in backward."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        super().__init__(pack_hook, unpack_hook)


class graph:
    """PyTorch's name space torch.autograd.graph: graph.saved_tensors_hooks."""

    saved_tensors_hooks = saved_tensors_hooks


def _called_from() -> str:
    """Returns the lines of Python code, outside of this package, that called the op."""
    import traceback
    here = __file__.rsplit("/", 2)[0]
    return "".join(traceback.format_list([frame for frame in traceback.extract_stack() if not frame.filename.startswith(here)]))


class detect_anomaly(_tenon._Anomaly):
    """A `with` block in which errors and NaN in backward name the forward op and the Python lines that called it.
    Slow."""

    def __init__(self) -> None:
        super().__init__(_called_from)


_anomaly = threading.local()


class set_detect_anomaly:
    """Turns detect_anomaly on or off for this thread, from now on or until the end of the `with` block.

    Args:
        mode: True turns it on; False turns off what an earlier call turned on.
        check_nan: must be True.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        if not check_nan:
            raise _tenon.Unsupported("set_detect_anomaly: check_nan=False is not supported; NaN in backward is always found.")
        self._end()
        if mode:
            _anomaly.block = detect_anomaly()
            _anomaly.block.__enter__()

    @staticmethod
    def _end() -> None:
        block, _anomaly.block = getattr(_anomaly, "block", None), None
        if block is not None:
            block.__exit__(None, None, None)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        self._end()


Tensor.register_hook = _register_hook  # type: ignore[method-assign]
Tensor.register_post_accumulate_grad_hook = _register_post_accumulate_grad_hook  # type: ignore[method-assign]


# ---- custom functions ----

class FunctionCtx:
    """The object that forward and backward of one call share."""

    saved: tuple[Any, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    _dirty: tuple[Any, ...] = ()
    _without_gradient: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Saves tensors for backward. If one is written before backward, backward fails."""
        self.saved = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """In backward: the tensors that forward saved."""
        return self.saved

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Declares that forward wrote these arguments."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Declares that these results have no gradient."""
        self._without_gradient = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Has no effect: missing gradients are always passed as zeros."""


class _Call(FunctionCtx):
    def __init__(self, function: Any, args: tuple[Any, ...]) -> None:
        self._function: Any = function
        self._args: Any = args
        self._places = [i for i, each in enumerate(args) if isinstance(each, Tensor)]
        enabled = is_grad_enabled()
        self.needs_input_grad = tuple(isinstance(each, Tensor) and enabled and each.requires_grad for each in args)

    def run_forward(self, inputs: list[Tensor]) -> list[Tensor]:
        args, self._args = list(self._args), None
        results = self._function.forward(self, *args)
        self._single = isinstance(results, Tensor)
        listed = [results] if self._single else list(results)
        self._plain = {i: each for i, each in enumerate(listed) if not isinstance(each, Tensor)}
        tensors = [each for each in listed if isinstance(each, Tensor)]
        without = {id(each) for each in self._without_gradient}
        self._detached = {i for i, each in enumerate(tensors) if id(each) in without}
        self._without_gradient = ()
        self._count = len(self.needs_input_grad)
        return tensors

    def run_backward(self, gradients: list[Any]) -> list[Any]:
        given: list[Any] = list(gradients)
        for i in sorted(self._plain):
            given.insert(i, None)
        results = self._function.backward(self, *given)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        if len(results) > self._count and all(each is None for each in results[self._count:]):
            results = results[:self._count]
        if len(results) != self._count:
            raise _tenon.InvalidArgument(
                f"function {self._function.__name__}Backward returned an incorrect number of gradients (expected {self._count}, got {len(results)})")
        return [results[i] for i in self._places]


class Function:
    """A function with its own gradient. Subclasses define static methods `forward` and `backward`, whose first
    argument is a FunctionCtx. Call it with `apply`."""

    @staticmethod
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the result, a Tensor or a tuple."""
        raise NotImplementedError("This Function does not define forward.")

    @staticmethod
    def backward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        """Returns the gradients of the arguments from those of the results. None means no gradient."""
        raise NotImplementedError("This Function does not define backward.")

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Calls forward and records the call."""
        call = _Call(cls, args)
        results = _tenon._call_function(call, cls.__name__, [args[i] for i in call._places])
        results = [each.detach() if i in call._detached else each for i, each in enumerate(results)]
        for i in sorted(call._plain):
            results.insert(i, call._plain[i])
        return results[0] if call._single else tuple(results)


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator of `backward` whose ops are not recorded, so it cannot be differentiated again."""
    @functools.wraps(backward)
    def wrapped(*args: Any) -> Any:
        with no_grad():
            return backward(*args)
    return wrapped


# ---- recomputation ----

def _as_tuple(value: Any) -> tuple[Any, ...]:
    return (value,) if isinstance(value, Tensor) else tuple(value)


def _repeating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function whose later calls draw the random numbers of its first call."""
    generator: Any = _tenon.default_generator
    first: list[Any] = []

    def call(*args: Any, **kwargs: Any) -> Any:
        before = generator.get_state()
        if not first:
            first.append(before)
            return function(*args, **kwargs)
        generator.set_state(first[0])
        try:
            return function(*args, **kwargs)
        finally:
            generator.set_state(before)
    return call


def checkpoint(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Returns function(*args, **kwargs) without saving intermediate values for backward. Backward runs the function
    again, with the same random numbers (except in a compiled function) and the same autocast block."""
    from tenon.compiling import is_recording
    return _checkpoint(function if is_recording() else _repeating(function), args, kwargs)


def _checkpoint(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    from tenon.amp import like_now
    flat, function = [each for each in args if isinstance(each, Tensor)], like_now(function)

    def rebuilt(tensors: Any) -> Any:
        given = iter(tensors)
        return function(*(next(given) if isinstance(each, Tensor) else each for each in args), **kwargs)

    class Checkpoint(Function):
        @staticmethod
        def forward(ctx: Any, *tensors: Any, **_: Any) -> Any:
            ctx.save_for_backward(*tensors)
            return rebuilt(tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any, **_: Any) -> Any:
            tensors = [each.detach().requires_grad_(needed) for each, needed in zip(ctx.saved_tensors, ctx.needs_input_grad)]
            with enable_grad():
                results = [each for each in _as_tuple(rebuilt(tensors))]
            pairs = [(result, weight) for result, weight in zip(results, grads) if result.requires_grad]
            backward([result for result, _ in pairs], [weight for _, weight in pairs])
            return tuple(each.grad for each in tensors)

    return Checkpoint.apply(*flat)


# ---- derivatives of functions ----

from tenon.autograd import functional as functional  # noqa: E402
from tenon.autograd.functional import hessian, jacobian, vjp  # noqa: E402
from tenon.autograd.gradcheck import gradcheck, gradgradcheck  # noqa: E402

__all__ = ["Function", "FunctionCtx", "RemovableHandle", "backward", "checkpoint", "detect_anomaly", "enable_grad", "functional",
           "get_float32_matmul_precision", "grad", "gradcheck", "gradgradcheck", "graph", "hessian", "inference_mode", "is_grad_enabled",
           "is_inference_mode_enabled", "jacobian", "no_grad", "once_differentiable", "precision", "saved_tensors_hooks", "set_detect_anomaly",
           "set_float32_matmul_precision", "set_grad_enabled", "vjp"]
