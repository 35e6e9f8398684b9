// RocksDB is entered and left here: its statuses become ours, its types stay inside.
//
// A value on disk is the payload and its checksum (docs/formats/store.md). RocksDB has checksums of
// its own, for blocks as they are read from disk; ours also covers what happens above it.
#include "store/store.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/checkpoint.h>
#include <xxhash.h>

#include "core/base/kill_point.h"
#include "store/no_sync.h"

namespace tenon::store {
namespace {

constexpr std::string_view kFormatKey = "format";
constexpr std::string_view kFormat = "tenon store 1";
constexpr std::size_t kFamilies = std::size(kFamilyNames);
constexpr std::size_t kChecksumBytes = 8;
constexpr std::string_view kBulkPrefix = "bulk-";
// What is kept free: a log of RocksDB that could not be written to the end ends the process (an
// assertion of Debian's build), so it must not come to that. Deleting makes room, and may use more.
constexpr std::uint64_t kKeptFreeBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kKeptFreeByDeletesBytes = std::uint64_t{4} << 20;

std::string_view View(const rocksdb::Slice& s) { return {s.data(), s.size()}; }
rocksdb::Slice ToSlice(std::string_view v) { return {v.data(), v.size()}; }

constexpr std::chrono::milliseconds kLockInterval{10};

bool IsLocked(const rocksdb::Status& s) {
  return s.IsIOError() && s.ToString().find("lock") != std::string::npos;
}

Status Convert(const rocksdb::Status& s, const std::string& directory, std::string_view doing) {
  if (s.ok()) return OkStatus();
  const auto message = [&](std::string_view hint) {
    return fmt::format("store {}: {}: {}; {}", directory, doing, s.ToString(), hint);
  };
  if (s.IsNoSpace() || s.ToString().find("No space left") != std::string::npos) {
    return base::ResourceExhausted(message("free space on that disk and run again"));
  }
  if (s.IsCorruption()) {
    return base::DataLoss(message("restore a backup, or delete the directory and run again"));
  }
  if (IsLocked(s)) {
    return base::FailedPrecondition(
        message("another process has it open; stop that one or give another directory"));
  }
  if (s.IsIOError()) {
    return base::InvalidArgument(message("give a directory that can be read and written"));
  }
  if (s.IsInvalidArgument()) {
    return base::FailedPrecondition(message("give a directory with a store of this version"));
  }
  return base::Internal(message("please report this"));
}

rocksdb::ColumnFamilyOptions FamilyOptions(const std::shared_ptr<rocksdb::Cache>& cache,
                                           bool bulk) {
  rocksdb::ColumnFamilyOptions options;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = cache;
  table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10));
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.compression = rocksdb::kZSTD;
  if (bulk) {
    // Runs are large and packed already: kept out of the sorted tables, so that compaction does not
    // copy them, and not compressed again.
    options.compression = rocksdb::kNoCompression;
    options.enable_blob_files = true;
    options.min_blob_size = 4096;
    options.enable_blob_garbage_collection = true;
  }
  return options;
}

std::string Sealed(std::string_view payload) {
  std::string out(payload);
  AppendU64(out, XXH3_64bits(payload.data(), payload.size()));
  return out;
}

// The payload of a stored value, or nothing if its checksum differs.
std::optional<std::string_view> Unsealed(std::string_view stored) {
  if (stored.size() < kChecksumBytes) return std::nullopt;
  const std::string_view payload = stored.substr(0, stored.size() - kChecksumBytes);
  if (ReadU64(stored.substr(payload.size())) != XXH3_64bits(payload.data(), payload.size())) {
    return std::nullopt;
  }
  return payload;
}

// The least key after all those with the prefix; empty: there is none.
std::string Successor(std::string_view prefix) {
  std::string out(prefix);
  while (!out.empty() && out.back() == '\xff') out.pop_back();
  if (!out.empty()) out.back() = static_cast<char>(static_cast<unsigned char>(out.back()) + 1);
  return out;
}

}  // namespace

void AppendU32(std::string& key, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) key += static_cast<char>(value >> shift & 0xff);
}
void AppendU64(std::string& key, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) key += static_cast<char>(value >> shift & 0xff);
}
std::uint32_t ReadU32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t k = 0; k < 4; ++k) value = value << 8 | static_cast<unsigned char>(bytes[k]);
  return value;
}
std::uint64_t ReadU64(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t k = 0; k < 8; ++k) value = value << 8 | static_cast<unsigned char>(bytes[k]);
  return value;
}

