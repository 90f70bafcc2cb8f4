"""Arrays come and go without a copy where memory allows, by the buffer protocol and by DLPack; each is freed once.

usage: memory_test.py OP_RUNNER (which these tests do not use)"""

import gc
import importlib.util
import pathlib
import subprocess
import sys
import unittest
import weakref

import numpy as np
import tenon

sys.argv[1:2] = []
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

NAMES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]
SHAPES = [(), (0,), (1,), (7,), (3, 0, 2), (2, 3), (2, 1, 3, 5)]
random = np.random.default_rng(20261123)


def some(shape, name):
    return (random.integers(0, 2, shape) if name == "bool" else random.uniform(1, 100, shape)).astype(name)


class Arrays(unittest.TestCase):
    def test_every_dtype_and_shape_comes_back(self):
        for name in NAMES:
            for shape in SHAPES:
                array = some(shape, name)
                for made in (tenon.tensor(array), tenon.from_numpy(np.asarray(array))):
                    with self.subTest(dtype=name, shape=shape):
                        self.assertEqual(made.shape, shape)
                        self.assertEqual(made.dtype, getattr(tenon, name))
                        back = np.asarray(made)
                        self.assertEqual((back.dtype, back.shape), (array.dtype, shape))
                        np.testing.assert_array_equal(back, array)

    def test_views_come_with_their_strides(self):
        array = some((4, 6, 5), "float32")
        for view in (array.T, array[1:3], array[:, ::2], array[:, :, 3], np.broadcast_to(array[0], (4, 6, 5)), array[::-1, ::-2]):
            np.testing.assert_array_equal(np.asarray(tenon.tensor(view)), view)
        transposed = tenon.from_numpy(array.T)
        self.assertEqual(transposed.stride(), (1, 5, 30))
        np.testing.assert_array_equal(np.asarray(transposed), array.T)
        np.testing.assert_array_equal(np.asarray(tenon.transpose(transposed, 0, 2)), array)

    def test_from_numpy_and_asarray_share_memory(self):
        array = some((3, 4), "float32")
        tensor = tenon.from_numpy(array)
        self.assertTrue(np.shares_memory(np.asarray(tensor), array))
        array[1, 2] = 42
        self.assertEqual(np.asarray(tensor)[1, 2], 42)
        tenon.mul_(tensor, 2)
        self.assertEqual(array[1, 2], 84)
        self.assertFalse(np.shares_memory(np.asarray(tenon.tensor(array)), array))

    def test_an_array_lives_as_long_as_its_tensor(self):
        class Watched(np.ndarray):
            pass

        array = some((1000,), "float32").view(Watched)
        gone = weakref.ref(array)
        expected = np.array(array)
        tensor = tenon.from_numpy(array)
        view = tenon.slice(tensor, 0, 10, 20)
        del array, tensor
        gc.collect()
        self.assertIsNotNone(gone())
        np.testing.assert_array_equal(np.asarray(view), expected[10:20])
        del view
        gc.collect()
        self.assertIsNone(gone())

    def test_a_tensor_lives_as_long_as_arrays_over_it(self):
        back = np.asarray(tenon.tensor(np.arange(1000.0)))
        gc.collect()
        others = [np.asarray(tenon.tensor(np.zeros(1000))) for _ in range(20)]
        np.testing.assert_array_equal(back, np.arange(1000.0))
        self.assertEqual(len(others), 20)

    def test_read_only_arrays_are_copied_or_refused(self):
        array = some((3,), "float32")
        array.flags.writeable = False
        np.testing.assert_array_equal(np.asarray(tenon.tensor(array)), array)
        with self.assertRaisesRegex(ValueError, "read-only.*tenon.tensor copies"):
            tenon.from_numpy(array)
        np.testing.assert_array_equal(np.asarray(tenon.tensor(b"abc")), [97, 98, 99])

    def test_arrays_that_are_no_tensors_are_refused_by_what_they_are(self):
        for array, text in ((np.array(["a"]), "format '1w'"), (np.zeros(3, ">f4"), "format '>f'"), (np.zeros(2, "c8"), "format 'Zf'"),
                            (np.zeros((1,) * 9), "9 axes")):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                tenon.tensor(array)
        packed = np.zeros(3, [("a", "u1"), ("b", "<f4")])["b"]
        with self.assertRaisesRegex(ValueError, "stride of 5 bytes"):
            tenon.from_numpy(packed)
        with self.assertRaisesRegex(tenon.Error, "negative"):
            tenon.from_numpy(np.zeros(4)[::-1])
        with self.assertRaisesRegex(TypeError, "expected an array, not int"):
            tenon.from_numpy(3)

    def test_bfloat16_comes_through_ml_dtypes(self):
        try:
            import ml_dtypes
        except ImportError:
            self.skipTest("ml_dtypes is not installed")
        array = np.array([[1.5, -2.25], [3, 1e30]], ml_dtypes.bfloat16)
        tensor = tenon.tensor(array)
        self.assertEqual(tensor.dtype, tenon.bf16)
        np.testing.assert_array_equal(np.asarray(tenon.cast(tensor, tenon.f32)), array.astype(np.float32))

    def test_memoryview_reads_a_tensor(self):
        view = memoryview(tenon.tensor([[1, 2, 3], [4, 5, 6]]))
        self.assertEqual((view.format, view.shape, view.readonly), ("q", (2, 3), False))
        self.assertEqual(view.tolist(), [[1, 2, 3], [4, 5, 6]])
        with self.assertRaisesRegex(BufferError, "no format for elements of bf16"):
            memoryview(tenon.cast(tenon.tensor([1.0]), tenon.bf16))


