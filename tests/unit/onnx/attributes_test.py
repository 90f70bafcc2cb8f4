"""Compares what attributes, their defaults and older opset versions do to ONNX operators with their formulas in NumPy.

Usage: attributes_test.py TENON

Checks and cases are those of formulas_test.py.
"""
import itertools
import sys

import numpy as np

from formulas_test import Case, draw, main

FLOAT, INT8, DOUBLE = 1, 3, 11  # element types of TensorProto


def along(function, x, axis):
    """Softmax and its relatives before opset 13: the axes from `axis` on count as one."""
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
    return function(rows).reshape(x.shape)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def hardmax(x):
    return (np.arange(x.shape[-1]) == x.argmax(-1)[:, None]).astype(x.dtype)


def older_versions(random):
    """Operators with attributes that later versions turned into inputs."""
    x = draw(random, (1, 3, 1, 4), "float32")
    yield Case("Squeeze", 11, [x], [x[0]], axes=[0])
    yield Case("Squeeze", 13, [x, np.array([2])], [x[:, :, 0]])
    yield Case("Unsqueeze", 11, [x], [x[:, None, :, :, :, None]], axes=[5, 1])
    yield Case("Split", 11, [x], [x[..., :1], x[..., 1:]], axis=3, split=[1, 3])
    yield Case("Split", 2, [x], [x[:, :1], x[:, 1:]], axis=1, split=[1, 2])
    yield Case("Slice", 9, [x], [x[:, 1:3, :, :2]], starts=[1, 0], ends=[3, 2], axes=[1, 3])
    yield Case("Slice", 9, [x], [x[:1, 1:]], starts=[0, 1], ends=[1, 9])
    yield Case("Pad", 2, [x], [np.pad(x, ((0, 0), (1, 2), (0, 0), (0, 3)), constant_values=2.5)],
               pads=[0, 1, 0, 0, 0, 2, 0, 3], value=2.5)
    yield Case("Pad", 1, [x], [np.pad(x, ((0, 1), (0, 0), (2, 0), (0, 0)))], paddings=[0, 0, 2, 0, 1, 0, 0, 0])
    yield Case("ReduceSum", 11, [x], [x.sum((1, 3), keepdims=True)], axes=[1, 3])
    yield Case("ReduceMax", 13, [x], [x.max(3, keepdims=True)], axes=[-1])
    for opset in (6, 10):
        yield Case("Clip", opset, [x], [np.clip(x, -1, 0.5)], min=-1.0, max=0.5)
        yield Case("Clip", opset, [x], [np.minimum(x, 0.5)], max=0.5)
    order = np.argsort(-x, -1, kind="stable")[..., :2]
    yield Case("TopK", 1, [x], [np.take_along_axis(x, order, -1), order], k=2)
    for op, function in (("Softmax", softmax), ("LogSoftmax", lambda rows: np.log(softmax(rows))), ("Hardmax", hardmax)):
        y = draw(random, (2, 3, 4), "float32")
        yield Case(op, 11, [y], [along(function, y, 1)])
        yield Case(op, 11, [y], [along(function, y, 2)], axis=2)
        yield Case(op, 12, [y], [along(function, y, 0)], axis=0)


