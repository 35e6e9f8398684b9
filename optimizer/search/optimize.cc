#include "optimizer/search/optimize.h"

#include <cmath>

#include <fmt/core.h>

#include "optimizer/search/session.h"

namespace tenon::optimizer {

std::string_view NameOf(SearchMethod method) {
  switch (method) {
    case SearchMethod::kBacktrack:
      return "backtrack";
    case SearchMethod::kEqsat:
      return "eqsat";
  }
  return "backtrack";
}

StatusOr<SearchMethod> SearchMethodNamed(std::string_view name) {
  for (const SearchMethod method : {SearchMethod::kBacktrack, SearchMethod::kEqsat}) {
    if (name == NameOf(method)) return method;
  }
  return base::InvalidArgument(
      fmt::format("no search is called '{}' (there are backtrack and eqsat)", name));
}

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
  Session session(g, device, options, progress);
  const bool eqsat = options.method == SearchMethod::kEqsat;
  ASSIGN_OR_RETURN(const bool complete,
                   eqsat ? EqsatRounds(session, rules) : BacktrackRounds(session, rules));
  return session.Finish(complete);
}

}  // namespace tenon::optimizer
