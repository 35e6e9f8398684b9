// What is no certificate is refused: damaged, of another rule, of another version, or with an
// argument that does not show what was asked.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "core/base/bytes.h"
#include "core/pack/pack.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "tests/verifier/corpus.h"
#include "verifier/cert/argument.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"

namespace tenon::verifier {
namespace {

using base::Eq;
using base::Ge;
using base::Poly;
using cert::Goal;
using cert::Ledger;
using cert::Step;
using ::testing::HasSubstr;

rules::Rule Parsed(const std::string& text) {
  auto parsed = rules::ParseRules(text, "test");
  EXPECT_TRUE(parsed.ok()) << base::Message(parsed.status());
  return *(*parsed)[0].rule;
}

rules::Rule SplitConcat() {
  return Parsed(
      "rule split_k\n"
      "given a[m,k] b[k,n]\n"
      "attr h >= 1\n"
      "source MatMul(a, b)\n"
      "target Add(MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h)),\n"
      "           MatMul(Slice(a, axis=1, start=h, end=k), Slice(b, axis=0, start=h, end=k)))\n"
      "where h < k\n");
}

rules::Rule Wrong() {
  return Parsed(
      "rule split_k\n"
      "given a[m,k] b[k,n]\n"
      "attr h >= 1\n"
      "source MatMul(a, b)\n"
      "target MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h))\n"
      "where h < k\n");
}

std::string Certificate(const rules::Rule& rule) {
  auto made = certify::Certify(rule);
  EXPECT_TRUE(made.ok()) << base::Message(made.status());
  return made.ok() ? *made : "";
}

// With a checksum that fits, as somebody with intent would have it.
std::string Resealed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  cert::Finish(bytes);
  return bytes;
}

TEST(CertificateTest, IsTheSameBytesEveryTimeAndForEveryNaming) {
  const std::string once = Certificate(SplitConcat());
  EXPECT_EQ(once, Certificate(SplitConcat()));
  const rules::Rule renamed = Parsed(
      "rule other\n"
      "given x[p,q] y[q,r]\n"
      "attr w >= 1\n"
      "source MatMul(x, y)\n"
      "target Add(MatMul(Slice(x, axis=1, start=0, end=w), Slice(y, axis=0, start=0, end=w)),\n"
      "           MatMul(Slice(x, axis=1, start=w, end=q), Slice(y, axis=0, start=w, end=q)))\n"
      "where w < q\n");
  EXPECT_EQ(once, Certificate(renamed));
  EXPECT_TRUE(cert::Check(renamed, once).ok());
}

TEST(CertificateTest, TheTestVectorOfTheFormat) {
  const rules::Rule rule =
      Parsed("rule t\ngiven a[m,n]\nsource Transpose(Transpose(a))\ntarget a\n");
  std::string hex;
  for (const char c : Certificate(rule)) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex += kDigits[static_cast<unsigned char>(c) >> 4];
    hex += kDigits[c & 15];
  }
  EXPECT_EQ(hex,
            "01021f0101020101010101020102010101020102021400010014000101020200000002"
            "0202e2b37ac2");
}

TEST(CertificateTest, AWrongRuleHasNone) {
  const auto made = certify::Certify(Wrong());
  EXPECT_EQ(made.status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(CertificateTest, OfAnotherRuleIsRefused) {
  const auto checked = cert::Check(Wrong(), Certificate(SplitConcat()));
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::Message(checked.status()), HasSubstr("of another rule"));
}

// The arguments of a true rule under the name of a false one: the proof asks other questions.
TEST(CertificateTest, ArgumentsOfAnotherRuleProveNothing) {
  const rules::Rule rule = SplitConcat(), wrong = Wrong();
  const std::string certificate = Certificate(rule);
  const std::string own = *rules::CanonicalBytes(rule), other = *rules::CanonicalBytes(wrong);
  const std::size_t at = certificate.find(own);
  ASSERT_NE(at, std::string::npos);
  ASSERT_LT(own.size(), 128u);
  ASSERT_LT(other.size(), 128u);
  std::string forged = certificate;
  forged.replace(at - 1, own.size() + 1, std::string(1, char(other.size())) + other);
  EXPECT_FALSE(cert::Check(wrong, Resealed(forged)).ok());
}

TEST(CertificateTest, OfAnotherSemanticsVersionIsRefused) {
  std::string bytes = Certificate(SplitConcat());
  bytes[1] = char(pack::kSemanticsVersion + 1);
  const auto checked = cert::Check(SplitConcat(), Resealed(bytes));
  EXPECT_EQ(checked.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::Message(checked.status()), HasSubstr("semantics"));
}

TEST(CertificateTest, EveryTruncationAndEveryFlippedBitIsRefused) {
  const rules::Rule rule = SplitConcat();
  const std::string bytes = Certificate(rule);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    EXPECT_FALSE(cert::Check(rule, bytes.substr(0, k)).ok()) << k;
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = bytes;
      flipped[k] = static_cast<char>(flipped[k] ^ (1 << bit));
      EXPECT_FALSE(cert::Check(rule, flipped).ok()) << "byte " << k << " bit " << bit;
    }
  }
  EXPECT_FALSE(cert::Check(rule, bytes + '\0').ok());
  EXPECT_FALSE(cert::Check(rule, Resealed(bytes.substr(0, bytes.size() - 4) + "\1zzzz")).ok());
}

