"""Compiled functions after Python's state has changed: they give what the plain function gives.

usage: stale_test.py OP_RUNNER (not used)"""

import collections
import dataclasses
import enum
import functools
import gc
import itertools
import os
import pathlib
import sys
import types
import unittest
import warnings
import weakref

import numpy as np
import tenon
from tenon import nn, optim

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

SCALE = 2.0
TABLE = {"scale": 2.0, "parts": [1.0, 2.0]}
WEIGHT = tenon.ones(3)


def helper(x):
    return x + 1


def other_helper(x):
    return x - 1


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclasses.dataclass
class Settings:
    scale: float = 2.0
    bias: object = None


class Plain:
    factor = 3.0

    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def times(self, x):
        return x * self.scale

    @property
    def doubled(self):
        return self.scale * 2


class Slots:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale


class Bag:
    """A container of its own."""

    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        return iter(self.parts)


class Block(nn.Module):
    """A layer with everything that may change."""

    limits = (0.0, 1.0)

    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.dropout = nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5)
        self.layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.scale, self.sizes, self.options = 2.0, [1.0, 2.0], {"shift": 1.0}
        self.register_buffer("shift", tenon.ones(3))

    def forward(self, x):
        x = self.dropout(self.norm(self.linear(x))) * self.scale + sum(self.sizes) + self.options["shift"] + self.shift + self.limits[1]
        for layer in self.layers:
            x = layer(x)
        return x * getattr(self, "extra", 1.0)


def block():
    tenon.manual_seed(3)
    return Block()


def net_of(change):
    """A case whose function is a module, and whose state is changed by `change`."""
    def make():
        net = block()
        return net, functools.partial(change, net)
    return make


def replaced_parameter(net):
    net.linear.weight = nn.Parameter(tenon.ones(3, 3))


def instance_forward(net):
    net.linear.forward = lambda x: x * 5


def patched_class():
    class Own(nn.Module):
        scale = 2.0

        def forward(self, x):
            return x * self.scale
    return Own(), lambda: setattr(Own, "scale", 3.0)


def patched_method():
    class Own(nn.Module):
        def forward(self, x):
            return x * 2
    return Own(), lambda: setattr(Own, "forward", lambda self, x: x * 4)


def in_globals(name, value):
    """A case that reads the global variable `name`, which becomes `value`."""
    def make():
        scope = {"tenon": tenon, "helper": helper, name: globals()[name], "__name__": "a_module"}
        exec("def function(x):\n    return helper(x) * 2" if name == "helper" else f"def function(x):\n    return x * {name}", scope)
        return scope["function"], lambda: scope.__setitem__(name, value)
    return make


def closure_of(value, after):
    def make():
        held = value

        def function(x):
            return x * held

        def change():
            nonlocal held
            held = after
        return function, change
    return make


def over(make_state, read, change):
    """A case whose function reads the state by `read`, which `change` changes."""
    def make():
        state = make_state()

        def function(x):
            return read(state, x)
        return function, lambda: change(state)
    return make


def local_names(state, x):
    inner = state.inner
    return x * inner.scale


def attributes_of_elements(state, x):
    for each in state:
        x = x * each.scale
    return x


def by_name(state, x):
    for name in ("scale", "factor"):
        x = x * getattr(state, name)
    return x


def if_it_is_there(state, x):
    return x * state.late if hasattr(state, "late") else x


def or_else(state, x):
    try:
        return x * state.late
    except AttributeError:
        return x


def through_a_weak_reference():
    plain = Plain(scale=2.0)
    reference = weakref.ref(plain)
    return lambda x: x * reference().scale, lambda: setattr(plain, "scale", 3.0)


def decorated():
    state = {"scale": 2.0}

    def twice(function):
        @functools.wraps(function)
        def wrapper(x):
            return function(function(x))
        return wrapper

    @tenon.no_grad()
    @twice
    def function(x):
        return x * state["scale"]
    return function, lambda: state.update(scale=3.0)


