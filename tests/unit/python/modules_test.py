"""tenon.nn.utils, packed sequences, lazy layers, optim.swa_utils and tenon.testing against PyTorch's.

usage: modules_test.py OP_RUNNER (not used)"""

import copy
import importlib.util
import pathlib
import pickle
import sys
import unittest

import numpy as np
import tenon
from tenon import nn

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

if importlib.util.find_spec("torch"):
    import torch
    import torch.optim.swa_utils

HAS_TORCH = importlib.util.find_spec("torch") is not None
WITH_TORCH = unittest.skipUnless(HAS_TORCH, "PyTorch is not installed")
WITH_TORCH_2 = unittest.skipUnless(HAS_TORCH and hasattr(torch, "func"), "PyTorch 2 is not installed")


def array(tensor):
    return tensor.detach().numpy()


def same_weights(ours, theirs):
    """Copies the state of PyTorch's module."""
    ours.load_state_dict({name: value.detach().numpy() for name, value in theirs.state_dict().items()})
    return ours


class Comparisons(unittest.TestCase):
    def close(self, ours, wanted, near=1e-9):
        ours, wanted = array(ours), array(wanted)
        self.assertEqual((ours.dtype, ours.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_allclose(ours, wanted, rtol=near, atol=near)

    def refuse(self, *calls):
        """All calls raise errors of the class of the first one's."""
        kinds = []
        for call in calls:
            with self.assertRaises(Exception) as caught:
                call()
            kinds.append(caught.exception)
        for each in kinds[1:]:
            self.assertIsInstance(each, type(kinds[0]), f"{kinds}")


@WITH_TORCH
class Norms(Comparisons):
    LAYERS = ["nn.Linear(4, 3)", "nn.Conv2d(2, 3, 3)", "nn.ConvTranspose2d(2, 3, 3)"]

    def pairs(self):
        for text in self.LAYERS:
            yield text, eval(text, {"nn": torch.nn}).double(), eval(text, {"nn": nn}).double()

    def input(self, text):
        return np.random.default_rng(1).standard_normal((5, 4) if "Linear" in text else (2, 2, 5, 5))

    def compare_training(self, theirs, ours, x):
        """The same results, gradients and state in training and evaluation."""
        self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
        same_weights(ours, theirs)
        for module in (theirs, ours):
            module.train()
        for _ in range(2):
            results = [module(package.tensor(x)) for module, package in ((ours, tenon), (theirs, torch))]
            self.close(*results)
            for each in results:
                (each ** 2).sum().backward()
        for mine, other in zip(ours.parameters(), theirs.parameters()):
            self.close(mine.grad, other.grad, 1e-8)
        for name, value in theirs.state_dict().items():
            self.close(ours.state_dict()[name], value)
        self.close(ours.eval()(tenon.tensor(x)), theirs.eval()(torch.tensor(x)))

    @WITH_TORCH_2
    def test_weight_norm(self):
        for where in ("nn.utils.parametrizations.weight_norm", "nn.utils.weight_norm"):
            for dim in (0, 1, None):
                for text, theirs, ours in self.pairs():
                    with self.subTest(f"{where}({text}, dim={dim})"):
                        theirs, ours = (eval(where, {"nn": package.nn})(module, dim=dim) for package, module in ((torch, theirs), (tenon, ours)))
                        self.compare_training(theirs, ours, self.input(text))

    def test_spectral_norm(self):
        for where in ("nn.utils.parametrizations.spectral_norm", "nn.utils.spectral_norm"):
            for text, theirs, ours in self.pairs():
                with self.subTest(f"{where}({text})"):
                    theirs, ours = (eval(where, {"nn": package.nn})(module, n_power_iterations=2) for package, module in ((torch, theirs), (tenon, ours)))
                    self.compare_training(theirs, ours, self.input(text))

    def test_removal_keeps_the_weight(self):
        for add, remove in ((nn.utils.weight_norm, nn.utils.remove_weight_norm), (nn.utils.spectral_norm, nn.utils.remove_spectral_norm)):
            layer = nn.Linear(4, 3)
            names = list(layer.state_dict())
            add(layer)
            layer.eval()
            x = tenon.randn(2, 4)
            wanted = layer(x)
            self.assertRaises(RuntimeError, add, layer)
            remove(layer)
            self.assertEqual(sorted(layer.state_dict()), sorted(names))
            self.close(layer(x), wanted, 1e-5)
            self.assertRaises(ValueError, remove, layer)

    def test_errors(self):
        for package in (torch, tenon):
            p = package.nn.utils.parametrizations
            self.assertRaises(ValueError, p.weight_norm if package is tenon else p.spectral_norm, package.nn.Linear(2, 2), "absent")
            self.assertRaises(ValueError, p.spectral_norm, package.nn.Linear(2, 2), n_power_iterations=0)
            self.assertRaises(IndexError, p.spectral_norm, package.nn.Linear(2, 2), dim=2)
            self.assertRaises(ValueError, p.orthogonal, package.nn.Linear(2, 2), "bias")
            self.assertRaises(ValueError, p.orthogonal, package.nn.Linear(2, 2), orthogonal_map="best")


def orthonormal(weight):
    w = array(weight)
    product = w.T @ w if w.shape[0] >= w.shape[1] else w @ w.T
    return np.abs(product - np.eye(len(product))).max() < 1e-10


class Orthogonal(Comparisons):
    def test_weights_are_orthogonal_and_train(self):
        for shape in ((4, 4), (6, 3), (3, 6)):
            for kind in ("matrix_exp", "cayley", "householder", None):
                with self.subTest(f"{shape} {kind}"):
                    layer = nn.utils.parametrizations.orthogonal(nn.Linear(*shape).double(), orthogonal_map=kind)
                    self.assertTrue(orthonormal(layer.weight))
                    optimizer = tenon.optim.SGD(layer.parameters(), lr=0.3)
                    before = array(layer.weight).copy()
                    for _ in range(3):
                        optimizer.zero_grad()
                        layer(tenon.ones(2, shape[0], dtype=tenon.f64)).square().sum().backward()
                        optimizer.step()
                    self.assertTrue(orthonormal(layer.weight))
                    self.assertGreater(np.abs(array(layer.weight) - before).max(), 1e-3)

    def test_an_orthogonal_weight_is_kept(self):
        q = tenon.linalg.qr(tenon.randn(4, 4, dtype=tenon.f64))[0]
        for kind in ("matrix_exp", "cayley", "householder"):
            layer = nn.Linear(4, 4).double()
            with tenon.no_grad():
                layer.weight.copy_(q)
            nn.utils.parametrizations.orthogonal(layer, orthogonal_map=kind)
            self.close(layer.weight, q)
            layer.weight = -q
            self.close(layer.weight, -q)

    def test_householder_without_a_base_inverts(self):
        for shape in ((4, 4), (3, 6), (6, 3)):
            layer = nn.utils.parametrizations.orthogonal(nn.Linear(*shape).double(), orthogonal_map="householder", use_trivialization=False)
            self.assertTrue(orthonormal(layer.weight))
            for q in (tenon.linalg.qr(tenon.randn(6, 6, dtype=tenon.f64))[0], -tenon.eye(6, dtype=tenon.f64)):
                wanted = q[:shape[1], :shape[1]] if shape[0] == shape[1] else q[:, :3] if shape[1] == 6 else q[:3]
                if shape[0] == shape[1]:
                    wanted = tenon.linalg.qr(wanted)[0]
                layer.weight = wanted
                self.close(layer.weight, wanted)
        self.assertRaises(NotImplementedError, setattr, nn.utils.parametrizations.orthogonal(nn.Linear(4, 4), orthogonal_map="cayley", use_trivialization=False),
                          "weight", tenon.eye(4))

    @WITH_TORCH
    def test_equals_pytorch(self):
        for shape in ((4, 4), (6, 3), (3, 6)):
            for kind in ("matrix_exp", "cayley", "householder"):
                for base in (True, False):
                    theirs, ours = (package.nn.utils.parametrizations.orthogonal(package.nn.Linear(*shape).double(), orthogonal_map=kind, use_trivialization=base)
                                    for package in (torch, tenon))
                    with torch.no_grad():
                        if kind == "householder":
                            theirs.parametrizations.weight.original.add_(torch.randn(shape[1], shape[0]).tril(-1) * 0.3)
                        else:
                            theirs.parametrizations.weight.original.add_(torch.randn(shape[1], shape[0]) * 0.3)
                    self.assertEqual(list(ours.state_dict()), list(theirs.state_dict()))
                    same_weights(ours, theirs)
                    self.close(ours.weight, theirs.weight)


class Parametrize(Comparisons):
    def module_of(self, package):
        class Symmetric(package.nn.Module):
            def forward(self, x):
                return x.triu() + x.triu(1).mT

            def right_inverse(self, x):
                return x.triu()
        return Symmetric()

    def test_a_parametrized_weight(self):
        P = nn.utils.parametrize
        layer = nn.Linear(3, 3)
        original = layer.weight
        self.assertFalse(P.is_parametrized(layer))
        self.assertIs(P.register_parametrization(layer, "weight", self.module_of(tenon)), layer)
        self.assertTrue(P.is_parametrized(layer) and P.is_parametrized(layer, "weight") and not P.is_parametrized(layer, "bias"))
        self.assertEqual((type(layer).__name__, P.type_before_parametrizations(layer)), ("ParametrizedLinear", nn.Linear))
        self.assertIs(layer.parametrizations.weight.original, original)  # so an optimiser keeps it
        self.assertTrue(tenon.equal(layer.weight, layer.weight.T))
        layer(tenon.ones(2, 3)).sum().backward()
        self.assertEqual(original.grad.shape, (3, 3))
        wanted = tenon.tensor([[1.0, 2, 3], [2, 4, 5], [3, 5, 6]])
        layer.weight = wanted
        self.close(layer.weight, wanted)
        layer.weight = nn.Parameter(wanted * 2)
        self.close(layer.weight, wanted * 2)
        twin = copy.deepcopy(layer)
        layer.weight = wanted
        self.close(twin.weight, wanted * 2)
        self.assertRaises(RuntimeError, pickle.dumps, layer)
        P.remove_parametrizations(layer, "weight")
        self.assertIs(layer.weight, original)
        self.assertEqual((type(layer), sorted(layer.state_dict())), (nn.Linear, ["bias", "weight"]))
        self.close(layer.weight, wanted)
        P.remove_parametrizations(twin, "weight", leave_parametrized=False)
        self.close(twin.weight, (wanted * 2).triu())

    def test_several_originals_and_several_modules(self):
        P = nn.utils.parametrize

        class RankOne(nn.Module):
            def forward(self, x, y):
                return x.unsqueeze(-1) @ y.unsqueeze(-2)

            def right_inverse(self, z):
                u, s, vh = tenon.linalg.svd(z, full_matrices=False)
                return u[..., :, 0] * s[0].sqrt(), vh[..., 0, :] * s[0].sqrt()

        class Double(nn.Module):
            def forward(self, x):
                return x * 2
        layer = P.register_parametrization(nn.Linear(4, 3), "weight", RankOne())
        self.assertEqual(int(tenon.linalg.matrix_rank(layer.weight)), 1)
        self.assertEqual(sorted(layer.state_dict()), ["bias", "parametrizations.weight.original0", "parametrizations.weight.original1"])
        before = layer.weight
        P.register_parametrization(layer, "weight", Double())
        self.close(layer.weight, before * 2, 1e-6)
        with P.cached():
            self.assertIs(layer.weight, layer.weight)
        self.assertIsNot(layer.weight, layer.weight)
        self.assertRaises(RuntimeError, setattr, layer, "weight", before)
        self.assertRaises(ValueError, P.remove_parametrizations, layer, "weight", leave_parametrized=False)
        P.remove_parametrizations(layer, "weight")
        self.close(layer.weight, before * 2, 1e-6)
        self.assertTrue(isinstance(layer.weight, nn.Parameter))

    def test_buffers_and_shapes(self):
        P = nn.utils.parametrize

        class Repeat(nn.Module):
            def forward(self, x):
                return x.repeat(2)
        norm = nn.BatchNorm1d(3)
        self.assertRaisesRegex(ValueError, "may not change the shape", P.register_parametrization, norm, "running_mean", Repeat())
        P.register_parametrization(norm, "running_mean", Repeat(), unsafe=True)
        self.assertEqual(norm.running_mean.shape, (6,))
        self.assertRaisesRegex(ValueError, "does not have a parameter", P.register_parametrization, norm, "absent", Repeat())
        self.assertRaisesRegex(ValueError, "does not have a parametrization", P.remove_parametrizations, norm, "weight")

    def test_compiled_and_functional_calls(self):
        layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
        run = tenon.compile(layer)
        for _ in range(4):
            x = tenon.randn(2, 3)
            self.close(run(x), layer(x), 1e-5)
        given = {name: tenon.ones_like(value) for name, value in layer.named_parameters()}
        wanted = tenon.linalg.vector_norm(tenon.ones(3))
        self.close(tenon.func.functional_call(layer, given, tenon.ones(1, 3)), tenon.full((1, 3), float(3 / wanted) + 1), 1e-5)


@WITH_TORCH
class Packed(Comparisons):
    LENGTHS = [[4, 2, 5], [3, 3, 3], [1], [5, 4, 4, 1], [1, 5]]

    @WITH_TORCH_2
    def test_padding_and_packing(self):
        for lengths in self.LENGTHS:
            for batch_first in (False, True):
                for ordered in (False, True):
                    sizes = sorted(lengths, reverse=True) if ordered else lengths
                    rng = np.random.default_rng(2)
                    arrays = [rng.standard_normal((length, 2)) for length in sizes]
                    found = []
                    for package in (tenon, torch):
                        rnn = package.nn.utils.rnn
                        sequences = [package.tensor(each) for each in arrays]
                        padded = rnn.pad_sequence(sequences, batch_first, -1.0)
                        packed = rnn.pack_padded_sequence(padded, sizes, batch_first, enforce_sorted=ordered)
                        again = rnn.pad_packed_sequence(packed, batch_first, 7.0, total_length=6)
                        flat = [padded, rnn.pad_sequence(sequences, batch_first, padding_side="left"), packed.data, packed.batch_sizes, *again,
                                *rnn.unpad_sequence(padded.clone(), package.tensor(sizes), batch_first), *rnn.unpack_sequence(packed),
                                rnn.pack_sequence(sequences, enforce_sorted=ordered).data]
                        if packed.sorted_indices is not None and len(set(sizes)) == len(sizes):
                            flat += [packed.sorted_indices, packed.unsorted_indices]
                        found.append(flat)
                    self.assertEqual(len(found[0]), len(found[1]))
                    if len(set(sizes)) == len(sizes) or ordered:
                        for i, (mine, other) in enumerate(zip(*found)):
                            with self.subTest(f"{sizes} {batch_first} {ordered} {i}"):
                                self.close(mine, other)
                    else:  # PyTorch's sort is not stable
                        for i in (0, 1, 3, 4, 5):
                            self.close(found[0][i], found[1][i])

    def test_recurrent_layers(self):
        for text in ("nn.RNN(3, 4)", "nn.RNN(3, 4, nonlinearity='relu', bias=False, bidirectional=True)", "nn.GRU(3, 4, 2, bidirectional=True)", "nn.LSTM(3, 4)",
                     "nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True)", "nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True)"):
            for lengths in self.LENGTHS:
                for with_state in (False, True):
                    with self.subTest(f"{text} {lengths} {with_state}"):
                        theirs = eval(text, {"nn": torch.nn}).double()
                        ours = same_weights(eval(text, {"nn": nn}).double(), theirs)
                        rng = np.random.default_rng(3)
                        arrays = [rng.standard_normal((length, 3)) for length in lengths]
                        count = theirs.num_layers * (1 + theirs.bidirectional)
                        widths = [theirs.proj_size or 4, 4] if "LSTM" in text else [4]
                        states = [rng.standard_normal((count, len(lengths), width)) for width in widths]
                        found = []
                        for package, module in ((tenon, ours), (torch, theirs)):
                            rnn = package.nn.utils.rnn
                            given = [package.tensor(each, requires_grad=True) for each in arrays]
                            first = [package.tensor(each, requires_grad=True) for each in states]
                            state = (tuple(first) if len(first) == 2 else first[0]) if with_state else None
                            result, last = module(rnn.pack_sequence(given, enforce_sorted=False), state)
                            padded, _ = rnn.pad_packed_sequence(result)
                            last = list(last) if isinstance(last, tuple) else [last]
                            (sum((each ** 2).sum() for each in last) + (padded ** 3).sum()).backward()
                            found.append([padded, *last, *[each.grad for each in given], *[each.grad for each in module.parameters()],
                                          *[each.grad for each in first if with_state]])
                        for mine, other in zip(*found):
                            self.close(mine, other, 1e-8)

    @WITH_TORCH_2
    def test_errors(self):
        for call in (lambda p: p.nn.utils.rnn.pack_padded_sequence(p.zeros(3, 2), [1, 3]), lambda p: p.nn.utils.rnn.pack_padded_sequence(p.zeros(3, 2), [0, 3], enforce_sorted=False),
                     lambda p: p.nn.utils.rnn.pack_padded_sequence(p.zeros(3, 2), [3]), lambda p: p.nn.utils.rnn.pad_sequence(3),
                     lambda p: p.nn.utils.rnn.pad_packed_sequence(p.nn.utils.rnn.pack_padded_sequence(p.zeros(3, 2), [3, 1]), total_length=2),
                     lambda p: p.nn.utils.rnn.pad_sequence([p.zeros(2)], padding_side="top")):
            self.refuse(lambda: call(torch), lambda: call(tenon))

    def test_dropout_between_layers_and_conversions(self):
        packed = nn.utils.rnn.pack_sequence([tenon.ones(3, 3), tenon.ones(1, 3)])
        net = nn.GRU(3, 4, 2, dropout=0.5)
        self.assertEqual(net(packed)[0].data.shape, (4, 4))
        self.assertEqual((packed.double().data.dtype, packed.to(tenon.f16).data.dtype), (tenon.f64, tenon.f16))


@WITH_TORCH
class Fusion(Comparisons):
    @WITH_TORCH_2
    def test_batch_norms_join_the_layer_before(self):
        for layer, norm, call in (("nn.Conv2d(2, 3, 3)", "nn.BatchNorm2d(3)", "fuse_conv_bn_eval(layer, norm)"),
                                  ("nn.Conv1d(2, 3, 3, bias=False)", "nn.BatchNorm1d(3, affine=False)", "fuse_conv_bn_eval(layer, norm)"),
                                  ("nn.ConvTranspose2d(2, 3, 3)", "nn.BatchNorm2d(3)", "fuse_conv_bn_eval(layer, norm, transpose=True)"),
                                  ("nn.Linear(5, 3)", "nn.BatchNorm1d(3)", "fuse_linear_bn_eval(layer, norm)")):
            with self.subTest(layer):
                theirs = [eval(text, {"nn": torch.nn}).double() for text in (layer, norm)]
                if theirs[1].affine:
                    torch.nn.init.normal_(theirs[1].weight)
                torch.nn.init.normal_(theirs[1].running_mean)
                torch.nn.init.uniform_(theirs[1].running_var, 0.5, 2)
                ours = [same_weights(eval(text, {"nn": nn}).double(), other) for text, other in zip((layer, norm), theirs)]
                self.assertRaises(AssertionError, eval, call, {**vars(nn.utils), "layer": ours[0], "norm": ours[1]})
                fused = [eval(call, {**vars(package.nn.utils), "layer": pair[0].eval(), "norm": pair[1].eval()}) for package, pair in ((tenon, ours), (torch, theirs))]
                x = np.random.default_rng(1).standard_normal({"nn.Linear": (4, 5), "nn.Conv1d": (2, 2, 6)}.get(layer.partition("(")[0], (2, 2, 5, 5)))
                self.close(fused[0](tenon.tensor(x)), ours[1](ours[0](tenon.tensor(x))), 1e-7)
                for name, value in fused[1].state_dict().items():
                    self.close(fused[0].state_dict()[name], value)


@WITH_TORCH
class Lazy(Comparisons):
    LAYERS = {"nn.LazyLinear(3)": (2, 4, 5), "nn.LazyLinear(3, bias=False)": (2, 5), "nn.LazyConv1d(4, 3)": (2, 3, 8), "nn.LazyConv2d(4, 3, padding=1)": (2, 3, 6, 5),
              "nn.LazyConv3d(4, 2)": (2, 3, 4, 4, 4), "nn.LazyConvTranspose1d(4, 3)": (2, 3, 8), "nn.LazyConvTranspose2d(4, 3, stride=2)": (3, 6, 5),
              "nn.LazyConvTranspose3d(4, 2)": (2, 3, 4, 4, 4), "nn.LazyBatchNorm1d()": (4, 3, 5), "nn.LazyBatchNorm2d(affine=False)": (4, 3, 5, 5),
              "nn.LazyBatchNorm3d(momentum=None)": (4, 3, 2, 3, 3), "nn.LazyInstanceNorm1d(affine=True)": (4, 3, 5), "nn.LazyInstanceNorm2d()": (4, 3, 5, 5),
              "nn.LazyInstanceNorm3d(track_running_stats=True)": (4, 3, 2, 3, 3)}

    def test_layers_become_ordinary(self):
        for text, shape in self.LAYERS.items():
            with self.subTest(text):
                theirs, ours = eval(text, {"nn": torch.nn}), eval(text, {"nn": nn})
                self.assertTrue(ours.has_uninitialized_params())
                x = np.random.default_rng(1).standard_normal(shape).astype("f4")
                theirs(torch.tensor(x))
                ours(tenon.tensor(x))
                self.assertEqual(type(ours).__name__, type(theirs).__name__)
                self.assertEqual({name: value.shape for name, value in ours.state_dict().items()},
                                 {name: tuple(value.shape) for name, value in theirs.state_dict().items()})
                same_weights(ours, theirs)
                self.close(ours(tenon.tensor(x)), theirs(torch.tensor(x)), 1e-5)
                if "Norm" not in text:
                    self.assertEqual(repr(ours), repr(theirs))

    def test_a_lazy_net_trains_and_keeps_its_mode(self):
        net = nn.Sequential(nn.LazyConv2d(4, 3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)).eval()
        self.assertRaisesRegex(RuntimeError, "call the net once", net[0].load_state_dict, {})
        self.assertRaises(ValueError, nn.LazyBatchNorm2d(), tenon.ones(3, 3))
        net(tenon.ones(2, 3, 5, 5))
        self.assertFalse(net[1].training)
        self.assertEqual(len(list(net.parameters())), 6)

    def test_absent_names_say_what_to_use(self):
        for name in ("DataParallel", "SyncBatchNorm", "parallel"):
            self.assertRaisesRegex(AttributeError, "module.to_global", getattr, nn, name)
        self.assertRaisesRegex(AttributeError, "has no attribute 'Absent'$", getattr, nn, "Absent")


@WITH_TORCH_2
class Averages(Comparisons):
    def test_averaged_models(self):
        for setting in ("", "use_buffers=True", "avg_fn=S.get_ema_avg_fn(0.9)", "multi_avg_fn=S.get_ema_multi_avg_fn(0.9), use_buffers=True",
                        "multi_avg_fn=S.get_swa_multi_avg_fn()", "avg_fn=S.get_swa_avg_fn()"):
            with self.subTest(setting):
                theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).double()
                ours = same_weights(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)).double(), theirs)
                pairs = []
                for package, module in ((torch, theirs), (tenon, ours)):
                    averaged = eval(f"S.AveragedModel(m, {setting})", {"S": package.optim.swa_utils, "m": module})
                    pairs.append((package, module, averaged))
                rng = np.random.default_rng(1)
                for _ in range(4):
                    x = rng.standard_normal((6, 3))
                    for package, module, averaged in pairs:
                        module(package.tensor(x))
                        with package.no_grad():
                            for each in module.parameters():
                                each.mul_(1.3)
                        averaged.update_parameters(module)
                states = [averaged.state_dict() for _, _, averaged in pairs]
                self.assertEqual(list(states[1]), list(states[0]))
                for name, value in states[0].items():
                    self.close(states[1][name], value, 1e-7)  # PyTorch's weight of the mean is f32
                batches = [rng.standard_normal((6, 3)) for _ in range(3)]
                for package, _, averaged in pairs:
                    package.optim.swa_utils.update_bn([(package.tensor(each), 0) for each in batches], averaged)
                for name, value in pairs[0][2].state_dict().items():
                    self.close(pairs[1][2].state_dict()[name], value, 1e-7)
                self.close(pairs[1][2](tenon.tensor(batches[0])), pairs[0][2](torch.tensor(batches[0])), 1e-7)

    def test_schedules(self):
        for setting in ("swa_lr=0.05", "swa_lr=0.05, anneal_epochs=5, anneal_strategy='linear'", "swa_lr=[0.05], anneal_epochs=0"):
            for other in (False, True)[:1 + ("=0" not in setting)]:
                rates = []
                for package in (torch, tenon):
                    optimizer = package.optim.SGD([package.zeros(2, requires_grad=True)], lr=0.5)
                    also = package.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
                    schedule = eval(f"S.SWALR(o, {setting})", {"S": package.optim.swa_utils, "o": optimizer})
                    rates.append([])
                    for i in range(14):
                        optimizer.step()
                        (also if other and i < 4 else schedule).step()
                        rates[-1].append(float(optimizer.param_groups[0]["lr"]))
                np.testing.assert_allclose(rates[1], rates[0], rtol=1e-12)
        for call in (lambda p: p.optim.swa_utils.SWALR(p.optim.SGD([p.zeros(1)], lr=1.0), 0.1, anneal_strategy="best"),
                     lambda p: p.optim.swa_utils.SWALR(p.optim.SGD([p.zeros(1)], lr=1.0), 0.1, -1), lambda p: p.optim.swa_utils.SWALR(p.optim.SGD([p.zeros(1)], lr=1.0), [0.1, 0.2]),
                     lambda p: p.optim.swa_utils.get_ema_avg_fn(2.0), lambda p: p.optim.swa_utils.AveragedModel(p.nn.Linear(1, 1), avg_fn=abs, multi_avg_fn=abs)):
            self.refuse(lambda: call(torch), lambda: call(tenon))


