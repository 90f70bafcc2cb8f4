"""Indices of every integer dtype, against NumPy: each op takes them all, and refuses what is not an integer.

usage: indices_test.py OP_RUNNER (not used)"""

import pathlib
import sys
import unittest

import numpy as np
import tenon

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

INTEGERS = (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 3)).astype(np.float32)
SRC = RNG.standard_normal((2, 3)).astype(np.float32)
LIST, ELEMENTS = [2, 0], [[2, 0, 1], [1, 3, 0]]
COLUMNS = np.arange(3)


def put(index, value, add=False):
    """X with `value` at `index`, or added there as often as the index is repeated."""
    out = X.copy()
    np.add.at(out, index, value) if add else out.__setitem__(index, value)
    return out


def bags(rows):
    return np.stack([rows[:1].sum(0), rows[1:].sum(0)])


def log_softmax(x):
    return x - np.log(np.exp(x).sum(1, keepdims=True))


# op: the call with an index, NumPy's result for the index as i64, the index.
CASES = {
    "gather_slices": (lambda i: tenon.gather_slices(X_, 0, i), lambda i: X[i], LIST),
    "index_select": (lambda i: tenon.index_select(X_, 0, i), lambda i: X[i], LIST),
    "embedding": (lambda i: tenon.embedding(X_, i), lambda i: X[i], LIST),
    "take": (lambda i: tenon.take(X_, i), lambda i: X.reshape(-1)[i], LIST),
    "gather": (lambda i: tenon.gather(X_, 0, i), lambda i: np.take_along_axis(X, i, 0), ELEMENTS),
    "take_along_dim": (lambda i: tenon.take_along_dim(X_, i, 0), lambda i: np.take_along_axis(X, i, 0), ELEMENTS),
    "gather_nd": (lambda i: tenon.gather_nd(X_, i), lambda i: X[i[:, 0], i[:, 1]], [[2, 0], [3, 1]]),
    "scatter": (lambda i: tenon.scatter(X_, 0, i, SRC_), lambda i: put((i, COLUMNS), SRC), ELEMENTS),
    "scatter_add": (lambda i: tenon.scatter_add(X_, 0, i, SRC_), lambda i: put((i, COLUMNS), SRC, True), ELEMENTS),
    "scatter_nd": (lambda i: tenon.scatter_nd(X_, i, SRC_), lambda i: put(i[:, 0], SRC), [[3], [1]]),
    "index_add": (lambda i: tenon.index_add(X_, 0, i, SRC_), lambda i: put(i, SRC, True), [1, 1]),
    "index_copy": (lambda i: tenon.index_copy(X_, 0, i, SRC_), lambda i: put(i, SRC), LIST),
    "index_fill": (lambda i: tenon.index_fill(X_, 0, i, 7), lambda i: put(i, 7), LIST),
    "index_put": (lambda i: tenon.index_put(X_, [i], SRC_), lambda i: put(i, SRC), LIST),
    "put": (lambda i: tenon.put(X_, i, ROW_), lambda i: put((i // 3, i % 3), SRC[0, :2]), LIST),
    "one_hot": (lambda i: tenon.one_hot(i, 4), lambda i: np.eye(4)[i], LIST),
    "nll_loss": (lambda i: tenon.nll_loss(SRC_, i), lambda i: -SRC[[0, 1], i].mean(), LIST),
    "cross_entropy": (lambda i: tenon.cross_entropy(SRC_, i), lambda i: -log_softmax(SRC)[[0, 1], i].mean(), LIST),
    "embedding_bag": (lambda i: tenon.embedding_bag(i, X_, tenon.tensor([0, 1]), mode="sum"), lambda i: bags(X[i]), [2, 0, 3]),
    "repeat_interleave": (lambda i: tenon.repeat_interleave(SRC_, i, 0), lambda i: np.repeat(SRC, i, 0), [2, 1]),
}
X_, SRC_, ROW_ = (tenon.from_numpy(each.copy()) for each in (X, SRC, SRC[0, :2]))
MASKS_TO_SOME = ("index_put",)
TAKES_FLOATS = ("cross_entropy",)  # probabilities of the classes
# As in PyTorch, or in ONNX's operator of this name.
FROM_THE_END = ("gather_slices", "take", "take_along_dim", "gather_nd", "scatter_nd", "index_fill", "index_put", "put")
LENGTHS = {"gather_nd": 3, "take": 12, "put": 12, "nll_loss": 3, "cross_entropy": 3}  # axis lengths; others: 4


class Indices(unittest.TestCase):
    def test_of_every_integer_dtype(self):
        for op, (call, expected, index) in CASES.items():
            for dtype in INTEGERS:
                if op in MASKS_TO_SOME and dtype is np.uint8:
                    continue
                with self.subTest(op=op, dtype=dtype.__name__):
                    actual = np.asarray(call(tenon.from_numpy(np.array(index, dtype))))
                    np.testing.assert_allclose(actual, expected(np.array(index)), 1e-6)

    def test_no_integers_are_refused(self):
        for op, (call, _, index) in CASES.items():
            if op in TAKES_FLOATS:
                continue
            with self.subTest(op=op), self.assertRaisesRegex(tenon.Error, "integers, not f32|neither a mask nor positions"):
                call(tenon.from_numpy(np.array(index, np.float32)))

    def test_numbers_beyond_i64_are_outside_every_axis(self):
        for op in ("index_select", "gather", "scatter", "index_add", "index_put", "gather_nd"):
            call, _, index = CASES[op]
            beyond = np.full(np.shape(index), 2**64 - 1, np.uint64)
            with self.subTest(op=op), self.assertRaisesRegex(tenon.Error, "out of range"):
                np.asarray(call(tenon.from_numpy(beyond)))

    def test_negative_indices_count_from_the_end_or_are_faults(self):
        for op, (call, expected, index) in CASES.items():
            if op == "repeat_interleave":
                continue
            length = LENGTHS.get(op, 4)
            for dtype, compiled in ((np.int64, False), (np.int32, False), (np.int8, False), (np.int64, True)):
                run = tenon.compile(call) if compiled else call
                for bad in (-1, -length, -length - 1, length):
                    given = np.array(index, dtype)
                    given.flat[-1] = bad
                    with self.subTest(op=op, dtype=dtype.__name__, compiled=compiled, index=bad):
                        if op in FROM_THE_END and -length <= bad < 0:
                            actual = np.asarray(run(tenon.from_numpy(given)))
                            np.testing.assert_allclose(actual, expected(given % length if op == "put" else given), 1e-6)
                            continue
                        with self.assertRaisesRegex(tenon.Error, f"(index|element) ({bad}|{2**40})[ ,]"):
                            np.asarray(run(tenon.from_numpy(given)))

    def test_gradients_of_indices_from_the_end(self):
        x = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
        for taken in (lambda i: x[i], lambda i: tenon.gather_slices(x, 0, i), lambda i: tenon.take(x, i)):
            x.grad = None
            tenon.sum(taken(tenon.tensor([-1, 0, -1]))).backward()
            np.testing.assert_array_equal(np.asarray(x.grad), [1, 0, 2])

    def test_u8_between_brackets_is_a_mask_to_some(self):
        with self.assertRaisesRegex(tenon.Error, "u8 could be a mask or positions; cast it"):
            tenon.index_put(X_, [tenon.from_numpy(np.array([1, 0, 0, 1], np.uint8))], tenon.tensor(0.0))


if __name__ == "__main__":
    unittest_report.main()
