"""Ops whose indices and lengths are tensors, and random ones, against PyTorch."""

import numpy as np
import torch
import torch.nn.functional as F

from numpy_composites import as_torch
from numpy_runner import Call, Dtype, Keep, OpTest, Ref, Refused, random, run, some


def put(x, indices, values, accumulate=False):
    result = torch.from_numpy(x.copy())
    result.index_put_(tuple(as_torch(i if i.dtype == bool else i.astype(np.int64)) for i in indices), as_torch(values), accumulate)
    return result.numpy()


class Parts(OpTest):
    def put(self, x, indices, values, *accumulate):
        self.check(put(x, indices, values, *accumulate), "index_put", x, indices, values, *accumulate)

    def test_index_put(self):
        x = some(4, 5, 3)
        rows, columns = np.array([3, 0, -2]), np.array([[1], [4]])
        self.put(x, (rows,), some(3, 5, 3))
        self.put(x, (rows, columns), some(2, 3, 3))
        self.put(x, (rows, columns, np.array([2, 0, 1])), some(2, 3))
        self.put(x, (np.array([1, 1, 1, 3]),), some(4, 5, 3), True)
        self.put(x, (np.array([1, 1]), np.array([2, 2])), some(2, 3), True)
        self.put(x, (rows.astype(np.int32),), np.asarray(np.float32(7)))
        self.put(some(4, 5, dtype=np.int64), (rows,), some(5, dtype=np.int64), True)
        self.put(x, (np.zeros(0, np.int64),), np.zeros((0, 5, 3), np.float32))
        self.refused("index_put: 4 axes are indexed, but a tensor of shape [4, 5, 3] has 3.", "index_put", x, (rows,) * 4, some(3))
        self.refused("index_put: a tensor of f32 is neither a mask nor positions.", "index_put", x, (some(2),), some(2, 5, 3))
        self.refused("index_put: indices must have at least one tensor.", "index_put", x, (), some(3))
        with self.assertRaisesRegex(Refused, "index"):
            run("index_put", x, (np.array([4]),), some(5, 3))
        with self.assertRaisesRegex(Refused, r"\[2\].*\[3\]"):
            run("index_put", x, (np.array([0, 1]), np.array([0, 1, 2])), some(3))

    def test_index_put_of_masks(self):
        x = some(4, 5, 3)
        mask = x[:, :, 0] > 0
        self.put(x, (mask,), np.asarray(np.float32(-9)))
        self.put(x, (mask,), some(3))
        self.put(x, (mask,), some(1, 3), True)
        self.put(x, (mask,), some(int(mask.sum()), 3))
        self.put(x, (mask,), some(int(mask.sum()), 3), True)
        self.put(x, (mask, np.array([1])), some(int(mask.sum())))
        self.put(x, (x > 0,), some(int((x > 0).sum())))
        self.put(x, (np.zeros((4, 5), bool),), np.zeros((0, 3), np.float32))
        self.refused("index_put: a mask of shape [5] does not fit axes 0 to 0 of a tensor of shape [4, 5, 3].", "index_put", x,
                     (np.ones(5, bool),), some(3))

    def test_repeat_interleave(self):
        x, counts = some(4, 3), np.array([2, 0, 1, 3])
        self.check(np.repeat(x, counts, 0), "repeat_interleave", x, counts, 0)
        self.check(np.repeat(x, counts[:3].astype(np.int32), 1), "repeat_interleave", x, counts[:3].astype(np.int32), -1)
        self.check(np.repeat(x.ravel(), 2), "repeat_interleave", x, np.array([2]))
        self.check(np.repeat(x, counts, 0), "repeat_interleave", x, counts, 0, output_size=6)
        self.check(np.repeat(x, counts * 0, 0), "repeat_interleave", x, counts * 0, 0)
        self.check(np.repeat(x, 3, 1), "repeat_interleave", x, 3, 1)
        self.refused("repeat_interleave: -1 repeats are not possible.", "repeat_interleave", x, np.array([1, -1, 1, 1]), 0)
        for shape in ((4, 3), (1, 1, 1, 1, 1, 1, 1, 4)):
            self.refused("repeat_interleave: 4611686018427387904 repeats make the axis longer than 2^63 - 1.", "repeat_interleave", some(*shape), 2 ** 62, 0 if len(shape) == 2 else 7)
        self.refused("repeat_interleave: repeats has shape [4]; it must have 1 element, or 3, as axis 1 of input has.",
                     "repeat_interleave", x, counts, 1)
        self.refused("repeat_interleave: repeats must be integers, not f32.", "repeat_interleave", x, some(4), 0)

    def test_embedding_bag(self):
        weight = some(10, 4)
        bags, flat = random.integers(0, 10, (3, 5)), random.integers(0, 10, 9)
        starts, ends = np.array([0, 4, 4, 7]), np.array([0, 4, 4, 7, 9])
        for mode in ("sum", "mean", "max"):
            for kw in ({}, {"padding_idx": int(flat[0])}, {"padding_idx": -3}):
                want = F.embedding_bag(as_torch(bags), as_torch(weight), mode=mode, **kw).numpy()
                self.check(want, "embedding_bag", bags, weight, mode=mode, **kw)
                want = F.embedding_bag(as_torch(flat), as_torch(weight), as_torch(starts), mode=mode, **kw).numpy()
                self.check(want, "embedding_bag", flat, weight, starts, mode=mode, **kw)
                self.check(want, "embedding_bag", flat, weight, ends, mode=mode, include_last_offset=True, **kw)
        scale = some(9)
        want = F.embedding_bag(as_torch(flat), as_torch(weight), as_torch(starts), mode="sum", per_sample_weights=as_torch(scale))
        self.check(want.numpy(), "embedding_bag", flat, weight, starts, mode="sum", per_sample_weights=scale)
        self.refused("embedding_bag: mode is 'least'; it may be sum, mean or max.", "embedding_bag", bags, weight, mode="least")
        self.refused("embedding_bag: per_sample_weights are for mode sum, not mean.", "embedding_bag", flat, weight, starts,
                     per_sample_weights=scale)
        self.refused("embedding_bag: input has shape [3, 5], so its rows are the bags; offsets are for lists.", "embedding_bag",
                     bags, weight, starts)
        for wrong in (np.array([10]), np.array([-11])):
            with self.assertRaisesRegex(Refused, "index|out of range"):
                run("embedding_bag", wrong, weight, np.array([0]))
        with self.assertRaisesRegex(Refused, "out of range"):
            run("embedding_bag", flat, weight, np.array([2, 5]))

    def test_indices_of_triangles(self):
        for rows, columns in ((3, 4), (4, 3), (5, 5), (0, 2), (2, 0)):
            for offset in (-7, -2, 0, 1, 6):
                for op in ("tril_indices", "triu_indices"):
                    want = getattr(torch, op)(rows, columns, offset).numpy()
                    self.close(run(op, rows, columns, offset)[0], want)
        self.assertEqual(run("tril_indices", 3, 3, dtype=Dtype("i32"))[0].dtype, np.int32)
        self.refused("tril_indices: a matrix of -1 rows and 2 columns is not possible.", "tril_indices", -1, 2)
        self.refused("triu_indices: a matrix of 4611686018427387904 rows and 5 columns has too many elements.", "triu_indices", 2 ** 62, 5)
        self.refused("tril_indices: a matrix of 4611686018427387904 rows and 5 columns has too many elements.", "tril_indices", 2 ** 62, 5)
        self.refused("triu_indices: indices are integers, not f32.", "triu_indices", 2, 2, dtype=Dtype("f32"))

    def test_short_time_transforms_are_undone(self):
        x, window = some(2, 41), some(8, low=0.4, high=1)
        for kw in ({}, {"onesided": False}, {"normalized": True}, {"center": False, "length": None}, {"length": 30}, {"length": 41}):
            own = {k: v for k, v in kw.items() if k in ("onesided", "normalized", "center")}
            spectrum = torch.stft(as_torch(x), 10, 3, 8, as_torch(window), return_complex=True, **own)
            if not own.get("center", True):  # the window is 0 at the ends of the first frame
                full = some(10, low=0.4, high=1)
                spectrum = torch.stft(as_torch(x), 10, 3, 10, as_torch(full), return_complex=True, center=False)
                want = torch.istft(spectrum, 10, 3, 10, as_torch(full), center=False)
                self.check(want.numpy(), "istft", torch.view_as_real(spectrum).numpy(), 10, 3, 10, full, center=False, atol=1e-5)
                continue
            want = torch.istft(spectrum, 10, 3, 8, as_torch(window), onesided=own.get("onesided"), **{k: v for k, v in kw.items() if k != "onesided"})
            pairs = torch.view_as_real(spectrum).contiguous().numpy()
            self.check(want.numpy(), "istft", pairs, 10, 3, 8, window, **{k: v for k, v in kw.items() if v is not None}, atol=1e-5)
            self.check(want[0].numpy(), "istft", pairs[0].copy(), 10, 3, 8, window, **{k: v for k, v in kw.items() if v is not None}, atol=1e-5)
        self.refused("istft: input has 4 frequencies, but one side of n_fft 10 has 6.", "istft", some(4, 3, 2), 10)
        with self.assertRaisesRegex(Refused, "istft: the squares of the window add up to 0"):
            run("istft", some(6, 3, 2), 10, 3, 10, np.zeros(10, np.float32))

    def test_orders_at_random(self):
        for n in (0, 1, 2, 1000):
            got = run("randperm", n)[0]
            self.assertEqual((got.dtype, sorted(got.tolist())), (np.int64, list(range(n))))
        self.assertEqual(run("randperm", 5, dtype=Dtype("i32"))[0].dtype, np.int32)
        firsts = [int(run("randperm", 4)[0][0]) for _ in range(200)]
        self.assertTrue(all(25 < firsts.count(i) < 80 for i in range(4)), firsts)
        self.refused("randperm: n is -1; it must be at least 0.", "randperm", -1)

    def test_numbers_in_place(self):
        run("uniform_", Call("slice", Keep(8, np.full((4000, 3), 9, np.float32)), 1, 0, 2), -2, 6)
        got = run("clone", Ref(8))[0]
        self.assertTrue(np.all(got[:, 2] == 9) and np.all((got[:, :2] >= -2) & (got[:, :2] < 6)))
        self.assertLess(abs(got[:, :2].mean() - 2), 0.15)
        self.assertLess(abs(got[:, :2].std() - 8 / np.sqrt(12)), 0.1)
        run("normal_", Ref(8), 3, 0.5)
        got = run("clone", Ref(8))[0]
        self.assertLess(abs(got.mean() - 3), 0.03)
        self.assertLess(abs(got.std() - 0.5), 0.03)
        self.refused("uniform_: input is i64 but must be floating-point.", "uniform_", np.arange(3))
        self.refused("uniform_: from (2) is greater than to (1).", "uniform_", some(2), 2, 1)
        self.refused("normal_: std is -1; it must be at least 0.", "normal_", some(2), 0, -1)

    def test_random_slopes(self):
        x = some(60, 50)
        self.check(F.rrelu(as_torch(x)).numpy(), "rrelu", x)
        got = run("rrelu", x, 0.25, 0.75, True)[0]
        np.testing.assert_array_equal(got[x >= 0], x[x >= 0])
        slopes = (got / x)[x < 0]
        self.assertTrue(np.all((slopes > 0.2499) & (slopes < 0.7501)))
        self.assertLess(abs(slopes.mean() - 0.5), 0.03)
        self.assertGreater(slopes.std(), 0.1)
        self.refused("rrelu: lower (2) is greater than upper (1).", "rrelu", x, 2, 1)
