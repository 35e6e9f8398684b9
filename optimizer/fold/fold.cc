// Roots are the nodes on weights only whose value is used outside of them. Their cones are
// evaluated in the order of ids, each node once, values dropped after the last use; then the graph
// is copied with the roots as new weights. A root that would be too large makes its operands roots.
#include "optimizer/fold/fold.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "optimizer/eval/engine.h"

namespace tenon::optimizer {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;

class Folder {
 public:
  Folder(Model& model, const FoldOptions& options)
      : model_(model), options_(options), g_(model.graph()), root_(g_.size(), false) {}

  StatusOr<FoldSummary> Run() {
    FindRoots();
    if (std::ranges::find(root_, true) == root_.end()) return summary_;
    Model changed = model_;
    RETURN_IF_ERROR(Evaluate(changed));
    ASSIGN_OR_RETURN(Graph graph, Rebuild());
    const int before = g_.OperatorCount(g_.outputs());
    summary_.folded = before - graph.OperatorCount(graph.outputs());
    RETURN_IF_ERROR(changed.SetGraph(std::move(graph)));
    model_ = std::move(changed);
    return summary_;
  }

 private:
  // An operator with operands, all of them known now.
  bool Computable(NodeId id) const {
    const graph::Node& n = g_.node(id);
    return !n.is_input() && n.weights_only && !n.operands.empty() && graph::IsConcrete(n.shape()) &&
           graph::IsFloating(n.type->dtype);
  }
  bool Fits(NodeId id) const;
  void FindRoots();
  Status Evaluate(Model& changed);
  StatusOr<Graph> Rebuild() const;
  // The name of a weight below, to call the new one after.
  std::string Hint(NodeId id) const {
    while (!g_.node(id).is_input() && !g_.node(id).operands.empty()) id = g_.node(id).operands[0];
    return g_.node(id).is_input() ? g_.input(g_.node(id).input).name + "_folded" : "folded";
  }

  Model& model_;
  const FoldOptions options_;
  const Graph& g_;
  std::vector<bool> root_;
  std::vector<std::string> names_;  // Of the roots' new weights, by node.
  FoldSummary summary_;
};

bool Folder::Fits(NodeId id) const {
  const double size = double(graph::ElementCount(graph::Concrete(g_.shape(id))));
  if (size <= double(options_.always_elements)) return true;
  double sources = 0;
  const NodeId roots[] = {id};
  for (NodeId below : g_.Reachable(roots)) {
    if (!g_.node(below).is_input()) continue;
    sources += double(graph::ElementCount(graph::Concrete(g_.shape(below))));
  }
  return size <= options_.growth * sources;
}

void Folder::FindRoots() {
  std::vector<bool> wanted(g_.size(), false);
  for (NodeId id : g_.outputs()) wanted[std::size_t(id)] = true;
  for (NodeId id : g_.Reachable(g_.outputs())) {
    if (Computable(id)) continue;
    for (NodeId o : g_.node(id).operands) wanted[std::size_t(o)] = true;
  }
  const std::vector<NodeId> order = g_.Reachable(g_.outputs());
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (!wanted[std::size_t(*it)] || !Computable(*it)) continue;
    if (Fits(*it)) {
      root_[std::size_t(*it)] = true;
    } else {
      ++summary_.left;
      for (NodeId o : g_.node(*it).operands) wanted[std::size_t(o)] = true;
    }
  }
}

Status Folder::Evaluate(Model& changed) {
  std::vector<NodeId> roots;
  for (NodeId id = 0; id < NodeId(g_.size()); ++id) {
    if (root_[std::size_t(id)]) roots.push_back(id);
  }
  const std::vector<NodeId> order = g_.Reachable(roots);
  std::vector<int> uses(g_.size(), 0);
  for (NodeId id : order) {
    for (NodeId o : g_.node(id).operands) ++uses[std::size_t(o)];
  }
  std::vector<std::unique_ptr<Values>> values(g_.size());
  names_.resize(g_.size());
  for (NodeId id : order) {
    const graph::Node& n = g_.node(id);
    Values value;
    if (n.is_input()) {
      ASSIGN_OR_RETURN(value, changed.WeightValue(g_.input(n.input).name));
    } else {
      std::vector<const Values*> operands;
      for (NodeId o : n.operands) operands.push_back(values[std::size_t(o)].get());
      ASSIGN_OR_RETURN(value, Apply(*n.op, operands, graph::Concrete(n.shape())));
      for (NodeId o : n.operands) {
        if (--uses[std::size_t(o)] == 0) values[std::size_t(o)].reset();
      }
    }
    if (root_[std::size_t(id)]) {
      names_[std::size_t(id)] = changed.AddWeight(Hint(id), n.type->dtype, value);
      ++summary_.weights;
      summary_.elements += std::int64_t(value.data.size());
    }
    if (uses[std::size_t(id)] > 0)
      values[std::size_t(id)] = std::make_unique<Values>(std::move(value));
  }
  return OkStatus();
}

StatusOr<Graph> Folder::Rebuild() const {
  Graph out;
  out.symbols() = g_.symbols();
  std::vector<NodeId> image(g_.size(), kNoNode);
  std::vector<bool> needed(g_.size(), false);
  for (NodeId id : g_.outputs()) needed[std::size_t(id)] = true;
  for (std::size_t k = g_.size(); k-- > 0;) {
    if (!needed[k] || root_[k]) continue;
    for (NodeId o : g_.node(NodeId(k)).operands) needed[std::size_t(o)] = true;
  }
  for (NodeId id = 0; id < NodeId(g_.size()); ++id) {
    const graph::Node& n = g_.node(id);
    NodeId& place = image[std::size_t(id)];
    if (n.is_input()) {
      const graph::Input& input = g_.input(n.input);
      if (needed[std::size_t(id)] || input.kind == graph::InputKind::kActivation) {
        place = out.AddInput(input.name, input.kind, *n.type);
      }
    } else if (!needed[std::size_t(id)]) {
      continue;
    } else if (root_[std::size_t(id)]) {
      place = out.AddInput(names_[std::size_t(id)], graph::InputKind::kWeight, *n.type);
    } else {
      std::vector<NodeId> operands;
      for (NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
      ASSIGN_OR_RETURN(place, out.Add(*n.op, operands, n.type->dtype));
    }
  }
  std::vector<NodeId> outputs;
  for (NodeId id : g_.outputs()) outputs.push_back(image[std::size_t(id)]);
  out.SetOutputs(std::move(outputs));
  return out;
}

}  // namespace

StatusOr<FoldSummary> FoldWeights(Model& model, const FoldOptions& options) {
  return Folder(model, options).Run();
}

}  // namespace tenon::optimizer