class Sharing(unittest.TestCase):
    """Which results are views of their input, and which copies: as in PyTorch, however the input lies."""

    SHAPES = {"diag": (3, 4), "ravel": (3, 4), "nan_to_num": (3, 4), "pixel_shuffle": (1, 4, 2, 3), "pixel_unshuffle": (1, 4, 2, 3), "channel_shuffle": (1, 4, 2, 3)}
    COPIES = [("diag", ()), ("nan_to_num", ()), ("pixel_shuffle", (1,)), ("pixel_unshuffle", (1,)), ("channel_shuffle", (1,)), ("channel_shuffle", (4,))]
    VIEWS = [("flatten", ()), ("squeeze", ()), ("squeeze", ([],)), ("diagonal", (0, 1, 0)), ("diagonal", (1,)), ("diagonal", (-1, 1, 0)), ("reshape", ([-1],))]

    def shares(self, op, args, x, module=tenon):
        before = x.clone()
        getattr(module, op)(x, *args).add_(1)
        return not tenon.equal(before, x)

    def test_copies_leave_their_input_alone(self):
        for op, args in self.COPIES:
            for dtype in (tenon.f32, tenon.i64):
                with self.subTest(op=op, args=args, dtype=dtype):
                    self.assertFalse(self.shares(op, args, tenon.ones(self.SHAPES[op], dtype=dtype)))
        self.assertFalse(self.shares("ravel", (), tenon.ones((10,))[::2]))
        self.assertFalse(self.shares("pad", ((0, 0), "circular"), tenon.ones((1, 1, 3)), tenon.nn.functional))

    def test_views_write_through(self):
        for op, args in self.VIEWS:
            with self.subTest(op=op, args=args):
                self.assertTrue(self.shares(op, args, tenon.ones((3, 4))))
        self.assertTrue(self.shares("ravel", (), tenon.ones((3, 4))))


