// A build goes through both sides once, adds nodes to a fresh graph, and demands of the sizes what
// TASO's operators ask of their operands. A demand that some symbol can be eliminated by changes
// the shapes of inputs, so the round ends and the next one starts, until nothing changes; every
// round eliminates a symbol, of which there are finitely many. What no substitution can express
// stays a requirement of the graph's nodes: the source's own ones a match fulfils, the target's
// become conditions.
#include "interop/translate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/rules/text.h"
#include "interop/cuts.h"
#include "interop/ranks.h"
#include "interop/sizes.h"
#include "interop/windows.h"

namespace tenon::interop {

using base::Poly;
using base::Symbol;
using graph::Graph;
using graph::NodeId;

namespace {

constexpr int kRoundsMax = 200;

// Of which variable's axis an axis is a copy: a cut made here is a cut made there.
using Origins = std::set<std::pair<std::int32_t, int>>;

struct Axis {
  CutTree cuts;
  Origins origins;
};

// A tensor of the graph in the making.
struct Value {
  NodeId node = graph::kNoNode;
  std::vector<Axis> axes;
};

Status Misfit(const PeerOperator& op, std::string_view what) {
  return absl::FailedPreconditionError(fmt::format("{}: {}", op.name(), what));
}

}  // namespace

class Translator::Impl {
 public:
  Impl(const PeerRule& rule, Ranks ranks) : rule_(rule), ranks_(std::move(ranks)) {
    static constexpr std::array<std::string_view, 9> kLetters = {
        "", "m", "mn", "bmn", "nchw", "abcde", "abcdef", "abcdefg", "abcdefgh"};
    for (const auto& [variable, rank] : ranks_.variables) {
      shapes_[variable];  // A scalar has no extents.
      for (int a = 0; a < rank; ++a) {
        shapes_[variable].push_back(sizes_.Add(
            fmt::format("{}{}", kLetters[std::size_t(rank)][std::size_t(a)], Number(variable))));
      }
    }
    for (const bool source : {true, false}) AddSymbols(source);
    if (!ranks_.open) return;
    std::set<int> used(ranks_.source.begin(), ranks_.source.end());
    for (const int rank : used) label_ += fmt::format("{}{}", label_.empty() ? "rank " : ",", rank);
  }

  StatusOr<rules::Rule> Build(const std::vector<Demand>& demands) {
    sizes_.Reset();
    variable_cuts_.clear();
    demands_ = &demands;
    for (int round = 0; round < kRoundsMax; ++round) {
      solved_ = sizes_.solved();
      const std::size_t cuts = variable_cuts_.size();
      RETURN_IF_ERROR(Round());
      if (solved_ != sizes_.solved() || cuts != variable_cuts_.size() || NeedsAttributes())
        continue;
      if (open_window_) {
        return absl::UnimplementedError("SAME padding for a kernel of any size");
      }
      if (demands.empty()) Suggest();
      return Finish();
    }
    return absl::UnimplementedError("its shapes do not settle");
  }

  std::vector<Demand> candidates_, same_shape_;
  std::string label_;

 private:
  struct ConvSizes {
    std::size_t op = 0;
    Poly groups, filters;  // Filters of one group.
    Poly channels;         // Of one group.
    Poly image;            // Channels of all groups.
  };

  static std::string Number(std::int32_t variable) {
    return std::to_string(-std::int64_t{variable});
  }

  // Sizes that are no extent of a variable: groups, cuts, the extents of constants.
  void AddSymbols(bool source) {
    const auto& side = source ? rule_.source : rule_.target;
    const std::vector<int>& ranks = source ? ranks_.source : ranks_.target;
    for (std::size_t k = 0; k < side.size(); ++k) {
      const auto add = [&](int count, std::string_view letter) {
        for (int a = 0; a < count; ++a) {
          extra_[{source, k}].push_back(
              sizes_.Add(fmt::format("{}{}{}", letter, source ? "" : "t", next_++)));
        }
      };
      switch (side[k].type) {
        case PeerType::kConv:
          if (source) {
            add(1, "g");
            add(1, "q");
          }
          break;
        case PeerType::kSplit:
          add(side[k].outputs(), "p");
          break;
        case PeerType::kIdentityMatrix:
        case PeerType::kIdentityKernel:
        case PeerType::kPoolKernel:
          add(1, "k");
          break;
        case PeerType::kOnes:
          add(ranks[k], "k");
          break;
        default:
          break;
      }
    }
  }

