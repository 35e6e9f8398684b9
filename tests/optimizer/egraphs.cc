#include "tests/optimizer/egraphs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/check.h"

namespace tenon::optimizer::extract {
namespace {

// Numbers that are the same everywhere, which the distributions of the standard library are not.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t Next() {  // SplitMix64.
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  int Between(int low, int high) {  // Both included.
    return low + int(Next() % std::uint64_t(high - low + 1));
  }
  double Unit() { return double(Next() >> 11) * 0x1p-53; }
  bool Chance(double p) { return Unit() < p; }
  // Lognormal with median 1, by Box and Muller.
  double LogNormal(double sigma) {
    const double u = 1 - Unit(), v = Unit();
    return std::exp(sigma * std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979 * v));
  }

 private:
  std::uint64_t state_;
};

// Each choice for the classes that it needs.
class Try {
 public:
  explicit Try(const Problem& problem)
      : problem_(problem),
        nodes_(std::size_t(problem.num_classes)),
        choice_(std::size_t(problem.num_classes), kNoNode) {
    for (std::size_t n = 0; n < problem.nodes.size(); ++n) {
      nodes_[std::size_t(problem.nodes[n].eclass)].push_back(NodeId(n));
    }
  }

  std::optional<double> Best() {
    From(problem_.roots);
    return best_;
  }

 private:
  // `open`: classes that are needed; some have a node.
  void From(std::vector<ClassId> open) {
    while (!open.empty() && choice_[std::size_t(open.back())] != kNoNode) open.pop_back();
    if (open.empty()) {
      const std::optional<double> cost = Cost(problem_, choice_);
      if (cost && (!best_ || *cost < *best_)) best_ = cost;
      return;
    }
    const auto c = std::size_t(open.back());
    for (const NodeId n : nodes_[c]) {
      choice_[c] = n;
      const std::vector<ClassId>& children = problem_.nodes[std::size_t(n)].children;
      std::vector<ClassId> next = open;
      next.insert(next.end(), children.begin(), children.end());
      From(std::move(next));
    }
    choice_[c] = kNoNode;
  }

  const Problem& problem_;
  std::vector<std::vector<NodeId>> nodes_;  // By class.
  Choice choice_;
  std::optional<double> best_;
};

}  // namespace

Problem RandomProblem(std::uint64_t seed, int classes) {
  Random random(seed);
  Problem p;
  p.num_classes = random.Between(1, classes);
  for (ClassId c = 0; c < p.num_classes; ++c) {
    const int count = random.Chance(0.05) ? 0 : random.Between(1, 3);
    for (int k = 0; k < count; ++k) {
      Node n{.eclass = c,
             .cost = random.Chance(0.2) ? 0 : double(random.Between(1, 9)) / 4,
             .children = {}};
      const int arity = random.Between(0, c + 1 == p.num_classes ? 0 : 3);
      for (int j = 0; j < arity; ++j) {
        // Mostly forwards, which can be computed; sometimes anywhere.
        const bool anywhere = random.Chance(0.3);
        n.children.push_back(random.Between(anywhere ? 0 : c + 1, p.num_classes - 1));
      }
      p.nodes.push_back(std::move(n));
    }
  }
  const int roots = random.Between(1, 2);
  for (int k = 0; k < roots; ++k) p.roots.push_back(random.Between(0, p.num_classes / 3));
  return p;
}

std::optional<double> BruteForce(const Problem& problem) { return Try(problem).Best(); }

double ChoiceCount(const Problem& problem) {
  std::vector<double> nodes(std::size_t(problem.num_classes), 0);
  for (const Node& n : problem.nodes) ++nodes[std::size_t(n.eclass)];
  double count = 1;
  for (const double n : nodes) count *= std::max(1.0, n);
  return count;
}

