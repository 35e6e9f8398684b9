// Runs: the many small records of an enumeration, a few large values in the store.
//
// A record is a fingerprint and the id of the graph that has it. Records are put into *buckets* by
// the first bits of their fingerprints. What one shard has for one bucket is a run: sorted, packed,
// one value. A merging scan of a bucket's runs yields the classes of graphs with one fingerprint,
// in the order of fingerprints. Bytes: docs/formats/store.md.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/fingerprint.h"
#include "core/base/status.h"
#include "store/store.h"

namespace tenon::store {

struct Record {
  base::Fingerprint fingerprint;
  std::uint64_t id = 0;
  friend auto operator<=>(const Record&, const Record&) = default;
};

// The bytes of records, which are sorted and may repeat a fingerprint.
std::string EncodeRun(std::span<const Record> records);

// Reads a run from front to back. The bytes outlive it. Thread-compatible.
class RunReader {
 public:
  // DataLoss when the bytes are no run.
  static StatusOr<RunReader> Open(std::string_view bytes);
  std::uint64_t remaining() const { return remaining_; }
  // The next record; remaining() is not 0. DataLoss when the bytes end early, are out of order, or
  // go on after the last record.
  StatusOr<Record> Next();

 private:
  std::string_view bytes_;
  std::uint64_t remaining_ = 0;
  Record last_;
};

// One table of records of one job, cut into 2^bucket_bits buckets.
struct RunTable {
  std::uint64_t job = 0;
  int bucket_bits = 0;  // 0 to 20.
};

// The bits with which a run of an evenly filled bucket holds about 64 KiB.
int BucketBits(std::uint64_t expected_records, std::uint64_t shards);

// Where a run lies. A run has at most kRunRecordsMax records; what a shard has beyond that in one
// bucket is its part 1, 2, ..
struct RunKey {
  std::uint64_t job = 0;
  std::uint32_t bucket = 0;
  std::uint32_t shard = 0;
  std::uint32_t part = 0;
  friend auto operator<=>(const RunKey&, const RunKey&) = default;
};
inline constexpr std::size_t kRunRecordsMax = 100'000;  // So that a run is below 3 MiB.

// The bytes of a key: docs/formats/store.md.
std::string BytesOf(const RunKey& key);

// The bucket of a fingerprint in a table with `bits` bucket bits.
std::uint32_t BucketOf(const base::Fingerprint& f, int bits);
// Reads all of it: that it is a run, and that all its records are of the bucket. InvalidArgument.
Status CheckRun(std::string_view bytes, int bucket_bits, std::uint32_t bucket);
// Adds the writing of a run to a batch.
void PutRun(Batch& batch, const RunKey& key, std::string_view bytes);

// Where runs are written to: this process's store, or the stores of a cluster.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // Takes a run, of the given table. May wait while much is under way.
  virtual Status Put(const RunTable& table, const RunKey& key, std::string run) = 0;
  // All runs that were put are durable when it returns.
  virtual Status Sync() = 0;
};

// Where they are read from.
class RunSource {
 public:
  virtual ~RunSource() = default;
  // Calls `visit` with each run of a table, ascending by key. The view ends with the visit; an
  // error of `visit` ends the scan and is returned.
  using Visit = std::function<Status(const RunKey& key, std::string_view run)>;
  virtual Status ForEachRun(const RunTable& table, const Visit& visit) const = 0;
  // For messages: "store DIRECTORY".
  virtual std::string name() const = 0;
};

// A store of this process as both. Sync makes all that was put since the last one durable at once.
// Thread-compatible.
class StoreRuns final : public RunSink, public RunSource {
 public:
  explicit StoreRuns(Store& store) : store_(store) {}
  Status Put(const RunTable& table, const RunKey& key, std::string run) override;
  Status Sync() override;
  Status ForEachRun(const RunTable& table, const Visit& visit) const override;
  std::string name() const override;

 private:
  Store& store_;
  Batch batch_;
};

// Runs of the buckets [first, end), ascending by key.
Status ScanRuns(const Store& store, std::uint64_t job, std::uint32_t first, std::uint32_t end,
                const RunSource::Visit& visit);

// Writes what `shard` has; sorts `records`. Writing it again changes nothing. Durable when it
// returns. Returns the bytes of the runs. Errors of the sink.
StatusOr<std::uint64_t> PutRuns(RunSink& sink, const RunTable& table, std::uint32_t shard,
                                std::vector<Record>& records);
StatusOr<std::uint64_t> PutRuns(Store& store, const RunTable& table, std::uint32_t shard,
                                std::vector<Record>& records);

// Calls `visit` for each fingerprint of the table with the ids that have it, ascending and without
// repetition. DataLoss names the bucket and shard of a damaged run; an error of `visit` is
// returned.
using VisitClass =
    std::function<Status(const base::Fingerprint&, std::span<const std::uint64_t> ids)>;
Status ForEachClass(const RunSource& source, const RunTable& table, const VisitClass& visit);
Status ForEachClass(Store& store, const RunTable& table, const VisitClass& visit);

// Removes all runs of the table.
Status DropRuns(Store& store, const RunTable& table);

}  // namespace tenon::store
