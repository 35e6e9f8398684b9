// TASO's own rule file, judged: the facts that docs/taso-rules.md states, and the page itself.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interop/judge.h"
#include "interop/report.h"
#include "interop/taso_file.h"
#include "tests/support/process.h"

namespace tenon::interop {
namespace {

using ::testing::ElementsAre;

TEST(TasoTest, AllRulesAreProvedAndElevenNeedConditions) {
  const auto rules = ReadTaso(testing::ReadFile(TENON_TASO_RULES), "graph_subst.pb");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 133u);
  std::vector<std::string> conditional;
  for (const PeerRule& rule : *rules) {
    const auto judged = Judge(rule);
    ASSERT_TRUE(judged.ok()) << rule.name << ": " << judged.status();
    if (judged->finding != Finding::kConditional) {
      EXPECT_EQ(NameOf(judged->finding), "proved") << rule.name << ": " << Remark(*judged);
      continue;
    }
    conditional.push_back(rule.name);
    for (const Judgement& j : judged->ranks) {
      EXPECT_TRUE(j.verdict && j.verdict->counterexample) << rule.name;
    }
  }
  EXPECT_THAT(conditional,
              ElementsAre("taso.98", "taso.99", "taso.100", "taso.105", "taso.125", "taso.126",
                          "taso.127", "taso.128", "taso.129", "taso.130", "taso.131"));
}

TEST(TasoTest, ThePageIsWhatTheCommandWrites) {
  testing::TempFolder folder;
  const auto run = testing::Tenon(
      {"rules", "import", "--format", "taso", TENON_TASO_RULES, "--markdown", folder / "page.md"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(testing::ReadFile(folder / "page.md"),
            testing::ReadFile(TENON_SOURCE_DIR "/docs/taso-rules.md"));
}

}  // namespace
}  // namespace tenon::interop
