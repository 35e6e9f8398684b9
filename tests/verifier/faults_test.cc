// The test of the tests: each deliberate fault of prover, checker and maker of certificates is
// noticed by something that has a name. Green tests say little before that.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/verifier/attacks.h"
#include "tests/verifier/corpus.h"
#include "verifier/cert/check.h"
#include "verifier/certify/certify.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

using nf::Fault;

struct Planted {
  Fault fault;
  const char* name;
  const char* proves;  // A wrong rule that it proves.
};
const Planted kPlanted[] = {
    {Fault::kDropSelectGuard, "drop the guard of a Select", "identity_counts_all"},
    {Fault::kSkipTargetRequirements, "skip the target's requirements", "slice_beyond"},
    {Fault::kLiftIgnoresBody, "lifting ignores bodies", "relu_of_sum_or_difference"},
    {Fault::kReuseBinders, "reuse a binder", "kernel_is_not_transposed"},
    {Fault::kIgnoreCount, "ignore the counting factor", "sum_of_broadcast_is_it"},
    {Fault::kDropIndexEquations, "drop index equations", "slice_one_further"},
    {Fault::kEverythingUnsat, "every query is unsat", "commute_matmul"},
    {Fault::kInverseTranspose, "inverse permutation", "factor_through_transpose_cycle"},
    {Fault::kReluIsLinear, "Relu is the identity", "relu_through_conv"},
    {Fault::kCancelReciprocals, "cancel reciprocals of what may be 0", "cancel_anything"},
    {Fault::kIgnoreOffsets, "ignore offsets", "stepped_slice_other_phase"},
    {Fault::kRootOfAnything, "square roots of what may be negative", "sqrt_squared_of_anything"},
    {Fault::kMaximumForgets, "a maximum forgets a value", "max_is_first"},
    {Fault::kClampIsRelu, "any lower bound is 0", "max_with_one_is_relu"},
    {Fault::kSubIsAdd, "a difference is a sum", "commute_sub"},
    {Fault::kNegIsNothing, "the sign is lost", "negation_is_nothing"},
    {Fault::kOneFunction, "all functions are the same", "tanh_is_sigmoid"},
    {Fault::kInputsAreOne, "every input is the first", "commute_sub"},
    {Fault::kFirstBlockOnly, "all blocks are the first", "both_groups_are_the_first"},
    {Fault::kFirstOutputOnly, "the first output only", "second_output_is_wrong"},
    {Fault::kSkipShapes, "shapes are not compared", "shapes_differ_alone"},
    {Fault::kSkipBackwards, "one way of two", "backwards_needs_more"},
};

struct Losing {
  Fault fault;
  const char* name;
  const char* loses;  // A true rule that it no longer proves.
};
const Losing kLosing[] = {
    {Fault::kSumIsOneShort, "sums are one short", "two_products_as_one"},
    {Fault::kMaximumOfAnybody, "a maximum asks for no admission", "maxpool_channel_concat"},
};

struct Unmade {
  Fault fault;
  const char* name;
};
const Unmade kUnmade[] = {
    {Fault::kCertifyOtherMultiplier, "another multiplier"},
    {Fault::kCertifyOneBranch, "splits have one branch"},
};

// The prover alone: screening would refute most wrong rules before it is asked.
VerdictKind Decided(const rules::Rule& rule, const Budget& budget) {
  Proof proof(rule, budget);
  if (const auto verdict = proof.CheckForm()) return verdict->kind;
  return proof.Equality().kind;
}

// The rule of a name that is not to be proved.
const rules::Rule* WrongRule(const std::vector<CorpusRule>& corpus, const std::string& name) {
  for (const CorpusRule& c : corpus) {
    if (c.parsed.name == name && c.parsed.rule.ok() && c.parsed.expect != rules::Expect::kProved) {
      return &*c.parsed.rule;
    }
  }
  return nullptr;
}

