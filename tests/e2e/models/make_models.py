#!/usr/bin/python3
"""Writes small ResNet-, MobileNet-, BERT-, ViT- and U-Net-like models as ONNX test cases: `make_models.py FOLDER [SEED]`.

Each case is FOLDER/NAME with model.onnx, two data sets of different shapes, and data.json with the tolerances. The
graphs equal those that PyTorch's exporter writes for such modules (shape arithmetic, decomposed layer norm, erf gelu).
The weights are random. evaluator.py computes the expected outputs in double precision.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
from onnx import numpy_helper

from evaluator import evaluate
from graph import Graph

TOLERANCE = {"rtol": 1e-4, "atol": 5e-5}


def conv(graph, name, x, fan_in, fan_out, kernel, stride=1, group=1):
    scale = np.sqrt(2 / (kernel * kernel * fan_in / group))
    weight = graph.normal(f"{name}.weight", fan_out, fan_in // group, kernel, kernel, scale=scale)
    pads = [kernel // 2] * 4
    return graph.Conv(
        x, weight, dilations=[1, 1], group=group, kernel_shape=[kernel] * 2, pads=pads, strides=[stride] * 2
    )


def batch_norm(graph, name, x, channels):
    parts = [
        graph.normal(f"{name}.weight", channels, scale=0.1, mean=0.9),
        graph.normal(f"{name}.bias", channels, scale=0.1),
        graph.normal(f"{name}.running_mean", channels, scale=0.2),
        graph.weight(f"{name}.running_var", graph.rng.uniform(0.5, 1.5, channels).astype(np.float32)),
    ]
    return graph.BatchNormalization(x, *parts, epsilon=1e-5, momentum=0.9)


def linear(graph, name, x, fan_in, fan_out):
    weight = graph.normal(f"{name}.weight", fan_out, fan_in, scale=1 / np.sqrt(fan_in))
    return graph.Gemm(x, weight, graph.normal(f"{name}.bias", fan_out, scale=0.2), alpha=1.0, beta=1.0, transB=1)


def head(graph, x, width, classes, output):
    flat = graph.Flatten(graph.GlobalAveragePool(x), axis=1)
    weight = graph.normal("head.weight", classes, width, scale=1 / np.sqrt(width))
    graph.Gemm(flat, weight, graph.normal("head.bias", classes), alpha=1.0, beta=1.0, transB=1, output=output)


def bottleneck(graph, name, x, fan_in, width, stride):
    """1x1, 3x3 with the stride, 1x1 to four times the width. The shortcut gets a 1x1 if shapes differ."""
    fan_out, y = 4 * width, x
    for number, (a, b, kernel, step) in enumerate(
        [(fan_in, width, 1, 1), (width, width, 3, stride), (width, fan_out, 1, 1)]
    ):
        y = batch_norm(graph, f"{name}.bn{number}", conv(graph, f"{name}.conv{number}", y, a, b, kernel, step), b)
        y = graph.Relu(y) if number < 2 else y
    if stride != 1 or fan_in != fan_out:
        x = conv(graph, f"{name}.down", x, fan_in, fan_out, 1, stride)
        x = batch_norm(graph, f"{name}.down_bn", x, fan_out)
    return graph.Relu(graph.Add(y, x)), fan_out


def resnet():
    graph = Graph(11)
    x = batch_norm(graph, "stem_bn", conv(graph, "stem", "image", 3, 16, 7, 2), 16)
    x = graph.MaxPool(graph.Relu(x), ceil_mode=0, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    fan_in = 16
    for number, (width, stride) in enumerate([(8, 1), (8, 1), (16, 2), (16, 1), (24, 2)]):
        x, fan_in = bottleneck(graph, f"block{number}", x, fan_in, width, stride)
    head(graph, x, fan_in, 10, "logits")
    shape = (np.float32, ["batch", 3, "height", "width"])
    model = graph.model({"image": shape}, {"logits": (np.float32, ["batch", 10])}, opset=14)
    return model, lambda rng: [{"image": normal(rng, 1, 3, 64, 64)}, {"image": normal(rng, 3, 3, 45, 70)}]


def inverted_residual(graph, name, x, fan_in, fan_out, stride, activate):
    width, y = 4 * fan_in, x
    for number, (a, b, kernel, step, group) in enumerate(
        [(fan_in, width, 1, 1, 1), (width, width, 3, stride, width), (width, fan_out, 1, 1, 1)]
    ):
        y = batch_norm(
            graph, f"{name}.bn{number}", conv(graph, f"{name}.conv{number}", y, a, b, kernel, step, group), b
        )
        y = activate(y) if number < 2 else y
    return graph.Add(x, y) if stride == 1 and fan_in == fan_out else y


def mobilenet():
    """Version 2's blocks under relu6, then version 3's under hard swish with squeeze and excite."""
    graph = Graph(12)

    def relu6(x):
        return graph.Clip(x, graph.constant(0, np.float32), graph.constant(6, np.float32))

    def squeeze_and_excite(x, channels):
        small = conv(graph, "squeeze", graph.GlobalAveragePool(x), channels, 8, 1)
        gate = conv(graph, "excite", graph.Relu(small), 8, channels, 1)
        return graph.Mul(graph.HardSigmoid(gate, alpha=1 / 6), x)

    x = relu6(batch_norm(graph, "stem_bn", conv(graph, "stem", "image", 3, 8, 3, 2), 8))
    rows = [
        (8, 8, 1, relu6),
        (8, 12, 2, relu6),
        (12, 12, 1, relu6),
        (12, 20, 2, graph.HardSwish),
        (20, 20, 1, graph.HardSwish),
    ]
    for number, (fan_in, fan_out, stride, activate) in enumerate(rows):
        x = inverted_residual(graph, f"block{number}", x, fan_in, fan_out, stride, activate)
    x = squeeze_and_excite(x, 20)
    head(graph, x, 20, 10, "logits")
    shape = (np.float32, ["batch", 3, "height", "width"])
    model = graph.model({"image": shape}, {"logits": (np.float32, ["batch", 10])}, opset=14)
    return model, lambda rng: [{"image": normal(rng, 2, 3, 48, 48)}, {"image": normal(rng, 5, 3, 33, 40)}]


class Bert:
    """An encoder of two layers, written node by node as PyTorch exports it."""

    WIDTH, HEADS, HIDDEN, WORDS, PLACES = 48, 4, 96, 120, 40

    def __init__(self):
        self.graph = Graph(13)

    def dense(self, name, x, fan_in, fan_out):
        """Linear on three dims: MatMul by the transposed weight, then the bias as the first operand of Add."""
        product = self.graph.MatMul(x, self.graph.normal(f"{name}.weight", fan_in, fan_out, scale=1 / np.sqrt(fan_in)))
        return self.graph.Add(self.graph.normal(f"{name}.bias", fan_out, scale=0.2), product)

    def layer_norm(self, name, x, output=None):
        g = self.graph
        centred = g.Sub(x, g.ReduceMean(x, axes=[-1]))
        variance = g.ReduceMean(g.Pow(centred, g.constant(2, np.float32)), axes=[-1])
        unit = g.Div(centred, g.Sqrt(g.Add(variance, g.constant(1e-12, np.float32))))
        scaled = g.Mul(unit, g.normal(f"{name}.weight", self.WIDTH, scale=0.2, mean=1))
        return g.Add(scaled, g.normal(f"{name}.bias", self.WIDTH, scale=0.2), output=output)

    def view(self, x, *last):
        """x.view(x.size(0), x.size(1), *last), with sizes read from x when the model runs."""
        g = self.graph
        sizes = []
        for axis in (0, 1):
            shape = g.Shape(x)
            sizes.append(g.Unsqueeze(g.Gather(shape, g.constant(axis), axis=0), g.constant([0])))
        return g.Reshape(x, g.Concat(*sizes, *[g.constant([size]) for size in last], axis=0))

    def attention(self, name, x, bias):
        g, size = self.graph, self.WIDTH // self.HEADS
        query = self.view(self.dense(f"{name}.query", x, self.WIDTH, self.WIDTH), self.HEADS, size)
        query = g.Transpose(query, perm=[0, 2, 1, 3])
        key = self.view(self.dense(f"{name}.key", x, self.WIDTH, self.WIDTH), self.HEADS, size)
        value = self.view(self.dense(f"{name}.value", x, self.WIDTH, self.WIDTH), self.HEADS, size)
        value, key = g.Transpose(value, perm=[0, 2, 1, 3]), g.Transpose(key, perm=[0, 2, 3, 1])
        scores = g.Div(g.MatMul(query, key), g.constant(np.sqrt(size), np.float32))
        mixed = g.MatMul(g.Softmax(g.Add(scores, bias), axis=-1), value)
        joined = self.view(g.Transpose(mixed, perm=[0, 2, 1, 3]), self.WIDTH)
        return self.dense(f"{name}.out", joined, self.WIDTH, self.WIDTH)

    def gelu(self, x):
        g = self.graph
        erf = g.Erf(g.Div(x, g.constant(np.sqrt(2), np.float32)))
        return g.Mul(g.Mul(x, g.Add(erf, g.constant(1, np.float32))), g.constant(0.5, np.float32))

    def embed(self):
        g = self.graph
        places = g.weight("position_ids", np.arange(self.PLACES, dtype=np.int64)[None])
        length = g.Unsqueeze(g.Gather(g.Shape("input_ids"), g.constant(1), axis=0), g.constant([0]))
        places = g.Slice(places, g.constant([0]), length, g.constant([1]), g.constant([1]))
        places = g.Gather(g.normal("places.weight", self.PLACES, self.WIDTH), places)
        tokens = g.Gather(g.normal("tokens.weight", self.WORDS, self.WIDTH), "input_ids")
        segments = g.Gather(g.normal("segments.weight", 2, self.WIDTH), "token_type_ids")
        return self.layer_norm("norm", g.Add(g.Add(tokens, segments), places))

    def mask_bias(self):
        """1 and 0 of attention_mask become 0 and -10000 on the scores, broadcast over heads and rows."""
        g = self.graph
        mask = g.Unsqueeze(g.Unsqueeze("attention_mask", g.constant([1])), g.constant([2]))
        absent = g.Sub(g.constant(1, np.float32), g.Cast(mask, to=onnx.TensorProto.FLOAT))
        return g.Mul(absent, g.constant(-10000, np.float32))

    def build(self, layers=2):
        g = self.graph
        bias, x = self.mask_bias(), self.embed()
        for number in range(layers):
            name = f"layers.{number}"
            x = self.layer_norm(f"{name}.norm1", g.Add(self.attention(f"{name}.attention", x, bias), x))
            inner = self.gelu(self.dense(f"{name}.up", x, self.WIDTH, self.HIDDEN))
            output = "last_hidden_state" if number == layers - 1 else None
            x = self.layer_norm(
                f"{name}.norm2", g.Add(self.dense(f"{name}.down", inner, self.HIDDEN, self.WIDTH), x), output
            )
        g.Tanh(linear(g, "pooler", g.Gather(x, g.constant(0), axis=1), self.WIDTH, self.WIDTH), output="pooler_output")
        ids = (np.int64, ["batch", "sequence"])
        return g.model(
            {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids},
            {
                "last_hidden_state": (np.float32, ["batch", "sequence", self.WIDTH]),
                "pooler_output": (np.float32, ["batch", self.WIDTH]),
            },
            opset=14,
        )

    def inputs(self, rng, batch, lengths):
        longest = max(lengths)
        mask = (np.arange(longest) < np.array(lengths)[:, None]).astype(np.int64)
        ids = rng.integers(1, self.WORDS, (batch, longest)) * mask
        segments = rng.integers(0, 2, (batch, longest)) * mask
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}


def bert():
    maker = Bert()
    return maker.build(), lambda rng: [maker.inputs(rng, 1, [9]), maker.inputs(rng, 3, [17, 30, 4])]


class Vit(Bert):
    """Patches of an image, a class token before them, and the encoder's layers with the norms first."""

    WIDTH, HEADS, HIDDEN, PATCH, GRID = 32, 4, 64, 8, 4

    def __init__(self):
        self.graph = Graph(15)

    def embed(self):
        g, size = self.graph, self.PATCH
        weight = g.normal("patches.weight", self.WIDTH, 3, size, size, scale=1 / (size * np.sqrt(3)))
        bias = g.normal("patches.bias", self.WIDTH, scale=0.2)
        x = g.Conv("image", weight, bias, dilations=[1, 1], group=1, kernel_shape=[size] * 2, strides=[size] * 2)
        batch = g.Unsqueeze(g.Gather(g.Shape(x), g.constant(0), axis=0), g.constant([0]))
        x = g.Reshape(x, g.Concat(batch, g.constant([self.WIDTH]), g.constant([-1]), axis=0))
        x = g.Transpose(x, perm=[0, 2, 1])
        token = g.Expand(g.normal("token", 1, 1, self.WIDTH), g.Concat(batch, g.constant([1, self.WIDTH]), axis=0))
        return g.Add(g.Concat(token, x, axis=1), g.normal("places", 1, self.GRID**2 + 1, self.WIDTH, scale=0.5))

    def build(self, layers=2):
        g, x = self.graph, self.embed()
        nothing = g.constant(0, np.float32)
        for number in range(layers):
            name = f"layers.{number}"
            x = g.Add(x, self.attention(f"{name}.attention", self.layer_norm(f"{name}.norm1", x), nothing))
            inner = self.gelu(self.dense(f"{name}.up", self.layer_norm(f"{name}.norm2", x), self.WIDTH, self.HIDDEN))
            x = g.Add(x, self.dense(f"{name}.down", inner, self.HIDDEN, self.WIDTH))
        first = g.Gather(self.layer_norm("norm", x), g.constant(0), axis=1)
        weight = g.normal("head.weight", 10, self.WIDTH, scale=1 / np.sqrt(self.WIDTH))
        g.Gemm(first, weight, g.normal("head.bias", 10), alpha=1.0, beta=1.0, transB=1, output="logits")
        side = self.PATCH * self.GRID
        image = (np.float32, ["batch", 3, side, side])
        return g.model({"image": image}, {"logits": (np.float32, ["batch", 10])}, opset=14)


