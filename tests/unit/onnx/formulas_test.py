"""Compares ONNX operators with their formulas in NumPy, for random element types, attributes and opset versions.

Usage: formulas_test.py TENON

Each check yields cases: a node, its inputs and the outputs that ONNX defines. All cases become folders of one run of
`tenon onnx-test`. Every case must pass, and none may be skipped.
"""
import itertools
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOATS = ["float16", "float32", "float64"]
INTS = ["int8", "int16", "int32", "int64"]
UINTS = ["uint8", "uint16", "uint32", "uint64"]
RTOL = {"float16": 4e-3, "float32": 2e-5, "float64": 2e-5}


class Case:
    def __init__(self, op, opset, inputs, outputs, /, domain="", **attributes):
        self.op, self.opset, self.domain, self.attributes = op, opset, domain, attributes
        self.inputs = [None if x is None else np.asarray(x) for x in inputs]
        self.outputs = [np.asarray(y) for y in outputs]
        self.rtol = max((RTOL.get(a.dtype.name, 0) for a in self.outputs), default=0)

    def exact(self):
        """The same case without a tolerance."""
        self.rtol = 0
        return self

    def model(self):
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        results = [f"y{i}" for i in range(len(self.outputs))]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        graph = helper.make_graph([node], "case", [value(n, x) for n, x in zip(names, self.inputs) if x is not None],
                                  [value(n, y) for n, y in zip(results, self.outputs)])
        return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid(self.domain, self.opset)])

    def write(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        onnx.save(self.model(), str(folder / "model.onnx"))
        (folder / "data.json").write_text(json.dumps({"rtol": self.rtol, "atol": self.rtol / 10}))
        given = [x for x in self.inputs if x is not None]
        for kind, tensors in (("input", given), ("output", self.outputs)):
            for i, tensor in enumerate(tensors):
                (data / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(tensor).SerializeToString())


def value(name, array):
    return helper.make_tensor_value_info(name, numpy_helper.from_array(array).data_type, array.shape)


def draw(random, shape, dtype):
    """Random elements, none of them 0; integers small, unless they are signed."""
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in FLOATS:
        return (random.uniform(0.25, 3, shape) * random.choice([-1, 1], shape)).astype(dtype)
    return (random.integers(1, 8, shape) * (random.choice([-1, 1], shape) if dtype in INTS else 1)).astype(dtype)


def end_of(dtype, highest):
    if dtype == "bool":
        return highest
    if dtype in FLOATS:
        return np.inf if highest else -np.inf
    return np.iinfo(dtype).max if highest else np.iinfo(dtype).min


def reductions_over_nothing(random):
    types = FLOATS + ["int8", "int32", "int64", "uint8", "uint32", "uint64", "bool"]
    for op, highest in (("ReduceMax", False), ("ReduceMin", True)):
        for dtype in types:
            axis, keep = int(random.integers(-1, 2)), int(random.integers(0, 2))
            shape = [3, 4]
            shape[axis] = 0
            expected = np.full(np.sum(np.zeros(shape), axis=axis, keepdims=bool(keep)).shape, end_of(dtype, highest), dtype)
            yield Case(op, 20, [np.zeros(shape, dtype), np.array([axis])], [expected], keepdims=keep)
        yield Case(op, 13, [np.zeros((0, 3), "float32")], [np.float32(end_of("float32", highest))], keepdims=0)
        yield Case(op, 13, [np.zeros((0, 3), "float32")], [np.zeros((0, 1), "float32")], axes=[1])
    for op, none in (("ReduceSum", 0), ("ReduceProd", 1), ("ReduceL1", 0), ("ReduceL2", 0), ("ReduceSumSquare", 0),
                     ("ReduceLogSum", -np.inf), ("ReduceLogSumExp", -np.inf)):
        yield Case(op, 18, [np.zeros((2, 0), "float32"), np.array([1])], [np.full((2, 1), none, "float32")])


def reductions_without_axes(random):
    """noop_with_empty_axes skips the reduction but not the steps on the elements before and after it."""
    functions = {"ReduceSum": lambda x: x, "ReduceProd": lambda x: x, "ReduceMean": lambda x: x, "ReduceMax": lambda x: x,
                 "ReduceMin": lambda x: x, "ReduceL1": np.abs, "ReduceL2": np.abs, "ReduceSumSquare": np.square,
                 "ReduceLogSum": np.log, "ReduceLogSumExp": lambda x: x}
    for op, function in functions.items():
        for shape in ((), (5,), (2, 3, 4), (1,) * 8):
            dtype = str(random.choice(FLOATS))
            x = np.abs(draw(random, shape, dtype))
            for axes in (None, np.array([], np.int64)):
                yield Case(op, 18, [x] if axes is None else [x, axes], [function(x)], noop_with_empty_axes=1)
        x = draw(random, (3, 2), "int32")
        if op not in ("ReduceLogSum", "ReduceLogSumExp"):
            yield Case(op, 18, [x], [function(x)], noop_with_empty_axes=1)


def shrinks(random):
    """Computes in floats and casts. A value on neither side gives 0, and so does NaN."""
    for dtype in FLOATS + INTS + UINTS:
        for _ in range(4):
            lambd, bias = np.float32(random.uniform(0.1, 4)), np.float32(random.uniform(-1, 1))
            x = draw(random, (3, 7), dtype)
            if dtype in FLOATS:
                x[0, 0] = np.nan
            wide = x.astype("float64")
            y = np.where(wide < -lambd, wide + bias, np.where(wide > lambd, wide - bias, 0)).astype(dtype)
            yield Case("Shrink", 9, [x], [y], lambd=float(lambd), bias=float(bias))
    yield Case("Shrink", 9, [np.array([7, -7, 1], "int32")], [np.array([6, -6, 0], "int32")], lambd=1.5, bias=1 / 3)


def thresholds(random):
    for dtype in FLOATS:
        alpha = float(np.float32(random.uniform(-1, 1)))
        x = draw(random, (4, 5), dtype)
        x[1, 2] = np.nan
        yield Case("ThresholdedRelu", 10, [x], [np.where(x > alpha, x, 0).astype(dtype)], alpha=alpha)


def triangles(random):
    for dtype in FLOATS + INTS + UINTS + ["bool"]:
        for upper in (0, 1):
            k = int(random.integers(-3, 4))
            x = draw(random, (2, 3, 4), dtype)
            yield Case("Trilu", 14, [x, np.array(k)], [np.triu(x, k) if upper else np.tril(x, k)], upper=upper)


def resized_axis(x, axis, scale, weights_at):
    """`x` with the axis resized by whole arithmetic in doubles; `weights_at(source)` gives {offset from floor: weight}."""
    length = x.shape[axis]
    result = int(np.floor(length * np.float64(np.float32(scale))))
    scale = np.float64(np.float32(scale))
    moved, rows = np.moveaxis(x.astype("float64"), axis, 0), []
    for i in range(result):
        centre = length / 2 * (1 - result / (length * scale))
        source = centre + (i + 0.5) / scale - 0.5
        below = int(np.floor(source))
        rows.append(sum(w * moved[np.clip(below + at, 0, length - 1)] for at, w in weights_at(source - below).items()))
    return np.moveaxis(np.stack(rows), 0, axis)


def symmetric_resizes(random):
    modes = {"linear": lambda t: {0: 1 - t, 1: t}, "nearest": lambda t: {0 if t <= 0.5 else 1: 1.0}}
    for mode, weights_at in modes.items():
        for _ in range(6):
            scales = np.array([1, 1, *random.uniform(0.4, 2.7, 2)], "float32")
            x = draw(random, (1, 2, *random.integers(3, 9, 2)), "float32")
            y = resized_axis(resized_axis(x, 2, scales[2], weights_at), 3, scales[3], weights_at)
            yield Case("Resize", 19, [x, None, scales], [y.astype("float32")], mode=mode,
                       coordinate_transformation_mode="half_pixel_symmetric")


def aligned_resizes_with_antialias(random):
    """The weights are as wide as the scale says, not as the distance of the positions."""
    def weight(mode, t):
        t, a = np.abs(t), -0.75
        if mode == "linear":
            return np.maximum(0, 1 - t)
        return np.where(t <= 1, ((a + 2) * t - (a + 3)) * t * t + 1, np.where(t < 2, a * (((t - 5) * t + 8) * t - 4), 0))

    def matrix(mode, length, result, exclude):
        places = np.arange(-40, length + 40)
        inside = np.clip(places, 0, length - 1)
        positions = np.arange(result) * (length - 1) / max(result - 1, 1)
        weights = weight(mode, (places[None] - positions[:, None]) * min(1, result / length)) * (1 - exclude * (places != inside))
        rows = np.zeros((result, length))
        np.add.at(rows, (slice(None), inside), weights / weights.sum(1, keepdims=True))
        return rows

    for mode, exclude, sizes in itertools.product(("linear", "cubic"), (0, 1), ((2, 3), (1, 4), (9, 2))):
        x = draw(random, (1, 2, 7, 6), "float32")
        y = np.einsum("hi,ncij,wj->nchw", matrix(mode, 7, sizes[0], exclude), x.astype("float64"), matrix(mode, 6, sizes[1], exclude))
        yield Case("Resize", 19, [x, None, None, np.array([1, 2, *sizes])], [y.astype("float32")], mode=mode, antialias=1, exclude_outside=exclude,
                   coordinate_transformation_mode="align_corners")


def halves_that_are_rounded_once(random):
    """Numbers on the way are beyond f16; the results are not."""
    half = lambda *values: np.array(values, "float16")
    x = np.full((1, 4, 2, 2), 300, "float16")
    squares = np.array([2, 3, 3, 2]).reshape(1, 4, 1, 1) * 300.0 ** 2
    yield Case("LRN", 13, [x], [(x / (1 + squares / 3) ** 0.75).astype("float16")], size=3, alpha=1.0, bias=1.0)
    wave = np.resize(half(300, -300), (2, 3, 4, 5))
    wide = wave.astype("float64")
    deviation = np.sqrt(wide.var((0, 2, 3), keepdims=True))
    yield Case("MeanVarianceNormalization", 13, [wave], [((wide - wide.mean((0, 2, 3), keepdims=True)) / deviation).astype("float16")])
    yield Case("Mean", 13, [half(40000, 1), half(40000, 2), half(40000, 3)], [half(40000, 2)])
    yield Case("Sum", 13, [half(40000), half(40000), half(-40000)], [half(40000)])
    yield Case("LpNormalization", 1, [half(40000, 40000)], [half(0.5, 0.5)], p=1, axis=0)
    a, b = np.full((2, 3), 300, "float16"), np.full((3, 2), 300, "float16")
    yield Case("Gemm", 13, [a, b, half(1, 2)], [np.array([[2705, 2710]] * 2, "float16")], alpha=0.01, beta=5.0)


def signs(random):
    for dtype in ("float32", "float64"):
        yield Case("Sign", 13, [np.array([np.nan, -2, 0, 3], dtype)], [np.array([np.nan, -1, 0, 1], dtype)])


def squeezes_without_axes(random):
    """An empty list of axes is like none: all axes of length 1 go."""
    x = draw(random, (1, 3, 1), "float32")
    yield Case("Squeeze", 13, [x], [x[0, :, 0]])
    yield Case("Squeeze", 13, [x, np.zeros(0, np.int64)], [x[0, :, 0]])


def scaled_products(random):
    """Integers times alpha and beta stay floats until the end, and are truncated there."""
    for dtype in FLOATS + ["int32", "int64", "uint32", "uint64"]:
        for alpha, beta in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.75), (1.5, 2.5), (0.5, 0.0)):
            a, b, c = draw(random, (3, 4), dtype), draw(random, (4, 2), dtype), draw(random, (2,), dtype)
            y = alpha * (a.astype("float64") @ b.astype("float64")) + beta * c.astype("float64")
            yield Case("Gemm", 13, [a, b, c], [y.astype(dtype)], alpha=alpha, beta=beta)


