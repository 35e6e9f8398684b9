// Merging packs: one pack with the rules of several, each once, without those that others derive.
//
// Universes that are small enough to be enumerated show different rules, and an optimizer wants all
// of them. What one universe needed its own rule for, another may derive.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/pack/pack.h"

namespace tenon::publish {

struct MergeInput {
  std::string title;  // What the merged pack calls it: "matrix@0.1.0".
  const pack::Content& content;
};

struct Merged {
  pack::Content content;
  std::size_t repeated = 0;  // Rules that were there already.
  std::size_t derived = 0;   // Rules with one output that the others derive; left out.
};

// The rules and certificates of all. Rules with several outputs stay, even if others derive them: a
// search finds them by their source, which is what they are for. Of equal rules the certificate of
// the first counts. Counts are summed; `universe` becomes the texts of all, each under its title as
// a comment; `mode` is exhaustive if all are. `progress` is called with rules done and in all, and
// ends the work with CANCELLED when it returns false. InvalidArgument: no pack, or of rules without
// canonical form; FailedPrecondition: of different semantics.
StatusOr<Merged> Merge(std::span<const MergeInput> packs,
                       const std::function<bool(std::size_t done, std::size_t total)>& progress);

}  // namespace tenon::publish
