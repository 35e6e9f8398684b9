#include "optimizer/onnx/one_file.h"

#include <filesystem>
#include <functional>
#include <utility>

#include <fmt/core.h>

#include "onnx/onnx_pb.h"
#include "optimizer/onnx/check.h"
#include "optimizer/onnx/subgraph.h"
#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {
namespace {

using onnx::TensorProto;

void ForEachTensorOf(onnx::ModelProto& model, const std::function<void(TensorProto&)>& f) {
  onnx::GraphProto& graph = *model.mutable_graph();
  for (TensorProto& t : *graph.mutable_initializer()) f(t);
  for (auto& sparse : *graph.mutable_sparse_initializer()) {
    f(*sparse.mutable_values());
    f(*sparse.mutable_indices());
  }
  for (auto& node : *graph.mutable_node()) ForEachTensor(node, f);
  for (auto& function : *model.mutable_functions()) {
    for (auto& node : *function.mutable_node()) ForEachTensor(node, f);
  }
}

// Takes the data of an external tensor into it; `bytes` counts what has been taken.
Status TakeIn(TensorProto& tensor, const std::filesystem::path& folder, std::uint64_t limit,
              std::uint64_t& bytes) {
  RETURN_IF_ERROR(CheckTensor(tensor, folder));
  if (ElementSize(tensor.data_type()) == 0) {
    return base::InvalidArgument(
        "its data is in another file and of a type whose size is not known here");
  }
  ASSIGN_OR_RETURN(std::string data, ReadBytes(tensor, folder));
  bytes += data.size();
  if (bytes > limit) {
    return base::ResourceExhausted(
        fmt::format("with the data of other files it has more than {} bytes", limit));
  }
  tensor.set_raw_data(std::move(data));
  tensor.clear_external_data();
  tensor.clear_data_location();
  return OkStatus();
}

}  // namespace

StatusOr<std::optional<std::string>> AsOneFile(const std::string& path, std::uint64_t limit_bytes) {
  StatusOr<onnx::ModelProto> model = ReadModelFile(path);
  if (!model.ok()) return base::Annotate(model.status(), path);
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  bool external = false;
  std::uint64_t bytes = 0;
  Status status;
  ForEachTensorOf(*model, [&](TensorProto& tensor) {
    if (!status.ok() || !IsExternal(tensor)) return;
    external = true;
    status = base::Annotate(TakeIn(tensor, folder, limit_bytes, bytes),
                            fmt::format("{}: tensor '{}'", path, tensor.name()));
  });
  RETURN_IF_ERROR(status);
  if (!external) return std::nullopt;
  if (model->ByteSizeLong() > limit_bytes) {
    return base::ResourceExhausted(fmt::format("{}: as one file it has {} bytes; {} is the limit",
                                               path, model->ByteSizeLong(), limit_bytes));
  }
  return model->SerializeAsString();
}

}  // namespace tenon::optimizer
