// The order is that of a depth-first walk from the outputs, which stays in a branch until it is
// done: few tensors are alive at a time, so there are narrow cuts. Where to cut is decided by
// dynamic programming over the order: the sum of the widths of the cuts is least.
#include "optimizer/search/narrow.h"

#include <algorithm>
#include <limits>

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

constexpr double kEachCut = 0.5;  // Of two equally narrow ways, the one with fewer cuts.
constexpr double kAvoided = 1000;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

double CutCost(double width) { return width * width + kEachCut; }

// Operators that run, operands first.
std::vector<NodeId> DepthFirst(const graph::Graph& g) {
  std::vector<NodeId> order;
  std::vector<char> seen(g.size(), 0);
  std::vector<std::pair<NodeId, std::size_t>> stack;
  const auto enter = [&](NodeId id) {
    const graph::Node& n = g.node(id);
    if (seen[std::size_t(id)] != 0 || n.is_input() || n.weights_only) return;
    seen[std::size_t(id)] = 1;
    stack.emplace_back(id, 0);
  };
  for (const NodeId output : g.outputs()) {
    enter(output);
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      if (next < g.node(id).operands.size()) {
        enter(g.node(id).operands[next++]);
        continue;
      }
      order.push_back(id);
      stack.pop_back();
    }
  }
  return order;
}

// By place in the order: how many tensors that are there by then are used later.
std::vector<double> Widths(const graph::Graph& g, const std::vector<NodeId>& order) {
  std::vector<std::size_t> place(g.size(), order.size()), last(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    place[std::size_t(order[k])] = last[k] = k;
    for (const NodeId o : g.node(order[k]).operands) {
      if (place[std::size_t(o)] < k) last[place[std::size_t(o)]] = k;
    }
  }
  std::vector<double> change(order.size() + 1, 0), widths;
  for (std::size_t k = 0; k < order.size(); ++k) {
    change[k] += 1;
    change[last[k]] -= 1;
  }
  double width = 0;
  for (std::size_t k = 0; k < order.size(); ++k) widths.push_back(width += change[k]);
  return widths;
}

}  // namespace

std::vector<std::vector<NodeId>> CutNarrowly(const graph::Graph& g, const WindowFinder& finder,
                                             std::size_t size, std::span<const NodeId> avoid) {
  const std::vector<NodeId> order = DepthFirst(g);
  const std::vector<double> widths = Widths(g, order);
  std::vector<char> eligible(g.size(), 0), avoided(g.size(), 0);
  for (const NodeId id : finder.eligible()) eligible[std::size_t(id)] = 1;
  for (const NodeId id : avoid) avoided[std::size_t(id)] = 1;

  // best[k]: the least cost of the places below k, with a cut there; from[k]: where the piece
  // begins.
  std::vector<double> best(order.size() + 1, kInfinity);
  std::vector<std::size_t> from(order.size() + 1, 0);
  best[0] = 0;
  for (std::size_t k = 1; k <= order.size(); ++k) {
    const NodeId last = order[k - 1];
    if (eligible[std::size_t(last)] == 0) {
      best[k] = best[k - 1];
      from[k] = k;
      continue;
    }
    // Where nothing else may follow, the cut costs nothing.
    const bool forced = k == order.size() || eligible[std::size_t(order[k])] == 0;
    const double cut =
        forced ? 0 : CutCost(widths[k - 1]) + (avoided[std::size_t(last)] != 0 ? kAvoided : 0);
    for (std::size_t begin = k; begin-- > 0 && k - begin <= size;) {
      if (eligible[std::size_t(order[begin])] == 0) break;
      if (best[begin] + cut < best[k]) {
        best[k] = best[begin] + cut;
        from[k] = begin;
      }
    }
  }
  std::vector<std::vector<NodeId>> pieces;
  for (std::size_t k = order.size(); k > 0;) {
    if (from[k] == k) {
      --k;
      continue;
    }
    std::vector<NodeId> piece(order.begin() + std::ptrdiff_t(from[k]),
                              order.begin() + std::ptrdiff_t(k));
    std::sort(piece.begin(), piece.end());
    k = from[k];
    pieces.push_back(std::move(piece));
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace tenon::optimizer
