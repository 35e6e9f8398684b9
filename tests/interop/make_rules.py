#!/usr/bin/env python3
"""Writes data/patterns.pb and data/patterns.json: rules in the formats of TASO and FlexFlow.

The patterns are TASO's known wrong ones (convolutions whose number of groups is implied by their
channels) and right ones of every operator that its generator uses. The bytes are put together here,
by nothing but the standard library, so that the importer is tested on files that its own writer did
not make.

usage: make_rules.py FOLDER
"""

import json
import os
import sys

TYPES = {"CONV2D": 3, "POOL2D_MAX": 6, "POOL2D_AVG": 7, "RELU": 8, "CONCAT": 12, "SPLIT": 13,
         "TRANSPOSE": 15, "EW_ADD": 16, "EW_MUL": 17, "MATMUL": 18, "MUL": 19, "ENLARGE": 20,
         "CONSTANT_IMM": 22, "CONSTANT_ICONV": 23, "CONSTANT_ONE": 24, "CONSTANT_POOL": 25}
KEYS = {"OP_TYPE": 0, "NUM_INPUTS": 1, "NUM_OUTPUTS": 2, "KERNEL_H": 4, "KERNEL_W": 5,
        "STRIDE_H": 6, "STRIDE_W": 7, "PAD": 8, "ACTI": 9, "NUMDIM": 10, "AXIS": 11, "PERM": 12,
        "OUTSHUFFLE": 13}


def conv(x, w, relu=0, kernel=3):
    return ("CONV2D", [x, w], dict(KERNEL_H=kernel, KERNEL_W=kernel, STRIDE_H=1, STRIDE_W=1, PAD=0,
                                   ACTI=2 * relu))


def concat(a, b, axis, rank=4):
    return ("CONCAT", [a, b], dict(NUM_INPUTS=2, AXIS=axis, NUMDIM=rank))


def split(a, axis):
    return ("SPLIT", [a], dict(NUM_OUTPUTS=2, AXIS=axis))


def op(kind, *inputs, **parameters):
    return (kind, list(inputs), parameters)


def matmul(a, b):
    return op("MATMUL", a, b, ACTI=0)


def transpose(a):
    return op("TRANSPOSE", a, NUMDIM=2, PERM=2, OUTSHUFFLE=1)


def pool(kind, a):
    return op(kind, a, OP_TYPE=TYPES[kind], KERNEL_H=3, KERNEL_W=3, STRIDE_H=1, STRIDE_W=1, PAD=0,
              ACTI=0)


