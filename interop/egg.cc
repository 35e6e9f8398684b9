#include "interop/egg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/rules/complete.h"
#include "interop/sizes.h"

namespace tenon::interop {
namespace {

using base::Poly;
using base::Symbol;
using base::SymbolKind;
using graph::Graph;
using graph::NodeId;

constexpr int kRoundsMax = 100;

Status NotCarried(const std::string& what) { return absl::UnimplementedError(what); }

std::optional<Symbol> Single(const Poly& p) {
  const bool single = p.valid() && p.terms().size() == 1 && p.terms()[0].coefficient == 1 &&
                      p.terms()[0].monomial[0] != 0 && p.terms()[0].monomial[1] == 0;
  if (!single) return std::nullopt;
  return p.terms()[0].monomial[0];
}

// The children that spell an attribute.
class AttributeWriter {
 public:
  AttributeWriter(const base::Symbols& symbols, std::set<Symbol>& used)
      : symbols_(symbols), used_(used) {}

  Status operator()(std::int64_t v) { return Put(std::to_string(v)); }
  Status operator()(double v) { return Put(fmt::format("{}", v)); }
  Status operator()(ops::Activation v) { return Put(std::string(ops::NameOf(v))); }
  Status operator()(const Poly& p) {
    if (p.is_constant()) return Put(std::to_string(p.constant()));
    const auto symbol = Single(p);
    if (!symbol) return NotCarried(fmt::format("it computes a size, {}", symbols_.Print(p)));
    if (symbols_.kind(*symbol) != SymbolKind::kAttr) {
      return NotCarried(fmt::format("an attribute is an extent, {}", symbols_.Print(p)));
    }
    used_.insert(*symbol);
    return Put("?" + symbols_.name(*symbol));
  }
  template <class T>
  Status operator()(const ops::Short<T>& list) {
    for (const T& x : list) RETURN_IF_ERROR((*this)(x));
    return OkStatus();
  }

  std::string text;

