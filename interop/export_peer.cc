#include "interop/export_peer.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "core/rules/text.h"
#include "interop/judge.h"
#include "interop/report.h"
#include "interop/windows.h"

namespace tenon::interop {
namespace {

using base::Poly;
using graph::Graph;
using graph::NodeId;

Status NotCarried(const std::string& what) { return absl::UnimplementedError(what); }

StatusOr<std::int32_t> Number(const Poly& p, std::string_view what) {
  if (!p.is_constant()) return NotCarried(fmt::format("{} is symbolic", what));
  if (p.constant() < 0 || p.constant() > std::numeric_limits<std::int32_t>::max()) {
    return NotCarried(fmt::format("{} has no number of 32 bits", what));
  }
  return static_cast<std::int32_t>(p.constant());
}

// One side of a rule.
class Side {
 public:
  Side(const Graph& g, const std::vector<NodeId>& roots) : g_(g), roots_(roots) {}

  Status Write() {
    const std::vector<NodeId> nodes = g_.Reachable(roots_);
    for (const NodeId id : nodes) {
      const graph::Node& node = g_.node(id);
      if (node.is_input()) {
        places_[id] = {-node.input - 1, 0};
      } else if (std::holds_alternative<ops::Slice>(*node.op)) {
        // With the others of its operand, below.
        slices_[{node.operands[0], std::get<ops::Slice>(*node.op).axis}].push_back(id);
      }
    }
    for (const NodeId id : nodes) {
      if (places_.contains(id)) continue;
      const graph::Node& node = g_.node(id);
      const Status written =
          std::visit([&](const auto& op) { return Add(op, id, node); }, *node.op);
      if (!written.ok()) return written;
    }
    return OkStatus();
  }

  const std::vector<PeerOperator>& operators() const { return operators_; }
  StatusOr<PeerTensor> Place(NodeId id) const {
    const PeerTensor place = places_.at(id);
    if (place.op < 0) return NotCarried("one side is an input alone");
    return place;
  }

 private:
  using Parameters = std::map<PeerKey, std::int32_t>;

  Status Push(PeerType type, NodeId id, Parameters parameters = {}) {
    PeerOperator op;
    op.type = type;
    for (const NodeId operand : g_.node(id).operands) op.inputs.push_back(places_.at(operand));
    op.parameters = std::move(parameters);
    places_[id] = {static_cast<std::int32_t>(operators_.size()), 0};
    operators_.push_back(std::move(op));
    return OkStatus();
  }

  std::int32_t Rank(NodeId id) const { return g_.shape(id).size(); }

  Status ElementWise(PeerType type, NodeId id, const graph::Node& node) {
    const graph::Shape a = g_.shape(node.operands[0]), b = g_.shape(node.operands[1]);
    if (!(a == b)) return NotCarried("it broadcasts");
    return Push(type, id);
  }

  Status Add(const ops::Add&, NodeId id, const graph::Node& node) {
    return ElementWise(PeerType::kAdd, id, node);
  }
  Status Add(const ops::Mul&, NodeId id, const graph::Node& node) {
    // By a scalar it is another operator, with the scalar last.
    const int ranks[] = {Rank(node.operands[0]), Rank(node.operands[1])};
    if ((ranks[0] == 0) == (ranks[1] == 0)) return ElementWise(PeerType::kMul, id, node);
    RETURN_IF_ERROR(Push(PeerType::kScalarMul, id));
    if (ranks[0] == 0) std::swap(operators_.back().inputs[0], operators_.back().inputs[1]);
    return OkStatus();
  }
  Status Add(const ops::Relu&, NodeId id, const graph::Node&) { return Push(PeerType::kRelu, id); }
  Status Add(const ops::Sigmoid&, NodeId id, const graph::Node&) {
    return Push(PeerType::kSigmoid, id);
  }
  Status Add(const ops::Tanh&, NodeId id, const graph::Node&) { return Push(PeerType::kTanh, id); }
  Status Add(const ops::MatMul&, NodeId id, const graph::Node& node) {
    const graph::Shape a = g_.shape(node.operands[0]), b = g_.shape(node.operands[1]);
    if (a.size() != b.size()) return NotCarried("it broadcasts");
    for (int k = 0; k + 2 < a.size(); ++k) {
      if (!(a[k] == b[k])) return NotCarried("it broadcasts");
    }
    return Push(PeerType::kMatMul, id, {{PeerKey::kActivation, 0}});
  }
  Status Add(const ops::Concat& op, NodeId id, const graph::Node& node) {
    return Push(PeerType::kConcat, id,
                {{PeerKey::kInputs, static_cast<std::int32_t>(node.operands.size())},
                 {PeerKey::kAxis, static_cast<std::int32_t>(op.axis)},
                 {PeerKey::kRank, Rank(id)}});
  }
  Status Add(const ops::Transpose& op, NodeId id, const graph::Node&) {
    std::int64_t number = 0;
    for (const std::int64_t p : op.perm) number = number * op.perm.size() + p;
    if (number > std::numeric_limits<std::int32_t>::max()) {
      return NotCarried("the permutation has no number of 32 bits");
    }
    return Push(PeerType::kTranspose, id,
                {{PeerKey::kRank, Rank(id)},
                 {PeerKey::kPermutation, static_cast<std::int32_t>(number)},
                 {PeerKey::kOutShuffle, 1}});
  }

