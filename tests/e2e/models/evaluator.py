"""Computes the operators of the test models with NumPy in double precision. It is slow and simple, and uses no code of Tenon.

Floating-point values are float64 from input to output, whatever dtype the model states; integers stay integers.
"""

import itertools

import numpy as np
from onnx import helper, numpy_helper
from scipy import special


def pads_of(attrs, spatial):
    pads = attrs.get("pads", [0] * (2 * spatial))
    return list(zip(pads[:spatial], pads[spatial:]))


def windows(x, kernel, strides, pads, fill):
    """All kernel positions of x [n, c, h, w]: yields (i, j, the elements under tap (i, j) [n, c, out_h, out_w])."""
    padded = np.pad(x, [(0, 0), (0, 0), *pads], constant_values=fill)
    out = [(size - k) // s + 1 for size, k, s in zip(padded.shape[2:], kernel, strides)]
    for i, j in itertools.product(range(kernel[0]), range(kernel[1])):
        rows = slice(i, i + (out[0] - 1) * strides[0] + 1, strides[0])
        cols = slice(j, j + (out[1] - 1) * strides[1] + 1, strides[1])
        yield i, j, padded[:, :, rows, cols]


def conv(attrs, x, weight, bias=None):
    group, kernel = attrs.get("group", 1), weight.shape[2:]
    grouped = weight.reshape(group, weight.shape[0] // group, *weight.shape[1:])
    total = 0
    for i, j, tap in windows(x, kernel, attrs.get("strides", [1, 1]), pads_of(attrs, 2), 0):
        tap = tap.reshape(tap.shape[0], group, -1, *tap.shape[2:])
        total = total + np.einsum("ngchw,goc->ngohw", tap, grouped[..., i, j])
    total = total.reshape(x.shape[0], weight.shape[0], *total.shape[3:])
    return total if bias is None else total + bias[:, None, None]


def conv_transpose(attrs, x, weight, bias=None):
    """For kernels as large as the strides, without padding: each element becomes a separate block."""
    size = weight.shape[2:]
    assert list(size) == list(attrs["strides"]) and not any(attrs.get("pads", [0])) and attrs.get("group", 1) == 1
    blocks = np.einsum("nchw,coij->nohiwj", x, weight)
    total = blocks.reshape(*blocks.shape[:2], x.shape[2] * size[0], x.shape[3] * size[1])
    return total if bias is None else total + bias.reshape(1, -1, 1, 1)


def max_pool(attrs, x):
    taps = windows(x, attrs["kernel_shape"], attrs.get("strides", [1, 1]), pads_of(attrs, 2), -np.inf)
    return np.max([tap for _, _, tap in taps], 0)


def batch_norm(attrs, x, scale, shift, mean, variance):
    column = lambda v: v[:, None, None]
    unit = (x - column(mean)) / np.sqrt(column(variance) + attrs.get("epsilon", 1e-5))
    return unit * column(scale) + column(shift)


def gemm(attrs, a, b, c=0.0):
    a = a.T if attrs.get("transA") else a
    b = b.T if attrs.get("transB") else b
    return attrs.get("alpha", 1.0) * (a @ b) + attrs.get("beta", 1.0) * c


def softmax(attrs, x):
    axis = attrs.get("axis", -1)
    shifted = np.exp(x - x.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


def reshape(attrs, x, shape):
    return x.reshape([x.shape[i] if d == 0 else d for i, d in enumerate(shape)])


def slice_(attrs, x, starts, ends, axes, steps):
    picks = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        picks[axis] = slice(start, end, step)
    return x[tuple(picks)]


def unsqueeze(attrs, x, axes):
    return np.expand_dims(x, tuple(axes))


def cast(attrs, x):
    to = helper.mapping.TENSOR_TYPE_TO_NP_TYPE[attrs["to"]]
    return x.astype(np.float64 if to.kind == "f" else to)


def flatten(attrs, x):
    axis = attrs.get("axis", 1)
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "Sub": lambda a, x, y: x - y,
    "Mul": lambda a, x, y: x * y,
    "Div": lambda a, x, y: x / y,
    "Pow": lambda a, x, y: x**y,
    "MatMul": lambda a, x, y: x @ y,
    "Sqrt": lambda a, x: np.sqrt(x),
    "Erf": lambda a, x: special.erf(x),
    "Tanh": lambda a, x: np.tanh(x),
    "Relu": lambda a, x: np.maximum(x, 0),
    "HardSwish": lambda a, x: x * np.clip(x / 6 + 0.5, 0, 1),
    "HardSigmoid": lambda a, x: np.clip(x * a.get("alpha", 0.2) + a.get("beta", 0.5), 0, 1),
    "Clip": lambda a, x, low, high: np.clip(x, low, high),
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "BatchNormalization": batch_norm,
    "MaxPool": max_pool,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdims=True),
    "Flatten": flatten,
    "Gemm": gemm,
    "Softmax": softmax,
    "ReduceMean": lambda a, x: x.mean(tuple(a["axes"]), keepdims=bool(a.get("keepdims", 1))),
    "Gather": lambda a, x, at: np.take(x, at, a.get("axis", 0)),
    "Shape": lambda a, x: np.array(x.shape, np.int64),
    "Concat": lambda a, *parts: np.concatenate(parts, a["axis"]),
    "Expand": lambda a, x, shape: np.broadcast_to(x, np.broadcast_shapes(x.shape, shape)),
    "Reshape": reshape,
    "Transpose": lambda a, x: x.transpose(a["perm"]),
    "Unsqueeze": unsqueeze,
    "Slice": slice_,
    "Cast": cast,
    "Constant": lambda a: double(numpy_helper.to_array(a["value"])),
}


def double(array):
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def evaluate(model, inputs):
    """The outputs of `model` by name. Floating-point outputs are float64."""
    values = {w.name: double(numpy_helper.to_array(w)) for w in model.graph.initializer}
    values |= {name: double(array) for name, array in inputs.items()}
    for node in model.graph.node:
        attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        values[node.output[0]] = OPERATORS[node.op_type](attrs, *[values[name] for name in node.input])
    return {output.name: values[output.name] for output in model.graph.output}
