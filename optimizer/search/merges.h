// Merges: keeps rules with several outputs from merging what is merged already, for ever.
//
// Two products of one tensor become slices of one larger product, which can be merged with either
// of them again, and so on: such rules alone fill any e-graph. Here a tensor is merged with others
// only if they have no part in common, one of the two at most is merged itself, and each set of
// parts is merged in few ways. With n parts that leaves 2^n merged tensors at most, in place of n!
// orders of each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "core/egraph/saturate.h"

namespace tenon::optimizer {

// Thread-compatible.
class Merges : public egraph::Supervisor {
 public:
  // `given`: nodes below this number are those of the piece. `stop` is asked often.
  Merges(egraph::NodeId given, std::function<bool()> stop)
      : given_(given), stop_(std::move(stop)) {}

  bool Stop() override;
  bool Allows(const egraph::EGraph& g, const egraph::EGraphRule& rule,
              std::span<const egraph::ClassId> outputs) override;
  void Applied(const egraph::EGraph& g, const egraph::EGraphRule& rule,
               std::span<const egraph::ClassId> outputs, egraph::NodeId first_made) override;

 private:
  // What the class is a merger of: classes that rules read as slices of it. Empty if of nothing.
  std::vector<egraph::ClassId> PartsOf(const egraph::EGraph& g, egraph::ClassId c) const;

  const egraph::NodeId given_;
  const std::function<bool()> stop_;
  bool stopped_ = false;
  std::vector<std::int64_t> key_;  // Of what was allowed last.
  std::map<std::vector<std::int64_t>, int> ways_;
};

}  // namespace tenon::optimizer
