"""Matrix products, linear, convolutions and attention."""

import itertools

import numpy as np
import scipy.special

from numpy_runner import OPTIONS, Call, OpTest, Refused, run, some
from numpy_unary import UNARY


def conv_plain(x, w, b, stride, low, high, dilation, groups):
    """Cross-correlation by its definition."""
    n, c = x.shape[:2]
    o, per_group, kernel = w.shape[0], w.shape[1], w.shape[2:]
    x = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + list(zip(low, high)))
    out = [(d - dil * (k - 1) - 1) // s + 1 for d, k, s, dil in zip(x.shape[2:], kernel, stride, dilation)]
    y = np.zeros((n, o, *out))
    for position in np.ndindex(*out):
        window = tuple(slice(p * s, p * s + dil * (k - 1) + 1, dil) for p, s, k, dil in zip(position, stride, kernel, dilation))
        for channel in range(o):
            first = channel // (o // groups) * per_group
            part = x[(slice(None), slice(first, first + per_group), *window)]
            y[(slice(None), channel, *position)] = (part * w[channel]).reshape(n, -1).sum(1)
    return y if b is None else y + b.reshape(-1, *[1] * len(kernel))


def transposed_plain(x, w, b, stride, low, high, dilation, groups, extra):
    """Each input element adds its weighted window to the output."""
    n, c = x.shape[:2]
    per_group, kernel = w.shape[1], w.shape[2:]
    full = [(d - 1) * s + dil * (k - 1) + 1 + e for d, s, k, dil, e in zip(x.shape[2:], stride, kernel, dilation, extra)]
    y = np.zeros((n, per_group * groups, *full))
    for position in np.ndindex(*x.shape[2:]):
        window = tuple(slice(p * s, p * s + dil * (k - 1) + 1, dil) for p, s, k, dil in zip(position, stride, kernel, dilation))
        for channel in range(c):
            first = channel // (c // groups) * per_group
            value = x[(slice(None), channel, *position)].astype(np.float64)
            y[(slice(None), slice(first, first + per_group), *window)] += value.reshape(n, 1, *[1] * len(kernel)) * w[channel]
    crop = tuple(slice(l, f - h) for l, h, f in zip(low, high, full))
    y = y[(slice(None), slice(None), *crop)]
    return y if b is None else y + b.reshape(-1, *[1] * len(kernel))


class Products(OpTest):
    def product(self, x, y):
        return np.asarray(np.matmul(x.astype(np.float64), y.astype(np.float64)))

    def test_matmul_shapes(self):
        for a, b in (((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (2, 4, 5)), ((4,), (4, 5)),
                     ((3, 4), (4,)), ((4,), (4,)), ((2, 1, 3, 4), (5, 4, 2)), ((1, 4), (4, 1)), ((2, 1, 4), (4, 3))):
            x, y = some(*a), some(*b)
            with self.subTest(a=a, b=b):
                self.check(self.product(x, y), "matmul", x, y, dtype="f32", rtol=1e-4, atol=1e-5)
        for dtype in (np.float32, np.float64):
            self.check(np.zeros((3, 5), dtype), "matmul", np.zeros((3, 0), dtype), np.zeros((0, 5), dtype))
            self.check(np.zeros((70, 50), dtype), "matmul", np.zeros((70, 0), dtype), np.zeros((0, 50), dtype))
        with self.assertRaisesRegex(Refused, r"matmul: columns of .* \(25\) do not match rows of .* \(256\)"):
            run("matmul", some(2, 25), some(256, 3))

    def test_linear(self):
        x, w, b = some(2, 3, 4), some(5, 4), some(5)
        plain = self.product(x, w.T)
        self.check(plain + b, "linear", x, w, b, dtype="f32", rtol=1e-4, atol=1e-5)
        self.check(self.product(x[0, 0], w.T), "linear", x[0, 0], w, dtype="f32", rtol=1e-4, atol=1e-5)

    def test_a_bias_with_gaps(self):
        for rows, length, columns in ((2, 4, 5), (40, 65, 80), (300, 256, 100)):
            x, w, pair = some(rows, length), some(columns, length), some(columns, 2)
            got = run("linear", x, w, Call("select", pair, 1, 0))[0]
            self.close(got, self.product(x, w.T) + pair[:, 0], rtol=1e-4, atol=1e-4)

    def test_convolution(self):
        cases = ((1, (2, 4, 9), (6, 4, 3)), (2, (2, 4, 7, 6), (6, 2, 3, 2)), (3, (1, 2, 5, 4, 6), (2, 2, 2, 3, 1)))
        for spatial, xs, ws in cases:
            groups = xs[1] // ws[1]
            x, w, b = some(*xs), some(*ws), some(ws[0])
            stride, low, high, dilation = [2] * spatial, [1] * spatial, [0] * spatial, [1] * (spatial - 1) + [2]
            expected = conv_plain(x, w, b, stride, low, high, dilation, groups)
            with self.subTest(spatial=spatial):
                self.check(expected, "conv", x, w, b, stride, low + high, dilation, groups, dtype="f32", rtol=1e-4, atol=1e-5)
                bare = conv_plain(x, w, None, [1] * spatial, [1] * spatial, [1] * spatial, [1] * spatial, groups)
                self.check(bare, f"conv{spatial}d", x, w, None, 1, 1, groups=groups, dtype="f32", rtol=1e-4, atol=1e-5)
        x, w = some(2, 6, 5, 5), some(6, 1, 3, 3)
        expected = conv_plain(x, w, None, [1, 1], [1, 1], [1, 1], [1, 1], 6)
        self.check(expected, "conv", x, w, padding=1, groups=6, dtype="f32", rtol=1e-4, atol=1e-5)
        with self.assertRaisesRegex(Refused, "conv2d: .* must have rank 4"):
            run("conv2d", some(1, 2, 3), w)
        self.refused("conv: stride has 3 numbers; it needs 1 or 2.", "conv", x, w, stride=[1, 1, 1])

    def test_transposed_convolution(self):
        x, w, b = some(2, 4, 5, 3), some(4, 3, 3, 2), some(6)
        expected = transposed_plain(x, w, b, [2, 3], [1, 0], [1, 0], [1, 2], 2, [1, 0])
        self.check(expected, "conv_transpose", x, w, b, [2, 3], [1, 0], [1, 0], 2, [1, 2], dtype="f32", rtol=1e-4, atol=1e-5)
        x, w = some(1, 2, 6), some(2, 3, 4)
        self.check(transposed_plain(x, w, None, [1], [0], [0], [1], 1, [0]), "conv_transpose", x, w, dtype="f32", rtol=1e-4,
                   atol=1e-5)

    def test_convolutions_of_integers_wrap(self):
        rng = np.random.default_rng(5)
        for dtype in (np.int8, np.uint8, np.int16, np.int32, np.int64):
            def whole(*shape):
                return rng.integers(-100, 100, shape).astype(dtype)
            for spatial, xs, ws in ((1, (2, 4, 9), (6, 4, 3)), (2, (2, 4, 7, 6), (6, 2, 3, 2)), (3, (1, 2, 5, 4, 6), (2, 2, 2, 3, 1))):
                groups = xs[1] // ws[1]
                x, w, b = whole(*xs), whole(*ws), whole(ws[0])
                stride, low, high, dilation = [2] * spatial, [1] * spatial, [0] * spatial, [1] * (spatial - 1) + [2]
                expected = conv_plain(x, w, b, stride, low, high, dilation, groups).astype(np.int64).astype(dtype)
                with self.subTest(spatial=spatial, dtype=dtype.__name__):
                    self.check(expected, "conv", x, w, b, stride, low + high, dilation, groups)
            x, w, b = whole(2, 4, 5, 3), whole(4, 3, 3, 2), whole(6)
            expected = transposed_plain(x, w, b, [2, 3], [1, 0], [1, 0], [1, 2], 2, [1, 0]).astype(np.int64).astype(dtype)
            with self.subTest(dtype=dtype.__name__):
                self.check(expected, "conv_transpose", x, w, b, [2, 3], [1, 0], [1, 0], 2, [1, 2])

    def test_attention(self):
        q, k, v = some(2, 3, 5, 4), some(2, 3, 6, 4), some(2, 3, 6, 4)
        scores = self.product(q, k.swapaxes(-1, -2)) / 2
        tolerance = dict(dtype="f32", rtol=1e-4, atol=1e-5)
        op = "scaled_dot_product_attention"
        self.check(self.product(scipy.special.softmax(scores, -1), v), op, q, k, v, **tolerance)
        mask = some(5, 6)
        self.check(self.product(scipy.special.softmax(scores + mask, -1), v), op, q, k, v, mask, **tolerance)
        causal = np.tril(np.ones((5, 6), bool))
        expected = self.product(scipy.special.softmax(np.where(causal, scores, -np.inf), -1), v)
        self.check(expected, op, q, k, v, is_causal=True, **tolerance)
        self.check(expected, op, q, k, v, causal, **tolerance)
        self.refused(f"{op}: is_causal and attn_mask exclude each other.", op, q, k, v, mask, is_causal=True)
        # a query without keys, batches that broadcast, heads that share keys, ranks 2 and 5
        causal[2] = False
        expected[:, :, 2] = 0
        self.check(expected, op, q, k, v, causal, **tolerance)
        self.check(self.product(scipy.special.softmax(self.product(q, k[:1].swapaxes(-1, -2)) / 2, -1), v), op, q, k[:1], v, **tolerance)
        wide = some(2, 6, 5, 4)
        heads = lambda x: np.repeat(x, 2, 1)
        shared = self.product(scipy.special.softmax(self.product(wide, heads(k).swapaxes(-1, -2)) / 2, -1), heads(v))
        self.check(shared, op, wide, k, v, enable_gqa=True, **tolerance)
        flat = self.product(scipy.special.softmax(self.product(q[0, 0], k[0, 0].T) * 3, -1), v[0, 0])
        self.check(flat, op, q[0, 0], k[0, 0], v[0, 0], scale=3.0, **tolerance)
        self.check(self.product(scipy.special.softmax(scores, -1), v)[None], op, q[None], k[None], v[None], **tolerance)
        if not OPTIONS:  # taken apart, another op refuses
            self.refused(f"{op}: attention: 4 heads of query are not a multiple of 3 heads of key.", op, some(2, 4, 5, 4), k, v, enable_gqa=True)

    def test_attention_with_windows_lengths_and_log_sum(self):
        q, k, v, bias = some(2, 6, 5, 4), some(2, 3, 8, 4), some(2, 3, 8, 7), some(2, 1, 5, 8)
        lengths = np.array([8, 3])
        for before, after, align_end, softcap in itertools.product((-1, 2), (-1, 0), (False, True), (0.0, 1.5)):
            scores = np.einsum("bhqw,bhkw->bhqk", q.astype(np.float64), np.repeat(k, 2, 1)) * 0.7
            scores = (softcap * np.tanh(scores / softcap) if softcap else scores) + bias
            row, column = np.arange(5)[:, None], np.arange(8)
            for i in range(2):
                at = row + (lengths[i] - 5 if align_end else 0)
                out = (column >= lengths[i]) | ((before >= 0) & (column < at - before)) | ((after >= 0) & (column > at + after))
                scores[i] = np.where(out, -np.inf, scores[i])
            with np.errstate(divide="ignore"):
                log_sum = np.log(np.exp(scores).sum(-1, keepdims=True))
            weights = np.exp(scores - np.where(np.isinf(log_sum), 0, log_sum))
            want = np.einsum("bhqk,bhkv->bhqv", weights, np.repeat(v, 2, 1))
            how = dict(before=before, after=after, align_end=align_end, scale=0.7, softcap=softcap)
            self.check(want, "attention", q, k, v, bias, lengths, dtype="f32", rtol=1e-4, atol=1e-5, **how)
            got = run("attention_with_log_sum", q, k, v, bias, lengths, **how)
            np.testing.assert_allclose(got[0], want, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(got[1], log_sum, rtol=1e-4, atol=1e-5)
        if not OPTIONS:  # taken apart, another op refuses
            self.refused("attention: lengths has shape [3] but must have shape [2].", "attention", q, k, v, None, np.array([1, 2, 3]))
        self.refused("attention: before is -2 and after is -1; both must be at least -1.", "attention", q, k, v, before=-2)
        if not OPTIONS:  # taken apart, another op refuses
            self.refused("attention: bias has shape [4, 8], which does not broadcast to [2, 6, 5, 8].", "attention", q, k, v, some(4, 8))

    def test_rotary_embedding(self):
        for interleaved, pairs in itertools.product((False, True), (1, 3, 4)):
            x, table = some(2, 3, 5, 8), some(9, pairs)
            places = np.array([[0, 8, -1, 3, 3], [1, 2, 3, 4, -9]])
            first = np.s_[..., 0:2 * pairs:2] if interleaved else np.s_[..., 0:pairs]
            second = np.s_[..., 1:2 * pairs:2] if interleaved else np.s_[..., pairs:2 * pairs]
            for cos, sin, positions in ((table[:5], table[4:], None), (table, table[::-1].copy(), places)):
                angle = cos + 1j * sin if positions is None else (cos + 1j * sin)[positions][:, None]
                turned = (x[first] + 1j * x[second]) * angle
                want = x.copy()
                want[first], want[second] = turned.real, turned.imag
                self.check(want, "rotary_embedding", x, cos, sin, positions, interleaved=interleaved, dtype="f32", rtol=1e-5, atol=1e-6)
        if not OPTIONS:  # taken apart, another op refuses
            self.refused("rotary_embedding: 5 pairs do not fit in rows of 8 elements.", "rotary_embedding", some(2, 3, 5, 8), some(5, 5), some(5, 5))
