// Fixed widths, so that neither writing nor reading a record has a branch: fingerprints are
// differences of as many bytes as the largest one needs, ids have as many as the largest id.
#include "store/narrow_run.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tenon::store {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are");

constexpr char kNarrowVersion = 2;
constexpr std::size_t kHeaderBytes = 1 + 4 + 1 + 1 + 8;

unsigned BytesFor(std::uint64_t v) { return (unsigned(std::bit_width(v)) + 7) / 8; }

}  // namespace

std::string EncodeNarrowRun(std::span<const NarrowRecord> records) {
  CHECK(records.size() <= kRunRecordsMax);
  std::uint64_t steps = 0, ids = 0, last = records.empty() ? 0 : records[0].fingerprint;
  for (const NarrowRecord& r : records) {
    CHECK(last <= r.fingerprint);
    steps |= r.fingerprint - last;
    ids |= r.id;
    last = r.fingerprint;
  }
  const unsigned step_bytes = BytesFor(steps), id_bytes = BytesFor(ids);
  std::string out(1, kNarrowVersion);
  AppendU32(out, static_cast<std::uint32_t>(records.size()));
  out += static_cast<char>(step_bytes);
  out += static_cast<char>(id_bytes);
  AppendU64(out, records.empty() ? 0 : records[0].fingerprint);
  // With room for the last number to be written with all its eight bytes.
  out.resize(kHeaderBytes + records.size() * (step_bytes + id_bytes) + 8);
  char* to = out.data() + kHeaderBytes;
  last = records.empty() ? 0 : records[0].fingerprint;
  for (const NarrowRecord& r : records) {
    const std::uint64_t step = r.fingerprint - last;
    std::memcpy(to, &step, 8);
    to += step_bytes;
    std::memcpy(to, &r.id, 8);
    to += id_bytes;
    last = r.fingerprint;
  }
  out.resize(kHeaderBytes + records.size() * (step_bytes + id_bytes));
  return out;
}

Status DecodeNarrowRun(std::string_view bytes, std::vector<NarrowRecord>& out) {
  const Status bad = base::DataLoss("not a narrow run");
  if (bytes.size() < kHeaderBytes || bytes[0] != kNarrowVersion) return bad;
  const std::size_t count = ReadU32(bytes.substr(1));
  const auto step_bytes = static_cast<unsigned char>(bytes[5]);
  const auto id_bytes = static_cast<unsigned char>(bytes[6]);
  if (step_bytes > 8 || id_bytes > 8 || count > kRunRecordsMax ||
      bytes.size() - kHeaderBytes != count * (step_bytes + std::size_t{id_bytes})) {
    return bad;
  }
  const std::uint64_t step_mask = step_bytes == 0 ? 0 : ~std::uint64_t{0} >> (64 - 8 * step_bytes);
  const std::uint64_t id_mask = id_bytes == 0 ? 0 : ~std::uint64_t{0} >> (64 - 8 * id_bytes);
  const std::size_t before = out.size();
  NarrowRecord r{ReadU64(bytes.substr(7)), 0};
  const char* from = bytes.data() + kHeaderBytes;
  const char* const end = bytes.data() + bytes.size();
  const auto take = [&](unsigned width, std::uint64_t mask) {
    std::uint64_t v = 0;
    std::memcpy(&v, from, end - from >= 8 ? 8 : std::size_t(end - from));
    from += width;
    return v & mask;
  };
  bool ordered = true;
  out.reserve(before + count);
  for (std::size_t k = 0; k < count; ++k) {
    const std::uint64_t step = take(step_bytes, step_mask), id = take(id_bytes, id_mask);
    const NarrowRecord next{r.fingerprint + step, id};
    ordered = ordered && (k == 0 ? step == 0 : !(next < r));
    r = next;
    out.push_back(r);
  }
  if (ordered) return OkStatus();
  out.resize(before);
  return bad;
}

