#!/usr/bin/env python3
"""Writes models of well-known shapes as PyTorch exports them, with random weights.

    /usr/bin/python3 export.py FOLDER [--models resnet50,mobilenet_v2,bert_base,vit_b16,unet,llama,...] [--opset 14]

Needs torch 1.13 or newer: Debian's python3-torch, or one in a virtual environment.

The modules are written in plain torch, here and in detectors.py, speech.py and sequences.py, so torchvision and
transformers are not needed. Layer sizes are from
He et al. 2016 (arXiv:1512.03385), Sandler et al. 2018 (arXiv:1801.04381), Devlin et al. 2018 (arXiv:1810.04805),
Dosovitskiy et al. 2020 (arXiv:2010.11929), Ronneberger et al. 2015 (arXiv:1505.04597; same padding and batch norms, as is
usual today) and Touvron et al. 2023 (arXiv:2302.13971; grouped heads as in arXiv:2305.13245).
Batch and sequence are dynamic. The TorchScript exporter is used, because most models have its graphs. Weights come from a
fixed seed. Batch norms take their statistics from one random batch, so that no output degenerates to a constant.
"""

import argparse
import collections
import inspect
import math
import pathlib
import warnings

import torch
from torch import nn

import detectors
import sequences
import speech


class Bottleneck(nn.Module):
    def __init__(self, fan_in, width, stride):
        super().__init__()
        fan_out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(fan_in, width, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, fan_out, 1, bias=False),
            nn.BatchNorm2d(fan_out),
        )
        self.skip = nn.Identity()
        if stride != 1 or fan_in != fan_out:
            self.skip = nn.Sequential(nn.Conv2d(fan_in, fan_out, 1, stride, bias=False), nn.BatchNorm2d(fan_out))

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
    """ResNet-50: stages of 3, 4, 6 and 3 bottlenecks, the stride on the 3x3 convolution."""

    def __init__(self, depths=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        blocks, fan_in = [], 64
        for stage, depth in enumerate(depths):
            for number in range(depth):
                blocks.append(Bottleneck(fan_in, 64 << stage, 2 if stage and number == 0 else 1))
                fan_in = 256 << stage
        self.blocks = nn.Sequential(*blocks)
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(fan_in, classes)

    def forward(self, image):
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(image))), 1))


class InvertedResidual(nn.Module):
    def __init__(self, fan_in, fan_out, stride, expand):
        super().__init__()
        width, layers = fan_in * expand, []
        if expand != 1:
            layers += [nn.Conv2d(fan_in, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU6(inplace=True)]
        layers += [
            nn.Conv2d(width, width, 3, stride, 1, groups=width, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU6(inplace=True),
        ]
        layers += [nn.Conv2d(width, fan_out, 1, bias=False), nn.BatchNorm2d(fan_out)]
        self.body, self.residual = nn.Sequential(*layers), stride == 1 and fan_in == fan_out

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


class MobileNetV2(nn.Module):
    ROWS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, classes=1000):
        super().__init__()
        layers, fan_in = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(inplace=True)], 32
        for expand, fan_out, count, stride in self.ROWS:
            for number in range(count):
                layers.append(InvertedResidual(fan_in, fan_out, stride if number == 0 else 1, expand))
                fan_in = fan_out
        layers += [nn.Conv2d(fan_in, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6(inplace=True)]
        self.features, self.head = nn.Sequential(*layers), nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, classes))

    def forward(self, image):
        x = nn.functional.adaptive_avg_pool2d(self.features(image), (1, 1))
        return self.head(torch.flatten(x, 1))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        return x.view(x.size()[:-1] + (self.heads, self.size)).permute(0, 2, 1, 3)

    def forward(self, x, bias):
        query, key, value = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.size) + bias
        mixed = torch.matmul(torch.softmax(scores, -1), value).permute(0, 2, 1, 3).contiguous()
        return self.out(mixed.view(mixed.size()[:-2] + (self.heads * self.size,)))


