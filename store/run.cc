// A run's bytes: fingerprints as differences of their first halves, in variable length; ids as
// differences, signed. Members of a class repeat their fingerprint, which costs two bytes.
#include "store/run.h"

#include <algorithm>
#include <bit>
#include <queue>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tenon::store {
namespace {

constexpr char kRunVersion = 1;
constexpr std::uint64_t kRunBytes = 64 << 10;
constexpr std::uint64_t kRecordBytes = 19;  // Measured, on average.
constexpr int kBucketBitsMax = 20;

void AppendVarint(std::string& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80);
  out += static_cast<char>(v);
}

// Removes a number from the front of `in`; nothing if there is none, or not the shortest form.
std::optional<std::uint64_t> TakeVarint(std::string_view& in) {
  std::uint64_t v = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (in.empty()) return std::nullopt;
    const auto byte = static_cast<unsigned char>(in[0]);
    in.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    v |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return byte == 0 && shift > 0 ? std::nullopt : std::optional(v);
  }
  return std::nullopt;
}

std::uint64_t ZigZag(std::uint64_t difference) {
  return difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}
std::uint64_t UnZigZag(std::uint64_t z) { return z >> 1 ^ ((z & 1) != 0 ? ~std::uint64_t{0} : 0); }

std::string TablePrefix(std::uint64_t job) {
  std::string key;
  AppendU64(key, job);
  return key;
}

// The runs of one bucket, in the order of shards.
struct Bucket {
  struct Run {
    std::uint32_t shard;
    std::string bytes;
  };
  std::string where;  // For messages.
  std::vector<Run> runs;
};

Status MergeBucket(const Bucket& bucket, const VisitClass& visit) {
  struct Head {
    Record record;
    std::size_t run;
    bool operator>(const Head& other) const { return record > other.record; }
  };
  std::vector<RunReader> readers;
  std::priority_queue<Head, std::vector<Head>, std::greater<>> heads;
  const auto in_run = [&](const Status& s, std::size_t k) {
    return base::Annotate(s, fmt::format("{}, shard {}", bucket.where, bucket.runs[k].shard));
  };
  const auto advance = [&](std::size_t k) -> Status {
    if (readers[k].remaining() == 0) return OkStatus();
    const auto r = readers[k].Next();
    if (!r.ok()) return in_run(r.status(), k);
    heads.push({*r, k});
    return OkStatus();
  };
  for (std::size_t k = 0; k < bucket.runs.size(); ++k) {
    const auto reader = RunReader::Open(bucket.runs[k].bytes);
    if (!reader.ok()) return in_run(reader.status(), k);
    readers.push_back(*reader);
    RETURN_IF_ERROR(advance(k));
  }
  std::vector<std::uint64_t> ids;
  while (!heads.empty()) {
    const base::Fingerprint fingerprint = heads.top().record.fingerprint;
    ids.clear();
    while (!heads.empty() && heads.top().record.fingerprint == fingerprint) {
      const Head head = heads.top();
      heads.pop();
      if (ids.empty() || ids.back() != head.record.id) ids.push_back(head.record.id);
      RETURN_IF_ERROR(advance(head.run));
    }
    RETURN_IF_ERROR(visit(fingerprint, ids));
  }
  return OkStatus();
}

}  // namespace

std::string BytesOf(const RunKey& k) {
  std::string key = TablePrefix(k.job);
  AppendU32(key, k.bucket);
  AppendU32(key, k.shard);
  if (k.part != 0) AppendU32(key, k.part);
  return key;
}

std::string EncodeRun(std::span<const Record> records) {
  std::string out(1, kRunVersion);
  out.reserve(16 + records.size() * kRecordBytes);
  AppendVarint(out, records.size());
  Record last;
  bool first = true;
  for (const Record& r : records) {
    CHECK(first || last <= r);
    const bool same = !first && r.fingerprint == last.fingerprint;
    AppendVarint(out, r.fingerprint.hi - last.fingerprint.hi);
    // After an equal first half: 0 for "the same fingerprint", 1 for "the second half differs".
    if (r.fingerprint.hi == last.fingerprint.hi) out += static_cast<char>(same ? 0 : 1);
    if (!same) AppendU64(out, r.fingerprint.lo);
    AppendVarint(out, ZigZag(r.id - last.id));
    last = r;
    first = false;
  }
  return out;
}

StatusOr<RunReader> RunReader::Open(std::string_view bytes) {
  RunReader reader;
  if (bytes.empty() || bytes[0] != kRunVersion) return base::DataLoss("not a run of version 1");
  bytes.remove_prefix(1);
  const auto count = TakeVarint(bytes);
  if (!count) return base::DataLoss("a run without its number of records");
  if (*count > bytes.size() / 3 || (*count == 0 && !bytes.empty())) {
    return base::DataLoss("a run whose length does not fit its number of records");
  }
  reader.bytes_ = bytes;
  reader.remaining_ = *count;
  return reader;
}

StatusOr<Record> RunReader::Next() {
  CHECK(remaining_ > 0);
  const Status bad = base::DataLoss("a run with a malformed record");
  Record r = last_;
  const auto step = TakeVarint(bytes_);
  if (!step || *step > ~std::uint64_t{0} - last_.fingerprint.hi) return bad;
  r.fingerprint.hi += *step;
  bool same = false;
  if (*step == 0) {
    if (bytes_.empty() || static_cast<unsigned char>(bytes_[0]) > 1) return bad;
    same = bytes_[0] == 0;
    bytes_.remove_prefix(1);
  }
  if (!same) {
    if (bytes_.size() < 8) return bad;
    r.fingerprint.lo = ReadU64(bytes_);
    bytes_.remove_prefix(8);
  }
  const auto difference = TakeVarint(bytes_);
  if (!difference) return bad;
  r.id += UnZigZag(*difference);
  --remaining_;
  if (r < last_ || (remaining_ == 0 && !bytes_.empty())) return bad;
  last_ = r;
  return r;
}

