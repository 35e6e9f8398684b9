// The coordinator's heart: jobs, leases and rounds, with a clock of the test and a journal that can
// fail.
#include "coordinator/board/board.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon::board {
namespace {

using namespace std::chrono_literals;
using convert::ControlJob;
using convert::VerdictKind;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class FlakyJournal : public StoreJournal {
 public:
  using StoreJournal::StoreJournal;
  Status Write(const store::Batch& batch) override {
    if (full) return base::ResourceExhausted("the disk is full");
    return StoreJournal::Write(batch);
  }
  bool full = false;
};

class BoardTest : public testing::Test {
 protected:
  BoardTest() {
    auto store = store::Store::OpenTemporary();
    store_ = *std::move(store);
    journal_ = std::make_unique<FlakyJournal>(*store_);
    options_.stores = {"one:1", "two:2"};
    options_.random = [this] { return random_(); };
    Restart();
  }
  // As after kill -9: all that is left is the journal.
  void Restart() {
    board_.reset();
    auto board = Board::Open(*journal_, options_, Time());
    ASSERT_TRUE(board.ok()) << board.status();
    board_ = *std::move(board);
  }
  Now Time() const { return {Now::Monotonic(clock_), UnixTime(clock_ + 1'000'000ms)}; }

  static convert::SubmitJob Request(std::string id, std::uint32_t shards = 3) {
    convert::SubmitJob out;
    out.request_id = id;
    out.spec.universe = "a universe";
    out.spec.max_operators = 2;
    out.spec.shards = shards;
    out.spec.pack_name = "pack-" + id;
    out.spec.pack_version = "1.0.0";
    return out;
  }
  std::string Submit(std::string id, std::uint32_t shards = 3) {
    const auto job = board_->Submit(Request(id, shards), false, Time());
    EXPECT_TRUE(job.ok()) << job.status();
    return job->id;
  }
  std::vector<convert::Lease> Lease(std::string node, std::uint32_t most = 1,
                                    std::string request = "") {
    convert::LeaseRequest r;
    r.request_id = request.empty() ? "r" + std::to_string(++requests_) : request;
    r.node_id = node;
    r.kinds = {TaskKind::kShard, TaskKind::kCollect, TaskKind::kProofs, TaskKind::kJoin};
    r.max_leases = most;
    return board_->Lease(r, Time());
  }
  static convert::Complete Result(const convert::Lease& lease, std::string node) {
    convert::Complete c{lease.id, lease.task.id, node, 10ms, convert::ShardResult{5, 6, 7}};
    if (convert::KindOf(lease.task) == TaskKind::kCollect) {
      c.result = PartResult(std::get<convert::CollectTask>(lease.task.work).first);
    } else if (convert::KindOf(lease.task) == TaskKind::kJoin) {
      c.result = convert::JoinResult{{{1, 2}, 1000, 2, 1, 9, std::string(64, 'a')}};
    } else if (convert::KindOf(lease.task) == TaskKind::kProofs) {
      convert::ProofResult result;
      for (const std::string& rule : std::get<convert::ProofTask>(lease.task.work).rules) {
        result.verdicts.push_back(VerdictOf(rule));
      }
      c.result = result;
    }
    return c;
  }
  // A function of the part.
  static convert::CollectResult PartResult(std::uint32_t first) {
    return {{1, 2}, 3, 2, 1, 100 + first, std::string(64, static_cast<char>('a' + first % 6))};
  }
  // A function of the rule: those that end in '!' are refuted.
  static convert::ProofVerdict VerdictOf(const std::string& rule) {
    convert::ProofVerdict v;
    v.kind = rule.ends_with('!') ? VerdictKind::kRefuted : VerdictKind::kProved;
    v.repeatable = true;
    if (v.kind == VerdictKind::kProved) v.certificate = "why " + rule;
    return v;
  }
  StatusOr<bool> Complete(const convert::Lease& lease, std::string node) {
    return board_->Complete(Result(lease, node), Time());
  }
  std::vector<std::string> Beat(std::string node, std::vector<std::string> leases) {
    convert::Heartbeat beat;
    beat.node_id = node;
    beat.role = "worker";
    beat.lease_ids = std::move(leases);
    return board_->Heartbeat(beat, Time()).lost_lease_ids;
  }
  void Pass(std::chrono::milliseconds time) {
    clock_ += time;
    EXPECT_TRUE(board_->Tick(Time()).ok());
  }
  Job Get(const std::string& id) {
    const auto job = board_->Get(id);
    EXPECT_TRUE(job.ok()) << job.status();
    return *job;
  }
  // Does everything that is open.
  void Work(std::string node = "w") {
    while (true) {
      const auto leases = Lease(node, 64);
      if (leases.empty()) return;
      for (const auto& lease : leases) ASSERT_TRUE(Complete(lease, node).ok());
    }
  }
  std::uint64_t ToReducing(const std::string& id) {
    Work();
    EXPECT_EQ(Get(id).state, JobState::kReducing);
    const auto job = board_->Claim();
    EXPECT_TRUE(job.has_value());
    return job->job;
  }

