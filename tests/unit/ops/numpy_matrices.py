"""Linear algebra, Fourier transforms, recurrent networks, resizing, and numbers drawn from distributions."""

import itertools
import pathlib
import sys

import numpy as np
import scipy.linalg
import scipy.signal
import scipy.special

from numpy_runner import RANKS, Dtype, OpTest, Refused, run, some

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "primitives"))
import philox


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def whole(x):
    return x[..., 0] + 1j * x[..., 1]


class LinearAlgebra(OpTest):
    def near(self, got, want, tolerance=1e-9):
        self.assertEqual(got.shape, np.shape(want))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

    def matrix(self, *shape):
        return some(*shape, dtype=np.float64)

    def definite(self, *shape):
        x = self.matrix(*shape)
        return x @ np.swapaxes(x, -1, -2) + np.eye(shape[-1])

    def test_factors(self):
        for shape in ((4, 4), (2, 3, 3), (1, 1)):
            a = self.definite(*shape)
            lower = np.linalg.cholesky(a)
            for op in ("linalg_cholesky", "cholesky"):
                self.near(run(op, a)[0], lower)
                self.near(run(op, a, upper=True)[0], np.swapaxes(lower, -1, -2))
            b = self.matrix(*shape[:-1], 2)
            self.near(run("cholesky_solve", b, lower)[0], np.linalg.solve(a, b), 1e-7)
            self.near(run("cholesky_solve", b, np.swapaxes(lower, -1, -2).copy(), True)[0], np.linalg.solve(a, b), 1e-7)
        for shape in ((4, 4), (5, 3), (3, 5)):
            a = self.matrix(*shape)
            for mode, theirs in (("reduced", "economic"), ("complete", "full")):
                for got, want in zip(run("linalg_qr", a, mode), scipy.linalg.qr(a, mode=theirs)):
                    self.near(got, want)
        a = self.matrix(4, 4)
        lu, rows = run("linalg_lu_factor", a)
        want = scipy.linalg.lu_factor(a)
        self.near(lu, want[0])
        self.near(rows, want[1] + 1)
        self.assertEqual(rows.dtype, np.int32)
        self.refused("linalg_qr: mode is 'r'; it may be reduced or complete.", "linalg_qr", a, "r")

    def test_systems(self):
        for left, right in (((3, 3), (3, 2)), ((3, 3), (3,)), ((2, 3, 3), (3, 2)), ((4, 1, 3, 3), (5, 3, 2)), ((1, 1), (1, 1))):
            a, b = self.matrix(*left) + 5 * np.eye(left[-1]), self.matrix(*right)
            columns = b[:, None] if b.ndim == 1 else np.broadcast_to(b, (*np.broadcast_shapes(left[:-2], right[:-2]), *right[-2:]))
            solve = lambda matrix: np.linalg.solve(matrix, columns).reshape(-1) if b.ndim == 1 else np.linalg.solve(matrix, columns)
            self.near(run("linalg_solve", a, b)[0], solve(a))
            for upper in (False, True):
                want = solve(np.triu(a) if upper else np.tril(a))
                self.near(run("linalg_solve_triangular", a, b, upper=upper)[0], want)
        a, b = self.matrix(6, 3), self.matrix(6, 2)
        self.near(run("linalg_lstsq", a, b)[0], np.linalg.lstsq(a, b, rcond=None)[0])
        self.near(run("linalg_lstsq", a, b[:, 0].copy())[0], np.linalg.lstsq(a, b[:, 0], rcond=None)[0])
        self.refused("linalg_solve: input of shape [2, 3] must hold square matrices.", "linalg_solve", self.matrix(2, 3), b)
        self.refused("linalg_solve: other of shape [4, 2] must have as many rows as input of shape [3, 3].", "linalg_solve",
                     self.matrix(3, 3), self.matrix(4, 2))

    def test_numbers_of_a_matrix(self):
        for shape in ((3, 3), (2, 2, 4, 4), (1, 1)):
            a = self.matrix(*shape)
            sign, logarithm = np.linalg.slogdet(a)
            for prefix in ("linalg_", ""):
                self.near(run(prefix + "det", a)[0], np.linalg.det(a))
                self.near(run(prefix + "slogdet", a)[0], sign)
                self.near(run(prefix + "slogdet", a)[1], logarithm)
                self.near(run(prefix + "matrix_power", a, 5)[0], np.linalg.matrix_power(a, 5), 1e-7)
            for n in (0, 1, -2):
                self.near(run("linalg_matrix_power", a, n)[0], np.linalg.matrix_power(a, n), 1e-6)
            for op in ("linalg_inv", "inverse"):
                self.near(run(op, a)[0], np.linalg.inv(a), 1e-7)
            got = run("logdet", a)[0]
            self.near(np.where(sign < 0, 0, got), np.where(sign < 0, 0, logarithm))
            self.assertTrue(np.all(np.isnan(got) == (sign < 0)))
            self.near(run("linalg_cond", a)[0], np.linalg.cond(a), 1e-7)
        self.assertEqual(run("linalg_det", np.array([[1.0, 2.0], [2.0, 4.0]]))[0], 0)

    def test_powers_of_integers(self):
        whole = np.array([[1, 2], [3, 3]], np.int32)
        for n in (0, 1, 3):
            self.check(np.linalg.matrix_power(whole, n), "matrix_power", whole, n)

    def test_values(self):
        for shape in ((4, 4), (5, 3), (2, 3, 5)):
            a = self.matrix(*shape)
            k = min(shape[-2:])
            u, s, vh = np.linalg.svd(a)
            self.near(run("linalg_svdvals", a)[0], s)
            values, left, right = run("linalg_svd_reduced", a)
            self.near(values, s)
            self.near(left * values[..., None, :] @ right, a)
            self.near(np.abs(left), np.abs(u[..., :k]), 1e-7)
            full = run("linalg_svd", a)
            for got, want in zip(full, (u, s, vh)):
                self.assertEqual(got.shape, want.shape)
            for side in (full[0], full[2]):
                self.near(side @ np.swapaxes(side, -1, -2), np.broadcast_to(np.eye(side.shape[-1]), side.shape))
            self.near(full[0][..., :k] * full[1][..., None, :] @ full[2][..., :k, :], a)
            for op in ("linalg_pinv", "pinverse"):
                self.near(run(op, a)[0], np.linalg.pinv(a), 1e-8)
            self.near(run("linalg_matrix_rank", a)[0], np.linalg.matrix_rank(a))
        low = self.matrix(5, 2) @ self.matrix(2, 4)
        self.near(run("linalg_matrix_rank", low)[0], np.asarray(2))
        self.near(run("linalg_pinv", low)[0], np.linalg.pinv(low), 1e-7)
        a = self.matrix(2, 4, 4)
        for upper in (False, True):
            want = np.linalg.eigh(a, "U" if upper else "L")
            values, vectors = run("linalg_eigh", a, upper)
            self.near(values, want[0])
            self.near(run("linalg_eigvalsh", a, upper)[0], want[0])
            self.near(np.abs(vectors), np.abs(want[1]), 1e-7)

    def test_large_matrices_of_f32(self):
        """Sides of more than one block, whole and not; products are compared in f64."""
        for m, n in ((200, 200), (230, 195), (195, 260)):
            a = self.matrix(m, n).astype(np.float32)
            lu, pivots = run("linalg_lu_factor", a)
            k, swapped = min(m, n), a.astype(np.float64)
            for row, pivot in enumerate(pivots):
                swapped[[row, pivot - 1]] = swapped[[pivot - 1, row]]
            low = np.tril(lu[:, :k].astype(np.float64), -1) + np.eye(m, k)
            self.assertLessEqual(np.abs(low).max(), 1)
            self.near(low @ np.triu(lu[:k].astype(np.float64)), swapped, 1e-4)
            for mode in ("reduced", "complete"):
                q, r = run("linalg_qr", a, mode)
                want = np.linalg.qr(a.astype(np.float64), mode="reduced")[1]
                self.near(np.abs(r[:k]), np.abs(want), 1e-4)
                self.assertFalse(np.tril(r, -1).any())
                self.near(q.T.astype(np.float64) @ q, np.eye(q.shape[1]), 1e-5)
                self.near(q.astype(np.float64) @ r, a, 1e-4)
        a = (self.matrix(200, 200) + 100 * np.eye(200)).astype(np.float32)
        b = self.matrix(200, 37).astype(np.float32)
        wide = a.astype(np.float64)
        self.near(run("linalg_solve", a, b)[0], np.linalg.solve(wide, b), 1e-5)
        self.near(run("linalg_inv", a)[0], np.linalg.inv(wide), 1e-5)
        self.near(run("linalg_slogdet", a)[1], np.linalg.slogdet(wide)[1], 1e-5)
        for upper, unit in ((False, False), (False, True), (True, False), (True, True)):
            triangle = (np.triu if upper else np.tril)(a / np.float32(100))
            want = scipy.linalg.solve_triangular(triangle.astype(np.float64), b, lower=not upper, unit_diagonal=unit)
            self.near(run("linalg_solve_triangular", triangle, b, upper=upper, unitriangular=unit)[0], want, 1e-5)
        a[:, 150] = 0
        for op, args in (("linalg_solve", (a, b)), ("linalg_solve_triangular", (np.triu(a), b, True)), ("linalg_inv", (a,))):
            with self.assertRaises(Refused):
                run(op, *args)

    def test_bad_matrices_are_errors(self):
        singular = np.array([[[2.0, 1.0], [1.0, 2.0]], [[1.0, 2.0], [2.0, 4.0]]])
        for op in ("linalg_inv", "linalg_cholesky"):
            with self.assertRaises(Refused) as raised:
                run(op, singular)
            number = "[01]" if RANKS else "1"  # a rank may have only a part of the batch
            self.assertRegex(str(raised.exception), f"^{op}: matrix {number} of the batch \\(argument 'input'\\) is singular, "
                                                    "not positive definite, or not finite.")


