// Rewriting rebuilds the graph from its outputs downwards, depth first, replacing a matched root by
// the root of the target wherever it is used. The target's own nodes are made from the rebuilt
// inputs of the match. A node that is asked for while it is being rebuilt depends on itself: that
// is the cycle which rules with several outputs can close, and the only one, since the old graph
// has none.
//
// Nodes of the target that the source contains, too, are rebuilt from the matched nodes rather than
// made anew, so that nothing is computed twice because it is written differently (x+y for y+x);
// except where they contain a root, since the target means the root's old value there.
#include "core/rules/match.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/rules/match_engine.h"

namespace tenon::rules {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;

GraphIndex::GraphIndex(const Graph& g)
    : g_(g),
      live_(g.size(), false),
      users_at_(g.size() + 1, 0),
      by_kind_(ops::AllOperators().size()) {
  std::vector<NodeId> operands;
  const auto distinct = [&](const graph::Node& n) -> const std::vector<NodeId>& {
    operands = n.operands;
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    return operands;
  };
  for (NodeId id : g.Reachable(g.outputs())) {
    live_[std::size_t(id)] = true;
    const graph::Node& n = g.node(id);
    if (n.is_input()) continue;
    nodes_.push_back(id);
    by_kind_[n.op->index()].push_back(id);
    for (NodeId o : distinct(n)) ++users_at_[std::size_t(o) + 1];
  }
  for (std::size_t k = 0; k < g.size(); ++k) users_at_[k + 1] += users_at_[k];
  users_.resize(users_at_.back());
  std::vector<std::uint32_t> next(users_at_.begin(), users_at_.end() - 1);
  for (NodeId id : nodes_) {
    for (NodeId o : distinct(g.node(id))) users_[next[std::size_t(o)]++] = id;
  }
}

std::span<const NodeId> GraphIndex::users(NodeId id) const {
  const std::size_t at = users_at_[std::size_t(id)];
  return std::span(users_).subspan(at, users_at_[std::size_t(id) + 1] - at);
}

namespace {

// A graph as a host of matching (core/rules/match_engine.h): every node is its own class.
class GraphHost {
 public:
  GraphHost(const CompiledRule& rule, const GraphIndex& index) : rule_(rule), index_(index) {}

  std::int32_t class_of(std::int32_t node) const { return node; }
  std::span<const std::int32_t> operands(std::int32_t node) const { return at(node).operands; }
  bool Accepts(std::int32_t node, NodeId pattern) const {
    const graph::Node& n = at(node);
    if (n.is_input()) return false;
    const PatternOp& p = rule_.pattern_op(pattern);
    if (n.op->index() != p.op->index()) return false;
    if (n.op == p.op) return true;
    return p.symbolic ? EqualButSizes(*n.op, *p.op) : *n.op == *p.op;
  }
  void CopySizes(std::int32_t node, std::int64_t* out) const {
    rules::CopySizes(*at(node).op, out);
  }
  template <class F>
  bool ForEachNode(std::int32_t c, NodeId, const F& f) const {
    return f(c);
  }
  template <class F>
  void ForEachWith(NodeId pattern, const F& f) const {
    for (NodeId id : index_.of_kind(rule_.pattern_op(pattern).op->index())) {
      if (Accepts(id, pattern)) f(id);
    }
  }
  template <class F>
  void ForEachUser(std::int32_t c, const F& f) const {
    for (NodeId id : index_.users(c)) f(id);
  }
  graph::DataType dtype(std::int32_t c) const { return at(c).type->dtype; }
  const graph::Extents* extents(std::int32_t c) const {
    const graph::Shape& shape = at(c).shape();
    if (!graph::IsConcrete(shape)) return nullptr;
    // Asked for a few nodes a match, and again and again for the same ones.
    if (scratch_node_ != c) {
      scratch_ = graph::Concrete(shape);
      scratch_node_ = c;
    }
    return &scratch_;
  }
  bool weights_only(std::int32_t c) const { return at(c).weights_only; }
  bool both_orders() const { return true; }

