// Cases by the conditions of the goal, each closed by a combination of facts found by linear
// programming (Farkas: there is one exactly if the facts have no solution in rationals). To the
// facts of the ledger come, on demand, what floor divisions mean and products of two facts, as far
// as these speak of products of symbols that occur; only those that a combination uses are written
// down. Where integers are what is missing, the case is split at a coordinate of a rational
// solution that is no whole number, or that no product of its parts.
#include "verifier/certify/search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/base/bytes.h"
#include "verifier/certify/combine.h"
#include "verifier/nf/quotients.h"

namespace tenon::certify {
namespace {

using base::Condition;
using base::Monomial;
using base::Poly;
using base::Symbol;
using cert::Goal;
using cert::Ledger;
using cert::Step;

constexpr std::size_t kDerivedMax = 300;
constexpr int kSignsMax = 3;

int Degree(const Monomial& m) {
  int d = 0;
  while (d < base::kDegreeMax && m[static_cast<std::size_t>(d)] != 0) ++d;
  return d;
}

// Facts that are not in the ledger, and how they get there.
struct Derived {
  Step step = Step::kProduct;
  std::size_t a = 0, b = 0;  // kProduct: facts; kScale: fact a.
  Symbol symbol = 0;         // kDivision
  Poly by;                   // kScale
  std::vector<Poly> facts;   // What it adds: one or two.
  std::size_t first = 0;     // The number of the first of them, among all.
};

class Search {
 public:
  Search(const cert::Question& q, Ledger& ledger, const SearchLimits& limits, std::string& out)
      : q_(q), ledger_(ledger), limits_(limits), out_(out) {}

  bool Tree(int depth) {
    if (++nodes_ > limits_.nodes || depth > cert::kDepthMax - limits_.depth - 8) return false;
    if (Reached()) return true;
    const bool reals = ledger_.numbers() == Ledger::Numbers::kReals;
    if (reals) return Reals(depth);
    if (Close(nullptr)) return true;
    if (const auto open = Open()) return SplitBy(*open, depth);
    if (Refuted(0)) return true;
    return q_.goal.kind == Goal::Kind::kBalanced && Cancel();
  }

 private:
  void Write(Step step) { base::PutByte(out_, static_cast<std::uint8_t>(step)); }

  bool Reached() {
    if (!ledger_.Reached(q_.goal)) return false;
    Write(Step::kReached);
    return true;
  }

  // A condition of the goal that is still open, as p >= 0 for a p to split by.
  std::optional<Poly> Open() const {
    const auto open = [&](std::span<const Condition> all) -> std::optional<Poly> {
      if (ledger_.Decided(all)) return std::nullopt;
      for (const Condition& c : all) {
        if (ledger_.Decided(c)) continue;
        return c.kind == Condition::Kind::kEq0 && ledger_.Has(c.p) ? -c.p : c.p;
      }
      return std::nullopt;
    };
    if (auto p = open(q_.goal.claims)) return p;
    for (const auto& pieces : {q_.goal.left, q_.goal.right}) {
      for (const nf::Piece& piece : pieces) {
        if (auto p = open(piece.when)) return p;
      }
    }
    return std::nullopt;
  }

  // f within the case where p >= 0.
  template <class F>
  bool Under(const Poly& p, F f) {
    const std::size_t before = ledger_.size();
    const bool ok = ledger_.Add(p) && f();
    ledger_.Shrink(before);
    return ok;
  }

  template <class F>
  bool Split(const Poly& p, F f) {
    const std::size_t mark = out_.size();
    Write(Step::kSplit);
    cert::PutPoly(out_, p);
    const bool one = limits_.fault == nf::Fault::kCertifyOneBranch;
    const bool ok = Under(p, f) && (one || Under(-p - 1, f));
    if (!ok) out_.resize(mark);
    return ok;
  }

  bool SplitBy(const Poly& p, int depth) {
    return Split(p, [&] { return Tree(depth + 1); });
  }

  // All conditions are decided, and the weights add up to something that is 0 without being the
  // polynomial 0.
  bool Cancel() {
    const auto sum = ledger_.Balance(q_.goal);
    if (!sum || !sum->valid()) return false;
    const std::size_t mark = out_.size(), before = ledger_.size();
    // sum >= 1 is refuted, so -sum >= 0; then the other way round.
    for (const Poly& p : {*sum - 1, -*sum - 1}) {
      Write(Step::kSplit);
      cert::PutPoly(out_, p);
      const bool ok = Under(p, [&] { return Refuted(0); }) && ledger_.Add(-p - 1);
      if (!ok) {
        out_.resize(mark);
        ledger_.Shrink(before);
        return false;
      }
    }
    const bool ok = Reached();
    if (!ok) out_.resize(mark);
    ledger_.Shrink(before);
    return ok;
  }