 private:
  Status Put(const std::string& child) {
    text += " " + child;
    return OkStatus();
  }
  const base::Symbols& symbols_;
  std::set<Symbol>& used_;
};

StatusOr<std::string> Term(const Graph& g, NodeId id, std::set<Symbol>& used) {
  const graph::Node& node = g.node(id);
  if (node.is_input()) return "?" + g.input(node.input).name;
  AttributeWriter attributes(g.symbols(), used);
  for (const ops::Attr& attr : ops::AttrsOf(*node.op)) {
    RETURN_IF_ERROR(std::visit(attributes, attr.value));
  }
  std::string text =
      fmt::format("({}_{}{}", ops::NameOf(*node.op), g.shape(id).size(), attributes.text);
  for (const NodeId operand : node.operands) {
    ASSIGN_OR_RETURN(const std::string child, Term(g, operand, used));
    text += " " + child;
  }
  return text + ")";
}

// The shapes of the rule's inputs if all that is known of them is that the source's operators
// accept them. `sizes` gets the symbols; `attributes` the ones that stand for the rule's.
StatusOr<std::vector<graph::Shape>> GeneralShapes(const rules::Rule& rule, Sizes& sizes,
                                                  std::map<Symbol, Symbol>& attributes) {
  const Graph& g = rule.graph;
  base::Symbols::Substitution by;
  for (std::size_t s = 1; s < g.symbols().size(); ++s) {
    const auto symbol = static_cast<Symbol>(s);
    if (g.symbols().kind(symbol) != SymbolKind::kAttr) continue;
    attributes[symbol] = sizes.Add(g.symbols().name(symbol), SymbolKind::kAttr);
    by[symbol] = Poly::Var(attributes[symbol]);
  }
  std::vector<graph::Shape> fresh;
  for (std::size_t k = 0; k < g.inputs().size(); ++k) {
    graph::Shape shape;
    for (int a = 0; a < g.shape(g.input_node(static_cast<std::int32_t>(k))).size(); ++a) {
      shape.push_back(Poly::Var(sizes.Add(fmt::format("e{}_{}", k, a))));
    }
    fresh.push_back(shape);
  }
  for (int round = 0; round < kRoundsMax; ++round) {
    Graph to;
    to.symbols() = sizes.symbols();
    std::vector<graph::Shape> shapes;
    std::vector<NodeId> inputs;
    for (const graph::Shape& shape : fresh) {
      graph::TensorType type;
      for (const Poly& p : shape) type.shape.push_back(sizes.Resolve(p));
      shapes.push_back(type.shape);
      inputs.push_back(
          to.AddInput(fmt::format("i{}", inputs.size()), graph::InputKind::kActivation, type));
    }
    ASSIGN_OR_RETURN(const std::vector<NodeId> roots,
                     graph::CopyInto(g, rule.source, to, inputs, by));
    const int before = sizes.solved();
    for (const base::Condition& c : to.Requirements(roots)) {
      if (c.kind == base::Condition::Kind::kEq0) sizes.Equate(c.p, 0);
    }
    if (sizes.solved() == before) return shapes;
  }
  return NotCarried("its shapes do not settle");
}

// `p` with the polynomials of `by` in place of symbols; nothing where one is missing.
std::optional<Poly> Replaced(const Poly& p, const std::map<Symbol, Poly>& by) {
  Poly out;
  for (const Poly::Term& t : p.terms()) {
    Poly product(t.coefficient);
    for (const Symbol s : t.monomial) {
      if (s == 0) break;
      const auto it = by.find(s);
      if (it == by.end()) return std::nullopt;
      product = product * it->second;
    }
    out += product;
  }
  return out;
}

Status CheckShapes(const rules::Rule& rule) {
  Sizes sizes;
  std::map<Symbol, Symbol> attributes;
  const auto general = GeneralShapes(rule, sizes, attributes);
  if (!general.ok()) return NotCarried(base::Message(general.status()));
  std::map<Symbol, Poly> is;  // What the general symbols are in the rule.
  std::set<Symbol> taken;
  for (const auto& [own, other] : attributes) is[other] = Poly::Var(own);
  const auto special = [&](std::size_t k) {
    std::string shape;
    for (const Poly& p : rule.graph.shape(rule.graph.input_node(static_cast<std::int32_t>(k)))) {
      shape += (shape.empty() ? "" : ",") + rule.graph.symbols().Print(p);
    }
    return NotCarried(fmt::format("it holds for special shapes, {}[{}]",
                                  rule.graph.input(static_cast<std::int32_t>(k)).name, shape));
  };
  for (const bool plain : {true, false}) {  // Extents that are symbols say what the others are.
    for (std::size_t k = 0; k < general->size(); ++k) {
      const graph::Shape& own = rule.graph.shape(rule.graph.input_node(std::int32_t(k)));
      for (int a = 0; a < own.size(); ++a) {
        const Poly& extent = (*general)[k][a];
        const auto symbol = Single(extent);
        if (plain != symbol.has_value()) continue;
        if (symbol && !is.contains(*symbol)) {
          const auto name = Single(own[a]);
          if (!name || !taken.insert(*name).second) return special(k);
          is[*symbol] = own[a];
        }
        const auto here = Replaced(extent, is);
        if (!here || !(*here == own[a])) return special(k);
      }
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::string> ToEgg(const rules::Rule& rule) {
  const Graph& g = rule.graph;
  if (rule.source.size() != 1) return NotCarried("it has several outputs");
  if (g.node(rule.source[0]).is_input()) return NotCarried("it rewrites an input");
  std::set<Symbol> in_source, in_target;
  ASSIGN_OR_RETURN(const std::string source, Term(g, rule.source[0], in_source));
  ASSIGN_OR_RETURN(const std::string target, Term(g, rule.target[0], in_target));
  for (const Symbol s : in_target) {
    if (!in_source.contains(s)) {
      return NotCarried(fmt::format("the target alone has {}", g.symbols().name(s)));
    }
  }
  const auto reached = g.Reachable(rule.source);
  for (const NodeId id : g.Reachable(rule.target)) {
    if (g.node(id).is_input() && !std::binary_search(reached.begin(), reached.end(), id)) {
      return NotCarried(fmt::format("the target alone has {}", g.input(g.node(id).input).name));
    }
  }
  const auto given = g.Requirements(rule.source);
  for (const base::Condition& c : rule.where) {
    if (!rules::Implied(c, given, g.symbols())) {
      return NotCarried(fmt::format("it needs {}", base::Print(c, g.symbols())));
    }
  }
  RETURN_IF_ERROR(CheckShapes(rule));
  return fmt::format("rewrite!(\"{}\"; \"{}\" => \"{}\")", rule.name, source, target);
}

}  // namespace tenon::interop
