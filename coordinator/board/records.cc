#include "coordinator/board/records.h"

#include <algorithm>

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "store/store.h"

namespace tenon::board {
namespace {

using base::ByteReader;
using base::PutByte;
using base::PutSigned;
using base::PutString;
using base::PutVarint;

constexpr std::uint8_t kVersion = 1;
constexpr std::uint64_t kListMax = 4096;

// A reader past the version byte.
ByteReader Open(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Byte() != kVersion) in.Fail("the version is unknown");
  return in;
}
std::string Begin() {
  std::string out;
  PutByte(out, kVersion);
  return out;
}
Status End(ByteReader& in, std::string_view what) {
  in.End();
  if (in.ok()) return OkStatus();
  return base::DataLoss(fmt::format("{}: at byte {}: {}", what, in.offset(), in.error()));
}

void PutTime(std::string& out, UnixTime t) { PutSigned(out, t.time_since_epoch().count()); }
UnixTime GetTime(ByteReader& in) { return UnixTime(Milliseconds(in.Signed())); }
void PutDuration(std::string& out, Milliseconds d) { PutSigned(out, d.count()); }
Milliseconds GetDuration(ByteReader& in) { return Milliseconds(in.Signed()); }

template <class T>
T GetEnum(ByteReader& in, std::uint8_t last) {
  const std::uint8_t v = in.Byte();
  if (v < 1 || v > last) in.Fail("a number is unknown");
  return static_cast<T>(v);
}
bool GetBool(ByteReader& in) { return in.Count(1, "no truth value") == 1; }
std::uint32_t GetU32(ByteReader& in) {
  return static_cast<std::uint32_t>(in.Count(UINT32_MAX, "the number is too large"));
}
int GetInt(ByteReader& in) {
  const std::int64_t v = in.Signed();
  if (v < INT32_MIN || v > INT32_MAX) in.Fail("the number is too large");
  return static_cast<int>(v);
}

void PutStrings(std::string& out, const std::vector<std::string>& list) {
  PutVarint(out, list.size());
  for (const std::string& s : list) PutString(out, s);
}
std::vector<std::string> GetStrings(ByteReader& in) {
  std::vector<std::string> out;
  const std::uint64_t count = in.Count(kListMax, "the list is too long");
  for (std::uint64_t k = 0; k < count && in.ok(); ++k) out.emplace_back(in.String());
  return out;
}
void PutNumbers(std::string& out, const std::vector<std::uint64_t>& list) {
  PutVarint(out, list.size());
  for (const std::uint64_t v : list) PutVarint(out, v);
}
std::vector<std::uint64_t> GetNumbers(ByteReader& in) {
  std::vector<std::uint64_t> out;
  const std::uint64_t count = in.Count(kListMax, "the list is too long");
  for (std::uint64_t k = 0; k < count && in.ok(); ++k) out.push_back(in.Varint());
  return out;
}

}  // namespace

std::string Encode(const SubmitRecord& r) {
  std::string out = Begin();
  PutString(out, r.request_id);
  PutTime(out, r.submitted_at);
  PutString(out, r.spec.universe);
  PutSigned(out, r.spec.max_operators);
  PutByte(out, static_cast<std::uint8_t>(r.spec.mode));
  PutVarint(out, r.spec.shards);
  PutString(out, r.spec.pack_name);
  PutString(out, r.spec.pack_version);
  PutSigned(out, r.spec.priority);
  PutVarint(out, r.spec.memory_limit_bytes);
  PutDuration(out, r.spec.time_limit);
  return out;
}

StatusOr<SubmitRecord> DecodeSubmit(std::string_view bytes) {
  ByteReader in = Open(bytes);
  SubmitRecord r;
  r.request_id = in.String();
  r.submitted_at = GetTime(in);
  r.spec.universe = in.String();
  r.spec.max_operators = GetInt(in);
  r.spec.mode = GetEnum<convert::EnumerationMode>(in, 2);
  r.spec.shards = GetU32(in);
  r.spec.pack_name = in.String();
  r.spec.pack_version = in.String();
  r.spec.priority = GetInt(in);
  r.spec.memory_limit_bytes = in.Varint();
  r.spec.time_limit = GetDuration(in);
  RETURN_IF_ERROR(End(in, "a submitted job"));
  return r;
}

std::string Encode(const StartRecord& r) {
  std::string out = Begin();
  PutTime(out, r.started_at);
  PutVarint(out, r.shards);
  PutVarint(out, r.bucket_bits);
  PutVarint(out, r.table);
  PutStrings(out, r.stores);
  return out;
}

StatusOr<StartRecord> DecodeStart(std::string_view bytes) {
  ByteReader in = Open(bytes);
  StartRecord r;
  r.started_at = GetTime(in);
  r.shards = GetU32(in);
  if (r.shards < 1 || r.shards > convert::kShardsMax) in.Fail("no possible number of shards");
  r.bucket_bits = static_cast<std::uint32_t>(in.Count(20, "too many bucket bits"));
  r.table = in.Varint();
  r.stores = GetStrings(in);
  RETURN_IF_ERROR(End(in, "the start of a job"));
  return r;
}

std::string Encode(const StatusRecord& r) {
  std::string out = Begin();
  PutByte(out, r.paused ? 1 : 0);
  PutSigned(out, r.priority);
  PutByte(out, static_cast<std::uint8_t>(r.end));
  PutTime(out, r.ended_at);
  PutString(out, r.error);
  PutString(out, r.pack_reference);
  PutString(out, r.pack_address);
  const convert::GenerationCounts& c = r.counts;
  PutNumbers(out, c.graphs_by_size);
  for (const std::uint64_t v : {c.graphs, c.classes, c.equivalent_pairs, c.candidates, c.proved,
                                c.refuted, c.unproved, c.rules, c.underivable}) {
    PutVarint(out, v);
  }
  PutVarint(out, r.round);
  PutDuration(out, r.cpu);
  PutVarint(out, r.shards_done);
  return out;
}