  bool Refuted(int depth) {
    if (++nodes_ > limits_.nodes) return false;
    std::vector<Coordinate> point;
    if (Close(&point)) return true;
    if (depth >= limits_.depth) return false;
    const auto split = Branch(point);
    return split && Split(*split, [&] { return Refuted(depth + 1); });
  }

  // A bound of a quotient that a bound of its numerator leads to, and that no fact decides.
  std::optional<Poly> QuotientBound() const {
    for (const Symbol s : Divisions()) {
      for (std::size_t k = 0; k < ledger_.size(); ++k) {
        for (const Poly& p : nf::QuotientBounds(q_.symbols, s, ledger_.fact(k))) {
          if (p.valid() && !ledger_.Has(p) && !ledger_.Has(-p - 1)) return p;
        }
      }
    }
    // A numerator that another quotient bounds: by a multiple of the denominator that occurs.
    for (const Symbol s : Divisions()) {
      const Poly& d = q_.symbols.denominator(s);
      if (d.is_constant() || d.terms().size() != 1) continue;
      for (std::size_t k = 0; k < ledger_.size(); ++k) {
        for (const Poly::Term& t : ledger_.fact(k).terms()) {
          const auto multiple =
              Degree(t.monomial) == 2 ? Quotient(t.monomial, d.terms()[0].monomial) : std::nullopt;
          if (!multiple || *multiple == Poly::Var(s)) continue;
          const Poly p = *multiple - 1 - Poly::Var(s);
          if (!ledger_.Has(p) && !ledger_.Has(-p - 1)) return p;
        }
      }
    }
    // Its sign.
    for (const Symbol s : Divisions()) {
      const Poly q = Poly::Var(s);
      if (q_.symbols.denominator(s).is_constant()) continue;
      if (!ledger_.Has(q) && !ledger_.Has(-q - 1)) return q;
    }
    return std::nullopt;
  }

  // Where to split so that `point` is in neither half.
  std::optional<Poly> Branch(const std::vector<Coordinate>& point) const {
    if (auto p = QuotientBound()) return p;
    std::map<Monomial, std::int64_t> values;
    for (const Coordinate& c : point) {
      if (c.monomial[1] == 0 && !c.whole) return Poly::Var(c.monomial[0]) - c.floor - 1;
      values[c.monomial] = c.floor;
    }
    for (const Coordinate& c : point) {
      if (c.monomial[1] == 0) continue;
      __extension__ __int128 product = 1;
      for (const Symbol s : c.monomial) {
        if (s == 0) break;
        const auto known = values.find(Monomial{s});
        product *= known == values.end() ? 0 : known->second;
        if (product > (std::int64_t{1} << 40) || product < -(std::int64_t{1} << 40)) break;
      }
      if (c.whole && product == c.floor) continue;
      for (const Symbol s : c.monomial) {
        if (s == 0) break;
        const auto known = values.find(Monomial{s});
        const std::int64_t v = known == values.end() ? 0 : known->second;
        // Below, at, above: products with an equation are exact.
        for (const Poly& p : {Poly::Var(s) - v, Poly(v) - Poly::Var(s)}) {
          if (!ledger_.Has(p) && !ledger_.Has(-p - 1)) return p;
        }
      }
    }
    // Denominators and signs that nothing says.
    for (const Symbol s : Divisions()) {
      const Poly p = q_.symbols.denominator(s) - 1;
      if (!ledger_.Has(p) && !ledger_.Has(-p - 1)) return p;
    }
    return std::nullopt;
  }

  std::set<Symbol> Divisions() const {
    std::vector<Symbol> mentioned;
    for (std::size_t k = 0; k < ledger_.size(); ++k) {
      ledger_.fact(k).CollectSymbols(mentioned, &q_.symbols);
    }
    std::set<Symbol> out;
    for (const Symbol s : mentioned) {
      if (q_.symbols.kind(s) == base::SymbolKind::kDiv) out.insert(s);
    }
    return out;
  }

