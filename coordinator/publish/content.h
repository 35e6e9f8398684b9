// From classes of equal graphs to the content of a pack: what happens after an enumeration, the
// same in one process and on a cluster, so that both make the same bytes.
//
// reduce -> other forms of the kept rules -> joins -> families, names, float classes, order.
// Everything that is new goes to the prover. The outcome depends on the classes and the verdicts
// alone.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "coordinator/reduce/reduce.h"
#include "core/base/status.h"
#include "core/pack/pack.h"

namespace tenon::publish {

// What an enumeration found. Refers to what the caller keeps.
struct Found {
  reduce::Classes classes;
  std::string universe;  // Canonical text.
  std::string mode;      // "exhaustive" or "canonical".
  std::uint64_t max_operators = 0;
  std::vector<std::uint64_t> graphs_by_size;
  std::uint64_t class_count = 0;  // Of all functions, not only of the shared ones.
  std::uint64_t equivalent_pairs = 0;
};

struct Made {
  pack::Content content;
  std::uint64_t multi_output_rules = 0;  // Families whose rules have several outputs.
  std::uint64_t rounds = 0;              // Of reducing.
  // Pairs that stay underivable, the first of them.
  std::vector<std::pair<graph::TermId, graph::TermId>> examples;
};

using reduce::Progress;
using reduce::Prover;

// Errors of the prover; CANCELLED when `progress` returns false; InvalidArgument when a rule has no
// canonical form.
StatusOr<Made> MakeContent(const Found& found, const Prover& prover,
                           const std::function<bool(const Progress&)>& progress);

}  // namespace tenon::publish
