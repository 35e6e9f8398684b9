// The generator that TASO released (SOSP 2019; generator.cc), so that the same work can be counted:
// its tensors, its operators, its restrictions. Nothing here is a meaning that Tenon proves or
// applies; those are the operators of core/ops. What differs from them is in this folder alone:
//
// - Numbers are 32-bit integers that wrap around. Relu is x (x + 1) + 1, an average pool is the sum
//   over the window, a maximum pool starts from 0.
// - A tensor has, besides its shape, a *split tree* for each axis: where it was concatenated. Split
//   undoes the most recent concatenation and has both parts as results of one node. A matrix may be
//   stored by columns, which a transpose without shuffling changes and Add and Mul must agree on.
// - Conv takes as many groups as fit its operands. It takes no input that is a weight as its image.
// - Add, Mul and Concat take operands in the order of creation only, and none takes a tensor twice,
//   as MatMul and scalar Mul do not. MatMul's second operand has no extent 2 (its batch) in front.
// - Enlarge takes inputs only.
// - A graph has no two equal tensors: same shape, split trees, storage and values; inputs count.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/universe.h"

namespace tenon::worker::released {

// Where a tensor was concatenated along an axis, the most recent place last.
struct SplitTree {
  static constexpr std::size_t kMax = 14;
  std::uint8_t count = 0;
  std::array<std::uint8_t, kMax + 1> at{};
  friend bool operator==(const SplitTree&, const SplitTree&) = default;
};

// The type of a tensor. Rank 0, 2 or 4; unused entries are zero. A value type.
struct Type {
  std::uint8_t rank = 0;
  bool by_columns = false;  // Storage of a matrix.
  std::array<std::uint8_t, 4> extents{};
  std::array<SplitTree, 4> splits{};
  friend bool operator==(const Type&, const Type&) = default;

  std::uint32_t elements() const {
    std::uint32_t n = 1;
    for (std::size_t a = 0; a < rank; ++a) n *= extents[a];
    return n;
  }
  // Row and column strides of a matrix.
  std::uint32_t row_stride() const { return by_columns ? 1 : extents[1]; }
  std::uint32_t column_stride() const { return by_columns ? extents[0] : 1; }
};

enum class Kind : std::uint8_t {
  kMatMul,
  kAdd,
  kMul,
  kScalarMul,
  kConv,
  kAveragePool,
  kMaxPool,
  kConstant,
  kEnlarge,
  kRelu,
  kConcat,
  kSplit,
  kTranspose,  // Without shuffling: the elements stay where they are.
  kShuffle,    // With.
};

// An operator of a universe under these definitions.
struct Instance {
  Kind kind = Kind::kAdd;
  std::string name;
  std::uint8_t height = 0, width = 0;  // kConv, kEnlarge: of the kernel.
  bool relu = false;                   // kConv: kRelu's definition after it.
  std::uint8_t axis = 0;               // kConcat, kSplit: 0 or 1.
  std::vector<std::uint32_t> values;   // kConstant.
  Type type;                           // kConstant.
};

// The operators of a universe. InvalidArgument names the operator that has no such definition.
StatusOr<std::vector<Instance>> InstancesOf(const graph::Universe& universe);

using TypeId = std::uint32_t;
inline constexpr TypeId kNoType = ~TypeId{0};

// An operator that can be applied, and what it makes.
struct Step {
  std::uint16_t instance = 0;
  std::array<TypeId, 2> results{kNoType, kNoType};  // The second one of kSplit only.
};

// Types by number, and what can be applied to them; both grow as they are asked for.
// Thread-compatible.
class Types {
 public:
  Types(std::vector<Instance> instances, std::int64_t elements_max);

  TypeId Intern(const Type& type);
  const Type& at(TypeId id) const { return types_[id]; }
  std::uint64_t hash(TypeId id) const { return hashes_[id]; }
  const std::vector<Instance>& instances() const { return instances_; }

  // What can be applied to a tensor, or to two in this order, as far as the types tell. Enlarge and
  // constants are left out of the first; a Conv with Relu follows the one without. The span ends
  // with the next call.
  std::span<const Step> Unary(TypeId a);
  std::span<const Step> Binary(TypeId a, TypeId b);
  // Enlarge of an input.
  std::span<const Step> OfInput(TypeId a);
  std::span<const Step> Constants() const { return constants_; }

 private:
  struct Range {
    std::uint32_t first = 1, end = 0;  // first > end: not known yet.
  };
  bool Infer1(const Instance& instance, TypeId a, Step& out);
  bool Infer2(const Instance& instance, TypeId a, TypeId b, Step& out);
  bool Result(Type type, TypeId& out);
  template <class Infer>
  std::span<const Step> Known(Range& range, Infer&& infer);

  std::vector<Instance> instances_;
  std::uint32_t elements_max_;
  std::vector<Type> types_;
  std::vector<std::uint64_t> hashes_;
  std::vector<TypeId> by_hash_;
  std::vector<Step> steps_;
  std::vector<Range> unary_, of_input_;
  std::vector<std::vector<Range>> binary_;
  std::vector<Step> constants_;
};

}  // namespace tenon::worker::released
