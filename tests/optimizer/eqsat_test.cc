#include "optimizer/search/eqsat.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "optimizer/search/built_in.h"
#include "optimizer/search/optimize.h"
#include "tests/optimizer/lecture_graphs.h"
#include "tests/optimizer/rule_files.h"
#include "tests/optimizer/values.h"

namespace tenon::optimizer {
namespace {

std::unique_ptr<const Device> Open(std::string_view spec) {
  auto device = OpenDevice(spec);
  CHECK(device.ok());
  return *std::move(device);
}

SearchResult Optimize(const graph::Graph& g, const std::vector<SearchRule>& rules,
                      std::string_view device = "roofline:h100", SearchOptions options = {}) {
  options.method = SearchMethod::kEqsat;
  auto result = OptimizeGraph(g, rules, *Open(device), options);
  if (!result.ok()) std::fprintf(stderr, "%s\n", base::Message(result.status()).c_str());
  CHECK(result.ok());
  return *std::move(result);
}

void ExpectOptimal(const SearchResult& result, double cost_us) {
  EXPECT_NEAR(result.cost_after_us, cost_us, 0.05);
  ASSERT_TRUE(result.extraction.has_value());
  EXPECT_EQ(result.extraction->pieces, 1);
  EXPECT_EQ(result.extraction->optimal, 1);
  EXPECT_EQ(result.extraction->lower_bound_us, result.cost_after_us);
  std::fprintf(stderr, "nodes %d saturated %d\n", int(result.extraction->nodes),
               result.extraction->saturated);
  for (const auto& s : result.steps)
    std::fprintf(stderr, "  %d %d %.2f\n", s.rule, s.sites, s.cost_us);
}

TEST(LectureEqsatTest, QkvBecomesOneProductAndIsProvedOptimal) {
  ExpectOptimal(Optimize(Qkv(), LectureRules()), 34.2);
  ExpectOptimal(Optimize(Qkv(), LectureRules(), "roofline:weak"), 1021.9);
}

TEST(LectureEqsatTest, LoraIsFoldedAndIsProvedOptimal) {
  ExpectOptimal(Optimize(Lora(), LectureRules()), 21.4);
  ExpectOptimal(Optimize(Lora(), LectureRules(), "roofline:weak"), 4305.0);
}

TEST(LectureEqsatTest, ResnetBlockMergesItsTwoConvolutionsOnAFastDevice) {
  ExpectOptimal(Optimize(ResnetBlock(), LectureRules()), 34.5);
  ExpectOptimal(Optimize(ResnetBlock(), LectureRules(), "roofline:weak"), 3986.4);
}

}  // namespace
}  // namespace tenon::optimizer
