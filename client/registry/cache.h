// The packs a user has, by name and version.
//
//   DIR/NAME/VERSION.pack    pack files, never changed
//   DIR/NAME/newest          the highest version that was ever put here
//
// A version never gets other content, and a name whose newest version has gone missing is refused
// rather than quietly rolled back.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/registry/pack_file.h"
#include "core/base/status.h"

namespace tenon::registry {

// Stateless apart from the directory; several processes may use one. Thread-safe.
class PackCache {
 public:
  explicit PackCache(std::string directory) : directory_(std::move(directory)) {}
  // $XDG_CACHE_HOME/tenon/packs or $HOME/.cache/tenon/packs.
  static StatusOr<std::string> DefaultDirectory();

  // Checks the bytes of a pack file and keeps them. FailedPrecondition when the version is there
  // with other content. Errors of DecodePackFile and WriteFile.
  StatusOr<PackFile> Put(std::string_view file_bytes);

  // The path of NAME@VERSION, or of NAME in its newest version. NotFound; FailedPrecondition when
  // the newest version that was seen is missing.
  StatusOr<std::string> Find(std::string_view reference) const;

  // The highest version of `name` that was ever put here; nothing if there was none.
  std::optional<pack::Version> Newest(std::string_view name) const;

  struct Entry {
    std::string name;
    pack::Version version;
    std::string path;
  };
  // By name, then version.
  StatusOr<std::vector<Entry>> List() const;

 private:
  std::string FilePath(std::string_view name, std::string_view version) const;
  std::string directory_;
};

}  // namespace tenon::registry
