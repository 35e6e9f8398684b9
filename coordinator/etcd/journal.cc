#include "coordinator/etcd/journal.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "core/base/bytes.h"
#include "core/base/crc32c.h"
#include "core/base/kill_point.h"

namespace tenon::coordinator {
namespace {

using etcd::Operation;

constexpr std::string_view kFormat = "tenon etcd 1";
constexpr std::size_t kCrcBytes = 4;
// A redo record that is smaller than this is one value.
constexpr std::size_t kRedoInlineMax = etcd::kRequestBytesMax / 2;

enum class Form : std::uint8_t { kInline = 1, kApart = 2 };
enum class What : std::uint8_t { kPut = 1, kDelete = 2 };

std::string FormatKey(const std::string& prefix) { return prefix + "format"; }
std::string RedoKey(const std::string& prefix) { return prefix + "redo"; }
std::string ValuesPrefix(const std::string& prefix) { return prefix + "v/"; }
std::string UploadsPrefix(const std::string& prefix) { return prefix + "c/"; }

std::string KeyOf(store::Family family, std::string_view key) {
  return fmt::format("{}/{}", store::kFamilyNames[static_cast<std::size_t>(family)], key);
}

// Behind each value, as in a store.
std::string Sealed(std::string bytes) {
  store::AppendU32(bytes, base::Crc32c(bytes));
  return bytes;
}
StatusOr<std::string_view> Unsealed(const std::string& key, std::string_view bytes) {
  if (bytes.size() >= kCrcBytes) {
    const std::string_view payload = bytes.substr(0, bytes.size() - kCrcBytes);
    if (store::ReadU32(bytes.substr(payload.size())) == base::Crc32c(payload)) return payload;
  }
  return base::DataLoss(
      fmt::format("etcd: the value of key '{}' does not match its checksum; restore a snapshot of "
                  "etcd",
                  key));
}

}  // namespace

// ------------------------------------------------------------------------------------ bytes

std::string EtcdJournal::Encode(const Stored& value) {
  std::string out;
  if (value.upload.empty()) {
    base::PutByte(out, static_cast<std::uint8_t>(Form::kInline));
    out += value.bytes;
  } else {
    base::PutByte(out, static_cast<std::uint8_t>(Form::kApart));
    base::PutString(out, value.upload);
    base::PutVarint(out, value.size);
    base::PutVarint(out, value.crc32c);
  }
  return Sealed(std::move(out));
}

StatusOr<EtcdJournal::Stored> EtcdJournal::Decode(const std::string& key, std::string_view bytes) {
  ASSIGN_OR_RETURN(const std::string_view payload, Unsealed(key, bytes));
  base::ByteReader in(payload);
  const auto form = static_cast<Form>(in.Byte());
  Stored out;
  if (form == Form::kInline) {
    out.bytes = std::string(payload.substr(1));
    return out;
  }
  if (form != Form::kApart) in.Fail("its form is of another version");
  out.upload = std::string(in.String());
  out.size = in.Varint();
  out.crc32c = static_cast<std::uint32_t>(in.Varint());
  in.End();
  if (!in.ok()) return base::DataLoss(fmt::format("etcd: the value of '{}': {}", key, in.error()));
  return out;
}

std::string EtcdJournal::EncodeRedo(const std::vector<Change>& changes) {
  std::string out;
  base::PutVarint(out, changes.size());
  for (const Change& change : changes) {
    base::PutByte(out, static_cast<std::uint8_t>(change.value ? What::kPut : What::kDelete));
    base::PutString(out, change.key);
    if (change.value) base::PutString(out, Encode(*change.value));
    base::PutString(out, change.dropped);
  }
  return out;
}

StatusOr<std::vector<EtcdJournal::Change>> EtcdJournal::DecodeRedo(std::string_view bytes) {
  base::ByteReader in(bytes);
  std::vector<Change> out;
  for (std::uint64_t left = in.Varint(); in.ok() && left > 0; --left) {
    Change change;
    const auto what = static_cast<What>(in.Byte());
    change.key = std::string(in.String());
    if (what == What::kPut) {
      ASSIGN_OR_RETURN(change.value, Decode(change.key, in.String()));
    } else if (what != What::kDelete) {
      in.Fail("a change of another version");
    }
    change.dropped = std::string(in.String());
    out.push_back(std::move(change));
  }
  in.End();
  if (!in.ok()) return base::DataLoss(fmt::format("etcd: the redo record: {}", in.error()));
  return out;
}

std::string EtcdJournal::UploadKey(std::string_view upload, std::uint32_t chunk) const {
  std::string key = fmt::format("{}{}/", UploadsPrefix(options_.prefix), upload);
  store::AppendU32(key, chunk);
  return key;
}

// ------------------------------------------------------------------------------------ opening

EtcdJournal::EtcdJournal(const etcd::Client& client, Leadership& leadership,
                         EtcdJournalOptions options, std::stop_token stop)
    : client_(client),
      leadership_(leadership),
      options_(std::move(options)),
      stop_(std::move(stop)) {}

StatusOr<std::unique_ptr<EtcdJournal>> EtcdJournal::Open(const etcd::Client& client,
                                                         Leadership& leadership,
                                                         EtcdJournalOptions options,
                                                         std::stop_token stop) {
  std::unique_ptr<EtcdJournal> journal(
      new EtcdJournal(client, leadership, std::move(options), std::move(stop)));
  RETURN_IF_ERROR(journal->Load());
  return journal;
}

Status EtcdJournal::Load() {
  const std::string key = FormatKey(options_.prefix);
  ASSIGN_OR_RETURN(const auto format, client_.Get(key, options_.patience, stop_));
  if (!format) {
    RETURN_IF_ERROR(Commit({{.key = key, .value = std::string(kFormat)}}));
  } else if (format->value != kFormat) {
    return base::FailedPrecondition(fmt::format(
        "etcd: the format under '{}' is '{}', this program reads '{}'; use the version that wrote "
        "it, or give another --etcd-prefix",
        options_.prefix, format->value, kFormat));
  }
  RETURN_IF_ERROR(LoadRedo());
  RETURN_IF_ERROR(LoadValues());
  return Sweep();
}

Status EtcdJournal::LoadRedo() {
  const std::string key = RedoKey(options_.prefix);
  ASSIGN_OR_RETURN(const auto record, client_.Get(key, options_.patience, stop_));
  if (!record) return OkStatus();
  ASSIGN_OR_RETURN(const Stored stored, Decode(key, record->value));
  ASSIGN_OR_RETURN(const std::string bytes, Fetch(key, stored));
  const base::MutexLock lock(writing_);
  ASSIGN_OR_RETURN(redo_, DecodeRedo(bytes));
  redo_upload_ = stored.upload;
  return FinishRedo();
}

Status EtcdJournal::LoadValues() {
  const std::string values = ValuesPrefix(options_.prefix);
  etcd::KeyRange range = etcd::Prefix(values);
  while (true) {
    ASSIGN_OR_RETURN(etcd::Client::Page page, client_.Range(range, {}, options_.patience, stop_));
    const base::MutexLock lock(mutex_);
    for (const etcd::KeyValue& kv : page.found) {
      ASSIGN_OR_RETURN(Stored value, Decode(kv.key, kv.value));
      values_.insert_or_assign(kv.key.substr(values.size()), std::move(value));
    }
    if (!page.more || page.found.empty()) return OkStatus();
    range.first = page.found.back().key + '\0';
  }
}

// Chunks that no value names: their leader died before it could write the value.
Status EtcdJournal::Sweep() {
  std::set<std::string, std::less<>> named;
  {
    const base::MutexLock lock(mutex_);
    for (const auto& [key, value] : values_) named.insert(value.upload);
  }
  const std::string uploads = UploadsPrefix(options_.prefix);
  etcd::KeyRange range = etcd::Prefix(uploads);
  while (true) {
    ASSIGN_OR_RETURN(
        const etcd::Client::Page page,
        client_.Range(range, {.count = 1, .keys_only = true}, options_.patience, stop_));
    if (page.found.empty()) return OkStatus();
    const std::string upload =
        page.found[0].key.substr(uploads.size(), page.found[0].key.rfind('/') - uploads.size());
    const std::string prefix = fmt::format("{}{}/", uploads, upload);
    if (!named.contains(upload)) {
      RETURN_IF_ERROR(Commit({{.kind = Operation::Kind::kDeletePrefix, .key = prefix}}));
    }
    range.first = etcd::Prefix(prefix).end;
  }
}

// ------------------------------------------------------------------------------------ writing

Status EtcdJournal::Commit(const std::vector<Operation>& operations) {
  if (leadership_.lost().stop_requested()) return NotLeader(std::nullopt);
  TENON_KILL_POINT("etcd.commit.before");
  const auto result =
      client_.Txn(leadership_.fence(), operations, options_.patience, leadership_.lost());
  TENON_KILL_POINT("etcd.commit.after");
  if (result.ok() && result->succeeded) return OkStatus();
  if (result.ok()) {
    leadership_.Lose();
    return NotLeader(result->found ? std::optional(result->found->value) : std::nullopt);
  }
  const bool unknown = absl::IsUnavailable(result.status()) || absl::IsCancelled(result.status()) ||
                       absl::IsDeadlineExceeded(result.status());
  if (!unknown) return result.status();  // Refused, so not done.
  // Done or not: who takes over will see.
  leadership_.Lose();
  return base::Unavailable(base::Message(result.status()));
}

StatusOr<EtcdJournal::Stored> EtcdJournal::Store(std::string_view value) {
  if (value.size() <= kInlineBytesMax) return Stored{.bytes = std::string(value)};
  Stored out{.upload = fmt::format("{:016x}-{:x}", leadership_.fence().create_revision, ++uploads_),
             .size = value.size(),
             .crc32c = base::Crc32c(value)};
  std::uint32_t chunk = 0;
  for (std::size_t at = 0; at < value.size(); at += kEtcdChunkBytes, ++chunk) {
    RETURN_IF_ERROR(Commit({{.key = UploadKey(out.upload, chunk),
                             .value = Sealed(std::string(value.substr(at, kEtcdChunkBytes)))}}));
  }
  return out;
}

StatusOr<std::string> EtcdJournal::Fetch(const std::string& key, const Stored& value) const {
  if (value.upload.empty()) return value.bytes;
  std::string out;
  for (std::uint32_t chunk = 0; out.size() < value.size; ++chunk) {
    const std::string at = UploadKey(value.upload, chunk);
    ASSIGN_OR_RETURN(const auto found, client_.Get(at, options_.patience, stop_));
    if (!found)
      return base::DataLoss(fmt::format("etcd: a part of the value of '{}' is gone", key));
    ASSIGN_OR_RETURN(const std::string_view payload, Unsealed(at, found->value));
    out += payload;
    if (payload.empty()) break;
  }
  if (out.size() != value.size || base::Crc32c(out) != value.crc32c) {
    return base::DataLoss(fmt::format("etcd: the value of '{}' is not what was written", key));
  }
  return out;
}

std::vector<Operation> EtcdJournal::OperationsOf(const Change& change) const {
  const std::string key = ValuesPrefix(options_.prefix) + change.key;
  std::vector<Operation> out;
  if (change.value) {
    out.push_back({.key = key, .value = Encode(*change.value)});
  } else {
    out.push_back({.kind = Operation::Kind::kDelete, .key = key});
  }
  if (!change.dropped.empty()) {
    out.push_back({.kind = Operation::Kind::kDeletePrefix,
                   .key = fmt::format("{}{}/", UploadsPrefix(options_.prefix), change.dropped)});
  }
  return out;
}

Status EtcdJournal::Write(const store::Batch& batch) {
  // Of several changes of one key the last one counts; etcd takes one a transaction.
  std::map<std::string, Change> by_key;
  for (const store::Batch::Change& c : batch.changes()) {
    Change change{.key = KeyOf(c.family, c.key)};
    if (c.value) {
      ASSIGN_OR_RETURN(change.value, Store(*c.value));
    }
    Change& place = by_key[change.key];
    // Uploaded for nothing: the sweep of the next leader finds it.
    place = std::move(change);
  }
  if (by_key.empty()) return OkStatus();
  const base::MutexLock lock(writing_);
  std::vector<Change> changes;
  for (auto& [key, change] : by_key) {
    {
      const base::MutexLock reading(mutex_);
      if (const auto it = values_.find(key); it != values_.end())
        change.dropped = it->second.upload;
    }
    changes.push_back(std::move(change));
  }
  RETURN_IF_ERROR(FinishRedo());
  RETURN_IF_ERROR(CommitChanges(changes));
  Remember(changes);
  // It is durable; what is left to do is done before the next write at the latest.
  FinishRedo().IgnoreError();
  return OkStatus();
}

Status EtcdJournal::CommitChanges(const std::vector<Change>& changes) {
  std::vector<Operation> all;
  std::size_t bytes = 0;
  for (const Change& change : changes) {
    for (Operation& operation : OperationsOf(change)) {
      bytes += operation.bytes();
      all.push_back(std::move(operation));
    }
  }
  if (all.size() <= etcd::kOperationsMax && bytes <= etcd::kRequestBytesMax) return Commit(all);
  const std::string record = EncodeRedo(changes);
  Stored stored{.bytes = record};
  if (record.size() > kRedoInlineMax) {
    ASSIGN_OR_RETURN(stored, Store(record));
  }
  RETURN_IF_ERROR(Commit({{.key = RedoKey(options_.prefix), .value = Encode(stored)}}));
  TENON_KILL_POINT("etcd.redo");
  redo_ = changes;
  redo_upload_ = stored.upload;
  return OkStatus();
}

// Doing it twice, or again from the start, is as good as once.
Status EtcdJournal::FinishRedo() {
  if (redo_.empty()) return OkStatus();
  RETURN_IF_ERROR(CarryOut(redo_));
  std::vector<Operation> last{{.kind = Operation::Kind::kDelete, .key = RedoKey(options_.prefix)}};
  if (!redo_upload_.empty()) {
    last.push_back({.kind = Operation::Kind::kDeletePrefix,
                    .key = fmt::format("{}{}/", UploadsPrefix(options_.prefix), redo_upload_)});
  }
  RETURN_IF_ERROR(Commit(last));
  redo_.clear();
  redo_upload_.clear();
  return OkStatus();
}

Status EtcdJournal::CarryOut(const std::vector<Change>& changes) {
  std::vector<Operation> some;
  std::size_t bytes = 0;
  for (const Change& change : changes) {
    for (Operation& operation : OperationsOf(change)) {
      if (some.size() == etcd::kOperationsMax ||
          bytes + operation.bytes() > etcd::kRequestBytesMax) {
        RETURN_IF_ERROR(Commit(some));
        TENON_KILL_POINT("etcd.redo.part");
        some.clear();
        bytes = 0;
      }
      bytes += operation.bytes();
      some.push_back(std::move(operation));
    }
  }
  return some.empty() ? OkStatus() : Commit(some);
}

void EtcdJournal::Remember(const std::vector<Change>& changes) {
  const base::MutexLock lock(mutex_);
  for (const Change& change : changes) {
    if (change.value) {
      values_.insert_or_assign(change.key, *change.value);
    } else {
      values_.erase(change.key);
    }
  }
}

// ------------------------------------------------------------------------------------ reading

StatusOr<std::optional<std::string>> EtcdJournal::Get(store::Family family,
                                                      std::string_view key) const {
  const std::string name = KeyOf(family, key);
  Stored value;
  {
    const base::MutexLock lock(mutex_);
    const auto it = values_.find(name);
    if (it == values_.end()) return std::optional<std::string>();
    value = it->second;
  }
  ASSIGN_OR_RETURN(std::string bytes, Fetch(name, value));
  return std::optional(std::move(bytes));
}

Status EtcdJournal::Scan(store::Family family, std::string_view prefix,
                         const store::Store::Visit& visit) const {
  const std::string start = KeyOf(family, prefix);
  const std::size_t family_size = KeyOf(family, "").size();
  std::vector<std::pair<std::string, Stored>> found;
  {
    const base::MutexLock lock(mutex_);
    for (auto it = values_.lower_bound(start); it != values_.end() && it->first.starts_with(start);
         ++it) {
      found.emplace_back(*it);
    }
  }
  for (const auto& [key, value] : found) {
    ASSIGN_OR_RETURN(const std::string bytes, Fetch(key, value));
    RETURN_IF_ERROR(visit(std::string_view(key).substr(family_size), bytes));
  }
  return OkStatus();
}

EtcdJournal::Figures EtcdJournal::figures() const {
  Figures out;
  const base::MutexLock lock(mutex_);
  for (const auto& [key, value] : values_) {
    ++out.keys;
    out.bytes += key.size() + value.bytes.size() + value.size;
  }
  return out;
}

}  // namespace tenon::coordinator