  Poly Extra(bool source, std::size_t op, std::size_t k) const {
    return Poly::Var(extra_.at({source, op})[k]);
  }

  Status Round() {
    graph_ = Graph();
    graph_.symbols() = sizes_.symbols();
    convs_.clear();
    where_.clear();
    open_window_ = false;
    for (const Demand& d : *demands_) {
      if (!sizes_.Equate(d.a, d.b)) where_.push_back(base::Eq(d.a, d.b));
    }
    for (const auto& [variable, symbols] : shapes_) {
      graph::TensorType type;
      Value value;
      for (std::size_t a = 0; a < symbols.size(); ++a) {
        type.shape.push_back(sizes_.Resolve(Poly::Var(symbols[a])));
        const auto cut = variable_cuts_.find({variable, static_cast<int>(a)});
        value.axes.push_back({cut == variable_cuts_.end() ? nullptr : Resolved(cut->second),
                              {{variable, static_cast<int>(a)}}});
      }
      value.node = graph_.AddInput("v" + Number(variable), graph::InputKind::kActivation, type);
      variables_[variable] = std::move(value);
    }
    RETURN_IF_ERROR(BuildSide(true));
    if (sizes_.solved() == solved_) RETURN_IF_ERROR(BuildSide(false));
    if (sizes_.contradiction()) {
      return absl::FailedPreconditionError("there are no shapes that its operators accept");
    }
    return OkStatus();
  }

  Status BuildSide(bool source) {
    const auto& side = source ? rule_.source : rule_.target;
    auto& results = source ? source_ : target_;
    results.assign(side.size(), {});
    for (std::size_t k = 0; k < side.size(); ++k) {
      std::vector<Value> in;
      for (const PeerTensor& t : side[k].inputs) {
        in.push_back(t.op < 0 ? variables_.at(t.op)
                              : results[std::size_t(t.op)][std::size_t(t.output)]);
      }
      RETURN_IF_ERROR(AddOperator(source, k, in, results[k]));
      if (sizes_.solved() != solved_) return OkStatus();
    }
    return OkStatus();
  }

  const graph::Shape& ShapeOf(const Value& v) const { return graph_.shape(v.node); }

  StatusOr<Value> Apply(const ops::Operator& op, std::initializer_list<const Value*> in) {
    std::vector<NodeId> nodes;
    for (const Value* v : in) nodes.push_back(v->node);
    return Apply(op, nodes);
  }
  StatusOr<Value> Apply(const ops::Operator& op, const std::vector<NodeId>& nodes) {
    const auto node = graph_.Add(op, std::span<const NodeId>(nodes));
    if (!node.ok()) return absl::FailedPreconditionError(base::Message(node.status()));
    Value out;
    out.node = *node;
    out.axes.resize(static_cast<std::size_t>(graph_.shape(*node).size()));
    return out;
  }

  static StatusOr<ops::Activation> ActivationOf(const PeerOperator& op) {
    const auto it = op.parameters.find(PeerKey::kActivation);
    switch (it == op.parameters.end() ? 0 : it->second) {
      case 0:
        return ops::Activation::kNone;
      case 1:
        return ops::Activation::kSigmoid;
      case 2:
        return ops::Activation::kRelu;
      case 3:
        return ops::Activation::kTanh;
    }
    return absl::UnimplementedError(fmt::format("{} has an activation that is none", op.name()));
  }

  // The activation as an operator of its own, for what cannot carry it.
  StatusOr<Value> Activate(const PeerOperator& op, Value value) {
    ASSIGN_OR_RETURN(const ops::Activation activation, ActivationOf(op));
    switch (activation) {
      case ops::Activation::kNone:
        return value;
      case ops::Activation::kSigmoid:
        return Unary(ops::Sigmoid{}, value);
      case ops::Activation::kRelu:
        return Unary(ops::Relu{}, value);
      case ops::Activation::kTanh:
        return Unary(ops::Tanh{}, value);
    }
    return value;
  }

