#include "optimizer/explain/gate.h"

#include <gmock/gmock.h>

#include <cmath>

namespace tenon::optimizer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Report Made(double before_us, double after_us) {
  Report report;
  report.model = "a&b.onnx";
  report.device = "roofline:h100";
  report.cost_before_us = before_us;
  report.cost_after_us = after_us;
  report.check = ReportCheck{.max_relative_error = 3e-6, .outputs_compared = 1, .outputs = 1};
  return report;
}

bool Passes(const Report& report, const GateOptions& options) {
  const auto decision = Decide(report, options);
  EXPECT_TRUE(decision.ok()) << base::Message(decision.status());
  return decision.ok() && decision->passed();
}

TEST(GateTest, WhatNobodyAskedForPasses) {
  EXPECT_TRUE(GateOptions{}.empty());
  EXPECT_TRUE(Passes(Made(10, 20), {}));
}

TEST(GateTest, SlowerThanTheOriginalFails) {
  EXPECT_TRUE(Passes(Made(10, 10), {.fail_if_slower = true}));
  EXPECT_TRUE(Passes(Made(10, 5), {.fail_if_slower = true}));
  EXPECT_FALSE(Passes(Made(10, 10.001), {.fail_if_slower = true}));
  EXPECT_FALSE(Passes(Made(10, NAN), {.fail_if_slower = true}));
}

TEST(GateTest, SlowerThanTheBaselinesResultFails) {
  GateOptions options{.fail_if_slower = true, .baseline = Made(9, 6)};
  EXPECT_TRUE(Passes(Made(10, 6), options));
  EXPECT_FALSE(Passes(Made(10, 7), options));
  options.baseline = Made(30, 20);  // The original is the stricter one, then.
  EXPECT_FALSE(Passes(Made(10, 11), options));
  options.baseline->device = "roofline:weak";
  EXPECT_EQ(Decide(Made(10, 6), options).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(GateTest, TheSpeedupIsAtLeastWhatIsAskedFor) {
  EXPECT_TRUE(Passes(Made(10, 8), {.min_speedup = 1.25}));
  EXPECT_FALSE(Passes(Made(10, 8), {.min_speedup = 1.26}));
  EXPECT_TRUE(Passes(Made(10, 0), {.min_speedup = 1e9}));  // Nothing is left to run.
  EXPECT_FALSE(Passes(Made(0, 0), {.min_speedup = 1.1}));
}

TEST(GateTest, TheErrorIsAtMostWhatIsAskedForAndWasMeasured) {
  EXPECT_TRUE(Passes(Made(10, 8), {.max_relative_error = 3e-6}));
  EXPECT_FALSE(Passes(Made(10, 8), {.max_relative_error = 2e-6}));
  Report report = Made(10, 8);
  report.check->max_relative_error = NAN;
  EXPECT_FALSE(Passes(report, {.max_relative_error = 1}));
  report.check->max_relative_error = 0;
  report.check->outputs_compared = 0;
  EXPECT_FALSE(Passes(report, {.max_relative_error = 1}));
  report.check.reset();
  EXPECT_FALSE(Passes(report, {.max_relative_error = 1}));
}

TEST(GateTest, JunitHasACaseForEachCheckAndAFailureForEachThatFails) {
  const Report report = Made(10, 8);
  const auto decision = Decide(report, {.fail_if_slower = true, .min_speedup = 2});
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->passed());
  EXPECT_THAT(ToJunit(report, *decision),
              AllOf(HasSubstr("tests=\"3\" failures=\"1\" errors=\"0\""), HasSubstr("a&amp;b.onnx"),
                    HasSubstr("<failure>1.25 times as fast, at least 2 asked for</failure>"),
                    HasSubstr("name=\"fail-if-slower\""), Not(HasSubstr("<error>"))));
  EXPECT_THAT(ToJunit("m<n", base::InvalidArgument("it is \"no\" model")),
              AllOf(HasSubstr("tests=\"1\" failures=\"0\" errors=\"1\""), HasSubstr("m&lt;n"),
                    HasSubstr("<error>it is &quot;no&quot; model</error>")));
}

TEST(GateTest, MarkdownIsATableOfCostsChecksAndRules) {
  Report report = Made(10, 8);
  for (const char* rule : {"merge|convs", "fuse", "fuse"}) report.steps.push_back({.rule = rule});
  const auto decision = Decide(report, {.min_speedup = 1.2});
  ASSERT_TRUE(decision.ok());
  EXPECT_THAT(ToMarkdown(report, *decision),
              AllOf(HasSubstr("`a&b.onnx` on `roofline:h100`: passed"),
                    HasSubstr("| cost | 10 us | 8 us |"), HasSubstr("| `--min-speedup` | passed |"),
                    HasSubstr("| merge\\|convs | 1 |\n| fuse | 2 |")));
  const auto failed = Decide(report, {.min_speedup = 1.3});
  ASSERT_TRUE(failed.ok());
  EXPECT_THAT(ToMarkdown(report, *failed), HasSubstr("roofline:h100`: **failed**"));
  EXPECT_THAT(ToMarkdown("m", base::NotFound("nowhere")), HasSubstr("**error**\n\nnowhere"));
}

}  // namespace
}  // namespace tenon::optimizer