// With a checksum that fits, too. No change may prove the wrong rule, and nothing may crash or take
// long; that a change proves the right rule in another way is allowed.
TEST(CertificateTest, NoChangedBytesProveAWrongRule) {
  const std::string true_bytes = Certificate(SplitConcat());
  const std::string own = *rules::CanonicalBytes(SplitConcat());
  const std::string answers = true_bytes.substr(true_bytes.find(own) + own.size());
  const std::string other = *rules::CanonicalBytes(Wrong());
  std::mt19937 random(7);
  int accepted = 0;
  for (int k = 0; k < 6'000; ++k) {
    std::string bytes;
    base::PutByte(bytes, 1);
    base::PutVarint(bytes, pack::kSemanticsVersion);
    base::PutString(bytes, k % 2 == 0 ? other : own);
    std::string tail = answers;
    for (unsigned n = random() % 4; n > 0; --n) {
      const std::size_t at = random() % (tail.size() - 4);
      switch (random() % 3) {
        case 0:
          tail[at] = static_cast<char>(random() % 16);
          break;
        case 1:
          tail.insert(at, 1, static_cast<char>(random() % 8));
          break;
        default:
          tail.erase(at, 1);
      }
    }
    const auto checked = cert::Check(k % 2 == 0 ? Wrong() : SplitConcat(), Resealed(bytes + tail));
    if (k % 2 == 0) {
      ASSERT_FALSE(checked.ok()) << "seed 7, case " << k;
    } else {
      accepted += checked.ok() ? 1 : 0;
    }
  }
  EXPECT_GT(accepted, 300);  // The unchanged ones: the test reaches the arguments.
}

class ArgumentTest : public ::testing::Test {
 protected:
  ArgumentTest() : ledger_(Ledger::Numbers::kIntegers) {
    x_ = symbols_.Add("x", base::SymbolKind::kIndex);
    n_ = symbols_.Add("n", base::SymbolKind::kDim);
  }

  void Put(Step step) { base::PutByte(bytes_, static_cast<std::uint8_t>(step)); }
  // Facts by ascending number, with multipliers.
  void PutCombination(std::vector<std::pair<std::uint64_t, std::uint64_t>> facts) {
    base::PutVarint(bytes_, facts.size());
    std::uint64_t next = 0;
    for (const auto& [fact, factor] : facts) {
      base::PutVarint(bytes_, fact - next);
      base::PutVarint(bytes_, factor);
      next = fact + 1;
    }
  }
  bool Holds(const Goal& goal, std::vector<std::vector<Poly>> cases = {}) {
    base::ByteReader in(bytes_);
    const std::size_t before = ledger_.size();
    const bool ok =
        cert::CheckArgument({symbols_, goal, cases}, ledger_, in) && in.remaining() == 0;
    EXPECT_EQ(ledger_.size(), before);
    bytes_.clear();
    return ok;
  }

  base::Symbols symbols_;
  base::Symbol x_ = 0, n_ = 0;
  Ledger ledger_;
  std::string bytes_;
};

TEST_F(ArgumentTest, AChangedMultiplierIsRefused) {
  ASSERT_TRUE(ledger_.Add(Poly::Var(x_) - 2 * Poly::Var(n_)));  // 1: x >= 2 n
  ASSERT_TRUE(ledger_.Add(Poly::Var(n_) - 1));                  // 2: n >= 1
  ASSERT_TRUE(ledger_.Add(-Poly::Var(x_) + 1));                 // 3: x <= 1
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 2}, {3, 1}});
  EXPECT_TRUE(Holds({}));
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 1}, {3, 1}});
  EXPECT_FALSE(Holds({}));
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 2}, {3, 0}});  // Not positive.
  EXPECT_FALSE(Holds({}));
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 2}});
  EXPECT_FALSE(Holds({}));
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 2}, {4, 1}});  // No such fact.
  EXPECT_FALSE(Holds({}));
  Put(Step::kAbsurd), PutCombination({{0, 1}});  // 1 >= 0 is no contradiction.
  EXPECT_FALSE(Holds({}));
}