class Fourier(OpTest):
    def near(self, got, want):
        self.assertEqual(got.shape, np.shape(want))
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)

    def test_pairs(self):
        z = whole(some(3, 6, 5, 2, dtype=np.float64))
        for norm in ("backward", "ortho", "forward"):
            for name in ("fft", "ifft"):
                theirs = getattr(np.fft, name)
                for dim in (0, 1, -1):
                    self.near(run("fft_" + name, pairs(z), None, dim, norm)[0], pairs(theirs(z, axis=dim, norm=norm)))
                for n in (4, 9):
                    self.near(run("fft_" + name, pairs(z), n, 1, norm)[0], pairs(theirs(z, n, axis=1, norm=norm)))
                self.near(run(f"fft_{name}n", pairs(z), None, norm)[0], pairs(getattr(np.fft, name + "n")(z, norm=norm)))
                self.near(run(f"fft_{name}n", pairs(z), [0, 2], norm)[0],
                          pairs(getattr(np.fft, name + "n")(z, axes=(0, 2), norm=norm)))
                self.near(run(f"fft_{name}2", pairs(z), norm)[0], pairs(getattr(np.fft, name + "2")(z, norm=norm)))
        self.near(run("fft_c2c", pairs(z), 1, True, 0.25)[0], pairs(np.fft.ifft(z, axis=1, norm="forward") / 4))
        self.refused("fft_fft: norm is 'both'; it may be backward, ortho or forward.", "fft_fft", pairs(z), None, -1, "both")
        self.refused("fft_fft: input of shape [3, 3] must hold pairs, real and imaginary part, along a last axis of 2.", "fft_fft", some(3, 3))

    def test_lengths_with_a_large_prime_factor(self):
        def same(got, want, dtype):
            self.assertEqual((got.shape, got.dtype), (want.shape, np.dtype(dtype)))
            limit = 4e-7 if dtype == np.float32 else 1e-13
            self.assertLess(np.abs(got - want).max(), limit * np.abs(want).max())

        for n, dtype in itertools.product((53, 67, 2 * 59), (np.float32, np.float64)):
            for shape, axis in (((1, n), 1), ((n, 2), 0), ((4, n), 1)):
                z, x = some(*shape, 2, dtype=dtype), some(*shape, dtype=dtype)
                values = z[..., 0].astype("f8") + 1j * z[..., 1]
                same(run("fft_fft", z, None, axis)[0], pairs(np.fft.fft(values, axis=axis)), dtype)
                same(run("fft_ifft", z, None, axis)[0], pairs(np.fft.ifft(values, axis=axis)), dtype)
                half = np.fft.rfft(x.astype("f8"), axis=axis)
                same(run("fft_rfft", x, None, axis)[0], pairs(half), dtype)
                rounded = pairs(half).astype(dtype)
                want = np.fft.irfft(rounded[..., 0].astype("f8") + 1j * rounded[..., 1], n, axis=axis)
                same(run("fft_irfft", rounded, n, axis)[0], want, dtype)

    def test_real_numbers(self):
        x = some(3, 6, 5, dtype=np.float64)
        for norm in ("backward", "ortho", "forward"):
            for dim in (0, 1, -1):
                n = x.shape[dim]
                half = np.fft.rfft(x, axis=dim, norm=norm)
                self.near(run("fft_rfft", x, None, dim, norm)[0], pairs(half))
                self.near(run("fft_ihfft", x, None, dim, norm)[0], pairs(np.fft.ihfft(x, axis=dim, norm=norm)))
                self.near(run("fft_irfft", pairs(half), n, dim, norm)[0], np.fft.irfft(half, n, axis=dim, norm=norm))
                self.near(run("fft_hfft", pairs(half), n, dim, norm)[0], np.fft.hfft(half, n, axis=dim, norm=norm))
            self.near(run("fft_irfft", pairs(half), None, -1, norm)[0], np.fft.irfft(half, norm=norm))
            self.near(run("fft_rfft", x, 8, 1, norm)[0], pairs(np.fft.rfft(x, 8, axis=1, norm=norm)))
            spectrum = np.fft.rfftn(x, norm=norm)
            self.near(run("fft_rfftn", x, None, norm)[0], pairs(spectrum))
            self.near(run("fft_irfftn", pairs(spectrum), 5, None, norm)[0], np.fft.irfftn(spectrum, x.shape, norm=norm))
        self.near(run("fft_r2c", x, 1, 0.5)[0], pairs(np.fft.rfft(x, axis=1) / 2))
        self.near(run("fft_c2r", pairs(np.fft.rfft(x)), 5, -1, True, 0.5)[0], np.fft.irfft(np.fft.rfft(x), 5, norm="forward") / 2)

    def test_frequencies_and_shifts(self):
        for n in (1, 6, 7):
            self.near(run("fft_fftfreq", n, 0.5, dtype=Dtype("f64"))[0], np.fft.fftfreq(n, 0.5))
            self.near(run("fft_rfftfreq", n, 0.5, dtype=Dtype("f64"))[0], np.fft.rfftfreq(n, 0.5))
        x = some(4, 5)
        for op in ("fftshift", "ifftshift"):
            for dim, axes in ((None, None), ([1], 1)):
                self.close(run("fft_" + op, x, dim)[0], getattr(np.fft, op)(x, axes))

    def test_windows(self):
        names = {"hann_window": "hann", "hamming_window": "hamming", "blackman_window": "blackman", "bartlett_window": "bartlett"}
        for op, name in names.items():
            for n in (1, 2, 8, 9):
                for periodic in (True, False):
                    want = scipy.signal.get_window(name, n, periodic)
                    got = run(op, n, periodic, dtype=Dtype("f64"))[0]
                    np.testing.assert_allclose(got, want, atol=1e-12, err_msg=f"{op} {n} {periodic}")

    def test_short_time_transforms(self):
        x = some(2, 40, dtype=np.float64)
        window = some(6, dtype=np.float64)
        for center in (True, False):
            for given, width in ((None, None), (window, 6)):
                for onesided in (True, False):
                    source = np.pad(x, ((0, 0), (4, 4)), "reflect") if center else x
                    weights = np.ones(8) if given is None else np.pad(given, 1)
                    frames = np.stack([source[:, i:i + 8] * weights for i in range(0, source.shape[1] - 7, 3)], 1)
                    want = np.swapaxes(np.fft.rfft(frames) if onesided else np.fft.fft(frames), 1, 2)
                    args = [8, 3, width] + ([given] if given is not None else [None])
                    got = run("stft", x, *args, center=center, onesided=onesided)[0]
                    self.near(got, pairs(want))
                    got = run("stft", x[0].copy(), *args, center=center, onesided=onesided, normalized=True)[0]
                    self.near(got, pairs(want[0] / np.sqrt(8)))