  static void Agree(Axis& axis, const Axis& other) {
    axis.cuts = Agreed(axis.cuts, other.cuts);
    axis.origins.insert(other.origins.begin(), other.origins.end());
  }

  StatusOr<Value> ElementWise(const ops::Operator& op, const Value& a, const Value& b) {
    for (int k = 0; k < ShapeOf(a).size(); ++k) sizes_.Equate(ShapeOf(a)[k], ShapeOf(b)[k]);
    ASSIGN_OR_RETURN(Value out, Apply(op, {&a, &b}));
    for (std::size_t k = 0; k < out.axes.size(); ++k) {
      out.axes[k] = a.axes[k];
      Agree(out.axes[k], b.axes[k]);
    }
    return out;
  }

  StatusOr<Value> Unary(const ops::Operator& op, const Value& a) {
    ASSIGN_OR_RETURN(Value out, Apply(op, {&a}));
    out.axes = a.axes;
    return out;
  }

  StatusOr<Value> MatMul(const PeerOperator& op, const Value& a, const Value& b) {
    const int rank = ShapeOf(a).size();
    for (int k = 0; k + 2 < rank; ++k) sizes_.Equate(ShapeOf(a)[k], ShapeOf(b)[k]);
    sizes_.Equate(ShapeOf(a)[rank - 1], ShapeOf(b)[rank - 2]);
    ASSIGN_OR_RETURN(Value out, Apply(ops::MatMul{}, {&a, &b}));
    const std::size_t last = out.axes.size() - 1;
    for (std::size_t k = 0; k < last; ++k) {
      out.axes[k] = a.axes[k];
      if (k + 1 < last) Agree(out.axes[k], b.axes[k]);
    }
    out.axes[last] = b.axes[last];
    return Activate(op, std::move(out));
  }

  // Both convolutions and pools.
  Status SetWindow(const PeerOperator& op, const graph::Shape& kernel,
                   ops::Short<ops::Size>& strides, ops::Short<ops::Size>& pads) {
    ASSIGN_OR_RETURN(const PeerWindow window, WindowOf(op, kernel));
    open_window_ = open_window_ || window.open;
    strides = {window.strides[0], window.strides[1]};
    pads = {window.pads[0], window.pads[1], window.pads[0], window.pads[1]};
    return OkStatus();
  }

  StatusOr<Value> Conv(bool source, std::size_t k, const PeerOperator& op, const Value& image,
                       const Value& kernel) {
    const graph::Shape x = ShapeOf(image), w = ShapeOf(kernel);
    ops::Conv conv;
    if (source) {
      const Poly groups = Extra(true, k, 0), filters = Extra(true, k, 1);
      // A quotient that can be written down is the number of groups; else some number is.
      const Poly quotient = graph_.symbols().FloorDiv(x[1], w[1]);
      if (quotient * w[1] == x[1]) sizes_.Equate(groups, quotient);
      sizes_.Equate(x[1], groups * w[1]);
      sizes_.Equate(w[0], groups * filters);
      for (const auto& [key, axis] :
           {std::pair{PeerKey::kKernelH, 2}, std::pair{PeerKey::kKernelW, 3}}) {
        const auto it = op.parameters.find(key);
        if (it == op.parameters.end()) continue;
        if (it->second < 1) return Misfit(op, "its kernel is empty");
        sizes_.Equate(w[axis], it->second);
      }
      conv.group = sizes_.Resolve(groups);
    } else {
      conv.group = graph_.symbols().FloorDiv(x[1], w[1]);
      for (const ConvSizes& known : convs_) {
        if (known.image == x[1] && known.channels == w[1])
          conv.group = sizes_.Resolve(known.groups);
      }
      if (!conv.group.valid()) return Misfit(op, "its groups cannot be written down");
    }
    ASSIGN_OR_RETURN(conv.activation, ActivationOf(op));
    RETURN_IF_ERROR(SetWindow(op, {w[2], w[3]}, conv.strides, conv.pads));
    ASSIGN_OR_RETURN(Value out, Apply(conv, {&image, &kernel}));
    out.axes[0] = image.axes[0];
    out.axes[1].cuts = kernel.axes[0].cuts;
    if (source) {
      convs_.push_back({k, Extra(true, k, 0), Extra(true, k, 1), w[1], x[1]});
    }
    return out;
  }

