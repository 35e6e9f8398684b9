#include "optimizer/extract/local_search.h"

#include <limits>
#include <span>
#include <utility>

namespace tenon::optimizer::extract {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Searcher {
 public:
  Searcher(const Instance& g, Choice& choice, std::int64_t& steps, const Stop& stop)
      : g_(g),
        choice_(choice),
        steps_(steps),
        stop_(stop),
        seen_(std::size_t(g.num_classes()), 0),
        needed_mark_(std::size_t(g.num_classes()), 0) {}

  void Run() {
    best_ = Price(kInfinity);
    UpdateNeeded();
    for (bool improved = true; improved && !Enough();) {
      improved = SwitchSingly();
      improved = SwitchJointly() || improved;
    }
  }

 private:
  bool Enough() const { return steps_ <= 0 || stop_.Now(); }

  // What the choice costs; infinite when it is cyclic, incomplete, or costs `limit` and more.
  double Price(double limit) {
    ++round_;
    double sum = 0;
    for (const ClassId root : g_.problem().roots) {
      if (seen_[std::size_t(root)] >= 2 * round_) continue;
      stack_.assign(1, {root, 0});
      seen_[std::size_t(root)] = 2 * round_;
      while (!stack_.empty()) {
        auto& [c, next] = stack_.back();
        const NodeId n = choice_[std::size_t(c)];
        if (n == kNoNode) return kInfinity;
        const auto& children = g_.children(n);
        if (next < children.size()) {
          const ClassId d = children[next++];
          if (seen_[std::size_t(d)] == 2 * round_) return kInfinity;  // Open: a cycle.
          if (seen_[std::size_t(d)] < 2 * round_) {
            seen_[std::size_t(d)] = 2 * round_;
            stack_.emplace_back(d, 0);
          }
          continue;
        }
        seen_[std::size_t(c)] = 2 * round_ + 1;
        --steps_;
        sum += g_.cost(n);
        if (sum >= limit) return kInfinity;
        stack_.pop_back();
      }
    }
    return sum;
  }

  // Keeps the choice as it is if that is cheaper.
  bool Improves() {
    // Differences of rounding are no improvement, or two choices could take turns.
    const double now = Price(best_ * (1 - 1e-12));
    if (now == kInfinity) return false;
    best_ = now;
    return true;
  }

  void UpdateNeeded() {
    Price(kInfinity);
    needed_.clear();
    for (ClassId c = 0; c < g_.num_classes(); ++c) {
      needed_mark_[std::size_t(c)] = seen_[std::size_t(c)] == 2 * round_ + 1;
      if (needed_mark_[std::size_t(c)]) needed_.push_back(c);
    }
  }

  bool SwitchSingly() {
    bool improved = false;
    for (const ClassId c : needed_) {
      NodeId& chosen = choice_[std::size_t(c)];
      for (const NodeId n : g_.nodes(c)) {
        if (Enough()) break;
        const NodeId old = chosen;
        if (n == old) continue;
        chosen = n;
        if (Improves()) {
          improved = true;
        } else {
          chosen = old;
        }
      }
    }
    if (improved) UpdateNeeded();
    return improved;
  }

  bool SwitchJointly() {
    bool improved = false;
    std::vector<std::pair<ClassId, NodeId>> undo;
    for (ClassId shared = 0; shared < g_.num_classes() && !Enough(); ++shared) {
      if (g_.users(shared).size() < 2) continue;
      undo.clear();
      for (const NodeId n : g_.users(shared)) {
        const ClassId c = g_.eclass(n);
        if (!needed_mark_[std::size_t(c)] || choice_[std::size_t(c)] == n) continue;
        undo.emplace_back(c, choice_[std::size_t(c)]);
        choice_[std::size_t(c)] = n;
      }
      if (undo.size() >= 2 && Improves()) {
        improved = true;
        UpdateNeeded();
        continue;
      }
      while (!undo.empty()) {  // Backwards: a class may be in it twice.
        choice_[std::size_t(undo.back().first)] = undo.back().second;
        undo.pop_back();
      }
    }
    return improved;
  }

  const Instance& g_;
  Choice& choice_;
  std::int64_t& steps_;
  const Stop& stop_;
  double best_ = kInfinity;
  std::int64_t round_ = 0;
  std::vector<std::int64_t> seen_;  // 2 * round: open; 2 * round + 1: done.
  std::vector<std::pair<ClassId, std::size_t>> stack_;
  std::vector<char> needed_mark_;
  std::vector<ClassId> needed_;
};

}  // namespace

void LocalSearch(const Instance& g, Choice& choice, std::int64_t& steps, const Stop& stop) {
  Searcher(g, choice, steps, stop).Run();
}

}  // namespace tenon::optimizer::extract
