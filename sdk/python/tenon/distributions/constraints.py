"""Constraints: which values the parameters and the support of a distribution may have."""

from __future__ import annotations

from typing import Any

import tenon
from tenon import Tensor


class Constraint:
    """A set of values. check(value) tells for each value whether the set has it, one answer per `event_dim` last axes."""

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Returns a tensor of bool."""
        raise NotImplementedError

    def __repr__(self) -> str:
        name, held = type(self).__name__.lstrip("_"), {key: each for key, each in vars(self).items() if not key.startswith("_")}
        return f"{name}({', '.join(f'{key}={each}' for key, each in held.items())})"


class _Dependent(Constraint):
    """A set that depends on the parameters of a distribution."""

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


class Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # False for NaN


class GreaterThan(Constraint):
    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class GreaterThanEq(GreaterThan):
    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class LessThan(Constraint):
    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Interval(Constraint):
    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class IntegerInterval(Interval):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value == tenon.floor(value))


class IntegerGreaterThan(GreaterThan):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value == tenon.floor(value))


class OneHot(Constraint):
    is_discrete, event_dim = True, 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class Simplex(Constraint):
    """Nonnegative numbers along the last axis whose sum is 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        triangular = (tenon.tril(value) == value).flatten(-2).all(-1)
        return triangular & (tenon.diagonal(value, 0, -2, -1) > 0).all(-1)


class PositiveDefinite(Constraint):
    """Symmetric matrices with positive eigenvalues."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        symmetric = tenon.isclose(value, value.mT, atol=1e-6).flatten(-2).all(-1)
        return symmetric & (tenon.linalg.eigvalsh(value) > 0).all(-1)


class IndependentConstraint(Constraint):
    """Values of which each of several last axes fulfils a constraint."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        found = self.base_constraint.check(value)
        if found.ndim < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return found.reshape((*found.shape[:found.ndim - self.reinterpreted_batch_ndims], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


dependent = _Dependent()
boolean = Boolean()
real = Real()
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
nonnegative_integer = IntegerGreaterThan(0)
one_hot = OneHot()
simplex = Simplex()
lower_cholesky = LowerCholesky()
positive_definite = PositiveDefinite()
independent = IndependentConstraint
interval, integer_interval = Interval, IntegerInterval
greater_than, greater_than_eq, less_than = GreaterThan, GreaterThanEq, LessThan
real_vector = independent(real, 1)