class Encoder(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention, self.norm1 = Attention(width, heads), nn.LayerNorm(width, eps=1e-12)
        self.up, self.down, self.norm2 = (
            nn.Linear(width, hidden),
            nn.Linear(hidden, width),
            nn.LayerNorm(width, eps=1e-12),
        )

    def forward(self, x, bias):
        x = self.norm1(self.attention(x, bias) + x)
        return self.norm2(self.down(nn.functional.gelu(self.up(x))) + x)


class Bert(nn.Module):
    """BERT-base: 12 layers of 12 heads of 64; a mask of 0 and 1 becomes a bias of -10000 and 0 on the scores."""

    def __init__(self, layers=12, width=768, heads=12, hidden=3072, vocabulary=30522, positions=512):
        super().__init__()
        self.tokens, self.segments = nn.Embedding(vocabulary, width), nn.Embedding(2, width)
        self.places = nn.Embedding(positions, width)
        self.register_buffer("position_ids", torch.arange(positions).expand((1, -1)))
        self.norm, self.dropout = nn.LayerNorm(width, eps=1e-12), nn.Dropout(0.1)
        self.layers = nn.ModuleList(Encoder(width, heads, hidden) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, input_ids, attention_mask, token_type_ids):
        bias = (1.0 - attention_mask[:, None, None, :].to(torch.float32)) * -10000.0
        places = self.places(self.position_ids[:, : input_ids.size(1)])
        x = self.dropout(self.norm(self.tokens(input_ids) + self.segments(token_type_ids) + places))
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


class ViTBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).view(x.size(0), x.size(1), 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        weights = torch.softmax(torch.matmul(query, key.transpose(-2, -1)) * self.size**-0.5, -1)
        mixed = torch.matmul(weights, value).transpose(1, 2).reshape(x.size(0), x.size(1), self.heads * self.size)
        x = x + self.out(mixed)
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    """ViT-B/16: 12 blocks of 12 heads of 64 over 196 patches and a class token; queries, keys and values in one product."""

    def __init__(self, layers=12, width=768, heads=12, hidden=3072, patches=196, classes=1000):
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, patches + 1, width))
        self.blocks = nn.Sequential(*[ViTBlock(width, heads, hidden) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.size(0), -1, -1), x], 1) + self.places
        return self.head(self.norm(self.blocks(x))[:, 0])


class UNet(nn.Module):
    """Two convolutions per width; the image is halved four times, then doubled, with the earlier features concatenated."""

    def __init__(self, widths=(64, 128, 256, 512, 1024), classes=2):
        super().__init__()
        self.down = nn.ModuleList(self.twice(a, b) for a, b in zip((3,) + widths, widths))
        pairs = list(zip(widths[::-1], widths[-2::-1]))
        self.wide = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(self.twice(a, b) for a, b in pairs)
        self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(widths[0], classes, 1)

    @staticmethod
    def twice(fan_in, fan_out):
        layers = []
        for count in (fan_in, fan_out):
            layers += [nn.Conv2d(count, fan_out, 3, 1, 1, bias=False), nn.BatchNorm2d(fan_out), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers)

    def forward(self, image):
        kept, x = [], image
        for number, layer in enumerate(self.down):
            x = layer(self.pool(x) if number else x)
            kept.append(x)
        for wide, layer, before in zip(self.wide, self.up, kept[-2::-1]):
            x = layer(torch.cat([before, wide(x)], 1))
        return self.head(x)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width).uniform_(0.7, 1.3))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class LlamaLayer(nn.Module):
    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.norm1, self.norm2 = RMSNorm(width), RMSNorm(width)
        self.query, self.out = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def split(self, x, heads):
        return x.view(x.size(0), x.size(1), heads, self.size).transpose(1, 2)

    @staticmethod
    def rotate(x, cos, sin):
        low, high = x[..., : x.size(-1) // 2], x[..., x.size(-1) // 2 :]
        return x * cos + torch.cat([-high, low], -1) * sin

    def repeat(self, x):
        x = x[:, :, None].expand(x.size(0), self.groups, self.heads // self.groups, x.size(2), self.size)
        return x.reshape(x.size(0), self.heads, x.size(3), self.size)

    def forward(self, x, cos, sin, past_key, past_value):
        y = self.norm1(x)
        query = self.rotate(self.split(self.query(y), self.heads), cos, sin)
        key = torch.cat([past_key, self.rotate(self.split(self.key(y), self.groups), cos, sin)], 2)
        value = torch.cat([past_value, self.split(self.value(y), self.groups)], 2)
        scores = torch.matmul(query, self.repeat(key).transpose(2, 3)) / math.sqrt(self.size)
        mixed = torch.matmul(torch.softmax(scores, -1), self.repeat(value)).transpose(1, 2)
        x = x + self.out(mixed.reshape(x.size(0), x.size(1), self.heads * self.size))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), key, value


class Llama(nn.Module):
    """One step of a decoder: the next token, with the keys and values of all earlier ones; 4 groups of 4 heads of 64."""

    def __init__(self, layers=16, width=1024, heads=16, groups=4, hidden=2816, vocabulary=32000, positions=2048):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, groups, hidden) for _ in range(layers))
        self.norm, self.head = RMSNorm(width), nn.Linear(width, vocabulary, bias=False)
        half = width // heads // 2
        angles = torch.arange(positions)[:, None] * 10000.0 ** (-torch.arange(half)[None] / half)
        self.register_buffer("cos", torch.cat([angles.cos()] * 2, 1))
        self.register_buffer("sin", torch.cat([angles.sin()] * 2, 1))

    def forward(self, token, position, *past):
        x, present = self.tokens(token), []
        cos, sin = self.cos[position][:, None], self.sin[position][:, None]
        for number, layer in enumerate(self.layers):
            x, key, value = layer(x, cos, sin, past[2 * number], past[2 * number + 1])
            present += [key, value]
        return (self.head(self.norm(x)), *present)


