// Lifting: from two concrete terms that are equal to rules that say why for all shapes.
//
// An enumeration finds that two terms over small fixed tensors are equal; the rule behind it is
// more general. Lifting replaces common subterms by variables, renames repeated variables apart
// where the sides stay equal (three inputs cannot show a rule about four), gives every extent and
// attribute its own symbol, unifies what the operators require, and keeps as conditions only what
// the other side still needs. What stays true is judged by evaluating random instances; only a
// proof decides.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/graph.h"
#include "core/rules/rule.h"

namespace tenon::rules {

struct LiftOptions {
  std::uint64_t seed = 1;  // Of the random instances; the same seed, the same rules.
  int trials = 24;         // Random instances that a form must pass to be offered.
  int terms_max = 40;  // Nodes a side may have when written as a tree; beyond, nothing is lifted.
};

// Forms of one rule, the most general first and each of the others a fall-back for when the ones
// before it cannot be proved. Each is canonical (core/rules/canonical.h), has one output a side and
// no name; the side with more operators is the source, unless only the other side determines all
// inputs and symbols. `both` is set where each side determines the other and the source is not to
// be made from nothing (a target that is a bare input never becomes a source).
//
// Empty when the terms are equal up to the order of commutative operands (a matcher tries both),
// not equal at all, of different shapes, too large, or when neither side determines the other. `g`
// is concrete.
std::vector<Rule> Lift(const graph::Graph& g, graph::NodeId a, graph::NodeId b,
                       const LiftOptions& options = {});

// Completes a rule whose sides, `graph`, `source` and `target` are given: `where` becomes what
// `where` already says plus what the target requires, the equality of the outputs' shapes and, if
// both sides determine each other, what the source requires, each as far as it is not implied;
// `both` is set accordingly and the sides exchanged if only the target determines the source.
// Conditions that fix a symbol are solved for it. False when the shapes cannot agree or neither
// side determines the other.
bool Complete(Rule& rule);

}  // namespace tenon::rules
