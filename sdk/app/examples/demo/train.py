#!/usr/bin/python3
"""Trains the demo's network from the pictures of make_data.py and writes it as `shapes.onnx`.

    ./train.py [--pictures 20480] [--epochs 10] [--seed 1] [--output shapes.onnx]

Uses only NumPy, with hand-written gradients: four convolutions with batch norm and relu, a max pool after the first two,
an average over the remaining positions, and one fully connected layer. Activations are [batch, height, width, channel],
so that a convolution is one matrix product over its unfolded windows. Takes about ten minutes on two cores if NumPy
uses OpenBLAS (Debian: libopenblas0); far longer with the plain reference BLAS.
"""

import argparse
import time

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import make_data

EPSILON = 1e-5
MOMENTUM = 0.9
CONVOLUTIONS = ((5, 3, 16, 2), (3, 16, 32, 1), (3, 32, 64, 1), (3, 64, 72, 1))  # kernel, in, out, stride


class Conv:
    """A convolution without bias (batch norm follows), weights [kernel, kernel, in, out], padded by kernel // 2.

    The first one computes no gradient of its input.
    """

    def __init__(self, rng, kernel, fan_in, fan_out, stride=1, first=False):
        scale = np.sqrt(2 / (kernel * kernel * fan_in))
        self.weight = (rng.standard_normal((kernel, kernel, fan_in, fan_out)) * scale).astype(np.float32)
        self.kernel, self.stride, self.first = kernel, stride, first
        self.params = ["weight"]

    def forward(self, x, training):
        pad = self.kernel // 2
        padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        windows = sliding_window_view(padded, (self.kernel, self.kernel), (1, 2))[:, :: self.stride, :: self.stride]
        columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, self.weight[..., 0].size)
        self.shape, self.columns = padded.shape, columns
        return (columns @ self.weight.reshape(columns.shape[1], -1)).reshape(*windows.shape[:3], -1)

    def backward(self, grad):
        n, height, width, channels = grad.shape
        flat = grad.reshape(-1, channels)
        self.grad_weight = (self.columns.T @ flat).reshape(self.weight.shape)
        if self.first:
            return None
        spread = (flat @ self.weight.reshape(-1, channels).T).reshape(n, height, width, *self.weight.shape[:3])
        out = np.zeros(self.shape, np.float32)
        for i in range(self.kernel):
            for j in range(self.kernel):
                rows = slice(i, i + height * self.stride, self.stride)
                cols = slice(j, j + width * self.stride, self.stride)
                out[:, rows, cols] += spread[:, :, :, i, j]
        pad = self.kernel // 2
        return out[:, pad:-pad, pad:-pad]


class BatchNorm:
    """Per-channel normalisation (Ioffe and Szegedy, 2015) with running mean and variance for inference."""

    def __init__(self, channels):
        self.scale, self.shift = np.ones(channels, np.float32), np.zeros(channels, np.float32)
        self.mean, self.variance = np.zeros(channels, np.float32), np.ones(channels, np.float32)
        self.params = ["scale", "shift"]

    def forward(self, x, training):
        mean, variance = self.mean, self.variance
        if training:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            self.mean += (1 - MOMENTUM) * (mean - self.mean)
            self.variance += (1 - MOMENTUM) * (variance - self.variance)
        self.inverse = 1 / np.sqrt(variance + EPSILON)
        self.unit = (x - mean) * self.inverse
        return self.unit * self.scale + self.shift

    def backward(self, grad):
        axes = (0, 1, 2)
        self.grad_scale, self.grad_shift = (grad * self.unit).sum(axes), grad.sum(axes)
        count = grad.size // grad.shape[-1]
        centred = grad - (self.grad_shift + self.unit * self.grad_scale) / count
        return centred * (self.scale * self.inverse)


class Relu:
    params = []

    def forward(self, x, training):
        self.positive = x > 0
        return x * self.positive

    def backward(self, grad):
        return grad * self.positive


