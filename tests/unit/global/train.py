"""A small transformer trains on every rank of a launch, in the ways that a cluster knows: the losses equal those of one process.

usage: train.py, under ranks.py. Every way is written with to_global alone: it says how data, parameters and the states of the
optimiser are spread, and where the stages of a pipeline are."""

import shutil
import sys
import tempfile
import unittest

import numpy as np
import tenon
from tenon.global_ import load, micro_batches, placement, rank, save, sbp, world_size

WORDS, WIDTH, HEADS, LENGTH, BATCH, STEPS = 17, 16, 4, 6, 8, 6
B, P, S0, S1 = sbp.broadcast, sbp.partial_sum, sbp.split(0), sbp.split(1)


def parameters():
    random = np.random.default_rng(7)
    shapes = {"words": (WORDS, WIDTH), "places": (LENGTH, WIDTH)}
    for i in range(2):
        shapes |= {f"{i}.norm": (WIDTH,), f"{i}.query": (WIDTH, WIDTH), f"{i}.key": (WIDTH, WIDTH), f"{i}.value": (WIDTH, WIDTH),
                   f"{i}.out": (WIDTH, WIDTH), f"{i}.norm2": (WIDTH,), f"{i}.up": (WIDTH, 4 * WIDTH), f"{i}.down": (4 * WIDTH, WIDTH)}
    made = {name: random.normal(0, 0.3, shape) for name, shape in shapes.items()}
    return {name: (np.abs(value) if "norm" in name else value) for name, value in made.items()}


def batches():
    random = np.random.default_rng(8)
    for _ in range(STEPS):
        words = random.integers(0, WORDS, (BATCH, LENGTH + 1))
        yield words[:, :-1].copy(), words[:, 1:].copy()


