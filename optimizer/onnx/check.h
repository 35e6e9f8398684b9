// What a file must be before the importer looks at its meaning, and what ONNX's own library says.
#pragma once

#include <filesystem>
#include <string>

#include "core/base/status.h"
#include "onnx/onnx_pb.h"

namespace tenon::optimizer {

// Reads the protobuf. NotFound, InvalidArgument (no regular file, empty), ResourceExhausted (2
// GiB), DataLoss (not a protobuf).
StatusOr<onnx::ModelProto> ReadModelFile(const std::string& path);

// Sorts the main graph's nodes so that each comes after those it depends on, keeping the order
// where it can, and checks names: every value is defined, and once. InvalidArgument names the node
// and what to do; a cycle is one.
Status SortNodes(onnx::GraphProto& graph);

// Whether the initializers' dims, types and data fit together and the inputs' dims make sense.
Status CheckValues(const onnx::GraphProto& graph, const std::filesystem::path& folder);

// ONNX's checker on a model whose opsets it knows. InvalidArgument with its message, in one line.
Status RunChecker(const onnx::ModelProto& model, const std::filesystem::path& folder);

// The model with only as much data in its tensors as shape inference looks at (shapes, axes,
// scales), and with what ONNX's shape inference finds as value_info. With `strict` a node whose
// types do not fit is an error, else only a contradiction to what the file declares is.
StatusOr<onnx::ModelProto> InferTypes(const onnx::ModelProto& model, bool strict);

}  // namespace tenon::optimizer
