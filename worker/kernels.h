// Kernels: operators on the values of a term at several samples at once, for enumeration.
//
// A value holds kLanes samples side by side: element e of lane l is at [e * kLanes + l], as a
// residue mod 2^61 - 1 and as the double that decides its sign (core/eval/exact.h). A *plan* is an
// operator made ready for operands of fixed types: index tables instead of shapes, so that the hot
// path has neither allocation nor arithmetic on indices. Plans are second readings of the
// operators; tests/worker/kernels_test.cc compares every one with the definition (core/eval).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/eval/exact.h"
#include "core/graph/type.h"
#include "core/ops/operator.h"

namespace tenon::worker {

inline constexpr int kLanes = 4;

// Where a value lies. The memory belongs to someone else.
struct Value {
  const std::uint64_t* residue = nullptr;
  const double* approx = nullptr;
};
struct MutableValue {
  std::uint64_t* residue = nullptr;
  double* approx = nullptr;
  operator Value() const { return {residue, approx}; }  // NOLINT: a value is readable.
};

// An operator on operands of fixed extents. Immutable; thread-safe.
class Plan {
 public:
  // The operator fits the operands (the type was inferred). InvalidArgument for an opaque operator.
  static StatusOr<Plan> For(const ops::Operator& op, std::span<const graph::Extents> operands,
                            const graph::Extents& output);

  // Computes the operator on `operands`; `out` overlaps none of them. FailedPrecondition when a
  // reciprocal of 0 came up at a sample.
  Status Run(std::span<const Value> operands, MutableValue out) const;

  // Whether the result is a polynomial of the operands' elements (with functions without an exact
  // meaning as indeterminates): then samples prove equality, up to chance, whatever their signs.
  bool sign_free() const { return sign_free_; }
  // Whether there is no fast engine and the definition itself is run.
  bool generic() const { return kind_ == Kind::kGeneric; }

 private:
  enum class Kind : std::uint8_t {
    kGather,  // Output elements are operand elements or zeros.
    kAdd,     // The pointwise ones; left_ and right_ are empty when nothing is broadcast.
    kSub,
    kMul,
    kNeg,
    kRelu,
    kBilinear,  // Sums of products of an element of operand 0 and one of operand 1, then the
                // epilogue.
    kAverage,   // Sums over windows of an image, times scale_.
    kMaximum,   // Maxima of windows.
    kGeneric,
  };
  void RunGather(std::span<const Value> operands, MutableValue out) const;
  void RunBinary(Value a, Value b, MutableValue out) const;
  void RunBilinear(std::span<const Value> operands, MutableValue out) const;
  void RunAverage(Value image, MutableValue out) const;
  void RunMaximum(Value image, MutableValue out) const;
  Status RunGeneric(std::span<const Value> operands, MutableValue out) const;
  Status MakeGather(const ops::Operator& op);
  bool MakeBilinear(const ops::Operator& op);
  bool MakeWindows(const ops::Operator& op);

  Kind kind_ = Kind::kGeneric;
  bool sign_free_ = false;
  bool relu_ = false;                   // Epilogue of kBilinear: at the end, max(., 0).
  std::uint32_t elements_ = 0;          // Of the output.
  std::vector<std::uint32_t> operand_;  // kGather: which operand, kZero: none.
  std::vector<std::uint32_t> left_, right_;
  // kBilinear: the products of output e are start_[e]..[e+1]. Of windows: its elements.
  std::vector<std::uint32_t> start_;
  eval::Exact scale_;                // kAverage.
  std::vector<std::uint32_t> bias_;  // kBilinear: the element of operand bias_operand_ to add.
  int bias_operand_ = -1;
  int residual_operand_ = -1;
  ops::Operator op_;  // kGeneric.
  std::vector<graph::Extents> operand_extents_;
  graph::Extents output_extents_;
};

}  // namespace tenon::worker
