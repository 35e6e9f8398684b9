// The worker's role on two stores: the cluster finds what one process finds.
#include "worker/serve.h"

#include <signal.h>

#include <algorithm>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "client/registry/sha256.h"
#include "client/rpc/store_client.h"
#include "core/graph/classes.h"
#include "proto/convert/universe.h"
#include "store/service.h"
#include "tests/support/daemon.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/process.h"
#include "worker/tasks.h"

namespace tenon::worker {
namespace {

constexpr std::uint32_t kShards = 6;

class WorkerServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int k = 0; k < 2; ++k) {
      stores_.push_back(*store::Store::Open(folder_ / fmt::format("db{}", k)));
      servers_.push_back(*store::Server::Start(*stores_.back(), {}));
      endpoints_.push_back(fmt::format("127.0.0.1:{}", servers_.back()->port()));
    }
  }
  void TearDown() override { EndWorkers(); }

  convert::EnumerationTask Enumeration(convert::EnumerationMode mode, int size = 2) {
    return {.universe = convert::CanonicalText(*convert::LoadUniverse("matrix")),
            .max_operators = size,
            .mode = mode,
            .shards = kShards,
            .seed = 3,
            .stores = {.endpoints = endpoints_, .table = 9, .bucket_bits = 3}};
  }
  void AddShards(const convert::EnumerationTask& e) {
    for (std::uint32_t shard = 0; shard < e.shards; ++shard) {
      coordinator_.Add({.id = fmt::format("job/shard/{}", shard),
                        .job_id = "job",
                        .work = convert::ShardTask{.enumeration = e, .shard = shard}});
    }
  }
  // In two parts, cut within what one store has, and joined.
  void Collect(const convert::EnumerationTask& e) {
    convert::JoinTask join{.enumeration = e, .parts = {}, .artifact = "classes"};
    const std::uint32_t cuts[] = {0, 3, 8};
    for (std::uint32_t k = 0; k < 2; ++k) {
      convert::CollectTask part{e, fmt::format("part{}", k), cuts[k], cuts[k + 1], k};
      coordinator_.Add({.id = fmt::format("job/collect/{}", k), .job_id = "job", .work = part});
    }
    ASSERT_TRUE(coordinator_.WaitUntil(
        [&] { return ResultOf("job/collect/0") && ResultOf("job/collect/1"); }));
    for (std::uint32_t k = 0; k < 2; ++k) {
      const auto result =
          std::get<convert::CollectResult>(*ResultOf(fmt::format("job/collect/{}", k)));
      EXPECT_GT(result.graphs, 0u);
      join.parts.push_back(
          {fmt::format("part{}", k), k, result.artifact_bytes, result.artifact_sha256});
    }
    coordinator_.Add({.id = "job/join", .job_id = "job", .work = join});
    ASSERT_TRUE(coordinator_.WaitUntil([&] { return ResultOf("job/join").has_value(); }));
  }
  std::optional<decltype(convert::Complete::result)> ResultOf(const std::string& task) {
    for (const convert::Complete& c : coordinator_.completed()) {
      if (c.task_id == task) return c.result;
    }
    return std::nullopt;
  }
  void StartWorker(const std::string& id) {
    workers_.emplace_back([this, id](std::stop_token stop) {
      const Status s = Serve({.coordinator = coordinator_.endpoint(), .node_id = id}, stop);
      EXPECT_TRUE(s.ok()) << s;
    });
  }
  void EndWorkers() {
    for (std::jthread& w : workers_) w.request_stop();
    workers_.clear();
  }
  bool WaitForCompleted(std::size_t count) {
    return coordinator_.WaitUntil([&] { return coordinator_.completed().size() >= count; });
  }

  // The collected classes are those of one process, byte for byte.
  void ExpectSameAsEmbedded(const convert::EnumerationTask& task) {
    const auto joined = ResultOf("job/join");
    ASSERT_TRUE(joined.has_value());
    const convert::CollectResult& result = std::get<convert::JoinResult>(*joined).all;
    const auto universe = *convert::LoadUniverse("matrix");
    const auto mode =
        task.mode == convert::EnumerationMode::kCanonical ? Mode::kCanonical : Mode::kExhaustive;
    const auto one = Enumerate(universe, {.max_operators = task.max_operators, .mode = mode});
    ASSERT_TRUE(one.ok()) << one.status();
    EXPECT_EQ(result.graphs, one->graphs);
    EXPECT_EQ(result.graphs_by_size, one->graphs_by_size);
    EXPECT_EQ(result.classes, one->classes);
    EXPECT_EQ(result.equivalent_pairs, one->equivalent_pairs);
    const std::string expected = graph::EncodeClasses(
        graph::Fragment(universe, one->table, one->class_at, one->class_members));
    const rpc::StoreClient client(*rpc::Connection::Open(endpoints_[0]));
    const auto bytes = client.GetArtifact(9, "classes", 1 << 30);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*bytes, expected);
    EXPECT_EQ(result.artifact_bytes, bytes->size());
    EXPECT_EQ(result.artifact_sha256, registry::ToHex(registry::Sha256(*bytes)));
    const auto decoded = graph::DecodeClasses(universe, *bytes);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    ASSERT_EQ(decoded->members.size(), one->class_members.size());
    for (std::size_t k = 0; k < decoded->members.size(); ++k) {
      ASSERT_EQ(decoded->table.Print(decoded->members[k]), one->table.Print(one->class_members[k]));
    }
  }

  testing::TempFolder folder_;
  std::vector<std::unique_ptr<store::Store>> stores_;
  std::vector<std::unique_ptr<store::Server>> servers_;
  std::vector<std::string> endpoints_;
  testing::FakeCoordinator coordinator_;
  std::vector<std::jthread> workers_;
};

