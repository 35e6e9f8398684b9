// Levels: all terms of a universe up to a size, and the walk over the terms of the next size.
//
// The walk visits every single-output graph of size k exactly once: each is its root operator
// applied to terms of the levels below whose union has k-1 operators. It is cut into *units*, one
// for each (first operand, operator), numbered without regard to who walks them, so that shards are
// sets of units. The walk evaluates nothing and allocates nothing per graph.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/graph/term_table.h"
#include "core/graph/universe.h"

namespace tenon::worker {

using graph::OpId;
using graph::TermId;
using graph::TypeId;

// How an operator is applied: which one, to which types. Dense, from 0.
using Signature = std::uint32_t;

// A graph of the next level, not (yet) a term of the table. The spans live as long as the visit.
struct Candidate {
  int operator_index = 0;  // In the universe.
  std::span<const TermId> operands;
  TypeId type = graph::kNoType;
  Signature signature = 0;
};

// Thread-compatible; walking extends memos, so it is not const.
class Levels {
 public:
  // `normal_order`: commutative operators only with operands in ascending order. The universe is
  // valid and outlives this.
  Levels(const graph::Universe& universe, bool normal_order);

  const graph::TermTable& table() const { return table_; }
  graph::TermTable& table() { return table_; }
  const graph::Universe& universe() const { return universe_; }

  // The size of the largest complete level; 0 at first (the inputs).
  int depth() const { return static_cast<int>(end_.size()) - 1; }
  // The terms of size s are [begin(s), end(s)), s <= depth().
  TermId begin(int s) const { return s == 0 ? 0 : end_[static_cast<std::size_t>(s - 1)]; }
  TermId end(int s) const { return end_[static_cast<std::size_t>(s)]; }

  // Adds a candidate to the table, while the level depth()+1 is being built.
  TermId Add(const Candidate& c);
  // Declares the level depth()+1 complete: what was added becomes operands of the next.
  void CompleteLevel();

  // The units of level depth()+1.
  std::uint64_t unit_count() const {
    return static_cast<std::uint64_t>(end(depth())) * universe_.operators.size();
  }
  // Calls visit(const Candidate&) for each graph of the unit, in a fixed order. Terms may be added
  // during the walk.
  template <class Visit>
  void Walk(std::uint64_t unit, Visit&& visit);

  // The first operand of a unit and its operator (an index in the universe).
  TermId first_operand(std::uint64_t unit) const {
    return static_cast<TermId>(unit / universe_.operators.size());
  }

  // The operator terms that `id` reaches, itself included, ascending.
  std::span<const TermId> closure(TermId id) const {
    const std::size_t k = static_cast<std::size_t>(id);
    return {closures_.data() + closure_at_[k], closure_at_[k + 1] - closure_at_[k]};
  }

  std::size_t signature_count() const { return signatures_.size(); }
  int operator_of(Signature s) const { return signatures_[s].operator_index; }
  std::span<const TypeId> operand_types(Signature s) const { return signatures_[s].operands; }
  TypeId type_of(Signature s) const { return signatures_[s].type; }
  // The signature of an operator on these operand types; the types fit.
  Signature SignatureOf(int operator_index, std::span<const TypeId> operands);

  std::size_t memory_bytes() const;

 private:
  static constexpr std::size_t kSizeMax = graph::kMaxOperatorsMax;

  struct SignatureInfo {
    int operator_index = 0;
    std::vector<TypeId> operands;
    TypeId type = graph::kNoType;
  };
  // Which types the operand at a position may have, after those before it.
  struct Row {
    std::vector<bool> allowed;          // By type.
    std::vector<TypeId> types;          // The allowed ones.
    std::vector<Signature> signatures;  // By type; for the last position.
  };
  // An operand list under construction.
  struct Partial {
    std::array<TermId, graph::kUniverseArityMax> operands;
    std::array<TypeId, graph::kUniverseArityMax> types;
    std::array<TermId, kSizeMax> reached;  // The operators reached so far, ascending.
    int arity = 0;
    int reached_count = 0;
  };

  // kNoType when the operator does not take these types or the universe does not want the result.
  TypeId Infer(int operator_index, std::span<const TypeId> operands);
  bool ShapeAllowed(int operator_index, int position, TypeId type) const;
  bool KindAllowed(int operator_index, int position, TermId id) const {
    const std::uint8_t want =
        kinds_[static_cast<std::size_t>(operator_index)][static_cast<std::size_t>(position)];
    if (want == 0) return true;
    return ((table_.input_mask(id) & activations_) == 0) == (want == 2);
  }
  bool Completable(int operator_index, Partial& p, int position);
  const Row& RowFor(int operator_index, const Partial& p, int position);
  bool Push(Partial& p, TermId id) const;

  template <class Visit>
  void Descend(int operator_index, Partial& p, int position, Visit& visit);
  template <class Each>
  void ForEachAdding(const Row& row, const Partial& p, int count, const Each& each);
  template <class Each>
  void ForEachOverlapping(const Row& row, const Partial& p, int count, const Each& each);
  static int Overlap(std::span<const TermId> closure, const Partial& p) {
    int common = 0;
    for (TermId id : closure) {
      for (int k = 0; k < p.reached_count; ++k) {
        common += p.reached[static_cast<std::size_t>(k)] == id ? 1 : 0;
      }
    }
    return common;
  }

