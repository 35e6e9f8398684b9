// Convolutions by cuDNN's graphs: the product, + bias, + residual and the activation as one graph,
// from which the library makes fused kernels; of its heuristics' plans, the fastest that fits.
// Images are row-major [n, c, h, w].
#include "optimizer/device/cuda/gpu.h"

namespace tenon::optimizer::cuda {

#ifndef TENON_HAVE_CUDNN

Launch MakeConvolution(TenonCuda&, const TenonConvolution&) { return {}; }

#else

namespace {

constexpr size_t kPlansMax = 8;

bool Well(cudnnStatus_t status) { return status == CUDNN_STATUS_SUCCESS; }

// A descriptor of the library and, as its attributes name others, those. One failure and it, and
// all that is made of it, is not well.
class Node {
 public:
  explicit Node(cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t raw = nullptr;
    well_ = Well(cudnnBackendCreateDescriptor(type, &raw));
    if (well_) raw_ = std::shared_ptr<void>(raw, cudnnBackendDestroyDescriptor);
  }

  template <class T>
  Node& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
            int64_t count) {
    well_ = well_ && Well(cudnnBackendSetAttribute(raw(), name, type, count, values));
    return *this;
  }
  template <class T>
  Node& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, T value) {
    return Set(name, type, &value, 1);
  }
  Node& Set(cudnnBackendAttributeName_t name, const Node& other) {
    well_ = well_ && other.well_;
    used_.push_back(other.raw_);
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw());
  }
  Node& Finish() {
    well_ = well_ && Well(cudnnBackendFinalize(raw()));
    return *this;
  }

  bool well() const { return well_; }
  cudnnBackendDescriptor_t raw() const { return raw_.get(); }

 private:
  bool well_ = false;
  std::shared_ptr<void> raw_;
  std::vector<std::shared_ptr<void> > used_;
};

// The numbers by which a run names its tensors.
enum Tensor : int64_t { kX = 1, kW, kBias, kResidual, kOutput, kVirtual };

Node MakeTensor(int64_t id, const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t a = dims.size(); a-- > 1;) strides[a - 1] = strides[a] * dims[a];
  Node node(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  node.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims.data(), int64_t(dims.size()))
      .Set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), int64_t(strides.size()))
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16})
      .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, id >= kVirtual);
  return node.Finish();
}

Node MakeProductNode(const TenonConvolution& c, const Node& x, const Node& w, const Node& y) {
  Node form(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  form.Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2})
      .Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, c.before, 2)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, c.after, 2)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, c.strides, 2)
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, c.dilations, 2)
      .Finish();
  Node node(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  node.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, form)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1.0f)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 0.0f);
  return node.Finish();
}

// y = mode(x [, b]).
Node MakePointwise(cudnnPointwiseMode_t mode, const Node& x, const Node* b, const Node& y) {
  Node form(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  form.Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode)
      .Set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Finish();
  Node node(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  node.Set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, form)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
      .Set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  if (b != nullptr) node.Set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  return node.Finish();
}

cudnnPointwiseMode_t ModeOf(int32_t activation) {
  return activation == kTenonActRelu      ? CUDNN_POINTWISE_RELU_FWD
         : activation == kTenonActSigmoid ? CUDNN_POINTWISE_SIGMOID_FWD
                                          : CUDNN_POINTWISE_TANH_FWD;
}

std::vector<Node> Operations(const TenonConvolution& c) {
  const std::vector<int64_t> out{c.n, c.f, c.out[0], c.out[1]};
  int after = c.bias + c.residual + (c.activation != kTenonNone ? 1 : 0);
  int64_t next = kVirtual;
  // The last tensor is the output, those between are never written.
  const auto result = [&] { return MakeTensor(after-- == 0 ? int64_t{kOutput} : next++, out); };
  Node y = result();
  std::vector<Node> nodes;
  nodes.push_back(MakeProductNode(c, MakeTensor(kX, {c.n, c.c, c.in[0], c.in[1]}),
                                  MakeTensor(kW, {c.f, c.c / c.group, c.kernel[0], c.kernel[1]}),
                                  y));
  const auto append = [&](cudnnPointwiseMode_t mode, const Node* b) {
    const Node z = result();
    nodes.push_back(MakePointwise(mode, y, b, z));
    y = z;
  };
  const Node bias = MakeTensor(kBias, {1, c.f, 1, 1}), residual = MakeTensor(kResidual, out);
  if (c.bias != 0) append(CUDNN_POINTWISE_ADD, &bias);
  if (c.residual != 0) append(CUDNN_POINTWISE_ADD, &residual);
  if (c.activation != kTenonNone) append(ModeOf(c.activation), nullptr);
  return nodes;
}

