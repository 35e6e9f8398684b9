// The idea: a pair of terms is written as two trees over variables. While the sides stay equal at
// the concrete sizes, common subterms become variables and repeated variables are renamed apart.
// Then every size gets a symbol, and a *choice* says for each attribute how it is generalised: left
// free, tied to another size, or kept as the number it was. Choices are tried from the most general
// on; the first whose rule covers the concrete pair and looks true on random instances is taken. If
// all fail, extents that were equal are identified, one or two pairs of them.
//
// Everything is decided by evaluating, since a rule may type-check more generally than it holds:
// [a|b] @ [c|d]^T = [b|a] @ [d|c]^T fits whenever a and b have together as many columns as c and d,
// and holds only where a has as many as c.
//
// It ends because the number of variables, choices and identifications is bounded; it costs some
// hundred evaluations of small graphs, a few ms.
#include "core/rules/lift.h"

#include <algorithm>
#include <map>
#include <memory>

#include "core/rules/canonical.h"
#include "core/rules/complete.h"
#include "core/rules/instance.h"

namespace tenon::rules {
namespace {

using base::Poly;
using base::Symbol;
using graph::Graph;
using graph::NodeId;

constexpr int kVariablesMax = 8;
constexpr int kOccurrencesMax = 12;
constexpr int kChoicesMax = 96;
constexpr int kQuickTrials = 6;

// A term as a tree, children before parents.
struct Tree {
  struct Node {
    std::shared_ptr<const ops::Operator> op;  // Null for a variable.
    std::vector<int> children;
    int variable = -1;
    graph::Extents extents;
  };
  std::vector<Node> nodes;
  int root() const { return int(nodes.size()) - 1; }
};

struct TreePair {
  Tree side[2];
  std::vector<graph::Extents> variables;
  graph::DataType dtype = graph::DataType::kFloat;
};

// Appends the tree of `id`; false when it has more than `max` nodes.
bool ToTree(const Graph& g, NodeId id, int max, std::map<std::int32_t, int>& variables,
            TreePair& pair, Tree& out) {
  const graph::Node& n = g.node(id);
  Tree::Node node{n.op, {}, -1, graph::Concrete(n.shape())};
  if (n.is_input()) {
    const auto [it, fresh] = variables.emplace(n.input, int(pair.variables.size()));
    if (fresh) pair.variables.push_back(node.extents);
    node.variable = it->second;
  } else if (ops::IsOpaque(*n.op)) {
    return false;
  }
  for (NodeId o : n.operands) {
    if (!ToTree(g, o, max, variables, pair, out)) return false;
    node.children.push_back(out.root());
  }
  out.nodes.push_back(std::move(node));
  return int(out.nodes.size()) <= max;
}

// The subtree at `at` as text, for comparing; and where it starts.
std::vector<std::string> Spell(const Tree& t) {
  std::vector<std::string> out;
  for (const Tree::Node& n : t.nodes) {
    if (n.variable >= 0) {
      out.push_back("v" + std::to_string(n.variable));
      continue;
    }
    std::string s = std::to_string(ops::Hash(*n.op)) + "(";
    for (int c : n.children) s += out[std::size_t(c)] + ",";
    out.push_back(s + ")");
  }
  return out;
}

// `t` with the subtrees spelled `spelling` replaced by a variable.
Tree WithVariable(const Tree& t, const std::vector<std::string>& spelled,
                  const std::string& spelling, int variable) {
  Tree out;
  std::vector<int> image(t.nodes.size(), -1);
  const auto copy = [&](auto& self, int at) -> int {
    const Tree::Node& n = t.nodes[std::size_t(at)];
    Tree::Node node = n;
    node.children.clear();
    if (spelled[std::size_t(at)] == spelling) {
      node.op = nullptr;
      node.variable = variable;
    } else {
      for (int c : n.children) node.children.push_back(self(self, c));
    }
    out.nodes.push_back(std::move(node));
    return out.root();
  };
  copy(copy, t.root());
  return out;
}

// How the sizes of a pair are written in a rule.
struct Sizes {
  base::Symbols symbols;
  std::vector<graph::Shape> variables;
  std::vector<ops::Operator> ops[2];  // By node; unused for variables.
};

Sizes ConcreteSizesOf(const TreePair& pair) {
  Sizes sizes;
  for (const graph::Extents& e : pair.variables) sizes.variables.push_back(graph::ToShape(e));
  for (int s = 0; s < 2; ++s) {
    for (const Tree::Node& n : pair.side[s].nodes) {
      sizes.ops[s].push_back(n.op == nullptr ? ops::Operator(ops::Relu{}) : *n.op);
    }
  }
  return sizes;
}

// side[0] => side[1] with these sizes; nothing when an operator does not fit.
std::optional<Rule> Build(const TreePair& pair, const Sizes& sizes) {
  Rule rule;
  rule.graph.symbols() = sizes.symbols;
  std::vector<NodeId> inputs;
  for (std::size_t v = 0; v < pair.variables.size(); ++v) {
    inputs.push_back(rule.graph.AddInput("x" + std::to_string(v), graph::InputKind::kActivation,
                                         {pair.dtype, sizes.variables[v]}));
  }
  for (int s = 0; s < 2; ++s) {
    const Tree& t = pair.side[s];
    std::vector<NodeId> image;
    for (std::size_t k = 0; k < t.nodes.size(); ++k) {
      const Tree::Node& n = t.nodes[k];
      if (n.variable >= 0) {
        image.push_back(inputs[std::size_t(n.variable)]);
        continue;
      }
      std::vector<NodeId> operands;
      for (int c : n.children) operands.push_back(image[std::size_t(c)]);
      const auto id = rule.graph.Add(sizes.ops[s][k], operands, pair.dtype);
      if (!id.ok()) return std::nullopt;
      image.push_back(*id);
    }
    (s == 0 ? rule.source : rule.target) = {image.back()};
  }
  return rule;
}

bool EqualAsItStands(const TreePair& pair, Dice& dice, int samples) {
  const auto rule = Build(pair, ConcreteSizesOf(pair));
  return rule &&
         CompareAt(*rule, std::vector<std::int64_t>{0}, dice, samples) == Comparison::kEqual;
}

// Bit v of the result: side s mentions variable v.
unsigned Mentions(const Tree& t) {
  unsigned mask = 0;
  for (const Tree::Node& n : t.nodes) {
    if (n.variable >= 0) mask |= 1u << n.variable;
  }
  return mask;
}
bool OneSideDetermines(const TreePair& pair) {
  const unsigned a = Mentions(pair.side[0]), b = Mentions(pair.side[1]);
  return (a & ~b) == 0 || (b & ~a) == 0;
}

// Numbers the variables that are left by first appearance.
void Renumber(TreePair& pair) {
  std::vector<int> number(pair.variables.size(), -1);
  std::vector<graph::Extents> kept;
  for (Tree& t : pair.side) {
    for (Tree::Node& n : t.nodes) {
      if (n.variable < 0) continue;
      int& to = number[std::size_t(n.variable)];
      if (to < 0) {
        to = int(kept.size());
        kept.push_back(pair.variables[std::size_t(n.variable)]);
      }
      n.variable = to;
    }
  }
  pair.variables = std::move(kept);
}

// Common subterms become variables, the largest first.
void AbstractCommon(TreePair& pair, Dice& dice) {
  for (;;) {
    if (int(pair.variables.size()) >= kVariablesMax) return;
    const auto left = Spell(pair.side[0]), right = Spell(pair.side[1]);
    std::vector<std::pair<std::string, graph::Extents>> common;
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (pair.side[0].nodes[k].variable >= 0) continue;
      if (std::find(right.begin(), right.end(), left[k]) == right.end()) continue;
      common.emplace_back(left[k], pair.side[0].nodes[k].extents);
    }
    std::stable_sort(common.begin(), common.end(),
                     [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
    bool changed = false;
    for (const auto& [spelling, extents] : common) {
      TreePair next = pair;
      const int variable = int(pair.variables.size());
      next.variables.push_back(extents);
      next.side[0] = WithVariable(pair.side[0], left, spelling, variable);
      next.side[1] = WithVariable(pair.side[1], right, spelling, variable);
      Renumber(next);
      if (!OneSideDetermines(next) || !EqualAsItStands(next, dice, 3)) continue;
      pair = std::move(next);
      changed = true;
      break;
    }
    if (!changed) return;
  }
}

// Renames occurrences of repeated variables apart, as often as the sides stay equal.
void SplitVariables(TreePair& pair, Dice& dice) {
  struct Place {
    int side, node;
  };
  bool changed = true;
  while (changed && int(pair.variables.size()) < kVariablesMax) {
    changed = false;
    for (int v = 0; v < int(pair.variables.size()) && !changed; ++v) {
      std::vector<Place> places;
      for (int s = 0; s < 2; ++s) {
        const Tree& t = pair.side[s];
        for (int k = 0; k < int(t.nodes.size()); ++k) {
          if (t.nodes[std::size_t(k)].variable == v) places.push_back({s, k});
        }
      }
      const auto count = unsigned(places.size());
      if (count < 2 || count > kOccurrencesMax) continue;
      for (unsigned mask = 2; mask < (1u << count) && !changed; mask += 2) {
        TreePair next = pair;
        next.variables.push_back(pair.variables[std::size_t(v)]);
        for (unsigned k = 0; k < count; ++k) {
          if ((mask >> k & 1) == 0) continue;
          next.side[places[k].side].nodes[std::size_t(places[k].node)].variable =
              int(next.variables.size()) - 1;
        }
        if (!OneSideDetermines(next) || !EqualAsItStands(next, dice, 2)) continue;
        pair = std::move(next);
        changed = true;
      }
    }
  }
  Renumber(pair);
}

// ---- Symbols for sizes.

// One attribute of one or several operators that has the same values in all of them, and the ways
// in which it may be generalised.
struct Decision {
  enum class Way : std::uint8_t {
    kFree,        // A symbol an element.
    kTieDilated,  // The counterpart of the other side, plus the difference times the dilation.
    kTie,         // The counterpart plus the difference.
    kExpression,  // `expressions[k]`, for attributes of one element.
    kLiteral,     // As it was.
  };
  struct Place {
    int side, node;
  };
  std::string_view name;
  std::vector<std::int64_t> values;
  bool list = false;
  std::vector<Place> places;
  std::vector<Poly> free;
  std::vector<std::pair<Way, int>> ways;  // The most general first; with an index of expressions.
  std::vector<Poly> expressions;
  int counterpart = -1;

  bool OnSide(int s) const {
    return std::any_of(places.begin(), places.end(), [&](const Place& p) { return p.side == s; });
  }
};

class Symbolizer {
 public:
  explicit Symbolizer(const TreePair& pair) : pair_(pair), base_(1, 0) {
    for (const graph::Extents& e : pair.variables) {
      graph::Shape shape;
      for (std::int64_t extent : e) {
        has_ones_ = has_ones_ || extent == 1;
        shape.push_back(NewSymbol("d", base::SymbolKind::kDim, extent));
      }
      dims_.push_back(std::move(shape));
    }
    CollectDecisions();
    for (int k = 0; k < int(decisions_.size()); ++k) ListWays(k);
  }

  // The values of all symbols at the concrete pair.
  const std::vector<std::int64_t>& base() const { return base_; }
  // How many ways each decision has; the first decides whether extents of 1 become symbols.
  std::vector<int> WayCounts() const {
    std::vector<int> out{has_ones_ ? 2 : 1};
    for (const Decision& d : decisions_) out.push_back(int(d.ways.size()));
    return out;
  }
  // The rule for one combination of ways; nothing when it does not fit the concrete pair.
  std::optional<Rule> RuleFor(const std::vector<int>& ways) const {
    Sizes sizes = ConcreteSizesOf(pair_);
    sizes.symbols = symbols_;
    for (std::size_t v = 0; v < dims_.size(); ++v) {
      for (int a = 0; a < dims_[v].size(); ++a) {
        const bool literal = ways[0] == 1 && pair_.variables[v][a] == 1;
        sizes.variables[v][a] = literal ? Poly(1) : dims_[v][a];
      }
    }
    std::vector<std::vector<Poly>> chosen(decisions_.size());
    for (std::size_t k = 0; k < decisions_.size(); ++k) Choose(k, ways, chosen);
    for (std::size_t k = 0; k < decisions_.size(); ++k) {
      const Decision& d = decisions_[k];
      ops::AttrValue value;
      if (d.list) {
        ops::Short<ops::Size> list;
        for (const Poly& p : chosen[k]) list.push_back(p);
        value = list;
      } else {
        value = ops::Size(chosen[k][0]);
      }
      for (const Decision::Place& p : d.places) {
        if (!ops::SetAttr(sizes.ops[p.side][std::size_t(p.node)], d.name, value).ok()) {
          return std::nullopt;
        }
      }
    }
    auto rule = Build(pair_, sizes);
    if (!rule || !CompleteAt(*rule, &base_)) return std::nullopt;
    return rule;
  }

 private:
  Poly NewSymbol(std::string_view name, base::SymbolKind kind, std::int64_t value) {
    base_.push_back(value);
    return Poly::Var(symbols_.Add(name, kind));
  }

  void CollectDecisions() {
    for (int s = 0; s < 2; ++s) {
      const Tree& t = pair_.side[s];
      for (int k = 0; k < int(t.nodes.size()); ++k) {
        if (t.nodes[std::size_t(k)].op == nullptr) continue;
        for (const ops::Attr& attr : ops::AttrsOf(*t.nodes[std::size_t(k)].op)) {
          Note(attr, {s, k});
        }
      }
    }
  }
  void Note(const ops::Attr& attr, Decision::Place place) {
    if (attr.name == "group") return;  // The prover unrolls a constant number of groups only.
    Decision d;
    d.name = attr.name;
    if (const auto* list = std::get_if<ops::Short<ops::Size>>(&attr.value)) {
      d.list = true;
      for (const ops::Size& p : *list) d.values.push_back(p.constant());
    } else if (const auto* size = std::get_if<ops::Size>(&attr.value)) {
      d.values.push_back(size->constant());
    } else {
      return;
    }
    if (d.values.empty()) return;
    for (Decision& other : decisions_) {
      if (other.name == d.name && other.list == d.list && other.values == d.values) {
        other.places.push_back(place);
        return;
      }
    }
    d.places.push_back(place);
    for (std::int64_t v : d.values) {
      d.free.push_back(NewSymbol(attr.name, base::SymbolKind::kAttr, v));
    }
    decisions_.push_back(std::move(d));
  }

  void ListWays(int k) {
    using Way = Decision::Way;
    Decision& d = decisions_[std::size_t(k)];
    const bool one_sided = !d.OnSide(0) || !d.OnSide(1);
    if (!one_sided) {
      d.ways = {{Way::kFree, 0}, {Way::kLiteral, 0}};
      return;
    }
    for (int j = 0; j < int(decisions_.size()); ++j) {
      const Decision& other = decisions_[std::size_t(j)];
      if (j == k || other.name != d.name || other.values.size() != d.values.size() ||
          (other.OnSide(0) && other.OnSide(1)) || other.OnSide(0) == d.OnSide(0)) {
        continue;
      }
      // The smaller one stays free, the larger one follows.
      bool larger = true;
      for (std::size_t e = 0; e < d.values.size(); ++e) {
        larger = larger && d.values[e] >= other.values[e];
      }
      if (larger) d.counterpart = j;
    }
    if (d.counterpart >= 0) {
      d.ways = {{Way::kTieDilated, 0}, {Way::kTie, 0}, {Way::kLiteral, 0}};
      return;
    }
    const bool bound = d.name == "start" || d.name == "end";
    const bool solved = d.name == "shape" || d.name == "size" || d.name == "channels";
    const bool pads = d.name == "pads";  // The counterpart of a larger one, perhaps.
    if (bound || solved || pads) d.ways.push_back({Way::kFree, 0});
    if (bound) ListExpressions(d);
    d.ways.push_back({Way::kLiteral, 0});
  }
  // Extents, and sums of two, that had the value of the attribute.
  void ListExpressions(Decision& d) {
    std::vector<std::pair<Poly, std::int64_t>> extents;
    for (std::size_t v = 0; v < dims_.size(); ++v) {
      for (int a = 0; a < dims_[v].size(); ++a) {
        extents.emplace_back(dims_[v][a], pair_.variables[v][a]);
      }
    }
    if (d.values[0] == 0) d.expressions.push_back(0);
    for (const auto& [p, value] : extents) {
      if (value == d.values[0]) d.expressions.push_back(p);
    }
    for (std::size_t i = 0; i < extents.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (extents[i].second + extents[j].second != d.values[0]) continue;
        d.expressions.push_back(extents[i].first + extents[j].first);
      }
    }
    for (int e = 0; e < std::min(int(d.expressions.size()), 12); ++e) {
      d.ways.push_back({Decision::Way::kExpression, e});
    }
  }

  void Choose(std::size_t k, const std::vector<int>& ways,
              std::vector<std::vector<Poly>>& chosen) const {
    if (!chosen[k].empty()) return;
    const Decision& d = decisions_[k];
    const auto [way, index] = d.ways[std::size_t(ways[k + 1])];
    std::vector<Poly> out;
    switch (way) {
      case Decision::Way::kFree:
        out = d.free;
        break;
      case Decision::Way::kLiteral:
        out.assign(d.values.begin(), d.values.end());
        break;
      case Decision::Way::kExpression:
        out.push_back(d.expressions[std::size_t(index)]);
        break;
      case Decision::Way::kTieDilated:
      case Decision::Way::kTie: {
        const auto other = std::size_t(d.counterpart);
        Choose(other, ways, chosen);
        const std::vector<Poly>* dilation = nullptr;
        for (std::size_t j = 0; j < decisions_.size(); ++j) {
          if (decisions_[j].name == "dilations" && way == Decision::Way::kTieDilated) {
            Choose(j, ways, chosen);
            dilation = &chosen[j];
          }
        }
        for (std::size_t e = 0; e < d.values.size(); ++e) {
          const Poly difference = d.values[e] - decisions_[other].values[e];
          out.push_back(chosen[other][e] + (dilation == nullptr
                                                ? difference
                                                : difference * (*dilation)[e % dilation->size()]));
        }
        break;
      }
    }
    chosen[k] = std::move(out);
  }

  const TreePair& pair_;
  base::Symbols symbols_;
  std::vector<std::int64_t> base_;
  std::vector<graph::Shape> dims_;
  std::vector<Decision> decisions_;
  bool has_ones_ = false;
};

// The combinations of ways by the sum of their indices, most general first; at most kChoicesMax.
std::vector<std::vector<int>> Combinations(const std::vector<int>& counts) {
  std::vector<std::vector<int>> out{std::vector<int>(counts.size(), 0)};
  for (std::size_t at = 0; at < out.size() && int(out.size()) < kChoicesMax; ++at) {
    // Raise one index at or after the last one raised, so that each combination comes up once.
    std::size_t from = counts.size();
    while (from > 0 && out[at][from - 1] == 0) --from;
    for (std::size_t k = from == 0 ? 0 : from - 1; k < counts.size(); ++k) {
      if (out[at][k] + 1 >= counts[k]) continue;
      out.push_back(out[at]);
      ++out.back()[k];
    }
  }
  return out;
}

class Lifter {
 public:
  explicit Lifter(const LiftOptions& options) : options_(options), dice_(options.seed) {}

