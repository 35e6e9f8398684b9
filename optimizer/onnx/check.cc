#include "optimizer/onnx/check.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include <fmt/core.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include "onnx/checker.h"
#include "onnx/shape_inference/implementation.h"
#include "optimizer/onnx/source.h"
#include "optimizer/onnx/subgraph.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {
namespace {

using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

// Tensors above this size are weights; shapes and axes are below.
constexpr std::int64_t kSmallElements = 1024;

// Exceptions end here: messages of ONNX have several lines and repeat their context.
Status FromOnnx(const char* what) {
  std::string text;
  for (const char* c = what; *c != '\0'; ++c) {
    const bool space = *c == '\n' || *c == '\r' || *c == '\t' || *c == ' ';
    if (!space) text += *c;
    if (space && !text.empty() && text.back() != ' ') text += ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return base::InvalidArgument(text);
}

// Which node defines a value; -1 for inputs and initializers.
using Definitions = std::unordered_map<std::string, int>;

StatusOr<Definitions> Define(const GraphProto& graph) {
  Definitions out;
  for (const auto& v : graph.input()) {
    if (!out.emplace(v.name(), -1).second) {
      return base::InvalidArgument(
          fmt::format("input '{}' of the graph is declared twice", v.name()));
    }
  }
  std::unordered_set<std::string> initializers;
  const auto initializer = [&](const std::string& name) {
    out.emplace(name, -1);  // May be an input as well.
    return initializers.insert(name).second
               ? OkStatus()
               : base::InvalidArgument(fmt::format("initializer '{}' is defined twice", name));
  };
  for (const auto& t : graph.initializer()) RETURN_IF_ERROR(initializer(t.name()));
  for (const auto& t : graph.sparse_initializer()) RETURN_IF_ERROR(initializer(t.values().name()));
  for (int k = 0; k < graph.node_size(); ++k) {
    for (const std::string& name : graph.node(k).output()) {
      if (!name.empty() && !out.emplace(name, k).second) {
        return base::InvalidArgument(
            fmt::format("{}: output '{}' is defined by another node, input or initializer too; "
                        "every value needs its own name",
                        Describe(graph.node(k)), name));
      }
    }
  }
  return out;
}

Status CheckOutputs(const GraphProto& graph, const Definitions& defined) {
  std::unordered_set<std::string> names;
  for (const auto& v : graph.output()) {
    if (!defined.contains(v.name())) {
      return base::InvalidArgument(
          fmt::format("output '{}' of the graph is not the output of a node", v.name()));
    }
    if (!names.insert(v.name()).second) {
      return base::InvalidArgument(
          fmt::format("output '{}' of the graph is declared twice; give the second one a name of "
                      "its own, as the output of an Identity",
                      v.name()));
    }
  }
  return OkStatus();
}

// A value on a cycle among the nodes that were not placed.
Status CycleError(const GraphProto& graph, const std::vector<int>& missing) {
  for (int k = 0; k < graph.node_size(); ++k) {
    if (missing[std::size_t(k)] > 0) {
      return base::InvalidArgument(
          fmt::format("{} depends on its own output through other nodes: the graph has a cycle; "
                      "break it or use a Loop",
                      Describe(graph.node(k))));
    }
  }
  return OkStatus();
}

// Gives `to` all fields of `from` but the data, unless that is small.
void CopyWithoutData(const TensorProto& from, TensorProto* to) {
  std::int64_t count = 1;
  for (std::int64_t d : from.dims()) count *= std::min<std::int64_t>(d, kSmallElements + 1);
  if (!IsExternal(from) && (from.dims_size() > 4 || count <= kSmallElements)) {
    *to = from;
    return;
  }
  *to->mutable_dims() = from.dims();
  to->set_data_type(from.data_type());
  to->set_name(from.name());
}

// Nodes without large tensors in their attributes are copied as they are.
void CopyNode(const NodeProto& from, NodeProto* to) {
  if (from.op_type() != "Constant" || !IsOnnxDomain(from.domain())) {
    *to = from;
    return;
  }
  *to->mutable_input() = from.input();
  *to->mutable_output() = from.output();
  to->set_name(from.name());
  to->set_op_type(from.op_type());
  to->set_domain(from.domain());
  for (const auto& a : from.attribute()) {
    auto* copy = to->add_attribute();
    if (a.has_t()) {
      copy->set_name(a.name());
      copy->set_type(a.type());
      CopyWithoutData(a.t(), copy->mutable_t());
    } else {
      *copy = a;
    }
  }
}

ModelProto Skeleton(const ModelProto& model) {
  ModelProto out;
  out.set_ir_version(model.ir_version());
  *out.mutable_opset_import() = model.opset_import();
  *out.mutable_functions() = model.functions();
  const GraphProto& from = model.graph();
  GraphProto& to = *out.mutable_graph();
  to.set_name(from.name());
  *to.mutable_input() = from.input();
  *to.mutable_output() = from.output();
  *to.mutable_value_info() = from.value_info();
  *to.mutable_sparse_initializer() = from.sparse_initializer();
  for (const auto& n : from.node()) CopyNode(n, to.add_node());
  for (const auto& t : from.initializer()) CopyWithoutData(t, to.add_initializer());
  return out;
}

}  // namespace

std::string Describe(const NodeProto& node) {
  if (!node.name().empty()) return fmt::format("node '{}' ({})", node.name(), node.op_type());
  if (node.output_size() > 0) {
    return fmt::format("the node of '{}' ({})", node.output(0), node.op_type());
  }
  return fmt::format("a node ({})", node.op_type());
}

bool IsOnnxDomain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

StatusOr<ModelProto> ReadModelFile(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const std::string why = fmt::format("cannot open it: {}", std::strerror(errno));
    return errno == ENOENT ? base::NotFound(why) : base::InvalidArgument(why);
  }
  google::protobuf::io::FileInputStream file(fd);
  file.SetCloseOnDelete(true);
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return base::InvalidArgument("it is not a regular file");
  }
  if (info.st_size == 0) return base::InvalidArgument("the file is empty");
  if (info.st_size >= std::int64_t{1} << 31) {
    return base::ResourceExhausted(
        "the file exceeds the 2 GiB of a protobuf; store its weights as external data");
  }
  ModelProto model;
  google::protobuf::io::CodedInputStream in(&file);
  if (!model.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage() || file.GetErrno() != 0) {
    return base::DataLoss("it is not an ONNX model, or it is truncated");
  }
  if (!model.has_graph()) return base::DataLoss("it is not an ONNX model: there is no graph in it");
  return model;
}

