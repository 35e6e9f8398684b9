// Import: from an ONNX file to a Model.
//
// The nodes are read in topological order. A node whose operands have descriptions, whose operator
// has a hook (reader.h) and whose hook accepts becomes operators of the algebra; every other node
// becomes Opaque nodes, one an output, with the types that ONNX's shape inference found. A value's
// name and the node it comes from are kept beside the graph, so that the exporter can write back
// what survives as it was.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "optimizer/onnx/check.h"
#include "optimizer/onnx/model.h"
#include "optimizer/onnx/reader.h"
#include "optimizer/onnx/source.h"
#include "optimizer/onnx/subgraph.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {

using graph::DataType;
using graph::kNoNode;
using graph::NodeId;
using graph::TensorType;
using onnx::NodeProto;

class Importer {
 public:
  Importer(const std::string& path, const ImportOptions& options)
      : options_(options), source_(std::make_shared<Source>()) {
    source_->path = path;
    source_->folder = std::filesystem::path(path).parent_path();
  }
  StatusOr<Model> Run();

 private:
  Status ReadOpsets();
  Status ReadTypes();
  Status AddInputs();
  Status AddWeight(const std::string& name, const onnx::TensorProto& tensor);
  Status AddNode(int k);
  // Whether node k is a weight; it is then added.
  StatusOr<bool> AddConstant(int k);
  // The values of the outputs, or nothing with a reason.
  std::optional<Meaning> Understand(int k, std::string& why);
  // Whether the graph's type of a value is what ONNX's inference found, as far as that goes.
  bool Agrees(const std::string& name, NodeId id);
  Status AddOpaque(int k);
  StatusOr<TensorType> TypeOf(const std::string& name);
  StatusOr<TensorType> Convert(const onnx::TypeProto& type);
  void Name(const std::string& name, NodeId id) {
    source_->value[name] = id;
    source_->name.emplace(id, name);
  }
  void NoteOpaque();

  const ImportOptions options_;
  std::shared_ptr<Source> source_;
  onnx::ModelProto inferred_;
  std::unordered_map<std::string, const onnx::TypeProto*> types_;
  std::unordered_map<std::string, base::Symbol> dims_;
  std::unordered_set<std::string> functions_;                  // "domain:name" of the model's own.
  std::map<std::pair<std::string, std::string>, int> opaque_;  // Type and reason: how many.
};

Status Importer::ReadOpsets() {
  const onnx::ModelProto& model = source_->proto;
  if (model.ir_version() < 1) {
    return base::InvalidArgument("ir_version is missing: it is not an ONNX model, or is truncated");
  }
  for (const auto& o : model.opset_import()) {
    if (IsOnnxDomain(o.domain())) source_->opset = int(std::min<std::int64_t>(o.version(), 1000));
  }
  if (model.ir_version() < 3 && model.opset_import_size() == 0) source_->opset = 1;
  for (const auto& f : model.functions()) functions_.insert(f.domain() + ":" + f.name());
  if (source_->opset > kOpsetMax) {
    source_->notes.push_back(fmt::format(
        "opset {} is newer than {}, the newest known here: all nodes are carried as they "
        "are and nothing is optimized; export the model at opset {} to change that",
        source_->opset, kOpsetMax, kOpsetMax));
  } else if (source_->opset < kOpsetMin && source_->opset > 0) {
    source_->notes.push_back(
        fmt::format("opset {} is older than {}: all nodes are carried as they are and nothing is "
                    "optimized; convert the model to a newer opset to change that",
                    source_->opset, kOpsetMin));
  }
  return OkStatus();
}

Status Importer::ReadTypes() {
  onnx::ModelProto& model = source_->proto;
  if (source_->opset <= kOpsetMax) {
    RETURN_IF_ERROR(base::Annotate(RunChecker(model, source_->folder), "ONNX's checker"));
    auto types = InferTypes(model, source_->inference);
    while (!types.ok() && source_->inference != Inference::kNoDeclared) {
      source_->notes.push_back(fmt::format("shape inference does not accept all of the file: {}",
                                           base::Message(types.status())));
      source_->inference = Inference(int(source_->inference) + 1);
      types = InferTypes(model, source_->inference);
    }
    if (!types.ok()) return base::Annotate(types.status(), "ONNX's shape inference");
    inferred_ = *std::move(types);
  } else {
    *inferred_.mutable_graph()->mutable_value_info() = model.graph().value_info();
    *inferred_.mutable_graph()->mutable_output() = model.graph().output();
  }
  for (const auto& v : inferred_.graph().value_info()) types_[v.name()] = &v.type();
  for (const auto& v : inferred_.graph().output()) types_.emplace(v.name(), &v.type());
  return OkStatus();
}