  std::vector<Rule> Run(const Graph& g, NodeId a, NodeId b) {
    if (!(g.shape(a) == g.shape(b))) return {};
    TreePair pair;
    pair.dtype = g.node(a).type->dtype;
    std::map<std::int32_t, int> variables;
    if (!ToTree(g, a, options_.terms_max, variables, pair, pair.side[0]) ||
        !ToTree(g, b, options_.terms_max, variables, pair, pair.side[1]) ||
        int(pair.variables.size()) > kVariablesMax || !EqualAsItStands(pair, dice_, 3)) {
      return {};
    }
    TreePair general = pair;
    AbstractCommon(general, dice_);
    SplitVariables(general, dice_);
    if (general.side[0].nodes.size() == 1 && general.side[1].nodes.size() == 1) return {};
    OfferBest(general);
    OfferLiteral(general);
    OfferBest(pair);
    OfferEqualExtents(pair);
    return std::move(out_);
  }

 private:
  // The first combination of ways that gives a true rule, if need be with extents identified.
  void OfferBest(const TreePair& pair) {
    const Symbolizer symbolizer(pair);
    std::vector<Rule> fitting;
    for (const std::vector<int>& ways : Combinations(symbolizer.WayCounts())) {
      auto rule = symbolizer.RuleFor(ways);
      if (!rule) continue;
      if (LooksTrue(*rule, dice_, kQuickTrials, &symbolizer.base()) && Offer(*rule)) return;
      if (fitting.size() < 4) fitting.push_back(*std::move(rule));
    }
    for (const Rule& rule : fitting) {
      if (Identify(rule, symbolizer.base())) return;
    }
  }
  // Attributes and extents of 1 as they were, the other extents free.
  void OfferLiteral(const TreePair& pair) {
    const Symbolizer symbolizer(pair);
    std::vector<int> ways = symbolizer.WayCounts();
    for (int& w : ways) --w;
    auto rule = symbolizer.RuleFor(ways);
    if (!rule) return;
    if (LooksTrue(*rule, dice_, kQuickTrials, &symbolizer.base()) && Offer(*rule)) return;
    Identify(*rule, symbolizer.base());
  }
  // Every two extents that were equal stay equal.
  void OfferEqualExtents(const TreePair& pair) {
    const Symbolizer symbolizer(pair);
    std::vector<int> ways = symbolizer.WayCounts();
    for (int& w : ways) --w;
    auto rule = symbolizer.RuleFor(ways);
    if (!rule) return;
    std::map<std::int64_t, Symbol> first;
    for (Symbol s : Dims(*rule)) {
      const auto [it, fresh] = first.emplace(symbolizer.base()[s], s);
      if (!fresh) rule->where.push_back(base::Eq(Poly::Var(it->second), Poly::Var(s)));
    }
    if (CompleteAt(*rule, &symbolizer.base())) Offer(*rule);
  }