Status SortNodes(GraphProto& graph) {
  ASSIGN_OR_RETURN(const Definitions defined, Define(graph));
  const auto count = std::size_t(graph.node_size());
  std::vector<std::vector<int>> users(count);
  std::vector<int> missing(count, 0);
  for (int k = 0; k < graph.node_size(); ++k) {
    const NodeProto& node = graph.node(k);
    std::vector<std::string> needs(node.input().begin(), node.input().end());
    for (std::string& name : CapturedNames(node)) needs.push_back(std::move(name));
    for (const std::string& name : needs) {
      if (name.empty()) continue;
      const auto it = defined.find(name);
      if (it == defined.end()) {
        return base::InvalidArgument(
            fmt::format("{}: input '{}' is neither an input nor an initializer nor the output of a "
                        "node; add it "
                        "to the graph",
                        Describe(node), name));
      }
      if (it->second < 0) continue;
      users[std::size_t(it->second)].push_back(k);
      ++missing[std::size_t(k)];
    }
  }
  RETURN_IF_ERROR(CheckOutputs(graph, defined));
  // Of the nodes that may come next, the first of the file does.
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t k = 0; k < count; ++k) {
    if (missing[k] == 0) ready.push(int(k));
  }
  std::vector<int> order;
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (int user : users[std::size_t(order.back())]) {
      if (--missing[std::size_t(user)] == 0) ready.push(user);
    }
  }
  if (order.size() < count) return CycleError(graph, missing);
  if (std::ranges::is_sorted(order)) return OkStatus();
  google::protobuf::RepeatedPtrField<NodeProto> sorted;
  for (int k : order) sorted.Add()->Swap(graph.mutable_node(k));
  graph.mutable_node()->Swap(&sorted);
  return OkStatus();
}

