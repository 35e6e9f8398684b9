// Facts about an operator that need no evaluation.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

#include "core/ops/domain.h"

namespace tenon::ops {

struct Onnx {
  std::string_view op_type;  // Empty: the operator has no ONNX form of its own.
  int since_opset = 0;       // First opset whose meaning equals ours.
};

// How an operator treats elements; decides float classes and what is foldable or free.
enum class Nature : std::uint8_t {
  kMovement,   // Output elements are input elements or zeros: Transpose, Concat, Slice, Pad, ..
  kPointwise,  // One element from the same (or broadcast) element of each operand.
  kReduction,  // Sums or maxima over an axis or window.
  kConstant,   // No operands.
  kOpaque,     // Carried, never looked into.
};

struct Info {
  std::uint16_t wire_id = 0;  // In stores and rule packs: never reused, never renumbered.
  std::string_view name;
  int arity_min = 0;
  int arity_max = 0;
  Nature nature = Nature::kMovement;
  bool commutative = false;  // Exchanging the first two operands changes nothing.
  Onnx onnx;
};

inline constexpr int kArityMax = 64;  // Concat; everything else has at most four operands.

// Fused into an operator's output. The numbers are persisted.
enum class Activation : std::uint8_t { kNone = 0, kRelu = 1, kSigmoid = 2, kTanh = 3 };

// One attribute: its number on the wire, its name in text (ONNX's where ONNX has it), its place.
// T is std::int64_t (static: axis, group), double, Activation, Size, Short<std::int64_t> (static)
// or Short<Size>.
template <class Op, class T>
struct Field {
  constexpr Field(std::uint8_t n, std::string_view s, T Op::*m) : number(n), name(s), member(m) {}
  std::uint8_t number;
  std::string_view name;
  T Op::*member;
};

}  // namespace tenon::ops