  std::unique_ptr<store::Store> store_;
  std::unique_ptr<FlakyJournal> journal_;
  Options options_;
  std::unique_ptr<Board> board_;
  std::chrono::milliseconds clock_{1'000'000};
  std::mt19937_64 random_{1};
  int requests_ = 0;
};

TEST_F(BoardTest, AJobGoesThroughItsStates) {
  const std::string id = Submit("a");
  EXPECT_EQ(Get(id).state, JobState::kEnumerating);
  EXPECT_EQ(Get(id).shards_total, 3u);
  const auto shards = Lease("w", 8);
  ASSERT_THAT(shards, SizeIs(3));
  EXPECT_EQ(shards[0].task.id, id + "/shard/0");
  const auto& task = std::get<convert::ShardTask>(shards[0].task.work);
  EXPECT_THAT(task.enumeration.stores.endpoints, ElementsAre("one:1", "two:2"));
  EXPECT_EQ(Get(id).shards_leased, 3u);
  for (const auto& lease : shards) EXPECT_TRUE(*Complete(lease, "w"));
  EXPECT_EQ(Get(id).state, JobState::kMatching);
  EXPECT_FALSE(board_->Claim().has_value());
  const auto collect = Lease("w", 8);
  ASSERT_THAT(collect, SizeIs(1));
  EXPECT_TRUE(*Complete(collect[0], "w"));
  EXPECT_EQ(Get(id).state, JobState::kMatching);
  EXPECT_FALSE(board_->Claim().has_value());
  const auto join = Lease("w", 8);
  ASSERT_THAT(join, SizeIs(1));
  EXPECT_EQ(join[0].task.id, id + "/join");
  EXPECT_TRUE(*Complete(join[0], "w"));
  EXPECT_EQ(Get(id).state, JobState::kReducing);
  const auto job = board_->Claim();
  ASSERT_TRUE(job.has_value());
  EXPECT_FALSE(board_->Claim().has_value()) << "one job, one reducer";
  ASSERT_TRUE(board_->BeginRound(job->job, {"r1", "r2!", "r1"}).ok());
  EXPECT_FALSE(board_->RoundResult(job->job).has_value());
  Work("v");
  EXPECT_THAT(*board_->RoundResult(job->job),
              ElementsAre(VerdictKind::kProved, VerdictKind::kRefuted, VerdictKind::kProved));
  const convert::GenerationCounts so_far = Get(id).counts;
  EXPECT_EQ(so_far.candidates, 2u);
  EXPECT_EQ(so_far.proved, 1u);
  EXPECT_EQ(so_far.refuted, 1u);
  board_->BeginPublishing(job->job);
  EXPECT_EQ(Get(id).state, JobState::kPublishing);
  ASSERT_TRUE(board_->Finish(job->job, {{}, "pack-a@1.0.0", "abc"}, Time()).ok());
  EXPECT_EQ(Get(id).state, JobState::kDone);
  EXPECT_EQ(Get(id).pack_reference, "pack-a@1.0.0");
  EXPECT_EQ(Get(id).cpu, 60ms);
  Restart();
  EXPECT_EQ(Get(id).state, JobState::kDone);
  EXPECT_EQ(Get(id).cpu, 60ms);
  EXPECT_EQ(Get(id).shards_done, 3u);  // It was 0 of 3: the records of its shards are gone.
  ASSERT_THAT(board_->TablesToDrop(), SizeIs(1));
  ASSERT_TRUE(board_->Dropped(job->job).ok());
  Restart();
  EXPECT_THAT(board_->TablesToDrop(), IsEmpty());
}

TEST_F(BoardTest, RepeatedSubmissionIsOneJob) {
  const std::string id = Submit("a");
  EXPECT_EQ(Submit("a"), id);
  Restart();
  EXPECT_EQ(Submit("a"), id);
  convert::SubmitJob same = Request("a");
  same.request_id = "b";
  EXPECT_TRUE(absl::IsAlreadyExists(board_->Submit(same, false, Time()).status()));
  same.spec.pack_version = "2.0.0";
  EXPECT_TRUE(absl::IsAlreadyExists(board_->Submit(same, true, Time()).status()));
  EXPECT_TRUE(board_->Submit(same, false, Time()).ok());
}

TEST_F(BoardTest, FiguresTellWhatThereIsAndWhatHappened) {
  const auto of = [](const auto& numbers, auto which) {
    return numbers[static_cast<std::size_t>(which)];
  };
  const auto names = [&] {
    std::vector<std::string> out;
    for (const Event& e : board_->TakeEvents()) out.push_back(std::string(e.name) + " " + e.about);
    return out;
  };
  Submit("a", 2);
  Figures f = board_->figures();
  EXPECT_EQ(of(f.open, TaskKind::kShard), 2u);
  EXPECT_EQ(of(f.jobs, JobState::kEnumerating), 1u);
  EXPECT_EQ(f.shards_left, 2u);
  const auto lost = Lease("sleeper");
  EXPECT_EQ(of(board_->figures().leases, TaskKind::kShard), 1u);
  Pass(options_.lease_ttl + 1ms);
  EXPECT_THAT(names(), ElementsAre("job_submitted j1", "job_started j1", "lease_expired j1/shard/0",
                                   "attempt_failed j1/shard/0"));
  Work("w");
  Work("w");  // What collects.
  const auto job = board_->Claim();
  ASSERT_TRUE(job.has_value());
  ASSERT_TRUE(board_->BeginRound(job->job, {"r1", "r2!"}).ok());
  EXPECT_EQ(board_->figures().proofs_left, 2u);
  Work("v");
  // The second time they are known.
  ASSERT_TRUE(board_->BeginRound(job->job, {"r1", "r2!"}).ok());
  ASSERT_TRUE(board_->Finish(job->job, {{.rules = 9}, "pack-a@1.0.0", "abc"}, Time()).ok());
  EXPECT_THAT(names(), ElementsAre("job_done j1"));
  f = board_->figures();
  EXPECT_EQ(f.open, ByTask{});
  EXPECT_EQ(of(f.jobs, JobState::kDone), 1u);
  const Totals& t = f.totals;
  EXPECT_EQ(t.graphs, 10u);
  EXPECT_EQ(t.records, 12u);
  EXPECT_EQ(t.record_bytes, 14u);
  EXPECT_EQ(t.shards, 2u);
  EXPECT_EQ(of(t.leases_given, TaskKind::kShard), 3u);
  EXPECT_EQ(of(t.leases_expired, TaskKind::kShard), 1u);
  EXPECT_EQ(of(t.verdicts, VerdictKind::kProved), 1u);
  EXPECT_EQ(of(t.verdicts, VerdictKind::kRefuted), 1u);
  EXPECT_EQ(t.verdicts_asked, 2u);
  EXPECT_EQ(t.verdicts_known, 2u);
  EXPECT_EQ(of(t.jobs_ended, JobState::kDone), 1u);
  EXPECT_EQ(t.rules, 9u);
}

TEST_F(BoardTest, SilentNodesAreToldAndForgotten) {
  Beat("w", {});
  const auto nodes = [&] {
    std::vector<Node> out = board_->Nodes(Time());
    std::erase_if(out, [](const Node& n) { return n.role == "store"; });
    return out;
  };
  ASSERT_THAT(nodes(), SizeIs(1));
  EXPECT_FALSE(nodes()[0].silent);
  Pass(options_.lease_ttl + 1ms);
  ASSERT_THAT(nodes(), SizeIs(1));
  EXPECT_TRUE(nodes()[0].silent);
  Pass(std::chrono::hours(2));
  EXPECT_THAT(nodes(), IsEmpty());
}

TEST_F(BoardTest, ADryRunMakesNoJob) {
  convert::SubmitJob request = Request("a");
  request.dry_run = true;
  const auto would = board_->Submit(request, false, Time());
  ASSERT_TRUE(would.ok()) << would.status();
  EXPECT_EQ(would->id, "");
  EXPECT_EQ(would->shards_total, 3u);
  EXPECT_THAT(board_->List({})->jobs, IsEmpty());
  EXPECT_TRUE(absl::IsAlreadyExists(board_->Submit(request, true, Time()).status()));
  EXPECT_NE(Submit("a"), "");
}

TEST_F(BoardTest, TheTimeLimitOfAJobGoesWithItsTasks) {
  convert::SubmitJob timed = Request("t");
  timed.spec.time_limit = 1234ms;
  ASSERT_TRUE(board_->Submit(timed, false, Time()).ok());
  const auto lease = Lease("w");
  ASSERT_THAT(lease, SizeIs(1));
  EXPECT_EQ(std::get<convert::ShardTask>(lease[0].task.work).enumeration.time_limit, 1234ms);
}

TEST_F(BoardTest, TooMuchIsRefused) {
  convert::SubmitJob large = Request("a");
  large.spec.memory_limit_bytes = options_.worker_memory_bytes + 1;
  EXPECT_TRUE(absl::IsResourceExhausted(board_->Submit(large, false, Time()).status()));
  options_.waiting_jobs_max = 1;
  Restart();
  Submit("b");
  const Status status = board_->Submit(Request("c"), false, Time()).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_TRUE(convert::IsRetriable(status));
}

TEST_F(BoardTest, WhatCannotBeWrittenDownDoesNotHappen) {
  journal_->full = true;
  EXPECT_TRUE(absl::IsResourceExhausted(board_->Submit(Request("a"), false, Time()).status()));
  EXPECT_THAT(board_->List({})->jobs, IsEmpty());
  journal_->full = false;
  const std::string id = Submit("a");
  const auto lease = Lease("w");
  journal_->full = true;
  EXPECT_FALSE(Complete(lease[0], "w").ok());
  EXPECT_EQ(Get(id).shards_done, 0u);
  EXPECT_FALSE(board_->Control({id, ControlJob::Action::kPause}, Time()).ok());
  EXPECT_FALSE(Get(id).paused);
  journal_->full = false;
  EXPECT_TRUE(*Complete(lease[0], "w"));
}

TEST_F(BoardTest, ExpiredShardIsLeasedAgain) {
  Submit("a", 1);
  const auto first = Lease("w1");
  EXPECT_THAT(Lease("w2"), IsEmpty());
  Pass(10s);
  EXPECT_THAT(Beat("w1", {first[0].id}), IsEmpty());
  Pass(10s);
  EXPECT_THAT(Beat("w1", {first[0].id}), IsEmpty());
  Pass(16s);
  EXPECT_THAT(Beat("w1", {first[0].id}), ElementsAre(first[0].id));
  const auto second = Lease("w2");
  ASSERT_THAT(second, SizeIs(1));
  EXPECT_EQ(second[0].task.id, first[0].task.id);
  EXPECT_EQ(second[0].attempt, 2u);
}

TEST_F(BoardTest, LateAndDoubledResultsDoNoHarm) {
  const std::string id = Submit("a", 2);
  const auto first = Lease("w1");
  Pass(60s);
  const auto second = Lease("w2");
  ASSERT_EQ(second[0].task.id, first[0].task.id);
  EXPECT_TRUE(*Complete(first[0], "w1")) << "late, and still needed";
  EXPECT_FALSE(*Complete(second[0], "w2"));
  EXPECT_FALSE(*Complete(first[0], "w1"));
  EXPECT_EQ(Get(id).shards_done, 1u);
}

TEST_F(BoardTest, RepeatedRequestGivesTheSameLeases) {
  Submit("a", 3);
  const auto first = Lease("w", 2, "again");
  EXPECT_EQ(Lease("w", 2, "again"), first);
  EXPECT_TRUE(*Complete(first[0], "w"));
  EXPECT_THAT(Lease("w", 2, "again"), ElementsAre(first[1]));
}

TEST_F(BoardTest, StragglersGetABackup) {
  Submit("a", 3);
  const auto quick = Lease("w1");
  clock_ += 2s;
  EXPECT_TRUE(*Complete(quick[0], "w1"));
  const auto slow = Lease("w1", 2);
  EXPECT_TRUE(*Complete(slow[1], "w1"));
  for (int k = 0; k < 2; ++k) {
    Pass(4s);
    EXPECT_THAT(Beat("w1", {slow[0].id}), IsEmpty());
    if (k == 0) {
      EXPECT_THAT(Lease("w2"), IsEmpty()) << "not that slow";
    }
  }
  EXPECT_THAT(Lease("w1"), IsEmpty()) << "not to the node that is slow";
  const auto backup = Lease("w2");
  ASSERT_THAT(backup, SizeIs(1));
  EXPECT_EQ(backup[0].task.id, slow[0].task.id);
  EXPECT_THAT(Lease("w3"), IsEmpty()) << "two are enough";
  EXPECT_TRUE(*Complete(backup[0], "w2"));
  EXPECT_THAT(Beat("w1", {slow[0].id}), SizeIs(1)) << "no longer wanted";
  EXPECT_FALSE(*Complete(slow[0], "w1"));
}

TEST_F(BoardTest, APoisonShardIsSetAsideAndTheJobSaysSo) {
  const std::string id = Submit("a", 3);
  for (int k = 0; k < 3; ++k) {
    const std::string node = "w" + std::to_string(k);
    const auto lease = Lease(node);
    ASSERT_EQ(lease[0].task.id, id + "/shard/0");
    if (k == 1) {
      Pass(60s);  // Killed.
    } else {
      ASSERT_TRUE(
          board_->Release({lease[0].id, lease[0].task.id, node, "out of memory"}, Time()).ok());
    }
  }
  ASSERT_THAT(Get(id).set_aside, SizeIs(1));
  EXPECT_THAT(Get(id).set_aside[0].workers, ElementsAre("w0", "w1", "w2"));
  Restart();
  ASSERT_THAT(Get(id).set_aside, SizeIs(1));
  Work();
  EXPECT_EQ(Get(id).state, JobState::kFailed);
  EXPECT_THAT(Get(id).error, HasSubstr("incomplete: 1 of 3 shards"));
  EXPECT_THAT(Get(id).error, HasSubstr("out of memory"));
}

TEST_F(BoardTest, NodesThatLeaveInPeaceDoNotCount) {
  const std::string id = Submit("a", 1);
  for (int k = 0; k < 10; ++k) {
    const auto lease = Lease("w");
    ASSERT_THAT(lease, SizeIs(1));
    ASSERT_TRUE(board_->Release({lease[0].id, lease[0].task.id, "w", ""}, Time()).ok());
  }
  EXPECT_THAT(Get(id).set_aside, IsEmpty());
}

TEST_F(BoardTest, RulesThatKillVerifiersAreTriedAloneAndThenUnknown) {
  const std::uint64_t job = ToReducing(Submit("a"));
  ASSERT_TRUE(board_->BeginRound(job, {"good", "poison"}).ok());
  // Whoever has "poison" dies.
  for (int k = 0; k < 20 && !board_->RoundResult(job); ++k) {
    for (const auto& lease : Lease("v", 8)) {
      const auto& rules = std::get<convert::ProofTask>(lease.task.work).rules;
      if (std::count(rules.begin(), rules.end(), "poison") == 0) {
        EXPECT_TRUE(*Complete(lease, "v"));
      }
    }
    Pass(60s);
  }
  const auto result = board_->RoundResult(job);
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(*result, ElementsAre(VerdictKind::kProved, VerdictKind::kUnknown));
}

// However many nodes collect, in whatever order, and whoever dies in between.
TEST_F(BoardTest, PartsOfTheBucketsAreCollectedApartAndThenJoined) {
  convert::SubmitJob request = Request("a", 48);
  request.spec.max_operators = 4;  // 64 buckets.
  const std::string id = board_->Submit(request, false, Time())->id;
  for (const auto& lease : Lease("w", 64)) {
    convert::Complete c = Result(lease, "w");
    ASSERT_TRUE(*board_->Complete(c, Time()));
  }
  auto parts = Lease("w", 64);
  ASSERT_THAT(parts, SizeIs(3));
  std::uint32_t at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const auto& task = std::get<convert::CollectTask>(parts[k].task.work);
    EXPECT_EQ(parts[k].task.id, id + "/collect/" + std::to_string(k));
    EXPECT_EQ(task.first, at) << "together they are all buckets";
    EXPECT_GT(task.end, task.first);
    EXPECT_EQ(task.store, k % 2);
    at = task.end;
  }
  EXPECT_EQ(at, 64u);
  const auto complete = [&](const convert::Lease& lease) {
    convert::Complete c = Result(lease, "w");
    std::get<convert::CollectResult>(c.result).graphs_by_size = {1, 2, 3, 4};
    return board_->Complete(c, Time());
  };
  ASSERT_TRUE(*complete(parts[2]));
  EXPECT_FALSE(*complete(parts[2])) << "doubled";
  Restart();
  Pass(60s);
  parts = Lease("w", 64);
  ASSERT_THAT(parts, SizeIs(2)) << "one is done";
  ASSERT_TRUE(*complete(parts[1]));
  EXPECT_THAT(Lease("w", 64), IsEmpty()) << "no join before the last part";
  ASSERT_TRUE(*complete(parts[0]));
  EXPECT_EQ(Get(id).state, JobState::kMatching);
  Restart();
  const auto join = Lease("w", 64);
  ASSERT_THAT(join, SizeIs(1));
  const auto& task = std::get<convert::JoinTask>(join[0].task.work);
  ASSERT_THAT(task.parts, SizeIs(3));
  const std::uint32_t first[] = {0, 21, 42};
  for (std::uint32_t k = 0; k < 3; ++k) {
    const convert::CollectResult expected = PartResult(first[k]);
    EXPECT_EQ(task.parts[k],
              (convert::JoinTask::Part{id + ".part" + std::to_string(k), k % 2,
                                       expected.artifact_bytes, expected.artifact_sha256}));
  }
  convert::Complete c = Result(join[0], "w");
  std::get<convert::JoinResult>(c.result).all.graphs_by_size = {1, 2, 3, 4};
  ASSERT_TRUE(*board_->Complete(c, Time()));
  const auto collected = board_->Claim();
  ASSERT_TRUE(collected.has_value());
  EXPECT_EQ(collected->artifact, task.artifact);
  EXPECT_EQ(collected->result, std::get<convert::JoinResult>(c.result).all);
  EXPECT_EQ(Get(id).cpu, 520ms) << "48 shards, 3 parts, a join";
}