def sigmoid(x):
    return scipy.special.expit(x)


def torch_layer(cell, x, h, c, w, r, b, rb, reverse):
    """One direction, as PyTorch's documents have the cells."""
    outputs = np.zeros((*x.shape[:2], h.shape[1]))
    for t in range(len(x) - 1, -1, -1) if reverse else range(len(x)):
        from_x, from_h = x[t] @ w.T + b, h @ r.T + rb
        if cell == "lstm":
            i, f, g, o = np.split(from_x + from_h, 4, 1)
            c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
        elif cell == "gru":
            (rx, zx, nx), (rh, zh, nh) = np.split(from_x, 3, 1), np.split(from_h, 3, 1)
            z = sigmoid(zx + zh)
            h = (1 - z) * np.tanh(nx + sigmoid(rx + rh) * nh) + z * h
        else:
            h = np.tanh(from_x + from_h) if cell == "rnn_tanh" else np.maximum(from_x + from_h, 0)
        outputs[t] = h
    return outputs, h, c


class Recurrent(OpTest):
    GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}

    def draw(self, *shape):
        return some(*shape, low=-0.7, high=0.7)

    def test_networks(self):
        for op, gates in self.GATES.items():
            for layers, both, biased, batch_first in ((1, False, True, False), (2, True, True, True), (2, False, False, False)):
                directions = 2 if both else 1
                t, n, k, width = 5, 3, 4, 6
                x = self.draw(t, n, k)
                hx, cx = self.draw(layers * directions, n, width), self.draw(layers * directions, n, width)
                params, current, last, cells = [], x.astype(np.float64), [], []
                for layer in range(layers):
                    outputs = []
                    for direction in range(directions):
                        inputs = current.shape[2]
                        own = [self.draw(gates * width, inputs), self.draw(gates * width, width)]
                        own += [self.draw(gates * width), self.draw(gates * width)] if biased else []
                        params += own
                        at = layer * directions + direction
                        biases = own[2:] if biased else [0, 0]
                        out, h, c = torch_layer(op, current, hx[at], cx[at], *own[:2], *biases, direction == 1)
                        outputs.append(out)
                        last.append(h)
                        cells.append(c)
                    current = np.concatenate(outputs, 2)
                given = np.ascontiguousarray(x.transpose(1, 0, 2)) if batch_first else x
                states = (hx, cx) if op == "lstm" else (hx,)
                got = run(op, given, *states, tuple(params), biased, layers, 0.0, False, both, batch_first)
                want = [current.transpose(1, 0, 2) if batch_first else current, np.stack(last)] + [np.stack(cells)] * (op == "lstm")
                for result, expected in zip(got, want):
                    np.testing.assert_allclose(result, expected, rtol=2e-5, atol=2e-6, err_msg=op)
        self.refused("gru: 2 params were given, but 1 layers want 4 each.", "gru", self.draw(2, 1, 3), self.draw(1, 1, 2),
                     (self.draw(6, 3), self.draw(6, 2)))

    def test_states_that_are_wide_enough_for_several_threads(self):
        t, k, width = 5, 3, 423
        for op, gates in self.GATES.items():
            x, states = self.draw(t, 1, k), [self.draw(1, 1, width) for _ in range(2 if op == "lstm" else 1)]
            params = [self.draw(*shape) / np.float32(8) for shape in ((gates * width, k), (gates * width, width), (gates * width,), (gates * width,))]
            got = run(op, x, *states, tuple(params), True)
            want = torch_layer(op, x.astype(np.float64), states[0][0], states[-1][0], *params, False)
            np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5, err_msg=op)
            np.testing.assert_allclose(got[1][0], want[1], rtol=1e-4, atol=1e-5, err_msg=op)

    def test_layers(self):
        t, n, k, width = 4, 3, 2, 5
        x, lengths = self.draw(t, n, k), np.array([4, 1, 3], np.int32)
        w, r, b, rb, h, c = (self.draw(4 * width, k), self.draw(4 * width, width), self.draw(4 * width), self.draw(4 * width),
                             self.draw(n, width), self.draw(n, width))
        got = run("lstm_layer", x, w, r, b, rb, h, c, None, lengths, torch_gates=True)
        for i, length in enumerate(lengths):
            outputs, last, cell = torch_layer("lstm", x[:length, i:i + 1], h[i:i + 1], c[i:i + 1], w, r, b, rb, False)
            np.testing.assert_allclose(got[0][:length, i], outputs[:, 0], atol=2e-6)
            self.assertTrue(np.all(got[0][length:, i] == 0))
            np.testing.assert_allclose(got[1][i], last[0], atol=2e-6)
            np.testing.assert_allclose(got[2][i], cell[0], atol=2e-6)
        w, r, b, rb = w[:width].copy(), r[:width].copy(), b[:width].copy(), rb[:width].copy()
        got = run("recurrent_layer", x, w, r, b, rb, h, None, cell="tanh", reverse=True)
        outputs, last, _ = torch_layer("rnn_tanh", x, h, None, w, r, b, rb, True)
        np.testing.assert_allclose(got[0], outputs, atol=2e-6)
        np.testing.assert_allclose(got[1], last, atol=2e-6)
        self.refused("recurrent_layer: cell is 'lstm'; it may be tanh, relu or gru.", "recurrent_layer", x, w, r, cell="lstm")