def heads_of(x):
    return x.reshape([-1, LENGTH, HEADS, WIDTH // HEADS]).permute([0, 2, 1, 3])


def block(x, p, i):
    h = tenon.rms_norm(x, [WIDTH], p[f"{i}.norm"])
    query, key, value = (heads_of(h @ p[f"{i}.{name}"]) for name in ("query", "key", "value"))
    seen = tenon.scaled_dot_product_attention(query, key, value, is_causal=True)
    x = x + seen.permute([0, 2, 1, 3]).reshape([-1, LENGTH, WIDTH]) @ p[f"{i}.out"]
    h = tenon.rms_norm(x, [WIDTH], p[f"{i}.norm2"])
    return x + tenon.gelu(h @ p[f"{i}.up"]) @ p[f"{i}.down"]


def loss_of(words, wanted, p, between, head):
    x = tenon.embedding(p["words"], words) + p["places"]
    x = block(between(block(x, p, 0)), p, 1) @ head(p["words"]).t()
    return tenon.cross_entropy(x.reshape([-1, WORDS]), wanted.reshape([-1]))


def same(value):
    return value


def train(parameter=lambda name, value: value, data=same, wanted=None, between=same, head=same, state=same, compiles=False,
          parts=None):
    """The loss of each step, by momentum, where this rank has it; and the parameters. The functions say where tensors go."""
    p = {name: parameter(name, tenon.tensor(value)).detach().requires_grad_() for name, value in parameters().items()}
    moments = {name: state(tenon.zeros_like(value.detach())) for name, value in p.items()}

    def step(words, labels):
        def loss_of_rows(words, labels):
            return loss_of(words, labels, p, between, head)

        if parts:
            loss = micro_batches(loss_of_rows, words, labels, count=parts)
        else:
            loss = loss_of_rows(words, labels)
            loss.backward()
        with tenon.no_grad():
            for name, value in p.items():
                moments[name].mul_(0.9).add_(value.grad)
                value.sub_(moments[name] * 0.1)
                value.grad = None
        return loss

    call = tenon.compile(step, fuse=compiles == "fused" or None) if compiles else step
    losses = []
    for words, labels in batches():
        loss = call(data(tenon.tensor(words)), (wanted or data)(tenon.tensor(labels)))
        losses.append(loss.item() if not loss.is_global or loss.placement.here else None)
    return losses, p


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.all = placement("cpu")
        cls.losses, cls.trained = train()

    def same(self, compiled=(True,), **ways):
        for compiles in (False, *compiled):
            losses, trained = train(**ways, compiles=compiles)
            np.testing.assert_allclose(losses, self.losses, rtol=1e-9)
            for name, value in trained.items():
                whole = value.detach().to_global(self.all, B)
                np.testing.assert_allclose(whole.to_local().numpy(), self.trained[name].detach().numpy(), rtol=1e-7, atol=1e-9)

    def test_it_learns(self):
        self.assertLess(self.losses[-1], self.losses[0])

    def everywhere(self, _, value):
        return value.to_global(self.all, B)

    def rows(self, value):
        return value.to_global(self.all, B).to_global(sbp=S0)

    def test_data_parallel(self):
        self.same(parameter=self.everywhere, data=self.rows, compiled=("fused",))

    def test_states_of_the_optimiser_are_split(self):
        self.same(parameter=self.everywhere, data=self.rows, state=lambda value: value.to_global(sbp=S0), compiled=())

    def test_tensor_parallel(self):
        def parameter(name, value):
            kind = name.partition(".")[2]
            spread = S1 if kind in ("query", "key", "value", "up") else S0 if kind in ("out", "down") else B
            return value.to_global(self.all, B).to_global(sbp=spread)
        self.same(parameter=parameter, data=lambda value: value.to_global(self.all, B))

    def test_every_parameter_is_split(self):
        self.same(parameter=lambda _, value: value.to_global(self.all, B).to_global(sbp=S0), data=self.rows, compiled=())

    def test_pipeline(self):
        first, last = placement("cpu", [0]), placement("cpu", [world_size() - 1])

        def on(stage):
            return lambda value: value.to_global(stage, B)

        # The words' vectors are in the first stage, and the last one needs them too.
        for compiles, parts in ((False, None), (True, None), (False, 3), (True, 3)):
            losses, _ = train(parameter=lambda name, value: on(last if name.startswith("1.") else first)(value), data=on(first),
                              wanted=on(last), between=on(last), head=on(last), compiles=compiles, parts=parts)
            if rank() == world_size() - 1:
                np.testing.assert_allclose(losses, self.losses, rtol=1e-9)

    def test_pipeline_of_groups(self):
        if world_size() < 4:
            self.skipTest("two stages of two ranks")
        first, last = placement("cpu", [0, 1]), placement("cpu", [2, 3])

        def rows_on(stage):
            return lambda value: value.to_global(stage, B).to_global(sbp=S0)

        def parameter(name, value):
            return value.to_global(last if name.startswith("1.") else first, B)

        for compiles in (False, True):
            losses, _ = train(parameter=parameter, data=rows_on(first), wanted=rows_on(last), between=lambda x: x.to_global(last, S0),
                              head=lambda value: value.to_global(last, B), compiles=compiles, parts=2)
            if last.here:
                np.testing.assert_allclose(losses, self.losses, rtol=1e-9)

    def test_micro_batches_of_each_rank(self):
        self.same(parameter=self.everywhere, data=self.rows, parts=2)


class Modules(unittest.TestCase):
    def test_a_module_is_spread(self):
        everyone = placement("cpu")
        x = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)

        def trained(spread, compiles=False):
            tenon.manual_seed(3)
            net = tenon.nn.Sequential(tenon.nn.Linear(8, 12), tenon.nn.GELU(), tenon.nn.LayerNorm(12), tenon.nn.Linear(12, 4))
            batch = tenon.tensor(x)
            if spread is not None:
                net.to_global(everyone, spread)
                batch = batch.to_global(everyone, B).to_global(sbp=S0)
            optimiser = tenon.optim.AdamW(net.parameters(), lr=0.05, capturable=True)
            optimiser.prepare()

            def step(data):
                loss = (net(data) ** 2).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                return loss

            call = tenon.compile(step) if compiles else step
            for _ in range(5):
                loss = call(batch)
            return loss.item(), [p.detach().numpy() for p in net.parameters()]

        loss, parameters = trained(None)
        for spread in (B, S0, lambda name, tensor: S1 if tensor.ndim == 2 and name.startswith("3.") else B):
            for compiles in (False, True) if spread is S0 else (False,):
                got, others = trained(spread, compiles)
                self.assertAlmostEqual(got, loss, delta=1e-5 * abs(loss))
                for one, other in zip(parameters, others):
                    np.testing.assert_allclose(other, one, rtol=2e-4, atol=1e-5)


class Checkpoints(unittest.TestCase):
    """In one launch; launches of other ranks: checkpoint_launches_test.py."""

    def setUp(self):
        self.all = placement("cpu")
        made = [tempfile.mkdtemp() if rank() == 0 else ""]
        letters = tenon.tensor(np.frombuffer(made[0].ljust(256).encode(), np.uint8).copy()) if rank() == 0 else tenon.zeros(256, dtype=tenon.uint8)
        first = letters.to_global(self.all, sbp.split(0))[:256].numpy()
        self.folder = bytes(first).decode().strip()

    def tearDown(self):
        tenon.ones(1).to_global(self.all, P).item()  # waits until all ranks have come so far
        if rank() == 0:
            shutil.rmtree(self.folder)

    def test_a_state_comes_back(self):
        def made(spread, seed):
            tenon.manual_seed(seed)
            net = tenon.nn.Sequential(tenon.nn.Linear(3, 5), tenon.nn.BatchNorm1d(5))
            return net.to_global(self.all, lambda _, tensor: spread if tensor.ndim else B) if spread else net

        def state_of(net):
            return {"net": net, "more": {"list": [1, 2.5, None], "grows": [], "groups": [{"betas": (0.5, 1)}], "mixed": (1, tenon.zeros(1)), "pair": (True, "text"), "tensor": tenon.zeros(2)}, 3: "three"}

        net = made(S0, 1)
        state = state_of(net)
        state["more"]["list"][1] = 7.5
        state["more"]["grows"] += [1, 2]
        state["more"]["groups"][0]["betas"] = 0.25, 3
        state["more"]["mixed"] = 9, tenon.ones(1)
        state["more"]["tensor"] = tenon.tensor(np.array([4, 5], np.float32))
        save(state, self.folder + "/x")
        for spread in (None, S0, B):
            other = made(spread, 2)
            found = state_of(other)
            held = found["more"]["tensor"]
            weight = other[0].weight
            self.assertEqual(load(found, self.folder + "/x"), [])
            self.assertIs(other[0].weight, weight)
            self.assertEqual(found["more"]["list"], [1, 7.5, None])
            self.assertEqual((found["more"]["grows"], found["more"]["groups"]), ([1, 2], [{"betas": (0.25, 3)}]))
            self.assertEqual((found["more"]["mixed"][0], found["more"]["mixed"][1].tolist()), (9, [1]))
            self.assertEqual((found["more"]["pair"], found[3]), ((True, "text"), "three"))
            self.assertEqual(held.tolist(), [4, 5])
            for name, value in other.state_dict().items():
                np.testing.assert_array_equal(value.numpy(), net.state_dict()[name].numpy())
                self.assertEqual(value.is_global, spread is not None)
        self.assertEqual(load({"net": made(S0, 3)}, self.folder + "/x"), ["more.mixed.1", "more.tensor"])

    def test_a_file_of_one_process(self):
        path = self.folder + "/net.safetensors"
        tenon.manual_seed(4)
        net = tenon.nn.Linear(4, 3)
        if rank() == 0:
            tenon.save(net.state_dict(), path, metadata={"epoch": "7"})
        tenon.ones(1).to_global(self.all, P).item()
        for read in (lambda other: self.assertEqual(load(other, path), []), lambda other: other.load_state_dict(tenon.load(path))):
            other = tenon.nn.Linear(4, 3).to_global(self.all, S0)
            read(other)
            np.testing.assert_array_equal(other.weight.detach().numpy(), net.weight.detach().numpy())
            self.assertEqual(other.weight.sbp, (S0,))
        state = {"epoch": 0}
        load(state, path)
        self.assertEqual(state, {"epoch": 7})

    def test_nonsense(self):
        path = self.folder + "/x"
        x = tenon.zeros(2, 3)
        save({"x": x, "n": 1, "t": "text"}, path)
        for wrong, kind, text in ((lambda: save(x, path), TypeError, "an object with a state_dict"), (lambda: save({"x": {1}}, path), TypeError, "'x' is a set"),
                                  (lambda: save({"a": {"b": x}, "a.b": x}, path), ValueError, "two objects have the name 'a.b'"),
                                  (lambda: load({"x": tenon.zeros(3, 2)}, path), tenon.InvalidArgument, r"'x' is f32 \[2, 3\] in .*, but the tensor to fill is f32 \[3, 2\]"),
                                  (lambda: load({"y": 1}, path), tenon.NotFound, "the text 'y' was requested"),
                                  (lambda: load({"x": 1}, path), tenon.NotFound, "the text 'x' was requested, .* has a tensor"),
                                  (lambda: load({"n": x}, path), tenon.NotFound, "the tensor 'n' was requested, .* has a text"),
                                  (lambda: load({"x": x}, self.folder + "/nothing"), tenon.NotFound, "There is no file"),
                                  (lambda: tenon.compile(lambda: save({"x": x}, path) or x)(), tenon.Error, "a compiled function cannot")):
            with self.assertRaisesRegex(kind, text):
                wrong()


class Habits(unittest.TestCase):
    def test_members(self):
        everyone = placement("cpu")
        x = tenon.tensor(np.ones((2, 3))).to_global(everyone, S0)
        self.assertTrue(x.is_global)
        self.assertEqual(x.shape, (2 * world_size(), 3))
        self.assertEqual(x.sbp, (S0,))
        self.assertEqual(x.placement, everyone)
        self.assertEqual(repr(x.sbp), "(S(0),)")
        self.assertEqual(repr(everyone), f"tenon.placement(cpu {list(range(world_size()))})")
        self.assertEqual(repr(x), f"tensor([{2 * world_size()}, 3], dtype={tenon.f64!r}, placement={everyone!r}, sbp=(S(0),))")
        self.assertEqual(x.sum().item(), 6 * world_size())
        self.assertFalse(tenon.ones(2).is_global)
        zeros = tenon.global_.zeros(4, 3, placement=everyone, sbp=S1)
        self.assertEqual((zeros.shape, zeros.sbp), ((4, 3), (S1,)))
        grid = placement("cpu", [[each] for each in range(world_size())])
        self.assertEqual((grid.grid, grid.ranks), ((world_size(), 1), list(range(world_size()))))
        self.assertEqual(x.to_global(grid, [B, P]).sbp, (B, P))

    def test_nonsense(self):
        everyone = placement("cpu")
        for wrong, text in ((lambda: tenon.ones(2).to_global(), "a local tensor needs a placement"),
                            (lambda: tenon.ones(2).sbp, "is local"),
                            (lambda: placement("cpu", [[0], []]), "rows of one length"),
                            (lambda: sbp.split(-1), "is not an SBP"),
                            (lambda: tenon.ones(2).to_global(everyone, S1), "no axis 1 to split"),
                            (lambda: tenon.ones(2).to_global(everyone, B) + tenon.ones(2), "a local tensor of shape"),
                            (lambda: tenon.global_.to_local(3), "is not a Tensor")):
            with self.assertRaisesRegex(Exception, text):
                wrong()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