def types_that_stay(random):
    """Sums, Erf and PRelu of integers, and resized integers, are of their own type."""
    for dtype in ["int32", "int64", "uint32", "uint64"]:
        x = draw(random, (3, 4), dtype)
        yield Case("ReduceL1", 13, [x], [np.abs(x.astype("int64")).sum(1).astype(dtype)], axes=[1], keepdims=0)
        yield Case("ReduceSumSquare", 13, [x], [np.square(x).sum(0).astype(dtype)], axes=[0], keepdims=0)
        slope = draw(random, (4,), dtype)
        yield Case("PRelu", 16, [x, slope], [np.where(x < 0, x * slope, x).astype(dtype)])
    for dtype in INTS + UINTS:
        x = draw(random, (2, 5), dtype) * np.array([0, 1, 1, 1, 1], dtype)
        yield Case("Erf", 9, [x], [np.trunc(np.vectorize(math.erf)(x.astype("float64")).astype("float32")).astype(dtype)])
        region, sizes = np.array([0, 0, 1, 2], "float32"), np.array([2, 2])  # the second column is at 8, beyond the edge at 4
        yield Case("Resize", 13, [x, region, None, sizes], [np.stack([x[:, 0], np.full(2, 7, dtype)], 1)], mode="nearest",
                   coordinate_transformation_mode="tf_crop_and_resize", extrapolation_value=7.0)


