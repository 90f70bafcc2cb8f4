"""tenon.onnxruntime side by side with ONNX Runtime: results, descriptions, errors, bindings, options, profiles.

Without the package onnxruntime, results are compared with NumPy only.

usage: onnxruntime_test.py OP_RUNNER (which these tests do not use)"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np
import tenon

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

try:
    import onnx
    import tenon.onnxruntime as ort
    from onnx import TensorProto, helper, numpy_helper
    from tenon.onnxruntime.capi import onnxruntime_pybind11_state as errors
except ImportError as missing:
    onnx, reason = None, str(missing)
else:
    reason = ""
try:
    import onnxruntime
    onnxruntime.set_default_logger_severity(4)
except ImportError:
    onnxruntime = None

needs_onnx = unittest.skipIf(onnx is None, f"a package is missing: {reason}")
needs_peer = unittest.skipIf(onnxruntime is None, "the package onnxruntime is missing")
CPU = ["CPUExecutionProvider"]


def bytes_of(nodes, inputs, outputs, weights=(), opset=17, **properties):
    def value(name, kind, shape=None):
        return helper.make_value_info(name, kind) if isinstance(kind, onnx.TypeProto) else helper.make_tensor_value_info(name, kind, shape)

    graph = helper.make_graph(nodes, "net", [value(*each) for each in inputs], [value(*each) for each in outputs], list(weights))
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 2)], ir_version=8, **properties)
    return made.SerializeToString()


def small():
    """y = relu(x), z = -y."""
    return bytes_of([helper.make_node("Relu", ["x"], ["y"], name="r"), helper.make_node("Neg", ["y"], ["z"])],
                    [("x", TensorProto.FLOAT, ["n", 2])], [("y", TensorProto.FLOAT, ["n", 2]), ("z", TensorProto.FLOAT, ["n", 2])])


def typed(text):
    """The TypeProto of "seq(tensor(float))" and the like."""
    made = onnx.TypeProto()
    kinds = {"float": TensorProto.FLOAT, "int64": TensorProto.INT64, "string": TensorProto.STRING}

    def fill(proto, text):
        outer, _, inner = text.partition("(")
        inner = inner[:-1]
        if outer == "tensor":
            proto.tensor_type.elem_type = kinds[inner]
        elif outer == "map":
            key, _, held = inner.partition(",")
            proto.map_type.key_type = kinds[key]
            fill(proto.map_type.value_type, held)
        else:
            fill((proto.sequence_type if outer == "seq" else proto.optional_type).elem_type, inner)
    fill(made, text)
    return made


X = np.array([[1, -2], [-3, 4], [5, 6]], "f4")


def models():
    """name: the bytes, and feeds."""
    random, two = np.random.default_rng(0), np.ones(2, "f4")
    ml = {"domain": "ai.onnx.ml"}
    w = numpy_helper.from_array(random.standard_normal((4, 3)).astype("f4"), "w")
    return {
        "two outputs": (small(), [{"x": X}, {"x": X[:1]}, {"x": X.tolist()}]),
        "a weight that may be fed": (
            bytes_of([helper.make_node("Gemm", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [2, 4]), ("w", TensorProto.FLOAT, [4, 3])],
                     [("y", TensorProto.FLOAT, [2, 3])], [w]),
            [{"x": np.ones((2, 4), "f4")}, {"x": np.ones((2, 4), "f4"), "w": np.ones((4, 3), "f4")}]),
        "dtypes": (
            bytes_of([helper.make_node("Not", ["b"], ["c"]), helper.make_node("Cast", ["h"], ["i"], to=TensorProto.INT64), helper.make_node("Neg", ["d"], ["e"])],
                     [("b", TensorProto.BOOL, [2]), ("h", TensorProto.FLOAT16, ["n", None]), ("d", TensorProto.DOUBLE, [])],
                     [("c", TensorProto.BOOL, [2]), ("i", TensorProto.INT64, ["n", None]), ("e", TensorProto.DOUBLE, [])]),
            [{"b": np.array([True, False]), "h": np.array([[1.5, -2]], "f2"), "d": np.array(3.0)}]),
        "strings": (
            bytes_of([helper.make_node("LabelEncoder", ["t"], ["i"], keys_strings=["a", "grüß"], values_int64s=[4, 5], default_int64=-1, **ml),
                      helper.make_node("Identity", ["t"], ["u"])],
                     [("t", TensorProto.STRING, ["n"])], [("i", TensorProto.INT64, ["n"]), ("u", TensorProto.STRING, ["n"])]),
            [{"t": np.array(["grüß", "a", "?"])}, {"t": np.array(["a", ""], object)}, {"t": ["a", "b"]}]),
        "sequences": (
            bytes_of([helper.make_node("SequenceInsert", ["s", "x"], ["t"]), helper.make_node("SequenceLength", ["t"], ["n"])],
                     [("s", typed("seq(tensor(float))")), ("x", TensorProto.FLOAT, [2])], [("t", typed("seq(tensor(float))")), ("n", TensorProto.INT64, [])]),
            [{"s": [two, 2 * two], "x": 3 * two}, {"s": [], "x": two}]),
        "maps out": (
            bytes_of([helper.make_node("ZipMap", ["p"], ["z"], classlabels_strings=["no", "yes"], **ml)], [("p", TensorProto.FLOAT, ["n", 2])],
                     [("z", typed("seq(map(string,tensor(float)))"))]),
            [{"p": np.array([[0.25, 0.75], [0.5, 0.5]], "f4")}]),
        "maps of ints out": (
            bytes_of([helper.make_node("ZipMap", ["p"], ["z"], classlabels_int64s=[3, 7], **ml)], [("p", TensorProto.FLOAT, ["n", 2])],
                     [("z", typed("seq(map(int64,tensor(float)))"))]),
            [{"p": np.array([[0.25, 0.75]], "f4")}]),
        "maps in": (
            bytes_of([helper.make_node("CastMap", ["m"], ["y"], cast_to="TO_FLOAT", map_form="DENSE", **ml)], [("m", typed("map(int64,tensor(float))"))],
                     [("y", TensorProto.FLOAT, [1, "n"])]),
            [{"m": {1: 2.0, 3: 4.0}}]),
        "optionals": (
            bytes_of([helper.make_node("OptionalHasElement", ["o"], ["y"])], [("o", typed("optional(tensor(float))"))], [("y", TensorProto.BOOL, [])], opset=18),
            [{"o": two}, {"o": None}, {}]),
    }


class Pairs(unittest.TestCase):
    def assert_same(self, mine, theirs):
        self.assertIs(type(mine), type(theirs))
        if isinstance(theirs, list):
            self.assertEqual(len(mine), len(theirs))
            for pair in zip(mine, theirs):
                self.assert_same(*pair)
        elif isinstance(theirs, np.ndarray):
            self.assertEqual((mine.dtype, mine.shape), (theirs.dtype, theirs.shape))
            if theirs.dtype == object:
                self.assertEqual(mine.tolist(), theirs.tolist())
            else:
                np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
        else:
            self.assertEqual(mine, theirs)

    def both(self, call):
        """Calls call(module) with both packages: its results or the names of its exceptions."""
        found = []
        for module in (ort, onnxruntime):
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append((call(module), None))
            except Exception as error:
                found.append((None, error))
        return found

    def assert_both_refuse(self, call, name=None):
        (_, mine), (_, theirs) = self.both(call)
        self.assertIsNotNone(theirs, "ONNX Runtime accepts it")
        self.assertEqual(type(mine).__name__, name or type(theirs).__name__, f"{mine!r} and {theirs!r}")

    def assert_both_give(self, call):
        (mine, refused), (theirs, peers_refused) = self.both(call)
        self.assertEqual((refused, peers_refused), (None, None))
        self.assert_same(mine, theirs)
        return mine


@needs_onnx
@needs_peer
class SideBySide(Pairs):
    def test_results(self):
        for name, (model, feeds) in models().items():
            for feed in feeds:
                with self.subTest(name):
                    self.assert_both_give(lambda module: module.InferenceSession(model, providers=CPU).run(None, feed))

    def test_chosen_outputs(self):
        for names in (["z"], ["z", "y"], ("y",), ["y", "y"], []):
            self.assert_both_give(lambda module: module.InferenceSession(small(), providers=CPU).run(names, {"x": X}))

    def test_results_may_be_written_and_kept(self):
        session = ort.InferenceSession(small())
        first = session.run(None, {"x": X})[0]
        first[0] = 7
        self.assertEqual(session.run(None, {"x": X})[0][0].tolist(), [1, 0])
        self.assertEqual(first[0].tolist(), [7, 7])
        identity = bytes_of([helper.make_node("Identity", ["x"], ["y"])], [("x", TensorProto.FLOAT, [100000])], [("y", TensorProto.FLOAT, [100000])])
        given = np.ones(100000, "f4")
        ort.InferenceSession(identity).run(None, {"x": given})[0][:] = 5
        self.assertEqual(given.sum(), 100000)

    def test_descriptions(self):
        for name, (model, _) in models().items():
            with self.subTest(name):
                for method in ("get_inputs", "get_outputs", "get_overridable_initializers"):
                    self.assert_both_give(lambda module: [[each.name, each.type, list(each.shape)] for each in getattr(module.InferenceSession(model), method)()])
        self.assert_both_give(lambda module: [str(each) for each in module.InferenceSession(small()).get_inputs()])

    def test_metadata(self):
        def described(module):
            meta = module.InferenceSession(bytes_of(
                [helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, [2])], [("y", TensorProto.FLOAT, [2])], producer_name="tests",
                domain="org.example", model_version=3, doc_string="a small net")).get_modelmeta()
            return [meta.producer_name, meta.graph_name, meta.domain, meta.description, meta.graph_description, meta.version, dict(meta.custom_metadata_map)]
        self.assert_both_give(described)

    def test_default_options(self):
        for name in ("SessionOptions", "RunOptions"):
            def defaults(module):
                options = getattr(module, name)()
                return [[key, str(getattr(options, key))] for key in vars(getattr(ort, name))["_DEFAULTS"] if key not in ("execution_order",)]
            mine, theirs = (sorted(found[0]) for found in self.both(defaults))
            enums = {key for key, value in theirs if "." in value}  # how an enum is printed differs between versions of Python
            self.assertEqual([each for each in mine if each[0] not in enums], [each for each in theirs if each[0] not in enums])
        for name in ("GraphOptimizationLevel", "ExecutionMode"):
            self.assert_both_give(lambda module: [[each, int(value.value)] for each, value in getattr(module, name).__members__.items()])

    def test_wrong_feeds(self):
        def run(names, feed):
            return lambda module: module.InferenceSession(small(), providers=CPU).run(names, feed)
        for names, feed in ((None, {}), (None, {"q": X}), (None, {"x": X, "q": X}), (["bad"], {"x": X}), ("y", {"x": X}), (None, {"x": X.astype("f8")}),
                            (None, {"x": X[:, :1]}), (None, {"x": X[0]}), (None, {"x": 1.0}), (None, {"x": "abc"}), (None, {"x": X.astype("i8")}),
                            (None, {"x": np.array([["a", "b"]])})):
            with self.subTest(f"{names} {feed}"):
                self.assert_both_refuse(run(names, feed))
        strings, sequences = models()["strings"][0], models()["sequences"][0]
        one = np.ones(2, "f4")
        self.assert_both_refuse(lambda module: module.InferenceSession(strings).run(None, {"t": np.array([1, 2])}))
        self.assert_both_refuse(lambda module: module.InferenceSession(sequences).run(None, {"s": one, "x": one}))
        # ONNX Runtime raises RuntimeError here, and InvalidArgument for a dtype everywhere else.
        self.assert_both_refuse(lambda module: module.InferenceSession(sequences).run(None, {"s": [one.astype("f8")], "x": one}), "InvalidArgument")

    def test_wrong_models(self):
        for given in ("/nowhere/net.onnx", b"garbage", 5):
            self.assert_both_refuse(lambda module: module.InferenceSession(given))
        unknown = bytes_of([helper.make_node("Nothing", ["x"], ["y"])], [("x", TensorProto.FLOAT, [2])], [("y", TensorProto.FLOAT, [2])])
        # For Tenon it is one of the operators that it lacks.
        self.assert_both_refuse(lambda module: module.InferenceSession(unknown), "NotImplemented")

    def test_wrong_options(self):
        self.assert_both_refuse(lambda module: setattr(module.SessionOptions(), "graph_optimization_level", 3))
        self.assert_both_refuse(lambda module: setattr(module.SessionOptions(), "intra_op_num_threads", "x"))
        self.assert_both_refuse(lambda module: setattr(module.SessionOptions(), "nothing", 1))
        self.assert_both_refuse(lambda module: setattr(module.RunOptions(), "terminate", "x"))
        self.assert_both_refuse(lambda module: module.SessionOptions().get_session_config_entry("x"))
        self.assert_both_refuse(lambda module: module.RunOptions().get_run_config_entry("x"))

    def test_entries(self):
        def entries(module):
            session, run = module.SessionOptions(), module.RunOptions()
            session.add_session_config_entry("session.intra_op.allow_spinning", "0")
            run.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
            return [session.get_session_config_entry("session.intra_op.allow_spinning"), run.get_run_config_entry("memory.enable_memory_arena_shrinkage")]
        self.assert_both_give(entries)

    def test_terminated_runs(self):
        def run(module):
            options = module.RunOptions()
            options.terminate = True
            module.InferenceSession(small()).run(None, {"x": X}, options)
        self.assert_both_refuse(run)

        def run_again(module):
            options = module.RunOptions()
            options.terminate = True
            options.terminate = False
            return module.InferenceSession(small()).run(None, {"x": X}, options)
        self.assert_both_give(run_again)

    def test_sizes_that_are_fixed_by_options(self):
        model = bytes_of([helper.make_node("Relu", ["x"], ["y"])], [("x", TensorProto.FLOAT, ["n", None, 3])], [("y", TensorProto.FLOAT, ["n", None, 3])])

        def session(module):
            options = module.SessionOptions()
            options.add_free_dimension_override_by_name("n", 4)
            return module.InferenceSession(model, options)
        self.assert_both_give(lambda module: [list(each.shape) for each in (*session(module).get_inputs(), *session(module).get_outputs())])
        self.assert_both_give(lambda module: session(module).run(None, {"x": np.ones((4, 1, 3), "f4")}))
        self.assert_both_refuse(lambda module: session(module).run(None, {"x": np.ones((2, 1, 3), "f4")}))

    def test_providers(self):
        for providers, options in ((CPU, None), (["CUDAExecutionProvider", "CPUExecutionProvider"], None), (["NoProvider", "CPUExecutionProvider"], None),
                                   ([("CPUExecutionProvider", {})], None), (CPU, [{}]), ([5], None), ([], None), (["CPUExecutionProvider"] * 2, None)):
            with self.subTest(f"{providers}"):
                self.assert_both_give(lambda module: module.InferenceSession(small(), providers=providers, provider_options=options).get_providers())
        for providers, options in ((["NoProvider"], None), ([5], None), (CPU, [{}, {}]), (CPU, {})):
            with self.subTest(f"{providers} {options}"):
                self.assert_both_refuse(lambda module: module.InferenceSession(small(), providers=providers, provider_options=options, enable_fallback=0))

    def test_warnings_about_providers(self):
        for module in (ort, onnxruntime):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                module.InferenceSession(small(), providers=["NoProvider", "CPUExecutionProvider", "CPUExecutionProvider"])
            texts = [str(each.message) for each in found]
            self.assertTrue(texts[0].startswith("Specified provider 'NoProvider' is not in available provider names."), texts)
            self.assertEqual(texts[1], "Duplicate provider 'CPUExecutionProvider' encountered, ignoring.")

    def test_runs_on_another_thread(self):
        def outcome(feed):
            def call(module):
                done, found = threading.Event(), []

                def callback(results, user_data, error):
                    found.extend([results, user_data, bool(error)])
                    done.set()
                session = module.InferenceSession(small(), providers=CPU)
                session.run_async(["z"], feed, callback, "mine")
                self.assertTrue(done.wait(60))
                return found
            return call
        self.assert_both_give(outcome({"x": X}))
        self.assert_both_give(outcome({"x": X.astype("f8")}))
        self.assert_both_refuse(outcome({}))

    def test_exceptions_have_the_same_names(self):
        from onnxruntime.capi import onnxruntime_pybind11_state as peers
        for name in dir(peers):
            if isinstance(getattr(peers, name), type) and issubclass(getattr(peers, name), Exception):
                self.assertTrue(issubclass(getattr(errors, name), Exception), name)

    def test_names_of_the_package(self):
        from tenon.onnxruntime._refused import REFUSED
        internal = {"capi", "contextlib", "import_capi_exception", "onnxruntime_validation", "package_name", "version", "cuda_version", "print_debug_info",
                    "has_collective_ops", "OrtAllocatorType", "OrtCompileApiFlags", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtMemType",
                    "OrtMemoryInfoDeviceType", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtSparseFormat", "OrtSyncStream", "OrtExternalInitializerInfo"}
        for name in dir(onnxruntime):
            refused = any(name.startswith(each) for each in REFUSED) or name.startswith(("OrtEp", "OrtExecutionProvider"))
            if not name.startswith("_") and name not in internal and not refused:
                with self.subTest(name):
                    self.assertTrue(hasattr(ort, name), name)

    def test_each_name_is_there_or_is_refused_with_a_sentence(self):
        for kind in ("InferenceSession", "IOBinding", "OrtValue", "SessionOptions", "RunOptions", "ModelMetadata", "NodeArg", "OrtDevice"):
            for name in dir(getattr(onnxruntime, kind)):
                if not name.startswith("_") and name not in ("release_captured_graph",):
                    with self.subTest(f"{kind}.{name}"):
                        self.assertTrue(hasattr(getattr(ort, kind), name) or name in getattr(getattr(ort, kind), "_DEFAULTS", ()), f"{kind}.{name}")
        with self.assertRaisesRegex(AttributeError, "adapters are not read"):
            ort.LoraAdapter


@needs_onnx
@needs_peer
class Bindings(Pairs):
    def test_arrays_in_and_out(self):
        def run(module):
            session = module.InferenceSession(small(), providers=CPU)
            binding = session.io_binding()
            binding.bind_cpu_input("x", X)
            binding.bind_output("z")
            binding.bind_output("y", "cpu", 0)
            session.run_with_iobinding(binding)
            first = binding.copy_outputs_to_cpu()
            values = [[each.numpy(), each.device_name(), list(each.shape()), each.data_type()] for each in binding.get_outputs()]
            binding.clear_binding_outputs()
            return [first, values, binding.get_outputs()]
        self.assert_both_give(run)

    def test_memory_at_an_address(self):
        def run(module):
            source, target = X.copy(), np.zeros((3, 2), "f4")
            session = module.InferenceSession(small(), providers=CPU)
            binding = session.io_binding()
            binding.bind_input("x", "cpu", 0, np.float32, source.shape, source.ctypes.data)
            binding.bind_output("z", "cpu", 0, np.float32, target.shape, target.ctypes.data)
            made = []
            for scale in (1, -2):
                source *= scale
                session.run_with_iobinding(binding)
                made.append(target.copy())
            return made
        self.assert_both_give(run)

    def test_values(self):
        def run(module):
            value, target = module.OrtValue.ortvalue_from_numpy(X.copy()), module.OrtValue.ortvalue_from_shape_and_type([3, 2], np.float32)
            session = module.InferenceSession(small(), providers=CPU)
            binding = session.io_binding()
            binding.bind_ortvalue_input("x", value)
            binding.bind_ortvalue_output("y", target)
            session.run_with_iobinding(binding)
            first = target.numpy().copy()
            value.update_inplace(-X)
            session.run_with_iobinding(binding)
            return [first, target.numpy(), binding.get_outputs()[0].numpy()]
        self.assert_both_give(run)

    def test_strings_come_out(self):
        strings = bytes_of([helper.make_node("LabelEncoder", ["i"], ["t"], domain="ai.onnx.ml", keys_int64s=[1], values_strings=["one"], default_string="?")],
                           [("i", TensorProto.INT64, ["n"])], [("t", TensorProto.STRING, ["n"])])

        def run(module):
            session = module.InferenceSession(strings)
            binding = session.io_binding()
            binding.bind_cpu_input("i", np.array([1, 2]))
            binding.bind_output("t")
            session.run_with_iobinding(binding)
            if module is ort:  # ONNX Runtime 1.32 crashes here
                self.assertEqual(binding.copy_outputs_to_cpu()[0].tolist(), ["one", "?"])
            return [binding.get_outputs()[0].numpy(), binding.get_outputs()[0].data_type()]
        self.assert_both_give(run)

    def test_errors(self):
        def bound(bind):
            def call(module):
                session = module.InferenceSession(small(), providers=CPU)
                binding = session.io_binding()
                binding.bind_cpu_input("x", X)
                bind(module, binding)
                session.run_with_iobinding(binding)
            return call
        wide, short = np.zeros((3, 2)), np.zeros((2, 2), "f4")
        for bind in (lambda module, binding: None, lambda module, binding: binding.bind_output("q"), lambda module, binding: binding.bind_cpu_input("q", X),
                     lambda module, binding: (binding.bind_output("y"), binding.bind_cpu_input("x", X.astype("f8"))),
                     lambda module, binding: binding.bind_output("y", "cpu", 0, np.float64, wide.shape, wide.ctypes.data),
                     lambda module, binding: binding.bind_output("y", "cpu", 0, np.float32, short.shape, short.ctypes.data),
                     lambda module, binding: binding.bind_output("y", "nothing"), lambda module, binding: binding.bind_output("y", "cpu", 0, None, None, 5),
                     lambda module, binding: (binding.clear_binding_inputs(), binding.bind_output("y")),
                     lambda module, binding: (binding.bind_output("y"), module.InferenceSession(small()).run_with_iobinding(binding))):
            self.assert_both_refuse(bound(bind))


@needs_onnx
@needs_peer
class Values(Pairs):
    def test_properties(self):
        def described(value):
            return [list(value.shape()), value.data_type(), value.element_type(), value.device_name(), value.is_tensor(), value.has_value(),
                    value.is_sparse_tensor(), value.is_tensor_sequence(), value.tensor_size_in_bytes()]
        for dtype in ("f4", "f8", "f2", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"):
            self.assert_both_give(lambda module: described(module.OrtValue.ortvalue_from_numpy(np.ones((2, 3), dtype))))
            self.assert_both_give(lambda module: described(module.OrtValue.ortvalue_from_shape_and_type([4], np.dtype(dtype).type)))
        self.assert_both_give(lambda module: described(module.OrtValue.ortvalue_from_shape_and_type([2, 3], TensorProto.BFLOAT16)))
        self.assert_both_give(lambda module: described(module.OrtValue.ortvalue_from_shape_and_type([], np.float32)))

    def test_memory_is_shared_on_the_cpu(self):
        def shared(module):
            given = X.copy()
            value = module.OrtValue.ortvalue_from_numpy(given)
            value.update_inplace(np.zeros_like(given))
            return [given, value.data_ptr() == given.ctypes.data, np.asarray(value), value.numpy()]
        self.assert_both_give(shared)

    def test_dlpack(self):
        def passed(module):
            given = X.copy()
            value = module.OrtValue.from_dlpack(given)
            value.update_inplace(2 * X)
            return [given, np.from_dlpack(value), list(value.__dlpack_device__())]
        self.assert_both_give(passed)
        value = ort.OrtValue.from_dlpack(tenon.tensor([1.0, 2.0]))
        self.assertEqual(tenon.from_dlpack(value).tolist(), [1, 2])

    def test_runs_with_values(self):
        def run(module):
            feeds = {"x": module.OrtValue.ortvalue_from_numpy(X)}
            session = module.InferenceSession(small(), providers=CPU)
            return [session.run(["z"], feeds), [[each.numpy(), each.data_type()] for each in session.run_with_ort_values(["z", "y"], feeds)]]
        self.assert_both_give(run)

    def test_copies(self):
        # ONNX Runtime has no copy between two values on the cpu.
        source, target = ort.OrtValue.ortvalue_from_numpy(X.copy()), ort.OrtValue.ortvalue_from_numpy(np.zeros((3, 2), "f4"))
        ort.copy_tensors([source], [target])
        np.testing.assert_array_equal(target.numpy(), X)
        self.assertRaises(ValueError, ort.copy_tensors, [source], [])

    def test_errors(self):
        def value(module):
            return module.OrtValue.ortvalue_from_numpy(X.copy())
        for call in (lambda module: module.OrtValue.ortvalue_from_numpy(np.array(["a"])), lambda module: module.OrtValue.ortvalue_from_numpy([1, 2]),
                     lambda module: module.OrtValue.ortvalue_from_numpy(X, "nothing"), lambda module: module.OrtValue.ortvalue_from_numpy(X, "cann"),
                     lambda module: value(module).update_inplace(np.zeros((2, 2), "f4")), lambda module: value(module).update_inplace([1]),
                     lambda module: module.OrtValue.ortvalue_from_shape_and_type([2], TensorProto.BFLOAT16).numpy()):
            self.assert_both_refuse(call)


@needs_onnx
class Sessions(unittest.TestCase):
    """Tests without a peer."""

    def test_a_session_of_a_file_and_of_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "net.onnx"
            path.write_bytes(small())
            for given in (path, str(path), small()):
                session = ort.InferenceSession(given, providers=[("TenonExecutionProvider", {"device": "cpu:0", "exact": "1"})])
                self.assertEqual(session.get_providers(), ["TenonExecutionProvider", "CPUExecutionProvider"])
                self.assertEqual(session.get_provider_options()["TenonExecutionProvider"], {"device": "cpu:0", "exact": "1"})
                np.testing.assert_array_equal(session.run(["z"], {"x": X})[0], -np.maximum(X, 0))
                session.set_providers(CPU)
                self.assertEqual(session.get_providers(), CPU)
                np.testing.assert_array_equal(session.run(["z"], {"x": X})[0], -np.maximum(X, 0))
            self.assertRaises(errors.NotImplemented, ort.InferenceSession, str(path.with_suffix(".ort")))

    def test_tensors_are_inputs_too(self):
        np.testing.assert_array_equal(ort.InferenceSession(small()).run(["y"], {"x": tenon.tensor(X)})[0], np.maximum(X, 0))

    def test_wrong_options_of_the_provider(self):
        for options, text in (({"nothing": 1}, "Unknown provider option: 'nothing'"), ({"exact": "maybe"}, "'exact' of TenonExecutionProvider is 'maybe'")):
            with self.assertRaisesRegex(errors.InvalidArgument, text):
                ort.InferenceSession(small(), providers=[("TenonExecutionProvider", options)])

    def test_what_would_change_results_is_refused(self):
        options = ort.SessionOptions()
        with self.assertRaisesRegex(errors.NotImplemented, "cannot be written as ONNX"):
            options.optimized_model_filepath = "optimised.onnx"
        with self.assertRaisesRegex(errors.NotImplemented, "denormal"):
            options.add_session_config_entry("session.set_denormal_as_zero", "1")
        options.add_session_config_entry("session.set_denormal_as_zero", "0")
        self.assertRaises(errors.NotImplemented, options.register_custom_ops_library, "custom.so")
        self.assertRaises(errors.NotImplemented, ort.RunOptions().add_active_adapter, None)
        binding = ort.InferenceSession(small()).io_binding()
        self.assertRaises(errors.NotImplemented, binding.bind_input, "x", "cuda", 0, np.float32, [3, 2], 4096)
        self.assertEqual(str(errors._error(errors.Fail, "No.")), "[ONNXRuntimeError] : 1 : FAIL : No.")

    def test_the_page_lists_the_refusals(self):
        from tenon.onnxruntime import _refused
        page = (pathlib.Path(__file__).resolve().parents[3] / "sdk" / "python" / "ONNXRUNTIME.md").read_text(encoding="utf-8")
        for name, why in _refused.REFUSED.items():
            self.assertIn(f"| `{name}` | {why} |", page)
        for key, (_, why) in _refused.REFUSED_ENTRIES.items():
            self.assertRegex(page, rf"\| `{key}` \| .* \| {re.escape(why)} \|")

    def test_levels_of_optimisation(self):
        options = ort.SessionOptions()
        for level in ort.GraphOptimizationLevel:
            options.graph_optimization_level = level
            options.intra_op_num_threads = np.int64(2)
            np.testing.assert_array_equal(ort.InferenceSession(small(), options).run(["y"], {"x": X})[0], np.maximum(X, 0))

    def test_external_weights_of_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            np.array([2, 3], "f4").tofile(pathlib.Path(folder) / "w.bin")
            weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
            weight.external_data.add(key="location", value="w.bin")
            options = ort.SessionOptions()
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
            model = bytes_of([helper.make_node("Mul", ["x", "w"], ["y"])], [("x", TensorProto.FLOAT, [2])], [("y", TensorProto.FLOAT, [2])], [weight])
            self.assertEqual(ort.InferenceSession(model, options).run(None, {"x": np.ones(2, "f4")})[0].tolist(), [2, 3])

    def test_another_thread_terminates_a_run(self):
        nodes = [helper.make_node("MatMul", [f"t{i}" if i else "x", "x"], [f"t{i + 1}"]) for i in range(400)]
        session = ort.InferenceSession(bytes_of(nodes, [("x", TensorProto.FLOAT, ["n", "n"])], [("t400", TensorProto.FLOAT, None)]))
        options = ort.RunOptions()
        timer = threading.Timer(0.3, lambda: setattr(options, "terminate", True))
        timer.start()
        with self.assertRaisesRegex(errors.Fail, "terminate flag"):
            while True:
                session.run(None, {"x": np.zeros((1024, 1024), "f4")}, options)
        timer.join()

    def test_a_profile_names_the_nodes(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, "profile")
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            before = time.monotonic_ns()
            session = ort.InferenceSession(small(), options, providers=CPU)
            other = ort.InferenceSession(small(), options, providers=CPU)  # two profiles at once
            self.assertLessEqual(before, session.get_profiling_start_time_ns())
            for _ in range(3):
                session.run(None, {"x": X})
            other.run(None, {"x": X})
            paths = other.end_profiling(), session.end_profiling()
            self.assertNotEqual(*paths)
            self.assertEqual(session.end_profiling(), "")
            session.run(None, {"x": X})
            self.assertTrue(all(path.startswith(options.profile_file_prefix) for path in paths))
            for path, runs in zip(paths, (1, 3)):
                events = json.loads(pathlib.Path(path).read_text())
                self.assertEqual([each["name"] for each in events if each["cat"] == "Session"],
                                 ["model_loading_array", "session_initialization"] + ["model_run"] * runs)
                nodes = [each for each in events if each["cat"] == "Node"]
                self.assertEqual([each["args"]["op_name"] for each in nodes], ["Relu", "Neg"] * runs)
                self.assertEqual(nodes[0]["name"], "r_kernel_time")
                self.assertEqual((nodes[0]["args"]["node_index"], nodes[0]["args"]["device"]), ("0", "cpu:0"))
                self.assertTrue(all(each["ph"] == "X" and each["args"]["timed"] and each["dur"] > 0 for each in nodes), nodes)
                whole = [(each["ts"], each["ts"] + each["dur"]) for each in events if each["name"] == "model_run"]
                self.assertTrue(all(any(begin <= each["ts"] and each["ts"] + each["dur"] <= end for begin, end in whole) for each in nodes))

    def test_a_session_that_ends_writes_its_profile(self):
        with tempfile.TemporaryDirectory() as folder:
            options = ort.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "profile")
            ort.InferenceSession(small(), options).run(None, {"x": X})
            [path] = pathlib.Path(folder).iterdir()
            self.assertIn("Node", {each["cat"] for each in json.loads(path.read_text())})

    def test_a_profile_beside_tenon_profile(self):
        with tempfile.TemporaryDirectory() as folder, tenon.profile(show=False):
            options = ort.SessionOptions()
            options.enable_profiling, options.profile_file_prefix = True, os.path.join(folder, "profile")
            session = ort.InferenceSession(small(), options, providers=CPU)
            session.run(None, {"x": X})
            events = json.loads(pathlib.Path(session.end_profiling()).read_text())
            self.assertEqual({each["args"]["timed"] for each in events if each["cat"] == "Node"}, {False})
        with tenon.profile(show=False):  # the trace is free again
            pass

    def test_the_import_is_lazy(self):
        script = "import sys, tenon; print([name for name in sys.modules if name.startswith(('numpy', 'tenon.onnx'))])"
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout.replace("'tenon.onnx', 'tenon.onnxruntime'", ""), "[]\n", done.stderr)
        script = "import tenon; print(tenon.onnxruntime.get_available_providers()[-1])"
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stdout, "CPUExecutionProvider\n", done.stderr)

    def test_threads_share_a_session(self):
        session, wrong = ort.InferenceSession(small()), []

        def work(seed):
            x = np.random.default_rng(seed).standard_normal((seed + 1, 2)).astype("f4")
            for _ in range(50):
                if not np.array_equal(session.run(["z"], {"x": x})[0], -np.maximum(x, 0)):
                    wrong.append(seed)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(wrong, [])


# Programs of ONNX Runtime's documentation. IMPORT is replaced by the import line; MODEL is the path of a model with
# input "input" and output "output".
PROGRAMS = {
    "a session": """
