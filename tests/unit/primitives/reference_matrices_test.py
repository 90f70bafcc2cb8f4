"""Compares fft and linear_algebra with NumPy and SciPy."""
import pathlib
import sys
import unittest

import numpy as np
import scipy.linalg

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

REFERENCE = None


def pairs(z):
    return np.stack([z.real, z.imag], -1)


class Fourier(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)

    def run_fft(self, form, axis, inverse, shape, src, scale=1.0):
        attributes = f"form={form} axis={axis} inverse={inverse}"
        return REFERENCE.run("fft", attributes, [("dst", "f64", shape)], [("src", "f64", src)], [("f64", scale)])

    def test_complex_transforms_are_numpys(self):
        for shape in ((1,), (2,), (7,), (3, 8, 5), (2, 12)):
            z = self.rng.uniform(-1, 1, shape) + 1j * self.rng.uniform(-1, 1, shape)
            for axis in range(len(shape)):
                n = shape[axis]
                got = self.run_fft("complex", axis, 0, (*shape, 2), pairs(z), 0.5)
                np.testing.assert_allclose(got, pairs(np.fft.fft(z, axis=axis)) / 2, atol=1e-12)
                got = self.run_fft("complex", axis, 1, (*shape, 2), pairs(z), 1 / n)
                np.testing.assert_allclose(got, pairs(np.fft.ifft(z, axis=axis)), atol=1e-12)

    def test_real_transforms_are_numpys(self):
        for shape in ((1,), (2,), (9,), (3, 8), (4, 7, 3)):
            x = self.rng.uniform(-1, 1, shape)
            for axis in range(len(shape)):
                n = shape[axis]
                half = np.fft.rfft(x, axis=axis)
                np.testing.assert_allclose(self.run_fft("real_to_half", axis, 0, (*half.shape, 2), x), pairs(half), atol=1e-12)
                # The imaginary parts at both ends count as 0, whatever they are.
                noisy = half + 1j * self.rng.uniform(-1, 1, half.shape)
                np.testing.assert_allclose(self.run_fft("half_to_real", axis, 1, shape, pairs(noisy), 1 / n),
                                           np.fft.irfft(noisy, n, axis=axis), atol=1e-12)
                np.testing.assert_allclose(self.run_fft("half_to_real", axis, 0, shape, pairs(noisy)),
                                           np.fft.hfft(noisy, n, axis=axis), atol=1e-12)


