"""tenon.nn against torch.nn: the same weights give the same outputs and gradients, within 1e-5 in f32 and 1e-9 in f64.

usage: nn_test.py OP_RUNNER (not used)"""

import copy
import importlib.util
import math
import pathlib
import pickle
import sys
import tempfile
import unittest
import warnings

import numpy as np
import tenon
from tenon import nn

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

if importlib.util.find_spec("torch"):
    import torch

WITH_TORCH = unittest.skipUnless(importlib.util.find_spec("torch"), "PyTorch is not installed")

# A module as text, which both packages evaluate, and the shapes of its inputs. An integer first: numbers below it.
MODULES = [
    ("nn.Linear(4, 3)", [(5, 4)]), ("nn.Linear(4, 3, bias=False)", [(2, 5, 4)]), ("nn.Bilinear(3, 4, 5)", [(2, 3), (2, 4)]),
    ("nn.Identity()", [(2, 3)]), ("nn.Flatten()", [(2, 3, 4)]), ("nn.Unflatten(1, (2, 3))", [(2, 6)]),
    ("nn.Conv1d(3, 4, 3)", [(2, 3, 8)]), ("nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)", [(2, 4, 9)]),
    ("nn.Conv2d(3, 4, 3, padding=1)", [(2, 3, 6, 5)]), ("nn.Conv2d(3, 4, (3, 2), stride=(1, 2), padding='valid')", [(2, 3, 6, 5)]),
    ("nn.Conv2d(3, 4, (3, 2), padding='same')", [(2, 3, 6, 5)]), ("nn.Conv2d(4, 4, 3, groups=4, bias=False)", [(2, 4, 6, 5)]),
    ("nn.Conv2d(2, 3, 3, padding=1, padding_mode='reflect')", [(2, 2, 6, 5)]), ("nn.Conv2d(2, 3, 3, padding=1, padding_mode='circular')", [(2, 2, 6, 5)]),
    ("nn.Conv2d(2, 3, 3, padding=2, padding_mode='replicate')", [(2, 2, 6, 5)]), ("nn.Conv2d(3, 4, 3)", [(3, 6, 5)]),
    ("nn.Conv3d(2, 3, 2, padding=1)", [(1, 2, 4, 3, 5)]),
    ("nn.ConvTranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1)", [(2, 3, 5)]),
    ("nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2)", [(2, 4, 4, 3)]), ("nn.ConvTranspose2d(3, 2, (2, 3), dilation=2, padding=1, bias=False)", [(2, 3, 4, 5)]),
    ("nn.ConvTranspose3d(2, 3, 2, stride=2)", [(1, 2, 3, 2, 3)]),
    ("nn.MaxPool1d(2)", [(2, 3, 7)]), ("nn.MaxPool2d(3, stride=2, padding=1)", [(2, 3, 7, 6)]), ("nn.MaxPool2d(2, ceil_mode=True)", [(2, 3, 7, 5)]),
    ("nn.MaxPool3d(2)", [(1, 2, 4, 4, 5)]), ("nn.AvgPool1d(3, 2)", [(2, 3, 8)]), ("nn.AvgPool2d(3, 2, 1)", [(2, 3, 7, 6)]),
    ("nn.AvgPool2d(3, 2, 1, count_include_pad=False)", [(2, 3, 7, 6)]), ("nn.AvgPool3d(2)", [(1, 2, 4, 4, 4)]),
    ("nn.AdaptiveAvgPool1d(3)", [(2, 3, 8)]), ("nn.AdaptiveAvgPool2d((3, None))", [(2, 3, 7, 5)]), ("nn.AdaptiveAvgPool2d(1)", [(2, 3, 7, 5)]),
    ("nn.AdaptiveMaxPool2d((2, 3))", [(2, 3, 7, 5)]), ("nn.LPPool2d(2, 2)", [(2, 3, 6, 4)]),
    ("nn.LPPool1d(2, 2)", [(2, 3, 6)]), ("nn.AvgPool2d(3, 2, 1, divisor_override=4)", [(2, 3, 7, 6)]),
    ("nn.AdaptiveMaxPool2d((2, 3), return_indices=True)", [(2, 3, 7, 5)]), ("nn.ReflectionPad2d((1, 2, 0, 1))", [(2, 3, 4, 5)]), ("nn.ReplicationPad1d(2)", [(2, 3, 4)]), ("nn.ZeroPad2d(1)", [(2, 3, 4, 5)]),
    ("nn.ConstantPad1d((1, 2), 3.5)", [(2, 3, 4)]),
    ("nn.Upsample(scale_factor=2)", [(2, 3, 4, 5)]), ("nn.Upsample(scale_factor=2, mode='bilinear', align_corners=False)", [(2, 3, 4, 5)]),
    ("nn.Upsample(size=(7, 3), mode='bilinear', align_corners=True)", [(2, 3, 4, 5)]), ("nn.PixelShuffle(2)", [(2, 8, 3, 2)]), ("nn.PixelUnshuffle(2)", [(2, 3, 4, 6)]),
    ("nn.Unfold(2, stride=1)", [(2, 3, 4, 5)]), ("nn.Fold((4, 5), 2)", [(2, 12, 12)]),
    ("nn.BatchNorm1d(4)", [(6, 4)]), ("nn.BatchNorm1d(4, momentum=None)", [(6, 4, 5)]), ("nn.BatchNorm2d(3)", [(4, 3, 5, 4)]),
    ("nn.BatchNorm2d(3, affine=False)", [(4, 3, 5, 4)]), ("nn.BatchNorm2d(3, track_running_stats=False)", [(4, 3, 5, 4)]), ("nn.BatchNorm3d(2)", [(2, 2, 3, 4, 3)]),
    ("nn.LayerNorm(6)", [(3, 4, 6)]), ("nn.LayerNorm((4, 6), eps=1e-3)", [(3, 4, 6)]), ("nn.LayerNorm(6, elementwise_affine=False)", [(3, 6)]),
    ("nn.GroupNorm(2, 4)", [(3, 4, 5)]), ("nn.GroupNorm(4, 4, affine=False)", [(3, 4, 5, 2)]),
    ("nn.InstanceNorm1d(3)", [(2, 3, 6)]), ("nn.InstanceNorm2d(3, affine=True)", [(2, 3, 4, 5)]), ("nn.InstanceNorm2d(3, track_running_stats=True)", [(2, 3, 4, 5)]),
    ("nn.LocalResponseNorm(3, alpha=0.1)", [(2, 5, 4, 3)]),
    ("nn.Embedding(7, 4)", [7, (3, 5)]), ("nn.Embedding(7, 4, padding_idx=2)", [7, (3, 5)]), ("nn.EmbeddingBag(7, 4)", [7, (3, 5)]), ("nn.EmbeddingBag(7, 4, mode='sum')", [7, (3, 5)]),
    *[(f"nn.{name}", [(3, 5)]) for name in (
        "ReLU()", "ReLU6()", "LeakyReLU(0.2)", "ELU()", "ELU(0.5)", "CELU(0.7)", "SELU()", "GELU()", "GELU('tanh')", "SiLU()", "Mish()", "Hardswish()", "Hardsigmoid()",
        "Sigmoid()", "Tanh()", "Softsign()", "Tanhshrink()", "LogSigmoid()", "Softplus()", "Softplus(beta=2, threshold=1)", "Hardtanh()", "Hardtanh(-0.3, 0.6)",
        "Hardshrink()", "Softshrink(0.3)", "Threshold(0.1, 20)", "PReLU()", "PReLU(5)", "Softmax(dim=1)", "LogSoftmax(1)", "Softmin(1)", "Dropout(0.0)")],
    ("nn.GLU()", [(3, 6)]), ("nn.Softmax2d()", [(2, 3, 4, 5)]),
    ("nn.RNN(3, 4)", [(5, 2, 3)]), ("nn.RNN(3, 4, 2, nonlinearity='relu', bidirectional=True)", [(5, 2, 3)]), ("nn.LSTM(3, 4)", [(5, 2, 3)]),
    ("nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True)", [(2, 5, 3)]), ("nn.LSTM(3, 4, bias=False)", [(5, 3)]), ("nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)", [(5, 2, 3)]), ("nn.LSTM(3, 4, proj_size=3, batch_first=True, bias=False)", [(2, 5, 3)]), ("nn.GRU(3, 4, 2)", [(5, 2, 3)]),
    ("nn.GRU(3, 4, bidirectional=True, batch_first=True)", [(2, 5, 3)]), ("nn.GRU(3, 4)", [(5, 2, 3), (1, 2, 4)]), ("nn.RNNCell(3, 4)", [(2, 3)]),
    ("nn.LSTMCell(3, 4)", [(2, 3)]), ("nn.GRUCell(3, 4)", [(2, 3), (2, 4)]),
    ("nn.MultiheadAttention(8, 2)", [(5, 3, 8), (6, 3, 8), (6, 3, 8)]), ("nn.MultiheadAttention(8, 4, batch_first=True, bias=False)", [(3, 5, 8), (3, 6, 8), (3, 6, 8)]),
    ("nn.MultiheadAttention(8, 2, kdim=4, vdim=6)", [(5, 3, 8), (6, 3, 4), (6, 3, 6)]), ("nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)", [(5, 3, 8)] * 3),
    ("nn.MultiheadAttention(8, 2)", [(5, 8)] * 3),
    ("nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)", [(5, 3, 8)]), ("nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation='gelu', batch_first=True, norm_first=True)", [(3, 5, 8)]),
    ("nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0)", [(4, 3, 8), (5, 3, 8)]),
    ("nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2, nn.LayerNorm(8))", [(5, 3, 8)]),
    ("nn.Transformer(8, 2, 1, 1, 16, dropout=0.0)", [(5, 3, 8), (4, 3, 8)]),
    ("nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4))", [(3, 1, 6, 6)]),
]

