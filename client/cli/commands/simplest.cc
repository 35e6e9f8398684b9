// Greedy: what a random tester finds is full of numbers that do not matter. A range of values is
// set to 0 at once; if the sides agree then, each half is tried alone. k values that matter among n
// take about 2 k log n evaluations. Then what is left becomes 1 or -1 where it can. Each step is
// checked by evaluation, so the result is as good a counterexample as the first one.
#include "client/cli/commands/simplest.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "core/eval/eval.h"
#include "core/graph/graph.h"

namespace tenon::cli {
namespace {

using eval::Tensor;
using verifier::Counterexample;

// What is not simple by then stays as it is.
constexpr int kEvaluationsMax = 3000;

// Both sides of a rule at the sizes of a counterexample.
class Sides {
 public:
  static std::optional<Sides> At(const rules::Rule& rule, const Counterexample& example) {
    const base::Symbols& symbols = rule.graph.symbols();
    std::vector<std::int64_t> sizes(symbols.size(), 0);
    for (const auto& [name, value] : example.sizes) {
      const base::Symbol symbol = symbols.Find(name);
      if (symbol != 0) sizes[symbol] = value;
    }
    const auto output = static_cast<std::size_t>(example.output);
    if (output >= rule.source.size() || output >= rule.target.size()) return std::nullopt;
    const graph::NodeId roots[] = {rule.source[output], rule.target[output]};
    StatusOr<graph::Graph> concrete = graph::Instantiate(rule.graph, roots, sizes);
    if (!concrete.ok() || concrete->inputs().size() != example.inputs.size()) return std::nullopt;
    for (std::size_t k = 0; k < example.inputs.size(); ++k) {
      if (concrete->inputs()[k].name != example.inputs[k].first) return std::nullopt;
    }
    return Sides(*std::move(concrete));
  }

  // The values of both sides at the element; nothing when they cannot be computed or are no
  // numbers.
  std::optional<std::pair<double, double>> Values(const Counterexample& example) const {
    std::vector<Tensor<double>> inputs;
    for (const auto& [name, value] : example.inputs) inputs.push_back(value);
    const auto outputs = eval::Evaluate(graph_, graph_.outputs(), inputs);
    if (!outputs.ok() || outputs->size() != 2) return std::nullopt;
    const Tensor<double>& source = (*outputs)[0];
    if (source.extents.size() != example.index.size()) return std::nullopt;
    std::size_t at = 0;
    for (int a = 0; a < source.extents.size(); ++a) {
      at = at * static_cast<std::size_t>(source.extents[a]) +
           static_cast<std::size_t>(example.index[a]);
    }
    if (at >= source.data.size() || at >= (*outputs)[1].data.size()) return std::nullopt;
    const std::pair<double, double> values{source.data[at], (*outputs)[1].data[at]};
    if (!std::isfinite(values.first) || !std::isfinite(values.second)) return std::nullopt;
    return values;
  }

  // Whether both sides are clearly different: rounding must not pass for a counterexample. False
  // when the evaluations are used up.
  bool Differ(const Counterexample& example) {
    if (++evaluations_ > kEvaluationsMax) return false;
    const auto values = Values(example);
    if (!values) return false;
    const double size = std::fmax(std::fabs(values->first), std::fabs(values->second));
    return std::fabs(values->first - values->second) > 1e-3 * std::fmax(size, 1e-3);
  }

 private:
  explicit Sides(graph::Graph graph) : graph_(std::move(graph)) {}
  graph::Graph graph_;
  int evaluations_ = 0;
};

// Zeroes as much as possible of values[begin, end) of one input.
void Zero(Sides& sides, Counterexample& example, std::vector<double>& values, std::size_t begin,
          std::size_t end) {
  const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = values.begin() + static_cast<std::ptrdiff_t>(end);
  if (std::all_of(first, last, [](double v) { return v == 0; })) return;
  const std::vector<double> before(first, last);
  std::fill(first, last, 0.0);
  if (sides.Differ(example)) return;
  std::copy(before.begin(), before.end(), first);
  if (end - begin == 1) return;
  const std::size_t middle = begin + (end - begin) / 2;
  Zero(sides, example, values, begin, middle);
  Zero(sides, example, values, middle, end);
}

}  // namespace

Counterexample Simplest(const rules::Rule& rule, const Counterexample& example) {
  std::optional<Sides> sides = Sides::At(rule, example);
  if (!sides || !sides->Differ(example)) return example;
  Counterexample simple = example;
  for (auto& [name, tensor] : simple.inputs) {
    Zero(*sides, simple, tensor.data, 0, tensor.data.size());
  }
  for (auto& [name, tensor] : simple.inputs) {
    for (double& value : tensor.data) {
      if (value == 0) continue;
      const double before = value;
      for (const double candidate : {1.0, -1.0, before}) {
        value = candidate;
        if (candidate == before || sides->Differ(simple)) break;
      }
    }
  }
  const auto values = sides->Values(simple);
  if (!values) return example;
  simple.source_value = values->first;
  simple.target_value = values->second;
  return simple;
}

}  // namespace tenon::cli
