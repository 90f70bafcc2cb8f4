"""Compares the operators of ONNX Runtime's own domains with their formulas in NumPy.

Usage: microsoft_formulas_test.py TENON

As formulas_test.py, for what optimisers, quantisers and converters write. The formulas are those of the operators'
documentation (ContribOperators.md of ONNX Runtime).
"""
import sys

import numpy as np

from formulas_test import Case, main

MS, NCHWC = "com.microsoft", "com.microsoft.nchwc"


def floats(random, *shape):
    return random.uniform(-1, 1, shape).astype(np.float32)


def of_microsoft(op, inputs, outputs, /, domain=MS, **attributes):
    return Case(op, 1, inputs, outputs, domain=domain, **attributes)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# Activation, its attributes in order, and its formula.
ACTIVATIONS = [
    ("Relu", {}, lambda x: np.maximum(x, 0)),
    ("Tanh", {}, np.tanh),
    ("Sigmoid", {}, sigmoid),
    ("LeakyRelu", {"alpha": 0.2}, lambda x: np.where(x < 0, 0.2 * x, x)),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}, lambda x: np.clip(0.3 * x + 0.4, 0, 1)),
    ("Elu", {"alpha": 0.7}, lambda x: np.where(x < 0, 0.7 * np.expm1(x), x)),
    ("Selu", {"alpha": 1.5, "gamma": 1.1}, lambda x: 1.1 * np.where(x < 0, 1.5 * np.expm1(x), x)),
    ("Softplus", {}, lambda x: np.log1p(np.exp(x))),
    ("Softsign", {}, lambda x: x / (1 + np.abs(x))),
    ("ThresholdedRelu", {"alpha": 0.3}, lambda x: np.where(x > 0.3, x, 0)),
]


def gemms_with_activations(random):
    a, b, c = floats(random, 3, 4), floats(random, 5, 4), floats(random, 5)
    for name, numbers, formula in ACTIVATIONS:
        attributes = {f"activation_{key}": value for key, value in numbers.items()}
        product = 0.5 * a.astype(float) @ b.T + 2 * c
        yield of_microsoft("FusedGemm", [a, b, c], [formula(product).astype(np.float32)], activation=name, transB=1, alpha=0.5, beta=2.0,
                           **attributes)


def convolution(x, w, group=1):
    """Without pads; x [n, c, h, w]."""
    n, (o, i, kh, kw) = x.shape[0], w.shape
    y = np.zeros((n, o, x.shape[2] - kh + 1, x.shape[3] - kw + 1))
    for channel in range(o):
        first = channel // (o // group) * i
        for (r, s) in np.ndindex(y.shape[2:]):
            y[:, channel, r, s] = np.einsum("nihw,ihw->n", x[:, first:first + i, r:r + kh, s:s + kw].astype(float), w[channel].astype(float))
    return y


def convolutions_with_activations(random):
    x, w, b = floats(random, 2, 3, 5, 4), floats(random, 4, 3, 2, 2), floats(random, 4)
    z = floats(random, 2, 4, 4, 3)
    y = convolution(x, w) + b.reshape(4, 1, 1)
    yield of_microsoft("FusedConv", [x, w, b, z], [np.maximum(y + z, 0).astype(np.float32)], activation="Relu")
    yield of_microsoft("FusedConv", [x, w, b], [np.clip(y, -0.2, 0.5).astype(np.float32)], activation="Clip", activation_params=[-0.2, 0.5])
    last = np.ascontiguousarray(np.moveaxis(x, 1, -1))
    yield of_microsoft("NhwcFusedConv", [last, w, b], [np.moveaxis(np.tanh(y), 1, -1).astype(np.float32)], activation="Tanh")


def transposed_products(random):
    a, b = floats(random, 4, 2, 3, 5), floats(random, 6, 2, 3, 5)
    turned_a, turned_b = a.transpose(1, 2, 0, 3), b.transpose(1, 2, 3, 0)
    yield of_microsoft("FusedMatMul", [a, b], [0.5 * turned_a @ turned_b], transBatchA=1, transBatchB=1, transB=1, alpha=0.5)
    yield of_microsoft("TransposeMatMul", [a, a], [a.swapaxes(2, 3) @ a], transA=1)


