// The idea: go over the graph twice. Downwards, deciding for each value that is needed how it is
// written, and so which values that needs in turn; upwards, naming values and writing nodes. Node
// ids are a topological order, and a node of the file depends only on images of its ancestors, so
// both walks are plain loops and the order of writing is a topological one.
#include "optimizer/onnx/plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "optimizer/onnx/emit.h"
#include "optimizer/onnx/subgraph.h"

namespace tenon::optimizer {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;
using onnx::NodeProto;

class Planner {
 public:
  Planner(const Source& source, const Graph& graph, std::unordered_set<std::string> taken)
      : source_(source),
        graph_(graph),
        taken_(std::move(taken)),
        emitter_(graph, source.opset, taken_),
        survivor_(graph.size(), kNoNode),
        needed_(graph.size(), false),
        kept_(graph.size()) {}

  StatusOr<Plan> Run() {
    FindSurvivors();
    Decide();
    NameOutputs();
    for (NodeId id = 0; id < NodeId(graph_.size()); ++id) {
      if (needed_[std::size_t(id)] && !graph_.node(id).is_input()) RETURN_IF_ERROR(Write(id));
    }
    for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
      const std::string& name = NameOf(graph_.outputs()[k]);
      if (name != source_.output_names[k]) emitter_.EmitIdentity(name, source_.output_names[k]);
    }
    plan_.nodes = std::move(emitter_.nodes());
    plan_.initializers = std::move(emitter_.initializers());
    return std::move(plan_);
  }

 private:
  // How a value of the file is found when a surviving node refers to it: a node of the new graph,
  // or (inputs, weights) a name.
  struct Reference {
    NodeId id = kNoNode;
    std::string name;
  };

  void FindSurvivors();
  std::optional<Reference> Refer(const std::string& value) const;
  bool CanKeep(const Origin& origin) const;
  void Decide();
  void Need(const Reference& r);
  void NameOutputs();
  const std::string& NameOf(NodeId id);
  const std::string& NameOf(const Reference& r) { return r.id == kNoNode ? r.name : NameOf(r.id); }

  Status Write(NodeId id);
  Status WriteSplit(NodeId id, const ops::Split& op);
  void WriteKept(const Origin& origin);
  Status WriteOpaque(NodeId id, const ops::Opaque& op);
  void NameFileOutputs(NodeProto& node, int k);
  std::vector<NodeId> Flat(NodeId id) const;

  bool IsConstant(NodeId id) const {
    return !graph_.node(id).is_input() &&
           ops::InfoOf(*graph_.node(id).op).nature == ops::Nature::kConstant;
  }

  const Source& source_;
  const Graph& graph_;
  std::unordered_set<std::string> taken_;
  Emitter emitter_;
  Plan plan_;
  std::vector<NodeId> survivor_;              // By new node: the file's node it equals.
  std::unordered_map<NodeId, NodeId> image_;  // The inverse.
  std::vector<bool> needed_;
  std::vector<std::optional<Origin>> kept_;  // The node of the file it is written as.
  std::unordered_map<NodeId, std::string> names_;
  // The needed nodes that are not kept, in descending order: opaque ones by key, Splits by operand.
  std::unordered_map<std::int64_t, std::vector<NodeId>> opaque_;
  std::unordered_map<NodeId, std::vector<NodeId>> splits_;
  std::unordered_set<int> written_;  // Nodes of the file.
  std::unordered_set<NodeId> done_;  // Parts of a Split written with their siblings.
};

void Planner::FindSurvivors() {
  const Graph& old = source_.graph;
  std::unordered_multimap<std::size_t, NodeId> index;
  const auto hash = [](const ops::Operator& op, const std::vector<NodeId>& operands) {
    std::size_t h = ops::Hash(op);
    for (NodeId id : operands) h = (h ^ std::size_t(id)) * 0x9e3779b97f4a7c15ull;
    return h;
  };
  for (NodeId id = 0; id < NodeId(old.size()); ++id) {
    if (!old.node(id).is_input()) index.emplace(hash(*old.node(id).op, old.node(id).operands), id);
  }
  for (NodeId id = 0; id < NodeId(graph_.size()); ++id) {
    const graph::Node& n = graph_.node(id);
    NodeId& match = survivor_[std::size_t(id)];
    if (n.is_input()) {
      const auto it = source_.value.find(graph_.input(n.input).name);
      if (it != source_.value.end()) match = it->second;
    } else {
      std::vector<NodeId> operands;
      for (NodeId o : n.operands) operands.push_back(survivor_[std::size_t(o)]);
      if (std::ranges::find(operands, kNoNode) != operands.end()) continue;
      const auto [first, last] = index.equal_range(hash(*n.op, operands));
      for (auto it = first; it != last; ++it) {
        const graph::Node& m = old.node(it->second);
        if (*m.op == *n.op && m.operands == operands && *m.type == *n.type) match = it->second;
      }
    }
    if (match != kNoNode) image_.emplace(match, id);
  }
}

