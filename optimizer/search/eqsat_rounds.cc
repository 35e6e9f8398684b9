// A model of a few dozen operators is one e-graph. A larger one is cut into pieces where few
// tensors cross (narrow.h), each an e-graph of its own, and what is found is cut elsewhere, so that
// what a cut went through is inside a piece, until two cuts in a row gain nothing. Equal pieces are
// saturated once. Then the pieces are doubled, up to the whole model.
//
// So a good result is there soon. But each piece decides for good: products that were merged are
// not taken apart again, although a larger piece might have merged others. Therefore large pieces
// begin anew with the given model in the end, and what they lead to is kept if it is better. If all
// of the model is one saturated e-graph then, its cheapest graph is the best that the rules lead
// to.
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

// A model with at most so many operators that rules may match is one e-graph from the start.
constexpr std::size_t kWholeGraph = 40;
constexpr Round kRounds[] = {
    {12, 3'000, 200, 4}, {24, 4'000, 300, 4},   {48, 6'000, 400, 4},
    {96, 8'000, 600, 2}, {192, 12'000, 800, 2}, {384, 16'000, 1'000, 2},
};
// Those that begin anew. The whole model needs room: e-graphs are larger on the way than when they
// are saturated.
constexpr Round kAnew[] = {{384, 24'000, 1'000, 2}, {96, 8'000, 600, 2}};
constexpr int kIterations = 40;
// Beyond so many classes, proofs that a choice is the cheapest take minutes and mostly fail.
constexpr int kProvedClasses = 4'000;
constexpr double kRounding = 1e-9;

class Rounds {
 public:
  Rounds(Session& session, std::span<const SearchRule> rules)
      : session_(session), rules_(rules, session.options().fast_math) {
    session.result().rules_refused = rules_.refused();
  }

  StatusOr<bool> Run() {
    const std::size_t eligible = WindowFinder(session_.graph()).eligible().size();
    Start start = Start::kGiven;
    for (const Round& round : kRounds) {
      if (eligible <= kWholeGraph && round.size < kWholeGraph) continue;
      ASSIGN_OR_RETURN(const bool complete, Passes(round, start));
      if (complete) return true;
      if (session_.Ended()) return false;
      start = Start::kFound;
      if (eligible <= round.size) break;
    }
    for (const Round& round : kAnew) {
      if (eligible <= kWholeGraph) break;
      ASSIGN_OR_RETURN(const bool complete, Anew(round));
      if (complete || session_.Ended()) return complete;
      RETURN_IF_ERROR(Passes(round, Start::kFound).status());
    }
    return false;
  }

 private:
  enum class Start : std::uint8_t { kGiven, kFound };

  // Passes until they gain nothing. True when nothing is left to find: the given model is one
  // e-graph, no rule adds to it, and the result is proved to be the cheapest in it.
  StatusOr<bool> Passes(const Round& round, Start start) {
    whole_ = WindowFinder(session_.graph()).eligible().size() <= round.size;
    session_.Begin(whole_ ? "whole graph" : fmt::format("pieces of {}", round.size));
    cuts_.clear();
    int idle = 0;
    for (int pass = 0; pass < round.passes && idle < (whole_ ? 1 : 2); ++pass) {
      if (session_.Ended()) return false;
      ASSIGN_OR_RETURN(const bool improved, Pass(round));
      idle = improved ? 0 : idle + 1;
      if (!whole_ || session_.Ended() || !Settled()) continue;
      return start == Start::kGiven && pass == 0;
    }
    return false;
  }

  // The same from the given model; what was found before stays unless this is better, or as good
  // and known to be the best.
  StatusOr<bool> Anew(const Round& round) {
    Session::Stand before = session_.Restart();
    ASSIGN_OR_RETURN(const bool complete, Passes(round, Start::kGiven));
    const double limit_us = before.cost_us * (complete ? 1 + kRounding : 1 - kRounding);
    const bool better = session_.cost_us() <= limit_us;
    session_.Settle(std::move(before), better);
    return complete && better;
  }

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
    limits.extraction.classes = kProvedClasses;
    // Where the relaxation leaves a gap, closing it is dear; it is worth that for the whole model.
    limits.extraction.branches = 2'000;
    limits.extraction.integer_programs = whole_ ? 10 : 0;
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
  bool whole_ = false;        // The pieces of these passes are large enough for the whole model.
};

}  // namespace

StatusOr<bool> EqsatRounds(Session& session, std::span<const SearchRule> rules) {
  return Rounds(session, rules).Run();
}

}  // namespace tenon::optimizer
