#!/usr/bin/env python3
"""Writes ONNX files that no optimizer may accept, crash on, or half-convert.

usage: bad_models.py DIR

good.onnx is the well-formed model that the others are made from; unsorted.onnx is well-formed up to
the order of its nodes, which must be accepted.
"""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def tensor(name, dims):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)


def good():
    weight = numpy_helper.from_array(np.ones((4, 3), np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
             helper.make_node("Relu", ["y"], ["z"], name="relu")]
    graph = helper.make_graph(nodes, "good", [tensor("x", [2, 4])], [tensor("z", [2, 3])], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    return model


def changed(change):
    model = good()
    change(model)
    return model.SerializeToString()


def cyclic(model):
    model.graph.node[0].input[0] = "z"


def missing_initializer(model):
    del model.graph.initializer[:]


def absurd_dims(model):
    dims = model.graph.input[0].type.tensor_type.shape.dim
    dims[0].dim_value = 1 << 62
    dims[1].dim_value = 4


def absurd_initializer(model):
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([1 << 40, 1 << 40])


def negative_initializer(model):
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend([-4, -3])


def short_initializer(model):
    model.graph.initializer[0].raw_data = b"\0" * 8


def external_missing(model):
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    entry = weight.external_data.add()
    entry.key, entry.value = "location", "nowhere.bin"


def external_outside(model):
    external_missing(model)
    model.graph.initializer[0].external_data[0].value = "../../../../etc/passwd"


def twice_defined(model):
    model.graph.node[1].output[0] = "y"
    model.graph.output[0].name = "y"


def output_twice(model):
    model.graph.output.append(model.graph.output[0])


def input_twice(model):
    model.graph.input.append(model.graph.input[0])


def input_defined(model):
    model.graph.input.append(tensor("y", [2, 3]))


def output_unknown(model):
    model.graph.output[0].name = "nobody"


def no_graph(model):
    model.ClearField("graph")


def misfit(model):
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 5


def zero_stride(model):
    model.graph.node.append(helper.make_node("MaxPool", ["i"], ["o"], kernel_shape=[2, 2],
                                             strides=[1, 0]))
    model.graph.input.append(tensor("i", [1, 1, 4, 4]))
    model.graph.output.append(tensor("o", ["a", "b", "c", "d"]))


def unsorted(model):
    nodes = [helper.make_node("Relu", ["y"], ["z"], name="relu"),
             helper.make_node("MatMul", ["x", "w"], ["y"], name="product")]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    whole = good().SerializeToString()
    files = {
        "good": whole,
        "unsorted": changed(unsorted),
        "empty": b"",
        "text": b"this is no model\n" * 20,
        "noise": bytes(np.random.default_rng(7).integers(0, 256, 4096, dtype=np.uint8)),
        "truncated": whole[:len(whole) // 2],
        "truncated_by_one": whole[:-1],
    }
    for change in (cyclic, missing_initializer, absurd_dims, absurd_initializer,
                   negative_initializer, short_initializer, external_missing, external_outside,
                   twice_defined, output_twice, input_twice,
                   input_defined, output_unknown, no_graph, misfit, zero_stride):
        files[change.__name__] = changed(change)
    newer = good()
    newer.opset_import[0].version = 9999
    files["unknown_opset"] = newer.SerializeToString()
    for name, data in files.items():
        with open(os.path.join(folder, name + ".onnx"), "wb") as file:
            file.write(data)


if __name__ == "__main__":
    main()
