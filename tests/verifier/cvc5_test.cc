// A second solver on what the proofs of the true rules rely on: cvc5 finds each question that Z3
// answered "unsatisfiable" unsatisfiable, too.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/process.h"
#include "tests/verifier/corpus.h"
#include "verifier/prove.h"

namespace tenon::verifier {
namespace {

// Questions of one logic go to few processes, each after a (reset).
constexpr std::size_t kOfOneProcess = 400;
constexpr int kQuestionMs = 60'000;

struct Question {
  std::string rule, text;
};

// The lines that cvc5 prints for a script.
std::vector<std::string> AnswersTo(const std::string& script, const std::string& name) {
  const testing::TempFolder folder;
  const std::string file = folder.Write(name, script);
  const auto result =
      testing::Run({"cvc5", "--lang=smt2", fmt::format("--tlimit-per={}", kQuestionMs), file},
                   {.limit = std::chrono::seconds(1500)});
  EXPECT_FALSE(result.timed_out);
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out.substr(0, 2000);
  std::vector<std::string> lines;
  std::istringstream in(result.out);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Cvc5Test, ConfirmsWhatTheProofsOfTrueRulesRelyOn) {
  std::vector<Question> questions;
  int rules = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.parsed.expect != rules::Expect::kProved || !c.parsed.rule.ok()) continue;
    ++rules;
    Budget budget;
    budget.solver.on_obligation = [&](const smt::Obligation& told) {
      if (told.answer != smt::Obligation::Answer::kUnsat) return;
      questions.push_back({c.file + ": " + c.parsed.name, told.text});
    };
    ASSERT_TRUE(Prove(*c.parsed.rule, budget).ok());
  }
  ASSERT_GT(questions.size(), std::size_t(rules) / 2);
  for (std::size_t first = 0; first < questions.size(); first += kOfOneProcess) {
    const std::size_t last = std::min(first + kOfOneProcess, questions.size());
    std::string script;
    for (std::size_t k = first; k < last; ++k) script += questions[k].text + "(reset)\n";
    const std::vector<std::string> answers = AnswersTo(script, "questions.smt2");
    ASSERT_EQ(answers.size(), last - first);
    for (std::size_t k = first; k < last; ++k) {
      EXPECT_EQ(answers[k - first], "unsat") << questions[k].rule << "\n" << questions[k].text;
    }
  }
  fmt::print("cvc5 confirms {} questions of {} rules\n", questions.size(), rules);
}

// And what Z3 found satisfiable is satisfiable: the printer does not lose what is asked.
TEST(Cvc5Test, AgreesOnWhatIsSatisfiable) {
  std::string script;
  std::size_t count = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (c.file.find("matmul") == std::string::npos || !c.parsed.rule.ok()) continue;
    Budget budget;
    budget.solver.on_obligation = [&](const smt::Obligation& told) {
      if (told.answer != smt::Obligation::Answer::kSat) return;
      script += told.text + "(reset)\n";
      ++count;
    };
    Proof proof(*c.parsed.rule, budget);
    if (!proof.CheckForm()) (void)proof.Equality();
  }
  ASSERT_GT(count, 3u);
  EXPECT_THAT(AnswersTo(script, "satisfiable.smt2"),
              ::testing::AllOf(::testing::SizeIs(count), ::testing::Each("sat")));
}

}  // namespace
}  // namespace tenon::verifier