IMPORT
import numpy
session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
input_name = session.get_inputs()[0].name
print("input name", input_name)
print("input shape", session.get_inputs()[0].shape)
print("input type", session.get_inputs()[0].type)
output_name = session.get_outputs()[0].name
print("output name", output_name, session.get_outputs()[0].shape, session.get_outputs()[0].type)
x = numpy.linspace(-1, 1, 12).reshape(3, 4).astype(numpy.float32)
res = session.run([output_name], {input_name: x})
print(numpy.round(res[0], 4).tolist())
try:
    session.run([output_name], {"misspelled": x})
except Exception as e:
    print(type(e).__name__)
try:
    session.run([output_name], {input_name: x.astype(numpy.float64)})
except (onnxruntime.capi.onnxruntime_pybind11_state.InvalidArgument) as e:
    print("InvalidArgument", "INVALID_ARGUMENT" in str(e))
""",
    "a binding": """
IMPORT as onnxrt
import numpy as np
X = np.linspace(-1, 1, 12).reshape(3, 4).astype(np.float32)
X_ortvalue = onnxrt.OrtValue.ortvalue_from_numpy(X)
print(X_ortvalue.device_name(), X_ortvalue.shape(), X_ortvalue.data_type(), X_ortvalue.is_tensor(), np.array_equal(X_ortvalue.numpy(), X))
session = onnxrt.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
print(session.run(["output"], {"input": X_ortvalue})[0].shape)
io_binding = session.io_binding()
io_binding.bind_input(name="input", device_type=X_ortvalue.device_name(), device_id=0, element_type=np.float32, shape=X_ortvalue.shape(), buffer_ptr=X_ortvalue.data_ptr())
io_binding.bind_output("output")
session.run_with_iobinding(io_binding)
Y = io_binding.copy_outputs_to_cpu()[0]
print(np.round(Y, 4).tolist())
Y_ortvalue = onnxrt.OrtValue.ortvalue_from_shape_and_type([3, 4], np.float32, "cpu", 0)
io_binding = session.io_binding()
io_binding.bind_ortvalue_input("input", X_ortvalue)
io_binding.bind_output(name="output", device_type=Y_ortvalue.device_name(), device_id=0, element_type=np.float32, shape=Y_ortvalue.shape(), buffer_ptr=Y_ortvalue.data_ptr())
session.run_with_iobinding(io_binding)
print(np.array_equal(Y_ortvalue.numpy(), Y), np.array_equal(io_binding.get_outputs()[0].numpy(), Y))
""",
    "a profile": """
