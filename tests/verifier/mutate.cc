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
    rules::Rule out = rule_;
    if (!out.where.empty() && Below(12) == 0) {
      out.where.erase(out.where.begin() + static_cast<std::ptrdiff_t>(Below(out.where.size())));
      return out;
    }
    std::vector<NodeId> operators;
    for (NodeId id : rule_.graph.Reachable(rule_.target)) {
      if (!rule_.graph.node(id).is_input()) operators.push_back(id);
    }
    if (operators.empty()) return std::nullopt;
    victim_ = operators[Below(operators.size())];
    std::vector<NodeId> image(rule_.graph.size(), graph::kNoNode);
    for (NodeId id : rule_.graph.Reachable(rule_.target)) {
      const graph::Node& node = rule_.graph.node(id);
      if (node.is_input()) {
        image[std::size_t(id)] = id;
        continue;
      }
      Operator op = *node.op;
      std::vector<NodeId> operands;
      for (NodeId o : node.operands) operands.push_back(image[std::size_t(o)]);
      if (id == victim_ && !Change(op, operands)) return std::nullopt;
      const auto added = out.graph.Add(op, operands, node.type->dtype);
      if (!added.ok()) return std::nullopt;
      image[std::size_t(id)] = *added;
    }
    for (NodeId& id : out.target) id = image[std::size_t(id)];
    if (out.target == rule_.target || out.target == out.source) return std::nullopt;
    // Most changes of shape are found at once; few of them are worth a try.
    for (std::size_t k = 0; k < out.target.size(); ++k) {
      const bool same = out.graph.shape(out.target[k]) == out.graph.shape(out.source[k]);
      if (!same && Below(10) != 0) return std::nullopt;
    }
    return out;
  }

 private:
  std::size_t Below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }
  std::int64_t Step() { return Below(2) == 0 ? 1 : -1; }

  bool Change(Operator& op, std::vector<NodeId>& operands) {
    switch (Below(4)) {
      case 0:
        return Similar(op);
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

  bool Similar(Operator& op) {
    constexpr std::array<std::array<std::string_view, 5>, 4> kFamilies{{
        {"Add", "Sub", "Mul", "MatMul", ""},
        {"Relu", "Sigmoid", "Tanh", "Exp", "Neg"},
        {"MaxPool", "AveragePool", "", "", ""},
        {"ReduceSum", "ReduceMean", "Softmax", "", ""},
    }};
    for (const auto& family : kFamilies) {
      if (std::find(family.begin(), family.end(), ops::NameOf(op)) == family.end()) continue;
      auto other = ops::OperatorByName(family[Below(family.size())]);
      if (!other || ops::NameOf(*other) == ops::NameOf(op)) return false;
      // What the two have in common stays.
      for (const ops::Attr& a : ops::AttrsOf(op)) (void)ops::SetAttr(*other, a.name, a.value);
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
