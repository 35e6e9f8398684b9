// Equalities are solved one at a time: an equality in which a symbol stands alone with coefficient
// 1 or -1 turns it into a sum of the others, the graph is rebuilt with that sum, and the search
// starts again; each round removes a symbol, so it ends. A dim is only replaced by a sum without
// negative terms, which is at least 1 where its parts are. What cannot be solved stays a condition.
//
// Two floor divisions are equal where their numerators are; that is more than needed in rare cases
// and what a general rule wants. Likewise a common factor is divided out.
#include "core/rules/complete.h"

#include <algorithm>
#include <memory>

#include "core/rules/compiled.h"
#include "core/rules/lift.h"

namespace tenon::rules {
namespace {

using base::Condition;
using base::Poly;
using base::Symbol;
using base::Symbols;
using graph::NodeId;

// A lower bound of p; nothing when none is known.
std::optional<std::int64_t> LowerBound(const Poly& p, std::span<const Condition> known,
                                       const Symbols& symbols, int depth);

std::optional<std::int64_t> LowerBound(Symbol s, std::span<const Condition> known,
                                       const Symbols& symbols, int depth) {
  switch (symbols.kind(s)) {
    case base::SymbolKind::kDim:
      return 1;
    case base::SymbolKind::kDiv: {
      if (depth > 3) return std::nullopt;
      const auto n = LowerBound(symbols.numerator(s), known, symbols, depth + 1);
      return n && *n >= 0 ? std::optional<std::int64_t>(0) : std::nullopt;
    }
    case base::SymbolKind::kAttr:
    case base::SymbolKind::kIndex:
    case base::SymbolKind::kBinder:
    case base::SymbolKind::kCoord:
    case base::SymbolKind::kParam:
      break;
  }
  std::optional<std::int64_t> best;
  for (const Condition& c : known) {  // s - b >= 0
    const Poly rest = c.p - Poly::Var(s);
    if (rest.is_constant() && (!best || -rest.constant() > *best)) best = -rest.constant();
  }
  return best;
}

std::optional<std::int64_t> LowerBound(const Poly& p, std::span<const Condition> known,
                                       const Symbols& symbols, int depth) {
  if (!p.valid()) return std::nullopt;
  std::int64_t sum = 0;
  for (const Poly::Term& t : p.terms()) {
    std::int64_t product = t.coefficient;
    if (t.monomial[0] != 0 && t.coefficient < 0) return std::nullopt;
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      const auto low = LowerBound(s, known, symbols, depth);
      if (!low || *low < 0 || __builtin_mul_overflow(product, *low, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

bool AtLeastZero(const Poly& p, std::span<const Condition> known, const Symbols& symbols) {
  const auto low = LowerBound(p, known, symbols, 0);
  return low && *low >= 0;
}

std::vector<NodeId> Roots(const Rule& rule) {
  std::vector<NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  return roots;
}

// Stronger and simpler than p = 0: without common factors, without equal divisions.
Poly Simplified(Poly p, const Symbols& symbols) {
  if (!p.valid() || p.terms().empty()) return p;
  // q*n - q*m with q, m floor divisions by the same: n = m suffices. Two divisions only.
  std::vector<std::pair<Symbol, std::int64_t>> divisions;
  Poly rest;
  bool plain = true;
  for (const Poly::Term& t : p.terms()) {
    const bool division =
        t.monomial[0] != 0 && symbols.kind(t.monomial[0]) == base::SymbolKind::kDiv;
    if (division && t.monomial[1] == 0) {
      divisions.emplace_back(t.monomial[0], t.coefficient);
      continue;
    }
    Poly one(t.coefficient);
    for (Symbol s : t.monomial) {
      if (s == 0) break;
      plain = plain && symbols.kind(s) != base::SymbolKind::kDiv;
      one = one * Poly::Var(s);
    }
    rest += one;
  }
  if (plain && divisions.size() == 2 && divisions[0].second == -divisions[1].second &&
      (divisions[0].second == 1 || divisions[0].second == -1) &&
      symbols.denominator(divisions[0].first) == symbols.denominator(divisions[1].first)) {
    const Poly& d = symbols.denominator(divisions[0].first);
    const Poly difference =
        divisions[0].second == 1
            ? symbols.numerator(divisions[0].first) - symbols.numerator(divisions[1].first)
            : symbols.numerator(divisions[1].first) - symbols.numerator(divisions[0].first);
    return Simplified(difference + rest * d, symbols);
  }
  // A factor of every term.
  for (Symbol s : p.terms()[0].monomial) {
    if (s == 0) break;
    Poly quotient;
    bool all = true;
    for (const Poly::Term& t : p.terms()) {
      Poly one(t.coefficient);
      bool removed = false;
      for (Symbol f : t.monomial) {
        if (f == 0) break;
        if (f == s && !removed) {
          removed = true;
        } else {
          one = one * Poly::Var(f);
        }
      }
      all = all && removed;
      quotient += one;
    }
    if (all) return Simplified(quotient, symbols);
  }
  return p;
}

struct Solution {
  Symbol symbol = 0;
  Poly expr;
};

// The best symbol to solve p = 0 for: attributes before dims, later ones before earlier ones.
std::optional<Solution> Solve(const Poly& equality, const Symbols& symbols) {
  const Poly p = Simplified(equality, symbols);
  std::vector<Symbol> all;
  p.CollectSymbols(all, &symbols);
  std::optional<Solution> best;
  for (Symbol s : all) {
    const auto kind = symbols.kind(s);
    if (kind != base::SymbolKind::kDim && kind != base::SymbolKind::kAttr) continue;
    const auto c = p.LinearCoefficient(s, symbols);
    if (!c || (*c != 1 && *c != -1)) continue;
    const Poly expr = *c == 1 ? -(p - Poly::Var(s)) : p + Poly::Var(s);
    bool usable = expr.valid();
    std::vector<Symbol> parts;
    expr.CollectSymbols(parts);
    for (Symbol part : parts) usable = usable && symbols.kind(part) != base::SymbolKind::kDiv;
    if (kind == base::SymbolKind::kDim) {
      for (const Poly::Term& t : expr.terms()) usable = usable && t.coefficient > 0;
      usable = usable && !expr.terms().empty();
    }
    if (!usable) continue;
    const auto rank = [&](Symbol x) {
      return std::pair(symbols.kind(x) == base::SymbolKind::kAttr, x);
    };
    if (!best || rank(s) > rank(best->symbol)) best = Solution{s, expr};
  }
  return best;
}

// The equality of the outputs' shapes; false when a rank or a constant extent differs.
bool ShapeEqualities(const Rule& rule, std::vector<Condition>& out) {
  for (std::size_t k = 0; k < rule.source.size(); ++k) {
    const graph::Shape& s = rule.graph.shape(rule.source[k]);
    const graph::Shape& t = rule.graph.shape(rule.target[k]);
    if (s.size() != t.size()) return false;
    for (int a = 0; a < s.size(); ++a) {
      const Condition c = base::Eq(s[a], t[a]);
      const auto trivial = base::Trivial(c);
      if (!c.p.valid() || (trivial && !*trivial)) return false;
      if (!trivial) out.push_back(c);
    }
  }
  return true;
}

// Whether the bounds in `known` alone rule `c` out.
bool Impossible(const Condition& c, std::span<const Condition> known, const Symbols& symbols) {
  if (const auto trivial = base::Trivial(c)) return !*trivial;
  if (AtLeastZero(-c.p - 1, known, symbols)) return true;
  return c.kind == Condition::Kind::kEq0 && AtLeastZero(c.p - 1, known, symbols);
}

void AddUnlessImplied(const std::vector<Condition>& all, std::vector<Condition>& known,
                      std::vector<Condition>& out, const Symbols& symbols) {
  for (const Condition& c : all) {
    if (Implied(c, known, symbols)) continue;
    out.push_back(base::Normal(c));
    known.push_back(out.back());
  }
}

}  // namespace

bool Implied(const Condition& c, std::span<const Condition> known, const Symbols& symbols) {
  const Condition normal = base::Normal(c);
  if (const auto trivial = base::Trivial(normal)) return *trivial;
  for (const Condition& k : known) {
    if (base::Normal(k) == normal) return true;
  }
  if (normal.kind == Condition::Kind::kEq0) return false;
  if (AtLeastZero(normal.p, known, symbols)) return true;
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (AtLeastZero(normal.p - known[i].p, known, symbols)) return true;
    for (std::size_t j = 0; j <= i; ++j) {
      if (AtLeastZero(normal.p - known[i].p - known[j].p, known, symbols)) return true;
    }
  }
  return false;
}

bool Replace(Rule& rule, Symbol s, const Poly& expr) {
  const Symbols::Substitution sizes{{s, expr}};
  graph::Graph next;
  next.symbols() = rule.graph.symbols();
  std::vector<NodeId> inputs;
  for (std::size_t k = 0; k < rule.graph.inputs().size(); ++k) {
    const graph::Node& n = rule.graph.node(rule.graph.input_node(int(k)));
    graph::TensorType type{n.type->dtype, {}};
    for (const Poly& p : n.shape()) {
      type.shape.push_back(next.symbols().Substitute(p, sizes));
      const Poly& extent = type.shape[type.shape.size() - 1];
      if (!extent.valid() || (extent.is_constant() && extent.constant() < 1)) return false;
    }
    const graph::Input& input = rule.graph.input(int(k));
    inputs.push_back(next.AddInput(input.name, input.kind, std::move(type)));
  }
  const auto roots = graph::CopyInto(rule.graph, Roots(rule), next, inputs, sizes);
  if (!roots.ok()) return false;
  const auto half = roots->begin() + std::ptrdiff_t(rule.source.size());
  rule.source.assign(roots->begin(), half);
  rule.target.assign(half, roots->end());
  for (Condition& c : rule.where) c.p = next.symbols().Substitute(c.p, sizes);
  rule.graph = std::move(next);
  return true;
}

bool CompleteAt(Rule& rule, const std::vector<std::int64_t>* base, Ways ways) {
  const auto holds = [&](const Condition& c) {
    return base == nullptr || base::Holds(c, rule.graph.symbols(), *base).value_or(false);
  };
  std::vector<Condition> needed;
  for (;;) {
    needed = rule.where;
    for (const Condition& c : rule.graph.Requirements(Roots(rule))) needed.push_back(c);
    if (!ShapeEqualities(rule, needed)) return false;
    std::optional<Solution> solution;
    for (const Condition& c : needed) {
      if (!holds(c)) return false;
      if (Impossible(c, needed, rule.graph.symbols())) return false;
      if (c.kind == Condition::Kind::kEq0 && !base::Trivial(c) && !solution) {
        solution = Solve(c.p, rule.graph.symbols());
      }
    }
    if (!solution) break;
    if (!holds(base::Eq(Poly::Var(solution->symbol), solution->expr))) return false;
    if (!Replace(rule, solution->symbol, solution->expr)) return false;
  }
  const auto shared = std::make_shared<const Rule>(rule);
  const bool forward = CompiledRule::Compile(shared, Direction::kForward).has_value();
  const bool backward =
      ways == Ways::kEither && CompiledRule::Compile(shared, Direction::kBackward).has_value();
  if (!forward && !backward) return false;
  if (!forward) std::swap(rule.source, rule.target);
  rule.both = forward && backward;

  const std::vector<Condition> of_source = rule.graph.Requirements(rule.source);
  const std::vector<Condition> of_target = rule.graph.Requirements(rule.target);
  std::vector<Condition> shapes;
  CHECK(ShapeEqualities(rule, shapes));
  std::vector<Condition> where, known = of_source;
  AddUnlessImplied(rule.where, known, where, rule.graph.symbols());
  AddUnlessImplied(of_target, known, where, rule.graph.symbols());
  AddUnlessImplied(shapes, known, where, rule.graph.symbols());
  if (rule.both) {
    known = of_target;
    known.insert(known.end(), where.begin(), where.end());
    AddUnlessImplied(of_source, known, where, rule.graph.symbols());
  }
  rule.where = std::move(where);
  return true;
}

bool Complete(Rule& rule) { return CompleteAt(rule, nullptr); }

}  // namespace tenon::rules
