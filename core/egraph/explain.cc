#include "core/egraph/explain.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "core/base/check.h"
#include "core/egraph/load.h"

namespace tenon::egraph {

using TermNode = graph::NodeId;  // A node of the graph that holds the terms.

namespace {

// Congruence closure over the nodes of a graph, with a proof forest.
class Closure {
 public:
  // Why two nodes are equal: the application of a rule, or equal operands.
  static constexpr std::int32_t kCongruence = -1;
  struct Edge {
    TermNode to = graph::kNoNode;
    std::int32_t application = kCongruence;
  };

  Closure(Vocabulary& vocabulary, const graph::Graph& terms)
      : vocabulary_(vocabulary), terms_(terms) {}

  // Takes the nodes that are new in the graph.
  void Grow() {
    for (auto id = static_cast<TermNode>(class_.size()); id < TermNode(terms_.size()); ++id) {
      class_.push_back(id);
      members_.push_back({id});
      uses_.emplace_back();
      forest_.emplace_back();
      const graph::Node& n = terms_.node(id);
      ops_.push_back(n.is_input() ? -1 : vocabulary_.InternOperator(*n.op, n.type->dtype));
      for (TermNode o : n.operands) uses_[std::size_t(Find(o))].push_back(id);
      if (!n.is_input()) Sign(id);
    }
    Close();
  }

  void Unite(TermNode a, TermNode b, std::int32_t application) {
    pending_.push_back({a, b, application});
    Close();
  }

  bool Equal(TermNode a, TermNode b) const { return Find(a) == Find(b); }

  // The nodes from `a` to `b` in the forest, both included; they are equal.
  std::vector<TermNode> Path(TermNode a, TermNode b) const {
    std::vector<TermNode> up = ToRoot(a), down = ToRoot(b);
    while (up.size() > 1 && down.size() > 1 && up[up.size() - 2] == down[down.size() - 2]) {
      up.pop_back();
      down.pop_back();
    }
    CHECK(up.back() == down.back());
    for (std::size_t k = down.size() - 1; k-- > 0;) up.push_back(down[k]);
    return up;
  }
  // The application between neighbours of a path.
  std::int32_t Between(TermNode a, TermNode b) const {
    const Edge& edge = forest_[std::size_t(a)];
    return edge.to == b ? edge.application : forest_[std::size_t(b)].application;
  }

 private:
  struct Union {
    TermNode a, b;
    std::int32_t application;
  };

  TermNode Find(TermNode id) const { return class_[std::size_t(id)]; }

  std::vector<TermNode> ToRoot(TermNode id) const {
    std::vector<TermNode> out{id};
    while (forest_[std::size_t(id)].to != graph::kNoNode) {
      out.push_back(id = forest_[std::size_t(id)].to);
    }
    return out;
  }

  // Looks for a node with equal operands.
  void Sign(TermNode id) {
    std::vector<std::int32_t> key{ops_[std::size_t(id)]};
    for (TermNode o : terms_.node(id).operands) key.push_back(Find(o));
    const auto [it, fresh] = signed_.try_emplace(std::move(key), id);
    if (!fresh) pending_.push_back({id, it->second, kCongruence});
  }

  void Close() {
    // Each union makes one class fewer, so this ends.
    for (std::size_t k = 0; k < pending_.size(); ++k) {
      const Union u = pending_[k];  // A copy: Sign appends.
      TermNode keep = Find(u.a), drop = Find(u.b);
      if (keep == drop) continue;
      Link(u.a, u.b, u.application);
      if (members_[std::size_t(keep)].size() < members_[std::size_t(drop)].size()) {
        std::swap(keep, drop);
      }
      std::vector<TermNode>& kept = members_[std::size_t(keep)];
      for (TermNode m : members_[std::size_t(drop)]) {
        class_[std::size_t(m)] = keep;
        kept.push_back(m);
      }
      members_[std::size_t(drop)].clear();
      const std::vector<TermNode> users = std::move(uses_[std::size_t(drop)]);
      for (TermNode user : users) {
        uses_[std::size_t(keep)].push_back(user);
        Sign(user);
      }
    }
    pending_.clear();
  }