TEST(ShardsTest, GrowWithWhatIsKnownOfTheJob) {
  JobSpec spec;
  spec.max_operators = 4;
  EXPECT_EQ(ShardsFor(spec), 128u);
  EXPECT_EQ(ShardsFor(spec, 1.9e6), 128u);
  EXPECT_EQ(ShardsFor(spec, 1e8), 763u);
  EXPECT_EQ(ShardsFor(spec, 1e12), 16'384u);
  spec.max_operators = 2;
  EXPECT_EQ(ShardsFor(spec), 4u);
  EXPECT_EQ(ShardsFor(spec, 1e8), 763u);
  spec.shards = 7;
  EXPECT_EQ(ShardsFor(spec, 1e12), 7u);
}

TEST_F(BoardTest, UrgentJobsComeFirstAndPausedOnesWait) {
  const std::string a = Submit("a"), b = Submit("b");
  ASSERT_TRUE(board_->Control({b, ControlJob::Action::kSetPriority, 5}, Time()).ok());
  EXPECT_EQ(Lease("w")[0].task.job_id, b);
  ASSERT_TRUE(board_->Control({b, ControlJob::Action::kPause}, Time()).ok());
  EXPECT_EQ(Lease("w")[0].task.job_id, a);
  Restart();
  EXPECT_EQ(Lease("w")[0].task.job_id, a);
  ASSERT_TRUE(board_->Control({b, ControlJob::Action::kResume}, Time()).ok());
  EXPECT_EQ(Lease("w")[0].task.job_id, b);
}

TEST_F(BoardTest, ACancelledJobEndsItsLeases) {
  const std::string id = Submit("a");
  const auto lease = Lease("w");
  ASSERT_TRUE(board_->Control({id, ControlJob::Action::kCancel}, Time()).ok());
  EXPECT_EQ(Get(id).state, JobState::kCancelled);
  EXPECT_THAT(Beat("w", {lease[0].id}), SizeIs(1));
  EXPECT_TRUE(absl::IsNotFound(Complete(lease[0], "w").status()));
  EXPECT_THAT(Lease("w"), IsEmpty());
  EXPECT_TRUE(board_->Control({id, ControlJob::Action::kCancel}, Time()).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      board_->Control({id, ControlJob::Action::kPause}, Time()).status()));
}