@WITH_TORCH
class Testing(Comparisons):
    CASES = """
    t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0])
    t.tensor([1.0, 2.0, 3.0]), t.tensor([1.0, 2.1, 3.0])
    t.tensor([[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]), t.tensor([[1.0, 2.0, 3.1], [0.5, 4.0, 5.0]])
    t.tensor([1.0, math.nan]), t.tensor([1.0, math.nan])
    t.tensor([1.0, math.nan]), t.tensor([1.0, math.nan]), equal_nan=True
    t.tensor([1, 2]), t.tensor([1, 3])
    t.tensor([1.0]), t.tensor([1.0], dtype=t.float64)
    t.tensor([1.0]), t.tensor([1.0], dtype=t.float64), check_dtype=False
    t.tensor([1.0]), t.tensor([1.0, 1.0])
    t.tensor(1.0), t.tensor(1.5)
    1.0, 1.0 + 1e-9
    1.0, 2.0
    1, 2
    [1.0, t.tensor([1.0])], [1.0, t.tensor([2.0])]
    [1.0], [1.0, 2.0]
    {'a': t.tensor([1.0])}, {'a': t.tensor([1.5])}
    {'a': 1.0}, {'b': 1.0}
    t.tensor([1.0]), t.tensor([1.01]), rtol=0.1, atol=0.0
    t.tensor([1.0]), t.tensor([1.01]), rtol=0.1
    'a', 'a'
    None, None
    t.tensor([1.0]), None
    t.tensor([1.0]), t.tensor([2.0]), msg='mine'
    t.tensor([1.0]), t.tensor([2.0]), msg=lambda text: 'mine ' + text[:6]
    t.tensor([1.0, 2.0], dtype=t.float16), t.tensor([1.0, 2.001], dtype=t.float16)
    t.tensor([True, False]), t.tensor([True, True])
    t.zeros(3, 2).T, t.zeros(2, 3), check_stride=True
    t.zeros(0), t.zeros(0)
    """

    def test_assert_close(self):
        import math
        for text in self.CASES.strip().split("\n"):
            with self.subTest(text.strip()):
                errors = []
                for package in (torch, tenon):
                    try:
                        eval(f"t.testing.assert_close({text.strip()})", {"t": package, "math": math})
                        errors.append(None)
                    except Exception as error:
                        errors.append(error)
                self.assertEqual(type(errors[1]), type(errors[0]), f"{errors}")
                first = [str(each).split("\n")[0] for each in errors]
                if isinstance(errors[0], AssertionError) and "attribute" not in first[0] and "None" not in first[0] and "length" not in first[0]:
                    self.assertEqual(first[1], first[0])
                    if "Mismatched" in str(errors[0]):
                        self.assertEqual(str(errors[1]).split("\n")[2], str(errors[0]).split("\n")[2])
                        self.assertEqual([line.partition(" at ")[2] for line in str(errors[1]).split("\n")[3:5]],
                                         [line.partition(" at ")[2] for line in str(errors[0]).split("\n")[3:5]])

    def test_make_tensor(self):
        for dtype in "float32 float64 float16 bfloat16 int8 int64 uint8 bool".split():
            for setting in ("", "low=2, high=5", "exclude_zero=True", "noncontiguous=True", "requires_grad=True"):
                if dtype == "bool" and "low" in setting or dtype in ("int8", "int64", "uint8", "bool") and "requires" in setting:
                    continue
                made = [eval(f"t.testing.make_tensor((50, 4), dtype=t.{dtype}, device='cpu', {setting})", {"t": package}) for package in (torch, tenon)]
                self.assertEqual((made[1].shape, made[1].is_contiguous(), made[1].requires_grad), (tuple(made[0].shape), made[0].is_contiguous(), made[0].requires_grad))
                values = made[1].detach().double() if dtype != "bool" else made[1].int()
                low, high = (2, 5) if "low" in setting else (0 if dtype in ("uint8", "bool") else -9, 10)
                self.assertTrue(bool((values >= low).all()) and bool((values < high).all()))
                if "exclude" in setting and dtype != "bool":
                    self.assertTrue(bool((values != 0).all()))
        for call in (lambda p: p.testing.make_tensor(2, dtype=p.float32, device="cpu", low=3, high=2),
                     lambda p: p.testing.make_tensor(2, dtype=p.float32, device="cpu", low=float("nan"))):
            self.refuse(lambda: call(torch), lambda: call(tenon))


if __name__ == "__main__":
    unittest_report.main()
