"""Three nets that listen: recurrent layers over one sequence, and convolutions of one channel."""

import torch
from torch import nn


class SpectrumGru(nn.Module):
    """Convolutions over frames of a spectrum, then layers of GRU in both directions (Défossez et al. 2020,
    arXiv:2006.12847, have such a middle), and a score for the whole sequence."""

    def __init__(self, bins=161, channels=32, width=128, layers=2):
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.Conv2d(1, channels, 3, (1, 2), 1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, (1, 2), 1), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, (1, 2), 1), nn.BatchNorm2d(channels), nn.ReLU(),
        )  # fmt: skip
        self.gru = nn.GRU((bins + 7) // 8 * channels, width, layers, bidirectional=True, batch_first=True)
        self.head = nn.Sequential(nn.Linear(2 * width, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, frames):
        x = self.convolutions(frames[:, None])
        x = x.permute(0, 2, 1, 3).flatten(2)
        return self.head(self.gru(x)[0]).mean(1)


class WaveLstm(nn.Module):
    """A spectrum by a convolution over the samples, an encoder of convolutions, and an LSTM that gives a probability for
    each frame and its states for the next call."""

    def __init__(self, window=256, width=128):
        super().__init__()
        self.spectrum = nn.Conv1d(1, 2 * (window // 2 + 1), window, window // 4, bias=False)
        widths = (window // 2 + 1, 128, 64, 64, width)
        layers = [nn.Sequential(nn.Conv1d(a, b, 3, 1, 1), nn.ReLU()) for a, b in zip(widths, widths[1:])]
        self.encoder, self.lstm = nn.Sequential(*layers), nn.LSTM(width, width, 2)
        self.decoder = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 1, 1), nn.Sigmoid())

    def forward(self, samples, hidden, cell):
        real, imaginary = self.spectrum(samples[:, None]).chunk(2, 1)
        x = self.encoder(torch.sqrt(real**2 + imaginary**2 + 1e-6))
        x, (hidden, cell) = self.lstm(x.permute(2, 0, 1), (hidden, cell))
        return self.decoder(x.permute(1, 2, 0)), hidden, cell


class OneChannel(nn.Module):
    """An image of one channel, small convolutions and a few scores."""

    def __init__(self):
        super().__init__()
        widths, layers = (1, 32, 32, 32, 64), []
        for number, (a, b) in enumerate(zip(widths, widths[1:])):
            layers += [nn.Conv2d(a, b, 3, 1, 1), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if number < 3 else []
        self.layers = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 3))

    def forward(self, spectrogram):
        return self.head(self.layers(spectrogram[:, None]).amax((2, 3)))


def gru_model():
    axes = {"frames": {0: "batch", 1: "steps"}, "score": {0: "batch"}}
    return SpectrumGru(), (torch.randn(1, 150, 161),), {"input_names": ["frames"], "output_names": ["score"], "dynamic_axes": axes}


def lstm_model():
    states = (torch.randn(2, 1, 128), torch.randn(2, 1, 128))
    names = {"input_names": ["samples", "hidden", "cell"], "output_names": ["speech", "next_hidden", "next_cell"]}
    axes = {"samples": {0: "batch", 1: "length"}, "speech": {0: "batch", 2: "steps"}}
    axes |= {name: {1: "batch"} for name in ("hidden", "cell", "next_hidden", "next_cell")}
    return WaveLstm(), (torch.randn(1, 8192), *states), names | {"dynamic_axes": axes}


def one_channel_model():
    axes = {"spectrogram": {0: "batch"}, "scores": {0: "batch"}}
    example = (torch.randn(1, 900, 120),)
    return OneChannel(), example, {"input_names": ["spectrogram"], "output_names": ["scores"], "dynamic_axes": axes}


MODELS = {"speech_gru": gru_model, "speech_lstm": lstm_model, "speech_one_channel": one_channel_model}
