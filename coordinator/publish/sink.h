// PackSink: where finished packs go.
#pragma once

#include <memory>
#include <string>

#include "core/base/status.h"

namespace tenon::board {
class Journal;
}  // namespace tenon::board

namespace tenon::coordinator {

// Thread-safe.
class PackSink {
 public:
  virtual ~PackSink() = default;

  // Publishes a pack file (docs/formats/pack.md), as a whole and durably. The same bytes again: OK.
  // AlreadyExists: the version is there with other content.
  virtual Status Publish(const std::string& name, const std::string& version,
                         const std::string& file) = 0;
  // Whether that version is published.
  virtual StatusOr<bool> Has(const std::string& name, const std::string& version) const = 0;
};

// Keeps pack files in Family::kPacks under "file/NAME@VERSION", for a coordinator without a
// registry. The journal outlives it.
std::unique_ptr<PackSink> MakeJournalSink(board::Journal& journal);

}  // namespace tenon::coordinator
