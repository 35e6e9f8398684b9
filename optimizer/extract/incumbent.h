// The best choice so far.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "optimizer/extract/problem.h"

namespace tenon::optimizer::extract {

enum class Stage : std::uint8_t {
  kGreedy,
  kLocalSearch,
  kRelaxation,  // Greedy and local search, led by a solution of the linear program.
  kOrdered,     // The integer program over the nodes that respect an order of the classes.
  kFull,        // The integer program over all nodes.
};

struct Incumbent {
  const Problem* problem = nullptr;
  Choice choice;
  double cost = std::numeric_limits<double>::infinity();
  Stage stage = Stage::kGreedy;

  // Takes the choice when it has a cost, recomputed here, and is the cheapest so far.
  bool Offer(const Choice& offered, Stage from) {
    const std::optional<double> price = Cost(*problem, offered);
    if (!price || *price >= cost) return false;
    choice = offered;
    cost = *price;
    stage = from;
    return true;
  }
};

}  // namespace tenon::optimizer::extract
