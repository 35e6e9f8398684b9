// Matching reads a snapshot: nodes sorted by operator, and by class and operator, with canonical
// operands, so that all candidates for a pattern node lie side by side. Making it is two counting
// sorts an iteration. Applying then changes the e-graph without disturbing the search.
//
// Incremental matching: a match that was not there before involves a new node or a class that was
// united, at most `height` edges below its root. A walk upwards from the changed classes finds the
// nodes that may be such roots, each with its distance from the nearest change; nothing else is
// looked at. (A rule with several roots is matched everywhere: the others may have changed alone.)
#include "core/egraph/saturate.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/rules/match_engine.h"

namespace tenon::egraph {

inline constexpr std::uint8_t kFar = 255;
// A supervisor is asked once for so many nodes looked at, or matches applied.
inline constexpr std::size_t kAskEvery = 64;
// Numbers of the schedule are doubled at most so often.
inline constexpr int kTimesMax = 20;

// The snapshot as a host of matching (core/rules/match_engine.h), for one direction of a rule.
class Saturator::Host {
 public:
  Host(const Saturator& s, const EGraphRule& rule) : s_(s), rule_(rule) {}

  std::int32_t class_of(NodeId n) const { return g().class_of(n); }
  std::span<const ClassId> operands(NodeId n) const { return g().operands(n); }
  bool Accepts(NodeId n, graph::NodeId pattern) const {
    const OpId op = g().op(n);
    const EGraphRule::PatternOp& p = rule_.pattern(pattern);
    return p.op >= 0 ? op == p.op : op >= 0 && words().skeleton(op) == p.skeleton;
  }
  void CopySizes(NodeId n, std::int64_t* out) const {
    std::ranges::copy(words().sizes(g().op(n)), out);
  }
  template <class F>
  bool ForEachNode(ClassId c, graph::NodeId pattern, const F& f) const {
    const NodeId* it = s_.by_class_.data() + s_.class_at_[std::size_t(c)];
    const NodeId* end = s_.by_class_.data() + s_.class_at_[std::size_t(c) + 1];
    const EGraphRule::PatternOp& p = rule_.pattern(pattern);
    if (p.op < 0) return std::all_of(it, end, f);
    if (end - it > 16) {
      it = std::lower_bound(it, end, p.op, [&](NodeId n, OpId op) { return g().op(n) < op; });
    } else {
      while (it < end && g().op(*it) != p.op) ++it;
    }
    for (; it < end && g().op(*it) == p.op; ++it) {
      if (!f(*it)) return false;
    }
    return true;
  }
  template <class F>
  void ForEachWith(graph::NodeId pattern, const F& f) const {
    s_.ForEachOp(rule_.pattern(pattern), [&](std::span<const NodeId> nodes) {
      return std::all_of(nodes.begin(), nodes.end(), f);
    });
  }
  template <class F>
  void ForEachUser(ClassId c, const F& f) const {
    for (std::uint32_t k = s_.user_at_[std::size_t(c)]; k < s_.user_at_[std::size_t(c) + 1]; ++k) {
      f(s_.users_[k]);
    }
  }
  graph::DataType dtype(ClassId c) const { return words().dtype(g().type(c)); }
  const graph::Extents* extents(ClassId c) const { return &words().extents(g().type(c)); }
  bool weights_only(ClassId c) const { return g().weights_only(c); }
  bool both_orders() const { return g().options().commutative; }

