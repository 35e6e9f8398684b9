#include "core/rules/derivation.h"

#include <fmt/core.h>

#include <algorithm>

#include "core/rules/text.h"

namespace tenon::rules {

using graph::Graph;
using graph::NodeId;

namespace {

// The subterm at a place; kNoNode when there is none.
NodeId At(const Graph& g, NodeId term, std::span<const std::int32_t> place) {
  for (const std::int32_t k : place) {
    const std::vector<NodeId>& operands = g.node(term).operands;
    if (k < 0 || std::size_t(k) >= operands.size()) return graph::kNoNode;
    term = operands[std::size_t(k)];
  }
  return term;
}

// Takes one step from `term`.
StatusOr<NodeId> Take(const Rule& rule, const DerivationStep& step, Graph& g, NodeId term) {
  if (step.output < 0 || std::size_t(step.output) >= rule.source.size()) {
    return base::InvalidArgument("the rule has no such output");
  }
  if (std::string why = Misfit(rule, step.values, step.inputs, g); !why.empty())
    return base::InvalidArgument(why);
  const NodeId left = (step.forward ? rule.source : rule.target)[std::size_t(step.output)];
  const NodeId right = (step.forward ? rule.target : rule.source)[std::size_t(step.output)];
  ASSIGN_OR_RETURN(const NodeId before, BuildAt(rule, left, step.values, step.inputs, g));
  ASSIGN_OR_RETURN(const NodeId after, BuildAt(rule, right, step.values, step.inputs, g));
  if (At(g, term, step.place) != before) {
    return base::InvalidArgument(
        fmt::format("{} does not stand at that place", PrintTerm(g, before)));
  }
  return Replaced(g, term, step.place, after);
}

}  // namespace

std::string Misfit(const Rule& rule, std::span<const std::int64_t> values,
                   std::span<const NodeId> inputs, const Graph& g) {
  const base::Symbols& symbols = rule.graph.symbols();
  if (values.size() != symbols.size()) return "it has not as many sizes as the rule";
  if (inputs.size() != rule.graph.inputs().size()) return "it has not as many inputs";
  for (base::Symbol s = 1; s < symbols.size(); ++s) {
    if (symbols.kind(s) == base::SymbolKind::kDim && values[s] < 1) {
      return fmt::format("size {} is below 1", symbols.Print(base::Poly::Var(s)));
    }
  }
  std::vector<base::Condition> conditions = rule.graph.Requirements(rule.source);
  conditions.insert(conditions.end(), rule.where.begin(), rule.where.end());
  for (const base::Condition& c : conditions) {
    if (base::Holds(c, symbols, values) != true) {
      return fmt::format("{} does not hold", base::Print(c, symbols));
    }
  }
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const NodeId input = inputs[k];
    if (input == graph::kNoNode) continue;
    const auto number = static_cast<std::int32_t>(k);
    const graph::Shape& wanted = rule.graph.shape(rule.graph.input_node(number));
    bool fits = wanted.size() == g.shape(input).size();
    for (int axis = 0; fits && axis < wanted.size(); ++axis) {
      const auto extent = symbols.Eval(wanted[axis], values);
      fits = extent && g.shape(input)[axis] == base::Poly(*extent);
    }
    if (!fits) return fmt::format("input '{}' has another shape", rule.graph.input(number).name);
  }
  return "";
}

StatusOr<NodeId> BuildAt(const Rule& rule, NodeId root, std::span<const std::int64_t> values,
                         std::span<const NodeId> inputs, Graph& to) {
  const Graph& from = rule.graph;
  bool sized = true;
  const auto at = [&](const ops::Size& s) {
    const auto v = from.symbols().Eval(s, values);
    sized = sized && v.has_value();
    return ops::Size(v.value_or(1));
  };
  // All tensors of a match have one type; the rule's own says nothing.
  const auto given = std::ranges::find_if(inputs, [](NodeId id) { return id != graph::kNoNode; });
  const auto dtype_of = [&](const graph::Node& n) {
    return given == inputs.end() ? n.type->dtype : to.node(*given).type->dtype;
  };
  std::vector<NodeId> image(from.size(), graph::kNoNode);
  for (NodeId id : from.Reachable(std::span(&root, 1))) {
    const graph::Node& n = from.node(id);
    if (n.is_input()) {
      image[std::size_t(id)] = inputs[std::size_t(n.input)];
      if (image[std::size_t(id)] == graph::kNoNode) {
        return base::InvalidArgument(
            fmt::format("input '{}' is missing", from.input(n.input).name));
      }
      continue;
    }
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
    const ops::Operator op = ops::MapSizes(*n.op, at);
    if (!sized) return base::InvalidArgument("a size cannot be evaluated");
    ASSIGN_OR_RETURN(image[std::size_t(id)], to.Add(op, operands, dtype_of(n)));
  }
  return image[std::size_t(root)];
}

StatusOr<NodeId> Replaced(Graph& g, NodeId term, std::span<const std::int32_t> place, NodeId part) {
  std::vector<NodeId> above;
  for (const std::int32_t k : place) {
    above.push_back(term);
    term = At(g, term, std::span(&k, 1));
    if (term == graph::kNoNode) return base::InvalidArgument("there is no such place");
  }
  if (g.shape(part) != g.shape(term)) return base::InvalidArgument("the shape changes");
  for (std::size_t k = above.size(); k-- > 0;) {
    const graph::Node n = g.node(above[k]);  // A copy: Add moves the nodes.
    std::vector<NodeId> operands = n.operands;
    operands[std::size_t(place[k])] = part;
    ASSIGN_OR_RETURN(part, g.Add(*n.op, operands, n.type->dtype));
  }
  return part;
}

StatusOr<Replayed> Replay(const Derivation& derivation,
                          std::span<const std::shared_ptr<const Rule>> rules) {
  Replayed out{derivation.graph, {derivation.from}};
  for (std::size_t k = 0; k < derivation.steps.size(); ++k) {
    const DerivationStep& step = derivation.steps[k];
    const auto wrong = [&](std::string_view why) {
      return base::FailedPrecondition(fmt::format("step {}: {}", k + 1, why));
    };
    if (step.rule < 0 || std::size_t(step.rule) >= rules.size()) return wrong("no such rule");
    const Rule& rule = *rules[std::size_t(step.rule)];
    const auto next = Take(rule, step, out.graph, out.states.back());
    if (!next.ok()) {
      return wrong(
          fmt::format("{}: {}", StepName(rule.name, step.forward), base::Message(next.status())));
    }
    out.states.push_back(*next);
  }
  if (out.states.back() != derivation.to) {
    return base::FailedPrecondition("the last term is not the one that was to be derived");
  }
  return out;
}

std::string StepName(std::string_view rule, bool forward) {
  return forward ? std::string(rule) : fmt::format("{} (backwards)", rule);
}

}  // namespace tenon::rules