def defaults():
    def function(x, scale=2.0, *, shift=1.0):
        return x * scale + shift

    def change():
        function.__defaults__, function.__kwdefaults__ = (3.0,), {"shift": 5.0}
    return function, change


def another_code():
    def function(x):
        return x * 2

    def change():
        function.__code__ = (lambda x: x * 3).__code__
    return function, change


def compiled_inside():
    state = {"scale": 2.0}
    inner = tenon.compile(lambda x: x * state["scale"])
    return lambda x: inner(x) + 1, lambda: state.update(scale=3.0)


def generator_inside():
    parts = [Plain(scale=2.0), Plain(scale=3.0)]

    def each():
        for part in parts:
            yield part
    return lambda x: sum(x * part.scale for part in each()), lambda: setattr(parts[1], "scale", 7.0)


def comprehension():
    parts = Bag([Plain(scale=2.0), Plain(scale=3.0)])
    return lambda x: sum([x * part.scale for part in parts]), lambda: setattr(parts.parts[0], "scale", 7.0)


def bound_method():
    plain = Plain(scale=2.0)
    return plain.times, lambda: setattr(plain, "scale", 3.0)


def hook_added(net):
    net.layers[0].register_forward_hook(lambda module, args, result: result * 10)


def module_of_settings():
    settings = types.ModuleType("settings_of_a_test")
    settings.scale = 2.0
    return lambda x: x * settings.scale, lambda: setattr(settings, "scale", 3.0)