std::optional<Planner::Reference> Planner::Refer(const std::string& value) const {
  const NodeId old = source_.value.at(value);
  const graph::Node& n = source_.graph.node(old);
  if (n.is_input()) return Reference{kNoNode, source_.graph.input(n.input).name};
  const auto it = image_.find(old);
  if (it == image_.end()) return std::nullopt;
  return Reference{it->second, {}};
}

bool Planner::CanKeep(const Origin& origin) const {
  const NodeProto& node = source_.node(origin.node);
  return std::ranges::all_of(
      node.input(), [&](const std::string& v) { return v.empty() || Refer(v).has_value(); });
}

void Planner::Need(const Reference& r) {
  if (r.id != kNoNode) {
    needed_[std::size_t(r.id)] = true;
  } else if (source_.graph.input(source_.graph.node(source_.value.at(r.name)).input).kind ==
             graph::InputKind::kWeight) {
    plan_.weights.insert(r.name);
  }
}

void Planner::Decide() {
  for (NodeId id : graph_.outputs()) needed_[std::size_t(id)] = true;
  for (NodeId id = NodeId(graph_.size()); id-- > 0;) {
    if (!needed_[std::size_t(id)]) continue;
    const graph::Node& n = graph_.node(id);
    if (n.is_input()) {
      const graph::Input& input = graph_.input(n.input);
      if (input.kind == graph::InputKind::kWeight) plan_.weights.insert(input.name);
      continue;
    }
    const NodeId old = survivor_[std::size_t(id)];
    const auto origin = source_.origin.find(old);
    if (!ops::IsOpaque(*n.op) && origin != source_.origin.end() && CanKeep(origin->second)) {
      kept_[std::size_t(id)] = origin->second;
      for (const std::string& v : source_.node(origin->second.node).input()) {
        if (!v.empty()) Need(*Refer(v));
      }
      continue;
    }
    for (NodeId o : n.operands) needed_[std::size_t(o)] = true;
    if (const auto* op = std::get_if<ops::Opaque>(n.op.get())) opaque_[op->key].push_back(id);
    if (std::holds_alternative<ops::Split>(*n.op)) splits_[n.operands[0]].push_back(id);
  }
}

// Outputs keep their names; of two outputs of one value the second is an Identity of the first, and
// so is an output that is an input, a weight or a constant.
void Planner::NameOutputs() {
  for (const std::string& name : source_.output_names) taken_.insert(name);
  for (std::size_t k = 0; k < graph_.outputs().size(); ++k) {
    const NodeId id = graph_.outputs()[k];
    if (!graph_.node(id).is_input() && !IsConstant(id)) {
      names_.emplace(id, source_.output_names[k]);
    }
  }
}

const std::string& Planner::NameOf(NodeId id) {
  std::string& name = names_[id];
  if (!name.empty()) return name;
  const graph::Node& n = graph_.node(id);
  if (n.is_input()) return name = graph_.input(n.input).name;
  const auto old = source_.name.find(survivor_[std::size_t(id)]);
  if (old != source_.name.end() && taken_.insert(old->second).second) return name = old->second;
  // Fresh names avoid those of the file, used or not.
  std::string hint = fmt::format("tenon_{}", id);
  while (source_.names.contains(hint)) hint += "_";
  return name = emitter_.Fresh(hint);
}

// The operands of an opaque node without the bundles.
std::vector<NodeId> Planner::Flat(NodeId id) const {
  std::vector<NodeId> out;
  for (NodeId o : graph_.node(id).operands) {
    const graph::Node& n = graph_.node(o);
    const auto* op = n.is_input() ? nullptr : std::get_if<ops::Opaque>(n.op.get());
    if (op != nullptr && op->output < 0) {
      out.insert(out.end(), n.operands.begin(), n.operands.end());
    } else {
      out.push_back(o);
    }
  }
  return out;
}

