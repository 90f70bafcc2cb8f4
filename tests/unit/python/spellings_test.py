"""PyTorch's other spellings of ops, its namespaces and its rarer functions: each expression through both packages.

usage: spellings_test.py OP_RUNNER (not used)"""

import functools
import importlib.util
import math
import os
import pathlib
import sys
import unittest

import numpy as np

os.environ["TENON_PROVIDERS"] = "cpu,null"
import tenon
import tenon.nn.functional

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

if importlib.util.find_spec("torch"):
    import torch
    import torch.nn.functional

WITH_TORCH = unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
WITH_SCIPY = unittest.skipUnless(importlib.util.find_spec("scipy"), "SciPy is not installed")

# Expressions over a package t, its nn.functional F, and tensors: x (3, 4), y (3, 4), v (6), m (4, 4) positive definite,
# i positions, b bools, c (2, 3, 6, 6).
CALLS = """
t.diff(x, 1, -1, x[:, :1], None)
t.diff(x, 2, 0, prepend=x, append=y)
t.cdist(x, y, 2.0, 'donot_use_mm_for_euclid_dist')
x.clone(memory_format=t.preserve_format)
x + y.numpy()
v[i[0].numpy()]
x[b[:, 0].numpy()]
x[0, i[0].numpy()]
v[i.numpy()[0, 0]]
x[i[0, 0].numpy() // 2]
t.sum(x, dim=None)
t.mean(x, None, True)
t.any(x > 0, dim=(1,))
t.var(x, False)
t.var(x, 1, False, True)
t.std(x, dim=None, unbiased=False)
t.std_mean(x, True)
t.var_mean(x, dim=1, unbiased=False)
t.norm(x, 'fro')
t.norm(x, 'nuc')
t.norm(x, p=1, dim=1, dtype=t.float64)
t.round(x, decimals=2)
t.round(x * 1000, decimals=-2)
x.clone().round_(decimals=1)
t.searchsorted(v.sort()[0], x, side='right')
t.searchsorted(v, x, sorter=v.argsort())
t.searchsorted(v.sort()[0], 0.25)
t.bucketize(0.25, v.sort()[0])
t.meshgrid(v, indexing='ij')
t.cartesian_prod(v)
t.block_diag(x)
t.atleast_2d([v, x])
t.atleast_1d(v, x)
t.add(2.0, 3)
t.true_divide(7, 2)
t.zeros_like(x, device='cpu', memory_format=t.preserve_format)
t.nonzero(x > 0, as_tuple=True)
t.nonzero(x > 0, as_tuple=False)
t.scatter(x, 1, i, y, reduce='add')
t.scatter(x, 1, i, 2.0, reduce='multiply')
t.tensordot(x, y, dims=([1], [1]))
t.stft(v, 4, window=t.ones(4), center=False, return_complex=False)
t.istft(t.stft(v, 4, window=t.ones(4), return_complex=False), 4, window=t.ones(4)) if t.__name__ == 'tenon' else t.istft(t.stft(v, 4, window=t.ones(4), return_complex=True), 4, window=t.ones(4))
t.sum(x, 1, out=t.zeros(3, dtype=t.float64))
t.cumsum(x, 1, out=t.zeros(3, 4, dtype=t.float64))
t.mm(x, m, out=t.zeros(3, 4, dtype=t.float64))
t.sort(x, 1, out=(t.zeros(3, 4, dtype=t.float64), t.zeros(3, 4, dtype=t.int64)))
x.to(t.float32, memory_format=t.preserve_format)
x.float(memory_format=t.preserve_format)
x.where(b, y)
t.linalg.cholesky_ex(m)
t.linalg.inv_ex(m)
t.linalg.solve(m, x.T)
t.linalg.solve_triangular(m, x, upper=True, left=False)
t.linalg.lu(m)
t.linalg.lu_solve(*t.linalg.lu_factor(m), x.T)
t.linalg.lu_solve(*t.linalg.lu_factor(m), x, left=False, adjoint=True)
t.lu_unpack(*t.linalg.lu_factor(x))
t.linalg.eigvalsh(m, UPLO='U')
t.linalg.vector_norm(x, 3, dim=1)
t.linalg.matrix_norm(x, 'nuc')
t.linalg.matrix_norm(x, -1, keepdim=True)
t.linalg.norm(x, 2)
t.linalg.norm(v, math.inf)
t.linalg.matrix_rank(m, atol=1e-3)
t.linalg.pinv(x, rtol=1e-10)
t.linalg.pinv(m, hermitian=True)
t.linalg.cond(m, 1)
t.linalg.lstsq(x.T, y.T, driver='gelsd')
t.linalg.tensorinv(m.reshape(2, 2, 4), 2)
t.linalg.tensorsolve(m.reshape(2, 2, 4), v[:4].reshape(2, 2))
t.linalg.multi_dot([x, m, y.T, v[:3]])
t.linalg.vecdot(x, y)
t.linalg.vander(v, N=3)
t.linalg.householder_product(x.T, v[:3])
t.matrix_exp(m)
t.svd(x)[1]
t.triangular_solve(x.T, m, upper=False)[0]
t.cholesky_inverse(t.linalg.cholesky(m))
t.quantile(x, t.tensor([0.1, 0.5], dtype=t.float64), dim=1, keepdim=True)
t.quantile(x, 0.3, interpolation='midpoint')
t.nanquantile(t.where(b, x, math.nan), 0.6, 1)
t.nanmedian(t.where(b, x, math.nan), 1)
t.mode(t.tensor([[3, 1, 1, 3], [2, 0, 2, 1]]), 1)
t.cov(x, correction=0, fweights=t.tensor([1, 2, 0, 3]), aweights=v[:4].abs())
t.corrcoef(x)
t.histogram(v, 4, range=(-1.0, 1.0), density=True)
t.histogram(v, t.tensor([-1.0, 0.0, 2.0], dtype=t.float64), weight=v.abs())
t.cumulative_trapezoid(x, dx=0.5)
t.cumulative_trapezoid(x, v.sort()[0][:4])
t.gradient(x, spacing=0.5, edge_order=2)
t.gradient(v, spacing=(v.sort()[0],))[0]
t.broadcast_shapes((3, 1), (4,))
t.combinations(v, 3)
t.combinations(v[:3], 2, True)
x.sum_to_size(3, 1)
t.diagonal_scatter(m, v[:4])
t.frexp(x)
t.renorm(x, 2, 0, 0.5)
t.i0(x)
t.igamma(x.abs() + 0.1, y.abs())
t.igammac(x.abs() + 0.1, y.abs() * 5)
t.lu(m)
t.polygamma(2, x)
t.polygamma(4, x - 1000.25)
t.mvlgamma(x.abs() + 2, 3)
t.index_reduce(x, 0, t.tensor([0, 2, 0]), y, 'prod')
t.index_reduce(x, 1, t.tensor([1, 1]), y[:, :2], 'mean', include_self=False)
t.angle(x)
t.special.log_ndtr(x * 8)
t.special.ndtri(x.abs() / 4)
t.special.erfcx(x * 6)
t.special.entr(x)
t.special.zeta(x.abs() + 1.5, y.abs() + 0.2)
t.special.xlog1py(x, y.abs())
t.fft.rfft2(x)[..., 0] if t.__name__ == 'tenon' else t.fft.rfft2(x).real
t.fft.ihfft2(x)[..., 1] if t.__name__ == 'tenon' else t.fft.ihfft2(x).imag
F.linear(x, v[:4])
F.pad(c, (-1, 2, 1, -1), 'replicate')
F.pad(c, (-1, 2, 1, -1), 'reflect')
F.avg_pool2d(c, 3, 2, 1, True, False, divisor_override=5)
F.adaptive_max_pool2d(c, (4, 3), return_indices=True)
F.lp_pool1d(x, 2, 2)
F.max_unpool2d(*F.max_pool2d(c, 2, return_indices=True), 2)
F.max_unpool1d(*F.max_pool1d(c[0], 2, 3, return_indices=True), 2, 3, output_size=(6,))
F.grid_sample(c, t.stack([x[:2, :3], y[:2, :3]], -1)[:, None] * 1.3, align_corners=True)
F.grid_sample(c, t.stack([x[:2, :3], y[:2, :3]], -1)[:, None] * 3, mode='bicubic', padding_mode='reflection', align_corners=False)
F.grid_sample(c, t.stack([x[:2, :3], y[:2, :3]], -1)[:, None] * 3, mode='nearest', padding_mode='border', align_corners=False)
F.affine_grid(c[:2, :2, 0, :3], (2, 3, 4, 5), align_corners=False)
F.ctc_loss(F.log_softmax(c[0].permute(1, 0, 2), 2), t.tensor([[1, 2], [3, 3], [5, 1]]), (6, 6, 5), (2, 2, 1))
F.ctc_loss(F.log_softmax(c[0].permute(1, 0, 2), 2), t.tensor([1, 2, 3, 3, 5]), t.tensor([6, 2, 5]), t.tensor([2, 2, 1]), reduction='none', zero_infinity=True)
F.multilabel_margin_loss(x, t.tensor([[1, 2, -1, 0], [3, -1, 2, 2], [-1, 0, 1, 2]]))
F.multi_margin_loss(v, t.tensor(2), reduction='none')
F.kl_div(x[0, 0], y[0, 0], reduction='batchmean')
F.triplet_margin_with_distance_loss(x, y, x + 0.5, swap=True, distance_function=lambda a, b: (a - b).abs().sum(-1))
F.embedding(i, m, scale_grad_by_freq=True)
F.alpha_dropout(x, 1.0, True)
F.avg_pool2d(i.reshape(1, 1, 3, 4), 2, divisor_override=3)
t.gather(v, 0, t.zeros(2, 0, dtype=t.int64))
t.gather(v[0], 0, t.zeros(1, dtype=t.int64))
v[0].index_fill(0, t.tensor([0]), 2.5)
t.scatter_reduce(b, 0, i % 3, ~b, 'amax', include_self=False)
F.embedding_bag(i[:, :2], m, max_norm=0.5, mode='sum')
"""

