// Why windows: rewrites far from each other are independent, so a search over whole graphs meets
// every combination of them, and n places with two forms each are 2^n graphs. A window sees n of
// them at most a few at a time. Growing the windows in rounds makes the search anytime: the first
// round finds what is found without looking far, and later ones start from its result.
//
// The result of a window depends on its extracted graph and the limits of the round only, never on
// the time or on what was searched before, so remembering it changes nothing but the time.
//
// It ends because a window is replaced only by a cheaper one (or an equally cheap one with fewer
// operators), and otherwise at least its seed is done for this pass.
#include "optimizer/search/optimize.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

#include "core/rules/canonical.h"
#include "optimizer/search/backtrack.h"
#include "optimizer/search/window.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

struct Round {
  std::size_t size;
  Growth growth;
  std::int64_t steps;   // For each window.
  std::int64_t graphs;  // Likewise.
};

// Models with at most so many operators that rules may match are also searched as a whole.
constexpr std::size_t kWholeGraph = 32;
constexpr int kPassesMax = 6;
constexpr Round kRounds[] = {
    {4, Growth::kSiblings, 300, 10'000},
    {8, Growth::kNeighbours, 200, 10'000},
    {16, Growth::kNeighbours, 500, 40'000},
    {24, Growth::kNeighbours, 500, 40'000},
};

std::string DescribeType(const graph::TensorType& type) {
  std::string extents;
  for (const base::Poly& p : type.shape) {
    extents += extents.empty() ? "" : ",";
    extents += p.is_constant() ? fmt::format("{}", p.constant()) : "?";
  }
  return fmt::format("{}[{}]", graph::NameOf(type.dtype), extents);
}

class Optimizer {
 public:
  Optimizer(const graph::Graph& g, std::span<const SearchRule> rules, const Device& device,
            const SearchOptions& options,
            const std::function<void(const SearchProgress&)>& progress)
      : rules_(rules, options.fast_math),
        device_(device),
        options_(options),
        progress_(progress),
        start_(options.now()),
        graph_(Cleaned(g)) {
    result_.before = CostOfGraph(device, graph_, graph_.outputs());
    result_.lower_bound_us = LowerBound(device, graph_, graph_.outputs());
    result_.rules_refused = rules_.refused();
    cost_ = result_.cost_before_us = result_.before.us;
  }

  SearchResult Run() {
    std::size_t previous = 0;
    for (const Round& round : kRounds) {
      const std::size_t eligible = WindowFinder(graph_).eligible().size();
      // A round whose windows are the whole graph is the last one's business.
      if (eligible <= kWholeGraph && round.size >= eligible && previous >= eligible) break;
      previous = round.size;
      memory_.clear();
      phase_ = fmt::format("pieces of {}", round.size);
      for (int pass = 0; pass < kPassesMax && !Ended(); ++pass) {
        if (!Pass(round)) break;
      }
    }
    if (!Ended()) SearchWhole();
    result_.graph = std::move(graph_);
    result_.after = CostOfGraph(device_, result_.graph, result_.graph.outputs());
    result_.cost_after_us = result_.after.us;
    if (end_) {
      result_.end = *end_;
    } else {
      result_.end = whole_complete_ ? SearchEnd::kComplete : SearchEnd::kExhausted;
    }
    return std::move(result_);
  }

 private:
  // Whether the search has to end, and why.
  bool Ended() {
    if (end_) return true;
    if (options_.stop.stop_requested()) {
      end_ = SearchEnd::kInterrupted;
    } else if (result_.steps_spent >= options_.step_limit) {
      end_ = SearchEnd::kStepLimit;
    } else if (TimeIsUp()) {
      end_ = SearchEnd::kTimeLimit;
    }
    return end_.has_value();
  }
  bool TimeIsUp() const {
    return options_.time_limit != std::chrono::milliseconds::max() &&
           options_.now() - start_ >= options_.time_limit;
  }

  void Report() {
    if (!progress_) return;
    progress_({.cost_before_us = result_.cost_before_us,
               .cost_us = cost_,
               .steps = result_.steps_spent,
               .graphs = result_.graphs_explored,
               .phase = phase_});
  }

  // Goes through the graph once; true when something was improved.
  bool Pass(const Round& round) {
    bool improved = false;
    std::vector<bool> done(graph_.size(), false);
    std::optional<WindowFinder> finder(std::in_place, graph_);
    std::size_t next = 0;
    while (!Ended()) {
      while (next < finder->eligible().size() && done[std::size_t(finder->eligible()[next])])
        ++next;
      if (next == finder->eligible().size()) break;
      const NodeId seed = finder->eligible()[next];
      done[std::size_t(seed)] = true;
      const std::vector<NodeId> nodes = finder->Grow(seed, round.size, round.growth);
      if (round.growth == Growth::kNeighbours) {
        for (const NodeId id : finder->Interior(nodes)) done[std::size_t(id)] = true;
      }
      const Window window = finder->Extract(nodes);
      const std::optional<std::vector<NodeId>> moved = Improve(window, round);
      if (!moved) continue;
      improved = true;
      std::vector<bool> still_done(graph_.size(), false);
      for (std::size_t k = 0; k < moved->size(); ++k) {
        const bool inside = std::binary_search(nodes.begin(), nodes.end(), NodeId(k));
        if ((*moved)[k] != kNoNode && !inside) still_done[std::size_t((*moved)[k])] = done[k];
      }
      done = std::move(still_done);
      finder.emplace(graph_);
      next = 0;
      Report();
    }
    return improved;
  }

  BacktrackLimits LimitsOf(const Round& round) {
    BacktrackLimits limits;
    limits.alpha = options_.alpha;
    limits.slack_us = (options_.alpha - 1) * result_.cost_before_us;
    limits.steps = std::min(round.steps, options_.step_limit - result_.steps_spent);
    limits.graphs = std::min(round.graphs, options_.graph_limit);
    limits.patience = options_.patience;
    limits.stop = [this] { return options_.stop.stop_requested() || TimeIsUp(); };
    return limits;
  }

  BacktrackResult Search(const graph::Graph& g, const Round& round) {
    BacktrackResult found = Backtrack(g, rules_, device_, LimitsOf(round));
    result_.steps_spent += found.steps;
    result_.graphs_explored += found.graphs;
    Report();
    return found;
  }

  // Replaces the window by something better, if the search finds it. Returns where the host's nodes
  // went.
  std::optional<std::vector<NodeId>> Improve(const Window& window, const Round& round) {
    ++result_.windows;
    std::string key = rules::InterfaceBytes(window.graph, window.graph.outputs());
    for (const graph::NodeId id : window.inputs)
      key.push_back(graph_.node(id).weights_only ? 1 : 0);
    auto it = memory_.find(key);
    if (it == memory_.end()) {
      BacktrackResult found = Search(window.graph, round);
      it = memory_.emplace(std::move(key), std::move(found)).first;
    } else {
      ++result_.windows_remembered;
    }
    const BacktrackResult& found = it->second;
    if (!found.improved) return std::nullopt;
    std::vector<NodeId> moved;
    graph::Graph spliced = Splice(graph_, window, found.graph, &moved);
    const GraphCost cost = CostOfGraph(device_, spliced, spliced.outputs());
    if (!Better(cost)) return std::nullopt;
    Accept(std::move(spliced), cost.us, window, found);
    return moved;
  }

  // Whether a graph that costs this may take the place of the present one.
  bool Better(const GraphCost& cost) const {
    constexpr double kRounding = 1e-9;
    if (cost.us < cost_ * (1 - kRounding)) return true;
    return cost.us <= cost_ * (1 + kRounding) && cost.us <= result_.cost_before_us &&
           cost.nodes < CostOfGraph(device_, graph_, graph_.outputs()).nodes;
  }

  void Accept(graph::Graph g, double cost, const Window& window, const BacktrackResult& found) {
    std::string where;
    for (const NodeId id : window.outputs) {
      const std::string type = DescribeType(*graph_.node(id).type);
      if (where.find(type) == std::string::npos) where += (where.empty() ? "" : " ") + type;
    }
    const double before = cost_;
    for (const Move& move : found.moves) {
      const RuleSet::Entry* entry =
          move.rule < 0 ? nullptr : &rules_.entries()[std::size_t(move.rule)];
      result_.steps.push_back({.rule = entry == nullptr ? -1 : entry->source,
                               .forward = entry == nullptr || entry->forward(),
                               .sites = move.sites,
                               .cost_us = before + (move.cost_us - found.cost_before_us),
                               .where = where});
    }
    // Equal parts of the window and of its surroundings may have become one.
    if (!result_.steps.empty()) result_.steps.back().cost_us = cost;
    graph_ = std::move(g);
    cost_ = cost;
  }

  void SearchWhole() {
    const WindowFinder finder(graph_);
    if (finder.eligible().empty()) {
      whole_complete_ = true;
      return;
    }
    if (finder.eligible().size() > kWholeGraph) return;
    // Understood operators with an opaque one between them are no convex set: then pieces must do.
    std::vector<NodeId> nodes =
        finder.Grow(finder.eligible().front(), kWholeGraph, Growth::kNeighbours);
    if (nodes.size() != finder.eligible().size()) return;
    phase_ = "whole graph";
    memory_.clear();
    const Window window = finder.Extract(std::move(nodes));
    const Round round{kWholeGraph, Growth::kNeighbours, options_.step_limit, options_.graph_limit};
    ++result_.windows;
    const BacktrackResult found = Search(window.graph, round);
    whole_complete_ = found.complete;
    if (found.improved) {
      graph::Graph spliced = Splice(graph_, window, found.graph);
      const GraphCost cost = CostOfGraph(device_, spliced, spliced.outputs());
      if (Better(cost)) Accept(std::move(spliced), cost.us, window, found);
    }
    Ended();
    Report();
  }

  const RuleSet rules_;
  const Device& device_;
  const SearchOptions& options_;
  const std::function<void(const SearchProgress&)>& progress_;
  const SteadyTime start_;
  graph::Graph graph_;
  double cost_ = 0;
  std::string phase_ = "start";
  std::unordered_map<std::string, BacktrackResult> memory_;  // Of the present round.
  std::optional<SearchEnd> end_;
  bool whole_complete_ = false;
  SearchResult result_;
};

}  // namespace

std::string_view NameOf(SearchEnd end) {
  switch (end) {
    case SearchEnd::kComplete:
      return "complete";
    case SearchEnd::kExhausted:
      return "exhausted";
    case SearchEnd::kStepLimit:
      return "step-limit";
    case SearchEnd::kTimeLimit:
      return "time-limit";
    case SearchEnd::kInterrupted:
      return "interrupted";
  }
  return "complete";
}

StatusOr<SearchResult> OptimizeGraph(const graph::Graph& g, std::span<const SearchRule> rules,
                                     const Device& device, const SearchOptions& options,
                                     const std::function<void(const SearchProgress&)>& progress) {
  if (!std::isfinite(options.alpha) || options.alpha < 1) {
    return base::InvalidArgument(
        fmt::format("alpha is {}: it must be a number of 1 or more", options.alpha));
  }
  if (options.step_limit < 0 || options.graph_limit < 0 || options.patience < 0 ||
      options.time_limit.count() < 0) {
    return base::InvalidArgument("a limit of the search is below 0");
  }
  return Optimizer(g, rules, device, options, progress).Run();
}

}  // namespace tenon::optimizer
