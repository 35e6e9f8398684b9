// The whole of the checker's reasoning. An argument is a tree of steps (cert/ledger.h); each
// step adds a fact that follows from those before, or splits the case in two or more that cover it,
// or ends: because a combination of facts with non-negative multipliers is a negative constant, so
// that this case does not exist, or because the facts decide the goal.
#include "verifier/cert/argument.h"

#include <algorithm>

namespace tenon::cert {
namespace {

class Reader {
 public:
  Reader(const Question& question, Ledger& ledger, base::ByteReader& in)
      : q_(question), ledger_(ledger), in_(in) {}

  bool Tree(int depth) {
    if (depth > kDepthMax) return Refuse("an argument that is too deep");
    const std::size_t before = ledger_.size();
    const bool ok = Steps(depth);
    ledger_.Shrink(before);
    return ok;
  }

 private:
  bool Refuse(const char* why) {
    in_.Fail(why);
    return false;
  }

  bool Steps(int depth) {
    while (in_.ok()) {
      switch (in_.Byte()) {
        case std::uint8_t(Step::kAbsurd): {
          const Poly sum = Combination();
          if (!in_.ok()) return false;
          if (ledger_.has(nf::Fault::kCheckAbsurd)) return true;
          if (!sum.is_constant() || sum.constant() >= 0) return Refuse("no contradiction");
          return true;
        }
        case std::uint8_t(Step::kReached):
          if (!in_.ok()) return false;  // The bytes ended.
          return ledger_.Reached(q_.goal) || Refuse("the goal is not reached");
        case std::uint8_t(Step::kSplit): {
          const Poly p = ReadPoly(in_, Symbols());
          if (!in_.ok()) return false;
          const bool integers = ledger_.numbers() == Ledger::Numbers::kIntegers;
          if (ledger_.has(nf::Fault::kCheckFirstBranch)) return Under(p, depth);
          return Under(p, depth) && Under(integers ? -p - 1 : -p, depth);
        }
        case std::uint8_t(Step::kCombine):
          if (!Keep(Combination())) return false;
          break;
        case std::uint8_t(Step::kProduct): {
          const std::size_t a = Index(), b = Index();
          if (!in_.ok() || !Keep(Times(ledger_.fact(a), ledger_.fact(b)))) return false;
          break;
        }
        case std::uint8_t(Step::kScale): {
          const std::size_t a = Index();
          const Poly by = ReadPoly(in_, Symbols());
          if (!in_.ok()) return false;
          const Poly zero = ledger_.fact(a);
          if (!ledger_.Has(-zero) && !ledger_.has(nf::Fault::kCheckScaleInequality)) {
            return Refuse("no equation");
          }
          const Poly product = Times(zero, by);
          if (!Keep(product) || !Keep(-product)) return false;
          break;
        }
        case std::uint8_t(Step::kDivision): {
          const std::uint64_t s = in_.Varint();
          const bool integers = ledger_.numbers() == Ledger::Numbers::kIntegers;
          if (!integers || s == 0 || s >= q_.symbols.size()) return Refuse("no division");
          const auto facts = DivisionOf(q_.symbols, static_cast<Symbol>(s), ledger_);
          if (!facts) return Refuse("no division by what is known to be positive");
          if (!Keep(facts->rest) || !Keep(facts->below)) return false;
          break;
        }
        case std::uint8_t(Step::kCase): {
          const std::uint64_t k = in_.Varint();
          if (!in_.ok() || k >= q_.cases.size()) return Refuse("no such maximum");
          for (const Poly& p : q_.cases[k]) {
            if (!Under(p, depth)) return false;
            if (ledger_.has(nf::Fault::kCheckFirstCase)) return true;
          }
          return !q_.cases[k].empty() || Refuse("no such maximum");
        }
        default:
          return Refuse("an unknown step");
      }
    }
    return false;
  }

  // The rest of the argument where p >= 0 holds as well.
  bool Under(const Poly& p, int depth) {
    const std::size_t before = ledger_.size();
    const bool ok = Keep(p) && Tree(depth + 1);
    if (!ledger_.has(nf::Fault::kCheckLeak)) ledger_.Shrink(before);
    return ok;
  }

  std::size_t Symbols() const {
    return ledger_.numbers() == Ledger::Numbers::kIntegers ? q_.symbols.size() : 0x10000;
  }

