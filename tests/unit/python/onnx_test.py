"""tenon.onnx.Model: outputs, reports, cancellation and the options of load(), compared with NumPy.

usage: onnx_test.py OP_RUNNER (which these tests do not use)"""

import pathlib
import sys
import tempfile
import threading
import unittest

import numpy as np
import tenon

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

try:
    import onnx
    import tenon.onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as missing:
    onnx, reason = None, str(missing)
else:
    reason = ""


def model_of(nodes, inputs, outputs, weights=(), **options):
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(*each) for each in inputs],
                              [helper.make_tensor_value_info(*each) for each in outputs], list(weights))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return tenon.onnx.load(made.SerializeToString(), **options)


def small(**options):
    """y = relu(x w), s = its sum."""
    w = numpy_helper.from_array(W, "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"], name="product"), helper.make_node("Relu", ["h"], ["y"], name="positive"),
             helper.make_node("ReduceSum", ["y"], ["s"], keepdims=0)]
    return model_of(nodes, [("x", TensorProto.FLOAT, ["batch", 4])], [("y", TensorProto.FLOAT, ["batch", 3]), ("s", TensorProto.FLOAT, [])], [w], **options)


W = np.arange(12, dtype="f4").reshape(4, 3) / 10 - 0.5
X = np.random.default_rng(0).standard_normal((2, 4)).astype("f4")
Y = np.maximum(X @ W, 0)


@unittest.skipIf(onnx is None, f"a package is missing: {reason}")
class Outputs(unittest.TestCase):
    def test_named_outputs_in_their_order(self):
        model = small()
        results = model.run({"x": X}, outputs=["s"])
        self.assertEqual(list(results), ["s"])
        self.assertAlmostEqual(results["s"].item(), float(Y.sum()), places=5)
        self.assertEqual(list(model.run({"x": X}, ["s", "y"])), ["s", "y"])
        self.assertEqual(list(model.run({"x": X}, [])), [])

    def test_an_unknown_output_lists_the_outputs(self):
        model = small()
        for given in (lambda: model.run({"x": X}, ["z"]), lambda: model.run({"x": X}, out={"z": tenon.empty(2, 3)})):
            with self.assertRaisesRegex(tenon.InvalidArgument, "no output 'z'; its outputs are 'y', 's'"):
                given()
        with self.assertRaisesRegex(TypeError, r"\['y'\]"):
            model.run({"x": X}, "y")

    def test_outputs_are_written_to_given_tensors(self):
        for options in ({}, {"eager": True}):
            model, target = small(**options), tenon.empty(2, 3)
            memory = np.asarray(target)
            for scale in (1, -1):
                results = model.run({"x": scale * X}, out={"y": target})
                self.assertIs(results["y"], target)
                np.testing.assert_allclose(memory, np.maximum(scale * X @ W, 0), rtol=1e-5, atol=1e-6)
            self.assertAlmostEqual(results["s"].item(), float(memory.sum()), places=5)

    def test_a_tensor_that_does_not_fit_is_refused(self):
        model = small()
        for wrong in (tenon.empty(3, 3), tenon.empty(2, 3, dtype=tenon.float64)):
            with self.assertRaisesRegex(tenon.InvalidArgument, r"Output 'y' is f32\[2, 3\], but the tensor bound to it is"):
                model.run({"x": X}, out={"y": wrong})
        with self.assertRaisesRegex(TypeError, r"out\['y'\] is ndarray"):
            model.run({"x": X}, out={"y": np.empty((2, 3), "f4")})

    def test_models_with_strings_write_tensors_too(self):
        nodes = [helper.make_node("Identity", ["t"], ["u"]), helper.make_node("Neg", ["x"], ["y"])]
        model = model_of(nodes, [("t", TensorProto.STRING, ["n"]), ("x", TensorProto.FLOAT, [2])], [("u", TensorProto.STRING, ["n"]), ("y", TensorProto.FLOAT, [2])])
        target = tenon.zeros(2)
        results = model.run({"t": ["a", "ä"], "x": [1.0, 2.0]}, out={"y": target})
        self.assertEqual((list(results["u"]), target.tolist()), (["a", "ä"], [-1, -2]))
        with self.assertRaisesRegex(tenon.InvalidArgument, r"Output 'y' is f32\[2\], but the tensor bound to it is f32\[3\]"):
            model.run({"t": ["a"], "x": [1.0, 2.0]}, out={"y": tenon.zeros(3)})
        with self.assertRaisesRegex(tenon.InvalidArgument, r"Output 'u' is string\[1\]"):
            model.run({"t": ["a"], "x": [1.0, 2.0]}, out={"u": tenon.zeros(1)})


    def test_results_share_no_memory(self):
        weight = numpy_helper.from_array(np.array([1, 2], "f4"), "w")
        sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
        nodes = [helper.make_node("Identity", ["t"], ["u"]), helper.make_node("Identity", ["x"], ["y"]), helper.make_node("Identity", ["w"], ["v"]),
                 helper.make_node("SequenceConstruct", ["x", "w", "x"], ["s"])]
        graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("t", TensorProto.STRING, ["n"]), helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])],
                                  [helper.make_tensor_value_info(name, kind, None) for name, kind in (("u", TensorProto.STRING), ("y", TensorProto.FLOAT), ("v", TensorProto.FLOAT))]
                                  + [sequence], [weight])
        model = tenon.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString())
        given = tenon.tensor([3.0, 4.0])
        for _ in range(2):
            results = model.run({"t": ["a"], "x": given})
            self.assertEqual([results[name].tolist() for name in "yv"] + [each.tolist() for each in results["s"]], [[3, 4], [1, 2], [3, 4], [1, 2], [3, 4]])
            for number, tensor in enumerate((results["y"], results["v"], *results["s"])):
                tensor.fill_(number + 10)
            self.assertEqual([each[0].item() for each in (results["y"], results["v"], *results["s"])], [10, 11, 12, 13, 14])
            self.assertEqual(given.tolist(), [3, 4])


