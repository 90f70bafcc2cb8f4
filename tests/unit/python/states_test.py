"""tenon.save and tenon.load for training states, and tenon.load for the files of PyTorch.

usage: states_test.py OP_RUNNER (not used)"""

import collections
import importlib.util
import io
import json
import math
import os
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
import unittest
import zipfile

import numpy as np
import tenon
from tenon import nn, optim

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import torch_files
import unittest_report

if importlib.util.find_spec("torch"):
    import torch

DTYPES = "f64 f32 f16 bf16 i64 i32 i16 i8 u64 u32 u16 u8 bool f8e4m3fn f8e5m2 i4 u4"


def array(tensor):
    return np.asarray(tensor.detach().to(tenon.f64))


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def again(self, state, **options):
        tenon.save(state, self.folder / "state.pt")
        return tenon.load(self.folder / "state.pt", **options)

    def same(self, ours, theirs, place=""):
        """`theirs` may have PyTorch's tensors, dtypes, devices and sizes."""
        kind = type(theirs)
        if kind.__module__.startswith("torch") and hasattr(theirs, "stride") or isinstance(theirs, tenon.Tensor):
            self.assertIsInstance(ours, tenon.Tensor, place)
            self.assertEqual((str(ours.dtype).split(".")[1], tuple(ours.shape), ours.requires_grad), (str(theirs.dtype).split(".")[1], tuple(theirs.shape), theirs.requires_grad), place)
            np.testing.assert_array_equal(array(ours), array(theirs) if isinstance(theirs, tenon.Tensor) else theirs.detach().double().numpy(), place)
            self.assertEqual(isinstance(ours, nn.Parameter), kind.__name__ == "Parameter", place)
        elif isinstance(theirs, dict):
            self.assertEqual((type(ours), [(type(key), key) for key in ours]), (kind, [(type(key), key) for key in theirs]), place)
            for key in theirs:
                self.same(ours[key], theirs[key], f"{place}.{key}")
        elif isinstance(theirs, (list, tuple)):
            self.assertEqual((type(ours), len(ours)), (tuple if kind.__module__ == "torch" else kind, len(theirs)), place)
            for i, (mine, other) in enumerate(zip(ours, theirs)):
                self.same(mine, other, f"{place}.{i}")
        elif isinstance(theirs, (np.ndarray, np.generic)):
            self.assertEqual((type(ours), ours.dtype), (kind, theirs.dtype), place)
            np.testing.assert_array_equal(ours, theirs, place)
        elif kind.__module__ == "torch":
            self.assertIn(str(theirs).split(".")[-1], str(ours), place)
        elif isinstance(theirs, tenon.Generator):
            self.assertEqual(ours.get_state(), theirs.get_state(), place)
        else:
            self.assertEqual((type(ours), repr(ours)), (kind, repr(theirs)), place)


