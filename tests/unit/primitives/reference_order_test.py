"""Compares scan, sort, top_k, unique, nonzero, one_hot and coordinates with NumPy."""
import itertools
import pathlib
import sys
import unittest

import numpy as np

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

np.seterr(all="ignore")
REFERENCE = None
DTYPES = ["f32", "f64", "f16", "bf16", "i8", "i64", "u16", "u64"]
SCANS = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "log_sum_exp": np.logaddexp}


def stored(dtype, values):
    """The values as the dtype holds them, in the nearest type that NumPy has."""
    return driver.from_storage(dtype, driver.to_storage(dtype, values), np.shape(values))


def some(dtype, rng, shape):
    """Few different values, so that some are equal."""
    return stored(dtype, rng.integers(-6, 7, shape) / 2 if driver.is_float(dtype) else rng.integers(0, 12, shape))


def odd(rng, shape):
    """Few values, with NaN, infinities and both zeros."""
    return rng.choice(np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 3.0]), shape)


def neutral(op, dtype):
    if driver.is_float(dtype):
        return {"sum": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf, "log_sum_exp": -np.inf}[op]
    ends = np.iinfo(driver.NUMPY_TYPES[dtype])
    return {"sum": 0, "prod": 1, "max": ends.min, "min": ends.max}[op]


