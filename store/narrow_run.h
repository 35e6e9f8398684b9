// Narrow runs: the records of a walk over sets, of which there are so many that 16 bytes a record
// is what they may take: fingerprints have 64 bits. Otherwise they are runs as in store/run.h, with
// the same tables and keys. Bytes: docs/formats/store.md.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "store/run.h"
#include "store/store.h"

namespace tenon::store {

struct NarrowRecord {
  std::uint64_t fingerprint = 0;
  std::uint64_t id = 0;
  friend auto operator<=>(const NarrowRecord&, const NarrowRecord&) = default;
};

// The bytes of records, which are sorted.
std::string EncodeNarrowRun(std::span<const NarrowRecord> records);
// Appends the records of a run. DataLoss when the bytes are no narrow run; `out` is then as before.
Status DecodeNarrowRun(std::string_view bytes, std::vector<NarrowRecord>& out);

// Sorts by fingerprint, then id. `buffer` is for its use, and kept by callers that sort often.
void SortNarrow(std::vector<NarrowRecord>& records, std::vector<NarrowRecord>& buffer);

// Writes runs in the order of their keys, many at once. Thread-compatible.
class NarrowRunWriter {
 public:
  static StatusOr<std::unique_ptr<NarrowRunWriter>> Open(Store& store, const RunTable& table,
                                                         std::uint32_t shard);
  // The sorted records of a bucket; buckets ascend.
  Status Put(std::uint32_t bucket, std::span<const NarrowRecord> records);
  // All of it is there and durable when it returns.
  Status Finish();
  std::uint64_t bytes() const { return bytes_; }

 private:
  NarrowRunWriter(std::unique_ptr<BulkWriter> bulk, const RunTable& table, std::uint32_t shard)
      : bulk_(std::move(bulk)), table_(table), shard_(shard) {}

  std::unique_ptr<BulkWriter> bulk_;
  RunTable table_;
  std::uint32_t shard_;
  std::uint64_t bytes_ = 0;
};

// Calls `visit` for each bucket that has records, ascending, with all of them, sorted and without
// repetition. DataLoss names the bucket and shard of a damaged run; an error of `visit` is
// returned.
using VisitNarrowBucket =
    std::function<Status(std::uint32_t bucket, std::span<const NarrowRecord> records)>;
Status ForEachNarrowBucket(const Store& store, const RunTable& table,
                           const VisitNarrowBucket& visit);

}  // namespace tenon::store