StatusOr<TensorType> Importer::Convert(const onnx::TypeProto& type) {
  const TensorType unknown{DataType::kUndefined, {}};
  if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return unknown;
  const auto& dims = type.tensor_type().shape().dim();
  if (dims.size() > base::kRankMax) return unknown;
  TensorType out{ToDataType(type.tensor_type().elem_type()), {}};
  std::vector<std::int64_t> known;
  for (const auto& d : dims) {
    if (d.has_dim_value()) {
      if (d.dim_value() == 0) return unknown;
      known.push_back(d.dim_value());
      out.shape.push_back(d.dim_value());
      continue;
    }
    base::Symbol& symbol = d.dim_param().empty() ? (dims_[""] = 0) : dims_[d.dim_param()];
    if (symbol == 0) {
      symbol = source_->graph.symbols().Add(d.dim_param().empty() ? "?" : d.dim_param(),
                                            base::SymbolKind::kDim);
    }
    if (symbol == 0) return unknown;  // More symbols than there can be.
    out.shape.push_back(base::Poly::Var(symbol));
  }
  RETURN_IF_ERROR(CountElements(known).status());
  return out.dtype == DataType::kUndefined ? unknown : out;
}

StatusOr<TensorType> Importer::TypeOf(const std::string& name) {
  const auto it = types_.find(name);
  if (it == types_.end()) return TensorType{DataType::kUndefined, {}};
  auto type = Convert(*it->second);
  if (!type.ok()) return base::Annotate(type.status(), fmt::format("value '{}': shape", name));
  return type;
}

Status Importer::AddWeight(const std::string& name, const onnx::TensorProto& tensor) {
  TensorType type{ToDataType(tensor.data_type()), {}};
  if (tensor.dims_size() > base::kRankMax || std::ranges::count(tensor.dims(), 0) > 0) {
    type.dtype = DataType::kUndefined;
  }
  for (std::int64_t d : tensor.dims()) {
    if (type.dtype != DataType::kUndefined) type.shape.push_back(d);
  }
  Name(name, source_->graph.AddInput(name, graph::InputKind::kWeight, type));
  source_->weight[name] = &tensor;
  return OkStatus();
}

Status Importer::AddInputs() {
  const onnx::GraphProto& graph = source_->proto.graph();
  // Up to IR version 3 every initializer had to be an input as well; later it is a default value.
  const bool overridable = source_->proto.ir_version() >= 4;
  std::unordered_set<std::string> weights;
  for (const auto& t : graph.initializer()) weights.insert(t.name());
  for (const auto& v : graph.input()) {
    if (!overridable && weights.contains(v.name())) continue;
    weights.erase(v.name());
    auto type = Convert(v.type());
    if (!type.ok()) return base::Annotate(type.status(), fmt::format("input '{}'", v.name()));
    Name(v.name(), source_->graph.AddInput(v.name(), graph::InputKind::kActivation, *type));
  }
  for (const auto& t : graph.initializer()) {
    if (weights.contains(t.name())) RETURN_IF_ERROR(AddWeight(t.name(), t));
  }
  for (const auto& t : graph.sparse_initializer()) {
    const std::string& name = t.values().name();
    if (source_->value.contains(name)) continue;
    Name(name,
         source_->graph.AddInput(name, graph::InputKind::kWeight, {DataType::kUndefined, {}}));
  }
  return OkStatus();
}

