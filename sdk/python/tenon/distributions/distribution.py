"""Distribution, the base class; Independent; and functions that distributions share."""

from __future__ import annotations

import math
from typing import Any, Callable

import tenon
from tenon import Tensor
from tenon.compiling import is_recording
from tenon.distributions import constraints
from tenon.distributions.constraints import Constraint

Shape = tuple[int, ...]


def broadcast_all(*values: Any) -> list[Tensor]:
    """Returns numbers and tensors as tensors of one shape. A number has the dtype of the first tensor, else f32."""
    first = next((each for each in values if isinstance(each, Tensor)), None)
    if not all(isinstance(each, (Tensor, bool, int, float)) for each in values):
        raise ValueError("Input arguments must all be instances of Number or Tensor.")
    made = {"dtype": tenon.float32} if first is None else {"dtype": first.dtype if first.is_floating_point() else tenon.float32, "device": first.device}
    return list(tenon.broadcast_tensors(*[each if isinstance(each, Tensor) else tenon.tensor(each, **made) for each in values]))


def shape_of(value: Any) -> Shape:
    return (value,) if isinstance(value, int) else tuple(value)


def epsilon(dtype: Any) -> float:
    """The distance from 1 to the next number of a dtype."""
    return float({tenon.float64: 2.0**-52, tenon.float16: 2.0**-10, tenon.bfloat16: 2.0**-7}.get(dtype, 2.0**-23))


def tiny(dtype: Any) -> float:
    """The smallest normal number of a dtype."""
    return float({tenon.float64: 2.0**-1022, tenon.float16: 2.0**-14}.get(dtype, 2.0**-126))


def clamped(probs: Tensor) -> Tensor:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    return tenon.clamp(probs, epsilon(probs.dtype), 1 - epsilon(probs.dtype))


class derived:
    """A parameter that is computed from another one if it was not given."""

    def __init__(self, function: Callable[[Any], Tensor]) -> None:
        self.function, self.__doc__ = function, function.__doc__

    def __get__(self, owner: Any, kind: Any = None) -> Tensor:
        with tenon.enable_grad():
            return self.function(owner)


def holds(answer: Tensor) -> bool:
    """True if all elements are true. True as well while a compiled function is recorded, which cannot read them."""
    return is_recording() or bool(answer.all())