class MaxPool:
    """The largest of each 2x2 block. Equal values share the gradient."""

    params = []

    def forward(self, x, training):
        n, height, width, channels = x.shape
        self.blocks = x.reshape(n, height // 2, 2, width // 2, 2, channels)
        self.top = self.blocks.max((2, 4), keepdims=True)
        return self.top[:, :, 0, :, 0]

    def backward(self, grad):
        hit = self.blocks == self.top
        share = grad[:, :, None, :, None] / hit.sum((2, 4), keepdims=True)
        n, height, _, width, _, channels = hit.shape
        return (hit * share).astype(np.float32).reshape(n, 2 * height, 2 * width, channels)


class AveragePool:
    params = []

    def forward(self, x, training):
        self.shape = x.shape
        return x.mean((1, 2))

    def backward(self, grad):
        spread = grad[:, None, None] / (self.shape[1] * self.shape[2])
        return np.broadcast_to(spread, self.shape)


class Linear:
    def __init__(self, rng, fan_in, fan_out):
        self.weight = (rng.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)).astype(np.float32)
        self.bias = np.zeros(fan_out, np.float32)
        self.params = ["weight", "bias"]

    def forward(self, x, training):
        self.x = x
        return x @ self.weight + self.bias

    def backward(self, grad):
        self.grad_weight, self.grad_bias = self.x.T @ grad, grad.sum(0)
        return grad @ self.weight.T


def build(rng):
    layers = []
    for number, (kernel, fan_in, fan_out, stride) in enumerate(CONVOLUTIONS):
        layers += [Conv(rng, kernel, fan_in, fan_out, stride, number == 0), BatchNorm(fan_out), Relu()]
        layers += [MaxPool()] if number < 2 else []
    return layers + [AveragePool(), Linear(rng, CONVOLUTIONS[-1][2], len(make_data.CLASSES))]


def softmax(logits):
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    return shifted / shifted.sum(1, keepdims=True)


def predict(layers, images):
    x = images.astype(np.float32) / 255
    for layer in layers:
        x = layer.forward(x, False)
    return softmax(x)


class Adam:
    """The Adam optimiser (Kingma and Ba, 2015)."""

    def __init__(self, layers):
        self.slots = [(layer, name) for layer in layers for name in layer.params]
        self.first = [np.zeros_like(getattr(*slot)) for slot in self.slots]
        self.second = [np.zeros_like(getattr(*slot)) for slot in self.slots]
        self.count = 0

    def step(self, rate):
        self.count += 1
        for (layer, name), first, second in zip(self.slots, self.first, self.second):
            grad = getattr(layer, "grad_" + name)
            first += 0.1 * (grad - first)
            second += 0.01 * (grad * grad - second)
            corrected = (first / (1 - 0.9**self.count)) / (np.sqrt(second / (1 - 0.99**self.count)) + 1e-8)
            getattr(layer, name)[...] -= rate * corrected


def train_step(layers, optimiser, images, labels, rate):
    x = images.astype(np.float32) / 255
    for layer in layers:
        x = layer.forward(x, True)
    chance = softmax(x)
    target = np.eye(chance.shape[1], dtype=np.float32)[labels]
    grad = ((chance - target) / len(labels)).astype(np.float32)
    for layer in reversed(layers):
        grad = layer.backward(grad)
    optimiser.step(rate)
    return -np.log(chance[np.arange(len(labels)), labels] + 1e-9).mean()


def vary(images, rng):
    """Another picture of the same shape for free: quarter turns, mirror images, swapped colours."""
    images = np.rot90(images, rng.integers(4), (1, 2))
    images = images[:, :, ::-1] if rng.random() < 0.5 else images
    return images[..., rng.permutation(3)]


