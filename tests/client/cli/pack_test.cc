// tenon pack: what packs say of themselves, the cache, differences, signatures, pictures.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/client/cli/home.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using testing::CountLines;
using ::testing::HasSubstr;
using testing::RunResult;
using ::testing::StartsWith;

// A home of its own with a pack of a small universe.
class PackTest : public HomeTest {
 protected:
  void SetUp() override {
    home_.Write("small.textproto", kSmall);
    ASSERT_EQ(Generate("small.pack", {}).exit_code, 0);
  }
  RunResult Generate(const std::string& name, const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"generate", "--universe", home_ / "small.textproto",
                                          "--out", home_ / name};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Tenon(arguments);
  }
  std::string pack() const { return home_ / "small.pack"; }
};

TEST_F(PackTest, GenerateReportsWhatItPublished) {
  const RunResult r = Generate("again.pack", {"--json", "-"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json report = json::parse(r.out);
  for (const char* field :
       {"graphs", "graphs_by_size", "classes", "equivalent_pairs", "candidates", "proved",
        "refuted", "unproved", "rules", "forms", "pairs_checked", "underivable", "seconds",
        "graphs_per_second", "peak_rss_bytes", "mode", "address"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
  // Relu(Relu(a)) = Relu(a), Transpose(Transpose(a)) = a, and the two commute.
  EXPECT_EQ(report["graphs_by_size"], json({2, 4}));
  EXPECT_EQ(report["rules"], 3);
  EXPECT_EQ(report["forms"], 24);  // 4 ranks; twice 1 + 3 + 6 exchanges of two axes.
  EXPECT_EQ(report["underivable"], 0);
}

TEST_F(PackTest, ShowIsRuleTextThatProves) {
  const RunResult shown = Tenon({"pack", "show", pack()});
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(Tenon({"prove", home_.Write("shown.rules", shown.out)}).exit_code, 0);
  const json document = json::parse(Tenon({"pack", "show", pack(), "--json", "-"}).out);
  EXPECT_EQ(document["rules"].size(), 24u);
  EXPECT_EQ(std::count_if(document["rules"].begin(), document["rules"].end(),
                          [](const json& rule) { return rule["form_of"].is_null(); }),
            3);
  EXPECT_EQ(document["name"], "small");
  EXPECT_EQ(document["version"], "0.1.0");
}

TEST_F(PackTest, ARuleIsShownAndDrawnByItsName) {
  const json document = json::parse(Tenon({"pack", "show", pack(), "--json", "-"}).out);
  const std::string name = document["rules"][0]["name"];
  const RunResult r = Tenon(
      {"pack", "show", pack(), "--rule", name, "--svg", home_ / "r.svg", "--dot", home_ / "r.dot"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_THAT(r.out, StartsWith("rule " + name));
  EXPECT_THAT(testing::ReadFile(home_ / "r.svg"), HasSubstr("<svg"));
  EXPECT_THAT(testing::ReadFile(home_ / "r.dot"), HasSubstr("digraph"));
  const RunResult none = Tenon({"pack", "show", pack(), "--rule", "nobody"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_THAT(none.err, HasSubstr("nobody"));
}

TEST_F(PackTest, TheSameUniverseGivesTheSameContentAndSoDoesAnySharding) {
  ASSERT_EQ(Generate("second.pack", {"--shards", "3"}).exit_code, 0);
  EXPECT_EQ(Tenon({"pack", "diff", "--content", pack(), home_ / "second.pack"}).exit_code, 0);
}

TEST_F(PackTest, DiffNamesRulesThatCameAndWent) {
  ASSERT_EQ(Generate("one.pack", {"--max-operators", "1"}).exit_code, 0);
  const RunResult r = Tenon({"pack", "diff", home_ / "one.pack", pack(), "--json", "-"});
  EXPECT_EQ(r.exit_code, 1);
  const json document = json::parse(r.out);
  EXPECT_EQ(document["equal"], false);
  EXPECT_EQ(document["removed"].size(), 0u);
  EXPECT_EQ(document["added"].size(), 24u);
  EXPECT_EQ(Tenon({"pack", "diff", pack(), pack()}).exit_code, 0);
}

TEST_F(PackTest, TheCacheFindsPacksByNameAndVersion) {
  EXPECT_THAT(Tenon({"pack", "list"}).out, HasSubstr("no packs"));
  ASSERT_EQ(Generate("two.pack", {"--name", "small@0.2.0", "--max-operators", "1"}).exit_code, 0);
  ASSERT_EQ(Tenon({"pack", "add", pack(), home_ / "two.pack"}).exit_code, 0);
  const json listed = json::parse(Tenon({"pack", "list", "--json", "-"}).out);
  ASSERT_EQ(listed.size(), 2u);
  EXPECT_EQ(listed[0]["version"], "0.1.0");
  EXPECT_EQ(listed[1]["version"], "0.2.0");
  EXPECT_EQ(Tenon({"pack", "verify", "small@0.1.0"}).exit_code, 0);
  const auto version = [&](const std::string& reference) {
    return json::parse(Tenon({"pack", "show", reference, "--json", "-"}).out)["version"];
  };
  EXPECT_EQ(version("small"), "0.2.0");
  EXPECT_EQ(version("small@0.1.0"), "0.1.0");
  const RunResult none = Tenon({"pack", "show", "small@9.9.9"});
  EXPECT_EQ(none.exit_code, 3);
  EXPECT_EQ(CountLines(none.err), 1);
}

TEST_F(PackTest, AVersionNeverGetsOtherContent) {
  ASSERT_EQ(Tenon({"pack", "add", pack()}).exit_code, 0);
  ASSERT_EQ(Generate("other.pack", {"--max-operators", "1"}).exit_code, 0);
  const RunResult r = Tenon({"pack", "add", home_ / "other.pack"});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_EQ(CountLines(r.err), 1);
}

TEST_F(PackTest, ABadNameIsRefusedBeforeTheWork) {
  for (const std::string name :
       {"Bad", "a b", "x@1", "x@1.2", "@1.2.3", "x@1.2.3.4", "../x@1.0.0"}) {
    const RunResult r = Generate("bad.pack", {"--name", name});
    EXPECT_EQ(r.exit_code, 3) << name;
    EXPECT_EQ(CountLines(r.err), 1) << r.err;
  }
}

}  // namespace
}  // namespace tenon
