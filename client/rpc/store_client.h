// StoreClient: one store, for nodes, the coordinator and operators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/rpc/connection.h"

namespace tenon::rpc {

// A run of records on the wire (store.proto). A value type.
struct Run {
  std::uint64_t table = 0;
  std::uint32_t bucket_bits = 0;
  std::uint32_t bucket = 0;
  std::uint32_t shard = 0;
  std::uint32_t part = 0;
  std::string data;
};

struct BucketRange {
  std::uint64_t table = 0;
  std::uint32_t bucket_bits = 0;
  std::uint32_t first = 0;
  std::uint32_t end = 0;  // Exclusive.
};

struct StoreStats {
  struct Family {
    std::string name;
    std::uint64_t disk_bytes = 0;
  };
  std::vector<Family> families;
  std::uint64_t disk_free_bytes = 0;
  bool accepts_writes = false;
};

// Calls repeat themselves while the store cannot be reached, for as long as `patience` (those that
// move data) or kSlowCall. Errors: store.proto. Thread-safe.
class StoreClient {
 public:
  explicit StoreClient(std::shared_ptr<Connection> connection,
                       Milliseconds patience = std::chrono::minutes(5));

  const std::string& endpoint() const { return connection_->endpoint(); }

  // Each run of the range, by bucket, shard and part. A broken stream is opened again where it
  // broke. An error of `visit` ends it and is returned.
  using VisitRun = std::function<Status(const Run& run)>;
  Status ScanRuns(const BucketRange& range, const VisitRun& visit, std::stop_token stop = {}) const;

  // Durable when it returns. `sha256`: of the bytes, hexadecimal.
  Status PutArtifact(std::uint64_t table, const std::string& name, std::string_view bytes,
                     const std::string& sha256, std::stop_token stop = {}) const;
  // NotFound. ResourceExhausted: more than `limit_bytes`.
  StatusOr<std::string> GetArtifact(std::uint64_t table, const std::string& name,
                                    std::uint64_t limit_bytes, std::stop_token stop = {}) const;
  Status DropTable(std::uint64_t table) const;

  StatusOr<StoreStats> Stats() const;
  StatusOr<std::uint64_t> Verify() const;  // Values read. DataLoss.
  Status Compact() const;
  StatusOr<std::string> Checkpoint(const std::string& name) const;  // The directory.

 private:
  std::shared_ptr<Connection> connection_;
  Milliseconds patience_;
};

}  // namespace tenon::rpc
