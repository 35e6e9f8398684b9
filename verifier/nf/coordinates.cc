// Elimination of bound variables.
//
// The equations y = index bind coordinates to what is read. A binder is removed, in this order of
// preference, by
//   1. an equation in which its coefficient is +-1: it is what the equation says;
//   2. an equation with another known sign of its coefficient c: it is the floor of a quotient, and
//   a
//      guard says that c divides;
//   3. counting, when no equation mentions it: the product gets the length of its range, and where
//      two bounds compete the term is split by which of them is tighter;
//   4. unrolling, when its range is constant and short; before counting, where that would divide.
// Each step removes a binder, or splits by the order of two bounds and thereby removes one of them.
#include "verifier/nf/coordinates.h"

#include <algorithm>

#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

using Kind = Condition::Kind;

struct State {
  Counted counted;
  std::vector<Symbol> binders;
  Guards guards;
};

class Eliminator {
 public:
  Eliminator(Session& session, const Guards& given, std::vector<Counted>& out)
      : s_(session), given_(given), out_(out) {}

  void Run(State state) {
    s_.Step();
    while (!state.binders.empty()) {
      if (Solve(state, /*by_division=*/false) || Solve(state, /*by_division=*/true)) {
        if (impossible_) {
          impossible_ = false;
          return;
        }
        continue;
      }
      switch (Count(state)) {
        case Counting::kDone:
          continue;
        case Counting::kSplit:
          return;
        case Counting::kStuck:
          Unroll(state);
          return;
      }
    }
    Guards when;
    for (const Condition& c : state.guards) {
      if (s_.fault == Fault::kDropIndexEquations && c.kind == Kind::kEq0) continue;
      if (!AddGuard(when, c)) return;
    }
    state.counted.when = std::move(when);
    if (s_.fault == Fault::kIgnoreCount) state.counted.count = 1;
    out_.push_back(std::move(state.counted));
  }

 private:
  enum class Counting { kDone, kSplit, kStuck };
  struct Range {
    std::vector<Poly> lower, upper;
    Guards rest;
    bool divided = false;  // A bound is a floor of a quotient.
  };
  // Values that are listed rather than counted where counting would divide: two such counts are
  // multiplied, and a product of floors is beyond linear arithmetic.
  static constexpr int kShort = 8;

  // state with `binder` replaced by `value`, without guard `used`, and with `extra`.
  void Replace(State& state, Symbol binder, const Poly& value, std::size_t used,
               std::optional<Condition> extra) {
    const base::Symbols::Substitution by{{binder, value}};
    std::erase(state.binders, binder);
    Guards guards;
    for (std::size_t k = 0; k < state.guards.size(); ++k) {
      if (k == used) continue;
      const Condition& c = state.guards[k];
      if (!AddGuard(guards, {c.kind, s_.Substitute(c.p, by)})) impossible_ = true;
    }
    if (extra && !AddGuard(guards, *extra)) impossible_ = true;
    state.guards = std::move(guards);
    state.counted.count = s_.Substitute(state.counted.count, by);
  }

  // The sign of a coefficient where it is known not to be 0 (+1, -1), else 0.
  int SignOf(const Poly& c, const Guards& more) {
    if (c.is_constant()) return (c.constant() > 0) - (c.constant() < 0);
    const Guards all = Joined(given_, more);
    if (s_.facts.Implied(all, base::Ge(c, Poly(1)))) return 1;
    if (s_.facts.Implied(all, base::Ge(-c, Poly(1)))) return -1;
    return 0;
  }

  bool Solve(State& state, bool by_division) {
    for (std::size_t g = 0; g < state.guards.size(); ++g) {
      if (state.guards[g].kind != Kind::kEq0) continue;
      const Poly p = state.guards[g].p;
      for (Symbol b : state.binders) {
        const auto form = LinearIn(p, b, s_.symbols);
        if (!form || form->coefficient.is_constant(0)) continue;
        const Poly& c = form->coefficient;
        const bool unit = c.is_constant(1) || c.is_constant(-1);
        if (unit == by_division) continue;
        if (unit) {
          Replace(state, b, c.is_constant(1) ? -form->rest : form->rest, g, std::nullopt);
          return true;
        }
        const int sign = SignOf(c, Without(state.guards, b));
        if (sign == 0) continue;
        const Poly divisor = sign > 0 ? c : -c;
        const Poly number = sign > 0 ? -form->rest : form->rest;
        const Poly value = Valid(s_.symbols.FloorDiv(number, divisor));
        Replace(state, b, value, g, base::Eq(Valid(divisor * value), number));
        return true;
      }
    }
    return false;
  }

  Guards Without(const Guards& guards, Symbol b) {
    Guards out;
    const Symbol only[] = {b};
    for (const Condition& c : guards) {
      if (!s_.Mentions(c.p, only)) out.push_back(c);
    }
    return out;
  }

