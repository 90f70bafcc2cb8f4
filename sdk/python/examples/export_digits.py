"""Trains the net of digits.py, draws its loss, exports it as an ONNX model, and runs the model with the command-line
tool.

    python export_digits.py [--epochs 20] [--folder digits] [--tool tenon]
"""

import argparse
import pathlib
import subprocess
import sys

import digits
import numpy as np
import tenon

BAR = 30


def show(losses, epochs):
    """Shows a progress bar if standard error is a terminal."""
    if not sys.stderr.isatty():
        return
    done = len(losses) * BAR // epochs
    print(f"\r[{'#' * done}{'.' * (BAR - done)}] epoch {len(losses)} of {epochs}, loss {losses[-1]:.4f} ", end="", file=sys.stderr,
          flush=True)
    if len(losses) == epochs:
        print(file=sys.stderr)


def draw(losses, width=640, height=320, margin=48):
    """Returns an SVG of the loss of each epoch, with a logarithmic axis for the loss."""
    logs = np.log10(np.maximum(losses, 1e-6))
    low, high = np.floor(logs.min()), np.ceil(logs.max())
    if low == high:
        high = low + 1

    def place(epoch, log):
        x = margin + epoch * (width - 2 * margin) / max(len(losses) - 1, 1)
        return f"{x:.1f},{margin + (high - log) * (height - 2 * margin) / (high - low):.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for log in np.arange(low, high + 1):
        (left, y), (right, _) = (place(epoch, log).split(",") for epoch in (0, max(len(losses) - 1, 1)))
        lines.append(f'<path d="M{left} {y}H{right}" stroke="#ddd"/><text x="8" y="{float(y) + 4:.1f}">{10.0 ** log:g}</text>')
    points = " ".join(place(epoch, log) for epoch, log in enumerate(logs))
    lines.append(f'<polyline points="{points}" fill="none" stroke="#0072B2" stroke-width="2"/>')
    lines.append(f'<text x="{margin}" y="{height - 16}">loss of each of {len(losses)} epochs</text></svg>')
    return "\n".join(lines) + "\n"


def run_tool(tool, model, images, folder):
    """Returns the scores that the command-line tool computes for `images`."""
    np.save(folder / "images.npy", np.asarray(images))
    done = subprocess.run([tool, "run", str(model), "--input", f"images={folder / 'images.npy'}", "--output", str(folder)],
                          capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{tool} run failed:\n{done.stderr}")
    return np.load(folder / "scores.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folder", type=pathlib.Path, default="digits", help="where the model and the picture go")
    parser.add_argument("--tool", default="tenon", help="the tool that runs the model")
    args = parser.parse_args()
    if args.epochs < 1:
        parser.error(f"--epochs is {args.epochs}; it must be at least 1.")
    args.folder.mkdir(parents=True, exist_ok=True)

    net, right, losses = digits.train(args.epochs, after_epoch=lambda so_far: show(so_far, args.epochs))
    print(f"trained: loss {losses[0]:.3f} -> {losses[-1]:.4f}; {right:.1%} of the digits it has not seen are right")
    picture, model = args.folder / "loss.svg", args.folder / "digits.onnx"
    picture.write_text(draw(losses))
    print(f"drawn: {picture}")

    _, images, _, labels = digits.data()
    tenon.onnx.export(net.eval(), model, images, input_names=["images"], output_names=["scores"], dynamic_axes={"images": {0: "batch"}})
    print(f"exported: {model}, {model.stat().st_size:,} bytes, for any number of images")

    with tenon.no_grad():
        ours = np.asarray(net(images))
    theirs = run_tool(args.tool, model, images, args.folder)
    same = int((ours.argmax(1) == theirs.argmax(1)).sum())
    print(f"tenon run: {same} of {len(ours)} answers are those of Python; scores differ by {np.abs(ours - theirs).max():.1e} at most")
    if same != len(ours):
        sys.exit("The model does not answer as the net does.")


if __name__ == "__main__":
    main()
