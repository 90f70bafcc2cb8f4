"""Distributions of whole numbers."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.distributions import constraints
from tenon.distributions.distribution import Distribution, broadcast_all, clamped, derived, holds, tiny, uniform


def _one_of(probs: Any, logits: Any) -> bool:
    """True if `probs` is given, False if `logits` is."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return probs is not None


class _Binary(Distribution):
    """A distribution of one probability, given as such or as its log-odds."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    _parameters = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        given, = broadcast_all(probs if _one_of(probs, logits) else logits)
        self.__dict__["logits" if probs is None else "probs"] = given
        super().__init__(given.shape, validate_args=validate_args)

    @derived
    def probs(self) -> Tensor:
        """The probability."""
        return tenon.sigmoid(self.logits)

    @derived
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        probs = clamped(self.probs)
        return tenon.log(probs) - tenon.log1p(-probs)


class Bernoulli(_Binary):
    """1 with the probability `probs`, else 0.

    Args:
        probs: the probability, or
        logits: log(probs / (1 - probs)).

    Example:
        >>> tenon.distributions.Bernoulli(0.25).variance
        tensor(0.1875)
    """

    support = constraints.boolean
    has_enumerate_support = True

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = tenon.cast(self.probs >= 0.5, self.probs.dtype)
        return tenon.where(self.probs == 0.5, math.nan, mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with tenon.no_grad():
            return tenon.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -tenon.nn.functional.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return tenon.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(2, self.probs.dtype, expand)


class Geometric(_Binary):
    """The number of failures before the first success, which has the probability `probs` in each trial."""

    support = constraints.nonnegative_integer

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if "probs" in self.__dict__ and not holds(self.probs > 0):
            raise ValueError(f"Expected parameter probs of distribution {self!r} to be positive but found invalid values:\n{self.probs}")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with tenon.no_grad():
            u = uniform(self._extended_shape(sample_shape), self.probs)
            return tenon.floor(tenon.log(u) / tenon.log1p(-self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = tenon.where((probs == 1) & (value == 0), 0.0, probs)
        return value * tenon.log1p(-probs) + tenon.log(self.probs)

    def entropy(self) -> Tensor:
        return tenon.nn.functional.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Categorical(Distribution):
    """One of n numbers from 0, with probabilities along the last axis.

    Args:
        probs: nonnegative weights, which are divided by their sum, or
        logits: logarithms of such weights.

    Example:
        >>> tenon.distributions.Categorical(tenon.tensor([1.0, 3.0])).probs
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _parameters = {"probs": 1, "logits": 1}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if _one_of(probs, logits):
            if probs.ndim < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.__dict__["probs"] = probs / tenon.sum(probs, -1, True)
        else:
            if logits.ndim < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.__dict__["logits"] = logits - tenon.logsumexp(logits, -1, True)
        self._num_events = self._param.shape[-1]
        super().__init__(self._param.shape[:-1], validate_args=validate_args)

    @property
    def _param(self) -> Tensor:
        found: Tensor = self.__dict__["probs"] if "probs" in self.__dict__ else self.__dict__["logits"]
        return found

    @derived
    def probs(self) -> Tensor:
        """The probabilities."""
        return tenon.softmax(self.logits, -1)

    @derived
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return tenon.log(clamped(self.probs))

    @property
    def param_shape(self) -> tuple[int, ...]:
        """The shape of the parameter."""
        return tuple(self._param.shape)

    @property
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        return tenon.full(self._batch_shape, math.nan, dtype=self._param.dtype, device=self._param.device)

    @property
    def mode(self) -> Tensor:
        return tenon.argmax(self.probs, -1)

    @property
    def variance(self) -> Tensor:
        return self.mean

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with tenon.no_grad():
            rows = tenon.reshape(self.probs, (-1, self._num_events))
            count = math.prod(shape) // max(rows.shape[0], 1)
            if count == 0:
                return tenon.zeros(shape, dtype=tenon.int64)
            return tenon.reshape(tenon.transpose(tenon.multinomial(rows, count, True), 0, 1), shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        places = tenon.unsqueeze(tenon.cast(value, tenon.int64), -1)
        shape = tenon.broadcast_shapes(tuple(places.shape[:-1]), self._batch_shape)
        logits = tenon.expand(self.logits, (*shape, self._num_events))
        return tenon.squeeze(tenon.gather(logits, -1, tenon.expand(places, (*shape, 1))), -1)

    def entropy(self) -> Tensor:
        logits = self.logits
        return -tenon.sum(tenon.clamp(logits, min=_lowest(logits.dtype)) * self.probs, -1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(self._num_events, tenon.int64, expand)


def _lowest(dtype: Any) -> float:
    """A finite number of a dtype that is below the logarithm of any of its positive numbers."""
    return -1e4 if dtype == tenon.float16 else -1e38


class OneHotCategorical(Distribution):
    """Like Categorical; a value has 1 at the number and 0 elsewhere along its last axis."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits, validate_args)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    @property
    def probs(self) -> Tensor:
        """The probabilities."""
        found: Tensor = self._categorical.probs
        return found

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        found: Tensor = self._categorical.logits
        return found

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._hot(self._categorical.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _hot(self, places: Tensor) -> Tensor:
        return tenon.one_hot(places, self._event_shape[-1], dtype=self.probs.dtype)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        return self._hot(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._categorical.log_prob(tenon.argmax(value, -1))

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._event_shape[0]
        values = tenon.eye(count, dtype=self.probs.dtype, device=self.probs.device).reshape((count,) + (1,) * len(self._batch_shape) + (count,))
        return values.expand((count, *self._batch_shape, count)) if expand else values

    def __repr__(self) -> str:
        return "OneHot" + repr(self._categorical)


class Poisson(Distribution):
    """The number of events, `rate` on average."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    _parameters = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return tenon.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Inverts the distribution function: the least k with P(X <= k) >= u, by bisection. From a rate of 10 on k is
        within 8 of its expansion by Cornish and Fisher, and below it is less than 64, for any u in f64."""
        with tenon.no_grad():
            rate = tenon.cast(self.rate.expand(self._extended_shape(sample_shape)), tenon.float64)
            u = tenon.clamp(tenon.rand(rate.shape, dtype=tenon.float64, device=rate.device), tiny(tenon.float64), 1 - 2.0**-53)
            z = math.sqrt(2) * tenon.erfinv(2 * u - 1)
            near = tenon.floor(rate + tenon.sqrt(rate) * tenon.clamp(z, -9, 9) + (z * z - 1) / 6)
            low = tenon.where(rate < 10, -1.0, tenon.clamp(near - 9, min=-1))
            high = tenon.where(rate < 10, 63.0, near + 9)
            for _ in range(6):
                middle = tenon.floor((low + high) / 2)
                enough = tenon.igammac(middle + 1, rate) >= u
                low, high = tenon.where(enough, low, middle), tenon.where(enough, middle, high)
            return tenon.cast(tenon.where(rate > 0, high, 0.0), self.rate.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return tenon.xlogy(value, rate) - rate - tenon.lgamma(value + 1)