def pooled(x, starts, kernel, function):
    """`function` over the windows that begin at `starts` along the last axis and lie in `x`, cut to it."""
    return np.stack([function(x[..., max(0, s):s + kernel], -1) for s in starts], -1)


def windows_by_auto_pad(random):
    """auto_pad says how many windows there are: VALID those that lie inside, SAME one per stride. ceil_mode says nothing."""
    for op, function in (("MaxPool", np.max), ("AveragePool", np.mean)):
        for auto_pad in ("VALID", "SAME_UPPER", "SAME_LOWER"):
            for length, kernel, stride in itertools.product((5, 6, 7), (1, 2, 3), (2, 3)):
                ceil = 1 if auto_pad == "VALID" else int(random.integers(0, 2))
                count = -(-(length - kernel + 1) // stride) if auto_pad == "VALID" else -(-length // stride)
                pad = 0 if auto_pad == "VALID" else max(0, (count - 1) * stride + kernel - length)
                low = pad // 2 if auto_pad == "SAME_UPPER" else pad - pad // 2
                x = draw(random, (2, 3, length), "float32")
                y = pooled(x, [i * stride - low for i in range(count)], kernel, function)
                yield Case(op, 19, [x], [y], kernel_shape=[kernel], strides=[stride], auto_pad=auto_pad, ceil_mode=ceil)


def layer_statistics(random):
    """Mean and 1 / deviation are of stash_type, f32, whatever the type of x."""
    for dtype in FLOATS:
        for axis in (-1, 1):
            x, scale = draw(random, (3, 4, 5), dtype), draw(random, (5,), dtype)
            wide, axes = x.astype("float64"), tuple(range(axis % 3, 3))
            mean, inverse = wide.mean(axes, keepdims=True), 1 / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)
            y = (wide - mean) * inverse * scale
            yield Case("LayerNormalization", 17, [x, scale], [y.astype(dtype), mean.astype("float32"), inverse.astype("float32")],
                       axis=axis)


