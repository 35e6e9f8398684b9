#include "verifier/nf/session.h"

#include <fmt/core.h>

#include <algorithm>

#include "verifier/nf/unsupported.h"

namespace tenon::nf {

using base::SymbolKind;
using Substitution = base::Symbols::Substitution;

Session::Session(base::Symbols& all_symbols, Entail& entail, const Limits& the_limits,
                 Fault the_fault)
    : symbols(all_symbols),
      facts(all_symbols, entail, the_fault),
      limits(the_limits),
      fault(the_fault) {}

void Session::Step() {
  if (++steps_ > limits.steps) {
    throw Unsupported(fmt::format("more than {} terms to normalise", limits.steps));
  }
}

Symbol Session::Fresh(SymbolKind kind) {
  if (fault == Fault::kReuseBinders && kind == SymbolKind::kBinder && only_binder_ != 0) {
    return only_binder_;
  }
  const Symbol s = symbols.Add(kind == SymbolKind::kIndex ? "i" : "k", kind);
  if (s == 0) throw Unsupported("more than 65535 symbols");
  if (kind == SymbolKind::kBinder) only_binder_ = s;
  return s;
}

Symbol Session::Numbered(std::vector<Symbol>& table, int k, const char* name, SymbolKind kind) {
  while (static_cast<int>(table.size()) <= k) {
    const Symbol s = symbols.Add(name, kind);
    if (s == 0) throw Unsupported("more than 65535 symbols");
    table.push_back(s);
  }
  return table[static_cast<std::size_t>(k)];
}

Symbol Session::Coord(int factor, int axis) {
  while (static_cast<int>(coords_.size()) <= factor) coords_.emplace_back();
  return Numbered(coords_[static_cast<std::size_t>(factor)], axis, "y", SymbolKind::kCoord);
}

Symbol Session::Param(int k) { return Numbered(params_, k, "p", SymbolKind::kParam); }

Symbol Session::LocalBinder(int k) { return Numbered(locals_, k, "b", SymbolKind::kBinder); }

bool Session::IsGlobal(const Poly& p) const {
  std::vector<Symbol> all;
  p.CollectSymbols(all, &symbols);
  return std::all_of(all.begin(), all.end(),
                     [&](Symbol s) { return symbols.kind(s) <= SymbolKind::kDiv; });
}

bool Session::Mentions(const Poly& p, std::span<const Symbol> any) const {
  if (any.empty()) return false;
  std::vector<Symbol> all;
  p.CollectSymbols(all, &symbols);
  return std::any_of(all.begin(), all.end(),
                     [&](Symbol s) { return std::find(any.begin(), any.end(), s) != any.end(); });
}

Poly Session::Substitute(const Poly& p, const Substitution& by) {
  const Poly out = by.empty() ? p : symbols.Substitute(p, by);
  Valid(out);
  return out;
}

Atom Session::Substitute(const Atom& a, const Substitution& by) {
  Atom out = a;
  for (Poly& p : out.index) p = Substitute(p, by);
  if (a.kind == Atom::Kind::kMax) {
    out.guards.clear();
    bool possible = true;
    for (const Condition& c : a.guards) {
      possible = AddGuard(out.guards, {c.kind, Substitute(c.p, by)}) && possible;
    }
    // An empty family: said by a guard that never holds.
    if (!possible) out.guards = {{Condition::Kind::kGe0, Poly(-1)}};
  }
  if (a.body != nullptr) out.body = std::make_shared<const Nf>(Substitute(*a.body, by));
  return out;
}

std::optional<Term> Session::Substitute(const Term& t, const Substitution& by) {
  Term out;
  out.coefficient = t.coefficient;
  out.binders = t.binders;
  out.count = Substitute(t.count, by);
  out.size = Substitute(t.size, by);
  for (const Condition& c : t.guards) {
    if (!AddGuard(out.guards, {c.kind, Substitute(c.p, by)})) return std::nullopt;
  }
  for (const Atom& a : t.atoms) out.atoms.push_back(Substitute(a, by));
  return out;
}

Nf Session::Substitute(const Nf& nf, const Substitution& by) {
  Nf out;
  for (const Term& t : nf) {
    if (auto u = Substitute(t, by)) out.push_back(*std::move(u));
  }
  return out;
}

// `by` gives the new names of the binders around; those of the atom are added.
Atom Session::RenameInside(const Atom& a, const Substitution& by) {
  Atom out = a;
  Substitution inner = by;
  for (Symbol& b : out.binders) {
    const Symbol renamed = Fresh(SymbolKind::kBinder);
    inner[b] = Poly::Var(renamed);
    b = renamed;
  }
  for (Poly& p : out.index) p = Substitute(p, inner);
  for (Condition& c : out.guards) c = base::Normal({c.kind, Substitute(c.p, inner)});
  if (a.body != nullptr) {
    Nf body;
    for (const Term& t : *a.body) {
      if (auto u = Substitute(Renamed(t), inner)) body.push_back(*std::move(u));
    }
    out.body = std::make_shared<const Nf>(std::move(body));
  }
  return out;
}

Atom Session::Renamed(const Atom& a) { return RenameInside(a, {}); }

Term Session::Renamed(const Term& t) {
  Substitution by;
  Term out = t;
  for (Symbol& b : out.binders) {
    const Symbol renamed = Fresh(SymbolKind::kBinder);
    by[b] = Poly::Var(renamed);
    b = renamed;
  }
  out.count = Substitute(out.count, by);
  for (Condition& c : out.guards) c = base::Normal({c.kind, Substitute(c.p, by)});
  for (Atom& a : out.atoms) a = RenameInside(a, by);
  return out;
}

Nf Session::Product(const Nf& a, const Nf& b) {
  Nf out;
  for (const Term& x : a) {
    std::vector<Symbol> mine;
    CollectBinders(x, mine);
    for (const Term& raw : b) {
      Step();
      std::vector<Symbol> others;
      CollectBinders(raw, others);
      const bool clash =
          fault != Fault::kReuseBinders && std::any_of(others.begin(), others.end(), [&](Symbol s) {
            return std::find(mine.begin(), mine.end(), s) != mine.end();
          });
      const Term y = clash ? Renamed(raw) : raw;
      Term t = x;
      t.coefficient = t.coefficient * y.coefficient;
      t.count = Valid(t.count * y.count);
      t.size = Valid(t.size * y.size);
      t.binders.insert(t.binders.end(), y.binders.begin(), y.binders.end());
      bool possible = true;
      for (const Condition& c : y.guards) possible = AddGuard(t.guards, c) && possible;
      if (!possible) continue;
      t.atoms.insert(t.atoms.end(), y.atoms.begin(), y.atoms.end());
      out.push_back(std::move(t));
    }
  }
  return out;
}

std::string Session::HeadName(Head head) const {
  const HeadInfo& h = heads[static_cast<std::size_t>(head)];
  switch (h.kind) {
    case HeadInfo::Kind::kInput:
      return h.name;
    case HeadInfo::Kind::kReal:
      return fmt::format("{}", h.value);
    case HeadInfo::Kind::kRecipOf:
      return fmt::format("1/{}", HeadName(h.of));
    case HeadInfo::Kind::kMax:
      return fmt::format("max#{}", head);
    case HeadInfo::Kind::kSum:
      return fmt::format("sum#{}", head);
    case HeadInfo::Kind::kFunction:
      break;
  }
  const char* name = "?";
  switch (h.fn) {
    case ops::Fn::kRelu:
      name = "relu";
      break;
    case ops::Fn::kSigmoid:
      name = "sigmoid";
      break;
    case ops::Fn::kTanh:
      name = "tanh";
      break;
    case ops::Fn::kExp:
      name = "exp";
      break;
    case ops::Fn::kRecip:
      name = "recip";
      break;
    case ops::Fn::kSqrt:
      name = "sqrt";
      break;
    case ops::Fn::kErf:
      name = "erf";
      break;
  }
  return fmt::format("{}#{}", name, head);
}

}  // namespace tenon::nf
