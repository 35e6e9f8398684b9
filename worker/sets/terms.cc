#include "worker/sets/terms.h"

#include <algorithm>

#include "worker/estimate.h"
#include "worker/samples.h"

namespace tenon::worker {

Terms::Terms(const graph::Universe& universe, std::uint64_t seed)
    : universe_(universe),
      levels_(universe_, false),
      evaluator_(levels_),
      hasher_(seed, universe.max_elements) {
  evaluator_.SetInputs(MainSamples(universe_, seed));
  table_.CompleteLevel();
}

std::uint64_t Terms::Fingerprint64(const Candidate& c, Value value) const {
  const std::uint64_t f = hasher_.Hash(levels_.table().extents_at(c.type), value).hi;
  return f == 0 ? 1 : f;  // 0 stands for no result.
}

Status Terms::BuildLevel() {
  Status status = OkStatus();
  const int size = levels_.depth() + 1;
  const std::uint64_t units = levels_.unit_count();
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    levels_.Walk(unit, [&](const Candidate& c) {
      if (!status.ok()) return;
      const TermId id = levels_.Add(c);
      status = evaluator_.Keep(id, c.signature);
      if (!status.ok()) return;
      std::vector<ResultNumber> operands;
      for (const TermId operand : c.operands) {
        if (operand >= levels_.end(0)) operands.push_back(2 * NodeOf(operand));
      }
      const std::uint64_t fingerprint = Fingerprint64(c, evaluator_.value(id));
      table_.Add({.fingerprints = {&fingerprint, 1}, .operands = operands, .closure_size = size});
    });
    RETURN_IF_ERROR(status);
  }
  levels_.CompleteLevel();
  table_.CompleteLevel();
  return OkStatus();
}

StatusOr<LevelSize> Terms::EstimateLevel() {
  ASSIGN_OR_RETURN(const LevelEstimate level, worker::EstimateLevel(levels_, evaluator_, hasher_));
  constexpr double kNodeBytes = 150;  // Of the table, beside what levels and evaluator keep.
  const double base = KeptBytes({}, 1);
  return LevelSize{.graphs = level.graphs,
                   .bytes = KeptBytes({&level, 1}, 1) - base + level.graphs * kNodeBytes,
                   .cpu_seconds = level.cpu_seconds};
}

std::uint64_t Terms::OrdersOf(const Candidate& c) {
  std::vector<TermId> reached;
  for (const TermId operand : c.operands) {
    const auto closure = levels_.closure(operand);
    reached.insert(reached.end(), closure.begin(), closure.end());
  }
  std::sort(reached.begin(), reached.end());
  reached.erase(std::unique(reached.begin(), reached.end()), reached.end());
  ClosedSet set, next;
  for (const TermId id : reached) {
    table_.Extend(set, NodeOf(id), next);
    set = next;
  }
  Before before = set.before;
  for (const TermId operand : c.operands) {
    if (operand < levels_.end(0)) continue;
    before |= Before{1} << (8 * set.size + set.PositionOf(NodeOf(operand)));
  }
  return orders_.Count(set.size + 1, before);
}

Status Terms::WalkLast(const Wanted& wanted, const Visit& visit) {
  Status status = OkStatus();
  const std::uint64_t units = levels_.unit_count();
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    if (!wanted(unit)) continue;
    std::uint32_t number = 0;
    levels_.Walk(unit, [&](const Candidate& c) {
      if (!status.ok()) return;
      const auto value = evaluator_.Compute(c.signature, c.operands);
      status = value.status();
      if (!status.ok()) return;
      visited_ = &c;
      status = visit({.fingerprint = Fingerprint64(c, *value),
                      .unit = unit,
                      .number = number++,
                      .orders = OrdersOf(c)});
      visited_ = nullptr;
    });
    RETURN_IF_ERROR(status);
  }
  return OkStatus();
}

std::string Terms::TextOf(ResultNumber result) const {
  return levels_.table().Print(static_cast<TermId>(result / 2) + levels_.end(0));
}

std::vector<std::string> Terms::TextsOfLast() const {
  const auto o = static_cast<std::size_t>(visited_->operator_index);
  return {levels_.table().Print(universe_.operators[o].op, visited_->operands)};
}

}  // namespace tenon::worker
