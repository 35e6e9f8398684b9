// Whole files: bounded reading, and writing that leaves either the old file or the new one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon::registry {

// NotFound when there is no such file, InvalidArgument when it is a directory or cannot be read,
// ResourceExhausted when it is longer than `max_bytes`. Messages name the path.
StatusOr<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes);

struct WriteOptions {
  unsigned mode = 0644;
  bool replace = true;  // Otherwise an existing file is kept and AlreadyExists returned.
};
// Writes a temporary file in the same directory, flushes it to the disk and renames it, then
// flushes the directory. On an error nothing is left behind: InvalidArgument (no such directory, no
// permission) or ResourceExhausted (disk full, quota).
Status WriteFile(const std::string& path, std::string_view bytes, const WriteOptions& options = {});

// Makes the directory and those above it, with permissions `mode`.
Status MakeDirectories(const std::string& path, unsigned mode);

}  // namespace tenon::registry