TEST(FaultsTest, EachOfTheProverIsNoticedByAWrongRuleThatItProves) {
  const std::vector<CorpusRule> corpus = ReadCorpus();
  for (const Planted& planted : kPlanted) {
    Budget budget;
    budget.fault = planted.fault;
    const rules::Rule* wrong = WrongRule(corpus, planted.proves);
    ASSERT_NE(wrong, nullptr) << planted.proves;
    EXPECT_EQ(Decided(*wrong, budget), VerdictKind::kProved)
        << planted.name << " does not prove " << planted.proves;
    fmt::print("{:36} proves {}\n", planted.name, planted.proves);
  }
}

// And without a fault the prover alone proves no wrong rule.
TEST(FaultsTest, WithoutOneNoWrongRuleIsProved) {
  for (const CorpusRule& c : ReadCorpus()) {
    if (!c.parsed.rule.ok() || c.parsed.expect == rules::Expect::kProved) continue;
    EXPECT_NE(Decided(*c.parsed.rule, Budget{}), VerdictKind::kProved) << c.parsed.name;
  }
}

TEST(FaultsTest, SomeAreNoticedByATrueRuleThatIsLost) {
  for (const Losing& planted : kLosing) {
    Budget budget;
    budget.fault = planted.fault;
    bool found = false;
    for (const CorpusRule& c : ReadCorpus()) {
      if (c.parsed.name != planted.loses || c.parsed.expect != rules::Expect::kProved) continue;
      found = true;
      EXPECT_EQ(Decided(*c.parsed.rule, Budget{}), VerdictKind::kProved) << c.parsed.name;
      EXPECT_NE(Decided(*c.parsed.rule, budget), VerdictKind::kProved) << planted.name;
    }
    EXPECT_TRUE(found) << planted.loses;
    fmt::print("{:36} loses {}\n", planted.name, planted.loses);
  }
}

// The negative tests of the checker: every forgery is refused, and each of them for its own reason.
TEST(FaultsTest, EveryForgedCertificateIsRefusedAndWouldNotBeWithoutItsCheck) {
  for (const Attack& attack : Attacks()) {
    EXPECT_FALSE(attack.accepted(Fault::kNone)) << attack.name;
    EXPECT_TRUE(attack.accepted(attack.fault)) << attack.name << " is refused for another reason";
    fmt::print("{:36} accepted without its check\n", attack.name);
  }
}

// Whoever makes certificates checks what he made: a mistake there is an error, not a certificate.
TEST(FaultsTest, WhatIsMadeWronglyIsNotHandedOut) {
  const auto rule = rules::ParseRule(
      "rule r given a[m,k] b[k,n] attr h >= 1 source MatMul(a, b) target "
      "Add(MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h)), "
      "MatMul(Slice(a, axis=1, start=h, end=k), Slice(b, axis=0, start=h, end=k))) where h < k");
  ASSERT_TRUE(rule.ok());
  EXPECT_TRUE(certify::Certify(*rule).ok());
  for (const Unmade& planted : kUnmade) {
    const auto made = certify::Certify(*rule, {}, planted.fault);
    EXPECT_TRUE(absl::IsInternal(made.status())) << planted.name << ": " << made.status();
  }
}

// A fault that is in no list above is caught by nothing that anybody knows of.
TEST(FaultsTest, EveryFaultIsInAList) {
  std::map<Fault, std::string> caught_by;
  for (const Planted& p : kPlanted) caught_by[p.fault] = std::string("proves ") + p.proves;
  for (const Losing& l : kLosing) caught_by[l.fault] = std::string("loses ") + l.loses;
  for (const Attack& a : Attacks()) caught_by[a.fault] = std::string("accepts ") + a.name;
  for (const Unmade& u : kUnmade) caught_by[u.fault] = "Certify refuses its own work";
  for (int k = 1; k <= static_cast<int>(Fault::kLast); ++k) {
    EXPECT_TRUE(caught_by.contains(static_cast<Fault>(k))) << "fault " << k;
    fmt::print("fault {:2}: {}\n", k, caught_by[static_cast<Fault>(k)]);
  }
}

}  // namespace
}  // namespace tenon::verifier
