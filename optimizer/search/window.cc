#include "optimizer/search/window.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

bool Contains(const std::vector<NodeId>& sorted, NodeId id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

void InsertSorted(std::vector<NodeId>& sorted, NodeId id) {
  sorted.insert(std::lower_bound(sorted.begin(), sorted.end(), id), id);
}

// Begins a graph with the inputs and symbols of another one.
graph::Graph WithInputsOf(const graph::Graph& g, std::vector<NodeId>& image) {
  graph::Graph out;
  out.symbols() = g.symbols();
  image.assign(g.size(), kNoNode);
  for (std::int32_t k = 0; k < std::int32_t(g.inputs().size()); ++k) {
    const NodeId id = g.input_node(k);
    image[std::size_t(id)] = out.AddInput(g.input(k).name, g.input(k).kind, *g.node(id).type);
  }
  return out;
}

// Copies the operator node `id` of `from`, whose operands have images.
void Copy(const graph::Graph& from, NodeId id, graph::Graph& to, std::vector<NodeId>& image) {
  std::vector<NodeId> operands;
  for (const NodeId o : from.node(id).operands) {
    operands.push_back(image[std::size_t(o)]);
    CHECK(operands.back() != kNoNode);
  }
  image[std::size_t(id)] = to.AddTrusted(from.node(id), operands);
}

}  // namespace

WindowFinder::WindowFinder(const graph::Graph& g)
    : g_(g), is_eligible_(g.size(), false), is_output_(g.size(), false), users_(g.size()) {
  for (const NodeId id : g.outputs()) is_output_[std::size_t(id)] = true;
  for (const NodeId id : g.Reachable(g.outputs())) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) continue;
    for (const NodeId o : n.operands) {
      auto& users = users_[std::size_t(o)];
      if (users.empty() || users.back() != id) users.push_back(id);
    }
    if (!IsEligible(n)) continue;
    is_eligible_[std::size_t(id)] = true;
    eligible_.push_back(id);
  }
}

bool WindowFinder::IsEligible(const graph::Node& n) const {
  if (n.weights_only || ops::IsOpaque(*n.op)) return false;
  const graph::DataType dtype = n.type->dtype;
  if (!graph::IsFloating(dtype) || !graph::IsConcrete(n.shape())) return false;
  return std::all_of(n.operands.begin(), n.operands.end(), [&](NodeId o) {
    return g_.node(o).type->dtype == dtype && graph::IsConcrete(g_.shape(o));
  });
}

std::vector<NodeId> WindowFinder::Siblings(NodeId id) const {
  std::vector<NodeId> out;
  const graph::Node& n = g_.node(id);
  for (const NodeId o : n.operands) {
    if (g_.node(o).weights_only) continue;
    for (const NodeId user : users_[std::size_t(o)]) {
      const bool same = user != id && g_.node(user).op->index() == n.op->index();
      if (same && is_eligible_[std::size_t(user)]) out.push_back(user);
    }
  }
  return out;
}

std::vector<NodeId> WindowFinder::Neighbours(NodeId id) const {
  std::vector<NodeId> out;
  for (const NodeId o : g_.node(id).operands) {
    if (is_eligible_[std::size_t(o)]) out.push_back(o);
  }
  for (const NodeId user : users_[std::size_t(id)]) {
    if (is_eligible_[std::size_t(user)]) out.push_back(user);
  }
  for (const NodeId o : g_.node(id).operands) {
    if (g_.node(o).weights_only) continue;
    for (const NodeId user : users_[std::size_t(o)]) {
      if (user != id && is_eligible_[std::size_t(user)]) out.push_back(user);
    }
  }
  return out;
}

bool WindowFinder::Close(std::vector<NodeId>& nodes, std::size_t size) const {
  const NodeId first = nodes.front(), last = nodes.back();
  const std::size_t span = std::size_t(last - first) + 1;
  std::vector<char> below(span, 0);  // Depends on a node of the set.
  for (NodeId id = first; id <= last; ++id) {
    char& mark = below[std::size_t(id - first)];
    if (Contains(nodes, id)) mark = 1;
    if (mark != 0 || g_.node(id).is_input()) continue;
    for (const NodeId o : g_.node(id).operands) {
      if (o >= first && below[std::size_t(o - first)] != 0) mark = 1;
    }
  }
  std::vector<char> above(span, 0);  // A node of the set depends on it.
  for (NodeId id = last; id >= first; --id) {
    char& mark = above[std::size_t(id - first)];
    const bool inside = Contains(nodes, id);
    if (inside) mark = 1;
    if (mark != 0 && below[std::size_t(id - first)] != 0 && !inside) {
      if (!is_eligible_[std::size_t(id)] || nodes.size() == size) return false;
      InsertSorted(nodes, id);
    }
    if (mark == 0) continue;
    for (const NodeId o : g_.node(id).operands) {
      if (o >= first) above[std::size_t(o - first)] = 1;
    }
  }
  return true;
}

std::vector<NodeId> WindowFinder::Grow(NodeId seed, std::size_t size, Growth growth) const {
  std::vector<NodeId> nodes{seed}, considered{seed};
  std::deque<NodeId> queue;
  const auto offer = [&](const std::vector<NodeId>& candidates) {
    for (const NodeId id : candidates) {
      if (Contains(considered, id)) continue;
      InsertSorted(considered, id);
      queue.push_back(id);
    }
  };
  if (growth == Growth::kSiblings) offer(Siblings(seed));
  offer(Neighbours(seed));
  while (!queue.empty() && nodes.size() < size) {
    const NodeId next = queue.front();
    queue.pop_front();
    if (Contains(nodes, next)) continue;
    std::vector<NodeId> larger = nodes;
    InsertSorted(larger, next);
    if (!Close(larger, size)) continue;
    nodes = std::move(larger);
    offer(Neighbours(next));
  }
  return nodes;
}

