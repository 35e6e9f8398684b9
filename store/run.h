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

// Writes what `shard` has, at once; sorts `records`. Writing it again changes nothing. Durable when
// it returns. Returns the bytes of the runs. Errors of Store::Write.
StatusOr<std::uint64_t> PutRuns(Store& store, const RunTable& table, std::uint32_t shard,
                                std::vector<Record>& records);

// Calls `visit` for each fingerprint of the table with the ids that have it, ascending and without
// repetition. DataLoss names the bucket and shard of a damaged run; an error of `visit` is
// returned.
using VisitClass =
    std::function<Status(const base::Fingerprint&, std::span<const std::uint64_t> ids)>;
Status ForEachClass(const Store& store, const RunTable& table, const VisitClass& visit);

// Removes all runs of the table.
Status DropRuns(Store& store, const RunTable& table);

}  // namespace tenon::store
