#include "store/artifact.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/bytes.h"
#include "store/run.h"

namespace tenon::store {
namespace {

constexpr Family kFamily = Family::kClasses;
constexpr std::size_t kSha256Digits = 64;
constexpr std::uint64_t kNoTable = ~std::uint64_t{0};

std::string NameKey(std::uint64_t table, std::string_view name) {
  std::string key;
  AppendU64(key, table);
  key += 'n';
  key += name;
  return key;
}

// Among the keys of table 2^64-1, which is not used.
std::string DroppedPrefix() {
  std::string key;
  AppendU64(key, kNoTable);
  key += 'd';
  return key;
}

std::string UploadPrefix(std::uint64_t table, std::uint64_t upload) {
  std::string key;
  AppendU64(key, table);
  key += 'c';
  AppendU64(key, upload);
  return key;
}

std::string ChunkKey(std::uint64_t table, std::uint64_t upload, std::uint32_t index) {
  std::string key = UploadPrefix(table, upload);
  AppendU32(key, index);
  return key;
}

}  // namespace

bool IsArtifactName(std::string_view name) {
  return !name.empty() && name.size() <= 64 && std::ranges::all_of(name, [](char c) {
    return ('a' <= c && c <= 'z') || ('0' <= c && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

Status PutArtifactChunk(Store& store, std::uint64_t table, std::uint64_t upload,
                        std::uint32_t index, std::string_view bytes) {
  return store.Put(kFamily, ChunkKey(table, upload, index), bytes);
}

Status CommitArtifact(Store& store, std::uint64_t table, std::string_view name,
                      const Artifact& artifact) {
  ASSIGN_OR_RETURN(const std::optional<Artifact> before, FindArtifact(store, table, name));
  std::string value;
  base::PutVarint(value, artifact.size);
  value += artifact.sha256;
  AppendU64(value, artifact.upload);
  RETURN_IF_ERROR(store.Put(kFamily, NameKey(table, name), value));
  if (before && before->upload != artifact.upload) {
    RETURN_IF_ERROR(AbandonUpload(store, table, before->upload));
  }
  return OkStatus();
}

Status AbandonUpload(Store& store, std::uint64_t table, std::uint64_t upload) {
  return store.DeletePrefix(kFamily, UploadPrefix(table, upload));
}

StatusOr<std::optional<Artifact>> FindArtifact(const Store& store, std::uint64_t table,
                                               std::string_view name) {
  ASSIGN_OR_RETURN(const std::optional<std::string> value,
                   store.Get(kFamily, NameKey(table, name)));
  if (!value) return std::optional<Artifact>();
  base::ByteReader in(*value);
  Artifact out;
  out.size = in.Varint();
  out.sha256 = in.Bytes(kSha256Digits);
  const std::string_view upload = in.Bytes(8);
  in.End();
  if (!in.ok()) {
    return base::DataLoss(fmt::format("store {}: artifact {} of table {}: {}; run the job again",
                                      store.directory(), name, table, in.error()));
  }
  out.upload = ReadU64(upload);
  return std::optional<Artifact>(out);
}

StatusOr<std::string> GetArtifactChunk(const Store& store, std::uint64_t table,
                                       const Artifact& artifact, std::uint32_t index) {
  ASSIGN_OR_RETURN(std::optional<std::string> value,
                   store.Get(kFamily, ChunkKey(table, artifact.upload, index)));
  if (!value) {
    return base::DataLoss(
        fmt::format("store {}: table {}: chunk {} of an artifact is missing; run the job again",
                    store.directory(), table, index));
  }
  return *std::move(value);
}

Status DropTable(Store& store, std::uint64_t table) {
  std::string mark = DroppedPrefix();
  AppendU64(mark, table);
  RETURN_IF_ERROR(store.Put(kFamily, mark, ""));
  RETURN_IF_ERROR(DropRuns(store, {.job = table}));
  std::string prefix;
  AppendU64(prefix, table);
  return store.DeletePrefix(kFamily, prefix);
}

StatusOr<std::vector<std::uint64_t>> DroppedTables(const Store& store) {
  std::vector<std::uint64_t> out;
  const std::string prefix = DroppedPrefix();
  RETURN_IF_ERROR(store.Scan(kFamily, prefix, [&](std::string_view key, std::string_view) {
    if (key.size() == prefix.size() + 8) out.push_back(ReadU64(key.substr(prefix.size())));
    return OkStatus();
  }));
  return out;
}

}  // namespace tenon::store