CASES = {
    "eval": net_of(lambda net: net.eval()),
    "train": net_of(lambda net: (net.eval(), net.norm.train())),
    "an attribute of a module": net_of(lambda net: setattr(net, "scale", 3.0)),
    "an attribute of a layer": net_of(lambda net: setattr(net.norm, "eps", 0.5)),
    "a list of a module": net_of(lambda net: net.sizes.append(4.0)),
    "a dict of a module": net_of(lambda net: net.options.update(shift=9.0)),
    "a class attribute in the way": net_of(lambda net: setattr(net, "limits", (0.0, 9.0))),
    "an attribute that was absent": net_of(lambda net: setattr(net, "extra", 9.0)),
    "another parameter": net_of(replaced_parameter),
    "another buffer": net_of(lambda net: setattr(net, "shift", tenon.zeros(3))),
    "a buffer without a name before": net_of(lambda net: net.register_buffer("shift", tenon.zeros(3) + 4)),
    "no bias": net_of(lambda net: net.linear.register_parameter("bias", None)),
    "another layer": net_of(lambda net: setattr(net, "linear", nn.Linear(3, 3, bias=False))),
    "one layer more": net_of(lambda net: net.layers.append(nn.Linear(3, 3))),
    "one layer less": net_of(lambda net: net.layers.__delitem__(0)),
    "another element of a list": net_of(lambda net: net.layers.__setitem__(0, nn.ReLU())),
    "a hook": net_of(hook_added),
    "a forward of one module": net_of(instance_forward),
    "another dtype": net_of(lambda net: (net.double(), net.float())),
    "an attribute of the class": patched_class,
    "a method of the class": patched_method,
    "a global number": in_globals("SCALE", 3.0),
    "a global number of another type": in_globals("SCALE", 2),
    "a global tensor": in_globals("WEIGHT", tenon.ones(3) * 4),
    "a global function": in_globals("helper", other_helper),
    "a closure's number": closure_of(2.0, 3.0),
    "a closure's tensor": closure_of(tenon.ones(3), tenon.ones(3) * 3),
    "a closure's zero": closure_of(0.0, -0.0),
    "a closure's type": closure_of(2, True),
    "a number of NumPy": closure_of(np.float32(2), np.float32(3)),
    "a list": over(lambda: [1.0, 2.0], lambda s, x: x * s[0] + len(s), lambda s: s.append(1.0)),
    "a list's element": over(lambda: [1.0, 2.0], lambda s, x: x * s[0], lambda s: s.__setitem__(0, 5.0)),
    "a nested dict": over(lambda: {"a": {"b": [1.0]}}, lambda s, x: x * s["a"]["b"][0], lambda s: s["a"]["b"].__setitem__(0, 5.0)),
    "a set": over(lambda: {1.0}, lambda s, x: x * sum(s), lambda s: s.add(4.0)),
    "a deque": over(lambda: collections.deque([1.0]), lambda s, x: x * sum(s), lambda s: s.append(4.0)),
    "a dict with defaults": over(lambda: collections.defaultdict(float, a=1.0), lambda s, x: x * s["a"], lambda s: s.update(a=4.0)),
    "a dict of Python": over(lambda: collections.UserDict(a=1.0), lambda s, x: x * s["a"], lambda s: s.update(a=4.0)),
    "a list of tensors": over(lambda: [tenon.ones(3)], lambda s, x: x * s[0], lambda s: s.__setitem__(0, tenon.ones(3) * 4)),
    "a tensor that is written": over(lambda: tenon.ones(3), lambda s, x: x * s, lambda s: s.fill_(7)),
    "an array": over(lambda: np.ones(3, np.float32), lambda s, x: x * tenon.tensor(s), lambda s: s.fill(7)),
    "a namespace": over(lambda: types.SimpleNamespace(scale=2.0), lambda s, x: x * s.scale, lambda s: setattr(s, "scale", 3.0)),
    "a dataclass": over(Settings, lambda s, x: x * s.scale, lambda s: setattr(s, "scale", 3.0)),
    "slots": over(lambda: Slots(2.0), lambda s, x: x * s.scale, lambda s: setattr(s, "scale", 3.0)),
    "an enumeration": over(lambda: Plain(color=Color.RED), lambda s, x: x * s.color.value, lambda s: setattr(s, "color", Color.BLUE)),
    "a string": over(lambda: Plain(mode="a"), lambda s, x: x * (2 if s.mode == "a" else 3), lambda s: setattr(s, "mode", "b")),
    "a dtype": over(lambda: Plain(dtype=tenon.f32), lambda s, x: x.to(s.dtype), lambda s: setattr(s, "dtype", tenon.f64)),
    "a property": over(lambda: Plain(scale=2.0), lambda s, x: x * s.doubled, lambda s: setattr(s, "scale", 3.0)),
    "a method": over(lambda: Plain(scale=2.0), lambda s, x: s.times(x), lambda s: setattr(s, "scale", 3.0)),
    "a class attribute": over(lambda: type("Own", (Plain,), {})(), lambda s, x: x * s.factor, lambda s: setattr(type(s), "factor", 4.0)),
    "an attribute of an attribute": over(lambda: Plain(inner=Plain(scale=2.0)), lambda s, x: x * s.inner.scale, lambda s: setattr(s.inner, "scale", 3.0)),
    "an object by another name": over(lambda: Plain(inner=Plain(scale=2.0)), local_names, lambda s: setattr(s.inner, "scale", 3.0)),
    "attributes of elements": over(lambda: [Plain(scale=2.0)], attributes_of_elements, lambda s: setattr(s[0], "scale", 3.0)),
    "attributes of elements of a module": over(lambda: nn.ModuleList([block()]), attributes_of_elements, lambda s: setattr(s[0], "scale", 3.0)),
    "attributes of elements of a container": over(lambda: Bag([Plain(scale=2.0)]), attributes_of_elements, lambda s: setattr(s.parts[0], "scale", 3.0)),
    "attributes by name": over(lambda: Plain(scale=2.0), by_name, lambda s: setattr(s, "scale", 3.0)),
    "an attribute that comes": over(lambda: Plain(scale=2.0), if_it_is_there, lambda s: setattr(s, "late", 3.0)),
    "an attribute in place of an error": over(lambda: Plain(scale=2.0), or_else, lambda s: setattr(s, "late", 3.0)),
    "all attributes": over(lambda: Plain(scale=2.0), lambda s, x: x * vars(s)["scale"], lambda s: setattr(s, "scale", 3.0)),
    "variables of the environment": over(lambda: os.environ, lambda s, x: x * float(s.get("TENON_TEST_SCALE", "2")),
                                         lambda s: s.__setitem__("TENON_TEST_SCALE", "3")),
    "an object through a weak reference": through_a_weak_reference,
    "a module of settings": module_of_settings,
    "a class's number": over(lambda: type("Own", (Plain,), {"get": classmethod(lambda cls: cls.factor)})(), lambda s, x: x * s.get(),
                             lambda s: setattr(type(s), "factor", 4.0)),
    "what a decorator calls": decorated,
    "defaults": defaults,
    "another code": another_code,
    "a compiled function inside": compiled_inside,
    "a generator inside": generator_inside,
    "a comprehension": comprehension,
    "a bound method": bound_method,
}


