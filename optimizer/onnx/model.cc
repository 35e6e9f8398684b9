#include "optimizer/onnx/model.h"

#include <algorithm>
#include <cctype>

#include <fmt/core.h>

#include "optimizer/onnx/source.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {

using graph::NodeId;

namespace {

// Whether `input` of a new graph is one of `before`, kind and type included.
bool Matches(const graph::Graph& g, NodeId id, const graph::Graph& before, NodeId other) {
  const graph::Node& a = g.node(id);
  const graph::Node& b = before.node(other);
  return b.is_input() && g.input(a.input).kind == before.input(b.input).kind && *a.type == *b.type;
}

}  // namespace

Status Model::SetGraph(graph::Graph graph) {
  const graph::Graph& before = source_->graph;
  if (graph.symbols().size() < before.symbols().size()) {
    return base::InvalidArgument("the new graph lacks symbols of the model");
  }
  if (graph.outputs().size() != before.outputs().size()) {
    return base::InvalidArgument(fmt::format("the model has {} outputs, the new graph {}",
                                             before.outputs().size(), graph.outputs().size()));
  }
  for (std::size_t k = 0; k < graph.outputs().size(); ++k) {
    if (*graph.node(graph.outputs()[k]).type != *before.node(before.outputs()[k]).type) {
      return base::InvalidArgument(
          fmt::format("the type of output '{}' differs", source_->output_names[k]));
    }
  }
  for (NodeId id : graph.Reachable(graph.outputs())) {
    if (!graph.node(id).is_input()) continue;
    const std::string& name = graph.input(graph.node(id).input).name;
    const auto it = source_->value.find(name);
    const auto added = added_.find(name);
    const bool known =
        added != added_.end()
            ? *graph.node(id).type ==
                  graph::TensorType{added->second->dtype, graph::ToShape(added->second->extents)}
            : it != source_->value.end() && Matches(graph, id, before, it->second);
    if (!known) {
      return base::InvalidArgument(
          fmt::format("input '{}' of the new graph is none of the model's", name));
    }
  }
  graph_ = std::move(graph);
  return OkStatus();
}

std::string Model::AddWeight(std::string_view hint, graph::DataType dtype,
                             const eval::Tensor<double>& value) {
  std::string stem(hint.empty() ? "folded" : hint);
  std::string name = stem;
  for (int k = 1; source_->names.contains(name) || added_.contains(name); ++k) {
    name = fmt::format("{}_{}", stem, k);
  }
  added_[name] = std::make_shared<const AddedWeight>(
      AddedWeight{dtype, value.extents, EncodeDoubles(dtype, value.data)});
  return name;
}

StatusOr<eval::Tensor<double>> Model::WeightValue(std::string_view name) const {
  const std::string key(name);
  onnx::TensorProto own;  // Only for an added weight.
  const onnx::TensorProto* tensor = nullptr;
  eval::Tensor<double> out;
  if (const auto it = added_.find(key); it != added_.end()) {
    own.set_data_type(int(it->second->dtype));
    own.set_raw_data(it->second->bytes);
    out.extents = it->second->extents;
    tensor = &own;
  } else if (const auto file = source_->weight.find(key); file != source_->weight.end()) {
    tensor = file->second;
    for (std::int64_t d : tensor->dims()) out.extents.push_back(d);
  }
  if (tensor == nullptr) return base::NotFound(fmt::format("there is no weight '{}'", name));
  auto data = ReadDoubles(*tensor, source_->folder);
  if (!data.ok()) {
    return base::Annotate(data.status(), fmt::format("{}: weight '{}'", source_->path, name));
  }
  out.data = *std::move(data);
  return out;
}

const std::string& Model::path() const { return source_->path; }
const std::vector<std::string>& Model::output_names() const { return source_->output_names; }
const std::vector<std::string>& Model::notes() const { return source_->notes; }
int Model::opset() const { return source_->opset; }
int Model::file_node_count() const { return source_->proto.graph().node_size(); }
int Model::understood_node_count() const { return source_->understood; }

Foreign Model::ForeignNode(std::int64_t key) const {
  CHECK(key >= 0 && key < file_node_count());
  const onnx::NodeProto& node = source_->node(int(key));
  return {node.name(), node.op_type(), node.domain()};
}

std::string Model::ForeignIdentity(std::int64_t key) const {
  CHECK(key >= 0 && key < file_node_count());
  const onnx::NodeProto& node = source_->node(int(key));
  const auto it = source_->node_names.find(node.name());
  if (it != source_->node_names.end() && it->second == 1 && !node.name().empty()) {
    return "node " + node.name();
  }
  for (const std::string& output : node.output()) {
    if (output.empty()) continue;
    const auto& outputs = source_->graph.outputs();
    const auto place = std::ranges::find(outputs, source_->value.at(output));
    return "value " + (place == outputs.end()
                           ? output
                           : source_->output_names[std::size_t(place - outputs.begin())]);
  }
  return fmt::format("number {}", key);
}

StatusOr<const void*> Model::WeightIdentity(std::string_view name) const {
  const std::string key(name);
  if (const auto it = added_.find(key); it != added_.end()) return it->second.get();
  if (const auto it = source_->value.find(key); it != source_->value.end()) {
    // Also weights whose elements nobody can read here; their nodes do not move.
    return &*it;
  }
  return base::NotFound(fmt::format("there is no weight '{}'", name));
}

bool Model::SameWeight(const Model& a, std::string_view name_a, const Model& b,
                       std::string_view name_b) {
  // Weights that were made here have floating types, and are compared by their values.
  const auto x = a.source_->weight.find(std::string(name_a));
  const auto y = b.source_->weight.find(std::string(name_b));
  if (x == a.source_->weight.end() || y == b.source_->weight.end()) return false;
  const onnx::TensorProto &s = *x->second, &t = *y->second;
  if (s.data_type() != t.data_type() || !std::ranges::equal(s.dims(), t.dims())) return false;
  if (s.data_type() == onnx::TensorProto::STRING) {
    return std::ranges::equal(s.string_data(), t.string_data());
  }
  if (ElementSize(s.data_type()) == 0) return false;
  const auto u = ReadBytes(s, a.source_->folder), v = ReadBytes(t, b.source_->folder);
  return u.ok() && v.ok() && *u == *v;
}

}  // namespace tenon::optimizer
