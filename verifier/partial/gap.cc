#include "verifier/partial/gap.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

namespace tenon::partial {

using base::Symbol;
using base::SymbolKind;
using graph::NodeId;

namespace {

constexpr std::size_t kGapsMax = 6;
constexpr std::int64_t kSeamsMax = 16;

bool MentionsDims(const Poly& p, const base::Symbols& symbols) {
  std::vector<Symbol> all;
  p.CollectSymbols(all, &symbols);
  return std::any_of(all.begin(), all.end(),
                     [&](Symbol s) { return symbols.kind(s) == SymbolKind::kDim; });
}

// How often `by` more of `along` make `extent` larger by `by`.
std::optional<std::int64_t> Times(const Poly& extent, Symbol along, const base::Symbols& symbols) {
  return extent.LinearCoefficient(along, symbols);
}

class Maker {
 public:
  Maker(const rules::Rule& pair, const Gap& gap) : pair_(pair), gap_(gap), rule_(pair) {}

  StatusOr<Corrected> Make() {
    const base::Symbols::Substitution grown{{gap_.along, Poly::Var(gap_.along) + gap_.zeros}};
    std::vector<NodeId> inputs;
    for (std::size_t k = 0; k < pair_.graph.inputs().size(); ++k) {
      ASSIGN_OR_RETURN(const NodeId id, Padded(static_cast<std::int32_t>(k)));
      inputs.push_back(id);
    }
    ASSIGN_OR_RETURN(const std::vector<NodeId> copy,
                     graph::CopyInto(pair_.graph, pair_.target, rule_.graph, inputs, grown));
    ASSIGN_OR_RETURN(const NodeId target, Cut(copy[0]));
    Corrected out;
    rule_.target = {target};
    rule_.name = pair_.name + "/gap";
    rule_.both = false;
    rule_.expect = rules::Expect::kNone;
    out.elements = 1;
    for (const Poly& p : pair_.graph.shape(pair_.source[0])) out.elements = out.elements * p;
    out.rule = std::move(rule_);
    return out;
  }

 private:
  StatusOr<NodeId> Padded(std::int32_t number) {
    const NodeId id = rule_.graph.input_node(number);
    const graph::Shape shape = rule_.graph.shape(id);
    ops::Pad pad{.begins = ops::Short<ops::Size>::Filled(shape.size(), 0),
                 .ends = ops::Short<ops::Size>::Filled(shape.size(), 0)};
    bool padded = false;
    for (int axis = 0; axis < shape.size(); ++axis) {
      const auto times = Times(shape[axis], gap_.along, rule_.graph.symbols());
      if (times == 0) continue;
      if (times != 1) return Cannot(fmt::format("input '{}'", rule_.graph.input(number).name));
      pad.ends[axis] = gap_.zeros;
      padded = true;
    }
    if (!padded) return id;
    return rule_.graph.Add(pad, {id});
  }

  StatusOr<NodeId> Cut(NodeId id) {
    graph::Graph& g = rule_.graph;
    const graph::Shape shape = g.shape(rule_.source[0]);
    for (int axis = 0; axis < shape.size(); ++axis) {
      const auto times = Times(shape[axis], gap_.along, g.symbols());
      if (times == 0) continue;
      if (!times || *times < 0 || *times > kSeamsMax) return Cannot("the output");
      if (*times == 1) {
        ASSIGN_OR_RETURN(id, g.Add(ops::Slice{.axis = axis, .start = 0, .end = shape[axis]}, {id}));
        continue;
      }
      const Poly own = Poly::Var(gap_.along);
      if (!(shape[axis] == Poly(*times) * own)) return Cannot("the output");
      std::vector<NodeId> parts;
      for (std::int64_t k = 0; k < *times; ++k) {
        const Poly first = Poly(k) * (own + gap_.zeros);
        ASSIGN_OR_RETURN(const NodeId part,
                         g.Add(ops::Slice{.axis = axis, .start = first, .end = first + own}, {id}));
        parts.push_back(part);
      }
      ASSIGN_OR_RETURN(id, g.Add(ops::Concat{.axis = axis}, parts));
    }
    return id;
  }

  static Status Cannot(const std::string& what) {
    return base::FailedPrecondition(fmt::format("{} does not grow by the gap", what));
  }

  const rules::Rule& pair_;
  const Gap& gap_;
  rules::Rule rule_;
};

}  // namespace

std::vector<Gap> GapsOf(const rules::Rule& pair, const Regions& regions, Sizes& sizes) {
  const base::Symbols& symbols = pair.graph.symbols();
  // Lengths of intervals between cuts, of which no dim decides.
  std::vector<std::pair<std::int64_t, Poly>> lengths;
  for (const Axis& axis : regions.axes) {
    std::vector<Poly> ends;
    for (const Piece& piece : axis.pieces) {
      ends.push_back(piece.range.begin);
      ends.push_back(piece.range.end);
    }
    for (const Poly& from : ends) {
      for (const Poly& to : ends) {
        const Poly length = to - from;
        if (MentionsDims(length, symbols)) continue;
        const auto value = sizes.At(length, symbols, sizes.typical());
        const auto known = [&](const auto& l) { return l.second == length; };
        if (!value || *value < 1 || std::any_of(lengths.begin(), lengths.end(), known)) continue;
        lengths.emplace_back(*value, length);
      }
    }
  }
  std::stable_sort(lengths.begin(), lengths.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Gap> out;
  for (const auto& [value, length] : lengths) {
    for (Symbol s = 1; s < symbols.size(); ++s) {
      if (symbols.kind(s) != SymbolKind::kDim) continue;
      // Only images grow, and images of which the output has something.
      bool images = false;
      for (const graph::NodeId id : pair.graph.Reachable(pair.target)) {
        const graph::Node& node = pair.graph.node(id);
        if (!node.is_input()) continue;
        for (int axis = 0; axis < node.shape().size(); ++axis) {
          if (Times(node.shape()[axis], s, symbols) == 0) continue;
          images = images || axis >= 2;
        }
      }
      bool output = false;
      for (const Poly& p : pair.graph.shape(pair.source[0])) {
        output = output || Times(p, s, symbols) != 0;
      }
      if (images && output && out.size() < kGapsMax) out.push_back({s, length});
    }
  }
  return out;
}

StatusOr<Corrected> WithGap(const rules::Rule& pair, const Gap& gap) {
  return Maker(pair, gap).Make();
}

}  // namespace tenon::partial