  bool Keep(const Poly& p) {
    if (!in_.ok()) return false;
    if (ledger_.size() >= kFactsMax) return Refuse("too many facts");
    if (p.terms().size() > kTermsMax) return Refuse("a fact that is too long");
    return ledger_.Add(p) || Refuse("a number that leaves 64 bits");
  }

  Poly Times(const Poly& a, const Poly& b) {
    if (a.terms().size() * b.terms().size() > kTermsMax) {
      in_.Fail("a product that is too long");
      return Poly::Invalid();
    }
    return a * b;
  }

  std::size_t Index() {
    const std::uint64_t k = in_.Varint();
    if (k < ledger_.size()) return static_cast<std::size_t>(k);
    in_.Fail("no such fact");
    return 0;
  }

  // The sum of some facts, each times a positive integer.
  Poly Combination() {
    const std::uint64_t count = in_.Count(ledger_.size(), "no such facts");
    Poly sum;
    std::uint64_t next = 0;
    for (std::uint64_t k = 0; k < count && in_.ok(); ++k) {
      const std::uint64_t skip = in_.Count(ledger_.size(), "no such fact");
      const std::uint64_t factor = in_.Varint();
      const std::uint64_t at = next + skip;
      if (at >= ledger_.size()) in_.Fail("no such fact");
      const bool positive = factor != 0 && factor <= std::uint64_t{1} << 62;
      if (!positive && !ledger_.has(nf::Fault::kCheckNegativeMultiplier)) {
        in_.Fail("no positive multiplier");
      }
      if (!in_.ok()) break;
      sum += Poly(static_cast<std::int64_t>(factor)) * ledger_.fact(at);
      next = at + 1;
    }
    if (!sum.valid()) in_.Fail("a number that leaves 64 bits");
    return in_.ok() ? sum : Poly::Invalid();
  }

  const Question& q_;
  Ledger& ledger_;
  base::ByteReader& in_;
};

}  // namespace

bool CheckArgument(const Question& question, Ledger& ledger, base::ByteReader& in) {
  return Reader(question, ledger, in).Tree(0) && in.ok();
}

std::optional<Division> DivisionOf(const base::Symbols& symbols, Symbol s, const Ledger& ledger) {
  if (symbols.kind(s) != base::SymbolKind::kDiv) return std::nullopt;
  const Poly& d = symbols.denominator(s);
  const bool positive = ledger.Has(d - 1);  // Constants included.
  if (!positive && !ledger.has(nf::Fault::kCheckAnyDenominator)) return std::nullopt;
  const Poly rest = symbols.numerator(s) - d * Poly::Var(s);
  const Poly below = d - 1 - rest;
  if (!rest.valid() || !below.valid()) return std::nullopt;
  return Division{rest, below};
}

void PutPoly(std::string& out, const Poly& p) {
  base::PutVarint(out, p.terms().size());
  for (const Poly::Term& t : p.terms()) {
    base::PutSigned(out, t.coefficient);
    const auto degree =
        std::find(t.monomial.begin(), t.monomial.end(), Symbol{0}) - t.monomial.begin();
    base::PutVarint(out, static_cast<std::uint64_t>(degree));
    for (const Symbol s : t.monomial) {
      if (s != 0) base::PutVarint(out, s);
    }
  }
}

Poly ReadPoly(base::ByteReader& in, std::size_t symbols) {
  const std::uint64_t count = in.Count(kTermsMax, "a polynomial that is too long");
  Poly out;
  std::vector<Poly::Term> read;
  for (std::uint64_t k = 0; k < count && in.ok(); ++k) {
    Poly::Term term{{}, in.Signed()};
    const std::uint64_t degree = in.Count(base::kDegreeMax, "a degree that is too high");
    Poly product(term.coefficient);
    for (std::uint64_t n = 0; n < degree && in.ok(); ++n) {
      const std::uint64_t s = in.Varint();
      if (s == 0 || s >= symbols) in.Fail("no such symbol");
      if (!in.ok()) break;
      term.monomial[n] = static_cast<Symbol>(s);
      product = product * Poly::Var(static_cast<Symbol>(s));
    }
    read.push_back(term);
    out += product;
  }
  if (in.ok() && (!out.valid() || out.terms() != read)) {
    in.Fail("a polynomial that is not in its canonical form");
  }
  return in.ok() ? out : Poly::Invalid();
}

}  // namespace tenon::cert
