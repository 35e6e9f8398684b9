// All terms up to a few operators over a few inputs, and which of them are equal by value: a small
// enumeration of its own, for tests of what comes after enumerating.
#pragma once

#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/eval/eval.h"
#include "core/graph/term_table.h"

namespace tenon::test {

// Slow and simple: meant for up to some ten thousand terms.
class SmallUniverse {
 public:
  struct In {
    graph::Extents extents;
    graph::InputKind kind = graph::InputKind::kActivation;
  };
  SmallUniverse(const std::vector<In>& inputs, std::vector<ops::Operator> operators, int size_max)
      : operators_(std::move(operators)) {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const std::string name(1, static_cast<char>('a' + k));
      terms.AddInput(name, inputs[k].kind,
                     {graph::DataType::kFloat, graph::ToShape(inputs[k].extents)});
      Evaluate(graph::TermId(k));
    }
    for (int size = 1; size <= size_max; ++size) Grow(size);
    std::map<std::string, std::vector<graph::TermId>> by_value;
    for (graph::TermId id = 0; id < graph::TermId(terms.size()); ++id) {
      by_value[KeyOf(id)].push_back(id);
    }
    std::map<graph::TermId, std::vector<graph::TermId>> by_first;
    for (auto& [key, members] : by_value) by_first[members[0]] = members;
    for (auto& [first, members] : by_first) classes.push_back(members);
  }

  graph::TermTable terms;
  std::vector<std::vector<graph::TermId>> classes;  // Inputs included; by first member.

  std::size_t pairs() const {
    std::size_t n = 0;
    for (const auto& c : classes) n += c.size() * (c.size() - 1) / 2;
    return n;
  }

 private:
  static constexpr int kSamples = 6;

  void Grow(int size) {
    const auto count = graph::TermId(terms.size());
    std::vector<graph::TermId> operands;
    for (const ops::Operator& op : operators_) {
      const bool binary = ops::InfoOf(op).arity_max >= 2;
      for (graph::TermId x = 0; x < count; ++x) {
        for (graph::TermId y = 0; y < (binary ? count : 1); ++y) {
          operands = {x};
          if (binary) operands.push_back(y);
          if (terms.SizeOf(operands) != size - 1) continue;
          const std::size_t before = terms.size();
          const auto id = terms.Add(op, operands);
          if (id.ok() && terms.size() > before) Evaluate(*id);
        }
      }
    }
  }

  void Evaluate(graph::TermId id) {
    std::vector<eval::Tensor<eval::Exact>>& values = values_.emplace_back();
    for (int s = 0; s < kSamples; ++s) {
      if (terms.is_input(id)) {
        values.push_back(Random(terms.extents(id), s));
        continue;
      }
      std::vector<const eval::Tensor<eval::Exact>*> operands;
      for (graph::TermId o : terms.operands(id)) {
        operands.push_back(&values_[std::size_t(o)][std::size_t(s)]);
      }
      values.push_back(*eval::Apply(terms.op(id), operands, 17));
    }
  }

  // Signs are biased differently in each sample, so that sums change sign.
  eval::Tensor<eval::Exact> Random(const graph::Extents& extents, int sample) {
    eval::Tensor<eval::Exact> t{extents, {}};
    const int low = sample % 3 == 0 ? -1000 : sample % 3 == 1 ? -300 : -1700;
    for (std::int64_t e = graph::ElementCount(extents); e > 0; --e) {
      t.data.push_back(eval::FromFraction(low + std::int64_t(rng_() % 2000), 997));
    }
    return t;
  }

  std::string KeyOf(graph::TermId id) const {
    std::string key;
    for (std::int64_t e : terms.extents(id)) key += std::to_string(e) + "x";
    for (const auto& t : values_[std::size_t(id)]) {
      for (const eval::Exact& e : t.data) key += std::to_string(e.residue) + ",";
    }
    return key;
  }

  std::vector<ops::Operator> operators_;
  std::vector<std::vector<eval::Tensor<eval::Exact>>> values_;  // By term and sample.
  std::mt19937 rng_{3};
};

// The matrix universe: three 4x4 inputs.
inline SmallUniverse MatrixUniverse(int size_max) {
  return SmallUniverse(
      {{{4, 4}}, {{4, 4}}, {{4, 4}}},
      {ops::Transpose{}, ops::Relu{}, ops::MatMul{}, ops::Add{}, ops::Mul{}, ops::Concat{1}},
      size_max);
}

}  // namespace tenon::test
