// A load for one service of a cluster, for constants.py, which looks at what it costs that service.
//
//   cluster_load calls SERVER NODES        leases and completes every shard of a job, as so
//                                          many nodes with a slot each
//   cluster_load beats SERVER COUNT        heartbeats, one after another
//   cluster_load put STORE TABLE RUNS      writes runs of random records to a store
//   cluster_load scan STORE TABLE          reads them back and merges them
//
// Prints a JSON object: what was done, and the wall and own CPU seconds that it took.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/cpu_seconds.h"
#include "client/rpc/run_writer.h"
#include "client/rpc/store_client.h"
#include "client/rpc/work_client.h"
#include "store/run.h"

namespace tenon {
namespace {

constexpr std::uint32_t kBucketBits = 6;
constexpr std::size_t kRecordsPerRun = 3400;  // About 64 KiB.

StatusOr<std::string> Calls(const std::string& server, int nodes) {
  std::atomic<std::uint64_t> done = 0;
  std::atomic<bool> failed = false;
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < nodes; ++k) {
      threads.emplace_back([&, k] {
        const auto connection = rpc::Connection::Open(server);
        if (!connection.ok()) {
          failed = true;
          return;
        }
        const rpc::WorkClient client(*connection);
        const std::string node = fmt::format("load-{}", k);
        while (true) {
          convert::LeaseRequest request;
          request.node_id = node;
          request.kinds = {convert::TaskKind::kShard};
          const auto leased = client.Lease(request);
          if (!leased.ok()) failed = true;
          if (!leased.ok() || leased->leases.empty()) return;
          const convert::Lease& lease = leased->leases[0];
          const auto needed =
              client.Complete({lease.id, lease.task.id, node, convert::Milliseconds(1),
                               convert::ShardResult{1000, 1000, 20000}});
          if (!needed.ok()) failed = true;
          if (failed) return;
          ++done;
        }
      });
    }
  }
  if (failed) return base::Unavailable("a call failed");
  return fmt::format("\"tasks\": {}", done.load());
}

StatusOr<std::string> Beats(const std::string& server, int count) {
  ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(server));
  const rpc::WorkClient client(std::move(connection));
  convert::Heartbeat beat;
  beat.role = "worker";
  for (int k = 0; k < count; ++k) {
    beat.node_id = fmt::format("load-{}", k % 1000);
    RETURN_IF_ERROR(client.Heartbeat(beat).status());
  }
  return fmt::format("\"beats\": {}", count);
}

StatusOr<std::string> Put(const std::string& endpoint, std::uint64_t table, int runs) {
  ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(endpoint));
  rpc::RunWriter writer(std::move(connection), std::chrono::minutes(1), {});
  std::mt19937_64 random(table);
  std::uint64_t bytes = 0;
  for (int k = 0; k < runs; ++k) {
    const std::uint32_t bucket = std::uint32_t(k) % (1u << kBucketBits);
    std::vector<store::Record> records(kRecordsPerRun);
    for (store::Record& r : records) {
      r.fingerprint.hi = random() >> kBucketBits | std::uint64_t{bucket} << (64 - kBucketBits);
      r.fingerprint.lo = random();
      r.id = random() >> 20;
    }
    std::sort(records.begin(), records.end());
    std::string run = store::EncodeRun(records);
    bytes += run.size();
    RETURN_IF_ERROR(writer.Put({table, kBucketBits, bucket, std::uint32_t(k), 0, std::move(run)}));
  }
  RETURN_IF_ERROR(writer.Sync());
  return fmt::format("\"bytes\": {}, \"records\": {}", bytes, std::size_t(runs) * kRecordsPerRun);
}

// The runs of a store on another machine.
class Source final : public store::RunSource {
 public:
  explicit Source(rpc::StoreClient client) : client_(std::move(client)) {}
  Status ForEachRun(const store::RunTable& table, const Visit& visit) const override {
    return client_.ScanRuns({table.job, kBucketBits, 0, 1u << kBucketBits},
                            [&](const rpc::Run& run) {
                              return visit({table.job, run.bucket, run.shard, run.part}, run.data);
                            });
  }
  std::string name() const override { return "store"; }

 private:
  rpc::StoreClient client_;
};

StatusOr<std::string> Scan(const std::string& endpoint, std::uint64_t table) {
  ASSIGN_OR_RETURN(auto connection, rpc::Connection::Open(endpoint));
  std::uint64_t records = 0;
  RETURN_IF_ERROR(store::ForEachClass(
      Source(rpc::StoreClient(std::move(connection))), {table, int(kBucketBits)},
      [&](const base::Fingerprint&, std::span<const std::uint64_t> ids) {
        records += ids.size();
        return OkStatus();
      }));
  return fmt::format("\"records\": {}", records);
}

StatusOr<std::string> Run(const std::vector<std::string>& a) {
  if (a.size() == 3 && a[0] == "calls") return Calls(a[1], std::stoi(a[2]));
  if (a.size() == 3 && a[0] == "beats") return Beats(a[1], std::stoi(a[2]));
  if (a.size() == 4 && a[0] == "put") return Put(a[1], std::stoull(a[2]), std::stoi(a[3]));
  if (a.size() == 3 && a[0] == "scan") return Scan(a[1], std::stoull(a[2]));
  return base::InvalidArgument("see the head of load.cc");
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const auto begin = std::chrono::steady_clock::now();
  const auto done = tenon::Run({argv + 1, argv + argc});
  if (!done.ok()) {
    fmt::print(stderr, "cluster_load: {}\n", tenon::base::Message(done.status()));
    return 1;
  }
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{{{}, \"wall\": {:.6f}, \"cpu\": {:.6f}}}\n", *done, wall, tenon::CpuSeconds());
  return 0;
}
