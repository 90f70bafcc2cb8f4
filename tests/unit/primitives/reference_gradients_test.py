"""Compares the kinds that gradients need with finite differences, and with NumPy, written in another way."""
import itertools
import pathlib
import sys
import unittest

import numpy as np

import reference_driver as driver

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

REFERENCE = None


def text(values):
    return ",".join(str(int(v)) for v in values)


def gradient_of(function, x, weights):
    """d(sum(function(x) * weights)) / dx, by central differences."""
    result = np.zeros_like(x)
    for at in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[at] = 1e-6
        result[at] = np.sum((function(x + step) - function(x - step)) * weights) / 2e-6
    return result


class Gradients(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(5)

    def near(self, got, want, tolerance=1e-7):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)

    def test_convolution_weight_is_the_gradient_of_convolution(self):
        for src, weight, groups, stride, dilation, low, high in (
                ((2, 3, 9), (4, 3, 4), 1, (2,), (1,), (1,), (2,)),
                ((2, 4, 7, 8), (6, 2, 3, 2), 2, (1, 2), (2, 1), (2, 0), (1, 1)),
                ((2, 3, 5, 5), (3, 1, 3, 3), 3, (1, 1), (1, 1), (1, 1), (1, 1)),
                ((1, 2, 4, 5, 6), (3, 2, 2, 3, 2), 1, (1, 2, 1), (1, 1, 2), (0, 1, 1), (1, 0, 1))):
            x, w = self.rng.uniform(-1, 1, src), self.rng.uniform(-1, 1, weight)
            rank = len(stride)
            spatial = [(src[i + 2] + low[i] + high[i] - dilation[i] * (weight[i + 2] - 1) - 1) // stride[i] + 1 for i in range(rank)]
            shape = (src[0], weight[0], *spatial)
            attributes = (f"spatial_rank={rank} groups={groups} stride={text(stride)} dilation={text(dilation)} "
                          f"pad_low={text(low)} pad_high={text(high)}")
            gradient = self.rng.uniform(-1, 1, shape)
            got = REFERENCE.run("convolution_weight", attributes, [("dst", "f64", weight)], [("src", "f64", x), ("gradient", "f64", gradient)])
            forward = lambda w: REFERENCE.run("convolution", attributes, [("dst", "f64", shape)], [("src", "f64", x), ("weight", "f64", w)])
            self.near(got, gradient_of(forward, w, gradient))

    def test_pooling_backward_is_the_gradient_of_pooling(self):
        x = self.rng.permutation(2 * 3 * 8 * 6).astype(np.float64).reshape(2, 3, 8, 6)
        for op, dilation, ceil in itertools.product(("max", "average", "average_include_pad"), ((1, 1), (1, 2)), (0, 1)):
            attributes = f"op={op} spatial_rank=2 kernel=3,2 stride=2,1 dilation={text(dilation)} pad_low=1,1 pad_high=1,0"
            shape = (2, 3, 4 + ceil, 6 - dilation[1] + 1)
            outputs = [("dst", "f64", shape)] + ([("dst_indices", "i64", shape)] if op == "max" else [])
            forward = lambda x: REFERENCE.run("pooling", attributes, outputs, [("src", "f64", x)])
            first = (lambda x: forward(x)[0]) if op == "max" else forward
            gradient = self.rng.uniform(-1, 1, shape)
            inputs = ([("indices", "i64", forward(x)[1])] if op == "max" else []) + [("gradient", "f64", gradient)]
            got = REFERENCE.run("pooling_backward", attributes, [("dst", "f64", x.shape)], inputs)
            self.near(got, gradient_of(first, x, gradient), 1e-6)

    def test_pooling_backward_drops_an_index_outside_its_plane(self):
        for bad in (4, -1):
            with self.assertRaises(driver.Fault) as caught:
                REFERENCE.run("pooling_backward", "op=max spatial_rank=1 kernel=2 stride=2 dilation=1", [("dst", "f32", (1, 1, 4))],
                              [("indices", "i64", np.array([[[1, bad]]])), ("gradient", "f32", np.array([[[3.0, 5.0]]]))])
            fault = caught.exception
            self.assertEqual((fault.code, fault.operand, fault.value, fault.limit), (1, 1, bad, 4))
            self.assertEqual(fault.outputs[0].ravel().tolist(), [0, 3, 0, 0])

    def norm(self, kind, x, scale, shift, gradient, axis, statistics, parameters):
        """Forward and backward of `kind`, with scale and shift or without."""
        operands = [("scale", "f64", scale), ("shift", "f64", shift)] if scale is not None else []
        forward = "batch_norm_training" if kind == "batch_norm" else kind
        outputs = [("dst", "f64", x.shape), ("mean", "f64", statistics), ("inv_std", "f64", statistics)]
        got, mean, inv_std = REFERENCE.run(forward, f"axis={axis}", outputs, [("src", "f64", x)] + operands, [("f64", 0.01)])
        given = [("src", "f64", x)] + operands[:1] + [("mean", "f64", mean), ("inv_std", "f64", inv_std), ("gradient", "f64", gradient)]
        outputs = [("dst", "f64", x.shape), ("scale_gradient", "f64", parameters), ("shift_gradient", "f64", parameters)]
        return (got, mean, inv_std), REFERENCE.run(f"{kind}_backward", f"axis={axis}", outputs, given)

    def test_backward_of_norms_is_the_gradient_of_numpy(self):
        shape = (3, 4, 5)
        for kind, axis, with_scale in itertools.product(("layer_norm", "batch_norm"), range(3), (True, False)):
            x, gradient = self.rng.uniform(-3, 5, shape), self.rng.uniform(-1, 1, shape)
            of_channels = kind == "batch_norm"
            axes = tuple(a for a in range(3) if (a != axis if of_channels else a >= axis))
            parameters = (shape[axis],) if of_channels else shape[axis:]
            statistics = (shape[axis],) if of_channels else tuple(1 if a in axes else d for a, d in enumerate(shape))
            spread = tuple(d if a == axis else 1 for a, d in enumerate(shape)) if of_channels else parameters
            scale, shift = self.rng.uniform(-1, 1, parameters), self.rng.uniform(-1, 1, parameters)

            def numpy_norm(x, scale, shift):
                normal = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 0.01)
                return normal * scale.reshape(spread) + shift.reshape(spread)

            (got, mean, inv_std), backward = self.norm(kind, x, scale if with_scale else None, shift, gradient, axis, statistics, parameters)
            if not with_scale:
                scale, shift = np.ones(parameters), np.zeros(parameters)
            self.near(got, numpy_norm(x, scale, shift))
            self.near(mean.ravel(), x.mean(axes).ravel())
            self.near(inv_std.ravel(), 1 / np.sqrt(x.var(axes) + 0.01).ravel())
            self.near(backward[0], gradient_of(lambda x: numpy_norm(x, scale, shift), x, gradient))
            self.near(backward[1], gradient_of(lambda scale: numpy_norm(x, scale, shift), scale, gradient))
            self.near(backward[2], gradient_of(lambda shift: numpy_norm(x, scale, shift), shift, gradient))


def tearDownModule():
    REFERENCE.close()


if __name__ == "__main__":
    REFERENCE = driver.Reference(sys.argv.pop(1))
    unittest_report.main()
