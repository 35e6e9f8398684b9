// What a job would take against what there is.
#include "coordinator/board/limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/status.h"

namespace tenon::board {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Pair;

constexpr convert::JobEstimate kEstimate{
    .graphs = 5e9, .cpu_ms = 90'000, .memory_bytes = 3e9, .disk_bytes = 2e11};

Status Check(const convert::JobSpec& spec, const Limits& limits) {
  return CheckEstimate(spec, kEstimate, limits);
}

TEST(LimitsTest, WhatFitsIsTaken) {
  EXPECT_TRUE(Check({}, {.memory_bytes = std::uint64_t{4} << 30}).ok());
  EXPECT_TRUE(
      Check({.memory_limit_bytes = 3'000'000'000, .time_limit = convert::Milliseconds(90'000)},
            {.memory_bytes = 1, .graphs = 5'000'000'000, .disk_bytes = 200'000'000'000})
          .ok());
}

TEST(LimitsTest, EachLimitIsNamedWithTheNumbers) {
  struct Case {
    convert::JobSpec spec;
    Limits limits;
    const char* field;
    const char* limit;
  };
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 40;
  for (const Case& c :
       {Case{{}, {.memory_bytes = 2'999'999'999}, "spec.memory_limit_bytes", "2999999999"},
        Case{{.memory_limit_bytes = 7}, {.memory_bytes = kMuch}, "spec.memory_limit_bytes", "7"},
        Case{{.time_limit = convert::Milliseconds(89'999)},
             {.memory_bytes = kMuch},
             "spec.time_limit_ms",
             "89999"},
        Case{{}, {.memory_bytes = kMuch, .graphs = 4'999'999'999}, "graphs", "4999999999"},
        Case{{}, {.memory_bytes = kMuch, .disk_bytes = 199}, "disk", "199"}}) {
    const Status s = Check(c.spec, c.limits);
    ASSERT_TRUE(absl::IsResourceExhausted(s)) << c.field;
    EXPECT_FALSE(convert::IsRetriable(s)) << "nothing will be better later";
    const auto details = convert::DetailsOf(s);
    EXPECT_EQ(details.reason, "ABOVE_LIMIT");
    EXPECT_THAT(details.metadata, Contains(Pair("field", c.field)));
    EXPECT_THAT(details.metadata, Contains(Pair("limit", c.limit)));
  }
}

TEST(LimitsTest, AllOfThemAreToldAtOnce) {
  const std::string text =
      base::Message(Check({}, {.memory_bytes = 1, .graphs = 1, .disk_bytes = 1}));
  EXPECT_THAT(text, AllOf(HasSubstr("5e+09 graphs"), HasSubstr("2.79 GiB of memory"),
                          HasSubstr("5e+09 records"), HasSubstr("186 GiB on the disks"),
                          HasSubstr("fewer operators")));
}

}  // namespace
}  // namespace tenon::board