  // A new edge from `a`, which becomes the root of its tree before.
  void Link(TermNode a, TermNode b, std::int32_t application) {
    Edge edge{b, application};
    for (TermNode id = a; id != graph::kNoNode;) {
      std::swap(forest_[std::size_t(id)], edge);
      const TermNode next = edge.to;
      edge.to = id;
      id = next;
    }
  }

  Vocabulary& vocabulary_;
  const graph::Graph& terms_;
  std::vector<OpId> ops_;
  std::vector<TermNode> class_;
  std::vector<std::vector<TermNode>> members_, uses_;
  std::vector<Edge> forest_;
  std::map<std::vector<std::int32_t>, TermNode> signed_;
  std::vector<Union> pending_;
};

class Explainer {
 public:
  Explainer(const RuleSet& rules, const EGraph& g, const graph::Graph& instance)
      : rules_(rules), g_(g), closure_(rules.vocabulary(), out_.graph) {
    out_.graph = instance;
    terms_.resize(g.class_bound(), graph::kNoNode);
  }

  StatusOr<rules::Derivation> Explain(std::span<const Application> applications, TermNode from,
                                      TermNode to) {
    closure_.Grow();
    for (const Application& a : applications) {
      if (closure_.Equal(from, to)) break;
      RETURN_IF_ERROR(Repeat(a));
    }
    if (!closure_.Equal(from, to)) return base::Internal("the rules do not join the terms again");
    if (!Write(from, to)) {
      return base::ResourceExhausted(
          fmt::format("the derivation has more than {} steps", kDerivationStepsMax));
    }
    out_.from = from;
    out_.to = to;
    RETURN_IF_ERROR(CutLoops());
    return std::move(out_);
  }

 private:
  // The term that a class began with.
  StatusOr<TermNode> TermOf(ClassId c) {
    TermNode& known = terms_[std::size_t(c)];
    if (known != graph::kNoNode) return known;
    if (g_.is_input(c)) return known = out_.graph.input_node(-1 - g_.op(c));
    std::vector<TermNode> operands;
    for (ClassId o : g_.first_operands(c)) {
      ASSIGN_OR_RETURN(const TermNode operand, TermOf(o));
      operands.push_back(operand);
    }
    const graph::DataType dtype = g_.vocabulary().dtype(g_.type(g_.Find(c)));
    ASSIGN_OR_RETURN(const TermNode made,
                     out_.graph.Add(g_.vocabulary().op(g_.op(c)), operands, dtype));
    return terms_[std::size_t(c)] = made;
  }

  // Both sides of the rule as terms, united.
  Status Repeat(const Application& a) {
    const EGraphRule& direction = rules_.directions()[std::size_t(a.direction)];
    const rules::CompiledRule& compiled = direction.compiled();
    Made made{.forward = compiled.direction() == rules::Direction::kForward,
              .rule = direction.number(),
              .output = a.output,
              .values = a.values};
    for (ClassId c : a.inputs) {
      made.inputs.push_back(graph::kNoNode);
      if (c == kNoClass) continue;
      ASSIGN_OR_RETURN(made.inputs.back(), TermOf(c));
    }
    const auto build = [&](graph::NodeId root) {
      return rules::BuildAt(compiled.rule(), root, made.values, made.inputs, out_.graph);
    };
    ASSIGN_OR_RETURN(const TermNode left, build(compiled.roots()[std::size_t(a.output)]));
    ASSIGN_OR_RETURN(const TermNode right, build(compiled.results()[std::size_t(a.output)]));
    made.left = left;
    closure_.Grow();
    made_.push_back(std::move(made));
    closure_.Unite(left, right, static_cast<std::int32_t>(made_.size() - 1));
    return OkStatus();
  }

