#include "tests/verifier/mutate.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <variant>
#include <vector>

namespace tenon::verifier {
namespace {

using graph::Graph;
using graph::NodeId;
using ops::Operator;

class Mutation {
 public:
  Mutation(const rules::Rule& rule, std::mt19937_64& random) : rule_(rule), random_(random) {}

  std::optional<rules::Rule> Run() {
    switch (Below(12)) {
      case 0:
        return Condition();
      case 1:
        return Backwards();
      case 2:
      case 3:
      case 4:
        return Side(
            rule_.source, [](rules::Rule & r) -> auto& { return r.source; });
      default:
        return Side(
            rule_.target, [](rules::Rule & r) -> auto& { return r.target; });
    }
  }

 private:
  std::size_t Below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::int64_t Step() { return Below(2) == 0 ? 1 : -1; }

  // `where` with a condition dropped, or with another bound, or an equation made an inequality.
  std::optional<rules::Rule> Condition() {
    if (rule_.where.empty()) return std::nullopt;
    rules::Rule out = rule_;
    const auto at = out.where.begin() + static_cast<std::ptrdiff_t>(Below(out.where.size()));
    switch (Below(3)) {
      case 0:
        out.where.erase(at);
        break;
      case 1:
        at->p += base::Poly(Step());
        break;
      default:
        if (at->kind == base::Condition::Kind::kGe0) {
          at->p = -at->p;
        } else {
          at->kind = base::Condition::Kind::kGe0;
        }
    }
    return out;
  }

  // The converse, which need not be allowed wherever the rule is.
  std::optional<rules::Rule> Backwards() {
    rules::Rule out = rule_;
    std::swap(out.source, out.target);
    return out;
  }

  // The rule with one operator of `roots` changed; `roots_of` is where it stands in a rule.
  template <class F>
  std::optional<rules::Rule> Side(const std::vector<NodeId>& roots, const F& roots_of) {
    rules::Rule out = rule_;
    std::vector<NodeId> operators;
    for (NodeId id : rule_.graph.Reachable(roots)) {
      if (!rule_.graph.node(id).is_input()) operators.push_back(id);
    }
    if (operators.empty()) return std::nullopt;
    victim_ = operators[Below(operators.size())];
    std::vector<NodeId> image(rule_.graph.size(), graph::kNoNode);
    for (NodeId id : rule_.graph.Reachable(roots)) {
      const graph::Node& node = rule_.graph.node(id);
      if (node.is_input()) {
        image[std::size_t(id)] = id;
        continue;
      }
      Operator op = *node.op;
      std::vector<NodeId> operands;
      for (NodeId o : node.operands) operands.push_back(image[std::size_t(o)]);
      if (id == victim_ && !operands.empty() && Below(10) == 0) {
        image[std::size_t(id)] = operands[Below(operands.size())];  // The operator is left out.
        continue;
      }
      const bool wrapped = id == victim_ && Below(10) == 0;
      if (id == victim_ && !wrapped && !Change(op, operands)) return std::nullopt;
      auto added = out.graph.Add(op, operands, node.type->dtype);
      if (added.ok() && wrapped) added = out.graph.Add(AnyOf(1), {*added});
      if (!added.ok()) return std::nullopt;
      image[std::size_t(id)] = *added;
    }
    for (NodeId& id : roots_of(out)) id = image[std::size_t(id)];
    if (roots_of(out) == roots || out.target == out.source) return std::nullopt;
    // Most changes of shape are found at once; few of them are worth a try.
    for (std::size_t k = 0; k < out.target.size(); ++k) {
      const bool same = out.graph.shape(out.target[k]) == out.graph.shape(out.source[k]);
      if (!same && Below(10) != 0) return std::nullopt;
    }
    return out;
  }

