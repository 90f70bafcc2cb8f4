"""Parts of the package other than tensors: compiled functions, files, models, devices, stubs.

usage: package_test.py OP_RUNNER (not used)"""

import ast
import collections
import importlib.util
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import tenon
from tenon import nn, optim

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

SOURCES = pathlib.Path(__file__).resolve().parents[3] / "sdk/python"


def array(tensor):
    return np.asarray(tensor.detach())


class Compile(unittest.TestCase):
    def test_a_decorated_function_runs_as_a_program(self):
        calls = []

        @tenon.compile
        def f(x, y):
            """Doc."""
            calls.append(1)
            return tenon.relu(x @ y) + 1

        x, y = tenon.randn(3, 4), tenon.randn(4, 5)
        for _ in range(5):
            np.testing.assert_allclose(array(f(x, y)), np.maximum(array(x) @ array(y), 0) + 1, rtol=1e-5, atol=1e-6)
        self.assertEqual(len(calls), 2)  # the second call is recorded too, and compared with the first
        self.assertEqual((f.__name__, f.__doc__), ("f", "Doc."))
        self.assertGreaterEqual(f.stats()["runs"], 3)

    def test_structures_and_keywords_come_and_go(self):
        @tenon.compile(name="structures")
        def f(pair, *, scale=1, table):
            a, b = pair
            return {"sum": (a + b) * scale, "list": [table["x"] - a, None, "text"]}

        given = (tenon.ones(2), tenon.ones(2) * 3)
        for scale in (1, 2, 1):
            result = f(given, scale=scale, table={"x": tenon.ones(2) * 5})
            self.assertEqual((result["sum"].tolist(), result["list"][0].tolist(), result["list"][1:]), ([4 * scale] * 2, [4, 4], [None, "text"]))

    def test_gradients_flow_through(self):
        f = tenon.compile(lambda x, w: (tenon.tanh(x @ w) ** 2).sum())
        x, w = tenon.randn(3, 4), tenon.randn(4, 2, requires_grad=True)
        (tenon.tanh(x @ w) ** 2).sum().backward()
        expected, w.grad = w.grad, None
        for _ in range(3):
            w.grad = None
            f(x, w).backward()
            np.testing.assert_allclose(array(w.grad), array(expected), rtol=1e-5, atol=1e-6)

    def test_backward_keeps_less_under_a_limit(self):
        weights = [tenon.randn(32, 32, requires_grad=True) for _ in range(3)]

        def loss(x):
            for weight in weights:
                x = nn.functional.gelu(x @ weight)
            return (x * x).sum()

        def gradients(function):
            for weight in weights:
                weight.grad = None
            function(x).backward()
            return [array(weight.grad) for weight in weights]

        x = tenon.randn(64, 32)
        free = tenon.compile(loss, exact=True, recompute=False)
        expected = gradients(free)
        before = free.memory()[0]["live_before"]
        limited = tenon.compile(loss, exact=True, memory_limit=before * 9 // 10)
        for got, wanted in zip(gradients(limited), expected):
            np.testing.assert_array_equal(got, wanted)
        self.assertLessEqual(limited.memory()[0]["live"], before * 9 // 10)
        self.assertNotEqual(limited.memory()[0]["again"], "")
        with self.assertRaisesRegex(tenon.InvalidArgument, "tight.*at least [0-9]+ bytes.*the limit is 1 bytes"):
            tenon.compile(loss, name="tight", memory_limit=1)(x)

    def test_a_training_step_is_one_program(self):
        losses = []
        for compiled in (False, True):
            tenon.manual_seed(1)
            net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
            optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
            optimizer.prepare()

            def step(x, y):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(net(x), y)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                return loss

            run = tenon.compile(step) if compiled else step
            x, y = tenon.randn(16, 4), tenon.randint(0, 3, (16,))
            losses.append([run(x, y).item() for _ in range(8)])
        np.testing.assert_allclose(*losses, rtol=1e-4)
        self.assertLess(losses[1][-1], losses[1][0])

    def test_what_a_recording_cannot_see_is_an_error(self):
        numbers = iter((1.0, 2.0))

        @tenon.compile
        def f(x):
            return x * next(numbers)

        f(tenon.ones(2))
        with self.assertRaises(tenon.Error):
            f(tenon.ones(2))

    def test_errors_of_the_function_come_out(self):
        @tenon.compile
        def f(x):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            f(tenon.ones(2))

    def test_results_that_are_no_tensors_stay_as_they_are(self):
        f = tenon.compile(lambda x: (x * 2, x.shape[0]))
        self.assertEqual([f(tenon.ones(3))[1] for _ in range(3)], [3, 3, 3])
        with self.assertRaisesRegex(tenon.InvalidArgument, "results that are not tensors must stay"):
            f(tenon.ones(4))

    def test_a_compiled_module_has_its_parameters(self):
        net = tenon.compile(nn.Linear(2, 3))
        self.assertEqual((net.out_features, len(list(net.parameters()))), (3, 2))

    def test_methods_are_compiled(self):
        class Holder:
            @tenon.compile
            def double(self, x):
                return x * 2

        self.assertEqual(Holder().double(tenon.ones(2)).tolist(), [2, 2])


class Threads(unittest.TestCase):
    def test_modes_are_those_of_a_thread(self):
        seen = []
        with tenon.no_grad():
            thread = threading.Thread(target=lambda: seen.append(tenon.is_grad_enabled()))
            thread.start()
            thread.join()
        self.assertEqual(seen, [True])

    def test_hooks_and_functions_run_in_any_thread(self):
        class Double(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        wrong = []

        def work():
            for _ in range(50):
                w = tenon.ones(100, requires_grad=True)
                w.register_hook(lambda g: g + 1)
                Double.apply(w).sum().backward()
                if w.grad.tolist() != [3.0] * 100:
                    wrong.append(w.grad)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])


class Gradients(unittest.TestCase):
    def test_derivatives_of_functions(self):
        x = tenon.tensor([1.0, 2.0], dtype=tenon.f64)
        self.assertEqual(tenon.autograd.jacobian(lambda a: a * a, x).tolist(), [[2, 0], [0, 4]])
        self.assertEqual(tenon.autograd.hessian(lambda a: (a ** 3).sum(), x).tolist(), [[6, 0], [0, 12]])
        value, product = tenon.autograd.vjp(lambda a: a * a, x, tenon.tensor([1.0, 10.0], dtype=tenon.f64))
        self.assertEqual((value.tolist(), product.tolist()), ([1, 4], [2, 40]))

    def test_checkpoints_compute_again(self):
        calls = []

        def block(x, w):
            calls.append(1)
            return tenon.tanh(x @ w)

        x, w = tenon.randn(3, 3, requires_grad=True), tenon.randn(3, 3, requires_grad=True)
        block(x, w).sum().backward()
        expected = [array(x.grad), array(w.grad)]
        x.grad = w.grad = None
        tenon.autograd.checkpoint(block, x, w).sum().backward()
        np.testing.assert_allclose(array(x.grad), expected[0], rtol=1e-6)
        np.testing.assert_allclose(array(w.grad), expected[1], rtol=1e-6)
        self.assertEqual(len(calls), 3)

    def test_what_ops_save_goes_through_hooks(self):
        packed = []

        def pack(tensor):
            packed.append(tuple(tensor.shape))
            return tensor.numpy().copy()

        w = tenon.tensor([1.0, 2.0, 3.0], requires_grad=True)
        with tenon.autograd.graph.saved_tensors_hooks(pack, lambda array: tenon.tensor(array)):
            y = (w * w).sum()
        y.backward()
        self.assertEqual((w.grad.tolist(), packed[0]), ([2, 4, 6], (3,)))
        count = len(packed)
        (w * w).sum().backward()
        self.assertEqual(len(packed), count)

    def test_anomalies_name_the_line_of_forward(self):
        w = tenon.tensor([0.0, 1.0], requires_grad=True)
        with tenon.autograd.detect_anomaly():
            y = (w.sqrt() * tenon.tensor([0.0, 1.0])).sum()  # the line that is to blame
            with self.assertRaisesRegex(tenon.Error, "(?s)sqrt.*the line that is to blame"):
                y.backward()

    def test_hooks_after_accumulation_see_the_gradient(self):
        seen = []
        w = tenon.ones(2, requires_grad=True)
        handle = w.register_post_accumulate_grad_hook(lambda leaf: seen.append(leaf.grad.tolist()))
        for _ in range(2):
            (w * 2).sum().backward()
        handle.remove()
        (w * 2).sum().backward()
        self.assertEqual(seen, [[2, 2], [4, 4]])

    def test_what_a_function_saves_is_dropped_with_its_result(self):
        import gc
        import weakref

        class Big:
            pass

        class Keeps(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x, big):
                ctx.big = big
                y = x * 2
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx, grad):
                return grad * 2, None

        big = Big()
        gone = weakref.ref(big)
        y = Keeps.apply(tenon.ones(2, requires_grad=True), big)
        del big
        self.assertIsNotNone(gone())
        del y
        gc.collect()
        self.assertIsNone(gone())

    def test_a_saved_tensor_that_changed_is_an_error(self):
        class Keeps(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.saved_tensors[0]

        x = tenon.ones(2, requires_grad=True) * 1
        y = Keeps.apply(x)
        x += 1
        with self.assertRaisesRegex(RuntimeError, "Keeps saved a tensor.*add_? has written"):
            y.sum().backward()


class Files(unittest.TestCase):
    def test_names_that_are_not_utf_8_are_errors(self):
        def loaded(header):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "x.safetensors"
                path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
                return tenon.load(path)
        tensor = b'"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
        with self.assertRaisesRegex(tenon.InvalidArgument, r"load\(\): a tensor has the name 'a\\xff', which is not UTF-8"):
            loaded(b'{"a\xff":{' + tensor + b"}")
        with self.assertRaisesRegex(tenon.InvalidArgument, r"a\\xff' has elements of the unknown type F99"):
            loaded(b'{"a\xff":{' + tensor.replace(b"F32", b"F99") + b"}")
        with self.assertRaisesRegex(tenon.InvalidArgument, r"a text has the name 'k\\xff'"):
            loaded(b'{"__metadata__":{"k\xff":"v"},"a":{' + tensor + b"}")

    def test_what_is_saved_is_loaded(self):
        tensors = {"a": tenon.randn(3, 4), "b.c": tenon.arange(5), "d": tenon.tensor([True, False]), "e": tenon.ones(2, dtype=tenon.f16), "f": tenon.zeros((), dtype=tenon.f64)}
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("safetensors", "npz"):
                path = pathlib.Path(folder) / f"x.{kind}"
                tenon.save(tensors, path)
                loaded = tenon.load(path)
                self.assertEqual(sorted(loaded), sorted(tensors))
                for name, each in tensors.items():
                    self.assertEqual((loaded[name].dtype, loaded[name].shape), (each.dtype, each.shape))
                    np.testing.assert_array_equal(array(loaded[name]), array(each))
            tenon.save(tensors["a"].T, f"{folder}/a.npy")
            np.testing.assert_array_equal(np.load(f"{folder}/a.npy"), array(tensors["a"]).T)
            np.save(f"{folder}/b.npy", np.arange(6.0).reshape(2, 3).T)
            self.assertEqual(tenon.load(f"{folder}/b.npy", device="cpu").tolist(), [[0, 3], [1, 4], [2, 5]])
            with np.load(f"{folder}/x.npz") as archive:
                np.testing.assert_array_equal(archive["b.c"], np.arange(5))
            np.savez_compressed(f"{folder}/z.npz", x=np.ones(3))
            self.assertEqual(tenon.load(f"{folder}/z.npz")["x"].tolist(), [1, 1, 1])

    def test_dicts_in_dicts_and_metadata(self):
        with tempfile.TemporaryDirectory() as folder:
            tenon.save({"net": {"w": tenon.ones(2, requires_grad=True)}, "n": tenon.tensor(3)}, f"{folder}/x.safetensors", metadata={"epoch": "7"})
            tensors, texts = tenon.load(f"{folder}/x.safetensors", metadata=True)
            self.assertEqual((sorted(tensors), texts["epoch"], tensors["net.w"].requires_grad), (["n", "net.w"], "7", False))

    def test_what_no_file_holds_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            for call, text in ((lambda: tenon.save({"a": 1}, f"{folder}/x.npz"), "'a' is a int"), (lambda: tenon.save(tenon.ones(1), f"{folder}/x.npz"), "single Tensor"),
                               (lambda: tenon.save({"a": tenon.ones(1)}, f"{folder}/x.npy"), "one Tensor"),
                               (lambda: tenon.save({"a": tenon.ones(1)}, f"{folder}/x.npz", metadata={"b": "c"}), "only .safetensors files have metadata")):
                with self.assertRaisesRegex((TypeError, ValueError), text):
                    call()
            with self.assertRaises(LookupError):
                tenon.load(f"{folder}/nothing.safetensors")

    # A file of 64 KiB at most stands for a full disk: the write behind it fails, or kills the process.
    SAVES = '''
import resource, signal, sys
import tenon
path, killed = sys.argv[1], sys.argv[2] == "killed"
big = tenon.ones(1 << 20)
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, resource.RLIM_INFINITY))
try:
    if path.endswith(".onnx"):
        tenon.onnx.export(lambda x: x + big, path, big)
    else:
        tenon.save(big if path.endswith(".npy") else {"x": big}, path)
except tenon.Error as error:
    sys.exit(str(error))
'''

    def test_a_save_that_fails_or_is_killed_leaves_the_old_file(self):
        for kind in ("npy", "npz", "safetensors", "pt", "onnx"):
            with self.subTest(kind), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / f"x.{kind}"
                save = [sys.executable, "-B", "-c", self.SAVES, str(path)]
                path.write_bytes(b"old")
                path.chmod(0o600)
                full = subprocess.run([*save, "full"], capture_output=True, text=True)
                self.assertIn(f"The file {path} cannot be written: File too large.", full.stderr)
                self.assertEqual((full.returncode, os.listdir(folder), path.read_bytes()), (1, [path.name], b"old"))
                killed = subprocess.run([*save, "killed"], capture_output=True, text=True)
                self.assertLess(killed.returncode, 0)
                self.assertEqual((len(os.listdir(folder)), path.read_bytes()), (2, b"old"))
                (pathlib.Path(folder) / "x.other.new").touch()
                if kind == "onnx":
                    tenon.onnx.export(lambda x: x + 1, path, tenon.ones(2))
                else:
                    tenon.save(tenon.ones(2) if kind == "npy" else {"x": tenon.ones(2)}, path)
                self.assertEqual(sorted(os.listdir(folder)), sorted(["x.other.new", path.name]))
                self.assertNotEqual(path.read_bytes(), b"old")
                self.assertEqual(path.stat().st_mode & 0o777, 0o600)


class Readme(unittest.TestCase):
    def blocks(self):
        return re.findall(r"^```python\n(.*?)^```$", (SOURCES.parents[1] / "README.md").read_text(), re.MULTILINE | re.DOTALL)

    def test_its_ten_lines_train_and_run(self):
        loads, trains = self.blocks()
        self.assertEqual((loads.count("\n"), trains.count("\n")), (3, 10))
        done = subprocess.run([sys.executable, "-B", "-c", trains], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(float(re.fullmatch(r"tensor\((.*)\)\n", done.stdout)[1]), 0.9)

    def test_its_three_lines_run_a_model(self):
        loads = self.blocks()[0].replace('"model.onnx"', repr(str(SOURCES.parents[1] / "sdk/app/examples/demo/shapes.onnx")))
        done = subprocess.run([sys.executable, "-B", "-c", loads], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout.count(","), 7)  # one chance for each of the eight shapes


class Machine(unittest.TestCase):
    def test_the_package_runs_the_tool(self):
        done = subprocess.run([sys.executable, "-m", "tenon", "devices"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("cpu:0", done.stdout)

    def test_absent_names_say_what_to_use(self):
        for name in tenon._absent.absent:
            with self.assertRaisesRegex(AttributeError, f"^tenon has no {name}; "):
                getattr(tenon, name).anything
        self.assertFalse(tenon.backends.mps.is_available())
        self.assertTrue(tenon.backends.mkldnn.is_available())
        with self.assertRaisesRegex(AttributeError, "the flags here are"):
            tenon.backends.cudnn.nonsense = True

    def test_old_constructors_take_sizes_or_data(self):
        for name, dtype in (("FloatTensor", tenon.float32), ("LongTensor", tenon.int64), ("ByteTensor", tenon.uint8), ("BoolTensor", tenon.bool)):
            made = getattr(tenon, name)
            self.assertEqual((made(2, 3).shape, made(2, 3).dtype), ((2, 3), dtype))
            self.assertEqual((made([1, 0]).tolist(), made([1, 0]).dtype), ([1, 0], dtype))
        self.assertEqual(tenon.Tensor(3, 4).shape, (3, 4))
        self.assertEqual((tenon.Tensor(3).shape, tenon.Tensor().shape), ((3,), (0,)))
        self.assertEqual((tenon.Tensor([1, 2]).tolist(), tenon.Tensor(tenon.ones(2)).tolist()), ([1, 2], [1, 1]))
        with self.assertRaisesRegex(TypeError, "Tensor: it takes data, or the sizes of an uninitialised tensor"):
            tenon.Tensor(3, "4")
        with self.assertRaises(tenon.InvalidArgument):
            tenon.Tensor(3, -4)
        self.assertEqual((tenon.version.__version__, tenon.version.cuda), (tenon.__version__, None))

    def test_the_number_of_threads_is_fixed_by_the_first_device(self):
        code = ("import tenon\ntenon.set_num_threads(1)\nassert tenon.get_num_threads() == 1\n"
                "tenon.ones(2).sum().item()\ntenon.set_num_threads(2)")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertIn("a device is already open, and its number of threads is fixed.", done.stderr)
        with self.assertRaisesRegex(tenon.InvalidArgument, "0 threads were requested; at least 1 is needed."):
            tenon.set_num_threads(0)

    def test_devices_are_listed(self):
        names = {each.spelling: each for each in tenon.devices()}
        self.assertIn("cpu:0", names)
        cpu = names["cpu:0"]
        self.assertEqual((cpu.provider, cpu.kind, cpu.usable, cpu.index), ("cpu", "cpu", True, 0))
        self.assertIn("cpu:0", repr(cpu))
        self.assertEqual(tenon.Device(cpu.spelling), tenon.Device("cpu"))

    def test_the_doctor_says_what_there_is(self):
        out = io.StringIO()
        self.assertTrue(tenon.doctor(out))
        for text in ("Plug-ins", "libtenon_cpu.so", "Devices", "cpu:0", "Settings", "environment TENON_DEVICE", "Default device: cpu:0, by the environment variable TENON_DEVICE"):
            self.assertIn(text, out.getvalue())

    def test_the_doctor_says_what_is_missing(self):
        script = "import tenon, sys; sys.exit(0 if tenon.doctor() else 3)"
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, env={**os.environ, "TENON_DEVICE": "gpu_of_dreams"})
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("Default device: none", done.stdout)

    def test_devices_say_what_they_hold(self):
        device = tenon.Device("cpu")
        before = device.memory_stats()["live"]
        held = tenon.ones(1000, device=device)
        self.assertGreaterEqual(device.memory_stats()["live"] - before, 4000)
        self.assertGreaterEqual(device.memory_stats()["peak"], device.memory_stats()["live"])
        del held

    def test_a_profile_counts_the_ops_of_its_block(self):
        x = tenon.ones(64, 64)
        tenon.relu(x)
        with tempfile.TemporaryDirectory() as folder:
            path, out = pathlib.Path(folder) / "trace.json", io.StringIO()
            with tenon.profile(path, file=out) as seen:
                for _ in range(3):
                    y = tenon.relu(x)
                held = tenon.matmul(x, y)
            spans = [each for each in json.loads(path.read_text())["traceEvents"] if each.get("cat") == "launch"]
        counts = collections.Counter()
        for row in seen.rows:
            counts[row.op] += row.launches
            self.assertEqual(row.device, "cpu:0")
            self.assertGreater(row.seconds, 0)
        self.assertEqual(counts, {"relu": 3, "matmul": 1})
        self.assertEqual(collections.Counter(each["name"] for each in spans), counts)
        self.assertLessEqual(sum(row.seconds for row in seen.rows), seen.seconds)
        self.assertGreaterEqual(seen.memory["cpu:0"]["after"] - seen.memory["cpu:0"]["before"], held.numel() * 4)
        for text in ("relu", "matmul", "4 launches", "cpu:0: "):
            self.assertIn(text, out.getvalue())

    def test_a_process_has_one_profile_at_a_time(self):
        with tenon.profile(show=False):
            with self.assertRaisesRegex(RuntimeError, "another profile"):
                tenon.profile().__enter__()
        out = io.StringIO()
        with self.assertRaisesRegex(ValueError, "of the block"):
            with tenon.profile(file=out):
                raise ValueError("of the block")
        self.assertEqual(out.getvalue(), "")
        with tenon.profile(show=False) as seen:  # the one before has ended
            tenon.relu(tenon.ones(3))
        self.assertIn("relu", [row.op for row in seen.rows])

    def test_seeds_repeat(self):
        tenon.manual_seed(7)
        first = [tenon.rand(3).tolist(), tenon.randint(5, (4,)).tolist(), nn.Linear(2, 2).weight.tolist()]
        tenon.manual_seed(7)
        self.assertEqual(first, [tenon.rand(3).tolist(), tenon.randint(5, (4,)).tolist(), nn.Linear(2, 2).weight.tolist()])

    def test_import_loads_no_more_than_it_must(self):
        script = "import sys, tenon; print([name for name in ('numpy', 'tenon.nn', 'tenon.optim', 'tenon.utils', 'tenon._onnx', 'inspect', 'zipfile') if name in sys.modules])"
        done = subprocess.run([sys.executable, "-S", "-B", "-c", script], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("[]\n", ""))

    def test_a_module_is_loaded_where_it_is_first_asked_for_and_is_the_one_that_is_imported(self):
        script = '''
import sys, types, tenon
from tenon import nn
held = tenon.optim
assert not {"tenon.nn", "tenon.optim"} & set(sys.modules)
nn.Linear
assert sys.modules["tenon.nn"] is nn is tenon.nn and type(nn) is types.ModuleType
import tenon.optim
assert sys.modules["tenon.optim"] is held is tenon.optim and "SGD" in vars(held)
assert "zeros" in dir(tenon.global_) and tenon.global_.__spec__.loader is tenon.global_.__loader__
for package in (tenon, tenon.array_api, tenon.nn):
    try:
        package.nonsense
    except AttributeError as error:
        assert str(error) == f"module '{package.__name__}' has no attribute 'nonsense'", error
    else:
        raise AssertionError(package)
'''
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("", ""))

    def test_threads_that_ask_at_once_get_the_whole_module(self):
        script = '''
import sys, threading, tenon
sys.setswitchinterval(1e-6)
got, ready = [], threading.Barrier(8)
def ask(i):
    ready.wait()
    # The last names of their modules, which are there once all of the code has run.
    got.append((tenon.array_api.__array_api_version__ if i % 2 else tenon.nn.functional.linear) is not None)
threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print(got == [True] * 8)
'''
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.stdout, done.stderr), ("True\n", ""))

    def test_a_module_that_could_not_be_loaded_is_tried_again(self):
        script = '''
import sys, tenon
for _ in range(2):
    sys.modules["tenon._onnx"] = None
    try:
        tenon.onnx.load
    except ImportError as error:
        print(error)
del sys.modules["tenon._onnx"]
import types
sys.modules["tenon._onnx"] = tenon._onnx = types.ModuleType("tenon._onnx")
print(callable(tenon.onnx.load), sys.modules["tenon.onnx"] is tenon.onnx)
'''
        done = subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True)
        refused = "This build of Tenon has no ONNX (Debian: libonnx-dev when it is built).\n"
        self.assertEqual((done.stdout, done.stderr), (refused * 2 + "True True\n", ""))


