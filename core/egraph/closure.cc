#include "core/egraph/closure.h"

#include <algorithm>
#include <utility>

#include "core/base/check.h"

namespace tenon::egraph {

void Closure::Grow() {
  for (auto id = static_cast<TermNode>(class_.size()); id < TermNode(terms_.size()); ++id) {
    class_.push_back(id);
    members_.push_back({id});
    uses_.emplace_back();
    forest_.emplace_back();
    const graph::Node& n = terms_.node(id);
    ops_.push_back(n.is_input() ? -1 : vocabulary_.InternOperator(*n.op, n.type->dtype));
    for (TermNode o : n.operands) uses_[std::size_t(Find(o))].push_back(id);
    if (!n.is_input()) Sign(id);
  }
  Close();
}

void Closure::Unite(TermNode a, TermNode b, std::int32_t application) {
  pending_.push_back({a, b, application});
  Close();
}

std::vector<TermNode> Closure::Path(TermNode a, TermNode b) const {
  std::vector<TermNode> up = ToRoot(a), down = ToRoot(b);
  while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2]) {
    up.pop_back();
    down.pop_back();
  }
  CHECK(up.back() == down.back());
  for (std::size_t k = down.size() - 1; k-- > 0;) up.push_back(down[k]);
  return up;
}

std::int32_t Closure::Between(TermNode a, TermNode b) const {
  const Edge& edge = forest_[std::size_t(a)];
  return edge.to == b ? edge.application : forest_[std::size_t(b)].application;
}

std::vector<TermNode> Closure::ToRoot(TermNode id) const {
  std::vector<TermNode> out{id};
  while (forest_[std::size_t(id)].to != graph::kNoNode) {
    out.push_back(id = forest_[std::size_t(id)].to);
  }
  return out;
}

// Looks for a node with equal operands.
void Closure::Sign(TermNode id) {
  const OpId op = ops_[std::size_t(id)];
  std::vector<std::int32_t> key{op};
  for (TermNode o : terms_.node(id).operands) key.push_back(Find(o));
  const auto first = key;
  if (commutative_ && key.size() >= 3 && key[1] > key[2] && vocabulary_.commutative(op)) {
    std::swap(key[1], key[2]);
  }
  const auto [it, fresh] = signed_.try_emplace(std::move(key), id);
  if (fresh || it->second == id) return;
  const std::vector<TermNode>& others = terms_.node(it->second).operands;
  bool straight = true;
  for (std::size_t k = 0; k < others.size(); ++k) straight &= Find(others[k]) == first[k + 1];
  pending_.push_back({id, it->second, straight ? kCongruence : kExchanged});
}

void Closure::Close() {
  // Each union makes one class fewer, so this ends.
  for (std::size_t k = 0; k < pending_.size(); ++k) {
    const Union u = pending_[k];  // A copy: Sign appends.
    TermNode keep = Find(u.a), drop = Find(u.b);
    if (keep == drop) continue;
    Link(u.a, u.b, u.application);
    if (members_[std::size_t(keep)].size() < members_[std::size_t(drop)].size()) {
      std::swap(keep, drop);
    }
    std::vector<TermNode>& kept = members_[std::size_t(keep)];
    for (TermNode m : members_[std::size_t(drop)]) {
      class_[std::size_t(m)] = keep;
      kept.push_back(m);
    }
    members_[std::size_t(drop)].clear();
    const std::vector<TermNode> users = std::move(uses_[std::size_t(drop)]);
    for (TermNode user : users) {
      uses_[std::size_t(keep)].push_back(user);
      Sign(user);
    }
  }
  pending_.clear();
}

// A new edge from `a`, which becomes the root of its tree before.
void Closure::Link(TermNode a, TermNode b, std::int32_t application) {
  Edge edge{b, application};
  for (TermNode id = a; id != graph::kNoNode;) {
    std::swap(forest_[std::size_t(id)], edge);
    const TermNode next = edge.to;
    edge.to = id;
    id = next;
  }
}

}  // namespace tenon::egraph