  // Some operator for `arity` operands, with its default attributes.
  Operator AnyOf(std::size_t arity) {
    std::vector<const Operator*> fit;
    for (const Operator& op : ops::AllOperators()) {
      const ops::Info& info = ops::InfoOf(op);
      if (ops::IsOpaque(op)) continue;
      if (std::size_t(info.arity_min) <= arity && arity <= std::size_t(info.arity_max)) {
        fit.push_back(&op);
      }
    }
    return *fit[Below(fit.size())];
  }

  bool Change(Operator& op, std::vector<NodeId>& operands) {
    switch (Below(4)) {
      case 0:
        return Below(3) == 0 ? Another(op, operands.size()) : Similar(op);
      case 1:
        if (operands.size() < 2) return ChangeAttribute(op);
        std::swap(operands[Below(operands.size())], operands[Below(operands.size())]);
        return true;
      case 2: {
        if (operands.empty()) return ChangeAttribute(op);
        const std::vector<NodeId> others = rule_.graph.Reachable(rule_.source);
        operands[Below(operands.size())] = others[Below(others.size())];
        return true;
      }
      default:
        return ChangeAttribute(op);
    }
  }

  bool Another(Operator& op, std::size_t arity) {
    if (arity == 0) return ChangeAttribute(op);
    Operator other = AnyOf(arity);
    if (ops::NameOf(other) == ops::NameOf(op)) return false;
    Inherit(op, other);
    op = std::move(other);
    return true;
  }

  // What the two have in common stays.
  static void Inherit(const Operator& from, Operator& to) {
    for (const ops::Attr& a : ops::AttrsOf(from)) (void)ops::SetAttr(to, a.name, a.value);
  }

  bool Similar(Operator& op) {
    constexpr std::array<std::array<std::string_view, 7>, 5> kFamilies{{
        {"Add", "Sub", "Mul", "Div", "Max", "Min", "MatMul"},
        {"Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Silu", "Gelu"},
        {"Sqrt", "Reciprocal", "Erf", "LeakyRelu", "Relu", "Exp", "Neg"},
        {"MaxPool", "AveragePool", "MaxPool", "AveragePool", "MaxPool", "AveragePool", "MaxPool"},
        {"ReduceSum", "ReduceMean", "ReduceMax", "Softmax", "ReduceSum", "ReduceMax", "Softmax"},
    }};
    for (const auto& family : kFamilies) {
      if (std::find(family.begin(), family.end(), ops::NameOf(op)) == family.end()) continue;
      auto other = ops::OperatorByName(family[Below(family.size())]);
      if (!other || ops::NameOf(*other) == ops::NameOf(op)) return false;
      Inherit(op, *other);
      op = *other;
      return true;
    }
    return ChangeAttribute(op);
  }

  bool ChangeAttribute(Operator& op) {
    const std::vector<ops::Attr> attrs = ops::AttrsOf(op);
    if (attrs.empty()) return false;
    ops::Attr a = attrs[Below(attrs.size())];
    const ops::AttrValue before = a.value;
    std::visit([&](auto& value) { Alter(value); }, a.value);
    return !(a.value == before) && ops::SetAttr(op, a.name, a.value).ok();
  }

  void Alter(std::int64_t& v) { v += Step(); }
  void Alter(double& v) { v = Below(2) == 0 ? v * 2 : v + 1; }
  void Alter(ops::Activation& v) { v = static_cast<ops::Activation>(Below(4)); }
  void Alter(ops::Size& v) { v = v + ops::Size(Step()); }
  template <class T>
  void Alter(base::Short<T>& list) {
    if (list.empty()) return;
    T& one = list[static_cast<int>(Below(static_cast<std::size_t>(list.size())))];
    if (Below(2) == 0) {
      Alter(one);
    } else {
      std::swap(one, list[static_cast<int>(Below(static_cast<std::size_t>(list.size())))]);
    }
  }

  const rules::Rule& rule_;
  std::mt19937_64& random_;
  NodeId victim_ = graph::kNoNode;
};

}  // namespace

std::optional<rules::Rule> Mutated(const rules::Rule& rule, std::mt19937_64& random) {
  return Mutation(rule, random).Run();
}

}  // namespace tenon::verifier