@unittest.skipUnless(importlib.util.find_spec("onnx") and importlib.util.find_spec("tenon._onnx"), "the package onnx, or Tenon's importer, is missing")
class Models(unittest.TestCase):
    def model(self):
        from onnx import TensorProto, helper, numpy_helper
        w = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(4, 3) / 10, "w")
        nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"]), helper.make_node("ReduceSum", ["y"], ["s"], keepdims=0)]
        graph = helper.make_graph(nodes, "small", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
                                  [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3]), helper.make_tensor_value_info("s", TensorProto.FLOAT, [])], [w])
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        made.ir_version = 7
        return made.SerializeToString()

    def test_a_model_is_called(self):
        x = np.random.default_rng(0).standard_normal((2, 4)).astype("f4")
        expected = np.maximum(x @ (np.arange(12, dtype=np.float32).reshape(4, 3) / 10), 0)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "small.onnx"
            path.write_bytes(self.model())
            for model in (tenon.onnx.load(path), tenon.onnx.load(self.model(), device="cpu", eager=True)):
                for given in ((tenon.tensor(x),), (x,)):
                    y, s = model(*given)
                    np.testing.assert_allclose(array(y), expected, rtol=1e-5, atol=1e-6)
                    self.assertAlmostEqual(s.item(), expected.sum(), places=4)
                self.assertEqual(sorted(model.run({"x": x})), ["s", "y"])
                self.assertEqual((model.inputs[0].name, model.inputs[0].shape, model.outputs[0].type), ("x", ["batch", 4], "f32[batch, 3]"))
                np.testing.assert_allclose(array(model(x=x)[0]), expected, rtol=1e-5, atol=1e-6)
                self.assertIn("x: f32[batch, 4]", repr(model))
                self.assertEqual(model.info["graph"], "small")

    def loaded(self, nodes, inputs, outputs, weights=(), opsets=()):
        from onnx import helper
        graph = helper.make_graph(nodes, "g", inputs, outputs, list(weights))
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), *(helper.make_opsetid(*each) for each in opsets)], ir_version=8)
        return tenon.onnx.load(made.SerializeToString())

    def test_inputs_with_a_value_may_be_given(self):
        from onnx import TensorProto, helper, numpy_helper
        x, w, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xwy")
        model = self.loaded([helper.make_node("Mul", ["x", "w"], ["y"])], [x, w], [y], [numpy_helper.from_array(np.array([2, 3], "f4"), "w")])
        self.assertEqual(([each.name for each in model.inputs], [each.name for each in model.defaults]), (["x"], ["w"]))
        self.assertEqual(model([1.0, 1.0]).tolist(), [2, 3])
        self.assertEqual(model([1.0, 1.0], w=[5.0, 7.0]).tolist(), [5, 7])
        self.assertEqual(model.run({"x": [1.0, 1.0], "w": [0.0, 1.0]})["y"].tolist(), [0, 1])

    def test_strings_sequences_and_maps(self):
        from onnx import TensorProto, TypeProto, helper
        text = helper.make_tensor_value_info("x", TensorProto.STRING, None)
        labels = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", keys_strings=["a", "grüß"], values_int64s=[4, 5], default_int64=-1)
        upper = helper.make_node("StringNormalizer", ["x"], ["z"], case_change_action="UPPER")
        model = self.loaded([labels, upper], [text], [helper.make_tensor_value_info("y", TensorProto.INT64, None), helper.make_tensor_value_info("z", TensorProto.STRING, None)],
                            opsets=[("ai.onnx.ml", 2)])
        for given in (["grüß", "a", "?"], np.array(["grüß", "a", "?"]), np.array(["grüß", "a", b"?"], dtype=object)):
            y, z = model(given)
            self.assertEqual((y.tolist(), z.tolist(), z.shape), ([5, 4, -1], ["GRÜSS", "A", "?"], (3,)))
        with self.assertRaisesRegex(tenon.InvalidArgument, "3 is not a string"):
            model(["a", 3])

        chances = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])
        of_maps = TypeProto()
        of_maps.sequence_type.elem_type.map_type.key_type = TensorProto.STRING
        of_maps.sequence_type.elem_type.map_type.value_type.tensor_type.elem_type = TensorProto.FLOAT
        maps = helper.make_value_info("y", of_maps)
        zipped = self.loaded([helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["no", "yes"])], [chances], [maps], opsets=[("ai.onnx.ml", 1)])
        made = zipped([[0.25, 0.75], [0.5, 0.5]])
        self.assertEqual(list(made), [{"no": 0.25, "yes": 0.75}, {"no": 0.5, "yes": 0.5}])
        self.assertEqual((made.keys, made.matrix.tolist()), (["no", "yes"], [[0.25, 0.75], [0.5, 0.5]]))

        lists = helper.make_value_info("x", helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, None)))
        model = self.loaded([helper.make_node("SequenceErase", ["x"], ["y"])], [lists], [helper.make_value_info("y", lists.type)])
        self.assertEqual([each.tolist() for each in model([tenon.ones(2), np.zeros(1, "f4"), [3.0]])], [[1, 1], [0]])

    def test_errors_say_what_is_wrong(self):
        model = tenon.onnx.load(self.model())
        with self.assertRaises(tenon.Error):
            model(tenon.ones(2, 5))
        with self.assertRaisesRegex(TypeError, "takes 1 inputs, not 2"):
            model(1, 2)
        with self.assertRaisesRegex(TypeError, "two values for its input 'x'"):
            model(tenon.ones(2, 4), x=tenon.ones(2, 4))
        with self.assertRaises(LookupError):
            tenon.onnx.load("/no/such/model.onnx")
        with self.assertRaises(tenon.InvalidArgument):
            tenon.onnx.load(b"no model")

    def test_names_that_are_not_utf_8_are_errors(self):
        plain = self.model()
        for given, side in ((b"\x01x", "an input"), (b"\x01s", "an output")):
            with self.assertRaisesRegex(tenon.InvalidArgument, rf"onnx.load: {side} of the model has the name '\\xff', which is not UTF-8"):
                tenon.onnx.load(plain.replace(given, b"\x01\xff"))
        model = tenon.onnx.load(plain.replace(b"batch", b"b\xfftch").replace(b"small", b"sm\xe4ll"))
        self.assertEqual((model.inputs[0].shape, model.info["graph"]), (["b\\xfftch", 4], "sm\\xe4ll"))
        with self.assertRaisesRegex(tenon.Unsupported, r"R\\xfflu"):
            tenon.onnx.load(plain.replace(b"Relu", b"R\xfflu"))