 private:
  const EGraph& g() const { return *s_.g_; }
  const Vocabulary& words() const { return s_.g_->vocabulary(); }
  const Saturator& s_;
  const EGraphRule& rule_;
};

struct Saturator::Matcher {
  Matcher(const Saturator& s, const EGraphRule& rule)
      : serial(rule.serial()), host(s, rule), engine(rule.compiled(), host) {}
  std::int64_t serial;
  Host host;
  rules::MatchEngine<Host> engine;
};

Saturator::Saturator(const RuleSet& rules) : rules_(rules) {}
Saturator::~Saturator() = default;

// Calls f with the nodes of each operator that the pattern may be, until it returns false.
template <class F>
void Saturator::ForEachOp(const EGraphRule::PatternOp& p, const F& f) const {
  const auto nodes = [&](OpId op) -> std::span<const NodeId> {
    if (std::size_t(op) + 1 >= op_at_.size()) return {};  // Interned after the snapshot.
    const std::uint32_t at = op_at_[std::size_t(op)];
    return std::span(by_op_).subspan(at, op_at_[std::size_t(op) + 1] - at);
  };
  if (p.op >= 0) {
    f(nodes(p.op));
    return;
  }
  for (OpId op : rules_.vocabulary().with_skeleton(p.skeleton)) {
    if (!f(nodes(op))) return;
  }
}

void Saturator::TakeSnapshot(const EGraph& g) {
  op_at_.assign(g.vocabulary().op_count() + 1, 0);
  class_at_.assign(g.class_bound() + 1, 0);
  const NodeId bound = static_cast<NodeId>(g.node_bound());
  std::size_t count = 0;
  for (NodeId n = 0; n < bound; ++n) {
    if (!g.alive(n) || g.is_input(n)) continue;
    ++count;
    ++op_at_[std::size_t(g.op(n)) + 1];
    ++class_at_[std::size_t(g.class_of(n)) + 1];
  }
  for (std::size_t k = 1; k < op_at_.size(); ++k) op_at_[k] += op_at_[k - 1];
  for (std::size_t k = 1; k < class_at_.size(); ++k) class_at_[k] += class_at_[k - 1];
  by_op_.resize(count);
  by_class_.resize(count);
  next_.assign(op_at_.begin(), op_at_.end());
  for (NodeId n = 0; n < bound; ++n) {
    if (g.alive(n) && !g.is_input(n)) by_op_[next_[std::size_t(g.op(n))]++] = n;
  }
  next_.assign(class_at_.begin(), class_at_.end());
  for (NodeId n : by_op_) by_class_[next_[std::size_t(g.class_of(n))]++] = n;
  if (rules_.several_outputs()) TakeUsers(g);
}

void Saturator::TakeUsers(const EGraph& g) {
  user_at_.assign(g.class_bound() + 1, 0);
  users_.clear();
  for (std::size_t c = 0; c < g.class_bound(); ++c) {
    user_at_[c] = static_cast<std::uint32_t>(users_.size());
    if (g.Find(ClassId(c)) != ClassId(c)) continue;
    g.ForEachUse(ClassId(c), [&](NodeId n) {
      if (g.alive(n)) users_.push_back(n);
    });
  }
  user_at_.back() = static_cast<std::uint32_t>(users_.size());
}

void Saturator::MarkChanges(const EGraph& g) {
  class_depth_.assign(g.class_bound(), kFar);
  node_depth_.assign(g.node_bound(), kFar);
  affected_.clear();
  queue_.clear();
  const auto mark = [&](ClassId c, std::uint8_t depth) {
    if (class_depth_[std::size_t(c)] != kFar) return;
    class_depth_[std::size_t(c)] = depth;
    queue_.push_back(c);
  };
  const auto affect = [&](NodeId n, std::uint8_t depth) {
    if (!g.alive(n) || g.is_input(n) || node_depth_[std::size_t(n)] != kFar) return;
    node_depth_[std::size_t(n)] = depth;
    affected_.push_back({g.op(n), n, depth});
  };
  for (NodeId n = g.first_new(); n < NodeId(g.node_bound()); ++n) affect(n, 0);
  for (ClassId c : g.changes()) mark(g.Find(c), 0);
  const int height = rules_.height();
  for (std::size_t k = 0; k < queue_.size(); ++k) {
    const auto above = static_cast<std::uint8_t>(class_depth_[std::size_t(queue_[k])] + 1);
    if (above > height)
      break;  // The queue is sorted by depth, so the first one found is the least.
    g.ForEachUse(queue_[k], [&](NodeId n) {
      if (!g.alive(n)) return;
      affect(n, above);
      mark(g.class_of(n), above);
    });
  }
  std::sort(affected_.begin(), affected_.end(), [](const Affected& x, const Affected& y) {
    return x.op != y.op ? x.op < y.op : x.node < y.node;
  });
}

// Returns how many matches were found, at most `limit`.
std::size_t Saturator::MatchRule(std::size_t direction, std::size_t limit, bool everywhere,
                                 bool weights) {
  const EGraphRule& rule = rules_.directions()[direction];
  const int height = rule.compiled().height();
  std::size_t count = 0;
  const auto found = [&] {
    const rules::MatchEngine<Host>& engine = matchers_[direction]->engine;
    found_.push_back(
        {static_cast<std::int32_t>(direction), static_cast<std::uint32_t>(classes_.size()),
         static_cast<std::uint32_t>(values_.size()), static_cast<std::uint32_t>(inputs_.size())});
    for (graph::NodeId id : rule.captures()) classes_.push_back(engine.class_at(id));
    if (rule.symbolic() || record_ != nullptr) {
      values_.insert(values_.end(), engine.values().begin(), engine.values().end());
    }
    if (record_ != nullptr) {
      const graph::Graph& g = rule.compiled().rule().graph;
      for (std::int32_t k = 0; k < std::int32_t(g.inputs().size()); ++k) {
        const graph::NodeId id = g.input_node(k);
        inputs_.push_back(rule.compiled().matched(id) ? engine.class_at(id) : kNoClass);
      }
    }
    return ++count < limit;
  };
  std::size_t looked_at = 0;
  const auto at = [&](NodeId n) {
    if (!weights && g_->weights_only(g_->class_of(n))) return true;
    if (++looked_at % kAskEvery == 0 && Stopped()) return false;
    // A set that was truncated and grew again has other rules in old places.
    std::unique_ptr<Matcher>& matcher = matchers_[direction];
    if (matcher == nullptr || matcher->serial != rule.serial()) {
      matcher = std::make_unique<Matcher>(*this, rule);
    }
    return matcher->engine.At(n, found);
  };
  if (everywhere) {
    ForEachOp(rule.root(), [&](std::span<const NodeId> nodes) {
      return std::all_of(nodes.begin(), nodes.end(), at);
    });
    return count;
  }
  const auto ops = [&](OpId op) {
    auto it = std::lower_bound(affected_.begin(), affected_.end(), op,
                               [](const Affected& x, OpId o) { return x.op < o; });
    for (; it != affected_.end() && it->op == op; ++it) {
      if (it->depth <= height && !at(it->node)) return false;
    }
    return true;
  };
  if (rule.root().op >= 0) {
    ops(rule.root().op);
  } else {
    const auto span = rules_.vocabulary().with_skeleton(rule.root().skeleton);
    std::all_of(span.begin(), span.end(), ops);
  }
  return count;
}

void Saturator::MatchScheduled(std::size_t direction, const SaturationLimits& limits,
                               bool everywhere, int iteration) {
  Schedule& schedule = schedule_[direction];
  if (schedule.rests_until > iteration) {
    schedule.missed = true;
    return;
  }
  everywhere = everywhere || schedule.missed;
  schedule.missed = false;
  const bool bounded = limits.backoff < SIZE_MAX >> schedule.times;
  const std::size_t bound = bounded ? limits.backoff << schedule.times : SIZE_MAX - 1;
  const std::size_t found = found_.size(), classes = classes_.size(), values = values_.size(),
                    inputs = inputs_.size();
  const std::size_t count =
      MatchRule(direction, std::min(limits.matches, bound + 1), everywhere,
                limits.weights || rules_.directions()[direction].steps().empty());
  if (count <= bound) return;
  found_.resize(found);
  classes_.resize(classes);
  values_.resize(values);
  inputs_.resize(inputs);
  schedule.rests_until = iteration + 1 + (limits.rest << schedule.times);
  schedule.times = std::min(schedule.times + 1, kTimesMax);
  schedule.missed = true;
}

// Whether some direction has missed something; none rests from now on.
bool Saturator::WakeAll() {
  bool missed = false;
  for (Schedule& schedule : schedule_) {
    schedule.rests_until = 0;
    missed = missed || schedule.missed;
  }
  return missed;
}

void Saturator::MatchAll(const EGraph& g, const SaturationLimits& limits, std::int32_t first_new,
                         int iteration) {
  found_.clear();
  classes_.clear();
  values_.clear();
  inputs_.clear();
  const auto& directions = rules_.directions();
  if (first_new > 0) MarkChanges(g);
  for (std::size_t d = 0; d < directions.size() && !Stopped(); ++d) {
    const bool everywhere =
        directions[d].number() >= first_new || directions[d].everywhere(limits.create);
    MatchScheduled(d, limits, everywhere, iteration);
  }
}

void Saturator::Make(EGraph& g, const EGraphRule& rule, const Found& found,
                     const SaturationLimits& limits) {
  made_.clear();
  const ClassId* captured = classes_.data() + found.classes_at;
  for (const EGraphRule::Step& step : rule.steps()) {
    operands_.clear();
    bool complete = true;
    for (std::int32_t o : step.operands) {
      operands_.push_back(o >= 0 ? captured[o] : made_[std::size_t(~o)]);
      complete = complete && operands_.back() != kNoClass;
    }
    OpId op = step.op;
    if (complete && op < 0) {
      const std::span values(values_.data() + found.values_at,
                             rule.compiled().rule().graph.symbols().size());
      const base::Symbols& symbols = rule.compiled().rule().graph.symbols();
      const ops::Operator concrete = ops::MapSizes(*step.source, [&](const ops::Size& s) {
        const auto v = symbols.Eval(s, values);
        complete = complete && v.has_value();
        return ops::Size(v.value_or(0));
      });
      const graph::DataType dtype = g.vocabulary().dtype(g.type(g.Find(captured[0])));
      if (complete) op = g.vocabulary().InternOperator(concrete, dtype);
    }
    if (!complete) {
      made_.push_back(kNoClass);
    } else if (limits.create && g.node_count() < limits.nodes) {
      made_.push_back(g.Add(op, operands_));
    } else {
      made_.push_back(g.Find(op, operands_));
    }
  }
}

// The classes of a match's outputs as they are now. Valid until the next call.
std::span<const ClassId> Saturator::Outputs(const EGraph& g, const EGraphRule& rule,
                                            const Found& found) {
  outputs_.clear();
  for (std::size_t k = 0; k < rule.results().size(); ++k) {
    outputs_.push_back(g.Find(classes_[found.classes_at + k]));
  }
  return outputs_;
}

// Returns whether the goal is reached.
bool Saturator::ApplyAll(EGraph& g, const SaturationLimits& limits, const std::optional<Goal>& goal,
                         SaturationResult& result) {
  std::size_t applied = 0;
  for (const Found& found : found_) {
    if (++applied % kAskEvery == 0 && Stopped()) return false;
    const EGraphRule& rule = rules_.directions()[std::size_t(found.direction)];
    if (supervisor_ != nullptr && !supervisor_->Allows(g, rule, Outputs(g, rule, found))) continue;
    const NodeId first_made = static_cast<NodeId>(g.node_bound());
    Make(g, rule, found, limits);
    for (std::size_t k = 0; k < rule.results().size(); ++k) {
      const std::int32_t r = rule.results()[k];
      const ClassId root = classes_[found.classes_at + k];
      const ClassId made =
          r >= 0 ? classes_[found.classes_at + std::size_t(r)] : made_[std::size_t(~r)];
      // Types differ only if the rule is false there: not even shapes agree.
      if (made == kNoClass || g.type(g.Find(made)) != g.type(g.Find(root))) continue;
      if (!g.Union(root, made, {rule.number()})) continue;
      if (record_ != nullptr) {
        const graph::Graph& source = rule.compiled().rule().graph;
        const auto inputs = inputs_.begin() + found.inputs_at;
        const auto values = values_.begin() + found.values_at;
        record_->push_back({found.direction, static_cast<std::int32_t>(k),
                            std::vector(inputs, inputs + std::ptrdiff_t(source.inputs().size())),
                            std::vector(values, values + std::ptrdiff_t(source.symbols().size()))});
      }
      ++result.unions;
      uses_.resize(std::max(uses_.size(), std::size_t(rule.number()) + 1));
      ++uses_[std::size_t(rule.number())];
      if (goal && g.Equal(goal->a, goal->b)) return true;
    }
    if (supervisor_ != nullptr) {
      supervisor_->Applied(g, rule, Outputs(g, rule, found), first_made);
    }
  }
  return false;
}

SaturationResult Saturator::Run(EGraph& g, const SaturationLimits& limits, std::optional<Goal> goal,
                                std::int32_t first_new) {
  using Stop = SaturationResult::Stop;
  CHECK(&g.vocabulary() == &rules_.vocabulary());
  SaturationResult result;
  g_ = &g;
  matchers_.resize(rules_.directions().size());
  schedule_.assign(rules_.directions().size(), {});
  g.Rebuild();
  while (true) {
    if (goal && g.Equal(goal->a, goal->b)) {
      result.stop = Stop::kGoal;
      return result;
    }
    if (result.iterations == limits.iterations) {
      result.stop = Stop::kIterations;
      return result;
    }
    if (limits.create && g.node_count() >= limits.nodes) {
      result.stop = Stop::kNodes;
      return result;
    }
    TakeSnapshot(g);
    MatchAll(g, limits, first_new, result.iterations++);
    // Changes that were not looked at stay marked.
    if (Stopped()) {
      result.stop = Stop::kStopped;
      return result;
    }
    g.ClearChanges();
    first_new = rules_.count();
    const bool reached = ApplyAll(g, limits, goal, result);
    g.Rebuild();
    if (Stopped()) {
      result.stop = Stop::kStopped;
      return result;
    }
    if (!reached && g.changes().empty() && !WakeAll()) return result;
  }
}

}  // namespace tenon::egraph
