#!/usr/bin/env python3
"""Writes small models as PyTorch exports them, with random weights, and PyTorch's own results as test cases.

    make_exports.py FOLDER [--models lstm,gru,...]

Needs torch and onnx (Debian: python3-torch, python3-onnx); without them it exits with 77. BERT, ViT, U-Net and Llama are
small versions of the modules of benchmarks/models/export.py. Every case has two data sets; the second one has other
sizes if the model allows that. A result may differ from PyTorch's by 1e-4 of the range of the output with the smallest
range.
"""

import argparse
import inspect
import json
import math
import pathlib
import sys
import warnings

try:
    import numpy as np
    import onnx
    import onnx.numpy_helper
    import torch
    from torch import nn
except ImportError as error:
    print(f"skipped: {error}; Debian's packages are python3-torch and python3-onnx")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "benchmarks" / "models"))
import export as known

TOLERANCE = 1e-4


class Recurrent(nn.Module):
    """Two layers in both directions, and a linear head. The states of the last step are outputs too."""

    def __init__(self, kind):
        super().__init__()
        self.cells, self.head = kind(12, 10, 2, bidirectional=True), nn.Linear(20, 5)

    def forward(self, x):
        out, state = self.cells(x)
        return (self.head(out), *state) if isinstance(state, tuple) else (self.head(out), state)


class CrossAttention(nn.Module):
    """Whisper's attention: keys have no bias; queries and keys are each multiplied by the root of the scale."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1)

    def forward(self, x, source, mask=None):
        scale = (x.size(-1) // self.heads) ** -0.25
        query = self.split(self.query(x)).permute(0, 2, 1, 3) * scale
        key = self.split(self.key(source)).permute(0, 2, 3, 1) * scale
        value = self.split(self.value(source)).permute(0, 2, 1, 3)
        scores = query @ key
        if mask is not None:
            scores = scores + mask[: x.size(1), : x.size(1)]
        mixed = torch.softmax(scores.float(), -1) @ value
        return self.out(mixed.permute(0, 2, 1, 3).flatten(2))


class WhisperBlock(nn.Module):
    def __init__(self, width, heads, crosses):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), CrossAttention(width, heads)
        self.norm2, self.cross = (nn.LayerNorm(width), CrossAttention(width, heads)) if crosses else (None, None)
        self.norm3 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, source=None, mask=None):
        y = self.norm1(x)
        x = x + self.attention(y, y, mask)
        if self.cross is not None:
            x = x + self.cross(self.norm2(x), source)
        return x + self.mlp(self.norm3(x))


class WhisperEncoder(nn.Module):
    def __init__(self, width=32, heads=4, mels=8, frames=24):
        super().__init__()
        self.first, self.second = nn.Conv1d(mels, width, 3, 1, 1), nn.Conv1d(width, width, 3, 2, 1)
        places = torch.arange(frames)[:, None] * torch.exp(-math.log(10000) / (width // 2 - 1) * torch.arange(width // 2))
        self.register_buffer("places", torch.cat([places.sin(), places.cos()], 1))
        self.blocks, self.norm = nn.ModuleList(WhisperBlock(width, heads, False) for _ in range(2)), nn.LayerNorm(width)

    def forward(self, mel):
        x = nn.functional.gelu(self.second(nn.functional.gelu(self.first(mel)))).permute(0, 2, 1)
        x = x + self.places[: x.size(1)]
        for block in self.blocks:
            x = block(x)
        return self.norm(x)


class WhisperDecoder(nn.Module):
    def __init__(self, width=32, heads=4, vocabulary=50, positions=16):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(positions, width))
        self.blocks, self.norm = nn.ModuleList(WhisperBlock(width, heads, True) for _ in range(2)), nn.LayerNorm(width)
        self.register_buffer("mask", torch.full((positions, positions), -math.inf).triu_(1))

    def forward(self, tokens, source):
        x = self.tokens(tokens) + self.places[: tokens.size(1)]
        for block in self.blocks:
            x = block(x, source, self.mask)
        return self.norm(x) @ self.tokens.weight.t()


class Suppression(torch.autograd.Function):
    """ONNX's NonMaxSuppression for one image and one class; here in plain Python."""

    @staticmethod
    def forward(ctx, boxes, scores, most, overlap, least):
        kept = []
        order = sorted(range(scores.size(2)), key=lambda i: -scores[0, 0, i])
        for i in [i for i in order if scores[0, 0, i] > least.item()]:
            if len(kept) < most.item() and all(Suppression.overlap(boxes[0, i], boxes[0, j]) <= overlap.item() for j in kept):
                kept.append(i)
        return torch.tensor([[0, 0, i] for i in kept], dtype=torch.int64).reshape(-1, 3)

    @staticmethod
    def overlap(a, b):
        low, high = torch.maximum(a[:2], b[:2]), torch.minimum(a[2:], b[2:])
        both = (high - low).clamp(min=0).prod()
        return both / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - both)

    @staticmethod
    def symbolic(g, boxes, scores, most, overlap, least):
        return g.op("NonMaxSuppression", boxes, scores, most, overlap, least)


