// The three cases of the lecture, at the lecture's sizes or small enough to evaluate.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/base/check.h"
#include "core/graph/graph.h"

namespace tenon::optimizer {

inline graph::TensorType Floats(std::initializer_list<std::int64_t> extents) {
  graph::TensorType type;
  for (const std::int64_t e : extents) type.shape.push_back(e);
  return type;
}

// Adds nodes that are known to fit.
class Builder {
 public:
  graph::NodeId Activation(std::string_view name, std::initializer_list<std::int64_t> extents) {
    return g.AddInput(name, graph::InputKind::kActivation, Floats(extents));
  }
  graph::NodeId Weight(std::string_view name, std::initializer_list<std::int64_t> extents) {
    return g.AddInput(name, graph::InputKind::kWeight, Floats(extents));
  }
  graph::NodeId Add(const ops::Operator& op, std::initializer_list<graph::NodeId> operands) {
    const auto id = g.Add(op, operands);
    CHECK(id.ok());
    return *id;
  }
  graph::Graph Done(std::vector<graph::NodeId> outputs) {
    g.SetOutputs(std::move(outputs));
    return g;
  }

  graph::Graph g;
};

inline ops::Conv Conv3x3(ops::Activation activation = ops::Activation::kNone,
                         bool residual = false) {
  ops::Conv conv;
  conv.pads = {1, 1, 1, 1};
  conv.activation = activation;
  conv.residual = residual ? 1 : 0;
  return conv;
}

struct BlockSize {
  std::int64_t n = 32, c = 64, h = 56;
};

// relu(conv3x3(relu(conv3x3(x))) + relu(conv1x1(x)))
inline graph::Graph ResnetBlock(BlockSize s = {}) {
  Builder b;
  const auto x = b.Activation("x", {s.n, s.c, s.h, s.h});
  const auto w1 = b.Weight("w1", {s.c, s.c, 3, 3}), w2 = b.Weight("w2", {s.c, s.c, 3, 3});
  const auto w3 = b.Weight("w3", {s.c, s.c, 1, 1});
  const auto left = b.Add(Conv3x3(), {b.Add(ops::Relu{}, {b.Add(Conv3x3(), {x, w1})}), w2});
  const auto right = b.Add(ops::Relu{}, {b.Add(ops::Conv{}, {x, w3})});
  return b.Done({b.Add(ops::Relu{}, {b.Add(ops::Add{}, {left, right})})});
}

// As many of them in a row, each with weights of its own.
inline graph::Graph Blocks(std::int64_t count) {
  Builder b;
  auto x = b.Activation("x", {32, 64, 56, 56});
  for (std::int64_t k = 0; k < count; ++k) {
    const std::string n = std::to_string(k);
    const auto left =
        b.Add(ops::Relu{}, {b.Add(Conv3x3(), {x, b.Weight("a" + n, {64, 64, 3, 3})})});
    const auto right =
        b.Add(ops::Relu{}, {b.Add(ops::Conv{}, {x, b.Weight("c" + n, {64, 64, 1, 1})})});
    const auto sum =
        b.Add(ops::Add{}, {b.Add(Conv3x3(), {left, b.Weight("b" + n, {64, 64, 3, 3})}), right});
    x = b.Add(ops::Relu{}, {sum});
  }
  return b.Done({x});
}

struct QkvSize {
  std::int64_t rows = 16, width = 4096;
};

inline graph::Graph Qkv(QkvSize s = {}) {
  Builder b;
  const auto x = b.Activation("x", {s.rows, s.width});
  std::vector<graph::NodeId> outputs;
  for (const std::string_view name : {"wq", "wk", "wv"}) {
    outputs.push_back(b.Add(ops::MatMul{}, {x, b.Weight(name, {s.width, s.width})}));
  }
  return b.Done(outputs);
}

struct LoraSize {
  std::int64_t rows = 512, width = 4096, rank = 16;
};

// x w + (x a) b
inline graph::Graph Lora(LoraSize s = {}) {
  Builder b;
  const auto x = b.Activation("x", {s.rows, s.width});
  const auto w = b.Weight("w", {s.width, s.width}), down = b.Weight("a", {s.width, s.rank});
  const auto up = b.Weight("b", {s.rank, s.width});
  return b.Done({b.Add(ops::Add{}, {b.Add(ops::MatMul{}, {x, w}),
                                    b.Add(ops::MatMul{}, {b.Add(ops::MatMul{}, {x, down}), up})})});
}

}  // namespace tenon::optimizer