  StatusOr<Value> Pool(const PeerOperator& op, const Value& image) {
    ASSIGN_OR_RETURN(const graph::Shape kernel, KernelOf(op));
    Value out;
    if (op.type == PeerType::kMaxPool) {
      ops::MaxPool pool;
      pool.kernel_shape = kernel;
      RETURN_IF_ERROR(SetWindow(op, kernel, pool.strides, pool.pads));
      ASSIGN_OR_RETURN(out, Apply(pool, {&image}));
    } else {
      ops::AveragePool pool;
      pool.kernel_shape = kernel;
      RETURN_IF_ERROR(SetWindow(op, kernel, pool.strides, pool.pads));
      ASSIGN_OR_RETURN(out, Apply(pool, {&image}));
    }
    out.axes[0] = image.axes[0];
    out.axes[1] = image.axes[1];
    return Activate(op, std::move(out));
  }

  StatusOr<Value> Concat(const PeerOperator& op, const std::vector<Value>& in) {
    const int axis = op.parameters.at(PeerKey::kAxis);
    std::vector<NodeId> nodes;
    for (const Value& v : in) {
      nodes.push_back(v.node);
      for (int a = 0; a < ShapeOf(v).size(); ++a) {
        if (a != axis) sizes_.Equate(ShapeOf(in[0])[a], ShapeOf(v)[a]);
      }
    }
    ops::Concat concat;
    concat.axis = axis;
    ASSIGN_OR_RETURN(Value out, Apply(concat, nodes));
    out.axes = in[0].axes;
    Axis& joined = out.axes[std::size_t(axis)];
    joined.origins.clear();
    Poly offset = ShapeOf(in[0])[axis];
    for (std::size_t k = 1; k < in.size(); ++k) {
      for (std::size_t a = 0; a < out.axes.size(); ++a) {
        if (std::cmp_not_equal(a, axis)) Agree(out.axes[a], in[k].axes[a]);
      }
      joined.cuts = Joined(offset, joined.cuts, in[k].axes[std::size_t(axis)].cuts);
      offset += ShapeOf(in[k])[axis];
    }
    return out;
  }

  // A tree of an earlier round, as the sizes are known by now.
  CutTree Resolved(const CutTree& tree) {
    if (tree == nullptr) return nullptr;
    return Joined(sizes_.Resolve(tree->at), Resolved(tree->left), Resolved(tree->right));
  }

  // Cuts, in the source, what nothing has joined: somewhere.
  CutTree CutAnywhere(std::size_t k, const Axis& axis, const Poly& extent, int pieces) {
    Poly offset = sizes_.Resolve(Extra(true, k, 0));
    CutTree tree;
    for (int p = 1; p < pieces; ++p) {
      tree = Joined(offset, tree, nullptr);
      offset += sizes_.Resolve(Extra(true, k, std::size_t(p)));
    }
    if (!sizes_.Equate(extent, offset)) where_.push_back(base::Eq(extent, offset));
    for (const auto& origin : axis.origins) variable_cuts_[origin] = tree;
    return tree;
  }

  Status Split(bool source, std::size_t k, const PeerOperator& op, const Value& value,
               std::vector<Value>& out) {
    const int axis = op.parameters.at(PeerKey::kAxis);
    const Axis& along = value.axes[std::size_t(axis)];
    const Poly extent = ShapeOf(value)[axis];
    auto pieces = Undo(along.cuts, extent, op.outputs());
    if (!pieces && source) {
      pieces = Undo(CutAnywhere(k, along, extent, op.outputs()), extent, op.outputs());
    }
    if (!pieces) return Misfit(op, "nothing tells where it cuts");
    for (const Piece& piece : *pieces) {
      ops::Slice slice;
      slice.axis = axis;
      slice.start = piece.start;
      slice.end = piece.end;
      ASSIGN_OR_RETURN(Value part, Apply(slice, {&value}));
      part.axes = value.axes;
      part.axes[std::size_t(axis)] = {piece.cuts, {}};
      out.push_back(std::move(part));
    }
    return OkStatus();
  }