# A loss as text, and what its arguments are: x and y of floats, p of probabilities, l of log-probabilities, c of classes,
# s of signs, b of 0 and 1, v of variances.
LOSSES = [
    ("nn.MSELoss()", "xy"), ("nn.MSELoss(reduction='sum')", "xy"), ("nn.L1Loss(reduction='none')", "xy"), ("nn.SmoothL1Loss(beta=0.5)", "xy"), ("nn.HuberLoss(delta=0.7)", "xy"),
    ("nn.NLLLoss()", "lc"), ("nn.NLLLoss(ignore_index=1)", "lc"), ("nn.CrossEntropyLoss()", "xc"), ("nn.CrossEntropyLoss(label_smoothing=0.1, reduction='sum')", "xc"),
    ("nn.CrossEntropyLoss(weight=W)", "xc"), ("nn.CrossEntropyLoss()", "xq"), ("nn.BCELoss()", "pb"), ("nn.BCEWithLogitsLoss()", "xb"), ("nn.BCEWithLogitsLoss(pos_weight=W)", "xb"),
    ("nn.KLDivLoss(reduction='batchmean')", "lq"), ("nn.PoissonNLLLoss()", "xv"), ("nn.GaussianNLLLoss()", "xyv"), ("nn.SoftMarginLoss()", "xs"), ("nn.HingeEmbeddingLoss()", "xs"),
    ("nn.MarginRankingLoss(0.5)", "xys"), ("nn.CosineEmbeddingLoss()", "xyr"), ("nn.TripletMarginLoss()", "xyz"), ("nn.TripletMarginLoss(swap=True, p=1)", "xyz"),
    ("nn.MultiLabelSoftMarginLoss()", "xb"), ("nn.MultiMarginLoss()", "xc"), ("nn.CosineSimilarity()", "xy"), ("nn.PairwiseDistance()", "xy"),
]