TEST_F(BoardTest, UnknownJobsAndTasksAreNotFound) {
  for (const char* id : {"", "j", "j99", "x1", "j1x", "j18446744073709551616"}) {
    EXPECT_TRUE(absl::IsNotFound(board_->Get(id).status())) << id;
  }
  Submit("a");
  const auto lease = Lease("w")[0];
  for (const char* id : {"j1", "j1/", "j1/shard/", "j1/shard/x", "j9/shard/1", "j1/proofs/1",
                         "j1/collect", "j1/collect/", "j1/join/0"}) {
    convert::Complete c = Result(lease, "w");
    c.task_id = id;
    EXPECT_TRUE(absl::IsNotFound(board_->Complete(c, Time()).status())) << id;
    EXPECT_TRUE(board_->Release({lease.id, id, "w", "error"}, Time()).ok()) << id;
  }
}

// A store that came back with an empty disk has nothing to complain of.
TEST_F(BoardTest, RecordsThatAStoreHasLostFailTheJob) {
  const std::string id = Submit("a", 2);
  for (int k = 0; k < 3; ++k) EXPECT_TRUE(*board_->Complete(Result(Lease("w")[0], "w"), Time()));
  convert::Complete c = Result(Lease("w")[0], "w");
  std::get<convert::JoinResult>(c.result).all.graphs = 9;  // Of two times five.
  EXPECT_TRUE(*board_->Complete(c, Time()));
  EXPECT_EQ(board_->Get(id)->state, JobState::kFailed);
  EXPECT_THAT(board_->Get(id)->error, HasSubstr("lost"));
}

