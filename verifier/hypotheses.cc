#include "verifier/hypotheses.h"

#include <algorithm>

namespace tenon::verifier {

using base::Condition;
using base::Poly;
using base::Symbol;
using base::SymbolKind;

std::vector<Condition> ConditionsOf(const rules::Rule& rule,
                                    std::span<const graph::NodeId> outputs) {
  std::vector<Condition> out;
  for (const Condition& c : rule.where) out.push_back(base::Normal(c));
  for (const Condition& c : rule.graph.Requirements(outputs)) {
    if (std::find(out.begin(), out.end(), c) == out.end()) out.push_back(c);
  }
  return out;
}

namespace {

// A symbol that the equation determines by a coefficient of +-1: the one added last, so that names
// seen first stay.
std::optional<std::pair<Symbol, Poly>> Solution(const Condition& c, const base::Symbols& symbols) {
  if (c.kind != Condition::Kind::kEq0 || !c.p.valid()) return std::nullopt;
  std::vector<Symbol> mentioned;
  c.p.CollectSymbols(mentioned);
  std::sort(mentioned.rbegin(), mentioned.rend());
  for (Symbol s : mentioned) {
    if (symbols.kind(s) != SymbolKind::kDim && symbols.kind(s) != SymbolKind::kAttr) continue;
    const auto k = c.p.LinearCoefficient(s, symbols);
    if (k == 1) return std::pair(s, Poly::Var(s) - c.p);
    if (k == -1) return std::pair(s, Poly::Var(s) + c.p);
  }
  return std::nullopt;
}

}  // namespace

Solved SolveEquations(base::Symbols& symbols, std::vector<Condition> conditions) {
  Solved out;
  for (std::size_t k = 0; k < conditions.size();) {
    const auto solution = Solution(conditions[k], symbols);
    if (!solution) {
      ++k;
      continue;
    }
    const auto& [symbol, value] = *solution;
    const base::Symbols::Substitution by{{symbol, value}};
    conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(k));
    // A dim stays at least 1, whatever it is called.
    if (symbols.kind(symbol) == SymbolKind::kDim) conditions.push_back(base::Ge(value, Poly(1)));
    for (Condition& c : conditions) c = base::Normal({c.kind, symbols.Substitute(c.p, by)});
    for (auto& [s, p] : out.eliminated) p = symbols.Substitute(p, by);
    out.eliminated[symbol] = value;
    k = 0;
  }
  for (const Condition& c : conditions) {
    const auto decided = base::Trivial(c);
    out.overflow = out.overflow || !c.p.valid();
    out.contradiction = out.contradiction || decided == false;
    if (!decided && std::find(out.rest.begin(), out.rest.end(), c) == out.rest.end()) {
      out.rest.push_back(c);
    }
  }
  for (const auto& [s, p] : out.eliminated) out.overflow = out.overflow || !p.valid();
  return out;
}

}  // namespace tenon::verifier
