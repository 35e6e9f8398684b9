// Tensors in files of their own, as ONNX's test data has them (test_data_set_0/input_0.pb).
#pragma once

#include <string>

#include "core/base/status.h"
#include "core/eval/tensor.h"
#include "core/graph/type.h"

namespace tenon::optimizer {

struct FileTensor {
  std::string name;
  graph::DataType dtype = graph::DataType::kUndefined;
  eval::Tensor<double> value;
};

// Reads a tensor of floating type. NotFound, DataLoss (no tensor, truncated), FailedPrecondition
// (another element type, a rank above 8, no elements).
StatusOr<FileTensor> ReadTensorFile(const std::string& path);

}  // namespace tenon::optimizer
