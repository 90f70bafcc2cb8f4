"""Scans, sorts, coordinates, and ops that count and find."""

import numpy as np

from numpy_runner import Dtype, OpTest, Refused, random, run, some, strided


def few(*shape, dtype=np.float32):
    """Few different numbers, so that some are equal."""
    return random.integers(-4, 5, shape).astype(dtype)


def odd(*shape):
    """Like the function above, with NaN, infinities and both zeros."""
    return random.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5], np.float32), shape)


def sorted_stably(x, axis, descending):
    if not descending:
        positions = np.argsort(x, axis=axis, kind="stable")
    else:
        turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
        positions = np.flip(x.shape[axis] - 1 - turned, axis)
    return np.take_along_axis(x, positions, axis), positions


class Order(OpTest):
    def test_scans(self):
        x = some(3, 5, 4)
        for axis in (0, 1, -1):
            self.check(np.cumsum(x, axis), "cumsum", x, axis)
            self.check(np.cumprod(x, axis), "cumprod", x, axis, rtol=1e-4)
            self.check(np.logaddexp.accumulate(x.astype(np.float64), axis).astype(np.float32), "logcumsumexp", x, axis)
        turned = np.flip(np.cumsum(np.flip(x, 1), 1), 1)
        self.check(turned, "cumsum", x, 1, reverse=True)
        self.check(turned - x, "cumsum", x, 1, reverse=True, exclusive=True, atol=1e-5)
        self.check(np.cumsum(few(7, dtype=np.int32) * 0 + 3, dtype=np.int64), "cumsum", np.full(7, 3, np.int32), 0)
        self.check(np.cumsum(np.array([True, False, True])), "cumsum", np.array([True, False, True]), 0)
        self.close(run("cumsum", x, 0, dtype=Dtype("f64"))[0], np.cumsum(x, 0, dtype=np.float64))
        self.check(np.float32(2), "cumsum", np.float32(2), 0)
        self.assertEqual(run("cumsum", np.zeros((2, 0), np.float32), 1)[0].shape, (2, 0))
        long = some(200001)
        self.check(np.cumsum(long, dtype=np.float64).astype(np.float32), "cumsum", long, 0, atol=1e-3)

    def test_long_lines_of_scans(self):
        """Lines that several threads share, and lines side by side."""
        for shape, axis in (((70003,), 0), ((203, 70), 0)):
            x = some(*shape)
            for reverse in (False, True):
                turn = (lambda a: np.flip(a, axis)) if reverse else (lambda a: a)
                want = turn(np.logaddexp.accumulate(turn(x).astype(np.float64), axis)).astype(np.float32)
                if not reverse:
                    self.check(want, "logcumsumexp", x, axis)
                near = 1 + x * np.float32(1e-3)
                self.check(turn(np.cumprod(turn(near), axis, dtype=np.float64)).astype(np.float32), "cumprod", near, axis,
                           reverse=reverse)
                self.check(turn(np.cumsum(turn(x), axis, dtype=np.float64)).astype(np.float32), "cumsum", x, axis,
                           reverse=reverse, atol=1e-4)
            for line in (x, np.sort(x, axis), few(*shape), odd(*shape)):
                for op, function, best in (("cummax", np.maximum, np.greater_equal), ("cummin", np.minimum, np.less_equal)):
                    values = function.accumulate(line, axis)
                    steps = np.arange(line.shape[axis]).reshape((-1,) + (1,) * (line.ndim - 1))
                    places = np.maximum.accumulate(np.where(best(line, values) | np.isnan(line), steps, -1), axis)
                    self.check([values, places], op, line, axis)

    def test_a_product_stays_zero(self):
        """Parts of a line overflow alone."""
        x = np.full(70003, 2, np.float32)
        x[5] = 0
        self.check(np.cumprod(x), "cumprod", x, 0)

    def test_scans_of_extremes(self):
        x = few(5, 9)
        for op, function, best in (("cummax", np.maximum, np.greater_equal), ("cummin", np.minimum, np.less_equal)):
            values = function.accumulate(x, 1)
            places = np.maximum.accumulate(np.where(best(x, values), np.arange(9), -1), 1)
            self.check([values, places], op, x, 1)
        got = run("cummax", np.array([1, np.nan, 2, np.nan], np.float32), 0)
        np.testing.assert_array_equal(got[0], [1, np.nan, np.nan, np.nan])
        np.testing.assert_array_equal(got[1], [0, 1, 1, 3])

    def test_sorts(self):
        for x in (few(4, 9), odd(5, 7), few(3, 4, 5, dtype=np.int64), some(2, 70001)):
            for axis in range(-1, x.ndim - 1):
                for descending in (False, True):
                    values, positions = sorted_stably(x, axis, descending)
                    self.check([values, positions], "sort", x, axis, descending)
                    self.check(positions, "argsort", x, axis, descending)
        x = few(6, 3)
        self.check(np.sort(x, 0), "msort", x)
        self.check([np.float32(2), np.int64(0)], "sort", np.float32(2))
        self.assertEqual([each.shape for each in run("sort", np.zeros((0, 3), np.float32), 0)], [(0, 3)] * 2)

    def test_top_k(self):
        ends = np.iinfo(np.int32)
        for x in (few(4, 30), odd(5, 17), some(1, 100001), few(3, 203), odd(2, 1024), odd(2, 1025), few(3, 131).astype(np.float16),
                  np.tile(np.int32([[ends.max, ends.min, ends.max]]), 67), np.full((2, 99), np.nan, np.float32)):
            for k in (0, 1, 2, 4, 5, x.shape[1]):
                if k > 50:
                    continue
                for largest in (True, False):
                    values, positions = sorted_stably(x, 1, largest)
                    self.check([values[:, :k], positions[:, :k]], "topk", x, k, 1, largest)
        # Lines whose samples mislead: few of the first k, at even distances; ordered lines; and equal elements.
        uneven = np.zeros((3, 1000), np.float32)
        uneven[:, ::8] = np.arange(1, 126, dtype=np.float32)
        for x in (uneven, -uneven, np.arange(3000, dtype=np.float32).reshape(3, 1000), np.ones((2, 4097), np.float32),
                  np.repeat(np.int64([[-2**63, 2**63 - 1]]), 700, 1)):
            for k in (20, 64, 130):
                for largest in (True, False):
                    values, positions = sorted_stably(x, 1, largest)
                    self.check([values[:, :k], positions[:, :k]], "topk", x, k, 1, largest)
        self.refused("topk: k is 4, but the axis has 3 elements.", "topk", some(2, 3), 4)

    def test_lines_in_order(self):
        """Lines that rise or fall, with equal elements at the k-th place, both zeros, NaN; and ones that only begin so."""
        steps = np.sort(random.integers(-40, 41, (3, 700)), 1)
        zeros = np.repeat(np.float32([[-1, -0.0, 0.0, -0.0, 2]]), 60, 1)
        late = np.arange(901, dtype=np.float32)[None] + 5
        late[0, 900] = 7
        broken = late.copy()
        broken[0, 899:] = np.nan
        for x in (steps.astype(np.float32), steps, (steps & 127).astype(np.uint8), steps.astype(np.float16), zeros, late, broken):
            for line in (x, np.ascontiguousarray(x[:, ::-1])):
                for k in (1, 64, 200):
                    for largest in (True, False):
                        values, positions = sorted_stably(line, 1, largest)
                        self.check([values[:, :k], positions[:, :k]], "topk", line, k, 1, largest)

    def test_long_keys(self):
        """Random ones, each once or several times, ones that differ in their last bits alone, many equal ones, and some in
        each of many groups that share the first bits: by short digits and by long ones."""
        numbers = np.random.default_rng(3)
        for n in (200, 3001, 17011, 40000, 100003):  # several threads sort parts of the longest array
            for x in (numbers.integers(-2**62, 2**62, n), numbers.choice(numbers.integers(-2**62, 2**62, n // 4), n),
                      numbers.integers(0, n, n), numbers.integers(0, 9, n) << 50,
                      (numbers.integers(0, 3, n) << 60) + numbers.integers(0, 1000, n),
                      (numbers.choice(numbers.integers(-2**21, 2**21, n // 4), n) << 42) + numbers.integers(0, 2**42, n)):
                for descending in (False, True):
                    values, positions = sorted_stably(x[None], 1, descending)
                    self.check([values[0], positions[0]], "sort", x, 0, descending)

    def test_middle_elements(self):
        x = few(5, 8)
        values, positions = sorted_stably(x, 1, False)
        self.check([values[:, 2], positions[:, 2]], "kthvalue", x, 3, 1)
        self.check([values[:, 2:3], positions[:, 2:3]], "kthvalue", x, 3, 1, True)
        self.check([values[:, 3], positions[:, 3]], "median", x, 1)
        self.check(np.sort(x.ravel())[19], "median", x)
        for n in (1, 20001):  # beyond 16384 only those that share the median's first bits are put in order
            long = some(n) ** 3
            self.check(np.sort(long)[(n - 1) // 2], "median", long)
            long[n // 3] = np.nan
            self.assertTrue(np.isnan(run("median", long)[0]))
        broken = x.copy()
        broken[2, 4] = np.nan
        got = run("median", broken, 1)
        self.assertTrue(np.isnan(got[0][2]) and got[1][2] == 4 and not np.isnan(got[0][1]))
        self.refused("kthvalue: k is 9, but the axis has 8 elements.", "kthvalue", x, 9)

    def test_unique(self):
        for x in (few(7, 6), few(40, dtype=np.int64), few(9, dtype=np.int32) > 0):
            values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
            got = run("unique", x, True, True, True)
            for array, want in zip(got, (values, inverse.reshape(x.shape), counts)):
                self.close(array, want)
            got = run("unique", strided(x) if x.ndim > 1 else x)
            self.close(got[0], values)
            # Results that were not requested are empty; Python leaves them out.
            self.assertTrue(all(each.shape == (0,) for each in got[1:]))
        rows = np.repeat(few(4, 2, dtype=np.int64), 3, 0)
        values, inverse, counts = np.unique(rows, return_inverse=True, return_counts=True, axis=0)
        for array, want in zip(run("unique", rows, True, True, True, 0), (values, inverse.ravel(), counts)):
            self.close(array, want)
        self.close(run("unique", np.array([np.nan, 1, np.nan], np.float32))[0], np.array([1, np.nan, np.nan], np.float32))
        self.assertEqual(run("unique", np.zeros(0, np.float32))[0].shape, (0,))
        x = np.array([3, 3, 1, 1, 1, 3], np.int64)
        for array, want in zip(run("unique_consecutive", x, True, True), ([3, 1, 3], [0, 0, 1, 1, 1, 2], [2, 3, 1])):
            self.close(array, np.array(want))
        got = run("unique_padded", x, order="first", return_index=True)
        for array, want in zip(got, ([3, 1, 0, 0, 0, 0], [2], [0, 2, 0, 0, 0, 0])):
            self.close(array, np.array(want))
        self.refused("unique_padded: order is 'last'; it may be 'sorted', 'first' or 'consecutive'.", "unique_padded", x, order="last")

    def test_unique_slices(self):
        """Few long slices and many short ones, along every axis, of views too."""
        for shape in ((3, 700), (700, 3), (3, 5, 70), (2, 3, 5, 7)):
            for dtype in (np.float32, np.float64, np.int8, np.int64, np.float16):
                for axis in range(len(shape)):
                    some_of = np.sort(random.integers(0, (shape[axis] + 1) // 2, shape[axis]))
                    x = np.take(few(*shape, dtype=dtype), some_of, axis)
                    shuffled = np.take(x, random.permutation(shape[axis]), axis)
                    values, inverse, counts = np.unique(shuffled, return_inverse=True, return_counts=True, axis=axis)
                    for given in (shuffled, strided(shuffled)):
                        for array, want in zip(run("unique", given, True, True, True, axis), (values, inverse.ravel(), counts)):
                            self.close(array, want)
                    rows = np.moveaxis(x, axis, 0).reshape(shape[axis], -1)
                    starts = np.append(True, (rows[1:] != rows[:-1]).any(1))
                    sizes = np.diff(np.append(np.flatnonzero(starts), len(starts)))
                    for given in (x, strided(x)):
                        for array, want in zip(run("unique_consecutive", given, True, True, axis),
                                               (np.compress(starts, x, axis), np.cumsum(starts) - 1, sizes)):
                            self.close(array, want)
        for dtype in (np.float32, np.float64, np.float16):
            zeros = np.zeros((3, 200), dtype)
            zeros[1, 5:] = -0.0
            self.assertEqual(run("unique", zeros, True, False, False, 0)[0].shape, (1, 200))
            zeros[:, 150] = np.nan
            self.assertEqual(run("unique", zeros, True, False, False, 0)[0].shape, (3, 200))
            self.assertEqual(run("unique_consecutive", zeros, False, False, 0)[0].shape, (3, 200))

    def test_neighbours(self):
        """All different, all equal, and pieces of both."""
        pieces = np.concatenate([np.arange(3000), np.full(2500, 7), np.repeat(np.arange(900), 2)])
        for x in (pieces, np.arange(5000), np.zeros(4097), np.arange(1)):
            for dtype in (np.float32, np.int64, np.uint8):
                line = x.astype(dtype)
                starts = np.flatnonzero(np.append(True, line[1:] != line[:-1]))
                self.close(run("unique_consecutive", line)[0], line[starts])
                for got, want in zip(run("unique_consecutive", line, True, True),
                                     (line[starts], np.cumsum(np.append(False, line[1:] != line[:-1])),
                                      np.diff(np.append(starts, len(line))))):
                    self.close(got, want)

    def test_counts(self):
        """Short and long lists of short and long ranges, and numbers that may not be."""
        for n in (1, 7, 300, 70001):
            for most in (1, 50, 9000):
                for dtype in (np.int64, np.int32, np.uint8, np.int16):
                    x = random.integers(0, min(most, np.iinfo(dtype).max), n).astype(dtype)
                    self.close(run("bincount", x)[0], np.bincount(x))
                    self.close(run("bincount", x, None, 77)[0], np.bincount(x, minlength=77))
        for dtype in (np.int64, np.int32, np.uint8):  # this many are counted in one pass if all are small
            for high in (250, 4096, 5000):
                x = random.integers(0, min(high, 256 if dtype == np.uint8 else high), 140009).astype(dtype)
                self.close(run("bincount", x)[0], np.bincount(x))
                self.close(run("bincount", x, None, 7000)[0], np.bincount(x, minlength=7000))
        many = random.integers(0, 100, 140009)
        many[-3] = -1
        self.refused("bincount: input has the element -1; none may be negative.", "bincount", many)
        self.refused("bincount: input has the element -1; none may be negative.", "bincount", np.array([3, -1, 2]))

    def test_unique_of_a_rising_list(self):
        """And of one that rises but for an element near its end."""
        x = np.sort(random.integers(-9000, 9000, 40001)) // 2
        for late in (None, 20000, 39990):
            if late is not None:
                x[late] = -9999
            for dtype in (np.float32, np.int64, np.int32):
                line = x.astype(dtype)
                for got, want in zip(run("unique", line, True, True, True), np.unique(line, False, True, True)):
                    self.close(got, want)
                got = run("unique_padded", line, order="first", return_index=True)
                firsts = np.sort(np.unique(line, True)[1])
                self.close(got[0][:len(firsts)], line[firsts])
                self.close(got[2][:len(firsts)], firsts)
        zeros = np.repeat(np.array([-3, -0.0, 0.0, np.inf, np.nan], np.float32), [2, 1, 4999, 7, 1])
        values, _, counts = run("unique", zeros, True, True, True)
        np.testing.assert_array_equal(values, np.array([-3, 0, np.inf, np.nan], np.float32))
        self.close(counts, np.array([2, 5000, 7, 1]))


class Searches(OpTest):
    def test_searchsorted(self):
        sequence = np.sort(few(13))
        x = some(4, 5, low=-6, high=6).round(0)
        for right in (False, True):
            want = np.searchsorted(sequence, x, "right" if right else "left")
            self.check(want, "searchsorted", sequence, x, right=right)
            self.check(want, "bucketize", x, sequence, right=right)
            for dtype in (np.float32, np.float64, np.int32, np.int64):
                many, places = np.sort(some(301, dtype=dtype, low=-90, high=90)), some(3, 37, dtype=dtype, low=-99, high=99)
                self.check(np.searchsorted(many, places, "right" if right else "left"), "searchsorted", many, places, right=right)
        self.check(np.searchsorted(sequence, x).astype(np.int32), "searchsorted", sequence, x, out_int32=True)
        rows = np.sort(few(3, 6), 1)
        values = few(3, 4)
        self.check(np.stack([np.searchsorted(a, b) for a, b in zip(rows, values)]), "searchsorted", rows, values)
        self.check(np.zeros((4, 5), np.int64), "searchsorted", np.zeros(0, np.float32), x)
        for dims in ((2, 4, 3), (4,), (5, 3)):  # another rank, where the axes that both have are equal or not; other lists
            text = f"searchsorted: sorted_sequence of shape [2, 6] and input of shape [{', '.join(map(str, dims))}] must have the same axes before the last."
            self.refused(text, "searchsorted", np.sort(some(2, 6)), some(*dims))
        self.refused("bucketize: boundaries has rank 2; it must be a list.", "bucketize", x, rows)

    def test_isin(self):
        x, tests = few(6, 7), few(3)
        self.check(np.isin(x, tests), "isin", x, tests)
        self.check(np.isin(x, tests, invert=True), "isin", x, tests, invert=True)
        self.check(np.zeros(x.shape, bool), "isin", x, np.zeros(0, np.float32))

    def test_differences(self):
        x = some(4, 6)
        for n in (0, 1, 2, 7):
            self.check(np.diff(x, n) if n < 6 else x[:, :0], "diff", x, n)
        self.check(np.diff(x, axis=0), "diff", x, 1, 0)
        self.check(np.diff(x > 0), "diff", x > 0)
        places = np.sort(some(6))
        trapezoid = getattr(np, "trapezoid", None) or np.trapz  # its name until NumPy 2
        self.check(trapezoid(x, places, axis=1), "trapezoid", x, places, atol=1e-5)
        self.check(trapezoid(x, dx=0.5, axis=0), "trapezoid", x, dx=0.5, dim=0, atol=1e-5)


class Which(OpTest):
    def test_nonzero(self):
        for x in (few(6, 7), few(9, dtype=np.int64), few(3, 4, 5) > 0, few(300, 40)):
            want = np.argwhere(x)
            self.check(want, "nonzero", x)
            self.check(want, "argwhere", x)
            self.check(np.int64(len(want)), "count_nonzero", x)
        for x in (odd(3000, 701), few(1500, 1501) > 0):  # long enough for several threads
            self.check(np.int64(np.count_nonzero(x)), "count_nonzero", x)
            self.check(np.int64(np.count_nonzero(x)), "sum", x != 0)
        self.check(np.count_nonzero(few(6, 7) * 0 + 1, 1), "count_nonzero", np.ones((6, 7), np.float32), 1)
        self.assertEqual(run("nonzero", np.float32(2))[0].shape, (1, 0))
        self.assertEqual(run("nonzero", np.zeros((0, 3), np.float32))[0].shape, (0, 2))
        got = run("nonzero_padded", np.array([0, 5, 0, -1.0], np.float32), 3)
        self.close(got[0], np.array([[1], [3], [0]]))
        self.close(got[1], np.array([2]))

    def test_masks(self):
        x, mask = some(4, 5), some(4, 5) > 0
        self.check(x[mask], "masked_select", x, mask)
        row = some(5) > 0
        self.check(x[np.broadcast_to(row, x.shape)], "masked_select", x, row)
        source = some(30)
        want = x.copy()
        want[mask] = source[: mask.sum()]
        self.check(want, "masked_scatter", x, mask, source)
        with self.assertRaisesRegex(Refused, "is out of range for an axis of length 3"):
            run("masked_scatter", x, np.ones((4, 5), np.bool_), some(3))
        self.refused("masked_select: mask is f32 but must be bool.", "masked_select", x, x)

    def test_counts(self):
        x = random.integers(0, 9, 50)
        weights = some(50, dtype=np.float64)
        self.check(np.bincount(x), "bincount", x)
        self.check(np.bincount(x, minlength=20), "bincount", x, None, 20)
        self.check(np.bincount(x, weights), "bincount", x, weights)
        self.refused("bincount: input has the element -1; none may be negative.", "bincount", np.array([3, -1]))
        y = some(300)
        self.check(np.histogram(y, 10)[0].astype(np.float32), "histc", y, 10)
        self.check(np.histogram(y, 7, (-1, 2))[0].astype(np.float32), "histc", y, 7, -1.0, 2.0)

    def test_one_hot_values(self):
        x = random.integers(-4, 6, (3, 5))
        eye = np.where((x >= -4)[..., None] & (x < 4)[..., None] & (np.eye(4)[x % 4] == 1), 2, 7)
        for axis in (0, 1, 2, -1):
            self.check(np.moveaxis(eye, -1, axis).astype(np.float32), "one_hot_values", x, 4, axis, off=7, on=2)
        self.check(np.array([0, 0, 1], np.float32), "one_hot_values", np.int64(2), 3)


class Coordinates(OpTest):
    def test_gather_nd(self):
        x = some(3, 4, 5)
        for batch, count in ((0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (2, 1)):
            ends = np.array(x.shape[batch:batch + count])
            index = random.integers(-ends, ends, x.shape[:batch] + (6, count))
            grid = np.ix_(*[np.arange(n) for n in index.shape[:-1]])
            want = x[tuple(grid[:batch]) + tuple(np.moveaxis(index, -1, 0))]
            self.check(want, "gather_nd", x, index, batch)
        self.check(x[1, 2, 3], "gather_nd", x, np.array([1, 2, 3]))
        self.refused("gather_nd: 4 coordinates after 0 batch axes do not fit input of shape [3, 4, 5] and indices of shape [2, 4].",
                     "gather_nd", x, np.zeros((2, 4), np.int64))

    def test_scatter_nd(self):
        x = some(3, 4, 5)
        combine = {"none": lambda x, y: y, "sum": np.add, "prod": np.multiply, "amin": np.minimum, "amax": np.maximum}
        for reduce, function in combine.items():
            index = random.integers(0, 3, (6, 2))
            updates = some(6, 5)
            want = x.copy()
            for at, row in zip(index, updates):
                want[tuple(at)] = function(want[tuple(at)], row)
            self.check(want, "scatter_nd", x, index, updates, reduce=reduce, rtol=1e-4)
        self.refused("scatter_nd: reduce is 'mean'; it may be 'none', 'sum', 'prod', 'amax' or 'amin'.", "scatter_nd", x,
                     index, updates, reduce="mean")

    def test_many_writes_at_rising_places(self):
        """And at places of which the last one, or one amid the others, does not rise."""
        n, length = 40000, 30011
        x, y = some(length), some(n)
        rising = np.sort(random.integers(0, length, n))
        for at, index in ((0, rising[0]), (n - 1, -length), (23000, 5), (9000, length - 1), (n - 1, length)):
            places = rising.copy()
            places[at] = index
            for dtype in (np.int64, np.int32):
                calls = (("scatter", (x, 0, places.astype(dtype), y)), ("scatter_add", (x, 0, places.astype(dtype), y)),
                         ("index_add", (x, 0, places.astype(dtype), y)))
                for op, args in calls:
                    if index in (length, -length):  # these ops do not count from the end
                        with self.assertRaisesRegex(Refused, str(length)):
                            run(op, *args)
                        continue
                    want = x.copy()
                    if op == "scatter":
                        want[places] = y
                    else:
                        np.add.at(want, places, y)
                    self.check(want, op, *args, atol=1e-5)
        whole = random.integers(-9, 9, length)
        self.check(whole + np.bincount(rising, minlength=length), "scatter_add", whole, 0, rising, np.ones(n, np.int64))

    def test_writes_by_index(self):
        x = some(4, 6)
        want = x.copy()
        want[:, [1, -1]] = 9
        self.check(want, "index_fill", x, 1, np.array([1, -1]), 9)
        index, source = np.array([[3, -2], [7, 0]]), some(2, 2)
        want = x.copy()
        np.put(want, index, source)
        self.check(want, "put", x, index, source)
        want = x.copy().ravel()
        np.add.at(want, index.ravel(), source.ravel())
        self.check(want.reshape(x.shape), "put", x, index, source, True)
