"""ONNX models of very many nodes or very wide pads: their cost is linear in the size, so they load and run within the
time limit of a test.

usage: large_models_test.py OP_RUNNER (which these tests do not use)"""

import pathlib
import sys
import unittest

import numpy as np
import tenon
import tenon.onnx

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report
from protobuf_wire import field


def node(op, inputs, output, **lists):
    """A NodeProto; `lists` are its attributes, lists of integers."""
    attributes = [field(5, field(1, name) + b"".join(field(8, number) for number in numbers) + field(20, 7))
                  for name, numbers in lists.items()]
    return field(1, b"".join([*(field(1, name) for name in inputs), field(2, output), field(4, op), *attributes]))


def value(name, dims):
    """A ValueInfoProto of f32."""
    shape = b"".join(field(1, field(1, dim)) for dim in dims)
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, shape)))  # TypeProto.tensor_type


def model(nodes, inputs=(("x", (4, 8)),), result=(4, 8)):
    """A model of `nodes` that makes y from the inputs."""
    ends = [*(field(11, value(*each)) for each in inputs), field(12, value("y", result))]
    graph = b"".join(nodes) + field(2, "large") + b"".join(ends)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def chain(ops, count):
    """`count` nodes, each of which reads the one before; the ops come in turn."""
    names = ["x", *(f"v{i}" for i in range(1, count)), "y"]
    return model(node(ops[i % len(ops)], [names[i]], names[i + 1]) for i in range(count))


class LargeModels(unittest.TestCase):
    def setUp(self):
        self.x = np.random.default_rng(0).standard_normal((4, 8), dtype=np.float32)

    def run_model(self, data):
        return tenon.onnx.load(data)(tenon.tensor(self.x)).numpy()

    def test_a_chain_of_elementwise_nodes(self):
        np.testing.assert_array_equal(self.run_model(chain(["Neg", "Abs", "Neg"], 30_000)), -np.abs(self.x))

    def test_more_nodes_than_fit_in_18_bits(self):
        loaded = tenon.onnx.load(chain(["Neg", "Relu"], 300_000))
        self.assertEqual([each.name for each in loaded.outputs], ["y"])

    def test_a_node_of_many_inputs(self):
        data = model([node("Neg", ["x"], "a"), node("Sum", ["x"] * 20_001 + ["a"] * 20_000, "y")])
        np.testing.assert_allclose(self.run_model(data), self.x, rtol=0.1, atol=0.1)

    def test_many_nodes_that_read_one_value(self):
        names = [f"v{i}" for i in range(20_000)]
        data = model([*(node("Abs" if i % 2 else "Relu", ["x"], name) for i, name in enumerate(names)),
                      node("Max", names, "y")])
        np.testing.assert_array_equal(self.run_model(data), np.abs(self.x))

    def test_many_softmaxes_in_one_group(self):
        np.testing.assert_allclose(self.run_model(chain(["Softmax"], 128)), np.full((4, 8), 0.125), rtol=1e-5)

    def test_a_convolution_with_a_wide_pad(self):
        """All but the last windows see only the pad."""
        conv = node("Conv", ["x", "w"], "y", kernel_shape=[3, 3], pads=[1, 262_144, 1, 1], strides=[2, 2])
        shapes = (1, 1, 7, 5), (1, 1, 3, 3)
        loaded = tenon.onnx.load(model([conv], zip("xw", shapes), (1, 1, 4, 131_074)))
        x, w = (np.random.default_rng(1).standard_normal(shape, dtype=np.float32) for shape in shapes)
        got = loaded(tenon.tensor(x), tenon.tensor(w)).numpy()
        padded = np.pad(x[0, 0], ((1, 1), (6, 1))).astype(np.float64)
        want = [[(padded[i:i + 3, j:j + 3] * w[0, 0]).sum() for j in range(0, 10, 2)] for i in range(0, 8, 2)]
        self.assertEqual(got.shape, (1, 1, 4, 131_074))
        np.testing.assert_allclose(got[0, 0, :, -5:], want, rtol=1e-5, atol=1e-5)
        self.assertFalse(got[0, 0, :, :-5].any())


if __name__ == "__main__":
    unittest_report.main()