PROGRAM = '''import tenon
from tenon import Tensor, nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.layers(x)
        return y.softmax(-1)


class Twice(tenon.autograd.Function):
    @staticmethod
    def forward(ctx: tenon.autograd.FunctionCtx, x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: tenon.autograd.FunctionCtx, grad: Tensor) -> Tensor:
        return grad * 2


net = Net()
optimizer = tenon.optim.AdamW(net.parameters(), lr=1e-3)
scheduler = tenon.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
x = tenon.randn(3, 64)
loss = nn.functional.cross_entropy(net(x), tenon.tensor([1, 2, 3]))
loss.backward()
nn.utils.clip_grad_norm_(net.parameters(), 1.0)
optimizer.step()
scheduler.step()
with tenon.no_grad():
    x[0, 1:] = 5.0
    values, indices = x.max(1)
    shape: tuple[int, ...] = values.shape
    print(shape, x.reshape(3, 8, 8).sum((1, 2)).T, x[x > 0].mean().item(), x.add_(1, alpha=2), tenon.relu(x, inplace=True), x.mul(2, inplace=False), float(loss), [row for row in x])


@tenon.compile
def step(a: Tensor, b: Tensor) -> Tensor:
    return tenon.relu(a @ b) + tenon.zeros(3, 3)


print(step(x, x.T), tenon.devices()[0].name, tenon.add(x, 1, alpha=2), Twice.apply(x), tenon.einsum("ij,kj->ik", x, x))
tenon.save({"net": net.state_dict(), "epoch": 1, "random": tenon.get_rng_state()}, "last.pt")
net.load_state_dict(tenon.load("last.pt", map_location="cpu", weights_only=True)["net"])
pairs = tenon.utils.data.TensorDataset(x, x)
loader = tenon.utils.data.DataLoader(pairs, batch_size=2, shuffle=True, num_workers=1)
print([len(batch[0]) for batch in loader], tenon.utils.data.random_split(pairs, [2, 1])[0][0])
with tenon.profile("trace.json", show=False) as profile:
    print(step(x, x.T))
print(tenon.vmap(tenon.func.grad(lambda a: a.square().sum()))(x).shape, tenon.autograd.functional.jacobian(tenon.sin, x[0, :2]))
print(tenon.distributions.Normal(0.0, tenon.ones(3)).rsample((2,)).shape, nn.utils.rnn.pack_sequence([x[0], x[1]]).batch_sizes.tolist())
nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
tenon.testing.assert_close(tenon.optim.swa_utils.AveragedModel(net)(x), net(x))
print([(row.op, row.seconds / row.launches) for row in profile.rows], profile.memory, tenon.Device("cpu").memory_stats()["live"])
'''


