#!/usr/bin/python3
"""Draws the training pictures of the demo: eight shapes as signed distances, 64x64 pixels, all different.

A shape is a function from points to the signed distance to its border (negative inside). Distances make everything
else simple: anti-aliasing is a clip of the distance, an outline is `abs(distance) - width`, a wobbly hand is a warp of
the points before the distance is taken. Run alone it writes a contact sheet: `make_data.py sheet.ppm`.

The images in `images/` are *not* made here; see `images/README.md`.
"""

import sys

import numpy as np

CLASSES = ("circle", "square", "triangle", "star", "cross", "heart", "arrow", "moon")
SIZE = 64


def polygon_distance(points, vertices):
    """Distances of points [n, p, 2] to polygons [n, k, 2] (Quilez, "2D distance functions", sdPolygon)."""
    best = np.full(points.shape[:2], np.inf, np.float32)
    inside = np.zeros(points.shape[:2], bool)
    for a, b in zip(np.moveaxis(vertices, 1, 0), np.moveaxis(np.roll(vertices, -1, 1), 1, 0)):
        edge = (b - a)[:, None]
        to_point = points - a[:, None]
        length = np.maximum((edge * edge).sum(-1), 1e-12)
        along = np.clip((to_point * edge).sum(-1) / length, 0, 1)
        gap = to_point - along[..., None] * edge
        best = np.minimum(best, (gap * gap).sum(-1))
        crosses = (a[:, None, 1] > points[..., 1]) != (b[:, None, 1] > points[..., 1])
        side = to_point[..., 0] * edge[..., 1] - to_point[..., 1] * edge[..., 0]
        inside ^= crosses & ((side < 0) == (edge[..., 1] > 0))
    return np.sqrt(best) * np.where(inside, -1, 1).astype(np.float32)


def ring(angles, radii):
    return np.stack([np.sin(angles) * radii, -np.cos(angles) * radii], -1).astype(np.float32)


def mirrored(xs, ys):
    """Returns a symmetric polygon from the (x, y) points of its right half, top to bottom, with y pointing down."""
    right = np.stack([xs, ys], -1)
    left = right[:, ::-1] * np.array([-1, 1])
    return np.concatenate([right, left], 1).astype(np.float32)


def circle(points, rng, n):
    return np.hypot(points[..., 0], points[..., 1]) - 0.9


def square(points, rng, n):
    half = rng.uniform(0.7, 0.85, (n, 2)).astype(np.float32)
    half[:, 1] = half[:, 0] * rng.uniform(0.9, 1.1, n)
    rounding = rng.uniform(0, 0.15, (n, 1)).astype(np.float32)
    q = np.abs(points) - half[:, None] + rounding[..., None]
    return np.linalg.norm(np.maximum(q, 0), axis=-1) + np.minimum(q.max(-1), 0) - rounding


def triangle(points, rng, n):
    angles = np.arange(3) * 2 * np.pi / 3 + rng.uniform(-0.2, 0.2, (n, 3))
    rounding = rng.uniform(0, 0.15, (n, 1))
    return polygon_distance(points, ring(angles, rng.uniform(0.8, 1, (n, 3)) - 1.5 * rounding)) - rounding


def star(points, rng, n):
    angles = np.tile(np.arange(10) * np.pi / 5, (n, 1))
    inner = rng.uniform(0.36, 0.52, (n, 1))
    radii = np.where(np.arange(10) % 2 == 0, 1.0, inner)
    rounding = rng.uniform(0, 0.08, (n, 1))
    return polygon_distance(points, ring(angles, radii) * (1 - rounding[..., None])) - rounding


def cross(points, rng, n):
    arm = rng.uniform(0.16, 0.36, (n, 1)).astype(np.float32)
    x, y = np.abs(points[..., 0]), np.abs(points[..., 1])
    first = np.maximum(x - arm, y - 0.9)
    second = np.maximum(x - 0.9, y - arm)
    return np.minimum(first, second)