# Asymptotic series, cut after the first terms: within 1e-7.
SERIES = """
t.igamma(x.abs() * 1e4 + 100, x.abs() * 1e4 + 100 + y * 90)
t.igammac(x.abs() * 3000 + 1500, x.abs() * 3000 + 1500 + y * 40)
t.igamma(x.abs() * 1e9, x.abs() * 1e9)
"""

# Calls that both packages refuse.
REFUSED = """
t.var(x, 'all')
t.sum(x, out=t.zeros(2))
t.sum(x, out=3)
t.mm(x, m, out=t.zeros(3, 4, dtype=t.int64))
t.scatter(x, 1, i, y, reduce='least')
t.searchsorted(v, x, side='middle')
t.norm(x, 'best')
t.round(i, decimals=1)
t.quantile(x, 1.5)
t.linalg.solve_triangular(v, v, upper=True)
t.linalg.matrix_norm(v)
t.linalg.multi_dot([x])
t.cov(t.zeros(2, 2, 2))
t.histogram(v, 3, range=(1.0, 0.0))
t.broadcast_shapes((3,), (4,))
t.gradient(v[:1])
F.adaptive_avg_pool2d(x[0], 2)
t.isclose(x, y, rtol=-1.0)
F.max_pool1d(c[0], 2, padding=2)
F.avg_pool2d(c, 2, divisor_override=0)
F.grid_sample(c, c)
F.ctc_loss(c[0], i[:, :2], (6, 6, 6), (9, 9, 9))
"""


