// Random operators with attributes and operand shapes that fit, for tests that hold for every
// operator of the list.
#pragma once

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/graph/infer.h"
#include "core/ops/operator.h"
#include "core/rules/text.h"

namespace tenon::test {

class Draw {
 public:
  explicit Draw(unsigned seed) : rng_(seed) {}
  std::int64_t operator()(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(rng_);
  }
  // A value of the same kind, small.
  ops::AttrValue Attribute(const ops::AttrValue& like) {
    struct Visitor {
      Draw& draw;
      ops::AttrValue operator()(std::int64_t) { return draw(0, 2); }
      ops::AttrValue operator()(double v) { return v; }
      ops::AttrValue operator()(ops::Activation) { return ops::Activation(draw(0, 3)); }
      ops::AttrValue operator()(const ops::Size&) { return ops::Size(draw(0, 4)); }
      ops::AttrValue operator()(const ops::Short<std::int64_t>&) {
        ops::Short<std::int64_t> perm;
        const auto rank = draw(1, 4);
        for (int k = 0; k < rank; ++k) perm.insert(int(draw(0, k)), k);
        return perm;
      }
      ops::AttrValue operator()(const ops::Short<ops::Size>& v) {
        ops::Short<ops::Size> list;
        const auto length = v.empty() ? draw(0, 4) : v.size();
        for (int k = 0; k < length; ++k) list.push_back(draw(0, 3));
        return list;
      }
    };
    return std::visit(Visitor{*this}, like);
  }

 private:
  std::mt19937 rng_;
};

// An operator that fits its operands.
struct Sample {
  ops::Operator op;
  std::vector<graph::Extents> operands;
  graph::Extents output;
  std::string Text() const { return rules::PrintOperator(op, base::Symbols()); }
};

// One of many random tries with `listed` as the operator; nothing when it does not fit.
inline std::optional<Sample> TrySample(const ops::Operator& listed, Draw& draw) {
  const ops::Info& info = ops::InfoOf(listed);
  Sample sample{listed, {}, {}};
  for (const ops::Attr& attr : ops::AttrsOf(listed)) {
    if (draw(0, 1) == 1 && !ops::SetAttr(sample.op, attr.name, draw.Attribute(attr.value)).ok()) {
      return std::nullopt;
    }
  }
  const auto operands = draw(info.arity_min, std::min(info.arity_max, 5));
  const auto rank = draw(0, 4);
  std::vector<graph::Shape> shapes;
  for (int k = 0; k < operands; ++k) {
    graph::Shape shape;
    const auto own = draw(0, 2) == 0 ? draw(0, 4) : rank;
    for (int a = 0; a < own; ++a) shape.push_back(draw(1, 3));
    if (k > 0 && draw(0, 2) == 0) shape = shapes[0];
    if (k > 0 && draw(0, 2) == 0) shape = shapes.back();
    shapes.push_back(shape);
  }
  base::Symbols none;
  const auto inferred = graph::InferShape(sample.op, shapes, none);
  if (!inferred.ok()) return std::nullopt;
  CHECK(inferred->requirements.empty());
  for (const graph::Shape& s : shapes) sample.operands.push_back(graph::Concrete(s));
  sample.output = graph::Concrete(inferred->shape);
  return sample;
}

// `count` samples; fewer when the operator fits too rarely, which the caller checks. Deterministic.
inline std::vector<Sample> Samples(const ops::Operator& listed, int count) {
  Draw draw(ops::InfoOf(listed).wire_id);
  std::vector<Sample> out;
  for (int trial = 0; trial < 600000 && int(out.size()) < count; ++trial) {
    if (auto sample = TrySample(listed, draw)) out.push_back(*std::move(sample));
  }
  return out;
}

}  // namespace tenon::test