# ---- channels in blocks, of 8 or 16 as the machine has them ----

def blocks():
    with open("/proc/cpuinfo") as file:
        text = file.read()
    return 16 if "avx512f" in text or "avx" not in text else 8


def blocked_weights(w, inputs_too):
    o, i, *k = w.shape
    b = blocks()
    if not inputs_too:
        return w.reshape(o // b, b, i, *k).transpose(0, 2, 3, 4, 1).reshape(w.shape)
    return w.reshape(o // b, b, i // b, b, *k).transpose(0, 2, 4, 5, 3, 1).reshape(w.shape)


def channels_in_blocks(random):
    b = blocks()

    def conv(x, w, y, inputs_too, **attributes):
        return of_microsoft("Conv", [x, np.ascontiguousarray(blocked_weights(w, inputs_too))], [y.astype(np.float32)], domain=NCHWC, **attributes)

    x, w = floats(random, 1, 3, 4, 4), floats(random, 2 * b, 3, 3, 3)
    yield conv(x, w, np.maximum(convolution(x, w), 0), False, activation="Relu", group=1)
    x, w = floats(random, 1, 2 * b, 4, 4), floats(random, b, 2 * b, 3, 3)
    yield conv(x, w, convolution(x, w), True, group=1)
    w = floats(random, 2 * b, b, 3, 3)
    yield conv(x, w, convolution(x, w, 2), True, group=2)
    w = floats(random, 2 * b, 1, 3, 3)
    yield conv(x, w, convolution(x, w, 2 * b), False, group=2 * b)
    given = floats(random, 1, 5, 2, 3)
    filled = np.concatenate([given, np.zeros((1, b - 5, 2, 3), np.float32)], 1)
    yield of_microsoft("ReorderInput", [given], [filled], domain=NCHWC)
    yield of_microsoft("ReorderInput", [np.ascontiguousarray(np.moveaxis(given, 1, -1))], [filled], domain=NCHWC, channels_last=1)
    yield of_microsoft("ReorderOutput", [filled], [given], domain=NCHWC, channels=5)
    yield of_microsoft("ReorderOutput", [filled], [np.moveaxis(given, 1, -1)], domain=NCHWC, channels=5, channels_last=1)
    yield of_microsoft("Upsample", [filled], [filled.repeat(2, 2).repeat(3, 3)], domain=NCHWC, scales=[1, 1, 2, 3])
    yield of_microsoft("GlobalMaxPool", [filled], [filled.max((2, 3), keepdims=True)], domain=NCHWC)
    yield of_microsoft("MaxPool", [filled], [np.maximum(filled[..., :-1], filled[..., 1:]).max(2, keepdims=True)], domain=NCHWC, kernel_shape=[2, 2])


# ---- quantised ----

def quantised(x, scale, zero, dtype):
    info = np.iinfo(dtype)
    return np.clip(np.rint(x / scale) + zero, info.min, info.max).astype(dtype)


def numbers_of_16_bits(random):
    x, scale = floats(random, 3, 4), np.float32(1 / 4096)
    for dtype, zero in (("uint16", 30000), ("int16", -7), ("uint8", 100)):
        step, zero = (scale, np.dtype(dtype).type(zero)) if dtype != "uint8" else (np.float32(1 / 64), np.uint8(zero))
        q = quantised(x, step, float(zero), dtype)
        yield of_microsoft("QuantizeLinear", [x, step, zero], [q])
        yield of_microsoft("DequantizeLinear", [q, step, zero], [(q.astype(np.float32) - np.float32(zero)) * step])
    q, steps = random.integers(-9, 9, (3, 4)).astype(np.int8), np.array([0.5, 0.25, 2], np.float16)
    yield of_microsoft("DequantizeLinear", [q, steps], [(q * steps[:, None].astype(float)).astype(np.float16)], axis=0)


def channels_at_the_end(random):
    x, w = random.integers(0, 255, (1, 4, 5, 3)).astype(np.uint8), random.integers(-9, 9, (2, 3, 2, 2)).astype(np.int8)
    real = np.moveaxis(convolution(np.moveaxis((x.astype(float) - 120) * 0.5, -1, 1), w * 0.25), 1, -1)
    scales = [np.float32(0.5), np.uint8(120)], [np.float32(0.25), np.int8(0)], [np.float32(8), np.uint8(100)]
    yield of_microsoft("QLinearConv", [x, *scales[0], w, *scales[1], *scales[2]], [quantised(real, 8, 100, "uint8")], channels_last=1)
    windows = np.stack([x[:, i:i + 3, j:j + 4] for i in range(2) for j in range(2)])
    yield of_microsoft("NhwcMaxPool", [x], [windows.max(0)], kernel_shape=[2, 2])
    means = (windows.astype(float).mean(0) - 120) * 0.5
    step = np.float32(0.5), np.uint8(119)
    exact = np.floor(means / 0.5 + 119) + 0.25 < means / 0.5 + 119  # no mean lies between two numbers
    x = np.where(np.all(exact, keepdims=True), x, x // 4 * 4)
    means = (np.stack([x[:, i:i + 3, j:j + 4] for i in range(2) for j in range(2)]).astype(float).mean(0) - 120) * 0.5
    yield of_microsoft("QLinearAveragePool", [x, np.float32(0.5), np.uint8(120), *step], [quantised(means, 0.5, 119, "uint8")],
                       kernel_shape=[2, 2], channels_last=1)
    mean = (x.astype(float).mean((1, 2), keepdims=True) - 120) * 0.5
    yield of_microsoft("QLinearGlobalAveragePool", [x, np.float32(0.5), np.uint8(120), np.float32(0.3), np.uint8(7)],
                       [quantised(mean, np.float32(0.3), 7, "uint8")], channels_last=1)


def choices(random):
    a, b, chosen = (random.integers(0, 255, 6).astype(np.uint8) for _ in range(3))
    reals = np.where(chosen > 100, (a - 10.0) * 0.5, (b - 20.0) * 0.25)
    yield of_microsoft("QLinearWhere", [chosen > 100, a, np.float32(0.5), np.uint8(10), b, np.float32(0.25), np.uint8(20), np.float32(1), np.uint8(30)],
                       [quantised(reals, 1, 30, "uint8")])


def quantised_lstms(random):
    """Weights [directions, columns, rows]; scales per direction and per row. Gates i, o, f, c. The input is rounded to 256 steps."""
    steps, batch, size, hidden = 4, 2, 3, 5
    x = floats(random, steps, batch, size)
    step = (x.max() - x.min()) / np.float32(255)
    zero = np.rint(-x.min() / step)
    rounded = (quantised(x, step, zero, "uint8") - zero) * step
    for per_row in (False, True):
        for directions in (1, 2):
            numbers, reals = [], []
            for columns in (size, hidden):
                w = random.integers(0, 255, (directions, columns, 4 * hidden)).astype(np.uint8)
                shape = (directions, 4 * hidden) if per_row else (directions,)
                scale, zero = random.uniform(0.004, 0.008, shape).astype(np.float32), random.integers(110, 140, shape).astype(np.uint8)
                wide = (lambda v: v.astype(float).reshape(directions, 1, -1))
                reals.append((w - wide(zero)) * wide(scale))
                numbers.append((w, scale, zero))
            bias = floats(random, directions, 8 * hidden)
            ys, hs, cs = [], [], []
            for d in range(directions):
                h, c, y = np.zeros((batch, hidden)), np.zeros((batch, hidden)), [None] * steps
                for t in reversed(range(steps)) if d == 1 else range(steps):
                    gates = rounded[t] @ reals[0][d] + h @ reals[1][d] + bias[d, :4 * hidden] + bias[d, 4 * hidden:]
                    i, o, f, g = np.split(gates, 4, 1)
                    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                    h = sigmoid(o) * np.tanh(c)
                    y[t] = h
                ys.append(np.stack(y)), hs.append(h), cs.append(c)
            (w, ws, wz), (r, rs, rz) = numbers
            results = [np.stack(ys, 1), np.stack(hs), np.stack(cs)]
            yield of_microsoft("DynamicQuantizeLSTM", [x, w, r, bias, None, None, None, None, ws, wz, rs, rz],
                               [each.astype(np.float32) for each in results], hidden_size=hidden,
                               direction="bidirectional" if directions == 2 else "forward")


def packed(numbers, bits):
    each = 8 // bits
    numbers = numbers.reshape(*numbers.shape[:-1], -1, each).astype(np.uint32)
    return np.sum(numbers << (bits * np.arange(each)), -1).astype(np.uint8)


def weights_of_few_bits(random):
    rows, columns, block = 6, 32, 16
    for bits in (2, 4, 8):
        for dtype in (np.float16, np.float32):
            w = random.integers(0, 2 ** bits, (rows, columns))
            scale = random.uniform(0.1, 0.5, (rows, columns // block)).astype(dtype)
            a = (random.integers(-8, 9, (3, columns)) / 8).astype(dtype)
            real = (w - 2 ** (bits - 1)) * scale.astype(float).repeat(block, 1)
            common = dict(N=rows, K=columns, bits=bits, block_size=block)
            blob = packed(w.reshape(rows, columns // block, block), bits)
            yield of_microsoft("MatMulNBits", [a, blob, scale], [(a.astype(float) @ real.T).astype(dtype)], **common)
            order = random.integers(0, 2, columns).astype(np.int32)
            real = (w - 2 ** (bits - 1)) * scale.astype(float)[:, order]
            yield of_microsoft("MatMulNBits", [a, blob, scale, None, order], [(a.astype(float) @ real.T).astype(dtype)], **common)


def weights_of_a_table(random):
    nf4 = np.array([-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
                    -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
                    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1])
    fp4 = np.array([0, 0.0625 / 12, 8 / 12, 1, 4 / 12, 6 / 12, 2 / 12, 3 / 12])
    rows, columns, block = 5, 16, 16
    a = floats(random, 2, 3, columns)
    for kind, table in ((0, np.concatenate([fp4, -fp4])), (1, nf4)):
        places, scale = random.integers(0, 16, rows * columns), random.uniform(0.5, 2, rows * columns // block).astype(np.float32)
        blob = (places[::2] << 4 | places[1::2]).astype(np.uint8)
        real = (table[places] * scale.repeat(block)).reshape(rows, columns)
        yield of_microsoft("MatMulBnb4", [a, blob, scale], [(a @ real.T).astype(np.float32)], N=rows, K=columns, block_size=block, quant_type=kind)


def look_ups_of_few_bits(random):
    rows, columns, block = 7, 32, 16
    places = random.integers(0, rows, (2, 3)).astype(np.int64)
    for bits, dtype in ((4, np.float32), (8, np.float16)):
        w, zero = random.integers(0, 2 ** bits, (rows, columns)), random.integers(0, 2 ** bits, (rows, columns // block))
        scale = random.uniform(0.1, 0.5, (rows, columns // block)).astype(dtype)
        for given in (True, False):
            real = (w - (zero.repeat(block, 1) if given else 2 ** (bits - 1))) * scale.astype(float).repeat(block, 1)
            inputs = [packed(w, bits), places, scale] + ([packed(zero, bits)] if given else [])
            yield of_microsoft("GatherBlockQuantized", inputs, [real[places].astype(dtype)], gather_axis=0, quantize_axis=1, block_size=block, bits=bits)


def interpolated_integers(random):
    x = np.array([0, 1, 100, 50], np.int32)
    places = np.clip((np.arange(16) + 0.5) / 4 - 0.5, 0, 3)
    for dtype, less in (("uint8", 0), ("int8", 60), ("int32", 60)):
        y = np.trunc(np.interp(places, np.arange(4), x - less)).astype(dtype)
        yield Case("Resize", 13, [(x - less).astype(dtype)[None, None], None, np.array([1, 1, 4], np.float32)], [y[None, None]], mode="linear")


def softmaxes_of_older_opsets(random):
    x = random.integers(0, 255, (2, 3, 4)).astype(np.uint8)
    real = np.exp((x.astype(float) - 100) * 0.02)
    for opset, axes in ((12, (1, 2)), (13, (1,))):
        y = real / real.sum(axes, keepdims=True)
        yield of_microsoft("QLinearSoftmax", [x, np.float32(0.02), np.uint8(100), np.float32(1 / 256), np.uint8(0)], [quantised(y, 1 / 256, 0, "uint8")],
                           axis=1, opset=opset)


def attentions(random):
    """A first call of GroupQueryAttention whose softmax has one score more, and masks of ends and beginnings."""
    rows, heads, width = 3, 2, 4
    q, k, v = (floats(random, 1, rows, n * width) for n in (heads, 1, 1))
    causal = np.where(np.arange(rows) <= np.arange(rows)[:, None], 0, -np.inf)
    for sink, attributes in ((floats(random, heads), {}), (None, {"smooth_softmax": 1})):
        scores = q[0].reshape(rows, heads, width).transpose(1, 0, 2) @ k[0].T / 2 + causal
        parts = np.exp(scores.astype(float))
        weights = parts / (parts.sum(-1, keepdims=True) + np.exp(sink if sink is not None else np.zeros(heads)).reshape(heads, 1, 1))
        y = (weights @ v[0]).transpose(1, 0, 2).reshape(1, rows, heads * width).astype(np.float32)
        more = [None, None, None, None, sink] if sink is not None else []
        yield of_microsoft("GroupQueryAttention", [q, k, v, None, None, np.array([rows - 1], np.int32), np.int32(rows), *more], [y, k[:, None], v[:, None]],
                           num_heads=heads, kv_num_heads=1, **attributes)
    x, w, b = floats(random, 2, rows, 4), floats(random, 4, 12), floats(random, 12)
    q, k, v = np.split((x @ w + b).astype(float), 3, -1)
    for mask, ends in (([2, 3], [(0, 2), (0, 3)]), ([2, 3, 1, 0], [(1, 2), (0, 3)])):
        out = np.array([[np.where((np.arange(rows) >= low) & (np.arange(rows) < high), 0, -10000)] for low, high in ends])
        scores = q @ k.swapaxes(1, 2) / 2 + out
        parts = np.exp(scores - scores.max(-1, keepdims=True))
        yield of_microsoft("Attention", [x, w, b, np.array(mask, np.int32)], [(parts / parts.sum(-1, keepdims=True) @ v).astype(np.float32)], num_heads=1)


def mixtures_of_experts(random):
    rows, width, inner, experts = 5, 6, 4, 3
    x, scores = floats(random, rows, width), 3 * floats(random, rows, experts)
    w2, b2 = floats(random, experts, width, inner), floats(random, experts, width)
    for kind, normal, k in (("relu", 0, 1), ("silu", 1, 2), ("swiglu", 1, 2)):
        parts = 2 if kind == "swiglu" else 1
        w1, b1 = floats(random, experts, parts * inner, width), floats(random, experts, parts * inner)
        chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        y = np.zeros((rows, width))
        for row in range(rows):
            chosen = np.argsort(-chances[row])[:k]
            for expert in chosen:
                h = w1[expert].astype(float) @ x[row] + b1[expert]
                if kind == "swiglu":
                    gate, line = np.minimum(h[::2], 0.7), np.clip(h[1::2], -0.7, 0.7)
                    h = gate * sigmoid(1.5 * gate) * (line + 1)
                else:
                    h = np.maximum(h, 0) if kind == "relu" else h * sigmoid(h)
                y[row] += chances[row, expert] / (chances[row, chosen].sum() if normal else 1) * (w2[expert] @ h + b2[expert])
        swiglu = dict(swiglu_fusion=1, swiglu_limit=0.7, activation_alpha=1.5, activation_beta=1.0) if kind == "swiglu" else {}
        yield of_microsoft("MoE", [x, scores, w1, b1, w2, b2], [y.astype(np.float32)], activation_type=kind, k=k, normalize_routing_weights=normal, **swiglu)


# ---- elements ----

def moved_elements(random):
    x = floats(random, 2, 3, 9)
    yield of_microsoft("ExpandDims", [x, np.int32(-2)], [x[:, :, None]])
    yield of_microsoft("Trilu", [x, np.int64(1)], [np.tril(x, 1)], upper=0)
    yield of_microsoft("GatherND", [x, np.array([[1, 2], [0, 1]], np.int32)], [x[[1, 0], [2, 1]]])
    yield of_microsoft("Pad", [x, np.array([0, 1, 0, 0, 0, 2]), np.float32(7)], [np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=7)], mode="constant")
    yield of_microsoft("Range", [np.float32(1), np.float32(4)], [np.arange(1, 4, dtype=np.float32)])
    yield of_microsoft("UnfoldTensor", [x], [np.lib.stride_tricks.sliding_window_view(x, 4, 2)[:, :, ::2]], size=4, step=2, dim=-1)
    yield of_microsoft("Inverse", [np.eye(3, dtype=np.float32) * 2 + x[:, :, :3] / 4], [np.linalg.inv(np.eye(3) * 2 + x[:, :, :3] / 4).astype(np.float32)])
    yield of_microsoft("SampleOp", [x], [x])
    values = np.array([2, 1, 1, 3, 4, 3], np.float32)
    yield of_microsoft("Unique", [values], [np.array([2, 1, 3, 4], np.float32), np.array([0, 1, 1, 2, 3, 2]), np.array([1, 2, 2, 1])])
    a, b = floats(random, 4, 3), floats(random, 5, 3)
    squares = np.sum((a[:, None].astype(float) - b) ** 2, -1)
    yield of_microsoft("CDist", [a, b], [squares.astype(np.float32)])
    yield of_microsoft("CDist", [a, b], [np.sqrt(squares).astype(np.float32)], metric="euclidean")
    ids = np.array([[1, 2, 3, 1, 2], [4, 4, 4, 4, 4]])
    scores = floats(random, 2, 6)
    banned = scores.copy()
    banned[0, 3] = banned[1, 4] = -np.inf
    yield of_microsoft("NGramRepeatBlock", [ids, scores], [banned], ngram_size=3)
    a, b = random.integers(-30000, 30000, (3, 4)).astype(np.int16), random.integers(-30000, 30000, (4, 2)).astype(np.int16)
    yield of_microsoft("MatMulInteger16", [a, b], [(a.astype(np.int64) @ b).astype(np.int32)])


def crops(random):
    image, boxes = floats(random, 2, 3, 6, 5), np.array([[0, 0, 1, 1], [0.2, 0.4, 0.6, 1.3]], np.float32)
    which, (h, w) = np.array([1, 0], np.int32), (3, 4)
    result = np.full((2, 3, h, w), 0.5, np.float32)
    for r, (y1, x1, y2, x2) in enumerate(boxes.astype(float)):
        for i, j in np.ndindex(h, w):
            y, x = y1 * 5 + i * (y2 - y1) * 5 / (h - 1), x1 * 4 + j * (x2 - x1) * 4 / (w - 1)
            if 0 <= y <= 5 and 0 <= x <= 4:
                top, left = min(int(y), 4), min(int(x), 3)
                part = image[which[r], :, top:top + 2, left:left + 2]
                result[r, :, i, j] = np.einsum("cij,i,j->c", part, [1 - (y - top), y - top], [1 - (x - left), x - left])
    yield of_microsoft("CropAndResize", [image, boxes, which, np.array([h, w], np.int32)], [result], extrapolation_value=0.5)


def withdrawn_operators(random):
    x = floats(random, 2, 3, 4, 5)
    for op, y, attributes in [("Affine", 2 * x + 3, {"alpha": 2.0, "beta": 3.0}), ("ScaledTanh", 2 * np.tanh(3 * x), {"alpha": 2.0, "beta": 3.0}),
                              ("ParametricSoftplus", 2 * np.log1p(np.exp(3 * x)), {"alpha": 2.0, "beta": 3.0}), ("Scale", 3 * x, {"scale": 3.0}),
                              ("ImageScaler", 2 * x + np.arange(3, dtype=np.float32).reshape(3, 1, 1), {"scale": 2.0, "bias": [0.0, 1.0, 2.0]}),
                              ("Crop", x[:, :, 1:3, 1:3], {"border": [1, 1, 2, 1]})]:
        yield Case(op, 7, [x], [y], **attributes)


def layer_norms_of_older_models(random):
    x, scale, bias = floats(random, 2, 3, 8), floats(random, 8), floats(random, 8)
    wide = x.astype(float)
    mean, deviation = wide.mean(-1, keepdims=True), np.sqrt(wide.var(-1, keepdims=True) + 1e-5)
    y = (wide - mean) / deviation * scale + bias
    for opset in (7, 12, 16):
        yield Case("LayerNormalization", opset, [x, scale, bias], [y.astype(np.float32), mean.astype(np.float32), (1 / deviation).astype(np.float32)])
    half = x.astype(np.float16)
    wide = half.astype(float)
    y = (wide - wide.mean(-1, keepdims=True)) / np.sqrt(wide.var(-1, keepdims=True) + 1e-5) * scale
    yield Case("LayerNormalization", 12, [half, scale], [y.astype(np.float32)])


def murmur(data, seed):
    mask, h = 0xffffffff, seed
    rotated = (lambda x, r: (x << r | x >> 32 - r) & mask)
    mixed = (lambda k: rotated(k * 0xcc9e2d51 & mask, 15) * 0x1b873593 & mask)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        h = (rotated(h ^ mixed(int.from_bytes(data[at:at + 4], "little")), 13) * 5 + 0xe6546b64) & mask
    if whole != len(data):
        h ^= mixed(int.from_bytes(data[whole:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85ebca6b & mask
    h = (h ^ h >> 13) * 0xc2b2ae35 & mask
    return h ^ h >> 16


def hashes(random):
    words = np.array(["", "a", "list", "of words"], dtype=object)
    yield of_microsoft("MurmurHash3", [words], [np.array([murmur(w.encode(), 0) for w in words], np.uint32)])
    numbers = np.array([3, -4], np.int64)
    yield of_microsoft("MurmurHash3", [numbers], [np.array([murmur(n.tobytes(), 9) for n in numbers], np.uint32).view(np.int32)], positive=0, seed=9)


def tokens(random):
    def case(texts, rows, **attributes):
        return of_microsoft("Tokenizer", [np.array(texts, dtype=object)], [np.array(rows, dtype=object)], pad_value="#", **attributes)

    yield case(["hello big world", "a b"], [["hello", "big", "world"], ["#", "#", "#"]], mark=0, mincharnum=2, separators=[" "])
    yield case(["one,two;three"], [["\x02", "one", "two", "three", "\x03"]], mark=1, mincharnum=1, separators=[",", ";"])
    yield case([["aé"], ["xyz"]], [[["a", "é", "#"]], [["x", "y", "z"]]], mark=0, mincharnum=1, separators=[""])
    yield case(["ab12 c3", "7"], [["12", "3"], ["7", "#"]], mark=0, mincharnum=1, tokenexp="[0-9]+")


CHECKS = [gemms_with_activations, convolutions_with_activations, transposed_products, channels_in_blocks, numbers_of_16_bits, channels_at_the_end, choices,
          quantised_lstms, weights_of_few_bits, weights_of_a_table, interpolated_integers, softmaxes_of_older_opsets, attentions, mixtures_of_experts, look_ups_of_few_bits, moved_elements, crops, withdrawn_operators,
          layer_norms_of_older_models, hashes, tokens]

if __name__ == "__main__":
    sys.exit(main(CHECKS))
