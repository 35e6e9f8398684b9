// Rule files of TASO and FlexFlow: read alike, written and read back, and refused by name when they
// are broken.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "interop/flexflow_file.h"
#include "interop/taso_file.h"
#include "tests/support/process.h"

namespace tenon::interop {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kData = TENON_SOURCE_DIR "/tests/interop/data/";

std::string Taso() { return testing::ReadFile(kData + "patterns.pb"); }
std::string FlexFlow() { return testing::ReadFile(kData + "patterns.json"); }

std::string ErrorOf(const StatusOr<std::vector<PeerRule>>& rules) {
  EXPECT_FALSE(rules.ok());
  return rules.ok() ? "" : base::Message(rules.status());
}

TEST(PeerFilesTest, TheDataIsWhatTheScriptMakes) {
  testing::TempFolder folder;
  const auto made =
      testing::Run({"python3", TENON_SOURCE_DIR "/tests/interop/make_rules.py", folder.path()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_EQ(testing::ReadFile(folder / "patterns.pb"), Taso());
  EXPECT_EQ(testing::ReadFile(folder / "patterns.json"), FlexFlow());
}

TEST(PeerFilesTest, BothFormatsSayTheSame) {
  auto taso = ReadTaso(Taso(), "a.pb");
  auto flexflow = ReadFlexFlow(FlexFlow(), "a.json");
  ASSERT_TRUE(taso.ok()) << taso.status();
  ASSERT_TRUE(flexflow.ok()) << flexflow.status();
  ASSERT_EQ(taso->size(), flexflow->size());
  ASSERT_GE(taso->size(), 25u);
  EXPECT_EQ((*taso)[1].name, "taso.1");
  EXPECT_EQ((*flexflow)[1].name, "beside");
  for (std::size_t k = 0; k < taso->size(); ++k) {
    (*taso)[k].name = (*flexflow)[k].name;
    EXPECT_EQ((*taso)[k], (*flexflow)[k]) << (*flexflow)[k].name;
  }
}

TEST(PeerFilesTest, WhatIsWrittenIsReadBack) {
  const auto rules = ReadFlexFlow(FlexFlow(), "a.json");
  ASSERT_TRUE(rules.ok());
  const auto again = ReadFlexFlow(WriteFlexFlow(*rules), "b.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *rules);
  auto taso = ReadTaso(WriteTaso(*rules), "b.pb");
  ASSERT_TRUE(taso.ok()) << taso.status();
  for (std::size_t k = 0; k < taso->size(); ++k) (*taso)[k].name = (*rules)[k].name;
  EXPECT_EQ(*taso, *rules);
}

// The ends of rules are ends of files, too: these are no errors, but shorter files.
TEST(PeerFilesTest, ATruncatedFileIsRefusedWithFileAndRule) {
  const std::string bytes = Taso();
  const std::size_t all = ReadTaso(bytes, "a.pb")->size();
  std::size_t shorter = 0;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    const auto rules = ReadTaso(std::string_view(bytes).substr(0, n), "cut.pb");
    if (rules.ok()) {
      EXPECT_LT(rules->size(), all);
      ++shorter;
    } else if (n == 0) {
      EXPECT_EQ(ErrorOf(rules), "cut.pb: there is no rule in it");
    } else {
      EXPECT_THAT(ErrorOf(rules), StartsWith(fmt::format("cut.pb: rule {}: ", shorter)));
    }
  }
  EXPECT_EQ(shorter, all - 1);
  const std::string text = FlexFlow();
  for (std::size_t n = 0; n + 2 < text.size(); n += 97) {
    EXPECT_THAT(ErrorOf(ReadFlexFlow(std::string_view(text).substr(0, n), "cut.json")),
                StartsWith("cut.json: "));
  }
}

TEST(PeerFilesTest, RandomBytesNeverGetThrough) {
  std::mt19937_64 random(7);
  const std::string bytes = Taso(), text = FlexFlow();
  for (int trial = 0; trial < 3000; ++trial) {
    std::string changed = trial % 2 == 0 ? bytes : text;
    for (int k = 0; k < 3; ++k) {
      changed[random() % changed.size()] = static_cast<char>(random());
    }
    const auto rules = trial % 2 == 0 ? ReadTaso(changed, "r") : ReadFlexFlow(changed, "r");
    if (!rules.ok()) {
      EXPECT_THAT(base::Message(rules.status()), StartsWith("r: "));
      continue;
    }
    for (const PeerRule& rule : *rules) EXPECT_TRUE(Validate(rule).ok());
  }
  std::string noise(100'000, ' ');
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_THAT(ErrorOf(ReadTaso(noise, "noise")), StartsWith("noise: rule 0: "));
  EXPECT_THAT(ErrorOf(ReadFlexFlow(noise, "noise")), StartsWith("noise: "));
}

// Each is the first pattern with one thing wrong.
TEST(PeerFilesTest, WhatIsOutOfRangeIsNamed) {
  struct Case {
    std::string from, to, message;
  };
  const std::string first = R"("opId": -7,)";
  for (const Case& c : std::vector<Case>{
           {R"("opId": -7,)", R"("opId": 9,)",
            "operator 0 of the source (OP_CONV2D) reads "
            "operator 9, but there are only 3"},
           {R"("opId": -7,)", R"("opId": 0,)",
            "reads operator 0, which does not come before it: a "
            "cycle"},
           {R"("opId": -7,)", R"("opId": 2,)", "does not come before it"},
           {R"("opId": -7,)", R"("opId": 99999999999,)", "\"opId\" is no number of 32 bits"},
           {R"("opId": -7,)", R"("opId": "x",)", "\"opId\" is no number"},
           {R"("opId": -7,)", R"("op": -7,)", "\"opId\" is missing"},
           {R"("tsId": 0)", R"("tsId": 1)",
            "reads output 1 of variable -7, which has "
            "only output 0"},
           {R"("opId": -11,)", R"("opId": -12,)",
            "operator 1 of the target (OP_CONCAT) reads "
            "variable -11, which the source does not have"},
           {R"("srcOpId": 2)", R"("srcOpId": 3)",
            "an output is mapped to operator 3 of the "
            "source, which has 3 operators"},
           {R"("dstTsId": 0)", R"("dstTsId": 1)", "mapped to output 1 of operator 2 of the target"},
           {R"("PM_PAD")", R"("PM_ACTI")", "OP_CONV2D has PM_ACTI twice"},
           {R"("PM_PAD")", R"("PM_WRONG")", "OP_CONV2D has a parameter PM_WRONG, which is none"},
           {R"("para")", R"("parameters")", "\"para\" is missing"},
           {R"("srcOp")", R"("source")", "\"srcOp\" is missing"},
       }) {
    std::string text = FlexFlow();
    text.replace(text.find(c.from), c.from.size(), c.to);
    EXPECT_THAT(ErrorOf(ReadFlexFlow(text, "bad.json")),
                AllOf(StartsWith("bad.json: rule 0: "), HasSubstr(c.message)));
  }
}

TEST(PeerFilesTest, NumbersThatAreNoOperatorAreNamed) {
  auto rules = *ReadTaso(Taso(), "a.pb");
  rules.resize(2);
  std::string bytes = WriteTaso(rules);
  // The type of the first operator of the second rule: after two tags with lengths.
  const std::size_t second = bytes.find('\x0a', 2 + static_cast<unsigned char>(bytes[1]));
  ASSERT_NE(second, std::string::npos);
  for (std::size_t k = bytes.size() / 2; k + 1 < bytes.size(); ++k) {
    if (bytes[k] == 8 && bytes[k + 1] == 3) {
      bytes[k + 1] = 99;
      break;
    }
  }
  EXPECT_EQ(ErrorOf(ReadTaso(bytes, "bad.pb")),
            "bad.pb: rule 1: 99 is not the number of an operator");
}

TEST(PeerFilesTest, HugeFilesAreRefused) {
  EXPECT_THAT(ErrorOf(ReadFlexFlow(std::string(1'000'000, '['), "deep.json")),
              HasSubstr("deep.json: it is nested deeper than"));
  PeerRule rule = (*ReadTaso(Taso(), "a.pb"))[11];
  rule.source.resize(1);
  for (int k = 0; k < 70; ++k) rule.source.push_back(rule.source[0]);
  EXPECT_THAT(base::Message(Validate(rule)), HasSubstr("the source has 71 operators"));
}

TEST(PeerFilesTest, ForeignOperatorsAreReadAndKept) {
  std::string text = FlexFlow();
  const std::string from = R"("OP_CONV2D")";
  text.replace(text.find(from), from.size(), R"("OP_PARTITION")");
  const auto rules = ReadFlexFlow(text, "a.json");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ((*rules)[0].source[0].type, PeerType::kForeign);
  EXPECT_EQ((*rules)[0].source[0].name(), "OP_PARTITION");
}

}  // namespace
}  // namespace tenon::interop
