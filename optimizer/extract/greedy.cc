// Why settling in order of cost closes no cycle: a node becomes a candidate when its last child is
// settled, so a settled class stands only on classes settled before.
#include "optimizer/extract/greedy.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <queue>
#include <tuple>

namespace tenon::optimizer::extract {
namespace {

// price(n): what the class of node n costs with n, asked once, when all children are settled.
// settle(n): n is chosen for its class.
template <class Price, class Settle>
void SettleAll(const Instance& g, const Price& price, const Settle& settle) {
  using Entry = std::tuple<double, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<std::size_t> missing(std::size_t(g.num_nodes()));
  std::vector<char> settled(std::size_t(g.num_classes()), 0);
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    missing[std::size_t(n)] = g.children(n).size();
    if (g.alive(n) && g.children(n).empty()) queue.emplace(price(n), n);
  }
  while (!queue.empty()) {
    const NodeId n = std::get<1>(queue.top());
    queue.pop();
    const ClassId c = g.eclass(n);
    if (settled[std::size_t(c)]) continue;
    settled[std::size_t(c)] = 1;
    settle(n);
    for (const NodeId user : g.users(c)) {
      if (--missing[std::size_t(user)] > 0 || settled[std::size_t(g.eclass(user))]) continue;
      queue.emplace(price(user), user);
    }
  }
}

}  // namespace

Choice GreedyTree(const Instance& g, std::span<const double> costs) {
  Choice choice(std::size_t(g.num_classes()), kNoNode);
  std::vector<double> total(std::size_t(g.num_classes()), 0);
  const auto price = [&](NodeId n) {
    double sum = costs[std::size_t(n)];
    for (const ClassId d : g.children(n)) sum += total[std::size_t(d)];
    return std::min(sum, std::numeric_limits<double>::max());
  };
  SettleAll(g, price, [&](NodeId n) {
    total[std::size_t(g.eclass(n))] = price(n);
    choice[std::size_t(g.eclass(n))] = n;
  });
  return choice;
}

Choice GreedyDag(const Instance& g, std::span<const double> costs) {
  const std::size_t words = (std::size_t(g.num_classes()) + 63) / 64;
  std::vector<std::uint64_t> below(std::size_t(g.num_classes()) * words, 0), any(words);
  Choice choice(std::size_t(g.num_classes()), kNoNode);
  std::vector<double> own(std::size_t(g.num_classes()), 0);
  const auto price = [&](NodeId n) {  // Leaves the set below the node in `any`.
    std::fill(any.begin(), any.end(), 0);
    for (const ClassId d : g.children(n)) {
      const std::size_t row = std::size_t(d) * words;
      for (std::size_t w = 0; w < words; ++w) any[w] |= below[row + w];
    }
    double sum = costs[std::size_t(n)];
    for (std::size_t w = 0; w < words; ++w) {
      for (std::uint64_t z = any[w]; z != 0; z &= z - 1) {
        sum += own[w * 64 + std::size_t(__builtin_ctzll(z))];
      }
    }
    return sum;
  };
  SettleAll(g, price, [&](NodeId n) {
    const auto c = std::size_t(g.eclass(n));
    price(n);
    any[c / 64] |= std::uint64_t{1} << (c % 64);
    std::copy(any.begin(), any.end(), below.begin() + std::ptrdiff_t(c * words));
    own[c] = costs[std::size_t(n)];
    choice[c] = n;
  });
  return choice;
}

std::vector<double> PathBounds(const Instance& g) {
  std::vector<double> bound(std::size_t(g.num_classes()), std::numeric_limits<double>::infinity());
  const auto price = [&](NodeId n) {
    double dearest = 0;
    for (const ClassId d : g.children(n)) dearest = std::max(dearest, bound[std::size_t(d)]);
    return g.cost(n) + dearest;
  };
  SettleAll(g, price, [&](NodeId n) { bound[std::size_t(g.eclass(n))] = price(n); });
  return bound;
}

double PathBound(const Instance& g) {
  const std::vector<double> bounds = PathBounds(g);
  double dearest = 0;
  for (const ClassId r : g.problem().roots) dearest = std::max(dearest, bounds[std::size_t(r)]);
  return dearest;
}

}  // namespace tenon::optimizer::extract
