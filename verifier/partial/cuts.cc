#include "verifier/partial/cuts.h"

#include <algorithm>
#include <map>

namespace tenon::partial {

using base::Condition;
using base::Poly;
using base::Symbol;
using nf::Guards;

namespace {

constexpr int kBindersMax = 6;  // Of one guard: two to the power of them are tried.

// The least and the greatest value of each bound variable whose range depends on sizes only.
using Ranges = std::map<Symbol, std::pair<Poly, Poly>>;

class Collector {
 public:
  Collector(nf::Session& session, Symbol index, std::vector<Poly>& out)
      : s_(session), index_(index), out_(out) {}

  void Walk(const nf::Nf& nf, const std::vector<Symbol>& binders, const Guards& guards) {
    for (const nf::Term& t : nf) {
      std::vector<Symbol> all = binders;
      all.insert(all.end(), t.binders.begin(), t.binders.end());
      const Guards holds = nf::Joined(guards, t.guards);
      Take(all, holds);
      for (const nf::Atom& a : t.atoms) {
        if (a.is_access()) continue;
        std::vector<Symbol> inner = all;
        inner.insert(inner.end(), a.binders.begin(), a.binders.end());
        const Guards within = nf::Joined(holds, a.guards);
        Take(inner, within);
        Walk(*a.body, inner, within);
      }
    }
  }

 private:
  Ranges RangesOf(const std::vector<Symbol>& binders, const Guards& guards) const {
    Ranges out;
    for (const Symbol b : binders) {
      const Poly* least = nullptr;
      const Poly* greatest = nullptr;
      std::vector<Poly> kept;
      kept.reserve(guards.size());
      for (const Condition& c : guards) {
        if (c.kind != Condition::Kind::kGe0) continue;
        const auto k = c.p.LinearCoefficient(b, s_.symbols);
        if (k != 1 && k != -1) continue;
        const Poly rest = *k == 1 ? c.p - Poly::Var(b) : c.p + Poly::Var(b);
        if (!s_.IsGlobal(rest)) continue;
        kept.push_back(*k == 1 ? -rest : rest);
        if (*k == 1 && least == nullptr) least = &kept.back();
        if (*k == -1 && greatest == nullptr) greatest = &kept.back();
      }
      if (least != nullptr && greatest != nullptr) out[b] = {*least, *greatest};
    }
    return out;
  }

  void Take(const std::vector<Symbol>& binders, const Guards& guards) {
    const Ranges ranges = RangesOf(binders, guards);
    for (const Condition& c : guards) {
      const auto k = c.p.LinearCoefficient(index_, s_.symbols);
      if (k != 1 && k != -1) continue;
      // index >= bound, index <= bound, or index = bound.
      const Poly bound = *k == 1 ? Poly::Var(index_) - c.p : Poly::Var(index_) + c.p;
      std::vector<Symbol> bound_by;
      std::vector<Symbol> mentioned;
      bound.CollectSymbols(mentioned, &s_.symbols);
      bool known = true;
      for (const Symbol m : mentioned) {
        if (ranges.contains(m)) {
          if (std::find(bound_by.begin(), bound_by.end(), m) == bound_by.end()) {
            bound_by.push_back(m);
          }
        } else {
          known = known && s_.symbols.kind(m) <= base::SymbolKind::kDiv;
        }
      }
      if (!known || static_cast<int>(bound_by.size()) > kBindersMax) continue;
      for (unsigned ends = 0; ends < 1u << bound_by.size(); ++ends) {
        base::Symbols::Substitution by;
        for (std::size_t b = 0; b < bound_by.size(); ++b) {
          const auto& [least, greatest] = ranges.at(bound_by[b]);
          by[bound_by[b]] = (ends >> b & 1) == 0 ? least : greatest;
        }
        const Poly e = s_.Substitute(bound, by);
        const bool equal = c.kind == Condition::Kind::kEq0;
        if (*k == 1 || equal) Add(e);
        if (*k == -1 || equal) Add(e + 1);
      }
    }
  }

  void Add(const Poly& e) {
    if (std::find(out_.begin(), out_.end(), e) == out_.end()) out_.push_back(e);
  }

  nf::Session& s_;
  const Symbol index_;
  std::vector<Poly>& out_;
};

}  // namespace

std::vector<Poly> CutsOf(nf::Session& session, const nf::Nf& nf, Symbol index) {
  std::vector<Poly> out;
  Collector(session, index, out).Walk(nf, {}, {});
  return out;
}

}  // namespace tenon::partial
