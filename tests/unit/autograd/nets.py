"""Nets as functions of a library (PyTorch or Tenon), of parameters by name, and of an input."""

import numpy as np


class Parameters:
    """Random parameters, made in the order in which a net first asks for them."""

    def __init__(self, seed):
        self.random, self.arrays = np.random.default_rng(seed), {}

    def add(self, name, *shape, reach=None, around=0.0):
        fan = np.prod(shape[1:]) if len(shape) > 1 else shape[0]
        scale = np.sqrt(2 / fan) if reach is None else reach
        self.arrays[name] = around + scale * self.random.standard_normal(shape)


def add_norm(p, name, channels):
    p.add(f"{name}.weight", channels, reach=0.2, around=1.0)
    p.add(f"{name}.bias", channels, reach=0.2)


# ---- a perceptron ----

WIDTHS = (20, 64, 48, 10)


def mlp_parameters(p):
    for i, (before, after) in enumerate(zip(WIDTHS, WIDTHS[1:])):
        p.add(f"{i}.weight", after, before)
        p.add(f"{i}.bias", after, reach=0.1)


def mlp(lib, p, x):
    for i in range(len(WIDTHS) - 2):
        x = lib.gelu(lib.linear(x, p[f"{i}.weight"], p[f"{i}.bias"]))
    last = len(WIDTHS) - 2
    return lib.linear(x, p[f"{last}.weight"], p[f"{last}.bias"])


# ---- ResNet-18 (He et al., 2015), for small pictures ----

STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def resnet_parameters(p):
    p.add("stem", 64, 3, 7, 7)
    add_norm(p, "stem_norm", 64)
    before = 64
    for s, (channels, stride) in enumerate(STAGES):
        for b in range(2):
            name = f"{s}.{b}"
            p.add(f"{name}.conv1", channels, before, 3, 3)
            add_norm(p, f"{name}.norm1", channels)
            p.add(f"{name}.conv2", channels, channels, 3, 3)
            add_norm(p, f"{name}.norm2", channels)
            if b == 0 and (stride != 1 or before != channels):
                p.add(f"{name}.shortcut", channels, before, 1, 1)
                add_norm(p, f"{name}.shortcut_norm", channels)
            before = channels
    p.add("head.weight", 10, 512)
    p.add("head.bias", 10, reach=0.1)


def normed(lib, p, name, x):
    return lib.batch_norm(x, p[f"{name}.weight"], p[f"{name}.bias"])


def resnet(lib, p, x):
    x = lib.relu(normed(lib, p, "stem_norm", lib.conv2d(x, p["stem"], None, 2, 3)))
    x = lib.max_pool2d(x, 3, 2, 1)
    for s, (_, first_stride) in enumerate(STAGES):
        for b in range(2):
            name, stride = f"{s}.{b}", first_stride if b == 0 else 1
            y = lib.relu(normed(lib, p, f"{name}.norm1", lib.conv2d(x, p[f"{name}.conv1"], None, stride, 1)))
            y = normed(lib, p, f"{name}.norm2", lib.conv2d(y, p[f"{name}.conv2"], None, 1, 1))
            if f"{name}.shortcut" in p:
                x = normed(lib, p, f"{name}.shortcut_norm", lib.conv2d(x, p[f"{name}.shortcut"], None, stride, 0))
            x = lib.relu(x + y)
    return lib.linear(lib.mean(x, (2, 3)), p["head.weight"], p["head.bias"])


# ---- two layers of LSTM, both ways ----

FEATURES, STATE, LAYERS = 6, 12, 2


def lstm_parameters(p):
    for layer in range(LAYERS):
        for direction in range(2):
            name = f"{layer}.{direction}"
            p.add(f"{name}.input", 4 * STATE, FEATURES if layer == 0 else 2 * STATE, reach=0.3)
            p.add(f"{name}.state", 4 * STATE, STATE, reach=0.3)
            p.add(f"{name}.input_bias", 4 * STATE, reach=0.1)
            p.add(f"{name}.state_bias", 4 * STATE, reach=0.1)
    p.add("start", 2 * LAYERS, 3, STATE, reach=0.5)
    p.add("start_cell", 2 * LAYERS, 3, STATE, reach=0.5)
    p.add("head", 10, 2 * STATE)


