// Session: one search over a model, whichever search it is: the best graph so far, what it took,
// and what is known of pieces that were looked at.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "optimizer/device/device.h"
#include "optimizer/search/optimize.h"
#include "optimizer/search/piece.h"
#include "optimizer/search/window.h"

namespace tenon::optimizer {

// Thread-compatible. Refers to all that it is given.
class Session {
 public:
  Session(const graph::Graph& g, const Device& device, const SearchOptions& options,
          const std::function<void(const SearchProgress&)>& progress);

  const graph::Graph& graph() const { return graph_; }
  const Device& device() const { return device_; }
  const SearchOptions& options() const { return options_; }
  double cost_us() const { return cost_; }
  SearchResult& result() { return result_; }

  // Whether the search has to end, and why; once it has, it stays so.
  bool Ended();
  bool TimeIsUp() const;
  // Until the time is up; nothing without a limit.
  std::optional<std::chrono::milliseconds> TimeLeft() const;
  // Of the steps that are allowed.
  std::int64_t StepsLeft() const { return options_.step_limit - result_.steps_spent; }

  // What follows is said to be this; what is known of pieces holds for one phase.
  void Begin(std::string phase);
  void Report();

  using Search = std::function<StatusOr<PieceResult>(const graph::Graph&)>;
  // What the search makes of the window; an equal one is searched once in a phase. Valid until the
  // next call.
  StatusOr<const PieceResult*> Look(const Window& window, const Search& search);
  // Puts a result in the window's place if that makes the whole better. Returns where the host's
  // nodes went, or nothing when it does not.
  std::optional<std::vector<graph::NodeId>> Accept(const Window& window, const PieceResult& found);

  // What the search has come to so far.
  struct Stand {
    graph::Graph graph;
    double cost_us = 0;
    std::vector<SearchStep> steps;
    std::optional<SearchExtraction> extraction;
  };
  // Sets the search back to the given graph, to try another way; returns how far it had come.
  Stand Restart();
  // Ends that: goes on from where the search is if `stay`, else from where it was before.
  void Settle(Stand before, bool stay);

  // `complete`: nothing is left to find.
  SearchResult Finish(bool complete);

 private:
  bool Better(const GraphCost& cost) const;
  void Record(const Window& window, const PieceResult& found, double cost);

  const Device& device_;
  const SearchOptions& options_;
  const std::function<void(const SearchProgress&)>& progress_;
  const SteadyTime start_;
  const graph::Graph given_;
  graph::Graph graph_;
  double cost_ = 0;
  double aside_us_ = std::numeric_limits<double>::infinity();  // Cost of the stand set aside.
  std::string phase_ = "start";
  std::unordered_map<std::string, PieceResult> memory_;  // Of the present phase.
  std::optional<SearchEnd> end_;
  SearchResult result_;
};

// The searches, with their rounds over the model; true when nothing is left to find.
StatusOr<bool> BacktrackRounds(Session& session, std::span<const SearchRule> rules);
StatusOr<bool> EqsatRounds(Session& session, std::span<const SearchRule> rules);

}  // namespace tenon::optimizer