  // The parameters of a window, SAME where it leads to these pads.
  Status AddWindow(const graph::Shape& kernel, const ops::Short<ops::Size>& strides,
                   const ops::Short<ops::Size>& pads, Parameters& out) {
    ASSIGN_OR_RETURN(out[PeerKey::kKernelH], Number(kernel[0], "the kernel"));
    ASSIGN_OR_RETURN(out[PeerKey::kKernelW], Number(kernel[1], "the kernel"));
    ASSIGN_OR_RETURN(out[PeerKey::kStrideH], Number(strides[0], "a stride"));
    ASSIGN_OR_RETURN(out[PeerKey::kStrideW], Number(strides[1], "a stride"));
    for (const std::int32_t mode : {kPadSame, kPadValid}) {
      PeerOperator probe;
      probe.parameters = out;
      probe.parameters[PeerKey::kPad] = mode;
      const auto window = WindowOf(probe, kernel);
      if (!window.ok()) continue;
      const ops::Short<ops::Size> both = {window->pads[0], window->pads[1], window->pads[0],
                                          window->pads[1]};
      if (!(both == pads)) continue;
      out[PeerKey::kPad] = mode;
      return OkStatus();
    }
    return NotCarried("its padding is neither SAME nor VALID");
  }

  Status Add(const ops::Conv& op, NodeId id, const graph::Node& node) {
    if (node.operands.size() != 2) return NotCarried("a convolution has a bias or a residual");
    if (!(op.dilations == ops::Short<ops::Size>{1, 1})) return NotCarried("it is dilated");
    Parameters parameters;
    const graph::Shape& w = g_.shape(node.operands[1]);
    RETURN_IF_ERROR(AddWindow({w[2], w[3]}, op.strides, op.pads, parameters));
    switch (op.activation) {
      case ops::Activation::kNone:
        parameters[PeerKey::kActivation] = 0;
        break;
      case ops::Activation::kSigmoid:
        parameters[PeerKey::kActivation] = 1;
        break;
      case ops::Activation::kRelu:
        parameters[PeerKey::kActivation] = 2;
        break;
      case ops::Activation::kTanh:
        parameters[PeerKey::kActivation] = 3;
        break;
    }
    return Push(PeerType::kConv, id, std::move(parameters));
  }

  template <class Pool>
  Status AddPool(PeerType type, const Pool& op, NodeId id) {
    Parameters parameters{{PeerKey::kOpType, static_cast<std::int32_t>(type)},
                          {PeerKey::kActivation, 0}};
    RETURN_IF_ERROR(
        AddWindow({op.kernel_shape[0], op.kernel_shape[1]}, op.strides, op.pads, parameters));
    return Push(type, id, std::move(parameters));
  }
  Status Add(const ops::MaxPool& op, NodeId id, const graph::Node&) {
    return AddPool(PeerType::kMaxPool, op, id);
  }
  Status Add(const ops::AveragePool& op, NodeId id, const graph::Node&) {
    if (op.count_include_pad == 1) return NotCarried("an average pool counts its padding");
    return AddPool(PeerType::kAveragePool, op, id);
  }
  Status AddKernel(PeerType type, const ops::Short<ops::Size>& kernel, NodeId id) {
    Parameters parameters;
    ASSIGN_OR_RETURN(parameters[PeerKey::kKernelH], Number(kernel[0], "the kernel"));
    ASSIGN_OR_RETURN(parameters[PeerKey::kKernelW], Number(kernel[1], "the kernel"));
    return Push(type, id, std::move(parameters));
  }
  Status Add(const ops::Enlarge& op, NodeId id, const graph::Node&) {
    return AddKernel(PeerType::kEnlarge, op.kernel_shape, id);
  }
  Status Add(const ops::ConvIdentity& op, NodeId id, const graph::Node&) {
    return AddKernel(PeerType::kIdentityKernel, op.kernel_shape, id);
  }
  Status Add(const ops::Eye&, NodeId id, const graph::Node&) {
    return Push(PeerType::kIdentityMatrix, id);
  }
  Status Add(const ops::Fill& op, NodeId id, const graph::Node&) {
    if (op.value != 1) return NotCarried("a constant is not 1");
    return Push(PeerType::kOnes, id);
  }

