// The verifier's role: proofs in children that may hang, crash and be killed.
#include <signal.h>

#include <thread>

#include <gtest/gtest.h>

#include "core/pack/pack.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "tests/support/fake_coordinator.h"
#include "tests/verifier/corpus.h"
#include "verifier/prove.h"
#include "verifier/prover_process.h"
#include "verifier/serve.h"

namespace tenon::verifier {
namespace {

using convert::VerdictKind;

const char kTrue[] =
    "rule r given a[m,k] b[k,n] c[n,l] source MatMul(MatMul(a, b), c) target MatMul(a, MatMul(b, "
    "c))";
const char kFalse[] = "rule r given a[m,m] b[m,m] source MatMul(a, b) target MatMul(b, a)";

std::string BytesOf(const char* text) {
  const auto rule = rules::ParseRule(text);
  CHECK(rule.ok());
  return *rules::CanonicalBytes(*rule);
}

ProverProcessOptions Child(int attempts = 2) {
  return {.command = {PROVER_CHILD}, .attempts = attempts};
}

TEST(ProverProcessTest, VerdictsAreThoseOfThisProcess) {
  ProverProcess prover(Child());
  int rules = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (!c.parsed.rule.ok() || ++rules % 8 != 0) continue;
    const auto bytes = rules::CanonicalBytes(*c.parsed.rule);
    if (!bytes.ok()) continue;
    const auto there = prover.Prove({.rule = *bytes});
    ASSERT_TRUE(there.ok()) << there.status();
    ASSERT_TRUE(there->status.ok()) << there->status;
    const auto here = Prove(*rules::DecodeRule(*bytes), {});
    ASSERT_TRUE(here.ok());
    EXPECT_EQ(int(there->verdict.kind), int(here->kind)) << c.parsed.name;
    EXPECT_EQ(there->verdict.repeatable, here->repeatable);
    EXPECT_EQ(there->verdict.rlimit, std::uint64_t(here->counters.rlimit)) << c.parsed.name;
    if (!here->counterexample) {
      EXPECT_EQ(there->verdict.reason, here->reason);
    }
  }
  EXPECT_GT(rules, 80);
  EXPECT_EQ(prover.started(), 1u);
}

// The child stands still with the question in hand when it is killed.
ProofAnswer KilledAtWork(ProverProcess& prover) {
  EXPECT_TRUE(prover.Prove({.rule = BytesOf(kTrue)}).ok());
  const pid_t pid = prover.pid();
  kill(pid, SIGSTOP);
  std::jthread killer([pid] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    kill(pid, SIGKILL);
  });
  const auto answer = prover.Prove({.rule = BytesOf(kTrue)});
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? *answer : ProofAnswer{};
}

TEST(ProverProcessTest, AKilledChildIsUnknownAndTheNextProofWorks) {
  ProverProcess prover(Child(1));
  const ProofAnswer killed = KilledAtWork(prover);
  EXPECT_EQ(killed.verdict.kind, VerdictKind::kUnknown);
  EXPECT_FALSE(killed.verdict.repeatable);
  EXPECT_NE(killed.verdict.reason.find("signal 9"), std::string::npos) << killed.verdict.reason;
  EXPECT_EQ(prover.Prove({.rule = BytesOf(kTrue)})->verdict.kind, VerdictKind::kProved);
  EXPECT_EQ(prover.Prove({.rule = BytesOf(kFalse)})->verdict.kind, VerdictKind::kRefuted);
  EXPECT_EQ(prover.started(), 2u);
}

TEST(ProverProcessTest, AKilledChildIsAskedAgain) {
  ProverProcess prover(Child(2));
  EXPECT_EQ(KilledAtWork(prover).verdict.kind, VerdictKind::kProved);
  EXPECT_EQ(prover.started(), 2u);
}

TEST(ProverProcessTest, AHangIsUnknownAndNotRepeatable) {
  ProverProcess prover({.command = {"/bin/sleep", "1000"}, .limit = std::chrono::milliseconds(50)});
  const auto answer = prover.Prove({.rule = BytesOf(kTrue)});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->verdict.kind, VerdictKind::kUnknown);
  EXPECT_FALSE(answer->verdict.repeatable);
  EXPECT_EQ(prover.pid(), -1);
  EXPECT_EQ(prover.started(), 1u);
}

TEST(ProverProcessTest, AChildThatWantsMoreMemoryThanItMayHaveIsUnknown) {
  ProverProcess prover({.command = {PROVER_CHILD}, .memory_limit_bytes = 1 << 20});
  const auto answer = prover.Prove({.rule = BytesOf(kTrue)});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->verdict.kind, VerdictKind::kUnknown);
  EXPECT_FALSE(answer->verdict.repeatable);
}

