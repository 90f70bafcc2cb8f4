"""Pooling."""

import numpy as np

from numpy_runner import OpTest, run, some


def pool_plain(x, kernel, stride, low, high, dilation, ceil_mode, reduce):
    out = []
    for d, k, s, l, h, dil in zip(x.shape[2:], kernel, stride, low, high, dilation):
        span = d + l + h - dil * (k - 1) - 1
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= d + l:
            count -= 1
        out.append(count)
    y = np.zeros((*x.shape[:2], *out))
    where = np.zeros(y.shape, np.int64)
    for position in np.ndindex(*out):
        for n, c in np.ndindex(*x.shape[:2]):
            values, places, padded = [], [], 0
            for offset in np.ndindex(*kernel):
                at = [p * s - l + o * dil for p, s, l, o, dil in zip(position, stride, low, offset, dilation)]
                if all(0 <= a < d for a, d in zip(at, x.shape[2:])):
                    values.append(x[(n, c, *at)])
                    places.append(int(np.ravel_multi_index(at, x.shape[2:])))
                if all(-l <= a < d + h for a, d, l, h in zip(at, x.shape[2:], low, high)):
                    padded += 1
            y[(n, c, *position)], index = reduce(values, padded)
            where[(n, c, *position)] = places[index]
    return y, where


def maximum_of(values, padded):
    return max(values), int(np.argmax(values))


class Pooling(OpTest):
    def test_max(self):
        for xs, kernel, stride, pad, dilation, ceil in (((2, 3, 9), [3], [2], [1], [1], False),
                                                         ((2, 3, 7, 6), [3, 2], [2, 2], [1, 0], [1, 2], False),
                                                         ((1, 2, 8, 8), [3, 3], [2, 2], [1, 1], [1, 1], True),
                                                         ((1, 2, 4, 5, 6), [2, 2, 2], [2, 1, 2], [0, 1, 0], [1, 1, 1], False)):
            x = some(*xs)
            values, places = pool_plain(x, kernel, stride, pad, pad, dilation, ceil, maximum_of)
            with self.subTest(xs=xs):
                self.check(values, "max_pool", x, kernel, stride, pad, dilation, ceil, dtype="f32")
                results = run("max_pool_with_indices", x, kernel, stride, pad, dilation, ceil)
                self.close(results[0], values)
                self.close(results[1], places)
        x = some(2, 3, 6, 6)
        self.check(pool_plain(x, [2, 2], [2, 2], [0, 0], [0, 0], [1, 1], False, maximum_of)[0], "max_pool2d", x, 2, dtype="f32")

    def test_average(self):
        x = some(2, 3, 7, 6)
        inside = pool_plain(x, [3, 2], [2, 2], [1, 1], [1, 0], [1, 1], False, lambda v, n: (sum(v) / len(v), 0))[0]
        padded = pool_plain(x, [3, 2], [2, 2], [1, 1], [1, 0], [1, 1], False, lambda v, n: (sum(v) / n, 0))[0]
        self.check(inside, "avg_pool", x, [3, 2], 2, [1, 1, 1, 0], False, False, dtype="f32")
        self.check(padded, "avg_pool", x, [3, 2], 2, [1, 1, 1, 0], dtype="f32")
        self.check(pool_plain(x, [2, 2], [2, 2], [0, 0], [0, 0], [1, 1], False, lambda v, n: (sum(v) / n, 0))[0],
                   "avg_pool2d", x, 2, dtype="f32")
        whole = some(2, 3, 6, 6, dtype=np.int64, low=-9, high=9)
        means = whole.reshape(2, 3, 3, 2, 3, 2).sum((3, 5)) / 4
        self.check(np.trunc(means).astype(np.int64), "avg_pool", whole, 2)

    def test_adaptive(self):
        x = some(2, 3, 6, 4)
        self.check(x.mean((2, 3), keepdims=True), "adaptive_avg_pool", x, 1, rtol=1e-4)
        self.check(x.reshape(2, 3, 3, 2, 2, 2).mean((3, 5)), "adaptive_avg_pool", x, [3, 2], rtol=1e-4)
        self.refused("adaptive_avg_pool: output size 4 does not divide spatial axis 0 of length 6.", "adaptive_avg_pool", x, 4)