def vit():
    return Vit().build(), lambda rng: [{"image": normal(rng, batch, 3, 32, 32)} for batch in (1, 3)]


def unet():
    """Two levels down, two up. Each level up is joined with the result of the same level on the way down."""
    graph = Graph(16)

    def twice(name, x, fan_in, fan_out):
        for number, (a, b) in enumerate([(fan_in, fan_out), (fan_out, fan_out)]):
            x = graph.Relu(batch_norm(graph, f"{name}.bn{number}", conv(graph, f"{name}.conv{number}", x, a, b, 3), b))
        return x

    def up(name, x, beside, fan_in, fan_out):
        weight = graph.normal(f"{name}.weight", fan_in, fan_out, 2, 2, scale=np.sqrt(1 / fan_in))
        bias = graph.normal(f"{name}.bias", fan_out, scale=0.2)
        x = graph.ConvTranspose(x, weight, bias, dilations=[1, 1], group=1, kernel_shape=[2, 2], strides=[2, 2])
        return twice(f"{name}.join", graph.Concat(beside, x, axis=1), 2 * fan_out, fan_out)

    def down(x):
        return graph.MaxPool(x, kernel_shape=[2, 2], strides=[2, 2])

    wide = twice("first", "image", 3, 6)
    half = twice("second", down(wide), 6, 12)
    x = up("third", twice("deepest", down(half), 12, 20), half, 20, 12)
    x = up("fourth", x, wide, 12, 6)
    weight = graph.normal("head.weight", 2, 6, 1, 1, scale=np.sqrt(1 / 6))
    graph.Conv(x, weight, graph.normal("head.bias", 2), kernel_shape=[1, 1], output="mask")
    shape = (np.float32, ["batch", 3, "height", "width"])
    model = graph.model({"image": shape}, {"mask": (np.float32, ["batch", 2, "height", "width"])}, opset=14)
    return model, lambda rng: [{"image": normal(rng, 1, 3, 32, 32)}, {"image": normal(rng, 2, 3, 20, 36)}]


