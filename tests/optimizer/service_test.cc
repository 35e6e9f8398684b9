// The heart of the optimizer's service: who may work and when, how time is shared out, what names a
// result, and results that were kept.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "client/registry/file.h"
#include "client/registry/sha256.h"
#include "optimizer/service/admission.h"
#include "optimizer/service/cache.h"
#include "optimizer/service/child.h"
#include "optimizer/service/node.h"
#include "optimizer/service/request.h"
#include "proto/convert/optimize.h"
#include "proto/convert/status.h"
#include "tests/support/process.h"

namespace tenon::optimizer {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using testing::TempFolder;

// ---- admission

Admission::Ticket Enter(Admission& admission, const std::string& caller, bool ready = true) {
  const auto ticket = admission.Enter(caller);
  EXPECT_TRUE(ticket.ok()) << base::Message(ticket.status());
  if (!ticket.ok()) return 0;
  if (ready) admission.Ready(*ticket);
  return *ticket;
}

void ExpectRefused(Admission& admission, const std::string& caller, const std::string& reason) {
  const auto ticket = admission.Enter(caller);
  ASSERT_EQ(ticket.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(convert::DetailsOf(ticket.status()).reason, reason);
  EXPECT_TRUE(convert::IsRetriable(ticket.status()));
}

TEST(AdmissionTest, SoManyRunAndSoManyWaitAndNoMore) {
  Admission admission({.running = 2, .waiting = 1, .per_caller = 10});
  const auto a = Enter(admission, "a"), b = Enter(admission, "b"), c = Enter(admission, "c");
  EXPECT_TRUE(admission.Runs(a));
  EXPECT_TRUE(admission.Runs(b));
  EXPECT_FALSE(admission.Runs(c));
  EXPECT_EQ(admission.running(), 2U);
  EXPECT_EQ(admission.waiting(), 1U);
  ExpectRefused(admission, "d", "TOO_MANY_REQUESTS");
  admission.Leave(a);
  EXPECT_TRUE(admission.Runs(c));
  Enter(admission, "d");
}

TEST(AdmissionTest, NobodyHasMoreThanHisShareWhateverItDoes) {
  Admission admission({.running = 1, .waiting = 10, .per_caller = 2});
  Enter(admission, "a", /*ready=*/false);  // Still sends its model.
  const auto second = Enter(admission, "a");
  ExpectRefused(admission, "a", "QUOTA");
  Enter(admission, "b");
  admission.Leave(second);
  Enter(admission, "a");
  ExpectRefused(admission, "a", "QUOTA");
}

TEST(AdmissionTest, WhoHasLeastGoesFirstThenWhoCameFirst) {
  Admission admission({.running = 2, .waiting = 10, .per_caller = 10});
  const auto a1 = Enter(admission, "a"), a2 = Enter(admission, "a");
  const auto a3 = Enter(admission, "a"), a4 = Enter(admission, "a"), b1 = Enter(admission, "b");
  EXPECT_EQ(admission.Ahead(a3), 0U);
  EXPECT_EQ(admission.Ahead(b1), 2U);
  admission.Leave(a1);
  EXPECT_TRUE(admission.Runs(b1));  // One of a's runs, none of b's.
  admission.Leave(a2);
  EXPECT_TRUE(admission.Runs(a3));
  EXPECT_FALSE(admission.Runs(a4));
}

TEST(AdmissionTest, OneThatOnlySendsTakesNoTurn) {
  Admission admission({.running = 1, .waiting = 2, .per_caller = 10});
  const auto sends = Enter(admission, "a", /*ready=*/false);
  const auto ready = Enter(admission, "b");
  EXPECT_FALSE(admission.Runs(sends));
  EXPECT_TRUE(admission.Runs(ready));
  admission.Leave(sends);
  EXPECT_TRUE(admission.Runs(ready));
  EXPECT_EQ(admission.waiting(), 0U);
}

// ---- time

TEST(ShareTimeTest, ADeadlineLeavesTimeForTheRest) {
  const SteadyTime now = SteadyTime() + 1h;
  const RunSettings settings{.time_limit_s = 60, .check_time_limit_s = 60};
  const TimeShares none = ShareTime(now, std::nullopt, settings);
  EXPECT_FALSE(none.search_end || none.check_end);
  EXPECT_GT(none.kill_at, now + 120s);
  for (const auto all : {0ms, 100ms, 1000ms, 30'000ms, 3'600'000ms}) {
    const TimeShares shares = ShareTime(now, now + all, settings);
    EXPECT_LE(now, *shares.search_end);
    EXPECT_LE(*shares.search_end, *shares.check_end);
    EXPECT_LE(*shares.check_end, now + all);
    EXPECT_LE(shares.kill_at, now + all);
    if (all >= 1s) {
      EXPECT_GE(*shares.search_end, now + all / 2);
      EXPECT_LE(*shares.search_end, now + all - 300ms);
    }
  }
  EXPECT_EQ(*ShareTime(now, now - 5s, settings).search_end, now - 5s);
}

// ---- names of results

TEST(ResultKeyTest, WhateverMayChangeTheResultChangesTheName) {
  const RunSettings usual;
  const std::vector<std::string> packs{"p1", "p2"};
  std::vector<RunSettings> others(10, usual);
  others[0].device = "roofline:weak";
  others[1].search = "eqsat";
  others[2].alpha = 1.25;
  others[3].time_limit_s = 61;
  others[4].fast_math = true;
  others[5].without = {"x"};
  others[6].tolerance = 1e-3;
  others[7].check_time_limit_s = 61;
  others[8].seed = 2;
  others[9].without = {"", "x"};
  std::set<std::string> keys{ResultKey("m", packs, usual, "1"), ResultKey("n", packs, usual, "1"),
                             ResultKey("m", packs, usual, "2"),
                             ResultKey("m", std::vector<std::string>{"p2", "p1"}, usual, "1"),
                             ResultKey("m", std::vector<std::string>{"p1"}, usual, "1")};
  EXPECT_EQ(keys.size(), 5U);
  for (const RunSettings& s : others) keys.insert(ResultKey("m", packs, s, "1"));
  EXPECT_EQ(keys.size(), 15U);
  EXPECT_EQ(ResultKey("m", packs, usual, "1"), ResultKey("m", packs, usual, "1"));
}

// ---- what callers say

convert::OptimizeOptions Options() {
  return {.request_id = "r1", .model_bytes = 5, .model_sha256 = std::string(64, 'a')};
}

TEST(OptimizeOptionsTest, WhatIsSaidIsHeardAndTheRestIsTheServers) {
  convert::OptimizeOptions all = Options();
  all.packs = {"nn", "matrix@1.2.0"};
  all.device = "roofline:weak";
  all.search = "eqsat";
  all.alpha = 1.25;
  all.tolerance = 1e-3;
  all.time_limit = 5s;
  all.check_time_limit = 6s;
  all.fast_math = true;
  all.without = {"conv", ""};
  all.seed = 0;
  for (const auto& options : {Options(), all}) {
    const auto back = convert::ParseOptimizeOptions(convert::Serialize(options));
    ASSERT_TRUE(back.ok()) << base::Message(back.status());
    EXPECT_EQ(*back, options);
  }
  const RunSettings s = SettingsOf(all), usual = SettingsOf(Options());
  EXPECT_EQ(s.device, "roofline:weak");
  EXPECT_EQ(s.alpha, 1.25);
  EXPECT_EQ(s.time_limit_s, 5);
  EXPECT_EQ(s.seed, 0U);
  EXPECT_EQ(usual.device, RunSettings().device);
  EXPECT_EQ(usual.seed, RunSettings().seed);
}

TEST(OptimizeOptionsTest, EveryWrongFieldIsNamed) {
  struct Wrong {
    std::string field;
    std::function<void(convert::OptimizeOptions&)> change;
  };
  const std::vector<Wrong> cases = {
      {"request_id", [](auto& o) { o.request_id = ""; }},
      {"model_bytes", [](auto& o) { o.model_bytes = 0; }},
      {"model_sha256", [](auto& o) { o.model_sha256 = std::string(64, 'A'); }},
      {"packs", [](auto& o) { o.packs = {"../nn"}; }},
      {"packs", [](auto& o) { o.packs = {"nn@stable"}; }},
      {"device", [](auto& o) { o.device = "roofline:/etc/passwd"; }},
      {"device", [](auto& o) { o.device = "roofline:a.b"; }},
      {"alpha", [](auto& o) { o.alpha = 0.5; }},
      {"alpha", [](auto& o) { o.alpha = std::numeric_limits<double>::quiet_NaN(); }},
      {"tolerance", [](auto& o) { o.tolerance = -1; }},
      {"time_limit_ms", [](auto& o) { o.time_limit = std::chrono::hours(1'000'000); }},
      {"without", [](auto& o) { o.without.assign(1001, "x"); }},
  };
  for (const Wrong& wrong : cases) {
    convert::OptimizeOptions options = Options();
    wrong.change(options);
    const auto back = convert::ParseOptimizeOptions(convert::Serialize(options));
    ASSERT_EQ(back.status().code(), absl::StatusCode::kInvalidArgument) << wrong.field;
    const auto details = convert::DetailsOf(back.status());
    ASSERT_EQ(details.violations.size(), 1U) << wrong.field;
    EXPECT_EQ(details.violations[0].field, "options." + wrong.field);
  }
}

// ---- frames between a node and its children

TEST(ChildFramesTest, AreReadBackAndNonsenseIsRefused) {
  const ChildTask task{
      .options = Options(), .search_end = SteadyTime(5s), .check_end = std::nullopt, .packs = 3};
  const std::string bytes = Encode(ToChild(task));
  const auto back = DecodeToChild(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(std::get<ChildTask>(*back).options, task.options);
  EXPECT_EQ(std::get<ChildTask>(*back).search_end, task.search_end);
  EXPECT_EQ(std::get<ChildTask>(*back).check_end, std::nullopt);
  EXPECT_EQ(std::get<ChildTask>(*back).packs, 3U);
  const ChildEnd end{base::ResourceExhausted("full"), "OUT_OF_MEMORY", true};
  const auto said = DecodeFromChild(Encode(FromChild(end)));
  ASSERT_TRUE(said.ok());
  EXPECT_EQ(std::get<ChildEnd>(*said).status, end.status);
  EXPECT_EQ(std::get<ChildEnd>(*said).reason, end.reason);
  EXPECT_TRUE(std::get<ChildEnd>(*said).repeatable);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    EXPECT_FALSE(DecodeToChild(bytes.substr(0, k)).ok()) << k;
    EXPECT_FALSE(DecodeFromChild(bytes.substr(0, k)).ok()) << k;
  }
  EXPECT_FALSE(DecodeToChild(bytes + "x").ok());
}

// ---- the cache

class ResultCacheTest : public ::testing::Test {
 protected:
  std::string Key(char c) const { return std::string(64, c); }
  std::unique_ptr<ResultCache> Open(std::uint64_t limit) {
    auto cache = ResultCache::Open(folder_ / "results", limit);
    EXPECT_TRUE(cache.ok()) << base::Message(cache.status());
    return *std::move(cache);
  }
  Result Made(const std::string& model, const std::string& report) {
    const auto result = OpenResult(folder_.Write("model", model), folder_.Write("report", report));
    EXPECT_TRUE(result.ok()) << base::Message(result.status());
    return *result;
  }
  std::string ModelOf(const Result& result) {
    const auto bytes = result.file->Read(result.offset, result.model_bytes());
    return bytes.ok() ? *bytes : base::Message(bytes.status());
  }
  std::string Path(char c) const { return folder_ / "results/" + Key(c); }

  TempFolder folder_;
};

TEST_F(ResultCacheTest, WhatWasPutComesBackAlsoAfterARestart) {
  {
    const auto cache = Open(1 << 20);
    EXPECT_FALSE(cache->Get(Key('a')));
    ASSERT_TRUE(cache->Put(Key('a'), Made("the model", "the report")).ok());
    EXPECT_EQ(cache->figures().entries, 1U);
  }
  folder_.Write("results/half.Xk3f9a", "half written");
  const auto cache = Open(1 << 20);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "results/half.Xk3f9a"));
  const auto result = cache->Get(Key('a'));
  ASSERT_TRUE(result);
  EXPECT_EQ(ModelOf(*result), "the model");
  EXPECT_EQ(result->report_json, "the report");
  EXPECT_EQ(result->sha256, registry::ToHex(registry::Sha256(std::string_view("the model"))));
  EXPECT_TRUE(result->cached);
  EXPECT_EQ(cache->figures().hits, 1U);
  EXPECT_EQ(cache->figures().bytes, std::filesystem::file_size(Path('a')));
}

// docs/formats/result-cache.md has these bytes.
TEST_F(ResultCacheTest, AnEntryHasTheBytesOfTheFormat) {
  ASSERT_TRUE(Open(1 << 20)->Put(Key('a'), Made("abc", "{}")).ok());
  const std::string bytes = testing::ReadFile(Path('a'));
  const std::string fields =
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
      "027b7d";
  const std::string head = registry::ToHex("tenon-r1") + "2300000000000000" + fields;
  const std::string hash = "bc5bd610c9787bb5cc2bfb0ccdd5d6d5ccaacfb8d680bc0a0ef6d9d862645e5c";
  EXPECT_EQ(registry::ToHex(bytes), head + hash + registry::ToHex("abc"));
}

TEST_F(ResultCacheTest, EveryDamageIsNoticedAndTheEntryGoes) {
  const auto whole = [&] {
    EXPECT_TRUE(Open(1 << 20)->Put(Key('a'), Made("a model", "a report")).ok());
    return testing::ReadFile(Path('a'));
  }();
  std::vector<std::string> damaged;
  for (std::size_t k = 0; k < whole.size(); ++k) {
    damaged.push_back(whole);
    damaged.back()[k] = static_cast<char>(damaged.back()[k] ^ 1);
    damaged.push_back(whole.substr(0, k));
  }
  damaged.push_back(whole + "x");
  for (const std::string& bytes : damaged) {
    folder_.Write("results/" + Key('a'), bytes);
    const auto cache = Open(1 << 20);
    EXPECT_FALSE(cache->Get(Key('a')));
    EXPECT_EQ(cache->figures().damaged, 1U);
    EXPECT_EQ(cache->figures().entries, 0U);
    EXPECT_FALSE(std::filesystem::exists(Path('a')));
  }
}

TEST_F(ResultCacheTest, WhatCannotBeWrittenIsCountedAndNotThere) {
  const auto cache = Open(1 << 20);
  const Result result = Made("a model", "a report");
  std::filesystem::remove_all(folder_ / "results");
  EXPECT_FALSE(cache->Put(Key('a'), result).ok());
  EXPECT_EQ(cache->figures().unwritten, 1U);
  EXPECT_FALSE(cache->Get(Key('a')));
}

TEST_F(ResultCacheTest, WhatWasUsedLongestAgoMakesRoom) {
  const auto probe = Open(1 << 20);
  ASSERT_TRUE(probe->Put(Key('a'), Made(std::string(100, 'm'), "r")).ok());
  const std::uint64_t one = probe->figures().bytes;
  const auto cache = Open(2 * one);
  ASSERT_TRUE(cache->Put(Key('b'), Made(std::string(100, 'n'), "r")).ok());
  const auto held = cache->Get(Key('a'));
  ASSERT_TRUE(held);
  ASSERT_TRUE(cache->Put(Key('c'), Made(std::string(100, 'o'), "r")).ok());
  EXPECT_FALSE(cache->Get(Key('b')));
  EXPECT_TRUE(cache->Get(Key('a')));
  ASSERT_TRUE(cache->Put(Key('d'), Made(std::string(100, 'p'), "r")).ok());
  ASSERT_TRUE(cache->Put(Key('e'), Made(std::string(100, 'q'), "r")).ok());
  EXPECT_EQ(cache->figures().bytes, 2 * one);
  EXPECT_FALSE(cache->Get(Key('a')));
  EXPECT_EQ(ModelOf(*held), std::string(100, 'm'));  // Who is being sent it still is.
  ASSERT_TRUE(cache->Put(Key('f'), Made(std::string(3 * one, 'x'), "r")).ok());
  EXPECT_FALSE(cache->Get(Key('f')));  // Larger than all of it.
  EXPECT_EQ(cache->figures().entries, 2U);
}

// ---- outcomes

TEST(OutcomeTest, TellsTheCallersFaultFromTheNodes) {
  EXPECT_EQ(OutcomeOf(OkStatus()), CallOutcome::kDone);
  EXPECT_EQ(OutcomeOf(absl::CancelledError("")), CallOutcome::kCancelled);
  EXPECT_EQ(OutcomeOf(base::DataLoss("")), CallOutcome::kInvalid);
  EXPECT_EQ(OutcomeOf(base::ResourceExhausted("too large")), CallOutcome::kInvalid);
  EXPECT_EQ(OutcomeOf(convert::WithDetails(base::ResourceExhausted(""), {.retry_after = 1s})),
            CallOutcome::kRefused);
  EXPECT_EQ(OutcomeOf(base::Unavailable("")), CallOutcome::kRefused);
  EXPECT_EQ(OutcomeOf(base::Internal("")), CallOutcome::kFailed);
}

}  // namespace
}  // namespace tenon::optimizer
