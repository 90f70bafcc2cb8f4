"""Distributions of real numbers."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.distributions import constraints
from tenon.distributions.distribution import LOG_2PI, Distribution, broadcast_all, epsilon, tiny, uniform


class _LocScale(Distribution):
    """A distribution of loc + scale * x, where x has a fixed distribution."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = {"loc": 0, "scale": 0}

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    def _standard(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return (value - self.loc) / self.scale


class Normal(_LocScale):
    """The normal distribution with mean `loc` and standard deviation `scale`.

    Example:
        >>> tenon.distributions.Normal(0.0, 1.0).cdf(tenon.tensor(0.0))
        tensor(0.5000)
    """

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2

    @property
    def stddev(self) -> Tensor:
        return self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.loc + tenon.randn(shape, dtype=self.loc.dtype, device=self.loc.device) * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        return -0.5 * self._standard(value) ** 2 - tenon.log(self.scale) - 0.5 * LOG_2PI

    def cdf(self, value: Tensor) -> Tensor:
        return 0.5 * (1 + tenon.erf(self._standard(value) / math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tenon.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * LOG_2PI + tenon.log(self.scale)


class LogNormal(Distribution):
    """The distribution of exp(x), where x is normal with mean `loc` and standard deviation `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Normal(loc, scale, validate_args)
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the logarithm."""
        found: Tensor = self.base_dist.loc
        return found

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the logarithm."""
        found: Tensor = self.base_dist.scale
        return found

    @property
    def mean(self) -> Tensor:
        return tenon.exp(self.loc + self.scale ** 2 / 2)

    @property
    def mode(self) -> Tensor:
        return tenon.exp(self.loc - self.scale ** 2)

    @property
    def variance(self) -> Tensor:
        square = self.scale ** 2
        return tenon.expm1(square) * tenon.exp(2 * self.loc + square)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return tenon.exp(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        logarithm = tenon.log(value)
        return self.base_dist.log_prob(logarithm) - logarithm

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self.base_dist.cdf(tenon.log(value))

    def icdf(self, value: Tensor) -> Tensor:
        return tenon.exp(self.base_dist.icdf(value))

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


class HalfNormal(Distribution):
    """The distribution of abs(x), where x is normal with mean 0 and standard deviation `scale`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        self.base_dist = Normal(0.0, scale, False)
        self.scale = self.base_dist.scale
        super().__init__(self.base_dist.batch_shape, validate_args=validate_args)

    _parameters = {"scale": 0}

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale ** 2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return tenon.abs(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class Laplace(_LocScale):
    """The Laplace distribution: the density falls as exp(-abs(x - loc) / scale)."""

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale ** 2

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        u = tenon.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device) * 2 - 1
        u = tenon.clamp(u, min=epsilon(self.loc.dtype) / 2 - 1)
        return self.loc - self.scale * tenon.sign(u) * tenon.log1p(-tenon.abs(u))

    def log_prob(self, value: Tensor) -> Tensor:
        return -tenon.log(2 * self.scale) - tenon.abs(self._standard(value))

    def cdf(self, value: Tensor) -> Tensor:
        x = self._standard(value)
        return 0.5 - 0.5 * tenon.sign(x) * tenon.expm1(-tenon.abs(x))

    def icdf(self, value: Tensor) -> Tensor:
        term = value - 0.5
        return self.loc - self.scale * tenon.sign(term) * tenon.log1p(-2 * tenon.abs(term))

    def entropy(self) -> Tensor:
        return 1 + tenon.log(2 * self.scale)


class Cauchy(_LocScale):
    """The Cauchy distribution with median `loc`; half of the values are within `scale` of it. It has no mean."""

    @property
    def mean(self) -> Tensor:
        return tenon.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return tenon.full_like(self.loc, math.inf)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        return -math.log(math.pi) - tenon.log(self.scale) - tenon.log1p(self._standard(value) ** 2)

    def cdf(self, value: Tensor) -> Tensor:
        return tenon.atan(self._standard(value)) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return tenon.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + tenon.log(self.scale)


class Gumbel(_LocScale):
    """The Gumbel distribution: that of the maximum of many values."""

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def variance(self) -> Tensor:
        return (math.pi ** 2 / 6) * self.scale ** 2

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.icdf(tenon.clamp(uniform(self._extended_shape(sample_shape), self.loc), max=1 - epsilon(self.loc.dtype) / 2))

    def log_prob(self, value: Tensor) -> Tensor:
        x = self._standard(value)
        return -x - tenon.exp(-x) - tenon.log(self.scale)

    def cdf(self, value: Tensor) -> Tensor:
        return tenon.exp(-tenon.exp(-self._standard(value)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * tenon.log(-tenon.log(value))

    def entropy(self) -> Tensor:
        return tenon.log(self.scale) + (1 + _EULER)


_EULER = 0.57721566490153286060


class Uniform(Distribution):
    """The uniform distribution on [low, high).

    Example:
        >>> tenon.distributions.Uniform(0.0, 4.0).mean
        tensor(2.)
    """

    has_rsample = True
    _parameters = {"low": 0, "high": 0}

    def __init__(self, low: Any, high: Any, validate_args: bool | None = None) -> None:
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> Any:
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @property
    def support(self) -> Any:
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return tenon.full_like(self.high, math.nan)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low) ** 2 / 12

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self.low + tenon.rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        inside = (self.low <= value) & (self.high > value)
        return tenon.log(tenon.cast(inside, self.low.dtype)) - tenon.log(self.high - self.low)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.clamp((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return tenon.log(self.high - self.low)


class Exponential(Distribution):
    """The exponential distribution: times between events, `rate` per unit on average."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = {"rate": 0}

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self.rate, = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return tenon.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return self.rate ** -2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return -tenon.log1p(-tenon.rand(self._extended_shape(sample_shape), dtype=self.rate.dtype, device=self.rate.device)) / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.log(self.rate) - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return 1 - tenon.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -tenon.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - tenon.log(self.rate)


def standard_gamma(concentration: Tensor) -> Tensor:
    """Samples of the gamma distribution of rate 1, with gradients (Marsaglia and Tsang 2000; Figurnov et al. 2018).

    A proposal is accepted with a probability above 0.95, and the last of twelve in any case."""
    with tenon.no_grad():
        wide = tenon.cast(concentration, tenon.float64)
        small = wide < 1
        d = tenon.where(small, wide + 1, wide) - 1 / 3
        scale = 1 / (3 * tenon.sqrt(d))
        made: dict[str, Any] = {"dtype": tenon.float64, "device": concentration.device}
        found, done = d, tenon.zeros(d.shape, dtype=tenon.bool, device=concentration.device)
        for _ in range(12):
            x = tenon.randn(d.shape, **made)
            v = (1 + scale * x) ** 3
            positive = v > 0
            limit = 0.5 * x * x + d - d * v + d * tenon.log(tenon.where(positive, v, 1.0))
            accepted = positive & (tenon.log(uniform(tuple(d.shape), d)) < limit) & ~done
            found = tenon.where(accepted, d * v, found)
            done = done | accepted
        found = tenon.where(small, found * tenon.exp(tenon.log(uniform(tuple(d.shape), d)) / wide), found)
        sample = tenon.clamp(tenon.cast(found, concentration.dtype), min=tiny(concentration.dtype))
    if not (tenon.is_grad_enabled() and concentration.requires_grad):
        return sample
    with tenon.no_grad():
        slope = tenon.cast(_gamma_slope(wide, tenon.cast(sample, tenon.float64)), concentration.dtype)
    return sample + (concentration - concentration.detach()) * slope


def _gamma_slope(a: Tensor, x: Tensor) -> Tensor:
    """The derivative of a sample with respect to the concentration a: -(dF / da) / density. The difference is that of the
    smaller tail, which is exact relative to its size."""
    step = 1e-4 * a
    lower = tenon.igamma(a + step, x) - tenon.igamma(a - step, x)
    upper = tenon.igammac(a - step, x) - tenon.igammac(a + step, x)
    density = tenon.exp((a - 1) * tenon.log(x) - x - tenon.lgamma(a))
    slope = -tenon.where(x < a, lower, upper) / (2 * step * density)
    return tenon.where(tenon.isfinite(slope), slope, 0.0)


class Gamma(Distribution):
    """The gamma distribution with the density x ** (concentration - 1) * exp(-rate * x) * rate ** concentration /
    Gamma(concentration)."""

    arg_constraints: Any = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _parameters = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return tenon.clamp((self.concentration - 1) / self.rate, min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate ** 2

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        value = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape))) / self.rate
        return tenon.clamp(value, min=tiny(value.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a, b = self.concentration, self.rate
        return tenon.xlogy(a, b) + tenon.xlogy(a - 1, value) - b * value - tenon.lgamma(a)

    def cdf(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return tenon.igamma(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - tenon.log(self.rate) + tenon.lgamma(a) + (1 - a) * tenon.digamma(a)


class Chi2(Gamma):
    """The distribution of the sum of the squares of `df` normal numbers."""

    arg_constraints = {"df": constraints.positive}
    _parameters = {"df": 0, "concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        self.df, = broadcast_all(df)
        super().__init__(0.5 * self.df, 0.5, validate_args)


class StudentT(Distribution):
    """Student's t-distribution with `df` degrees of freedom, moved by `loc` and scaled by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return tenon.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale ** 2 * self.df / tenon.where(self.df > 2, self.df - 2, 1.0)
        return tenon.where(self.df > 2, finite, tenon.where(self.df > 1, math.inf, tenon.full_like(self.df, math.nan)))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        square = 2 * standard_gamma((self.df / 2).expand(shape))
        return self.loc + self.scale * tenon.randn(shape, dtype=self.df.dtype, device=self.df.device) * tenon.rsqrt(square / self.df)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        y, df = (value - self.loc) / self.scale, self.df
        z = tenon.log(self.scale) + 0.5 * tenon.log(df) + 0.5 * math.log(math.pi) + tenon.lgamma(0.5 * df) - tenon.lgamma(0.5 * (df + 1))
        return -0.5 * (df + 1) * tenon.log1p(y ** 2 / df) - z

    def entropy(self) -> Tensor:
        df = self.df
        beta = tenon.lgamma(0.5 * df) + math.lgamma(0.5) - tenon.lgamma(0.5 * (df + 1))
        return tenon.log(self.scale) + 0.5 * (df + 1) * (tenon.digamma(0.5 * (df + 1)) - tenon.digamma(0.5 * df)) + 0.5 * tenon.log(df) + beta
