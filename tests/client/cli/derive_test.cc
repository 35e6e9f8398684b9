// tenon derive: steps that a reader can follow, axioms of one's own, and files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

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

constexpr const char* kDistribute = R"(rule distribute
given   a[m,k] b[k,n] c[k,n]
source  MatMul(a, Add(b, c))
target  Add(MatMul(a, b), MatMul(a, c))
)";
// True, and far from any axiom: two products of blocks are one.
constexpr const char* kSplit = R"(rule split_k
given   a[m,k] b[k,n]
attr    h >= 1
source  MatMul(a, b)
target  Add(MatMul(Slice(a, axis=1, start=0, end=h), Slice(b, axis=0, start=0, end=h)),
            MatMul(Slice(a, axis=1, start=h, end=k), Slice(b, axis=0, start=h, end=k)))
where   h < k
)";
constexpr const char* kFalse = R"(rule relu_of_sum
given   a[m,n] b[m,n]
source  Relu(Add(a, b))
target  Add(Relu(a), Relu(b))
)";
// Two steps apart by kLaws, and by nothing less.
constexpr const char* kLaws = R"(rule inside
given   a[m,n] b[m,n]
source  Neg(Add(a, b))
target  Add(Neg(a), Neg(b))

rule twice
given   a[m,n]
source  Neg(Neg(a))
target  a
)";
constexpr const char* kNegated = R"(rule negated
given   x[m,n] y[m,n]
source  Neg(Add(Neg(x), y))
target  Add(x, Neg(y))
)";

