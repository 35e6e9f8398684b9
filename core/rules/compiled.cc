// Compiling walks the matched side depth first from each root. A node's operands are visited right
// after it, and the integers that have become known are used at once: the earlier a comparison, the
// smaller the search. Extents that are no bare symbol wait until all but one of their symbols are
// known (then they are solved for it, if it is linear) or all of them (then they are checked). The
// set of known symbols depends on the position in the program only, which is why no binding is ever
// undone. A further root starts at the nearest node that is bound already and climbs to the root
// over users, so that [A@B, A@C] looks at the users of A, not at all pairs of products.
#include "core/rules/compiled.h"

#include <algorithm>
#include <deque>
#include <type_traits>

#include <fmt/format.h>

#include "core/base/check.h"

namespace tenon::rules {

using base::Poly;
using base::Symbol;
using graph::NodeId;

SplitOperator SplitSizes(const ops::Operator& op) {
  SplitOperator out;
  out.skeleton = ops::MapSizes(op, [&](const ops::Size& s) {
    out.sizes.push_back(s);
    return ops::Size(0);
  });
  return out;
}

bool EqualButSizes(const ops::Operator& a, const ops::Operator& b) {
  if (a.index() != b.index()) return false;
  const auto equal = [](const auto& x, const auto& y) {
    using T = std::decay_t<decltype(x)>;
    if constexpr (std::is_same_v<T, ops::Size>) {
      return true;
    } else if constexpr (std::is_same_v<T, base::Short<ops::Size>>) {
      return x.size() == y.size();
    } else {
      return x == y;
    }
  };
  return std::visit(
      [&](const auto& x) {
        const auto& y = *std::get_if<std::decay_t<decltype(x)>>(&b);
        return std::apply(
            [&](const auto&... field) { return (equal(x.*field.member, y.*field.member) && ...); },
            x.Fields());
      },
      a);
}

void CopySizes(const ops::Operator& op, std::int64_t* out) {
  const auto put = [&](const ops::Size& s) { *out++ = s.is_constant() ? s.constant() : kNoSize; };
  const auto copy = [&](const auto& member) {
    using T = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<T, ops::Size>) {
      put(member);
    } else if constexpr (std::is_same_v<T, base::Short<ops::Size>>) {
      for (const ops::Size& s : member) put(s);
    }
  };
  std::visit(
      [&](const auto& o) {
        std::apply([&](const auto&... field) { (copy(o.*field.member), ...); }, o.Fields());
      },
      op);
}

class Compiler {
 public:
  Compiler(std::shared_ptr<const Rule> rule, Direction direction) {
    out_.rule_ = std::move(rule);
    out_.direction_ = direction;
    const bool forward = direction == Direction::kForward;
    out_.roots_ = forward ? out_.rule_->source : out_.rule_->target;
    out_.results_ = forward ? out_.rule_->target : out_.rule_->source;
  }

  std::optional<CompiledRule> Run(std::string* why) {
    if (Compile()) return std::move(out_);
    if (why != nullptr) *why = why_;
    return std::nullopt;
  }

