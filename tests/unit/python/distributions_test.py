"""tenon.distributions against torch.distributions, and its samples against SciPy's distribution functions.

usage: distributions_test.py OP_RUNNER (not used)"""

import importlib.util
import math
import pathlib
import sys
import unittest

import numpy as np
import tenon
from tenon import distributions

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

if importlib.util.find_spec("torch"):
    import torch
    import torch.distributions
if importlib.util.find_spec("scipy"):
    import scipy.stats

HAS_TORCH = importlib.util.find_spec("torch") is not None
WITH_TORCH = unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
WITH_SCIPY = unittest.skipUnless(importlib.util.find_spec("scipy"), "SciPy is not installed")

# Distributions as text, which both packages evaluate with D, the module of distributions, and t, a function that makes f64
# tensors; values at which to compare log_prob and cdf.
REAL, POSITIVE, UNIT = "t([[-1.5], [0.2], [3.0]])", "t([[0.01], [0.7], [3.0]])", "t([[0.01], [0.5], [0.93]])"
DISTRIBUTIONS = {
    "D.Normal(t([0.5, -1.0]), t([1.0, 2.5]))": REAL,
    "D.Normal(0.0, t([1.0, 2.5]))": REAL,
    "D.LogNormal(t([0.5, -1.0]), t([1.0, 0.5]))": POSITIVE,
    "D.HalfNormal(t([0.5, 3.0]))": POSITIVE,
    "D.Laplace(t([0.5, -1.0]), t([1.0, 2.5]))": REAL,
    "D.Cauchy(t([0.5, -1.0]), t([1.0, 2.5]))": REAL,
    "D.Gumbel(t([0.5, -1.0]), t([1.0, 2.5]))": REAL,
    "D.Uniform(t([-2.0, -5.0]), t([3.5, 4.0]))": REAL,
    "D.Exponential(t([0.5, 3.0]))": POSITIVE,
    "D.Gamma(t([0.5, 3.0]), t([1.5, 0.5]))": POSITIVE,
    "D.Chi2(t([0.5, 3.0]))": POSITIVE,
    "D.Beta(t([0.5, 3.0]), t([1.5, 2.0]))": UNIT,
    "D.Beta(t([0.5, 0.2]), t([0.5, 0.7]))": UNIT,
    "D.StudentT(t([0.5, 1.5, 7.0]))": REAL,
    "D.StudentT(t([3.0, 2.0]), t([0.5, -1.0]), 2.0)": REAL,
    "D.Bernoulli(t([0.3, 0.5, 0.9]))": "t([[0.0], [1.0]])",
    "D.Bernoulli(logits=t([-3.0, 0.1]))": "t([[0.0], [1.0]])",
    "D.Geometric(t([0.3, 0.9]))": "t([[0.0], [5.0]])",
    "D.Geometric(logits=t([-3.0, 0.1]))": "t([[0.0], [5.0]])",
    "D.Poisson(t([0.3, 4.0]))": "t([[0.0], [7.0]])",
    "D.Categorical(t([[0.2, 0.3, 0.5], [2.0, 1.0, 0.5]]))": "t([[0.0], [2.0]])",
    "D.Categorical(logits=t([0.2, 0.3, -0.5]))": "t([0.0, 2.0, 1.0])",
    "D.OneHotCategorical(t([[0.2, 0.3, 0.5], [2.0, 1.0, 0.5]]))": "t([[0.0, 1.0, 0.0]])",
    "D.Dirichlet(t([[0.2, 0.3, 0.5], [2.0, 1.5, 4.0]]))": "t([[0.1, 0.2, 0.7]])",
    "D.MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.3], [0.3, 1.0]]))": "t([[0.0, 1.0], [3.0, -1.0]])",
    "D.MultivariateNormal(t([[0.5, -1.0], [0.0, 2.0]]), scale_tril=t([[2.0, 0.0], [0.3, 1.0]]))": "t([[0.0, 1.0], [3.0, -1.0]])",
    "D.MultivariateNormal(t([0.5, -1.0]), precision_matrix=t([[2.0, 0.3], [0.3, 1.0]]))": "t([0.0, 1.0])",
    "D.Independent(D.Normal(t([[0.5, -1.0], [0.0, 1.0]]), t([1.0, 2.5])), 1)": "t([[0.2, 1.0]])",
    "D.Independent(D.Bernoulli(t([[0.3, 0.5], [0.9, 0.1]])), 2)": "t([[0.0, 1.0], [1.0, 1.0]])",
}
PROPERTIES = "mean mode variance stddev batch_shape event_shape has_rsample has_enumerate_support".split()