TEST_F(WorkerServiceTest, TwoWorkersAndTwoStoresFindWhatOneProcessFinds) {
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive);
  StartWorker("w1");
  StartWorker("w2");
  AddShards(task);
  ASSERT_TRUE(WaitForCompleted(kShards));
  std::uint64_t graphs = 0, records = 0;
  for (const convert::Complete& c : coordinator_.completed()) {
    graphs += std::get<convert::ShardResult>(c.result).graphs;
    records += std::get<convert::ShardResult>(c.result).records;
  }
  Collect(task);
  ExpectSameAsEmbedded(task);
  const auto joined = *ResultOf("job/join");
  EXPECT_EQ(graphs, std::get<convert::JoinResult>(joined).all.graphs);
  EXPECT_EQ(records, graphs + convert::LoadUniverse("matrix")->inputs.size());
  // Both stores have their part.
  for (const auto& s : stores_) EXPECT_GT(*s->Verify(), 0u);
}

TEST_F(WorkerServiceTest, CanonicalModeToo) {
  const auto task = Enumeration(convert::EnumerationMode::kCanonical);
  StartWorker("w1");
  AddShards(task);
  ASSERT_TRUE(WaitForCompleted(kShards));
  Collect(task);
  ExpectSameAsEmbedded(task);
}

TEST_F(WorkerServiceTest, ShardsThatAreDoneTwiceChangeNothing) {
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive);
  AddShards(task);
  AddShards(task);
  StartWorker("w1");
  StartWorker("w2");
  ASSERT_TRUE(WaitForCompleted(kShards));
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() >= kShards; }));
  EndWorkers();
  AddShards(task);  // And by another one, later.
  StartWorker("w3");
  ASSERT_TRUE(WaitForCompleted(2 * kShards));
  Collect(task);
  ExpectSameAsEmbedded(task);
}

TEST_F(WorkerServiceTest, AStoreAndACoordinatorThatComeBackAreWaitedFor) {
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive);
  const std::string listen = endpoints_[1];
  servers_[1].reset();
  StartWorker("w1");
  AddShards(task);
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() == 1; }));
  coordinator_.Stop();
  servers_[1] = *store::Server::Start(*stores_[1], {.listen = listen});
  coordinator_.Start();
  ASSERT_TRUE(WaitForCompleted(kShards));
  Collect(task);
  ExpectSameAsEmbedded(task);
}

TEST_F(WorkerServiceTest, AWorkerThatLeavesGivesItsTasksBack) {
  servers_[1].reset();  // So that the task does not end.
  StartWorker("w1");
  AddShards(Enumeration(convert::EnumerationMode::kExhaustive));
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() == 1; }));
  EndWorkers();
  ASSERT_EQ(coordinator_.released().size(), 1u);
  EXPECT_EQ(coordinator_.released()[0].error, "");  // No failure.
  EXPECT_EQ(coordinator_.released()[0].node_id, "w1");
  EXPECT_TRUE(coordinator_.completed().empty());
}