def kernel_of(kind, x, vectors, gamma, start, degree):
    dots = x @ vectors.T
    if kind == "RBF":
        return np.exp(-gamma * ((x[:, None] - vectors[None]) ** 2).sum(-1))
    return {"LINEAR": dots, "POLY": (gamma * dots + start) ** degree, "SIGMOID": np.tanh(gamma * dots + start)}[kind]


def coupled(pairwise):
    """Wu, Lin and Weng's second method, with the steps and the end of libsvm."""
    k = len(pairwise)
    q = -pairwise.T * pairwise
    np.fill_diagonal(q, [sum(pairwise[j, i] ** 2 for j in range(k) if j != i) for i in range(k)])
    p = np.full(k, 1 / k)
    for _ in range(max(100, k)):
        qp = q @ p
        pqp = p @ qp
        if np.abs(qp - pqp).max() < 0.005 / k:
            break
        for t in range(k):
            change = (pqp - qp[t]) / q[t, t]
            p[t] += change
            pqp = (pqp + change * (change * q[t, t] + 2 * qp[t])) / (1 + change) ** 2
            qp, p = (qp + change * q[t]) / (1 + change), p / (1 + change)
    return p


def support_vector_machines(random):
    for kind, one_class in itertools.product(("LINEAR", "POLY", "RBF", "SIGMOID"), (0, 1)):
        x, vectors = draw(random, (5, 3), "float32"), draw(random, (4, 3), "float32")
        weights, rho = draw(random, (4,), "float32"), draw(random, (1,), "float32")
        numbers = [0.25, 0.5, 2.0]
        y = kernel_of(kind, x.astype("float64"), vectors, *numbers) @ weights + rho
        y = np.where(y > 0, 1, -1) if one_class else y
        yield Case("SVMRegressor", 1, [x], [y.reshape(5, 1).astype("float32")], domain="ai.onnx.ml", kernel_type=kind,
                   n_supports=4, one_class=one_class, coefficients=weights.tolist(), rho=rho.tolist(), kernel_params=numbers,
                   support_vectors=vectors.ravel().tolist())
    x, weights = draw(random, (5, 3), "int64"), draw(random, (3,), "float32")
    yield Case("SVMRegressor", 1, [x], [(x @ weights + 0.5).reshape(5, 1).astype("float32")], domain="ai.onnx.ml",
               coefficients=weights.tolist(), rho=[0.5])
    for kind, per_class, likely in itertools.product(("LINEAR", "RBF"), ((2, 3), (2, 1, 3), (1, 2, 2, 1)), (False, True)):
        classes, count = len(per_class), sum(per_class)
        pairs = list(itertools.combinations(range(classes), 2))
        x, vectors = draw(random, (6, 3), "float32"), draw(random, (count, 3), "float32")
        weights, rho = draw(random, (classes - 1, count), "float32"), draw(random, (len(pairs),), "float32")
        terms, starts = kernel_of(kind, x.astype("float64"), vectors, 0.3, 0, 0), np.cumsum([0, *per_class])
        duels = np.stack([terms[:, starts[i]:starts[i + 1]] @ weights[j - 1, starts[i]:starts[i + 1]] +
                          terms[:, starts[j]:starts[j + 1]] @ weights[i, starts[j]:starts[j + 1]] + rho[at]
                          for at, (i, j) in enumerate(pairs)], 1)
        votes = np.zeros((6, classes))
        for at, (i, j) in enumerate(pairs):
            votes[:, i] += duels[:, at] > 0
            votes[:, j] += duels[:, at] <= 0
        scores, given = (np.concatenate([-duels, duels], 1) if classes == 2 else duels), {}
        if likely:
            a, b = -np.abs(draw(random, (len(pairs),), "float32")), 0.1 * draw(random, (len(pairs),), "float32")
            given = {"prob_a": a.tolist(), "prob_b": b.tolist()}
            scores = np.zeros((6, classes))
            for row in range(6):
                chances = np.zeros((classes, classes))
                for at, (i, j) in enumerate(pairs):
                    chances[i, j] = np.clip(1 / (1 + np.exp(duels[row, at] * a[at] + b[at])), 1e-7, 1 - 1e-7)
                    chances[j, i] = 1 - chances[i, j]
                scores[row] = coupled(chances)
        yield Case("SVMClassifier", 1, [x], [votes.argmax(1) * 10 + 3, scores.astype("float32")], domain="ai.onnx.ml",
                   classlabels_ints=[10 * i + 3 for i in range(classes)], kernel_type=kind, kernel_params=[0.3, 0.0, 0.0],
                   vectors_per_class=list(per_class), coefficients=weights.ravel().tolist(), rho=rho.tolist(),
                   support_vectors=vectors.ravel().tolist(), **given)
    x, weights = draw(random, (6, 3), "float32"), draw(random, (3, 3), "float32")
    scores = x.astype("float64") @ weights.T + 0.25
    yield Case("SVMClassifier", 1, [x], [scores.argmax(1), scores.astype("float32")], domain="ai.onnx.ml",
               classlabels_ints=[0, 1, 2], kernel_type="LINEAR", coefficients=weights.ravel().tolist(), rho=[0.25, 0.5, 0.5])