TEST_F(BoardTest, ResultsThatDoNotFitAreRefused) {
  Submit("a", 1);
  convert::Complete c = Result(Lease("w")[0], "w");
  c.result = convert::ProofResult{{VerdictOf("r")}};
  EXPECT_TRUE(absl::IsInvalidArgument(board_->Complete(c, Time()).status()));
  c.result = convert::ShardResult{};
  EXPECT_TRUE(*board_->Complete(c, Time()));
  c = Result(Lease("w")[0], "w");
  std::get<convert::CollectResult>(c.result).graphs_by_size = {1};
  EXPECT_TRUE(absl::IsInvalidArgument(board_->Complete(c, Time()).status()));
  std::get<convert::CollectResult>(c.result).graphs_by_size = {1, 2};
  EXPECT_TRUE(*board_->Complete(c, Time()));
  c = Result(Lease("w")[0], "w");
  const convert::JoinResult join = std::get<convert::JoinResult>(c.result);
  c.result = join.all;
  EXPECT_TRUE(absl::IsInvalidArgument(board_->Complete(c, Time()).status())) << "that of a part";
  c.result = convert::JoinResult{};
  EXPECT_TRUE(absl::IsInvalidArgument(board_->Complete(c, Time()).status()));
  c.result = join;
  EXPECT_TRUE(*board_->Complete(c, Time()));
  const std::uint64_t job = board_->Claim()->job;
  ASSERT_TRUE(board_->BeginRound(job, {"r1", "r2"}).ok());
  c = Result(Lease("v")[0], "v");
  std::get<convert::ProofResult>(c.result).verdicts.pop_back();
  EXPECT_TRUE(absl::IsInvalidArgument(board_->Complete(c, Time()).status()));
}

