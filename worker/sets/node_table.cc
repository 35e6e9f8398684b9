#include "worker/sets/node_table.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/fingerprint.h"

namespace tenon::worker {
namespace {

std::uint64_t PairKey(NodeNumber a, NodeNumber b) {
  return std::uint64_t{std::min(a, b)} << 32 | std::max(a, b);
}

// The nodes of the operands without repetition, descending; how many there are.
int OperandNodes(std::span<const ResultNumber> operands,
                 std::array<NodeNumber, graph::kUniverseArityMax>& out) {
  int count = 0;
  for (const ResultNumber r : operands) {
    const auto end = out.begin() + count;
    if (std::find(out.begin(), end, r / 2) == end) out[static_cast<std::size_t>(count++)] = r / 2;
  }
  std::sort(out.begin(), out.begin() + count, std::greater<>());
  return count;
}

}  // namespace

void ClosedSet::Use(int position, int slot) {
  const auto p = static_cast<std::size_t>(position);
  if ((used[p] >> slot & 1) == 0) {
    used[p] = static_cast<std::uint8_t>(used[p] | 1 << slot);
    sum -= fp[p][static_cast<std::size_t>(slot)];
    --outputs;
  }
  if ((users >> position & 1) == 0) {
    users |= 1u << position;
    --sinks;
  }
}

NodeNumber NodeTable::Add(const NewNode& node) {
  CHECK(node.fingerprints.size() == 1 || node.fingerprints.size() == 2);
  CHECK(node.operands.size() <= std::size_t(graph::kUniverseArityMax));
  const NodeNumber id = size();
  Node n;
  n.operands_at = static_cast<std::uint32_t>(operands_.size());
  n.operand_count = static_cast<std::uint8_t>(node.operands.size());
  n.closure_size = static_cast<std::uint8_t>(node.closure_size);
  n.ordered = node.ordered;
  std::copy(node.fingerprints.begin(), node.fingerprints.end(), n.fp.begin());
  operands_.insert(operands_.end(), node.operands.begin(), node.operands.end());
  nodes_.push_back(n);
  for (std::size_t slot = 0; slot < node.fingerprints.size(); ++slot) {
    Remember(2 * id + static_cast<ResultNumber>(slot));
  }
  return id;
}

void NodeTable::Remember(ResultNumber r) {
  if (2 * (fingerprint_count_ + 1) > by_fingerprint_.size()) {
    std::vector<FingerprintSlot> old(std::max<std::size_t>(1024, 2 * by_fingerprint_.size()));
    old.swap(by_fingerprint_);
    for (const FingerprintSlot& s : old) {
      if (s.result == kNone) continue;
      std::size_t at = s.fingerprint & (by_fingerprint_.size() - 1);
      while (by_fingerprint_[at].result != kNone) at = (at + 1) & (by_fingerprint_.size() - 1);
      by_fingerprint_[at] = s;
    }
  }
  const std::uint64_t f = fingerprint(r);
  std::size_t at = f & (by_fingerprint_.size() - 1);
  for (; by_fingerprint_[at].result != kNone; at = (at + 1) & (by_fingerprint_.size() - 1)) {
    if (by_fingerprint_[at].fingerprint != f) continue;
    nodes_[by_fingerprint_[at].result / 2].shared = true;
    nodes_[r / 2].shared = true;
    return;
  }
  by_fingerprint_[at] = {f, r};
  ++fingerprint_count_;
}

ResultNumber NodeTable::Find(std::uint64_t f) const {
  if (by_fingerprint_.empty()) return kNone;
  std::size_t at = f & (by_fingerprint_.size() - 1);
  for (; by_fingerprint_[at].result != kNone; at = (at + 1) & (by_fingerprint_.size() - 1)) {
    if (by_fingerprint_[at].fingerprint == f) return by_fingerprint_[at].result;
  }
  return kNone;
}

// Positions ascend as nodes do, so the first operand node of a child is the smaller one.
Child NodeTable::ChildOf(NodeNumber id) const {
  const Node& n = nodes_[id];
  Child c{.sum = n.fp[0] + n.fp[1], .node = id};
  c.results = static_cast<std::uint8_t>(results(id));
  if (n.shared && distinct_) c.flags |= Child::kShared;
  std::array<NodeNumber, graph::kUniverseArityMax> own;
  const int count = OperandNodes(operands(id), own);
  if (count > 2) c.flags |= Child::kMany;
  if (count > 2 || count == 0) return c;
  const NodeNumber first = own[static_cast<std::size_t>(count - 1)];
  for (const ResultNumber r : operands(id)) {
    const unsigned bit = 1u << r % 2;
    c.masks = static_cast<std::uint8_t>(c.masks | (r / 2 == first ? bit : bit << 2));
  }
  if (n.ordered && count == 2) c.order = operands(id)[0] / 2 == first ? 1 : 2;
  return c;
}

void NodeTable::CompleteLevel() {
  struct Keyed {
    std::uint64_t key;
    NodeNumber node;
  };
  std::vector<Keyed> two;
  std::vector<std::uint32_t> count(nodes_.size() + 2, 0);  // By node + 1; of no node at 0.
  const auto place_of = [&](NodeNumber id, std::uint64_t& key) -> std::size_t {
    std::array<NodeNumber, graph::kUniverseArityMax> own;
    const int operand_nodes = OperandNodes(operands(id), own);
    if (operand_nodes >= 2) {
      key = PairKey(own[0], own[1]);
      return ~std::size_t{0};
    }
    return operand_nodes == 0 ? 0 : std::size_t{own[0]} + 1;
  };
  has_pairs_.assign(nodes_.size(), false);
  for (NodeNumber id = 0; id < size(); ++id) {
    std::uint64_t key = 0;
    const std::size_t place = place_of(id, key);
    if (place != ~std::size_t{0}) {
      ++count[place + 1];
      continue;
    }
    two.push_back({key, id});
    has_pairs_[key >> 32] = has_pairs_[key & 0xffffffff] = true;
  }
  for (std::size_t k = 1; k < count.size(); ++k) count[k] += count[k - 1];
  children_.clear();
  children_.resize(nodes_.size());
  none_ = {0, count[1]};
  one_.resize(nodes_.size());
  for (std::size_t k = 0; k < nodes_.size(); ++k) one_[k] = {count[k + 1], count[k + 2]};
  std::uint32_t next = count.back();
  for (NodeNumber id = 0; id < size(); ++id) {
    std::uint64_t key = 0;
    const std::size_t place = place_of(id, key);
    if (place != ~std::size_t{0}) children_[count[place]++] = ChildOf(id);
  }
  std::stable_sort(two.begin(), two.end(),
                   [](const Keyed& a, const Keyed& b) { return a.key < b.key; });
  std::size_t keys = 0;
  for (std::size_t k = 0; k < two.size(); ++k) keys += k == 0 || two[k].key != two[k - 1].key;
  std::size_t slots = 16;
  while (slots < 2 * keys) slots *= 2;
  pairs_.assign(slots, {});
  for (std::size_t k = 0; k < two.size();) {
    const std::uint64_t key = two[k].key;
    Slice slice{next, next};
    for (; k < two.size() && two[k].key == key; ++k) children_[slice.end++] = ChildOf(two[k].node);
    next = slice.end;
    std::size_t at = base::Mix64(key) & (slots - 1);
    while (pairs_[at].key != ~std::uint64_t{0}) at = (at + 1) & (slots - 1);
    pairs_[at] = {key, slice};
  }
}

NodeTable::Slice NodeTable::PairOf(NodeNumber a, NodeNumber b) const {
  const std::uint64_t key = PairKey(a, b);
  std::size_t at = base::Mix64(key) & (pairs_.size() - 1);
  for (; pairs_[at].key != ~std::uint64_t{0}; at = (at + 1) & (pairs_.size() - 1)) {
    if (pairs_[at].key == key) return pairs_[at].slice;
  }
  return {};
}

bool NodeTable::Fits(const ClosedSet& set, const Child& c) const {
  if (c.flags == 0) return true;
  if ((c.flags & Child::kMany) != 0) {
    for (const ResultNumber r : operands(c.node)) {
      if (set.PositionOf(r / 2) < 0) return false;
    }
  }
  if ((c.flags & Child::kShared) != 0) {
    for (const std::uint64_t f : nodes_[c.node].fp) {
      if (f != 0 && set.HasFingerprint(f)) return false;
    }
  }
  return true;
}

void NodeTable::Extend(const ClosedSet& set, NodeNumber id, ClosedSet& to) const {
  const Node& n = nodes_[id];
  to = set;
  Before before = 0;
  int first = -1, second = -1;
  for (const ResultNumber r : operands(id)) {
    const int p = set.PositionOf(r / 2);
    to.Use(p, static_cast<int>(r % 2));
    before |= Before{1} << p;
    (first < 0 ? first : second) = p;
  }
  to.before |= before << (8 * set.size);
  if (n.ordered && second >= 0 && first != second) to.before |= Before{1} << (8 * second + first);
  const auto at = static_cast<std::size_t>(set.size);
  to.node[at] = id;
  to.used[at] = 0;
  to.fp[at] = n.fp;
  to.sum += n.fp[0] + n.fp[1];
  to.outputs += results(id);
  ++to.sinks;
  ++to.size;
}

void NodeTable::ExtendLists(const WalkFrame& from, WalkFrame& to) const {
  to.list_count = 0;
  for (std::size_t k = 0; k < from.list_count; ++k) {
    if (from.lists[k].at != from.lists[k].end) to.lists[to.list_count++] = from.lists[k];
  }
  const int last = to.set.size - 1;
  const NodeNumber n = to.set.node[static_cast<std::size_t>(last)];
  AppendList(to, one_[n], last, -1);
  if (!has_pairs_[n]) return;
  for (int p = 0; p < last; ++p) {
    const NodeNumber other = to.set.node[static_cast<std::size_t>(p)];
    if (has_pairs_[other]) AppendList(to, PairOf(other, n), p, last);
  }
}

std::size_t NodeTable::memory_bytes() const {
  return nodes_.capacity() * sizeof(Node) + operands_.capacity() * sizeof(ResultNumber) +
         by_fingerprint_.capacity() * sizeof(FingerprintSlot) +
         children_.capacity() * sizeof(Child) + one_.capacity() * sizeof(Slice) +
         pairs_.capacity() * sizeof(PairSlot);
}

}  // namespace tenon::worker
