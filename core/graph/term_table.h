// TermTable: concrete operator terms, hash-consed and packed: what an enumeration makes millions
// of.
//
// A term is an input or an operator applied to terms. A single-output graph *is* a term, and its
// size is the number of distinct operator terms it reaches, itself included. Graph (graph.h) says
// the same in a few hundred bytes a node; here a node takes about 30, since operators and types are
// interned and a node is two small numbers and its operands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "core/graph/type.h"
#include "core/ops/operator.h"

namespace tenon::graph {

// An index into a TermTable: inputs first, operands before what uses them.
using TermId = std::int32_t;
inline constexpr TermId kNoTerm = -1;

// Indices of interned operators and types.
using OpId = std::uint16_t;
using TypeId = std::uint16_t;
inline constexpr TypeId kNoType = 0xffff;

// Thread-compatible: const functions may run side by side. At most 2^31-1 terms, 32 inputs, 65534
// operators and types each; going over is a CHECK failure (universes are bounded on reading).
class TermTable {
 public:
  static constexpr int kInputsMax = 32;

  TermTable();

  // Inputs come before all operators. The type is concrete.
  TermId AddInput(std::string_view name, InputKind kind, const TensorType& type);
  OpId InternOperator(const ops::Operator& op);
  TypeId InternType(const TensorType& type);
  // The type of `op` on operands of these types, kNoType if they do not fit. Remembered.
  TypeId Infer(OpId op, std::span<const TypeId> operands);

  // The term op(operands), an existing one if there is an equal one. InvalidArgument names the
  // operator and the misfit.
  StatusOr<TermId> Add(const ops::Operator& op, std::span<const TermId> operands);
  // The same when the type is known (from Infer) and the size too (0: it is computed here).
  TermId AddTyped(OpId op, std::span<const TermId> operands, TypeId type, int size = 0);
  // Forgets the terms from `size` on, at least the number of inputs; operators and types stay.
  void Truncate(std::size_t size);
  // The term op(operands) if it is in the table, else kNoTerm.
  TermId Find(OpId op, std::span<const TermId> operands) const;

  std::size_t size() const { return nodes_.size(); }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  const Input& input(int number) const { return inputs_[static_cast<std::size_t>(number)]; }
  bool is_input(TermId id) const { return id < input_count(); }

  OpId op_id(TermId id) const { return at(id).op; }  // `id` is not an input.
  const ops::Operator& op(TermId id) const { return *ops_[at(id).op]; }
  const ops::Operator& operator_at(OpId op) const { return *ops_[op]; }
  std::size_t operator_count() const { return ops_.size(); }
  // Empty for an input. Valid until the next Add.
  std::span<const TermId> operands(TermId id) const;
  TypeId type_id(TermId id) const { return at(id).type; }
  const TensorType& type(TermId id) const { return *types_[at(id).type]; }
  const TensorType& type_at(TypeId type) const { return *types_[type]; }
  const Extents& extents(TermId id) const { return extents_[at(id).type]; }
  const Extents& extents_at(TypeId type) const { return extents_[type]; }
  std::size_t type_count() const { return types_.size(); }
  // How many distinct operator terms it reaches, itself included; 0 for an input.
  int term_size(TermId id) const { return at(id).size; }
  // Bit k: it depends on input k.
  std::uint32_t input_mask(TermId id) const { return at(id).mask; }

  // The operator terms that `roots` reach, themselves included, ascending; replaces `out`.
  void Closure(std::span<const TermId> roots, std::vector<TermId>& out) const;
  int SizeOf(std::span<const TermId> roots) const;

  // The graph whose outputs are `roots`. All inputs of the table are inputs of the graph, in order.
  Graph ToGraph(std::span<const TermId> roots) const;
  // The term of a node of a concrete graph; inputs[k] is the term for the graph's input k.
  // InvalidArgument when an operator does not fit.
  StatusOr<TermId> FromGraph(const Graph& g, NodeId root, std::span<const TermId> inputs);

  // "MatMul(Transpose(a, perm=[1,0]), b)": the operands, then the attributes that differ from their
  // defaults.
  std::string Print(TermId id) const;
  // The same for an operator on terms, which need not be a term.
  std::string Print(const ops::Operator& op, std::span<const TermId> operands) const;

  // Of all tables together, for memory limits.
  std::size_t memory_bytes() const;

 private:
  struct Node {
    std::uint32_t mask;
    std::uint32_t operands_at;  // In operands_.
    OpId op;
    TypeId type;
    std::uint16_t size;
    std::uint16_t arity;
  };
  const Node& at(TermId id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t Slot(OpId op, std::span<const TermId> operands) const;
  void Grow();

  std::vector<Node> nodes_;
  std::vector<TermId> operands_;
  std::vector<TermId> slots_;  // Open addressing, a power of two; kNoTerm is free.
  std::vector<Input> inputs_;
  std::vector<std::shared_ptr<const ops::Operator>> ops_;
  std::unordered_multimap<std::size_t, OpId> op_by_hash_;
  std::vector<std::shared_ptr<const TensorType>> types_;
  std::vector<Extents> extents_;
  std::unordered_map<std::string, TypeId> type_by_key_;
  std::unordered_map<std::string, TypeId> inferred_;  // By operator and operand types.
};

}  // namespace tenon::graph
