"""Models written by tenon.onnx.export are valid ONNX and compute the function: every row of the table, modules, nets.

usage: export_test.py OP_RUNNER (not used)

onnx checks each model, Tenon runs it, and ONNX Runtime too where it is installed."""

import importlib.util
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import tenon
from tenon import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import nn_test  # takes the argument
import unittest_report

WITH_EXPORT = importlib.util.find_spec("tenon._onnx") is not None
HAS_ONNX, HAS_RUNTIME = (importlib.util.find_spec(name) is not None for name in ("onnx", "onnxruntime"))
if WITH_EXPORT:
    from tenon import _onnx

random = np.random.default_rng(16)


def floats(*shape):
    return random.standard_normal(shape).astype("f4")


def positive(*shape):
    return np.exp(random.standard_normal(shape)).astype("f4")


def within(*shape):
    return random.uniform(-0.9, 0.9, shape).astype("f4")


def integers(*shape, below=7, dtype="i8"):
    return random.integers(0, below, shape).astype(dtype)


def bools(*shape):
    return random.integers(0, 2, shape).astype(bool)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 1e-4], "f4")


def unary(*ops, of=lambda: floats(3, 4)):
    return {op: [(getattr(tenon, op), [of()])] for op in ops}


def binary(*ops, of=lambda: [floats(3, 4), floats(4)]):
    return {op: [(getattr(tenon, op), of())] for op in ops}


def replace(function):
    """`function(x)` writes into a copy of its first argument."""
    def replaced(x, *more):
        x = x.clone()
        function(x, *more)
        return x
    return replaced


def half_of_empty(x):
    made = tenon.empty(40, 50)
    made[:, :25] = x
    return made[:, :25]


def lstm(reverse=False, **options):
    return lambda x, w, r, b, c: tenon.lstm_layer(x, w, r, b, c, reverse=reverse, **options)


LAYER = [floats(5, 2, 3), floats(16, 3), floats(16, 4), floats(16), floats(16)]
GRU = [floats(5, 2, 3), floats(12, 3), floats(12, 4), floats(12), floats(12)]
IMAGE = [floats(2, 3, 7, 6)]

