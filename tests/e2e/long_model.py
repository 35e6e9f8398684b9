#!/usr/bin/python3
"""Writes a model whose search takes minutes: thousands of additions and products in random order,
no part like another.

usage: long_model.py FILE [OPERATORS]
"""

import random
import sys

import onnx
from onnx import TensorProto, helper

SIDE = 8


def model(operators):
    draw = random.Random(1)
    inputs = ["x%d" % k for k in range(12)]
    values, nodes = list(inputs), []
    for k in range(operators):
        # Mostly of what is new, so that all of it is needed.
        a = values[-1] if k else inputs[0]
        b = draw.choice(values[-40:])
        name = "v%d" % k
        nodes.append(helper.make_node(draw.choice(["Add", "MatMul", "Add", "Mul"]),
                                      draw.sample([a, b], 2), [name], name="n%d" % k))
        values.append(name)

    def info(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIDE, SIDE])

    graph = helper.make_graph(nodes, "long", [info(n) for n in inputs], [info(values[-1])])
    out = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    out.ir_version = 7
    return out


onnx.save(model(int(sys.argv[2]) if len(sys.argv) > 2 else 3000), sys.argv[1])
