#include "optimizer/search/session.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "core/rules/canonical.h"

namespace tenon::optimizer {

using graph::NodeId;

namespace {

std::string DescribeType(const graph::TensorType& type) {
  std::string extents;
  for (const base::Poly& p : type.shape) {
    extents += extents.empty() ? "" : ",";
    extents += p.is_constant() ? fmt::format("{}", p.constant()) : "?";
  }
  return fmt::format("{}[{}]", graph::NameOf(type.dtype), extents);
}

}  // namespace

Session::Session(const graph::Graph& g, const Device& device, const SearchOptions& options,
                 const std::function<void(const SearchProgress&)>& progress)
    : device_(device),
      options_(options),
      progress_(progress),
      start_(options.now()),
      given_(Cleaned(g)),
      graph_(given_) {
  result_.before = CostOfGraph(device, graph_, graph_.outputs());
  result_.lower_bound_us = LowerBound(device, graph_, graph_.outputs());
  cost_ = result_.cost_before_us = result_.before.us;
}

bool Session::Ended() {
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

bool Session::TimeIsUp() const {
  return options_.time_limit != std::chrono::milliseconds::max() &&
         options_.now() - start_ >= options_.time_limit;
}

std::optional<std::chrono::milliseconds> Session::TimeLeft() const {
  if (options_.time_limit == std::chrono::milliseconds::max()) return std::nullopt;
  const auto spent = std::chrono::duration_cast<std::chrono::milliseconds>(options_.now() - start_);
  return std::max(options_.time_limit - spent, std::chrono::milliseconds(0));
}

void Session::Begin(std::string phase) {
  phase_ = std::move(phase);
  memory_.clear();
}

void Session::Report() {
  if (!progress_) return;
  progress_({.cost_before_us = result_.cost_before_us,
             .cost_us = std::min(cost_, aside_us_),
             .steps = result_.steps_spent,
             .graphs = result_.graphs_explored,
             .phase = phase_});
}

StatusOr<const PieceResult*> Session::Look(const Window& window, const Search& search) {
  ++result_.windows;
  std::string key = rules::InterfaceBytes(window.graph, window.graph.outputs());
  for (const NodeId id : window.inputs) key.push_back(graph_.node(id).weights_only ? 1 : 0);
  auto it = memory_.find(key);
  if (it != memory_.end()) {
    ++result_.windows_remembered;
    return &it->second;
  }
  ASSIGN_OR_RETURN(PieceResult found, search(window.graph));
  result_.steps_spent += found.steps;
  result_.graphs_explored += found.graphs;
  it = memory_.emplace(std::move(key), std::move(found)).first;
  Report();
  return &it->second;
}

std::optional<std::vector<NodeId>> Session::Accept(const Window& window, const PieceResult& found) {
  if (!found.improved) return std::nullopt;
  std::vector<NodeId> moved;
  graph::Graph spliced = Splice(graph_, window, found.graph, &moved);
  const GraphCost cost = CostOfGraph(device_, spliced, spliced.outputs());
  if (!Better(cost)) return std::nullopt;
  Record(window, found, cost.us);
  graph_ = std::move(spliced);
  cost_ = cost.us;
  Report();
  return moved;
}

// Whether a graph that costs this may take the place of the present one.
bool Session::Better(const GraphCost& cost) const {
  constexpr double kRounding = 1e-9;
  if (cost.us < cost_ * (1 - kRounding)) return true;
  return cost.us <= cost_ * (1 + kRounding) && cost.us <= result_.cost_before_us &&
         cost.nodes < CostOfGraph(device_, graph_, graph_.outputs()).nodes;
}

void Session::Record(const Window& window, const PieceResult& found, double cost) {
  std::string where;
  for (const NodeId id : window.outputs) {
    const std::string type = DescribeType(*graph_.node(id).type);
    if (where.find(type) == std::string::npos) where += (where.empty() ? "" : " ") + type;
  }
  for (const Move& move : found.moves) {
    result_.steps.push_back({.rule = move.rule,
                             .forward = move.forward,
                             .sites = move.sites,
                             .cost_us = cost_ + (move.cost_us - found.cost_before_us),
                             .where = where});
  }
  // Equal parts of the window and of its surroundings may have become one.
  if (!result_.steps.empty()) result_.steps.back().cost_us = cost;
}

Session::Stand Session::Restart() {
  Stand stand{.graph = std::exchange(graph_, given_),
              .cost_us = std::exchange(cost_, result_.cost_before_us),
              .steps = std::exchange(result_.steps, {}),
              .extraction = std::exchange(result_.extraction, std::nullopt)};
  aside_us_ = stand.cost_us;
  return stand;
}

void Session::Settle(Stand before, bool stay) {
  aside_us_ = std::numeric_limits<double>::infinity();
  if (stay) return;
  graph_ = std::move(before.graph);
  cost_ = before.cost_us;
  result_.steps = std::move(before.steps);
  result_.extraction = before.extraction;
}

SearchResult Session::Finish(bool complete) {
  result_.graph = std::move(graph_);
  result_.after = CostOfGraph(device_, result_.graph, result_.graph.outputs());
  result_.cost_after_us = result_.after.us;
  const SearchEnd otherwise = complete ? SearchEnd::kComplete : SearchEnd::kExhausted;
  result_.end = end_.value_or(otherwise);
  return std::move(result_);
}

}  // namespace tenon::optimizer
