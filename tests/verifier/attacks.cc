#include "tests/verifier/attacks.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/check.h"
#include "core/pack/pack.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "verifier/cert/argument.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"

namespace tenon::verifier {
namespace {

using base::Ge;
using base::Poly;
using cert::Goal;
using cert::Ledger;
using cert::Step;
using nf::Fault;

rules::Rule Parsed(const std::string& text) {
  const auto rule = rules::ParseRule("rule r " + text);
  CHECK(rule.ok());
  return *rule;
}

// Needs no answer at all.
rules::Rule TransposedTwice() {
  return Parsed("given a[m,n] source Transpose(Transpose(a)) target a");
}
// Needs some.
rules::Rule CutInTwo() {
  return Parsed(
      "given a[m,k] b[k,n] attr h >= 1 source MatMul(a, b) "
      "target Add(MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h)), "
      "MatMul(Slice(a, axis=1, start=h, end=k), Slice(b, axis=0, start=h, end=k))) where h < k");
}

std::string CertificateOf(const rules::Rule& rule) {
  const auto made = certify::Certify(rule);
  CHECK(made.ok());
  return *made;
}

std::string Resealed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  cert::Finish(bytes);
  return bytes;
}

bool WrongChecksum(Fault with) {
  std::string bytes = CertificateOf(TransposedTwice());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  return cert::Check(TransposedTwice(), bytes, with).ok();
}

bool OtherSemantics(Fault with) {
  std::string bytes = CertificateOf(TransposedTwice());
  bytes[1] = char(pack::kSemanticsVersion + 1);
  return cert::Check(TransposedTwice(), Resealed(bytes), with).ok();
}

bool OfAnotherRule(Fault with) {
  const rules::Rule other = Parsed("given a[m,n] source Neg(Neg(a)) target a");
  return cert::Check(other, CertificateOf(TransposedTwice()), with).ok();
}

bool BytesThatFollow(Fault with) {
  std::string bytes = CertificateOf(TransposedTwice());
  bytes.insert(bytes.size() - 4, 1, '\0');
  return cert::Check(TransposedTwice(), Resealed(bytes), with).ok();
}

// The conditions contradict each other: the rule says nothing.
bool NoSizes(Fault with) {
  const rules::Rule rule =
      Parsed("given a[m,n] source Transpose(Transpose(a)) target a where m > n, n > m");
  std::string bytes = cert::Begin(*rules::CanonicalBytes(rule), {0, 2, 2});
  cert::Finish(bytes);
  return cert::Check(rule, bytes, with).ok();
}

// Every question is answered "yes", without a reason: the checker is told what it wants to hear.
bool YesWithoutArgument(Fault with) {
  std::string bytes = CertificateOf(CutInTwo());
  const std::string own = *rules::CanonicalBytes(CutInTwo());
  for (int answers = 1; answers < 200; ++answers) {
    std::string forged = cert::Begin(own, {0, 2, 2, 2, 1}) + std::string(std::size_t(answers), 1);
    cert::Finish(forged);
    if (cert::Check(CutInTwo(), forged, with).ok()) return true;
  }
  return false;
}

// One argument about whole numbers x, n >= 1 and q = floor(x / a).
class Argument {
 public:
  explicit Argument(Fault with, Ledger::Numbers numbers = Ledger::Numbers::kIntegers)
      : ledger(numbers, with) {
    x = Poly::Var(symbols.Add("x", base::SymbolKind::kIndex));
    n = Poly::Var(symbols.Add("n", base::SymbolKind::kDim));
    a = Poly::Var(symbols.Add("a", base::SymbolKind::kAttr));
  }
  Argument& Put(Step step) {
    base::PutByte(bytes, static_cast<std::uint8_t>(step));
    return *this;
  }
  Argument& Put(const Poly& p) {
    cert::PutPoly(bytes, p);
    return *this;
  }
  Argument& Number(std::uint64_t v) {
    base::PutVarint(bytes, v);
    return *this;
  }
  // Facts by ascending number, with multipliers.
  Argument& Combination(const std::vector<std::pair<std::uint64_t, std::uint64_t>>& facts) {
    Number(facts.size());
    std::uint64_t next = 0;
    for (const auto& [fact, factor] : facts) {
      Number(fact - next).Number(factor);
      next = fact + 1;
    }
    return *this;
  }
  bool Accepted(const Goal& goal = {}, const std::vector<std::vector<Poly>>& cases = {}) {
    base::ByteReader in(bytes);
    return cert::CheckArgument({symbols, goal, cases}, ledger, in) && in.remaining() == 0;
  }

