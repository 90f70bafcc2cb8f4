"""Runs the ops of `ops.cpp` in PyTorch on the same GPU, and prints the ratio of each row, worst first.

Usage: torch_rows.py ROWS       the lines that bench_cuda wrote with --benchmark_out=ROWS
"""
import json
import sys
import time

import torch
import torch.nn.functional as F

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
BATCH_SECONDS = 0.004
BATCHES = 15


def uniform(dtype, *dims):
    return (torch.rand(*dims, device="cuda") * 2 - 1).to(dtype)


def matrix_ops(dtype, rows, columns):
    x, y, row, column = (uniform(dtype, *dims) for dims in ((rows, columns), (rows, columns), (columns,), (rows, 1)))
    greater, picked = x > y, torch.randint(0, rows, (rows,), device="cuda")
    other = torch.bfloat16 if dtype == torch.float32 else torch.float32
    return {
        "relu": lambda: torch.relu(x),
        "exp": lambda: torch.exp(x),
        "gelu": lambda: F.gelu(x),
        "silu": lambda: F.silu(x),
        "add": lambda: torch.add(x, y),
        "add row": lambda: torch.add(x, row),
        "add column": lambda: torch.add(x, column),
        "mul number": lambda: torch.mul(x, 2.0),
        "gt": lambda: torch.gt(x, y),
        "where": lambda: torch.where(greater, x, y),
        "cast": lambda: x.to(other),
        "transpose": lambda: x.t().contiguous(),
        "sum": lambda: torch.sum(x),
        "sum 0": lambda: torch.sum(x, 0),
        "sum 1": lambda: torch.sum(x, 1),
        "amax 1": lambda: torch.amax(x, 1),
        "argmax 1": lambda: torch.argmax(x, 1),
        "softmax 0": lambda: torch.softmax(x, 0),
        "softmax 1": lambda: torch.softmax(x, 1),
        "layer_norm": lambda: F.layer_norm(x, (columns,), row, row, 1e-5),
        "rms_norm": lambda: F.rms_norm(x, (columns,), row, 1e-5),
        "cumsum 1": lambda: torch.cumsum(x, 1),
        "cat 0": lambda: torch.cat([x, y], 0),
        "cat 1": lambda: torch.cat([x, y], 1),
        "index_select 0": lambda: torch.index_select(x, 0, picked),
    }


def product_ops(dtype, rows, columns, length):
    a, b = uniform(dtype, rows, length), uniform(dtype, length, columns)
    weight, bias = uniform(dtype, columns, length), uniform(dtype, columns)
    return {
        "matmul": lambda: torch.matmul(a, b),
        "linear": lambda: F.linear(a, weight),
        "linear bias": lambda: F.linear(a, weight, bias),
    }


def image_ops(dtype):
    x, channel = uniform(dtype, 32, 64, 112, 112), uniform(dtype, 64)
    variance, small, kernel = channel.abs(), uniform(dtype, 16, 64, 56, 56), uniform(dtype, 64, 64, 3, 3)
    return {
        "max_pool2d": lambda: F.max_pool2d(x, 3, 2, 1),
        "avg_pool2d": lambda: F.avg_pool2d(x, 2, 2),
        "batch_norm": lambda: F.batch_norm(x, channel, variance, channel, channel),
        "group_norm": lambda: F.group_norm(x, 8, channel, channel),
        "pad": lambda: F.pad(x, (1, 1, 1, 1)),
        "conv2d": lambda: F.conv2d(small, kernel, None, 1, 1),
    }


def attention_ops(dtype, heads, groups, width, queries, keys):
    query = uniform(dtype, 1, heads, queries, width)
    key, value = uniform(dtype, 1, groups, keys, width), uniform(dtype, 1, groups, keys, width)
    attend = F.scaled_dot_product_attention
    return {
        "attention": lambda: attend(query, key, value, enable_gqa=heads != groups),
        "attention causal": lambda: attend(query, key, value, is_causal=True, enable_gqa=heads != groups),
    }


def random_ops(dtype):
    count = 16 << 20
    x = uniform(dtype, count)
    return {
        "rand": lambda: torch.rand(count, dtype=dtype, device="cuda"),
        "randn": lambda: torch.randn(count, dtype=dtype, device="cuda"),
        "dropout": lambda: F.dropout(x, 0.5),
    }


def sorting_ops(dtype, rows, columns):
    x = uniform(dtype, rows, columns)
    ordered, equal, some = x.sort(1).values, x * 0, x > 0.5
    return {
        "sort": lambda: torch.sort(x, dim=1, stable=True),
        "sort sorted": lambda: torch.sort(ordered, dim=1, stable=True),
        "sort equal": lambda: torch.sort(equal, dim=1, stable=True),
        "sort descending": lambda: torch.sort(x, dim=1, descending=True, stable=True),
        "argsort": lambda: torch.argsort(x, dim=1, stable=True),
        "topk": lambda: torch.topk(x, 64, 1),
        "topk equal": lambda: torch.topk(equal, 64, 1),
        "nonzero": lambda: torch.nonzero(some),
        "unique": lambda: torch.unique(x),
    }


def channels_last(x):
    return x.contiguous(memory_format=torch.channels_last)