TEST(ProverProcessTest, WhatIsNoProverIsUnknown) {
  ProverProcess echo({.command = {"/bin/cat"}});
  EXPECT_EQ(echo.Prove({.rule = BytesOf(kTrue)})->verdict.kind, VerdictKind::kUnknown);
  ProverProcess dead({.command = {"/bin/false"}});
  const auto answer = dead.Prove({.rule = BytesOf(kTrue)});
  EXPECT_EQ(answer->verdict.kind, VerdictKind::kUnknown);
  EXPECT_EQ(dead.started(), 2u);
  ProverProcess missing({.command = {"/no/such/program"}});
  EXPECT_EQ(missing.Prove({.rule = BytesOf(kTrue)}).status().code(), absl::StatusCode::kInternal);
}

TEST(ProverProcessTest, AProofThatIsNotWantedAnyMoreStops) {
  ProverProcess prover({.command = {"/bin/sleep", "1000"}});
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(prover.Prove({.rule = BytesOf(kTrue)}, stop.get_token()).status().code(),
            absl::StatusCode::kCancelled);
  EXPECT_EQ(prover.pid(), -1);
}

TEST(ProverProcessTest, BytesThatAreNoRuleAreAnErrorAndNotACrash) {
  ProverProcess prover(Child());
  const auto answer = prover.Prove({.rule = "no rule"});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(prover.started(), 1u);
}

convert::Task ProofsOf(const std::string& id, std::vector<std::string> rules,
                       std::uint64_t semantics = pack::kSemanticsVersion) {
  return {.id = id,
          .job_id = "job",
          .work = convert::ProofTask{.semantics_version = semantics, .rules = std::move(rules)}};
}

class VerifierServiceTest : public ::testing::Test {
 protected:
  void Start() {
    thread_ = std::jthread([this](std::stop_token stop) {
      ended_ = Serve({.coordinator = coordinator_.endpoint(),
                      .node_id = "v1",
                      .proofs = 2,
                      .prover_command = {PROVER_CHILD}},
                     stop);
    });
  }
  void End() {
    thread_.request_stop();
    thread_.join();
  }
  testing::FakeCoordinator coordinator_;
  Status ended_ = OkStatus();
  std::jthread thread_;
};

TEST_F(VerifierServiceTest, ProofTasksAreDoneInOrderOfTheirRules) {
  Start();
  for (int k = 0; k < 4; ++k) {
    coordinator_.Add(
        ProofsOf("job/proofs/1/" + std::to_string(k), {BytesOf(kTrue), BytesOf(kFalse)}));
  }
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.completed().size() == 4; }));
  for (const convert::Complete& c : coordinator_.completed()) {
    const auto& verdicts = std::get<convert::ProofResult>(c.result).verdicts;
    ASSERT_EQ(verdicts.size(), 2u);
    EXPECT_EQ(verdicts[0].kind, VerdictKind::kProved);
    EXPECT_TRUE(verdicts[0].repeatable);
    EXPECT_EQ(verdicts[1].kind, VerdictKind::kRefuted);
    EXPECT_FALSE(verdicts[1].reason.empty());
    EXPECT_EQ(c.node_id, "v1");
  }
  End();
  EXPECT_TRUE(ended_.ok()) << ended_;
  ASSERT_FALSE(coordinator_.heartbeats().empty());
  EXPECT_EQ(coordinator_.heartbeats()[0].role, "verifier");
}

TEST_F(VerifierServiceTest, TasksOfAnotherSemanticsGoBackWithAReason) {
  Start();
  coordinator_.Add(ProofsOf("job/proofs/1/0", {BytesOf(kTrue)}, pack::kSemanticsVersion + 1));
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.released().size() == 1; }));
  EXPECT_NE(coordinator_.released()[0].error.find("semantics"), std::string::npos);
  EXPECT_TRUE(coordinator_.completed().empty());
}

TEST_F(VerifierServiceTest, ACoordinatorThatGoesAwayIsWaitedFor) {
  Start();
  coordinator_.Add(ProofsOf("job/proofs/1/0", {BytesOf(kTrue)}));
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.completed().size() == 1; }));
  coordinator_.Stop();
  coordinator_.Add(ProofsOf("job/proofs/1/1", {BytesOf(kFalse)}));
  coordinator_.Start();
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.completed().size() == 2; }));
}

}  // namespace
}  // namespace tenon::verifier
