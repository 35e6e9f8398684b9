#!/usr/bin/python3
"""A reading of ONNX models by numpy alone, for tests: each operator by its definition, in the
model's own types. Shares nothing with Tenon, and knows what the models of known_bugs consist of,
and what is made of them: another operator is an error, never skipped.

usage: evaluate.py FOLDER [NAME..]

FOLDER/NAME.onnx is run on the inputs of known_bugs/NAME (each of known_bugs that FOLDER has, unless
some are named) and compared with the outputs there. Prints a line for each and exits with 1 when
one differs: integers and shapes at all, floats by more than 1e-4 of the larger one or of 1,
infinities and NaN in their places, and the signs of zeros where index.json says strict_zero_sign.
"""

import glob
import json
import os
import sys

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

KNOWN_BUGS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "known_bugs")


def windows(x, kernel, node, fill):
    """For pools and convolutions: x padded with fill, as [n, c, out.., kernel..]."""
    rank = len(kernel)
    strides = node.get("strides", [1] * rank)
    dilations = node.get("dilations", [1] * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
    pads = list(node.get("pads", [0] * 2 * rank))
    auto = node.get("auto_pad", b"NOTSET").decode()
    if auto.startswith("SAME"):
        for a, (size, s, r) in enumerate(zip(x.shape[2:], strides, reach)):
            total = max(0, (-(-size // s) - 1) * s + r - size)
            small, large = total // 2, total - total // 2
            pads[a], pads[a + rank] = (small, large) if auto == "SAME_UPPER" else (large, small)
    elif auto not in ("NOTSET", "VALID"):
        raise ValueError("auto_pad " + auto)
    if node.get("ceil_mode", 0):
        raise ValueError("ceil_mode")
    x = np.pad(x, [(0, 0), (0, 0)] + list(zip(pads[:rank], pads[rank:])), constant_values=fill)
    w = np.lib.stride_tricks.sliding_window_view(x, reach, tuple(range(2, 2 + rank)))
    steps = (slice(None),) * 2
    return w[steps + tuple(slice(None, None, s) for s in strides) +
             tuple(slice(None, None, d) for d in dilations)]


def conv(node, x, w, b=None):
    groups = node.get("group", 1)
    kernel = w.shape[2:]
    axes = list(range(-len(kernel), 0))
    per = w.shape[0] // groups
    parts = []
    for g, part in enumerate(np.split(windows(x, kernel, node, 0), groups, axis=1)):
        rows = w[g * per:(g + 1) * per]
        parts.append(np.moveaxis(np.tensordot(part, rows, ([1] + axes, [1] + axes)), -1, 1))
    out = np.concatenate(parts, axis=1)
    return out if b is None else out + b.reshape((1, -1) + (1,) * len(kernel))


def average_pool(node, x):
    kernel = node["kernel_shape"]
    axes = tuple(range(-len(kernel), 0))
    total = windows(x, kernel, node, 0).sum(axis=axes)
    if node.get("count_include_pad", 0):
        return total / np.prod(kernel)
    return total / windows(np.ones_like(x), kernel, node, 0).sum(axis=axes)


def batch_normalization(node, x, scale, bias, mean, var):
    column = (1, -1) + (1,) * (x.ndim - 2)
    epsilon, momentum = node.get("epsilon", 1e-5), node.get("momentum", 0.9)
    old_mean, old_var = mean, var
    if node.get("training_mode", 0):
        axes = (0,) + tuple(range(2, x.ndim))
        mean, var = x.mean(axis=axes), x.var(axis=axes)
    y = ((x - mean.reshape(column)) / np.sqrt(var.reshape(column) + epsilon)
         * scale.reshape(column) + bias.reshape(column))
    return [y, old_mean * momentum + mean * (1 - momentum),
            old_var * momentum + var * (1 - momentum)]


def gemm(node, a, b, c=0):
    a = a.T if node.get("transA", 0) else a
    b = b.T if node.get("transB", 0) else b
    return node.get("alpha", 1.0) * (a @ b) + node.get("beta", 1.0) * c


def softmax(node, x, opset):
    axis = node.get("axis", 1 if opset < 13 else -1) % x.ndim
    axes = (axis,) if opset >= 13 else tuple(range(axis, x.ndim))
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


def reshape(node, x, shape):
    dims = [x.shape[k] if d == 0 and not node.get("allowzero", 0) else int(d)
            for k, d in enumerate(shape)]
    return x.reshape(dims)


def reduce(node, x, f, axes=None):
    axes = node.get("axes") if axes is None else axes
    return f(x, axis=None if axes is None else tuple(int(a) for a in axes),
             keepdims=bool(node.get("keepdims", 1)))


def split(node, x, sizes=None):
    axis = node.get("axis", 0)
    sizes = node.get("split") if sizes is None else sizes
    if sizes is None:
        return np.split(x, node["outputs"], axis=axis)
    return np.split(x, np.cumsum(sizes)[:-1], axis=axis)


def slice_of(node, x, starts, ends, axes=None, steps=None):
    axes = range(len(starts)) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    at = [slice(None)] * x.ndim
    for start, end, axis, step in zip(starts, ends, axes, steps):
        at[int(axis)] = slice(int(start), int(end), int(step))
    return x[tuple(at)]


def clip(node, x, low=None, high=None):
    low = node.get("min", -np.inf) if low is None else low
    high = node.get("max", np.inf) if high is None else high
    return np.minimum(np.maximum(x, low), high)


def div(x, y):
    if x.dtype.kind == "f":
        return x / y
    return (np.sign(x) * np.sign(y) * (abs(x) // abs(y))).astype(x.dtype)  # Towards 0.


def pad(node, x, pads, value=0):
    if node.get("mode", b"constant") != b"constant":
        raise ValueError("mode of Pad")
    n = x.ndim
    return np.pad(x, list(zip(pads[:n], pads[n:])), constant_values=value)


def axes_of(node, more):
    return [int(a) for a in (more[0] if more else node["axes"])]


OPERATORS = {
    "Add": lambda node, x, y: x + y,
    "AveragePool": average_pool,
    "BatchNormalization": batch_normalization,
    "Cast": lambda node, x: x.astype(onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[node["to"]]),
    "Ceil": lambda node, x: np.ceil(x),
    "Clip": clip,
    "Concat": lambda node, *xs: np.concatenate(xs, axis=node["axis"]),
    "Constant": lambda node: node["value"],
    "Conv": conv,
    "Div": lambda node, x, y: div(x, y),
    "Dropout": lambda node, x, *_: x,
    "Exp": lambda node, x: np.exp(x),
    "Gather": lambda node, x, at: np.take(x, at, axis=node.get("axis", 0)),
    "Gemm": gemm,
    "Identity": lambda node, x: x,
    "Log": lambda node, x: np.log(x),
    "MatMul": lambda node, x, y: x @ y,
    "Max": lambda node, *xs: np.maximum.reduce(np.broadcast_arrays(*xs)),
    "MaxPool": lambda node, x: windows(x, node["kernel_shape"], node, -np.inf).max(
        axis=tuple(range(-len(node["kernel_shape"]), 0))),
    "Min": lambda node, *xs: np.minimum.reduce(np.broadcast_arrays(*xs)),
    "Mul": lambda node, x, y: x * y,
    "Pad": pad,
    "Pow": lambda node, x, y: np.power(x, y).astype(x.dtype),
    "Reciprocal": lambda node, x: 1 / x,
    "ReduceMean": lambda node, x, *more: reduce(node, x, np.mean, *more),
    "ReduceSum": lambda node, x, *more: reduce(node, x, np.sum, *more),
    "Relu": lambda node, x: np.maximum(x, 0),
    "Reshape": reshape,
    "Shape": lambda node, x: np.array(x.shape, np.int64),
    "Slice": slice_of,
    "Split": split,
    "Sqrt": lambda node, x: np.sqrt(x),
    "Squeeze": lambda node, x, *more: np.squeeze(x, tuple(axes_of(node, more))),
    "Sub": lambda node, x, y: x - y,
    "Transpose": lambda node, x: x.transpose(node.get("perm", range(x.ndim)[::-1])),
    "Unsqueeze": lambda node, x, *more: np.expand_dims(x, tuple(axes_of(node, more))),
}


def attribute(a):
    value = helper.get_attribute_value(a)
    return numpy_helper.to_array(value) if a.type == AttributeProto.TENSOR else value


def evaluate(model, inputs):
    """The outputs of a model on the values of its inputs, in their order; initializers are none."""
    graph = model.graph
    opset = max(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    names = [v.name for v in graph.input if v.name not in values]
    values.update(zip(names, inputs, strict=True))
    for node in graph.node:
        attributes = {a.name: attribute(a) for a in node.attribute}
        attributes["outputs"] = len(node.output)
        operands = [values[n] if n else None for n in node.input]
        if node.op_type == "Softmax":
            result = softmax(attributes, operands[0], opset)
        else:
            result = OPERATORS[node.op_type](attributes, *operands)
        result = result if isinstance(result, list) else [result]
        for k, name in enumerate(n for n in node.output):
            if name:
                same_type = node.op_type in ("Cast", "Shape", "Constant")
                values[name] = result[k] if same_type else np.asarray(
                    result[k]).astype(operands[0].dtype)
    return [values[v.name] for v in graph.output]


def difference(got, expected, strict):
    """What is wrong with a value, or nothing."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{list(got.shape)} in place of {expected.dtype}{list(expected.shape)}"
    if got.dtype.kind != "f":
        return "" if np.array_equal(got, expected) else "other integers"
    finite = np.isfinite(expected)
    if not np.array_equal(got[~finite], expected[~finite], equal_nan=True):
        return "other infinities or NaN"
    if not np.isfinite(got[finite]).all():
        return "infinities or NaN in place of numbers"
    a, b = got[finite].astype(np.float64), expected[finite].astype(np.float64)
    error = np.max(abs(a - b) / np.maximum(1, np.maximum(abs(a), abs(b))), initial=0)
    if error > 1e-4:
        return f"error {error:.2g}"
    zeros = got == 0
    if strict and not np.array_equal(np.signbit(got)[zeros], np.signbit(expected)[zeros]):
        return "a zero of the other sign"
    return ""


def tensors(folder, kind):
    paths = glob.glob(f"{folder}/test_data_set_0/{kind}_*.pb")
    for k in range(len(paths)):
        with open(f"{folder}/test_data_set_0/{kind}_{k}.pb", "rb") as file:
            yield numpy_helper.to_array(TensorProto.FromString(file.read()))


def main():
    folder, names = sys.argv[1], sys.argv[2:]
    with open(os.path.join(KNOWN_BUGS, "index.json")) as file:
        cases = json.load(file)
    tried = wrong = 0
    np.seterr(all="ignore")
    for case in cases:
        path = os.path.join(folder, case["name"] + ".onnx")
        if not os.path.exists(path) or (names and case["name"] not in names):
            continue
        source = os.path.join(KNOWN_BUGS, case["name"])
        expected = list(tensors(source, "output"))
        got = evaluate(onnx.load(path), list(tensors(source, "input")))
        found = [difference(g, e, case["strict_zero_sign"])
                 for g, e in zip(got, expected, strict=True)]
        found = [f"output {k}: {f}" for k, f in enumerate(found) if f]
        print(f"{case['name']}: {'; '.join(found) or 'as expected'}")
        tried += 1
        wrong += bool(found)
    print(f"{tried} models, {wrong} wrong")
    return 1 if wrong or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