# Pairs of which PyTorch has the divergence.
PAIRS = """
Normal(t([0.5, -1.0]), t([1.0, 2.5])), Normal(t([0.0, -1.0]), t([1.0, 0.5]))
LogNormal(0.5, t([1.0, 2.5])), LogNormal(0.0, t([1.0, 0.5]))
HalfNormal(t([1.0, 2.5])), HalfNormal(t([1.0, 0.5]))
Laplace(0.5, t([1.0, 2.5])), Laplace(0.0, t([1.0, 0.5]))
Cauchy(0.5, t([1.0, 2.5])), Cauchy(0.0, t([1.0, 0.5]))
Gumbel(0.5, t([1.0, 2.5])), Gumbel(0.0, t([1.0, 0.5]))
Uniform(t([0.0, 1.0]), 3.0), Uniform(0.5, t([4.0, 5.0]))
Exponential(t([1.0, 2.5])), Exponential(t([1.0, 0.5]))
Gamma(t([1.0, 2.5]), 2.0), Gamma(t([1.0, 0.5]), 0.7)
Chi2(t([1.0, 2.5])), Gamma(t([1.0, 0.5]), 0.7)
Beta(t([1.0, 2.5]), 2.0), Beta(t([1.0, 0.5]), 0.7)
Dirichlet(t([1.0, 2.5, 3.0])), Dirichlet(t([0.2, 2.0, 3.0]))
MultivariateNormal(t([0.5, -1.0]), t([[2.0, 0.3], [0.3, 1.0]])), MultivariateNormal(t([0.0, 1.0]), t([[1.0, -0.3], [-0.3, 2.0]]))
Bernoulli(t([0.3, 0.0, 1.0])), Bernoulli(t([0.5, 0.5, 0.0]))
Categorical(t([0.3, 0.0, 0.7])), Categorical(t([0.5, 0.4, 0.1]))
Categorical(t([0.3, 0.1, 0.6])), Categorical(t([0.5, 0.5, 0.0]))
OneHotCategorical(t([0.3, 0.0, 0.7])), OneHotCategorical(t([0.5, 0.4, 0.1]))
Geometric(t([0.3, 0.9])), Geometric(t([0.5, 0.5]))
Poisson(t([0.3, 4.0])), Poisson(t([0.5, 2.5]))
Independent(D.Normal(t([0.5, -1.0]), 1.0), 1), Independent(D.Normal(t([0.0, -1.0]), 2.0), 1)
Bernoulli(t([0.3, 0.5])), Poisson(t([0.5, 2.5]))
Beta(t([0.3, 4.0]), 2.0), Normal(t([0.5, 2.5]), 2.0)
Beta(t([0.3, 4.0]), 2.0), Uniform(t([0.5, -1.0]), 2.0)
Beta(t([0.3, 4.0]), 2.0), Exponential(t([0.5, 1.0]))
Beta(t([0.3, 4.0]), 2.0), Gamma(t([0.5, 1.0]), 3.0)
Exponential(t([0.3, 4.0])), Gamma(t([0.5, 1.0]), 3.0)
Gamma(t([0.3, 4.0]), 2.0), Exponential(t([0.5, 1.0]))
Exponential(t([0.3, 4.0])), Normal(t([0.5, 1.0]), 3.0)
Gamma(t([0.3, 4.0]), 2.0), Normal(t([0.5, 1.0]), 3.0)
Laplace(t([0.3, 4.0]), 2.0), Normal(t([0.5, 1.0]), 3.0)
Gumbel(t([0.3, 4.0]), 2.0), Normal(t([0.5, 1.0]), 3.0)
Uniform(t([0.3, -4.0]), 2.0), Normal(t([0.5, 1.0]), 3.0)
Normal(t([0.3, 4.0]), 2.0), Laplace(t([0.5, 1.0]), 3.0)
Uniform(t([0.3, -4.0]), 2.0), Exponential(t([0.5, 1.0]))
Uniform(t([0.3, -4.0]), 0.8), Beta(t([0.5, 1.0]), 2.0)
Normal(t([0.3, 4.0]), 2.0), Gamma(t([0.5, 1.0]), 3.0)
Laplace(t([0.3, 4.0]), 2.0), Uniform(t([0.5, 1.0]), 3.0)
Gamma(t([0.3, 4.0]), 2.0), Uniform(t([0.5, 1.0]), 3.0)
Poisson(t([0.3, 4.0])), Bernoulli(t([0.5, 1.0]))
"""

