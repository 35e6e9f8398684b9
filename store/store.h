// Store: what Tenon keeps on disk, in RocksDB column families. Keys and values are specified in
// docs/formats/store.md.
//
// What is acknowledged is durable: after kill -9 or a power cut it is there. Every value carries a
// checksum, so what is read is what was written or an error. One process has a store open at a
// time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::store {

// The column families. The numbers index kFamilyNames and are not persisted; the names are.
enum class Family : std::uint8_t {
  kFingerprints,  // Sorted runs of records (store/run.h).
  kClasses,
  kCandidates,
  kVerdicts,
  kCertificates,
  kJobs,  // Jobs and their shards.
  kPacks,
  kCosts,
};
inline constexpr std::string_view kFamilyNames[] = {
    "fingerprints", "classes", "candidates", "verdicts", "certificates", "jobs", "packs", "costs"};

// Changes that are made together or not at all. A value type.
class Batch {
 public:
  void Put(Family family, std::string_view key, std::string_view value) {
    changes_.push_back({family, std::string(key), std::string(value)});
  }
  void Delete(Family family, std::string_view key) {
    changes_.push_back({family, std::string(key), std::nullopt});
  }
  bool empty() const { return changes_.empty(); }

  struct Change {
    Family family;
    std::string key;
    std::optional<std::string> value;  // None: delete.
  };
  // In the order in which they were asked for; the last one of a key counts.
  const std::vector<Change>& changes() const { return changes_; }

 private:
  std::vector<Change> changes_;
};

// Many values of one family, written past the log: for what comes by the gigabyte, in the order of
// keys. Nothing of it is there before Finish, all of it after, durable (in a temporary store: not
// synced); an object that is not finished leaves nothing behind. Values of earlier keys are
// replaced. Errors of Store. Thread-compatible; the store outlives it.
class BulkWriter {
 public:
  virtual ~BulkWriter() = default;
  // Keys ascend.
  virtual Status Put(std::string_view key, std::string_view value) = 0;
  virtual Status Finish() = 0;
};

struct OpenOptions {
  bool create = true;  // Else a missing store is NotFound.
  // How long to wait for another process, or another object of this one, that has it open.
  std::chrono::milliseconds lock_patience{0};
  std::size_t cache_bytes = std::size_t{64} << 20;
};

// Errors of all functions name the directory and the way out: ResourceExhausted: the disk is full.
// DataLoss: damaged contents. FailedPrecondition: another process has the store open, or it was
// written by another version. InvalidArgument: it cannot be opened or written (permissions).
// Thread-safe.
class Store {
 public:
  // Opens the store in a directory, creating it if wanted.
  static StatusOr<std::unique_ptr<Store>> Open(const std::string& directory,
                                               const OpenOptions& options = {});
  // A store in a new directory under `parent` (empty: TMPDIR, else /tmp) that is removed with this
  // object. Its writes are not synced.
  static StatusOr<std::unique_ptr<Store>> OpenTemporary(const std::string& parent = "");

  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;
  ~Store();

  const std::string& directory() const;

  Status Put(Family family, std::string_view key, std::string_view value);
  // Deleting what is not there is no error.
  Status Delete(Family family, std::string_view key);
  Status Write(const Batch& batch);
  StatusOr<std::unique_ptr<BulkWriter>> OpenBulk(Family family);
  // Nothing if there is no such key.
  StatusOr<std::optional<std::string>> Get(Family family, std::string_view key) const;

  // Calls `visit` for each key with that prefix, in byte order, as of the moment of the call. The
  // views end with the visit; an error of `visit` ends the scan and is returned.
  using Visit = std::function<Status(std::string_view key, std::string_view value)>;
  Status Scan(Family family, std::string_view prefix, const Visit& visit) const;
  // The same for the keys in [first, end).
  Status ScanRange(Family family, std::string_view first, std::string_view end,
                   const Visit& visit) const;
  Status DeletePrefix(Family family, std::string_view prefix);

  // Reads everything and checks every checksum. The number of values, or the first DataLoss.
  StatusOr<std::uint64_t> Verify() const;
  // Gives the space of what was deleted back to the disk, as far as that can be forced.
  Status Compact();
  // A consistent copy in a new directory, by hard links where the file system has them: a backup
  // is that directory, copied; restoring is opening it. FailedPrecondition: it exists.
  Status Checkpoint(const std::string& directory) const;
  // Free bytes of the disk, for processes without privileges.
  StatusOr<std::uint64_t> FreeBytes() const;
  // Bytes on disk of a family, about.
  std::uint64_t DiskBytes(Family family) const;

 private:
  friend class BulkFiles;
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Big-endian numbers, so that the byte order of keys is the order of numbers.
void AppendU32(std::string& key, std::uint32_t value);
void AppendU64(std::string& key, std::uint64_t value);
std::uint32_t ReadU32(std::string_view bytes);  // At least 4 bytes.
std::uint64_t ReadU64(std::string_view bytes);  // At least 8 bytes.

}  // namespace tenon::store