  base::Symbols symbols;
  Poly x, n, a;
  Ledger ledger;
  std::string bytes;
};

bool NoContradiction(Fault with) {
  return Argument(with).Put(Step::kAbsurd).Combination({{0, 1}}).Accepted();
}

bool GoalNotReached(Fault with) {
  Argument one(with);
  const std::vector<base::Condition> claims{Ge(one.x, Poly(0))};
  one.Put(Step::kReached);
  return one.Accepted({.kind = Goal::Kind::kClaims, .claims = claims});
}

// x >= 0 or x <= -1; only the first case is looked at, with the claim that x >= 0.
bool MissingBranch(Fault with) {
  Argument one(with);
  const std::vector<base::Condition> claims{Ge(one.x, Poly(0))};
  one.Put(Step::kSplit).Put(one.x).Put(Step::kReached);
  return one.Accepted({.kind = Goal::Kind::kClaims, .claims = claims});
}

// The second case uses what only the first may.
bool FactOfTheOtherBranch(Fault with) {
  Argument one(with);
  const std::vector<base::Condition> claims{Ge(one.x, Poly(0))};
  one.Put(Step::kSplit).Put(one.x).Put(Step::kReached).Put(Step::kReached);
  return one.Accepted({.kind = Goal::Kind::kClaims, .claims = claims});
}

bool MissingCase(Fault with) {
  Argument one(with, Ledger::Numbers::kReals);
  one.Put(Step::kCase).Number(0).Put(Step::kAbsurd).Combination({{1, 1}});
  return one.Accepted({}, {{Poly(-1), one.x}});
}

// x >= 3, and x n <= 3 n - 1: no contradiction, for n may be negative as far as is known.
bool ScaledInequality(Fault with) {
  Argument one(with);
  CHECK(one.ledger.Add(one.x - 3) && one.ledger.Add(3 * one.n - one.n * one.x - 1));
  one.Put(Step::kScale).Number(1).Put(one.n);
  one.Put(Step::kAbsurd).Combination({{2, 1}, {3, 1}});
  return one.Accepted();
}

// x < a floor(x / a) is possible where a is negative.
bool UnknownDenominator(Fault with) {
  Argument one(with);
  const Poly q = one.symbols.FloorDiv(one.x, one.a);
  std::vector<base::Symbol> mentioned;
  q.CollectSymbols(mentioned);
  CHECK(one.ledger.Add(one.a * q - one.x - 1));
  one.Put(Step::kDivision).Number(mentioned[0]);
  one.Put(Step::kAbsurd).Combination({{1, 1}, {2, 1}});
  return one.Accepted();
}

// 2 x = 1 has a solution over the reals.
bool RoundedReals(Fault with) {
  Argument one(with, Ledger::Numbers::kReals);
  CHECK(one.ledger.Add(base::Eq(2 * one.x, Poly(1))));
  return one.Put(Step::kAbsurd).Combination({{1, 1}, {2, 1}}).Accepted();
}

// [x >= 0] = 0 without a word about x.
bool UndecidedPiece(Fault with) {
  Argument one(with);
  const std::vector<nf::Piece> pieces{{Poly(1), {Ge(one.x, Poly(0))}}};
  one.Put(Step::kReached);
  return one.Accepted({.kind = Goal::Kind::kBalanced, .left = pieces});
}

// 1 >= 0, times -1.
bool NegativeMultiplier(Fault with) {
  return Argument(with).Put(Step::kAbsurd).Combination({{0, UINT64_MAX}}).Accepted();
}

const Attack kAttacks[] = {
    {"wrong checksum", Fault::kCheckNoChecksum, WrongChecksum},
    {"another semantics version", Fault::kCheckAnySemantics, OtherSemantics},
    {"certificate of another rule", Fault::kCheckAnyRule, OfAnotherRule},
    {"bytes that follow", Fault::kCheckNoEnd, BytesThatFollow},
    {"conditions that contradict each other", Fault::kCheckNoWitness, NoSizes},
    {"yes without an argument", Fault::kCheckNoArgument, YesWithoutArgument},
    {"no contradiction", Fault::kCheckAbsurd, NoContradiction},
    {"goal that is not reached", Fault::kCheckReached, GoalNotReached},
    {"missing branch", Fault::kCheckFirstBranch, MissingBranch},
    {"missing case of a maximum", Fault::kCheckFirstCase, MissingCase},
    {"fact of the other branch", Fault::kCheckLeak, FactOfTheOtherBranch},
    {"scaled inequality", Fault::kCheckScaleInequality, ScaledInequality},
    {"unknown denominator", Fault::kCheckAnyDenominator, UnknownDenominator},
    {"rounded reals", Fault::kCheckRoundReals, RoundedReals},
    {"undecided piece", Fault::kCheckUndecidedPieces, UndecidedPiece},
    {"negative multiplier", Fault::kCheckNegativeMultiplier, NegativeMultiplier},
};

}  // namespace

std::span<const Attack> Attacks() { return kAttacks; }

}  // namespace tenon::verifier