  StatusOr<Value> Transpose(const PeerOperator& op, const Value& value) {
    ops::Transpose transpose;
    const int rank = ShapeOf(value).size();
    const auto it = op.parameters.find(PeerKey::kPermutation);
    if (it == op.parameters.end()) return Misfit(op, "it has no permutation");
    transpose.perm = ops::Short<std::int64_t>::Filled(rank, 0);
    std::int64_t rest = it->second;
    for (int a = rank - 1; a >= 0; --a) {
      transpose.perm[a] = rest % rank;
      rest /= rank;
    }
    if (it->second < 0 || rest != 0 || !transpose.IsPermutation()) {
      return Misfit(op, fmt::format("{} is no permutation of {} axes", it->second, rank));
    }
    ASSIGN_OR_RETURN(Value out, Apply(transpose, {&value}));
    for (int a = 0; a < rank; ++a) {
      out.axes[std::size_t(a)] = value.axes[std::size_t(transpose.perm[a])];
    }
    return out;
  }

  StatusOr<Value> Enlarge(const PeerOperator& op, const std::vector<Value>& in) {
    ops::Enlarge enlarge;
    if (in.size() == 2) {
      enlarge.kernel_shape = {ShapeOf(in[1])[2], ShapeOf(in[1])[3]};
    } else {
      ASSIGN_OR_RETURN(enlarge.kernel_shape, KernelOf(op));
    }
    ASSIGN_OR_RETURN(Value out, Apply(enlarge, {&in[0]}));
    out.axes[0] = in[0].axes[0];
    out.axes[1] = in[0].axes[1];
    return out;
  }

  StatusOr<Value> Constant(bool source, std::size_t k, const PeerOperator& op) {
    ops::Short<ops::Size> extents;
    for (const Symbol s : extra_.at({source, k})) extents.push_back(sizes_.Resolve(Poly::Var(s)));
    if (op.type == PeerType::kIdentityMatrix) {
      ops::Eye eye;
      eye.size = extents[0];
      return Apply(eye, {});
    }
    ops::Fill fill;
    if (op.type == PeerType::kOnes) {
      fill.shape = extents;
      return Apply(fill, {});
    }
    ASSIGN_OR_RETURN(const graph::Shape kernel, KernelOf(op));
    if (op.type == PeerType::kIdentityKernel) {
      ops::ConvIdentity identity;
      identity.channels = extents[0];
      identity.kernel_shape = kernel;
      return Apply(identity, {});
    }
    // 1 / 9 is no double: the exact number is the reciprocal of one.
    fill.shape = {extents[0], 1, kernel[0], kernel[1]};
    fill.value = static_cast<double>(kernel[0].constant() * kernel[1].constant());
    ASSIGN_OR_RETURN(const Value count, Apply(fill, {}));
    return Apply(ops::Reciprocal{}, {&count});
  }