def randomise(model):
    """Sets weights of unit gain and random statistics of batch norms, so that no parameter stays zero or one."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
                fan_in = module.weight[0].numel()
                if isinstance(module, nn.ConvTranspose2d):  # with stride 2 and side 2: one weight per channel and
                                                            # result
                    fan_in = module.weight.size(0)
                module.weight.normal_(0, math.sqrt((1 if isinstance(module, (nn.ConvTranspose2d, nn.Linear)) else 2) / fan_in))
                if module.bias is not None:
                    module.bias.normal_(0, 0.1)
            elif isinstance(module, nn.Embedding):
                module.weight.normal_(0, 1)
            elif isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.6, 1.4)
                module.weight.uniform_(0.5, 1.0)
                module.bias.normal_(0, 0.1)
            elif isinstance(module, nn.LayerNorm):
                module.weight.uniform_(0.7, 1.3)
                module.bias.normal_(0, 0.1)


def calibrate(model, example):
    """Sets the statistics of each batch norm from one random batch."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for module in norms:
        module.momentum = 0.9
    if norms:
        model.train()
        with torch.no_grad():
            model(*example)
    model.eval()


def image_model(model, batch=4, side=224):
    example = (torch.randn(batch, 3, side, side),)
    names = {"input_names": ["image"], "output_names": ["logits"]}
    return model, example, names | {"dynamic_axes": {"image": {0: "batch"}, "logits": {0: "batch"}}}


def text_model(model):
    ids = torch.randint(0, 30522, (2, 16))
    example = (ids, torch.ones_like(ids), torch.zeros_like(ids))
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    axes = {name: {0: "batch", 1: "sequence"} for name in inputs + ["last_hidden_state"]} | {
        "pooler_output": {0: "batch"}
    }
    return (
        model,
        example,
        {"input_names": inputs, "output_names": ["last_hidden_state", "pooler_output"], "dynamic_axes": axes},
    )


def decoder_model(model, groups=4, size=64, past=7):
    layers = len(model.layers)
    caches = tuple(torch.randn(1, groups, past, size) for _ in range(2 * layers))
    ends = [f"{number}.{part}" for number in range(layers) for part in ("key", "value")]
    inputs, outputs = [f"past.{end}" for end in ends], [f"present.{end}" for end in ends]
    axes = {name: {2: "past"} for name in inputs} | {name: {2: "past + 1"} for name in outputs}
    names = {"input_names": ["token", "position"] + inputs, "output_names": ["logits"] + outputs}
    return model, (torch.tensor([[5]]), torch.tensor([[past]]), *caches), names | {"dynamic_axes": axes}


MODELS = {
    "resnet50": lambda: image_model(ResNet()),
    "mobilenet_v2": lambda: image_model(MobileNetV2()),
    "bert_base": lambda: text_model(Bert()),
    "vit_b16": lambda: image_model(ViT(), 2),
    "unet": lambda: image_model(UNet(), 1, 256),
    "llama": lambda: decoder_model(Llama()),
} | detectors.MODELS | speech.MODELS | sequences.MODELS


def export(name, path, opset):
    """Writes the model; returns the module, its example inputs and their names."""
    torch.manual_seed(2026)
    model, example, options = MODELS[name]()
    randomise(model)
    calibrate(model, example)
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:  # the newer exporter, the default of newer versions
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, example, str(path), opset_version=opset, do_constant_folding=True, **options)
    return model, example, options["input_names"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--opset", type=int, default=14)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    for name in args.models.split(","):
        path = args.folder / f"{name}.onnx"
        export(name, path, args.opset)
        try:
            import onnx

            ops = collections.Counter(
                node.op_type for node in onnx.load(str(path), load_external_data=False).graph.node
            )
            listed = ", ".join(f"{op} {count}" for op, count in sorted(ops.items()))
        except ImportError:
            listed = "install onnx to see its operators"
        print(
            f"{path}: {path.stat().st_size / 1e6:.1f} MB, opset {args.opset}, torch {torch.__version__}: {listed}",
            flush=True,
        )


if __name__ == "__main__":
    main()