REFUSED = """
D.Normal(0.0, -1.0)
D.Normal(math.nan, 1.0)
D.Normal('a', 1.0)
D.Normal(t([0.0, 0.0]), t([1.0, 1.0, 1.0]))
D.Normal(0.0, 1.0).log_prob(3)
D.Normal(0.0, 1.0).log_prob(t([math.nan]))
D.Normal(t([0.0, 0.0, 0.0]), 1.0).log_prob(t([1.0, 1.0]))
D.Normal(t([0.0, 0.0, 0.0]), 1.0).expand((2,))
D.Gamma(-1.0, 1.0)
D.Gamma(1.0, 1.0).log_prob(t([-1.0]))
D.Gamma(1.0, 1.0).icdf(t(0.5))
D.Chi2(-1.0)
D.Beta(1.0, 0.0)
D.Beta(1.0, 1.0).log_prob(t(1.5))
D.Beta(1.0, 1.0).cdf(t(0.5))
D.LogNormal(0.0, 1.0).log_prob(t(-1.0))
D.Bernoulli()
D.Bernoulli(0.5, 0.5)
D.Bernoulli(1.5)
D.Bernoulli(0.5).log_prob(t([0.5]))
D.Bernoulli(0.5).rsample()
D.Geometric(0.0)
D.Categorical(t(1.0))
D.Categorical(t([1.0, -1.0]))
D.Categorical(t([1.0, 1.0])).log_prob(t(2.0))
D.OneHotCategorical(t([1.0, 1.0])).log_prob(t([1.0, 1.0]))
D.Poisson(-1.0)
D.Poisson(1.0).log_prob(t(0.5))
D.Poisson(1.0).entropy()
D.Poisson(1.0).rsample()
D.Uniform(1.0, 0.0)
D.Uniform(0.0, 1.0).log_prob(t(2.0))
D.MultivariateNormal(t([0.0, 0.0]))
D.MultivariateNormal(t(0.0), t([[1.0]]))
D.MultivariateNormal(t([0.0, 0.0]), t([1.0, 1.0]))
D.MultivariateNormal(t([0.0, 0.0]), t([[0.0, 0.0], [0.0, 0.0]]))
D.MultivariateNormal(t([0.0, 0.0]), t([[1.0, 2.0], [0.0, 1.0]]))
D.MultivariateNormal(t([0.0, 0.0]), scale_tril=t([[1.0, 2.0], [0.0, 1.0]]))
D.Dirichlet(t(1.0))
D.Dirichlet(t([1.0, 1.0, 1.0])).log_prob(t([1.0, 1.0, 1.0]))
D.Dirichlet(t([1.0, 1.0, 1.0])).log_prob(t([0.5, 0.5]))
D.Independent(D.Normal(t([0.0]), 1.0), 2)
D.kl_divergence(D.Normal(0.0, 1.0), D.Poisson(1.0))
"""


def names(package):
    return {"D": package.distributions, "math": math, "t": lambda value: package.tensor(value, dtype=package.float64)}


def numbers(value):
    return value.detach().numpy() if hasattr(value, "detach") else tuple(value) if isinstance(value, (tuple, list)) else value