COMPARISONS = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal,
               "BRANCH_GT": np.greater, "BRANCH_EQ": np.equal, "BRANCH_NEQ": np.not_equal}


def random_trees(random, trees, features, values, modes, missing):
    """Trees as lists of nodes: (mode, feature, value, missing, yes, no), or ("LEAF", weights by target)."""
    forest = []
    for _ in range(trees):
        nodes = []

        def grow(depth):
            at = len(nodes)
            nodes.append(None)
            if depth == 0 or random.random() < 0.1:
                nodes[at] = ("LEAF", random.normal(size=3).astype("float32"))
            else:
                node = (modes[random.integers(len(modes))], int(random.integers(features)),
                        values[random.integers(len(values))], int(missing and random.integers(2)))
                nodes[at] = (*node, grow(depth - 1), grow(depth - 1))
            return at

        grow(int(random.integers(6)))
        forest.append(nodes)
    return forest


def leaf_of(nodes, row):
    at = 0
    while nodes[at][0] != "LEAF":
        mode, feature, value, missing, yes, no = nodes[at]
        at = yes if COMPARISONS[mode](row[feature], value) or (np.isnan(row[feature]) and missing) else no
    return at


def tree_ensembles(random):
    """Thresholds are also features, infinite, zero, denormal, and neighbours of other numbers."""
    sums = {"SUM": np.sum, "AVERAGE": np.mean, "MIN": np.min, "MAX": np.max}
    for dtype, missing, how, rows in itertools.product(("float32", "float64"), (False, True), sums, (1, 9, 40)):
        f32 = np.float32
        special = [f32(v) for v in (0.0, -0.0, np.inf, -np.inf, 1e-45, 3.4e38, 1.0, np.nextafter(f32(1), f32(2)), -1.0)]
        values = [float(v) for v in (*special, *random.normal(size=6).astype("float32"))]
        trees = random_trees(random, 13, 5, values, list(COMPARISONS), missing)
        x = np.asarray(values)[random.integers(len(values), size=(rows, 5))].astype(dtype)
        x[random.random(x.shape) < 0.15] = np.nan
        given = {name: [] for name in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
                                       "falsenodeids", "missing_value_tracks_true")}
        votes = {name: [] for name in ("treeids", "nodeids", "ids", "weights")}
        for number, nodes in enumerate(trees):
            for at, node in enumerate(nodes):
                mode, feature, value, tracks, yes, no = node if node[0] != "LEAF" else ("LEAF", 0, 0.0, 0, 0, 0)
                for name, each in zip(given, (number, at, feature, value, mode, yes, no, tracks)):
                    given[name].append(each)
                for target, weight in enumerate(node[1] if node[0] == "LEAF" else ()):
                    for name, each in zip(votes, (number, at, target, float(weight))):
                        votes[name].append(each)
        made = [[nodes[leaf_of(nodes, row)][1] for nodes in trees] for row in x]  # [rows, trees, 3]
        y = sums[how](np.array(made, "float64"), axis=1)
        base = [0.5, -1.0, 2.0]
        nodes = {f"nodes_{name}": each for name, each in given.items()}
        yield Case("TreeEnsembleRegressor", 3, [x], [(y + base).astype("float32")], domain="ai.onnx.ml", n_targets=3,
                   aggregate_function=how, base_values=base, **nodes,
                   **{f"target_{name}": each for name, each in votes.items()})
        if how == "SUM":
            yield Case("TreeEnsembleClassifier", 3, [x], [y.argmax(1) + 5, y.astype("float32")], domain="ai.onnx.ml",
                       classlabels_int64s=[5, 6, 7], **nodes, **{f"class_{name}": each for name, each in votes.items()})


