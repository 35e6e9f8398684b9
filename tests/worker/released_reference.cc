#include "tests/worker/released_reference.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "core/base/check.h"
#include "core/base/fingerprint.h"
#include "core/eval/eval.h"

namespace tenon::test {
namespace {

using eval::Exact;

struct Type {
  graph::Extents extents;
  std::vector<std::vector<std::int64_t>> trees;  // By axis, the most recent place last.
  bool by_columns = false;
};

struct Tensor {
  Type type;
  std::vector<std::uint64_t> values;  // Residues, row by row.
  std::string text;
  bool is_input = false, is_weight = false;
  int node = -1;

  int rank() const { return type.extents.size(); }
  std::int64_t extent(int a) const { return type.extents[a]; }
  auto Key() const {
    return std::tuple(std::vector<std::int64_t>(type.extents.begin(), type.extents.end()),
                      type.trees, type.by_columns, values);
  }
};
using Key = decltype(Tensor().Key());

eval::Tensor<Exact> ToExact(const Tensor& t) {
  eval::Tensor<Exact> out{t.type.extents, {}};
  for (const std::uint64_t r : t.values) out.data.push_back({r, double(r)});
  return out;
}

std::vector<std::uint64_t> Apply(const ops::Operator& op, const std::vector<Tensor>& operands) {
  std::vector<eval::Tensor<Exact>> exact;
  for (const Tensor& t : operands) exact.push_back(ToExact(t));
  std::vector<const eval::Tensor<Exact>*> pointers;
  for (const auto& t : exact) pointers.push_back(&t);
  const auto out = eval::Apply(op, pointers, 1);
  CHECK(out.ok());
  std::vector<std::uint64_t> values;
  for (const Exact& e : out->data) values.push_back(e.residue);
  return values;
}

Tensor Filled(const graph::Extents& extents, std::uint64_t value) {
  Tensor t;
  t.type.extents = extents;
  t.values.assign(std::size_t(graph::ElementCount(extents)), value);
  return t;
}

// x (x + 1) + 1
void ApplyRelu(Tensor& t) {
  const Tensor one = Filled(t.type.extents, 1);
  Tensor next = t;
  next.values = Apply(ops::Add{}, {t, one});
  next.values = Apply(ops::Mul{}, {t, next});
  t.values = Apply(ops::Add{}, {next, one});
}

class Search {
 public:
  explicit Search(const graph::Universe& universe) : universe_(universe) {
    base::SplitMix64 random(7);
    for (const graph::Universe::Input& input : universe.inputs) {
      Tensor t = Filled(input.extents, 0);
      for (std::uint64_t& v : t.values) v = random.Below(eval::kPrime);
      t.type.trees.resize(std::size_t(input.extents.size()));
      t.text = input.name;
      t.is_input = true;
      t.is_weight = input.kind == graph::InputKind::kWeight;
      scope_.push_back(t);
    }
    out_.sets_by_size.resize(std::size_t(universe.max_operators));
    out_.sequences_by_size.resize(std::size_t(universe.max_operators));
  }

  Reference Run() {
    Deepen();
    std::map<std::set<Key>, std::set<GraphText>> by_value;
    for (const auto& [nodes, graph] : graphs_) {
      ++out_.sets_by_size[nodes.size() - 1];
      by_value[graph.values].insert(graph.texts);
    }
    out_.classes = by_value.size();
    for (const auto& [values, members] : by_value) {
      if (members.size() > 1) out_.shared_classes.insert(members);
    }
    return out_;
  }

 private:
  struct Graph {
    std::set<Key> values;
    GraphText texts;
  };

  void Deepen() {
    if (!node_texts_.empty()) Record();
    if (node_texts_.size() == std::size_t(universe_.max_operators)) return;
    const std::size_t tensors = scope_.size();
    for (const graph::Universe::Operator& o : universe_.operators) {
      if (o.arity == 0) Try(o, {});
      for (std::size_t a = 0; a < tensors && o.arity >= 1; ++a) {
        if (o.arity == 1) Try(o, {a});
        for (std::size_t b = 0; b < tensors && o.arity == 2; ++b) Try(o, {a, b});
      }
    }
  }

  void Record() {
    ++out_.sequences_by_size[node_texts_.size() - 1];
    Graph graph;
    for (std::size_t k = 0; k < scope_.size(); ++k) {
      if (scope_[k].is_input || users_[k] > 0) continue;
      graph.values.insert(scope_[k].Key());
      graph.texts.push_back(scope_[k].text);
    }
    std::sort(graph.texts.begin(), graph.texts.end());
    graphs_[std::set<std::string>(node_texts_.begin(), node_texts_.end())] = graph;
  }