  Status AddOperator(bool source, std::size_t k, const std::vector<Value>& in,
                     std::vector<Value>& out) {
    const PeerOperator& op = (source ? rule_.source : rule_.target)[k];
    if (op.type == PeerType::kSplit) return Split(source, k, op, in[0], out);
    StatusOr<Value> value = [&]() -> StatusOr<Value> {
      switch (op.type) {
        case PeerType::kConv:
          return Conv(source, k, op, in[0], in[1]);
        case PeerType::kMaxPool:
        case PeerType::kAveragePool:
          return Pool(op, in[0]);
        case PeerType::kRelu:
          return Unary(ops::Relu{}, in[0]);
        case PeerType::kSigmoid:
          return Unary(ops::Sigmoid{}, in[0]);
        case PeerType::kTanh:
          return Unary(ops::Tanh{}, in[0]);
        case PeerType::kAdd:
          return ElementWise(ops::Add{}, in[0], in[1]);
        case PeerType::kMul:
          return ElementWise(ops::Mul{}, in[0], in[1]);
        case PeerType::kScalarMul: {
          ASSIGN_OR_RETURN(Value scaled, Apply(ops::Mul{}, {&in[0], &in[1]}));
          scaled.axes = in[0].axes;
          return scaled;
        }
        case PeerType::kMatMul:
          return MatMul(op, in[0], in[1]);
        case PeerType::kConcat:
          return Concat(op, in);
        case PeerType::kTranspose:
          return Transpose(op, in[0]);
        case PeerType::kEnlarge:
          return Enlarge(op, in);
        case PeerType::kIdentityMatrix:
        case PeerType::kIdentityKernel:
        case PeerType::kOnes:
        case PeerType::kPoolKernel:
          return Constant(source, k, op);
        default:
          return absl::UnimplementedError(fmt::format("{} has no counterpart here", op.name()));
      }
    }();
    if (!value.ok()) return value.status();
    out.push_back(*std::move(value));
    return OkStatus();
  }

  const Value& Mapped(const PeerTensor& t, bool source) const {
    return (source ? source_ : target_)[std::size_t(t.op)][std::size_t(t.output)];
  }

  // Sizes that no input's shape tells (the groups of a convolution of a Concat) are attributes.
  bool NeedsAttributes() {
    std::set<Symbol> told;
    std::vector<Symbol> found;
    for (const auto& [variable, value] : variables_) {
      for (const Poly& p : ShapeOf(value)) p.CollectSymbols(found);
    }
    told.insert(found.begin(), found.end());
    bool changed = false;
    for (auto& [place, symbols] : extra_) {
      for (Symbol& s : symbols) {
        if (sizes_.symbols().kind(s) == base::SymbolKind::kAttr) continue;
        found.clear();
        sizes_.Resolve(Poly::Var(s)).CollectSymbols(found);
        const bool known =
            std::all_of(found.begin(), found.end(), [&](Symbol f) { return told.contains(f); });
        if (known || !Used(s)) continue;
        s = sizes_.Add(sizes_.symbols().name(s), base::SymbolKind::kAttr);
        changed = true;
      }
    }
    return changed;
  }

  // Whether an attribute of some operator, or a condition, has the symbol in it.
  bool Used(Symbol s) const {
    for (const base::Condition& c : where_) {
      if (c.p.Mentions(s, graph_.symbols())) return true;
    }
    std::vector<NodeId> all;
    for (std::size_t k = 0; k < graph_.size(); ++k) {
      if (!graph_.node(NodeId(k)).is_input()) all.push_back(NodeId(k));
    }
    bool used = false;
    for (const NodeId id : all) {
      ops::MapSizes(*graph_.node(id).op, [&](const ops::Size& size) {
        used = used || size.Mentions(s, graph_.symbols());
        return size;
      });
    }
    return used;
  }

  StatusOr<rules::Rule> Finish() {
    rules::Rule rule;
    rule.name = rule_.name;
    for (const PeerOutput& out : rule_.outputs) {
      rule.source.push_back(Mapped(out.source, true).node);
      rule.target.push_back(Mapped(out.target, false).node);
    }
    for (const auto& [place, symbols] : extra_) {
      for (const Symbol s : symbols) {
        const bool free = sizes_.Resolve(Poly::Var(s)) == Poly::Var(s);
        if (free && sizes_.symbols().kind(s) == base::SymbolKind::kAttr) {
          rule.where.push_back(base::Normal(base::Ge(Poly::Var(s), 1)));
        }
      }
    }
    const auto given = graph_.Requirements(rule.source);
    const auto has = [](const std::vector<base::Condition>& list, const base::Condition& c) {
      return std::find(list.begin(), list.end(), c) != list.end();
    };
    const auto add = [&](const base::Condition& c) {
      if (!has(rule.where, c) && !sizes_.Always(c)) rule.where.push_back(c);
    };
    for (const base::Condition& c : where_) add(base::Normal(c));
    for (const base::Condition& c : graph_.Requirements(rule.target)) {
      if (!has(given, c)) add(c);
    }
    rule.graph = graph_;
    // Text and back leaves out the symbols that were eliminated.
    const std::string text = rules::PrintRule(rule);
    ASSIGN_OR_RETURN(auto parsed, rules::ParseRules(text, rule.name));
    if (parsed.size() != 1) return base::Internal(fmt::format("{}: not one rule", text));
    if (!parsed[0].rule.ok()) {
      return absl::FailedPreconditionError(base::Message(parsed[0].rule.status()));
    }
    return *std::move(parsed[0].rule);
  }