class Detector(nn.Module):
    """Scores and boxes for each cell of a grid; the 20 best; those of them that overlap little; their boxes."""

    def __init__(self, width=16):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, width, 3, 2, 1), nn.ReLU(), nn.Conv2d(width, width, 3, 2, 1), nn.ReLU())
        self.score, self.box = nn.Conv2d(width, 1, 1), nn.Conv2d(width, 4, 1)

    def forward(self, image):
        x = self.body(image)
        scores = torch.sigmoid(self.score(x)).flatten(2)
        best, places = scores.topk(20, 2)
        deltas = self.box(x).flatten(2).transpose(1, 2).gather(1, places.transpose(1, 2).expand(-1, -1, 4))
        rows = torch.div(places[:, 0], x.size(3), rounding_mode="floor")
        middle = torch.stack([rows, places[:, 0] - rows * x.size(3)], 2).to(deltas.dtype) + torch.tanh(deltas[..., :2])
        half = torch.exp(0.2 * deltas[..., 2:]) * 1.5
        boxes = torch.cat([middle - half, middle + half], 2)
        numbers = torch.tensor([10]), torch.tensor([0.4]), torch.tensor([0.1])
        kept = Suppression.apply(boxes, best, *numbers)[:, 2]
        return boxes[0, kept], best[0, 0, kept], kept


class Steps(nn.Module):
    """A loop whose count is data, with a branch inside: Collatz numbers decide how a state changes."""

    def __init__(self):
        super().__init__()
        self.odd, self.even = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x, steps: int, number: int):
        total = x
        for _ in range(steps):
            if number % 2 == 0:
                x = torch.tanh(self.even(x))
                number = number // 2
            else:
                x = torch.sin(self.odd(x)) + 0.5 * x
                number = 3 * number + 1
            total = total + x
        return total, number


def images(side):
    return {"input_names": ["image"], "dynamic_axes": {"image": {0: "batch"}}}, [
        lambda: (torch.randn(1, 3, side, side),), lambda: (torch.randn(3, 3, side, side),)]


def recurrent(kind):
    options = {"input_names": ["x"], "dynamic_axes": {"x": {0: "steps", 1: "batch"}}}
    return Recurrent(kind), options, [lambda: (torch.randn(7, 2, 12),), lambda: (torch.randn(3, 5, 12),)]


def unet():
    return known.UNet((4, 8, 16)), *images(32)


def vit():
    return known.ViT(2, 32, 4, 64, 16, 10), *images(64)


def bert():
    def inputs(batch, length, padding):
        ids, mask = torch.randint(1, 40, (batch, length)), torch.ones(batch, length, dtype=torch.int64)
        mask[0, length - padding :] = 0
        return ids * mask, mask, (torch.arange(length) > 3).long() * mask

    names = ["input_ids", "attention_mask", "token_type_ids"]
    options = {"input_names": names, "dynamic_axes": {name: {0: "batch", 1: "sequence"} for name in names}}
    return known.Bert(2, 32, 4, 64, 40, 16), options, [lambda: inputs(2, 9, 0), lambda: inputs(3, 6, 2)]