IMPORT as rt
import json, numpy, os
options = rt.SessionOptions()
options.enable_profiling = True
options.profile_file_prefix = MODEL + "_profile"
sess = rt.InferenceSession(MODEL, options, providers=rt.get_available_providers())
sess.run(None, {sess.get_inputs()[0].name: numpy.ones((3, 4), dtype=numpy.float32)})
prof_file = sess.end_profiling()
with open(prof_file, "r") as f:
    sess_time = json.load(f)
print(prof_file.startswith(MODEL), prof_file.endswith(".json"))
print(sorted(set(event["name"] for event in sess_time if event["cat"] == "Session") - {"SequentialExecutor::Execute"}))
print(set(event["ph"] for event in sess_time), all(key in event for event in sess_time for key in ("cat", "pid", "tid", "dur", "ts", "name", "args")))
""",
    "options and providers": """
IMPORT as rt
import numpy
sess_options = rt.SessionOptions()
sess_options.intra_op_num_threads = 2
sess_options.execution_mode = rt.ExecutionMode.ORT_SEQUENTIAL
sess_options.graph_optimization_level = rt.GraphOptimizationLevel.ORT_ENABLE_ALL
sess_options.add_session_config_entry("session.intra_op.allow_spinning", "0")
sess_options.log_severity_level = 3
providers = [("CUDAExecutionProvider", {"device_id": 0, "arena_extend_strategy": "kNextPowerOfTwo"}), "CPUExecutionProvider"]
session = rt.InferenceSession(MODEL, sess_options=sess_options, providers=[each for each in providers if each in rt.get_available_providers()])
print(session.get_providers()[-1])
options = rt.RunOptions()
options.log_severity_level = 3
print(numpy.round(session.run(None, {"input": numpy.ones((1, 4), numpy.float32)}, options)[0], 4).tolist())
meta = session.get_modelmeta()
print(meta.custom_metadata_map, meta.description, meta.domain, meta.graph_name, meta.producer_name)
print(rt.get_device())
""",
}


@needs_onnx
class Documentation(unittest.TestCase):
    def test_programs(self):
        w = np.random.default_rng(0).standard_normal((4, 4)).astype("f4")
        model = bytes_of([helper.make_node("MatMul", ["input", "w"], ["h"]), helper.make_node("Sigmoid", ["h"], ["output"])],
                         [("input", TensorProto.FLOAT, ["batch", 4])], [("output", TensorProto.FLOAT, ["batch", 4])], [numpy_helper.from_array(w, "w")],
                         producer_name="tests", doc_string="a layer")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "net.onnx"
            path.write_bytes(model)
            for name, program in PROGRAMS.items():
                said = []
                for package in ("tenon.onnxruntime", *(["onnxruntime"] if onnxruntime is not None else [])):
                    plain = f"import {package} as onnxruntime"
                    text = program.replace("IMPORT as", f"import {package} as").replace("IMPORT", plain).replace("MODEL", repr(str(path)))
                    done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-c", text], capture_output=True, text=True, timeout=300)
                    self.assertEqual(done.returncode, 0, f"{name} with {package}: {done.stderr}")
                    said.append(done.stdout)
                with self.subTest(name):
                    self.assertEqual(said[0], said[-1])
                    self.assertGreater(said[0].count("\n"), 2)


if __name__ == "__main__":
    unittest_report.main()
