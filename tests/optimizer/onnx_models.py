#!/usr/bin/env python3
"""Writes small ONNX models for the tests of the importer and exporter.

usage: onnx_models.py DIR [constants|opsets|structure]..
       onnx_models.py --shapes FILE DIR

The first form writes all of these, or those that are named:
DIR/constants/NAME/    ONNX's own node tests whose axes, shapes, pads, .. are inputs, with these
                       turned into initializers: only then does the importer understand the nodes
DIR/opsets/NAME/       operators in the forms of older opsets, with outputs by numpy
DIR/structure/NAME.onnx  what surrounds nodes: names, subgraphs, defaults, types, dims, ..

The second form writes a model for each line `name opset shape.. -> shape` of FILE (shapes like
2x3, or s for a scalar): inputs x0, x1, .. and an output y that a foreign node makes of them.
"""

import glob
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DATA = "/usr/share/libonnx-testdata/data/node"
F = TensorProto.FLOAT
RNG = np.random.default_rng(7)


def floats(*dims):
    return RNG.standard_normal(dims).astype(np.float32)


def ints(*values):
    return np.array(values, np.int64)


def save(path, model, inputs=(), outputs=()):
    os.makedirs(os.path.join(path, "test_data_set_0"), exist_ok=True)
    onnx.save(model, os.path.join(path, "model.onnx"))
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for k, array in enumerate(arrays):
            with open(f"{path}/test_data_set_0/{kind}_{k}.pb", "wb") as file:
                file.write(numpy_helper.from_array(array).SerializeToString())


# ------------------------------------------------------------ node tests with constant inputs
def constants(folder):
    for path in sorted(glob.glob(DATA + "/*/model.onnx")):
        model = onnx.load(path)
        graph, source = model.graph, os.path.dirname(path) + "/test_data_set_0"
        arrays = []
        try:
            for k in range(len(graph.input)):
                with open(f"{source}/input_{k}.pb", "rb") as file:
                    arrays.append(numpy_helper.to_array(TensorProto.FromString(file.read())))
            results = []
            for k in range(len(graph.output)):
                with open(f"{source}/output_{k}.pb", "rb") as file:
                    results.append(numpy_helper.to_array(TensorProto.FromString(file.read())))
        except Exception:  # Sequences and optional values: no tensors.
            continue
        # Everything but the first floats: shapes, axes, a padding value, a training mode.
        fixed = [k for k, a in enumerate(arrays)
                 if k > 0 and (a.dtype.kind in "iub" or a.ndim == 0)]
        kinds = {v.type.tensor_type.elem_type for v in graph.output}
        if not fixed or arrays[0].dtype.kind != "f" or TensorProto.BFLOAT16 in kinds:
            continue
        for k in fixed:
            graph.initializer.append(numpy_helper.from_array(arrays[k], graph.input[k].name))
        kept = [v for k, v in enumerate(graph.input) if k not in fixed]
        del graph.input[:]
        graph.input.extend(kept)
        name = os.path.basename(os.path.dirname(path))
        save(os.path.join(folder, name), model,
             [a for k, a in enumerate(arrays) if k not in fixed], results)


# --------------------------------------------------------------------- older forms of operators
def model_of(nodes, inputs, outputs, initializers=(), opset=13, ir=7, **more):
    graph = helper.make_graph(
        nodes, "g", inputs, outputs,
        [numpy_helper.from_array(a, n) for n, a in dict(initializers).items()], **more)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = ir
    return model


def value(name, dims, kind=F):
    return helper.make_tensor_value_info(name, kind, dims)


def softmax(x, axes):
    e = np.exp(x - x.max(axis=axes, keepdims=True))
    return e / e.sum(axis=axes, keepdims=True)


