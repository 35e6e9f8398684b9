#include "core/rules/instance.h"

#include "core/eval/eval.h"

namespace tenon::rules {

std::uint64_t Dice::Next() {
  state_ += 0x9e3779b97f4a7c15ull;
  std::uint64_t x = state_;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

std::int64_t Dice::Between(std::int64_t low, std::int64_t high) {
  return low + std::int64_t(Next() % std::uint64_t(high - low + 1));
}

namespace {

std::vector<graph::NodeId> Roots(const Rule& rule) {
  std::vector<graph::NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  return roots;
}

}  // namespace

std::optional<std::vector<std::int64_t>> RandomValues(const Rule& rule, Dice& dice, int dim_max,
                                                      int tries) {
  const base::Symbols& symbols = rule.graph.symbols();
  std::vector<base::Condition> conditions = rule.graph.Requirements(Roots(rule));
  conditions.insert(conditions.end(), rule.where.begin(), rule.where.end());
  std::vector<base::Poly> extents;  // At least 1 as well.
  for (std::size_t k = 0; k < rule.graph.inputs().size(); ++k) {
    for (const base::Poly& p : rule.graph.shape(rule.graph.input_node(int(k)))) {
      if (!p.is_constant()) extents.push_back(p);
    }
  }
  std::vector<std::int64_t> values(symbols.size(), 0);
  for (int t = 0; t < tries; ++t) {
    for (std::size_t s = 1; s < symbols.size(); ++s) {
      values[s] = symbols.kind(base::Symbol(s)) == base::SymbolKind::kDim ? dice.Between(1, dim_max)
                                                                          : dice.Between(0, 3);
    }
    bool fits = true;
    for (std::size_t k = 0; k < conditions.size() && fits; ++k) {
      fits = base::Holds(conditions[k], symbols, values).value_or(false);
    }
    for (std::size_t k = 0; k < extents.size() && fits; ++k) {
      fits = symbols.Eval(extents[k], values).value_or(0) >= 1;
    }
    if (fits) return values;
  }
  return std::nullopt;
}

eval::Tensor<eval::Exact> RandomTensor(const graph::Extents& extents, Dice& dice) {
  constexpr std::int64_t kOne = 1 << 16;
  // The share of negative elements in eighths, and the size of the elements as a power of 4.
  constexpr int kNegative[] = {4, 4, 4, 1, 7, 0, 8, 4};
  constexpr int kScale[] = {0, 0, 0, 0, 2, -2, 0, -4};
  const auto mode = dice.Next();
  const int negative = kNegative[mode & 7];
  const int scale = kScale[(mode >> 3) & 7];
  const std::int64_t denominator = kOne << (scale < 0 ? -2 * scale : 0);
  eval::Tensor<eval::Exact> out{extents, {}};
  const std::int64_t count = graph::ElementCount(extents);
  out.data.reserve(std::size_t(count));
  for (std::int64_t k = 0; k < count; ++k) {
    std::int64_t n = dice.Between(1, kOne) << (scale > 0 ? 2 * scale : 0);
    if (dice.Between(0, 7) < negative) n = -n;
    out.data.push_back(eval::FromFraction(n, denominator));
  }
  return out;
}

Comparison CompareAt(const Rule& rule, std::span<const std::int64_t> values, Dice& dice,
                     int samples) {
  const auto g = graph::Instantiate(rule.graph, Roots(rule), values);
  if (!g.ok()) return Comparison::kUnusable;
  const std::size_t outputs = rule.source.size();
  for (std::size_t k = 0; k < outputs; ++k) {
    if (!(g->shape(g->outputs()[k]) == g->shape(g->outputs()[outputs + k]))) {
      return Comparison::kDifferent;
    }
  }
  bool compared = false;
  for (int s = 0; s < samples; ++s) {
    std::vector<eval::Tensor<eval::Exact>> inputs;
    for (std::size_t k = 0; k < g->inputs().size(); ++k) {
      inputs.push_back(RandomTensor(graph::Concrete(g->shape(g->input_node(int(k)))), dice));
    }
    const auto out = eval::Evaluate(*g, g->outputs(), inputs, dice.Next());
    if (!out.ok()) continue;
    compared = true;
    for (std::size_t k = 0; k < outputs; ++k) {
      if ((*out)[k].data != (*out)[outputs + k].data) return Comparison::kDifferent;
    }
  }
  return compared ? Comparison::kEqual : Comparison::kUnusable;
}

bool LooksTrue(const Rule& rule, Dice& dice, int trials, const std::vector<std::int64_t>* base) {
  int equal = 0;
  if (base != nullptr) {
    if (CompareAt(rule, *base, dice, 2) != Comparison::kEqual) return false;
    ++equal;
  }
  for (int t = 0; t < trials; ++t) {
    const auto values = RandomValues(rule, dice, t % 4 == 3 ? 3 : 5);
    if (!values) return equal > 0;
    switch (CompareAt(rule, *values, dice)) {
      case Comparison::kEqual:
        ++equal;
        break;
      case Comparison::kDifferent:
        return false;
      case Comparison::kUnusable:
        break;
    }
  }
  return equal > 0;
}

}  // namespace tenon::rules
