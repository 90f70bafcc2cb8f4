"""Kullback-Leibler divergences of pairs of distributions."""

from __future__ import annotations

import math
from typing import Any, Callable

import tenon
from tenon import Tensor
from tenon.distributions.continuous import Cauchy, Exponential, Gamma, Gumbel, HalfNormal, Laplace, LogNormal, Normal, Uniform
from tenon.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from tenon.distributions.distribution import LOG_2PI, Distribution, Independent
from tenon.distributions.multivariate import Beta, Dirichlet, MultivariateNormal, half_log_det, squared_distance

_Formula = Callable[[Any, Any], Any]
_FORMULAS: dict[tuple[type, type], _Formula] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[_Formula], _Formula]:
    """Decorator of a function that computes kl_divergence for two classes of distributions and their subclasses."""
    if not (isinstance(type_p, type) and issubclass(type_p, Distribution)):
        raise TypeError(f"Expected type_p to be a Distribution subclass but got {type_p}")
    if not (isinstance(type_q, type) and issubclass(type_q, Distribution)):
        raise TypeError(f"Expected type_q to be a Distribution subclass but got {type_q}")

    def add(function: _Formula) -> _Formula:
        _FORMULAS[type_p, type_q] = function
        return function
    return add


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Returns the Kullback-Leibler divergence: the mean of log(p(x) / q(x)) for x drawn from p.

    Errors: NotImplementedError if there is no formula for the two classes.

    Example:
        >>> tenon.distributions.kl_divergence(tenon.distributions.Normal(1.0, 1.0), tenon.distributions.Normal(0.0, 1.0))
        tensor(0.5000)
    """
    for first in type(p).__mro__:
        for second in type(q).__mro__:
            if (first, second) in _FORMULAS:
                return _FORMULAS[first, second](p, q)  # type: ignore[no-any-return]
    raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")


def _infinite(like: Tensor, other: Tensor) -> Tensor:
    shape = tenon.broadcast_shapes(tuple(like.shape), tuple(other.shape))
    return tenon.full(shape, math.inf, dtype=like.dtype, device=like.device)


def _unless(outside: Tensor, value: Tensor) -> Tensor:
    return tenon.where(outside, math.inf, value)


# ---- one class ----

@register_kl(Normal, Normal)
def _(p: Normal, q: Normal) -> Tensor:
    ratio, distance = (p.scale / q.scale) ** 2, ((p.loc - q.loc) / q.scale) ** 2
    return 0.5 * (ratio + distance - 1 - tenon.log(ratio))


@register_kl(LogNormal, LogNormal)
def _(p: LogNormal, q: LogNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(HalfNormal, HalfNormal)
def _(p: HalfNormal, q: HalfNormal) -> Tensor:
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _(p: Laplace, q: Laplace) -> Tensor:
    ratio, distance = p.scale / q.scale, tenon.abs(p.loc - q.loc)
    return -tenon.log(ratio) + distance / q.scale + ratio * tenon.exp(-distance / p.scale) - 1


@register_kl(Cauchy, Cauchy)
def _(p: Cauchy, q: Cauchy) -> Tensor:
    return tenon.log((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2) - tenon.log(4 * p.scale * q.scale)


@register_kl(Gumbel, Gumbel)
def _(p: Gumbel, q: Gumbel) -> Tensor:
    ratio, shift = p.scale / q.scale, (q.loc - p.loc) / q.scale
    euler = 0.57721566490153286060
    return -tenon.log(ratio) - (1 + euler) + ratio * euler - shift + tenon.exp(shift + tenon.lgamma(1 + ratio))


@register_kl(Uniform, Uniform)
def _(p: Uniform, q: Uniform) -> Tensor:
    return _unless((q.low > p.low) | (q.high < p.high), tenon.log((q.high - q.low) / (p.high - p.low)))


@register_kl(Exponential, Exponential)
def _(p: Exponential, q: Exponential) -> Tensor:
    ratio = q.rate / p.rate
    return ratio - tenon.log(ratio) - 1


@register_kl(Gamma, Gamma)
def _(p: Gamma, q: Gamma) -> Tensor:
    return (q.concentration * tenon.log(p.rate / q.rate) + tenon.lgamma(q.concentration) - tenon.lgamma(p.concentration)
            + (p.concentration - q.concentration) * tenon.digamma(p.concentration) + (q.rate - p.rate) * (p.concentration / p.rate))


@register_kl(Beta, Beta)
def _(p: Beta, q: Beta) -> Tensor:
    return kl_divergence(p._dirichlet, q._dirichlet)


@register_kl(Dirichlet, Dirichlet)
def _(p: Dirichlet, q: Dirichlet) -> Tensor:
    total = tenon.sum(p.concentration, -1)
    constants = tenon.lgamma(total) - tenon.lgamma(tenon.sum(q.concentration, -1))
    ratios = tenon.sum(tenon.lgamma(q.concentration) - tenon.lgamma(p.concentration), -1)
    slopes = tenon.digamma(p.concentration) - tenon.unsqueeze(tenon.digamma(total), -1)
    return constants + ratios + tenon.sum((p.concentration - q.concentration) * slopes, -1)


@register_kl(MultivariateNormal, MultivariateNormal)
def _(p: MultivariateNormal, q: MultivariateNormal) -> Tensor:
    if p.event_shape != q.event_shape:
        raise ValueError("KL-divergence between two Multivariate Normals with different event shapes cannot be computed")
    size = p.event_shape[0]
    batch = tenon.broadcast_shapes(tuple(p._factor.shape[:-2]), tuple(q._factor.shape[:-2]))
    solved = tenon.linalg.solve_triangular(q._factor.expand((*batch, size, size)), p._factor.expand((*batch, size, size)), upper=False)
    trace = tenon.sum(solved ** 2, (-2, -1))
    return half_log_det(q._factor) - half_log_det(p._factor) + 0.5 * (trace + squared_distance(q._factor, q.loc - p.loc) - size)


@register_kl(Bernoulli, Bernoulli)
def _(p: Bernoulli, q: Bernoulli) -> Tensor:
    softplus = tenon.nn.functional.softplus
    t1 = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    t2 = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    t1 = tenon.where(p.probs == 0, 0.0, tenon.where(q.probs == 0, math.inf, t1))
    return t1 + tenon.where(p.probs == 1, 0.0, tenon.where(q.probs == 1, math.inf, t2))


@register_kl(Categorical, Categorical)
def _(p: Categorical, q: Categorical) -> Tensor:
    t = p.probs * (p.logits - q.logits)
    t = tenon.where(p.probs == 0, 0.0, tenon.where(q.probs == 0, math.inf, t))
    return tenon.sum(t, -1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _(p: OneHotCategorical, q: OneHotCategorical) -> Tensor:
    return kl_divergence(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _(p: Geometric, q: Geometric) -> Tensor:
    return -p.entropy() - tenon.log1p(-q.probs) / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _(p: Poisson, q: Poisson) -> Tensor:
    return p.rate * (tenon.log(p.rate) - tenon.log(q.rate)) - (p.rate - q.rate)


@register_kl(Independent, Independent)
def _(p: Independent, q: Independent) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return p._summed(kl_divergence(p.base_dist, q.base_dist))


# ---- two classes ----

@register_kl(Bernoulli, Poisson)
def _(p: Bernoulli, q: Poisson) -> Tensor:
    return -p.entropy() - (p.probs * tenon.log(q.rate) - q.rate)


@register_kl(Beta, Normal)
def _(p: Beta, q: Normal) -> Tensor:
    return -p.entropy() + _normal_cross_entropy(p.mean, p.variance, q)


@register_kl(Beta, Uniform)
def _(p: Beta, q: Uniform) -> Tensor:
    return _unless((q.low > 0) | (q.high < 1), -p.entropy() + tenon.log(q.high - q.low))


@register_kl(Beta, Exponential)
def _(p: Beta, q: Exponential) -> Tensor:
    return -p.entropy() - tenon.log(q.rate) + q.rate * p.mean


@register_kl(Beta, Gamma)
def _(p: Beta, q: Gamma) -> Tensor:
    mean_log = tenon.digamma(p.concentration1) - tenon.digamma(p.concentration1 + p.concentration0)
    return -p.entropy() + _gamma_cross_entropy(p.mean, mean_log, q)


def _normal_cross_entropy(mean: Tensor, variance: Tensor, q: Normal) -> Tensor:
    """The mean of -log q(x) for numbers of a mean and a variance."""
    return 0.5 * LOG_2PI + tenon.log(q.scale) + 0.5 * (variance + (mean - q.loc) ** 2) / q.scale ** 2


def _gamma_cross_entropy(mean: Tensor, mean_log: Tensor, q: Gamma) -> Tensor:
    return tenon.lgamma(q.concentration) - q.concentration * tenon.log(q.rate) - (q.concentration - 1) * mean_log + q.rate * mean


@register_kl(Exponential, Gamma)
def _(p: Exponential, q: Gamma) -> Tensor:
    return -p.entropy() + _gamma_cross_entropy(p.mean, -0.57721566490153286060 - tenon.log(p.rate), q)


@register_kl(Gamma, Exponential)
def _(p: Gamma, q: Exponential) -> Tensor:
    return -p.entropy() - tenon.log(q.rate) + q.rate * p.concentration / p.rate


@register_kl(Exponential, Normal)
@register_kl(Gamma, Normal)
@register_kl(Laplace, Normal)
@register_kl(Gumbel, Normal)
@register_kl(Uniform, Normal)
def _(p: Any, q: Normal) -> Tensor:
    return -p.entropy() + _normal_cross_entropy(p.mean, p.variance, q)


@register_kl(Normal, Laplace)
def _(p: Normal, q: Laplace) -> Tensor:
    z = (p.loc - q.loc) / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * tenon.exp(-0.5 * z ** 2) + (p.loc - q.loc) * tenon.erf(math.sqrt(0.5) * z)
    return -tenon.log(p.scale / q.scale) + distance / q.scale - 0.5 * (1 + math.log(math.pi / 2))


@register_kl(Uniform, Exponential)
def _(p: Uniform, q: Exponential) -> Tensor:
    return _unless(p.low < 0, q.rate * (p.high + p.low) / 2 - tenon.log((p.high - p.low) * q.rate))


@register_kl(Uniform, Beta)
def _(p: Uniform, q: Beta) -> Tensor:
    def mean_log(low: Tensor, high: Tensor) -> Tensor:
        return (tenon.xlogy(high, high) - tenon.xlogy(low, low)) / (high - low) - 1
    constant = tenon.lgamma(q.concentration1) + tenon.lgamma(q.concentration0) - tenon.lgamma(q.concentration1 + q.concentration0)
    value = (constant - tenon.log(p.high - p.low) - (q.concentration1 - 1) * mean_log(p.low, p.high)
             - (q.concentration0 - 1) * mean_log(1 - p.high, 1 - p.low))
    return _unless((p.high > 1) | (p.low < 0), value)


def _register_disjoint() -> None:
    """Divergences that are infinite: p has values where q has none."""
    wide: tuple[type, ...] = (Normal, Laplace, Gumbel)
    for p in wide:
        for q in (Beta, Exponential, Gamma, Uniform):
            _FORMULAS[p, q] = _apart
    for p in (Exponential, Gamma):
        for q in (Beta, Uniform):
            _FORMULAS[p, q] = _apart
    _FORMULAS[Poisson, Bernoulli] = _apart


def _apart(p: Distribution, q: Distribution) -> Tensor:
    return _infinite(p.mean, q.mean)


_register_disjoint()