def arguments(kinds, dtype):
    rng = np.random.default_rng(5)
    shape = (4, 5)
    q = rng.random(shape) + 0.1
    made = {
        "x": rng.standard_normal(shape), "y": rng.standard_normal(shape), "z": rng.standard_normal(shape), "p": rng.random(shape) * 0.8 + 0.1,
        "l": np.log(q / q.sum(1, keepdims=True)), "q": q / q.sum(1, keepdims=True), "c": rng.integers(0, 5, 4), "s": np.sign(rng.standard_normal(shape)),
        "b": rng.integers(0, 2, shape).astype("f8"), "v": rng.random(shape) + 0.5, "r": np.sign(rng.standard_normal(4)),
    }
    return [made[kind] if kind == "c" else made[kind].astype(dtype) for kind in kinds]


def inputs_of(shapes, dtype):
    rng = np.random.default_rng(11)
    if isinstance(shapes[0], int):
        return [rng.integers(0, shapes[0], shape) for shape in shapes[1:]]
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def flat(value):
    if isinstance(value, (tuple, list)):
        return [each for part in value for each in flat(part)]
    return [] if value is None else [value]


def array(tensor):
    return np.asarray(tensor.detach())


@WITH_TORCH
class AgainstPyTorch(unittest.TestCase):
    BOUNDS = {"f4": 1e-5, "f8": 1e-9}
    # PyTorch rounds 1/6 and 1/alpha to f32 in these gradients, of f64 too.
    ROUNDED = ("nn.Hardsigmoid()", "nn.CELU(0.7)")

    def close(self, ours, theirs, dtype, what):
        theirs = theirs.detach().numpy()
        self.assertEqual(ours.shape, theirs.shape, what)
        bound = self.BOUNDS[dtype]
        np.testing.assert_allclose(array(ours), theirs, rtol=bound, atol=bound * max(1.0, float(np.abs(theirs).max(initial=0))), err_msg=what)

    def pair(self, text, dtype):
        """The module of both, with the same weights and in the same state."""
        torch.manual_seed(1)
        theirs = eval(text, {"nn": torch.nn}).to(torch.float32 if dtype == "f4" else torch.float64)
        ours = eval(text, {"nn": nn}).to(tenon.f32 if dtype == "f4" else tenon.f64)
        self.assertEqual([(name, tuple(each.shape)) for name, each in ours.state_dict().items()],
                         [(name, tuple(each.shape)) for name, each in theirs.state_dict().items()])
        ours.load_state_dict({name: each.numpy() for name, each in theirs.state_dict().items()})
        return ours, theirs

    def same(self, ours, theirs, given, dtype):
        mine = [tenon.tensor(each, requires_grad=each.dtype.kind == "f") for each in given]
        others = [torch.tensor(each, requires_grad=each.dtype.kind == "f") for each in given]
        outputs, expected = flat(ours(*mine)), flat(theirs(*others))
        self.assertEqual(len(outputs), len(expected))
        rng = np.random.default_rng(3)
        for i, (a, b) in enumerate(zip(outputs, expected)):
            self.close(a, b, dtype, f"output {i}")
        weights = [rng.standard_normal(tuple(each.shape)).astype(dtype) for each in expected]
        total = sum((a * tenon.tensor(w)).sum() for a, w in zip(outputs, weights))
        if total.requires_grad:
            total.backward()
            sum((b * torch.tensor(w)).sum() for b, w in zip(expected, weights)).backward()
        for i, (a, b) in enumerate(zip(mine, others)):
            if b.grad is not None:
                self.close(a.grad, b.grad, dtype, f"gradient of input {i}")
        for (name, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters()):
            if b.grad is not None:
                self.close(a.grad, b.grad, dtype, f"gradient of {name}")
        for (name, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers()):
            self.close(a, b, dtype, f"buffer {name}")

    def test_modules(self):
        for text, shapes in MODULES:
            for dtype in ("f4",) if text in self.ROUNDED else self.BOUNDS:
                with self.subTest(module=text, dtype=dtype):
                    ours, theirs = self.pair(text, dtype)
                    self.same(ours, theirs, inputs_of(shapes, dtype), dtype)
                    if not any(name in text for name in ("Transformer", "Attention")):  # PyTorch's fast path has other bounds
                        self.same(ours.eval(), theirs.eval(), inputs_of(shapes, dtype), dtype)

    def test_modules_print_as_theirs(self):
        for text, _ in MODULES:
            if any(name in text for name in ("Transformer", "MultiheadAttention", "Unfold", "Fold", "Softplus", "Threshold", "PReLU", "EmbeddingBag", "AvgPool3d", "ZeroPad",
                                             "Unflatten", "CELU", "LocalResponse")):
                continue
            with self.subTest(module=text):
                self.assertEqual(repr(eval(text, {"nn": nn})), repr(eval(text, {"nn": torch.nn})))

    def test_losses(self):
        for text, kinds in LOSSES:
            for dtype in self.BOUNDS:
                with self.subTest(loss=text, dtype=dtype):
                    w = np.array([0.5, 1.0, 2.0, 0.1, 1.5]).astype(dtype)
                    ours, theirs = eval(text, {"nn": nn, "W": tenon.tensor(w)}), eval(text, {"nn": torch.nn, "W": torch.tensor(w)})
                    given = arguments(kinds, dtype)
                    mine = [tenon.tensor(each, requires_grad=i == 0) for i, each in enumerate(given)]
                    others = [torch.tensor(each, requires_grad=i == 0) for i, each in enumerate(given)]
                    a, b = ours(*mine), theirs(*others)
                    self.close(a, b, dtype, "loss")
                    a.sum().backward()
                    b.sum().backward()
                    self.close(mine[0].grad, others[0].grad, dtype, "gradient")

    def test_attention_obeys_masks(self):
        ours, theirs = self.pair("nn.MultiheadAttention(8, 2, batch_first=True)", "f8")
        x = np.random.default_rng(2).standard_normal((3, 5, 8))
        causal = np.triu(np.ones((5, 5), bool), 1)
        padding = np.zeros((3, 5), bool)
        padding[1, 3:] = True
        for keywords in ({"attn_mask": causal}, {"key_padding_mask": padding}, {"attn_mask": causal, "key_padding_mask": padding},
                         {"attn_mask": causal, "average_attn_weights": False}, {"attn_mask": np.where(causal, -1.5, 0.25)}):
            with self.subTest(**{name: True for name in keywords}):
                mine = {name: tenon.tensor(each) if isinstance(each, np.ndarray) else each for name, each in keywords.items()}
                others = {name: torch.tensor(each) if isinstance(each, np.ndarray) else each for name, each in keywords.items()}
                for a, b in zip(ours(*[tenon.tensor(x)] * 3, **mine), theirs(*[torch.tensor(x)] * 3, **others)):
                    self.close(a, b, "f8", "output")
                self.assertIsNone(ours(*[tenon.tensor(x)] * 3, need_weights=False, **{k: v for k, v in mine.items() if k != "average_attn_weights"})[1])

    def test_functions(self):
        x, y = np.random.default_rng(7).standard_normal((2, 3, 6, 4)), np.random.default_rng(8).standard_normal((2, 3, 6, 4))
        classes = np.random.default_rng(9).integers(0, 3, (2, 5))
        for text in ("F.softmax(x, 1)", "F.log_softmax(x, -1)", "F.pad(x, (1, 2, 0, 1))", "F.pad(x, (1, 1, 2, 2), 'reflect')", "F.pad(x[0], (-1, 1), 'circular')", "F.pad(x, (1, -1, -1, 2), 'circular')", "F.pad(x[0], (-2, 3), 'reflect')",
                     "F.interpolate(x, (2, 3), mode='bilinear', align_corners=True, antialias=True)", "F.interpolate(x, (9, 3), mode='bicubic', align_corners=True, antialias=True)",
                     "F.prelu(x, y[0, 0, :3, 0])", "F.prelu(x[..., :3], y[0, 0, :3, 0])", "F.multi_margin_loss(x[0, 0, 0], c[0, :1], reduction='none')", "F.multi_margin_loss(x[0, 0, 0], c[0, 0], reduction='none')",
                     "F.gaussian_nll_loss(x, y, y[..., 0].abs())", "F.pad(x, (1, 1), value=3.0)", "F.normalize(x)", "F.normalize(x, 1.0, -1)",
                     "F.cosine_similarity(x, y)", "F.interpolate(x, scale_factor=0.5)", "F.interpolate(x, (3, 9), mode='bicubic', align_corners=False)", "F.interpolate(x, (3, 2), mode='area')",
                     "F.max_pool2d(x, 2)", "F.max_pool2d(x, 2, return_indices=True)[1]", "F.avg_pool2d(x, (2, 1))", "F.adaptive_avg_pool2d(x, (2, 3))", "F.one_hot(c, 4)", "F.one_hot(c)", "F.glu(x)",
                     "F.dropout(x, 0.5, False)", "F.layer_norm(x, (4,))", "F.group_norm(x, 3)", "F.linear(x, y[0, 0])", "F.unfold(x, (2, 2))", "F.leaky_relu(x, 0.3)", "F.elu(x)", "F.softplus(x, 3, 2)",
                     "F.hardtanh(x)", "F.gelu(x, approximate='tanh')", "F.mse_loss(x, y, reduction='sum')", "F.smooth_l1_loss(x, y)", "F.pairwise_distance(x[0, 0], y[0, 0])", "F.pixel_shuffle(x[:, :, :2].reshape(2, 4, 2, 3), 2)"):
            with self.subTest(function=text):
                a = eval(text, {"F": nn.functional, "x": tenon.tensor(x), "y": tenon.tensor(y), "c": tenon.tensor(classes)})
                b = eval(text, {"F": torch.nn.functional, "x": torch.tensor(x), "y": torch.tensor(y), "c": torch.tensor(classes)})
                self.close(a, b, "f8", text)

    def test_variances_broadcast(self):
        x, y, var = (tenon.tensor(np.random.default_rng(each).uniform(0.5, 2, (4, 3))) for each in range(3))
        wanted = tenon.nn.functional.gaussian_nll_loss(x, y, tenon.expand(var[:1], (4, 3)).clone())
        self.assertEqual(float(tenon.nn.functional.gaussian_nll_loss(x, y, var[:1])), float(wanted))

    def test_halves_are_rounded_once(self):
        """Numbers on the way are beyond f16; the results are not."""
        big, wave = np.full((1, 4, 3, 3), 300, "f2"), np.resize(np.array([50000, 60000], "f2"), (1, 2, 6, 6))
        f = nn.functional
        for function, given in ((lambda x: f.local_response_norm(x, 3, alpha=1.0), big), (lambda x: f.adaptive_avg_pool2d(x, (2, 3)), wave), (lambda x: f.adaptive_avg_pool2d(x, 1), wave),
                                (lambda x: f.softplus(x, 1000.0, 1e9), big), (lambda x: f.multi_margin_loss(x[0, :, 0], tenon.tensor([0, 1, 2, 0]), p=2, margin=200.0), big),
                                (lambda x: f.multilabel_soft_margin_loss(x[0, 0], tenon.zeros((3, 3), dtype=tenon.f64 if x.dtype == tenon.f64 else tenon.f16)), np.resize(big, (1, 1, 3, 3)))):
            expected = array(function(tenon.tensor(given.astype("f8"))))
            for dtype in (tenon.f16, tenon.bf16):
                result = function(tenon.tensor(given).cast(dtype))
                self.assertEqual(result.dtype, dtype)
                np.testing.assert_allclose(array(result.cast(tenon.f64)), expected, rtol=2 ** -10 if dtype == tenon.f16 else 2 ** -6)
        drawn = f.gumbel_softmax(tenon.zeros((2000, 50), dtype=tenon.f16))
        self.assertTrue(np.isfinite(array(drawn)).all())
        first = np.abs(array(nn.init.trunc_normal_(tenon.empty((400000,), dtype=tenon.f16))).astype("f8"))
        self.assertTrue(np.all(first <= 2) and np.any((first > 0) & (first < 2e-4)))  # 11 random bits have none so small
        self.assertEqual(f.alpha_dropout(tenon.ones((100,), dtype=tenon.f16), 0.3, True).dtype, tenon.f16)

    def test_clipping(self):
        for kind in (2.0, 1.0, math.inf):
            given = [np.random.default_rng(i).standard_normal((3, i + 1)) for i in range(3)]
            ours, theirs = [tenon.tensor(g, requires_grad=True) for g in given], [torch.tensor(g, requires_grad=True) for g in given]
            for package, held in ((tenon, ours), (torch, theirs)):
                sum((each * each).sum() for each in held).backward()
            a, b = nn.utils.clip_grad_norm_(ours, 1.5, kind), torch.nn.utils.clip_grad_norm_(theirs, 1.5, kind)
            self.close(a, b, "f8", "norm")
            for mine, other in zip(ours, theirs):
                self.close(mine.grad, other.grad, "f8", "gradient")
        nn.utils.clip_grad_value_(ours, 0.1)
        torch.nn.utils.clip_grad_value_(theirs, 0.1)
        for mine, other in zip(ours, theirs):
            self.close(mine.grad, other.grad, "f8", "gradient")

    def test_weights_of_one_serve_the_other(self):
        text = "nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))"
        ours, theirs = eval(text, {"nn": nn}), eval(text, {"nn": torch.nn})
        theirs.load_state_dict({name: torch.from_numpy(array(each).copy()) for name, each in ours.state_dict().items()})
        x = np.random.default_rng(0).standard_normal((5, 3)).astype("f4")
        self.close(ours(tenon.tensor(x)), theirs(torch.tensor(x)), "f4", "output")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.rest = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])
        self.scale = nn.Parameter(tenon.ones(1))
        self.register_buffer("mean", tenon.zeros(3))
        self.register_buffer("secret", tenon.zeros(1), persistent=False)
        self.tied = self.first

    def forward(self, x):
        x = tenon.relu(self.first(x - self.mean))
        for layer in self.rest:
            x = layer(x)
        return x * self.scale