  // Ends the case by a combination, if there is one. `point`: a solution otherwise.
  bool Close(std::vector<Coordinate>* point) { return Conclude(Poly(-1), Step::kAbsurd, point); }

  bool Conclude(const Poly& target, Step step, std::vector<Coordinate>* point) {
    all_.clear();
    derived_.clear();
    for (std::size_t k = 0; k < ledger_.size(); ++k) all_.push_back(ledger_.fact(k));
    if (ledger_.numbers() == Ledger::Numbers::kIntegers) DeriveDivisions();
    Combined found = Combine(all_, target);
    if (!found.multipliers && DeriveProducts(target, false)) found = Combine(all_, target);
    if (!found.multipliers && ledger_.numbers() == Ledger::Numbers::kReals &&
        DeriveProducts(target, true)) {
      found = Combine(all_, target);
    }
    if (!found.multipliers && point != nullptr && DeriveCuts()) found = Combine(all_, target);
    if (!found.multipliers) {
      if (point != nullptr) *point = std::move(found.point);
      return false;
    }
    Emit(*found.multipliers, step);
    return true;
  }

  void Keep(Derived d) {
    d.first = all_.size();
    for (Poly& p : d.facts) {
      // As the ledger will have it.
      const std::size_t before = ledger_.size();
      if (ledger_.Add(p)) p = ledger_.fact(before);
      ledger_.Shrink(before);
      all_.push_back(p);
    }
    derived_.push_back(std::move(d));
  }

  void DeriveDivisions() {
    for (const Symbol s : Divisions()) {
      const auto facts = cert::DivisionOf(q_.symbols, s, ledger_);
      if (!facts || (ledger_.Has(facts->rest) && ledger_.Has(facts->below))) continue;
      Derived d;
      d.step = Step::kDivision;
      d.symbol = s;
      d.facts = {facts->rest, facts->below};
      Keep(std::move(d));
    }
  }

  // Sums of two facts that say more after division and rounding than the facts do: a parity.
  bool DeriveCuts() {
    const std::size_t end = all_.size();
    for (std::size_t b = 1; b < end; ++b) {
      for (std::size_t a = 1; a < b && all_.size() < end + kDerivedMax; ++a) {
        const Poly sum = all_[a] + all_[b];
        if (!sum.valid() || sum.is_constant()) continue;
        std::int64_t divisor = 0;
        for (const Poly::Term& t : sum.terms()) {
          if (t.monomial[0] != 0) divisor = std::gcd(divisor, t.coefficient);
        }
        if (divisor < 2 || sum.constant_part() % divisor == 0) continue;
        Derived d;
        d.step = Step::kCombine;
        d.a = a;
        d.b = b;
        d.facts = {sum};
        Keep(std::move(d));
      }
    }
    return all_.size() > end;
  }

  // Products of symbols that occur, and what is left of them without one factor.
  std::set<Monomial> Products(const Poly& target) const {
    std::set<Monomial> out;
    const auto add = [&](const Poly& p) {
      for (const Poly::Term& t : p.terms()) {
        if (Degree(t.monomial) >= 2) out.insert(t.monomial);
      }
    };
    for (const Poly& p : all_) add(p);
    add(target);
    for (std::set<Monomial> open = out; !open.empty();) {
      std::set<Monomial> next;
      for (const Monomial& m : open) {
        const int degree = Degree(m);
        for (int skip = 0; skip < degree && degree > 2; ++skip) {
          Monomial less{};
          std::size_t n = 0;
          for (int k = 0; k < degree; ++k) {
            if (k != skip) less[n++] = m[static_cast<std::size_t>(k)];
          }
          if (out.insert(less).second) next.insert(less);
        }
      }
      open = std::move(next);
    }
    return out;
  }

