#include "verifier/nf/facts.h"

#include <algorithm>

namespace tenon::nf {
namespace {

using Kind = Condition::Kind;

// More than this many conditions from one elimination would cost more than they save.
constexpr std::size_t kCombinationsMax = 6;

bool Local(base::SymbolKind kind) {
  switch (kind) {
    case base::SymbolKind::kDim:
    case base::SymbolKind::kAttr:
    case base::SymbolKind::kDiv:
      return false;
    case base::SymbolKind::kIndex:
    case base::SymbolKind::kBinder:
    case base::SymbolKind::kCoord:
    case base::SymbolKind::kParam:
      return true;
  }
  return true;
}

bool Contains(const Guards& guards, const Condition& c) {
  return std::find(guards.begin(), guards.end(), c) != guards.end();
}

// +1 or -1: the coefficient of `s` in `p`; 0: not mentioned; nothing: anything else.
std::optional<int> UnitCoefficient(const Poly& p, Symbol s, const base::Symbols& symbols) {
  const auto c = p.LinearCoefficient(s, symbols);
  if (!c || *c > 1 || *c < -1) return std::nullopt;
  return static_cast<int>(*c);
}

}  // namespace

bool Facts::Obvious(const Condition& c) const {
  if (c.kind != Kind::kGe0) return false;
  __extension__ __int128 least = 0;
  for (const Poly::Term& t : c.p.terms()) {
    least += t.coefficient;
    if (t.monomial[0] == 0) continue;
    if (t.coefficient < 0) return false;
    for (Symbol s : t.monomial) {
      if (s != 0 && symbols_.kind(s) != base::SymbolKind::kDim) return false;
    }
  }
  return least >= 0;
}

bool Facts::Project(Guards& all, Symbol symbol) {
  std::vector<Condition> lower, upper, rest;
  std::optional<Condition> equation;
  for (const Condition& c : all) {
    const auto unit = UnitCoefficient(c.p, symbol, symbols_);
    if (!unit) return false;
    if (*unit == 0) {
      rest.push_back(c);
    } else if (c.kind == Kind::kEq0) {
      if (equation) return false;
      equation = c;
    } else {
      (*unit > 0 ? lower : upper).push_back(c);
    }
  }
  Guards out = rest;
  bool possible = true;
  if (equation) {
    // symbol = value: put it into the bounds.
    const bool positive = *UnitCoefficient(equation->p, symbol, symbols_) > 0;
    const Poly e = positive ? equation->p : -equation->p;  // symbol + r = 0.
    for (const Condition& c : lower) possible = AddGuard(out, {Kind::kGe0, c.p - e}) && possible;
    for (const Condition& c : upper) possible = AddGuard(out, {Kind::kGe0, c.p + e}) && possible;
  } else {
    if (lower.size() * upper.size() > kCombinationsMax) return false;
    for (const Condition& l : lower) {
      for (const Condition& u : upper) {
        possible = AddGuard(out, {Kind::kGe0, l.p + u.p}) && possible;
      }
    }
  }
  if (!possible) out.push_back({Kind::kGe0, Poly(-1)});
  all = std::move(out);
  return true;
}

bool Facts::Simplify(Guards& all) {
  Guards kept;
  for (const Condition& c : all) {
    if (!AddGuard(kept, c)) return false;
  }
  all = std::move(kept);
  bool changed = true;
  while (changed) {
    changed = false;
    std::vector<Symbol> mentioned;
    for (const Condition& c : all) c.p.CollectSymbols(mentioned, &symbols_);
    std::sort(mentioned.begin(), mentioned.end());
    for (Symbol s : mentioned) {
      if (!Local(symbols_.kind(s)) || !Project(all, s)) continue;
      for (const Condition& c : all) {
        if (base::Trivial(c) == false) return false;
      }
      changed = true;
    }
  }
  std::erase_if(all, [&](const Condition& c) { return Obvious(c); });
  std::sort(all.begin(), all.end(), base::Before);
  return true;
}

bool Facts::Unsat(const Guards& given) {
  if (fault_ == Fault::kEverythingUnsat) return true;
  Guards all = given;
  if (!Simplify(all)) return true;
  if (all.empty()) return false;
  std::size_t hash = all.size();
  for (const Condition& c : all) hash = hash * 31 + c.p.Hash() + static_cast<std::size_t>(c.kind);
  const auto [first, last] = cache_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second.question == all) return it->second.unsat;
  }
  const bool unsat = entail_.Unsat(all);
  cache_.emplace(hash, Entry{std::move(all), unsat});
  return unsat;
}

bool Facts::Unsat(const Guards& given, const Condition& c) {
  Guards all = given;
  all.push_back(c);
  return Unsat(all);
}

bool Facts::CannotFollow(const Guards& given, const Condition& c) const {
  if (c.kind != Kind::kGe0) return false;
  std::vector<Symbol> mentioned;
  c.p.CollectSymbols(mentioned);
  for (Symbol s : mentioned) {
    if (!Local(symbols_.kind(s))) continue;
    const auto own = c.p.LinearCoefficient(s, symbols_);
    if (!own || *own == 0) continue;
    // Pushing s against the sign of its coefficient breaks `c`; does nothing in `given` forbid it?
    const bool is_free = std::all_of(given.begin(), given.end(), [&](const Condition& g) {
      const auto other = g.p.LinearCoefficient(s, symbols_);
      if (!other) return false;
      return *other == 0 || (g.kind == Kind::kGe0 && (*other > 0) != (*own > 0));
    });
    if (is_free) return true;
  }
  return false;
}

bool Facts::Implied(const Guards& given, const Condition& c) {
  Valid(c.p);
  const Condition normal = base::Normal(c);
  if (const auto decided = base::Trivial(normal)) return *decided || Unsat(given);
  if (fault_ == Fault::kEverythingUnsat) return true;
  if (Obvious(normal) || Contains(given, normal)) return true;
  if (CannotFollow(given, normal)) return false;
  for (const Condition& n : base::Negate(normal)) {
    if (!Unsat(given, n)) return false;
  }
  return true;
}

bool Facts::ImpliedAll(const Guards& given, const Guards& claims) {
  if (fault_ == Fault::kEverythingUnsat) return true;
  Guards open;
  for (const Condition& c : claims) {
    Valid(c.p);
    const Condition normal = base::Normal(c);
    if (base::Trivial(normal) == true || Obvious(normal) || Contains(given, normal)) continue;
    open.push_back(normal);
  }
  if (open.empty()) return true;
  if (open.size() == 1) return Implied(given, open[0]);
  return entail_.Implies(given, open);
}

std::optional<bool> Facts::Decide(const Guards& given, const Condition& c) {
  if (Implied(given, c)) return true;
  if (Unsat(given, c)) return false;
  return std::nullopt;
}

Balance Facts::Balanced(const Guards& given, const std::vector<Piece>& pieces) {
  if (fault_ == Fault::kEverythingUnsat) return {Balance::Kind::kYes, {}};
  return entail_.Balanced(given, pieces);
}

Balance Facts::SameSets(const Guards& given, const std::vector<Piece>& left,
                        const std::vector<Piece>& right) {
  if (fault_ == Fault::kEverythingUnsat) return {Balance::Kind::kYes, {}};
  return entail_.SameSets(given, left, right);
}

bool Facts::RealZero(const RealProblem& problem) {
  if (fault_ == Fault::kEverythingUnsat) return true;
  return entail_.RealZero(problem);
}

}  // namespace tenon::nf