struct Store::Impl {
  std::string directory;
  bool temporary = false;
  std::unique_ptr<rocksdb::Env> env;  // Of a temporary store.
  std::unique_ptr<rocksdb::DB> db;
  std::vector<rocksdb::ColumnFamilyHandle*> handles;  // kFamilies of them, then the default one.

  rocksdb::ColumnFamilyHandle* of(Family f) const { return handles[static_cast<std::size_t>(f)]; }
  rocksdb::WriteOptions write_options() const {
    rocksdb::WriteOptions options;
    options.sync = !temporary;
    options.disableWAL = temporary;
    return options;
  }
  Status Damaged(Family f, std::string_view key) const {
    std::string hex;
    for (char c : key) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return base::DataLoss(fmt::format(
        "store {}: {}: the value of key {} does not match its checksum; restore a backup, or "
        "delete the directory and run again",
        directory, kFamilyNames[static_cast<std::size_t>(f)], hex));
  }
  StatusOr<std::uint64_t> FreeBytes() const {
    std::error_code error;
    const auto space = std::filesystem::space(directory, error);
    if (!error) return std::uint64_t{space.available};
    return base::Internal(fmt::format("store {}: free space: {}", directory, error.message()));
  }
  Status CheckRoom(std::uint64_t kept_bytes) const {
    ASSIGN_OR_RETURN(const std::uint64_t free, FreeBytes());
    if (free >= kept_bytes) return OkStatus();
    return base::ResourceExhausted(
        fmt::format("store {}: only {} bytes are free, and {} are kept; free space on that disk",
                    directory, free, kept_bytes));
  }
  std::atomic<std::uint64_t> bulk_files{0};  // So that their names differ.
  Status OpenDb(const OpenOptions& options);
  Status CheckFormat(bool is_new);
  ~Impl() {
    for (rocksdb::ColumnFamilyHandle* h : handles) db->DestroyColumnFamilyHandle(h);
    db.reset();
    std::error_code ignored;
    if (temporary) std::filesystem::remove_all(directory, ignored);
  }
};

Status Store::Impl::OpenDb(const OpenOptions& options) {
  const bool is_new = !std::filesystem::exists(directory + "/CURRENT");
  if (is_new && !options.create) {
    return base::NotFound(
        fmt::format("store {}: there is none; give the directory of a store", directory));
  }
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return base::InvalidArgument(
        fmt::format("store {}: cannot make the directory: {}; give one that can be written",
                    directory, error.message()));
  }
  for (const auto& file : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = file.path().filename().string();  // Of a BulkWriter that was killed.
    if (name.starts_with(kBulkPrefix)) std::filesystem::remove(file.path(), error);
  }
  rocksdb::DBOptions db_options;
  db_options.create_if_missing = true;
  db_options.create_missing_column_families = true;
  db_options.max_background_jobs = 2;
  // A log whose end is missing is that of a crash, and what is missing was not acknowledged. Any
  // other damage is told: the default would drop whatever was written after it, silently.
  db_options.wal_recovery_mode = rocksdb::WALRecoveryMode::kTolerateCorruptedTailRecords;
  db_options.track_and_verify_wals_in_manifest = true;
  db_options.info_log_level = rocksdb::ERROR_LEVEL;
  db_options.keep_log_file_num = 2;
  if (temporary) {
    env = NoSyncEnv();
    db_options.env = env.get();
  }
  const std::shared_ptr<rocksdb::Cache> cache = rocksdb::NewLRUCache(options.cache_bytes);
  std::vector<rocksdb::ColumnFamilyDescriptor> families;
  for (std::size_t k = 0; k < kFamilies; ++k) {
    families.emplace_back(std::string(kFamilyNames[k]),
                          FamilyOptions(cache, static_cast<Family>(k) == Family::kFingerprints));
  }
  families.emplace_back(rocksdb::kDefaultColumnFamilyName, FamilyOptions(cache, false));
  rocksdb::DB* raw = nullptr;
  const auto end = std::chrono::steady_clock::now() + options.lock_patience;
  rocksdb::Status opened = rocksdb::DB::Open(db_options, directory, families, &handles, &raw);
  while (IsLocked(opened) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(kLockInterval);
    opened = rocksdb::DB::Open(db_options, directory, families, &handles, &raw);
  }
  RETURN_IF_ERROR(Convert(opened, directory, "opening"));
  db.reset(raw);
  return CheckFormat(is_new);
}

Status Store::Impl::CheckFormat(bool is_new) {
  std::string format;
  const rocksdb::Status s =
      db->Get(rocksdb::ReadOptions(), handles.back(), ToSlice(kFormatKey), &format);
  if (s.IsNotFound() && is_new) {
    return Convert(db->Put(write_options(), handles.back(), ToSlice(kFormatKey), ToSlice(kFormat)),
                   directory, "writing");
  }
  if (!s.IsNotFound()) RETURN_IF_ERROR(Convert(s, directory, "reading"));
  if (format != kFormat) {
    return base::FailedPrecondition(fmt::format(
        "store {}: its format is '{}', this program reads '{}'; use the version that wrote it, or "
        "give another directory",
        directory, format, kFormat));
  }
  return OkStatus();
}