  // `wide`: also products that do not occur, up to the degree of those that do.
  bool DeriveProducts(const Poly& target, bool wide) {
    const std::set<Monomial> products = Products(target);
    if (products.empty()) return false;
    int degree = 0;
    for (const Monomial& m : products) degree = std::max(degree, Degree(m));
    std::set<Poly, base::PolyBefore> known(all_.begin(), all_.end());
    const auto relevant = [&](const Poly& p) {
      bool any = false;
      for (const Poly::Term& t : p.terms()) {
        if (Degree(t.monomial) < 2) continue;
        if (wide ? Degree(t.monomial) > degree : !products.contains(t.monomial)) return false;
        any = true;
      }
      return any;
    };
    const std::size_t limit = all_.size() + kDerivedMax;
    std::size_t from = 1;  // Fact 0 is the constant.
    for (int round = 0; round < 2; ++round) {
      const std::size_t end = all_.size();
      for (std::size_t b = from; b < end; ++b) {
        for (std::size_t a = 1; a <= b && all_.size() < limit; ++a) {
          if (all_[a].is_constant() || all_[b].is_constant()) continue;
          const Poly p = all_[a] * all_[b];
          if (!p.valid() || !relevant(p) || !known.insert(p).second) continue;
          Derived d;
          d.a = a;
          d.b = b;
          d.facts = {p};
          Keep(std::move(d));
        }
      }
      from = end;
    }
    // An equation turns one product into another, which the next one may continue.
    std::set<Monomial> reached = products;
    for (int round = 0; round < 3; ++round) {
      const std::size_t end = all_.size();
      DeriveScaled(reached, known, limit);
      for (std::size_t k = end; k < all_.size(); ++k) {
        for (const Poly::Term& t : all_[k].terms()) {
          if (Degree(t.monomial) >= 2) reached.insert(t.monomial);
        }
      }
    }
    return true;
  }

  // Equations times what turns one of their products of symbols into one that occurs.
  void DeriveScaled(const std::set<Monomial>& products, std::set<Poly, base::PolyBefore>& known,
                    std::size_t limit) {
    for (std::size_t a = 1; a < ledger_.size(); ++a) {
      const Poly zero = all_[a];
      if (zero.is_constant() || !ledger_.Has(-zero)) continue;
      std::set<Poly, base::PolyBefore> factors;
      for (const Monomial& m : products) {
        for (const Poly::Term& t : zero.terms()) {
          if (auto rest = Quotient(m, t.monomial)) factors.insert(*rest);
        }
      }
      for (const Poly& by : factors) {
        const Poly p = zero * by;
        if (by.is_constant() || !p.valid() || all_.size() >= limit) continue;
        if (!known.insert(p).second) continue;
        Derived d;
        d.step = Step::kScale;
        d.a = a;
        d.by = by;
        d.facts = {p, -p};
        Keep(std::move(d));
      }
    }
  }

  static std::optional<Poly> Quotient(const Monomial& m, const Monomial& by) {
    if (by[0] == 0) return std::nullopt;
    std::vector<Symbol> rest(m.begin(), m.end());
    for (const Symbol s : by) {
      if (s == 0) break;
      const auto at = std::find(rest.begin(), rest.end(), s);
      if (at == rest.end()) return std::nullopt;
      rest.erase(at);
    }
    Poly out = 1;
    for (const Symbol s : rest) {
      if (s != 0) out = out * Poly::Var(s);
    }
    return out;
  }

  void WriteCombination(std::vector<std::pair<std::size_t, std::int64_t>> factors) {
    std::sort(factors.begin(), factors.end());
    const bool other = limits_.fault == nf::Fault::kCertifyOtherMultiplier;
    if (other && !factors.empty()) ++factors[0].second;
    base::PutVarint(out_, factors.size());
    std::size_t expected = 0;
    for (const auto& [fact, factor] : factors) {
      base::PutVarint(out_, fact - expected);
      base::PutVarint(out_, static_cast<std::uint64_t>(factor));
      expected = fact + 1;
    }
  }

