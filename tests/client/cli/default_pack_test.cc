// The pack that comes with Tenon: proved, signed, in the program, and what the universes give.
#include "client/registry/default_pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/client/cli/home.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::RunResult;

const std::string kFile = TENON_SOURCE_DIR "/packs/default.pack";

class DefaultPackTest : public HomeTest {};

TEST_F(DefaultPackTest, IsTheOneOfTheRepositoryAndSmall) {
  EXPECT_EQ(registry::DefaultPackBytes(), testing::ReadFile(kFile));
  EXPECT_LT(std::filesystem::file_size(kFile), 2'000'000u);
}

TEST_F(DefaultPackTest, EveryRuleIsProvedByItsCertificate) {
  const RunResult r = testing::Run({testing::Binary("tenon-check"), "--json", kFile});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json report = json::parse(r.out);
  EXPECT_EQ(report["proved"], report["rules"]);
  EXPECT_GT(report["rules"], 500);
}

TEST_F(DefaultPackTest, IsSignedByTheKeyBesideIt) {
  const std::string key = TENON_SOURCE_DIR "/packs/default.pub";
  const RunResult r = Tenon({"pack", "verify", "default", "--key", key});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  std::string other = testing::ReadFile(key);
  other[0] = other[0] == '0' ? '1' : '0';
  const RunResult by_other =
      Tenon({"pack", "verify", "default", "--key", home_.Write("other.pub", other)});
  EXPECT_NE(by_other.exit_code, 0);
  EXPECT_THAT(by_other.err, HasSubstr("pack default: it is not signed by"));
}

// A part of what it is made of, made again: nothing of it is new to the pack.
TEST_F(DefaultPackTest, HasTheRulesOfAUniverseThatIsEnumeratedAnew) {
  const std::string part = home_ / "matrix.pack";
  ASSERT_EQ(
      Tenon({"generate", "--universe", "matrix", "--max-operators", "3", "-o", part}).exit_code, 0);
  const json before = json::parse(Tenon({"pack", "verify", "default", "--json", "-"}).out)[0];
  const json matrix = json::parse(Tenon({"pack", "verify", part, "--json", "-"}).out)[0];
  const RunResult r = Tenon({"pack", "merge", "default", part, "-o", home_ / "merged.pack",
                             "--name", "default@1.0.0", "--json", "-"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json merged = json::parse(r.out);
  EXPECT_EQ(merged["forms"], before["certificates"]);
  EXPECT_EQ(int(merged["repeated"]) + int(merged["derived"]), int(matrix["certificates"]));
  EXPECT_GT(merged["repeated"], 100);
}

TEST_F(DefaultPackTest, IsNoFile) {
  const RunResult r = Tenon({"pack", "push", "default", "--server", "127.0.0.1:1"});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.err, HasSubstr("'default' is part of tenon"));
  // But a file of this name is meant by its path.
  home_.Write("default", "no pack");
  EXPECT_EQ(Tenon({"pack", "show", home_ / "default"}).exit_code, 3);
}

}  // namespace
}  // namespace tenon
