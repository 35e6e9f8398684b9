// Values are multiples of 1/8, so that doubles hold them exactly and products of a few of them,
// too. Where a rule names a larger constant, values beyond it are drawn as well: what differs above
// a bound of 6 is not seen below it. Two values count as different only if they differ as exact
// numbers mod p and as doubles: the exact reading knows nothing of exp(a + b) = exp(a) exp(b), and
// the doubles round.
//
// Sizes are drawn by rejection: the linear equations among the conditions are solved first, so that
// what remains are inequalities, which small random numbers fulfil soon enough.
#include "verifier/screen.h"

#include <algorithm>
#include <cmath>

#include "core/eval/eval.h"
#include "core/rules/text.h"
#include "verifier/hypotheses.h"

namespace tenon::verifier {
namespace {

using base::Condition;
using base::Poly;
using base::Symbol;
using base::SymbolKind;
using graph::NodeId;

// SplitMix64: any seed is a good one.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15ull;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(Next() % static_cast<std::uint64_t>(high - low + 1));
  }

 private:
  std::uint64_t state_;
};

// Draws of sizes per shape, and of values per size (a reciprocal of 0 takes new ones).
constexpr int kSizeTries = 400;
constexpr int kValueTries = 6;
// Larger inputs, of which little may be read, are not drawn.
constexpr double kInputElementsMax = 1e7;
// Values are at most that many eighths at first, and of constants up to this more (above).
constexpr std::int64_t kEighths = 16;
constexpr double kConstantMax = 1e4;
// What doubles must differ by, relative to the larger one or to 1.
constexpr double kTolerance = 1e-6;

class Tester {
 public:
  Tester(const rules::Rule& rule, const ScreenOptions& options)
      : rule_(rule), options_(options), symbols_(rule.graph.symbols()) {
    conditions_ = ConditionsOf(rule, rule.source);
    solved_ = SolveEquations(symbols_, conditions_);
    roots_ = rule.source;
    roots_.insert(roots_.end(), rule.target.begin(), rule.target.end());
    eighths_ = std::max(kEighths, EighthsBeyondConstants());
  }

  // Sizes that the rule allows; nothing if none were found.
  std::optional<std::vector<std::int64_t>> Draw(Random& random) {
    for (int k = 0; k < kSizeTries; ++k) {
      const std::int64_t dim_max = random.Between(1, 6), attr_max = random.Between(1, 4);
      std::vector<std::int64_t> values(symbols_.size(), 0);
      for (std::size_t s = 1; s < rule_.graph.symbols().size(); ++s) {
        switch (symbols_.kind(static_cast<Symbol>(s))) {
          case SymbolKind::kDim:
            values[s] = random.Between(1, dim_max);
            break;
          case SymbolKind::kAttr:
            values[s] = random.Between(random.Between(0, 7) == 0 ? -2 : 0, attr_max);
            break;
          case SymbolKind::kDiv:
          case SymbolKind::kIndex:
          case SymbolKind::kBinder:
          case SymbolKind::kCoord:
          case SymbolKind::kParam:
            break;
        }
      }
      if (Complete(values)) return values;
    }
    return std::nullopt;
  }

  // Fills in eliminated symbols; false when a condition fails.
  bool Complete(std::vector<std::int64_t>& values) const {
    for (const auto& [s, p] : solved_.eliminated) {
      const auto v = symbols_.Eval(p, values);
      if (!v) return false;
      values[s] = *v;
    }
    for (std::size_t s = 1; s < rule_.graph.symbols().size(); ++s) {
      if (symbols_.kind(static_cast<Symbol>(s)) == SymbolKind::kDim && values[s] < 1) return false;
    }
    return std::all_of(conditions_.begin(), conditions_.end(), [&](const Condition& c) {
      return base::Holds(c, symbols_, values) == true;
    });
  }