class Stubs(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tenon.__file__).parent
        self.tree = ast.parse((self.folder / "__init__.pyi").read_text())

    def names(self, nodes):
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, (ast.AnnAssign, ast.Assign)):
                yield from (each.id for each in (node.targets if isinstance(node, ast.Assign) else [node.target]) if isinstance(each, ast.Name))
            elif isinstance(node, ast.ImportFrom):
                yield from (each.asname or each.name for each in node.names)

    def test_name_every_function_and_method(self):
        top = set(self.names(self.tree.body))
        in_tensor = set(self.names(next(node for node in self.tree.body if isinstance(node, ast.ClassDef) and node.name == "Tensor").body))
        ops = {name for name in dir(tenon._tenon) if isinstance(getattr(tenon._tenon, name), tenon.Op)}
        self.assertEqual(sorted(ops - top), [])
        methods = {name for name in ops if hasattr(tenon.Tensor, name)}
        self.assertEqual(sorted(methods - in_tensor), [])
        self.assertGreater(len(methods), 280)
        public = {name for name in dir(tenon) if not name.startswith("_") and not isinstance(getattr(tenon, name), type(ast))} - {"Op", "ops", "files", "compiling", "reporting"}
        errors = {name for name in public if isinstance(getattr(tenon, name), type) and issubclass(getattr(tenon, name), Exception)}
        self.assertEqual(sorted(name for name in public - errors - top if not isinstance(getattr(tenon, name), tenon.DType)), [])

    def test_say_which_ops_take_inplace(self):
        defined = {}
        for node in self.tree.body:
            if isinstance(node, ast.FunctionDef):
                defined.setdefault(node.name, set()).update(each.arg for each in node.args.kwonlyargs)
        ops = {name for name in dir(tenon._tenon) if isinstance(getattr(tenon._tenon, name), tenon.Op)}
        self.assertEqual({name for name in ops if "inplace" in defined[name]}, {name for name in ops if name + "_" in ops} - {"normal", "bernoulli"})

    def test_docstrings_are_those_of_the_list(self):
        for name in ("relu", "softmax", "conv2d", "add_"):
            node = next(node for node in self.tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
            self.assertIn(ast.get_docstring(node)[:20], getattr(tenon, name).__doc__)
        for kind in (tenon.Tensor.to, tenon.Tensor.tolist, tenon.compile, tenon.save, nn.Linear, optim.Adam, tenon.autograd.grad):
            self.assertTrue(kind.__doc__)

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "mypy is not installed")
    def test_a_program_is_checked_strictly(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "program.py").write_text(PROGRAM)
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "program.py"], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "MYPYPATH": str(self.folder.parent)})
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            wrong = PROGRAM + "\nx.reshape('a')\ntenon.relu(1)\ntenon.no_such_function()\n"
            (pathlib.Path(folder) / "program.py").write_text(wrong)
            done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "program.py"], cwd=folder, capture_output=True, text=True,
                                  env={**os.environ, "MYPYPATH": str(self.folder.parent)})
            self.assertEqual(done.stdout.count("error:"), 3, done.stdout)

    def test_the_program_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-B", "-c", PROGRAM], cwd=folder, capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest_report.main()