def opsets(folder):
    def case(name, op_type, x, expected, opset, constant=(), outputs=None, **attributes):
        expected = expected if isinstance(expected, list) else [expected]
        expected = [np.ascontiguousarray(e, np.float32) for e in expected]
        names = [f"y{k}" for k in range(len(expected))]
        node = helper.make_node(op_type, ["x"] + [n for n, _ in constant], outputs or names,
                                **attributes)
        model = model_of([node], [value("x", x.shape)],
                         [value(n, e.shape) for n, e in zip(names, expected)], constant, opset)
        save(os.path.join(folder, f"{name}_{opset}"), model, [x], expected)

    x = floats(2, 3, 4)
    for opset in (7, 9, 11, 12):
        case("reduce_sum", "ReduceSum", x, x.sum(axis=(0, 2)), opset, axes=[0, 2], keepdims=0)
        case("reduce_mean_all", "ReduceMean", x, x.mean(keepdims=True), opset)
        case("squeeze", "Squeeze", x[:, :1], x[:, 0], opset, axes=[1])
        case("squeeze_all", "Squeeze", x[:1, :, :1], x[0, :, 0], opset)
        case("unsqueeze", "Unsqueeze", x, x[:, None, :, :, None], opset, axes=[1, 4])
        case("split_equal", "Split", x, [x[..., :2], x[..., 2:]], opset, axis=2)
        case("split", "Split", x, [x[:, :1], x[:, 1:]], opset, axis=1, split=[1, 2])
        case("softmax_last", "Softmax", x, softmax(x, 2), opset, axis=2)
        case("softmax_middle_of_ones", "Softmax", x[..., :1], softmax(x[..., :1], 1), opset, axis=1)
        case("dropout", "Dropout", x, x * 1, opset, outputs=["y0"])
        case("flatten", "Flatten", x, x.reshape(6, 4), opset, axis=2)
        case("reshape", "Reshape", x, x.reshape(2, 4, 3), opset, [("s", ints(0, -1, 3))])
        case("transpose", "Transpose", x, x.transpose(), opset)
    for opset in (7, 9):
        case("slice", "Slice", x, x[:, 1:3, -2:], opset, starts=[1, -2], ends=[9, 1000],
             axes=[1, 2])
        case("slice_default_axes", "Slice", x, x[1:, :2], opset, starts=[1, 0], ends=[2, 2])
    for opset in (7, 10):
        case("pad", "Pad", x, np.pad(x, ((0, 1), (2, 0), (1, 1))), opset, pads=[0, 2, 1, 1, 0, 1])
    for opset in (10, 13, 17):
        case("slice_steps", "Slice", x, x[:, 0:3:2, 1:4:2], opset,
             [("s", ints(0, 1)), ("e", ints(3, 4)), ("a", ints(1, 2)), ("t", ints(2, 2))])
    for opset in (13, 17):
        case("softmax", "Softmax", x, softmax(x, 1), opset, axis=1)
        case("reduce_sum_input", "ReduceSum", x, x.sum(axis=1, keepdims=True), opset,
             [("a", ints(-2))])
        case("split_input", "Split", x, [x[:, :1], x[:, 1:]], opset, [("s", ints(1, 2))], axis=-2)
    image = floats(1, 2, 5, 6)
    scale, bias, mean, var = floats(2), floats(2), floats(2), np.abs(floats(2))
    c = lambda v: v.reshape(1, 2, 1, 1)
    normal = (image - c(mean)) / np.sqrt(c(var) + np.float32(0.25)) * c(scale) + c(bias)
    parameters = [("scale", scale), ("bias", bias), ("mean", mean), ("var", var)]
    for opset in (7, 9, 14, 15):
        case("batchnorm", "BatchNormalization", image, normal, opset, parameters, epsilon=0.25)
    wide = np.pad(image, ((0, 0), (0, 0), (1, 1), (0, 2)))
    windows = np.stack([wide[:, :, i:i + 6:2, j:j + 5:3] for i in range(2) for j in range(3)])
    for opset in (7, 10, 11):
        case("averagepool_padded", "AveragePool", image, windows.mean(0), opset,
             kernel_shape=[2, 3], strides=[2, 3], pads=[1, 0, 1, 2], count_include_pad=1)


