"""Small nets written by ONNX Runtime's optimiser and quantisers run and give ONNX Runtime's results.

usage: onnx_runtime_test.py OP_RUNNER (not used)"""

import pathlib
import sys
import tempfile
import unittest

import numpy as np
import tenon

try:
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
except ImportError:
    onnxruntime = None

LEVELS = ("ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL")
# The greatest difference, as a part of the greatest element: quantised models differ by steps.
EXACT, STEPS = 2e-5, 2e-2


class Net:
    """Nodes that are called; arrays become weights."""

    def __init__(self, opset):
        self.opset, self.nodes, self.weights, self.inputs, self.given = opset, [], [], [], {}

    def input(self, name, array):
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        self.given[name] = array
        return name

    def weight(self, array):
        self.weights.append(numpy_helper.from_array(np.asarray(array), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def __call__(self, op, *inputs, outputs=1, **attributes):
        names = [each if isinstance(each, str) else self.weight(each) for each in inputs]
        made = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, names, made, name=f"n{len(self.nodes)}", **attributes))
        return made[0] if outputs == 1 else made

    def save(self, path, *outputs):
        graph = helper.make_graph(self.nodes, "net", self.inputs, [helper.make_empty_tensor_value_info(each) for each in outputs], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)
        return self.given


class Nets:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def floats(self, *shape):
        return (self.random.standard_normal(shape) / 2).astype("f4")

    def convolutions(self, path):
        n, f = Net(17), self.floats
        y = n("Relu", n("Conv", n.input("x", f(1, 3, 12, 12)), f(32, 3, 3, 3), f(32), pads=[1] * 4))
        z = n("Conv", y, f(32, 1, 3, 3), f(32), pads=[1] * 4, group=32)
        y = n("MaxPool", n("HardSigmoid", n("Add", z, y)), kernel_shape=[2, 2], strides=[2, 2])
        y = n("Conv", y, f(20, 32, 1, 1) / 5)
        y = n("Resize", y, "", np.array([1, 1, 2, 2], "f4"), mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
        y = n("Flatten", n("GlobalAveragePool", n("AveragePool", n("LeakyRelu", y, alpha=0.1), kernel_shape=[2, 2], strides=[2, 2])))
        return n.save(path, n("Tanh", n("Gemm", y, f(20, 7), f(7))))

    def products(self, path):
        n, f = Net(12), self.floats
        x = n("Gemm", n.input("x", f(4, 16)), f(16, 32), f(32))
        x = n("Mul", n("Mul", x, n("Add", n("Erf", n("Div", x, np.float32(2 ** 0.5))), np.float32(1))), np.float32(0.5))
        x = n("Add", n("MatMul", x, f(32, 16)), f(16))
        centred = n("Sub", x, n("ReduceMean", x, axes=[-1]))
        variance = n("ReduceMean", n("Pow", centred, np.float32(2)), axes=[-1])
        y = n("Add", n("Mul", n("Div", centred, n("Sqrt", n("Add", variance, np.float32(1e-5)))), f(16)), f(16))
        other = n.input("y", f(6, 16))
        z = n("Mul", n("MatMul", y, n("Transpose", other, perm=[1, 0])), np.float32(0.25))
        return n.save(path, n("Softmax", z, axis=1), n("Relu", n("Gemm", y, f(16, 5), f(5))))

    def recurrent(self, path):
        n, f = Net(14), self.floats
        y, h = n("LSTM", n.input("x", f(5, 2, 8)), f(2, 64, 8), f(2, 64, 16), f(2, 128), outputs=2, direction="bidirectional", hidden_size=16)
        return n.save(path, y, h)


def calibration(given):
    class Reader(CalibrationDataReader):
        left = [given]

        def get_next(self):
            return self.left.pop() if self.left else None
    return Reader()


def static(source, target, given, form, activations, weights, **options):
    quantize_static(str(source), str(target), calibration(given), quant_format=form, activation_type=activations, weight_type=weights, extra_options=options)


def quantised(source, target, given):
    """Writes quantised models, and gives their paths."""
    numbers = QuantType
    kinds = {
        "dynamic": lambda to: quantize_dynamic(str(source), str(to), weight_type=numbers.QUInt8),
        "qdq": lambda to: static(source, to, given, QuantFormat.QDQ, numbers.QUInt8, numbers.QInt8),
        "operators": lambda to: static(source, to, given, QuantFormat.QOperator, numbers.QUInt8, numbers.QInt8),
        "bits_16": lambda to: static(source, to, given, QuantFormat.QDQ, numbers.QUInt16, numbers.QInt8, UseQDQContribOps=True),
    }
    for name, write in kinds.items():
        path = target / f"{source.stem}_{name}.onnx"
        write(path)
        yield path


def optimised(source, target):
    for level in LEVELS:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
        options.optimized_model_filepath = str(target / f"{source.stem}_{level}.onnx")
        onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
        yield pathlib.Path(options.optimized_model_filepath)


@unittest.skipIf(onnxruntime is None, "onnx or onnxruntime is not installed for this Python")
class Written(unittest.TestCase):
    def compare(self, path, given, bound):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        expected = session.run(None, given)
        model = tenon.onnx.load(path)
        for info, right in zip(model.outputs, expected):
            found = np.asarray(model.run(given)[info.name])
            self.assertEqual((found.shape, found.dtype), (right.shape, right.dtype))
            self.assertLessEqual(np.abs(found.astype(float) - right).max(initial=0), bound * np.abs(right).max(initial=1e-6), f"{path.stem}: {info.name}")

    def check(self, net):
        onnxruntime.set_default_logger_severity(4)
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            source = folder / f"{net}.onnx"
            given = getattr(Nets(1), net)(source)
            for path in optimised(source, folder):
                with self.subTest(path.stem):
                    self.compare(path, given, EXACT)
            for numbers in quantised(source, folder, given):
                for path in (numbers, *optimised(numbers, folder)):
                    with self.subTest(path.stem):
                        self.compare(path, given, STEPS)

    def test_convolutions(self):
        self.check("convolutions")

    def test_products(self):
        self.check("products")

    def test_recurrent(self):
        self.check("recurrent")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