TEST_F(ArgumentTest, AMissingBranchAChangedGuardAndAWrongLeafAreRefused) {
  // [x >= n] + [x < n] - 1 = 0
  const std::vector<nf::Piece> pieces{{Poly(1), {Ge(Poly::Var(x_), Poly::Var(n_))}},
                                      {Poly(1), {base::Lt(Poly::Var(x_), Poly::Var(n_))}},
                                      {Poly(-1), {}}};
  const Goal goal{.kind = Goal::Kind::kBalanced, .left = pieces};
  const Poly guard = Poly::Var(x_) - Poly::Var(n_);
  Put(Step::kSplit), cert::PutPoly(bytes_, guard), Put(Step::kReached), Put(Step::kReached);
  EXPECT_TRUE(Holds(goal));
  Put(Step::kSplit), cert::PutPoly(bytes_, guard), Put(Step::kReached);
  EXPECT_FALSE(Holds(goal));
  Put(Step::kSplit), cert::PutPoly(bytes_, guard - 1), Put(Step::kReached), Put(Step::kReached);
  EXPECT_FALSE(Holds(goal));
  Put(Step::kReached);
  EXPECT_FALSE(Holds(goal));
  Put(Step::kSplit), cert::PutPoly(bytes_, guard), Put(Step::kReached), Put(Step::kReached);
  std::vector<nf::Piece> twice = pieces;
  twice[0].weight = Poly(2);
  EXPECT_FALSE(Holds({.kind = Goal::Kind::kBalanced, .left = twice}));
  Put(Step::kReached);  // No goal but a contradiction.
  EXPECT_FALSE(Holds({}));
}

TEST_F(ArgumentTest, IntegersAreRoundedAndRealsAreNot) {
  ASSERT_TRUE(ledger_.Add(Eq(2 * Poly::Var(x_), Poly(1))));
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 1}});
  EXPECT_TRUE(Holds({}));
  Ledger reals(Ledger::Numbers::kReals);
  ASSERT_TRUE(reals.Add(Eq(2 * Poly::Var(x_), Poly(1))));
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 1}});
  base::ByteReader in(bytes_);
  EXPECT_FALSE(cert::CheckArgument({symbols_, {}, {}}, reals, in));
}

TEST_F(ArgumentTest, DivisionNeedsAPositiveDenominator) {
  const base::Symbol a = symbols_.Add("a", base::SymbolKind::kAttr);
  const Poly q = symbols_.FloorDiv(Poly::Var(x_), Poly::Var(a));
  std::vector<base::Symbol> mentioned;
  q.CollectSymbols(mentioned);
  ASSERT_EQ(mentioned.size(), 1u);
  // x >= a q follows: x - a q < 0 is absurd.
  ASSERT_TRUE(ledger_.Add(Poly::Var(a) * q - Poly::Var(x_) - 1));
  Put(Step::kDivision), base::PutVarint(bytes_, mentioned[0]);
  Put(Step::kAbsurd), PutCombination({{1, 1}, {2, 1}});
  EXPECT_FALSE(Holds({}));
  ASSERT_TRUE(ledger_.Add(Poly::Var(a) - 1));
  Put(Step::kDivision), base::PutVarint(bytes_, mentioned[0]);
  Put(Step::kAbsurd), PutCombination({{1, 1}, {3, 1}});
  EXPECT_TRUE(Holds({}));
}

TEST_F(ArgumentTest, AnEquationMayBeScaledAndAnInequalityNot) {
  ASSERT_TRUE(ledger_.Add(Poly::Var(x_) - 3));                                      // 1: x >= 3
  ASSERT_TRUE(ledger_.Add(3 * Poly::Var(n_) - Poly::Var(n_) * Poly::Var(x_) - 1));  // 2
  Put(Step::kScale), base::PutVarint(bytes_, 1), cert::PutPoly(bytes_, Poly::Var(n_));
  Put(Step::kAbsurd), PutCombination({{2, 1}, {3, 1}});
  EXPECT_FALSE(Holds({}));
  ASSERT_TRUE(ledger_.Add(-Poly::Var(x_) + 3));  // 3: x <= 3
  Put(Step::kScale), base::PutVarint(bytes_, 1), cert::PutPoly(bytes_, Poly::Var(n_));
  Put(Step::kAbsurd), PutCombination({{2, 1}, {4, 1}});
  EXPECT_TRUE(Holds({}));
}

TEST_F(ArgumentTest, EveryMemberOfAMaximumIsACase) {
  Ledger reals(Ledger::Numbers::kReals);
  const std::vector<std::vector<Poly>> cases{{Poly(-1), Poly(-1)}};
  const auto check = [&] {
    base::ByteReader in(bytes_);
    const bool ok = cert::CheckArgument({symbols_, {}, cases}, reals, in);
    bytes_.clear();
    return ok;
  };
  Put(Step::kCase), base::PutVarint(bytes_, 0);
  for (int k = 0; k < 2; ++k) Put(Step::kAbsurd), PutCombination({{1, 1}});
  EXPECT_TRUE(check());
  Put(Step::kCase), base::PutVarint(bytes_, 0);
  Put(Step::kAbsurd), PutCombination({{1, 1}});
  EXPECT_FALSE(check());
  Put(Step::kCase), base::PutVarint(bytes_, 1);
  for (int k = 0; k < 2; ++k) Put(Step::kAbsurd), PutCombination({{1, 1}});
  EXPECT_FALSE(check());
}

}  // namespace
}  // namespace tenon::verifier