  // The dims that the shapes of inputs mention.
  static std::vector<Symbol> Dims(const Rule& rule) {
    std::vector<Symbol> out;
    for (std::size_t k = 0; k < rule.graph.inputs().size(); ++k) {
      for (const Poly& p : rule.graph.shape(rule.graph.input_node(int(k)))) p.CollectSymbols(out);
    }
    std::erase_if(out,
                  [&](Symbol s) { return rule.graph.symbols().kind(s) != base::SymbolKind::kDim; });
    std::sort(out.begin(), out.end());
    return out;
  }

  // Adds the fewest equalities (at most two) between extents, or of an extent with 1, under which
  // the rule looks true.
  bool Identify(const Rule& rule, const std::vector<std::int64_t>& base) {
    std::vector<base::Condition> equalities;
    const std::vector<Symbol> dims = Dims(rule);
    for (std::size_t j = 0; j < dims.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        if (base[dims[i]] != base[dims[j]]) continue;
        equalities.push_back(base::Eq(Poly::Var(dims[i]), Poly::Var(dims[j])));
      }
    }
    for (Symbol s : dims) {
      if (base[s] == 1) equalities.push_back(base::Eq(Poly::Var(s), 1));
    }
    const auto attempt = [&](std::initializer_list<base::Condition> extra) {
      Rule narrower = rule;
      narrower.where.insert(narrower.where.end(), extra.begin(), extra.end());
      return CompleteAt(narrower, &base) && LooksTrue(narrower, dice_, kQuickTrials, &base) &&
             Offer(narrower);
    };
    for (const base::Condition& c : equalities) {
      if (attempt({c})) return true;
    }
    for (std::size_t j = 0; j < equalities.size(); ++j) {
      for (std::size_t i = 0; i < j; ++i) {
        if (attempt({equalities[i], equalities[j]})) return true;
      }
    }
    return false;
  }