 private:
  const graph::Node& at(std::int32_t id) const { return index_.graph().node(id); }
  const CompiledRule& rule_;
  const GraphIndex& index_;
  mutable graph::Extents scratch_;
  mutable std::int32_t scratch_node_ = -1;
};

Match MatchOf(const CompiledRule& rule, const MatchEngine<GraphHost>& engine) {
  Match m;
  m.nodes.assign(engine.classes().begin(), engine.classes().end());
  for (std::size_t k = 0; k < m.nodes.size(); ++k) {
    if (!rule.matched(NodeId(k))) m.nodes[k] = kNoNode;
  }
  m.values.assign(engine.values().begin(), engine.values().end());
  m.dtype = engine.dtype();
  return m;
}

void Collect(const CompiledRule& rule, MatchEngine<GraphHost>& engine, NodeId root,
             const MatchLimits& limits, std::vector<Match>& out) {
  engine.At(root, [&] {
    Match m = MatchOf(rule, engine);
    // Exchanged operands can lead to one match twice; only neighbours are compared.
    if (out.empty() || !(out.back() == m)) out.push_back(std::move(m));
    return out.size() < limits.matches;
  });
}

}  // namespace

std::vector<Match> MatchesAt(const CompiledRule& rule, const GraphIndex& index, NodeId root,
                             const MatchLimits& limits) {
  std::vector<Match> out;
  const GraphHost host(rule, index);
  MatchEngine<GraphHost> engine(rule, host);
  Collect(rule, engine, root, limits, out);
  return out;
}

std::vector<Match> Matches(const CompiledRule& rule, const GraphIndex& index,
                           const MatchLimits& limits) {
  std::vector<Match> out;
  const GraphHost host(rule, index);
  MatchEngine<GraphHost> engine(rule, host);
  for (NodeId id : index.of_kind(rule.root_op().op->index())) {
    if (out.size() >= limits.matches) break;
    Collect(rule, engine, id, limits, out);
  }
  return out;
}

RuleIndex::RuleIndex(std::vector<CompiledRule> rules)
    : rules_(std::move(rules)), by_kind_(ops::AllOperators().size()) {
  for (std::size_t k = 0; k < rules_.size(); ++k) {
    by_kind_[rules_[k].root_op().op->index()].push_back(static_cast<int>(k));
  }
}

RuleIndex RuleIndex::Of(std::span<const std::shared_ptr<const Rule>> rules) {
  std::vector<CompiledRule> compiled;
  for (const auto& rule : rules) {
    for (Direction d : {Direction::kForward, Direction::kBackward}) {
      if (d == Direction::kBackward && !rule->both) continue;
      if (auto c = CompiledRule::Compile(rule, d)) compiled.push_back(std::move(*c));
    }
  }
  return RuleIndex(std::move(compiled));
}

namespace {

// Makes the target of a match in `to`. `rebuilt` gives the node of `to` for a matched node.
template <class F>
class TargetBuilder {
 public:
  TargetBuilder(const CompiledRule& rule, const Match& match, Graph& to, F rebuilt)
      : rule_(rule), match_(match), to_(to), rebuilt_(std::move(rebuilt)) {
    const Graph& g = rule.rule().graph;
    image_.assign(g.size(), kNoNode);
    above_root_.assign(g.size(), false);
    for (NodeId id : rule.roots()) above_root_[std::size_t(id)] = !g.node(id).is_input();
    for (NodeId id : g.Reachable(rule.roots())) {
      for (NodeId o : g.node(id).operands) {
        if (above_root_[std::size_t(o)]) above_root_[std::size_t(id)] = true;
      }
    }
  }

  StatusOr<NodeId> Build(NodeId id) {
    NodeId& image = image_[std::size_t(id)];
    if (image != kNoNode) return image;
    const graph::Node& n = rule_.rule().graph.node(id);
    if (n.is_input() || (rule_.matched(id) && !above_root_[std::size_t(id)])) {
      ASSIGN_OR_RETURN(image, rebuilt_(match_.nodes[std::size_t(id)]));
      return image;
    }
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) {
      ASSIGN_OR_RETURN(NodeId operand, Build(o));
      operands.push_back(operand);
    }
    bool evaluated = true;
    const ops::Operator op = ops::MapSizes(*n.op, [&](const ops::Size& s) {
      const auto v = rule_.rule().graph.symbols().Eval(s, match_.values);
      evaluated = evaluated && v.has_value();
      return ops::Size(v.value_or(0));
    });
    if (!evaluated) return base::FailedPrecondition("a size of the target overflows");
    const auto added = to_.Add(op, operands, match_.dtype);
    if (!added.ok()) return base::FailedPrecondition(base::Message(added.status()));
    image = *added;
    return image;
  }