// Names the outputs of node k of the file as the new graph's values that they are; what nobody
// needs keeps its name if that is free.
void Planner::NameFileOutputs(NodeProto& node, int k) {
  for (int o = 0; o < node.output_size(); ++o) {
    const std::string name = node.output(o);
    if (name.empty()) continue;
    const NodeId old = source_.value.at(name);
    const auto origin = source_.origin.find(old);
    const auto image = image_.find(old);
    const bool own =
        origin != source_.origin.end() && origin->second.node == k && origin->second.output == o;
    if (own && image != image_.end() && needed_[std::size_t(image->second)]) {
      node.set_output(o, NameOf(image->second));
    } else if (!taken_.insert(name).second) {
      node.set_output(o, emitter_.Fresh(name));
    }
  }
}

void Planner::WriteKept(const Origin& origin) {
  if (!written_.insert(origin.node).second) return;
  NodeProto node = source_.node(origin.node);
  for (auto& v : *node.mutable_input()) {
    if (!v.empty()) v = NameOf(*Refer(v));
  }
  NameFileOutputs(node, origin.node);
  emitter_.Append(std::move(node));
  ++plan_.kept_nodes;
}

// Outputs of one node of the file are one node again. If a rewrite gave them different operands,
// these are equal by the rewrite's proof, and the first ones serve for all.
Status Planner::WriteOpaque(NodeId id, const ops::Opaque& op) {
  const int key = int(op.key);
  if (op.output < 0) return OkStatus();  // A bundle.
  if (!written_.insert(key).second) return OkStatus();
  NodeProto node = source_.node(key);
  const std::vector<NodeId> operands = Flat(id);
  std::size_t next = 0;
  for (auto& v : *node.mutable_input()) {
    if (v.empty()) continue;
    CHECK(next < operands.size());
    v = NameOf(operands[next++]);
  }
  std::unordered_map<std::string, std::string> captures;
  for (const std::string& v : CapturedNames(node)) {
    CHECK(next < operands.size());
    const std::string& name = NameOf(operands[next++]);
    if (name != v) captures[v] = name;
  }
  CHECK(next == operands.size());
  if (!captures.empty()) RenameCaptures(node, captures);
  for (int o = 0; o < node.output_size(); ++o) {
    const std::string name = node.output(o);
    if (name.empty()) continue;
    std::vector<NodeId> images;
    for (NodeId n : opaque_[op.key]) {
      if (std::get<ops::Opaque>(*graph_.node(n).op).output == o) images.push_back(n);
    }
    if (!images.empty()) {
      const std::string image = NameOf(images.back());
      node.set_output(o, image);
      for (NodeId n : images) names_[n] = image;
    } else if (!taken_.insert(name).second) {
      node.set_output(o, emitter_.Fresh(name));
    }
  }
  emitter_.Append(std::move(node));
  ++plan_.kept_nodes;
  return OkStatus();
}

Status Planner::WriteSplit(NodeId id, const ops::Split& op) {
  if (done_.contains(id)) return OkStatus();
  const NodeId whole = graph_.node(id).operands[0];
  std::vector<NodeId> parts(std::size_t(op.parts), kNoNode);
  for (NodeId n : splits_[whole]) {
    const auto& other = std::get<ops::Split>(*graph_.node(n).op);
    if (other.axis == op.axis && other.parts == op.parts) parts[std::size_t(other.index)] = n;
  }
  if (std::ranges::find(parts, kNoNode) != parts.end()) {
    return emitter_.Emit(id, {NameOf(whole)}, NameOf(id));
  }
  std::vector<std::string> names;
  for (NodeId n : parts) {
    names.push_back(NameOf(n));
    done_.insert(n);
  }
  emitter_.EmitSplit(NameOf(whole), op.axis, names);
  return OkStatus();
}

Status Planner::Write(NodeId id) {
  const graph::Node& n = graph_.node(id);
  if (kept_[std::size_t(id)]) {
    WriteKept(*kept_[std::size_t(id)]);
    return OkStatus();
  }
  if (const auto* op = std::get_if<ops::Opaque>(n.op.get())) return WriteOpaque(id, *op);
  if (const auto* op = std::get_if<ops::Split>(n.op.get())) return WriteSplit(id, *op);
  std::vector<std::string> inputs;
  for (NodeId o : n.operands) inputs.push_back(NameOf(o));
  return emitter_.Emit(id, inputs, NameOf(id));
}

}  // namespace

StatusOr<Plan> MakePlan(const Source& source, const Graph& graph,
                        std::unordered_set<std::string> reserved) {
  return Planner(source, graph, std::move(reserved)).Run();
}

}  // namespace tenon::optimizer
