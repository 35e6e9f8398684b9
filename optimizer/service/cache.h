// ResultCache: results that were computed before, in a folder, up to a number of bytes; what was
// used longest ago goes first.
//
//   FOLDER/KEY    an entry (docs/formats/result-cache.md), KEY of optimizer/service/request.h
//
// An entry is checked whenever it is read: one that is damaged is removed and was never there. The
// folder may be emptied at any time.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "core/base/mutex.h"
#include "core/base/status.h"
#include "optimizer/service/result.h"

namespace tenon::optimizer {

struct CacheFigures {
  std::uint64_t entries = 0, bytes = 0;
  std::uint64_t hits = 0, misses = 0;
  std::uint64_t damaged = 0;    // Entries that were not what they should be.
  std::uint64_t unwritten = 0;  // Results that could not be written.
};

// Thread-safe. One process at a time has a folder.
class ResultCache {
 public:
  // Makes the folder, and takes over what lies there, by age. `limit_bytes` 0: nothing is kept.
  // Errors of registry::MakeDirectories.
  static StatusOr<std::unique_ptr<ResultCache>> Open(const std::string& folder,
                                                     std::uint64_t limit_bytes);

  std::optional<Result> Get(const std::string& key);
  // Keeps a copy; one that is larger than all of the cache may be is not kept. Errors of
  // StagedFile; the cache is as it was then.
  Status Put(const std::string& key, const Result& result);
  CacheFigures figures() const;

 private:
  struct Entry {
    std::string key;
    std::uint64_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // Used last: last.

  ResultCache(std::string folder, std::uint64_t limit)
      : folder_(std::move(folder)), limit_(limit) {}
  void Add(const std::string& key, std::uint64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(const std::string& key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const std::uint64_t limit_;
  mutable base::Mutex mutex_;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, Entries::iterator> by_key_ ABSL_GUARDED_BY(mutex_);
  CacheFigures figures_ ABSL_GUARDED_BY(mutex_);
};

// The part of an entry before the model.
std::string EntryHead(const Result& result);

}  // namespace tenon::optimizer
