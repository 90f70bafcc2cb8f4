"""Three detectors of the families that most cameras run: cross-stage blocks (Wang et al. 2019, arXiv:1911.11929) whose
convolutions end in an activation and then add a residual. Each returns the boxes and scores of three scales in one tensor.
"""

import torch
from torch import nn


class Block(nn.Sequential):
    """A convolution, a batch norm and an activation."""

    def __init__(self, fan_in, fan_out, size=1, stride=1, groups=1, activation=nn.SiLU):
        convolution = nn.Conv2d(fan_in, fan_out, size, stride, size // 2, groups=groups, bias=False)
        super().__init__(convolution, nn.BatchNorm2d(fan_out), activation())


class Residual(nn.Module):
    def __init__(self, width, activation=nn.SiLU, sizes=(1, 3)):
        super().__init__()
        self.body = nn.Sequential(*(Block(width, width, size, activation=activation) for size in sizes))

    def forward(self, x):
        return x + self.body(x)


class CrossStage(nn.Module):
    """Half of the channels pass through residual blocks, the other half beside them."""

    def __init__(self, fan_in, fan_out, depth, activation=nn.SiLU, residual=True):
        super().__init__()
        half = fan_out // 2
        self.left, self.right = (Block(fan_in, half, activation=activation) for _ in range(2))
        inner = (Residual(half, activation) if residual else Block(half, half, 3, activation=activation) for _ in range(depth))
        self.inner, self.out = nn.Sequential(*inner), Block(fan_out, fan_out, activation=activation)

    def forward(self, x):
        return self.out(torch.cat([self.inner(self.left(x)), self.right(x)], 1))


class SplitStage(nn.Module):
    """One convolution is split, and the result of every residual block is kept."""

    def __init__(self, fan_in, fan_out, depth, residual=True):
        super().__init__()
        half = fan_out // 2
        self.wide = Block(fan_in, fan_out)
        self.inner = nn.ModuleList(
            Residual(half, sizes=(3, 3)) if residual else nn.Sequential(Block(half, half, 3), Block(half, half, 3))
            for _ in range(depth)
        )
        self.out = Block((2 + depth) * half, fan_out)

    def forward(self, x):
        kept = list(self.wide(x).chunk(2, 1))
        for block in self.inner:
            kept.append(block(kept[-1]))
        return self.out(torch.cat(kept, 1))


class Pyramid(nn.Module):
    """Max pooling of three sizes: one after the other, or side by side."""

    def __init__(self, width, sizes, activation=nn.SiLU):
        super().__init__()
        self.begin = Block(width, width // 2, activation=activation)
        self.pools = nn.ModuleList(nn.MaxPool2d(size, 1, size // 2) for size in sizes)
        self.out, self.chained = Block(2 * width, width, activation=activation), len(set(sizes)) == 1

    def forward(self, x):
        kept = [self.begin(x)]
        for pool in self.pools:
            kept.append(pool(kept[-1] if self.chained else kept[0]))
        return self.out(torch.cat(kept, 1))


class Detector(nn.Module):
    """A backbone of five halvings, a path up and a path down, and a head for each of three scales."""

    def __init__(self, stem, stage, pyramid, head, widths, activation=nn.SiLU):
        super().__init__()
        a, b, c, d, e = widths
        self.stem, self.low = stem(a), nn.Sequential(Block(a, b, 3, 2, activation=activation), stage(b, b, 1, True))
        self.first = nn.Sequential(Block(b, c, 3, 2, activation=activation), stage(c, c, 2, True))
        self.second = nn.Sequential(Block(c, d, 3, 2, activation=activation), stage(d, d, 2, True))
        self.third = nn.Sequential(Block(d, e, 3, 2, activation=activation), stage(e, e, 1, True), pyramid(e))
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")
        self.join_second, self.join_first = stage(e + d, d, 1, False), stage(d + c, c, 1, False)
        self.down_first, self.down_second = Block(c, c, 3, 2, activation=activation), Block(d, d, 3, 2, activation=activation)
        self.end_second, self.end_third = stage(c + d, d, 1, False), stage(d + e, e, 1, False)
        self.heads = nn.ModuleList(head(width) for width in (c, d, e))

    def forward(self, image):
        first = self.first(self.low(self.stem(image)))
        second = self.second(first)
        third = self.third(second)
        middle = self.join_second(torch.cat([self.up(third), second], 1))
        fine = self.join_first(torch.cat([self.up(middle), first], 1))
        middle = self.end_second(torch.cat([self.down_first(fine), middle], 1))
        coarse = self.end_third(torch.cat([self.down_second(middle), third], 1))
        return torch.cat([head(x) for head, x in zip(self.heads, (fine, middle, coarse))], 1)


class AnchorHead(nn.Module):
    """Three boxes per place: sigmoid of everything, then the grid and the sizes of the anchors."""

    def __init__(self, width, numbers=85):
        super().__init__()
        self.out, self.numbers = nn.Conv2d(width, 3 * numbers, 1), numbers
        self.register_buffer("anchors", torch.rand(1, 3, 1, 1, 2) * 64)

    def forward(self, x):
        x = self.out(x)
        batch, _, height, width = x.shape
        x = torch.sigmoid(x.view(batch, 3, self.numbers, height, width).permute(0, 1, 3, 4, 2))
        rows, columns = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        grid = torch.stack([columns, rows], 2).view(1, 1, height, width, 2).to(x.dtype)
        place, size, scores = x.split([2, 2, self.numbers - 4], 4)
        x = torch.cat([place * 2 - 0.5 + grid, (size * 2) ** 2 * self.anchors, scores], 4)
        return x.reshape(batch, 3 * height * width, self.numbers)


class ApartHead(nn.Module):
    """Boxes and classes by convolutions of their own."""

    def __init__(self, width, classes=80, activation=nn.LeakyReLU):
        super().__init__()
        self.begin = Block(width, width, activation=activation)
        self.boxes, self.classes = (
            nn.Sequential(*(Block(width, width, 3, activation=activation) for _ in range(2))) for _ in range(2)
        )
        self.box, self.object, self.label = nn.Conv2d(width, 4, 1), nn.Conv2d(width, 1, 1), nn.Conv2d(width, classes, 1)

    def forward(self, x):
        x = self.begin(x)
        boxes = self.boxes(x)
        scores = [torch.sigmoid(self.object(boxes)), torch.sigmoid(self.label(self.classes(x)))]
        return torch.cat([self.box(boxes)] + scores, 1).flatten(2).transpose(1, 2)


class DistributionHead(nn.Module):
    """Each side of a box is the mean of a distribution over 16 distances (Li et al. 2020, arXiv:2006.04388)."""

    def __init__(self, width, classes=80):
        super().__init__()
        self.box = nn.Sequential(Block(width, 64, 3), Block(64, 64, 3), nn.Conv2d(64, 64, 1))
        self.label = nn.Sequential(Block(width, width, 3), Block(width, width, 3), nn.Conv2d(width, classes, 1))
        self.mean = nn.Conv2d(16, 1, 1, bias=False)

    def forward(self, x):
        boxes = self.box(x).flatten(2)
        batch, _, places = boxes.shape
        sides = self.mean(boxes.view(batch, 4, 16, places).transpose(2, 1).softmax(1)).view(batch, 4, places)
        left, right = sides.chunk(2, 1)
        boxes = torch.cat([(right - left) / 2, left + right], 1)
        return torch.cat([boxes, torch.sigmoid(self.label(x).flatten(2))], 1).transpose(1, 2)


class Focus(nn.Module):
    """Four pixels become four times the channels."""

    def __init__(self, width):
        super().__init__()
        self.block = Block(12, width, 3, activation=nn.LeakyReLU)

    def forward(self, x):
        parts = [x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]]
        return self.block(torch.cat(parts, 1))


WIDTHS = (16, 32, 64, 128, 256)


def anchors():
    return Detector(
        lambda width: Block(3, width, 3, 2),
        lambda fan_in, fan_out, depth, residual: CrossStage(fan_in, fan_out, depth, residual=residual),
        lambda width: Pyramid(width, (5, 5, 5)),
        AnchorHead,
        WIDTHS,
    )


def focus():
    return Detector(
        Focus,
        lambda fan_in, fan_out, depth, residual: CrossStage(fan_in, fan_out, depth, nn.LeakyReLU, residual),
        lambda width: Pyramid(width, (5, 9, 13), nn.LeakyReLU),
        ApartHead,
        WIDTHS,
        nn.LeakyReLU,
    )


def split():
    return Detector(
        lambda width: Block(3, width, 3, 2),
        lambda fan_in, fan_out, depth, residual: SplitStage(fan_in, fan_out, depth, residual),
        lambda width: Pyramid(width, (5, 5, 5)),
        DistributionHead,
        WIDTHS,
    )


def detector_model(model):
    names = {"input_names": ["image"], "output_names": ["boxes"]}
    return model, (torch.randn(1, 3, 320, 320),), names | {"dynamic_axes": {"image": {0: "batch"}, "boxes": {0: "batch"}}}


MODELS = {
    "yolo_anchors": lambda: detector_model(anchors()),
    "yolo_focus": lambda: detector_model(focus()),
    "yolo_split": lambda: detector_model(split()),
}