def moved_elements(random):
    x = draw(random, (2, 8, 4, 6), "float32")
    n, c, h, w = x.shape
    deep = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c // 4, 2 * h, 2 * w)
    yield Case("DepthToSpace", 13, [x], [deep], blocksize=2)
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    shape = (n, 4 * c, h // 2, w // 2)
    yield Case("SpaceToDepth", 13, [x], [blocks.transpose(0, 3, 5, 1, 2, 4).reshape(shape)], blocksize=2)
    yield Case("SpaceToDepth", 28, [x], [blocks.transpose(0, 1, 3, 5, 2, 4).reshape(shape)], blocksize=2, mode="CRD")
    starts, ends = np.array([0, 6]), np.array([2, 0])
    yield Case("Slice", 13, [x, starts, ends, None, np.array([1, -2])], [x[0:2, 6:0:-2]])
    pads = np.array([1, 0, 2, 3])
    yield Case("Pad", 18, [x, pads, None, np.array([-1, 1])], [np.pad(x, ((0, 0), (0, 3), (0, 0), (1, 2)))])
    for axes, wanted in (([1, -1], [5, 9]), ([3, 2], [3, 7]), (None, [2, 9, 3, 6])):
        y = x
        for axis, length in zip(axes or range(4), wanted):
            less, more = max(y.shape[axis] - length, 0), max(length - y.shape[axis], 0)
            y = y.take(range(less // 2, less // 2 + min(length, y.shape[axis])), axis)
            y = np.pad(y, [(more // 2, more - more // 2) if a == axis % 4 else (0, 0) for a in range(4)])
        yield Case("CenterCropPad", 18, [x, np.array(wanted)], [y], **({"axes": axes} if axes else {}))
    image = draw(random, (1, 2, 2, 2), "float32")
    places = np.array([[[[0, 3], [8, 11]], [[13, 14], [22, 23]]]])  # positions in an image of 3 x 4
    y = np.zeros(24, "float32")
    y[places.ravel()] = image.ravel()
    yield Case("MaxUnpool", 11, [image, places], [y.reshape(1, 2, 3, 4)], kernel_shape=[3, 3], strides=[2, 3],
               pads=[1, 2, 1, 0])


def integers_and_numbers(random):
    a, b = np.array([7, -7, 7, -7, 9], "int32"), np.array([2, 2, -2, -2, 3], "int32")
    yield Case("Div", 14, [a, b], [np.trunc(a / b).astype("int32")])
    yield Case("Pow", 15, [np.array([4, 9, 10], "int32"), np.array([0.5, 1.5, -1], "float32")], [np.array([2, 27, 0], "int32")])
    x = np.array([np.inf, -np.inf, np.nan, 1], "float32")
    for negative, positive in itertools.product((0, 1), repeat=2):
        y = (np.isposinf(x) & (positive == 1)) | (np.isneginf(x) & (negative == 1))
        yield Case("IsInf", 10, [x], [y], detect_negative=negative, detect_positive=positive)
    for periodic, dtype, size in itertools.product((0, 1), ("float32", "float64"), (1, 2, 9)):
        angle = np.arange(size) * 2 * np.pi / (size if periodic else max(1, size - 1))
        yield Case("HannWindow", 17, [np.array(size)], [(0.5 - 0.5 * np.cos(angle)).astype(dtype)], periodic=periodic,
                   output_datatype=FLOAT if dtype == "float32" else DOUBLE)


def norms(random):
    x = draw(random, (2, 5, 3, 4), "float32")
    for size in (2, 3, 4):
        total = sum(np.square(np.pad(x, ((0, 0), ((size - 1) // 2, size - 1 - (size - 1) // 2), (0, 0), (0, 0)))[:, i:i + 5])
                    for i in range(size))
        yield Case("LRN", 13, [x], [x / (1.5 + 0.3 / size * total) ** 0.6], size=size, alpha=0.3, beta=0.6, bias=1.5)
    zero = x.copy()
    zero[1, 2] = 0
    for p, axis in itertools.product((1, 2), (-1, 1)):
        norm = np.linalg.norm(zero, p, axis, keepdims=True)
        yield Case("LpNormalization", 1, [zero], [zero / np.where(norm == 0, 1, norm)], p=p, axis=axis)
    for p in (1, 3):
        cut = np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0),) * 3 + ((1, 0),)), (2, 2), (2, 3))
        yield Case("LpPool", 18, [x], [(np.abs(cut) ** p).sum((-1, -2)) ** (1 / p)], p=p, kernel_shape=[2, 2],
                   pads=[0, 1, 0, 0])
    scale, bias, mean, var = (np.abs(draw(random, (5,), "float32")) for _ in range(4))
    now, spread = x.mean((0, 2, 3)), x.var((0, 2, 3))
    y = (x - now[:, None, None]) / np.sqrt(spread + 1e-5)[:, None, None] * scale[:, None, None] + bias[:, None, None]
    yield Case("BatchNormalization", 15, [x, scale, bias, mean, var], [y, 0.6 * mean + 0.4 * now, 0.6 * var + 0.4 * spread],
               training_mode=1, momentum=0.6)
    wide = (x - x.mean((2, 3), keepdims=True)) / np.sqrt(x.var((2, 3), keepdims=True) + 1e-5)
    for scale_shape, bias_shape in (((3, 4), (3, 4)), ((3, 1), (4,)), ((1, 4), (3, 4)), ((3, 4), (3, 1))):
        scale, bias = draw(random, scale_shape, "float32"), draw(random, bias_shape, "float32")
        yield Case("LayerNormalization", 17, [x, scale, bias], [wide * scale + bias], axis=2)


def windows(random):
    """Windows in two axes, by loops."""
    x = draw(random, (1, 2, 6, 7), "float32")
    strides, dilations, pads = (2, 1), (1, 2), (1, 2, 0, 1)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 0), (2, 1)), constant_values=-np.inf)
    places = np.pad(np.arange(x.size).reshape(x.shape), ((0, 0), (0, 0), (1, 0), (2, 1)))
    rows, columns = range(0, padded.shape[2] - 1, 2), range(0, padded.shape[3] - 4)
    cuts = [[(padded[:, :, i:i + 2, j:j + 5:2], places[:, :, i:i + 2, j:j + 5:2]) for j in columns] for i in rows]
    values = np.array([[cut.max((2, 3)) for cut, _ in line] for line in cuts]).transpose(2, 3, 0, 1)
    most = np.array([[np.take_along_axis(at.reshape(1, 2, -1), cut.reshape(1, 2, -1).argmax(2)[..., None], 2)[..., 0]
                      for cut, at in line] for line in cuts]).transpose(2, 3, 0, 1)
    for turned in (0, 1):
        plane, inside = most // 42, most % 42
        wanted = plane * 42 + inside % 7 * 6 + inside // 7 if turned else most
        yield Case("MaxPool", 12, [x], [values, wanted], kernel_shape=[2, 3], strides=strides, dilations=dilations, pads=pads,
                   storage_order=turned)
    for auto_pad in ("NOTSET", "SAME_UPPER", "SAME_LOWER"):
        image, weight = draw(random, (1, 2, 4), "float32"), draw(random, (2, 3, 4), "float32")
        whole = np.zeros((1, 3, 10), "float32")  # (4 - 1) * 2 + 4
        for i in range(4):
            whole[:, :, 2 * i:2 * i + 4] += np.einsum("nc,cok->nok", image[:, :, i], weight)
        low = 1 if auto_pad == "SAME_UPPER" else 2  # positions to cut at the low end; three are surplus
        yield Case("ConvTranspose", 11, [image, weight], [whole[:, :, low:low + 7]], strides=[2], output_shape=[7],
                   auto_pad=auto_pad)
    columns = draw(random, (1, 2 * 4, 9), "float32")
    image = np.zeros((1, 2, 5, 7), "float32")
    for (a, b), (i, j) in itertools.product(itertools.product(range(2), repeat=2), itertools.product(range(3), repeat=2)):
        image[0, :, i + 2 * a, 2 * j + 2 * b] += columns.reshape(2, 2, 2, 3, 3)[:, a, b, i, j]
    yield Case("Col2Im", 18, [columns, np.array([5, 7]), np.array([2, 2])], [image], dilations=[2, 2], strides=[1, 2])


def bilinear(plane, y, x):
    rows, columns = (np.maximum(0, 1 - np.abs(np.arange(length) - at)) for length, at in zip(plane.shape, (y, x)))
    return rows @ plane @ columns


def deformed(random):
    """Each tap of each window has a place, and a factor, of its own in each group of channels."""
    x, weight = draw(random, (1, 4, 5, 6), "float32"), draw(random, (2, 2, 2, 2), "float32")
    height, width = 4, 4  # strides 1, dilations (1, 2), padding 0
    offset = random.uniform(-1, 1, (1, 2 * 4 * 2, height, width)).astype("float32")
    mask, bias = random.uniform(0, 1, (1, 2 * 4, height, width)).astype("float32"), draw(random, (2,), "float32")
    for masked in (False, True):
        y = np.zeros((1, 2, height, width)) + bias[:, None, None]
        for out, inner, a, b, i, j in np.ndindex(2, 2, 2, 2, height, width):
            channel, tap = 2 * out + inner, 2 * a + b
            region = channel // 2
            dy, dx = offset[0, (region * 4 + tap) * 2:(region * 4 + tap) * 2 + 2, i, j]
            value = bilinear(x[0, channel], i + a + dy, j + 2 * b + dx)
            y[0, out, i, j] += weight[out, inner, a, b] * value * (mask[0, region * 4 + tap, i, j] if masked else 1)
        yield Case("DeformConv", 19, [x, weight, offset, bias, mask if masked else None], [y.astype("float32")], group=2,
                   offset_group=2, dilations=[1, 2], kernel_shape=[2, 2])


def regions(random):
    """The greatest element of each part of a region whose corners are scaled and rounded."""
    x = draw(random, (2, 2, 8, 8), "float32")
    rois = np.array([[1, 1, 3, 11, 13], [0, 4, 0, 15, 6]], "float32")
    y = np.zeros((2, 2, 2, 3), "float32")
    for number, (image, *corners) in enumerate(rois):
        left, top, right, bottom = (int(np.floor(0.5 * corner + 0.5)) for corner in corners)
        h, w = (bottom - top + 1) / 2, (right - left + 1) / 3
        for i, j in np.ndindex(2, 3):
            lines = slice(top + int(np.floor(i * h)), min(8, top + int(np.ceil((i + 1) * h))))
            y[number, :, i, j] = x[int(image), :, lines, left + int(np.floor(j * w)):min(8, left + int(np.ceil((j + 1) * w)))].max((1, 2))
    yield Case("MaxRoiPool", 1, [x, rois], [y], pooled_shape=[2, 3], spatial_scale=0.5)


def pairs(complex_numbers):
    return np.stack([complex_numbers.real, complex_numbers.imag], -1).astype("float32")


def transforms(random):
    x = draw(random, (2, 6, 5, 1), "float32")
    yield Case("DFT", 17, [x], [pairs(np.fft.fft(x[..., 0], axis=1))])
    yield Case("DFT", 20, [x], [pairs(np.fft.fft(x[..., 0], axis=2))])
    for axis in (1, 2):
        half = np.fft.rfft(x[..., 0], axis=axis)
        length = 2 * (half.shape[axis] - 1)
        yield Case("DFT", 20, [pairs(half), None, np.array(axis)],
                   [np.fft.irfft(half, length, axis)[..., None].astype("float32")], inverse=1, onesided=1)
        yield Case("DFT", 20, [pairs(half), np.array(5), np.array(axis)],
                   [np.fft.irfft(half, 5, axis)[..., None].astype("float32")], inverse=1, onesided=1)


def quantised(random):
    x = draw(random, (3, 4), "float32")
    y = np.clip(np.rint(x / np.float32(0.05)), -128, 127).astype("int8")
    yield Case("QuantizeLinear", 21, [x, np.float32(0.05)], [y], output_dtype=INT8)
    a, b = (random.integers(128, 256, shape).astype("uint8") for shape in ((2, 700), (700, 3)))
    zeros = np.array([0, 3], "uint8")
    wide = (a.astype("int64") - zeros[:, None]) @ (b.astype("int64"))
    yield Case("MatMulInteger", 10, [a, b, zeros], [wide.astype("int32")])
    image, weight = random.integers(0, 256, (1, 2, 5)).astype("uint8"), random.integers(-128, 128, (3, 2, 2)).astype("int8")
    bias = random.integers(-900, 900, 3).astype("int32")
    scales, zero = np.array([0.01, 0.02, 0.03], "float32"), np.uint8(100)
    sums = np.zeros((1, 3, 4)) + bias[:, None]
    for at in range(2):
        sums += np.einsum("nci,oc->noi", image[:, :, at:at + 4].astype("float64") - 7, weight[:, :, at].astype("float64"))
    real = sums * (0.5 * scales[:, None].astype("float64"))
    yield Case("QLinearConv", 10, [image, np.float32(0.5), np.uint8(7), weight, scales, np.zeros(3, "int8"), np.float32(0.37),
                                   zero, bias], [np.clip(np.rint(real / np.float64(np.float32(0.37))) + 100, 0, 255).astype("uint8")])


def quantised_of_microsoft(random):
    x = random.integers(0, 256, (3, 4)).astype("uint8")
    step, zero, out, out_zero = np.float32(0.03), np.uint8(120), np.float32(0.017), np.uint8(90)
    reals = (x.astype("float64") - 120) * step

    def numbers(y):
        return np.clip(np.rint(y / np.float64(out)) + 90, 0, 255).astype("uint8")

    quantisers = [step, zero, out, out_zero]
    yield Case("QLinearLeakyRelu", 1, [x, *quantisers], [numbers(np.where(reals < 0, 0.3 * reals, reals))],
               domain="com.microsoft", alpha=0.3)
    yield Case("QLinearSoftmax", 1, [x, step, zero, np.float32(1 / 256), np.uint8(0)],
               [np.clip(np.rint(softmax(reals.T).T * 256), 0, 255).astype("uint8")], domain="com.microsoft", axis=0, opset=13)
    for turns in (0, 1):
        b = random.integers(-128, 128, (5, 4) if turns else (4, 5)).astype("int8")
        scales = random.uniform(0.01, 0.05, 5).astype("float32")
        y = reals @ ((b.T if turns else b) * scales.astype("float64"))
        yield Case("QGemm", 1, [x, step, zero, b, scales, np.zeros(5, "int8")], [y.astype("float32")], domain="com.microsoft",
                   transB=turns)
    a, bias = draw(random, (3, 4), "float32"), draw(random, (5,), "float32")
    b, scale = random.integers(-128, 128, (4, 5)).astype("int8"), np.float32(0.02)
    width = (max(a.max(), 0) - min(a.min(), 0)) / np.float32(255)
    origin = np.rint(-min(a.min(), 0) / width)
    rounded = (np.clip(np.rint(a / width) + origin, 0, 255) - origin) * width
    yield Case("DynamicQuantizeMatMul", 1, [a, b, scale, None, bias], [(rounded @ b * scale + bias).astype("float32")],
               domain="com.microsoft")


def optimiser_steps(random):
    x, gradient, first = (draw(random, (4,), "float32") for _ in range(3))
    second, rate, step = np.abs(draw(random, (4,), "float32")), np.float32(0.1), np.array(3)
    for alpha, beta, given in ((0.9, 0.999, {}), (0.8, 0.7, {"alpha": 0.8, "beta": 0.7})):
        for before, after in ((0.0, 0.0), (0.2, 0.3)):
            penalised = gradient + before * x
            moment, squares = alpha * first + (1 - alpha) * penalised, beta * second + (1 - beta) * penalised ** 2
            adjusted = rate * np.sqrt(1 - beta ** 3) / (1 - alpha ** 3)
            y = (1 - after) * (x - adjusted * moment / (np.sqrt(squares) + 0.01))
            yield Case("Adam", 1, [rate, step, x, gradient, first, second],
                       [v.astype("float32") for v in (y, moment, squares)], domain="ai.onnx.preview.training", epsilon=0.01,
                       norm_coefficient=before, norm_coefficient_post=after, **given)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_steps(x, w, r, h, c, clip, coupled):
    """Gates in ONNX's order: input, output, forget, cell."""
    steps = []
    for row in x:
        i, o, f, g = np.split(np.clip(row @ w.T + h @ r.T, -clip, clip), 4, -1)
        kept = 1 - sigmoid(i) if coupled else sigmoid(f)
        c = kept * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return np.stack(steps), h, c


def recurrent_layers(random):
    length, batch, inputs, hidden = 4, 2, 3, 5
    x = draw(random, (length, batch, inputs), "float32")
    w, r = 0.3 * draw(random, (2, 4 * hidden, inputs), "float32"), 0.3 * draw(random, (2, 4 * hidden, hidden), "float32")
    h, c = draw(random, (2, batch, hidden), "float32"), draw(random, (2, batch, hidden), "float32")
    for clip, coupled in ((1e9, 0), (0.4, 0), (1e9, 1)):
        y, last, cell = lstm_steps(x, w[0], r[0], h[0], c[0], clip, coupled)
        given = {"hidden_size": hidden, "input_forget": coupled, **({"clip": clip} if clip < 1e9 else {})}
        yield Case("LSTM", 14, [x, w[:1], r[:1], None, None, h[:1], c[:1]], [y[:, None], last[None], cell[None]], **given)
        yield Case("LSTM", 14, [x[::-1].copy(), w[:1], r[:1], None, None, h[:1], c[:1]],
                   [y[::-1, None], last[None], cell[None]], direction="reverse", **given)
        first = [v.transpose(1, 0, 2) for v in (x, h[:1], c[:1])]
        yield Case("LSTM", 14, [first[0], w[:1], r[:1], None, None, *first[1:]],
                   [y[:, None].transpose(2, 0, 1, 3), last[:, None], cell[:, None]], layout=1, **given)
    w, r = w[:, :hidden], r[:, :hidden]
    for clip in (None, 0.5):
        ends, sides = [], []
        for side, function in enumerate((np.tanh, lambda v: np.maximum(v, 0))):
            state, steps = h[side], []
            for row in x[::-1] if side else x:
                given = row @ w[side].T + state @ r[side].T
                state = function(given if clip is None else np.clip(given, -clip, clip))
                steps.append(state)
            sides.append(np.stack(steps[::-1] if side else steps))
            ends.append(state)
        yield Case("RNN", 14, [x, w, r, None, None, h], [np.stack(sides, 1), np.stack(ends)], hidden_size=hidden,
                   direction="bidirectional", activations=["Tanh", "Relu"], **({} if clip is None else {"clip": clip}))


CHECKS = [older_versions, moved_elements, integers_and_numbers, norms, windows, deformed, regions, transforms, quantised,
          quantised_of_microsoft, optimiser_steps, recurrent_layers]

if __name__ == "__main__":
    sys.exit(main(CHECKS))