struct Graph {
  std::vector<Node> operations;
  std::unique_ptr<Node> graph;
};

std::shared_ptr<Graph> MakeGraph(TenonCuda& cuda, const TenonConvolution& c) {
  auto out = std::make_shared<Graph>();
  out->operations = Operations(c);
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Node& node : out->operations) {
    if (!node.well()) return nullptr;
    raw.push_back(node.raw());
  }
  out->graph = std::make_unique<Node>(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  out->graph
      ->Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.data(),
            int64_t(raw.size()))
      .Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, cuda.dnn)
      .Finish();
  return out->graph->well() ? out : nullptr;
}

// The engines that the library thinks of, best first.
std::vector<Node> Engines(const Graph& graph, cudnnBackendHeurMode_t mode) {
  Node heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph.graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode)
      .Finish();
  int64_t count = 0;
  if (!heuristics.well() ||
      !Well(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr))) {
    return {};
  }
  std::vector<Node> engines;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (int64_t k = 0; k < count; ++k) {
    engines.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    raw.push_back(engines.back().raw());
  }
  int64_t got = 0;
  if (!Well(cudnnBackendGetAttribute(heuristics.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &got, raw.data()))) {
    got = 0;
  }
  engines.erase(engines.begin() + got, engines.end());
  return engines;
}

// A plan on an engine, ready to run; nothing if it needs more memory than there is.
Launch MakePlan(TenonCuda& cuda, const TenonConvolution& c, const std::shared_ptr<Graph>& graph,
                const Node& engine) {
  auto plan = std::make_shared<Node>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan->Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, cuda.dnn)
      .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine)
      .Finish();
  int64_t bytes = 0, got = 0;
  if (!plan->well() ||
      !Well(cudnnBackendGetAttribute(plan->raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &got, &bytes)) ||
      bytes > int64_t(kWorkspaceBytes)) {
    return {};
  }
  return [&cuda, c, graph, plan](const std::vector<float*>& operands, float* output) {
    std::vector<int64_t> ids{kX, kW};
    std::vector<void*> pointers{operands[0], operands[1]};
    if (c.bias != 0) ids.push_back(kBias), pointers.push_back(operands[2]);
    if (c.residual != 0) ids.push_back(kResidual), pointers.push_back(operands.back());
    ids.push_back(kOutput), pointers.push_back(output);
    Node tensors(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    tensors
        .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers.data(),
             int64_t(pointers.size()))
        .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids.data(), int64_t(ids.size()))
        .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, cuda.workspace)
        .Finish();
    return tensors.well() && Well(cudnnBackendExecute(cuda.dnn, plan->raw(), tensors.raw()));
  };
}

}  // namespace

Launch MakeConvolution(TenonCuda& cuda, const TenonConvolution& c) {
  const std::shared_ptr<Graph> graph = MakeGraph(cuda, c);
  if (graph == nullptr) return {};
  std::vector<Launch> ways;
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (const Node& engine : Engines(*graph, mode)) {
      if (ways.size() >= kPlansMax) break;
      if (Launch way = MakePlan(cuda, c, graph, engine)) ways.push_back(std::move(way));
    }
  }
  const auto output = size_t(c.n * c.f * c.out[0] * c.out[1]);
  std::vector<size_t> elements{size_t(c.n * c.c * c.in[0] * c.in[1]),
                               size_t(c.f * (c.c / c.group) * c.kernel[0] * c.kernel[1])};
  if (c.bias != 0) elements.push_back(size_t(c.f));
  if (c.residual != 0) elements.push_back(output);
  return Fastest(cuda, ways, elements, output);
}

#endif

}  // namespace tenon::optimizer::cuda