Status CheckValues(const GraphProto& graph, const std::filesystem::path& folder) {
  for (const auto& t : graph.initializer()) {
    RETURN_IF_ERROR(
        base::Annotate(CheckTensor(t, folder), fmt::format("initializer '{}'", t.name())));
  }
  for (const auto& n : graph.node()) {
    for (const auto& a : n.attribute()) {
      if (!a.has_t()) continue;
      RETURN_IF_ERROR(base::Annotate(CheckTensor(a.t(), folder),
                                     fmt::format("{}: attribute {}", Describe(n), a.name())));
    }
  }
  for (const auto& v : graph.input()) {
    std::vector<std::int64_t> dims;
    for (const auto& d : v.type().tensor_type().shape().dim()) {
      dims.push_back(d.has_dim_value() ? d.dim_value() : 1);
    }
    RETURN_IF_ERROR(
        base::Annotate(CountElements(dims).status(), fmt::format("input '{}': shape", v.name())));
  }
  return OkStatus();
}

namespace {

// Gives the tensors that have no shape one, and takes it away again.
class WithShapes {
 public:
  explicit WithShapes(GraphProto& graph) {
    for (auto* list : {graph.mutable_input(), graph.mutable_output()}) {
      for (auto& v : *list) {
        if (!v.type().has_tensor_type() || v.type().tensor_type().has_shape()) continue;
        without_.push_back(v.mutable_type()->mutable_tensor_type());
        without_.back()->mutable_shape();
      }
    }
  }
  ~WithShapes() {
    for (auto* type : without_) type->clear_shape();
  }
  WithShapes(const WithShapes&) = delete;
  WithShapes& operator=(const WithShapes&) = delete;

 private:
  std::vector<onnx::TypeProto_Tensor*> without_;
};

}  // namespace

Status RunChecker(ModelProto& model, const std::filesystem::path& folder) {
  const WithShapes shapes(*model.mutable_graph());
  onnx::checker::CheckerContext context;
  // Newer IR versions only add fields, which are carried; the checker refuses them outright.
  context.set_ir_version(
      int(std::min<std::int64_t>(model.ir_version(), onnx::Version::IR_VERSION)));
  context.set_model_dir(folder.string());
  std::unordered_map<std::string, int> opsets;
  for (const auto& o : model.opset_import()) opsets[o.domain()] = int(o.version());
  context.set_opset_imports(std::move(opsets));
  try {
    onnx::checker::LexicalScopeContext names;
    onnx::checker::check_graph(model.graph(), context, names);
    if (context.get_ir_version() >= 8) {
      onnx::checker::check_model_local_functions(model, context, names);
    }
  } catch (const std::exception& e) {
    return FromOnnx(e.what());
  }
  return OkStatus();
}

namespace {

// ONNX's shape inference divides by strides without looking.
Status CheckStrides(const google::protobuf::RepeatedPtrField<NodeProto>& nodes) {
  for (const NodeProto& n : nodes) {
    for (const auto& a : n.attribute()) {
      if (a.has_g()) RETURN_IF_ERROR(CheckStrides(a.g().node()));
      for (const GraphProto& g : a.graphs()) RETURN_IF_ERROR(CheckStrides(g.node()));
      if (a.name() != "strides" || !IsOnnxDomain(n.domain())) continue;
      for (std::int64_t stride : a.ints()) {
        if (stride >= 1) continue;
        return base::InvalidArgument(
            fmt::format("{}: strides has the entry {}, which is below 1", Describe(n), stride));
      }
    }
  }
  return OkStatus();
}

}  // namespace

StatusOr<ModelProto> InferTypes(const ModelProto& model, Inference how) {
  RETURN_IF_ERROR(CheckStrides(model.graph().node()));
  for (const auto& f : model.functions()) RETURN_IF_ERROR(CheckStrides(f.node()));
  ModelProto out = Skeleton(model);
  if (how == Inference::kNoDeclared) {
    out.mutable_graph()->clear_value_info();
    for (auto& v : *out.mutable_graph()->mutable_output()) {
      if (v.type().has_tensor_type()) v.mutable_type()->mutable_tensor_type()->clear_shape();
    }
  }
  try {
    const onnx::ShapeInferenceOptions options(how == Inference::kAll, 1, true);
    onnx::shape_inference::InferShapes(out, onnx::OpSchemaRegistry::Instance(), options);
  } catch (const std::exception& e) {
    return FromOnnx(e.what());
  }
  return out;
}

}  // namespace tenon::optimizer