def cubic(a, t):
    t = np.abs(t)
    near, far = (a + 2) * t ** 3 - (a + 3) * t ** 2 + 1, a * (t ** 3 - 5 * t ** 2 + 8 * t - 4)
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def weights(n, out, mode, align, antialias, factor=None):
    """The matrix of one axis, as PyTorch's interpolate has it."""
    scale = 1 / factor if factor else n / out
    if mode in ("nearest", "nearest-exact"):
        places = np.floor((np.arange(out) + 0.5) * scale) if mode != "nearest" else np.floor(np.arange(out) * scale + 1e-9)
        return np.eye(n)[np.clip(places, 0, n - 1).astype(int)]
    if align:
        scale = (n - 1) / (out - 1) if out > 1 else 0
        x = (np.arange(out) + 0.5) * scale - 0.5 if antialias else np.arange(out) * scale
    else:
        x = (np.arange(out) + 0.5) * scale - 0.5
    stretch = max(scale, 1) if antialias else 1
    taps = np.arange(-20, n + 20)
    distance = (taps[None] - x[:, None]) / stretch
    a = -0.5 if antialias else -0.75
    w = cubic(a, distance) if mode == "bicubic" else np.maximum(0, 1 - np.abs(distance))
    if antialias:
        w = w * ((taps >= 0) & (taps < n))
        w = w / w.sum(1, keepdims=True)
    result = np.zeros((out, n))
    np.add.at(result, (slice(None), np.clip(taps, 0, n - 1)), w)
    return result


