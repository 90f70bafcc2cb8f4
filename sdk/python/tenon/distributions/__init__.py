"""Probability distributions, with the names, arguments and results of torch.distributions.

    policy = tenon.distributions.Categorical(logits=net(state))
    action = policy.sample()
    loss = -policy.log_prob(action) * reward
"""

from tenon.distributions import constraints as constraints
from tenon.distributions.continuous import (Cauchy, Chi2, Exponential, Gamma, Gumbel, HalfNormal, Laplace, LogNormal, Normal, StudentT,
                                            Uniform)
from tenon.distributions.discrete import Bernoulli, Categorical, Geometric, OneHotCategorical, Poisson
from tenon.distributions.distribution import Distribution, Independent
from tenon.distributions.kl import kl_divergence, register_kl
from tenon.distributions.multivariate import Beta, Dirichlet, MultivariateNormal

__all__ = ["Bernoulli", "Beta", "Categorical", "Cauchy", "Chi2", "Dirichlet", "Distribution", "Exponential", "Gamma", "Geometric", "Gumbel", "HalfNormal",
           "Independent", "Laplace", "LogNormal", "MultivariateNormal", "Normal", "OneHotCategorical", "Poisson", "StudentT", "Uniform", "constraints",
           "kl_divergence", "register_kl"]