// Table files beside the database, which it takes over in the end.
class BulkFiles final : public BulkWriter {
 public:
  BulkFiles(Store::Impl& store, Family family);
  ~BulkFiles() override;
  Status Put(std::string_view key, std::string_view value) override;
  Status Finish() override;

 private:
  static constexpr std::uint64_t kFileBytes = std::uint64_t{256} << 20;
  Status FinishFile();

  Store::Impl& store_;
  Family family_;
  rocksdb::SstFileWriter writer_;
  bool open_ = false;
  std::vector<std::string> files_;
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

const std::string& Store::directory() const { return impl_->directory; }

StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& directory,
                                             const OpenOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->directory = directory;
  RETURN_IF_ERROR(impl->OpenDb(options));
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

StatusOr<std::unique_ptr<Store>> Store::OpenTemporary(const std::string& parent) {
  const char* tmpdir = std::getenv("TMPDIR");
  const std::string under = !parent.empty()     ? parent
                            : tmpdir == nullptr ? std::string("/tmp")
                                                : std::string(tmpdir);
  std::string name = under + "/tenon-store-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    return base::InvalidArgument(fmt::format(
        "{}: cannot make a temporary directory there; set TMPDIR to one that can be written",
        under));
  }
  auto impl = std::make_unique<Impl>();
  impl->directory = name;
  impl->temporary = true;
  RETURN_IF_ERROR(impl->OpenDb({}));
  return std::unique_ptr<Store>(new Store(std::move(impl)));
}

Status Store::Put(Family family, std::string_view key, std::string_view value) {
  Batch batch;
  batch.Put(family, key, value);
  return Write(batch);
}

Status Store::Delete(Family family, std::string_view key) {
  Batch batch;
  batch.Delete(family, key);
  return Write(batch);
}

Status Store::Write(const Batch& batch) {
  std::uint64_t added = 0;
  for (const Batch::Change& c : batch.changes()) added += c.value ? c.value->size() + 1 : 0;
  RETURN_IF_ERROR(impl_->CheckRoom(added > 0 ? kKeptFreeBytes + added : kKeptFreeByDeletesBytes));
  rocksdb::WriteBatch changes;
  for (const Batch::Change& c : batch.changes()) {
    rocksdb::Status s;
    if (c.value) {
      s = changes.Put(impl_->of(c.family), c.key, Sealed(*c.value));
    } else {
      s = changes.Delete(impl_->of(c.family), c.key);
    }
    RETURN_IF_ERROR(Convert(s, impl_->directory, "writing"));
  }
  TENON_KILL_POINT("store.write.before");
  const rocksdb::Status s = impl_->db->Write(impl_->write_options(), &changes);
  TENON_KILL_POINT("store.write.after");
  return Convert(s, impl_->directory, "writing");
}

BulkFiles::BulkFiles(Store::Impl& store, Family family)
    : store_(store),
      family_(family),
      writer_(rocksdb::EnvOptions(), store.db->GetOptions(store.of(family)), store.of(family)) {}

BulkFiles::~BulkFiles() {
  std::error_code ignored;
  for (const std::string& file : files_) std::filesystem::remove(file, ignored);
}

Status BulkFiles::Put(std::string_view key, std::string_view value) {
  if (!open_) {
    RETURN_IF_ERROR(store_.CheckRoom(kKeptFreeBytes + kFileBytes));
    files_.push_back(
        fmt::format("{}/{}{}.sst", store_.directory, kBulkPrefix, store_.bulk_files++));
    RETURN_IF_ERROR(Convert(writer_.Open(files_.back()), store_.directory, "writing"));
    open_ = true;
  }
  RETURN_IF_ERROR(Convert(writer_.Put(ToSlice(key), Sealed(value)), store_.directory, "writing"));
  return writer_.FileSize() >= kFileBytes ? FinishFile() : OkStatus();
}

Status BulkFiles::FinishFile() {
  open_ = false;
  return Convert(writer_.Finish(), store_.directory, "writing");
}

Status BulkFiles::Finish() {
  if (open_) RETURN_IF_ERROR(FinishFile());
  if (files_.empty()) return OkStatus();
  rocksdb::IngestExternalFileOptions options;
  options.move_files = true;
  options.write_global_seqno = false;
  RETURN_IF_ERROR(Convert(store_.db->IngestExternalFile(store_.of(family_), files_, options),
                          store_.directory, "writing"));
  return OkStatus();
}

