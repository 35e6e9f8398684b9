// Rule: source => target over shared inputs with symbolic sizes, and the conditions under which it
// holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/poly.h"
#include "core/graph/graph.h"

namespace tenon::rules {

// What a rule file says of a rule; checked by `tenon prove`.
enum class Expect : std::uint8_t { kNone, kProved, kRefuted, kNotProved, kIllFormed, kVacuous };

// What floating point may do to a rule that holds over the reals (design: docs/float-classes.md).
// The numbers are persisted.
enum class FloatClass : std::uint8_t {
  kExact = 1,   // Bit for bit the same.
  kFinite = 2,  // Equal up to rounding while nothing overflows or is NaN.
  kDomain = 3,  // Removes an operation that can overflow, lose range or change the sign of zero.
};

// A value type. Both sides live in one hash-consed graph, so that common parts are one node. The
// graph's symbols of kind kDim are at least 1; symbols of kind kAttr are bounded by `where` only.
struct Rule {
  std::string name;
  graph::Graph graph;
  std::vector<graph::NodeId> source;  // The outputs of the source, one or more, ..
  std::vector<graph::NodeId> target;  // .. and what replaces each; equally many.
  // What must hold besides the requirements of the source's operators (which a matched source
  // fulfils). Includes the bounds of attributes.
  std::vector<base::Condition> where;
  bool both = false;  // Also holds from target to source, under the same conditions.
  Expect expect = Expect::kNone;
  FloatClass float_class = FloatClass::kFinite;
  int line = 0;  // Where it stood in its file; 0 if it stood in none.
};

}  // namespace tenon::rules
