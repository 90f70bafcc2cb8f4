"""Calls of ops: one resolution for Python and the dynamic call, objects as arguments, results as objects, errors.

usage: calls_test.py OP_RUNNER (a program that makes dynamic calls from C++)"""

import copy
import json
import pathlib
import re
import pickle
import resource
import subprocess
import sys
import unittest
import weakref

import numpy as np
import tenon

RUNNER = sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report


class Cpp:
    """Dynamic calls from C++."""

    def __init__(self):
        self.process = subprocess.Popen([RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def error(self, op, args, kwargs):
        self.process.stdin.write(json.dumps({"op": op, "args": args, "kwargs": kwargs}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline()).get("error")

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def ops():
    return {name: op for name, op in vars(tenon._tenon).items() if isinstance(op, tenon.Op)}


def error_of(op, args, kwargs={}):
    try:
        op(*args, **kwargs)
    except tenon.Error as error:
        return str(error)
    return None


class OneResolution(unittest.TestCase):
    def test_every_op_of_the_tool_is_a_function(self):
        listed = subprocess.run([RUNNER, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual({line.split("\t")[0] for line in listed}, set(ops()))
        self.assertEqual([name for name in ops() if not callable(getattr(tenon, name, None))], [])
        self.assertGreater(len(listed), 180)

    def test_refused_calls_have_the_text_of_the_dynamic_call(self):
        cpp = Cpp()
        self.addCleanup(cpp.end)
        calls = [([], {}), ([None], {}), (["text"], {}), ([[1, 2]], {}), ([1.5, 2, True], {}), (list(range(13)), {}),
                 ([], {"no_such_argument": 1}), ([True], {"input": 2})]
        compared = 0
        for name, op in ops().items():
            for args, kwargs in calls:
                theirs = cpp.error(name, args, kwargs)
                if theirs is not None:
                    with self.subTest(op=name, args=args, kwargs=kwargs):
                        self.assertEqual(error_of(op, args, kwargs), theirs)
                        compared += 1
        self.assertGreater(compared, 1000)

    def test_objects_that_mean_nothing_are_named_in_the_same_text(self):
        for given, name in ((object(), "object"), ({}, "dict"), (1j, "complex"), (np.zeros(2), "numpy.ndarray"), (b"", "bytes"),
                            ([1, "a"], "list with str"), (2**70, "int beyond 64 bits"), (int, "dtype"), (dict, "type")):
            self.assertEqual(error_of(tenon.relu, (given,), {}), f"relu(): argument 'input' must be Tensor, not {name}")

    def test_errors_carry_code_and_remedy(self):
        with self.assertRaises(tenon.InvalidArgument) as raised:
            tenon.relu()
        error = raised.exception
        self.assertIsInstance(error, (tenon.Error, ValueError, RuntimeError))
        self.assertEqual(error.code, "invalid argument")
        self.assertIn("The signature is relu(Tensor input", error.remedy)
        with self.assertRaises(LookupError):
            tenon.Device("no_such_device")

    def test_an_op_says_what_it_is(self):
        self.assertEqual((tenon.softmax.__name__, tenon.softmax.__module__, repr(tenon.softmax)), ("softmax", "tenon", "<op softmax>"))
        self.assertEqual(len(tenon.add.signatures), 3)
        self.assertIn(tenon.add.signatures[0], tenon.add.__doc__)
        self.assertIs(copy.copy(tenon.add), tenon.add)
        self.assertIs(pickle.loads(pickle.dumps(tenon.add)), tenon.add)


class Arguments(unittest.TestCase):
    x = tenon.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])

    def same(self, actual, expected):
        np.testing.assert_array_equal(np.asarray(actual), np.asarray(expected))

    def test_numbers_of_numpy_are_numbers(self):
        expected = np.asarray(self.x) * 2
        for two in (2, 2.0, np.float32(2), np.float64(2), np.int8(2), np.uint64(2), np.float16(2)):
            self.same(tenon.mul(self.x, two), expected)
        self.same(tenon.sum(self.x, np.int64(1), np.bool_(True)), np.asarray(self.x).sum(1, keepdims=True))

    def test_every_row_of_the_table_of_conversions(self):
        """The examples of the table are Python; each is evaluated, and compared with what NumPy gives."""
        a, t = np.arange(6, dtype=np.float32).reshape(2, 3) - 2, np.float32([0.5, 1.5, 2.5])
        names = {**ops(), "x": tenon.tensor(a), "t": tenon.tensor(t), "i": tenon.tensor(1), "slope": tenon.tensor(0.5),
                 "keep": tenon.tensor(True), "shape": tenon.tensor([3, 2]), "s": tenon.tensor(0.25, device="cpu"), "g": tenon.Generator(7)}
        expected = {
            "select(x, 0, i)": a[1],
            "leaky_relu(x, slope)": np.where(a < 0, a / 2, a),
            "sum(x, 0, keep)": a.sum(0, keepdims=True),
            "reshape(x, shape)": a.reshape(3, 2),
            "cast(x, 'float64')": a.astype(np.float64),
            "to(x, 'cpu')": a,
            "index_select(x, 0, [1, 0])": a[[1, 0]],
            "mul(x, [0.5, -1.0, 2.0])": a * np.float32([0.5, -1, 2]),
            "permute(x, 1, 0)": a.T,
            "einsum('ij,ij->i', x, x)": (a * a).sum(1),
            "zeros([2], dtype=None, device=None)": np.zeros(2, np.float32),
            "clamp(x, 0, t)": np.clip(a, 0, t),
            "add(x, s)": a + np.float32(0.25),
            "rand([3], generator=g)": np.asarray(tenon.philox_uniform([3], 7, 0)),
        }
        examples = subprocess.run([RUNNER, "--conversions"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(sorted(examples), sorted(expected))
        for example in examples:
            with self.subTest(example=example):
                actual = eval(example, names)
                self.same(actual, expected[example])
                self.assertEqual(np.asarray(actual).dtype, expected[example].dtype)

    def test_generators_go_on_where_they_were(self):
        g = tenon.Generator(3)
        first = np.asarray(tenon.randn((4,), generator=g))
        state = g.get_state()
        second = np.asarray(tenon.randn((4,), generator=g))
        self.assertFalse(np.array_equal(first, second))
        g.set_state(state)
        self.same(tenon.randn((4,), generator=g), second)
        self.same(tenon.randn((4,), generator=g.manual_seed(3)), first)
        x = tenon.full((100,), 0.5)
        for draw in (lambda g: tenon.bernoulli(x, generator=g), lambda g: tenon.multinomial(x, 5, generator=g),
                     lambda g: tenon.normal(x, x, generator=g), lambda g: tenon.randint(0, 9, (50,), generator=g),
                     lambda g: tenon.exponential(x, generator=g), lambda g: tenon.bernoulli(x, 0.3, generator=g)):
            self.same(draw(tenon.Generator(5)), draw(tenon.Generator(5)))
            self.assertFalse(np.array_equal(np.asarray(draw(tenon.Generator(5))), np.asarray(draw(tenon.Generator(6)))))
        self.assertIn("'generator' must be Generator, not int", error_of(tenon.rand, ((2,),), {"generator": 3}))

    def test_lists_with_a_float_are_lists_of_floats(self):
        for given in ([1, 0.5, 2], (1.0, np.float32(0.5), 2), [1, 0.5, tenon.tensor(2).item()]):
            self.same(tenon.mul(self.x, given), np.asarray(self.x) * np.float32([1, 0.5, 2]))
        self.assertEqual(error_of(tenon.relu, ([1.0, "a"],), {}), "relu(): argument 'input' must be Tensor, not list with str")
        self.assertIn("must be list of ints, not list of floats", error_of(tenon.permute, (self.x, [1.0, 0]), {}))

    def test_lists_and_tuples_are_lists(self):
        self.assertEqual(tenon.reshape(self.x, (3, 2)).shape, (3, 2))
        self.assertEqual(tenon.reshape(self.x, [np.int32(3), 2]).shape, (3, 2))
        self.assertEqual(tenon.concat((self.x, self.x), 0).shape, (4, 3))

    def test_dtypes_and_devices(self):
        for dtype in (tenon.f64, tenon.float64, np.float64, np.dtype("f8"), float):
            self.assertEqual(tenon.cast(self.x, dtype).dtype, tenon.f64)
        self.assertEqual(tenon.zeros((2,), dtype=tenon.i8, device=tenon.Device("cpu")).device, tenon.Device("cpu"))
        self.assertEqual(tenon.Device("cpu"), self.x.device)
        self.assertEqual({tenon.f32: 1}[tenon.float32], 1)
        for each in (tenon.f32, tenon.bool, tenon.Device("cpu")):
            self.assertEqual(pickle.loads(pickle.dumps(each)), each)
            self.assertEqual(copy.deepcopy(each), each)

    def test_keywords_and_defaults(self):
        self.same(tenon.softmax(self.x, dim=-1), tenon.softmax(self.x, -1))
        self.same(tenon.add(self.x, 1, alpha=3), np.asarray(self.x) + 3)
        self.same(tenon.sum(input=self.x), np.asarray(self.x).sum())

    def test_results_are_the_argument_itself_where_it_was_written(self):
        y = tenon.clone(self.x)
        self.assertIs(tenon.add_(y, 1), y)
        out = tenon.empty_like(y)
        self.assertIs(tenon.add(y, 1, out=out), out)
        self.same(out, np.asarray(self.x) + 2)
        before = y
        y += 1
        self.assertIs(y, before)
        self.assertIs(tenon.contiguous(y), y)

    def test_keywords_of_python_alone(self):
        y = tenon.tensor([1.5, -2.0])
        self.assertIs(tenon.relu(y, inplace=True), y)
        self.assertIs(tenon.relu(y, **{"".join(("in", "place")): True}), y)  # a name that is not interned
        self.assertEqual(y.tolist(), [1.5, 0])
        self.assertIsNot(tenon.relu(y, inplace=False), y)
        self.assertIs(y.add(1, alpha=2, inplace=True), y)
        self.assertEqual(y.tolist(), [3.5, 2])
        self.assertIn("unexpected keyword argument 'inplace'", error_of(tenon.sum, (y, 0), {"inplace": True}))
        self.assertTrue(tenon.zeros((2,), requires_grad=True).requires_grad)
        self.assertFalse(tenon.full_like(y, 3, requires_grad=False).requires_grad)
        self.assertIn("unexpected keyword argument 'requires_grad'", error_of(tenon.sum, (y,), {"requires_grad": True}))
        self.assertEqual(tenon.einsum("i,i->", y, y).item(), 16.25)
        self.assertEqual(len(tenon.meshgrid(y, y, indexing="xy")), 2)

    def test_draws_say_which_chance_or_weight_does_not_fit(self):
        nan, inf = float("nan"), float("inf")
        for p, element in (([0.5, 1.5], "1.5"), ([-0.25, 2.0], "-0.25"), ([0.5, nan], "nan")):
            for dtype in (tenon.f32, tenon.f64, tenon.f16, tenon.bf16):
                text = error_of(tenon.bernoulli, (tenon.tensor(p, dtype=dtype),))
                self.assertIn(f"bernoulli: input has the element {element}; probabilities must be within 0 and 1.", text)
            self.assertIn(f"bernoulli_: p has the element {element}; probabilities must be within 0 and 1.", error_of(tenon.bernoulli_, (tenon.ones(3, 2), tenon.tensor(p))))
        for p in (nan, -0.5, 1.5):
            self.assertIn(f"bernoulli: p is {p}; it must be within 0 and 1.", error_of(tenon.bernoulli, (tenon.ones(2), p)))
            self.assertIn(f"dropout: p is {p}; it must be within 0 and 1.", error_of(tenon.dropout, (tenon.ones(2), p)))
        for weights, element in (([1.0, -2.0], "-2"), ([nan, 1.0], "nan"), ([[1.0, 2.0], [inf, 0.0]], "inf"), ([-inf, 1.0], "-inf")):
            for replacement in (True, False):
                text = error_of(tenon.multinomial, (tenon.tensor(weights), 1, replacement))
                self.assertIn(f"multinomial: input has the element {element}; weights must be finite and at least 0.", text)
        for weights in (tenon.zeros(3), tenon.tensor([[1.0, 0.0], [0.0, 0.0]]), tenon.tensor([[0, 0], [3, 0]])):
            self.assertIn("multinomial: the weights of a row of input are all 0; one must be above 0.", error_of(tenon.multinomial, (weights, 1)))
        self.assertIn("normal: std has the element -1; standard deviations must be at least 0.", error_of(tenon.normal, (tenon.zeros(2), tenon.tensor([1.0, -1.0]))))
        self.assertIn("cannot be written into a tensor of shape [2]", error_of(tenon.bernoulli_, (tenon.ones(2), tenon.ones(3, 2))))
        self.assertEqual(tenon.bernoulli(tenon.zeros(0)).shape, (0,))

    def test_a_program_that_is_recorded_does_not_look_at_chances(self):
        drawn = tenon.compile(lambda p: tenon.bernoulli(p) + tenon.bernoulli(p - 5))
        self.assertEqual(drawn(tenon.ones(4)).tolist(), [1, 1, 1, 1])

    def test_every_op_that_can_write_its_argument_takes_inplace(self):
        # With inplace=True the argument holds the op's result for a copy, and the returned object is the argument.
        values = {"Tensor": lambda dtype, i: tenon.tensor([[1, 2, 3], [4, 0, 2]][i % 2], dtype=dtype), "Scalar": lambda dtype, i: 2, "float": lambda dtype, i: 0.5,
                  "int": lambda dtype, i: 0, "bool": lambda dtype, i: True, "Tensor[]": lambda dtype, i: [tenon.tensor([2, 0, 1])]}
        own = {"index": lambda dtype: tenon.tensor([2, 0, 1]), "mask": lambda dtype: tenon.tensor([True, False, True]), "reduce": lambda dtype: "amax"}
        # Shapes of the arguments of those that are for matrices.
        shapes = {"addmm": [(2, 2), (2, 3), (3, 2)], "addmv": [(2,), (2, 3), (3,)], "addr": [(2, 3), (2,), (3,)], "baddbmm": [(2, 2, 2), (2, 2, 3), (2, 3, 2)],
                  "addbmm": [(2, 2), (2, 2, 3), (2, 3, 2)], "tril": [(2, 3)], "triu": [(2, 3)]}
        names = [name for name in dir(tenon._tenon) if isinstance(getattr(tenon, name, None), tenon.Op) and hasattr(tenon._tenon, name + "_")]
        names.remove("normal")  # normal_ is an op of its own
        self.assertIn("unexpected keyword argument 'inplace'", error_of(tenon.normal, (tenon.ones(2), tenon.ones(2)), {"inplace": True}))
        names.remove("bernoulli")  # bernoulli_ takes the probabilities beside its argument
        self.assertIn("unexpected keyword argument 'inplace'", error_of(tenon.bernoulli, (tenon.ones(2),), {"inplace": True}))
        self.assertGreater(len(names), 140)
        for name in names:
            op = getattr(tenon, name)
            for signature in getattr(tenon, name + "_").signatures:
                parameters = [text.split()[:2] for text in re.search(r"\((.*?)(, \*, .*)?\)", signature)[1].split(", ")]
                with self.subTest(signature):
                    for dtype in (tenon.f32, tenon.i32):  # some ops have integers alone
                        args = [tenon.tensor(2, dtype=dtype) if (kind, parameter) == ("Tensor", "value") else own[parameter](dtype) if parameter in own else values[kind.rstrip("?").split("|")[0]](dtype, i) for i, (kind, parameter) in enumerate(parameters)]
                        for i, shape in enumerate(shapes.get(name, [])):
                            args[i] = tenon.cast(tenon.arange(int(np.prod(shape))), dtype).reshape(shape)
                        before = args[0].clone()
                        tenon.manual_seed(3)
                        try:
                            expected = op(before, *args[1:])
                        except tenon.Error:
                            continue
                        if expected.dtype.is_floating_point and not dtype.is_floating_point:
                            continue
                        tenon.manual_seed(3)
                        self.assertIs(op(args[0], *args[1:], inplace=True), args[0])
                        np.testing.assert_array_equal(args[0].numpy(), tenon.cast(expected, dtype).numpy())
                        self.assertIn("inplace=True", op.__doc__)
                        break
                    else:
                        self.fail("no call of it works")

    def test_methods_are_the_functions(self):
        self.assertIs(tenon.Tensor.relu, tenon.relu)
        self.same(self.x.relu(), tenon.relu(self.x))
        self.same(self.x.sum(dim=1), tenon.sum(self.x, 1))
        self.assertFalse(hasattr(self.x, "conv2d"))

    def test_results_have_names(self):
        values, indices = result = self.x.max(1)
        self.assertEqual((result.values is values, result.indices is indices, type(result).__name__), (True, True, "max"))
        self.assertEqual(tenon.linalg_qr(self.x)._fields, ("Q", "R"))

    def test_refused_calls_and_indices_are_errors_of_python_too(self):
        for call, kind in ((lambda: tenon.relu(), TypeError), (lambda: tenon.relu("a"), TypeError), (lambda: self.x[5], IndexError), (lambda: self.x[0, 0, 0], IndexError),
                           (lambda: tenon.reshape(self.x, (7,)), ValueError)):
            with self.assertRaises(kind) as raised:
                call()
            self.assertIsInstance(raised.exception, tenon.InvalidArgument)
            self.assertEqual(raised.exception.code, "invalid argument")

    def test_several_results_are_a_tuple(self):
        parts = tenon.split(self.x, 1, 1)
        self.assertIsInstance(parts, tuple)
        self.assertEqual([p.shape for p in parts], [(2, 1)] * 3)
        self.assertEqual(len(tenon.split(self.x, 3, 1)), 1)
        self.assertEqual(tenon.max(self.x).item(), 5)
        self.same(tenon.max(self.x, 1)[1], [2, 1])

    def test_operators_are_the_ops(self):
        x, a = self.x, np.asarray(self.x)
        for actual, expected in ((x + 1, a + 1), (1 - x, 1 - a), (x * x, a * a), (1 / x, 1 / a), (-x, -a), (abs(x), abs(a)), (x ** 2, a ** 2),
                                 (x @ tenon.transpose(x, 0, 1), a @ a.T), (x > 0, a > 0), (x == x, a == a), (x != 1, a != 1),
                                 (x <= 1, a <= 1), (np.float32(2) * x, 2 * a), (x % 2, a % 2), (~(x > 0), ~(a > 0)),
                                 ((x > 0) & (x < 4), (a > 0) & (a < 4))):
            np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-6)
        with self.assertRaises(TypeError):
            x + object()
        self.assertEqual(hash(x), hash(x))
        self.assertNotEqual(hash(x), hash(tenon.clone(x)))

    def test_an_op_in_a_class_is_a_method(self):
        class Holder:
            name = tenon.relu

        with self.assertRaisesRegex(tenon.Error, "must be Tensor, not Holder"):
            Holder().name()

    def test_repr_is_that_of_pytorch(self):
        self.assertEqual(repr(tenon.tensor([1.5, 2])), "tensor([1.5000, 2.0000])")


class Gradients(unittest.TestCase):
    def test_backward_reaches_leaves(self):
        w = tenon.tensor([2.0, 3.0], requires_grad=True)
        self.assertIsNone(w.grad)
        tenon.sum(w * w).backward()
        np.testing.assert_array_equal(np.asarray(w.grad), [4, 6])
        with tenon.no_grad():
            w -= 0.5 * w.grad
        np.testing.assert_array_equal(np.asarray(w.detach()), [0, 0])
        w.grad = None
        self.assertIsNone(w.grad)
        self.assertFalse((w.detach() * 2).requires_grad)


class Leaks(unittest.TestCase):
    def resident(self):
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()

    def calls(self, count):
        x, out = tenon.tensor([1.0, 2.0, 3.0, 4.0]), tenon.tensor([0.0] * 4)
        for _ in range(count // 10):
            y = tenon.relu(x)
            tenon.add(y, 1, alpha=2, out=out)
            tenon.sum(x, [0], True)
            tenon.concat([x, y], 0)
            tenon.split(x, 2, 0)
            y += 1
            y * 2
            tenon.cast(y, np.float64)
            np.asarray(y)
            try:
                tenon.relu("text")
            except tenon.Error:
                pass

    def test_a_million_calls_leave_no_memory_behind(self):
        self.calls(100_000)
        before = self.resident()
        self.calls(1_000_000)
        self.assertLess(self.resident() - before, 4 << 20)

    def test_objects_that_are_used_again_hold_nothing_of_their_last_tensor(self):
        array = np.ones(4, "f4")
        before = sys.getrefcount(array)
        tensors = [tenon.from_numpy(array) for _ in range(1000)]  # more tensors than Tenon keeps for later calls
        watched = [weakref.ref(each) for each in tensors]
        self.assertEqual(sys.getrefcount(array), before + 1000)
        del tensors
        self.assertEqual(sys.getrefcount(array), before)
        others = [tenon.Tensor.__new__(tenon.Tensor) for _ in range(1000)]
        for each in others:
            with self.assertRaises(tenon.Error):
                tenon.relu(each)
        made = [tenon.full((1,), float(i)) for i in range(1000)]
        self.assertTrue(all(each() is None for each in watched))
        self.assertEqual([each.item() for each in made], [float(i) for i in range(1000)])
        self.assertEqual(len({id(each) for each in made + others}), 2000)

    def test_arguments_and_results_have_the_references_they_had(self):
        x, name, dims = tenon.tensor([[1.0, 2.0]]), "".join(["mean", "!"])[:-1], [0, 1]
        before = [sys.getrefcount(each) for each in (x, name, dims, tenon.f32, None)]
        for _ in range(1000):
            tenon.permute(x, dims)
            tenon.cast(x, tenon.f32)
            tenon.add_(x, 1)
            error_of(tenon.gelu, (x,), {"approximate": name})
            error_of(tenon.sum, (x, None, None, None), {})
        after = [sys.getrefcount(each) for each in (x, name, dims, tenon.f32, None)]
        self.assertTrue(all(b <= a + 10 for a, b in zip(before, after)), (before, after))


if __name__ == "__main__":
    unittest_report.main()