@unittest.skipIf(onnx is None, f"a package is missing: {reason}")
class Reports(unittest.TestCase):
    def test_a_report_says_where_each_node_ran(self):
        for options in ({"eager": True}, {"exact": True}):
            model = small(device="cpu", **options)
            results, launches = model.run({"x": X}, outputs=["y"], report=True)
            np.testing.assert_allclose(np.asarray(results["y"]), Y, rtol=1e-5, atol=1e-6)
            self.assertEqual([each.op_type for each in launches if each.op_type], ["MatMul", "Relu", "ReduceSum"])
            first = launches[0]
            self.assertEqual((first.node, first.node_name, first.op, first.device, first.provider, first.rung, first.reason),
                             (0, "product", "matmul", "cpu:0", "cpu", "native", ""))
            self.assertTrue(all(each.implementation for each in launches if each.rung == "native"))

    def test_a_report_with_given_tensors(self):
        target = tenon.empty(2, 3)
        results, launches = small().run({"x": X}, out={"y": target}, report=True)
        self.assertIs(results["y"], target)
        self.assertGreater(len(launches), 0)
        np.testing.assert_allclose(np.asarray(target), Y, rtol=1e-5, atol=1e-6)

    def test_the_model_tells_its_device_and_recordings(self):
        model = small(device="cpu")
        self.assertEqual(model.device, tenon.Device("cpu"))
        for rows in (2, 3, 5):
            model.run({"x": np.ones((rows, 4), "f4")})
        self.assertEqual(model.recorded, 1)
        self.assertEqual(small(eager=True).recorded, 0)

    def test_types_as_onnx_writes_them(self):
        of_maps, maybe = onnx.TypeProto(), onnx.TypeProto()
        of_maps.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
        of_maps.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
        maybe.optional_type.elem_type.tensor_type.elem_type = TensorProto.INT64
        graph = helper.make_graph(
            [helper.make_node("ZipMap", ["x"], ["z"], domain="ai.onnx.ml", classlabels_strings=["a", "b"]), helper.make_node("OptionalHasElement", ["m"], ["h"])],
            "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2]), helper.make_value_info("m", maybe)],
            [helper.make_value_info("z", of_maps), helper.make_tensor_value_info("h", TensorProto.BOOL, [])])
        model = tenon.onnx.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15), helper.make_opsetid("ai.onnx.ml", 1)],
                                                  ir_version=8).SerializeToString())
        self.assertEqual([each.onnx_type for each in (*model.inputs, *model.outputs)],
                         ["tensor(float)", "optional(tensor(int64))", "seq(map(string,tensor(float)))", "tensor(bool)"])