  void Try(const graph::Universe::Operator& o, const std::vector<std::size_t>& operands) {
    users_.resize(scope_.size(), 0);
    std::vector<Tensor> in;
    for (const std::size_t k : operands) in.push_back(scope_[k]);
    if (const auto* mul = std::get_if<ops::Mul>(&o.op)) {
      if (in[0].type.extents == in[1].type.extents)
        Push("Mul", operands, Pointwise(*mul, in, operands));
      if (in[1].rank() == 0 && operands[0] != operands[1]) {
        Tensor t = in[0];
        t.values = Apply(ops::Mul{}, in);
        Push("ScalarMul", operands, {{t}});
      }
      return;
    }
    if (const auto* add = std::get_if<ops::Add>(&o.op)) {
      if (in[0].type.extents == in[1].type.extents)
        Push("Add", operands, Pointwise(*add, in, operands));
    } else if (std::holds_alternative<ops::MatMul>(o.op)) {
      Push("MatMul", operands, MatMul(in, operands));
    } else if (const auto* conv = std::get_if<ops::Conv>(&o.op)) {
      const bool relu = conv->activation == ops::Activation::kRelu;
      Push(fmt::format("Conv{}x{}{}", o.limits[0].extents[2], o.limits[0].extents[3],
                       relu ? "Relu" : ""),
           operands, Conv(*conv, o.limits[0].extents, in));
    } else if (std::holds_alternative<ops::Relu>(o.op)) {
      Tensor t = in[0];
      ApplyRelu(t);
      Push("Relu", operands, {{t}});
    } else if (const auto* pool = std::get_if<ops::AveragePool>(&o.op)) {
      if (in[0].rank() != 4) return;
      Tensor t = in[0];
      t.values = Apply(*pool, in);
      t.values = Apply(ops::Mul{}, {t, Filled({}, 9)});
      t.type.trees[1].clear();
      Push("AveragePool", operands, {{t}});
    } else if (const auto* concat = std::get_if<ops::Concat>(&o.op)) {
      Push(fmt::format("Concat{}", concat->axis), operands, Concat(*concat, in, operands));
    } else if (const auto* split = std::get_if<ops::Split>(&o.op)) {
      Push(fmt::format("Split{}", split->axis), operands, Split(int(split->axis), in[0]));
    } else if (const auto* transpose = std::get_if<ops::Transpose>(&o.op)) {
      if (in[0].rank() != 2) return;
      Tensor t = in[0];
      t.values = Apply(*transpose, in);
      std::swap(t.type.extents[0], t.type.extents[1]);
      std::swap(t.type.trees[0], t.type.trees[1]);
      t.type.by_columns = !in[0].type.by_columns;
      Push("Transpose", operands, {{t}});
      t.type.by_columns = false;
      Push("TransposeShuffle", operands, {{t}});
    } else if (const auto* enlarge = std::get_if<ops::Enlarge>(&o.op)) {
      if (!in[0].is_input || in[0].rank() != 4 || in[0].extent(2) > 3 || in[0].extent(3) > 3 ||
          (in[0].extent(2) == 3 && in[0].extent(3) == 3)) {
        return;
      }
      Tensor t = in[0];
      t.values = Apply(*enlarge, in);
      t.type.extents[2] = t.type.extents[3] = 3;
      t.type.trees[2].clear();
      t.type.trees[3].clear();
      Push("Enlarge", operands, {{t}});
    } else {
      Constant(o.op);
    }
  }

  std::optional<std::vector<Tensor>> Pointwise(const ops::Operator& op, std::vector<Tensor> in,
                                               const std::vector<std::size_t>& operands) {
    if (operands[0] >= operands[1] || in[0].type.by_columns != in[1].type.by_columns) return {};
    Tensor t = in[0];
    t.values = Apply(op, in);
    for (std::size_t a = 0; a < t.type.trees.size(); ++a) {
      if (in[1].type.trees[a] != t.type.trees[a]) t.type.trees[a].clear();
    }
    return {{t}};
  }

  std::optional<std::vector<Tensor>> MatMul(const std::vector<Tensor>& in,
                                            const std::vector<std::size_t>& operands) {
    if (in[0].rank() != 2 || in[1].rank() != 2 || in[0].extent(1) != in[1].extent(0) ||
        in[1].extent(0) == 2 || operands[0] == operands[1]) {
      return {};
    }
    Tensor t = Filled({in[0].extent(0), in[1].extent(1)}, 0);
    t.values = Apply(ops::MatMul{}, in);
    t.type.trees = {in[0].type.trees[0], in[1].type.trees[1]};
    return {{t}};
  }

  std::optional<std::vector<Tensor>> Conv(ops::Conv conv, const graph::Extents& limit,
                                          const std::vector<Tensor>& in) {
    if (in[0].rank() != 4 || in[1].rank() != 4 || (in[0].is_input && in[0].is_weight) ||
        in[1].extent(2) != limit[2] || in[1].extent(3) != limit[3] ||
        in[0].extent(1) % in[1].extent(1) != 0) {
      return {};
    }
    const std::int64_t groups = in[0].extent(1) / in[1].extent(1);
    if (in[1].extent(0) % groups != 0) return {};
    const bool relu = conv.activation == ops::Activation::kRelu;
    conv.activation = ops::Activation::kNone;
    conv.group = groups;
    Tensor t = in[0];
    t.values = Apply(conv, in);
    t.type.extents[1] = in[1].extent(0);
    t.type.trees[1] = in[1].type.trees[0];
    if (relu) ApplyRelu(t);
    return {{t}};
  }

