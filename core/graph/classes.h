// Classes of equal terms, as bytes: what an enumeration on many machines hands to the coordinator.
//
// Only terms that matter travel: members of classes and what they are made of, in the order in
// which the enumeration numbered them. Format and test vector: docs/formats/classes.md.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/term_table.h"
#include "core/graph/universe.h"

namespace tenon::graph {

// members(c) = members[at[c] .. at[c+1]): ascending, at least two; classes by their first members.
// A value type.
struct TermClasses {
  TermTable table;
  std::vector<std::size_t> at{0};
  std::vector<TermId> members;
};

// The terms of `table`, an enumeration of the universe, that the classes need, and the classes.
// Terms keep their order. CHECKs that the classes are in order.
TermClasses Fragment(const Universe& universe, const TermTable& table,
                     std::span<const std::size_t> at, std::span<const TermId> members);

// The bytes of a fragment; equal fragments have equal bytes.
std::string EncodeClasses(const TermClasses& fragment);
// Reads foreign bytes that belong to a valid universe. DataLoss says what is wrong with them:
// everything is checked, and only what EncodeClasses writes is accepted.
StatusOr<TermClasses> DecodeClasses(const Universe& universe, std::string_view bytes);

}  // namespace tenon::graph