def llama():
    def inputs(past):
        return (torch.tensor([[5]]), torch.tensor([[past]]), *(torch.randn(1, 2, past, 8) for _ in range(4)))

    names = ["token", "position", "k0", "v0", "k1", "v1"]
    options = {"input_names": names, "dynamic_axes": {name: {2: "past"} for name in names[2:]}}
    return known.Llama(2, 64, 8, 2, 96, 40, 32), options, [lambda: inputs(7), lambda: inputs(12)]


def whisper_encoder():
    return WhisperEncoder(), {"input_names": ["mel"], "dynamic_axes": {"mel": {0: "batch", 2: "frames"}}}, [
        lambda: (torch.randn(1, 8, 48),), lambda: (torch.randn(2, 8, 30),)]


def whisper_decoder():
    options = {"input_names": ["tokens", "source"],
               "dynamic_axes": {"tokens": {0: "batch", 1: "length"}, "source": {0: "batch", 1: "frames"}}}
    return WhisperDecoder(), options, [
        lambda: (torch.randint(0, 50, (1, 5)), torch.randn(1, 24, 32)), lambda: (torch.randint(0, 50, (2, 9)), torch.randn(2, 11, 32))]


def detector():
    return Detector(), {"input_names": ["image"]}, [lambda: (torch.randn(1, 3, 32, 32),), lambda: (torch.randn(1, 3, 32, 32),)]


def steps():
    return torch.jit.script(Steps()), {"input_names": ["x", "steps", "number"]}, [
        lambda: (torch.randn(2, 6), torch.tensor(5), torch.tensor(7)), lambda: (torch.randn(2, 6), torch.tensor(9), torch.tensor(12))]


MODELS = {
    "lstm": lambda: recurrent(nn.LSTM), "gru": lambda: recurrent(nn.GRU), "unet": unet, "vit": vit, "bert": bert,
    "llama": llama, "whisper_encoder": whisper_encoder, "whisper_decoder": whisper_decoder, "detector": detector,
    "steps": steps,
}


def numbers_of(values):
    """Converts tensors of one integer to numbers, because scripted code takes numbers instead."""
    return tuple(int(v) if isinstance(v, torch.Tensor) and v.dim() == 0 and not v.is_floating_point() else v for v in values)


def results_of(model, inputs):
    with torch.no_grad():
        results = model(*(numbers_of(inputs) if isinstance(model, torch.jit.ScriptModule) else inputs))
    results = results if isinstance(results, tuple) else (results,)
    return [r if isinstance(r, torch.Tensor) else torch.tensor(r) for r in results]


def write(folder, kind, number, value, name):
    (folder / f"{kind}_{number}.pb").write_bytes(onnx.numpy_helper.from_array(value.numpy(), name).SerializeToString())


def make(name, folder):
    torch.manual_seed(sum(map(ord, name)))
    model, options, draws = MODELS[name]()
    known.randomise(model)
    folder.mkdir(parents=True, exist_ok=True)
    example = draws[0]()
    if isinstance(model, torch.jit.ScriptModule):
        model.eval()
    else:
        known.calibrate(model, example)
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:  # the newer exporter, the default of newer versions
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, example, str(folder / "model.onnx"), opset_version=14, **options)
    ranges, graph = [], onnx.load(str(folder / "model.onnx")).graph
    for number, draw in enumerate(draws):
        inputs, place = draw(), folder / f"test_data_set_{number}"
        place.mkdir(exist_ok=True)
        results = results_of(model, inputs)
        for i, (value, entry) in enumerate(zip(inputs, graph.input)):
            write(place, "input", i, value, entry.name)
        for i, (value, entry) in enumerate(zip(results, graph.output)):
            write(place, "output", i, value, entry.name)
            if value.is_floating_point():
                ranges.append((value.max() - value.min()).item())
    (folder / "data.json").write_text(json.dumps({"rtol": 0, "atol": TOLERANCE * min(ranges)}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    torch.set_num_threads(2)
    for name in args.models.split(","):
        make(name, args.folder / f"exported_{name}")


if __name__ == "__main__":
    main()
