#include "core/egraph/instances.h"

#include "core/rules/derivation.h"

namespace tenon::egraph {

Instances::Instances(const RuleSet& rules, const EGraph& g, graph::Graph& terms)
    : rules_(rules), g_(g), graph_(terms), terms_(g.class_bound(), graph::kNoNode) {}

StatusOr<TermNode> Instances::TermOf(ClassId c) {
  TermNode& known = terms_[std::size_t(c)];
  if (known != graph::kNoNode) return known;
  if (g_.is_input(c)) return known = graph_.input_node(-1 - g_.op(c));
  std::vector<TermNode> operands;
  for (ClassId o : g_.first_operands(c)) {
    ASSIGN_OR_RETURN(const TermNode operand, TermOf(o));
    operands.push_back(operand);
  }
  const graph::DataType dtype = g_.vocabulary().dtype(g_.type(g_.Find(c)));
  ASSIGN_OR_RETURN(const TermNode made, graph_.Add(g_.vocabulary().op(g_.op(c)), operands, dtype));
  return terms_[std::size_t(c)] = made;
}

StatusOr<Instances::Made> Instances::Repeat(const Application& a) {
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
    return rules::BuildAt(compiled.rule(), root, made.values, made.inputs, graph_);
  };
  ASSIGN_OR_RETURN(made.left, build(compiled.roots()[std::size_t(a.output)]));
  ASSIGN_OR_RETURN(made.right, build(compiled.results()[std::size_t(a.output)]));
  return made;
}

}  // namespace tenon::egraph
