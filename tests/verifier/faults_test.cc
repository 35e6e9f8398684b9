// The test of the tests: each deliberate fault of the prover is noticed by a rule of the corpora. A
// green corpus says little before that.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/verifier/corpus.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

struct Planted {
  nf::Fault fault;
  const char* name;
  const char* proves;  // A wrong rule that it proves.
};
const Planted kPlanted[] = {
    {nf::Fault::kDropSelectGuard, "drop the guard of a Select", "identity_counts_all"},
    {nf::Fault::kSkipTargetRequirements, "skip the target's requirements", "slice_beyond"},
    {nf::Fault::kLiftIgnoresBody, "lifting ignores bodies", "relu_of_sum_or_difference"},
    {nf::Fault::kReuseBinders, "reuse a binder", "kernel_is_not_transposed"},
    {nf::Fault::kIgnoreCount, "ignore the counting factor", "sum_of_broadcast_is_it"},
    {nf::Fault::kDropIndexEquations, "drop index equations", "slice_one_further"},
    {nf::Fault::kEverythingUnsat, "every query is unsat", "commute_matmul"},
    {nf::Fault::kInverseTranspose, "inverse permutation", "factor_through_transpose_cycle"},
    {nf::Fault::kReluIsLinear, "Relu is the identity", "relu_through_conv"},
    {nf::Fault::kCancelReciprocals, "cancel reciprocals of what may be 0", "cancel_anything"},
    {nf::Fault::kIgnoreOffsets, "ignore offsets", "stepped_slice_other_phase"},
};

// The prover alone: screening would refute most wrong rules before it is asked.
VerdictKind Decided(const rules::Rule& rule, const Budget& budget) {
  Proof proof(rule, budget);
  if (const auto verdict = proof.CheckForm()) return verdict->kind;
  return proof.Equality().kind;
}

TEST(FaultsTest, EachIsNoticed) {
  const std::vector<CorpusRule> corpus = ReadCorpus();
  for (const Planted& planted : kPlanted) {
    Budget budget;
    budget.fault = planted.fault;
    budget.cells = 20;
    std::vector<std::string> false_proofs;
    for (const CorpusRule& c : corpus) {
      if (!c.parsed.rule.ok() || c.parsed.expect == rules::Expect::kProved) continue;
      if (Decided(*c.parsed.rule, budget) == VerdictKind::kProved) {
        false_proofs.push_back(c.parsed.name);
      }
    }
    fmt::print("{:36} {:3} false proofs\n", planted.name, false_proofs.size());
    EXPECT_TRUE(std::find(false_proofs.begin(), false_proofs.end(), planted.proves) !=
                false_proofs.end())
        << planted.name << " does not prove " << planted.proves << ", but "
        << (false_proofs.empty() ? "nothing" : false_proofs[0]);
  }
}

// And without a fault the prover alone proves no wrong rule.
TEST(FaultsTest, WithoutOneNoWrongRuleIsProved) {
  for (const CorpusRule& c : ReadCorpus()) {
    if (!c.parsed.rule.ok() || c.parsed.expect == rules::Expect::kProved) continue;
    EXPECT_NE(Decided(*c.parsed.rule, Budget{}), VerdictKind::kProved) << c.parsed.name;
  }
}

}  // namespace
}  // namespace tenon::verifier
