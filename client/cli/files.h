// Files of the command line: reading whole ones, and writing without halves.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/cli/console.h"
#include "client/cli/json.h"
#include "core/base/status.h"

namespace tenon::cli {

// Rule files, universes and reports are text that people write or read; more than this is a
// mistake.
inline constexpr std::uint64_t kTextBytesMax = std::uint64_t{256} << 20;

// NotFound, InvalidArgument: names the file, the reason and what to do. ResourceExhausted: longer
// than kTextBytesMax.
StatusOr<std::string> ReadText(const std::string& path);

// Writes all of `text` to an open file: 0, or the errno.
int WriteAll(int fd, std::string_view text);

// Writes all of `text` or leaves what was there: a temporary file in the same folder, synced, then
// renamed. Something that is no regular file (a device, a pipe) is written to directly.
// InvalidArgument (a bad place) or ResourceExhausted (a full disk).
Status WriteText(const std::string& path, std::string_view text);

// Whether WriteText(path) has a chance: for commands that work long before they write. Leaves
// nothing behind. "-" is refused, since it is stdout elsewhere.
Status CheckWritable(const std::string& path);

// Delivers a document of --json: nowhere (empty), to stdout ("-") or into a file.
Status Deliver(const Json& document, const std::string& where, Console& console);
// CheckWritable for the argument of --json.
Status CheckDeliverable(const std::string& where);

}  // namespace tenon::cli
