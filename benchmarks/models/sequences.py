"""Nets that write sequences: a decoder inside the graph, as a Loop, and an encoder with one step of its decoder."""

import math

import torch
from torch import nn


class Writer(nn.Module):
    """Writes `steps` tokens: attention over the features, then a GRU cell."""

    def __init__(self, width, hidden, tokens):
        super().__init__()
        self.hidden, self.tokens = hidden, tokens
        self.to_key, self.to_query = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, hidden)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.from_input, self.from_state = nn.Linear(width + tokens, 3 * hidden), nn.Linear(hidden, 3 * hidden)
        self.structure = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, tokens))
        self.place = nn.Sequential(nn.Linear(hidden, hidden), nn.Linear(hidden, 8))

    def forward(self, features: torch.Tensor, steps: torch.Tensor):
        batch = features.size(0)
        keys = self.to_key(features)
        hidden = torch.zeros([batch, self.hidden], dtype=torch.float32)
        token = torch.zeros([batch, self.tokens], dtype=torch.float32)
        structures = torch.zeros([batch, 0, self.tokens], dtype=torch.float32)
        places = torch.zeros([batch, 0, 8], dtype=torch.float32)
        for _ in range(int(steps)):
            weights = torch.softmax(self.score(torch.tanh(keys + self.to_query(hidden).unsqueeze(1))), 1)
            context = (weights * features).sum(1)
            a, b, c = self.from_input(torch.cat([context, token], 1)).chunk(3, 1)
            d, e, f = self.from_state(hidden).chunk(3, 1)
            keep = torch.sigmoid(b + e)
            hidden = (1.0 - keep) * torch.tanh(c + torch.sigmoid(a + d) * f) + keep * hidden
            token = torch.softmax(self.structure(hidden) * 4.0, 1)
            structures = torch.cat([structures, token.unsqueeze(1)], 1)
            places = torch.cat([places, torch.sigmoid(self.place(hidden)).unsqueeze(1)], 1)
        return structures, places


class LoopDecoder(nn.Module):
    """A small convolutional net reads an image, and a loop writes tokens one after the other, as in readers of tables (Li
    et al. 2022, arXiv:2210.05391)."""

    def __init__(self, width=96, hidden=256, tokens=50):
        super().__init__()
        widths = (3, 16, 32, 64, width)
        layers = [
            nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.Hardswish())
            for a, b in zip(widths, widths[1:])
        ]
        self.backbone, self.writer = nn.Sequential(*layers), Writer(width, hidden, tokens)

    def forward(self, image: torch.Tensor, steps: torch.Tensor):
        return self.writer(self.backbone(image).flatten(2).transpose(1, 2), steps)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width).uniform_(0.7, 1.3))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(4))

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def keys(self, x):
        return self.split(self.key(x)), self.split(self.value(x))

    def forward(self, x, key, value, bias):
        weights = torch.softmax(torch.matmul(self.split(self.query(x)), key.transpose(2, 3)) + bias, -1)
        return self.out(torch.matmul(weights, value).transpose(1, 2).reshape(x.size(0), x.size(1), -1))


class Positions(nn.Module):
    """A bias on the scores for each distance between two tokens, in buckets that grow with the distance."""

    def __init__(self, heads, both_ways, buckets=32, greatest=128):
        super().__init__()
        self.table, self.both_ways, self.buckets, self.greatest = nn.Embedding(buckets, heads), both_ways, buckets, greatest

    def forward(self, queries, keys):
        distance = keys[None] - queries[:, None]
        buckets, bucket = self.buckets, torch.zeros_like(distance)
        if self.both_ways:
            buckets //= 2
            bucket = (distance > 0).to(torch.long) * buckets
            distance = distance.abs()
        else:
            distance = -torch.minimum(distance, torch.zeros_like(distance))
        exact = buckets // 2
        far = torch.log(distance.to(torch.float32).clamp(min=1) / exact) / math.log(self.greatest / exact)
        far = torch.clamp(exact + (far * (buckets - exact)).to(torch.long), max=buckets - 1)
        return self.table(bucket + torch.where(distance < exact, distance, far)).permute(2, 0, 1)[None]