TEST(DeriveTest, StepsLeadFromTheSourceToTheTarget) {
  TempFolder folder;
  const RunResult r = Tenon({"derive", folder.Write("laws.rules", kNegated), "--axioms",
                             folder.Write("axioms.rules", kLaws), "--steps"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_THAT(r.out, HasSubstr("negated  derived in 2 steps, with m = "));
  EXPECT_THAT(r.out, HasSubstr("        Neg(Add(Neg(x), y))\n"
                               "   1. inside\n"
                               "     => Add(Neg(Neg(x)), Neg(y))\n"
                               "   2. twice at operand 0\n"
                               "     => Add(x, Neg(y))\n"));
  EXPECT_THAT(r.out, HasSubstr("1 of 1 rules derived from 2 axioms\n"));
}

TEST(DeriveTest, WithoutAnAxiomThereIsNoWay) {
  TempFolder folder;
  const std::string one = std::string(kLaws).substr(0, std::string(kLaws).find("rule twice"));
  const RunResult r = Tenon({"derive", folder.Write("laws.rules", kNegated), "--axioms",
                             folder.Write("axioms.rules", one), "--steps"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.out, HasSubstr("negated  not derived: "));
  EXPECT_THAT(r.out, Not(HasSubstr("=>")));
}

// Sides of an equation are equal in either order.
TEST(DeriveTest, AnAxiomMayBeUsedBackwards) {
  TempFolder folder;
  const std::string back =
      "rule back\ngiven a[m,n] b[m,n]\nsource Add(Neg(a), Neg(b))\ntarget Neg(Add(a, b))\n";
  const RunResult r = Tenon({"derive", folder.Write("back.rules", back), "--axioms",
                             folder.Write("axioms.rules", kLaws), "--steps"});
  EXPECT_EQ(r.exit_code, 0) << r.err << r.out;
  EXPECT_THAT(r.out, HasSubstr("1. inside (backwards)"));
}

TEST(DeriveTest, AFalseRuleIsNotDerivedFromTheBuiltInAxioms) {
  TempFolder folder;
  const RunResult r =
      Tenon({"derive", folder.Write("mixed.rules", std::string(kDistribute) + kFalse)});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.out, HasSubstr("distribute  derived in 1 step"));
  EXPECT_THAT(r.out, HasSubstr("relu_of_sum  not derived: "));
  EXPECT_THAT(r.out, HasSubstr("1 of 2 rules derived"));
}

TEST(DeriveTest, JsonSaysWhereAndHowEachAxiomIsUsed) {
  TempFolder folder;
  const std::string file = folder.Write("two.rules", std::string(kSplit) + kFalse);
  const RunResult r = Tenon({"derive", file, "--json", "-"});
  EXPECT_EQ(r.exit_code, 1) << r.err;
  const json document = json::parse(r.out);
  EXPECT_EQ(document["derived"], 1);
  EXPECT_EQ(document["not_derived"], 1);
  EXPECT_GT(document["axioms"], 200);
  ASSERT_EQ(document["rules"].size(), 2u);
  const json& split = document["rules"][0];
  EXPECT_EQ(split["file"], file);
  EXPECT_EQ(split["name"], "split_k");
  EXPECT_EQ(split["derived"], true);
  EXPECT_TRUE(split["sizes"].contains("h"));
  EXPECT_LT(split["sizes"]["h"], split["sizes"]["k"]);
  ASSERT_EQ(split["outputs"].size(), 1u);
  EXPECT_EQ(split["outputs"][0]["from"], "MatMul(a, b)");
  const json& steps = split["outputs"][0]["steps"];
  ASSERT_GE(steps.size(), 3u);
  for (const json& step : steps) {
    EXPECT_TRUE(step["axiom"].is_string());
    EXPECT_TRUE(step["forward"].is_boolean());
    EXPECT_TRUE(step["place"].is_array());
    EXPECT_FALSE(step["inputs"].empty());
  }
  EXPECT_THAT(steps.back()["term"].get<std::string>(), StartsWith("Add(MatMul(Slice("));
  EXPECT_EQ(document["rules"][1]["derived"], false);
  EXPECT_NE(document["rules"][1]["reason"], "");
  EXPECT_TRUE(document["rules"][1]["outputs"].empty());
}

TEST(DeriveTest, TheSameStepsTwice) {
  TempFolder folder;
  const std::string file = folder.Write("split.rules", kSplit);
  EXPECT_EQ(Tenon({"derive", file, "--json", "-"}).out, Tenon({"derive", file, "--json", "-"}).out);
}

TEST(DeriveTest, RuleSelectsByName) {
  TempFolder folder;
  const std::string file = folder.Write("mixed.rules", std::string(kDistribute) + kFalse);
  EXPECT_EQ(Tenon({"derive", file, "--rule", "distribute"}).exit_code, 0);
  const RunResult none = Tenon({"derive", file, "--rule", "nobody"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("nobody"));
}

TEST(DeriveTest, BadFilesAreNamedInOneLineAndNothingIsWritten) {
  TempFolder folder;
  const std::string good = folder.Write("good.rules", kDistribute);
  const std::string bad =
      folder.Write("bad.rules", "rule x\ngiven a[m]\nsource Rely(a)\ntarget a\n");
  const std::string misfit = folder.Write(
      "misfit.rules", "rule x\ngiven a[2,3] b[4,5]\nsource MatMul(a, b)\ntarget MatMul(b, a)\n");
  const std::string empty = folder.Write("empty.rules", "# nothing\n");
  const std::vector<std::vector<std::string>> wrong = {
      {bad}, {misfit}, {empty}, {folder / "none.rules"}, {good, "--axioms", bad}};
  for (std::vector<std::string> arguments : wrong) {
    arguments.insert(arguments.begin(), "derive");
    arguments.insert(arguments.end(), {"--json", folder / "out.json"});
    const RunResult r = Tenon(arguments);
    EXPECT_EQ(r.exit_code, 3) << arguments[1] << r.out;
    EXPECT_EQ(CountLines(r.err), 1) << r.err;
    EXPECT_THAT(r.err, StartsWith("tenon: "));
  }
  EXPECT_THAT(folder.Names(),
              ::testing::ElementsAre("bad.rules", "empty.rules", "good.rules", "misfit.rules"));
}

}  // namespace
}  // namespace tenon
