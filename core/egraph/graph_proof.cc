// All applications are made once more on terms, in a congruence closure that keeps a proof forest.
// Then the forest is walked from the pairs of outputs: an edge is an application, which is needed,
// or congruence, which needs what made the operands equal. Each pair of terms is walked once, so
// the walk costs no more than the forest, whatever the terms share.
//
// A forest is not the smallest proof. Steps are left out, the latest first, as long as the rest
// still shows it; with few steps that is cheap.
#include "core/egraph/graph_proof.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/egraph/closure.h"
#include "core/egraph/instances.h"
#include "core/rules/derivation.h"

namespace tenon::egraph {
namespace {

// With more steps than this, none is tried to be left out.
constexpr std::size_t kTriedMax = 200;

class Prover {
 public:
  Prover(const RuleSet& rules, const EGraph& g, const graph::Graph& from)
      : rules_(rules),
        commutative_(g.options().commutative),
        closure_(rules.vocabulary(), proof_.graph, commutative_),
        instances_(rules, g, proof_.graph) {
    proof_.graph = from;
    proof_.from = from.outputs();
  }

  StatusOr<GraphProof> Prove(std::span<const Application> applications, const graph::Graph& to) {
    std::vector<graph::NodeId> inputs;
    for (std::int32_t k = 0; k < std::int32_t(to.inputs().size()); ++k) {
      inputs.push_back(proof_.graph.input_node(k));
    }
    ASSIGN_OR_RETURN(proof_.to, graph::CopyInto(to, to.outputs(), proof_.graph, inputs));
    closure_.Grow();
    for (const Application& a : applications) {
      if (Shown(closure_)) break;
      ASSIGN_OR_RETURN(Instances::Made made, instances_.Repeat(a));
      closure_.Grow();
      closure_.Unite(made.left, made.right, std::int32_t(made_.size()));
      made_.push_back(std::move(made));
    }
    if (!Shown(closure_)) return base::Internal("the rules do not join the graphs again");
    for (std::size_t k = 0; k < proof_.from.size(); ++k) Walk(proof_.from[k], proof_.to[k]);
    std::vector<std::int32_t> needed(needed_.begin(), needed_.end());
    DropUseless(needed);
    Write(needed);
    return std::move(proof_);
  }

 private:
  bool Shown(const Closure& closure) const {
    for (std::size_t k = 0; k < proof_.from.size(); ++k) {
      if (!closure.Equal(proof_.from[k], proof_.to[k])) return false;
    }
    return true;
  }

  void Walk(TermNode a, TermNode b) {
    std::vector<std::pair<TermNode, TermNode>> open{{a, b}};
    while (!open.empty()) {
      const auto [from, to] = open.back();
      open.pop_back();
      if (from == to || !walked_.emplace(std::min(from, to), std::max(from, to)).second) continue;
      const std::vector<TermNode> path = closure_.Path(from, to);
      for (std::size_t k = 0; k + 1 < path.size(); ++k) {
        const std::int32_t application = closure_.Between(path[k], path[k + 1]);
        if (application >= 0) {
          needed_.insert(application);
          continue;
        }
        const std::vector<TermNode>& left = proof_.graph.node(path[k]).operands;
        const std::vector<TermNode>& right = proof_.graph.node(path[k + 1]).operands;
        for (std::size_t o = 0; o < left.size(); ++o) {
          const bool exchanged = application == Closure::kExchanged && o < 2;
          open.emplace_back(left[o], right[exchanged ? 1 - o : o]);
        }
      }
    }
  }

  bool Suffices(const std::vector<std::int32_t>& steps, std::size_t without) const {
    // Over the terms of these steps only.
    graph::Graph small;
    std::vector<TermNode> roots = proof_.from;
    roots.insert(roots.end(), proof_.to.begin(), proof_.to.end());
    for (const std::int32_t s : steps) {
      roots.push_back(made_[std::size_t(s)].left);
      roots.push_back(made_[std::size_t(s)].right);
    }
    std::vector<TermNode> image(proof_.graph.size(), graph::kNoNode), operands;
    for (std::int32_t k = 0; k < std::int32_t(proof_.graph.inputs().size()); ++k) {
      const TermNode id = proof_.graph.input_node(k);
      const graph::Input& input = proof_.graph.input(k);
      image[std::size_t(id)] = small.AddInput(input.name, input.kind, *proof_.graph.node(id).type);
    }
    for (const TermNode id : proof_.graph.Reachable(roots)) {
      const graph::Node& n = proof_.graph.node(id);
      if (n.is_input()) continue;
      operands.clear();
      for (const TermNode o : n.operands) operands.push_back(image[std::size_t(o)]);
      image[std::size_t(id)] = small.AddTrusted(n, operands);
    }
    Closure closure(rules_.vocabulary(), small, commutative_);
    closure.Grow();
    for (std::size_t k = 0; k < steps.size(); ++k) {
      if (k == without) continue;
      const Instances::Made& m = made_[std::size_t(steps[k])];
      closure.Unite(image[std::size_t(m.left)], image[std::size_t(m.right)], std::int32_t(k));
    }
    for (std::size_t k = 0; k < proof_.from.size(); ++k) {
      if (!closure.Equal(image[std::size_t(proof_.from[k])], image[std::size_t(proof_.to[k])])) {
        return false;
      }
    }
    return true;
  }