  const graph::Universe& universe_;
  bool normal_order_;
  graph::TermTable table_;
  std::vector<OpId> op_ids_;
  std::vector<std::array<std::uint8_t, graph::kUniverseArityMax>>
      kinds_;                      // 0 any, 1 act., 2 weight
  std::uint32_t activations_ = 0;  // The mask of the inputs of that kind.
  std::vector<TermId> end_;
  std::vector<TermId> closures_;
  std::vector<std::size_t> closure_at_{0};
  std::vector<std::size_t> containing_at_;
  std::vector<TermId> containing_;  // Of each term, the larger ones that reach it, ascending.
  std::vector<std::vector<std::vector<TermId>>> by_type_;  // [size][type]
  std::size_t types_ = 0;                                  // How many types the operands have.
  std::unordered_map<std::string, Row> rows_;
  std::unordered_map<std::string, Signature> signature_by_key_;
  std::vector<SignatureInfo> signatures_;
};

template <class Visit>
void Levels::Walk(std::uint64_t unit, Visit&& visit) {
  const int o = static_cast<int>(unit % universe_.operators.size());
  const TermId first = first_operand(unit);
  Partial p;
  p.arity = universe_.operators[static_cast<std::size_t>(o)].arity;
  if (p.arity == 0) {  // A constant: once, at the first level.
    if (depth() != 0 || first != 0) return;
    const TypeId type = Infer(o, {});
    if (type != graph::kNoType) {
      visit(Candidate{o, {}, type, SignatureOf(o, {})});
    }
    return;
  }
  const Row& row = RowFor(o, p, 0);
  const TypeId type = table_.type_id(first);
  if (!row.allowed[type] || !KindAllowed(o, 0, first)) return;
  if (p.arity == 1 && table_.term_size(first) != depth()) return;
  if (!Push(p, first)) return;
  p.operands[0] = first;
  p.types[0] = type;
  if (p.arity == 1) {
    const Signature s = row.signatures[type];
    visit(Candidate{o, {p.operands.data(), 1}, type_of(s), s});
    return;
  }
  Descend(o, p, 1, visit);
}

template <class Visit>
void Levels::Descend(int o, Partial& p, int position, Visit& visit) {
  const Row& row = RowFor(o, p, position);
  const bool last = position + 1 == p.arity;
  const bool ascending =
      normal_order_ && position == 1 &&
      ops::InfoOf(universe_.operators[static_cast<std::size_t>(o)].op).commutative;
  const int room = depth() - p.reached_count;
  const std::size_t at = static_cast<std::size_t>(position);
  const auto take = [&](TermId id) {
    if (ascending && id < p.operands[0]) return;
    if (!KindAllowed(o, position, id)) return;
    p.operands[at] = id;
    p.types[at] = table_.type_id(id);
    if (last) {
      const Signature s = row.signatures[p.types[at]];
      visit(Candidate{o, {p.operands.data(), static_cast<std::size_t>(p.arity)}, type_of(s), s});
      return;
    }
    Partial next = p;
    if (Push(next, id)) Descend(o, next, position + 1, visit);
  };
  for (int count = last ? room : 0; count <= room; ++count) ForEachAdding(row, p, count, take);
}

// Each allowed term that adds exactly `count` operators to those reached.
template <class Each>
void Levels::ForEachAdding(const Row& row, const Partial& p, int count, const Each& each) {
  if (count == 0) {
    for (TermId id = 0; id < end(0); ++id) {
      if (row.allowed[table_.type_id(id)]) each(id);
    }
    // What is reached is closed, so a term lies within it only if it is one of it.
    for (int k = 0; k < p.reached_count; ++k) {
      const TermId id = p.reached[static_cast<std::size_t>(k)];
      if (row.allowed[table_.type_id(id)]) each(id);
    }
    return;
  }
  for (TypeId type : row.types) {
    for (TermId id : by_type_[static_cast<std::size_t>(count)][type]) {
      if (Overlap(closure(id), p) == 0) each(id);
    }
  }
  ForEachOverlapping(row, p, count, each);
}

// Those that share at least one operator with what is reached: each is found at the smallest
// operator that it shares.
template <class Each>
void Levels::ForEachOverlapping(const Row& row, const Partial& p, int count, const Each& each) {
  const int largest = std::min(depth(), count + p.reached_count);
  for (int k = 0; k < p.reached_count; ++k) {
    const TermId shared = p.reached[static_cast<std::size_t>(k)];
    const std::size_t slot = static_cast<std::size_t>(shared);
    const TermId* const stop = containing_.data() + containing_at_[slot + 1];
    const TermId* const start = containing_.data() + containing_at_[slot];
    const TermId* it = std::lower_bound(start, stop, begin(std::min(depth(), count + 1)));
    for (; it != stop && *it < end(largest); ++it) {
      if (!row.allowed[table_.type_id(*it)]) continue;
      const std::span<const TermId> reach = closure(*it);
      if (static_cast<int>(reach.size()) - Overlap(reach, p) != count) continue;
      bool smallest = true;
      for (int j = 0; j < k; ++j) {
        const TermId before = p.reached[static_cast<std::size_t>(j)];
        smallest = smallest && std::find(reach.begin(), reach.end(), before) == reach.end();
      }
      // A term that is itself reached adds nothing, so it cannot come up here.
      if (smallest) each(*it);
    }
  }
}

}  // namespace tenon::worker
