// The elements of a TensorProto: where they are (inline, typed fields, external files), what they
// are, and whether all of them are there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/type.h"
#include "onnx/onnx_pb.h"

namespace tenon::optimizer {

// Tensors above this many elements are taken for mistakes (or attacks): it is 4 TiB of floats.
inline constexpr std::int64_t kElementsMax = std::int64_t{1} << 40;

// The number of elements of these dims. InvalidArgument: a dim below 0; ResourceExhausted: more
// than kElementsMax. Neither names the tensor: the caller does.
StatusOr<std::int64_t> CountElements(std::span<const std::int64_t> dims);

// Bytes of one element in raw or external data; 0 for strings and for types unknown here.
std::int64_t ElementSize(int data_type);
// The algebra's name for an ONNX element type; kUndefined for types unknown here.
graph::DataType ToDataType(int data_type);

// A part of an external data file.
struct DataRange {
  std::string location;  // Relative to the model's folder, as written in the file.
  std::int64_t offset = 0;
  std::int64_t length = -1;  // -1: to the end of the file.
};
bool IsExternal(const onnx::TensorProto& tensor);
// InvalidArgument: no location, an absolute one or one with "..", a malformed number.
StatusOr<DataRange> DataRangeOf(const onnx::TensorProto& tensor);

// Whether dims, type and data fit together, external data included. `folder` is the model's.
Status CheckTensor(const onnx::TensorProto& tensor, const std::filesystem::path& folder);

// The elements of a checked tensor as little-endian bytes, row-major; no strings.
StatusOr<std::string> ReadBytes(const onnx::TensorProto& tensor,
                                const std::filesystem::path& folder);
// The elements of a checked tensor of floating type.
StatusOr<std::vector<double>> ReadDoubles(const onnx::TensorProto& tensor,
                                          const std::filesystem::path& folder);
// The elements of a checked tensor of type int64 or int32.
StatusOr<std::vector<std::int64_t>> ReadInts(const onnx::TensorProto& tensor,
                                             const std::filesystem::path& folder);

// `values` in a floating type, each rounded to the nearest (ties to even), as raw data.
std::string EncodeDoubles(graph::DataType dtype, std::span<const double> values);

// `length` bytes of a file from `offset` on. DataLoss when they are not all there.
StatusOr<std::string> ReadRange(const std::filesystem::path& file, std::int64_t offset,
                                std::int64_t length);

}  // namespace tenon::optimizer
