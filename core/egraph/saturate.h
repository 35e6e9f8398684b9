// Saturation: applying rules to an e-graph until nothing new follows, or a limit is met.
//
// An iteration finds all matches of all rules in the e-graph as it is, then applies them, then
// rebuilds. The outcome depends on the order of nodes and rules only.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/egraph/egraph.h"
#include "core/egraph/rule_set.h"

namespace tenon::egraph {

struct SaturationLimits {
  int iterations = 8;
  std::size_t nodes = 10'000;  // No node is created beyond; what is there may still become equal.
  std::size_t matches = SIZE_MAX;  // Of one direction of a rule in one iteration.
  // Without it no node is created at all: rules only unite classes that are there.
  bool create = true;
  // A direction with more matches than this in one iteration is not applied there: it rests for
  // `rest` iterations, and both numbers are doubled for it. Few rules with many matches would fill
  // the e-graph otherwise (egg's back-off scheduler).
  std::size_t backoff = SIZE_MAX;
  int rest = 2;
  // Without it, what depends on weights only is rewritten by rules alone that create nothing: two
  // transposes of a weight are the weight.
  bool weights = true;
};

// What the owner of a run has a say in. Each answer may depend on the e-graph only, except Stop's.
class Supervisor {
 public:
  virtual ~Supervisor() = default;
  // Asked often. True ends the run soon; the e-graph is sound and rebuilt, then.
  virtual bool Stop() { return false; }
  // Whether the rule may be applied where its outputs are these classes (canonical).
  virtual bool Allows(const EGraph&, const EGraphRule&, std::span<const ClassId>) { return true; }
  // It was applied there. The nodes from `first_made` on are those that were created for it.
  virtual void Applied(const EGraph&, const EGraphRule&, std::span<const ClassId> /*outputs*/,
                       NodeId /*first_made*/) {}
};

// Two classes; a run ends as soon as they are one.
struct Goal {
  ClassId a, b;
};

struct SaturationResult {
  enum class Stop : std::uint8_t { kGoal, kSaturated, kIterations, kNodes, kStopped };
  Stop stop = Stop::kSaturated;
  int iterations = 0;      // Begun.
  std::size_t unions = 0;  // By rules; congruence not counted.
};

// One union that a rule made: which classes and sizes it was applied to. For explanations.
struct Application {
  std::int32_t direction = 0;        // In RuleSet::directions().
  std::int32_t output = 0;           // Of the rule.
  std::vector<ClassId> inputs;       // By input of the rule; kNoClass for one off the matched side.
  std::vector<std::int64_t> values;  // By symbol of the rule.
};

// Holds buffers, so that many small runs allocate nothing. Thread-compatible. The rules must
// outlive it and may grow.
class Saturator {
 public:
  explicit Saturator(const RuleSet& rules);
  ~Saturator();

  // `g` is rebuilt. Rules below `first_new` are taken to have been applied to everything except
  // what changed since g.ClearChanges() (incremental matching); 0: every rule is new.
  SaturationResult Run(EGraph& g, const SaturationLimits& limits, std::optional<Goal> goal = {},
                       std::int32_t first_new = 0);

  // How many unions each rule made since the last call of ResetUses, by number.
  const std::vector<std::size_t>& uses() const { return uses_; }
  void ResetUses() { uses_.clear(); }

  // Later runs append what they apply to `to`, which outlives them; null: no longer.
  void Record(std::vector<Application>* to) { record_ = to; }
  // Later runs ask it. It outlives them; null: nobody is asked.
  void Supervise(Supervisor* supervisor) { supervisor_ = supervisor; }

 private:
  class Host;
  struct Matcher;
  struct Found {
    std::int32_t direction;
    std::uint32_t classes_at, values_at, inputs_at;
  };
  template <class F>
  void ForEachOp(const EGraphRule::PatternOp& p, const F& f) const;
  void TakeSnapshot(const EGraph& g);
  void TakeUsers(const EGraph& g);
  void MarkChanges(const EGraph& g);
  // How a direction has fared with SaturationLimits::backoff.
  struct Schedule {
    int rests_until = 0;  // The first iteration that it takes part in again.
    int times = 0;        // That it was sent to rest.
    bool missed = false;  // Some changes were not looked at.
  };
  bool Stopped() const { return supervisor_ != nullptr && supervisor_->Stop(); }
  void MatchAll(const EGraph& g, const SaturationLimits& limits, std::int32_t first_new,
                int iteration);
  void MatchScheduled(std::size_t direction, const SaturationLimits& limits, bool everywhere,
                      int iteration);
  std::size_t MatchRule(std::size_t direction, std::size_t limit, bool everywhere, bool weights);
  bool WakeAll();
  bool ApplyAll(EGraph& g, const SaturationLimits& limits, const std::optional<Goal>& goal,
                SaturationResult& result);
  void Make(EGraph& g, const EGraphRule& rule, const Found& found, const SaturationLimits& limits);
  std::span<const ClassId> Outputs(const EGraph& g, const EGraphRule& rule, const Found& found);

  const RuleSet& rules_;
  std::vector<std::size_t> uses_;
  std::vector<std::unique_ptr<Matcher>> matchers_;  // By direction.
  const EGraph* g_ = nullptr;                       // Of the run.

  // The e-graph, arranged for matching: nodes by operator, and by class and operator.
  std::vector<std::uint32_t> op_at_, class_at_, user_at_;
  std::vector<NodeId> by_op_, by_class_, users_;
  std::vector<std::uint32_t> next_;
  // What changed: nodes above changed classes, by operator, with how many edges below them the
  // nearest change lies (0: the node is new).
  struct Affected {
    OpId op;
    NodeId node;
    std::uint8_t depth;
  };
  std::vector<Affected> affected_;
  std::vector<std::uint8_t> class_depth_, node_depth_;  // kFar where nothing changed.
  std::vector<ClassId> queue_;

  std::vector<Found> found_;
  std::vector<ClassId> classes_, inputs_;
  std::vector<std::int64_t> values_;
  std::vector<Application>* record_ = nullptr;
  Supervisor* supervisor_ = nullptr;
  std::vector<Schedule> schedule_;  // By direction; of the run.
  std::vector<ClassId> made_, operands_, outputs_;
};

}  // namespace tenon::egraph
