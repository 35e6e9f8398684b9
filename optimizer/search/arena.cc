#include "optimizer/search/arena.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/check.h"
#include "core/rules/compiled.h"
#include "core/rules/wire.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

Hash128 HashBytes(const std::string& bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

void PutHash(std::string& out, const Hash128& h) {
  for (const std::uint64_t part : {h.low, h.high}) {
    for (int k = 0; k < 64; k += 8) out.push_back(char(part >> k & 0xff));
  }
}

}  // namespace

std::size_t Arena::HashOfKey::operator()(const std::vector<std::int32_t>& key) const {
  return std::size_t(XXH3_64bits(key.data(), key.size() * sizeof(std::int32_t)));
}

Arena::Arena(graph::Graph g, const RuleSet& rules, const Device& device)
    : g_(std::move(g)), rules_(rules), device_(device) {
  Learn();
}

const Arena::OperatorFacts& Arena::FactsOf(const ops::Operator& op) {
  auto [it, added] = operators_.try_emplace(&op);
  OperatorFacts& facts = it->second;
  if (!added) return facts;
  std::string bytes;
  rules::wire::WriteOperator(bytes, op,
                             [&](const base::Poly& p) { base::PutSigned(bytes, p.constant()); });
  facts.hash = HashBytes(bytes);
  const rules::SplitOperator split = rules::SplitSizes(op);
  facts.skeleton = rules_.Skeleton(split.skeleton);
  for (const ops::Size& s : split.sizes) facts.sizes.push_back(s.constant());
  return facts;
}

Hash128 Arena::HashNode(const graph::Node& n) {
  std::string bytes;
  bytes.push_back(char(n.type->dtype));
  if (n.is_input()) {
    bytes.push_back('i');
    base::PutVarint(bytes, std::uint64_t(n.input));
    return HashBytes(bytes);
  }
  bytes.push_back('o');
  PutHash(bytes, FactsOf(*n.op).hash);
  std::vector<Hash128> operands;
  for (const NodeId o : n.operands) operands.push_back(facts_[std::size_t(o)].hash);
  if (ops::InfoOf(*n.op).commutative && operands[1] < operands[0]) {
    std::swap(operands[0], operands[1]);
  }
  for (const Hash128& h : operands) PutHash(bytes, h);
  return HashBytes(bytes);
}

void Arena::Learn() {
  while (facts_.size() < g_.size()) {
    const NodeId id = NodeId(facts_.size());
    Facts facts;
    facts.hash = HashNode(g_.node(id));
    if (!g_.node(id).is_input()) facts.op = &FactsOf(*g_.node(id).op);
    facts.canonical = by_hash_.try_emplace(facts.hash, id).first->second;
    // A copy of a node with other operands of equal content has the same hash and is not new.
    if (facts.canonical == id) facts.cost = device_.CostOf(g_, id);
    facts_.push_back(facts);
    alternatives_.emplace_back();
  }
}

NodeId Arena::Known(NodeId id) {
  Learn();
  return facts_[std::size_t(id)].canonical;
}

NodeId Arena::Clean(NodeId id) {
  const NodeId known = Known(id);
  if (known == id || facts_[std::size_t(known)].clean) {
    facts_[std::size_t(known)].clean = true;
    return known;
  }
  // The first of its kind was made of copies: this one takes its place.
  Facts& facts = facts_[std::size_t(id)];
  facts.canonical = facts_[std::size_t(known)].canonical = id;
  facts.cost = device_.CostOf(g_, id);
  facts.clean = true;
  by_hash_[facts.hash] = id;
  return id;
}

