// Universe: what an enumeration ranges over: typed inputs at concrete small extents, operators with
// fixed attributes, and the largest number of operators. Written as universes/*.textproto; the
// format is docs/formats/universe.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/graph/term_table.h"

namespace tenon::graph {

// The numbers are persisted.
enum class Outputs : std::uint8_t {
  kSingle = 1,    // Graphs with exactly one unused result.
  kMultiple = 2,  // Graphs with any number of them.
};

// What operators mean. The numbers are persisted.
enum class Semantics : std::uint8_t {
  kTrue = 1,            // core/ops.
  kTasoAsReleased = 2,  // worker/released/types.h: for comparison only.
};

struct Universe {
  struct Input {
    std::string name;
    InputKind kind = InputKind::kActivation;
    Extents extents;
    friend bool operator==(const Input&, const Input&) = default;
  };
  // Narrows what an operator is applied to; without it everything that type-checks is tried.
  struct Limit {
    int operand = 0;
    Extents extents;                // 0 matches any extent; empty: any shape.
    std::optional<InputKind> kind;  // kWeight: depends on weights and constants only.
    friend bool operator==(const Limit&, const Limit&) = default;
  };
  struct Operator {
    ops::Operator op;  // With all its attributes.
    int arity = 0;     // 0 for a constant.
    std::vector<Limit> limits;
    bool same_shape = false;  // Only operands of equal shapes: no broadcasting ..
    bool or_scalar = false;   // .. but of operands of rank 0; with same_shape only.
    friend bool operator==(const Operator&, const Operator&) = default;
  };

  std::string name;
  std::string description;
  Outputs outputs = Outputs::kSingle;
  Semantics semantics = Semantics::kTrue;
  int max_operators = 3;             // Constants count.
  std::int64_t max_elements = 1024;  // Of any tensor; larger results are not made.
  std::vector<Input> inputs;
  std::vector<Operator> operators;  // No two with equal operator and arity.
  friend bool operator==(const Universe&, const Universe&) = default;
};

// What a universe may ask for at most.
inline constexpr int kMaxOperatorsMax = 8;
inline constexpr int kUniverseArityMax = 8;
inline constexpr std::int64_t kMaxElementsMax = 1 << 20;
inline constexpr int kUniverseOperatorsMax = 4096;

// Whether the parts fit each other and the limits. InvalidArgument: "field: what is wrong; what to
// do".
Status Validate(const Universe& universe);

// A table with the inputs of a valid universe, in order; and each operator interned, in order.
TermTable TableOf(const Universe& universe);

}  // namespace tenon::graph
