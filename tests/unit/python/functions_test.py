"""tenon.func, tenon.vmap, tenon.autograd.functional and gradcheck against PyTorch's.

usage: functions_test.py OP_RUNNER (not used)"""

import ast
import importlib.util
import itertools
import pathlib
import re
import sys
import unittest

import numpy as np
import tenon
import tenon.nn.functional
from tenon import _batching, _batching_rules

sys.argv.pop(1)
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import unittest_report

if importlib.util.find_spec("torch"):
    import torch
    import torch.nn.functional

WITH_TORCH = unittest.skipUnless(importlib.util.find_spec("torch") and hasattr(torch, "func"), "PyTorch 2 is not installed")

# Functions of samples: x (3, 4), y (3, 4), v (4), s a number, i classes (3), b bools (3, 4), c (2, 4, 5, 5). Captured whole:
# w (4, 4), z (4), k (6, 4, 3, 3). A line names the arguments that have a batch.
SAMPLES = """
x y: x + y
x v: x * v
x s: x - s
x s: s / x
x: 2 - x
x: x ** 2
x: 1.5 ** x
x: x @ w
x y: x @ y.T
x v: x @ v
v: v @ w
v: w @ v
v: v @ z
v: t.dot(v, z)
x: t.mm(x, w)
x: t.mv(x, z)
x v: t.outer(v, x[0])
x y: t.bmm(x[None], y.T[None])
x: w.expand(2, 4, 4) @ x.T
x: -x
x: abs(x)
x: x.exp().tanh()
x y: t.maximum(x, y)
x s: t.where(x > s, x, s)
x: t.where(x > 0, x, 0.0)
x b: x.masked_fill(b, -1.0)
b: ~b
x y: (x < y) | (x > 1)
x: x.clamp(-0.5, 0.5)
x s: t.clamp(x, max=s)
x y: t.lerp(x, y, 0.3)
x y: t.addcmul(x, x, y, value=0.5)
x: x.sum()
x: x.sum(0)
x: x.sum(-1)
x: x.sum((0, 1))
x: x.sum(dim=1, keepdim=True)
x: x.mean(0, True)
x: x.mean()
v: v.mean(0)
x: x.prod(1)
x: x.prod()
x: x.amax((0, 1))
x: x.max()
x: x.max(1)
x: t.max(x, dim=0)[0]
x y: t.min(x, y)
x: x.argmax()
x: x.argmax(0)
x: x.argmin(-1)
x: x.var()
x: x.var(0)
x: x.std(1, unbiased=False)
x: (x > 0).any()
x: (x > 0).all(1)
x: x.logsumexp(1)
x: t.logsumexp(x, (0, 1))
x: x.norm()
x: t.linalg.vector_norm(x, 3, dim=1)
x: t.softmax(x, 0)
x: t.softmax(x, dim=-1)
x: F.log_softmax(x, 1)
x: x.cumsum(0)
x: x.sort(1)[0]
x: x.sort(0, descending=True)[1]
x: x.argsort(1)
x: x.topk(2)[0]
x: x.topk(2, 0)[1]
x: x.reshape(2, 6)
x: x.reshape(-1)
x: x.view((4, 3))
x: x.T
x: x.mT
x: x.transpose(0, 1)
c: c.permute(3, 0, 1, 2)
c: c.movedim(1, -1)
c: c.movedim((0, 1), (2, 3))
x: x.unsqueeze(0)
x: x.unsqueeze(-1)
s: s.unsqueeze(0)
x: x[None].squeeze(0)
x: x[None].squeeze()
c: c.flatten(1)
c: c.flatten()
s: s.flatten()
v: v.expand(3, 4)
v: v.expand(3, -1)
x: x.repeat(2, 1)
x: t.tile(x, (1, 2))
x: t.flip(x, (0,))
x: t.roll(x, 1, 0)
x: t.roll(x, 1)
x y: t.cat([x, y])
x: t.cat((x, w), 0)
x y: t.cat([x, y], dim=-1)
v: t.stack([v, z, v], 1)
s: t.stack([s, s])
x: t.stack(x.unbind(1))
x: t.cat(x.split(2, 1), 0)
x: x.split([1, 3], dim=1)[1]
x: x.chunk(2, -1)[0]
x: x.select(1, 2)
x: x.narrow(1, 1, 2)
x: x[0]
x: x[..., 1]
x: x[:, 1:3]
x: x[None, 0, ..., None]
x: x[1, 2]
x: x[[0, 2]]
x: x[:, [0, 2, 2]]
x: x[t.tensor([2, 0])]
x: x[[0, 1], [1, 2]]
x i: x[i]
x i: x[0, i]
i: z[i]
x: x.index_select(1, t.tensor([3, 0]))
x i: x.gather(0, i.reshape(1, 3).repeat(1, 2)[:, :4] % 3)
i: F.one_hot(i, 5)
x: x.tril()
x: x.triu(1)
x: x.diagonal()
x: t.einsum('ij,jk->ik', x, w)
x y: t.einsum('ij,kj->ik', x, y)
x: t.einsum('ij->j', x)
x: F.linear(x, w, z)
x v: F.linear(x, w, v)
x y: F.linear(x, y)
x: F.gelu(x)
x: F.leaky_relu(x, 0.2)
x: F.softplus(x)
x: F.layer_norm(x, (4,))
x: F.layer_norm(x, (4,), z, z)
x v: F.layer_norm(x, (4,), v, z)
c: F.conv2d(c, k)
c: F.conv2d(c, k, padding=1, stride=2)
c: F.conv2d(c[0], k)
c v: F.conv2d(c, k[:4], v)
c s: F.conv2d(c, k * s, padding=1)
c s: F.conv2d(c, k[:, :2] * s, groups=2)
s: F.conv2d(c0, k * s)
c: F.max_pool2d(c, 2)
c: F.avg_pool2d(c, 3, 1, 1)
c: F.max_pool2d(c[0], 2)
i: F.embedding(i, w)
c: F.scaled_dot_product_attention(c, c, c)
c s: F.scaled_dot_product_attention(c[0] * s, c[0], c[1], is_causal=True)
x: F.scaled_dot_product_attention(x, x, x)
x: t.linalg.inv(x @ x.T + t.eye(3, dtype=t.float64))
x: t.linalg.eigh(x @ x.T)[0]
x: t.linalg.svd(x, full_matrices=False)[1]
x: t.linalg.slogdet(x @ x.T)[1]
x y: F.mse_loss(x, y)
x y: F.mse_loss(x, y, reduction='sum')
x v: F.huber_loss(x, v.expand(3, 4), reduction='none')
x b: F.binary_cross_entropy_with_logits(x, b.to(x.dtype))
x i: F.cross_entropy(x, i)
x i: F.cross_entropy(x, i, reduction='none')
x i: F.cross_entropy(x, i, label_smoothing=0.1)
x i: F.cross_entropy(x, i, ignore_index=1, reduction='sum')
x i: F.cross_entropy(x[0], i[0])
x i: F.cross_entropy(x, i, weight=z.abs())
x y: F.cosine_similarity(x, y)
x y: F.normalize(x - y)
x: t.linalg.svdvals(x)
x: t.linalg.det(x @ x.T)
x: t.linalg.solve(w + 3 * t.eye(4, dtype=t.float64), x.T)
x y: t.cdist(x, y)
x: t.zeros_like(x) + 1
x: x.new_zeros(3) + x.sum(1)
x: t.ones(3, 4, dtype=t.float64) * x
x: x.to(t.float32)
x: x.double().float()
x: x.clone().detach()
x: x.contiguous()
x: len(x) * x.shape[0] * x.ndim * x.size(1) * x
x: x if float(x.sum()) > 0 else -x
x: sum(row for row in x)
x: t.nn.functional.pad(x, (1, 2))
x: t.vmap(lambda row: row.sum() * row)(x)
x v: t.vmap(t.dot, in_dims=(0, None))(x, v)
x v: t.vmap(lambda a, r: a * r + s0, in_dims=(1, 0), out_dims=1)(x, v)
x y: t.vmap(lambda a: t.vmap(lambda e: (a * e).sum())(y))(x)
v: t.func.grad(lambda a: (a ** 3).sum())(v)
v x: t.func.grad(lambda a: (x @ a).tanh().sum())(v)
x: t.func.grad(lambda a: (x @ a).tanh().sum())(z)
v: t.func.jacrev(lambda a: w @ a * a)(v)
v: t.func.jacfwd(lambda a: w @ a * a)(v)
v: t.func.hessian(lambda a: (a ** 3).sum())(v)
v: t.func.jvp(t.sin, (v,), (z,))[1]
v: t.func.vjp(t.sin, v)[1](v)[0]
v: t.func.grad(lambda a: t.vmap(lambda e: e ** 2)(a).sum())(v)
v: t.func.grad(lambda a: (t.func.grad(lambda e: (e ** 3).sum())(a) * z).sum())(v)
s: t.func.grad(lambda a: a * t.func.grad(lambda e: a * e * e)(a))(s)
"""