# ------------------------------------------------------------------------- what surrounds nodes
def structure(folder):
    os.makedirs(folder, exist_ok=True)

    def put(name, model, check=True):
        if check:
            onnx.checker.check_model(model)
        onnx.save(model, os.path.join(folder, name + ".onnx"))

    n = helper.make_node
    x, y = value("x", [2, 3]), value("y", [2, 3])

    branch = lambda name, op: helper.make_graph(
        [n(op, ["h", "w"], ["inner"], name="in_" + name)], name, [], [value("inner", [2, 3])])
    put("captures", model_of(
        [n("Relu", ["x"], ["r"]), n("Relu", ["r"], ["q"]), n("Identity", ["q"], ["h"]),
         n("If", ["c"], ["y"], name="choice", then_branch=branch("t", "Add"),
           else_branch=branch("e", "Mul"))],
        [x, value("c", [], TensorProto.BOOL)], [y], {"w": floats(2, 3)}))

    body = helper.make_graph(
        [n("Add", ["v", "w"], ["v2"]), n("Identity", ["go"], ["go2"])], "body",
        [value("i", [], TensorProto.INT64), value("go", [], TensorProto.BOOL), value("v", [2, 3])],
        [value("go2", [], TensorProto.BOOL), value("v2", [2, 3])])
    put("loop", model_of(
        [n("Neg", ["x"], ["m"]), n("Loop", ["count", "", "m"], ["y"], body=body)], [x], [y],
        {"w": floats(2, 3), "count": np.array(3, np.int64)}))

    put("override", model_of([n("Mul", ["x", "scale"], ["y"])], [x, value("scale", [1])], [y],
                             {"scale": floats(1)}))
    old = model_of([n("Mul", ["x", "scale"], ["m"]), n("Mul", ["scale", "scale"], ["s2"]),
                    n("Add", ["m", "s2"], ["y"])],
                   [x, value("scale", [1])], [y], {"scale": floats(1)}, opset=8, ir=3)
    put("ir3", old)
    put("input_is_output", model_of([n("Relu", ["x"], ["y"])], [x], [y, x]))
    put("identity_outputs", model_of(
        [n("Identity", ["x"], ["a"]), n("Identity", ["w"], ["b"]), n("Relu", ["x"], ["m"]),
         n("Identity", ["m"], ["y"]), n("Neg", ["m"], ["z"])],
        [x], [value("a", [2, 3]), value("b", [3]), y, value("z", [2, 3])], {"w": floats(3)}))
    put("equal_outputs", model_of(
        [n("Relu", ["x"], ["a"]), n("Relu", ["x"], ["b"]), n("Add", ["a", "b"], ["y"])],
        [x], [value("b", [2, 3]), value("a", [2, 3]), y]))
    put("weight_is_output", model_of([n("Relu", ["x"], ["y"])], [x], [y, value("w", [2])],
                                     {"w": floats(2)}))
    put("constant_nodes", model_of(
        [n("Constant", [], ["w"], value=numpy_helper.from_array(floats(2, 3), "any")),
         n("Constant", [], ["s"], value_float=2.0),
         n("Constant", [], ["v"], value_floats=[1., 2., 3.]),
         n("Constant", [], ["shape"], value_ints=[3, 2]), n("Constant", [], ["k"], value_int=1),
         n("Constant", [], ["text"], value_string="hello"),
         n("Mul", ["x", "w"], ["a"]), n("Add", ["a", "s"], ["b"]), n("Mul", ["b", "v"], ["c"]),
         n("Reshape", ["c", "shape"], ["y"]), n("Gather", ["y", "k"], ["z"])],
        [x], [value("y", [3, 2]), value("z", [2])]))
    put("many_operands", model_of(
        [n("Relu", ["x"], ["r"]), n("Max", ["r"] + [f"w{k}" for k in range(70)], ["y"])],
        [x], [y], {f"w{k}": floats(3) for k in range(70)}))
    batch = lambda name, *dims: value(name, list(dims))
    put("dynamic", model_of(
        [n("MatMul", ["x", "w"], ["a"]), n("Add", ["a", "p"], ["b"]),
         n("Reshape", ["b", "s"], ["c"]), n("Flatten", ["c"], ["y"]),
         n("Add", ["a", "q"], ["z"])],
        [batch("x", "N", 4), batch("p", "N", 6), batch("q", "M", 6)],
        [batch("y", "N", 6), batch("z", None, 6)], {"w": floats(4, 6), "s": ints(0, 2, -1)}))
    put("unknown_rank", model_of(
        [n("Relu", ["x"], ["m"]), n("Relu", ["u"], ["v"]), n("Add", ["m", "v"], ["y"])],
        [x, helper.make_tensor_value_info("u", F, None)],
        [helper.make_tensor_value_info("y", F, None)]), check=False)
    put("high_rank", model_of(
        [n("Relu", ["x"], ["r"]), n("Reshape", ["r", "s"], ["t"]), n("Relu", ["t"], ["y"])],
        [x], [value("y", [1] * 8 + [6])], {"s": ints(*[1] * 8, 6)}))
    put("empty_tensor", model_of(
        [n("Concat", ["x", "nothing"], ["m"], axis=0), n("Relu", ["m"], ["y"])], [x], [y],
        {"nothing": np.zeros((0, 3), np.float32)}))
    put("integers", model_of(
        [n("Add", ["i", "j"], ["k"]), n("Relu", ["x"], ["r"]), n("Relu", ["r"], ["y"])],
        [value("i", [3], TensorProto.INT64), x], [value("k", [3], TensorProto.INT64), y],
        {"j": ints(1, 2, 3)}))
    for name, kind, dtype in (("halves", TensorProto.FLOAT16, np.float16),
                              ("doubles", TensorProto.DOUBLE, np.float64)):
        put(name, model_of(
            [n("Mul", ["v", "v"], ["v2"]), n("MatMul", ["x", "w"], ["m"]),
             n("Mul", ["m", "v2"], ["y"])],
            [value("x", [2, 3], kind)], [value("y", [2, 2], kind)],
            {"w": floats(3, 2).astype(dtype), "v": floats(2).astype(dtype)}))
    custom = model_of(
        [n("Relu", ["x"], ["r"]), n("Mystery", ["r", "", "x"], ["y", "", "extra"],
                                    domain="com.example", level=3)],
        [x], [y])
    custom.opset_import.append(helper.make_opsetid("com.example", 5))
    put("custom_domain", custom)
    training = model_of(
        [n("Dropout", ["x", "ratio", "mode"], ["d"]), n("RandomNormalLike", ["d"], ["a"]),
         n("RandomNormalLike", ["d"], ["b"]), n("Add", ["a", "b"], ["y"])],
        [x], [y], {"ratio": np.array(0.5, np.float32), "mode": np.array(True)})
    put("random", training)
    put("optional_inputs", model_of(
        [n("Relu", ["x"], ["r"]), n("Resize", ["r", "", "scales"], ["y"])], [x], [y],
        {"scales": np.ones(2, np.float32)}))
    put("optional_bounds", model_of(
        [n("Relu", ["x"], ["r"]), n("Clip", ["r", "", "six"], ["c"]),
         n("Clip", ["c", "six"], ["y"])], [x], [y], {"six": np.array(6, np.float32)}))
    newer = model_of([n("Relu", ["x"], ["r"]), n("Relu", ["r"], ["y"])], [x], [y], opset=19, ir=9)
    put("newer_opset", newer, check=False)
    older = model_of([n("Relu", ["x"], ["y"])], [x], [y], opset=6)
    put("older_opset", older)
    stale = model_of([n("Relu", ["x"], ["r"]), n("Relu", ["r"], ["y"])], [x], [y],
                     value_info=[value("r", [7, 7])])
    put("stale_shapes", stale)
    kept = model_of([n("Relu", ["x"], ["r"], doc_string="why"), n("Add", ["r", "w"], ["y"])],
                    [x], [y], {"w": floats(3), "unused": floats(5)},
                    value_info=[value("r", [2, 3])], doc_string="a graph")
    kept.producer_name, kept.producer_version, kept.domain = "a test", "1.2", "org.example"
    kept.model_version, kept.doc_string = 42, "a model"
    entry = kept.metadata_props.add()
    entry.key, entry.value = "author", "nobody"
    note = kept.graph.quantization_annotation.add()
    note.tensor_name = "r"
    parameter = note.quant_parameter_tensor_names.add()
    parameter.key, parameter.value = "SCALE_TENSOR", "unused"
    put("header", kept)
    function = model_of([n("Relu", ["x"], ["r"]), n("Twice", ["r"], ["y"], domain="local")],
                        [x], [y], ir=8)
    function.opset_import.append(helper.make_opsetid("local", 1))
    function.functions.append(helper.make_function(
        "local", "Twice", ["a"], ["b"], [n("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 13)]))
    put("functions", function)
    external = model_of([n("MatMul", ["x", "w"], ["a"]), n("Mul", ["v", "v"], ["vv"]),
                         n("Add", ["a", "vv"], ["y"])],
                        [x], [value("y", [2, 64])], {"w": floats(3, 64), "v": floats(64)})
    onnx.save(external, os.path.join(folder, "external.onnx"), save_as_external_data=True,
              location="external.bin", size_threshold=16)


def shapes(lines, folder):
    os.makedirs(folder, exist_ok=True)
    dims = lambda text: [] if text == "s" else [int(n) for n in text.split("x")]
    for line in lines:
        left, out = line.split("->")
        name, opset, *operands = left.split()
        names = [f"x{k}" for k in range(len(operands))]
        model = model_of([helper.make_node("Make", names, ["y"], domain="test")],
                         [value(n, dims(s)) for n, s in zip(names, operands)],
                         [value("y", dims(out.strip()))], opset=int(opset))
        model.opset_import.append(helper.make_opsetid("test", 1))
        onnx.save(model, os.path.join(folder, name + ".onnx"))


def main():
    if sys.argv[1] == "--shapes":
        with open(sys.argv[2]) as file:
            shapes(file.read().splitlines(), sys.argv[3])
        return
    parts = {"constants": constants, "opsets": opsets, "structure": structure}
    for name in sys.argv[2:] or parts:
        parts[name](os.path.join(sys.argv[1], name))


if __name__ == "__main__":
    main()