class Lists(unittest.TestCase):
    def check(self, data, shape, dtype):
        made = tenon.tensor(data)
        self.assertEqual((made.shape, made.dtype), (shape, dtype))
        np.testing.assert_array_equal(np.asarray(made), np.array(data, np.asarray(made).dtype))

    def test_numbers_and_nested_lists(self):
        self.check(3, (), tenon.i64)
        self.check(2.5, (), tenon.f32)
        self.check(True, (), tenon.bool)
        self.check([True, False], (2,), tenon.bool)
        self.check([1, True], (2,), tenon.i64)
        self.check([[1, 2.5], [3, 4]], (2, 2), tenon.f32)
        self.check((((1,), (2,)),), (1, 2, 1), tenon.i64)
        self.check([], (0,), tenon.f32)
        self.check([[], []], (2, 0), tenon.f32)
        self.check([np.float32(1.5), np.int16(2)], (2,), tenon.f32)

    def test_dtype_device_and_gradient_go_by_keyword(self):
        made = tenon.tensor([1, 2], dtype="float64", device="cpu", requires_grad=True)
        self.assertEqual((made.dtype, made.requires_grad), (tenon.f64, True))
        self.assertEqual(tenon.tensor(0.1, dtype=tenon.float64).item(), 0.1)
        for dtype in (tenon.i32, "i32", "int32", np.int32, np.dtype("int32")):
            self.assertEqual(tenon.tensor([1.0], dtype=dtype).dtype, tenon.i32)
        self.assertEqual([tenon.tensor(1, dtype=d).dtype for d in (float, int, bool)], [tenon.f64, tenon.i64, tenon.bool])

    def test_ragged_lists_are_refused(self):
        for data, text in (([[1, 2], [3]], "2 elements and another one 1"), ([[1], 2], "one row has a number where other rows have lists"),
                           ([1, [2]], "one row has a list where other rows have numbers"), (["a"], "str is not a number"),
                           ([[[[[[[[[1]]]]]]]]], "deeper than 8"), (object(), "object is not a number"), ([None], "None is not a number")):
            with self.assertRaisesRegex((TypeError, ValueError), text):
                tenon.tensor(data)
        with self.assertRaisesRegex(ValueError, "there is no dtype 'f31'"):
            tenon.tensor([1], dtype="f31")
        with self.assertRaisesRegex(TypeError, "dtype must be a dtype, not list"):
            tenon.tensor([1], dtype=[])

    def test_item_and_numbers(self):
        self.assertEqual(tenon.tensor(3).item(), 3)
        self.assertIs(tenon.tensor(True).item(), True)
        self.assertEqual((float(tenon.tensor(2.5)), int(tenon.tensor(7)), [10, 20][tenon.tensor(1)]), (2.5, 7, 20))
        self.assertTrue(tenon.tensor([1.0]))
        self.assertFalse(tenon.tensor(0))
        self.assertEqual(tenon.tensor(np.uint64(2**63)).item(), 2**63)
        with self.assertRaises(tenon.InvalidArgument):
            bool(tenon.tensor([1, 2]))
        with self.assertRaisesRegex(TypeError, "only integer tensors"):
            [1, 2][tenon.tensor(1.0)]


