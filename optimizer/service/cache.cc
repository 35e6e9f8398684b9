#include "optimizer/service/cache.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include <fmt/format.h>

#include "client/registry/file.h"
#include "client/registry/sha256.h"
#include "core/base/bytes.h"
#include "optimizer/onnx/files.h"

namespace tenon::optimizer {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "tenon-r1";
constexpr std::size_t kLengthBytes = 8, kHashBytes = 32;
constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;

std::string HashBytes(std::string_view bytes) {
  const registry::Digest digest = registry::Sha256(bytes);
  return std::string(digest.begin(), digest.end());
}

bool IsKey(const std::string& name) {
  return name.size() == 2 * kHashBytes && registry::FromHex(name).has_value();
}

// Errors say that it is no entry, or a damaged one.
StatusOr<Result> ReadEntry(const std::string& path) {
  Result out;
  ASSIGN_OR_RETURN(out.file, OpenFile::Open(path));
  const std::uint64_t fixed = kMagic.size() + kLengthBytes;
  ASSIGN_OR_RETURN(std::string head, out.file->Read(0, fixed));
  if (!head.starts_with(kMagic)) return base::DataLoss("it is no entry");
  std::uint64_t length = 0;
  for (std::size_t k = fixed; k-- > kMagic.size();) {
    length = length << 8 | static_cast<unsigned char>(head[k]);
  }
  if (length > kReportBytesMax + 100) return base::DataLoss("its head is too long");
  ASSIGN_OR_RETURN(const std::string fields, out.file->Read(fixed, length));
  ASSIGN_OR_RETURN(const std::string hash, out.file->Read(fixed + length, kHashBytes));
  if (HashBytes(head + fields) != hash) return base::DataLoss("its head is damaged");
  base::ByteReader in(fields);
  const std::string sha256(in.Bytes(kHashBytes));
  out.report_json = in.String();
  in.End();
  if (!in.ok()) return base::DataLoss(in.error());
  out.sha256 = registry::ToHex(sha256);
  out.offset = fixed + length + kHashBytes;
  out.cached = true;
  ASSIGN_OR_RETURN(const std::string actual, out.file->HashFrom(out.offset));
  if (actual != out.sha256) return base::DataLoss("its model is damaged");
  return out;
}

Status WriteEntry(const std::string& path, const std::string& head, const Result& result) {
  StagedFile file;
  RETURN_IF_ERROR(file.Open(path));
  RETURN_IF_ERROR(file.Write(head));
  for (std::uint64_t at = result.offset; at < result.file->size();) {
    const std::uint64_t left = result.file->size() - at;
    ASSIGN_OR_RETURN(const std::string block, result.file->Read(at, std::min(kBlockBytes, left)));
    RETURN_IF_ERROR(file.Write(block));
    at += block.size();
  }
  RETURN_IF_ERROR(file.Sync());
  return file.Commit();
}

}  // namespace

std::string EntryHead(const Result& result) {
  std::string fields = registry::FromHex(result.sha256).value_or("");
  base::PutString(fields, result.report_json);
  std::string head(kMagic);
  for (int shift = 0; shift < 64; shift += 8) {
    head += static_cast<char>(std::uint64_t{fields.size()} >> shift & 0xff);
  }
  head += fields;
  return head + HashBytes(head);
}

StatusOr<std::unique_ptr<ResultCache>> ResultCache::Open(const std::string& folder,
                                                         std::uint64_t limit_bytes) {
  RETURN_IF_ERROR(registry::MakeDirectories(folder, 0700));
  std::unique_ptr<ResultCache> cache(new ResultCache(folder, limit_bytes));
  struct Found {
    fs::file_time_type used;
    std::string key;
    std::uint64_t bytes;
  };
  std::vector<Found> found;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(folder, error)) {
    const std::string name = file.path().filename().string();
    std::error_code gone;
    if (IsKey(name)) {
      found.push_back({file.last_write_time(gone), name, file.file_size(gone)});
    } else {
      fs::remove(file.path(), gone);  // Half written when the process was killed.
    }
  }
  std::ranges::sort(found, {}, &Found::used);
  const base::MutexLock lock(cache->mutex_);
  for (const Found& f : found) cache->Add(f.key, f.bytes);
  return cache;
}

void ResultCache::Add(const std::string& key, std::uint64_t bytes) {
  if (const auto there = by_key_.find(key); there != by_key_.end()) {
    figures_.bytes -= there->second->bytes;
    entries_.erase(there->second);
  }
  by_key_[key] = entries_.insert(entries_.end(), {key, bytes});
  figures_.bytes += bytes;
  while (figures_.bytes > limit_) Remove(entries_.front().key);
}

void ResultCache::Remove(const std::string& key) {
  const auto there = by_key_.find(key);
  if (there == by_key_.end()) return;
  std::error_code ignored;
  fs::remove(folder_ + "/" + key, ignored);
  figures_.bytes -= there->second->bytes;
  entries_.erase(there->second);
  by_key_.erase(there);
}

std::optional<Result> ResultCache::Get(const std::string& key) {
  {
    const base::MutexLock lock(mutex_);
    const auto there = by_key_.find(key);
    if (there == by_key_.end()) {
      ++figures_.misses;
      return std::nullopt;
    }
    entries_.splice(entries_.end(), entries_, there->second);
  }
  const std::string path = folder_ + "/" + key;
  StatusOr<Result> result = ReadEntry(path);
  std::error_code ignored;
  if (result.ok()) fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
  const base::MutexLock lock(mutex_);
  ++(result.ok() ? figures_.hits : figures_.misses);
  if (result.ok()) return *std::move(result);
  // It may just have made room for another one.
  if (!absl::IsNotFound(result.status())) ++figures_.damaged;
  Remove(key);
  return std::nullopt;
}

Status ResultCache::Put(const std::string& key, const Result& result) {
  const std::string head = EntryHead(result);
  const std::uint64_t bytes = head.size() + result.model_bytes();
  if (bytes > limit_) return OkStatus();
  const Status status = WriteEntry(folder_ + "/" + key, head, result);
  const base::MutexLock lock(mutex_);
  if (status.ok()) {
    Add(key, bytes);
  } else {
    ++figures_.unwritten;
  }
  return status;
}

CacheFigures ResultCache::figures() const {
  const base::MutexLock lock(mutex_);
  CacheFigures out = figures_;
  out.entries = entries_.size();
  return out;
}

}  // namespace tenon::optimizer
