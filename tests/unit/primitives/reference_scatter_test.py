"""Compares scatter with loops over the updates, in NumPy."""
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
COMBINE = {"assign": lambda x, y: y, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}
DTYPES = ["f32", "f64", "f16", "i8", "i64", "u16"]


def some(dtype, rng, shape):
    return rng.uniform(-4, 4, shape) if driver.is_float(dtype) else rng.integers(1, 100, shape)


class Scatter(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)

    def same(self, got, want, dtype):
        if driver.is_float(dtype):
            want = driver.from_storage(dtype, driver.to_storage(dtype, want), want.shape)
            tolerance = {"f16": 1e-3, "f32": 1e-6, "f64": 1e-13}[dtype]
            np.testing.assert_allclose(np.float64(got), np.float64(want), rtol=tolerance, atol=tolerance)
        else:
            np.testing.assert_array_equal(got, want)

    def run_scatter(self, op, mode, axis, dtype, x, updates, indices, index_type="i64"):
        return REFERENCE.run("scatter", f"axis={axis} mode={mode} op={op}", [("dst", dtype, x.shape)],
                             [("src", dtype, x), ("src_b", dtype, updates), ("indices", index_type, indices)])

    def test_elements_go_where_a_loop_puts_them(self):
        for op, axis, dtype, index_type in itertools.product(COMBINE, range(3), DTYPES, ("i32", "i64")):
            x = some(dtype, self.rng, (4, 6, 5)).astype(driver.NUMPY_TYPES[dtype])
            shape = [3, 4, 2]
            shape[axis] = 9
            updates = some(dtype, self.rng, shape).astype(x.dtype)
            indices = self.rng.integers(-x.shape[axis], x.shape[axis], shape)
            want = x.astype(np.float64) if driver.is_float(dtype) else x.copy()
            for at in np.ndindex(*shape):
                to = tuple(indices[at] if a == axis else i for a, i in enumerate(at))
                want[to] = COMBINE[op](want[to], updates[at])
            self.same(self.run_scatter(op, "elements", axis, dtype, x, updates, indices, index_type), want, dtype)

    def test_slices_go_where_a_loop_puts_them(self):
        for op, axis, dtype in itertools.product(COMBINE, range(3), DTYPES):
            x = some(dtype, self.rng, (4, 6, 5)).astype(driver.NUMPY_TYPES[dtype])
            indices = self.rng.integers(-x.shape[axis], x.shape[axis], (2, 3))
            shape = x.shape[:axis] + indices.shape + x.shape[axis + 1:]
            updates = some(dtype, self.rng, shape).astype(x.dtype)
            want = np.moveaxis(x.astype(np.float64) if driver.is_float(dtype) else x.copy(), axis, 0)
            moved = np.moveaxis(updates, (axis, axis + 1), (0, 1))
            for at in np.ndindex(*indices.shape):
                want[indices[at]] = COMBINE[op](want[indices[at]], moved[at])
            self.same(self.run_scatter(op, "slices", axis, dtype, x, updates, indices), np.moveaxis(want, 0, axis), dtype)

    def test_not_a_number_wins_minimum_and_maximum(self):
        for op, (x, update) in itertools.product(("min", "max"), ((np.nan, 1.0), (1.0, np.nan))):
            got = self.run_scatter(op, "slices", 0, "f32", np.array([x, 2.0]), np.array([update]), np.array([0]))
            self.assertTrue(np.isnan(got[0]) and got[1] == 2, f"{op} {x} {update} {got}")

    def test_bools_are_assigned(self):
        got = self.run_scatter("assign", "slices", 0, "bool", np.array([True, False, True]), np.array([False, True]), np.array([0, -2]))
        self.assertEqual(got.tolist(), [False, True, True])

    def test_an_update_with_a_bad_index_is_left_out(self):
        for bad in (3, -4):
            with self.assertRaises(driver.Fault) as caught:
                self.run_scatter("add", "slices", 0, "f32", np.array([1.0, 2.0, 4.0]), np.array([8.0, 16.0, 32.0]), np.array([2, bad, 0]))
            fault = caught.exception
            self.assertEqual((fault.code, fault.operand, fault.value, fault.limit), (1, 3, bad, 3))
            self.assertEqual(fault.outputs[0].tolist(), [33, 2, 12])


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
