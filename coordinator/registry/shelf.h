// PackShelf: the published packs, in Family::kPacks of the coordinator's journal
// (docs/formats/registry.md). A version is put there once, as a whole, and never changes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "coordinator/board/journal.h"
#include "coordinator/publish/sink.h"
#include "core/base/mutex.h"
#include "core/base/status.h"
#include "core/pack/pack.h"

namespace tenon::coordinator {

// What is said of a pack without reading it. A value type.
struct ShelfEntry {
  std::string name;
  pack::Version version;
  std::string address;      // Of the content, hexadecimal.
  std::uint64_t size = 0;   // Of the file.
  std::string file_sha256;  // Hexadecimal.
  std::string signer;       // Public key, hexadecimal; empty: unsigned.
  std::int64_t published_at_ms = 0;
  std::uint64_t rules = 0;
  std::vector<std::string> channels;  // Sorted.
};

// Which version of a name: that one, that of a channel, or the highest.
struct Which {
  std::string version;
  std::string channel;
};

// Whether a channel may be called so: 1 to 32 of [a-z0-9-].
bool IsChannelName(std::string_view name);

// Thread-safe.
class PackShelf {
 public:
  // The journal outlives it.
  explicit PackShelf(board::Journal& journal) : journal_(journal) {}

  // Checks a pack file and publishes it. DataLoss: it is no pack or damaged; FailedPrecondition: of
  // another version of the semantics, with a rule without certificate, or unsigned while
  // `signed_only`; AlreadyExists: the version is there with other bytes. The same bytes again: its
  // entry.
  StatusOr<ShelfEntry> Publish(const std::string& file, std::int64_t now_ms, bool signed_only);
  // By name, then version; an empty name: all.
  StatusOr<std::vector<ShelfEntry>> List(const std::string& name) const;
  // NotFound; InvalidArgument.
  StatusOr<ShelfEntry> Find(const std::string& name, const Which& which) const;
  // The bytes of the file. NotFound; DataLoss when they are not what was published.
  StatusOr<std::string> Read(const ShelfEntry& entry) const;
  // Points a channel at a version. NotFound: no such version; InvalidArgument.
  StatusOr<ShelfEntry> SetChannel(const std::string& name, const std::string& channel,
                                  const std::string& version);

 private:
  board::Journal& journal_;
  base::Mutex mutex_;  // Look-up and write are one step.
};

// What the coordinator publishes through; the shelf is shared with the service.
std::unique_ptr<PackSink> MakeShelfSink(std::shared_ptr<PackShelf> shelf);

}  // namespace tenon::coordinator