@WITH_TORCH
class AgainstPyTorch(unittest.TestCase):
    def compare(self, ours, wanted):
        ours, wanted = numbers(ours), numbers(wanted)
        if not isinstance(wanted, np.ndarray):
            self.assertEqual(ours, wanted)
            return
        self.assertEqual((ours.dtype, ours.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-9)

    def both(self, call, *args):
        """Compares the results, or the kinds of the errors."""
        results = []
        for package, arguments in zip((torch, tenon), zip(*args)):
            try:
                results.append(call(*arguments))
            except Exception as error:
                results.append(error)
        if isinstance(results[0], Exception):
            self.assertIsInstance(results[1], type(results[0]), f"{results}")
        else:
            if isinstance(results[1], Exception):
                raise results[1]
            self.compare(results[1], results[0])

    def test_values(self):
        for text, values in DISTRIBUTIONS.items():
            theirs, ours = (eval(text, names(package)) for package in (torch, tenon))
            points = [eval(values, names(package)) for package in (torch, tenon)]
            for name in PROPERTIES:
                with self.subTest(f"{text}.{name}"):
                    self.both(lambda d: getattr(d, name), (theirs, ours))
            for name in ("log_prob", "cdf"):
                with self.subTest(f"{text}.{name}({values})"):
                    if name == "cdf" and ("Gamma" in text or "Chi2" in text) and not hasattr(torch, "func"):
                        continue  # PyTorch 1 has none
                    self.both(lambda d, x: getattr(d, name)(x), (theirs, ours), points)
            with self.subTest(f"{text}.icdf"):
                if "Independent" not in text and "Half" not in text:
                    self.both(lambda d, x: d.icdf(x), (theirs, ours), [eval(UNIT, names(package)) for package in (torch, tenon)])
            for name in ("entropy", "perplexity", "enumerate_support"):
                with self.subTest(f"{text}.{name}"):
                    self.both(lambda d: getattr(d, name)(), (theirs, ours))

    def test_expand(self):
        for text, values in DISTRIBUTIONS.items():
            with self.subTest(text):
                theirs, ours = (eval(text, names(package)) for package in (torch, tenon))
                theirs, ours = (each.expand((4, *each.batch_shape)) for each in (theirs, ours))
                self.assertEqual((ours.batch_shape, ours.event_shape), (tuple(theirs.batch_shape), tuple(theirs.event_shape)))
                x = [eval(values, names(package)) for package in (torch, tenon)]
                self.both(lambda d, x: d.log_prob(x[None] if not d.event_shape else x[:, None]), (theirs, ours), x)
                self.both(lambda d: d.mean, (theirs, ours))
                self.assertEqual(ours.sample((2,)).shape, tuple(theirs.sample((2,)).shape))

    def test_gradients_of_log_prob_and_entropy(self):
        for text, values in DISTRIBUTIONS.items():
            with self.subTest(text):
                found = []
                for package in (torch, tenon):
                    given = []

                    def t(value):
                        given.append(package.tensor(value, dtype=package.float64, requires_grad=True))
                        return given[-1]
                    made = eval(text, {**names(package), "t": t})
                    total = made.log_prob(eval(values, names(package))).sum()
                    if "Poisson" not in text:
                        total = total + made.entropy().sum()
                    found.append(package.autograd.grad(total, given, allow_unused=True))
                for mine, other in zip(found[1], found[0]):
                    if other is not None:
                        self.compare(mine, other)

    def test_divergences(self):
        for line in PAIRS.strip().splitlines():
            with self.subTest(line):
                ours, wanted = (eval(f"kl_divergence({line})", {**vars(package.distributions), **names(package)}) for package in (tenon, torch))
                self.compare(ours, wanted)

    def test_both_refuse(self):
        for text in REFUSED.strip().splitlines():
            with self.subTest(text):
                kinds = []
                for package in (torch, tenon):
                    with self.assertRaises(Exception) as caught:
                        eval(text, names(package))
                    kinds.append(caught.exception)
                self.assertIsInstance(kinds[1], type(kinds[0]), f"{kinds}")

    def test_errors_name_the_argument(self):
        for text, sentence in (("D.Normal(0.0, -1.0)", r"parameter scale .*Normal\(loc: 0.0, scale: -1.0\).*GreaterThan\(lower_bound=0.0\)"),
                               ("D.Chi2(-1.0)", "parameter df"), ("D.Normal(0.0, 1.0).log_prob(t([math.nan]))", r"value argument .*support \(Real\(\)\)"),
                               ("D.Categorical(t([1.0, 1.0])).log_prob(t(2.0))", r"IntegerInterval\(lower_bound=0, upper_bound=1\)")):
            for package in (torch, tenon):
                with self.assertRaisesRegex(ValueError, sentence):
                    eval(text, names(package))

    def test_rsample_has_the_gradients_of_the_mean(self):
        """The gradient of the mean of many samples is near that of the mean, for all parameters."""
        tenon.manual_seed(7)
        for text in DISTRIBUTIONS:
            given = []

            def t(value):
                given.append(tenon.tensor(value, dtype=tenon.f64, requires_grad=True))
                return given[-1]
            made = eval(text, {**names(tenon), "t": t})
            if not made.has_rsample or "Cauchy" in text or "StudentT" in text:
                continue
            with self.subTest(text):
                samples = made.rsample((20000,))
                weights = tenon.arange(1.0, made.mean.numel() + 1, dtype=tenon.f64).reshape(made.mean.shape)
                ours = tenon.autograd.grad((samples.mean(0) * weights).sum(), given, allow_unused=True)
                wanted = tenon.autograd.grad((made.mean * weights).sum() + given[0].sum() * 0, given, allow_unused=True)
                for mine, other in zip(ours, wanted):
                    np.testing.assert_allclose(numbers(mine), 0 if other is None else numbers(other), rtol=0.1, atol=0.1)


@WITH_SCIPY
class Samples(unittest.TestCase):
    """Samples of a seed against SciPy's distribution functions, by the test of Kolmogorov and Smirnov."""

    def setUp(self):
        tenon.manual_seed(5)

    def test_continuous(self):
        stats = scipy.stats
        for text, wanted in {"D.Normal(1.0, 2.0)": stats.norm(1, 2), "D.LogNormal(0.5, 0.7)": stats.lognorm(0.7, scale=math.exp(0.5)),
                             "D.HalfNormal(2.0)": stats.halfnorm(scale=2), "D.Laplace(1.0, 2.0)": stats.laplace(1, 2), "D.Cauchy(1.0, 2.0)": stats.cauchy(1, 2),
                             "D.Gumbel(1.0, 2.0)": stats.gumbel_r(1, 2), "D.Uniform(-1.0, 2.0)": stats.uniform(-1, 3), "D.Exponential(2.0)": stats.expon(scale=0.5),
                             "D.Gamma(0.3, 2.0)": stats.gamma(0.3, scale=0.5), "D.Gamma(1.0, 2.0)": stats.gamma(1, scale=0.5),
                             "D.Gamma(50.0, 2.0)": stats.gamma(50, scale=0.5), "D.Chi2(3.0)": stats.chi2(3), "D.Beta(0.4, 3.0)": stats.beta(0.4, 3),
                             "D.StudentT(3.0, 1.0, 2.0)": stats.t(3, 1, 2)}.items():
            with self.subTest(text):
                samples = eval(text, names(tenon)).sample((20000,))
                self.assertGreater(stats.kstest(numbers(samples).astype("f8"), wanted.cdf).pvalue, 1e-4)

    def test_discrete(self):
        stats = scipy.stats
        for text, wanted in {"D.Bernoulli(t(0.3))": stats.bernoulli(0.3), "D.Geometric(t(0.2))": stats.geom(0.2, -1), "D.Poisson(t(0.5))": stats.poisson(0.5),
                             "D.Poisson(t(9.5))": stats.poisson(9.5), "D.Poisson(t(12.0))": stats.poisson(12), "D.Poisson(t(2000.0))": stats.poisson(2000)}.items():
            with self.subTest(text):
                samples = numbers(eval(text, names(tenon)).sample((20000,)))
                low, high = int(samples.min()), int(samples.max())
                edges = np.unique(wanted.ppf(np.linspace(0, 1, 12)[1:-1]))
                counts = np.histogram(samples, [-np.inf, *(edges + 0.5), np.inf])[0]
                expected = np.diff([0, *wanted.cdf(edges), 1]) * 20000
                kept = expected > 5
                self.assertGreater(stats.chi2.sf((((counts - expected) ** 2 / np.maximum(expected, 1))[kept]).sum(), kept.sum()), 1e-4, (low, high))
        self.assertEqual(float(distributions.Poisson(0.0).sample()), 0)

    def test_vectors(self):
        d = distributions.MultivariateNormal(tenon.tensor([1.0, -1.0]), tenon.tensor([[2.0, 0.5], [0.5, 1.0]]))
        samples = numbers(d.sample((20000,)))
        np.testing.assert_allclose(np.cov(samples.T), [[2, 0.5], [0.5, 1]], atol=0.06)
        np.testing.assert_allclose(samples.mean(0), [1, -1], atol=0.05)
        a = np.array([0.5, 2.0, 4.0])
        samples = numbers(distributions.Dirichlet(tenon.tensor(a)).sample((20000,)))
        np.testing.assert_allclose(samples.mean(0), a / a.sum(), atol=0.01)
        mean = a / a.sum()
        np.testing.assert_allclose(np.cov(samples.T), (np.diag(mean) - np.outer(mean, mean)) / (a.sum() + 1), atol=0.003)
        probs = tenon.tensor([[0.1, 0.2, 0.7], [0.5, 0.5, 0.0]])
        samples = numbers(distributions.Categorical(probs).sample((20000,)))
        for i in range(2):
            np.testing.assert_allclose(np.bincount(samples[:, i], minlength=3) / 20000, numbers(probs)[i], atol=0.015)
        np.testing.assert_allclose(numbers(distributions.OneHotCategorical(probs).sample((20000,)).mean(0)), numbers(probs), atol=0.015)

    def test_slopes_of_gamma_samples(self):
        """The implicit gradient equals that of the inverse distribution function at a fixed probability."""
        from tenon.distributions.continuous import _gamma_slope
        a = np.array([0.05, 0.3, 0.9, 1.0, 2.5, 30.0, 1000.0])
        for u in (1e-6, 0.01, 0.3, 0.9, 1 - 1e-6):
            x = scipy.stats.gamma.ppf(u, a)
            step = 1e-4 * a
            wanted = (scipy.stats.gamma.ppf(u, a + step) - scipy.stats.gamma.ppf(u, a - step)) / (2 * step)
            np.testing.assert_allclose(numbers(_gamma_slope(tenon.tensor(a), tenon.tensor(x)))[x > 1e-30], wanted[x > 1e-30], rtol=1e-4)

    def test_seeds_repeat(self):
        for text in DISTRIBUTIONS:
            made = eval(text, names(tenon))
            tenon.manual_seed(3)
            first = made.sample((3,))
            tenon.manual_seed(3)
            self.assertTrue(tenon.equal(first, made.sample((3,))), text)
            self.assertFalse(first.requires_grad)


class Other(unittest.TestCase):
    def test_text(self):
        self.assertEqual(repr(distributions.Normal(0.0, tenon.ones(3))), "Normal(loc: (3,), scale: (3,))")
        self.assertEqual(repr(distributions.Independent(distributions.Poisson(tenon.ones(3)), 1)), "Independent(Poisson(rate: (3,)), 1)")
        self.assertEqual(repr(distributions.Bernoulli(logits=0.5)), "Bernoulli(logits: 0.5)")

    def test_compiled_functions(self):
        @tenon.compile
        def function(loc, x):
            made = distributions.Normal(loc, 2.0)
            return made.log_prob(x).sum() + distributions.kl_divergence(made, distributions.Normal(0.0, 1.0)).sum(), made.rsample((3,)).shape
        for i in range(4):
            loc, x = tenon.randn(4), tenon.randn(4)
            plain = distributions.Normal(loc, 2.0)
            wanted = plain.log_prob(x).sum() + distributions.kl_divergence(plain, distributions.Normal(0.0, 1.0)).sum()
            self.assertAlmostEqual(float(function(loc, x)[0]), float(wanted), places=4)

        @tenon.compile
        def draw(rate):
            return distributions.Gamma(rate, 1.0).rsample(), distributions.Poisson(rate).sample(), distributions.Categorical(logits=rate).sample()
        results = [draw(tenon.tensor([1.0, 2.0, 3.0])) for _ in range(4)]
        self.assertFalse(tenon.equal(results[2][0], results[3][0]))

    def test_validation_can_be_turned_off(self):
        distributions.Normal(0.0, -1.0, validate_args=False)
        distributions.Distribution.set_default_validate_args(False)
        try:
            distributions.Normal(0.0, -1.0)
        finally:
            distributions.Distribution.set_default_validate_args(True)

    def test_registered_divergences(self):
        class Mine(distributions.Normal):
            pass

        @distributions.register_kl(Mine, distributions.Normal)
        def divergence(p, q):
            return tenon.tensor(7.0)
        self.assertEqual(float(distributions.kl_divergence(Mine(0.0, 1.0), distributions.Normal(0.0, 1.0))), 7)
        self.assertEqual(float(distributions.kl_divergence(Mine(0.0, 1.0), Mine(0.0, 1.0))), 7)
        with self.assertRaises(TypeError):
            distributions.register_kl(int, distributions.Normal)

    def test_f32_samples_stay_inside_the_support(self):
        tenon.manual_seed(1)
        for made in (distributions.Gamma(tenon.full((5000,), 1e-3), 1.0), distributions.Beta(tenon.full((5000,), 1e-3), 1e-3),
                     distributions.Exponential(tenon.ones(5000)), distributions.Laplace(tenon.zeros(5000), 1.0)):
            samples = made.sample()
            self.assertTrue(bool(tenon.isfinite(samples).all()), made)
            made.log_prob(samples)


if __name__ == "__main__":
    unittest_report.main()