int BucketBits(std::uint64_t expected_records, std::uint64_t shards) {
  const std::uint64_t runs =
      expected_records / std::max<std::uint64_t>(1, shards) * kRecordBytes / kRunBytes;
  return std::clamp(static_cast<int>(std::bit_width(runs)) - 1, 0, kBucketBitsMax);
}

std::uint32_t BucketOf(const base::Fingerprint& f, int bits) {
  return bits == 0 ? 0 : static_cast<std::uint32_t>(f.hi >> (64 - bits));
}

Status CheckRun(std::string_view bytes, int bucket_bits, std::uint32_t bucket) {
  auto reader = RunReader::Open(bytes);
  if (!reader.ok()) return base::InvalidArgument(base::Message(reader.status()));
  if (reader->remaining() > kRunRecordsMax) {
    return base::InvalidArgument(fmt::format("a run of {} records; at most {} make one run",
                                             reader->remaining(), kRunRecordsMax));
  }
  while (reader->remaining() > 0) {
    const auto record = reader->Next();
    if (!record.ok()) return base::InvalidArgument(base::Message(record.status()));
    if (const std::uint32_t b = BucketOf(record->fingerprint, bucket_bits); b != bucket) {
      return base::InvalidArgument(
          fmt::format("a run of bucket {} with a record of bucket {}", bucket, b));
    }
  }
  return OkStatus();
}

void PutRun(Batch& batch, const RunKey& key, std::string_view bytes) {
  batch.Put(Family::kFingerprints, BytesOf(key), bytes);
}

Status StoreRuns::Put(const RunTable&, const RunKey& key, std::string run) {
  PutRun(batch_, key, run);
  return OkStatus();
}

Status StoreRuns::Sync() {
  if (batch_.empty()) return OkStatus();
  const Status s = store_.Write(batch_);
  batch_ = Batch();
  return s;
}

std::string StoreRuns::name() const { return fmt::format("store {}", store_.directory()); }

Status StoreRuns::ForEachRun(const RunTable& table, const Visit& visit) const {
  return ScanRuns(store_, table.job, 0, std::uint32_t{1} << table.bucket_bits, visit);
}

Status ScanRuns(const Store& store, std::uint64_t job, std::uint32_t first, std::uint32_t end,
                const RunSource::Visit& visit) {
  std::string from = TablePrefix(job), to = from;
  AppendU32(from, first);
  AppendU32(to, end);
  return store.ScanRange(
      Family::kFingerprints, from, to, [&](std::string_view key, std::string_view value) -> Status {
        if (key.size() != 16 && key.size() != 20) {
          return base::DataLoss(fmt::format("store {}: fingerprints: a key of {} bytes, not 16",
                                            store.directory(), key.size()));
        }
        const RunKey k{job, ReadU32(key.substr(8)), ReadU32(key.substr(12)),
                       key.size() == 20 ? ReadU32(key.substr(16)) : 0};
        return visit(k, value);
      });
}

StatusOr<std::uint64_t> PutRuns(RunSink& sink, const RunTable& table, std::uint32_t shard,
                                std::vector<Record>& records) {
  std::uint64_t bytes = 0;
  CHECK(0 <= table.bucket_bits && table.bucket_bits <= kBucketBitsMax);
  std::sort(records.begin(), records.end());
  RunKey key{.job = table.job, .shard = shard};
  for (auto first = records.begin(); first != records.end();) {
    const std::uint32_t bucket = BucketOf(first->fingerprint, table.bucket_bits);
    key.part = key.bucket == bucket && first != records.begin() ? key.part + 1 : 0;
    key.bucket = bucket;
    const auto limit =
        first + std::min<std::ptrdiff_t>(std::ptrdiff_t{kRunRecordsMax}, records.end() - first);
    const auto last = std::partition_point(first, limit, [&](const Record& r) {
      return BucketOf(r.fingerprint, table.bucket_bits) == bucket;
    });
    std::string run = EncodeRun({first, last});
    bytes += run.size();
    RETURN_IF_ERROR(sink.Put(table, key, std::move(run)));
    first = last;
  }
  RETURN_IF_ERROR(sink.Sync());
  return bytes;
}

StatusOr<std::uint64_t> PutRuns(Store& store, const RunTable& table, std::uint32_t shard,
                                std::vector<Record>& records) {
  StoreRuns sink(store);
  return PutRuns(sink, table, shard, records);
}

Status ForEachClass(const RunSource& source, const RunTable& table, const VisitClass& visit) {
  Bucket bucket;
  std::uint32_t number = 0;
  const auto collect = [&](const RunKey& key, std::string_view run) -> Status {
    if (key.bucket != number) {
      RETURN_IF_ERROR(MergeBucket(bucket, visit));
      bucket.runs.clear();
      number = key.bucket;
    }
    bucket.where = fmt::format("{}: fingerprints: bucket {}", source.name(), number);
    bucket.runs.push_back({key.shard, std::string(run)});
    return OkStatus();
  };
  RETURN_IF_ERROR(source.ForEachRun(table, collect));
  return MergeBucket(bucket, visit);
}

Status ForEachClass(Store& store, const RunTable& table, const VisitClass& visit) {
  return ForEachClass(StoreRuns(store), table, visit);
}

Status DropRuns(Store& store, const RunTable& table) {
  return store.DeletePrefix(Family::kFingerprints, TablePrefix(table.job));
}

}  // namespace tenon::store