class Resizing(OpTest):
    def want(self, x, matrices):
        for axis, matrix in matrices.items():
            x = np.moveaxis(np.tensordot(matrix, x, (1, axis)), 0, axis)
        return x

    def test_interpolate(self):
        for modes, shape, sizes in ((("nearest", "nearest-exact", "linear"), (2, 3, 7), ((12,), (3,))),
                                    (("nearest", "nearest-exact", "bilinear", "bicubic"), (2, 3, 6, 5), ((9, 11), (4, 2), (6, 10), (1, 1))),
                                    (("nearest", "trilinear"), (1, 2, 3, 4, 5), ((5, 3, 7),))):
            x = some(*shape)
            for mode in modes:
                for size in sizes:
                    for align in (False, True) if "linear" in mode or "cubic" in mode else (False,):
                        for antialias in (False, True) if mode in ("bilinear", "bicubic") else (False,):
                            matrices = {i + 2: weights(shape[i + 2], s, mode, align, antialias) for i, s in enumerate(size)}
                            got = run("interpolate", x, list(size), None, mode, align, False, antialias)[0]
                            np.testing.assert_allclose(got, self.want(x, matrices), rtol=1e-5, atol=1e-5, err_msg=f"{mode} {size} {align}")
        x = some(1, 2, 5, 4)
        matrices = {2: weights(5, 8, "bilinear", False, False, 1.7), 3: weights(4, 6, "bilinear", False, False, 1.7)}
        np.testing.assert_allclose(run("interpolate", x, None, 1.7, "bilinear")[0], self.want(x, matrices), rtol=1e-5, atol=1e-5)
        self.close(run("interpolate", some(1, 1, 4, 4) * 0 + 2, [2, 2], None, "area")[0], np.full((1, 1, 2, 2), 2, np.float32))
        for mode in ("nearest", "bilinear", "bicubic"):
            for shape in ((0, 3, 4, 4), (2, 0, 4, 4)):
                self.check(np.zeros((*shape[:2], 6, 8), np.float32), "interpolate", np.zeros(shape, np.float32), [6, 8], None, mode)
        with self.assertRaisesRegex(Refused, "no elements"):
            run("interpolate", np.zeros((1, 1, 0, 4), np.float32), [2, 2])
        self.refused("interpolate: give either size or scale_factor.", "interpolate", x)
        self.refused("interpolate: mode is 'linear', which is not possible for input [1, 2, 5, 4] with 2 spatial axes.", "interpolate", x, 3, None, "linear")

    def test_integers_are_interpolated_and_rounded(self):
        # From PyTorch 2.15.
        x = np.array([[[[10, 31], [77, 200]]]], np.uint8)
        self.check(np.array([[[[10, 12, 21, 29, 31], [44, 51, 80, 109, 116], [77, 89, 139, 188, 200]]]], np.uint8), "interpolate", x, [3, 5], None, "bilinear")
        ends = np.array([[[[0, 255], [255, 0]]]], np.uint8)
        result = run("interpolate", ends, [7, 7], None, "bicubic")[0]
        self.assertEqual((result.dtype, result.min(), result.max()), (np.uint8, 0, 255))
        self.check(np.array([[[-4, -2, 1, 3]]], np.int64), "interpolate", np.array([[[-4, 3]]]), 4, None, "linear")

    def test_resize(self):
        x = some(4, 6)
        for dim, n in ((0, 4), (1, 6), (-1, 6)):
            got = run("resize", x, dim, 9, 9 / n, -0.5, half_pixel=True)[0]
            np.testing.assert_allclose(got, self.want(x, {dim % 2: weights(n, 9, "bilinear", False, False)}), rtol=1e-5, atol=1e-6)
        got = run("resize", x, 1, 3, 1.0, -1.0, mode="nearest", fill=7.0)[0]
        self.close(got, np.concatenate([np.full((4, 1), 7, np.float32), x[:, :2]], 1))
        self.refused("resize: mode is 'bilinear'; it may be nearest, linear, cubic.", "resize", x, 0, 2, 1.0, mode="bilinear")
        self.refused("resize: mode linear takes floating-point elements, not i32.", "resize", some(3, dtype=np.int32), 0, 2, 1.0)

    def test_norms_of_windows(self):
        x = some(2, 3, 6, 7)
        for p in (1.0, 2.0, 3.5):
            padded = np.pad(np.abs(x.astype(np.float64)) ** p, ((0, 0), (0, 0), (1, 1), (1, 1)))
            view = np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3))[:, :, ::2, ::2]
            want = view.sum((-1, -2)) ** (1 / p)
            np.testing.assert_allclose(run("lp_pool", x, p, [3, 2], 2, padding=1)[0], want, rtol=1e-5)
        self.refused("lp_pool: norm_type is 0; it must be above 0 and finite.", "lp_pool", x, 0.0, 2)