def normal(rng, *shape):
    return rng.standard_normal(shape, np.float32)


def declared_type(info):
    return numpy_helper.to_array(onnx.TensorProto(data_type=info.type.tensor_type.elem_type, dims=[0])).dtype


def write_case(folder, model, data_sets):
    folder.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(folder / "model.onnx"))
    (folder / "data.json").write_text(json.dumps(TOLERANCE))
    for number, inputs in enumerate(data_sets):
        outputs = evaluate(model, inputs)
        spreads = {name: float(np.std(value)) for name, value in outputs.items()}
        assert all(
            0.05 < spread < 50 for spread in spreads.values()
        ), f"{folder.name}: outputs lost their scale: {spreads}"
        place = folder / f"test_data_set_{number}"
        place.mkdir(exist_ok=True)
        for kind, infos, values in (("input", model.graph.input, inputs), ("output", model.graph.output, outputs)):
            for index, info in enumerate(infos):
                value = np.ascontiguousarray(values[info.name].astype(declared_type(info)))
                (place / f"{kind}_{index}.pb").write_bytes(
                    numpy_helper.from_array(value, info.name).SerializeToString()
                )


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    rng = np.random.default_rng(int(sys.argv[2]) if len(sys.argv) == 3 else 2026)
    for make in (resnet, mobilenet, bert, vit, unet):
        model, data_sets = make()
        write_case(pathlib.Path(sys.argv[1]) / f"small_{make.__name__}", model, data_sets(rng))


if __name__ == "__main__":
    main()
