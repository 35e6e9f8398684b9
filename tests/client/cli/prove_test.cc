// tenon prove: verdicts, expectations, counterexamples, and rule files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using testing::CountLines;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunResult;
using ::testing::StartsWith;
using testing::TempFolder;
using testing::Tenon;

constexpr const char* kTrue = R"(rule distribute
given   a[m,k] b[k,n] c[k,n]
source  MatMul(a, Add(b, c))
target  Add(MatMul(a, b), MatMul(a, c))
)";
constexpr const char* kFalse = R"(rule relu_of_sum
given   a[m,n] b[m,n]
source  Relu(Add(a, b))
target  Add(Relu(a), Relu(b))
)";

TEST(ProveTest, ATrueRuleIsProvedAndExitsWithZero) {
  TempFolder folder;
  const RunResult r = Tenon({"prove", folder.Write("true.rules", kTrue)});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("distribute"));
  EXPECT_THAT(r.out, HasSubstr("proved"));
}

TEST(ProveTest, AFalseRuleIsRefutedWithReadableValuesAndExitsWithOne) {
  TempFolder folder;
  const RunResult r = Tenon({"prove", folder.Write("false.rules", kFalse)});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.out, HasSubstr("refuted"));
  EXPECT_THAT(r.out, HasSubstr("m = "));
  EXPECT_THAT(r.out, HasSubstr("a["));
  EXPECT_THAT(r.out, HasSubstr("source"));
  EXPECT_THAT(r.out, HasSubstr("target"));
}

TEST(ProveTest, ExpectDecidesTheExitCode) {
  TempFolder folder;
  const auto exit_code = [&](const std::string& rule, const std::string& expect) {
    return Tenon({"prove", folder.Write("x.rules", rule + "expect " + expect + "\n")}).exit_code;
  };
  EXPECT_EQ(exit_code(kTrue, "proved"), 0);
  EXPECT_EQ(exit_code(kTrue, "not-proved"), 1);
  EXPECT_EQ(exit_code(kTrue, "refuted"), 1);
  EXPECT_EQ(exit_code(kFalse, "refuted"), 0);
  EXPECT_EQ(exit_code(kFalse, "not-proved"), 0);
  EXPECT_EQ(exit_code(kFalse, "proved"), 1);
}

TEST(ProveTest, IllFormedAndVacuousRulesAreVerdictsAndNotErrors) {
  TempFolder folder;
  const std::string ill = folder.Write("ill.rules",
                                       "rule misfit\n"
                                       "given a[2,3] b[4,5]\n"
                                       "source MatMul(a, b)\n"
                                       "target MatMul(a, b)\n"
                                       "expect ill-formed\n");
  EXPECT_EQ(Tenon({"prove", ill}).exit_code, 0);
  const std::string vacuous = folder.Write("vacuous.rules",
                                           "rule never\n"
                                           "given a[m,n] b[m,n]\n"
                                           "source Add(a, b)\n"
                                           "target Add(a, a)\n"
                                           "where m >= 3, m <= 2\n"
                                           "expect vacuous\n");
  EXPECT_EQ(Tenon({"prove", vacuous}).exit_code, 0);
}