class Samples(OpTest):
    def test_bits_and_whole_numbers(self):
        words = [int(word) for word in philox.words(7, 3, 20)]
        self.assertEqual(run("philox_bits", [18], 7, 3, dtype=Dtype("i32"))[0].astype(np.uint32).tolist(), words[:18])
        wide = [words[2 * i] << 32 | words[2 * i + 1] for i in range(10)]
        self.assertEqual(run("philox_bits", [10], 7, 3)[0].astype(np.uint64).tolist(), wide)
        got = run("randint", -3, 4, [2000])[0]
        self.assertEqual((got.dtype, sorted(set(got.tolist()))), (np.int64, list(range(-3, 4))))
        self.assertLess(abs(np.mean(got)), 0.2)
        self.assertEqual(sorted(set(run("randint", 4, [200])[0].tolist())), [0, 1, 2, 3])
        self.assertEqual(run("randint_like", some(3, 2), 0, 9)[0].dtype, np.float32)
        self.refused("randint: high is 2; it must be above low (2).", "randint", 2, 2, [3])

    def test_distributions(self):
        mean, std = some(4000, 2), np.array([0.5, 2], np.float32)
        got = run("normal", mean, std)[0] - mean
        np.testing.assert_allclose(got.std(0), std, rtol=0.1)
        self.assertLess(np.abs(got.mean(0)).max(), 0.15)
        drawn = run("exponential", np.zeros(8000, np.float32), 2.0)[0]
        self.assertTrue(drawn.min() >= 0 and abs(drawn.mean() - 0.5) < 0.03 and abs(drawn.std() - 0.5) < 0.05)

    def test_multinomial(self):
        p = np.array([0.1, 0, 0.6, 0.3], np.float32)
        got = run("multinomial", p, 3000, True)[0]
        np.testing.assert_allclose(np.bincount(got, minlength=4) / 3000, p, atol=0.04)
        for row in run("multinomial", np.ones((5, 4), np.float32), 4)[0]:
            self.assertEqual(sorted(row.tolist()), [0, 1, 2, 3])
        many = run("multinomial", np.array([[1, 0, 3, 0], [0, 2, 2, 4]], np.float32), 100000, True)[0]
        shares = np.stack([np.bincount(row, minlength=4) / 100000 for row in many])
        np.testing.assert_allclose(shares, [[0.25, 0, 0.75, 0], [0, 0.25, 0.25, 0.5]], atol=0.01)
        self.assertEqual((shares == 0).tolist(), [[False, True, False, True], [True, False, False, False]])
        for _ in range(50):
            self.assertEqual(sorted(run("multinomial", np.array([0, 1, 0, 2, 0], np.float32), 2)[0].tolist()), [1, 3])
        first = [run("multinomial", np.array([3, 1], np.float64), 1)[0][0] for _ in range(400)]
        self.assertLess(abs(np.mean(first) - 0.25), 0.1)
        self.refused("multinomial: 5 samples cannot be drawn from 4 places without replacement.", "multinomial", p, 5)