  // Whether both sides could be evaluated there; a difference goes to `found`.
  bool Compare(const std::vector<std::int64_t>& sizes, Random& random,
               std::optional<Counterexample>& found) {
    const auto concrete = graph::Instantiate(rule_.graph, roots_, sizes);
    if (!concrete.ok() || WorkOf(*concrete) > options_.work_max) return false;
    if (InputElementsOf(*concrete) > kInputElementsMax) return false;
    for (int k = 0; k < kValueTries; ++k) {
      const auto inputs = DrawInputs(*concrete, random, k);
      const std::uint64_t key = random.Next();
      std::vector<eval::Tensor<eval::Exact>> exact;
      for (const eval::Tensor<double>& t : inputs) {
        exact.push_back({t.extents, {}});
        for (double v : t.data) exact.back().data.push_back(eval::FromDouble(v));
      }
      const auto outputs = eval::Evaluate(*concrete, concrete->outputs(), exact, key);
      if (!outputs.ok()) continue;
      if (!AllEqual(*outputs)) found = Confirm(*concrete, sizes, inputs, *outputs);
      return true;
    }
    return false;
  }

 private:
  static double WorkOf(const graph::Graph& g) {
    double flops = 0;
    for (std::size_t k = 0; k < g.size(); ++k) {
      const graph::Node& n = g.node(static_cast<NodeId>(k));
      if (n.is_input() || ops::IsOpaque(*n.op)) continue;
      std::vector<graph::Extents> operands;
      for (NodeId id : n.operands) operands.push_back(graph::Concrete(g.shape(id)));
      const eval::Work w = eval::WorkOf(*n.op, operands, graph::Concrete(n.shape()));
      flops += w.flops + w.elements_out;
    }
    return flops;
  }

  static double InputElementsOf(const graph::Graph& g) {
    double elements = 0;
    for (std::size_t k = 0; k < g.inputs().size(); ++k) {
      double own = 1;
      for (const Poly& extent : g.shape(g.input_node(static_cast<std::int32_t>(k)))) {
        own *= static_cast<double>(extent.constant());
      }
      elements += own;
    }
    return elements;
  }

  // Half as large again as the largest constant of the rule, in eighths; constants that are huge do
  // not count.
  std::int64_t EighthsBeyondConstants() const {
    double largest = 0;
    for (const NodeId id : rule_.graph.Reachable(roots_)) {
      const graph::Node& node = rule_.graph.node(id);
      if (node.is_input()) continue;
      for (const ops::Attr& a : ops::AttrsOf(*node.op)) {
        const double* value = std::get_if<double>(&a.value);
        if (value != nullptr && std::fabs(*value) <= kConstantMax) {
          largest = std::max(largest, std::fabs(*value));
        }
      }
    }
    return static_cast<std::int64_t>(12 * largest);
  }

  // Positive values every other time: square roots of negative numbers say little.
  std::vector<eval::Tensor<double>> DrawInputs(const graph::Graph& g, Random& random,
                                               int attempt) const {
    const bool positive = random.Between(0, 1) == 1;
    const bool wide = eighths_ > kEighths && random.Between(0, 1) == 1;
    const std::int64_t high = (wide ? eighths_ : kEighths) << attempt;
    std::vector<eval::Tensor<double>> out;
    for (std::size_t k = 0; k < g.inputs().size(); ++k) {
      eval::Tensor<double> t;
      t.extents = graph::Concrete(g.shape(g.input_node(static_cast<std::int32_t>(k))));
      for (std::int64_t n = graph::ElementCount(t.extents); n > 0; --n) {
        const std::int64_t v = random.Between(positive ? 1 : -high, high);
        t.data.push_back(static_cast<double>(v) / 8);
      }
      out.push_back(std::move(t));
    }
    return out;
  }

  bool AllEqual(const std::vector<eval::Tensor<eval::Exact>>& outputs) const {
    for (std::size_t k = 0; k < rule_.source.size(); ++k) {
      const auto& other = outputs[k + rule_.source.size()];
      if (outputs[k].extents != other.extents || outputs[k].data != other.data) return false;
    }
    return true;
  }

