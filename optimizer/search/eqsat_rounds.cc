// A model of a few dozen operators is one e-graph. A larger one is cut into pieces where few
// tensors cross (narrow.h), each an e-graph of its own: an e-graph of everything would meet its
// limits before anything deep is found, and could not be extracted from with a proof. Equal pieces
// are saturated once. Then it is cut elsewhere, so that what a cut went through is inside a piece,
// until two cuts in a row gain nothing.
//
// The bound of a pass is that of its pieces together: no choice from their e-graphs is cheaper. It
// says nothing of graphs that need more than a piece.
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "optimizer/search/eqsat.h"
#include "optimizer/search/narrow.h"
#include "optimizer/search/session.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

struct Round {
  std::size_t size;  // Of a piece, in operators that rules may match.
  std::int64_t nodes;
  std::int64_t backoff;
  int passes;
};

constexpr std::size_t kWholeGraph = 40;
constexpr Round kRounds[] = {
    {12, 3'000, 200, 4},
    {24, 4'000, 300, 4},
    {kWholeGraph, 6'000, 400, 4},
};
constexpr int kIterations = 12;

class Rounds {
 public:
  Rounds(Session& session, std::span<const SearchRule> rules)
      : session_(session), rules_(rules, session.options().fast_math) {
    session.result().rules_refused = rules_.refused();
  }

  StatusOr<bool> Run() {
    bool complete = false;
    for (const Round& round : kRounds) {
      const std::size_t eligible = WindowFinder(session_.graph()).eligible().size();
      const bool whole = eligible <= kWholeGraph;
      if (whole && round.size < kWholeGraph) continue;
      session_.Begin(whole ? "whole graph" : fmt::format("pieces of {}", round.size));
      int idle = 0;
      for (int pass = 0; pass < round.passes && idle < (whole ? 1 : 2) && !complete; ++pass) {
        if (session_.Ended()) return false;
        ASSIGN_OR_RETURN(const bool improved, Pass(round));
        idle = improved ? 0 : idle + 1;
        complete = whole && !session_.Ended() && Settled();
      }
    }
    return complete;
  }

 private:
  // Whether the last pass found the cheapest of all that rules can make of its pieces.
  bool Settled() const {
    const auto& e = session_.result().extraction;
    return e && e->saturated == e->pieces && e->optimal == e->pieces && e->pieces <= 1;
  }

  // Goes through the pieces of one cut; true when something was improved.
  StatusOr<bool> Pass(const Round& round) {
    std::vector<std::vector<NodeId>> pieces =
        CutNarrowly(session_.graph(), WindowFinder(session_.graph()), round.size, cuts_);
    SearchExtraction sum;
    double slack = 0;
    bool improved = false;
    cuts_.clear();
    std::optional<WindowFinder> finder(std::in_place, session_.graph());
    for (std::size_t k = 0; k < pieces.size() && !session_.Ended(); ++k) {
      if (pieces[k].empty()) continue;
      const Window window = finder->Extract(pieces[k]);
      ASSIGN_OR_RETURN(const PieceResult* const found, Look(window, round));
      Count(*found->extraction, sum, slack);
      const NodeId last = pieces[k].back();
      const std::optional<std::vector<NodeId>> moved = session_.Accept(window, *found);
      if (!moved) {
        cuts_.push_back(last);
        continue;
      }
      improved = true;
      Move(*moved, cuts_);
      for (std::size_t later = k + 1; later < pieces.size(); ++later) Move(*moved, pieces[later]);
      finder.emplace(session_.graph());
    }
    if (session_.Ended()) return improved;
    // What a pass without a gain knows is true, too, but its e-graphs hold less.
    auto& extraction = session_.result().extraction;
    if (!improved && extraction) return improved;
    sum.lower_bound_us = std::max(0.0, session_.cost_us() - slack);
    extraction = sum;
    return improved;
  }

  static void Count(const Extraction& e, SearchExtraction& sum, double& slack) {
    ++sum.pieces;
    sum.optimal += e.optimal ? 1 : 0;
    sum.saturated += e.saturated ? 1 : 0;
    sum.nodes += e.nodes;
    sum.nodes_max = std::max(sum.nodes_max, e.nodes);
    slack += e.cost_us - e.lower_bound_us;
  }

  // Where nodes are now; those that are gone are left out.
  static void Move(const std::vector<NodeId>& moved, std::vector<NodeId>& nodes) {
    for (NodeId& id : nodes) id = moved[std::size_t(id)];
    std::erase(nodes, kNoNode);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }

  StatusOr<const PieceResult*> Look(const Window& window, const Round& round) {
    const SearchOptions& options = session_.options();
    EqsatLimits limits;
    limits.iterations = int(std::min<std::int64_t>(kIterations, session_.StepsLeft()));
    limits.nodes = std::min(round.nodes, options.graph_limit);
    limits.backoff = round.backoff;
    limits.stop = options.stop;
    limits.late = [this] { return session_.TimeIsUp(); };
    limits.extraction.search_steps = 20'000'000;
    limits.extraction.branches = 2'000;
    limits.extraction.integer_programs = 10;
    if (const auto left = session_.TimeLeft()) {
      limits.extraction.deadline = std::chrono::steady_clock::now() + *left;
    }
    return session_.Look(window, [&](const graph::Graph& g) {
      return Saturate(g, rules_, session_.device(), limits);
    });
  }

  Session& session_;
  const EqsatRules rules_;
  std::vector<NodeId> cuts_;  // The last nodes of the pieces of the last pass.
};

}  // namespace

StatusOr<bool> EqsatRounds(Session& session, std::span<const SearchRule> rules) {
  return Rounds(session, rules).Run();
}

}  // namespace tenon::optimizer