  // The bounds of `b`; nothing when a guard mentions it in another way.
  std::optional<Range> RangeOf(const State& state, Symbol b) {
    Range range;
    for (const Condition& c : state.guards) {
      const auto form = LinearIn(c.p, b, s_.symbols);
      if (!form) return std::nullopt;
      if (form->coefficient.is_constant(0)) {
        range.rest.push_back(c);
        continue;
      }
      if (c.kind == Kind::kEq0) return std::nullopt;
      const int sign = SignOf(form->coefficient, {});
      if (sign == 0) return std::nullopt;
      const Poly divisor = sign > 0 ? form->coefficient : -form->coefficient;
      const Poly bound = Valid(s_.symbols.FloorDiv(form->rest, divisor));
      range.divided = range.divided || !divisor.is_constant(1);
      if (sign > 0) {
        range.lower.push_back(-bound);  // c b + r >= 0: b >= ceil(-r / c) = -floor(r / c).
      } else {
        range.upper.push_back(bound);
      }
    }
    return range;
  }

  Counting Count(State& state) {
    for (Symbol b : state.binders) {
      const Symbol only[] = {b};
      if (s_.Mentions(state.counted.count, only)) continue;
      auto range = RangeOf(state, b);
      if (!range || range->lower.empty() || range->upper.empty()) continue;
      if (range->divided && UnrollOne(state, b, kShort)) return Counting::kSplit;
      if (!Tightest(state, range->lower, range->rest, 1)) return Counting::kSplit;
      if (!Tightest(state, range->upper, range->rest, -1)) return Counting::kSplit;
      const Poly length = range->upper[0] - range->lower[0];
      state.counted.count = Valid(state.counted.count * (length + 1));
      std::erase(state.binders, b);
      state.guards = range->rest;
      if (!AddGuard(state.guards, base::Ge(length, Poly(0)))) {
        impossible_ = true;
        state.binders.clear();
      }
      if (impossible_) {
        impossible_ = false;
        return Counting::kSplit;  // Nothing is left of it.
      }
      return Counting::kDone;
    }
    return Counting::kStuck;
  }

  // Leaves the greatest of `bounds` (the least for sign -1). False when two are not ordered: both
  // orders were handed on.
  bool Tightest(const State& state, std::vector<Poly>& bounds, const Guards& rest, int sign) {
    const Guards all = Joined(given_, rest);
    while (bounds.size() > 1) {
      const Poly& a = bounds[0];
      const Poly& b = bounds[1];
      const Condition first_wins = sign > 0 ? base::Ge(a, b) : base::Ge(b, a);
      if (s_.facts.Implied(all, first_wins)) {
        bounds.erase(bounds.begin() + 1);
      } else if (s_.facts.Unsat(all, first_wins)) {
        bounds.erase(bounds.begin());
      } else {
        std::vector<Condition> cases = base::Negate(first_wins);
        cases.push_back(first_wins);
        for (const Condition& c : cases) {
          State half = state;
          if (AddGuard(half.guards, c)) Run(std::move(half));
        }
        return false;
      }
    }
    return true;
  }

  // Lists the values of `b` if its range is constant and has at most `most` of them.
  bool UnrollOne(const State& state, Symbol b, int most) {
    std::optional<std::int64_t> low, high;
    for (const Condition& c : state.guards) {
      const auto form = LinearIn(c.p, b, s_.symbols);
      if (c.kind != Kind::kGe0 || !form || !form->rest.is_constant()) continue;
      if (form->coefficient.is_constant(1)) {
        low = std::max(low.value_or(-form->rest.constant()), -form->rest.constant());
      } else if (form->coefficient.is_constant(-1)) {
        high = std::min(high.value_or(form->rest.constant()), form->rest.constant());
      }
    }
    if (!low || !high || *high - *low >= most) return false;
    for (std::int64_t v = *low; v <= *high; ++v) {
      State one = state;
      Replace(one, b, Poly(v), one.guards.size(), std::nullopt);
      if (!impossible_) Run(std::move(one));
      impossible_ = false;
    }
    return true;
  }

  void Unroll(const State& state) {
    for (Symbol b : state.binders) {
      if (UnrollOne(state, b, s_.limits.unroll)) return;
    }
    throw Unsupported("a sum whose bound variable no linear equation or bound determines");
  }

  Session& s_;
  const Guards& given_;
  std::vector<Counted>& out_;
  bool impossible_ = false;
};

}  // namespace

void Coordinates(Session& s, const Term& t, const Guards& given, std::span<const int> order,
                 bool with_atoms, std::vector<Counted>& out) {
  State state{{t.coefficient, t.count, t.size, {}}, t.binders, {}};
  if (with_atoms) {
    for (std::size_t j = 0; j < order.size(); ++j) {
      const Atom& a = t.atoms[static_cast<std::size_t>(order[j])];
      for (std::size_t q = 0; q < a.index.size(); ++q) {
        const Poly y = Poly::Var(s.Coord(static_cast<int>(j), static_cast<int>(q)));
        Poly index = a.index[q];
        if (s.fault == Fault::kIgnoreOffsets) index = index - Poly(index.constant_part());
        AddGuard(state.guards, base::Eq(y, index));
      }
    }
  }
  for (const Condition& c : t.guards) {
    if (!AddGuard(state.guards, c)) return;
  }
  Eliminator(s, given, out).Run(std::move(state));
}

}  // namespace tenon::nf
