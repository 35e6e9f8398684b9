// NodeTable: operator nodes, hash-consed, and the walk over all graphs that are made of them.
//
// A graph with any number of outputs is a *closed* set of nodes: with a node it has the nodes of
// its operands. Ids ascend from operands to users, so every prefix of a closed set in ascending
// order is closed, and the walk that adds nodes in ascending order visits each set exactly once,
// without a table of what was visited.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/universe.h"
#include "worker/sets/orders.h"

namespace tenon::worker {

using NodeNumber = std::uint32_t;
// Result `slot` of a node is 2 * node + slot; a node has one or two.
using ResultNumber = std::uint32_t;

inline constexpr int kSetMax = graph::kMaxOperatorsMax;

// How a node takes part in the walk, 16 bytes in the order of the walk.
struct Child {
  static constexpr std::uint8_t kShared = 1;  // A result of it equals one of another node.
  static constexpr std::uint8_t kMany = 2;    // Operands from more than two nodes.

  std::uint64_t sum = 0;  // Of the fingerprints of its results.
  NodeNumber node = 0;
  std::uint8_t masks = 0;    // The results it uses of its two operand nodes: 2 bits each.
  std::uint8_t results = 1;  // 1 or 2.
  std::uint8_t order = 0;    // 1: created after the first operand node, which is created before the
                             // second; 2: the same with the second before the first; 0: free.
  std::uint8_t flags = 0;
};

// A closed set. `position` is a place in `node`, which ascends.
struct ClosedSet {
  std::uint64_t sum = 0;  // Of the fingerprints of the unused results: the set's own fingerprint.
  Before before = 0;
  int size = 0;
  int outputs = 0;          // Unused results.
  int sinks = 0;            // Nodes without users.
  std::uint32_t users = 0;  // Bit p: position p has a user.
  std::array<NodeNumber, kSetMax> node{};
  std::array<std::uint8_t, kSetMax> used{};                // Result slots with a user.
  std::array<std::array<std::uint64_t, 2>, kSetMax> fp{};  // Of results; 0: none.

  int PositionOf(NodeNumber n) const {
    for (int p = 0; p < size; ++p) {
      if (node[static_cast<std::size_t>(p)] == n) return p;
    }
    return -1;
  }
  bool HasFingerprint(std::uint64_t f) const {
    for (int p = 0; p < size; ++p) {
      const auto& own = fp[static_cast<std::size_t>(p)];
      if (own[0] == f || own[1] == f) return true;
    }
    return false;
  }
  // Calls f(ResultNumber) for each unused result.
  template <class F>
  void ForEachOutput(F&& f) const {
    for (int p = 0; p < size; ++p) {
      const auto k = static_cast<std::size_t>(p);
      for (std::uint32_t slot = 0; slot < 2; ++slot) {
        if (fp[k][slot] != 0 && (used[k] >> slot & 1) == 0) f(2 * node[k] + slot);
      }
    }
  }
  // Takes note that something uses a result; true when it was an output until now.
  void Use(int position, int slot);
};

// A graph of the walk and the nodes that can come next: those of each list from `at` on.
struct WalkFrame {
  struct List {
    const Child* at = nullptr;
    const Child* end = nullptr;
    int first = -1, second = -1;  // The positions of the operand nodes.
  };
  static constexpr std::size_t kListsMax = 1 + kSetMax + kSetMax * (kSetMax - 1) / 2;

  ClosedSet set;
  std::array<List, kListsMax> lists;
  std::size_t list_count = 0;
};

// Thread-compatible; const functions are thread-safe.
class NodeTable {
 public:
  // `distinct`: sets with two equal results are no graphs.
  explicit NodeTable(bool distinct) : distinct_(distinct) {}

  struct NewNode {
    std::span<const std::uint64_t> fingerprints;  // Of its one or two results.
    std::span<const ResultNumber> operands;       // Inputs left out; may repeat.
    int closure_size = 1;
    bool ordered = false;  // The node of its first operand is created before that of its second.
  };
  NodeNumber Add(const NewNode& node);
  // Makes what was added part of the walk.
  void CompleteLevel();

