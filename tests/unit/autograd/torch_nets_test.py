"""Whole nets against PyTorch: losses, the gradients of every parameter and of the input, and training.

usage: torch_nets_test.py"""

import pathlib
import sys
import unittest

import numpy as np
import tenon
import torch

import nets

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

BOUND = {"f64": 1e-9, "f32": 1e-4}


class Torch:
    relu, permute, reshape = torch.relu, torch.permute, torch.reshape
    linear = staticmethod(torch.nn.functional.linear)
    gelu = staticmethod(torch.nn.functional.gelu)
    conv2d = staticmethod(torch.nn.functional.conv2d)
    max_pool2d = staticmethod(torch.nn.functional.max_pool2d)
    conv_transpose2d = staticmethod(torch.nn.functional.conv_transpose2d)
    cross_entropy = staticmethod(torch.nn.functional.cross_entropy)
    embedding = staticmethod(torch.nn.functional.embedding)
    group_norm = staticmethod(torch.nn.functional.group_norm)
    concat = torch.cat

    def mean(self, x, axes):
        return torch.mean(x, axes)

    def chunk(self, x, count):
        return torch.chunk(x, count, -1)

    def batch_norm(self, x, weight, bias):
        return torch.nn.functional.batch_norm(x, None, None, weight, bias, True)

    def layer_norm(self, x, width, weight, bias):
        return torch.nn.functional.layer_norm(x, (width,), weight, bias)

    def attention(self, q, k, v):
        scores = q @ k.transpose(-1, -2) / q.shape[-1]**0.5
        hidden = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).triu(1)
        return torch.softmax(scores.masked_fill(hidden, float("-inf")), -1) @ v

    def lstm(self, x, h, c, weights, layers):
        return torch.lstm(x, (h, c), weights, True, layers, 0.0, True, True, False)

    def tensor(self, array, dtype, wants):
        made = torch.tensor(array)
        made = made.to(torch.float64 if dtype == "f64" else torch.float32) if made.is_floating_point() else made
        return made.requires_grad_(wants)

    def array(self, tensor):
        return tensor.detach().double().numpy()


class Tenon:
    relu, permute, reshape, linear, gelu, concat = (getattr(tenon, name) for name in
                                                    ("relu", "permute", "reshape", "linear", "gelu", "concat"))
    conv2d, cross_entropy, group_norm = tenon.conv2d, tenon.cross_entropy, tenon.group_norm

    def __getattribute__(self, name):  # an op in a class would become a method
        found = vars(Tenon).get(name)
        return found if isinstance(found, tenon.Op) else object.__getattribute__(self, name)

    def mean(self, x, axes):
        return tenon.mean(x, list(axes))

    def chunk(self, x, count):
        return tenon.chunk(x, count, -1)

    def max_pool2d(self, x, size, stride, padding):
        return tenon.max_pool(x, size, stride, padding)

    def conv_transpose2d(self, x, weight, bias, stride):
        return tenon.conv_transpose(x, weight, bias, stride)

    def embedding(self, tokens, weight):
        return tenon.embedding(weight, tokens)

    def batch_norm(self, x, weight, bias):
        return tenon.batch_norm_with_statistics(x, weight, bias)[0]

    def layer_norm(self, x, width, weight, bias):
        return tenon.layer_norm(x, [width], weight, bias)

    def attention(self, q, k, v):
        return tenon.scaled_dot_product_attention(q, k, v, is_causal=True)

    def lstm(self, x, h, c, weights, layers):
        return tenon.lstm(x, h, c, tuple(weights), True, layers, 0.0, True, True, False)

    def tensor(self, array, dtype, wants):
        array = np.asarray(array)
        made = tenon.tensor(array.astype({"f64": np.float64, "f32": np.float32}[dtype]) if array.dtype.kind == "f" else array)
        return made.requires_grad_() if wants else made

    def array(self, tensor):
        return np.array(tensor.detach()).astype(np.float64)


def arrays(make):
    p = nets.Parameters(3)
    make(p)
    return p.arrays


