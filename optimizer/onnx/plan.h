// Plan: which ONNX nodes a graph is written as, in which order, and what every value is called.
//
// A node of the new graph that equals one of the file's graph, operands and all, *survives*: it is
// written as the node of the file that made it, with its name, attributes and doc string, whatever
// operators it was read as (a Gemm stays a Gemm). This needs no bookkeeping by those who rewrite
// graphs, and what they left alone stays as it was. New nodes are written by emit.h.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "onnx/onnx_pb.h"
#include "optimizer/onnx/source.h"

namespace tenon::optimizer {

struct Plan {
  std::vector<onnx::NodeProto> nodes;           // In topological order; no Constant nodes.
  std::vector<onnx::TensorProto> initializers;  // New constants: axes, shapes, fills.
  std::unordered_set<std::string> weights;      // Weights of the model that are used.
  int kept_nodes = 0;                           // Of `nodes`, those of the file.
};

// FailedPrecondition as in Emitter::Emit. `reserved` are names that are in use and not the file's.
StatusOr<Plan> MakePlan(const Source& source, const graph::Graph& graph,
                        std::unordered_set<std::string> reserved);

}  // namespace tenon::optimizer