BATCH = 3


def values(package):
    rng = np.random.default_rng(4)
    shapes = {"x": (3, 4), "y": (3, 4), "v": (4,), "s": (), "c": (2, 4, 5, 5)}
    made = {name: rng.standard_normal((BATCH, *shape)) for name, shape in shapes.items()}
    made |= {"i": rng.integers(0, 3, (BATCH, 3)), "b": rng.integers(0, 2, (BATCH, 3, 4)).astype(bool)}
    whole = {"w": rng.standard_normal((4, 4)), "z": rng.standard_normal(4), "k": rng.standard_normal((6, 4, 3, 3)), "s0": np.array(0.5),
             "c0": rng.standard_normal((2, 4, 5, 5))}
    return tuple({name: package.tensor(value) for name, value in each.items()} for each in (made, whole))


def function_of(text, package):
    """The names of the arguments, and the function of samples."""
    names, _, body = text.partition(": ")
    names = names.split()
    made = f"lambda {', '.join(names)}: {body}"
    return names, eval(made, {"t": package, "F": package.nn.functional, **values(package)[1]})


def numbers(value):
    if isinstance(value, dict):
        return {name: numbers(each) for name, each in value.items()}
    if isinstance(value, (tuple, list)):
        return [numbers(each) for each in value]
    return value.detach().numpy()


