// The relaxation with cuts, and branch and cut, over one instance.
#pragma once

#include <memory>
#include <vector>

#include "optimizer/extract/extract.h"
#include "optimizer/extract/instance.h"
#include "optimizer/extract/program.h"
#include "optimizer/extract/stop.h"

namespace tenon::optimizer::extract {

// Thread-compatible. Refers to the incumbent, which it makes better.
class Solver {
 public:
  // `found_by`: what the incumbent says of choices that the integer program finds.
  Solver(Instance g, const Limits& limits, Stage found_by, Incumbent& incumbent);

  // Rounds of the linear program and of cuts until neither helps; takes nodes out by their reduced
  // costs, and starts again from what is left.
  void Tighten(const Stop& stop);
  // Integer programs, with landmarks against the cycles of each solution, until one has none.
  void Branch(const Stop& stop);

  // Nothing that the instance allowed is cheaper, unless the incumbent is.
  double bound() const { return bound_; }
  bool Done() const { return bound_ >= incumbent_.cost * (1 - kTolerance); }
  const Instance& instance() const { return g_; }

 private:
  enum class Pass : std::uint8_t { kAgain, kEnough };
  Pass TightenOnce(const Stop& stop);
  int FixByReducedCost();
  void Round(const Stop& stop);  // From the solution of the relaxation to choices.

  Instance g_;
  Limits limits_;
  Stage found_by_;
  Incumbent& incumbent_;
  double bound_ = 0;
  std::vector<Cut> pool_;  // Landmarks that were worth it: true for each choice without a cycle.
  std::unique_ptr<Program> program_;
  std::uint64_t round_ = 0;
};

// The instance with the nodes whose children all come before their class, in an order of the
// classes that the choice respects: it has no cycles, and the choice is in it.
Instance Ordered(const Instance& g, const Choice& choice);

}  // namespace tenon::optimizer::extract
