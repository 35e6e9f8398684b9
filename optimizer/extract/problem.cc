#include "optimizer/extract/problem.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon::optimizer::extract {
namespace {

// Visits what the roots need, children before users, with a stack of its own: chains may be long.
// Returns false when that is not possible.
template <class Visit>
bool Walk(const Problem& problem, const Choice& choice, const Visit& visit) {
  enum class State : std::uint8_t { kNew, kOpen, kDone };
  struct Frame {
    ClassId eclass;
    std::size_t next;  // Child to be looked at.
  };
  const auto num_nodes = NodeId(problem.nodes.size());
  std::vector<State> state(std::size_t(problem.num_classes), State::kNew);
  std::vector<Frame> stack;
  for (const ClassId root : problem.roots) {
    if (state[std::size_t(root)] != State::kNew) continue;
    stack.push_back({root, 0});
    state[std::size_t(root)] = State::kOpen;
    while (!stack.empty()) {
      Frame& top = stack.back();
      const NodeId n = choice[std::size_t(top.eclass)];
      if (n < 0 || n >= num_nodes) return false;
      const Node& node = problem.nodes[std::size_t(n)];
      if (node.eclass != top.eclass) return false;
      if (top.next < node.children.size()) {
        const ClassId child = node.children[top.next++];
        State& s = state[std::size_t(child)];
        if (s == State::kOpen) return false;
        if (s == State::kNew) {
          s = State::kOpen;
          stack.push_back({child, 0});
        }
        continue;
      }
      state[std::size_t(top.eclass)] = State::kDone;
      visit(n);
      stack.pop_back();
    }
  }
  return true;
}

}  // namespace

Status Validate(const Problem& problem) {
  constexpr auto kMax = std::size_t(std::numeric_limits<NodeId>::max() / 4);
  if (problem.num_classes < 0 || std::size_t(problem.num_classes) > kMax ||
      problem.nodes.size() > kMax) {
    return base::InvalidArgument(fmt::format("e-graph: {} classes and {} nodes: out of range",
                                             problem.num_classes, problem.nodes.size()));
  }
  const auto is_class = [&](ClassId c) { return 0 <= c && c < problem.num_classes; };
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& n = problem.nodes[i];
    if (!is_class(n.eclass)) {
      return base::InvalidArgument(fmt::format("e-graph: node {}: no class {}", i, n.eclass));
    }
    if (!std::isfinite(n.cost) || n.cost < 0) {
      return base::InvalidArgument(
          fmt::format("e-graph: node {}: its cost is {}, not a number from 0", i, n.cost));
    }
    for (const ClassId c : n.children) {
      if (!is_class(c)) {
        return base::InvalidArgument(fmt::format("e-graph: node {}: child: no class {}", i, c));
      }
    }
  }
  for (const ClassId c : problem.roots) {
    if (!is_class(c)) return base::InvalidArgument(fmt::format("e-graph: root: no class {}", c));
  }
  return OkStatus();
}

std::optional<double> Cost(const Problem& problem, const Choice& choice) {
  if (choice.size() != std::size_t(problem.num_classes)) return std::nullopt;
  double sum = 0;
  if (!Walk(problem, choice, [&](NodeId n) { sum += problem.nodes[std::size_t(n)].cost; })) {
    return std::nullopt;
  }
  return sum;
}

Choice Needed(const Problem& problem, const Choice& choice) {
  Choice needed(choice.size(), kNoNode);
  Walk(problem, choice,
       [&](NodeId n) { needed[std::size_t(problem.nodes[std::size_t(n)].eclass)] = n; });
  return needed;
}

}  // namespace tenon::optimizer::extract