StatusOr<bool> Importer::AddConstant(int k) {
  const NodeProto& node = source_->node(k);
  if (node.op_type() != "Constant" || node.attribute_size() != 1 || node.output_size() != 1) {
    return false;
  }
  const onnx::AttributeProto& a = node.attribute(0);
  if (!a.ref_attr_name().empty()) return false;
  const onnx::TensorProto* tensor = nullptr;
  if (a.name() == "value" && a.has_t()) {
    tensor = &a.t();
  } else {
    onnx::TensorProto made;
    if (a.name() == "value_float" || a.name() == "value_floats") {
      made.set_data_type(onnx::TensorProto::FLOAT);
      *made.mutable_float_data() = a.floats();
      if (a.name() == "value_float") made.add_float_data(a.f());
      if (a.name() == "value_floats") made.add_dims(a.floats_size());
    } else if (a.name() == "value_int" || a.name() == "value_ints") {
      made.set_data_type(onnx::TensorProto::INT64);
      *made.mutable_int64_data() = a.ints();
      if (a.name() == "value_int") made.add_int64_data(a.i());
      if (a.name() == "value_ints") made.add_dims(a.ints_size());
    } else {
      return false;
    }
    source_->made.push_back(std::move(made));
    tensor = &source_->made.back();
  }
  source_->constant_node[node.output(0)] = k;
  RETURN_IF_ERROR(AddWeight(node.output(0), *tensor));
  ++source_->understood;
  return true;
}

std::optional<Meaning> Importer::Understand(int k, std::string& why) {
  const NodeProto& node = source_->node(k);
  const Hook hook = HookOf(node.op_type());
  std::vector<NodeId> operands;
  DataType dtype = DataType::kUndefined;
  bool plain = true;
  for (const std::string& name : node.input()) {
    operands.push_back(name.empty() ? kNoNode : source_->value.at(name));
  }
  const Reader::Constants constants = [&](const std::string& name) {
    const auto it = source_->weight.find(name);
    return it == source_->weight.end() ? nullptr : it->second;
  };
  Reader reader(node, source_->opset, operands, constants, source_->folder, source_->graph);
  if (!reader.HasInput(0) || SubgraphsOf(node).size() > 0) return std::nullopt;
  if (IsAlias(reader, node.op_type())) return Meaning{operands[0]};
  if (hook == nullptr) return std::nullopt;
  dtype = source_->graph.node(operands[0]).type->dtype;
  plain = graph::IsFloating(dtype);
  if (!plain) {
    why = fmt::format("its operands are {}", graph::NameOf(dtype));
    return std::nullopt;
  }
  Meaning meaning = hook(reader);
  why = reader.refusal();
  if (std::ranges::find(meaning, kNoNode) != meaning.end()) return std::nullopt;
  for (int o = 0; o < node.output_size(); ++o) {
    if (node.output(o).empty()) continue;
    if (o >= int(meaning.size()) || !Agrees(node.output(o), meaning[std::size_t(o)])) {
      why = "its outputs are not those that shape inference finds";
      return std::nullopt;
    }
  }
  return meaning;
}

bool Importer::Agrees(const std::string& name, NodeId id) {
  const TensorType& own = *source_->graph.node(id).type;
  std::vector<std::int64_t> known;
  for (const base::Poly& p : own.shape) {
    if (p.is_constant()) known.push_back(p.constant());
  }
  if (!CountElements(known).ok()) return false;
  const auto it = types_.find(name);
  if (it == types_.end() || !it->second->has_tensor_type()) return it == types_.end();
  const auto& theirs = it->second->tensor_type();
  if (ToDataType(theirs.elem_type()) != own.dtype) return false;
  if (!theirs.has_shape()) return true;
  if (theirs.shape().dim_size() != own.shape.size()) return false;
  for (int a = 0; a < own.shape.size(); ++a) {
    const auto& d = theirs.shape().dim(a);
    if (d.has_dim_value() && own.shape[a].is_constant() &&
        !own.shape[a].is_constant(d.dim_value())) {
      return false;
    }
  }
  return true;
}