TEST_F(BoardTest, ANodeKeepsItsLeaseWhenTheCoordinatorRestarts) {
  const std::string id = Submit("a", 1);
  const auto lease = Lease("w");
  Restart();
  EXPECT_THAT(Beat("w", {lease[0].id}), IsEmpty());
  EXPECT_THAT(Lease("w2"), IsEmpty()) << "it is leased";
  EXPECT_TRUE(*Complete(lease[0], "w"));
  EXPECT_EQ(Get(id).shards_done, 1u);
}

TEST_F(BoardTest, VerdictsAreKnownAfterARestartAndToOtherJobs) {
  const std::uint64_t job = ToReducing(Submit("a"));
  ASSERT_TRUE(board_->BeginRound(job, {"r1", "odd"}).ok());
  const auto lease = Lease("v", 8);
  ASSERT_THAT(lease, SizeIs(1));
  convert::Complete c = Result(lease[0], "v");
  auto& odd = std::get<convert::ProofResult>(c.result).verdicts[1];
  odd.kind = VerdictKind::kUnknown;
  odd.repeatable = false;
  ASSERT_TRUE(*board_->Complete(c, Time()));
  Restart();
  ASSERT_EQ(board_->Claim()->job, job);
  ASSERT_TRUE(board_->BeginRound(job, {"r1", "odd"}).ok());
  EXPECT_THAT(*board_->RoundResult(job), ElementsAre(VerdictKind::kProved, VerdictKind::kUnknown))
      << "also what cannot be repeated, or the job would take another turn";
  ASSERT_TRUE(board_->Finish(job, {}, Time()).ok());
  const std::uint64_t other = ToReducing(Submit("b"));
  ASSERT_TRUE(board_->BeginRound(other, {"r1", "odd"}).ok());
  const auto fresh = Lease("v", 8);
  ASSERT_THAT(fresh, SizeIs(1));
  EXPECT_THAT(std::get<convert::ProofTask>(fresh[0].task.work).rules, ElementsAre("odd"));
}

// A verifier of an older version made no certificates, and gave up where a newer one does not. Once
// its verdicts were kept for everyone, and every later job went without these rules.
TEST_F(BoardTest, WhatAnotherVerifierMaySayOtherwiseIsAskedAgainByTheNextJob) {
  const std::vector<std::string> rules = {"certified", "bare", "unproved", "false!"};
  const std::uint64_t job = ToReducing(Submit("a"));
  ASSERT_TRUE(board_->BeginRound(job, rules).ok());
  const auto lease = Lease("v", 8);
  ASSERT_THAT(lease, SizeIs(1));
  convert::Complete c = Result(lease[0], "v");
  auto& verdicts = std::get<convert::ProofResult>(c.result).verdicts;
  verdicts[1].certificate.clear();
  verdicts[2].kind = VerdictKind::kUnproved;
  verdicts[2].certificate.clear();
  ASSERT_TRUE(*board_->Complete(c, Time()));
  EXPECT_EQ(*board_->Certificate(job, "certified"), "why certified");
  ASSERT_TRUE(board_->Finish(job, {}, Time()).ok());

  const std::uint64_t other = ToReducing(Submit("b"));
  ASSERT_TRUE(board_->BeginRound(other, rules).ok());
  const auto fresh = Lease("v", 8);
  ASSERT_THAT(fresh, SizeIs(1));
  EXPECT_THAT(std::get<convert::ProofTask>(fresh[0].task.work).rules,
              ElementsAre("bare", "unproved"));
  EXPECT_EQ(*board_->Certificate(other, "certified"), "why certified");
  ASSERT_TRUE(*Complete(fresh[0], "v"));
  EXPECT_THAT(*board_->RoundResult(other),
              ElementsAre(VerdictKind::kProved, VerdictKind::kProved, VerdictKind::kProved,
                          VerdictKind::kRefuted));
  EXPECT_EQ(*board_->Certificate(other, "bare"), "why bare");
}