class Feed(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(width, hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class TextEncoder(nn.Module):
    """The encoder of T5-small (Raffel et al. 2020, arXiv:1910.10683) with half the layers and a small vocabulary."""

    def __init__(self, layers=3, width=512, heads=8, hidden=2048, vocabulary=4000):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), Positions(heads, True)
        self.attention = nn.ModuleList(Attention(width, heads) for _ in range(layers))
        self.feed = nn.ModuleList(Feed(width, hidden) for _ in range(layers))
        self.norms = nn.ModuleList(Norm(width) for _ in range(2 * layers + 1))

    def forward(self, input_ids, attention_mask):
        place = torch.arange(input_ids.size(1))
        bias = self.places(place, place) + (1.0 - attention_mask[:, None, None].to(torch.float32)) * -1e9
        x = self.tokens(input_ids)
        for number, (attention, feed) in enumerate(zip(self.attention, self.feed)):
            y = self.norms[2 * number](x)
            x = x + attention(y, *attention.keys(y), bias)
            x = x + feed(self.norms[2 * number + 1](x))
        return self.norms[-1](x)


class TextDecoder(nn.Module):
    """One step of the decoder, with the keys and values of the earlier tokens and those of the encoder's result."""

    def __init__(self, layers=3, width=512, heads=8, hidden=2048, vocabulary=4000):
        super().__init__()
        self.tokens, self.places, self.scale = nn.Embedding(vocabulary, width), Positions(heads, False), width**-0.5
        self.own, self.other = (nn.ModuleList(Attention(width, heads) for _ in range(layers)) for _ in range(2))
        self.feed = nn.ModuleList(Feed(width, hidden) for _ in range(layers))
        self.norms = nn.ModuleList(Norm(width) for _ in range(3 * layers + 1))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, token, encoded, attention_mask, *past):
        count = past[0].size(2)
        bias = self.places(torch.arange(count, count + 1), torch.arange(count + 1))
        mask = (1.0 - attention_mask[:, None, None].to(torch.float32)) * -1e9
        x, present = self.tokens(token), []
        for number, (own, other, feed) in enumerate(zip(self.own, self.other, self.feed)):
            y = self.norms[3 * number](x)
            key, value = own.keys(y)
            key, value = torch.cat([past[2 * number], key], 2), torch.cat([past[2 * number + 1], value], 2)
            x = x + own(y, key, value, bias)
            x = x + other(self.norms[3 * number + 1](x), *other.keys(encoded), mask)
            x = x + feed(self.norms[3 * number + 2](x))
            present += [key, value]
        return (self.head(self.norms[-1](x) * self.scale), *present)


def loop_model():
    model = torch.jit.script(LoopDecoder())  # which keeps the loop
    names = {"input_names": ["image", "steps"], "output_names": ["structures", "places"]}
    axes = {"structures": {1: "count"}, "places": {1: "count"}}
    return model, (torch.randn(1, 3, 256, 256), torch.tensor(40)), names | {"dynamic_axes": axes}


def encoder_model():
    names = {"input_names": ["input_ids", "attention_mask"], "output_names": ["encoded"]}
    axes = {name: {0: "batch", 1: "sequence"} for name in ("input_ids", "attention_mask", "encoded")}
    ids = torch.randint(0, 4000, (2, 16))
    return TextEncoder(), (ids, torch.ones_like(ids)), names | {"dynamic_axes": axes}


def decoder_model(heads=8, size=64):
    model = TextDecoder()
    ends = [f"{number}.{part}" for number in range(len(model.own)) for part in ("key", "value")]
    past = tuple(torch.randn(1, heads, 7, size) for _ in ends)
    inputs, outputs = [f"past.{end}" for end in ends], [f"present.{end}" for end in ends]
    axes = {name: {2: "past"} for name in inputs} | {name: {2: "past + 1"} for name in outputs}
    axes |= {"encoded": {1: "sequence"}, "attention_mask": {1: "sequence"}}
    names = {"input_names": ["token", "encoded", "attention_mask"] + inputs, "output_names": ["logits"] + outputs}
    example = (torch.tensor([[5]]), torch.randn(1, 16, 512), torch.ones(1, 16, dtype=torch.int64), *past)
    return model, example, names | {"dynamic_axes": axes}


MODELS = {"table_loop": loop_model, "text_encoder": encoder_model, "text_decoder": decoder_model}