class LinearAlgebra(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(4)

    def matrices(self, *shape):
        return self.rng.uniform(-1, 1, shape)

    def run_op(self, op, outputs, a, b=None, flags=0):
        inputs = [("src", "f64", a)] + ([("src_b", "f64", b)] if b is not None else [])
        outputs = [(role, "i32" if role == "dst_pivots" else "f64", shape) for role, shape in outputs]
        return REFERENCE.run("linear_algebra", f"op={op}" + (f" flags={flags}" if flags else ""), outputs, inputs)

    def same(self, got, want, tolerance=1e-9):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

    def test_systems(self):
        for batch, n in (((), 1), ((), 5), ((2, 3), 4)):
            a, b = self.matrices(*batch, n, n), self.matrices(*batch, n, 3)
            self.same(self.run_op("solve", [("dst", b.shape)], a, b), np.linalg.solve(a, b))
            self.same(self.run_op("inverse", [("dst", a.shape)], a), np.linalg.inv(a))
            self.same(self.run_op("determinant", [("dst", batch or (1,))], a), np.linalg.det(a))
            sign, log = self.run_op("log_determinant", [("dst", batch or (1,)), ("dst_log", batch or (1,))], a)
            want = np.linalg.slogdet(a)
            self.same(sign, want[0])
            self.same(log, want[1])
            for at in np.ndindex(*batch):
                for flags in range(4):
                    got = self.run_op("triangular_solve", [("dst", (n, 3))], a[at], b[at], flags)
                    self.same(got, scipy.linalg.solve_triangular(a[at], b[at], lower=not flags & 1, unit_diagonal=bool(flags & 2)))

    def test_a_singular_determinant_is_zero(self):
        a = np.array([[1.0, 2.0], [2.0, 4.0]])
        self.assertEqual(self.run_op("determinant", [("dst", (1,))], a), 0)
        sign, log = self.run_op("log_determinant", [("dst", (1,)), ("dst_log", (1,))], a)
        self.assertEqual((sign, log), (0, -np.inf))

    def test_least_squares(self):
        for m, n in ((7, 3), (3, 7), (4, 4), (1, 1)):
            a, b = self.matrices(m, n), self.matrices(m, 2)
            self.same(self.run_op("least_squares", [("dst", (n, 2))], a, b), np.linalg.lstsq(a, b, rcond=None)[0])
        a = self.matrices(6, 2) @ self.matrices(2, 4)  # matrices of rank 2
        b = self.matrices(6, 2)
        self.same(self.run_op("least_squares", [("dst", (4, 2))], a, b), np.linalg.pinv(a) @ b, 1e-7)

    def test_cholesky_reads_one_triangle(self):
        for batch, n in (((), 1), ((), 6), ((3,), 4)):
            x = self.matrices(*batch, n, n)
            a = x @ np.swapaxes(x, -1, -2) + np.eye(n)
            noise = np.triu(self.matrices(*batch, n, n), 1)
            lower = np.linalg.cholesky(a)
            self.same(self.run_op("cholesky", [("dst", a.shape)], a + noise), lower)
            self.same(self.run_op("cholesky", [("dst", a.shape)], a + np.swapaxes(noise, -1, -2), flags=1), np.swapaxes(lower, -1, -2))

    def test_lu_is_scipys(self):
        for m, n in ((5, 5), (6, 3), (3, 6), (1, 1)):
            a = self.matrices(m, n)
            lu, pivots = self.run_op("lu", [("dst", (m, n)), ("dst_pivots", (min(m, n),))], a)
            if m == n:
                want, rows = scipy.linalg.lu_factor(a)
                self.same(lu, want)
                self.assertEqual((pivots - 1).tolist(), rows.tolist())
            k = min(m, n)
            product = (np.tril(lu[:, :k], -1) + np.eye(m, k)) @ np.triu(lu[:k])
            for i in reversed(range(k)):
                product[[i, pivots[i] - 1]] = product[[pivots[i] - 1, i]]
            self.same(product, a)

    def test_qr_is_scipys(self):
        for m, n in ((5, 5), (6, 3), (3, 6), (1, 1), (2, 1), (1, 4)):
            a = self.matrices(m, n)
            k = min(m, n)
            for side, mode in ((k, "economic"), (m, "full")):
                q, r = self.run_op("qr", [("dst", (m, side)), ("dst_r", (side, n))], a)
                want = scipy.linalg.qr(a, mode=mode)
                self.same(q, want[0])
                self.same(r, want[1])

    def signed(self, vectors):
        """The columns with the sign of the contract."""
        great = np.abs(vectors) > np.abs(vectors).max(-2, keepdims=True) / 2
        first = np.take_along_axis(vectors, np.argmax(great, -2)[..., None, :], -2)
        return np.sign(first)

    def test_singular_values(self):
        for batch, m, n in (((), 5, 3), ((), 3, 5), ((2,), 4, 4), ((), 1, 1)):
            a = self.matrices(*batch, m, n)
            k = min(m, n)
            u, s, vh = np.linalg.svd(a, full_matrices=False)
            sign = self.signed(u)
            got = self.run_op("svd", [("dst", (*batch, k)), ("dst_vectors", u.shape), ("dst_vectors_h", vh.shape)], a)
            self.same(got[0], s)
            self.same(got[1], u * sign, 1e-7)
            self.same(got[2], vh * np.swapaxes(sign, -1, -2), 1e-7)
            self.same(self.run_op("svd", [("dst", (*batch, k))], a), s)

    def test_vectors_of_a_lesser_rank_are_orthonormal(self):
        a = self.matrices(5, 2) @ self.matrices(2, 4)
        s, u, vh = self.run_op("svd", [("dst", (4,)), ("dst_vectors", (5, 4)), ("dst_vectors_h", (4, 4))], a)
        self.same(u.T @ u, np.eye(4))
        self.same(u * s @ vh, a)

    def test_eigenvalues_read_one_triangle(self):
        for batch, n in (((), 1), ((), 5), ((2,), 4)):
            x = self.matrices(*batch, n, n)
            a = x + np.swapaxes(x, -1, -2)
            noise = np.triu(self.matrices(*batch, n, n), 1)
            values, vectors = np.linalg.eigh(a)
            for flags, given in ((0, a + noise), (1, a + np.swapaxes(noise, -1, -2))):
                got = self.run_op("eigen", [("dst", (*batch, n)), ("dst_vectors", a.shape)], given, flags=flags)
                self.same(got[0], values)
                self.same(got[1], vectors * self.signed(vectors), 1e-7)
                self.same(self.run_op("eigen", [("dst", (*batch, n))], given, flags=flags), values)

    def test_bad_matrices_are_faults_that_name_the_matrix(self):
        singular = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
        nan = np.array([[[2.0, 1.0], [1.0, 2.0]], [[np.nan, 2.0], [2.0, 4.0]]])
        b = np.ones((2, 2, 1))
        for op, a, outputs, right in (("solve", singular, [("dst", (2, 2, 1))], b), ("inverse", singular, [("dst", (2, 2, 2))], None),
                                      ("cholesky", singular, [("dst", (2, 2, 2))], None), ("svd", nan, [("dst", (2, 2))], None),
                                      ("eigen", nan, [("dst", (2, 2))], None), ("least_squares", nan, [("dst", (2, 2, 1))], b)):
            with self.assertRaises(driver.Fault, msg=op) as caught:
                self.run_op(op, outputs, a, right)
            self.assertEqual((caught.exception.code, caught.exception.value), (4, 1), op)


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
