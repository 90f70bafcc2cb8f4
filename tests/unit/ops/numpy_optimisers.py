"""Steps of optimisers against the formulas that PyTorch documents, in NumPy."""

import numpy as np

from numpy_runner import Keep, OpTest, Ref, run, some, strided

TOLERANCE = {np.float64: 1e-12, np.float32: 2e-6, np.float16: 4e-3}


def positive(*shape, dtype):
    return np.abs(some(*shape, dtype=dtype))


def adam(p, g, m, v, most, step, lr, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, maximize=False, decoupled=False):
    p, g, m, v = (x.astype(np.float64) for x in (p, g, m, v))
    g = -g if maximize else g
    p, g = (p * (1 - lr * weight_decay), g) if decoupled else (p, g + weight_decay * p)
    m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
    greatest = v if most is None else np.maximum(most.astype(np.float64), v)
    p = p - lr / (1 - beta1**step) * m / (np.sqrt(greatest) / np.sqrt(1 - beta2**step) + eps)
    return [p, m, v] + ([] if most is None else [greatest])


def sgd(p, g, buffer, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, maximize=False):
    p, g = p.astype(np.float64), -g.astype(np.float64) if maximize else g.astype(np.float64)
    g = g + weight_decay * p
    if momentum == 0:
        return [p - lr * g]
    buffer = momentum * buffer.astype(np.float64) + (1 - dampening) * g
    return [p - lr * (g + momentum * buffer if nesterov else buffer), buffer]


class Optimisers(OpTest):
    """Every list has a tensor of two axes and one that is longer than a block of a loop."""

    def shapes(self, dtype, count):
        return [[positive(*shape, dtype=dtype) for _ in range(count)] for shape in ((3, 5), (700,))]

    def written(self, op, tensors, extra, **options):
        """The contents of the tensors after `op` has run over tensors[i], all lists of tensor i."""
        lists = [[Keep(10 * k + i, each[k]) for i, each in enumerate(tensors)] for k in range(len(tensors[0]))]
        first = run(op, *map(tuple, lists), *extra, **options)
        for i, each in enumerate(tensors):
            np.testing.assert_array_equal(first[i], run("clone", Ref(i))[0])
        return [[run("clone", Ref(10 * k + i))[0] for k in range(len(tensors[0]))] for i in range(len(tensors))]

    def near(self, got, want, dtype):
        self.assertEqual(got.dtype, dtype)
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])

    def expect_adam(self, op, dtype, greatest, step, lr, change=lambda x: x, **options):
        tensors = self.shapes(dtype, 5 if greatest else 4)
        given = [[change(x) for x in each] for each in tensors]
        got = self.written(op, given, [step] if greatest else [(), step], lr=lr, **options)
        for each, results in zip(tensors, got):
            p, g, m, v, *most = each
            want = adam(p, g, m, v, most[0] if greatest else None, int(step), float(lr), decoupled=op == "fused_adamw_", **options)
            for result, expected in zip([results[0], *results[2:]], want):
                self.near(result, expected, dtype)
            np.testing.assert_array_equal(results[1], g)

    def test_adam(self):
        for op in ("fused_adam_", "fused_adamw_"):
            for dtype in (np.float64, np.float32):
                for greatest in (False, True):
                    self.expect_adam(op, dtype, greatest, 1, 0.01, weight_decay=0.0)
                    self.expect_adam(op, dtype, greatest, 7, 0.1, beta1=0.8, beta2=0.95, weight_decay=0.3, eps=1e-3)
                    self.expect_adam(op, dtype, greatest, 3, 0.1, weight_decay=0.01, maximize=True)
            self.expect_adam(op, np.float64, True, 4, 0.1, strided, weight_decay=0.2)
            self.expect_adam(op, np.float64, False, 4, 0.1, weight_decay=0.2, beta1=0.0, beta2=0.0)
            self.expect_adam(op, np.float16, False, 2, 0.1, weight_decay=0.2, eps=1e-3)

    def test_adam_takes_its_numbers_as_tensors(self):
        for number in (np.float64, np.float32):
            self.expect_adam("fused_adamw_", np.float64, False, np.array(5, number), np.array(0.25, number), weight_decay=0.25)
        self.expect_adam("fused_adam_", np.float32, False, np.array(5, np.int64), np.array(0.25, np.float64), weight_decay=0.25)

    def test_sgd(self):
        for dtype in (np.float64, np.float32, np.float16):
            for options in ({}, {"momentum": 0.9}, {"momentum": 0.9, "dampening": 0.5, "weight_decay": 0.1},
                            {"momentum": 0.8, "nesterov": True, "maximize": True}, {"weight_decay": 0.2, "maximize": True}):
                for change in (lambda x: x, strided):
                    tensors = self.shapes(dtype, 3 if "momentum" in options else 2)
                    given = [[change(x) for x in each] for each in tensors]
                    got = self.written("fused_sgd_", given, [] if "momentum" in options else [()], lr=0.25, **options)
                    for each, results in zip(tensors, got):
                        want = sgd(each[0], each[1], each[-1], 0.25, **options)
                        for result, expected in zip([results[0], *results[2:]], want):
                            self.near(result, expected, dtype)

    def test_refuse_lists_that_do_not_fit(self):
        x, y = some(3), some(4)
        self.refused("fused_sgd_: grads has 0 tensors for 1 params.", "fused_sgd_", (x,), (), (), lr=1)
        self.refused("fused_sgd_: tensor 0 of grads is f32 [4]; tensor 0 of params is f32 [3].", "fused_sgd_", (x,), (y,), (), lr=1)
        self.refused("fused_sgd_: nesterov needs a momentum above 0 and no dampening, not 0 and 0.", "fused_sgd_", (x,), (x,), (),
                     lr=1, nesterov=True)
        self.refused("fused_adam_: exp_avgs has 0 tensors for 1 params.", "fused_adam_", (x,), (x,), (), (), (), 1, lr=1)
        self.refused("fused_adamw_: lr of shape [3] is not one number.", "fused_adamw_", (x,), (x,), (x,), (x,), (), 1, lr=x)
        self.refused("fused_adamw_: params are floats, not i64.", "fused_adamw_", (some(3, dtype=np.int64),), (x,), (x,), (x,), (), 1,
                     lr=1)