  void Suggest() {
    candidates_.clear();
    same_shape_.clear();
    for (const PeerOutput& out : rule_.outputs) {
      const graph::Shape a = ShapeOf(Mapped(out.source, true));
      const graph::Shape b = ShapeOf(Mapped(out.target, false));
      for (int k = 0; k < a.size() && k < b.size(); ++k) {
        if (a[k] == b[k]) continue;
        const base::Symbols& symbols = graph_.symbols();
        same_shape_.push_back({fmt::format("the outputs have one shape, {} = {}",
                                           symbols.Print(a[k]), symbols.Print(b[k])),
                               a[k], b[k]});
      }
    }
    const auto suggest = [&](const std::string& text, const Poly& a, const Poly& b) {
      const Poly left = sizes_.Resolve(a), right = sizes_.Resolve(b);
      if (left == right || (left.is_constant() && right.is_constant())) return;
      for (const Demand& d : candidates_) {
        if (d.a - d.b == left - right || d.a - d.b == right - left) return;
      }
      candidates_.push_back({text, left, right});
    };
    for (const ConvSizes& conv : convs_) {
      suggest(fmt::format("convolution {} has one group", conv.op), conv.groups, 1);
    }
    for (std::size_t i = 0; i < convs_.size(); ++i) {
      for (std::size_t j = i + 1; j < convs_.size(); ++j) {
        const std::string pair = fmt::format("{} and {}", convs_[i].op, convs_[j].op);
        suggest(fmt::format("convolutions {} have equally many groups", pair), convs_[i].groups,
                convs_[j].groups);
        suggest(fmt::format("convolutions {} have equally many filters in a group", pair),
                convs_[i].filters, convs_[j].filters);
        suggest(fmt::format("convolutions {} have equally many channels in a group", pair),
                convs_[i].channels, convs_[j].channels);
      }
    }
  }

  const PeerRule rule_;
  const Ranks ranks_;
  Sizes sizes_;
  int next_ = 1;  // Numbers the extra symbols.
  std::map<std::int32_t, std::vector<Symbol>> shapes_;
  std::map<std::pair<bool, std::size_t>, std::vector<Symbol>> extra_;
  const std::vector<Demand>* demands_ = nullptr;

  // Of the build in progress.
  std::map<std::pair<std::int32_t, int>, CutTree> variable_cuts_;
  // Of the round in progress.
  Graph graph_;
  std::vector<base::Condition> where_;
  std::map<std::int32_t, Value> variables_;
  std::vector<std::vector<Value>> source_, target_;
  std::vector<ConvSizes> convs_;
  bool open_window_ = false;
  int solved_ = 0;  // Equations solved before the round.
};

StatusOr<std::vector<Translator>> Translator::ForAllRanks(const PeerRule& rule) {
  ASSIGN_OR_RETURN(const std::vector<Ranks> all, AllRanks(rule, kRankTried));
  std::vector<Translator> translators;
  for (const Ranks& ranks : all) {
    translators.push_back(Translator(std::make_unique<Impl>(rule, ranks)));
  }
  return translators;
}

Translator::Translator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Translator::Translator(Translator&&) noexcept = default;
Translator::~Translator() = default;

StatusOr<rules::Rule> Translator::Build(const std::vector<Demand>& demands) {
  return impl_->Build(demands);
}
const std::vector<Demand>& Translator::candidates() const { return impl_->candidates_; }
const std::vector<Demand>& Translator::same_shape() const { return impl_->same_shape_; }
const std::string& Translator::label() const { return impl_->label_; }

}  // namespace tenon::interop