def train(layers, count, epochs, rng, batch=96):
    images, labels = make_data.make_images(count, rng)
    optimiser, steps, done, start = Adam(layers), epochs * (count // batch), 0, time.time()
    for epoch in range(epochs):
        losses = []
        for pick in np.array_split(rng.permutation(count), count // batch):
            rate = 0.004 * 0.5 * (1 + np.cos(np.pi * done / steps)) * min(1, (done + 1) / 100)
            losses.append(train_step(layers, optimiser, vary(images[pick], rng), labels[pick], rate))
            done += 1
        print(f"epoch {epoch + 1}: loss {np.mean(losses):.4f}, {time.time() - start:.0f} s", flush=True)


def measure(layers, rng, count=4096):
    images, labels = make_data.make_images(count, rng)
    guesses = np.concatenate([predict(layers, part).argmax(1) for part in np.array_split(images, 32)])
    print(f"held-out: {(guesses == labels).mean():.2%} of {count} pictures never trained on")
    for number, name in enumerate(make_data.CLASSES):
        wrong = guesses[(labels == number) & (guesses != number)]
        taken = ", ".join(f"{(wrong == w).sum()} {make_data.CLASSES[w]}" for w in np.unique(wrong))
        print(
            f"  {name}: {(labels == number).sum() - len(wrong)} of {(labels == number).sum()}"
            + (f" (rest: {taken})" if taken else "")
        )


def write_onnx(layers, path):
    """The trained layers as ONNX operators, opset 13; input `image` [batch, 3, 64, 64] in 0..1, output `chance`."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, value = [], [], "image"

    def add(op, inputs, constants, output=None, **attributes):
        nonlocal value
        output = output or f"{op.lower()}_{len(nodes)}"
        names = [f"{output}.{name}" for name in constants]
        weights.extend(numpy_helper.from_array(np.ascontiguousarray(c), n) for c, n in zip(constants.values(), names))
        nodes.append(helper.make_node(op, inputs + names, [output], name=output, **attributes))
        value = output

    for layer in layers:
        kind = type(layer).__name__
        if kind == "Conv":
            pad, size = [layer.kernel // 2] * 4, [layer.kernel] * 2
            add(
                "Conv",
                [value],
                {"weight": layer.weight.transpose(3, 2, 0, 1)},
                kernel_shape=size,
                pads=pad,
                strides=[layer.stride] * 2,
            )
        elif kind == "BatchNorm":
            stored = {"scale": layer.scale, "shift": layer.shift, "mean": layer.mean, "variance": layer.variance}
            add("BatchNormalization", [value], stored, epsilon=EPSILON)
        elif kind == "Relu":
            add("Relu", [value], {})
        elif kind == "MaxPool":
            add("MaxPool", [value], {}, kernel_shape=[2, 2], strides=[2, 2])
        elif kind == "AveragePool":
            add("GlobalAveragePool", [value], {})
            add("Flatten", [value], {}, axis=1)
        elif kind == "Linear":
            add("Gemm", [value], {"weight": layer.weight.T, "bias": layer.bias}, transB=1)
            add("Softmax", [value], {}, output="chance", axis=1)
    size = make_data.SIZE
    graph = helper.make_graph(
        nodes,
        "shapes",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, size, size])],
        [helper.make_tensor_value_info("chance", TensorProto.FLOAT, ["batch", len(make_data.CLASSES)])],
        weights,
        doc_string="Which of eight shapes is drawn in a 64x64 picture, RGB in 0..1.",
    )
    model = helper.make_model(graph, producer_name="tenon-demo", opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    helper.set_model_props(model, {"classes": ",".join(make_data.CLASSES)})
    onnx.checker.check_model(model)
    onnx.save(model, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pictures", type=int, default=20480)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default="shapes.onnx")
    args = parser.parse_args()
    rng = np.random.default_rng(args.seed)
    layers = build(rng)
    train(layers, args.pictures, args.epochs, rng)
    measure(layers, np.random.default_rng(args.seed + 1000))
    write_onnx(layers, args.output)


if __name__ == "__main__":
    main()
