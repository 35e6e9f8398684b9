// Source: what is kept of an ONNX file. Immutable once imported, shared by all models made from it.
#pragma once

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"
#include "onnx/onnx_pb.h"
#include "optimizer/onnx/check.h"

namespace tenon::optimizer {

// The opsets of ONNX's own domain whose meaning is known here: in older ones Add and its like
// broadcast by other rules, newer ones came after the ONNX library that checks our results.
inline constexpr int kOpsetMin = 7;
inline constexpr int kOpsetMax = 17;

// Which output of which ONNX node a graph node is.
struct Origin {
  int node = -1;
  int output = 0;
};

struct AddedWeight {
  graph::DataType dtype = graph::DataType::kFloat;
  graph::Extents extents;
  std::string bytes;  // Raw data.
};

struct Source {
  std::string path;
  std::filesystem::path folder;
  onnx::ModelProto proto;                 // As in the file, except that the nodes are sorted.
  int opset = 0;                          // Of ONNX's own domain; 0: not imported.
  Inference inference = Inference::kAll;  // What it passed when it was read.
  std::vector<std::string> notes;
  std::vector<std::string> output_names;

  // The graph as imported, and where its nodes come from.
  graph::Graph graph;
  std::unordered_map<std::string, graph::NodeId> value;  // Of every value name of the main graph.
  std::unordered_map<graph::NodeId, std::string> name;   // The first name of a value.
  std::unordered_map<graph::NodeId, Origin> origin;      // Of operator nodes.
  std::unordered_map<std::string, const onnx::TensorProto*> weight;  // Initializers and Constants.
  std::unordered_map<std::string, int> constant_node;  // The Constant node behind a weight.
  std::deque<onnx::TensorProto> made;     // Tensors of Constant nodes that hold plain numbers.
  std::unordered_set<std::string> names;  // All in use, also inside subgraphs.
  std::unordered_map<std::string, int> node_names;  // How many nodes have it.
  int understood = 0;

  const onnx::NodeProto& node(int k) const { return proto.graph().node(k); }
};

// "node 'conv1' (Conv)", or by its first output when it has no name.
std::string Describe(const onnx::NodeProto& node);
// Of ONNX's own domain, which has two spellings.
bool IsOnnxDomain(std::string_view domain);

}  // namespace tenon::optimizer
