#include "optimizer/extract/separate.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace tenon::optimizer::extract {
namespace {

constexpr double kEpsilon = 1e-6;

// Mixes the bits of a number (the finaliser of SplitMix64): a repeatable shuffle.
std::uint64_t Mix(std::uint64_t v) {
  v += 0x9e3779b97f4a7c15;
  v = (v ^ (v >> 30)) * 0xbf58476d1ce4e5b9;
  v = (v ^ (v >> 27)) * 0x94d049bb133111eb;
  return v ^ (v >> 31);
}

}  // namespace

std::vector<Cut> BrokenMustHaves(const Instance& g, const MustHave& must, const Program& program,
                                 std::size_t limit) {
  constexpr std::size_t kPerClass = 4;
  std::vector<std::tuple<double, ClassId, ClassId>> broken;
  std::vector<double> sum(std::size_t(g.num_classes()), 0);
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    if (program.needed(c) < kEpsilon) continue;
    std::vector<ClassId> touched;
    for (const NodeId n : g.nodes(c)) {
      const double x = program.taken(n);
      if (x < kEpsilon) continue;
      ForEachBit(must.Union(g.children(n)), [&](ClassId e) {
        if (e >= g.num_classes()) return;
        if (sum[std::size_t(e)] == 0) touched.push_back(e);
        sum[std::size_t(e)] += x;
      });
    }
    std::vector<std::tuple<double, ClassId, ClassId>> here;
    for (const ClassId e : touched) {
      const double excess = sum[std::size_t(e)] - program.needed(e);
      if (excess > 1e-4) here.emplace_back(-excess, c, e);
      sum[std::size_t(e)] = 0;
    }
    std::sort(here.begin(), here.end());
    if (here.size() > kPerClass) here.resize(kPerClass);
    broken.insert(broken.end(), here.begin(), here.end());
  }
  std::sort(broken.begin(), broken.end());
  if (broken.size() > limit) broken.resize(limit);
  std::vector<Cut> cuts;
  for (const auto& [excess, c, e] : broken) {
    Cut cut{.nodes = {}, .eclass = e, .sense = Cut::Sense::kAtMost};
    for (const NodeId n : g.nodes(c)) {
      if (must.NodeNeeds(g, n, e)) cut.nodes.push_back(n);
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

std::vector<Cut> BrokenLandmarks(const Instance& g, LandmarkFinder& finder, const Program& program,
                                 std::size_t classes, std::int64_t steps, std::uint64_t round) {
  std::vector<std::pair<std::uint64_t, ClassId>> others;
  for (ClassId c = 0; c < g.num_classes(); ++c) {
    if (program.needed(c) > 0.1) others.emplace_back(Mix(round << 32 ^ std::uint64_t(c)), c);
  }
  std::sort(others.begin(), others.end());
  std::vector<ClassId> targets = g.problem().roots;
  for (const auto& [key, c] : others) {
    if (targets.size() >= classes + g.problem().roots.size()) break;
    targets.push_back(c);
  }
  std::vector<std::pair<double, NodeId>> keyed;
  std::vector<NodeId> order;
  std::set<std::pair<ClassId, std::vector<NodeId>>> seen;
  std::vector<Cut> cuts;
  const std::int64_t end = finder.steps() + steps;
  for (const ClassId target : targets) {
    if (finder.steps() >= end) break;
    keyed.clear();
    for (NodeId n = 0; n < g.num_nodes(); ++n) {
      if (!g.alive(n)) continue;
      const std::uint64_t salt = Mix(round << 48 ^ std::uint64_t(target) << 24 ^ std::uint64_t(n));
      keyed.emplace_back(-program.taken(n) - 1e-4 * double(salt >> 11) * 0x1p-53, n);
    }
    std::sort(keyed.begin(), keyed.end());
    order.clear();
    for (const auto& [key, n] : keyed) order.push_back(n);
    std::vector<NodeId> nodes = finder.Find(target, order);
    double sum = 0;
    for (const NodeId n : nodes) sum += program.taken(n);
    if (nodes.empty() || sum > program.needed(target) - 0.02) continue;
    if (!seen.emplace(target, nodes).second) continue;
    cuts.push_back({std::move(nodes), target, Cut::Sense::kAtLeast});
  }
  return cuts;
}

std::vector<Cut> CycleLandmarks(const Instance& g, LandmarkFinder& finder,
                                const std::vector<NodeId>& taken) {
  constexpr std::size_t kClasses = 200;
  std::vector<char> is_taken(std::size_t(g.num_nodes()), 0);
  for (const NodeId n : taken) is_taken[std::size_t(n)] = 1;
  // What the taken nodes compute without a cycle; the others are on a cycle or above one.
  Instance only = g;
  for (NodeId n = 0; n < g.num_nodes(); ++n) {
    if (!is_taken[std::size_t(n)]) only.Kill(n);
  }
  only.Refresh();
  std::vector<char> computed(std::size_t(g.num_classes()), 0);
  for (const ClassId c : Completable(only)) computed[std::size_t(c)] = 1;
  std::vector<std::pair<std::uint64_t, ClassId>> targets;
  for (const NodeId n : taken) {
    const ClassId c = g.eclass(n);
    if (!computed[std::size_t(c)]) targets.emplace_back(Mix(std::uint64_t(c)), c);
  }
  std::sort(targets.begin(), targets.end());
  if (targets.size() > kClasses) targets.resize(kClasses);
  std::vector<std::tuple<int, std::uint64_t, NodeId>> keyed;
  std::vector<NodeId> order;
  std::vector<Cut> cuts;
  for (const auto& [key, target] : targets) {
    keyed.clear();
    for (NodeId n = 0; n < g.num_nodes(); ++n) {
      if (!g.alive(n)) continue;
      keyed.emplace_back(!is_taken[std::size_t(n)], Mix(key ^ std::uint64_t(n)), n);
    }
    std::sort(keyed.begin(), keyed.end());
    order.clear();
    for (const auto& k : keyed) order.push_back(std::get<2>(k));
    cuts.push_back({finder.Find(target, order), target, Cut::Sense::kAtLeast});
  }
  return cuts;
}

}  // namespace tenon::optimizer::extract