class Comparisons(unittest.TestCase):
    def compare(self, ours, wanted, near=1e-9):
        self.assertEqual(type(ours), type(wanted))
        if isinstance(wanted, dict):
            self.assertEqual(list(ours), list(wanted))
            ours, wanted = list(ours.values()), list(wanted.values())
        if isinstance(wanted, list):
            self.assertEqual(len(ours), len(wanted))
            for x, y in zip(ours, wanted):
                self.compare(x, y, near)
            return
        self.assertEqual((ours.dtype, ours.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_allclose(ours, wanted, rtol=near, atol=near)

    def refuses(self, kind, sentence, function, *args, **kwargs):
        with self.assertRaisesRegex(kind, sentence):
            function(*args, **kwargs)


class Vmap(Comparisons):
    def test_equals_the_function_of_each_sample(self):
        batch, _ = values(tenon)
        for text in SAMPLES.strip().splitlines():
            with self.subTest(text):
                names, function = function_of(text, tenon)
                args = [batch[name] for name in names]
                ours = tenon.vmap(function)(*args)
                each = [numbers(function(*[arg[i] for arg in args])) for i in range(BATCH)]
                if isinstance(each[0], list):
                    self.compare(numbers(ours), [np.stack(parts) for parts in zip(*each)])
                else:
                    self.compare(numbers(ours), np.stack(each))
                dims = [arg.ndim - 1 for arg in args]  # the batch last, and the results too
                last = tenon.vmap(function, in_dims=tuple(dims), out_dims=-1)(*[arg.movedim(0, -1) for arg in args])
                self.compare(numbers(last), [np.moveaxis(a, 0, -1) for a in numbers(ours)] if isinstance(each[0], list) else np.moveaxis(numbers(ours), 0, -1))

    def test_gradients_pass_through(self):
        batch, _ = values(tenon)
        for text in SAMPLES.strip().splitlines():
            names, function = function_of(text, tenon)
            args = [batch[name] for name in names]
            floats = [arg for arg in args if arg.is_floating_point()]

            def gradients(call):
                given = {id(arg): arg.detach().requires_grad_() for arg in floats}
                results = call(*[given.get(id(arg), arg) for arg in args])
                results = results if isinstance(results, (tuple, list)) else [results]
                total = sum((each.to(tenon.f64) * 1.5).sum() for each in results if each.requires_grad)
                return tenon.autograd.grad(total, list(given.values()), allow_unused=True) if isinstance(total, tenon.Tensor) else None

            def loop(*args):
                results = [function(*[arg[i] for arg in args]) for i in range(BATCH)]
                return [tenon.stack(list(part)) for part in zip(*results)] if isinstance(results[0], (tuple, list)) else tenon.stack(results)
            with self.subTest(text):
                ours, wanted = gradients(tenon.vmap(function)), gradients(loop)
                self.assertEqual(ours is None, wanted is None)
                for mine, other in zip(ours or (), wanted or ()):
                    if other is not None:
                        self.compare(numbers(mine), numbers(other))

    def test_rules_compute_all_samples_with_one_op(self):
        def by_sample(*_):
            raise AssertionError("the op ran once per sample")
        batch, _ = values(tenon)
        kept, _batching_rules.for_each_sample = _batching_rules.for_each_sample, by_sample
        _batching.for_each_sample = by_sample
        try:
            for text in ("x v: x * v", "x: x.sum(0)", "x v: x @ v", "x: F.linear(x, w, z)", "x i: F.cross_entropy(x, i)", "c: F.conv2d(c, k)", "x: x[:, 1:3]", "c s: F.conv2d(c, k[:, :2] * s, groups=2)",
                         "c: F.max_pool2d(c, 2)", "x v: F.layer_norm(x, (4,), v, z)", "x: t.einsum('ij,jk->ik', x, w)", "x y: t.cat([x, y])", "x: x.max(1)",
                         "x: t.softmax(x, 0)", "x: x.reshape(-1)", "x y: F.mse_loss(x, y)", "v: t.func.grad(lambda a: (a ** 3).sum())(v)"):
                names, function = function_of(text, tenon)
                runs = []
                tenon.vmap(lambda *args: runs.append(1) or function(*args))(*[batch[name] for name in names])
                self.assertEqual(len(runs), 1, text)
        finally:
            _batching_rules.for_each_sample = _batching.for_each_sample = kept

    def test_every_op_with_its_example(self):
        """The example of each op, with a batch of each choice of its tensors."""
        count = 0
        for name in dir(tenon._tenon):
            op = getattr(tenon._tenon, name)
            call = isinstance(op, tenon.Op) and re.search(rf">>> tenon\.{re.escape(name)}\((.*)", op.__doc__ or "")
            if not call or name in ("empty_like", "empty_permuted"):
                continue
            try:
                tree = ast.parse(f"f({call[1]}", mode="eval").body
                while not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
                    tree = tree.func.value if isinstance(tree, ast.Call) else tree.value
                args, kwargs = eval(ast.unparse(tree), {"tenon": tenon, "f": lambda *args, **kwargs: (args, kwargs)})
                op(*args, **kwargs)
            except (SyntaxError, NameError, AttributeError):  # the example names values of earlier lines
                continue
            places = [i for i, each in enumerate(args) if isinstance(each, tenon.Tensor)]
            if _batching._is_random(op, args, kwargs) or name.endswith("_"):
                continue
            for chosen in (each for r in range(len(places)) for each in itertools.combinations(places, r + 1)):
                # positive definite matrices stay so, and positions stay inside
                moved = 0.01 if all(each.dtype.is_floating_point for each in args if isinstance(each, tenon.Tensor)) else 0
                batch = [tenon.stack([args[i] + step * moved if moved else args[i] for step in range(3)], 0) for i in chosen]

                def function(*given):
                    return op(*[dict(zip(chosen, given)).get(i, each) for i, each in enumerate(args)], **kwargs)
                with self.subTest(f"{name} {chosen}"):
                    try:
                        wanted = [numbers(function(*[each[i] for each in batch])) for i in range(3)]
                    except (tenon.Error, AttributeError):  # not positive definite; a result that is not a tensor
                        continue
                    ours = numbers(tenon.vmap(function)(*batch))
                    pairs = zip(ours, zip(*wanted)) if isinstance(ours, list) else [(ours, wanted)]
                    for mine, others in pairs:
                        self.compare(mine, np.stack(others), 1e-4)
                    count += 1
        self.assertGreater(count, 500)

    def test_a_tensor_of_rank_0_does_not_widen_others(self):
        x, wide = tenon.ones(3, 4), tenon.ones(3, dtype=tenon.f64)
        self.assertEqual(tenon.vmap(lambda a, b: a * b)(x, wide).dtype, tenon.f32)
        self.assertEqual(tenon.vmap(lambda a, b: a * b)(x[:, 0], wide).dtype, tenon.f64)

    def test_nested_arguments_and_results(self):
        x, y = tenon.randn(3, 4), tenon.randn(4, 3)
        result = tenon.vmap(lambda d, pair, k: {"a": d["x"] + pair[0] * k, "b": [d["x"].sum(), d["n"]]}, in_dims=({"x": 0, "n": None}, (1, None), None))(
            {"x": x, "n": y}, (y, x), 2)
        self.assertEqual((list(result), result["b"][1].shape), (["a", "b"], (3, 4, 3)))
        np.testing.assert_allclose(numbers(result["a"]), numbers(x + y.T * 2), rtol=1e-6)
        first, second = tenon.vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x)
        self.assertEqual((first.shape, second.shape), ((4, 3), (3,)))
        self.assertEqual(tenon.vmap(lambda a: (a, 7), out_dims=(0, None))(x)[1], 7)

    def test_chunks(self):
        x = tenon.randn(7, 4)
        sizes = []

        def function(a, b):
            sizes.append(1)
            return a * b, a.sum()
        wanted = numbers(x * x[0])
        for size in (1, 2, 3, 7, 9):
            ours = tenon.vmap(function, in_dims=(0, None), out_dims=(1, 0), chunk_size=size)(x, x[0])
            np.testing.assert_allclose(numbers(ours[0]), wanted.T)
            np.testing.assert_allclose(numbers(ours[1]), numbers(x.sum(1)), rtol=1e-6)
        self.assertEqual(len(sizes), 7 + 4 + 3 + 1 + 1)

    def test_writing_in_place(self):
        x = tenon.arange(12.0).reshape(3, 4)

        def function(a, b):
            made = tenon.zeros_like(a)
            made[1:3] = b
            made += a
            made[0] = 9
            return made.mul_(2)
        wanted = tenon.stack([function(each, each.sum()) for each in x])
        self.compare(numbers(tenon.vmap(lambda a: function(a, a.sum()))(x)), numbers(wanted))
        self.refuses(RuntimeError, "cannot write into a tensor without the batch axis", tenon.vmap(lambda a: tenon.zeros(4).add_(a)), x)

    def test_random_numbers(self):
        x = tenon.ones(5, 1000)
        drop = lambda a: tenon.nn.functional.dropout(a, 0.5)
        self.refuses(RuntimeError, "randomness error mode", tenon.vmap(drop), x)
        self.refuses(RuntimeError, "randomness error mode", tenon.vmap(lambda a: a + tenon.rand_like(a)), x)
        same, other = tenon.vmap(drop, randomness="same")(x), tenon.vmap(drop, randomness="different")(x)
        self.assertTrue(tenon.equal(same, same[:1].expand(5, 1000)))
        self.assertFalse(tenon.equal(other[0], other[1]))
        captured = tenon.vmap(lambda a: a + tenon.rand(3), randomness="different")(x[:, :1])
        self.assertFalse(tenon.equal(captured[0], captured[1]))
        captured = tenon.vmap(lambda a: a + tenon.rand(3), randomness="same")(x[:, :1])
        self.assertTrue(tenon.equal(captured[0], captured[1]))
        tenon.vmap(lambda a: tenon.nn.functional.dropout(a, 0.5, training=False))(x)

    def test_empty_batches(self):
        self.assertEqual(tenon.vmap(lambda a: a * 2)(tenon.ones(0, 4)).shape, (0, 4))

    def test_compiled_functions(self):
        w = tenon.randn(4, 4)
        mapped = tenon.vmap(lambda a: tenon.tanh(a @ w).sum())
        compiled = tenon.compile(mapped)
        for _ in range(4):
            x = tenon.randn(3, 4)
            np.testing.assert_allclose(numbers(compiled(x)), numbers(mapped(x)), rtol=1e-5)

    def test_errors(self):
        x, identity = tenon.ones(2), lambda a: a
        self.refuses(ValueError, "expected `in_dims` to be int or a", tenon.vmap(identity, in_dims=None), x)
        self.refuses(ValueError, "Expected at least one Tensor to vmap over", tenon.vmap(identity, in_dims=(None,)), x)
        self.refuses(ValueError, "in_dims is not compatible with the structure", tenon.vmap(identity, in_dims=(0, 0)), x)
        self.refuses(ValueError, "cannot vmap over non-Tensor arguments", tenon.vmap(identity), 3.0)
        self.refuses(ValueError, "-1 <= in_dim < 1", tenon.vmap(identity, in_dims=2), x)
        self.refuses(ValueError, "must only return Tensors, got type <class 'int'>", tenon.vmap(lambda a: 3), x)
        self.refuses(ValueError, "out_dims is not compatible", tenon.vmap(identity, out_dims=(0, 0)), x)
        self.refuses(IndexError, "out_dim 3 is out of range", tenon.vmap(identity, out_dims=3), x)
        self.refuses(ValueError, "when out_dim is None", tenon.vmap(identity, out_dims=None), x)
        self.refuses(RuntimeError, "Got z", tenon.vmap, identity, randomness="z")
        self.refuses(ValueError, "chunk_size", tenon.vmap, identity, chunk_size=0)
        self.refuses(ValueError, "got no inputs", tenon.vmap(identity))
        self.refuses(ValueError, r"same size in the mapped dimension, got sizes \[2, 3\]", tenon.vmap(lambda a, b: a), x, tenon.ones(3))
        self.refuses(KeyError, "nothing", tenon.vmap(lambda a: {}["nothing"]), x)


@WITH_TORCH
class AgainstPyTorch(Comparisons):
    def test_vmap(self):
        for text in SAMPLES.strip().splitlines():
            with self.subTest(text):
                results = []
                for package in (torch, tenon):
                    names, function = function_of(text, package)
                    batch = values(package)[0]
                    try:
                        results.append(numbers(package.vmap(function)(*[batch[name] for name in names])))
                    except RuntimeError:  # PyTorch's vmap has no rule, or needs values in Python
                        if package is tenon:
                            raise
                        break
                else:
                    self.compare(results[1], results[0])

    DERIVATIVES = """
    f.grad(lambda x: (x ** 3).sum())(v)
    f.grad(lambda x, y: (x * y.tanh()).sum(), argnums=1)(v, u)
    f.grad(lambda x, y: (x * y.tanh()).sum(), argnums=(0, 1))(v, u)
    f.grad(lambda x, y: (x * y.tanh()).sum(), argnums=(-1,))(v, u)
    f.grad(lambda d: (d['a'] * d['b'][0]).sum())({'a': v, 'b': [u, u]})
    f.grad(lambda x: ((x * x).sum(), x * 2), has_aux=True)(v)
    f.grad_and_value(lambda x: (x ** 3).sum())(v)
    f.grad_and_value(lambda x: ((x ** 3).sum(), {'y': x}), has_aux=True)(v)
    f.grad(lambda x: u.sum())(v)
    f.grad(lambda x, k: (x * k).sum())(v, k=3.0)
    f.grad(f.grad(f.grad(lambda x: x ** 5)))(v[0])
    f.vjp(lambda x: (x.sin(), m @ x), v)[0]
    f.vjp(lambda x: (x.sin(), m @ x), v)[1]((u, u))
    f.vjp(lambda x, y: x * y, v, u)[1](u)
    f.vjp(lambda x: (x * x, x), v, has_aux=True)[2]
    f.jvp(lambda x, y: (x * y, m @ x), (v, u), (u, v))
    f.jvp(lambda x: (x * x, x), (v,), (u,), has_aux=True)
    f.jvp(lambda x: u * 2, (v,), (u,))
    f.jacrev(lambda x: m @ x * x)(v)
    f.jacfwd(lambda x: m @ x * x)(v)
    f.jacrev(lambda x, y: {'p': x * y, 'q': [x.sum(), y.outer(x)]}, argnums=(0, 1))(v, u)
    f.jacfwd(lambda x, y: {'p': x * y, 'q': [x.sum(), y.outer(x)]}, argnums=(0, 1))(v, u)
    f.jacrev(lambda x: (x.sin(), x.cos()), has_aux=True)(v)
    f.jacfwd(lambda x: (x.sin(), x.cos()), has_aux=True)(v)
    f.jacrev(f.jacrev(lambda x: (x ** 3).sum() * x))(v)
    f.jacfwd(f.jacrev(lambda x: (x ** 3).sum()))(v)
    f.hessian(lambda x, y: (x ** 2 * y.sin()).sum(), argnums=(0, 1))(v, u)
    f.jacrev(lambda x: u)(v)
    a.jacobian(lambda x: m @ x, v)
    a.jacobian(lambda x, y: (x * y, y.sum()), (v, u))
    a.jacobian(lambda x, y: x * y, (v, u), strategy='forward-mode', vectorize=True)
    a.jacobian(lambda x: x.exp(), (v,))
    a.hessian(lambda x: (x ** 3).sum(), v)
    a.hessian(lambda x, y: (x ** 2 * y.sin()).sum().reshape(1), (v, u))
    a.vjp(lambda x: x.sin(), v, u)
    a.vjp(lambda x, y: ((x * y).sum(), x), (v, u), (v[0], v))
    a.vjp(lambda x: x.sum(), v)
    a.jvp(lambda x, y: x * y, (v, u), (u, u))
    a.jvp(lambda x: x.sin(), v[0])
    a.vhp(lambda x: (x ** 3).sum(), v, u)
    a.hvp(lambda x, y: (x ** 2 * y.sin()).sum(), (v, u), (u, v))
    """

    def names(self, package):
        rng = np.random.default_rng(9)
        return {"t": package, "f": package.func, "a": package.autograd.functional,
                **{name: package.tensor(rng.standard_normal(shape)) for name, shape in (("v", 4), ("u", 4), ("m", (4, 4)))}}

    def test_derivatives(self):
        for text in self.DERIVATIVES.split("\n"):
            if not text.strip():
                continue
            with self.subTest(text.strip()):
                ours, wanted = (eval(text.strip(), self.names(package)) for package in (tenon, torch))
                self.compare(numbers(ours), numbers(wanted))
                self.assertFalse(any(each.requires_grad for each in leaves(ours)))

    REFUSED = """
    f.grad(lambda x: x)(v)
    f.grad(lambda x: 3)(v)
    f.grad(lambda x: x.sum(), argnums=2)(v)
    f.grad(lambda x: x.sum())(t.tensor([1, 2]))
    f.grad(lambda x: x.sum(), has_aux=True)(v)
    f.vjp(lambda x: 3, v)
    f.vjp(lambda x: (x, x), v)[1](v)
    f.vjp(lambda x: x, v)[1](u[:2])
    f.jvp(t.sin, v, v)
    f.jvp(t.sin, (v,), (v[:2],))
    f.jvp(t.sin, (v,), ())
    f.jacrev(lambda x: 3.0)(v)
    f.stack_module_state([])
    f.stack_module_state([t.nn.Linear(2, 2), t.nn.ReLU()])
    f.stack_module_state([t.nn.Linear(2, 2), t.nn.Linear(2, 2).eval()])
    f.functional_call(t.nn.Linear(2, 2), {'weight': m}, v, strict=True)
    f.functional_call(t.nn.Linear(2, 2), [3], v)
    f.functional_call(t.nn.Linear(2, 2), ({'weight': m}, {'weight': m}), v)
    a.jacobian(lambda x: 3, v)
    a.jacobian(t.sin, 3)
    a.jacobian(lambda x: u, v, strict=True)
    a.jacobian(t.sin, v, strategy='best')
    a.hessian(t.sin, v)
    a.vjp(t.sin, v)
    a.vjp(t.sin, v, v[:2])
    a.jvp(t.sin, v)
    a.hvp(lambda x: x.sum(), v, (v, v))
    t.autograd.gradcheck(t.sin, v)
    """

    def test_both_refuse(self):
        for text in self.REFUSED.split("\n"):
            if not text.strip():
                continue
            with self.subTest(text.strip()):
                kinds = []
                for package in (torch, tenon):
                    with self.assertRaises(Exception) as caught:
                        eval(text.strip(), self.names(package))
                    kinds.append(caught.exception)
                self.assertIsInstance(kinds[1], type(kinds[0]), f"{kinds}")

    def test_create_graph(self):
        for name, call in {"jacobian": lambda p, x: p.autograd.functional.jacobian(lambda y: y ** 3, x, create_graph=True),
                           "hessian": lambda p, x: p.autograd.functional.hessian(lambda y: (y ** 4).sum(), x, create_graph=True),
                           "vjp": lambda p, x: p.autograd.functional.vjp(lambda y: y ** 3, x, x.detach(), create_graph=True)[1],
                           "hvp": lambda p, x: p.autograd.functional.hvp(lambda y: (y ** 4).sum(), x, x.detach(), create_graph=True)[1],
                           "func": lambda p, x: p.func.jacrev(lambda y: y ** 3)(x)}.items():
            with self.subTest(name):
                found = []
                for package in (tenon, torch):
                    x = package.tensor([1.0, 2.0, -3.0], dtype=package.float64, requires_grad=True)
                    call(package, x).sum().backward()
                    found.append(numbers(x.grad))
                self.compare(*found)

    def test_per_sample_gradients_of_a_module(self):
        found = []
        state = None
        for package in (tenon, torch):
            nn, F = package.nn, package.nn.functional
            net = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3)).double()
            if state is None:
                state = {name: numbers(value) for name, value in net.state_dict().items()}
            net.load_state_dict({name: package.tensor(value) for name, value in state.items()})
            rng = np.random.default_rng(1)
            x, y = package.tensor(rng.standard_normal((5, 1, 6, 6))), package.tensor(rng.integers(0, 3, 5))
            params = {name: each.detach() for name, each in net.named_parameters()}

            def loss(params, x, y):
                return F.cross_entropy(package.func.functional_call(net, params, (x[None],)), y[None])
            gradients = package.vmap(package.func.grad(loss), in_dims=(None, 0, 0))(params, x, y)
            found.append({name: numbers(gradients[name]) for name in sorted(gradients)})
            self.assertFalse(any(each.requires_grad for each in gradients.values()))
        self.compare(*found)