 private:
  const graph::Graph& g() const { return out_.rule_->graph; }
  const base::Symbols& symbols() const { return g().symbols(); }
  bool Fail(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool Compile() {
    const std::size_t n = g().size();
    out_.matched_.assign(n, false);
    out_.op_of_.assign(n, -1);
    met_.assign(n, false);
    known_.assign(symbols().size(), false);
    if (out_.roots_.empty() || out_.roots_.size() != out_.results_.size()) {
      return Fail("the sides have no or differently many outputs");
    }
    if (out_.roots_ == out_.results_) return Fail("both sides are the same");
    for (NodeId id : g().Reachable(out_.roots_)) out_.matched_[std::size_t(id)] = true;
    if (!CollectOperators()) return false;
    for (std::size_t r = 0; r < out_.roots_.size(); ++r) {
      if (met_[std::size_t(out_.roots_[r])]) continue;
      if (g().node(out_.roots_[r]).is_input()) return Fail("an output is a bare input");
      if (r > 0) Climb(out_.roots_[r]);
      met_[std::size_t(out_.roots_[r])] = true;
      Visit(out_.roots_[r]);
    }
    if (!pending_.empty()) return Fail("a size cannot be solved for its symbols");
    Heights();
    return Conditions() && ResultsAreDetermined();
  }

  bool CollectOperators() {
    for (NodeId id : g().Reachable(out_.roots_)) {
      const graph::Node& n = g().node(id);
      if (n.is_input()) continue;
      if (ops::IsOpaque(*n.op)) return Fail("it contains an opaque operator");
      PatternOp p;
      p.op = n.op;
      SplitOperator split = SplitSizes(*n.op);
      p.skeleton = std::move(split.skeleton);
      p.sizes = std::move(split.sizes);
      p.symbolic = std::any_of(p.sizes.begin(), p.sizes.end(),
                               [](const Poly& s) { return !s.is_constant(); });
      p.commutative = ops::InfoOf(*n.op).commutative && n.operands.size() >= 2;
      p.constant = n.operands.empty();
      p.first_attribute = out_.attribute_count_;
      out_.attribute_count_ += static_cast<int>(p.sizes.size());
      out_.op_of_[std::size_t(id)] = static_cast<int>(out_.pattern_ops_.size());
      out_.pattern_ops_.push_back(std::move(p));
    }
    return true;
  }

  // Emits the step of an operator node whose class is bound, then those of its new operands.
  void Visit(NodeId id) {
    MatchStep step;
    step.node = id;
    std::vector<NodeId> below;
    const PatternOp& op = out_.pattern_op(id);
    for (std::size_t k = 0; op.symbolic && k < op.sizes.size(); ++k) {
      pending_.push_back({true, id, static_cast<int>(k), op.sizes[k]});
    }
    for (NodeId o : g().node(id).operands) {
      const graph::Node& operand = g().node(o);
      const bool first = !met_[std::size_t(o)];
      step.children.push_back({o, first, operand.is_input()});
      if (!first) continue;
      met_[std::size_t(o)] = true;
      if (!operand.is_input()) below.push_back(o);
      for (int a = 0; operand.is_input() && a < operand.shape().size(); ++a) {
        pending_.push_back({false, o, a, operand.shape()[a]});
      }
    }
    Schedule(step.integers);
    out_.steps_.push_back(std::move(step));
    for (NodeId o : below) Visit(o);
  }

  // A size that is known in a match, and the polynomial that it must equal.
  struct Pending {
    bool attribute;
    NodeId node;
    int index;
    Poly poly;
  };

  std::vector<Symbol> Unknown(const Poly& p) const {
    std::vector<Symbol> all, out;
    p.CollectSymbols(all, &symbols());
    for (Symbol s : all) {
      if (symbols().kind(s) == base::SymbolKind::kDiv || known_[s]) continue;
      if (std::find(out.begin(), out.end(), s) == out.end()) out.push_back(s);
    }
    return out;
  }

  // Whether `p` is coefficient * s + rest with neither mentioning s.
  bool SolveFor(const Poly& p, Symbol s, Poly& coefficient, Poly& rest) const {
    coefficient = rest = Poly();
    for (const Poly::Term& t : p.terms()) {
      Poly others(t.coefficient);
      bool factor = false;
      for (Symbol x : t.monomial) {
        if (x == 0) break;
        if (x == s && !factor) {
          factor = true;
        } else {
          others = others * Poly::Var(x);
        }
      }
      (factor ? coefficient : rest) += others;
    }
    return !coefficient.Mentions(s, symbols()) && !rest.Mentions(s, symbols());
  }

  // Uses what is pending as far as the known symbols allow. Ends: every round uses one or stops.
  void Schedule(std::vector<IntegerStep>& steps) {
    for (bool progress = true; progress;) {
      progress = false;
      for (std::size_t k = 0; k < pending_.size(); ++k) {
        IntegerStep step;
        if (!Use(pending_[k], step)) continue;
        steps.push_back(std::move(step));
        pending_.erase(pending_.begin() + std::ptrdiff_t(k));
        progress = true;
        break;
      }
    }
  }

  bool Use(const Pending& p, IntegerStep& step) {
    step.attribute = p.attribute;
    step.node = p.node;
    step.index = p.index;
    const std::vector<Symbol> unknown = Unknown(p.poly);
    const bool bare = p.poly.terms().size() == 1 && p.poly.terms()[0].coefficient == 1 &&
                      p.poly.terms()[0].monomial[0] != 0 && p.poly.terms()[0].monomial[1] == 0 &&
                      symbols().kind(p.poly.terms()[0].monomial[0]) != base::SymbolKind::kDiv;
    if (unknown.size() > 1) return false;
    if (unknown.empty()) {
      step.kind = IntegerStep::Kind::kCheck;
      step.rest = p.poly;
      if (p.poly.is_constant()) {
        step.kind = IntegerStep::Kind::kConstant;
        step.constant = p.poly.constant();
      } else if (bare) {
        step.kind = IntegerStep::Kind::kSame;
        step.symbol = p.poly.terms()[0].monomial[0];
      }
      return true;
    }
    step.symbol = unknown[0];
    step.kind = bare ? IntegerStep::Kind::kBind : IntegerStep::Kind::kSolve;
    if (!bare && !SolveFor(p.poly, step.symbol, step.coefficient, step.rest)) return false;
    step.at_least_one = symbols().kind(step.symbol) == base::SymbolKind::kDim;
    known_[step.symbol] = true;
    return true;
  }

  // Emits the step that finds candidates for a root which no earlier root contains: the shortest
  // way down from it to a node that is bound, walked upwards.
  void Climb(NodeId root) {
    MatchStep step;
    step.kind = MatchStep::Kind::kRoot;
    step.node = root;
    std::vector<MatchStep::Climb> up(g().size(), {graph::kNoNode, 0});
    std::vector<bool> seen(g().size(), false);
    std::deque<NodeId> queue{root};
    seen[std::size_t(root)] = true;
    while (!queue.empty() && step.from == graph::kNoNode) {
      const NodeId id = queue.front();
      queue.pop_front();
      const std::vector<NodeId>& operands = g().node(id).operands;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const std::size_t o = std::size_t(operands[k]);
        if (seen[o]) continue;
        seen[o] = true;
        up[o] = {id, static_cast<int>(k)};
        if (met_[o]) {
          step.from = operands[k];
          break;
        }
        queue.push_back(operands[k]);
      }
    }
    for (NodeId id = step.from; id != graph::kNoNode && id != root;) {
      step.path.push_back(up[std::size_t(id)]);
      id = up[std::size_t(id)].parent;
    }
    out_.steps_.push_back(std::move(step));
  }

