// From a universe to a pack, on the real binary. These tests make the packs that optimize_test
// uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "client/registry/pack_file.h"
#include "core/base/status.h"
#include "tests/e2e/packs.h"
#include "tests/support/process.h"
#include "verifier/screen.h"

namespace tenon {
namespace {

using nlohmann::json;
using testing::RunResult;
using testing::Tenon;

TEST(EnumerateTest, MatrixHasTheKnownNumbersOfGraphsClassesAndPairs) {
  const RunResult r = Tenon({"enumerate", "--universe", "matrix", "--max-operators", "3", "--mode",
                             "exhaustive", "--json", "-"});
  ASSERT_EQ(r.exit_code, 0) << r.err;
  const json report = json::parse(r.out);
  EXPECT_EQ(report["graphs_by_size"], json({42, 1116, 40278}));
  EXPECT_EQ(report["graphs"], 41436);
  EXPECT_EQ(report["classes"], 14993);
  EXPECT_EQ(report["equivalent_pairs"], 92811);
  for (const char* field : {"seconds", "graphs_per_second", "peak_rss_bytes"}) {
    EXPECT_GT(report[field].get<double>(), 0) << field;
  }
}

TEST(EnumerateTest, ShardsAndSeedChangeNoCount) {
  for (const auto& [shards, seed] : {std::pair{"5", "1"}, std::pair{"1", "99"}}) {
    const RunResult r = Tenon({"enumerate", "--universe", "matrix", "--max-operators", "3",
                               "--shards", shards, "--seed", seed, "--json", "-"});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    const json report = json::parse(r.out);
    EXPECT_EQ(report["graphs"], 41436);
    EXPECT_EQ(report["classes"], 14993);
    EXPECT_EQ(report["equivalent_pairs"], 92811);
  }
}

// The random tester shares nothing with the prover, so it is asked about every published rule, at
// far more shapes than before the proof.
void ExpectNoCounterexample(const std::string& path) {
  constexpr int kShapes = 200;
  const StatusOr<registry::PackFile> pack = registry::ReadPackFile(path);
  ASSERT_TRUE(pack.ok()) << base::Message(pack.status());
  for (const pack::PackedRule& packed : pack->content.rules) {
    SCOPED_TRACE(packed.rule.name);
    const verifier::Screened screened = verifier::Screen(
        packed.rule, {.shapes = kShapes, .seed = verifier::SeedOf(packed.rule) + 1});
    EXPECT_FALSE(screened.counterexample.has_value()) << verifier::Print(*screened.counterexample);
    EXPECT_EQ(screened.shapes, kShapes) << screened.note;
  }
}

// Generates, and checks what must hold of any pack: everything published is proved, once more and
// from its text.
json Generate(const std::string& universe) {
  const std::string pack = e2e::PackPath(universe);
  std::filesystem::create_directories(std::filesystem::path(pack).parent_path());
  const RunResult r = Tenon({"generate", "--universe", universe, "--out", pack, "--json", "-"},
                            {.limit = std::chrono::minutes(15)});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  json report = json::parse(r.out);

  EXPECT_EQ(Tenon({"pack", "verify", pack}).exit_code, 0);
  EXPECT_EQ(Tenon({"check-certificates", pack}).exit_code, 0);
  const RunResult text = Tenon({"pack", "show", pack});
  testing::TempFolder folder;
  const RunResult proofs = Tenon({"prove", folder.Write("pack.rules", text.out), "--json", "-"},
                                 {.limit = std::chrono::minutes(5)});
  EXPECT_EQ(proofs.exit_code, 0) << proofs.err;
  const json verdicts = json::parse(proofs.out);
  EXPECT_EQ(verdicts["proved"], report["forms"]);
  EXPECT_EQ(verdicts["rules"].size(), report["forms"]);
  ExpectNoCounterexample(pack);
  return report;
}

TEST(GenerateTest, MatrixPackIsSmallProvedAndComplete) {
  const json report = Generate("matrix");
  EXPECT_EQ(report["graphs"], 41436);
  EXPECT_EQ(report["equivalent_pairs"], 92811);
  EXPECT_EQ(report["unproved"], 0);
  EXPECT_EQ(report["underivable"], 0);
  EXPECT_LE(report["rules"], 30);
  EXPECT_GE(report["rules"], 20);
  EXPECT_EQ(
      report["candidates"].get<int>(),
      report["proved"].get<int>() + report["refuted"].get<int>() + report["unproved"].get<int>());
}

TEST(GenerateTest, ConvPackIsProved) {
  const json report = Generate("conv");
  EXPECT_GT(report["rules"], 10);
  EXPECT_EQ(
      report["candidates"].get<int>(),
      report["proved"].get<int>() + report["refuted"].get<int>() + report["unproved"].get<int>());
}

TEST(GenerateTest, TransformerPackIsProvedAndComplete) {
  const json report = Generate("transformer");
  EXPECT_GT(report["rules"], 20);
  EXPECT_EQ(report["unproved"], 0);
  EXPECT_EQ(report["underivable"], 0);
  EXPECT_EQ(
      report["candidates"].get<int>(),
      report["proved"].get<int>() + report["refuted"].get<int>() + report["unproved"].get<int>());
  const std::string text = Tenon({"pack", "show", e2e::PackPath("transformer")}).out;
  for (const char* op : {"Softmax(", "LayerNormalization(", "MatMul(", "Split("}) {
    EXPECT_THAT(text, ::testing::HasSubstr(op));
  }
}

}  // namespace
}  // namespace tenon