TEST_F(BoardTest, JobsWaitForStoresAndFollowTheirAddresses) {
  options_.stores.clear();
  options_.min_stores = 2;
  Restart();
  const std::string id = Submit("a");
  EXPECT_EQ(Get(id).state, JobState::kSubmitted);
  EXPECT_THAT(Lease("w"), IsEmpty());
  convert::Heartbeat store;
  store.role = "store";
  for (const char* node : {"s1", "s0"}) {
    store.node_id = node;
    store.address = std::string(node) + ":7";
    board_->Heartbeat(store, Time());
  }
  const auto endpoints = [&](const convert::Lease& lease) {
    return std::get<convert::ShardTask>(lease.task.work).enumeration.stores.endpoints;
  };
  EXPECT_THAT(endpoints(Lease("w")[0]), ElementsAre("s0:7", "s1:7"));
  store.node_id = "s1";
  store.address = "s1:8";
  board_->Heartbeat(store, Time());
  EXPECT_THAT(endpoints(Lease("w")[0]), ElementsAre("s0:7", "s1:8"));
  // After a restart nobody knows where they are, until both have spoken.
  Restart();
  EXPECT_THAT(Lease("w"), IsEmpty());
  board_->Heartbeat(store, Time());
  EXPECT_THAT(Lease("w"), IsEmpty());
  store.node_id = "s0";
  store.address = "s0:9";
  board_->Heartbeat(store, Time());
  EXPECT_THAT(endpoints(Lease("w")[0]), ElementsAre("s0:9", "s1:8"));
}

// Of five jobs that have ended, two are kept by number and one by age, also after a restart.
TEST_F(BoardTest, EndedJobsAreForgottenOldestFirst) {
  options_.ended_jobs_max = 2;
  options_.ended_jobs_kept_for = std::chrono::hours(48);
  Restart();
  const auto cancel = [&](const std::string& id) {
    EXPECT_TRUE(board_->Control({id, ControlJob::Action::kCancel, 0}, Time()).ok());
    for (const Table& table : board_->TablesToDrop()) EXPECT_TRUE(board_->Dropped(table.job).ok());
    Pass(1s);
  };
  const std::string open = Submit("open");
  std::vector<std::string> ended;
  for (const char* name : {"a", "b", "c", "d"}) {
    ended.push_back(Submit(name));
    cancel(ended.back());
  }
  const auto ids = [&] {
    std::vector<std::string> out;
    const auto page = board_->List({.page_size = 100});
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return out;
    for (const Job& job : page->jobs) out.push_back(job.id);
    return out;
  };
  EXPECT_THAT(ids(), ElementsAre(ended[3], ended[2], open));
  EXPECT_TRUE(absl::IsNotFound(board_->Get(ended[0]).status()));
  Restart();
  EXPECT_THAT(ids(), ElementsAre(ended[3], ended[2], open));
  int records = 0;
  ASSERT_TRUE(journal_
                  ->Scan(store::Family::kJobs, "",
                         [&](std::string_view, std::string_view) {
                           ++records;
                           return OkStatus();
                         })
                  .ok());
  EXPECT_EQ(records, 1 + 2 + 2 * 3);  // The epoch; two of the open job; three of each other one.
  // The request of a forgotten job makes a new one.
  EXPECT_NE(Submit("a"), ended[0]);
  // The newest one stays, or its number would be given again.
  Pass(std::chrono::hours(72));
  EXPECT_THAT(ids(), ElementsAre("j6", open));
  cancel("j6");
  Pass(std::chrono::hours(72));
  EXPECT_THAT(ids(), ElementsAre("j6", open));
  EXPECT_EQ(Submit("e"), "j7");
  EXPECT_THAT(Get(open).state, JobState::kEnumerating);
}

TEST_F(BoardTest, JobsAreRememberedWhileTheirTablesAreThereOrSomebodyReducesThem) {
  options_.ended_jobs_max = 0;
  Restart();
  const std::uint64_t reduced = ToReducing(Submit("a"));
  Submit("z");
  ASSERT_TRUE(board_->Finish(reduced, {}, Time()).ok());
  Pass(1s);
  EXPECT_FALSE(board_->IsWanted(reduced)) << "it can be asked";
  ASSERT_THAT(board_->TablesToDrop(), SizeIs(1));
  board_->Reduced(reduced);
  Pass(1s);
  EXPECT_EQ(Get("j1").state, JobState::kDone);
  // While the disk is full nothing is forgotten, and Tick says so.
  ASSERT_TRUE(board_->Dropped(reduced).ok());
  journal_->full = true;
  clock_ += 1s;
  EXPECT_FALSE(board_->Tick(Time()).ok());
  EXPECT_EQ(Get("j1").state, JobState::kDone);
  journal_->full = false;
  Pass(1s);
  EXPECT_TRUE(absl::IsNotFound(board_->Get("j1").status()));
}