class States(InFolder):
    def test_every_kind_of_value_is_loaded_as_it_was(self):
        generator = tenon.Generator(2**64 - 1)
        tenon.rand((9,), generator=generator)
        state = {
            "numbers": [0, -1, 2**63, -2**64, 2**5000, True, False, None, 0.1, -0.0, math.inf, -math.inf, math.nan, 1e-320, 1 + 2j, complex(math.nan, -0.0)],
            "texts": ["", "grüß\n", "\ud800", "a\0b", b"", b"\x00\xff", bytearray(b"12")],
            1: {-5: "int keys", (1, ("a", None)): "tuple", None: 1, 2.5: 2, True: 3, b"x": 4, "": 5},
            "containers": [(), ((),), [[]], {}, set(), {1, 2}, frozenset({"a"}), collections.OrderedDict(b=1, a=2), collections.Counter("aab")],
            "dtype": tenon.bf16, "device": tenon.Device("cpu"), "generator": generator,
            "tensors": [tenon.randn(3, 4), tenon.randn(3, 4).T, tenon.randn(5, 6)[1::2, 2:], tenon.ones(3, 1).expand(3, 5), tenon.zeros(0, 3), tenon.tensor(3.5), tenon.ones(2, requires_grad=True) * 2],
            "dtypes": [tenon.tensor([0, 1, 2, 3, 1]).to(getattr(tenon, name)) for name in DTYPES.split()],
            "parameters": [nn.Parameter(tenon.ones(2)), nn.Parameter(tenon.ones(2) * 2, requires_grad=False)],
            "numpy": [np.arange(6).reshape(2, 3), np.zeros((0, 2), "f2"), np.array(["ab", "c"]), np.float32(2.5), np.float64(0.1), np.int64(3), np.bool_(True), np.array(1j), np.array("2020-01-01", "M8[D]")],
            "random": [random.getstate(), np.random.get_state(), tenon.get_rng_state()],
            "a.b": tenon.ones(1), "a": {"b": tenon.ones(1) * 2}, "__metadata__": tenon.ones(1) * 3}
        self.same(self.again(state), state)
        for alone in (None, 5, "text", tenon.ones(2), [1, tenon.ones(2)]):
            self.same(self.again(alone), alone)
        random.setstate(self.again(random.getstate()))
        np.random.set_state(self.again(np.random.get_state()))

    def test_any_name_is_a_state(self):
        for name in ("last", "last.ckpt", "state.tenon", "x.pth", "x.tar", ".hidden", "ünïcode.bin"):
            tenon.save({"epoch": 3}, self.folder / name)
            self.assertEqual(tenon.load(str(self.folder / name)), {"epoch": 3})
        file = io.BytesIO(b"before")
        file.seek(0, os.SEEK_END)
        tenon.save({"x": tenon.ones(2), 1: None}, file)
        file.seek(len(b"before"))
        self.same(tenon.load(file), {"x": tenon.ones(2), 1: None})

    def test_elements_that_tensors_share_are_stored_once_and_stay_shared(self):
        x = tenon.randn(1000)
        net = nn.Linear(3, 3)
        loaded = self.again({"a": x, "b": [x, x.detach()], "tied": [net.weight, net.state_dict()["weight"]], "other": x.clone()})
        self.assertLess((self.folder / "state.pt").stat().st_size, 10_000)
        self.assertIs(loaded["a"], loaded["b"][0])
        loaded["a"].fill_(1)
        loaded["tied"][1].fill_(2)
        self.assertEqual((loaded["b"][1].sum().item(), loaded["tied"][0].sum().item()), (1000, 18))
        self.assertNotEqual(loaded["other"].sum().item(), 1000)

    def test_the_file_is_one_of_safetensors(self):
        tenon.save({"net": {"w": tenon.ones(2)}, "steps": [tenon.zeros(1)], "best": math.inf}, self.folder / "state.pt")
        os.rename(self.folder / "state.pt", self.folder / "state.safetensors")
        tensors, texts = tenon.load(self.folder / "state.safetensors", metadata=True)
        self.assertEqual((sorted(tensors), list(texts)), (["net.w", "steps.0"], ["tenon.state"]))
        tree = json.loads(texts["tenon.state"], parse_constant=self.fail)  # other readers of JSON know no infinity
        self.assertEqual(tree, {"version": 1, "state": {"dict": {"net": {"dict": {"w": {"tensor": ["net.w"]}}}, "steps": [{"tensor": ["steps.0"]}], "best": {"float": "inf"}}}})
        tenon.save({"a": {"b": tenon.ones(2)}}, self.folder / "x.safetensors")
        os.rename(self.folder / "x.safetensors", self.folder / "x.bin")
        self.same(tenon.load(self.folder / "x.bin"), {"a.b": tenon.ones(2)})
        np.savez(self.folder / "y.npz", a=np.ones(2))
        os.rename(self.folder / "y.npz", self.folder / "y.bin")
        self.assertEqual(tenon.load(self.folder / "y.bin")["a"].tolist(), [1, 1])

    def test_arguments_of_pytorch_are_accepted(self):
        state = {"x": tenon.ones(2), "device": tenon.Device("cpu")}
        for options in ({"map_location": "cpu"}, {"map_location": tenon.Device("cpu")}, {"map_location": None}, {"device": "cpu"}, {"weights_only": True}, {"weights_only": False, "mmap": True}):
            self.same(self.again(state, **options), state)
        self.same(self.again(state, metadata=True), (state, {}))
        for options, text in (({"map_location": lambda storage, place: storage}, "must be a device such as 'cpu', not a function"), ({"map_location": "cpu", "device": "cpu"}, "mean the same")):
            with self.assertRaisesRegex(TypeError, text):
                self.again(state, **options)

    def test_what_a_state_does_not_hold_is_refused_with_its_place(self):
        class Point(collections.namedtuple("Point", "x y")):
            pass

        net = nn.Linear(2, 2)
        itself = []
        itself.append(itself)
        for state, text in ((net, r"the object is a tenon\.nn\.linear\.Linear\. Save its state_dict\(\), and give the loaded one to load_state_dict\(\)"),
                            ({"a": [optim.SGD(net.parameters())]}, r"'a\.0' is a tenon\.optim\.sgd\.SGD\. Save its state_dict"), ({"f": len}, "'f' is a builtins.builtin_function_or_method. A state holds"),
                            ({"p": Point(1, 2)}, "'p' is a .*Point"), ({object(): 1}, "is a builtins.object"), ({"x": np.array([object()])}, "'x' is a numpy.ndarray")):
            with self.assertRaisesRegex(TypeError, text):
                self.again(state)
        with self.assertRaisesRegex(ValueError, "nested more than 100 levels deep, or contains itself"):
            self.again(itself)
        self.assertEqual(os.listdir(self.folder), [])
        for call in (lambda: tenon.save(net.state_dict(), self.folder / "net.onnx"), lambda: tenon.load(self.folder / "net.onnx")):
            with self.assertRaisesRegex(ValueError, r"net\.onnx' .* ONNX model; use tenon\.onnx\.(export|load)\("):
                call()
        for call in (lambda: tenon.load(self.folder / "nothing.pt"), lambda: tenon.save(1, self.folder / "no/folder.pt")):
            with self.assertRaises(FileNotFoundError):
                call()

    def test_damage_is_an_error_that_names_the_file(self):
        path = self.folder / "state.pt"
        for content, text in ((b"", "neither a state"), (b"text of a user", "neither a state"), (b"\x93NUMPY\1", r"state\.pt"), (b"PK\3\4zip", "cannot be read as one of PyTorch"), (b"\x80\4N.", "it is a pickle, which may contain code")):
            path.write_bytes(content)
            with self.assertRaisesRegex(tenon.InvalidArgument, text) as raised:
                tenon.load(path)
            self.assertIn("state.pt", str(raised.exception))
        tree = '{"version":1,"state":%s}'
        for text, fault in (('{"version":2,"state":1}', "reads version 1"), (tree % '{"tensor":["y"]}', "KeyError: 'y'"), (tree % '{"code":"x"}', "KeyError: 'code'"), (tree % "{}", "ValueError"),
                            (tree % '{"dtype":"relu"}', "'relu' is not a dtype"), (tree % '{"set":[[]]}', "TypeError: unhashable"), (tree % '{"packed":["int4",[1099511627776],"x"]}', "do not fill a tensor"),
                            (tree % '{"array":["O",[1],"x"]}', "not a dtype of numbers"), (tree % '{"array":["<f8",[1099511627776],"x"]}', "ValueError"), (tree % ("[" * 100_000), "RecursionError|JSONDecodeError"),
                            (tree % '{"device":"gpu_of_dreams"}', "map_location='cpu' replaces it"), ("{", "JSONDecodeError"), ("[]", "TypeError")):
            tenon._tenon._save_safetensors(str(path), {"x": tenon.ones(3, dtype=tenon.u8)}, {"tenon.state": text})
            with self.assertRaisesRegex(tenon.InvalidArgument, rf"the state in the file .*state\.pt cannot be read: .*({fault})"):
                tenon.load(path)


