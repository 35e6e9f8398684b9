// TASO's released generator once more, the slow way: operators are added one at a time, in every
// order, to lists of tensors; values are those of core/ops on exact numbers.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "core/graph/universe.h"

namespace tenon::test {

using GraphText = std::vector<std::string>;  // Of its outputs, sorted.

struct Reference {
  std::vector<std::uint64_t> sets_by_size, sequences_by_size;
  std::uint64_t classes = 0;
  std::set<std::set<GraphText>> shared_classes;  // With at least two members.
};

// `universe` has TASO's semantics and no MaxPool.
Reference ReferenceOf(const graph::Universe& universe);

}  // namespace tenon::test