  // Writes the derived facts that are used, and the step with its combination. With kCombine, the
  // facts are added to the ledger: the caller shrinks it.
  void Emit(const std::vector<std::pair<std::size_t, std::int64_t>>& multipliers, Step step) {
    const std::size_t given = derived_.empty() ? all_.size() : derived_.front().first;
    std::vector<bool> used(derived_.size(), false);
    const auto owner = [&](std::size_t fact) {
      std::size_t k = 0;
      while (k + 1 < derived_.size() && derived_[k + 1].first <= fact) ++k;
      return k;
    };
    const auto use = [&](std::size_t fact) {
      if (fact >= given) used[owner(fact)] = true;
    };
    for (const auto& [fact, factor] : multipliers) use(fact);
    for (std::size_t k = derived_.size(); k-- > 0;) {
      const bool two = derived_[k].step == Step::kProduct || derived_[k].step == Step::kCombine;
      if (!used[k] || !two) continue;
      use(derived_[k].a);
      use(derived_[k].b);
    }
    std::vector<std::size_t> place(all_.size());
    std::size_t next = given;
    for (std::size_t k = 0; k < given; ++k) place[k] = k;
    for (std::size_t k = 0; k < derived_.size(); ++k) {
      const Derived& d = derived_[k];
      if (!used[k]) continue;
      Write(d.step);
      switch (d.step) {
        case Step::kDivision:
          base::PutVarint(out_, d.symbol);
          break;
        case Step::kScale:
          base::PutVarint(out_, place[d.a]);
          cert::PutPoly(out_, d.by);
          break;
        case Step::kProduct:
          base::PutVarint(out_, place[d.a]);
          base::PutVarint(out_, place[d.b]);
          break;
        case Step::kCombine:
          WriteCombination({{place[d.a], 1}, {place[d.b], 1}});
          break;
        case Step::kAbsurd:
        case Step::kReached:
        case Step::kSplit:
        case Step::kCase:
          break;  // Not derived.
      }
      for (std::size_t n = 0; n < d.facts.size(); ++n) place[d.first + n] = next++;
      if (step == Step::kCombine) {
        for (const Poly& p : d.facts) ledger_.Add(p);
      }
    }
    std::vector<std::pair<std::size_t, std::int64_t>> placed;
    for (const auto& [fact, factor] : multipliers) placed.emplace_back(place[fact], factor);
    Write(step);
    WriteCombination(std::move(placed));
    Poly sum;
    if (step == Step::kCombine) {
      for (const auto& [fact, factor] : multipliers) sum += Poly(factor) * all_[fact];
      ledger_.Add(sum);
    }
  }

  // Over the reals: the sign of a factor whose sign no fact tells.
  bool SplitSign(int depth) {
    if (signs_ >= kSignsMax) return false;
    std::set<Symbol> factors;
    for (std::size_t k = 0; k < ledger_.size(); ++k) {
      for (const Poly::Term& t : ledger_.fact(k).terms()) {
        if (Degree(t.monomial) < 2) continue;
        for (const Symbol s : t.monomial) {
          const bool open = s != 0 && !ledger_.Has(Poly::Var(s)) && !ledger_.Has(-Poly::Var(s));
          if (open) factors.insert(s);
        }
      }
    }
    if (factors.empty()) return false;
    const Poly p = Poly::Var(*factors.begin());
    const std::size_t mark = out_.size();
    Write(Step::kSplit);
    cert::PutPoly(out_, p);
    ++signs_;
    const auto rest = [&] { return Tree(depth + 1); };
    const bool ok = Under(p, rest) && Under(-p, rest);
    --signs_;
    if (!ok) out_.resize(mark);
    return ok;
  }

  // Over the reals: show that the goal is at least 0 and at most 0, or take a maximum apart.
  bool Reals(int depth) {
    const std::size_t mark = out_.size(), before = ledger_.size();
    if (Conclude(Poly(-1), Step::kAbsurd, nullptr)) return true;
    if ((ledger_.Has(q_.goal.zero) || Conclude(q_.goal.zero, Step::kCombine, nullptr)) &&
        (ledger_.Has(-q_.goal.zero) || Conclude(-q_.goal.zero, Step::kCombine, nullptr)) &&
        Reached()) {
      ledger_.Shrink(before);
      return true;
    }
    out_.resize(mark);
    ledger_.Shrink(before);
    if (taken_ >= q_.cases.size()) return SplitSign(depth);
    const std::size_t k = taken_++;
    Write(Step::kCase);
    base::PutVarint(out_, k);
    bool ok = !q_.cases[k].empty();
    for (const Poly& p : q_.cases[k]) {
      ok = ok && Under(p, [&] { return Tree(depth + 1); });
    }
    --taken_;
    if (!ok) out_.resize(mark);
    return ok;
  }

  const cert::Question& q_;
  Ledger& ledger_;
  const SearchLimits limits_;
  std::string& out_;
  int nodes_ = 0;
  int signs_ = 0;          // Factors whose sign was assumed.
  std::size_t taken_ = 0;  // Maxima that were taken apart.
  std::vector<Poly> all_;  // The ledger's facts, and the derived ones.
  std::vector<Derived> derived_;
};

}  // namespace

bool FindArgument(const cert::Question& question, cert::Ledger& ledger, const SearchLimits& limits,
                  std::string& out) {
  const std::size_t mark = out.size(), before = ledger.size();
  const bool found = Search(question, ledger, limits, out).Tree(0);
  ledger.Shrink(before);
  if (!found) out.resize(mark);
  return found;
}

}  // namespace tenon::certify