  void DropUseless(std::vector<std::int32_t>& steps) const {
    if (steps.size() > kTriedMax) return;
    for (std::size_t k = steps.size(); k-- > 0;) {
      if (Suffices(steps, k)) steps.erase(steps.begin() + std::ptrdiff_t(k));
    }
  }

  // Outputs of one application are one step.
  void Write(const std::vector<std::int32_t>& needed) {
    for (const std::int32_t k : needed) {
      const Instances::Made& m = made_[std::size_t(k)];
      const auto same = std::find_if(proof_.steps.begin(), proof_.steps.end(), [&](const auto& s) {
        return s.rule == m.rule && s.forward == m.forward && s.values == m.values &&
               s.inputs == m.inputs;
      });
      ProofStep& step =
          same != proof_.steps.end()
              ? *same
              : proof_.steps.emplace_back(ProofStep{
                    .rule = m.rule, .forward = m.forward, .values = m.values, .inputs = m.inputs});
      step.outputs.push_back(m.output);
      step.matched.push_back(m.left);
      step.made.push_back(m.right);
    }
  }

  const RuleSet& rules_;
  const bool commutative_;
  GraphProof proof_;
  Closure closure_;
  Instances instances_;
  std::vector<Instances::Made> made_;
  std::set<std::pair<TermNode, TermNode>> walked_;
  std::set<std::int32_t> needed_;
};

}  // namespace

StatusOr<GraphProof> ProveGraph(const RuleSet& rules, const EGraph& g,
                                std::span<const Application> applications, const graph::Graph& from,
                                const graph::Graph& to) {
  return Prover(rules, g, from).Prove(applications, to);
}

Status CheckProof(const GraphProof& proof, const RuleSet& rules, bool commutative) {
  std::vector<const rules::Rule*> by_number(std::size_t(rules.count()), nullptr);
  for (const EGraphRule& r : rules.directions()) {
    by_number[std::size_t(r.number())] = &r.compiled().rule();
  }
  graph::Graph terms = proof.graph;
  Closure closure(rules.vocabulary(), terms, commutative);
  closure.Grow();
  for (std::size_t k = 0; k < proof.steps.size(); ++k) {
    const ProofStep& step = proof.steps[k];
    const auto refuse = [&](std::string_view why) {
      return base::FailedPrecondition(fmt::format("step {} of the proof: {}", k + 1, why));
    };
    const rules::Rule* rule =
        step.rule < 0 || step.rule >= rules.count() ? nullptr : by_number[std::size_t(step.rule)];
    if (rule == nullptr) return refuse("there is no such rule");
    if (const std::string misfit = rules::Misfit(*rule, step.values, step.inputs, terms);
        !misfit.empty()) {
      return refuse(fmt::format("{}: {}", rule->name, misfit));
    }
    for (const std::int32_t output : step.outputs) {
      if (output < 0 || std::size_t(output) >= rule->source.size()) return refuse("no such output");
      const auto build = [&](graph::NodeId root) {
        return rules::BuildAt(*rule, root, step.values, step.inputs, terms);
      };
      ASSIGN_OR_RETURN(const TermNode source, build(rule->source[std::size_t(output)]));
      ASSIGN_OR_RETURN(const TermNode target, build(rule->target[std::size_t(output)]));
      if (terms.node(source).type->shape != terms.node(target).type->shape) {
        return refuse(fmt::format("{} has sides of different types", rule->name));
      }
      closure.Grow();
      closure.Unite(source, target, std::int32_t(k));
    }
  }
  for (std::size_t k = 0; k < proof.from.size(); ++k) {
    if (!closure.Equal(proof.from[k], proof.to[k])) {
      return base::FailedPrecondition(
          fmt::format("the steps of the proof do not make output {} equal", k + 1));
    }
  }
  return OkStatus();
}

}  // namespace tenon::egraph