def array(tensor):
    return np.asarray(tensor.detach())


class States(unittest.TestCase):
    def run_both(self, run, plain, x):
        """The results of both, from the same random numbers; batch norms go on writing, so each begins with the same state."""
        buffers = list(plain.buffers()) if isinstance(plain, nn.Module) else []
        before = [tenon.clone(each) for each in buffers]
        tenon.manual_seed(5)
        got = array(run(x))
        written = [array(each).copy() for each in buffers]
        for each, value in zip(buffers, before):
            each.copy_(value)
        tenon.manual_seed(5)
        wanted = array(plain(x))
        np.testing.assert_array_equal(got.dtype, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))
        for each, value in zip(buffers, written):
            np.testing.assert_allclose(value, array(each), rtol=1e-6)

    def test_a_change_is_seen(self):
        x = tenon.tensor(np.arange(1, 13).reshape(4, 3))
        for name, make in CASES.items():
            with self.subTest(name), tenon.no_grad():
                plain, change = make()
                given = x if name in ("a global number of another type", "a closure's type") else x.to(tenon.f32)
                run = tenon.compile(plain, exact=True)
                for _ in range(3):
                    self.run_both(run, plain, given)
                before = run.stats()["recordings"]
                change()
                for _ in range(3):
                    self.run_both(run, plain, given)
                self.assertEqual(run.stats()["recordings"], before + (name != "a tensor that is written"))
                self.assertEqual(run.stats()["eager"], 0)
        os.environ.pop("TENON_TEST_SCALE", None)


    def test_numbers_are_told_apart_by_type_and_bits(self):
        nan, other_nan = np.array([0x7ff8000000000000, 0x7ff8000000000001], np.uint64).view(np.float64).tolist()
        sets = ([1, 1.0, True, 1 + 0j, np.float32(1), np.float64(1), np.int64(1), tenon.f32, "1", b"1", None, Color.RED],
                [0.0, -0.0, 0, False, np.float32(0), np.float32(-0.0), complex(0, 0), complex(0, -0.0), complex(-0.0, 0)],
                [nan, other_nan, -nan], [range(0), range(1, 1), slice(0, 1), slice(0, True)], [{1}, {1.0}, frozenset({1}), frozenset({True})],
                [np.zeros(2), -np.zeros(2), np.zeros(2, np.float32), np.zeros((2, 1)), np.zeros(3)], [Settings(1), Settings(1.0), Settings(True), Settings(-0.0)])
        wraps = (lambda n: ((n,), {}), lambda n: ((), {"n": n}), lambda n: (([n],), {}), lambda n: (((n, 2),), {}), lambda n: (({"a": n},), {}),
                 lambda n: (({n: 1} if getattr(n, "__hash__", None) else [n],), {}), lambda n: ((Settings(n),), {}), lambda n: ((Settings(bias=[n]),), {}))
        x = tenon.ones(2)
        for values in sets:
            for i, wrap in enumerate(wraps):
                with self.subTest(values=values, wrap=i):
                    if i == 5 and isinstance(values[0], (slice, set, Settings)):
                        continue  # no keys of a dict
                    seen = []
                    run = tenon.compile(lambda x, n=None: (seen.append(n), x * 1)[1])
                    for _ in range(4):
                        for value in values:
                            args, kwargs = wrap(value)
                            run(x, *args, **kwargs)
                    self.assertEqual(run.stats()["recordings"], len(values))
                    self.assertEqual([repr(each) for each in seen[:len(values)]], [repr((*args, *kwargs.values())[0]) for args, kwargs in map(wrap, values)])
        for value in (2, 2.0, True, -0.0, float("nan"), np.float32(2), np.int64(2)):
            run, ints = tenon.compile(lambda x, n: x * n), tenon.tensor([1, 2])
            for given in (1, 1.0, value, 0.0, value):
                got, wanted = array(run(ints, given)), array(ints * given)
                self.assertEqual((got.dtype, got.tobytes()), (wanted.dtype, wanted.tobytes()))

    def test_equal_objects_are_one_kind_of_arguments(self):
        run = tenon.compile(lambda x, *rest, **named: x * 1)
        makes = (lambda: float("nan"), lambda: pathlib.PurePath("a"), lambda: "a" * 3, lambda: np.arange(3), lambda: Settings(2.0), lambda: tenon.device("cpu"),
                 lambda: collections.OrderedDict(a=1.5), lambda: {(1, 2): 3}, lambda: {(1, 2)}, lambda: np.dtype("f4").type(3))
        for i, make in enumerate(makes):
            for _ in range(3):
                run(tenon.ones(2), make(), named=[make()])
            self.assertEqual(run.stats()["recordings"], i + 1)

    def test_arguments_that_hold_tensors_come_back_as_they_were(self):
        run = tenon.compile(lambda given, key: Settings(given.scale * 2, (given.bias[key], key)))
        for i in range(3):
            result = run(Settings(tenon.ones(2) * i, {"a": tenon.ones(1)}), "a")
            self.assertEqual((type(result), result.scale.tolist(), result.bias[1]), (Settings, [2 * i] * 2, "a"))

    def test_an_earlier_state_has_its_program(self):
        net, x = block(), tenon.ones(4, 3)
        run = tenon.compile(net, exact=True)
        for i in range(6):
            net.train(i % 2 == 0)
            for _ in range(2):
                with tenon.no_grad():
                    self.run_both(run, net, x)
        self.assertEqual((run.stats()["recordings"], run.stats()["eager"]), (2, 0))

    def test_a_function_that_changes_its_own_state_is_right(self):
        def make():
            state = {"scale": 1.0}

            def function(x):
                state["scale"] += 1
                return x * state["scale"]
            return function
        run, plain = tenon.compile(make(), name="counts"), make()
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(12):
                self.assertEqual(run(tenon.ones(2)).tolist(), plain(tenon.ones(2)).tolist())
        self.assertEqual([each.category for each in told], [RuntimeWarning])
        self.assertRegex(str(told[0].message), "counts: it was recorded for 8 states.*'scale' of a dict was 8.0 and is 9.0 now; such calls run eagerly")
        self.assertEqual((run.stats()["recordings"], run.stats()["eager"]), (8, 4))

    def test_the_number_of_kinds_of_arguments_is_limited(self):
        run = tenon.compile(lambda x, n: x * n, name="rates")
        with self.assertWarnsRegex(RuntimeWarning, "rates: it was recorded with 256 kinds of arguments.*run eagerly"):
            for i in range(260):
                self.assertEqual(run(tenon.ones(2), float(i)).tolist(), [i, i])
        self.assertEqual((run.stats()["recordings"], run.stats()["eager"]), (256, 4))

    def test_what_is_not_compared_is_told_of(self):
        long, large = list(map(float, range(5000))), np.ones(1 << 15)
        for function, what in ((lambda x: x * long[0], "reads a list.*5000 elements"), (lambda x: x * float(large[0]), "reads a ndarray.*262144 bytes")):
            run = tenon.compile(function, name="long")
            with self.assertWarnsRegex(RuntimeWarning, f"long: it {what}"):
                run(tenon.ones(2))
        numbers = itertools.count(1)
        run = tenon.compile(lambda x: x * float(next(numbers)))
        run(tenon.ones(2))
        with self.assertRaisesRegex(tenon.InvalidArgument, "a number of op 0 differs|ran differently from its first call"):
            run(tenon.ones(2))

    def test_a_second_gradient_is_that_of_the_call(self):
        state = {"scale": 2.0}
        run, x = tenon.compile(lambda x: (x ** 3 * state["scale"]).sum(), name="cubes"), tenon.ones(2, requires_grad=True)
        for _ in range(3):
            first, = tenon.autograd.grad(run(x), x, create_graph=True)
            self.assertEqual(tenon.autograd.grad(first.sum(), x)[0].tolist(), [12, 12])
        result = run(x * 1.0)
        state["scale"] = 3.0
        with self.assertRaisesRegex(tenon.InvalidArgument, "backward: cubes is recorded again.*'scale' of a dict was 2.0 and is 3.0 now"):
            tenon.autograd.grad(run.__wrapped__(x) + result, x, create_graph=True)

    def test_an_optimiser_s_numbers_are_seen(self):
        for text in ("SGD(p, lr=0.1)", "SGD(p, lr=0.1, momentum=0.5)", "AdamW(p, lr=0.1, capturable=True)", "RMSprop(p, lr=0.1)", "Adam(p, lr=0.1)"):
            with self.subTest(text):
                found = []
                for compiled in (False, True):
                    p = [tenon.ones(3, requires_grad=True)]
                    optimizer = eval("optim." + text)
                    optimizer.prepare()
                    schedule = optim.lr_scheduler.StepLR(optimizer, 3, 0.5)

                    def step(x):
                        loss = (p[0] * p[0] * x).sum()
                        loss.backward()
                        optimizer.step()
                        optimizer.zero_grad()
                        return loss
                    run = tenon.compile(step) if compiled else step
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore", RuntimeWarning)  # Adam counts its steps in Python, unless it is capturable
                        found.append([])
                        for i in range(12):
                            found[-1].append(run(tenon.ones(3)).item())
                            schedule.step()
                            if i == 8:
                                optimizer.load_state_dict(optimizer.state_dict())
                                optimizer.param_groups[0]["weight_decay"] = 0.5
                np.testing.assert_allclose(*found, rtol=1e-5)

    def test_functions_are_watched_beside_a_profiler(self):
        import cProfile
        state, profiler = {"scale": 2.0}, cProfile.Profile()
        run = tenon.compile(lambda x: x * state["scale"])
        profiler.enable()
        first = [run(tenon.ones(1)).item() for _ in range(3)]
        state["scale"] = 3.0
        second = [run(tenon.ones(1)).item() for _ in range(3)]
        profiler.disable()
        self.assertEqual((first, second), ([2] * 3, [3] * 3))
        events = []
        sys.setprofile(lambda frame, event, argument: events.append(frame.f_code.co_name))
        state["scale"] = 4.0
        try:
            self.assertEqual(run(tenon.ones(1)).item(), 4)
        finally:
            sys.setprofile(None)
        self.assertIn("<lambda>", events)

    def test_what_a_backward_in_python_reads_is_seen(self):
        state = {"scale": 2.0}

        class Scaled(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, gradient):
                return gradient * state["scale"]
        run, x = tenon.compile(lambda x: Scaled.apply(x).sum()), tenon.ones(2, requires_grad=True)
        for scale in (2.0, 3.0, 2.0):
            state["scale"] = scale
            for _ in range(3):
                self.assertEqual(tenon.autograd.grad(run(x), x)[0].tolist(), [scale] * 2)
        self.assertEqual((run.stats()["recordings"], sys.getprofile()), (2, None))

    def test_modes_are_seen(self):
        def function(x):
            return x * (2 if tenon.is_grad_enabled() else 3) + (10 if tenon.autograd.is_inference_mode_enabled() else 0)
        run, x = tenon.compile(function), tenon.ones(2, requires_grad=True)
        for _ in range(3):
            for mode in (tenon.enable_grad, tenon.no_grad, tenon.inference_mode):
                with self.subTest(mode=mode), mode():
                    got, wanted = run(x), function(x)
                    self.assertEqual((got.tolist(), got.requires_grad), (wanted.tolist(), wanted.requires_grad))
        self.assertEqual(run.stats()["recordings"], 3)

    def test_seeds_are_seen(self):
        def function(x):
            return nn.functional.dropout(x * tenon.rand(8), 0.5, True)
        run, x = tenon.compile(function), tenon.ones(8)
        for seed in (1, 2, 2, 1):
            drawn = []
            for each in (run, function):
                tenon.manual_seed(seed)
                drawn.append([each(x).tolist() for _ in range(2)])
            self.assertEqual(*drawn)

    def test_hooks_on_leaves_are_seen(self):
        def step(x, w):
            (x * w).sum().backward()
            gradient, w.grad = w.grad * 1, None
            return gradient

        def gradient(x, w):
            return tenon.autograd.grad((x * w).sum(), w)[0]

        def forward(x, w):
            return (x * w).sum()
        x = tenon.ones(2)
        for register in (lambda w: w.register_hook(lambda g: g * 5), lambda w: w.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(5))):
            for function in (step, gradient, forward):
                for captured in (True, False):
                    if function is gradient and register.__code__.co_names[0] != "register_hook":
                        continue
                    with self.subTest(function=function, captured=captured):
                        w = tenon.ones(2, requires_grad=True)
                        run = tenon.compile(lambda x: function(x, w)) if captured else functools.partial(tenon.compile(function), w=w)
                        for _ in range(3):
                            result = run(x)
                        handle = register(w)
                        for _ in range(3):
                            if function is forward:  # the call of backward() is outside, where hooks run
                                w.grad = None
                                run(x).backward()
                                self.assertEqual(w.grad.tolist(), [5, 5])
                            else:
                                with self.assertRaisesRegex(tenon.InvalidArgument, "has a hook.*which a recording cannot hold"):
                                    run(x)
                        handle.remove()
                        self.assertEqual(run(x).tolist(), result.tolist())

    def test_a_hook_on_a_leaf_runs_after_a_compiled_forward(self):
        w, seen = tenon.ones(2, requires_grad=True), []
        w.register_hook(lambda g: (seen.append(g.tolist()), g * 5)[1])
        run = tenon.compile(lambda x: (x * w).sum())
        for i in range(3):
            w.grad = None
            run(tenon.ones(2)).backward()
            self.assertEqual((w.grad.tolist(), seen), ([5, 5], [[1, 1]] * (i + 1)))

    def test_what_is_compiled_is_dropped(self):
        net = block()
        run = tenon.compile(lambda x: net(x))
        run(tenon.ones(4, 3)).sum().backward()
        alive = weakref.ref(net)
        del net, run
        gc.collect()
        self.assertIsNone(alive())

    def test_attributes_of_a_compiled_module_are_the_module_s(self):
        net = tenon.compile(block())
        net.scale = 7.0
        self.assertEqual(net.__wrapped__.scale, 7.0)


if __name__ == "__main__":
    unittest_report.main()