std::vector<NodeId> WindowFinder::Interior(const std::vector<NodeId>& nodes) const {
  std::vector<NodeId> out;
  for (const NodeId id : nodes) {
    const std::vector<NodeId> neighbours = Neighbours(id);
    if (std::all_of(neighbours.begin(), neighbours.end(),
                    [&](NodeId other) { return Contains(nodes, other); })) {
      out.push_back(id);
    }
  }
  return out;
}

Window WindowFinder::Extract(std::vector<NodeId> nodes) const {
  Window w;
  w.nodes = std::move(nodes);
  std::unordered_map<NodeId, NodeId> image;
  std::vector<NodeId> operands, outputs;
  for (const NodeId id : w.nodes) {
    const graph::Node& n = g_.node(id);
    operands.clear();
    for (const NodeId o : n.operands) {
      auto it = image.find(o);
      if (it == image.end()) {
        const graph::Node& from = g_.node(o);
        const auto kind =
            from.weights_only ? graph::InputKind::kWeight : graph::InputKind::kActivation;
        it = image.emplace(o, w.graph.AddInput("", kind, *from.type)).first;
        w.inputs.push_back(o);
      }
      operands.push_back(it->second);
    }
    image.emplace(id, w.graph.AddTrusted(n, operands));
    const auto& users = users_[std::size_t(id)];
    const bool used_outside =
        std::any_of(users.begin(), users.end(), [&](NodeId u) { return !Contains(w.nodes, u); });
    if (used_outside || is_output_[std::size_t(id)]) {
      w.outputs.push_back(id);
      outputs.push_back(image.at(id));
    }
  }
  w.graph.SetOutputs(std::move(outputs));
  return w;
}

graph::Graph Splice(const graph::Graph& host, const Window& window, const graph::Graph& replacement,
                    std::vector<NodeId>* moved) {
  CHECK(window.outputs.size() == replacement.outputs().size());
  CHECK(window.inputs.size() == replacement.inputs().size());
  std::vector<NodeId> image;
  graph::Graph out = WithInputsOf(host, image);
  // What depends on the window comes after it, everything else before.
  std::vector<char> below(host.size(), 0);
  const std::vector<NodeId> live = host.Reachable(host.outputs());
  std::vector<NodeId> after;
  std::vector<char> wanted(host.size(), 0);
  for (const NodeId id : window.inputs) wanted[std::size_t(id)] = 1;
  for (const NodeId id : live) {
    if (host.node(id).is_input()) continue;
    if (Contains(window.nodes, id)) {
      below[std::size_t(id)] = 1;
      continue;
    }
    for (const NodeId o : host.node(id).operands) below[std::size_t(id)] |= below[std::size_t(o)];
    if (below[std::size_t(id)] != 0) {
      CHECK(wanted[std::size_t(id)] == 0);  // The window is convex.
      after.push_back(id);
    } else {
      Copy(host, id, out, image);
    }
  }
  std::vector<NodeId> inner(replacement.size(), kNoNode);
  for (std::size_t k = 0; k < window.inputs.size(); ++k) {
    inner[std::size_t(replacement.input_node(std::int32_t(k)))] =
        image[std::size_t(window.inputs[k])];
  }
  for (const NodeId id : replacement.Reachable(replacement.outputs())) {
    if (!replacement.node(id).is_input()) Copy(replacement, id, out, inner);
  }
  for (std::size_t k = 0; k < window.outputs.size(); ++k) {
    image[std::size_t(window.outputs[k])] = inner[std::size_t(replacement.outputs()[k])];
  }
  for (const NodeId id : after) Copy(host, id, out, image);
  std::vector<NodeId> outputs;
  for (const NodeId id : host.outputs()) outputs.push_back(image[std::size_t(id)]);
  out.SetOutputs(std::move(outputs));
  // The replacement may need less of the window's inputs than the window did.
  std::vector<NodeId> kept;
  std::vector<NodeId> last;
  graph::Graph clean = WithInputsOf(out, kept);
  for (const NodeId id : out.Reachable(out.outputs())) {
    if (!out.node(id).is_input()) Copy(out, id, clean, kept);
  }
  for (const NodeId id : out.outputs()) last.push_back(kept[std::size_t(id)]);
  clean.SetOutputs(std::move(last));
  if (moved != nullptr) {
    moved->assign(host.size(), kNoNode);
    for (std::size_t k = 0; k < host.size(); ++k) {
      if (image[k] != kNoNode) (*moved)[k] = kept[std::size_t(image[k])];
    }
  }
  return clean;
}

graph::Graph Cleaned(const graph::Graph& g) {
  std::vector<NodeId> image;
  graph::Graph out = WithInputsOf(g, image);
  for (const NodeId id : g.Reachable(g.outputs())) {
    if (!g.node(id).is_input()) Copy(g, id, out, image);
  }
  std::vector<NodeId> outputs;
  for (const NodeId id : g.outputs()) outputs.push_back(image[std::size_t(id)]);
  out.SetOutputs(std::move(outputs));
  return out;
}

}  // namespace tenon::optimizer