def run(lib, net, parameters, x, target, dtype):
    """The loss, and the gradients by name; that of the input is 'input'."""
    tensors = {name: lib.tensor(array, dtype, True) for name, array in parameters.items()}
    given = lib.tensor(x, dtype, x.dtype.kind == "f")
    loss = lib.cross_entropy(net(lib, tensors, given), lib.tensor(target, dtype, False))
    loss.backward()
    gradients = {name: lib.array(tensor.grad) for name, tensor in tensors.items()}
    if x.dtype.kind == "f":
        gradients["input"] = lib.array(given.grad)
    return float(lib.array(loss)), gradients


class Nets(unittest.TestCase):
    def compare(self, net, make, x, target, dtypes=("f64", "f32")):
        parameters = arrays(make)
        for dtype in dtypes:
            want_loss, want = run(Torch(), net, parameters, x, target, dtype)
            got_loss, got = run(Tenon(), net, parameters, x, target, dtype)
            self.assertLessEqual(abs(got_loss - want_loss), BOUND[dtype] * abs(want_loss))
            self.assertEqual(set(got), set(want))
            for name in want:
                norm = np.linalg.norm(want[name])
                self.assertGreater(norm, 0, name)
                error = np.linalg.norm(got[name] - want[name]) / norm
                self.assertLessEqual(error, BOUND[dtype], f"{name} in {dtype}")

    def setUp(self):
        self.random = np.random.default_rng(5)

    def targets(self, *shape):
        return self.random.integers(0, 10, shape)

    def test_mlp(self):
        self.compare(nets.mlp, nets.mlp_parameters, self.random.standard_normal((32, 20)), self.targets(32))

    def test_resnet_18(self):
        self.compare(nets.resnet, nets.resnet_parameters, self.random.standard_normal((2, 3, 64, 64)), self.targets(2))

    def test_lstm(self):
        self.compare(nets.lstm, nets.lstm_parameters, self.random.standard_normal((7, 3, nets.FEATURES)), self.targets(3))

    def test_transformer_block(self):
        tokens = self.random.integers(0, nets.TOKENS, (5, nets.LENGTH))
        self.compare(nets.transformer, nets.transformer_parameters, tokens, self.targets(5))

    def test_unet(self):
        self.compare(nets.unet, nets.unet_parameters, self.random.standard_normal((2, 3, 24, 24)), self.targets(2, 24, 24))


class Training(unittest.TestCase):
    """The same losses as PyTorch for 50 steps of AdamW in f32, from the same weights."""

    def compare(self, net, make, x, target):
        parameters = arrays(make)
        theirs, ours = Torch(), Tenon()
        p = {name: theirs.tensor(array, "f32", True) for name, array in parameters.items()}
        optimizer = torch.optim.AdamW(p.values(), lr=3e-3)
        q = {name: ours.tensor(array, "f32", True) for name, array in parameters.items()}
        averages, squares = ([tenon.zeros(t.shape) for t in q.values()] for _ in range(2))
        for step in range(50):
            optimizer.zero_grad()
            want = theirs.cross_entropy(net(theirs, p, theirs.tensor(x, "f32", False)), theirs.tensor(target, "f32", False))
            want.backward()
            optimizer.step()
            got = ours.cross_entropy(net(ours, q, ours.tensor(x, "f32", False)), ours.tensor(target, "f32", False))
            got.backward()
            with tenon.no_grad():
                tenon.fused_adamw_(list(q.values()), [t.grad for t in q.values()], averages, squares, (), step + 1, lr=3e-3)
            for t in q.values():
                t.grad = None
            self.assertLessEqual(abs(float(got) - float(want)), 1e-3 * max(1.0, abs(float(want))), f"step {step}")
        self.assertLess(float(got), 1.5)

    def test_mlp(self):
        random = np.random.default_rng(8)
        self.compare(nets.mlp, nets.mlp_parameters, random.standard_normal((64, 20)), random.integers(0, 10, 64))

    def test_transformer_block(self):
        random = np.random.default_rng(9)
        tokens = random.integers(0, nets.TOKENS, (16, nets.LENGTH))
        self.compare(nets.transformer, nets.transformer_parameters, tokens, random.integers(0, 10, 16))


if __name__ == "__main__":
    unittest_report.main()
