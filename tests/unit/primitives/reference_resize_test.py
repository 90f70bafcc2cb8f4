"""Compares resize with matrices of weights that NumPy builds as ONNX's text of Resize describes them."""
import itertools
import pathlib
import sys
import unittest

import numpy as np

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

REFERENCE = None
HALF, ANTIALIAS, EXCLUDE, EXTRAPOLATE = 1, 2, 4, 8
ROUNDS = {1: np.floor, 2: np.ceil, 3: lambda x: np.ceil(x - 0.5), 4: lambda x: np.floor(x + 0.5)}


def kernel(mode, a, t):
    t = np.abs(t)
    if mode == "linear":
        return np.where(t < 1, 1 - t, 0)
    near = (a + 2) * t ** 3 - (a + 3) * t ** 2 + 1
    far = a * t ** 3 - 5 * a * t ** 2 + 8 * a * t - 4 * a
    return np.where(t <= 1, near, np.where(t < 2, far, 0))


def positions(out, scale, offset, flags):
    half = 0.5 if flags & HALF else 0.0
    return np.full(out, offset) if scale == 0 else (np.arange(out) + half) / scale + offset


def weights(n, out, mode, round_, flags, a, scale, offset):
    """The matrix [out, n] of one axis."""
    x = positions(out, scale, offset, flags)
    if mode == "nearest":
        return np.eye(n)[np.clip(ROUNDS[round_](x), 0, n - 1).astype(int)]
    stretch = scale if flags & ANTIALIAS and 0 < scale < 1 else 1.0
    margin = int(np.ceil(np.max(np.abs(x)) + 3 / stretch)) + 1
    taps = np.arange(-margin, n + margin)
    wide = kernel(mode, a, (taps[None] - x[:, None]) * stretch)
    if flags & EXCLUDE:
        wide = wide * ((taps >= 0) & (taps < n))
    if flags & EXCLUDE or stretch != 1:
        wide = wide / wide.sum(1, keepdims=True)
    result = np.zeros((out, n))
    np.add.at(result, (slice(None), np.clip(taps, 0, n - 1)), wide)
    return result


class Resize(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(6)

    def check(self, src, out, mode, round_, flags, a, scale, offset, dtype="f64"):
        fill = 7
        attributes = [f"mode={mode}"] + [f"round={round_}"] * (round_ != 0) + [f"flags={flags}"] * (flags != 0)
        attributes += [f"cubic={a!r}"] * (a != 0)
        attributes += ["scale=" + ",".join(map(repr, scale))] + ["offset=" + ",".join(map(repr, offset))]
        got = REFERENCE.run("resize", " ".join(attributes), [("dst", dtype, out)], [("src", dtype, src)], [("f64", fill)])
        want = np.asarray(src, np.float64)
        outside = np.zeros(out, bool)
        for axis, n in enumerate(src.shape):
            w = weights(n, out[axis], mode, round_, flags, a, scale[axis], offset[axis])
            want = np.moveaxis(np.tensordot(w, want, (1, axis)), 0, axis)
            x = positions(out[axis], scale[axis], offset[axis], flags)
            outside |= ((x < 0) | (x > n - 1)).reshape([-1 if i == axis else 1 for i in range(src.ndim)])
        if flags & EXTRAPOLATE:
            want = np.where(outside, fill, want)
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-11, err_msg=" ".join(attributes))

    def test_modes_flags_and_scales(self):
        src = self.rng.uniform(-1, 1, (2, 7, 5))
        grids = (((2, 14, 3), (1.0, 2.0, 0.6)), ((2, 3, 11), (1.0, 3 / 7, 2.2)), ((1, 1, 5), (0.5, 0.0, 1.0)))
        for (out, scale), half in itertools.product(grids, (0, HALF)):
            offset = tuple(-half / 2 if s else 1.25 for s in scale)
            for round_ in ROUNDS:
                for more in (0, EXTRAPOLATE):
                    self.check(src, out, "nearest", round_, half | more, 0, scale, offset)
            for mode, a in (("linear", 0), ("cubic", -0.75), ("cubic", -0.5)):
                for flags in range(0, 16, 2):
                    self.check(src, out, mode, 0, half | flags, a, scale, offset)

    def test_a_crop_lies_anywhere(self):
        src = self.rng.uniform(-1, 1, (6, 8))
        for flags in (0, EXTRAPOLATE):
            self.check(src, (4, 5), "linear", 0, flags, 0, (1.7, 0.4), (-2.0, 3.5))

    def test_integers_are_taken_whole(self):
        src = np.array([[2 ** 62 + 1, -2 ** 62 - 1, 3]])
        got = REFERENCE.run("resize", "mode=nearest round=1 scale=1.0,2.0", [("dst", "i64", (1, 6))], [("src", "i64", src)])
        self.assertEqual(got.tolist(), np.repeat(src, 2, 1).tolist())


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