@unittest.skipIf(onnx is None, f"a package is missing: {reason}")
class Cancellations(unittest.TestCase):
    def chain(self, count, size):
        nodes = [helper.make_node("MatMul", [f"t{i}", "x"], [f"t{i + 1}"]) for i in range(count)]
        nodes[0].input[0] = "x"
        return model_of(nodes, [("x", TensorProto.FLOAT, ["n", "n"])], [(f"t{count}", TensorProto.FLOAT, None)]), np.zeros((size, size), "f4")

    def test_another_thread_stops_a_run(self):
        model, x = self.chain(400, 1024)  # a minute and more
        request = tenon.onnx.Cancellation()
        self.assertFalse(request.cancelled)
        timer = threading.Timer(0.5, request.cancel)
        timer.start()
        with self.assertRaises(tenon.Cancelled):
            while True:
                model.run({"x": x}, cancellation=request)
        timer.join()
        self.assertTrue(request.cancelled)

    def test_a_cancelled_request_refuses_runs_and_the_model_lives(self):
        model, request = small(), tenon.onnx.Cancellation()
        model.run({"x": X}, cancellation=request)
        request.cancel()
        with self.assertRaisesRegex(tenon.Cancelled, "before it began"):
            model.run({"x": X}, cancellation=request)
        np.testing.assert_allclose(np.asarray(model.run({"x": X}, cancellation=tenon.onnx.Cancellation())["y"]), Y, rtol=1e-5, atol=1e-6)


@unittest.skipIf(onnx is None, f"a package is missing: {reason}")
class Options(unittest.TestCase):
    def test_options_give_equal_results(self):
        for options in ({"fuse": True, "wait": True}, {"fuse": False}, {"wait": False}, {"exact": True}, {"eager": True}, {"max_recorded": 1}, {"precision": "full"}):
            model = small(**options)
            for rows in (2, 1, 2):
                np.testing.assert_allclose(np.asarray(model(X[:rows])[0]), Y[:rows], rtol=1e-5, atol=1e-6, err_msg=str(options))

    def test_how_strictly_shapes_are_checked(self):
        nodes, types = [helper.make_node("Relu", ["x"], ["y"])], ([("x", TensorProto.FLOAT, [2, 3])], [("y", TensorProto.FLOAT, None)])
        for shapes, fits in (("exact", [True, False, False]), ("rank", [True, True, False]), ("any", [True, True, True])):
            model = model_of(nodes, *types, shapes=shapes)
            for given, fit in zip((np.ones((2, 3), "f4"), np.ones((4, 3), "f4"), np.ones(3, "f4")), fits):
                if fit:
                    self.assertEqual(model(given).tolist(), given.tolist())
                else:
                    self.assertRaises(tenon.InvalidArgument, model, given)

    def test_wrong_options_are_refused(self):
        for options, text in (({"shapes": "none"}, "shapes is 'none'; it must be 'exact', 'rank' or 'any'"), ({"max_recorded": 0}, "max_recorded is 0"),
                              ({"precision": "high"}, "high")):
            with self.assertRaisesRegex(tenon.InvalidArgument, text):
                small(**options)

    def test_external_weights_of_a_model_from_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            W.tofile(pathlib.Path(folder) / "w.bin")
            weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=W.shape, data_location=TensorProto.EXTERNAL)
            weight.external_data.add(key="location", value="w.bin")
            nodes, types = [helper.make_node("MatMul", ["x", "w"], ["y"])], ([("x", TensorProto.FLOAT, [2, 4])], [("y", TensorProto.FLOAT, [2, 3])])
            self.assertRaises(tenon.Error, model_of, nodes, *types, [weight])
            model = model_of(nodes, *types, [weight], external_data_root=folder)
            np.testing.assert_allclose(np.asarray(model(X)), X @ W, rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    unittest_report.main()