  // Keeps the rule if it passes all trials; true also when it was kept before.
  bool Offer(Rule rule) {
    if (!LooksTrue(rule, dice_, options_.trials)) return false;
    if (rule.both && SourceIsSmaller(rule)) {
      std::swap(rule.source, rule.target);  // The conditions are those of both sides.
    }
    auto canonical = Canonical(rule);
    if (!canonical.ok() || canonical->source == canonical->target) return false;
    const auto bytes = CanonicalBytes(*canonical);
    if (!bytes.ok()) return false;
    if (std::find(offered_.begin(), offered_.end(), *bytes) == offered_.end()) {
      offered_.push_back(*bytes);
      out_.push_back(*std::move(canonical));
    }
    return true;
  }
  static bool SourceIsSmaller(const Rule& rule) {
    const int source = rule.graph.OperatorCount(rule.source);
    const int target = rule.graph.OperatorCount(rule.target);
    if (source != target) return source < target;
    const auto one = CanonicalBytes(rule.graph, rule.source);
    const auto other = CanonicalBytes(rule.graph, rule.target);
    return one.ok() && other.ok() && *one < *other;
  }

  const LiftOptions& options_;
  Dice dice_;
  std::vector<Rule> out_;
  std::vector<std::string> offered_;
};

}  // namespace

std::vector<Rule> Lift(const Graph& g, NodeId a, NodeId b, const LiftOptions& options) {
  return Lifter(options).Run(g, a, b);
}

}  // namespace tenon::rules
