#include "optimizer/extract/instance.h"

#include <algorithm>

namespace tenon::optimizer::extract {

Instance::Instance(const Problem& problem)
    : problem_(&problem), alive_(problem.nodes.size(), 1), num_alive_(int(problem.nodes.size())) {
  children_.reserve(problem.nodes.size());
  for (const Node& n : problem.nodes) {
    std::vector<ClassId> c = n.children;
    std::sort(c.begin(), c.end());
    c.erase(std::unique(c.begin(), c.end()), c.end());
    children_.push_back(std::move(c));
  }
  Refresh();
}

void Instance::Kill(NodeId n) {
  if (!alive(n)) return;
  alive_[std::size_t(n)] = 0;
  --num_alive_;
}

void Instance::Revive(NodeId n) {
  if (alive(n)) return;
  alive_[std::size_t(n)] = 1;
  ++num_alive_;
}

void Instance::Refresh() {
  nodes_.assign(std::size_t(num_classes()), {});
  users_.assign(std::size_t(num_classes()), {});
  for (NodeId n = 0; n < num_nodes(); ++n) {
    if (!alive(n)) continue;
    nodes_[std::size_t(eclass(n))].push_back(n);
    for (const ClassId c : children(n)) users_[std::size_t(c)].push_back(n);
  }
}

std::vector<ClassId> Completable(const Instance& g) {
  std::vector<std::size_t> missing(std::size_t(g.num_nodes()));
  std::vector<char> done(std::size_t(g.num_classes()), 0);
  std::vector<ClassId> order;
  const auto finish = [&](ClassId c) {
    if (done[std::size_t(c)]) return;
    done[std::size_t(c)] = 1;
    order.push_back(c);
  };
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    missing[std::size_t(n)] = g.children(n).size();
    if (g.alive(n) && g.children(n).empty()) finish(g.eclass(n));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const NodeId n : g.users(order[i])) {
      if (--missing[std::size_t(n)] == 0) finish(g.eclass(n));
    }
  }
  return order;
}

namespace {

std::vector<char> Reachable(const Instance& g) {
  std::vector<char> seen(std::size_t(g.num_classes()), 0);
  std::vector<ClassId> stack;
  const auto visit = [&](ClassId c) {
    if (seen[std::size_t(c)]) return;
    seen[std::size_t(c)] = 1;
    stack.push_back(c);
  };
  for (const ClassId r : g.problem().roots) visit(r);
  while (!stack.empty()) {
    const ClassId c = stack.back();
    stack.pop_back();
    for (const NodeId n : g.nodes(c)) {
      for (const ClassId d : g.children(n)) visit(d);
    }
  }
  return seen;
}

}  // namespace

bool IsAcyclic(const Instance& g) {
  // Kahn's count over the edges from class to class that reachable classes have.
  const std::vector<char> seen = Reachable(g);
  std::vector<std::size_t> open(std::size_t(g.num_classes()), 0);
  std::vector<ClassId> ready;
  std::size_t reachable = 0;
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    if (!seen[std::size_t(c)]) continue;
    ++reachable;
    for (const NodeId n : g.nodes(c)) open[std::size_t(c)] += g.children(n).size();
    if (open[std::size_t(c)] == 0) ready.push_back(c);
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    for (const NodeId n : g.users(ready[i])) {
      const ClassId c = g.eclass(n);
      if (seen[std::size_t(c)] && --open[std::size_t(c)] == 0) ready.push_back(c);
    }
  }
  return ready.size() == reachable;
}

bool KillUseless(Instance& g) {
  std::vector<char> completable(std::size_t(g.num_classes()), 0);
  for (const ClassId c : Completable(g)) completable[std::size_t(c)] = 1;
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    const auto& c = g.children(n);
    const auto bad = [&](ClassId d) { return !completable[std::size_t(d)] || d == g.eclass(n); };
    if (std::any_of(c.begin(), c.end(), bad)) g.Kill(n);
  }
  g.Refresh();
  const std::vector<char> seen = Reachable(g);
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    if (!seen[std::size_t(g.eclass(n))]) g.Kill(n);
  }
  g.Refresh();
  const auto& roots = g.problem().roots;
  return std::all_of(roots.begin(), roots.end(),
                     [&](ClassId r) { return completable[std::size_t(r)] != 0; });
}

}  // namespace tenon::optimizer::extract