def tree_members(random):
    """Nodes of version 5 that compare with sets."""
    choices = [[3.0]], [[1.0, 4.0, 2.5], [7.0, -1.0]]
    for dtype, missing, sets in itertools.product(("float32", "float64"), (0, 1), choices):
        x = random.integers(-2, 9, (20, 2)).astype(dtype)
        x[0, 0] = x[3, 1] = np.nan
        count = len(sets)  # a node for each set: to leaf i if the feature is in it, otherwise to the next node
        weights = random.normal(size=count + 1).astype(dtype)
        y = np.full(20, weights[count])
        for i in reversed(range(count)):
            inside = np.isin(x[:, i], sets[i]) | (np.isnan(x[:, i]) & (missing == 1))
            y = np.where(inside, weights[i], y)

        def tensor(values, kind):
            return numpy_helper.from_array(np.asarray(values, kind), "values")

        yield Case("TreeEnsemble", 5, [x], [y.reshape(20, 1)], domain="ai.onnx.ml", n_targets=1, tree_roots=[0],
                   nodes_modes=tensor([6] * count, "uint8"), nodes_splits=tensor([0] * count, dtype),
                   nodes_featureids=list(range(count)), nodes_missing_value_tracks_true=[missing] * count,
                   nodes_truenodeids=list(range(count)), nodes_trueleafs=[1] * count,
                   nodes_falsenodeids=[*range(1, count), count], nodes_falseleafs=[0] * (count - 1) + [1],
                   membership_values=tensor([v for each in sets for v in (*each, np.nan)], dtype),
                   leaf_targetids=[0] * (count + 1), leaf_weights=tensor(weights, dtype))