Problem MakeSynthetic(const Synthetic& s) {
  CHECK(s.classes >= 400 && s.variants + s.merged <= 0.8);
  Random random(s.seed);
  const int variants = int(s.classes * s.variants), merged = int(s.classes * s.merged);
  const int base = s.classes - variants - merged;
  constexpr int kLeaves = 30, kStride = 4;  // Each fourth class is a weight.
  const auto is_leaf = [&](int c) { return c >= base - kLeaves || c % kStride == kStride - 1; };
  Problem p{.num_classes = s.classes, .nodes = {}, .roots = {0}};
  std::vector<double> price(std::size_t(s.classes), 0);
  std::vector<std::vector<ClassId>> operands(static_cast<std::size_t>(base));
  const auto add = [&](int c, double cost, std::vector<ClassId> children) {
    p.nodes.push_back({c, cost, std::move(children)});
  };
  for (int c = 0; c < base; ++c) {
    if (is_leaf(c)) {
      add(c, 0, {});
      continue;
    }
    const int next = c + ((c + 1) % kStride == kStride - 1 ? 2 : 1);
    std::vector<ClassId> in = {std::min(next, base - 1),
                               std::min(c - c % kStride + kStride - 1, base - 1)};
    if (random.Chance(0.35)) {  // A branch that joins later.
      int far = c + random.Between(2, 14);
      if (far % kStride == kStride - 1) ++far;
      in.push_back(std::min(far, base - 1));
    }
    price[std::size_t(c)] = random.LogNormal(0.8);
    operands[std::size_t(c)] = in;
    add(c, price[std::size_t(c)], std::move(in));
  }
  std::vector<std::vector<ClassId>> variants_of(std::size_t(s.classes));
  for (int v = base; v < base + variants; ++v) {
    int of = 0;
    do of = random.Between(0, base - kLeaves - 1);
    while (is_leaf(of));
    const double cost = price[std::size_t(of)];
    add(v, 0.15 * cost * random.Unit(), {of});
    add(of, 0.15 * cost * random.Unit(), {v});
    add(v, cost * (0.5 + 0.8 * random.Unit()), operands[std::size_t(of)]);
    variants_of[std::size_t(of)].push_back(v);
    price[std::size_t(v)] = cost;
  }
  for (int m = base + variants; m < s.classes; ++m) {
    int a = 0, b = 0;
    do {
      a = random.Between(0, base - 80);
      b = std::min(base - 41, a + random.Between(1, 40));
    } while (a == b || is_leaf(a) || is_leaf(b));
    std::vector<ClassId> in = operands[std::size_t(a)];
    in.insert(in.end(), operands[std::size_t(b)].begin(), operands[std::size_t(b)].end());
    const double both = price[std::size_t(a)] + price[std::size_t(b)];
    price[std::size_t(m)] = both * (0.5 + 0.45 * random.Unit());
    add(m, price[std::size_t(m)], std::move(in));
    add(a, 0.01 * price[std::size_t(a)], {m});
    add(b, 0.01 * price[std::size_t(b)], {m});
  }
  while (int(p.nodes.size()) < s.nodes) {
    const Node n = p.nodes[std::size_t(random.Between(0, int(p.nodes.size()) - 1))];
    if (n.children.empty()) continue;
    bool changed = false;
    std::vector<ClassId> in;
    for (const ClassId d : n.children) {
      const auto& forms = variants_of[std::size_t(d)];
      const bool take = !forms.empty() && random.Chance(0.6);
      in.push_back(take ? forms[std::size_t(random.Between(0, int(forms.size()) - 1))] : d);
      changed = changed || take;
    }
    if (!changed && random.Chance(0.8)) continue;
    const double factor = changed ? 0.55 + 0.7 * random.Unit() : 0.9 + 0.3 * random.Unit();
    add(n.eclass, n.cost * factor, std::move(in));
  }
  return p;
}

// Kosaraju's two passes, with stacks of their own.
Cycles CountCycles(const Problem& problem) {
  const auto classes = std::size_t(problem.num_classes);
  std::vector<std::vector<ClassId>> down(classes), up(classes);
  std::vector<char> loop(classes, 0);
  for (const Node& n : problem.nodes) {
    for (const ClassId d : n.children) {
      down[std::size_t(n.eclass)].push_back(d);
      up[std::size_t(d)].push_back(n.eclass);
      if (d == n.eclass) loop[std::size_t(d)] = 1;
    }
  }
  std::vector<ClassId> order;
  std::vector<char> seen(classes, 0);
  std::vector<std::pair<ClassId, std::size_t>> stack;
  for (ClassId c = 0; c < problem.num_classes; ++c) {
    if (seen[std::size_t(c)]) continue;
    seen[std::size_t(c)] = 1;
    stack.assign(1, {c, 0});
    while (!stack.empty()) {
      auto& [v, next] = stack.back();
      if (next == down[std::size_t(v)].size()) {
        order.push_back(v);
        stack.pop_back();
        continue;
      }
      const ClassId d = down[std::size_t(v)][next++];
      if (seen[std::size_t(d)]) continue;
      seen[std::size_t(d)] = 1;
      stack.emplace_back(d, 0);
    }
  }
  Cycles cycles;
  std::fill(seen.begin(), seen.end(), 0);
  for (std::size_t i = order.size(); i-- > 0;) {
    if (seen[std::size_t(order[i])]) continue;
    std::vector<ClassId> component = {order[i]};
    seen[std::size_t(order[i])] = 1;
    for (std::size_t k = 0; k < component.size(); ++k) {
      for (const ClassId u : up[std::size_t(component[k])]) {
        if (seen[std::size_t(u)]) continue;
        seen[std::size_t(u)] = 1;
        component.push_back(u);
      }
    }
    const bool cyclic = component.size() > 1 || loop[std::size_t(order[i])];
    if (!cyclic) continue;
    cycles.classes += int(component.size());
    cycles.largest = std::max(cycles.largest, int(component.size()));
  }
  return cycles;
}

}  // namespace tenon::optimizer::extract