class Order(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def run_scan(self, op, axis, dtype, x, exclusive=0, reverse=0, positions=False):
        outputs = [("dst", dtype, x.shape)] + ([("dst_indices", "i64", x.shape)] if positions else [])
        return REFERENCE.run("scan", f"axis={axis} op={op} exclusive={exclusive} reverse={reverse}", outputs, [("src", dtype, x)])

    def test_scan_is_accumulate(self):
        for op, axis, dtype, exclusive, reverse in itertools.product(SCANS, range(3), DTYPES, (0, 1), (0, 1)):
            if op == "log_sum_exp" and not driver.is_float(dtype):
                continue
            x = some(dtype, self.rng, (4, 7, 5))
            wide = np.moveaxis(x.astype(np.float64) if driver.is_float(dtype) else x, axis, 0)
            if reverse:
                wide = wide[::-1]
            want = SCANS[op].accumulate(wide, axis=0, dtype=wide.dtype)
            if exclusive:
                want = np.concatenate([np.full_like(want[:1], neutral(op, dtype)), want[:-1]])
            want = np.moveaxis(want[::-1] if reverse else want, 0, axis)
            got = self.run_scan(op, axis, dtype, x, exclusive, reverse)
            if driver.is_float(dtype):
                want = stored(dtype, want)
                tolerance = {"f16": 1e-3, "bf16": 1e-2, "f32": 1e-6, "f64": 1e-13}[dtype]
                np.testing.assert_allclose(np.float64(got), np.float64(want), rtol=tolerance, err_msg=f"{op} {dtype}")
            else:
                np.testing.assert_array_equal(got, want, f"{op} {dtype} {exclusive} {reverse}")

    def test_scan_of_bool_is_any_and_all(self):
        x = self.rng.random((3, 9)) < 0.3
        np.testing.assert_array_equal(self.run_scan("max", 1, "bool", x), np.logical_or.accumulate(x, axis=1))
        np.testing.assert_array_equal(self.run_scan("min", 1, "bool", ~x), np.logical_and.accumulate(~x, axis=1))
        np.testing.assert_array_equal(self.run_scan("min", 1, "bool", ~x, exclusive=1)[:, 0], True)

    def test_positions_of_a_scan_are_those_of_the_last_extreme(self):
        for op, reverse in itertools.product(("max", "min"), (0, 1)):
            x = odd(self.rng, (20, 11))
            values, positions = self.run_scan(op, 1, "f32", x, reverse=reverse, positions=True)
            for row, value, place in zip(x, values, positions):
                for i in range(11):
                    met = range(10, i - 1, -1) if reverse else range(i + 1)
                    best = SCANS[op].reduce(row[list(met)])
                    like = [j for j in met if row[j] == best or (np.isnan(best) and np.isnan(row[j]))]
                    self.assertEqual(place[i], like[-1], f"{op} {reverse} {row} {i}")
                    np.testing.assert_array_equal(value[i], np.float32(best))

    def test_log_sum_exp_does_not_overflow(self):
        x = np.array([[1000.0, 1000.0, -1000.0], [-np.inf, -np.inf, 2.0], [np.inf, 1.0, np.nan]])
        want = np.logaddexp.accumulate(x, axis=1)
        np.testing.assert_allclose(self.run_scan("log_sum_exp", 1, "f64", x), want)

    def sorted_stably(self, x, axis, descending):
        """NumPy sorts NaN last and stably; for descending both the list and the result are turned round."""
        if not descending:
            positions = np.argsort(x, axis=axis, kind="stable")
        else:
            turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
            positions = np.flip(x.shape[axis] - 1 - turned, axis)
        return np.take_along_axis(x, positions, axis), positions

    def test_sort_is_stable_and_puts_not_a_number_last(self):
        for axis, dtype, descending in itertools.product(range(3), DTYPES + ["bool"], (0, 1)):
            x = self.rng.random((4, 9, 5)) < 0.5 if dtype == "bool" else some(dtype, self.rng, (4, 9, 5))
            if driver.is_float(dtype):
                x = np.where(self.rng.random(x.shape) < 0.3, odd(self.rng, x.shape), x)
            want, positions = self.sorted_stably(x, axis, descending)
            for parts in ((0, 1), (0,), (1,)):
                outputs = [("dst", dtype, x.shape), ("dst_indices", "i64", x.shape)]
                got = REFERENCE.run("sort", f"axis={axis} descending={descending}", [outputs[i] for i in parts], [("src", dtype, x)])
                for part, array in zip(parts, got if len(parts) == 2 else [got]):
                    np.testing.assert_array_equal(array, [want, positions][part], f"{dtype} {axis} {descending}")
                    if part == 0 and driver.is_float(dtype):
                        zero = want == 0
                        np.testing.assert_array_equal(np.signbit(array[zero]), np.signbit(want[zero]))

    def test_top_k_is_the_beginning_of_a_sort(self):
        for axis, dtype, largest, k in itertools.product(range(3), ["f32", "f16", "i64", "u16"], (0, 1), (1, 3, 4)):
            x = some(dtype, self.rng, (4, 9, 5))
            if driver.is_float(dtype):
                x = np.where(self.rng.random(x.shape) < 0.3, odd(self.rng, x.shape), x)
            shape = list(x.shape)
            shape[axis] = k
            got, places = REFERENCE.run("top_k", f"axis={axis} largest={largest}",
                                        [("dst", dtype, shape), ("dst_indices", "i64", shape)], [("src", dtype, x)])
            want, positions = self.sorted_stably(x, axis, largest)
            np.testing.assert_array_equal(got, np.take(want, range(k), axis))
            np.testing.assert_array_equal(places, np.take(positions, range(k), axis))

    def run_unique(self, x, dtype, axis, order):
        n = x.size if axis < 0 else x.shape[axis]
        outputs = [("dst", dtype, (n,) if axis < 0 else x.shape), ("dst_indices", "i64", (n,)), ("dst_count", "i64", (1,)),
                   ("dst_inverse", "i64", (n,)), ("dst_counts", "i64", (n,))]
        values, first, count, inverse, counts = REFERENCE.run("unique", f"axis={axis} order={order}", outputs, [("src", dtype, x)])
        m = count[0]
        beyond = values[m:] if axis < 0 else np.take(values, range(m, n), axis)
        for rest in (beyond, first[m:], counts[m:]):
            self.assertFalse(np.any(rest))
        return values[:m] if axis < 0 else np.take(values, range(m), axis), first[:m], inverse, counts[:m]

    def test_unique_sorts(self):
        for dtype, axis in itertools.product(["f32", "bf16", "i8", "u64", "bool"], (-1, 0, 1, 2)):
            x = self.rng.random((6, 7, 2)) < 0.5 if dtype == "bool" else some(dtype, self.rng, (6, 7, 2))
            x = np.take(x, self.rng.integers(0, 2, x.shape[max(axis, 0)]), max(axis, 0))
            want = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=None if axis < 0 else axis)
            for got, wanted in zip(self.run_unique(x, dtype, axis, "sorted"), want):
                np.testing.assert_array_equal(got, wanted, f"{dtype} {axis}")

    def test_unique_keeps_the_order_of_first_appearance(self):
        x = some("i64", self.rng, (40,))
        values, first, inverse, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first)
        got = self.run_unique(x, "i64", -1, "first")
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        for array, want in zip(got, (values[order], first[order], place[inverse], counts[order])):
            np.testing.assert_array_equal(array, want)

    def test_unique_of_neighbours(self):
        x = np.repeat(some("f32", self.rng, (30,)), self.rng.integers(1, 4, 30))
        starts = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
        got = self.run_unique(x, "f32", -1, "consecutive")
        counts = np.diff(np.append(starts, x.size))
        for array, want in zip(got, (x[starts], starts, np.repeat(np.arange(starts.size), counts), counts)):
            np.testing.assert_array_equal(array, want)

    def test_each_not_a_number_is_unique(self):
        x = np.array([np.nan, 0.0, 1.0, np.nan, -0.0])
        for order, want in (("sorted", [0, 1, np.nan, np.nan]), ("first", [np.nan, 0, 1, np.nan]),
                            ("consecutive", [np.nan, 0, 1, np.nan, -0.0])):
            np.testing.assert_array_equal(self.run_unique(x, "f32", -1, order)[0], want)
        rows = np.array([[np.nan, 1.0], [np.nan, 1.0], [2.0, 1.0]])
        np.testing.assert_array_equal(self.run_unique(rows, "f64", 0, "sorted")[2], [1, 2, 0])

    def test_nonzero_gives_as_many_rows_as_there_is_room_for(self):
        for dtype, shape in itertools.product(("f32", "i8", "u64", "bool", "bf16"), ((13,), (4, 6), (3, 2, 4))):
            x = self.rng.integers(0, 2, shape)
            x = np.where(x == 1, np.nan, -0.0) if dtype == "f32" else x
            want = np.argwhere(x)
            for rows in (x.size, len(want), len(want) - 1, len(want) + 1):
                got, count = REFERENCE.run("nonzero", "", [("dst", "i64", (rows, len(shape))), ("dst_count", "i64", (1,))], [("src", dtype, x)])
                self.assertEqual(count[0], len(want))
                padded = np.concatenate([want, np.zeros((x.size, len(shape)), np.int64)])[:rows]
                np.testing.assert_array_equal(got, padded)

    def test_one_hot_is_a_row_of_the_identity(self):
        for axis, dtype, index_type in itertools.product(range(3), ("f32", "f16", "i8", "bool"), ("i32", "i64")):
            x = self.rng.integers(-7, 7, (4, 6))
            shape = list(x.shape)
            shape.insert(axis, 5)
            off, on = (0, 1) if dtype == "bool" else (2, 3)
            got = REFERENCE.run("one_hot", f"axis={axis}", [("dst", dtype, shape)], [("src", index_type, x)], [(dtype, off), (dtype, on)])
            inside = (x >= -5) & (x < 5)
            want = np.where(inside[..., None] & (np.eye(5)[x % 5] == 1), on, off)
            np.testing.assert_array_equal(got, np.moveaxis(want, -1, axis))

    def coordinates(self, shape, batch, count, places, index_type="i64"):
        ends = np.array(shape[batch:batch + count])
        return self.rng.integers(-ends, ends, tuple(shape[:batch]) + places + (count,)), index_type

    def test_gather_takes_what_coordinates_name(self):
        shape = (3, 4, 5, 2)
        for batch, count, places in itertools.product((0, 1, 2), (1, 2, 3, 4), ((), (6,), (2, 3))):
            if batch + count > 4 or batch + len(places) + 4 - batch - count == 0:
                continue
            x = some("f32", self.rng, shape)
            index, index_type = self.coordinates(shape, batch, count, places, "i32" if batch else "i64")
            grid = np.ix_(*[np.arange(n) for n in index.shape[:-1]])
            want = x[tuple(grid[:batch]) + tuple(np.moveaxis(index, -1, 0))]
            got = REFERENCE.run("gather", f"axis={batch} mode=coordinates", [("dst", "f32", want.shape)],
                                [("src", "f32", x), ("indices", index_type, index)])
            np.testing.assert_array_equal(got, want, f"{batch} {count} {places}")

    def test_scatter_puts_where_coordinates_say(self):
        combine = {"assign": lambda x, y: y, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
        shape = (3, 4, 5, 2)
        for op, batch, count, places in itertools.product(combine, (0, 1), (1, 2, 3), ((6,), (2, 3))):
            x = some("f64", self.rng, shape)
            index, _ = self.coordinates(shape, batch, count, places)
            updates = some("f64", self.rng, index.shape[:-1] + shape[batch + count:])
            want = x.copy()
            for at in np.ndindex(*index.shape[:-1]):
                to = at[:batch] + tuple(index[at])
                want[to] = combine[op](want[to], updates[at])
            got = REFERENCE.run("scatter", f"axis={batch} mode=coordinates op={op}", [("dst", "f64", shape)],
                                [("src", "f64", x), ("src_b", "f64", updates), ("indices", "i64", index)])
            np.testing.assert_allclose(got, want, rtol=1e-13, err_msg=f"{op} {batch} {count} {places}")

    def test_coordinates_out_of_range_are_faults(self):
        x = np.arange(12.0).reshape(3, 4)
        for bad, limit in (([1, 4], 4), ([-4, 0], 3)):
            with self.assertRaises(driver.Fault) as caught:
                REFERENCE.run("gather", "axis=0 mode=coordinates", [("dst", "f32", (2,))],
                              [("src", "f32", x), ("indices", "i64", np.array([[2, 3], bad]))])
            fault = caught.exception
            self.assertEqual((fault.code, fault.operand, fault.limit), (1, 2, limit))
            self.assertEqual(fault.outputs[0].tolist(), [11, 0])


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