  std::uint32_t size() const { return static_cast<std::uint32_t>(nodes_.size()); }
  int closure_size(NodeNumber n) const { return nodes_[n].closure_size; }
  int results(NodeNumber n) const { return nodes_[n].fp[1] == 0 ? 1 : 2; }
  std::uint64_t fingerprint(ResultNumber r) const { return nodes_[r / 2].fp[r % 2]; }
  std::span<const ResultNumber> operands(NodeNumber n) const {
    return {operands_.data() + nodes_[n].operands_at, nodes_[n].operand_count};
  }
  // A result with this fingerprint, or kNone.
  static constexpr ResultNumber kNone = ~ResultNumber{0};
  ResultNumber Find(std::uint64_t fingerprint) const;

  // Whether the child of a set that is listed for it makes a graph with it.
  bool Fits(const ClosedSet& set, const Child& c) const;
  // `to` becomes the set with one more node, which fits.
  void Extend(const ClosedSet& set, NodeNumber n, ClosedSet& to) const;

  // Calls visit(const WalkFrame&) -> bool for every set of at most `size` nodes, the empty one
  // first, in lexicographic order; false: not for those that go on from it.
  template <class Visit>
  void Walk(int size, Visit&& visit) const {
    WalkFrame root;
    AppendList(root, none_, -1, -1);
    Descend(root, size, visit);
  }

  std::size_t memory_bytes() const;

 private:
  struct Node {
    std::array<std::uint64_t, 2> fp{};
    std::uint32_t operands_at = 0;
    std::uint8_t operand_count = 0;
    std::uint8_t closure_size = 0;
    bool ordered = false;
    bool shared = false;
  };
  struct Slice {
    std::uint32_t first = 0, end = 0;
  };
  struct PairSlot {
    std::uint64_t key = ~std::uint64_t{0};
    Slice slice;
  };
  struct FingerprintSlot {
    std::uint64_t fingerprint = 0;
    ResultNumber result = kNone;
  };

  Child ChildOf(NodeNumber n) const;
  void Remember(ResultNumber r);
  void AppendList(WalkFrame& frame, Slice slice, int first, int second) const {
    if (slice.first == slice.end) return;
    frame.lists[frame.list_count++] = {children_.data() + slice.first, children_.data() + slice.end,
                                       first, second};
  }
  Slice PairOf(NodeNumber a, NodeNumber b) const;
  // The lists of `to`, whose set is that of `from` and the node at its last position.
  void ExtendLists(const WalkFrame& from, WalkFrame& to) const;

  template <class Visit>
  void Descend(const WalkFrame& frame, int size, Visit& visit) const {
    if (!visit(frame) || frame.set.size == size) return;
    // In ascending order, so that what is left of the lists is what may come after a node.
    WalkFrame rest = frame;
    WalkFrame next;
    while (true) {
      WalkFrame::List* least = nullptr;
      for (std::size_t k = 0; k < rest.list_count; ++k) {
        WalkFrame::List& list = rest.lists[k];
        if (list.at == list.end) continue;
        if (least == nullptr || list.at->node < least->at->node) least = &list;
      }
      if (least == nullptr) return;
      const Child& c = *least->at++;
      if (!Fits(frame.set, c)) continue;
      Extend(frame.set, c.node, next.set);
      ExtendLists(rest, next);
      Descend(next, size, visit);
    }
  }

  bool distinct_;
  std::vector<Node> nodes_;
  std::vector<ResultNumber> operands_;
  std::vector<FingerprintSlot> by_fingerprint_;
  std::size_t fingerprint_count_ = 0;
  // Of the complete levels: each node once, by the nodes of its operands.
  std::vector<Child> children_;
  Slice none_;
  std::vector<Slice> one_;  // By node.
  std::vector<PairSlot> pairs_;
  std::vector<bool> has_pairs_;  // By node.
};

}  // namespace tenon::worker
