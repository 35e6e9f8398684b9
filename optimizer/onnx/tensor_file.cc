#include "optimizer/onnx/tensor_file.h"

#include <fstream>

#include <fmt/core.h>

#include "optimizer/onnx/tensor_data.h"

namespace tenon::optimizer {

StatusOr<FileTensor> ReadTensorFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return base::NotFound(fmt::format("{}: cannot open it", path));
  onnx::TensorProto tensor;
  if (!tensor.ParseFromIstream(&in)) {
    return base::DataLoss(fmt::format("{}: it is not a tensor, or is truncated", path));
  }
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  RETURN_IF_ERROR(base::Annotate(CheckTensor(tensor, folder), path));
  FileTensor out;
  out.name = tensor.name();
  out.dtype = ToDataType(tensor.data_type());
  bool fits = graph::IsFloating(out.dtype) && tensor.dims_size() <= base::kRankMax;
  for (std::int64_t n : tensor.dims()) {
    fits = fits && n >= 1;
    if (fits) out.value.extents.push_back(n);
  }
  if (!fits) {
    return base::FailedPrecondition(fmt::format(
        "{}: it has no elements, a rank above 8, or elements that are no floats", path));
  }
  ASSIGN_OR_RETURN(out.value.data, ReadDoubles(tensor, folder));
  return out;
}

}  // namespace tenon::optimizer