def convolution_ops(dtype):
    large, deep = uniform(dtype, 32, 64, 56, 56), uniform(dtype, 32, 256, 14, 14)
    wide, image = uniform(dtype, 32, 256, 56, 56), uniform(dtype, 32, 3, 224, 224)
    kernel, deep_kernel, point = uniform(dtype, 64, 64, 3, 3), uniform(dtype, 256, 256, 3, 3), uniform(dtype, 64, 256, 1, 1)
    first, each, doubling = uniform(dtype, 64, 3, 7, 7), uniform(dtype, 256, 1, 3, 3), uniform(dtype, 64, 128, 2, 2)
    bias = uniform(dtype, 64)
    large_last, kernel_last = channels_last(large), channels_last(kernel)
    deep_last, deep_kernel_last = channels_last(deep), channels_last(deep_kernel)
    return {
        "3x3": lambda: F.conv2d(large, kernel, None, 1, 1),
        "3x3 bias": lambda: F.conv2d(large, kernel, bias, 1, 1),
        "3x3 nhwc": lambda: F.conv2d(large_last, kernel_last, None, 1, 1),
        "3x3 deep": lambda: F.conv2d(deep, deep_kernel, None, 1, 1),
        "3x3 deep nhwc": lambda: F.conv2d(deep_last, deep_kernel_last, None, 1, 1),
        "1x1": lambda: F.conv2d(wide, point),
        "1x1 bias": lambda: F.conv2d(wide, point, bias),
        "1x1 stride 2": lambda: F.conv2d(wide, point, None, 2),
        "7x7 stride 2": lambda: F.conv2d(image, first, None, 2, 3),
        "depthwise": lambda: F.conv2d(wide, each, None, 1, 1, 1, 256),
        "transposed 2x2": lambda: F.conv_transpose2d(large, doubling, None, 2),
        "transposed 3x3": lambda: F.conv_transpose2d(large, kernel, None, 1, 1),
        "weight 3x3": lambda: torch.nn.grad.conv2d_weight(large, kernel.shape, large, 1, 1),
        "weight 3x3 deep": lambda: torch.nn.grad.conv2d_weight(deep, deep_kernel.shape, deep, 1, 1),
    }


def compiled_ops(dtype):
    x, y, row = uniform(dtype, 4096, 4096), uniform(dtype, 4096, 4096), uniform(dtype, 4096)
    query = uniform(dtype, 4, 8, 512, 64)
    chain = torch.compile(lambda a, b: F.gelu(a * 2 + b) * torch.sigmoid(b))
    scores = torch.compile(lambda a, b: torch.softmax(a * 0.125 + b, 1))
    distances = torch.compile(lambda a, b: ((a - b) * (a - b)).sum(1))
    norm = torch.compile(lambda a, b, w: F.gelu(F.layer_norm(a + b, (4096,), w, w, 1e-5)))
    attention = torch.compile(lambda q: torch.softmax(q @ q.transpose(-2, -1) * 0.125, -1) @ q)
    return {
        "chain": lambda: chain(x, y),
        "scores": lambda: scores(x, y),
        "distances": lambda: distances(x, y),
        "norm": lambda: norm(x, y, row),
        "attention": lambda: attention(query),
    }


def ops_of(suffix):
    """The ops of a family of rows by its suffix: "f32 1024x1024", "bf16 images", "f32 sort1x9", ...; None for other suffixes."""
    dtype, _, sizes = suffix.partition(" ")
    if dtype not in DTYPES:
        return None
    dtype = DTYPES[dtype]
    named = {"images": image_ops, "convolutions": convolution_ops, "compiled": compiled_ops, "random": random_ops}
    if sizes in named:
        return named[sizes](dtype)
    dims = [int(size) for size in sizes.removeprefix("sort").split("x")]
    if sizes.startswith("sort"):
        return sorting_ops(dtype, *dims)
    families = {2: matrix_ops, 3: product_ops, 5: attention_ops}
    return families[len(dims)](dtype, *dims)


def batch(run, count):
    start = time.perf_counter()
    for _ in range(count):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / count


def median_ns(run):
    for _ in range(4):
        batch(run, 1)
    count = max(1, int(BATCH_SECONDS / batch(run, 3)))
    return 1e9 * sorted(batch(run, count) for _ in range(BATCHES))[BATCHES // 2]


def main():
    torch.backends.cudnn.allow_tf32 = False  # matrix products do so by default
    families = {}
    for line in open(sys.argv[1]):
        row = json.loads(line)
        words = row["row"].rsplit(" ", 2)
        if len(row["sides"]) == 1 and len(words) == 3 and words[1] in DTYPES:
            families.setdefault(" ".join(words[1:]), []).append((words[0], row["sides"][0]["median_ns"]))
    print(f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}: ratio, row, Tenon's and PyTorch's microseconds")
    ratios = []
    with torch.no_grad():
        for suffix, rows in families.items():
            ops = ops_of(suffix)
            for name, ours in rows:
                theirs = median_ns(ops[name])
                ratios.append((ours / theirs, f"{name} {suffix}", ours, theirs))
    for ratio, name, ours, theirs in sorted(ratios, reverse=True):
        print(f"{ratio:8.2f}  {name:36} {ours / 1e3:10.2f} {theirs / 1e3:10.2f}")


if __name__ == "__main__":
    main()