def lstm(lib, p, x):
    weights = [p[f"{layer}.{direction}.{part}"] for layer in range(LAYERS) for direction in range(2)
               for part in ("input", "state", "input_bias", "state_bias")]
    y, h, c = lib.lstm(x, p["start"], p["start_cell"], weights, LAYERS)
    return lib.linear(lib.mean(y, (0,)), p["head"], None) + lib.mean(h * c, (0, 1, 2))


# ---- a transformer block over tokens ----

TOKENS, WIDTH, HEADS, LENGTH = 17, 24, 4, 9


def transformer_parameters(p):
    p.add("tokens", TOKENS, WIDTH, reach=0.7)
    p.add("positions", LENGTH, WIDTH, reach=0.3)
    for name in ("norm1", "norm2", "norm3"):
        add_norm(p, name, WIDTH)
    p.add("qkv.weight", 3 * WIDTH, WIDTH)
    p.add("qkv.bias", 3 * WIDTH, reach=0.1)
    p.add("out.weight", WIDTH, WIDTH)
    p.add("out.bias", WIDTH, reach=0.1)
    p.add("up.weight", 4 * WIDTH, WIDTH)
    p.add("up.bias", 4 * WIDTH, reach=0.1)
    p.add("down.weight", WIDTH, 4 * WIDTH)
    p.add("down.bias", WIDTH, reach=0.1)
    p.add("head", 10, WIDTH)


def transformer(lib, p, tokens):
    x = lib.embedding(tokens, p["tokens"]) + p["positions"]
    batch = x.shape[0]

    def heads(t):
        return lib.permute(lib.reshape(t, (batch, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))

    def norm(name, t):
        return lib.layer_norm(t, WIDTH, p[f"{name}.weight"], p[f"{name}.bias"])

    q, k, v = lib.chunk(lib.linear(norm("norm1", x), p["qkv.weight"], p["qkv.bias"]), 3)
    attended = lib.reshape(lib.permute(lib.attention(heads(q), heads(k), heads(v)), (0, 2, 1, 3)), (batch, LENGTH, WIDTH))
    x = x + lib.linear(attended, p["out.weight"], p["out.bias"])
    y = lib.gelu(lib.linear(norm("norm2", x), p["up.weight"], p["up.bias"]))
    x = x + lib.linear(y, p["down.weight"], p["down.bias"])
    return lib.linear(lib.mean(norm("norm3", x), (1,)), p["head"], None)


# ---- U-Net (Ronneberger et al., 2015), three levels ----

LEVELS = (8, 16, 32)


def unet_parameters(p):
    def double(name, before, after):
        for i, channels in ((1, before), (2, after)):
            p.add(f"{name}.conv{i}", after, channels, 3, 3)
            add_norm(p, f"{name}.norm{i}", after)

    before = 3
    for i, channels in enumerate(LEVELS):
        double(f"down{i}", before, channels)
        before = channels
    for i in reversed(range(len(LEVELS) - 1)):
        p.add(f"up{i}.weight", LEVELS[i + 1], LEVELS[i], 2, 2)
        p.add(f"up{i}.bias", LEVELS[i], reach=0.1)
        double(f"join{i}", 2 * LEVELS[i], LEVELS[i])
    p.add("head.weight", 10, LEVELS[0], 1, 1)
    p.add("head.bias", 10, reach=0.1)


def unet(lib, p, x):
    def double(name, t):
        for i in (1, 2):
            t = lib.conv2d(t, p[f"{name}.conv{i}"], None, 1, 1)
            t = lib.relu(lib.group_norm(t, 4, p[f"{name}.norm{i}.weight"], p[f"{name}.norm{i}.bias"]))
        return t

    kept = []
    for i in range(len(LEVELS)):
        x = double(f"down{i}", x)
        if i + 1 < len(LEVELS):
            kept.append(x)
            x = lib.max_pool2d(x, 2, 2, 0)
    for i in reversed(range(len(LEVELS) - 1)):
        x = lib.conv_transpose2d(x, p[f"up{i}.weight"], p[f"up{i}.bias"], 2)
        x = double(f"join{i}", lib.concat((kept[i], x), 1))
    return lib.conv2d(x, p["head.weight"], p["head.bias"], 1, 0)