  // All slices of one operand at once: they are the pieces of one Split.
  Status Add(const ops::Slice& op, NodeId, const graph::Node& node) {
    const NodeId operand = node.operands[0];
    std::vector<NodeId> left = slices_.at({operand, op.axis});
    const Poly extent = g_.shape(operand)[static_cast<int>(op.axis)];
    std::int32_t pieces = 0;
    std::vector<std::pair<NodeId, std::int32_t>> found;
    Poly at = 0;
    const auto slice = [&](NodeId id) -> const ops::Slice& {
      return std::get<ops::Slice>(*g_.node(id).op);
    };
    while (!left.empty()) {
      std::size_t k = 0;
      while (k < left.size() && !(slice(left[k]).start == at)) ++k;
      if (k == left.size()) {
        // What lies before the only one that is left is a piece that nobody reads.
        if (left.size() > 1) return NotCarried("its slices are no pieces of a split");
        k = 0;
        ++pieces;
      }
      if (slice(left[k]).step != 1) return NotCarried("a slice leaves elements out");
      found.emplace_back(left[k], pieces++);
      at = slice(left[k]).end;
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(k));
    }
    if (!(at == extent)) ++pieces;
    PeerOperator split;
    split.type = PeerType::kSplit;
    split.inputs = {places_.at(operand)};
    split.parameters = {{PeerKey::kOutputs, pieces},
                        {PeerKey::kAxis, static_cast<std::int32_t>(op.axis)}};
    for (const auto& [id, piece] : found) {
      places_[id] = {static_cast<std::int32_t>(operators_.size()), piece};
    }
    operators_.push_back(std::move(split));
    return OkStatus();
  }

  template <class Op>
  Status Add(const Op&, NodeId, const graph::Node&) {
    return NotCarried(fmt::format("{} has no counterpart there", Op::kInfo.name));
  }

  const Graph& g_;
  const std::vector<NodeId>& roots_;
  std::map<NodeId, PeerTensor> places_;
  std::map<std::pair<NodeId, std::int64_t>, std::vector<NodeId>> slices_;
  std::vector<PeerOperator> operators_;
};

}  // namespace

StatusOr<PeerRule> ToPeer(const rules::Rule& rule) {
  PeerRule out;
  out.name = rule.name;
  Side source(rule.graph, rule.source), target(rule.graph, rule.target);
  RETURN_IF_ERROR(source.Write());
  RETURN_IF_ERROR(target.Write());
  out.source = source.operators();
  out.target = target.operators();
  for (std::size_t k = 0; k < rule.source.size(); ++k) {
    PeerOutput mapped;
    ASSIGN_OR_RETURN(mapped.source, source.Place(rule.source[k]));
    ASSIGN_OR_RETURN(mapped.target, target.Place(rule.target[k]));
    out.outputs.push_back(mapped);
  }
  const Status valid = Validate(out);
  if (!valid.ok()) return NotCarried(base::Message(valid));
  return out;
}

std::vector<rules::Rule> Directions(const std::vector<rules::Rule>& rules) {
  std::vector<rules::Rule> out;
  for (const rules::Rule& rule : rules) {
    out.push_back(rule);
    if (!rule.both) continue;
    out.back().both = false;
    rules::Rule back = out.back();
    std::swap(back.source, back.target);
    back.name += ".back";
    out.push_back(std::move(back));
  }
  return out;
}

StatusOr<PeerExport> ExportToPeer(const std::vector<rules::Rule>& rules) {
  PeerExport out;
  for (const rules::Rule& rule : rules) {
    StatusOr<PeerRule> peer = ToPeer(rule);
    if (!peer.ok()) {
      out.left_out.push_back({rule.name, base::Message(peer.status())});
      continue;
    }
    ASSIGN_OR_RETURN(const Judged judged, Judge(*peer));
    if (judged.finding == Finding::kProved) {
      out.rules.push_back(*std::move(peer));
      continue;
    }
    out.left_out.push_back({rule.name, fmt::format("{}: {}",
                                                   judged.finding == Finding::kConditional
                                                       ? "the format cannot say what it needs"
                                                       : "as it is read there, it is not proved",
                                                   Remark(judged))});
  }
  return out;
}

}  // namespace tenon::interop