def scattered_bools(random):
    """For bools, a sum is "or" and a product is "and"."""
    steps = {"add": np.logical_or, "mul": np.logical_and, "max": np.logical_or, "min": np.logical_and}
    for reduction, step in steps.items():
        x, updates = draw(random, (4, 3), "bool"), draw(random, (5, 3), "bool")
        rows = np.array([1, 3, 1, 0, 3])
        y = x.copy()
        for row, update in zip(rows, updates):
            y[row] = step(y[row], update)
        yield Case("ScatterND", 18, [x, rows[:, None], updates], [y], reduction=reduction)
        places = np.broadcast_to(rows[:, None], (5, 3)).copy()
        yield Case("ScatterElements", 18, [x, places, updates], [y], reduction=reduction)


def empty_tensors(random):
    """Tensors without elements, and recurrent layers without steps."""
    for shape in ((2, 0), (0, 3), (2, 0, 4)):
        for dtype in FLOATS:
            x = np.zeros(shape, dtype)
            yield Case("Hardmax", 13, [x], [x], axis=-1)
            yield Case("Hardmax", 11, [x], [x], axis=1)
    x = draw(random, (3, 4), "float32")
    yield Case("GatherND", 13, [x, np.zeros((0, 1), np.int64)], [np.zeros((0, 4), "float32")])
    yield Case("GatherND", 13, [x, np.zeros((2, 0, 2), np.int64)], [np.zeros((2, 0), "float32")])
    yield Case("GatherND", 13, [x, np.zeros((2, 0), np.int64)], [np.stack([x, x])])
    yield Case("GatherND", 13, [x, np.zeros((3, 2, 0), np.int64)], [np.stack([x, x], 1)], batch_dims=1)
    for mode in ("nearest", "linear"):
        scales = np.array([1, 0.4, 2], "float32")
        yield Case("Resize", 13, [draw(random, (1, 2, 3), "float32"), None, scales], [np.zeros((1, 0, 6), "float32")], mode=mode)
    yield Case("QuantizeLinear", 13, [np.array([np.nan, np.inf, -np.inf, 1], "float32"), np.float32(0.5), np.int8(3)],
               [np.array([-128, 127, -128, 5], "int8")])  # the result of ONNX Runtime
    yield Case("DynamicQuantizeLinear", 11, [np.zeros((0, 3), "float32")],
               [np.zeros((0, 3), "uint8"), np.float32(1), np.uint8(0)])
    for op, gates in (("RNN", 1), ("GRU", 3), ("LSTM", 4)):
        weights = [draw(random, (1, gates * 2, width), "float32") for width in (5, 2)]
        begin = draw(random, (1, 3, 2), "float32")
        y = np.zeros((0, 1, 3, 2), "float32")
        states = [begin] + ([np.zeros_like(begin)] if op == "LSTM" else [])
        yield Case(op, 14, [np.zeros((0, 3, 5), "float32"), *weights, None, None, begin], [y, *states], hidden_size=2)