TEST(ProveTest, JsonHasOneEntryARuleAndNothingElseIsOnStdout) {
  TempFolder folder;
  const std::string a = folder.Write("a.rules", kTrue);
  const std::string b = folder.Write("b.rules", std::string(kFalse) + "expect refuted\n" + kTrue);
  const RunResult r = Tenon({"prove", a, b, "--json", "-"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const json document = json::parse(r.out);
  ASSERT_EQ(document["rules"].size(), 3u);
  EXPECT_EQ(document["proved"], 2);
  EXPECT_EQ(document["refuted"], 1);
  EXPECT_EQ(document["unproved"], 0);
  EXPECT_EQ(document["unexpected"], 0);
  const json& refuted = document["rules"][1];
  EXPECT_EQ(refuted["file"], b);
  EXPECT_EQ(refuted["line"], 1);
  EXPECT_EQ(refuted["name"], "relu_of_sum");
  EXPECT_EQ(refuted["verdict"], "refuted");
  EXPECT_EQ(refuted["expect"], "refuted");
  EXPECT_EQ(refuted["as_expected"], true);
  EXPECT_TRUE(refuted["seconds"].is_number());
  const json& example = refuted["counterexample"];
  EXPECT_TRUE(example["sizes"].contains("m"));
  ASSERT_EQ(example["inputs"].size(), 2u);
  EXPECT_EQ(example["inputs"][0]["name"], "a");
  EXPECT_EQ(example["inputs"][0]["extents"].size(), 2u);
  // Relu(a + b) and Relu(a) + Relu(b) differ where the signs do: two values matter, and no others.
  int not_zero = 0;
  for (const json& input : example["inputs"]) {
    for (const json& value : input["values"]) {
      if (value == 0.0) continue;
      ++not_zero;
      EXPECT_EQ(std::abs(value.get<double>()), 1.0);
    }
  }
  EXPECT_EQ(not_zero, 2);
  EXPECT_EQ(example["source_value"], 0.0);
  EXPECT_EQ(example["target_value"], 1.0);
  EXPECT_FALSE(document["rules"][0].contains("counterexample"));
}

TEST(ProveTest, RuleSelectsByName) {
  TempFolder folder;
  const std::string file = folder.Write("both.rules", std::string(kTrue) + kFalse);
  EXPECT_EQ(Tenon({"prove", file, "--rule", "distribute"}).exit_code, 0);
  EXPECT_EQ(Tenon({"prove", file, "--rule", "relu_of_sum"}).exit_code, 1);
  const RunResult none = Tenon({"prove", file, "--rule", "nobody"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("nobody"));
}

TEST(ProveTest, TheSameVerdictsTwice) {
  TempFolder folder;
  const std::string file = folder.Write("both.rules", std::string(kTrue) + kFalse);
  json first = json::parse(Tenon({"prove", file, "--json", "-"}).out);
  json second = json::parse(Tenon({"prove", file, "--json", "-"}).out);
  for (json* document : {&first, &second}) {
    document->erase("seconds");
    for (json& rule : (*document)["rules"]) rule.erase("seconds");
  }
  EXPECT_EQ(first, second);
}

TEST(ProveTest, TheCorporaEndAsTheyExpect) {
  std::vector<std::string> arguments = {"prove", "--json", "-"};
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(TENON_SOURCE_DIR "/tests/rules")) {
    // The hundreds of axioms have a test of their own.
    const bool axiom = entry.path().parent_path().filename() == "axioms";
    if (entry.path().extension() == ".rules" && !axiom) arguments.push_back(entry.path().string());
  }
  const RunResult r = Tenon(arguments);
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json document = json::parse(r.out);
  EXPECT_EQ(document["unexpected"], 0);
  EXPECT_GE(document["proved"], 60);
  EXPECT_GE(document["refuted"], 10);
  std::vector<double> seconds;
  for (const json& rule : document["rules"]) seconds.push_back(rule["seconds"]);
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  std::cout << seconds.size() << " rules, median " << median * 1000 << " ms, slowest "
            << seconds.back() * 1000 << " ms\n";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(median, 0.03);
#endif
}

TEST(SmtLibTest, EachQuestionIsAScriptThatAnotherSolverAnswersAlike) {
  TempFolder folder;
  const std::string kSplit =
      "rule split/k\ngiven a[m,k] b[k,n]\nattr h >= 1\nsource MatMul(a, b)\n"
      "target Add(MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h)), "
      "MatMul(Slice(a, axis=1, start=h, end=k), Slice(b, axis=0, start=h, end=k)))\nwhere h < k\n";
  const std::string file = folder.Write("x.rules", kTrue + kSplit);
  const std::string out = folder / "made/questions";
  const RunResult r = Tenon({"prove", file, "--smt-lib", out, "--json", "-"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json document = json::parse(r.out);
  int asked = 0;
  for (const json& rule : document["rules"]) asked += rule["queries"].get<int>();
  std::vector<std::string> scripts;
  for (const auto& entry : std::filesystem::directory_iterator(out)) {
    scripts.push_back(entry.path().string());
  }
  int unsatisfiable = 0;
  EXPECT_EQ(static_cast<int>(scripts.size()), asked);
  for (const std::string& script : scripts) {
    SCOPED_TRACE(script);
    EXPECT_THAT(std::filesystem::path(script).filename().string(), StartsWith("0001-split_k-"));
    const std::string text = testing::ReadFile(script);
    const std::string answer =
        text.find("(set-info :status unsat)\n") != std::string::npos ? "unsat\n" : "sat\n";
    EXPECT_THAT(text, HasSubstr("(set-info :status " + answer.substr(0, answer.size() - 1) + ")"));
    unsatisfiable += answer == "unsat\n" ? 1 : 0;
    EXPECT_THAT(text, HasSubstr("; k\n"));  // Symbols are named.
    const RunResult other = testing::Run({"cvc5", "--lang=smt2", script});
    EXPECT_EQ(other.exit_code, 0) << other.err;
    EXPECT_EQ(other.out, answer);
  }
  EXPECT_GE(unsatisfiable, 3);
}

TEST(SmtLibTest, VerdictsAreThoseWithoutIt) {
  TempFolder folder;
  const std::string file = folder.Write("both.rules", std::string(kTrue) + kFalse);
  json with =
      json::parse(Tenon({"prove", file, "--json", "-", "--smt-lib", folder / "questions"}).out);
  json without = json::parse(Tenon({"prove", file, "--json", "-"}).out);
  for (json* document : {&with, &without}) {
    document->erase("seconds");
    for (json& rule : (*document)["rules"]) rule.erase("seconds");
  }
  EXPECT_EQ(with, without);
}

TEST(SmtLibTest, AFolderThatCannotBeMadeIsNamed) {
  TempFolder folder;
  const std::string file = folder.Write("x.rules", kTrue);
  const RunResult r = Tenon({"prove", file, "--smt-lib", file + "/questions"});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(CountLines(r.err), 1);
  EXPECT_THAT(r.err, HasSubstr(file + "/questions"));
  EXPECT_THAT(r.err, HasSubstr("--smt-lib"));
}

struct BadText {
  std::string name, text, says;
};

TEST(BadRuleTextTest, OneLineThatNamesFileLineAndFault) {
  const std::vector<BadText> table = {
      {"empty", "", "no rule"},
      {"comment", "# nothing here\n", "no rule"},
      {"noise", std::string("\x00\xff\xfe\x01", 4), "bad.rules"},
      {"keyword", "rule x\ngibt a[m]\nsource Relu(a)\ntarget Relu(a)\n", "bad.rules:2"},
      {"operator", "rule x\ngiven a[m]\nsource Rely(a)\ntarget Relu(a)\n", "Rely"},
      {"unknown name", "rule x\ngiven a[m]\nsource Relu(b)\ntarget Relu(a)\n", "bad.rules:3"},
      {"attribute", "rule x\ngiven a[m,n]\nsource Concat(a, axes=1)\ntarget a\n", "axes"},
      {"unclosed", "rule x\ngiven a[m\nsource Relu(a)\ntarget a\n", "bad.rules:"},
      {"cut", "rule x\ngiven a[m,n]\nsource Relu(", "bad.rules:"},
      {"no target", "rule x\ngiven a[m,n]\nsource Relu(a)\n", "target"},
      {"number", "rule x\ngiven a[99999999999999999999]\nsource Relu(a)\ntarget a\n",
       "bad.rules:2"},
      {"expect", "rule x\ngiven a[m]\nsource Relu(a)\ntarget a\nexpect maybe\n", "maybe"},
  };
  for (const BadText& bad : table) {
    SCOPED_TRACE(bad.name);
    TempFolder folder;
    const RunResult r =
        Tenon({"prove", folder.Write("bad.rules", bad.text), "--json", folder / "out.json"});
    EXPECT_EQ(r.exit_code, 3) << r.out << r.err;
    EXPECT_EQ(CountLines(r.err), 1) << r.err;
    EXPECT_THAT(r.err, StartsWith("tenon: "));
    EXPECT_THAT(r.err, HasSubstr(bad.says));
    EXPECT_EQ(folder.Names(), (std::vector<std::string>{"bad.rules"}));
  }
}

TEST(BadRuleTextTest, DeepNestingIsAnErrorAndNoCrash) {
  TempFolder folder;
  std::string term;
  for (int k = 0; k < 100000; ++k) term += "Relu(";
  const RunResult r =
      Tenon({"prove", folder.Write("deep.rules", "rule x\ngiven a[m]\nsource " + term)});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(CountLines(r.err), 1);
}

TEST(BadRuleTextTest, AMissingFileAndAFolderAreNamed) {
  TempFolder folder;
  for (const std::string& path : {folder / "none.rules", folder.path()}) {
    const RunResult r = Tenon({"prove", path});
    EXPECT_EQ(r.exit_code, 3);
    EXPECT_EQ(CountLines(r.err), 1);
    EXPECT_THAT(r.err, HasSubstr(path));
  }
}

TEST(ProveTest, AnInterruptedRunEndsBySignalAndWritesNothing) {
  TempFolder folder;
  std::string many;
  for (int k = 0; k < 20000; ++k) {
    std::string rule = kTrue;
    many += rule.replace(rule.find("distribute"), 10, "distribute" + std::to_string(k));
  }
  const std::string file = folder.Write("many.rules", many);
  const RunResult r = Tenon({"prove", file, "--json", folder / "out.json"},
                            {.signal = SIGINT, .signal_after = "distribute9 "});
  EXPECT_EQ(r.signal, SIGINT) << r.exit_code;
  EXPECT_THAT(r.err, HasSubstr("interrupted"));
  EXPECT_EQ(folder.Names(), (std::vector<std::string>{"many.rules"}));
}

}  // namespace
}  // namespace tenon