# For each row of the table the calls that reach it: a function, and what it is called with.
ROWS = {
    **unary("abs", "neg", "sign", "exp", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asinh", "atan", "erf", "sigmoid", "softplus",
            "softsign", "hard_swish", "relu", "ceil", "floor", "round", "trunc", "frac", "exp2", "expm1", "sinc", "tanhshrink", "logsigmoid",
            "leaky_relu", "elu", "celu", "selu", "hard_sigmoid", "thresholded_relu", "shrink", "huber", "signbit"),
    **unary("sqrt", "log", "log2", "log10", "log1p", "reciprocal", of=lambda: positive(3, 4)),
    **unary("asin", "acos", "atanh", of=lambda: within(3, 4)),
    **unary("acosh", of=lambda: 1 + positive(3, 4)),
    **unary("isnan", "isinf", of=lambda: SPECIAL),
    **binary("add", "sub", "mul", "div", "maximum", "minimum", "eq", "ne", "lt", "le", "gt", "ge", "remainder", "fmod", "floor_divide", "prelu",
             "hypot", "logaddexp", "logaddexp2", "copysign", "heaviside", "fmax", "fmin"),
    **binary("logical_and", "logical_or", "logical_xor", of=lambda: [integers(3, 4, below=2), bools(4)]),
    **binary("bitwise_and", "bitwise_or", "bitwise_xor", of=lambda: [bools(3, 4), bools(4)]),
    **binary("bitwise_left_shift", "bitwise_right_shift", of=lambda: [integers(3, 4, dtype="u4"), integers(4, dtype="u4")]),
    "bitwise_not": [(tenon.bitwise_not, [bools(3)])],
    "logical_not": [(tenon.logical_not, [integers(3, 4, below=2)])],
    "gelu_tanh": [(lambda x: tenon.gelu(x, approximate="tanh"), [floats(3, 4)])],
    "threshold": [(lambda x: tenon.threshold(x, 0.1, 20.0), [SPECIAL])],
    "nan_to_num_within": [(lambda x: tenon.nan_to_num(x, 3.0), [SPECIAL])],
    "pow": [(tenon.pow, [positive(3, 4), floats(4)]), (lambda x: 2 ** x, [floats(3)]), (lambda x: x ** 3, [integers(4)])],
    "xlogy": [(tenon.xlogy, [np.array([0, 0, 2], "f4"), np.array([0, np.nan, 3], "f4")])],
    "where": [(tenon.where, [bools(3, 4), floats(3, 4), floats(4)]), (lambda c, x: tenon.where(c, x, 0.5), [bools(3, 4), floats(4)])],
    "clamp": [(lambda x: x.clamp(-0.5, 0.5), [floats(3, 4)]), (lambda x, a, b: x.clamp(a, b), [floats(3, 4), floats(4), floats(4)])],
    "fma": [(tenon.fma, [floats(3, 4), floats(4), floats(3, 1)])],
    "lerp": [(tenon.lerp, [floats(3, 4), floats(4), within(3, 1)])],
    "cast": [(lambda x: (x.long(), x.bool(), x.double(), x.half()), [floats(3, 4)])],
    "to": [(lambda x: x.to("cpu"), [floats(2)])],
    "all": [(lambda x: x.all(1), [bools(3, 2)])],
    "any": [(lambda x: x.any(), [bools(3, 2)])],
    "amax": [(lambda x: x.amax(1, keepdim=True), [floats(3, 4)]), (lambda x: x.amax(), [integers(3, 4)])],
    "amin": [(lambda x: x.amin((0, 2)), [floats(3, 4, 2)])],
    "argmax": [(lambda x: (x.argmax(1), x.argmax()), [integers(3, 4, below=3)])],
    "argmin": [(lambda x: tenon.argmin(x, 1, last=True), [integers(3, 4, below=3)])],
    "sum": [(lambda x: (x.sum(), x.sum(1, keepdim=True), x.sum((0, 2))), [floats(3, 4, 2)]), (lambda x: x.sum(0), [bools(3, 2)])],
    "prod": [(lambda x: x.prod(1), [floats(3, 4)])],
    "mean": [(lambda x: (x.mean(), x.mean((1, 2), keepdim=True)), [floats(3, 4, 2)])],
    "l1_norm": [(lambda x: tenon.l1_norm(x, 1), [floats(3, 4)])],
    "l2_norm": [(lambda x: tenon.l2_norm(x, 1), [floats(3, 4)])],
    "sum_square": [(lambda x: tenon.sum_square(x, 1), [floats(3, 4)])],
    "log_sum": [(lambda x: tenon.log_sum(x, 1), [positive(3, 4)])],
    "nansum": [(tenon.nansum, [np.array([1, np.nan, 2], "f4")])],
    "cumsum": [(lambda x: tenon.cumsum(x, 1, exclusive=True, reverse=True), [floats(3, 4)]), (lambda x: x.cumsum(0), [integers(5)])],
    "sort": [(lambda x: x.sort(1, descending=True), [floats(3, 4)])],
    "argsort": [(lambda x: x.argsort(0), [floats(3, 4)])],
    "topk": [(lambda x: x.topk(2, largest=False), [floats(3, 4)])],
    "reshape": [(lambda x: x.reshape(x.shape[0], 4, -1), [floats(3, 8)]), (lambda x: x.flatten(), [floats(3, 4, 2)])],
    "view": [(lambda x: x.view(4, 3), [floats(3, 4)])],
    "permute": [(lambda x: x.permute(2, 0, -2), [floats(2, 3, 4)])],
    "squeeze": [(lambda x: (x.squeeze(), x.squeeze(1)), [floats(3, 1, 4)])],
    "unsqueeze": [(lambda x: (x.unsqueeze(-1), x[None]), [floats(3, 4)])],
    "expand": [(lambda x: (x.expand(5, 3, 4), x[:, :1].expand(-1, 6)), [floats(3, 4)])],
    "slice": [(lambda x: x[1:, -3:-1], [floats(4, 5)]), (lambda x: x[::2], [floats(5)])],
    "select": [(lambda x: (x[1], x[:, -1]), [floats(4, 5)])],
    "slice_scatter": [(replace(lambda x, y: x[:, 1:3].copy_(y)), [floats(4, 5), floats(4, 2)]), (replace(lambda x: x[1::2].fill_(7)), [floats(5)])],
    "select_scatter": [(replace(lambda x, y: x[:, -1].copy_(y)), [floats(4, 5), floats(4)])],
    "concat": [(lambda x, y: tenon.cat([x, y], 1), [floats(3, 4), floats(3, 2)])],
    "split_with_sizes_copy": [(lambda x: tenon.split_with_sizes_copy(x, [1, 3], 1), [floats(3, 4)])],
    "pad": [(lambda x, how=how: tenon.pad(x, (1, 2, 0, 1), mode=how), [floats(2, 3, 4, 5)]) for how in ("constant", "reflect", "replicate")],
    "gather_slices": [(lambda x, i: (nn.functional.embedding(i, x), x.index_select(1, i)), [floats(4, 5), integers(3, below=4)])],
    "gather": [(lambda x, i: x.gather(1, i), [floats(4, 5), integers(4, 2, below=5)])],
    "gather_nd": [(lambda x, i: tenon.gather_nd(x, i), [floats(4, 5), integers(3, 2, below=4)])],
    "scatter": [(lambda x, i, y: x.scatter(1, i, y), [floats(3, 5), np.array([[0, 2], [1, 3], [4, 0]]), floats(3, 2)]),
                (lambda x, i, y: x.scatter_add(0, i, y), [floats(3, 5), integers(2, 5, below=3), floats(2, 5)]),
                (lambda x, i, y: x.index_copy(1, i, y), [floats(3, 5), np.array([4, 1]), floats(3, 2)]),
                (lambda x, i, y: tenon.scatter_nd(x, i, y), [floats(3, 5), np.array([[2], [0]]), floats(2, 5)])],
    "one_hot_values": [(lambda i: tenon.one_hot_values(i, 5, 1, off=0.5, on=2.0), [integers(3, 2, below=5)])],
    "arange": [(lambda x: x + tenon.arange(2000, dtype=tenon.float32) * 0.5, [floats(1)])],
    "full": [(lambda x: x + tenon.full((2000,), 0.25), [floats(1)])],
    "empty": [(half_of_empty, [floats(40, 25)])],
    "resize": [(lambda x, how=how: nn.functional.interpolate(x, **how), IMAGE) for how in (
        {"scale_factor": 2}, {"scale_factor": 2, "mode": "nearest-exact"}, {"size": (9, 5), "mode": "bilinear"}, {"size": (14, 12), "mode": "bilinear", "align_corners": True},
        {"scale_factor": 2, "mode": "bicubic"})],
    "softmax": [(lambda x: x.softmax(1), [floats(3, 4, 2)])],
    "log_softmax": [(lambda x: x.log_softmax(-1), [floats(3, 4)])],
    "layer_norm": [(lambda x, w, b: tenon.layer_norm(x, (4,), w, b, 1e-3), [floats(3, 4), floats(4), floats(4)]), (lambda x: tenon.layer_norm(x, (3, 4)), [floats(2, 3, 4)])],
    "batch_norm": [(lambda x, m, v, w, b: tenon.batch_norm(x, m, v, w, b, eps=1e-3), [floats(2, 3, 4), floats(3), positive(3), floats(3), floats(3)])],
    "group_norm": [(lambda x, w, b: tenon.group_norm(x, 2, w, b), [floats(2, 4, 3, 5), floats(4), floats(4)]), (lambda x: tenon.group_norm(x, 4), [floats(2, 4, 3)])],
    "matmul": [(tenon.matmul, [floats(2, 1, 3, 4), floats(5, 4, 2)]), (tenon.linear, [floats(2, 3, 4), floats(5, 4), floats(5)]), (tenon.matmul, [floats(4), floats(4, 2)])],
    "conv": [(lambda x, w, b: tenon.conv2d(x, w, b, (2, 1), (1, 2), (1, 2)), [*IMAGE, floats(4, 3, 3, 2), floats(4)]),
             (lambda x, w: tenon.conv1d(x, w, groups=2), [floats(2, 4, 9), floats(6, 2, 3)])],
    "conv_transpose": [(lambda x, w, b: tenon.conv_transpose(x, w, b, stride=2, padding=1, output_padding=1), [floats(2, 3, 4, 5), floats(3, 4, 3, 3), floats(4)])],
    "max_pool": [(lambda x: tenon.max_pool(x, 3, 2, 1), IMAGE), (lambda x: tenon.max_pool(x, 2, ceil_mode=True), IMAGE)],
    "max_pool_with_indices": [(lambda x: tenon.max_pool_with_indices(x, 2), IMAGE)],
    "avg_pool": [(lambda x, count=count: tenon.avg_pool(x, 3, 2, 1, count_include_pad=count), IMAGE) for count in (True, False)],
    "lp_pool": [(lambda x: tenon.lp_pool(x, 2.0, 2), IMAGE)],
    "attention": [(lambda q, k, v: tenon.scaled_dot_product_attention(q, k, v, is_causal=True), [floats(2, 4, 5, 8)] * 3),
                  (lambda q, k, v, m: tenon.scaled_dot_product_attention(q, k, v, m), [floats(2, 4, 5, 8), floats(2, 4, 3, 8), floats(2, 4, 3, 6), bools(2, 1, 5, 3)]),
                  (lambda q, k, v, b: tenon.attention(q, k, v, b, before=2, after=0, align_end=True, softcap=2.0), [floats(2, 4, 5, 8), floats(2, 2, 6, 8), floats(2, 2, 6, 3), floats(4, 5, 6)])],
    "linalg_det": [(tenon.linalg_det, [floats(2, 3, 3)])],
    "quantize_linear": [(lambda x, s, z: tenon.quantize_linear(x, s, z, 0, dtype=tenon.uint8), [floats(3, 4), positive(3) / 9, integers(3, dtype="u1")]),
                        (lambda x, s: tenon.quantize_linear(x, s, dtype=tenon.int8), [floats(3, 4), np.float32(0.1)])],
    "dequantize_linear": [(lambda q, s: tenon.dequantize_linear(q, s, dim=1), [integers(3, 4, dtype="i1"), positive(4)])],
    "lstm_layer": [(lstm(reverse=True), LAYER), (lstm(torch_gates=True, clip=0.5), LAYER), (lstm(coupled=True), LAYER)],
    "recurrent_layer": [(lambda *x, how=how: tenon.recurrent_layer(*x, **how), GRU) for how in (
        {"cell": "gru"}, {"cell": "gru", "torch_gates": True, "linear_before_reset": True}, {"cell": "gru", "reverse": True})] + [
        (lambda x, w, r: tenon.recurrent_layer(x, w, r, cell="relu"), [floats(5, 2, 3), floats(4, 3), floats(4, 4) / 4])],
}
# Ops without a row, which are written in others.
DECOMPOSED = {
    **unary("gelu", "silu", "mish", "square"), **unary("rsqrt", of=lambda: positive(3, 4)),
    "rms_norm": [(lambda x, w: tenon.rms_norm(x, (4,), w), [floats(3, 4), floats(4)])],
    "rotary_embedding": [(lambda x, c, s: tenon.rotary_embedding(x, c, s), [floats(1, 2, 3, 8), floats(3, 4), floats(3, 4)])],
    "nll_loss": [(lambda x, t: nn.functional.cross_entropy(x, t), [floats(5, 4), integers(5, below=4)])],
    "einsum": [(lambda x, y: tenon.einsum("bij,bkj->bik", [x, y]), [floats(2, 3, 4), floats(2, 5, 4)])],
    "var": [(lambda x: x.var(1), [floats(3, 4)])],
}


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 3))

    def forward(self, x):
        return self.layers(x).softmax(-1)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3, padding=1), nn.SiLU())
        self.head = nn.Linear(8, 4)

    def forward(self, image):
        return self.head(self.body(image).mean((2, 3)))