def edges_of_slices_and_pads(random):
    """A start before element 0 is element 0 for a negative step too, and negative pads take away before others fill."""
    x = draw(random, (2, 5), "float32")
    for start, wanted in ((-9, x[:, 0::-1]), (-5, x[:, 0::-1]), (2, x[:, 2::-1]), (9, x[:, ::-1])):
        yield Case("Slice", 13, [x, np.array([start]), np.array([-(2**62)]), np.array([1]), np.array([-1])], [wanted])
    for mode in ("edge", "wrap", "reflect"):
        for low, high in ((-1, 2), (3, -2), (-2, -1)):
            inner = x[:, max(0, -low):5 - max(0, -high)]
            wanted = np.pad(inner, ((0, 0), (max(0, low), max(0, high))), mode)
            if mode != "reflect" or max(low, high) < inner.shape[1]:
                yield Case("Pad", 19, [x, np.array([0, low, 0, high])], [wanted], mode=mode)


def resized_integers(random):
    """Linear interpolation truncates; with cubic it rounds, halves away from 0."""
    x = random.integers(-50, 50, (1, 6)).astype("int32")
    linear = resized_axis(x, 1, 2, lambda t: {0: 1 - t, 1: t})
    for dtype in ("int32", "int16", "int64"):
        yield Case("Resize", 13, [x.astype(dtype), None, np.array([1, 2], "float32")], [np.trunc(linear).astype(dtype)], mode="linear")


def resizes_of_halves(random):
    """Interpolation along two axes rounds once, so it has every bit of the rounded exact result."""
    x = random.uniform(-2, 2, (1, 2, 7, 8)).astype("float16")
    y = x
    for axis, scale in ((2, 2), (3, 0.5)):
        y = resized_axis(y, axis, scale, lambda t: {0: 1 - t, 1: t})
    yield Case("Resize", 13, [x, None, np.array([1, 1, 2, 0.5], "float32")], [y.astype("float16")], mode="linear").exact()


CHECKS = [squeezes_without_axes, edges_of_slices_and_pads, resized_integers, aligned_resizes_with_antialias, halves_that_are_rounded_once, signs, scattered_bools, empty_tensors, resizes_of_halves, support_vector_machines, tree_ensembles, tree_members, layer_statistics, windows_by_auto_pad, scaled_products, types_that_stay, reductions_over_nothing, reductions_without_axes, shrinks, thresholds, triangles, symmetric_resizes]


def main(checks=CHECKS):
    with tempfile.TemporaryDirectory() as name:
        written = 0
        for check in checks:
            random = np.random.default_rng(zlib.crc32(check.__name__.encode()))
            for i, case in enumerate(check(random)):
                case.write(pathlib.Path(name) / f"{check.__name__}_{i:03}_{case.op}")
                written += 1
        done = subprocess.run([sys.argv[1], "onnx-test", "--json", name], capture_output=True, text=True)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows[:-1]:
            if row["verdict"] != "passed":
                print(f"{row['case']} {row['verdict']}: {row['sentence']}")
        passed = rows[-1]["passed"] if rows else 0
        print(f"{passed} of {written} cases passed")
        if passed != written:
            print(done.stderr, end="")
        return 0 if passed == written and done.returncode == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
