// The nodes of a universe with the operators of core/ops: the terms of worker/levels.h, whose
// values at the main samples are those of single-output enumeration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/graph/universe.h"
#include "worker/evaluator.h"
#include "worker/fingerprint.h"
#include "worker/levels.h"
#include "worker/sets/source.h"

namespace tenon::worker {

// Nodes are numbered as terms are, without the inputs.
class Terms final : public SetSource {
 public:
  // The universe is valid.
  Terms(const graph::Universe& universe, std::uint64_t seed);

  const NodeTable& nodes() const override { return table_; }
  int depth() const override { return levels_.depth(); }
  Status BuildLevel() override;
  StatusOr<LevelSize> EstimateLevel() override;
  Status WalkLast(const Wanted& wanted, const Visit& visit) override;
  std::string TextOf(ResultNumber result) const override;
  std::vector<std::string> TextsOfLast() const override;

 private:
  NodeNumber NodeOf(TermId id) const { return static_cast<NodeNumber>(id - levels_.end(0)); }
  std::uint64_t Fingerprint64(const Candidate& c, Value value) const;
  std::uint64_t OrdersOf(const Candidate& c);

  graph::Universe universe_;
  Levels levels_;
  Evaluator evaluator_;
  Hasher hasher_;
  NodeTable table_{false};
  Orders orders_;
  const Candidate* visited_ = nullptr;
};

}  // namespace tenon::worker