// By counting on the highest bits in which the fingerprints of a bucket differ, twelve at a time
// from the lower ones, and by insertion for what is left.
void SortNarrow(std::vector<NarrowRecord>& records, std::vector<NarrowRecord>& buffer) {
  const std::size_t n = records.size();
  if (n < 256) {
    std::sort(records.begin(), records.end());
    return;
  }
  std::uint64_t differ = 0;
  for (const NarrowRecord& r : records) differ |= r.fingerprint ^ records[0].fingerprint;
  const int top = int(std::bit_width(differ));
  constexpr int kDigit = 11;
  if (top < 2 * kDigit) {
    std::sort(records.begin(), records.end());
    return;
  }
  buffer.resize(n);
  std::array<std::array<std::uint32_t, std::size_t{1} << kDigit>, 2> counts{};
  const auto digit = [&](const NarrowRecord& r, int pass) {
    const int shift = top - kDigit * (2 - pass);
    return std::size_t(r.fingerprint >> shift) & ((std::size_t{1} << kDigit) - 1);
  };
  for (const NarrowRecord& r : records) {
    ++counts[0][digit(r, 0)];
    ++counts[1][digit(r, 1)];
  }
  for (auto& count : counts) {
    std::uint32_t sum = 0;
    for (std::uint32_t& c : count) {
      const std::uint32_t own = c;
      c = sum;
      sum += own;
    }
  }
  for (const NarrowRecord& r : records) buffer[counts[0][digit(r, 0)]++] = r;
  for (const NarrowRecord& r : buffer) records[counts[1][digit(r, 1)]++] = r;
  // Equal digits stand together now; a class of many members can make such a stretch long.
  for (std::size_t first = 0; first < n;) {
    std::size_t end = first + 1;
    const std::uint64_t high = records[first].fingerprint >> (top - 2 * kDigit);
    while (end < n && records[end].fingerprint >> (top - 2 * kDigit) == high) ++end;
    if (end - first > 1) {
      std::sort(records.begin() + std::ptrdiff_t(first), records.begin() + std::ptrdiff_t(end));
    }
    first = end;
  }
}

StatusOr<std::unique_ptr<NarrowRunWriter>> NarrowRunWriter::Open(Store& store,
                                                                 const RunTable& table,
                                                                 std::uint32_t shard) {
  ASSIGN_OR_RETURN(std::unique_ptr<BulkWriter> bulk, store.OpenBulk(Family::kFingerprints));
  return std::unique_ptr<NarrowRunWriter>(new NarrowRunWriter(std::move(bulk), table, shard));
}

Status NarrowRunWriter::Put(std::uint32_t bucket, std::span<const NarrowRecord> records) {
  RunKey key{.job = table_.job, .bucket = bucket, .shard = shard_};
  for (; !records.empty(); ++key.part) {
    const std::size_t count = std::min(records.size(), kRunRecordsMax);
    const std::string run = EncodeNarrowRun(records.first(count));
    bytes_ += run.size();
    RETURN_IF_ERROR(bulk_->Put(BytesOf(key), run));
    records = records.subspan(count);
  }
  return OkStatus();
}

Status NarrowRunWriter::Finish() { return bulk_->Finish(); }

Status ForEachNarrowBucket(const Store& store, const RunTable& table,
                           const VisitNarrowBucket& visit) {
  std::vector<NarrowRecord> records, buffer;
  std::uint32_t bucket = 0;
  bool sorted = true;
  const auto flush = [&]() -> Status {
    if (records.empty()) return OkStatus();
    if (!sorted) SortNarrow(records, buffer);
    records.erase(std::unique(records.begin(), records.end()), records.end());
    RETURN_IF_ERROR(visit(bucket, records));
    records.clear();
    sorted = true;
    return OkStatus();
  };
  const auto collect = [&](const RunKey& key, std::string_view run) -> Status {
    if (key.bucket != bucket) {
      RETURN_IF_ERROR(flush());
      bucket = key.bucket;
    }
    const std::size_t before = records.size();
    if (const Status s = DecodeNarrowRun(run, records); !s.ok()) {
      return base::Annotate(s, fmt::format("store {}: fingerprints: bucket {}, shard {}",
                                           store.directory(), key.bucket, key.shard));
    }
    sorted = sorted &&
             (before == 0 || before == records.size() || records[before - 1] <= records[before]);
    return OkStatus();
  };
  RETURN_IF_ERROR(ScanRuns(store, table.job, 0, std::uint32_t{1} << table.bucket_bits, collect));
  return flush();
}

}  // namespace tenon::store