class Distribution:
    """A probability distribution.

    Args:
        batch_shape: the shape of the parameters, each element of which is a distribution of its own.
        event_shape: the shape of one value.
        validate_args: checks parameters and values. None checks, unless set_default_validate_args(False) was called.
            While a compiled function is recorded, values are not checked.

    Errors: ValueError for a parameter or value outside of its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The parameters that the object may hold, with the number of last axes of each that belong to one value.
    _parameters: dict[str, int] = {}
    arg_constraints: Any = {}
    support: Any = constraints.dependent

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets if new distributions check their arguments."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = shape_of(batch_shape), shape_of(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraint is constraints.dependent or name not in self.__dict__:
                continue
            value = self.__dict__[name]
            if not holds(constraint.check(value)):
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
                                 f"constraint {constraint!r}, but found invalid values:\n{value.item() if value.ndim == 0 else value}")

    def _validate_sample(self, value: Any) -> None:
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        dims, expected = len(self._event_shape), self._batch_shape + self._event_shape
        if value.ndim < dims or (dims and tuple(value.shape[value.ndim - dims:]) != self._event_shape):
            raise ValueError(f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {self._event_shape}.")
        for given, wanted in zip(reversed(value.shape), reversed(expected)):
            if given != 1 and wanted != 1 and given != wanted:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {expected}.")
        support = self.support
        if not isinstance(support, constraints._Dependent) and not holds(support.check(value)):
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) of the "
                             f"distribution {self!r}, but found invalid values:\n{value.item() if value.ndim == 0 else value}")

    # ---- shapes ----

    @property
    def batch_shape(self) -> Shape:
        """The shape of the parameters."""
        return self._batch_shape

    @property
    def event_shape(self) -> Shape:
        """The shape of one value."""
        return self._event_shape

    def _extended_shape(self, sample_shape: Any = ()) -> Shape:
        return shape_of(sample_shape) + self._batch_shape + self._event_shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Returns the distribution with its parameters, and the distributions that it is made of, expanded to another
        batch_shape."""
        shape = shape_of(batch_shape)
        made = object.__new__(type(self)) if _instance is None else _instance
        made.__dict__.update(self.__dict__)
        for name, held in self.__dict__.items():
            if isinstance(held, Distribution):
                made.__dict__[name] = held.expand(shape)
            elif name in self._parameters:
                made.__dict__[name] = held.expand(shape + tuple(held.shape[held.ndim - self._parameters[name]:]))
        made._batch_shape = shape
        return made

    # ---- samples ----

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Returns samples of shape sample_shape + batch_shape + event_shape, without gradients."""
        with tenon.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Like sample; the samples have gradients with respect to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: its samples have no gradient. Use sample.")

    def sample_n(self, n: int) -> Tensor:
        """Returns n samples: sample((n,))."""
        return self.sample((n,))

    # ---- properties ----

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"{type(self).__name__} has no {what}.")

    @property
    def mean(self) -> Tensor:
        """The mean of each distribution."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The most likely value of each distribution."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each distribution."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each distribution."""
        return tenon.sqrt(self.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        """Returns the logarithm of the density, or of the probability, at `value`."""
        raise self._missing("log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """Returns the probability of values up to `value`."""
        raise self._missing("cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """Returns the inverse of cdf."""
        raise self._missing("icdf")

    def entropy(self) -> Tensor:
        """Returns the entropy of each distribution, in nats."""
        raise self._missing("entropy")

    def perplexity(self) -> Tensor:
        """Returns exp(entropy())."""
        return tenon.exp(self.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Returns all values along a new first axis; with expand=False the batch axes have length 1."""
        raise self._missing("enumerate_support")

    def _enumerated(self, count: int, dtype: Any, expand: bool) -> Tensor:
        values = tenon.arange(count, dtype=dtype).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def __repr__(self) -> str:
        held = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        return f"{type(self).__name__}({', '.join(f'{name}: {value.item() if value.ndim == 0 else tuple(value.shape)}' for name, value in held)})"


class Independent(Distribution):
    """A distribution whose last batch axes belong to one value: their log-probabilities are added.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: how many of its batch axes.

    Example:
        >>> each = tenon.distributions.Normal(tenon.zeros(3), 1.0)
        >>> tenon.distributions.Independent(each, 1).log_prob(tenon.zeros(3)).shape
        ()
    """

    def __init__(self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None) -> None:
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError("Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                             f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}")
        shape = base_distribution.batch_shape + base_distribution.event_shape
        split = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        super().__init__(shape[:split], shape[split:], validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @property
    def support(self) -> Constraint:
        found: Constraint = self.base_dist.support
        return constraints.independent(found, self.reinterpreted_batch_ndims) if self.reinterpreted_batch_ndims else found

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        shape = shape_of(batch_shape)
        made = object.__new__(type(self)) if _instance is None else _instance
        made.__dict__.update(self.__dict__)
        made.base_dist = self.base_dist.expand(shape + self.event_shape[:self.reinterpreted_batch_ndims])
        made._batch_shape = shape
        return made

    def _summed(self, value: Tensor) -> Tensor:
        count = self.reinterpreted_batch_ndims
        return tenon.sum(value, tuple(range(-count, 0))) if count else value

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self._summed(self.base_dist.entropy())

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise tenon.Unsupported("enumerate_support: the support of an Independent has all combinations of its elements, whose number "
                                    "grows exponentially; enumerate base_dist, whose elements are apart.")
        return self.base_dist.enumerate_support(expand)

    def __repr__(self) -> str:
        return f"Independent({self.base_dist!r}, {self.reinterpreted_batch_ndims})"


def uniform(shape: Shape, like: Tensor) -> Tensor:
    """Random numbers in (0, 1), of the dtype and device of a parameter."""
    return tenon.clamp(tenon.rand(shape, dtype=like.dtype, device=like.device), min=tiny(like.dtype))


LOG_2PI = math.log(2 * math.pi)
