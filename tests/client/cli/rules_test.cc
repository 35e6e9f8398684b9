// tenon rules import and tenon pack export, there and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/client/cli/home.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::RunResult;
using ::testing::StartsWith;

const std::string kData = TENON_SOURCE_DIR "/tests/interop/data/";

class RulesTest : public HomeTest {
 protected:
  // A pack of the small part of the universe of matrices.
  std::string Pack() const {
    const RunResult r = Tenon({"generate", "--universe", "matrix", "--max-operators", "2", "--out",
                               home_ / "matrix.pack"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return home_ / "matrix.pack";
  }
};

TEST_F(RulesTest, ImportJudgesBothFormatsAlikeAndItsTextProves) {
  json counts[2];
  const std::pair<std::string, std::string> files[] = {{"taso", "patterns.pb"},
                                                       {"flexflow", "patterns.json"}};
  for (int k = 0; k < 2; ++k) {
    const auto& [format, file] = files[k];
    const RunResult r = Tenon({"rules", "import", "--format", format, kData + file, "-o",
                               home_ / "out.rules", "--markdown", home_ / "out.md", "--json", "-"});
    EXPECT_EQ(r.exit_code, 1) << r.err;  // Some are refuted.
    const json report = json::parse(r.out);
    EXPECT_EQ(report["conditional"], 12);
    EXPECT_EQ(report["refuted"], 3);
    EXPECT_EQ(report["unknown"], 0);
    EXPECT_EQ(report["rules"].size(), 28u);
    const json& beside = report["rules"][1]["forms"][0];
    EXPECT_EQ(beside["verdict"], "proved under conditions");
    EXPECT_EQ(beside["without_conditions"], "refuted");
    EXPECT_NE(beside["counterexample"]["source_value"], beside["counterexample"]["target_value"]);
    EXPECT_EQ(Tenon({"prove", home_ / "out.rules"}).exit_code, 0);
    EXPECT_THAT(testing::ReadFile(home_ / "out.md"), HasSubstr("28 rules: 13 proved, 12 proved "));
    for (const char* field : {"proved", "conditional", "refuted"}) {
      counts[k][field] = report[field];
    }
  }
  EXPECT_EQ(counts[0], counts[1]);
}

TEST_F(RulesTest, ImportSaysOnTheTerminalWhatIsWrongAndWhere) {
  const RunResult r = Tenon({"rules", "import", "--format", "flexflow", kData + "patterns.json"});
  EXPECT_THAT(r.out, AllOf(HasSubstr("convolution 0 has one group and convolution 1 has one group"),
                           HasSubstr("as it stands, it is wrong:"), HasSubstr("by the source and"),
                           HasSubstr("28 rules: 13 proved, 12 proved under conditions, 3 refuted, "
                                     "0 unknown")));
}

TEST_F(RulesTest, BrokenFilesAreBadInputAndNothingIsWritten) {
  const std::string bytes = testing::ReadFile(kData + "patterns.pb");
  const std::string cut = home_.Write("cut.pb", bytes.substr(0, bytes.size() / 2));
  const RunResult r =
      Tenon({"rules", "import", "--format", "taso", cut, "-o", home_ / "out.rules"});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.err, AllOf(StartsWith("tenon: "), HasSubstr("cut.pb: rule ")));
  for (const auto& [format, file] :
       {std::pair{"taso", "patterns.json"}, std::pair{"flexflow", "patterns.pb"}}) {
    const RunResult other =
        Tenon({"rules", "import", "--format", format, kData + file, "-o", home_ / "out.rules"});
    EXPECT_EQ(other.exit_code, 3);
    EXPECT_THAT(other.err, HasSubstr(file));
  }
  EXPECT_EQ(Tenon({"rules", "import", "--format", "taso", home_ / "none.pb"}).exit_code, 3);
  EXPECT_EQ(Tenon({"rules", "import", "--format", "onnx", cut}).exit_code, 2);
  for (const std::string& name : home_.Names()) EXPECT_NE(name, "out.rules");
}

TEST_F(RulesTest, APackGoesToOthersAndBack) {
  const std::string pack = Pack();
  for (const std::string format : {"taso", "flexflow"}) {
    const std::string file = home_ / ("rules." + format);
    const RunResult r =
        Tenon({"pack", "export", "--format", format, pack, "-o", file, "--json", "-"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const json report = json::parse(r.out);
    const int written = report["written"], directions = report["directions"];
    EXPECT_GT(written, 3);
    EXPECT_EQ(written + static_cast<int>(report["left_out"].size()), directions);
    for (const json& left_out : report["left_out"]) EXPECT_NE(left_out["reason"], "");
    const RunResult back = Tenon({"rules", "import", "--format", format, file, "--json", "-"});
    EXPECT_EQ(back.exit_code, 0) << back.err;
    EXPECT_EQ(json::parse(back.out)["proved"], written);
  }
}

TEST_F(RulesTest, WhatIsLeftOutIsSaid) {
  const std::string pack = Pack();
  const RunResult r = Tenon({"pack", "export", "--format", "egg", pack, "-o", home_ / "rules.rs"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const std::string text = testing::ReadFile(home_ / "rules.rs");
  EXPECT_THAT(text, HasSubstr("rewrite!(\""));
  const auto count = [](const std::string& in, const std::string& what) {
    int n = 0;
    for (std::size_t at = 0; (at = in.find(what, at)) != std::string::npos; ++at) ++n;
    return n;
  };
  const json report = json::parse(
      Tenon({"pack", "export", "--format", "egg", pack, "-o", home_ / "rules.rs", "--json", "-"})
          .out);
  const int left_out = static_cast<int>(report["left_out"].size());
  EXPECT_EQ(count(text, "rewrite!("), report["written"]);
  EXPECT_EQ(count(text, ": left out: "), left_out);
  EXPECT_EQ(count(r.out, "left out: "), left_out);
  EXPECT_THAT(r.out, HasSubstr(std::to_string(left_out) + " left out\n"));
}

TEST_F(RulesTest, GraphvizDrawsEveryRule) {
  const std::string pack = Pack();
  const RunResult r =
      Tenon({"pack", "export", "--format", "dot", pack, "-o", home_ / "rules.dot", "--json", "-"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json report = json::parse(r.out);
  EXPECT_EQ(report["written"], report["rules"]);
  EXPECT_TRUE(report["left_out"].empty());
  const RunResult drawn = testing::Run({"dot", "-Tsvg", home_ / "rules.dot"});
  EXPECT_EQ(drawn.exit_code, 0) << drawn.err;
  EXPECT_EQ(drawn.err, "");
  std::size_t pages = 0;
  for (std::size_t at = 0; (at = drawn.out.find("<svg", at)) != std::string::npos; ++at) ++pages;
  EXPECT_EQ(pages, report["rules"]);
}

}  // namespace
}  // namespace tenon