class OfPyTorch(InFolder):
    """Files that torch_files.py writes; they need no PyTorch."""

    STORAGES = {"0": np.arange(24, dtype="<f4").tobytes(), "1": np.arange(5, dtype="<i8").tobytes()}

    def setUp(self):
        super().setUp()
        self.path = self.folder / "x.pt"

    def loaded(self, value, storages=STORAGES, **records):
        torch_files.archive(self.path, torch_files.pickled(value), storages, **records)
        return tenon.load(self.path)

    def test_tensors_and_plain_data(self):
        weight = torch_files.tensor("FloatStorage", "0", (2, 3), (3, 1), 6, 24)
        value = {"net": torch_files.Called("collections", "OrderedDict", [("w", weight)]), "t": torch_files.tensor("FloatStorage", "0", (4, 2), (1, 4), 0, 24),
                 "gaps": torch_files.tensor("FloatStorage", "0", (2, 2), (12, 2), 1, 24), "wide": torch_files.tensor("FloatStorage", "0", (3, 2), (0, 1), 2, 24), "n": torch_files.tensor("LongStorage", "1", (), (), 3, 5),
                 "p": torch_files.Called("torch._utils", "_rebuild_parameter", torch_files.tensor("LongStorage", "1", (5,), (1,)), False, torch_files.Called("collections", "OrderedDict")),
                 "g": torch_files.tensor("FloatStorage", "0", (24,), (1,), requires_grad=True), "size": torch_files.Called("torch", "Size", (2, 3)), "dtype": torch_files.Named("torch", "bfloat16"),
                 "device": torch_files.Called("torch", "device", "cpu"), "plain": [1, -2**70, 2.5, None, True, "é", (1, 2), {3: 4}], "bytes": torch_files.Called("_codecs", "encode", "\xff", "latin1")}
        base = np.arange(24, dtype="f4")
        expected = {"net": collections.OrderedDict(w=tenon.tensor(base[6:12].reshape(2, 3))), "t": tenon.tensor(base[:8].reshape(2, 4).T.copy()), "gaps": tenon.tensor(np.array([[1, 3], [13, 15]], "f4")),
                    "wide": tenon.tensor(np.array([[2, 3]] * 3, "f4")), "n": tenon.tensor(3), "p": nn.Parameter(tenon.arange(5), False), "g": tenon.tensor(base, requires_grad=True),
                    "size": (2, 3), "dtype": tenon.bf16, "device": tenon.Device("cpu"), "plain": [1, -2**70, 2.5, None, True, "é", (1, 2), {3: 4}], "bytes": b"\xff"}
        self.same(self.loaded(value), expected)
        torch_files.legacy(self.path, torch_files.pickled(value), self.STORAGES, {"0": 4, "1": 8})
        self.same(tenon.load(self.path), expected)
        loaded = tenon.load(self.path)
        with tenon.no_grad():
            loaded["g"].fill_(7)
        self.assertEqual(loaded["net"]["w"].sum().item(), 42)

    def test_what_it_refuses(self):
        tensor = torch_files.tensor
        for value, fault in ((torch_files.Called("os", "system", "exit 3"), r"it contains os\.system; only tensors and plain data are read, and no code is run"),
                             (torch_files.Named("__main__", "Net"), r"__main__\.Net"), (torch_files.Called("builtins", "eval", "1"), r"builtins\.eval"),
                             (torch_files.Called("torch", "FloatStorage", 1 << 40), "calls FloatStorage"), (tensor("ComplexFloatStorage", "0", (1,), (1,)), r"torch\.ComplexFloatStorage"),
                             (tensor("FloatStorage", "0", (5, 5), (5, 1), count=24), r"size \(5, 5\).* does not fit into a storage of 24 elements"), (tensor("FloatStorage", "0", (1 << 40,), (1,), count=24), "does not fit"),
                             (tensor("FloatStorage", "0", (9, 9), (1, 1), count=24), "does not fit"), (tensor("FloatStorage", "0", (25,), (1,)), "storage 0 has 96 bytes, and 25 elements"),
                             (tensor("FloatStorage", "0", (2,), (-1,)), r"strides \(-1,\)"), (tensor("FloatStorage", "9", (2,), (1,)), "record data/9 is missing"), (tensor("FloatStorage", "0", (2,), (1, 1)), "has 2 strides"),
                             (torch_files.Called("torch._utils", "_rebuild_tensor_v2", 1, 2, (), ()), "no typed storage"), (torch_files.Called("torch", "device", "gpu_of_dreams"), "map_location='cpu' replaces it"),
                             ({(1, (2, 3)): 1}, "a tuple is part of a key"), (tensor("FloatStorage", "0", (1,) * 9, (1,) * 9), "axes|rank")):
            with self.assertRaisesRegex(tenon.InvalidArgument, rf"the file .*x\.pt cannot be read as one of PyTorch: .*{fault}"):
                self.loaded(value)
        self.assertEqual(tenon.load(self.path.with_name("x.pt"), device="cpu") if self.loaded(1) else None, 1)
        with self.assertRaisesRegex(tenon.InvalidArgument, "TorchScript archive, which contains code"):
            self.loaded(1, **{"constants.pkl": b""})
        with self.assertRaisesRegex(tenon.InvalidArgument, "big-endian"):
            self.loaded(1, byteorder=b"big")
        torch_files.archive(self.path, torch_files.pickled(1), {}, zipfile.ZIP_DEFLATED)
        with self.assertRaisesRegex(tenon.InvalidArgument, "is compressed"):
            tenon.load(self.path)

    def test_pickles_that_pythons_reader_would_run_do_nothing(self):
        class Evil:
            def __reduce__(self):
                return os.mkdir, (str(folder / "made"),)

        folder = self.folder
        for protocol in range(2, 6):
            torch_files.archive(self.path, pickle.dumps({"a": [Evil()]}, protocol), {})
            with self.assertRaisesRegex(tenon.InvalidArgument, "posix.mkdir"):
                tenon.load(self.path)
        # A place of the memo that Python's reader would make room for.
        for code in (b"\x80\x02Nr\xff\xff\xff\xff.", b"\x80\x02\x8b\xff\xff\xff\x7f.", b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7fa."):
            torch_files.archive(self.path, code, {})
            try:
                self.assertIsNone(tenon.load(self.path))
            except tenon.InvalidArgument:
                pass
        self.assertEqual(os.listdir(self.folder), ["x.pt"])

    # Changes bytes of files at random. Each is loaded, or is an error of ours; 1 GiB of memory is enough for all.
    FUZZ = '''
import pathlib, random, resource, sys, traceback
import tenon
seed, *paths = sys.argv[1:]
tenon.ones(1), tenon.nn
for path in paths:
    tenon.load(path)
pages = int(pathlib.Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30),) * 2)
chance = random.Random(int(seed))
for path in map(pathlib.Path, paths):
    good, loaded = path.read_bytes(), 0
    for i in range(600):
        data = bytearray(good)
        for _ in range(chance.choice((1, 1, 2, 8))):
            at = chance.randrange(len(data))
            kind = chance.randrange(5)
            if kind == 0: data[at] ^= 1 << chance.randrange(8)
            elif kind == 1: data[at] = chance.choice(b"\\x00\\xff\\x7f019[{(tR.")
            elif kind == 2: del data[at:at + chance.randrange(1, 9)]
            elif kind == 3: data[at:at] = chance.randbytes(chance.randrange(1, 9))
            else: data[at:at + 4] = b"\\xff\\xff\\xff\\x7f"
        if i % 10 == 0: del data[chance.randrange(len(data)):]
        path.write_bytes(data)
        try:
            tenon.load(path)
            loaded += 1
        except tenon.InvalidArgument as error:
            assert path.name in str(error), error
        except Exception:
            sys.exit(f"seed {seed}, change {i} of {path.name}: {traceback.format_exc()}")
    print(path.name, loaded)
'''

    def test_damaged_files_are_errors(self):
        tenon.save({"a": [1.5, (2, None), {3: tenon.randn(4)}], "b": tenon.ones(2, dtype=tenon.i4), "c": np.arange(3), "d": b"12", "e": tenon.bf16}, self.folder / "state.pt")
        value = torch_files.pickled({"w": torch_files.tensor("FloatStorage", "0", (4, 3), (3, 1), 6, 24), "x": torch_files.tensor("LongStorage", "1", (2, 2), (2, 1), 0, 5),
                                     "p": torch_files.Called("torch._utils", "_rebuild_parameter", torch_files.tensor("FloatStorage", "0", (2, 2), (1, 2), 0, 24), True, {}), "n": [1, 2.5, "s"], "d": torch_files.Named("torch", "int8")})
        torch_files.archive(self.folder / "new.pt", value, self.STORAGES)
        torch_files.legacy(self.folder / "old.pt", value, self.STORAGES, {"0": 4, "1": 8})
        paths = [str(self.folder / name) for name in ("state.pt", "new.pt", "old.pt")]
        done = subprocess.run([sys.executable, "-B", "-c", self.FUZZ, "1", *paths], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])
        self.assertRegex(done.stdout, r"^state.pt \d+\nnew.pt \d+\nold.pt \d+\n$")


@unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
class WithPyTorch(InFolder):
    def state(self):
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
        optimizer = torch.optim.AdamW(net.parameters())
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 9)
        net(torch.randn(2, 3)).sum().backward()
        optimizer.step()
        schedule.step()
        base = torch.arange(120.0).reshape(2, 3, 4, 5)
        dtypes = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool uint16 uint32 uint64 float8_e4m3fn float8_e5m2"
        return {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "schedule": schedule.state_dict(), "parameter": net[0].weight,
                "frozen": torch.nn.Parameter(torch.ones(2), False), "strided": [base, base.permute(3, 0, 2, 1), base[:, 1:, ::2, 3], base[1, 2], base[..., -1:], torch.ones(3, 1).expand(3, 5), base[:, :0], torch.tensor(3)],
                "dtypes": [torch.tensor([0, 1, 0, 1, 1]).to(getattr(torch, name)) for name in dtypes.split() if hasattr(torch, name)],
                "plain": [1, -2**80, 2.5, math.nan, None, True, "grüß", b"\x00\xff", (1,), {1: 2}, {3}, frozenset([4]), 1 + 2j, bytearray(b"x")], "count": collections.Counter("ab"), "ordered": collections.OrderedDict(b=1),
                "size": torch.Size([1, 2]), "dtype": torch.float16, "device": torch.device("cpu")}

    def test_its_files_are_loaded(self):
        state = self.state()
        for new in (True, False):
            for protocol in range(2, 6):
                with self.subTest(new=new, protocol=protocol):
                    torch.save(state, self.folder / "x.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=new)
                    loaded = tenon.load(self.folder / "x.pt", map_location="cpu", weights_only=True)
                    self.same(loaded, state)
                    loaded["strided"][0].fill_(-1)
                    self.assertEqual(loaded["strided"][3].sum().item(), -20)
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        self.same(tenon.load(file), state)

    def test_what_it_refuses(self):
        for value, text in ((torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"), (torch.ones(2, dtype=torch.complex64), "torch.ComplexFloatStorage"), (torch.eye(2).to_sparse(), "torch._utils._rebuild_sparse_tensor")):
            torch.save({"x": value}, self.folder / "x.pt")
            with self.assertRaisesRegex(tenon.InvalidArgument, f"x.pt .*{text}"):
                tenon.load(self.folder / "x.pt")

    def test_a_loaded_net_trains(self):
        net = torch.nn.Linear(3, 2)
        torch.save(list(net.parameters()), self.folder / "x.pt")
        weight, bias = tenon.load(self.folder / "x.pt")
        optimizer = optim.SGD([weight, bias], lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            (nn.functional.linear(tenon.ones(1, 3), weight, bias) ** 2).sum().backward()
            optimizer.step()
        other = torch.optim.SGD(net.parameters(), lr=0.1)
        for _ in range(2):
            other.zero_grad()
            (net(torch.ones(1, 3)) ** 2).sum().backward()
            other.step()
        np.testing.assert_allclose(array(weight), net.weight.detach().double().numpy(), rtol=1e-5)


class Random(InFolder):
    def test_the_default_generator_is_restored(self):
        tenon.manual_seed(3)
        self.assertEqual(tenon.initial_seed(), 3)
        tenon.rand(5)
        state = tenon.get_rng_state()
        first = [tenon.rand(3).tolist(), tenon.randperm(9).tolist()]
        tenon.set_rng_state(self.again(state))
        self.assertEqual([tenon.rand(3).tolist(), tenon.randperm(9).tolist()], first)
        runs = []
        for _ in range(2):
            tenon.manual_seed(3)
            runs.append([tenon.rand(2).tolist(), tenon.get_rng_state().tolist(), tenon.rand(2).tolist()])
        self.assertEqual(*runs)
        tenon.manual_seed(-1)
        self.assertEqual(tenon.initial_seed(), 2**64 - 1)
        self.assertEqual(tenon.seed(), tenon.initial_seed())
        with self.assertRaisesRegex(ValueError, "16 bytes"):
            tenon.set_rng_state((3, 5))

    def test_generators_are_copied_and_pickled(self):
        import copy
        generator = tenon.Generator(7)
        tenon.rand((9,), generator=generator)
        for other in (copy.deepcopy(generator), pickle.loads(pickle.dumps(generator)), self.again(generator)):
            self.assertEqual((other.get_state(), other.initial_seed()), (generator.get_state(), 7))
            self.assertEqual(tenon.rand((3,), generator=other).tolist(), tenon.rand((3,), generator=copy.copy(generator)).tolist())
        self.assertEqual(generator.seed(), generator.initial_seed())


if __name__ == "__main__":
    unittest_report.main()
