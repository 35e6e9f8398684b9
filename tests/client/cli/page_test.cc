// The coordinator's pages: whatever strangers wrote stays text, and what is not known is not said.
#include "client/cli/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/rules/text.h"

namespace tenon::cli {
namespace {

using namespace std::chrono_literals;
using convert::Job;
using convert::JobState;
using convert::UnixTime;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "<script>alert('&\"1')</script>";
constexpr const char* kTamed = "&lt;script&gt;alert(&#39;&amp;&quot;1&#39;)&lt;/script&gt;";

// Not one of its brackets got through.
void ExpectTamed(const std::string& page) {
  EXPECT_THAT(page, AllOf(HasSubstr(kTamed), Not(HasSubstr("<script"))));
}

Job HostileJob() {
  Job job;
  job.id = kHostile;
  job.spec.universe = kHostile;
  job.spec.pack_name = kHostile;
  job.spec.pack_version = kHostile;
  job.state = JobState::kDone;
  job.error = kHostile;
  job.pack_reference = kHostile;
  job.pack_address = kHostile;
  job.set_aside = {{7, kHostile, {kHostile}}};
  return job;
}

TEST(PageTest, ForeignTextIsEscapedEverywhere) {
  PageOverview o;
  o.jobs = {HostileJob()};
  o.nodes = {{kHostile, kHostile, kHostile, kHostile}};
  o.packs = {{kHostile, kHostile, kHostile, 1, {kHostile}}};
  const std::string overview = OverviewPage(o);
  ExpectTamed(overview);
  const std::string job = JobPage(HostileJob(), UnixTime(1s));
  ExpectTamed(job);
  // Each of them: in the title twice, error, shard, worker, pack (link and text), content,
  // universe.
  std::size_t count = 0;
  for (std::size_t at = job.find(kTamed); at != std::string::npos; at = job.find(kTamed, at + 1)) {
    ++count;
  }
  EXPECT_GE(count, 8u);

  registry::PackFile pack;
  pack.name = kHostile;
  auto rules = rules::ParseRules("rule r given a[n] source Relu(a) target Relu(a)", "f");
  ASSERT_TRUE(rules.ok()) << rules.status();
  rules::Rule rule = *(*rules)[0].rule;
  rule.name = kHostile;
  pack.content.rules.push_back({rule, ""});
  const std::string page = PackPage(pack);
  ExpectTamed(page);
  EXPECT_THAT(page, Not(HasSubstr(">corrected<")));
  pack.content.rules[0].corrected = true;
  EXPECT_THAT(PackPage(pack), HasSubstr("<span class=\"badge\">corrected</span>"));
  EXPECT_THAT(page, HasSubstr("<svg"));
}

TEST(PageTest, NothingIsLoadedFromElsewhere) {
  PageOverview o;
  o.jobs = {HostileJob()};
  for (const std::string& page : {OverviewPage(o), JobPage(Job(), UnixTime(1s)), PackPage({})}) {
    EXPECT_THAT(page, AllOf(Not(HasSubstr(" src=")), Not(HasSubstr("url(h")),
                            Not(HasSubstr("@import")), Not(HasSubstr("https:"))));
  }
}

TEST(PageTest, TheTimeLeftIsThatOfTheShardsLeft) {
  Job job;
  job.state = JobState::kEnumerating;
  job.started_at = UnixTime(100s);
  job.shards_total = 40;
  EXPECT_LT(SecondsLeft(job, UnixTime(130s)), 0) << "nothing is done yet";
  job.shards_done = 10;
  EXPECT_DOUBLE_EQ(SecondsLeft(job, UnixTime(130s)), 90);
  EXPECT_LT(SecondsLeft(job, UnixTime(90s)), 0) << "a clock that went back";
  job.paused = true;
  EXPECT_LT(SecondsLeft(job, UnixTime(130s)), 0);
  job.paused = false;
  job.state = JobState::kReducing;
  EXPECT_LT(SecondsLeft(job, UnixTime(130s)), 0) << "rounds are not counted beforehand";
}

TEST(PageTest, OnlyOpenJobsAreLoadedAgain) {
  Job job;
  EXPECT_THAT(JobPage(job, UnixTime(1s)), HasSubstr("http-equiv=\"refresh\""));
  job.state = JobState::kCancelled;
  EXPECT_THAT(JobPage(job, UnixTime(1s)), Not(HasSubstr("http-equiv=\"refresh\"")));
}

}  // namespace
}  // namespace tenon::cli