StatusOr<StatusRecord> DecodeStatus(std::string_view bytes) {
  ByteReader in = Open(bytes);
  StatusRecord r;
  r.paused = GetBool(in);
  r.priority = GetInt(in);
  r.end = GetEnum<JobState>(in, 8);
  r.ended_at = GetTime(in);
  r.error = in.String();
  r.pack_reference = in.String();
  r.pack_address = in.String();
  convert::GenerationCounts& c = r.counts;
  c.graphs_by_size = GetNumbers(in);
  for (std::uint64_t* v : {&c.graphs, &c.classes, &c.equivalent_pairs, &c.candidates, &c.proved,
                           &c.refuted, &c.unproved, &c.rules, &c.underivable}) {
    *v = in.Varint();
  }
  r.round = GetU32(in);
  r.cpu = GetDuration(in);
  r.shards_done = GetU32(in);
  RETURN_IF_ERROR(End(in, "the status of a job"));
  return r;
}

std::string Encode(const ShardRecord& r) {
  std::string out = Begin();
  PutVarint(out, r.result.graphs);
  PutVarint(out, r.result.records);
  PutVarint(out, r.result.bytes);
  PutDuration(out, r.cpu);
  return out;
}

StatusOr<ShardRecord> DecodeShard(std::string_view bytes) {
  ByteReader in = Open(bytes);
  ShardRecord r;
  r.result.graphs = in.Varint();
  r.result.records = in.Varint();
  r.result.bytes = in.Varint();
  r.cpu = GetDuration(in);
  RETURN_IF_ERROR(End(in, "a shard"));
  return r;
}

std::string Encode(const CollectRecord& r) {
  std::string out = Begin();
  PutNumbers(out, r.result.graphs_by_size);
  PutVarint(out, r.result.graphs);
  PutVarint(out, r.result.classes);
  PutVarint(out, r.result.equivalent_pairs);
  PutVarint(out, r.result.artifact_bytes);
  PutString(out, r.result.artifact_sha256);
  PutDuration(out, r.cpu);
  return out;
}

StatusOr<CollectRecord> DecodeCollect(std::string_view bytes) {
  ByteReader in = Open(bytes);
  CollectRecord r;
  r.result.graphs_by_size = GetNumbers(in);
  r.result.graphs = in.Varint();
  r.result.classes = in.Varint();
  r.result.equivalent_pairs = in.Varint();
  r.result.artifact_bytes = in.Varint();
  r.result.artifact_sha256 = in.String();
  r.cpu = GetDuration(in);
  RETURN_IF_ERROR(End(in, "collected classes"));
  return r;
}

std::string Encode(const convert::SetAside& r) {
  std::string out = Begin();
  PutVarint(out, r.shard);
  PutString(out, r.last_error);
  PutStrings(out, r.workers);
  return out;
}

StatusOr<convert::SetAside> DecodeSetAside(std::string_view bytes) {
  ByteReader in = Open(bytes);
  convert::SetAside r;
  r.shard = GetU32(in);
  r.last_error = in.String();
  r.workers = GetStrings(in);
  RETURN_IF_ERROR(End(in, "a shard set aside"));
  return r;
}

std::string Encode(const convert::ProofVerdict& v) {
  std::string out = Begin();
  PutByte(out, static_cast<std::uint8_t>(v.kind));
  PutByte(out, v.repeatable ? 1 : 0);
  PutVarint(out, v.rlimit);
  PutString(out, v.reason);
  PutString(out, v.certificate);
  return out;
}

StatusOr<convert::ProofVerdict> DecodeVerdict(std::string_view bytes) {
  ByteReader in = Open(bytes);
  convert::ProofVerdict v;
  v.kind = GetEnum<convert::VerdictKind>(in, 6);
  v.repeatable = GetBool(in);
  v.rlimit = in.Varint();
  v.reason = in.String();
  v.certificate = in.String();
  RETURN_IF_ERROR(End(in, "a verdict"));
  return v;
}

// Enough to spread, few enough that what each part needs of the levels below costs little beside
// it.
std::uint32_t PartsOf(const StartRecord& start) {
  constexpr std::uint32_t kShardsPerPart = 16, kPartsMax = 1024;
  const std::uint32_t buckets = std::uint32_t{1} << start.bucket_bits;
  return std::clamp<std::uint32_t>(start.shards / kShardsPerPart, 1, std::min(buckets, kPartsMax));
}

std::string KeyOf(JobKey kind, std::uint64_t job) {
  std::string key(1, static_cast<char>(kind));
  store::AppendU64(key, job);
  return key;
}

std::string KeyOf(JobKey kind, std::uint64_t job, std::uint32_t shard) {
  std::string key = KeyOf(kind, job);
  store::AppendU32(key, shard);
  return key;
}

std::string JobVerdictKey(std::uint64_t job, std::string_view rule) {
  std::string key = "j";
  store::AppendU64(key, job);
  return key.append(rule);
}

std::string VerdictKey(std::uint64_t semantics, std::uint32_t budget_scale, std::string_view rule) {
  std::string key = "c";
  store::AppendU64(key, semantics);
  store::AppendU32(key, budget_scale);
  return key.append(rule);
}

}  // namespace tenon::board
