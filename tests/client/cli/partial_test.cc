// tenon partial: regions, corrected rules and pictures by the program.
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
using testing::RunResult;
using ::testing::StartsWith;
using testing::TempFolder;
using testing::Tenon;

const std::string kPairs = std::string(TENON_SOURCE_DIR) + "/tests/rules/false/partial.rules";

TEST(PartialTest, RegionsAndTheCorrectedRuleArePrinted) {
  const RunResult r = Tenon({"partial", kPairs, "--rule", "conv_height"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_THAT(r.out, StartsWith("conv_height  18 regions: 12 equal, 6 unequal\n"
                                "    where H >= 3, W >= 3\n"
                                "    filter: 54 of 72 positions, 6 regions differ; a difference is "
                                "missed with probability at most 2/2305843009213693951 = 8.7e-19\n"
                                "    unequal  [0, N) x [0, F) x [H-1, H) x [0, 1)\n"));
  EXPECT_THAT(r.out, HasSubstr("    recompute: proved, 2*F*W*N of 2*F*W*H*N elements are computed "
                               "anew\n        Concat(Slice(Conv("));
  EXPECT_THAT(r.out, HasSubstr("    a gap of 1 along H: proved, nothing is computed anew\n"));
}

TEST(PartialTest, WhatIsWrittenIsProvedByProve) {
  TempFolder folder;
  const std::string out = folder / "corrected.rules", svg = folder / "regions.svg";
  const RunResult r =
      Tenon({"partial", kPairs, "--rule", "batch_to_height", "-o", out, "--svg", svg});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const RunResult proved = Tenon({"prove", out});
  EXPECT_EQ(proved.exit_code, 0) << proved.out;
  EXPECT_THAT(proved.out, HasSubstr("2 rules, 2 proved; all as expected"));
  EXPECT_THAT(testing::ReadFile(svg), StartsWith("<svg "));
}

TEST(PartialTest, JsonSaysTheStateOfEachRegion) {
  const RunResult r = Tenon({"partial", kPairs, "--rule", "lecture_width_to_batch", "--json", "-"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const json pair = json::parse(r.out)["pairs"][0];
  EXPECT_EQ(pair["equal"], 12);
  EXPECT_EQ(pair["unequal"], 6);
  EXPECT_EQ(pair["unknown"], 0);
  EXPECT_EQ(pair["regions"].size(), 18u);
  EXPECT_EQ(pair["filter"]["positions"], 66);
  EXPECT_EQ(pair["filter"]["elements"], 384);
  EXPECT_EQ(pair["filter"]["prime"], 2305843009213693951);
  EXPECT_EQ(pair["axes"][3]["pieces"],
            json({"[0, 1)", "[1, 3)", "[3, 4)", "[4, 5)", "[5, 7)", "[7, 8)"}));
  EXPECT_EQ(pair["regions"][2]["state"], "unequal");
  EXPECT_EQ(pair["regions"][2]["pieces"], json({0, 0, 0, 2}));
  EXPECT_EQ(pair["corrections"][0]["verdict"], "proved");
  EXPECT_EQ(pair["corrections"][0]["recomputed"], "96");
  EXPECT_EQ(pair["corrections"][0]["share"], 0.25);
}

// docs/partial-equivalence.md shows them; after a change that is meant, draw them again.
TEST(PartialTest, ThePicturesOfTheDocumentationAreOfThisProgram) {
  TempFolder folder;
  for (const std::string name :
       {"lecture_width_to_batch", "conv_symbolic_height", "batch_to_height", "pad_early"}) {
    const std::string svg = folder / "regions.svg";
    const RunResult r = Tenon({"partial", kPairs, "--rule", name, "--svg", svg});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(testing::ReadFile(svg), testing::ReadFile(std::string(TENON_SOURCE_DIR) +
                                                        "/docs/pictures/partial_" + name + ".svg"))
        << name;
  }
}

TEST(PartialTest, APairOfWhichNothingIsEqualIsDeclined) {
  TempFolder folder;
  const std::string out = folder / "corrected.rules";
  const RunResult r = Tenon({"partial", kPairs, "--rule", "lecture_mirrored", "-o", out});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(r.out, HasSubstr("18 regions: 0 equal, 18 unequal\n"));
  EXPECT_THAT(r.out, HasSubstr("not recomputed: no region is equal"));
  EXPECT_EQ(testing::ReadFile(out), "");
}

TEST(PartialTest, BadInputIsNamedInOneLineAndNothingIsWritten) {
  TempFolder folder;
  const std::string bad = folder.Write("bad.rules", "rule x\ngiven a[m]\nsource Rely(a)\n");
  const std::string misfit = folder.Write(
      "misfit.rules", "rule x\ngiven a[2,3] b[4,5]\nsource MatMul(a, b)\ntarget MatMul(b, a)\n");
  const std::string svg = folder / "all.svg";
  const struct {
    std::vector<std::string> arguments;
    int exit_code;
    const char* says;
  } cases[] = {
      {{bad}, 3, "bad.rules:3"},
      {{misfit}, 3, "misfit.rules:1"},
      {{folder / "none.rules"}, 3, "none.rules"},
      {{kPairs, "--rule", "nobody"}, 3, "nobody"},
      {{kPairs, "--svg", svg}, 3, "--rule"},
  };
  for (const auto& c : cases) {
    std::vector<std::string> arguments = c.arguments;
    arguments.insert(arguments.begin(), "partial");
    const RunResult r = Tenon(arguments);
    EXPECT_EQ(r.exit_code, c.exit_code) << r.err;
    EXPECT_EQ(CountLines(r.err), 1) << r.err;
    EXPECT_THAT(r.err, HasSubstr(c.says));
  }
  EXPECT_THAT(folder.Names(), ::testing::ElementsAre("bad.rules", "misfit.rules"));
}

}  // namespace
}  // namespace tenon
