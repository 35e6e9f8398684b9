// The class with fewer users is merged into the other one, so a node's operands are rewritten at
// most log2(n) times. Only the users of the class that vanishes are looked at: the others are
// canonical still. A slot of the hash table whose node has been rewritten is stale and is never
// found again: it keeps the old hash, and what the node says now hashes differently. Rehashing
// drops such slots.
#include "core/egraph/egraph.h"

#include <algorithm>

#include "core/base/check.h"

namespace tenon::egraph {

EGraph::EGraph(Vocabulary& vocabulary, EGraphOptions options)
    : vocabulary_(&vocabulary), options_(options), slots_(64, Slot{0, -1}) {}

void EGraph::Clear() {
  nodes_.clear();
  operands_.clear();
  first_operands_.clear();
  parent_.clear();
  classes_.clear();
  uses_.clear();
  // A table that grew once would cost as much to clear every time.
  if (slots_.size() > 1024 && used_slots_ * 16 < slots_.size()) slots_.resize(slots_.size() / 4);
  std::fill(slots_.begin(), slots_.end(), Slot{0, -1});
  used_slots_ = alive_ = 0;
  broken_.clear();
  ClearChanges();
  journal_.clear();
}

std::uint32_t EGraph::Hash(OpId op, std::span<const ClassId> operands) {
  std::uint64_t h =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(op)) + 1) * 0x9e3779b97f4a7c15ull;
  for (ClassId c : operands) {
    h = (h ^ static_cast<std::uint32_t>(c)) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return static_cast<std::uint32_t>(h ^ (h >> 29));
}

std::size_t EGraph::SlotOf(std::uint32_t hash, OpId op, std::span<const ClassId> operands) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot].node >= 0; slot = (slot + 1) & mask) {
    if (slots_[slot].hash != hash) continue;
    const Node& n = nodes_[std::size_t(slots_[slot].node)];
    if (n.op == op && std::ranges::equal(this->operands(slots_[slot].node), operands)) break;
  }
  return slot;
}

void EGraph::Canonicalize(OpId op, std::span<const ClassId> operands,
                          std::vector<ClassId>& out) const {
  out.clear();
  for (ClassId c : operands) out.push_back(Find(c));
  if (options_.commutative && out.size() >= 2 && out[0] > out[1] && vocabulary_->commutative(op)) {
    std::swap(out[0], out[1]);
  }
}

ClassId EGraph::NewClass(OpId op, TypeId type, bool weights_only) {
  const ClassId c = static_cast<ClassId>(parent_.size());
  parent_.push_back(c);
  classes_.push_back({type, weights_only, -1, -1, 0});
  nodes_.push_back({op, c, static_cast<std::uint32_t>(operands_.size()), 0, true});
  ++alive_;
  changes_.push_back(c);
  return c;
}

void EGraph::Place(std::size_t slot, std::uint32_t hash, NodeId node) {
  slots_[slot] = {hash, node};
  if (++used_slots_ * 2 > slots_.size()) GrowSlots();
}

void EGraph::GrowSlots() {
  slots_.assign(slots_.size() * 2, Slot{0, -1});
  used_slots_ = 0;
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    if (!nodes_[k].alive) continue;
    const NodeId n = static_cast<NodeId>(k);
    // Not canonical yet in a broken node; Repair will place that once more.
    const std::uint32_t hash = Hash(nodes_[k].op, operands(n));
    slots_[SlotOf(hash, nodes_[k].op, operands(n))] = {hash, n};
    ++used_slots_;
  }
}

ClassId EGraph::AddInput(std::int32_t number, TypeId type, bool weights_only) {
  const OpId op = -1 - number;
  const std::uint32_t hash = Hash(op, {});
  const std::size_t slot = SlotOf(hash, op, {});
  if (slots_[slot].node >= 0) return class_of(slots_[slot].node);
  const ClassId c = NewClass(op, type, weights_only);
  Place(slot, hash, static_cast<NodeId>(nodes_.size() - 1));
  return c;
}

ClassId EGraph::Find(OpId op, std::span<const ClassId> operands) const {
  Canonicalize(op, operands, key_);
  const NodeId n = slots_[SlotOf(Hash(op, key_), op, key_)].node;
  return n < 0 ? kNoClass : class_of(n);
}