TEST_F(WorkerServiceTest, ALostLeaseFreesTheWorkerForTheNextTask) {
  servers_[1].reset();
  const std::string listen = endpoints_[1];
  StartWorker("w1");
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive);
  AddShards(task);
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() == 1; }));
  coordinator_.LoseLeases();
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() == 2; }));
  EXPECT_TRUE(coordinator_.released().empty());
  servers_[1] = *store::Server::Start(*stores_[1], {.listen = listen});
  ASSERT_TRUE(WaitForCompleted(kShards));
}

// Stopped in the middle of a shard until long after another worker has done it, then woken: what it
// still sends and reports changes nothing.
TEST_F(WorkerServiceTest, AWorkerThatSleptThroughItsLeaseDoesNoHarm) {
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive);
  const std::string listen = endpoints_[1];
  servers_[1].reset();  // So that it stops while it writes.
  testing::Daemon sleeper({WORKER_NODE, coordinator_.endpoint(), "sleeper"});
  AddShards(task);
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() == 1; }));
  sleeper.Signal(SIGSTOP);
  servers_[1] = *store::Server::Start(*stores_[1], {.listen = listen});
  coordinator_.LoseLeases();
  StartWorker("w1");
  ASSERT_TRUE(WaitForCompleted(kShards));
  sleeper.Signal(SIGCONT);
  // It is alive and takes part again.
  const std::size_t beats = coordinator_.heartbeats().size();
  ASSERT_TRUE(coordinator_.WaitUntil([&] {
    const auto all = coordinator_.heartbeats();
    return std::any_of(all.begin() + long(beats), all.end(),
                       [](const auto& b) { return b.node_id == "sleeper"; });
  }));
  Collect(task);
  ExpectSameAsEmbedded(task);
  EXPECT_FALSE(sleeper.has_ended());
}

TEST_F(WorkerServiceTest, KilledWorkersCostNothingButTime) {
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive, 3);
  for (int k = 0; k < 4; ++k) {
    AddShards(task);  // Those that are done already, too.
    const std::size_t before = coordinator_.leases();
    testing::Daemon victim({WORKER_NODE, coordinator_.endpoint(), "victim"});
    ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.leases() > before; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(40 * k));
    victim.Signal(SIGKILL);
    victim.Wait();
    coordinator_.LoseLeases();
  }
  StartWorker("w1");
  std::set<std::string> done;
  ASSERT_TRUE(coordinator_.WaitUntil([&] {
    for (const convert::Complete& c : coordinator_.completed()) done.insert(c.task_id);
    return done.size() == kShards;
  }));
  Collect(task);
  ExpectSameAsEmbedded(task);
}

TEST_F(WorkerServiceTest, ATaskThatCannotBeDoneGoesBackWithTheReason) {
  auto task = Enumeration(convert::EnumerationMode::kExhaustive, 4);
  task.memory_limit_bytes = 1 << 20;
  StartWorker("w1");
  coordinator_.Add({.id = "job/shard/0",
                    .job_id = "job",
                    .work = convert::ShardTask{.enumeration = task, .shard = 0}});
  ASSERT_TRUE(coordinator_.WaitUntil([&] { return coordinator_.released().size() == 1; }));
  EXPECT_NE(coordinator_.released()[0].error.find("memory limit"), std::string::npos);
}

TEST_F(WorkerServiceTest, AnEnumerationIsPreparedOnceForItsShards) {
  const auto task = Enumeration(convert::EnumerationMode::kExhaustive);
  TaskRunner runner({});
  for (std::uint32_t shard = 0; shard < kShards; ++shard) {
    const auto outcome =
        runner.Run({.id = "t", .work = convert::ShardTask{task, shard}}, std::stop_token());
    ASSERT_TRUE(outcome.ok()) << outcome.status();
  }
  EXPECT_EQ(runner.prepared(), 1u);
}

TEST(RemoteRunsTest, EachBucketHasTheOwnerThatTheMapSays) {
  for (std::size_t stores = 1; stores <= 7; ++stores) {
    for (std::uint32_t bits = 0; bits <= 6; ++bits) {
      const convert::StoreMap map{.endpoints = std::vector<std::string>(stores, "h:1"),
                                  .bucket_bits = bits};
      const std::size_t buckets = std::size_t{1} << bits;
      for (std::uint32_t b = 0; b < buckets; ++b) {
        const std::size_t k = OwnerOf(map, b);
        EXPECT_GE(b, k * buckets / stores);
        EXPECT_LT(b, (k + 1) * buckets / stores);
      }
    }
  }
}

}  // namespace
}  // namespace tenon::worker
