// FoundClasses: what collecting a part of the buckets gives, on its way to who joins the parts.
//
// Graphs are named by their place in the enumeration (worker/enumerate.cc), so that parts need no
// common table of terms; classes are final, since all graphs of a class lie in one bucket.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::worker {

// A graph under the names that a renaming of inputs gives; 0 is its own names.
struct GraphName {
  std::uint64_t graph = 0;
  std::uint64_t renaming = 0;
  friend auto operator<=>(const GraphName&, const GraphName&) = default;
};

// A value type.
struct FoundClasses {
  // Of graphs in these buckets; as in Enumeration.
  std::vector<std::uint64_t> graphs_by_size;
  std::uint64_t graphs = 0, classes = 0, equivalent_pairs = 0, split_classes = 0;
  // The classes with at least two members: names ascend, classes ascend.
  std::vector<std::vector<GraphName>> members;
  friend bool operator==(const FoundClasses&, const FoundClasses&) = default;
};

// The bytes: docs/formats/classes.md. `found` is in order.
std::string EncodeFound(const FoundClasses& found);
// Reads foreign bytes. DataLoss when they are not what EncodeFound writes.
StatusOr<FoundClasses> DecodeFound(std::string_view bytes);

}  // namespace tenon::worker