  // The first element in which both the exact values and the doubles differ.
  std::optional<Counterexample> Confirm(const graph::Graph& g,
                                        const std::vector<std::int64_t>& sizes,
                                        const std::vector<eval::Tensor<double>>& inputs,
                                        const std::vector<eval::Tensor<eval::Exact>>& exact) const {
    const auto outputs = eval::Evaluate(g, g.outputs(), inputs);
    if (!outputs.ok()) return std::nullopt;
    for (std::size_t k = 0; k < rule_.source.size(); ++k) {
      const auto& a = (*outputs)[k];
      const auto& b = (*outputs)[k + rule_.source.size()];
      const auto& ea = exact[k];
      const auto& eb = exact[k + rule_.source.size()];
      for (std::size_t e = 0; e < a.data.size() && e < b.data.size(); ++e) {
        const double x = a.data[e], y = b.data[e];
        if (ea.data[e] == eb.data[e] || !std::isfinite(x) || !std::isfinite(y)) continue;
        const double scale = std::max({1.0, std::fabs(x), std::fabs(y)});
        if (std::fabs(x - y) <= kTolerance * scale) continue;
        return Make(sizes, inputs, static_cast<int>(k), a.extents, e, x, y);
      }
    }
    return std::nullopt;
  }

  Counterexample Make(const std::vector<std::int64_t>& sizes,
                      const std::vector<eval::Tensor<double>>& inputs, int output,
                      const graph::Extents& extents, std::size_t element, double x,
                      double y) const {
    Counterexample c;
    for (std::size_t s = 1; s < rule_.graph.symbols().size(); ++s) {
      const SymbolKind kind = symbols_.kind(static_cast<Symbol>(s));
      if (kind != SymbolKind::kDim && kind != SymbolKind::kAttr) continue;
      c.sizes.emplace_back(symbols_.name(static_cast<Symbol>(s)), sizes[s]);
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      c.inputs.emplace_back(rule_.graph.input(static_cast<std::int32_t>(k)).name, inputs[k]);
    }
    c.output = output;
    c.index = graph::Extents::Filled(extents.size(), 0);
    auto rest = static_cast<std::int64_t>(element);
    for (int a = extents.size(); a-- > 0;) {
      c.index[a] = rest % extents[a];
      rest /= extents[a];
    }
    c.source_value = x;
    c.target_value = y;
    return c;
  }

  const rules::Rule& rule_;
  const ScreenOptions& options_;
  base::Symbols symbols_;
  std::vector<Condition> conditions_;
  Solved solved_;
  std::vector<NodeId> roots_;
  std::int64_t eighths_ = kEighths;
};

}  // namespace

Screened Screen(const rules::Rule& rule, const ScreenOptions& options) {
  Tester tester(rule, options);
  Random random(options.seed);
  Screened out;
  for (int tries = 0; tries < 4 * options.shapes && out.shapes < options.shapes; ++tries) {
    const auto sizes = tester.Draw(random);
    if (!sizes) {
      out.note = "few sizes fulfil the rule's conditions";
      if (tries >= 2) break;
      continue;
    }
    if (tester.Compare(*sizes, random, out.counterexample)) ++out.shapes;
    if (out.counterexample) return out;
  }
  if (out.shapes < options.shapes && out.note.empty()) {
    out.note = "at most sizes drawn the sides could not be evaluated";
  }
  return out;
}

std::optional<Counterexample> TestAt(const rules::Rule& rule,
                                     const std::map<Symbol, std::int64_t>& sizes,
                                     const ScreenOptions& options) {
  Tester tester(rule, options);
  Random random(options.seed);
  const base::Symbols& symbols = rule.graph.symbols();
  std::vector<std::int64_t> values(symbols.size(), 0);
  for (std::size_t s = 1; s < symbols.size(); ++s) {
    const auto at = sizes.find(static_cast<Symbol>(s));
    const bool dim = symbols.kind(static_cast<Symbol>(s)) == SymbolKind::kDim;
    values[s] = at != sizes.end() ? at->second : (dim ? 1 : 0);
    if (values[s] > 64) return std::nullopt;
  }
  std::optional<Counterexample> found;
  if (!tester.Complete(values)) return std::nullopt;
  for (int k = 0; k < 2 && !found; ++k) tester.Compare(values, random, found);
  return found;
}

std::optional<std::vector<std::int64_t>> FindSizes(const rules::Rule& rule, std::uint64_t seed) {
  const ScreenOptions options;
  Random random(seed);
  return Tester(rule, options).Draw(random);
}

std::uint64_t SeedOf(const rules::Rule& rule) {
  rules::Rule plain = rule;
  plain.name = "r";
  plain.expect = rules::Expect::kNone;
  std::uint64_t h = 0xcbf29ce484222325ull;  // FNV-1a.
  for (const char c : rules::PrintRule(plain)) {
    h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return h;
}

}  // namespace tenon::verifier