  // Appends the steps from one term to the other, which stand at place_. False: too many.
  bool Write(TermNode from, TermNode to) {
    const std::vector<TermNode> path = closure_.Path(from, to);
    for (std::size_t k = 0; k + 1 < path.size(); ++k) {
      const std::int32_t application = closure_.Between(path[k], path[k + 1]);
      if (application == Closure::kCongruence) {
        if (!WriteOperands(path[k], path[k + 1])) return false;
        continue;
      }
      if (out_.steps.size() == kDerivationStepsMax) return false;
      const Made& m = made_[std::size_t(application)];
      out_.steps.push_back({.rule = m.rule,
                            .forward = m.forward == (m.left == path[k]),
                            .output = m.output,
                            .values = m.values,
                            .inputs = m.inputs,
                            .place = place_});
    }
    return true;
  }

  // Their operands are equal, by what was known earlier than that they are equal themselves: the
  // recursion ends.
  bool WriteOperands(TermNode from, TermNode to) {
    const std::size_t arity = out_.graph.node(from).operands.size();
    for (std::size_t k = 0; k < arity; ++k) {
      const TermNode a = out_.graph.node(from).operands[k], b = out_.graph.node(to).operands[k];
      if (a == b) continue;
      place_.push_back(static_cast<std::int32_t>(k));
      if (!Write(a, b)) return false;
      place_.pop_back();
    }
    return true;
  }

  // Steps that lead back to a term that was there before are left out.
  Status CutLoops() {
    std::vector<std::shared_ptr<const rules::Rule>> by_number(std::size_t(rules_.count()));
    for (const EGraphRule& r : rules_.directions()) {
      by_number[std::size_t(r.number())] = r.compiled().shared_rule();
    }
    ASSIGN_OR_RETURN(const rules::Replayed replayed, rules::Replay(out_, by_number));
    std::vector<rules::DerivationStep> kept;
    for (std::size_t k = 0; k < out_.steps.size();) {
      // From the last time that this term stood there.
      std::size_t last = k;
      for (std::size_t j = k; j < replayed.states.size(); ++j) {
        if (replayed.states[j] == replayed.states[k]) last = j;
      }
      if (last == out_.steps.size()) break;
      kept.push_back(out_.steps[last]);
      k = last + 1;
    }
    out_.steps = std::move(kept);
    return OkStatus();
  }

  struct Made {
    bool forward = true;
    std::int32_t rule = 0, output = 0;
    std::vector<std::int64_t> values;
    std::vector<TermNode> inputs;
    TermNode left = graph::kNoNode;
  };

  const RuleSet& rules_;
  const EGraph& g_;
  rules::Derivation out_;
  Closure closure_;
  std::vector<TermNode> terms_;  // By class.
  std::vector<Made> made_;
  std::vector<std::int32_t> place_;
};

}  // namespace

StatusOr<std::optional<rules::Derivation>> Derive(const RuleSet& rules,
                                                  const graph::Graph& instance, graph::NodeId from,
                                                  graph::NodeId to,
                                                  const SaturationLimits& limits) {
  EGraph g(rules.vocabulary(), {.keep_operands = true});
  std::vector<graph::NodeId> roots = instance.outputs();
  roots.push_back(from);
  roots.push_back(to);
  const std::vector<ClassId> classes = AddGraph(g, instance, roots);
  const Goal goal{classes[classes.size() - 2], classes.back()};
  Saturator saturator(rules);
  std::vector<Application> applications;
  saturator.Record(&applications);
  if (saturator.Run(g, limits, goal).stop != SaturationResult::Stop::kGoal) return std::nullopt;
  ASSIGN_OR_RETURN(rules::Derivation found,
                   Explainer(rules, g, instance).Explain(applications, from, to));
  return found;
}

}  // namespace tenon::egraph