  // The image of result k, checked against the type of what it replaces.
  StatusOr<NodeId> Result(std::size_t k, const graph::TensorType& old) {
    ASSIGN_OR_RETURN(NodeId id, Build(rule_.results()[k]));
    if (*to_.node(id).type == old) return id;
    return base::FailedPrecondition(
        fmt::format("rule '{}' would change the type of a tensor", rule_.rule().name));
  }

 private:
  const CompiledRule& rule_;
  const Match& match_;
  Graph& to_;
  F rebuilt_;
  std::vector<NodeId> image_;
  std::vector<bool> above_root_;
};

// One rewriting of one graph.
class Rewriting {
 public:
  Rewriting(const Graph& from, const CompiledRule& rule, const Match& match)
      : from_(from),
        rule_(rule),
        image_(from.size(), kNoNode),
        result_of_(from.size(), -1),
        open_(from.size(), false),
        builder_(rule, match, to_, Rebuilt{*this}) {
    to_.symbols() = from.symbols();
    for (std::size_t k = 0; k < rule.roots().size(); ++k) {
      result_of_[std::size_t(match.nodes[std::size_t(rule.roots()[k])])] = static_cast<int>(k);
    }
  }

  StatusOr<Graph> Run() {
    for (std::int32_t k = 0; k < std::int32_t(from_.inputs().size()); ++k) {
      const NodeId id = from_.input_node(k);
      const NodeId copy =
          to_.AddInput(from_.input(k).name, from_.input(k).kind, *from_.node(id).type);
      if (result_of_[std::size_t(id)] < 0) image_[std::size_t(id)] = copy;
    }
    std::vector<NodeId> outputs;
    for (NodeId id : from_.outputs()) {
      ASSIGN_OR_RETURN(NodeId output, Rebuild(id));
      outputs.push_back(output);
    }
    to_.SetOutputs(std::move(outputs));
    return std::move(to_);
  }

 private:
  struct Rebuilt {
    Rewriting& self;
    StatusOr<NodeId> operator()(NodeId id) const { return self.Rebuild(id); }
  };

  // The node of the new graph for an old one. An explicit stack: models are deep.
  StatusOr<NodeId> Rebuild(NodeId root) {
    std::vector<NodeId> stack{root};
    while (!stack.empty()) {
      const NodeId id = stack.back();
      if (image_[std::size_t(id)] != kNoNode) {
        stack.pop_back();
        continue;
      }
      if (const int k = result_of_[std::size_t(id)]; k >= 0) {
        if (open_[std::size_t(id)]) return Cycle();
        open_[std::size_t(id)] = true;
        ASSIGN_OR_RETURN(image_[std::size_t(id)],
                         builder_.Result(std::size_t(k), *from_.node(id).type));
        continue;
      }
      const graph::Node& n = from_.node(id);
      const std::size_t depth = stack.size();
      for (NodeId o : n.operands) {
        if (image_[std::size_t(o)] == kNoNode) stack.push_back(o);
      }
      if (stack.size() > depth) continue;
      std::vector<NodeId> operands;
      for (NodeId o : n.operands) operands.push_back(image_[std::size_t(o)]);
      image_[std::size_t(id)] = to_.AddTrusted(n, operands);
    }
    return image_[std::size_t(root)];
  }

  Status Cycle() const {
    return base::FailedPrecondition(
        fmt::format("rule '{}' would make a tensor depend on itself here", rule_.rule().name));
  }

  const Graph& from_;
  const CompiledRule& rule_;
  Graph to_;
  std::vector<NodeId> image_;   // By old node.
  std::vector<int> result_of_;  // By old node: which root it is, or -1.
  std::vector<bool> open_;      // By old node: its replacement has been begun.
  TargetBuilder<Rebuilt> builder_;
};

}  // namespace

StatusOr<std::vector<NodeId>> BuildTarget(const CompiledRule& rule, const Match& match, Graph& g) {
  const auto same = [](NodeId id) -> StatusOr<NodeId> { return id; };
  TargetBuilder builder(rule, match, g, same);
  std::vector<NodeId> out;
  for (std::size_t k = 0; k < rule.results().size(); ++k) {
    const NodeId root = match.nodes[std::size_t(rule.roots()[k])];
    const graph::TensorType old = *g.node(root).type;
    ASSIGN_OR_RETURN(NodeId id, builder.Result(k, old));
    out.push_back(id);
  }
  return out;
}

StatusOr<Graph> Rewrite(const Graph& g, const CompiledRule& rule, const Match& match) {
  return Rewriting(g, rule, match).Run();
}

}  // namespace tenon::rules