StatusOr<std::unique_ptr<BulkWriter>> Store::OpenBulk(Family family) {
  return std::unique_ptr<BulkWriter>(new BulkFiles(*impl_, family));
}

StatusOr<std::optional<std::string>> Store::Get(Family family, std::string_view key) const {
  std::string stored;
  const rocksdb::Status s =
      impl_->db->Get(rocksdb::ReadOptions(), impl_->of(family), ToSlice(key), &stored);
  if (s.IsNotFound()) return std::optional<std::string>();
  RETURN_IF_ERROR(Convert(s, impl_->directory, "reading"));
  const auto payload = Unsealed(stored);
  if (!payload) return impl_->Damaged(family, key);
  stored.resize(payload->size());
  return std::optional(std::move(stored));
}

Status Store::Scan(Family family, std::string_view prefix, const Visit& visit) const {
  return ScanRange(family, prefix, Successor(prefix), visit);
}

Status Store::ScanRange(Family family, std::string_view first, std::string_view end,
                        const Visit& visit) const {
  rocksdb::ReadOptions options;
  options.total_order_seek = true;
  options.fill_cache = false;
  const std::unique_ptr<rocksdb::Iterator> it(impl_->db->NewIterator(options, impl_->of(family)));
  for (it->Seek(ToSlice(first)); it->Valid() && (end.empty() || View(it->key()) < end);
       it->Next()) {
    const auto payload = Unsealed(View(it->value()));
    if (!payload) return impl_->Damaged(family, View(it->key()));
    RETURN_IF_ERROR(visit(View(it->key()), *payload));
  }
  return Convert(it->status(), impl_->directory, "reading");
}

// Without reading the values. Nothing is removed from disk here: compaction does that.
Status Store::DeletePrefix(Family family, std::string_view prefix) {
  const std::string end = Successor(prefix);
  if (end.empty()) {  // All keys, or a prefix that no key follows: rare, so one by one.
    Batch batch;
    RETURN_IF_ERROR(Scan(family, prefix, [&](std::string_view key, std::string_view) {
      batch.Delete(family, key);
      return OkStatus();
    }));
    return batch.empty() ? OkStatus() : Write(batch);
  }
  RETURN_IF_ERROR(impl_->CheckRoom(kKeptFreeByDeletesBytes));
  return Convert(impl_->db->DeleteRange(impl_->write_options(), impl_->of(family), ToSlice(prefix),
                                        ToSlice(end)),
                 impl_->directory, "deleting");
}

Status Store::Compact() {
  rocksdb::CompactRangeOptions options;
  options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
  options.blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
  options.blob_garbage_collection_age_cutoff = 1.0;
  for (rocksdb::ColumnFamilyHandle* h : impl_->handles) {
    RETURN_IF_ERROR(Convert(impl_->db->CompactRange(options, h, nullptr, nullptr), impl_->directory,
                            "compacting"));
  }
  return OkStatus();
}

Status Store::Checkpoint(const std::string& directory) const {
  if (std::filesystem::exists(directory)) {
    return base::FailedPrecondition(fmt::format(
        "store {}: a checkpoint to {}: it exists; give another name", impl_->directory, directory));
  }
  rocksdb::Checkpoint* raw = nullptr;
  RETURN_IF_ERROR(Convert(rocksdb::Checkpoint::Create(impl_->db.get(), &raw), impl_->directory,
                          "making a checkpoint"));
  const std::unique_ptr<rocksdb::Checkpoint> checkpoint(raw);
  return Convert(checkpoint->CreateCheckpoint(directory), impl_->directory, "making a checkpoint");
}

StatusOr<std::uint64_t> Store::FreeBytes() const { return impl_->FreeBytes(); }

StatusOr<std::uint64_t> Store::Verify() const {
  std::uint64_t values = 0;
  for (std::size_t k = 0; k < kFamilies; ++k) {
    RETURN_IF_ERROR(Scan(static_cast<Family>(k), "", [&](std::string_view, std::string_view) {
      ++values;
      return OkStatus();
    }));
  }
  return values;
}

std::uint64_t Store::DiskBytes(Family family) const {
  std::uint64_t tables = 0, blobs = 0;
  impl_->db->GetIntProperty(impl_->of(family), rocksdb::DB::Properties::kTotalSstFilesSize,
                            &tables);
  impl_->db->GetIntProperty(impl_->of(family), rocksdb::DB::Properties::kTotalBlobFileSize, &blobs);
  return tables + blobs;
}

}  // namespace tenon::store