Status Importer::AddOpaque(int k) {
  const NodeProto& node = source_->node(k);
  graph::Graph& g = source_->graph;
  std::vector<NodeId> operands;
  for (const std::string& name : node.input()) {
    if (!name.empty()) operands.push_back(source_->value.at(name));
  }
  for (const std::string& name : CapturedNames(node)) operands.push_back(source_->value.at(name));
  // Operators take 64 operands at most: more are bundled.
  constexpr std::size_t kMax = std::size_t(ops::kArityMax);
  if (operands.size() > kMax * kMax) {
    return base::ResourceExhausted(
        fmt::format("{} has more than {} operands", Describe(node), kMax * kMax));
  }
  if (operands.size() > kMax) {
    std::vector<NodeId> bundles;
    for (std::size_t from = 0; from < operands.size(); from += kMax) {
      const std::size_t n = std::min(kMax, operands.size() - from);
      ASSIGN_OR_RETURN(const NodeId bundle,
                       g.Add(ops::Opaque{.key = k, .output = -1 - std::int64_t(bundles.size())},
                             std::span(operands).subspan(from, n), DataType::kUndefined));
      bundles.push_back(bundle);
    }
    operands = std::move(bundles);
  }
  for (int o = 0; o < node.output_size(); ++o) {
    const std::string& name = node.output(o);
    if (name.empty()) continue;
    ASSIGN_OR_RETURN(const TensorType type, TypeOf(name));
    ASSIGN_OR_RETURN(const NodeId id, g.Add(ops::Opaque{.key = k, .output = o, .shape = type.shape},
                                            operands, type.dtype));
    Name(name, id);
    source_->origin.emplace(id, Origin{k, o});
  }
  return OkStatus();
}

Status Importer::AddNode(int k) {
  const NodeProto& node = source_->node(k);
  const bool known = source_->opset >= kOpsetMin && source_->opset <= kOpsetMax &&
                     options_.understand && IsOnnxDomain(node.domain()) &&
                     !functions_.contains(node.domain() + ":" + node.op_type());
  std::string why;
  if (known) {
    ASSIGN_OR_RETURN(const bool constant, AddConstant(k));
    if (constant) return OkStatus();
    if (const auto meaning = Understand(k, why)) {
      for (int o = 0; o < node.output_size(); ++o) {
        if (node.output(o).empty()) continue;
        const NodeId id = (*meaning)[std::size_t(o)];
        Name(node.output(o), id);
        if (!source_->graph.node(id).is_input()) source_->origin.emplace(id, Origin{k, o});
      }
      ++source_->understood;
      return OkStatus();
    }
  }
  ++opaque_[{node.op_type(), why}];
  return AddOpaque(k);
}

void Importer::NoteOpaque() {
  if (opaque_.empty() || source_->opset < kOpsetMin || source_->opset > kOpsetMax) return;
  std::vector<std::string> parts;
  for (const auto& [what, count] : opaque_) {
    parts.push_back(fmt::format("{} {}{}{}{}", count, what.first, what.second.empty() ? "" : " (",
                                what.second, what.second.empty() ? "" : ")"));
  }
  source_->notes.push_back(
      fmt::format("carried as they are, without looking into them: {}", fmt::join(parts, ", ")));
}

StatusOr<Model> Importer::Run() {
  ASSIGN_OR_RETURN(source_->proto, ReadModelFile(source_->path));
  RETURN_IF_ERROR(ReadOpsets());
  RETURN_IF_ERROR(SortNodes(*source_->proto.mutable_graph()));
  RETURN_IF_ERROR(CheckValues(source_->proto.graph(), source_->folder));
  RETURN_IF_ERROR(ReadTypes());
  CollectNames(source_->proto.graph(), source_->names);
  RETURN_IF_ERROR(AddInputs());
  for (int k = 0; k < source_->proto.graph().node_size(); ++k) {
    ++source_->node_names[source_->node(k).name()];
    RETURN_IF_ERROR(AddNode(k));
  }
  NoteOpaque();
  std::vector<NodeId> outputs;
  for (const auto& v : source_->proto.graph().output()) {
    source_->output_names.push_back(v.name());
    outputs.push_back(source_->value.at(v.name()));
  }
  source_->graph.SetOutputs(std::move(outputs));
  Model model;
  model.graph_ = source_->graph;
  model.source_ = std::move(source_);
  return model;
}

StatusOr<Model> Import(const std::string& path, const ImportOptions& options) {
  auto model = Importer(path, options).Run();
  if (!model.ok()) return base::Annotate(model.status(), path);
  return model;
}

}  // namespace tenon::optimizer