  void Heights() {
    std::vector<int> height(g().size(), 0);
    for (NodeId id : g().Reachable(out_.roots_)) {
      for (NodeId o : g().node(id).operands) {
        height[std::size_t(id)] = std::max(height[std::size_t(id)], height[std::size_t(o)] + 1);
      }
      out_.height_ = std::max(out_.height_, height[std::size_t(id)]);
    }
  }

  // Every condition under which source and target are equal: they hold in either direction.
  bool Conditions() {
    out_.conditions_ = g().Requirements(out_.rule_->source);
    for (const base::Condition& c : out_.rule_->where) {
      const base::Condition normal = base::Normal(c);
      if (std::find(out_.conditions_.begin(), out_.conditions_.end(), normal) ==
          out_.conditions_.end()) {
        out_.conditions_.push_back(normal);
      }
    }
    std::erase_if(out_.conditions_,
                  [](const base::Condition& c) { return base::Trivial(c).value_or(false); });
    for (const base::Condition& c : out_.conditions_) {
      if (!c.p.valid()) return Fail("a condition overflows");
      if (!Determined(c.p)) return Fail(fmt::format("'{}' is not determined", Print(c, symbols())));
    }
    return true;
  }

  bool Determined(const Poly& p) const { return Unknown(p).empty(); }

  bool ResultsAreDetermined() {
    for (NodeId id : g().Reachable(out_.results_)) {
      const graph::Node& n = g().node(id);
      if (out_.matched_[std::size_t(id)]) continue;
      if (n.is_input()) {
        return Fail(fmt::format("it does not mention input '{}'", g().input(n.input).name));
      }
      if (ops::IsOpaque(*n.op)) return Fail("the other side contains an opaque operator");
      for (const Poly& s : SplitSizes(*n.op).sizes) {
        if (!s.valid() || !Determined(s)) {
          return Fail(
              fmt::format("size '{}' of the other side is not determined", symbols().Print(s)));
        }
      }
    }
    return true;
  }

  CompiledRule out_;
  std::string why_;
  std::vector<bool> met_;    // By node: its class is bound.
  std::vector<bool> known_;  // By symbol.
  std::vector<Pending> pending_;
};

std::optional<CompiledRule> CompiledRule::Compile(std::shared_ptr<const Rule> rule,
                                                  Direction direction, std::string* why) {
  CHECK(rule != nullptr);
  return Compiler(std::move(rule), direction).Run(why);
}

}  // namespace tenon::rules