NodeId Arena::Canonical(NodeId id) {
  if (Known(id) == id && facts_[std::size_t(id)].clean) return id;
  std::vector<NodeId> path;
  Running(std::span(&id, 1), path);
  image_.resize(g_.size(), kNoNode);
  for (const NodeId p : path) {
    const graph::Node n = g_.node(p);
    std::vector<NodeId> operands;
    for (const NodeId o : n.operands) {
      const bool inner = std::binary_search(path.begin(), path.end(), o);
      operands.push_back(inner ? image_[std::size_t(o)] : Known(o));
    }
    const NodeId image = AddNormal(n, std::move(operands));
    image_[std::size_t(p)] = image;
  }
  const bool running = std::binary_search(path.begin(), path.end(), id);
  return running ? image_[std::size_t(id)] : Known(id);
}

std::uint32_t Arena::NextEpoch(std::vector<std::uint32_t>& seen) {
  seen.resize(g_.size(), 0);
  return ++epoch_;
}

void Arena::Running(std::span<const NodeId> roots, std::vector<NodeId>& out) {
  const std::uint32_t epoch = NextEpoch(seen_);
  const std::size_t first = out.size();
  stack_.assign(roots.begin(), roots.end());
  while (!stack_.empty()) {
    const NodeId id = stack_.back();
    stack_.pop_back();
    if (seen_[std::size_t(id)] == epoch) continue;
    seen_[std::size_t(id)] = epoch;
    const graph::Node& n = g_.node(id);
    if (n.is_input() || n.weights_only) continue;
    out.push_back(id);
    stack_.insert(stack_.end(), n.operands.begin(), n.operands.end());
  }
  std::sort(out.begin() + std::ptrdiff_t(first), out.end());
}

void Arena::Mark(std::span<const NodeId> nodes) {
  mark_epoch_ = NextEpoch(marks_);
  for (const NodeId id : nodes) marks_[std::size_t(id)] = mark_epoch_;
}

bool Arena::marked(NodeId id) const {
  return std::size_t(id) < marks_.size() && marks_[std::size_t(id)] == mark_epoch_;
}

void Arena::RunningUnmarked(NodeId root, std::vector<NodeId>& out) {
  const std::uint32_t epoch = NextEpoch(seen_);
  stack_.assign(1, root);
  while (!stack_.empty()) {
    const NodeId id = stack_.back();
    stack_.pop_back();
    if (seen_[std::size_t(id)] == epoch || marked(id)) continue;
    seen_[std::size_t(id)] = epoch;
    const graph::Node& n = g_.node(id);
    if (n.is_input() || n.weights_only) continue;
    out.push_back(id);
    stack_.insert(stack_.end(), n.operands.begin(), n.operands.end());
  }
}

std::vector<NodeId> Arena::Replace(std::span<const NodeId> outputs, std::span<const NodeId> running,
                                   std::span<const NodeId> roots, std::span<const NodeId> targets) {
  const std::uint32_t epoch = NextEpoch(seen_);
  image_.resize(g_.size(), kNoNode);
  const std::size_t old_size = g_.size();
  const auto set = [&](NodeId id, NodeId image) {
    seen_[std::size_t(id)] = epoch;
    image_[std::size_t(id)] = image;
  };
  const auto image_of = [&](NodeId id) {
    return seen_[std::size_t(id)] == epoch ? image_[std::size_t(id)] : id;
  };
  for (std::size_t k = 0; k < roots.size(); ++k) set(roots[k], targets[k]);
  std::vector<NodeId> operands;
  for (const NodeId id : running) {
    CHECK(std::size_t(id) < old_size);
    if (seen_[std::size_t(id)] == epoch) continue;  // A root.
    const graph::Node& n = g_.node(id);
    bool changed = false;
    operands.clear();
    for (const NodeId o : n.operands) {
      operands.push_back(image_of(o));
      changed = changed || operands.back() != o;
    }
    if (!changed) continue;
    const graph::Node copy = n;  // Adding may move it.
    set(id, AddNormal(copy, operands));
  }
  std::vector<NodeId> out;
  for (const NodeId id : outputs) out.push_back(image_of(id));
  return out;
}

}  // namespace tenon::optimizer
