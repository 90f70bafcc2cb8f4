"""Compares attention, rotary, rms_norm and group_norm with NumPy, written in another way."""
import itertools
import pathlib
import sys
import unittest

import numpy as np

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

REFERENCE = None


def softmax_of(scores):
    """softmax over the last axis in which a row of -inf gives 0, and the logarithms of its sums."""
    most = np.max(scores, -1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(most), 0, most))
    total = np.sum(weights, -1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_sum = np.where(total > 0, np.where(np.isinf(most), 0, most) + np.log(total), -np.inf)
    return weights / np.where(total > 0, total, 1), log_sum


class Attention(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)

    def near(self, got, want):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-12)

    def attention(self, align, before, after, bias, lengths, softcap, shape=(2, 6, 3, 5, 8, 4, 7)):
        b, h, g, q, k, w, v = shape
        query, key, value = (self.rng.uniform(-2, 2, dims) for dims in ((b, h, q, w), (b, g, k, w), (b, g, k, v)))
        scores = 0.7 * np.einsum("bhqw,bhkw->bhqk", query, np.repeat(key, h // g, 1))
        if softcap:
            scores = softcap * np.tanh(scores / softcap)
        inputs = [("src", "f64", query), ("src_b", "f64", key), ("src_c", "f64", value)]
        if bias == "float":
            added = self.rng.uniform(-2, 2, scores.shape)
            added[0, 1, 2] = -np.inf
            scores = scores + added
            inputs.append(("bias", "f64", added))
        elif bias == "bool":
            chosen = self.rng.integers(0, 2, scores.shape).astype(bool)
            chosen[0, 1, 2] = False
            scores = np.where(chosen, scores, -np.inf)
            inputs.append(("bias", "bool", chosen))
        count = np.full(b, k)
        if lengths is not None:
            inputs.append(("lengths", "i64", np.array(lengths)))
            count = np.clip(lengths, 0, k)
            for i in range(b):  # elements beyond this are not read
                key[i, :, count[i]:] = value[i, :, count[i]:] = np.nan
        for i, row, column in itertools.product(range(b), range(q), range(k)):
            position = row + (count[i] - q if align == "end" else 0)
            left_out = column >= count[i] or 0 <= before < position - column or 0 <= after < column - position
            if left_out:
                scores[i, :, row, column] = -np.inf
        weights, log_sum = softmax_of(scores)
        want = np.einsum("bhqk,bhkv->bhqv", weights, np.repeat(np.where(np.isnan(value), 0, value), h // g, 1))
        got, got_log_sum = REFERENCE.run("attention", f"align={align} before={before} after={after}",
                                         [("dst", "f64", (b, h, q, v)), ("log_sum", "f64", (b, h, q, 1))], inputs,
                                         [("f64", 0.7), ("f64", softcap)])
        self.near(got, want)
        self.near(got_log_sum, log_sum)

    def test_attention_agrees_with_numpy(self):
        for align, before, after, bias, lengths, softcap in itertools.product(
                ("start", "end"), (-1, 0, 2), (-1, 0, 1), (None, "float", "bool"), (None, (3, 99), (-1, 8)), (0, 1.5)):
            self.attention(align, before, after, bias, lengths, softcap)

    def test_attention_of_more_queries_than_keys(self):
        for align in ("start", "end"):
            self.attention(align, -1, 0, None, None, 0, (1, 2, 2, 7, 3, 4, 2))

    def test_rotary_agrees_with_numpy(self):
        for mode, pairs, indexed in itertools.product(("halves", "interleaved"), (1, 3, 4), (False, True)):
            x = self.rng.uniform(-2, 2, (2, 3, 5, 8))
            inputs = [("src", "f64", x)]
            if indexed:
                tables = self.rng.uniform(-1, 1, (2, 9, pairs))
                places = self.rng.integers(-9, 9, (2, 5))
                inputs += [("src_b", "f64", tables[0]), ("src_c", "f64", tables[1]), ("indices", "i32", places)]
                cosine, sine = tables[:, places][:, :, None]
            else:
                cosine, sine = self.rng.uniform(-1, 1, (2, 2, 3, 5, pairs))
                inputs += [("src_b", "f64", cosine), ("src_c", "f64", sine)]
            first = slice(0, pairs) if mode == "halves" else slice(0, 2 * pairs, 2)
            second = slice(pairs, 2 * pairs) if mode == "halves" else slice(1, 2 * pairs, 2)
            turned = (x[..., first] + 1j * x[..., second]) * (cosine + 1j * sine)
            want = x.copy()
            want[..., first], want[..., second] = turned.real, turned.imag
            self.near(REFERENCE.run("rotary", f"mode={mode}", [("dst", "f64", x.shape)], inputs), want)

    def test_rotary_faults_on_an_index_out_of_range(self):
        x, table = np.ones((1, 1, 2, 2)), np.ones((4, 1))
        for bad in (4, -5):
            with self.assertRaises(driver.Fault) as caught:
                REFERENCE.run("rotary", "mode=halves", [("dst", "f64", x.shape)],
                              [("src", "f64", x), ("src_b", "f64", table), ("src_c", "f64", table), ("indices", "i64", [[bad, 1]])])
            fault = caught.exception
            self.assertEqual((fault.code, fault.operand, fault.value, fault.limit), (1, 4, bad, 4))
            self.assertEqual(fault.outputs[0].ravel().tolist(), [0, 0, 0, 2])

    def test_rms_norm_agrees_with_numpy(self):
        x = self.rng.uniform(-3, 5, (3, 4, 5))
        for axis in range(3):
            axes = tuple(range(axis, 3))
            scale = self.rng.uniform(-1, 1, x.shape[axis:])
            inv_std = 1 / np.sqrt(np.mean(x ** 2, axes, keepdims=True) + 0.01)
            got, got_inv_std = REFERENCE.run(
                "rms_norm", f"axis={axis}", [("dst", "f64", x.shape), ("inv_std", "f64", inv_std.shape)],
                [("src", "f64", x), ("scale", "f64", scale)], [("f64", 0.01)])
            self.near(got, x * inv_std * scale)
            self.near(got_inv_std, inv_std)
            self.near(REFERENCE.run("rms_norm", f"axis={axis}", [("dst", "f64", x.shape)], [("src", "f64", x)], [("f64", 0.01)]), x * inv_std)

    def test_group_norm_agrees_with_numpy(self):
        for shape, groups in (((2, 6, 3, 4), 3), ((2, 6, 5), 1), ((3, 4), 2), ((1, 4, 3), 4)):
            x = self.rng.uniform(-3, 5, shape)
            rows = x.reshape(shape[0], groups, -1)
            mean, inv_std = rows.mean(-1), 1 / np.sqrt(rows.var(-1) + 0.01)
            normal = ((rows - mean[..., None]) * inv_std[..., None]).reshape(shape)
            scale, shift = self.rng.uniform(-1, 1, (2, shape[1]))
            spread = (shape[1],) + (1,) * (len(shape) - 2)
            outputs = [("dst", "f64", shape), ("mean", "f64", mean.shape), ("inv_std", "f64", mean.shape)]
            got, got_mean, got_inv_std = REFERENCE.run("group_norm", f"groups={groups}", outputs,
                                                       [("src", "f64", x), ("scale", "f64", scale), ("shift", "f64", shift)], [("f64", 0.01)])
            self.near(got, normal * scale.reshape(spread) + shift.reshape(spread))
            self.near(got_mean, mean)
            self.near(got_inv_std, inv_std)
            self.near(REFERENCE.run("group_norm", f"groups={groups}", outputs[:1], [("src", "f64", x)], [("f64", 0.01)]), normal)


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