class Modules(unittest.TestCase):
    def test_names_of_parts(self):
        net = Net()
        self.assertEqual([name for name, _ in net.named_parameters()],
                         ["scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias", "rest.1.weight", "rest.1.bias"])
        self.assertEqual([name for name, _ in net.named_buffers()], ["mean", "secret"])
        self.assertEqual([name for name, _ in net.named_modules()], ["", "first", "rest", "rest.0", "rest.1"])
        self.assertEqual([name for name, _ in net.named_children()], ["first", "rest"])
        self.assertNotIn("secret", net.state_dict())
        self.assertIn("tied.weight", net.state_dict())
        self.assertIs(net.get_submodule("rest.1"), net.rest[1])
        self.assertIs(net.get_parameter("rest.1.bias"), net.rest[1].bias)

    def test_attributes_are_what_they_are_assigned(self):
        net = Net()
        with self.assertRaisesRegex(TypeError, "as parameter 'scale'"):
            net.scale = tenon.ones(1)
        net.scale = None
        self.assertNotIn("scale", dict(net.named_parameters()))
        net.mean = tenon.ones(3)
        self.assertEqual(net.state_dict()["mean"].tolist(), [1, 1, 1])
        del net.tied
        self.assertFalse(hasattr(net, "tied"))
        with self.assertRaisesRegex(AttributeError, "'Net' object has no attribute 'nothing'"):
            net.nothing

        class Early(nn.Module):
            def __init__(self):
                self.layer = nn.Linear(1, 1)

        with self.assertRaisesRegex(AttributeError, "before Module.__init__"):
            Early()

    def test_state_is_saved_and_loaded(self):
        net, other = Net(), Net()
        with tempfile.TemporaryDirectory() as folder:
            for kind in ("safetensors", "npz"):
                path = f"{folder}/net.{kind}"
                tenon.save(net.state_dict(), path)
                other.load_state_dict(tenon.load(path))
                for name, each in other.state_dict().items():
                    np.testing.assert_array_equal(np.asarray(each), np.asarray(net.state_dict()[name]))

    def test_loading_refuses_what_does_not_fit_and_then_writes_nothing(self):
        net = Net()
        state = {name: each.clone() + 1 for name, each in net.state_dict().items()}
        before = net.first.weight.tolist()
        for change, text in (({"first.weight": tenon.zeros(1, 1)}, "size mismatch for first.weight"), ({"more": tenon.zeros(1)}, 'Unexpected.*"more"'), ({"mean": None}, 'Missing.*"mean"')):
            wrong = {name: each for name, each in {**state, **change}.items() if each is not None}
            with self.assertRaisesRegex(RuntimeError, text):
                net.load_state_dict(wrong)
        self.assertEqual(net.first.weight.tolist(), before)
        result = net.load_state_dict({"scale": tenon.tensor([3.0]), "more": tenon.zeros(1)}, strict=False)
        self.assertEqual((net.scale.item(), result.unexpected_keys), (3.0, ["more"]))

    def test_copies_are_apart(self):
        net = Net()
        for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            self.assertIs(other.tied, other.first)
            self.assertIsInstance(other.first.weight, nn.Parameter)
            before = net.first.weight.tolist()
            nn.init.zeros_(other.first.weight)
            self.assertEqual(net.first.weight.tolist(), before)

    def test_batch_norm_of_an_empty_batch(self):
        for net, shape in ((nn.BatchNorm1d(3), (0, 3)), (nn.BatchNorm2d(3), (0, 3, 2, 2))):
            for training in (True, False):
                x = tenon.zeros(shape).requires_grad_()
                y = net.train(training)(x)
                tenon.sum(y).backward()
                self.assertEqual((tuple(y.shape), tuple(x.grad.shape)), (shape, shape))
                self.assertEqual(net.weight.grad.tolist(), [0, 0, 0])
                self.assertEqual((net.running_mean.tolist(), net.running_var.tolist()), ([0, 0, 0], [1, 1, 1]))

    def test_modes_and_dtypes(self):
        net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.9), nn.BatchNorm1d(2))
        self.assertTrue(net.eval() is net and not any(module.training for module in net.modules()))
        self.assertTrue(net.train()[1].training)
        net.double()
        self.assertEqual({each.dtype for each in net.parameters()}, {tenon.f64})
        self.assertEqual(net[2].num_batches_tracked.dtype, tenon.i64)
        self.assertEqual(net.to(tenon.f32)[0].weight.dtype, tenon.f32)
        net.requires_grad_(False)
        self.assertFalse(any(each.requires_grad for each in net.parameters()))

    def test_shared_parameters_stay_shared(self):
        first, second = nn.Linear(2, 2), nn.Linear(2, 2)
        second.weight = first.weight
        net = nn.Sequential(first, second).double()
        self.assertIs(net[0].weight, net[1].weight)
        self.assertEqual(len(list(net.parameters())), 3)

    def test_hooks(self):
        layer, seen = nn.Linear(2, 2), []
        handles = [layer.register_forward_pre_hook(lambda module, args: seen.append("before")), layer.register_forward_hook(lambda module, args, result: result * 0),
                   layer.register_full_backward_hook(lambda module, of_args, of_results: seen.append(tuple(of_results[0].shape)))]
        result = layer(tenon.ones(3, 2))
        self.assertEqual(result.tolist(), [[0, 0]] * 3)
        result.sum().backward()
        self.assertEqual(seen, ["before", (3, 2)])
        for handle in handles:
            handle.remove()
        self.assertNotEqual(layer(tenon.ones(3, 2)).tolist(), [[0, 0]] * 3)
        self.assertEqual(len(seen), 2)

    def test_containers(self):
        layers = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 3))
        self.assertEqual((len(layers), layers[-1].out_features, len(layers[:2]), [type(each).__name__ for each in layers]), (3, 3, 2, ["Linear", "ReLU", "Linear"]))
        layers.append(nn.Tanh())
        layers[1] = nn.Sigmoid()
        del layers[0]
        self.assertEqual([name for name, _ in layers.named_children()], ["0", "1", "2"])
        parts = nn.ModuleDict({"a": nn.Linear(1, 1)})
        parts["b"] = nn.ReLU()
        self.assertEqual((list(parts), "a" in parts, len(list(parts.parameters()))), (["a", "b"], True, 2))
        held = nn.ParameterList([tenon.ones(1), tenon.ones(2)])
        self.assertEqual([tuple(each.shape) for each in held.parameters()], [(1,), (2,)])
        self.assertEqual([name for name, _ in nn.ParameterDict({"x": tenon.ones(1)}).named_parameters()], ["x"])
        named = nn.Sequential({"in": nn.Linear(1, 1), "out": nn.Linear(1, 1)})
        self.assertEqual([name for name, _ in named.named_children()], ["in", "out"])

    def test_losses_of_unlike_arguments_say_so(self):
        F = nn.functional
        for loss in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
            with self.assertWarnsRegex(UserWarning, r"input has shape \[4, 1\] and target \[4\]"):
                loss(tenon.zeros(4, 1), tenon.zeros(4))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                loss(tenon.zeros(4), tenon.zeros(4))
        with self.assertRaisesRegex(tenon.InvalidArgument, r"target has dtype f32 and shape \[2\].*classes are integers"):
            F.cross_entropy(tenon.zeros(2, 3), tenon.zeros(2))

    def test_dropout_keeps_the_mean(self):
        tenon.manual_seed(0)
        for layer, x in ((nn.Dropout(0.3), tenon.ones(100, 100)), (nn.Dropout2d(0.3), tenon.ones(100, 100, 2, 2))):
            y = array(layer(x))
            self.assertAlmostEqual(y.mean(), 1.0, delta=0.05)
            np.testing.assert_allclose(np.unique(y), [0, 1 / 0.7], rtol=1e-6)
            np.testing.assert_array_equal(array(layer.eval()(x)), 1)
        channels = array(nn.Dropout2d(0.5)(tenon.ones(50, 20, 3, 3))).reshape(1000, 9)
        self.assertTrue((channels == channels[:, :1]).all())

    def test_first_values_have_their_moments(self):
        tenon.manual_seed(0)
        w = tenon.empty(200, 300)
        for fill, std in ((lambda: nn.init.xavier_uniform_(w), math.sqrt(2 / 500)), (lambda: nn.init.xavier_normal_(w), math.sqrt(2 / 500)),
                          (lambda: nn.init.kaiming_uniform_(w, nonlinearity="relu"), math.sqrt(2 / 300)), (lambda: nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
                          (lambda: nn.init.normal_(w, 1.0, 0.5), 0.5), (lambda: nn.init.trunc_normal_(w, std=0.5), 0.4998)):
            self.assertIs(fill(), w)
            self.assertAlmostEqual(array(w).std(), std, delta=0.02 * std)
        q = array(nn.init.orthogonal_(tenon.empty(20, 30)))
        np.testing.assert_allclose(q @ q.T, np.eye(20), atol=1e-5)
        self.assertEqual(nn.init.eye_(tenon.empty(2, 3)).tolist(), [[1, 0, 0], [0, 1, 0]])
        x = tenon.randn(2, 4, 5)
        np.testing.assert_allclose(array(nn.functional.conv1d(x, nn.init.dirac_(tenon.empty(4, 4, 3)), padding=1)), array(x), rtol=1e-6)

    def test_a_module_is_compiled(self):
        net = Net()
        run = tenon.compile(net)
        x = tenon.randn(5, 3)
        for _ in range(3):
            np.testing.assert_allclose(array(run(x)), array(net(x)), rtol=1e-5, atol=1e-6)
        self.assertGreaterEqual(run.stats()["runs"], 1)


if __name__ == "__main__":
    unittest_report.main()
