#include <fmt/core.h>

#include "core/rules/text.h"

namespace tenon::rules {
namespace {

struct ValuePrinter {
  const base::Symbols& symbols;
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return fmt::format("{}", v); }
  std::string operator()(ops::Activation v) const { return std::string(ops::NameOf(v)); }
  std::string operator()(const ops::Size& v) const { return symbols.Print(v); }
  template <class T>
  std::string operator()(const ops::Short<T>& list) const {
    std::string out = "[";
    for (const T& x : list) out += (out.size() > 1 ? "," : "") + (*this)(x);
    return out + "]";
  }
};

// "axis=0, keepdims=0": the attributes that differ from their defaults.
std::string PrintAttrs(const ops::Operator& op, const base::Symbols& symbols) {
  std::string out;
  const auto defaults = ops::AttrsOf(*ops::OperatorByName(ops::NameOf(op)));
  const auto attrs = ops::AttrsOf(op);
  for (std::size_t k = 0; k < attrs.size(); ++k) {
    if (attrs[k].value == defaults[k].value) continue;
    if (!out.empty()) out += ", ";
    out += fmt::format("{}={}", attrs[k].name, std::visit(ValuePrinter{symbols}, attrs[k].value));
  }
  return out;
}

}  // namespace

std::string PrintOperator(const ops::Operator& op, const base::Symbols& symbols) {
  const std::string attrs = PrintAttrs(op, symbols);
  return attrs.empty() ? std::string(ops::NameOf(op))
                       : fmt::format("{}({})", ops::NameOf(op), attrs);
}

std::string PrintTerm(const graph::Graph& g, graph::NodeId root) {
  const graph::Node& n = g.node(root);
  if (n.is_input()) return g.input(n.input).name;
  std::string out = fmt::format("{}(", ops::NameOf(*n.op));
  bool first = true;
  for (graph::NodeId o : n.operands) {
    if (!first) out += ", ";
    first = false;
    out += PrintTerm(g, o);
  }
  const std::string attrs = PrintAttrs(*n.op, g.symbols());
  if (!attrs.empty() && !first) out += ", ";
  return out + attrs + ")";
}

std::string_view NameOf(Expect expect) {
  switch (expect) {
    case Expect::kNone:
      return "none";
    case Expect::kProved:
      return "proved";
    case Expect::kRefuted:
      return "refuted";
    case Expect::kNotProved:
      return "not-proved";
    case Expect::kIllFormed:
      return "ill-formed";
    case Expect::kVacuous:
      return "vacuous";
  }
  return "none";
}

std::string PrintRule(const Rule& rule) {
  const graph::Graph& g = rule.graph;
  const base::Symbols& symbols = g.symbols();
  std::string out = fmt::format("rule {}\n", rule.name);
  std::string attrs;
  for (std::size_t s = 1; s < symbols.size(); ++s) {
    if (symbols.kind(base::Symbol(s)) != base::SymbolKind::kAttr) continue;
    attrs += (attrs.empty() ? "" : ", ") + symbols.name(base::Symbol(s));
  }
  if (!attrs.empty()) out += fmt::format("attr    {}\n", attrs);
  for (const auto& [keyword, kind] : {std::pair{"given  ", graph::InputKind::kActivation},
                                      std::pair{"weight ", graph::InputKind::kWeight}}) {
    std::string line;
    for (std::int32_t k = 0; k < std::int32_t(g.inputs().size()); ++k) {
      if (g.input(k).kind != kind) continue;
      std::string shape;
      for (const base::Poly& p : g.shape(g.input_node(k))) {
        shape += (shape.empty() ? "" : ",") + symbols.Print(p);
      }
      line += fmt::format(" {}[{}]", g.input(k).name, shape);
    }
    if (!line.empty()) out += fmt::format("{}{}\n", keyword, line);
  }
  const auto terms = [&](const std::vector<graph::NodeId>& ids) {
    std::string line;
    for (graph::NodeId id : ids) line += (line.empty() ? "" : ", ") + PrintTerm(g, id);
    return line;
  };
  out += fmt::format("source  {}\ntarget  {}\n", terms(rule.source), terms(rule.target));
  if (!rule.where.empty()) {
    std::string line;
    for (const base::Condition& c : rule.where) {
      line += (line.empty() ? "" : ", ") + base::Print(c, symbols);
    }
    out += fmt::format("where   {}\n", line);
  }
  if (rule.both) out += "both\n";
  if (rule.expect != Expect::kNone) out += fmt::format("expect  {}\n", NameOf(rule.expect));
  return out;
}

}  // namespace tenon::rules
