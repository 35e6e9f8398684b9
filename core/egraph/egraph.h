// EGraph: many terms at once, and which of them are known to be equal.
//
// A node is an input or an operator applied to classes; a class is a set of nodes that are equal.
// Equal nodes are one (hash-consing), and when two classes are united, so are the results of equal
// operators on them (congruence; done in Rebuild, for many unions at once). All tensors are
// concrete: a class has a type, and union of different types is a broken invariant.
//
// Everything lies in flat arrays that Clear keeps, so an e-graph of a dozen nodes is set up in
// about a microsecond; copying one is copying arrays. Numbers of nodes and classes depend on the
// order of calls only, never on addresses or hashes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/egraph/vocabulary.h"

namespace tenon::egraph {

using ClassId = std::int32_t;
using NodeId = std::int32_t;
inline constexpr ClassId kNoClass = -1;

// Why two classes became one; for explanations.
struct Reason {
  static constexpr std::int32_t kCongruence = -1;
  static constexpr std::int32_t kGiven = -2;  // By the caller, not by a rule.
  std::int32_t rule = kGiven;  // The number of a rule in its set, or one of the above.
};
struct UnionRecord {
  ClassId a, b;  // As they were given, not canonical.
  Reason reason;
};

struct EGraphOptions {
  // Operands of commutative operators are kept in order, so that exchanged ones are equal by
  // themselves, and patterns match both ways. Without it, commutativity is a rule like others.
  bool commutative = false;
  // The operands that a node was made with are kept when its classes are united with others; for
  // explanations.
  bool keep_operands = false;
};

// Thread-compatible. The vocabulary must outlive it.
class EGraph {
 public:
  explicit EGraph(Vocabulary& vocabulary, EGraphOptions options = {});

  // Forgets all nodes and keeps the memory.
  void Clear();

  // The class of input `number`; its type and kind are those of the first call.
  ClassId AddInput(std::int32_t number, TypeId type, bool weights_only = false);
  // The class of op(operands), kNoClass where the operator does not fit the operands.
  ClassId Add(OpId op, std::span<const ClassId> operands);
  // The same if the node is there already, else kNoClass.
  ClassId Find(OpId op, std::span<const ClassId> operands) const;

  // Makes two classes one; false if they are already. Find(op, ..) and the nodes of classes are not
  // to be relied on before the next Rebuild. CHECKs that the types are equal.
  bool Union(ClassId a, ClassId b, Reason reason = {});
  void Rebuild();

  // The representative of a class.
  ClassId Find(ClassId c) const {
    while (parent_[std::size_t(c)] != c) {
      parent_[std::size_t(c)] = parent_[std::size_t(parent_[std::size_t(c)])];
      c = parent_[std::size_t(c)];
    }
    return c;
  }
  bool Equal(ClassId a, ClassId b) const { return Find(a) == Find(b); }

  // Distinct nodes, inputs included.
  std::size_t node_count() const { return alive_; }
  // Node numbers are below this; some nodes are dead: they became equal to others.
  std::size_t node_bound() const { return nodes_.size(); }
  std::size_t class_bound() const { return parent_.size(); }
  bool alive(NodeId n) const { return nodes_[std::size_t(n)].alive; }
  bool is_input(NodeId n) const { return nodes_[std::size_t(n)].op < 0; }
  OpId op(NodeId n) const { return nodes_[std::size_t(n)].op; }
  ClassId class_of(NodeId n) const { return Find(nodes_[std::size_t(n)].owner); }
  // Canonical after Rebuild. Valid until the next Add.
  std::span<const ClassId> operands(NodeId n) const {
    const Node& node = nodes_[std::size_t(n)];
    return {operands_.data() + node.first, node.arity};
  }
  // Those that the node which a class began with was made with; needs keep_operands. That node has
  // the class's own number.
  std::span<const ClassId> first_operands(ClassId c) const {
    const Node& node = nodes_[std::size_t(c)];
    return {first_operands_.data() + node.first, node.arity};
  }
  // Of a canonical class.
  TypeId type(ClassId c) const { return classes_[std::size_t(c)].type; }
  // Some node of the class depends on weights and constants only.
  bool weights_only(ClassId c) const { return classes_[std::size_t(c)].weights_only; }

  // Classes that gained a node or were united since the last ClearChanges; not canonical, with
  // repetitions.
  std::span<const ClassId> changes() const { return changes_; }
  void ClearChanges() {
    changes_.clear();
    first_new_ = static_cast<NodeId>(nodes_.size());
  }
  // Nodes from here on were created since then.
  NodeId first_new() const { return first_new_; }
  // Calls f(node) for the nodes that use a canonical class, dead ones and repetitions included.
  template <class F>
  void ForEachUse(ClassId c, const F& f) const {
    for (std::int32_t u = classes_[std::size_t(c)].first_use; u >= 0;
         u = uses_[std::size_t(u)].next) {
      f(uses_[std::size_t(u)].node);
    }
  }

  const std::vector<UnionRecord>& journal() const { return journal_; }
  Vocabulary& vocabulary() const { return *vocabulary_; }
  const EGraphOptions& options() const { return options_; }

 private:
  struct Node {
    OpId op;  // -1 - number for an input.
    ClassId owner;
    std::uint32_t first;  // In operands_.
    std::uint16_t arity;
    bool alive;
  };
  struct Class {
    TypeId type;
    bool weights_only;
    std::int32_t first_use, last_use;  // A list in uses_.
    std::int32_t use_count;
  };
  struct Use {
    NodeId node;
    std::int32_t next;
  };
  struct Slot {
    std::uint32_t hash;
    NodeId node;  // -1: free.
  };

  static std::uint32_t Hash(OpId op, std::span<const ClassId> operands);
  // The slot of an equal node, or the free one where it belongs.
  std::size_t SlotOf(std::uint32_t hash, OpId op, std::span<const ClassId> operands) const;
  void Canonicalize(OpId op, std::span<const ClassId> operands, std::vector<ClassId>& out) const;
  ClassId NewClass(OpId op, TypeId type, bool weights_only);
  void Place(std::size_t slot, std::uint32_t hash, NodeId node);
  void GrowSlots();
  void Repair(NodeId n);

  Vocabulary* vocabulary_;
  EGraphOptions options_;
  std::vector<Node> nodes_;
  std::vector<ClassId> operands_, first_operands_;
  mutable std::vector<ClassId> parent_;  // Union-find; paths are halved on reading.
  std::vector<Class> classes_;
  std::vector<Use> uses_;
  std::vector<Slot> slots_;
  std::size_t used_slots_ = 0;
  std::size_t alive_ = 0;
  std::vector<NodeId> broken_;  // Nodes with an operand that is no longer canonical.
  std::vector<ClassId> changes_;
  NodeId first_new_ = 0;
  std::vector<UnionRecord> journal_;
  mutable std::vector<ClassId> key_;
  std::vector<TypeId> key_types_;
};

}  // namespace tenon::egraph
