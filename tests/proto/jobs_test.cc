// Jobs from messages: every violation, all at once.
#include "proto/convert/jobs.h"

#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/universe.h"
#include "tenon/v1/jobs.pb.h"

namespace tenon::convert {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

v1::SubmitJobRequest Good() {
  v1::SubmitJobRequest m;
  m.set_request_id("request-1");
  m.mutable_spec()->set_universe(*BuiltinUniverseText("matrix"));
  m.mutable_spec()->set_pack_name("matrix");
  m.mutable_spec()->set_pack_version("1.0.0");
  return m;
}

std::vector<std::string> Fields(const Status& status) {
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  std::vector<std::string> out;
  for (const Violation& v : DetailsOf(status).violations) out.push_back(v.field);
  return out;
}

TEST(JobsTest, AGoodRequestGetsItsDefaults) {
  const auto job = FromMessage(Good());
  ASSERT_TRUE(job.ok()) << job.status();
  EXPECT_GT(job->spec.max_operators, 0);
  EXPECT_FALSE(job->dry_run);
  EXPECT_EQ(job->spec.mode, EnumerationMode::kExhaustive);
  EXPECT_EQ(job->spec.universe, CanonicalText(*LoadUniverse("matrix")));
}

TEST(JobsTest, EachViolationIsNamed) {
  const std::vector<std::pair<std::string, std::function<void(v1::SubmitJobRequest&)>>> cases = {
      {"request_id", [](auto& m) { m.set_request_id(""); }},
      {"request_id", [](auto& m) { m.set_request_id("a b"); }},
      {"request_id", [](auto& m) { m.set_request_id(std::string(65, 'a')); }},
      {"spec.universe", [](auto& m) { m.mutable_spec()->set_universe("nonsense {"); }},
      {"spec.universe", [](auto& m) { m.mutable_spec()->set_universe(""); }},
      {"spec.universe",
       [](auto& m) { m.mutable_spec()->set_universe(std::string(kUniverseTextMax + 1, ' ')); }},
      {"spec.universe",
       [](auto& m) {
         std::string& text = *m.mutable_spec()->mutable_universe();
         text.replace(text.find("SINGLE"), 6, "MULTIPLE");
       }},
      {"spec.max_operators", [](auto& m) { m.mutable_spec()->set_max_operators(-1); }},
      {"spec.max_operators", [](auto& m) { m.mutable_spec()->set_max_operators(9); }},
      {"spec.mode",
       [](auto& m) { m.mutable_spec()->set_mode(static_cast<v1::EnumerationMode>(3)); }},
      {"spec.shards", [](auto& m) { m.mutable_spec()->set_shards(65'537); }},
      {"spec.pack_name", [](auto& m) { m.mutable_spec()->set_pack_name("Matrix"); }},
      {"spec.pack_version", [](auto& m) { m.mutable_spec()->set_pack_version("1.0"); }},
      {"spec.priority", [](auto& m) { m.mutable_spec()->set_priority(101); }},
      {"spec.priority", [](auto& m) { m.mutable_spec()->set_priority(INT32_MIN); }},
      {"spec.time_limit_ms", [](auto& m) { m.mutable_spec()->set_time_limit_ms(UINT64_MAX); }},
  };
  for (const auto& [field, spoil] : cases) {
    v1::SubmitJobRequest m = Good();
    spoil(m);
    EXPECT_THAT(Fields(FromMessage(m).status()), ElementsAre(field)) << m.ShortDebugString();
  }
}

TEST(JobsTest, AllViolationsAreToldAtOnce) {
  v1::SubmitJobRequest m;
  m.mutable_spec()->set_priority(1000);
  EXPECT_THAT(Fields(FromMessage(m).status()),
              ElementsAre("request_id", "spec.universe", "spec.pack_name", "spec.pack_version",
                          "spec.priority"));
}

TEST(JobsTest, ListsAndControlsAreChecked) {
  v1::ListJobsRequest list;
  EXPECT_EQ(FromMessage(list)->page_size, 100u);
  list.set_page_size(1001);
  list.set_page_token("not ok");
  list.add_states(static_cast<v1::JobState>(9));
  list.add_states(v1::JOB_STATE_UNSPECIFIED);
  EXPECT_THAT(Fields(FromMessage(list).status()),
              ElementsAre("page_size", "page_token", "states[0]", "states[1]"));
  v1::ControlJobRequest control;
  control.set_priority(-101);
  EXPECT_THAT(Fields(FromMessage(control).status()), ElementsAre("id", "action", "priority"));
  control.set_id("j1");
  control.set_priority(7);
  control.set_action(v1::ControlJobRequest::SET_PRIORITY);
  EXPECT_TRUE(FromMessage(control).ok());
}

TEST(JobsTest, AJobIsTheSameAfterTheWire) {
  Job job;
  job.id = "j7";
  job.spec = FromMessage(Good())->spec;
  job.spec.mode = EnumerationMode::kCanonical;
  job.state = JobState::kFailed;
  job.paused = true;
  job.submitted_at = UnixTime(Milliseconds(1));
  job.started_at = UnixTime(Milliseconds(2));
  job.ended_at = UnixTime(Milliseconds(3));
  job.revision = 4;
  job.shards_total = 5;
  job.shards_done = 6;
  job.shards_leased = 7;
  job.set_aside = {{8, "why", {"a", "b"}}};
  job.round = 9;
  job.proofs_total = 10;
  job.proofs_done = 11;
  job.counts = {{12, 13}, 14, 15, 16, 17, 18, 19, 20, 21, 22};
  job.error = "e";
  job.pack_reference = "p@1.0.0";
  job.pack_address = "f";
  job.cpu = Milliseconds(23);
  job.estimate = {24, 25, 26, 27, true};
  v1::Job m;
  ToMessage(job, m);
  EXPECT_EQ(*FromMessage(m), job);
  m.set_state(static_cast<v1::JobState>(99));
  EXPECT_TRUE(absl::IsInternal(FromMessage(m).status()));
}

}  // namespace
}  // namespace tenon::convert
