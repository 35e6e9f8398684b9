// Artifacts: named results of a table, larger than one value. They are there as a whole or not at
// all. Keys and values: docs/formats/store.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "store/store.h"

namespace tenon::store {

inline constexpr std::size_t kArtifactChunkBytes = std::size_t{1} << 20;

// A value type.
struct Artifact {
  std::uint64_t size = 0;
  std::string sha256;        // 64 hexadecimal digits.
  std::uint64_t upload = 0;  // Names its chunks.
};

// 1 to 64 of [a-z0-9._-].
bool IsArtifactName(std::string_view name);

// All but the last chunk have kArtifactChunkBytes. Durable when it returns.
Status PutArtifactChunk(Store& store, std::uint64_t table, std::uint64_t upload,
                        std::uint32_t index, std::string_view bytes);
// Makes an artifact visible whose chunks are there and checked, in place of an earlier one.
Status CommitArtifact(Store& store, std::uint64_t table, std::string_view name,
                      const Artifact& artifact);
// Removes the chunks of an upload that will not be committed.
Status AbandonUpload(Store& store, std::uint64_t table, std::uint64_t upload);

// Nothing if there is none. DataLoss.
StatusOr<std::optional<Artifact>> FindArtifact(const Store& store, std::uint64_t table,
                                               std::string_view name);
// DataLoss when it is not there.
StatusOr<std::string> GetArtifactChunk(const Store& store, std::uint64_t table,
                                       const Artifact& artifact, std::uint32_t index);

// Removes all runs and artifacts of a table, and remembers that it was dropped. Repeating is
// harmless.
Status DropTable(Store& store, std::uint64_t table);
// The tables that were dropped: numbers of tables are not used again, so what still arrives for
// one of them is late and can be refused.
StatusOr<std::vector<std::uint64_t>> DroppedTables(const Store& store);

}  // namespace tenon::store