def tensors(package):
    rng = np.random.default_rng(36)
    made = {"x": rng.standard_normal((3, 4)), "y": rng.standard_normal((3, 4)), "v": rng.standard_normal(6), "c": rng.standard_normal((2, 3, 6, 6))}
    square = rng.standard_normal((4, 4))
    made |= {"m": square @ square.T / 4 + np.eye(4), "i": rng.integers(0, 4, (3, 4)), "b": rng.integers(0, 2, (3, 4)).astype(bool)}
    return {"t": package, "F": package.nn.functional, "math": math} | {name: package.tensor(value) for name, value in made.items()}


def numbers(value):
    """The argument as nested lists of arrays."""
    if isinstance(value, (tuple, list)):
        return [numbers(each) for each in value]
    return np.array(value.detach()) if hasattr(value, "detach") else np.array(value)


class OnNull:
    """The package tenon, with factories that make tensors on null:0, where the host computes every op."""

    def __getattr__(self, name):
        found = getattr(tenon, name)
        return functools.partial(found, device="null:0") if name in ("tensor", "zeros", "ones") else found


@WITH_TORCH
class Spellings(unittest.TestCase):
    def setUp(self):
        tenon.preserve_format = "preserve_format"  # PyTorch's is an object

    def tearDown(self):
        del tenon.preserve_format

    def test_give_what_pytorch_gives(self):
        for text in CALLS.strip().splitlines():
            with self.subTest(text):
                try:
                    wanted = numbers(eval(text, tensors(torch)))
                except (AttributeError, TypeError) as error:  # newer than this PyTorch
                    self.assertIn(torch.__version__.split(".")[0], "1", f"{error}")
                    eval(text, tensors(tenon))
                    continue
                self.compare(numbers(eval(text, tensors(tenon))), wanted)

    def compare(self, ours, wanted, near=1e-9):
        if isinstance(wanted, list):
            self.assertEqual(len(ours), len(wanted))
            for x, y in zip(ours, wanted):
                self.compare(x, y, near)
            return
        self.assertEqual((ours.dtype, ours.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_allclose(ours, wanted, rtol=near if wanted.dtype == np.float64 else 1e-5, atol=1e-10)

    def test_series_are_near(self):
        for text in SERIES.strip().splitlines():
            with self.subTest(text):
                self.compare(*(numbers(eval(text, tensors(package))) for package in (tenon, torch)), near=1e-7)

    @unittest.skipUnless("null:0" in [each.spelling for each in tenon.devices()], "the provider null is not built")
    def test_make_no_helper_tensors_on_the_default_device(self):
        for text in CALLS.strip().splitlines() + SERIES.strip().splitlines():
            with self.subTest(text):
                self.compare(*(numbers(eval(text, tensors(package))) for package in (OnNull(), tenon)))

    def test_refuse_what_pytorch_refuses(self):
        for text in REFUSED.strip().splitlines():
            for package, errors in ((torch, (RuntimeError, TypeError, ValueError, IndexError)), (tenon, (tenon.Error, TypeError, ValueError))):
                if package is torch and "out=t.zeros(2)" in text:
                    continue  # it resizes
                with self.subTest(text, package=package.__name__), self.assertRaises(errors):
                    eval(text, tensors(package))

    def test_are_written_where_out_says(self):
        out = tenon.zeros((3, 4), dtype=tenon.float64)
        self.assertIs(tenon.softmax(tensors(tenon)["x"], 1, out=out), out)
        self.assertAlmostEqual(float(out.sum()), 3.0)

    def test_have_gradients(self):
        for text in ("t.diff(z, append=z).pow(2).sum()", "t.var(z, 1, False).sum()", "t.linalg.lu_solve(*t.linalg.lu_factor(m), z.T).sum()", "t.quantile(z, 0.3)", "t.linalg.svd(z, False)[0].abs().sum()", "(t.linalg.svd(z.T)[2].abs() * m[:3, :3]).sum() + t.svd(z)[1].sin().sum()", "sum(each.sin().sum() for each in t.linalg.qr(z))", "sum(each.sin().sum().abs() for each in t.linalg.qr(z.T))", "t.linalg.lu_factor(z)[0].sin().sum()", "t.linalg.lu(z.T)[1].sin().sum()", "t.linalg.lu(z[:, :3])[2].sin().sum()", "t.linalg.lstsq(z, y)[0].pow(2).sum()", "t.linalg.lstsq(z.T, y.T)[0].pow(2).sum()",
                     "t.linalg.pinv(z[:, :2] @ z[:, :2].T).sin().sum()", "t.linalg.pinv(z @ z.T, hermitian=True).sin().sum()", "t.cov(z).sum()", "t.special.i0(z).sum()", "F.grid_sample(c, z[:2, :2].reshape(2, 1, 1, 2)).pow(2).sum()",
                     "F.ctc_loss(F.log_softmax(z[:, None], 2), t.tensor([[1, 2]]), (3,), (2,))", "F.multilabel_margin_loss(z, t.tensor([[1, 2, -1, 0]] * 3))"):
            with self.subTest(text):
                gradients = []
                for package in (torch, tenon):
                    names = tensors(package)
                    names["z"] = names["x"].clone().requires_grad_()
                    eval(text, names).backward()
                    gradients.append(numbers(names["z"].grad))
                np.testing.assert_allclose(gradients[1], gradients[0], rtol=1e-8, atol=1e-10)


@WITH_SCIPY
class Special(unittest.TestCase):
    POINTS = np.concatenate([np.linspace(-30, 30, 121), [1e-3, 0.5, 13.9, 14.1, 24.9, 25.1, 80.0]])

    def test_functions_of_one_number_against_scipy(self):
        from scipy import special
        rows = {"i0e": special.i0e, "i1e": special.i1e, "i1": special.i1, "erfcx": special.erfcx, "log_ndtr": special.log_ndtr, "bessel_j0": special.j0,
                "bessel_j1": special.j1, "modified_bessel_k0": special.k0, "modified_bessel_k1": special.k1, "scaled_modified_bessel_k0": special.k0e,
                "scaled_modified_bessel_k1": special.k1e, "bessel_y0": special.y0, "bessel_y1": special.y1, "entr": special.entr, "ndtr": special.ndtr}
        for name, reference in rows.items():
            points = np.abs(self.POINTS) + 1e-2 if "_k" in name or "_y" in name else self.POINTS
            with self.subTest(name), np.errstate(all="ignore"):
                ours = np.array(getattr(tenon.special, name)(tenon.tensor(points, dtype=tenon.float64)))
                np.testing.assert_allclose(ours, reference(points), rtol=2e-8, atol=1e-10)

    def test_polynomials_against_scipy(self):
        from scipy import special
        rows = {"chebyshev_polynomial_t": special.eval_chebyt, "chebyshev_polynomial_u": special.eval_chebyu, "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
                "hermite_polynomial_h": special.eval_hermite, "hermite_polynomial_he": special.eval_hermitenorm, "laguerre_polynomial_l": special.eval_laguerre,
                "legendre_polynomial_p": special.eval_legendre}
        points = np.array([-1.2, -1.0, -0.4, 0.0, 0.3, 0.99, 1.1])
        for name, reference in rows.items():
            for degree in (0, 1, 2, 5, 12) + ((70, 71) if "cheby" in name else ()):
                with self.subTest(name, degree=degree):
                    ours = np.array(getattr(tenon.special, name)(tenon.tensor(points, dtype=tenon.float64), degree))
                    np.testing.assert_allclose(ours, reference(degree, points), rtol=1e-7, atol=1e-9)

    def test_windows_against_scipy(self):
        from scipy.signal import windows
        rows = {"hann": {}, "hamming": {}, "blackman": {}, "bartlett": {}, "cosine": {}, "nuttall": {}, "kaiser": {"beta": 5.0}, "gaussian": {"std": 2.0},
                "exponential": {"tau": 2.0}, "general_cosine": {"a": [0.4, 0.5, 0.1]}, "general_hamming": {"alpha": 0.6}}
        for name, settings in rows.items():
            for count in (1, 2, 7, 8):
                for symmetric in (True, False):
                    with self.subTest(name, count=count, symmetric=symmetric):
                        ours = np.array(getattr(tenon.signal.windows, name)(count, sym=symmetric, dtype=tenon.float64, **settings))
                        np.testing.assert_allclose(ours, getattr(windows, name)(count, sym=symmetric, **settings), atol=1e-7)


if __name__ == "__main__":
    unittest_report.main()
