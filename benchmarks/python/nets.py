"""Nets of the rows in steps.py. A function takes `nn`: tenon.nn or torch.nn, which have the same names."""


def resnet18(nn, classes=1000):
    """ResNet-18 (He et al. 2015) for images [batch, 3, height, width]."""
    class Block(nn.Module):
        def __init__(self, before, after, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
            self.bn1 = nn.BatchNorm2d(after)
            self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
            self.bn2 = nn.BatchNorm2d(after)
            self.shortcut = nn.Identity() if before == after else nn.Sequential(
                nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after))

        def forward(self, x):
            y = self.bn1(self.conv1(x)).relu()
            return (self.bn2(self.conv2(y)) + self.shortcut(x)).relu()

    layers = [nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, stride=2, padding=1)]
    before = 64
    for after, stride in (64, 1), (128, 2), (256, 2), (512, 2):
        layers += [Block(before, after, stride), Block(after, after, 1)]
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))


class _Shape:
    """A block's width, number of heads, and inner width."""

    def __init__(self, width, heads):
        self.width, self.heads, self.inner = width, heads, 4 * width


def _block(nn, shape, attend):
    """A block of BERT, with each norm after its layer."""
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(shape.width, 3 * shape.width)
            self.out = nn.Linear(shape.width, shape.width)
            self.norm1, self.norm2 = nn.LayerNorm(shape.width), nn.LayerNorm(shape.width)
            self.up, self.down = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)
            self.gelu = nn.GELU()

        def attention(self, x):
            batch, length, width = x.shape
            q, k, v = (each.reshape(batch, length, shape.heads, width // shape.heads).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
            return self.out(attend(q, k, v).transpose(1, 2).reshape(batch, length, width))

        def forward(self, x):
            x = self.norm1(x + self.attention(x))
            return self.norm2(x + self.down(self.gelu(self.up(x))))

    return Block()


def bert(nn, blocks=12, width=768, heads=12, words=30522, length=128):
    """BERT (Devlin et al. 2018) without dropout; it predicts the word at each position of [batch, length]."""
    attend = nn.functional.scaled_dot_product_attention

    class Bert(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
            self.norm = nn.LayerNorm(width)
            self.blocks = nn.Sequential(*[_block(nn, _Shape(width, heads), attend) for _ in range(blocks)])
            self.guess = nn.Linear(width, words)

        def forward(self, x):
            return self.guess(self.blocks(self.norm(self.words(x) + self.places.weight)))

    return Bert()