  std::optional<std::vector<Tensor>> Concat(const ops::Concat& concat,
                                            const std::vector<Tensor>& in,
                                            const std::vector<std::size_t>& operands) {
    const int axis = int(concat.axis);
    if (operands[0] >= operands[1] || in[0].rank() != in[1].rank() || in[0].rank() < 2) return {};
    Tensor t = in[0];
    t.type.by_columns = false;
    for (int a = 0; a < t.rank(); ++a) {
      auto& tree = t.type.trees[std::size_t(a)];
      const auto& other = in[1].type.trees[std::size_t(a)];
      if (a != axis) {
        if (in[0].extent(a) != in[1].extent(a)) return {};
        if (tree != other) tree.clear();
        continue;
      }
      for (const std::int64_t place : other) tree.push_back(in[0].extent(a) + place);
      tree.push_back(in[0].extent(a));
      t.type.extents[a] += in[1].extent(a);
    }
    t.values = Apply(concat, in);
    return {{t}};
  }

  std::optional<std::vector<Tensor>> Split(int axis, const Tensor& in) {
    if (in.rank() <= axis || in.type.trees[std::size_t(axis)].empty()) return {};
    const auto& tree = in.type.trees[std::size_t(axis)];
    const std::int64_t middle = tree.back();
    std::vector<Tensor> out(2, in);
    for (std::int64_t side = 0; side < 2; ++side) {
      Tensor& t = out[std::size_t(side)];
      ops::Slice slice;
      slice.axis = axis;
      slice.start = side * middle;
      slice.end = side == 0 ? middle : in.extent(axis);
      t.values = Apply(slice, {in});
      t.type.extents[axis] = side == 0 ? middle : in.extent(axis) - middle;
      t.type.by_columns = false;
      // The places of its side, up to the first that is not of the left one.
      const auto border = std::find_if(tree.begin(), tree.end() - 1,
                                       [&](std::int64_t place) { return place >= middle; });
      auto& own = t.type.trees[std::size_t(axis)];
      own.assign(side == 0 ? tree.begin() : border, side == 0 ? border : tree.end() - 1);
      for (std::int64_t& place : own) place -= side * middle;
    }
    return out;
  }

  void Constant(const ops::Operator& op) {
    Tensor t;
    if (const auto* fill = std::get_if<ops::Fill>(&op)) {
      t = Filled(graph::Concrete(fill->shape), 0);
    } else if (const auto* eye = std::get_if<ops::Eye>(&op)) {
      t = Filled({eye->size.constant(), eye->size.constant()}, 0);
    } else {
      const auto& identity = std::get<ops::ConvIdentity>(op);
      const std::int64_t c = identity.channels.constant();
      t = Filled({c, c, identity.kernel_shape[0].constant(), identity.kernel_shape[1].constant()},
                 0);
    }
    t.values = Apply(op, {});
    t.type.trees.resize(std::size_t(t.rank()));
    Push(std::string(ops::NameOf(op)), {}, {{t}});
  }

  // Goes on with one more node, unless a tensor is too large or there already.
  void Push(const std::string& name, const std::vector<std::size_t>& operands,
            std::optional<std::vector<Tensor>> results) {
    if (!results) return;
    std::vector<std::string> texts;
    for (const std::size_t k : operands) texts.push_back(scope_[k].text);
    if (name == "Add" || name == "Mul") std::sort(texts.begin(), texts.end());
    const std::string text = fmt::format("{}({})", name, fmt::join(texts, ", "));
    const std::size_t before = scope_.size();
    bool fits = true;
    for (std::size_t slot = 0; slot < results->size() && fits; ++slot) {
      Tensor t = (*results)[slot];
      t.is_input = t.is_weight = false;
      t.text = results->size() == 1 ? text : fmt::format("{}[{}]", text, slot);
      fits = graph::ElementCount(t.type.extents) <= universe_.max_elements;
      for (const Tensor& other : scope_) fits = fits && other.Key() != t.Key();
      scope_.push_back(t);
    }
    if (fits) {
      users_.resize(scope_.size(), 0);
      for (const std::size_t k : operands) ++users_[k];
      node_texts_.push_back(text);
      Deepen();
      node_texts_.pop_back();
      for (const std::size_t k : operands) --users_[k];
    }
    scope_.resize(before);
    users_.resize(before);
  }

  const graph::Universe& universe_;
  Reference out_;
  std::vector<Tensor> scope_;
  std::vector<int> users_;
  std::vector<std::string> node_texts_;
  std::map<std::set<std::string>, Graph> graphs_;
};

}  // namespace

Reference ReferenceOf(const graph::Universe& universe) { return Search(universe).Run(); }

}  // namespace tenon::test
