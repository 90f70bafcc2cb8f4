"""Distributions of vectors, and Beta, which is a Dirichlet distribution of two numbers."""

from __future__ import annotations

import math
from typing import Any

import tenon
from tenon import Tensor
from tenon.distributions import constraints
from tenon.distributions.continuous import standard_gamma
from tenon.distributions.distribution import LOG_2PI, Distribution, broadcast_all, derived, epsilon, tiny


class Dirichlet(Distribution):
    """The Dirichlet distribution: positive numbers along the last axis whose sum is 1.

    Example:
        >>> tenon.distributions.Dirichlet(tenon.tensor([1.0, 3.0])).mean
        tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameters = {"concentration": 1}

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / tenon.sum(self.concentration, -1, True)

    @property
    def mode(self) -> Tensor:
        lowered = tenon.clamp(self.concentration - 1, min=0)
        unbounded = tenon.all(self.concentration < 1, -1, True)  # at every corner; the first stands for all
        corner = tenon.one_hot(tenon.zeros(self._batch_shape, dtype=tenon.int64), self._event_shape[0], dtype=lowered.dtype)
        return tenon.where(unbounded, corner, lowered / tenon.sum(lowered, -1, True))

    @property
    def variance(self) -> Tensor:
        total = tenon.sum(self.concentration, -1, True)
        return self.concentration * (total - self.concentration) / (total ** 2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        parts = standard_gamma(self.concentration.expand(self._extended_shape(sample_shape)))
        return parts / tenon.sum(parts, -1, True)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        a = self.concentration
        return tenon.sum(tenon.xlogy(a - 1, value), -1) + tenon.lgamma(tenon.sum(a, -1)) - tenon.sum(tenon.lgamma(a), -1)

    def entropy(self) -> Tensor:
        a, k = self.concentration, self.concentration.shape[-1]
        total = tenon.sum(a, -1)
        return tenon.sum(tenon.lgamma(a), -1) - tenon.lgamma(total) - (k - total) * tenon.digamma(total) - tenon.sum((a - 1) * tenon.digamma(a), -1)


class Beta(Distribution):
    """The beta distribution on (0, 1), with the density x ** (concentration1 - 1) * (1 - x) ** (concentration0 - 1) up to
    a factor."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    @property
    def _dirichlet(self) -> Dirichlet:
        return Dirichlet(tenon.stack([self.concentration1, self.concentration0], -1), False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total ** 2 * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return tenon.clamp(self._dirichlet.rsample(sample_shape)[..., 0], tiny(self.concentration1.dtype), 1 - epsilon(self.concentration1.dtype) / 2)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return self._dirichlet.log_prob(tenon.stack([value, 1 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()


class MultivariateNormal(Distribution):
    """The normal distribution of vectors along the last axis.

    Args:
        loc: the mean, (..., n).
        covariance_matrix: positive definite, (..., n, n), or
        precision_matrix: its inverse, or
        scale_tril: its Cholesky factor, lower triangular with a positive diagonal.

    Example:
        >>> tenon.distributions.MultivariateNormal(tenon.zeros(2), scale_tril=2 * tenon.eye(2)).variance
        tensor([4., 4.])
    """

    arg_constraints = {"loc": constraints.real_vector, "covariance_matrix": constraints.positive_definite,
                       "precision_matrix": constraints.positive_definite, "scale_tril": constraints.lower_cholesky}
    support = constraints.real_vector
    has_rsample = True
    _parameters = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None, scale_tril: Tensor | None = None,
                 validate_args: bool | None = None) -> None:
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = {name: each for name, each in (("covariance_matrix", covariance_matrix), ("precision_matrix", precision_matrix), ("scale_tril", scale_tril))
                 if each is not None}
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        (name, matrix), = given.items()
        if matrix.ndim < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = tenon.broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        self.loc = loc.expand((*batch, -1))
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args)
        self._factor = _factor(name, matrix)

    @derived
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance."""
        return self._factor.expand(self._batch_shape + self._event_shape * 2)

    @derived
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return tenon.expand(tenon.matmul(self._factor, self._factor.mT), self._batch_shape + self._event_shape * 2)

    @derived
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return tenon.expand(tenon.cholesky_inverse(self._factor), self._batch_shape + self._event_shape * 2)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return tenon.expand(tenon.sum(self._factor ** 2, -1), self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        normal = tenon.randn((*self._extended_shape(sample_shape), 1), dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + tenon.squeeze(tenon.matmul(self._factor, normal), -1)

    def log_prob(self, value: Tensor) -> Tensor:
        self._validate_sample(value)
        return -0.5 * (self._event_shape[0] * LOG_2PI + squared_distance(self._factor, value - self.loc)) - half_log_det(self._factor)

    def entropy(self) -> Tensor:
        entropy = 0.5 * self._event_shape[0] * (1 + LOG_2PI) + half_log_det(self._factor)
        return tenon.expand(entropy, self._batch_shape)


def _factor(name: str, matrix: Tensor) -> Tensor:
    if name == "scale_tril":
        return matrix
    if name == "covariance_matrix":
        return tenon.linalg.cholesky(matrix)
    # With L the factor of the precision in reverse order, L^-T in reverse order is the factor of the covariance.
    lower = tenon.linalg.cholesky(tenon.flip(matrix, (-2, -1)))
    upper = tenon.flip(lower, (-2, -1)).mT
    return tenon.linalg.solve_triangular(upper, tenon.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device), upper=False)


def half_log_det(factor: Tensor) -> Tensor:
    """Half of the logarithm of the determinant of the covariance."""
    return tenon.sum(tenon.log(tenon.diagonal(factor, 0, -2, -1)), -1)


def squared_distance(factor: Tensor, difference: Tensor) -> Tensor:
    """The Mahalanobis distance of vectors from 0, squared."""
    batch = tenon.broadcast_shapes(tuple(factor.shape[:-2]), tuple(difference.shape[:-1]))
    size = factor.shape[-1]
    solved = tenon.linalg.solve_triangular(factor.expand((*batch, size, size)), difference.expand((*batch, size)).unsqueeze(-1), upper=False)
    return tenon.sum(solved ** 2, (-2, -1))
