#include "optimizer/extract/reduce.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "optimizer/extract/greedy.h"
#include "optimizer/extract/must_have.h"

namespace tenon::optimizer::extract {
namespace {

// Kills the nodes of one class that another one replaces.
void KillReplaced(Instance& g, const std::vector<NodeId>& nodes,
                  const std::vector<std::vector<std::uint64_t>>& needs) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!g.alive(nodes[i])) continue;
    for (std::size_t j = 0; j < nodes.size(); ++j) {
      if (i == j || !g.alive(nodes[j]) || g.cost(nodes[i]) > g.cost(nodes[j])) continue;
      const auto& c = g.children(nodes[i]);
      if (std::all_of(c.begin(), c.end(),
                      [&](ClassId d) { return MustHave::Bit(needs[j].data(), d); })) {
        g.Kill(nodes[j]);
      }
    }
  }
}

// The cost of the cheapest path of nodes from a root down to each class, its own node left out. A
// choice that needs the class holds such a path, and none of it below the class: no cycles.
std::vector<double> PathsAbove(const Instance& g) {
  std::vector<double> above(std::size_t(g.num_classes()), std::numeric_limits<double>::infinity());
  using Entry = std::pair<double, ClassId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto reach = [&](ClassId c, double cost) {
    if (cost >= above[std::size_t(c)]) return;
    above[std::size_t(c)] = cost;
    queue.emplace(cost, c);
  };
  for (const ClassId r : g.problem().roots) reach(r, 0);
  while (!queue.empty()) {
    const auto [cost, c] = queue.top();
    queue.pop();
    if (cost > above[std::size_t(c)]) continue;
    for (const NodeId n : g.nodes(c)) {
      for (const ClassId d : g.children(n)) reach(d, cost + g.cost(n));
    }
  }
  return above;
}

// One round; false when nothing died.
bool ReduceOnce(Instance& g, double upper_bound) {
  const int before = g.num_alive();
  if (!KillUseless(g)) return false;
  const MustHave must(g);
  std::vector<double> least(std::size_t(g.num_classes()), 0);
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    double m = std::numeric_limits<double>::infinity();
    for (const NodeId n : g.nodes(c)) m = std::min(m, g.cost(n));
    if (!g.nodes(c).empty()) least[std::size_t(c)] = m;
  }
  const std::vector<double> below = PathBounds(g), above = PathsAbove(g);
  const std::vector<std::uint64_t> always = must.Union(g.problem().roots);
  const double too_dear = upper_bound * (1 + 1e-9);
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    std::vector<NodeId> nodes;
    std::vector<std::vector<std::uint64_t>> needs;
    for (const NodeId n : g.nodes(c)) {
      std::vector<std::uint64_t> need = must.Union(g.children(n));
      if (MustHave::Bit(need.data(), c)) {
        g.Kill(n);
        continue;
      }
      double bound = g.cost(n);
      std::vector<std::uint64_t> both = need;
      for (std::size_t w = 0; w < both.size(); ++w) both[w] |= always[w];
      ForEachBit(both, [&](ClassId e) {
        if (e != c && e < g.num_classes()) bound += least[std::size_t(e)];
      });
      double deepest = 0;
      for (const ClassId d : g.children(n)) deepest = std::max(deepest, below[std::size_t(d)]);
      bound = std::max(bound, above[std::size_t(c)] + g.cost(n) + deepest);
      if (bound > too_dear) {
        g.Kill(n);
        continue;
      }
      nodes.push_back(n);
      needs.push_back(std::move(need));
    }
    KillReplaced(g, nodes, needs);
  }
  g.Refresh();
  return g.num_alive() < before;
}

}  // namespace

void Reduce(Instance& g, double upper_bound) {
  while (ReduceOnce(g, upper_bound)) {
  }
  KillUseless(g);
}

}  // namespace tenon::optimizer::extract