# Name, source, target, mapped outputs. Below 0: a variable; a number: the output 0 of an operator;
# a pair: another output.
RULES = [
    # The eleven patterns that are wrong when groups differ.
    ("sum_of_convs", [conv(-7, -10), conv(-8, -11), op("EW_ADD", 0, 1)],
     [concat(-7, -8, 1), concat(-10, -11, 1), conv(0, 1)], [(2, 2)]),
    ("beside", [conv(-7, -10), conv(-8, -11), concat(0, 1, 1)],
     [concat(-7, -8, 1), concat(-10, -11, 0), conv(0, 1)], [(2, 2)]),
    ("beside_relu", [conv(-7, -10, 1), conv(-8, -11, 1), concat(0, 1, 1)],
     [concat(-7, -8, 1), concat(-10, -11, 0), conv(0, 1, 1)], [(2, 2)]),
    ("sum_of_convs_swapped", [conv(-7, -10), conv(-8, -11), op("EW_ADD", 0, 1)],
     [concat(-10, -11, 1), concat(-7, -8, 1), conv(1, 0)], [(2, 2)]),
    ("shared", [conv(-7, -10), conv(-7, -11), concat(0, 1, 1)],
     [concat(-10, -11, 0), conv(-7, 0)], [(2, 1)]),
    ("shared_relu_outside", [conv(-7, -10, 1), conv(-7, -11, 1), concat(0, 1, 1)],
     [concat(-10, -11, 0), conv(-7, 0), op("RELU", 1)], [(2, 2)]),
    ("shared_split", [conv(-7, -10), conv(-7, -11)],
     [concat(-10, -11, 0), conv(-7, 0), split(1, 1)], [(0, 2), (1, (2, 1))]),
    ("shared_relu", [conv(-7, -10, 1), conv(-7, -11, 1), concat(0, 1, 1)],
     [concat(-10, -11, 0), conv(-7, 0, 1)], [(2, 1)]),
    ("shared_relu_split", [conv(-7, -10), op("RELU", 0), conv(-7, -11, 1)],
     [concat(-10, -11, 0), conv(-7, 0, 1), split(1, 1)], [(1, 2), (2, (2, 1))]),
    ("beside_swapped", [conv(-7, -10), conv(-8, -11), concat(0, 1, 1)],
     [concat(-10, -11, 0), concat(-7, -8, 1), conv(1, 0)], [(2, 2)]),
    ("beside_swapped_relu", [conv(-7, -10, 1), conv(-8, -11, 1), concat(0, 1, 1)],
     [concat(-10, -11, 0), concat(-7, -8, 1), conv(1, 0, 1)], [(2, 2)]),
    # Right ones.
    ("associate", [matmul(-1, -4), matmul(0, -5)], [matmul(-4, -5), matmul(-1, 0)], [(1, 1)]),
    ("sums", [op("EW_ADD", -1, -2), op("EW_ADD", -3, 0)],
     [op("EW_ADD", -1, -3), op("EW_ADD", -2, 0)], [(1, 1)]),
    ("fuse", [conv(-7, -10), op("RELU", 0)], [conv(-7, -10, 1)], [(1, 0)]),
    ("relus", [op("RELU", -1), op("RELU", -2)],
     [concat(-1, -2, 1, 2), op("RELU", 0), split(1, 1)], [(0, 2), (1, (2, 1))]),
    ("transposed", [matmul(-1, -4), transpose(0)],
     [transpose(-4), transpose(-1), matmul(0, 1)], [(1, 2)]),
    ("scaled", [matmul(-1, -4), op("MUL", 0, -20)], [op("MUL", -4, -20), matmul(-1, 0)], [(1, 1)]),
    ("undone", [concat(-1, -2, 1, 2), split(0, 1), op("RELU", (1, 1))],
     [op("RELU", -2)], [(2, 0)]),
    ("cut_somewhere", [split(-1, 0), op("RELU", 0), op("RELU", (0, 1))],
     [op("RELU", -1), split(0, 0)], [(1, 1), (2, (1, 1))]),
    ("max_pools", [pool("POOL2D_MAX", -7), pool("POOL2D_MAX", -8), concat(0, 1, 1)],
     [concat(-7, -8, 1), pool("POOL2D_MAX", 0)], [(2, 1)]),
    ("average_pools", [pool("POOL2D_AVG", -7), pool("POOL2D_AVG", -8), concat(0, 1, 1)],
     [concat(-7, -8, 1), pool("POOL2D_AVG", 0)], [(2, 1)]),
    ("identity", [op("CONSTANT_IMM"), matmul(-1, 0), op("RELU", 1)], [op("RELU", -1)], [(2, 0)]),
    ("ones", [op("CONSTANT_ONE"), op("EW_MUL", -1, 0), op("RELU", 1)], [op("RELU", -1)], [(2, 0)]),
    ("identity_kernel", [op("CONSTANT_ICONV", KERNEL_H=3, KERNEL_W=3), conv(-7, 0),
                         op("RELU", 1)], [op("RELU", -7)], [(2, 0)]),
    ("enlarge", [conv(-7, -10, 0, 1), op("RELU", 0)],
     [op("ENLARGE", -10, KERNEL_H=3, KERNEL_W=3), conv(-7, 0, 0, 3), op("RELU", 1)], [(1, 2)]),
    # Wrong: the pool divides by less at the border, a sum is no product.
    ("pool_is_a_conv", [op("CONSTANT_POOL", KERNEL_H=3, KERNEL_W=3), conv(-7, 0)],
     [pool("POOL2D_AVG", -7)], [(1, 0)]),
    ("sum_is_product", [op("EW_ADD", -1, -2)], [op("EW_MUL", -1, -2)], [(0, 0)]),
    ("other_shape", [concat(-1, -2, 0, 2), concat(-1, -2, 1, 2), op("RELU", 0)],
     [concat(-1, -2, 1, 2), op("RELU", 0)], [(2, 1)]),
]


def tensor(t):
    return t if isinstance(t, tuple) else (t, 0)


def varint(n):
    n &= (1 << 64) - 1  # Negative numbers take ten bytes.
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, content):
    return varint(field << 3 | 2) + varint(len(content)) + content


def operator_bytes(operator):
    kind, inputs, parameters = operator
    out = number(1, TYPES[kind])
    for t in map(tensor, inputs):
        out += message(2, number(1, t[0]) + number(2, t[1]))
    for key, value in parameters.items():
        out += message(3, number(1, KEYS[key]) + number(2, value))
    return out


def rule_bytes(rule):
    _, source, target, outputs = rule
    out = b"".join(message(1, operator_bytes(o)) for o in source)
    out += b"".join(message(2, operator_bytes(o)) for o in target)
    for s, t in outputs:
        s, t = tensor(s), tensor(t)
        out += message(3, number(1, s[0]) + number(2, t[0]) + number(3, s[1]) + number(4, t[1]))
    return out


def operator_json(operator):
    kind, inputs, parameters = operator
    return {"_t": "Operator", "type": "OP_" + kind,
            "input": [{"_t": "Tensor", "opId": t[0], "tsId": t[1]} for t in map(tensor, inputs)],
            "para": [{"_t": "Parameter", "key": "PM_" + k, "value": v}
                     for k, v in parameters.items()]}


def rule_json(rule):
    name, source, target, outputs = rule
    mapped = [(tensor(s), tensor(t)) for s, t in outputs]
    return {"_t": "Rule", "name": name, "srcOp": [operator_json(o) for o in source],
            "dstOp": [operator_json(o) for o in target],
            "mappedOutput": [{"_t": "MapOutput", "srcOpId": s[0], "srcTsId": s[1], "dstOpId": t[0],
                              "dstTsId": t[1]} for s, t in mapped]}


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "patterns.pb"), "wb") as out:
        out.write(b"".join(message(1, rule_bytes(rule)) for rule in RULES))
    with open(os.path.join(folder, "patterns.json"), "w", encoding="utf-8") as out:
        collection = {"_t": "RuleCollection", "rule": [rule_json(rule) for rule in RULES]}
        json.dump(collection, out, indent=1)
        out.write("\n")


if __name__ == "__main__":
    main()
