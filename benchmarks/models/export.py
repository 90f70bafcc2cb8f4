#!/usr/bin/env python3
"""Writes ResNet-50, MobileNet-v2 and BERT-base shaped models as PyTorch exports them, with random weights.

    /usr/bin/python3 export.py FOLDER [--models resnet50,mobilenet_v2,bert_base] [--opset 14]

Needs torch 1.13 or newer: Debian's python3-torch, or one in a virtual environment.

The modules are written here in plain torch, so torchvision and transformers are not needed; layer sizes are those of
He et al. 2016 (arXiv:1512.03385), Sandler et al. 2018 (arXiv:1801.04381) and Devlin et al. 2018 (arXiv:1810.04805).
Batch and sequence are dynamic. The exporter is TorchScript's, because most models have its graphs. A fixed seed gives the
weights. Batch norms take their statistics from one random batch, so that no output fades to a constant.
"""

import argparse
import collections
import inspect
import math
import pathlib
import warnings

import torch
from torch import nn


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


def randomise(model):
    """Weights of unit gain, and batch norms with statistics of their own; nothing stays zero or one."""
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, (nn.Conv2d, nn.Linear)):
                fan_in = module.weight[0].numel()
                module.weight.normal_(0, math.sqrt((2 if isinstance(module, nn.Conv2d) else 1) / fan_in))
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
    """Gives each batch norm the statistics of one random batch, as training gives it those of its data."""
    norms = [module for module in model.modules() if isinstance(module, nn.BatchNorm2d)]
    for module in norms:
        module.momentum = 0.9
    if norms:
        model.train()
        with torch.no_grad():
            model(*example)
    model.eval()


def image_model(model):
    example = (torch.randn(4, 3, 224, 224),)
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


MODELS = {
    "resnet50": lambda: image_model(ResNet()),
    "mobilenet_v2": lambda: image_model(MobileNetV2()),
    "bert_base": lambda: text_model(Bert()),
}


def export(name, path, opset):
    torch.manual_seed(2026)
    model, example, options = MODELS[name]()
    randomise(model)
    calibrate(model, example)
    if "dynamo" in inspect.signature(torch.onnx.export).parameters:  # the newer exporter, the default of newer versions
        options["dynamo"] = False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, example, str(path), opset_version=opset, do_constant_folding=True, **options)


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
