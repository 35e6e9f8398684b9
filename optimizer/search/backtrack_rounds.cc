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
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "optimizer/search/backtrack.h"
#include "optimizer/search/session.h"

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

class Rounds {
 public:
  Rounds(Session& session, std::span<const SearchRule> rules)
      : session_(session), rules_(rules, session.options().fast_math) {
    session.result().rules_refused = rules_.refused();
  }

  StatusOr<bool> Run() {
    std::size_t previous = 0;
    for (const Round& round : kRounds) {
      const std::size_t eligible = WindowFinder(session_.graph()).eligible().size();
      // A round whose windows are the whole graph is the last one's business.
      if (eligible <= kWholeGraph && round.size >= eligible && previous >= eligible) break;
      previous = round.size;
      session_.Begin(fmt::format("pieces of {}", round.size));
      for (int pass = 0; pass < kPassesMax && !session_.Ended(); ++pass) {
        ASSIGN_OR_RETURN(const bool improved, Pass(round));
        if (!improved) break;
      }
    }
    return session_.Ended() ? StatusOr<bool>(false) : SearchWhole();
  }

 private:
  // Goes through the graph once; true when something was improved.
  StatusOr<bool> Pass(const Round& round) {
    bool improved = false;
    std::vector<bool> done(session_.graph().size(), false);
    std::optional<WindowFinder> finder(std::in_place, session_.graph());
    std::size_t next = 0;
    while (!session_.Ended()) {
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
      ASSIGN_OR_RETURN(const PieceResult* const found, Look(window, round));
      const std::optional<std::vector<NodeId>> moved = session_.Accept(window, *found);
      if (!moved) continue;
      improved = true;
      std::vector<bool> still_done(session_.graph().size(), false);
      for (std::size_t k = 0; k < moved->size(); ++k) {
        const bool inside = std::binary_search(nodes.begin(), nodes.end(), NodeId(k));
        if ((*moved)[k] != kNoNode && !inside) still_done[std::size_t((*moved)[k])] = done[k];
      }
      done = std::move(still_done);
      finder.emplace(session_.graph());
      next = 0;
    }
    return improved;
  }

  BacktrackLimits LimitsOf(const Round& round) const {
    const SearchOptions& options = session_.options();
    BacktrackLimits limits;
    limits.alpha = options.alpha;
    limits.slack_us = (options.alpha - 1) * session_.result().cost_before_us;
    limits.steps = std::min(round.steps, session_.StepsLeft());
    limits.graphs = std::min(round.graphs, options.graph_limit);
    limits.patience = options.patience;
    limits.stop = [this] {
      return session_.options().stop.stop_requested() || session_.TimeIsUp();
    };
    return limits;
  }

  StatusOr<const PieceResult*> Look(const Window& window, const Round& round) {
    return session_.Look(window, [&](const graph::Graph& g) -> StatusOr<PieceResult> {
      return Backtrack(g, rules_, session_.device(), LimitsOf(round));
    });
  }

  // Returns whether all graphs within alpha were looked at.
  StatusOr<bool> SearchWhole() {
    const WindowFinder finder(session_.graph());
    if (finder.eligible().empty()) return true;
    if (finder.eligible().size() > kWholeGraph) return false;
    // Understood operators with an opaque one between them are no convex set: then pieces must do.
    std::vector<NodeId> nodes =
        finder.Grow(finder.eligible().front(), kWholeGraph, Growth::kNeighbours);
    if (nodes.size() != finder.eligible().size()) return false;
    session_.Begin("whole graph");
    const Window window = finder.Extract(std::move(nodes));
    const Round round{kWholeGraph, Growth::kNeighbours, session_.options().step_limit,
                      session_.options().graph_limit};
    ASSIGN_OR_RETURN(const PieceResult* const found, Look(window, round));
    const bool complete = found->complete;
    session_.Accept(window, *found);
    session_.Ended();
    return complete;
  }

  Session& session_;
  const RuleSet rules_;
};

}  // namespace

StatusOr<bool> BacktrackRounds(Session& session, std::span<const SearchRule> rules) {
  return Rounds(session, rules).Run();
}

}  // namespace tenon::optimizer