TEST_F(BoardTest, NodesThatAreGoneAreForgottenAndStoresAreNot) {
  convert::Heartbeat store;
  store.role = "store";
  store.node_id = "s";
  store.address = "s:1";
  board_->Heartbeat(store, Time());
  Beat("w1", {});
  Pass(options_.lease_ttl * 7);
  Beat("w2", {});
  EXPECT_THAT(board_->Nodes(Time()), SizeIs(3));
  Pass(options_.lease_ttl * 5);
  std::vector<std::string> ids;
  for (const Node& node : board_->Nodes(Time())) ids.push_back(node.id);
  EXPECT_THAT(ids, ElementsAre("s", "w2"));
}

TEST_F(BoardTest, ListsComeInPagesNewestFirst) {
  for (int k = 0; k < 5; ++k) Submit("p" + std::to_string(k));
  convert::ListJobs list;
  list.page_size = 2;
  std::vector<std::string> ids;
  do {
    const auto page = board_->List(list);
    ASSERT_TRUE(page.ok());
    for (const Job& job : page->jobs) ids.push_back(job.id);
    list.page_token = page->next_page_token;
  } while (!list.page_token.empty());
  EXPECT_THAT(ids, ElementsAre("j5", "j4", "j3", "j2", "j1"));
  list.states = {JobState::kDone};
  EXPECT_THAT(board_->List(list)->jobs, IsEmpty());
  list.page_token = "nonsense";
  EXPECT_TRUE(absl::IsInvalidArgument(board_->List(list).status()));
}

// Random nodes that die, stall, repeat themselves and come late, a disk that fills up and a
// coordinator that is killed, in any order: the job ends, with the verdicts of a quiet day.
TEST_F(BoardTest, AnyOrderOfEventsEndsInTheSameVerdicts) {
  const std::vector<std::vector<std::string>> rounds = {
      {"a", "b!", "c", "d", "e", "f!"}, {"g", "a", "h!"}, {"i"}};
  std::vector<std::vector<VerdictKind>> quiet;
  for (const auto& round : rounds) {
    quiet.emplace_back();
    for (const auto& rule : round) quiet.back().push_back(VerdictOf(rule).kind);
  }
  for (int seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const auto roll = [&](std::uint64_t n) { return random() % n; };
    options_.failures_max = 1000;  // Bad luck is no poison.
    options_.proofs_per_task = static_cast<std::uint32_t>(1 + roll(4));
    journal_->full = false;
    Restart();
    const std::string id = Submit("seed" + std::to_string(seed), 5);
    std::vector<std::pair<convert::Lease, std::string>> held;
    std::size_t round = 0;
    std::uint64_t job = 0;  // 0: not claimed.
    bool asked = false;
    for (int step = 0; step < 5000 && !convert::HasEnded(Get(id).state); ++step) {
      const std::string node = "n" + std::to_string(roll(4));
      const std::size_t pick = held.empty() ? 0 : roll(held.size());
      switch (roll(12)) {
        case 0:
        case 1:
        case 2:
          for (auto& lease : Lease(node, static_cast<std::uint32_t>(1 + roll(3)))) {
            held.emplace_back(std::move(lease), node);
          }
          break;
        case 3:
        case 4:
        case 5:  // Sometimes reported twice, sometimes long after.
          if (held.empty()) break;
          (void)Complete(held[pick].first, held[pick].second);
          if (roll(3) != 0) held.erase(held.begin() + std::ptrdiff_t(pick));
          break;
        case 6:
          if (held.empty()) break;
          (void)board_->Release({held[pick].first.id, held[pick].first.task.id, held[pick].second,
                                 roll(2) == 0 ? "" : "bad luck"},
                                Time());
          break;
        case 7:
          if (!held.empty()) Beat(held[pick].second, {held[pick].first.id});
          break;
        case 8:
          clock_ += std::chrono::milliseconds(roll(20'000));
          (void)board_->Tick(Time());
          break;
        case 9:
          journal_->full = roll(4) == 0;
          break;
        case 10:
          if (roll(4) != 0) break;
          journal_->full = false;
          Restart();
          job = 0;
          round = 0;
          asked = false;
          break;
        default:
          if (job == 0) {
            if (const auto claimed = board_->Claim()) job = claimed->job;
          } else if (round == rounds.size()) {
            (void)board_->Finish(job, {}, Time());
          } else if (!asked) {
            asked = board_->BeginRound(job, rounds[round]).ok();
          } else if (const auto result = board_->RoundResult(job)) {
            EXPECT_EQ(*result, quiet[round]);
            ++round;
            asked = false;
          }
      }
      const Job now = Get(id);
      EXPECT_LE(now.shards_done, now.shards_total);
      EXPECT_LE(now.proofs_done, now.proofs_total);
    }
    EXPECT_EQ(Get(id).state, JobState::kDone);
    EXPECT_EQ(board_->figures().open, ByTask{});
    EXPECT_EQ(board_->figures().leases, ByTask{});
  }
}

TEST_F(BoardTest, DamagedRecordsAreNamed) {
  Submit("a");
  ASSERT_TRUE(store_->Put(store::Family::kJobs, KeyOf(JobKey::kSubmit, 1), "nonsense").ok());
  const auto board = Board::Open(*journal_, options_, Time());
  EXPECT_TRUE(absl::IsDataLoss(board.status()));
}

}  // namespace
}  // namespace tenon::board
