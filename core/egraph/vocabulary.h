// Vocabulary: the operators and types that e-graphs talk about, as small numbers.
//
// Shape inference over polynomials costs about a microsecond; an e-graph asks for the type of
// thousands of nodes a second, mostly the same few questions. The vocabulary answers each once. It
// outlives the e-graphs, so that one that holds just two small terms costs next to nothing to set
// up.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/graph/type.h"
#include "core/ops/operator.h"

namespace tenon::egraph {

using OpId = std::int32_t;
using TypeId = std::int32_t;
inline constexpr TypeId kNoType = -1;

// Numbers are handed out in the order of asking, so equal runs give equal numbers. Only grows.
// Thread-compatible.
class Vocabulary {
 public:
  // `dtype` is the element type of operators without operands; others ignore it. CHECKs that all
  // sizes are constant.
  OpId InternOperator(const ops::Operator& op, graph::DataType dtype = graph::DataType::kFloat);
  const ops::Operator& op(OpId id) const { return *ops_[std::size_t(id)].op; }
  bool commutative(OpId id) const { return ops_[std::size_t(id)].commutative; }
  std::size_t op_count() const { return ops_.size(); }

  // The operator without its sizes (rules::SplitSizes), as a number; and those sizes.
  std::int32_t InternSkeleton(const ops::Operator& skeleton);
  std::int32_t skeleton(OpId id) const { return ops_[std::size_t(id)].skeleton; }
  std::span<const std::int64_t> sizes(OpId id) const { return ops_[std::size_t(id)].sizes; }
  // The operators with that skeleton, ascending.
  std::span<const OpId> with_skeleton(std::int32_t skeleton) const {
    return by_skeleton_[std::size_t(skeleton)];
  }

  TypeId InternType(graph::DataType dtype, const graph::Extents& extents);
  graph::DataType dtype(TypeId id) const { return types_[std::size_t(id)].dtype; }
  const graph::Extents& extents(TypeId id) const { return types_[std::size_t(id)].extents; }

  // The type of op(operands), kNoType where the operator does not fit.
  TypeId Infer(OpId op, std::span<const TypeId> operands);

 private:
  struct Op {
    std::shared_ptr<const ops::Operator> op;
    graph::DataType dtype;
    bool commutative;
    std::int32_t skeleton;
    std::vector<std::int64_t> sizes;
  };
  struct Type {
    graph::DataType dtype;
    graph::Extents extents;
  };
  struct Inferred {
    std::uint32_t at;  // In keys_: the operator and the operand types.
    std::uint32_t length = 0;
    TypeId type = kNoType;
  };
  TypeId InferAnew(OpId op, std::span<const TypeId> operands);
  void GrowInferred();

  std::vector<Op> ops_;
  std::vector<Type> types_;
  std::vector<std::vector<OpId>> by_skeleton_;
  std::vector<ops::Operator> skeletons_;
  std::unordered_multimap<std::size_t, OpId> op_by_hash_;
  std::unordered_multimap<std::size_t, std::int32_t> skeleton_by_hash_;
  std::unordered_multimap<std::size_t, TypeId> type_by_hash_;
  std::vector<std::int32_t> keys_;
  std::vector<Inferred> inferred_;  // Open addressing; length 0 is free. A power of two.
  std::size_t inferred_count_ = 0;
};

}  // namespace tenon::egraph
