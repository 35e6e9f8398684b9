// Canonical bytes of rules and graphs: one spelling for all rules that differ only in the naming
// and numbering of inputs, symbols and nodes or in the order of commutative operands. Format and
// test vectors: docs/formats/operator.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/rules/rule.h"

namespace tenon::rules {

// The bytes of source, target, conditions and direction; the name, line, expected verdict and float
// class are left out. ResourceExhausted when the rule is so large and symmetric that its smallest
// spelling is not found among 2^16 (about 14 commutative nodes); InvalidArgument when it holds an
// opaque operator or a size that overflowed.
StatusOr<std::string> CanonicalBytes(const Rule& rule);

// Up to renaming of inputs and symbols; what `roots` do not reach is left out. Errors as above.
StatusOr<std::string> CanonicalBytes(const graph::Graph& g, std::span<const graph::NodeId> roots);

// With all inputs in their places, for whole models: two graphs have the same bytes exactly if they
// are the same function of the same inputs by the same operators. Linear in the size up to sorting.
// CHECKs that all sizes are constant.
std::string InterfaceBytes(const graph::Graph& g, std::span<const graph::NodeId> roots);

// Reads foreign bytes. DataLoss says what is wrong with them: every field is checked, and bytes
// other than the canonical ones are refused. Names are given anew: inputs a, b, .., dims m, n, ..,
// attributes after what they are used for: s0, s1 for strides, p0, .. for pads, ..
StatusOr<Rule> DecodeRule(std::string_view bytes);
// Both kinds of graphs; the outputs are those of the graph returned.
StatusOr<graph::Graph> DecodeGraph(std::string_view bytes);

// The rule rebuilt from its canonical bytes, with name, line, expected verdict and float class
// kept: equal rules become equal to the last number. Errors of CanonicalBytes.
StatusOr<Rule> Canonical(const Rule& rule);

}  // namespace tenon::rules
