// Walks over ONNX messages that nest: nodes with subgraphs in their attributes.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "onnx/onnx_pb.h"

namespace tenon::optimizer {

// The graphs among a node's attributes.
std::vector<const onnx::GraphProto*> SubgraphsOf(const onnx::NodeProto& node);

// The outer values that the subgraphs of `node` mention, each once, in the order of their mention.
std::vector<std::string> CapturedNames(const onnx::NodeProto& node);

// Gives captured outer values of the subgraphs of `node` other names. The new names occur nowhere
// in the subgraphs. Names that an inner graph defines for itself are left alone.
void RenameCaptures(onnx::NodeProto& node,
                    const std::unordered_map<std::string, std::string>& new_names);

// Every value name that occurs in the graph or in a graph inside it.
void CollectNames(const onnx::GraphProto& graph, std::unordered_set<std::string>& names);

// Calls f for every tensor in the node's attributes, those of inner graphs included.
void ForEachTensor(onnx::NodeProto& node, const std::function<void(onnx::TensorProto&)>& f);

}  // namespace tenon::optimizer