class Capsules(unittest.TestCase):
    def test_numpy_takes_a_tensor_and_gives_one(self):
        tensor = tenon.tensor([[1.0, 2.0], [3.0, 4.0]])
        array = np.from_dlpack(tensor)
        self.assertTrue(np.shares_memory(array, np.asarray(tensor)))
        self.assertTrue(np.shares_memory(np.asarray(tenon.from_dlpack(array.copy())), array) is False)
        source = some((3, 4), "float64")
        self.assertTrue(np.shares_memory(np.asarray(tenon.from_dlpack(source)), source))

    def test_the_form_follows_max_version(self):
        tensor = tenon.tensor([1.0])
        self.assertIn('"dltensor"', repr(tensor.__dlpack__()))
        self.assertIn('"dltensor_versioned"', repr(tensor.__dlpack__(max_version=(1, 1))))
        self.assertEqual(tensor.__dlpack_device__(), (1, 0))

    def test_a_capsule_is_taken_once(self):
        for arguments in ({}, {"max_version": (1, 0)}):
            tensor = tenon.tensor([1.0, 2.0])
            capsule = tensor.__dlpack__(**arguments)
            np.testing.assert_array_equal(np.asarray(tenon.from_dlpack(capsule)), [1, 2])
            with self.assertRaisesRegex(TypeError, "used before"):
                tenon.from_dlpack(capsule)

    def test_copy_and_device_are_obeyed(self):
        tensor = tenon.tensor([1.0, 2.0])
        copied = tenon.from_dlpack(tensor.__dlpack__(copy=True))
        self.assertFalse(np.shares_memory(np.asarray(copied), np.asarray(tensor)))
        np.testing.assert_array_equal(np.asarray(copied), [1, 2])
        tensor.__dlpack__(copy=False, dl_device=(1, 0))
        with self.assertRaisesRegex(BufferError, "CPU"):
            tensor.__dlpack__(dl_device=(2, 0))
        with self.assertRaisesRegex(ValueError, "no streams"):
            tensor.__dlpack__(stream=1)

    def test_read_only_memory_is_refused(self):
        class ReadOnly:
            def __dlpack__(self, **arguments):
                return np.arange(3.0).__dlpack__()

        np.testing.assert_array_equal(np.asarray(tenon.from_dlpack(ReadOnly())), [0, 1, 2])
        with self.assertRaisesRegex(TypeError, "has no __dlpack__"):
            tenon.from_dlpack(3)

    def test_owners_are_freed_once(self):
        freed = []

        class Owner:
            def __init__(self, inner):
                self.inner = inner

            def __dlpack__(self):
                return self.inner.__dlpack__()

        class Watched(np.ndarray):
            def __del__(self):
                freed.append(1)

        array = np.arange(5.0).view(Watched)
        tensor = tenon.from_dlpack(Owner(array))
        del array
        gc.collect()
        self.assertEqual(freed, [])
        np.testing.assert_array_equal(np.asarray(tensor), np.arange(5.0))
        del tensor
        gc.collect()
        self.assertEqual(freed, [1])
        unused = tenon.tensor([1.0]).__dlpack__()
        del unused

    def test_pytorch_takes_a_tensor_and_gives_one(self):
        try:
            import torch
        except ImportError:
            self.skipTest("PyTorch is not installed")
        given = torch.arange(12, dtype=torch.float32).reshape(3, 4).t()
        tensor = tenon.from_dlpack(given)
        self.assertEqual((tensor.shape, tensor.stride()), ((4, 3), (1, 4)))
        given[2, 1] = 100
        self.assertEqual(np.asarray(tensor)[2, 1], 100)
        back = torch.from_dlpack(tenon.tensor([[1.0, 2.0]], dtype=tenon.bf16))
        self.assertEqual(back.dtype, torch.bfloat16)
        self.assertEqual(back.tolist(), [[1.0, 2.0]])

    @unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")
    def test_pytorch_and_tenon_load_in_either_order(self):
        script = "a = tenon.arange(4, dtype=tenon.float32); print(torch.from_dlpack(a + a).sum().item())"
        for order in ("torch, tenon", "tenon, torch"):
            with self.subTest(order=order):
                done = subprocess.run([sys.executable, "-B", "-c", f"import {order}\n{script}"], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "12.0\n", ""))


@unittest.skipUnless(importlib.util.find_spec("_testcapi"), "this Python cannot refuse memory (_testcapi)")
class Blocks(unittest.TestCase):
    def test_they_end_though_no_memory_is_left(self):
        import _testcapi
        x, packed = tenon.ones(2, requires_grad=True), []

        def modes():
            return tenon.is_grad_enabled(), tenon.autograd.is_inference_mode_enabled()

        def packs():
            packed.clear()
            return (x * x).sum().item(), len(packed)

        hooks = lambda: tenon.autograd.saved_tensors_hooks(lambda t: (packed.append(1), t)[1], lambda t: t)
        for make, state in ((tenon.no_grad, modes), (tenon.enable_grad, modes), (tenon.inference_mode, modes), (lambda: tenon.set_grad_enabled(False), modes),
                            (hooks, packs), (lambda: tenon.profile(show=False), tenon.profile._running.locked)):
            for allowed in range(8):  # allocations, after which all fail
                with self.subTest(make=make, allowed=allowed):
                    before = state()
                    block = make()
                    try:
                        with block:
                            _testcapi.set_nomemory(allowed, 0)
                    except MemoryError:
                        pass
                    finally:
                        _testcapi.remove_mem_hooks()
                    self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest_report.main()
