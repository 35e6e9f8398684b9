// What a file must be before the importer looks at its meaning, and what ONNX's own library says.
#pragma once

#include <cstdint>
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
// It insists on shapes of inputs and outputs, which runtimes do not and many files leave out: these
// are given one while it runs (`model` is as before when this returns).
Status RunChecker(onnx::ModelProto& model, const std::filesystem::path& folder);

// How much of a file ONNX's strict shape inference accepts. What a file passed is asked of the
// result, too.
enum class Inference : std::uint8_t {
  kAll,         // Everything.
  kNoTypes,     // But for the element types that operators allow (old opsets were too narrow).
  kNoDeclared,  // And but for the shapes that the file declares of inner values and outputs.
};

// The model with only as much data in its tensors as shape inference looks at (shapes, axes,
// scales), and with what ONNX's shape inference finds as value_info. InvalidArgument: a node whose
// operands do not fit, or (unless kNoDeclared) a contradiction to what the file declares.
StatusOr<onnx::ModelProto> InferTypes(const onnx::ModelProto& model, Inference how);

}  // namespace tenon::optimizer