class Unet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.inner = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up, self.out, self.norm = nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(8, 1, 1), nn.GroupNorm(2, 8)

    def forward(self, x):
        wide = self.down(x).relu()
        deep = self.norm(self.inner(nn.functional.max_pool2d(wide, 2))).relu()
        return self.out(tenon.cat([wide, self.up(deep)], 1)).sigmoid()


class Block(nn.Module):
    def __init__(self, width=16, heads=4):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow, self.words = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.Embedding(11, width)

    def forward(self, tokens):
        x = self.words(tokens)
        y = self.first(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.narrow(nn.functional.gelu(self.wide(self.second(x))))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(5, 6, num_layers=2, batch_first=True, bidirectional=True), nn.Linear(12, 2)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


NETS = [(Mlp, [floats(4, 6)], [floats(7, 6)]), (Cnn, [floats(2, 3, 16, 16)], [floats(5, 3, 16, 16)]), (Unet, [floats(2, 1, 8, 8)], [floats(3, 1, 8, 8)]),
        (Block, [integers(2, 5, below=11)], [integers(3, 5, below=11)]), (Lstm, [floats(3, 4, 5)], [floats(3, 4, 5)])]


@unittest.skipUnless(WITH_EXPORT, "this build has no ONNX")
class Exports(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name) / "model.onnx"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def compare(self, function, inputs, tolerance=2e-5, others=(), **options):
        """The model gives what the function gives, of these inputs and of others. Gives the operators in it."""
        operators = set()
        tenon.onnx.export(function, self.path, tuple(map(tenon.tensor, inputs)), **options)
        if HAS_ONNX:
            import onnx
            model = onnx.load(str(self.path))
            self.assertEqual([each.version for each in model.opset_import], [17])
            onnx.checker.check_model(model, full_check=True)
            operators = {node.op_type for node in model.graph.node}
        loaded = tenon.onnx.load(self.path)
        for given in (inputs, *others):
            with tenon.no_grad():
                expected = [np.asarray(each) for each in nn_test.flat(function(*map(tenon.tensor, given)))]
            self.equal([np.asarray(each) for each in nn_test.flat(loaded(*given))], expected, tolerance)
            if HAS_RUNTIME:
                import onnxruntime
                session = onnxruntime.InferenceSession(str(self.path), providers=["CPUExecutionProvider"])
                named = {info.name: np.asarray(value) for info, value in zip(session.get_inputs(), given)}
                self.equal(session.run(None, named), expected, 5 * tolerance)
        return operators

    def equal(self, found, expected, tolerance):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape))
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)

    def test_every_row_has_a_case(self):
        self.assertEqual(sorted(_onnx._exported_ops()), sorted(ROWS))

    def test_rows(self):
        table = _onnx._exported_ops()
        for op, cases in {**ROWS, **DECOMPOSED}.items():
            written = set()
            for number, (function, inputs) in enumerate(cases):
                with self.subTest(op=op, case=number):
                    written |= self.compare(function, inputs)
            with self.subTest(op=op):
                self.assertTrue(not written or op not in table or table[op] in written, f"{table.get(op)} is not among {written}")

    def test_modules(self):
        tenon.manual_seed(1)
        for text, shapes in nn_test.MODULES:
            with self.subTest(module=text):
                below = [shapes[0]] if isinstance(shapes[0], int) else None
                inputs = [integers(*shape, below=below[0]) if below else floats(*shape) for shape in shapes if isinstance(shape, tuple)]
                self.compare(eval(text).eval(), inputs)

    def test_nets(self):
        tenon.manual_seed(2)
        for make, inputs, others in NETS:
            with self.subTest(net=make.__name__):
                self.compare(make().eval(), inputs, others=[others])
                # nn.LSTM makes its states from the number of examples, and reads it.
                is_open = isinstance(tenon.onnx.load(self.path).inputs[0].shape[0], str)
                self.assertEqual(is_open, inputs[0].shape != others[0].shape)

    def test_names(self):
        net = Mlp().eval()
        tenon.onnx.export(net, self.path, tenon.ones(2, 6), output_names=["chances"], dynamic_axes={"x": {0: "batch"}})
        model = tenon.onnx.load(self.path)
        self.assertEqual((model.inputs[0][:2], model.outputs[0][:2]), (("x", "f32[batch, 6]"), ("chances", "f32[batch, 3]")))
        written = self.path.read_bytes()
        for name in net.state_dict():
            self.assertIn(name.encode(), written)
        tenon.onnx.export(lambda pair, *, scale: pair["a"] + pair["b"] * scale, self.path, ({"a": tenon.ones(2), "b": tenon.ones(2)},), {"scale": 3.0}, dynamic_axes={})
        self.assertEqual([each[:2] for each in tenon.onnx.load(self.path).inputs], [("pair_0", "f32[2]"), ("pair_1", "f32[2]")])

    def test_a_compiled_function_knows_its_call(self):
        net = tenon.compile(Mlp().eval())
        with self.assertRaisesRegex(tenon.InvalidArgument, "call it first"):
            tenon.onnx.export(net, self.path)
        with tenon.no_grad():
            x = tenon.tensor(floats(5, 6))
            expected = np.asarray(net(x))
        tenon.onnx.export(net, self.path)
        np.testing.assert_allclose(np.asarray(tenon.onnx.load(self.path)(x)), expected, rtol=1e-5, atol=1e-6)
        with tenon.no_grad():
            both = tenon.compile(lambda x, p: x ** p)
            both(x, 2), both(x, 3)
        with self.assertRaisesRegex(tenon.InvalidArgument, "2 kinds of calls; say with args"):
            tenon.onnx.export(both, self.path)
        tenon.onnx.export(both, self.path, (x, 3))
        np.testing.assert_allclose(np.asarray(tenon.onnx.load(self.path)(x)), np.asarray(x) ** 3, rtol=1e-5)

    def test_a_module_in_training_is_refused(self):
        for layer in (nn.Dropout(0.5), nn.BatchNorm1d(3)):
            net = nn.Sequential(nn.Linear(3, 3), layer)
            with self.assertRaisesRegex(tenon.InvalidArgument, rf"1 \({type(layer).__name__}\).*Call eval\(\)"):
                tenon.onnx.export(net, self.path, tenon.ones(2, 3))

    def test_what_is_refused_gets_a_sentence(self):
        x = tenon.ones(4, 6)
        for function, args, error, sentence in (
                (lambda x: tenon.lgamma(x) + tenon.linalg_inv(x @ x.T).sum(), x, tenon.Unsupported, r"2 kinds of ops(.|\n)*lgamma: opset 17(.|\n)*linalg_inv: opset 17"),
                (lambda x: nn.functional.dropout(x), x, tenon.Unsupported, "draws random numbers"),
                (lambda x, state=tenon.zeros(4, 6): state.add_(x), x, tenon.Unsupported, "writes a tensor from outside"),
                (lambda x: x * x.sum().item(), x, tenon.InvalidArgument, "lets the host see"),
                (lambda x: 3, x, tenon.InvalidArgument, "gives no tensor"), (lambda x: x, 3, tenon.InvalidArgument, "no argument is a tensor"),
                (lambda x: 1 / 0, x, ZeroDivisionError, "zero"), (3, x, TypeError, "first argument is 3"), (abs, None, TypeError, "args is missing")):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(error, sentence):
                tenon.onnx.export(function, self.path, args)
        for options, error, sentence in (
                ({"dynamic_axes": {"x": 3}}, TypeError, "must be a list of axes"), ({"dynamic_axes": {"y": [0]}}, tenon.InvalidArgument, "'y', which is not an input"),
                ({"dynamic_axes": {"x": [2]}}, tenon.InvalidArgument, "no axis 2"), ({"input_names": ["a", "b"]}, tenon.InvalidArgument, "2 names for 1 inputs"),
                ({"dynamic_axes": {"x": [1]}}, tenon.Unsupported, "cannot be dynamic")):
            with self.subTest(sentence=sentence), self.assertRaisesRegex(error, sentence):
                tenon.onnx.export(lambda x: tenon.linear(x, tenon.ones(2, 6)), self.path, x, **options)
        with self.assertRaises(FileNotFoundError):
            tenon.onnx.export(lambda x: x + 1, "/no/such/folder/model.onnx", x)


if __name__ == "__main__":
    unittest_report.main()