def leaves(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [each for part in value for each in leaves(part)] if isinstance(value, (tuple, list)) else [value] if hasattr(value, "requires_grad") else []


class Functional(Comparisons):
    def test_captured_parameters_receive_gradients(self):
        net = tenon.nn.Linear(3, 1)
        x = tenon.randn(3)
        slope = tenon.func.grad(lambda a: net(a).tanh().sum())(x)
        slope.square().sum().backward()
        wanted = net.weight.grad
        net.weight.grad = None
        y = x.requires_grad_()
        tenon.autograd.grad(net(y).tanh().sum(), y, create_graph=True)[0].square().sum().backward()
        self.compare(numbers(wanted), numbers(net.weight.grad))

    def test_inner_derivatives_keep_the_tensors_of_outer_ones(self):
        class Held:
            def __init__(self, value, depth):
                self.held = Held(value, depth - 1) if depth else value

        def outer(x):
            deep = Held(x, 9)

            def inner(y):
                found = deep
                while isinstance(found, Held):
                    found = found.held
                return found ** 2 * y ** 2
            return tenon.func.grad(inner)(tenon.tensor(3.0))
        self.assertEqual(float(tenon.func.grad(outer)(tenon.tensor(2.0))), 24)  # d/dx of 2 x^2 y

    def test_no_grad_gives_plain_results(self):
        x = tenon.ones(2, requires_grad=True)
        with tenon.no_grad():
            self.assertFalse(tenon.func.grad(lambda a: (a ** 2).sum())(x).requires_grad)
        self.assertTrue(tenon.func.grad(lambda a: (a ** 2).sum())(x).requires_grad)

    def test_an_ensemble(self):
        models = [tenon.nn.Sequential(tenon.nn.Linear(3, 4), tenon.nn.Tanh(), tenon.nn.Linear(4, 2)) for _ in range(3)]
        params, buffers = tenon.func.stack_module_state(models)
        x = tenon.randn(5, 3)
        self.assertTrue(params["0.weight"].is_leaf and params["0.weight"].requires_grad)
        ours = tenon.vmap(lambda p, b, x: tenon.func.functional_call(models[0], (p, b), (x,)), in_dims=(0, 0, None))(params, buffers, x)
        self.compare(numbers(ours), np.stack([numbers(model(x)) for model in models]), 1e-5)

    def test_functional_call_restores_the_module(self):
        net = tenon.nn.BatchNorm1d(2)
        weight, mean = net.weight, net.running_mean
        with self.assertRaises(ValueError):
            tenon.func.functional_call(net, {"weight": tenon.zeros(2), "running_mean": tenon.ones(2)}, tenon.ones(()))
        self.assertIs(net.weight, weight)
        self.assertIs(net.running_mean, mean)

    def test_compiled_functional_calls_record_once_and_follow_changes(self):
        nn = tenon.nn
        net = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 2))
        params = {name: tenon.randn(each.shape) for name, each in net.named_parameters()}
        call = lambda x: tenon.func.functional_call(net, params, (x,))
        compiled, x = tenon.compile(call), tenon.randn(3, 4)
        for _ in range(4):
            compiled(x)
        self.assertEqual(compiled.stats()["recordings"], 1)
        for change in (net.eval, lambda: net.__setitem__(1, nn.Tanh()), lambda: params.update({"0.bias": tenon.ones(4) * 9}),
                       lambda: net[0].register_forward_hook(lambda module, args, result: result * 2), lambda: params.pop("2.bias"),
                       lambda: setattr(net[2], "bias", nn.Parameter(tenon.ones(2)))):
            change()
            self.compare(numbers(compiled(x)), numbers(call(x)), 1e-5)
            self.compare(numbers(compiled(x)), numbers(call(x)), 1e-5)

    def test_tied_weights(self):
        net = tenon.nn.Sequential(tenon.nn.Linear(2, 2, bias=False), tenon.nn.Linear(2, 2, bias=False))
        net[1].weight = net[0].weight
        x, eye = tenon.ones(2), tenon.eye(2)
        self.assertEqual(tenon.func.functional_call(net, {"0.weight": eye * 2}, x).tolist(), [4, 4])
        loose = tenon.func.functional_call(net, {"0.weight": eye * 2}, x, tie_weights=False)
        self.compare(numbers(loose), numbers(net[1](x * 2)))
        self.refuses(ValueError, "tied", tenon.func.functional_call, net, {"0.weight": eye, "1.weight": eye * 2}, x)

    def test_gradcheck(self):
        x, w = (tenon.rand(*shape, dtype=tenon.f64).requires_grad_() for shape in ((3,), (3, 2)))
        self.assertTrue(tenon.autograd.gradcheck(lambda a, b: (tenon.tanh(a @ b), a.sum()), (x, w), check_forward_ad=True))
        self.assertTrue(tenon.autograd.gradgradcheck(lambda a, b: tenon.tanh(a @ b), (x, w)))

        class Wrong(tenon.autograd.Function):
            @staticmethod
            def forward(ctx, a):
                return a * 2

            @staticmethod
            def backward(ctx, gradient):
                return gradient * 3
        self.refuses(RuntimeError, "Jacobian mismatch for output 0 with respect to input 0", tenon.autograd.gradcheck, Wrong.apply, x)
        self.assertFalse(tenon.autograd.gradcheck(Wrong.apply, x, raise_exception=False))
        with self.assertWarnsRegex(UserWarning, "not a double precision"):
            tenon.autograd.gradcheck(tenon.sin, tenon.ones(2, requires_grad=True), eps=1e-2, atol=1e-1)


if __name__ == "__main__":
    unittest_report.main()