def heart(points, rng, n):
    t = np.linspace(0, np.pi, 16)
    x = np.sin(t) ** 3
    y = -(13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)) / 16
    stretch = rng.uniform(0.85, 1.15, (n, 1))
    depth = rng.uniform(0.85, 1.1, (n, 1))
    return polygon_distance(points, mirrored(x * stretch * 0.95, (y * depth + 0.1) * 0.95))


def arrow(points, rng, n):
    shaft, head = rng.uniform(0.12, 0.3, n), rng.uniform(0.5, 0.8, n)
    neck = rng.uniform(-0.3, 0.1, n)
    zero, one = np.zeros(n), np.full(n, 0.95)
    barb = neck + np.where(rng.random(n) < 0.3, rng.uniform(0, 0.2, n), 0)
    return polygon_distance(
        points, mirrored(np.stack([zero + 0.01, head, shaft, shaft], 1), np.stack([-one, barb, neck, one], 1))
    )


def moon(points, rng, n):
    thickness = rng.uniform(0.3, 0.75, (n, 1))
    bite = rng.uniform(np.maximum(0.65, 0.97 - thickness / 2), 0.95).astype(np.float32)
    shift = (thickness + bite - 0.9).astype(np.float32)
    outer = np.hypot(points[..., 0], points[..., 1]) - 0.9
    inner = np.hypot(points[..., 0] - shift, points[..., 1]) - bite
    return np.maximum(outer, -inner)


def canvas_points(rng, n):
    """Returns pixel centres in the coordinates of the (moved, turned, warped) shape, and the size of a pixel there."""
    axis = ((np.arange(SIZE) + 0.5) / SIZE * 2 - 1).astype(np.float32)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(1, -1, 2)
    radius = rng.uniform(0.45, 0.9, n)
    room = np.maximum(0.95 - radius, 0)[:, None]
    centre = rng.uniform(-1, 1, (n, 2)) * np.minimum(room, 0.4)
    angle, shear = rng.uniform(-np.pi, np.pi, n), rng.normal(0, 0.07, n)
    c, s = np.cos(angle), np.sin(angle)
    turn = np.stack([np.stack([c, s + shear], -1), np.stack([-s, c], -1)], -2) / radius[:, None, None]
    points = (grid - centre[:, None]) @ turn.transpose(0, 2, 1)
    strength = rng.uniform(0, 0.05, (n, 1, 1)) * (rng.random((n, 1, 1)) < 0.6)
    waves, phase = rng.uniform(2, 6, (n, 1, 2)), rng.uniform(0, 2 * np.pi, (n, 1, 2))
    points = points + strength * np.sin(points[..., ::-1] * waves + phase)
    return points.astype(np.float32), (2 / SIZE / radius)[:, None].astype(np.float32)


def smooth_noise(rng, n, cells):
    """Returns random values on a coarse grid, interpolated, which look like blotches, lamp light or paper."""
    coarse = rng.normal(0, 1, (n, cells + 1, cells + 1)).astype(np.float32)
    at = np.linspace(0, cells, SIZE, endpoint=False)
    low = at.astype(int)
    part = (at - low).astype(np.float32)
    rows = coarse[:, low] * (1 - part)[None, :, None] + coarse[:, low + 1] * part[None, :, None]
    return rows[:, :, low] * (1 - part) + rows[:, :, low + 1] * part


def colour_pairs(rng, n):
    """Returns pairs of colours whose brightness differs by at least a fifth, so that an eye can distinguish them."""
    luma = np.array([0.3, 0.59, 0.11], np.float32)
    back, front = rng.random((n, 3), np.float32), rng.random((n, 3), np.float32)
    while (close := np.abs((back - front) @ luma) < 0.2).any():
        front[close] = rng.random((close.sum(), 3), np.float32)
    return back, front


