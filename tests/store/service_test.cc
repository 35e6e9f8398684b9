// The store's service and its clients, over real connections on this machine.
#include "store/service.h"

#include <atomic>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "client/registry/sha256.h"
#include "client/rpc/run_writer.h"
#include "client/rpc/store_client.h"
#include "proto/convert/status.h"
#include "store/run.h"
#include "store/serve.h"
#include "tenon/v1/store.grpc.pb.h"
#include "tests/support/fake_coordinator.h"
#include "tests/support/process.h"

namespace tenon::store {
namespace {

using rpc::Milliseconds;

constexpr RunTable kTable{.job = 7, .bucket_bits = 3};

std::vector<Record> RecordsOf(std::uint32_t shard, int count = 400) {
  base::SplitMix64 random(shard);
  std::vector<Record> out;
  for (int k = 0; k < count; ++k) out.push_back({{random.Next(), random.Next()}, shard});
  return out;
}

std::vector<rpc::Run> RunsOf(std::uint32_t shard, int count = 400) {
  class Sink final : public RunSink {
   public:
    Status Put(const RunTable& table, const RunKey& key, std::string run) override {
      runs.push_back({key.job, std::uint32_t(table.bucket_bits), key.bucket, key.shard, key.part,
                      std::move(run)});
      return OkStatus();
    }
    Status Sync() override { return OkStatus(); }
    std::vector<rpc::Run> runs;
  } sink;
  std::vector<Record> records = RecordsOf(shard, count);
  EXPECT_TRUE(PutRuns(sink, kTable, shard, records).ok());
  return sink.runs;
}

// How many records each shard has.
std::map<std::uint64_t, int> Shards(Store& store) {
  std::map<std::uint64_t, int> out;
  const Status s = ForEachClass(store, kTable,
                                [&](const base::Fingerprint&, std::span<const std::uint64_t> ids) {
                                  for (const std::uint64_t id : ids) ++out[id];
                                  return OkStatus();
                                });
  EXPECT_TRUE(s.ok()) << s;
  return out;
}

std::shared_ptr<rpc::Connection> Connect(int port) {
  return *rpc::Connection::Open(fmt::format("127.0.0.1:{}", port));
}

class StoreServiceTest : public ::testing::Test {
 protected:
  void Start(ServerOptions options = {}) {
    store_ = *Store::Open(folder_ / "db");
    options.free_bytes = [this] { return StatusOr<std::uint64_t>(free_bytes_.load()); };
    auto server = Server::Start(*store_, options);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    connection_ = Connect(server_->port());
  }
  void Stop() {
    server_.reset();
    store_.reset();
  }
  rpc::StoreClient Client() { return rpc::StoreClient(connection_, Milliseconds(10'000)); }

  testing::TempFolder folder_;
  std::atomic<std::uint64_t> free_bytes_ = ~std::uint64_t{0};
  std::unique_ptr<Store> store_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<rpc::Connection> connection_;
};

TEST_F(StoreServiceTest, RunsAreThereWhenSyncReturnsAndTwiceIsOnce) {
  Start();
  rpc::RunWriter writer(connection_, Milliseconds(10'000), {});
  for (int times = 0; times < 2; ++times) {
    for (std::uint32_t shard = 0; shard < 5; ++shard) {
      for (rpc::Run& run : RunsOf(shard)) ASSERT_TRUE(writer.Put(std::move(run)).ok());
    }
    ASSERT_TRUE(writer.Sync().ok());
    const auto shards = Shards(*store_);
    ASSERT_EQ(shards.size(), 5u);
    for (const auto& [shard, records] : shards) EXPECT_EQ(records, 400);
  }
  EXPECT_EQ(writer.streams(), 1u);
}

TEST_F(StoreServiceTest, ScansGiveRunsInOrderAndOnlyThoseOfTheRange) {
  Start();
  std::vector<rpc::Run> all;
  for (std::uint32_t shard = 0; shard < 3; ++shard) {
    auto records = RecordsOf(shard);
    ASSERT_TRUE(PutRuns(*store_, kTable, shard, records).ok());
    for (rpc::Run& run : RunsOf(shard)) all.push_back(std::move(run));
  }
  std::sort(all.begin(), all.end(), [](const rpc::Run& a, const rpc::Run& b) {
    return std::tie(a.bucket, a.shard) < std::tie(b.bucket, b.shard);
  });
  std::erase_if(all, [](const rpc::Run& r) { return r.bucket < 2 || r.bucket >= 5; });
  std::vector<rpc::Run> seen;
  const rpc::BucketRange range{.table = 7, .bucket_bits = 3, .first = 2, .end = 5};
  const auto keep = [&](const rpc::Run& run) {
    seen.push_back(run);
    return OkStatus();
  };
  ASSERT_TRUE(Client().ScanRuns(range, keep).ok());
  ASSERT_EQ(seen.size(), all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    EXPECT_EQ(seen[k].bucket, all[k].bucket);
    EXPECT_EQ(seen[k].shard, all[k].shard);
    EXPECT_EQ(seen[k].data, all[k].data);
  }
}

TEST_F(StoreServiceTest, AScanStopsWithTheErrorOfItsVisitor) {
  Start();
  auto records = RecordsOf(1);
  ASSERT_TRUE(PutRuns(*store_, kTable, 1, records).ok());
  int visits = 0;
  const Status s = Client().ScanRuns(
      {.table = 7, .bucket_bits = 3, .first = 0, .end = 8},
      [&](const rpc::Run&) { return ++visits == 2 ? base::Internal("enough") : OkStatus(); });
  EXPECT_EQ(s.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(visits, 2);
}

TEST_F(StoreServiceTest, AScanGoesOnWhereItBroke) {
  Start();
  // Much more than the buffers on the way hold, so that the break comes in the middle.
  for (std::uint32_t shard = 0; shard < 40; ++shard) {
    auto records = RecordsOf(shard, 20'000);
    ASSERT_TRUE(PutRuns(*store_, kTable, shard, records).ok());
  }
  const std::string listen = fmt::format("127.0.0.1:{}", server_->port());
  std::vector<RunKey> seen;
  const auto visit = [&](const rpc::Run& run) {
    seen.push_back({run.table, run.bucket, run.shard, run.part});
    if (seen.size() == 20 || seen.size() == 150) {
      server_.reset();
      server_ = *Server::Start(*store_, {.listen = listen});
    }
    return OkStatus();
  };
  const Status s = Client().ScanRuns({.table = 7, .bucket_bits = 3, .first = 0, .end = 8}, visit);
  ASSERT_TRUE(s.ok()) << s;
  EXPECT_EQ(seen.size(), 8u * 40u);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end());
}

// A store that hears everything and says nothing.
class SilentStore final : public v1::StoreService::Service {
 public:
  grpc::Status PutRuns(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<v1::PutRunsResponse, v1::PutRunsRequest>* stream) override {
    v1::PutRunsRequest request;
    while (stream->Read(&request)) received = request.sequence();
    return grpc::Status::OK;
  }
  std::atomic<std::uint64_t> received = 0;
};

TEST(RunWriterTest, NoMoreThanItsBoundIsUnacknowledged) {
  SilentStore silent;
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&silent);
  const auto server = builder.BuildAndStart();
  std::atomic<std::uint64_t> put = 0;
  std::stop_source stop;
  rpc::RunWriter writer(Connect(port), Milliseconds(60'000), stop.get_token());
  std::jthread putter([&] {
    for (int k = 0; k < 40; ++k) {
      if (!writer.Put({.data = std::string(1 << 20, 'x')}).ok()) return;
      ++put;
    }
  });
  while (silent.received < 16) std::this_thread::yield();
  // All that may be under way is; time does not bring more.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_EQ(put, rpc::kUnacknowledgedBytesMax >> 20);
  EXPECT_EQ(silent.received, rpc::kUnacknowledgedBytesMax >> 20);
  stop.request_stop();
  putter.join();
  EXPECT_EQ(writer.Sync().code(), absl::StatusCode::kCancelled);
  server->Shutdown(std::chrono::system_clock::now());
}

TEST_F(StoreServiceTest, WhatIsNoRunOfItsBucketIsRefused) {
  Start();
  std::vector<rpc::Run> runs = RunsOf(1);
  const auto refused = [&](rpc::Run run) {
    rpc::RunWriter writer(connection_, Milliseconds(10'000), {});
    EXPECT_TRUE(writer.Put(std::move(run)).ok());
    return writer.Sync().code() == absl::StatusCode::kInvalidArgument;
  };
  rpc::Run moved = runs[0];
  moved.bucket = runs[1].bucket;
  EXPECT_TRUE(refused(moved));
  rpc::Run damaged = runs[0];
  damaged.data.resize(damaged.data.size() - 3);
  EXPECT_TRUE(refused(damaged));
  rpc::Run outside = runs[0];
  outside.bucket = 8;
  EXPECT_TRUE(refused(outside));
  EXPECT_TRUE(Shards(*store_).empty());
  EXPECT_FALSE(refused(runs[0]));
}

TEST_F(StoreServiceTest, AStreamWithAGapIsRefused) {
  Start();
  const auto stub = v1::StoreService::NewStub(connection_->channel());
  grpc::ClientContext context;
  const auto stream = stub->PutRuns(&context);
  v1::PutRunsRequest request;
  request.set_sequence(2);
  request.mutable_run()->set_table(7);
  request.mutable_run()->set_data(EncodeRun({}));
  stream->Write(request);
  v1::PutRunsResponse answer;
  EXPECT_FALSE(stream->Read(&answer));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(StoreServiceTest, AFullDiskStopsIntakeAndLosesNothing) {
  Start();
  {
    rpc::RunWriter writer(connection_, Milliseconds(10'000), {});
    for (rpc::Run& run : RunsOf(1)) ASSERT_TRUE(writer.Put(std::move(run)).ok());
    ASSERT_TRUE(writer.Sync().ok());
  }
  free_bytes_ = 1000;
  EXPECT_FALSE(Client().Stats()->accepts_writes);
  {
    rpc::RunWriter writer(connection_, Milliseconds(1), {});
    for (rpc::Run& run : RunsOf(2)) {
      if (!writer.Put(std::move(run)).ok()) break;
    }
    const Status s = writer.Sync();
    EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
    EXPECT_EQ(convert::DetailsOf(s).reason, "DISK_FULL");
    EXPECT_TRUE(convert::DetailsOf(s).retry_after.has_value());
  }
  EXPECT_EQ(Shards(*store_), (std::map<std::uint64_t, int>{{1, 400}}));
  // There is room again: a writer that has waited goes on by itself.
  rpc::RunWriter writer(connection_, Milliseconds(30'000), {});
  for (rpc::Run& run : RunsOf(3)) ASSERT_TRUE(writer.Put(std::move(run)).ok());
  while (writer.streams() < 1) std::this_thread::yield();
  free_bytes_ = ~std::uint64_t{0};
  EXPECT_TRUE(writer.Sync().ok());
  EXPECT_EQ(Shards(*store_), (std::map<std::uint64_t, int>{{1, 400}, {3, 400}}));
}

TEST_F(StoreServiceTest, AWriterThatIsGivenUpSaysSo) {
  Start();
  Stop();
  std::stop_source stop;
  rpc::RunWriter writer(connection_, Milliseconds(60'000), stop.get_token());
  ASSERT_TRUE(writer.Put(RunsOf(1)[0]).ok());
  stop.request_stop();
  EXPECT_EQ(writer.Sync().code(), absl::StatusCode::kCancelled);
}

TEST_F(StoreServiceTest, ArtifactsAreWholeOrNotThere) {
  Start();
  std::string bytes;
  base::SplitMix64 random(5);
  while (bytes.size() < (std::size_t{5} << 19)) bytes += std::to_string(random.Next());
  const std::string sha = registry::ToHex(registry::Sha256(bytes));
  const rpc::StoreClient client = Client();
  EXPECT_EQ(client.GetArtifact(7, "classes", 1 << 30).status().code(), absl::StatusCode::kNotFound);
  // A wrong hash: refused, and nothing is left of it.
  const Status wrong = client.PutArtifact(7, "classes", bytes, std::string(64, '0'));
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument) << wrong;
  EXPECT_EQ(client.GetArtifact(7, "classes", 1 << 30).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*store_->Verify(), 0u);
  ASSERT_TRUE(client.PutArtifact(7, "classes", bytes, sha).ok());
  EXPECT_EQ(*client.GetArtifact(7, "classes", 1 << 30), bytes);
  EXPECT_EQ(client.GetArtifact(7, "classes", 1 << 20).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(client.GetArtifact(8, "classes", 1 << 30).status().code(), absl::StatusCode::kNotFound);
  // Another one in its place; the first one's chunks go.
  const std::string small = "small";
  ASSERT_TRUE(
      client.PutArtifact(7, "classes", small, registry::ToHex(registry::Sha256(small))).ok());
  EXPECT_EQ(*client.GetArtifact(7, "classes", 1 << 30), small);
  EXPECT_EQ(*store_->Verify(), 2u);
  EXPECT_EQ(client.PutArtifact(7, "../x", small, sha).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StoreServiceTest, DroppedTablesAreGoneAndOthersStay) {
  Start();
  auto records = RecordsOf(1);
  ASSERT_TRUE(PutRuns(*store_, kTable, 1, records).ok());
  ASSERT_TRUE(PutRuns(*store_, {.job = 8, .bucket_bits = 3}, 1, records).ok());
  const std::string sha = registry::ToHex(registry::Sha256("x"));
  ASSERT_TRUE(Client().PutArtifact(7, "a", "x", sha).ok());
  for (int times = 0; times < 2; ++times) ASSERT_TRUE(Client().DropTable(7).ok());
  EXPECT_TRUE(Shards(*store_).empty());
  EXPECT_EQ(Client().GetArtifact(7, "a", 100).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(*store_->Verify(), 8u + 1u);  // And the mark.
}

// A worker that slept may write when its job is long gone: that would stay for ever.
TEST_F(StoreServiceTest, WhatComesLateForADroppedTableIsRefused) {
  Start();
  for (int restarts = 0; restarts < 2; ++restarts) {
    ASSERT_TRUE(Client().DropTable(7).ok());
    rpc::RunWriter writer(connection_, Milliseconds(10'000), {});
    for (rpc::Run& run : RunsOf(1)) {
      if (!writer.Put(std::move(run)).ok()) break;
    }
    EXPECT_EQ(writer.Sync().code(), absl::StatusCode::kFailedPrecondition);
    const std::string sha = registry::ToHex(registry::Sha256("x"));
    EXPECT_EQ(Client().PutArtifact(7, "a", "x", sha).code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(*store_->Verify(), 1u);  // The mark.
    Stop();
    Start();
  }
}

TEST_F(StoreServiceTest, CheckpointsAreStoresAndFigureInNothingElse) {
  Start();
  auto records = RecordsOf(1);
  ASSERT_TRUE(PutRuns(*store_, kTable, 1, records).ok());
  const auto directory = Client().Checkpoint("backup");
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(Client().Checkpoint("backup").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Client().Checkpoint("../x").status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(Client().DropTable(7).ok());
  ASSERT_TRUE(Client().Compact().ok());
  const auto copy = Store::Open(*directory, {.create = false});
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(Shards(**copy), (std::map<std::uint64_t, int>{{1, 400}}));
  EXPECT_EQ(*Client().Verify(), 1u);  // The mark of the dropped table.
  EXPECT_EQ(Client().Stats()->families.size(), std::size(kFamilyNames));
}

TEST_F(StoreServiceTest, AStoreTellsACoordinatorWhereItIsUntilItStops) {
  testing::FakeCoordinator coordinator;
  std::atomic<int> port = 0;
  std::jthread thread([&](std::stop_token stop) {
    const Status s = Serve({.directory = folder_ / "db",
                            .coordinator = coordinator.endpoint(),
                            .node_id = "s1",
                            .on_listening = [&](int p) { port = p; }},
                           stop);
    EXPECT_TRUE(s.ok()) << s;
  });
  ASSERT_TRUE(coordinator.WaitUntil([&] { return !coordinator.heartbeats().empty(); }));
  const convert::Heartbeat beat = coordinator.heartbeats()[0];
  EXPECT_EQ(beat.role, "store");
  EXPECT_EQ(beat.node_id, "s1");
  EXPECT_EQ(beat.address, fmt::format("127.0.0.1:{}", port.load()));
  EXPECT_FALSE(beat.draining);
  thread.request_stop();
  thread.join();
  EXPECT_TRUE(coordinator.heartbeats().back().draining);
}

TEST_F(StoreServiceTest, APortThatIsTakenIsUnavailable) {
  Start();
  const auto other =
      Server::Start(*store_, {.listen = fmt::format("127.0.0.1:{}", server_->port())});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace tenon::store
