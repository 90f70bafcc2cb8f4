"""Trains a small net on scikit-learn's 8 x 8 pixel digits. It recognises about 97 of 100 digits that it has not seen.

    pip install scikit-learn
    python digits.py [--epochs 40] [--save digits.safetensors] [--eager]
"""

import argparse

import tenon
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tenon import nn, optim


def make_net():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(128, 10))


def accuracy(net, images, labels):
    net.eval()
    with tenon.no_grad():
        right = (net(images).argmax(1) == labels).float().mean().item()
    net.train()
    return right


def data(seed=0):
    """Returns training images, test images, training labels and test labels."""
    digits = load_digits()
    images = (digits.images / 16).astype("float32")[:, None]
    parts = train_test_split(images, digits.target, test_size=0.25, random_state=seed, stratify=digits.target)
    return [tenon.tensor(part) for part in parts]


def train(epochs=40, batch=64, compiled=True, seed=0, after_epoch=None):
    """Returns the net, the share of test digits that it recognises, and the loss of each epoch.

    after_epoch: a function that is called after each epoch with the list of losses so far."""
    tenon.manual_seed(seed)
    images, test_images, labels, test_labels = data(seed)
    net = make_net()
    rate = tenon.tensor(0.0)  # a tensor, because compiled steps read its current value
    optimizer = optim.AdamW(net.parameters(), lr=rate, weight_decay=1e-3, capturable=True)
    optimizer.prepare()
    steps = len(images) // batch

    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    step = tenon.compile(step) if compiled else step
    losses = []
    schedule = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.01, total_steps=epochs * steps + 1, cycle_momentum=False)
    for _ in range(epochs):
        order = tenon.randperm(len(images))
        total = 0.0
        for i in range(steps):
            chosen = order[i * batch:(i + 1) * batch]
            total += step(images[chosen], labels[chosen]).item()
            schedule.step()
        losses.append(total / steps)
        if after_epoch is not None:
            after_epoch(losses)
    return net, accuracy(net, test_images, test_labels), losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--save", help="a .safetensors or .npz file for what the net has learned")
    parser.add_argument("--eager", action="store_true", help="op after op, not as one program")
    args = parser.parse_args()
    net, right, losses = train(args.epochs, compiled=not args.eager)
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}; {right:.1%} of the digits it has not seen are right")
    if args.save:
        tenon.save(net.state_dict(), args.save)


if __name__ == "__main__":
    main()