def clutter(rng, n):
    """Returns the coverage of distractions: a straight edge across the picture, and a few small dots."""
    axis = np.linspace(-1, 1, SIZE, dtype=np.float32)
    x, y = np.meshgrid(axis, axis)
    angle, offset = rng.uniform(0, 2 * np.pi, (n, 1, 1)), rng.uniform(0.5, 1.6, (n, 1, 1))
    edge = np.clip(((np.cos(angle) * x + np.sin(angle) * y) - offset) * SIZE / 2, 0, 1)
    for _ in range(3):
        cx, cy, r = rng.uniform(-1, 1, (3, n, 1, 1))
        far = np.hypot(cx, cy) > 0.75
        edge = np.maximum(edge, far * np.clip((0.03 + 0.05 * np.abs(r) - np.hypot(x - cx, y - cy)) * SIZE / 2, 0, 1))
    return edge.astype(np.float32) * (rng.random((n, 1, 1)) < 0.35)


def paint(distance, pixel, rng):
    """Colours the distance field [n, p]: filled or outlined, with border, shading, clutter, blur and grain."""
    n = len(distance)
    outline = (rng.random((n, 1)) < 0.35) * rng.uniform(0.06, 0.14, (n, 1))
    body = np.where(outline > 0, np.abs(distance) - np.maximum(outline, pixel), distance)
    soft = pixel * rng.uniform(0.8, 2.0, (n, 1))
    cover = np.clip(0.5 - body / soft, 0, 1).reshape(n, SIZE, SIZE, 1)
    back, front = colour_pairs(rng, n)
    third = rng.random((n, 1, 1, 3), np.float32)

    image = np.broadcast_to(back[:, None, None], (n, SIZE, SIZE, 3)).astype(np.float32)
    image = image + smooth_noise(rng, n, 3)[..., None] * rng.uniform(0, 0.09, (n, 1, 1, 1))
    image = image + smooth_noise(rng, n, 16)[..., None] * rng.uniform(0, 0.05, (n, 1, 1, 1))
    junk = clutter(rng, n)[..., None]
    image = image + (third - image) * junk
    shadow = np.roll(cover, rng.integers(1, 4, 2), (1, 2)) * (rng.random((n, 1, 1, 1)) < 0.25)
    image = image * (1 - 0.4 * shadow)
    ink = front[:, None, None] + smooth_noise(rng, n, 2)[..., None] * rng.uniform(0, 0.1, (n, 1, 1, 1))
    image = image + (ink - image) * cover
    rim = np.clip(0.5 - (np.abs(distance) - 1.5 * pixel) / pixel, 0, 1).reshape(n, SIZE, SIZE, 1)
    rim = rim * ((rng.random((n, 1, 1, 1)) < 0.25) & (outline[..., None, None] == 0))
    dark = np.where(rng.random((n, 1, 1, 1)) < 0.5, 0.05, 0.95)
    image = image + (dark - image) * rim
    grain = rng.standard_normal(image.shape, np.float32) * rng.uniform(0, 0.06, (n, 1, 1, 1))
    grey = rng.random((n, 1, 1, 1)) < 0.2
    image = np.where(grey, image.mean(-1, keepdims=True), image) + grain
    return (np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8)


def make_images(n, rng, batch=128):
    """Returns `n` pictures [n, 64, 64, 3] of bytes and their class numbers [n], in random order."""
    labels = rng.permutation(np.arange(n) % len(CLASSES))
    images = np.empty((n, SIZE, SIZE, 3), np.uint8)
    for number, name in enumerate(CLASSES):
        mine = np.flatnonzero(labels == number)
        for part in np.array_split(mine, max(1, len(mine) // batch)):
            points, pixel = canvas_points(rng, len(part))
            distance = globals()[name](points, rng, len(part)).astype(np.float32)
            images[part] = paint(distance, pixel, rng)
    return images, labels


def main():
    images, labels = make_images(160, np.random.default_rng(7))
    rows = images[np.argsort(labels, kind="stable")].reshape(8, 20, SIZE, SIZE, 3)
    sheet = rows.transpose(0, 2, 1, 3, 4).reshape(8 * SIZE, 20 * SIZE, 3)
    with open(sys.argv[1], "wb") as file:
        file.write(b"P6 %d %d 255\n" % (sheet.shape[1], sheet.shape[0]) + sheet.tobytes())


if __name__ == "__main__":
    main()