ClassId EGraph::Add(OpId op, std::span<const ClassId> operands) {
  Canonicalize(op, operands, key_);
  const std::uint32_t hash = Hash(op, key_);
  const std::size_t slot = SlotOf(hash, op, key_);
  if (slots_[slot].node >= 0) return class_of(slots_[slot].node);
  key_types_.clear();
  bool weights_only = true;
  for (ClassId c : key_) {
    key_types_.push_back(type(c));
    weights_only = weights_only && this->weights_only(c);
  }
  const TypeId type = vocabulary_->Infer(op, key_types_);
  if (type == kNoType) return kNoClass;
  // What an opaque node depends on is not known.
  if (weights_only && ops::IsOpaque(vocabulary_->op(op))) weights_only = false;
  const ClassId c = NewClass(op, type, weights_only);
  const NodeId n = static_cast<NodeId>(nodes_.size() - 1);
  nodes_.back().arity = static_cast<std::uint16_t>(key_.size());
  operands_.insert(operands_.end(), key_.begin(), key_.end());
  if (options_.keep_operands) {
    first_operands_.insert(first_operands_.end(), key_.begin(), key_.end());
  }
  for (std::size_t k = 0; k < key_.size(); ++k) {
    if (std::find(key_.begin(), key_.begin() + std::ptrdiff_t(k), key_[k]) !=
        key_.begin() + std::ptrdiff_t(k)) {
      continue;
    }
    Class& used = classes_[std::size_t(key_[k])];
    uses_.push_back({n, used.first_use});
    used.first_use = static_cast<std::int32_t>(uses_.size() - 1);
    if (used.last_use < 0) used.last_use = used.first_use;
    ++used.use_count;
  }
  Place(slot, hash, n);
  return c;
}

bool EGraph::Union(ClassId a, ClassId b, Reason reason) {
  ClassId keep = Find(a), drop = Find(b);
  if (keep == drop) return false;
  CHECK(type(keep) == type(drop));
  journal_.push_back({a, b, reason});
  if (classes_[std::size_t(keep)].use_count < classes_[std::size_t(drop)].use_count) {
    std::swap(keep, drop);
  }
  parent_[std::size_t(drop)] = keep;
  Class& kept = classes_[std::size_t(keep)];
  Class& dropped = classes_[std::size_t(drop)];
  const auto breaks = [&](NodeId n) { broken_.push_back(n); };
  ForEachUse(drop, breaks);
  if (dropped.weights_only && !kept.weights_only) ForEachUse(keep, breaks);
  if (dropped.first_use >= 0) {
    uses_[std::size_t(dropped.last_use)].next = kept.first_use;
    if (kept.last_use < 0) kept.last_use = dropped.last_use;
    kept.first_use = dropped.first_use;
    kept.use_count += dropped.use_count;
  }
  dropped.first_use = dropped.last_use = -1;
  kept.weights_only = kept.weights_only || dropped.weights_only;
  changes_.push_back(keep);
  return true;
}

void EGraph::Repair(NodeId n) {
  Node& node = nodes_[std::size_t(n)];
  if (!node.alive) return;
  Canonicalize(node.op, operands(n), key_);
  std::copy(key_.begin(), key_.end(), operands_.begin() + node.first);
  const std::uint32_t hash = Hash(node.op, key_);
  const std::size_t slot = SlotOf(hash, node.op, key_);
  const NodeId equal = slots_[slot].node;
  if (equal < 0) {
    Place(slot, hash, n);
  } else if (equal != n) {
    node.alive = false;
    --alive_;
    Union(node.owner, nodes_[std::size_t(equal)].owner, {Reason::kCongruence});
  }
  // An operand may have become known ahead of time, and so does the result.
  const ClassId owner = Find(node.owner);
  Class& c = classes_[std::size_t(owner)];
  const auto known = [&](ClassId o) { return weights_only(Find(o)); };
  if (c.weights_only || !std::all_of(key_.begin(), key_.end(), known)) return;
  if (ops::IsOpaque(vocabulary_->op(node.op))) return;
  c.weights_only = true;
  changes_.push_back(owner);
  ForEachUse(owner, [&](NodeId user) { broken_.push_back(user); });
}

void EGraph::Rebuild() {
  // Union appends to broken_ while this runs; every union makes one class fewer, so it ends.
  for (std::size_t k = 0; k < broken_.size(); ++k) Repair(broken_[k]);
  broken_.clear();
}

}  // namespace tenon::egraph
