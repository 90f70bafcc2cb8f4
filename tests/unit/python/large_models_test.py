"""ONNX models of very many nodes: what they cost is linear in their nodes, so that they load and run within the time
limit of a test, and a million nodes do by hand.

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


def node(op, inputs, output):
    return field(1, b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op))


def model(nodes):
    """A model of `nodes` that makes y from x, both f32[4, 8]."""
    shape = b"".join(field(1, field(1, dim)) for dim in (4, 8))
    value_type = field(1, field(1, 1) + field(2, shape))  # TypeProto.tensor_type
    ends = [field(number, field(1, name) + field(2, value_type)) for number, name in ((11, "x"), (12, "y"))]
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


if __name__ == "__main__":
    unittest_report.main()
