// Model: an ONNX file as a graph of the algebra, beside everything that the graph does not hold and
// that writing the file back needs: names, metadata, opsets, weights, foreign nodes.
//
// What the importer understands exactly, for every value that the inputs may have, becomes an
// operator of the algebra. Everything else (unknown operators and domains, integers, mixed types,
// subgraphs, shapes that are decided at run time, ..) becomes Opaque nodes whose key is the number
// of the ONNX node: carried and never looked into, so that no rule can be wrong about it.
//
//   Sizes: a dim_param is a symbol of the graph, the same one wherever the file uses the name; a
//     size that nobody knows is a symbol of its own. Both are taken to be at least 1. A node is
//     understood only if its requirements hold for all of them.
//   Values that have no description here (rank above 8 or unknown, sequences, optional values,
//     extents of 0, strings) have the type kUndefined of rank 0, and only Opaque nodes use them.
//   Weights: initializers and Constant nodes are inputs of kind kWeight, by their names. An
//     initializer that is also an input of the file (from IR version 4 on) is a default that a
//     caller may override, so it is an activation.
//   Captured names: a node with subgraphs depends on the outer values that these mention; they
//     follow its own operands.
//   More than 64 operands: they are bundled by Opaque nodes of output -1, -2, ..; see Foreign.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/status.h"
#include "core/eval/tensor.h"
#include "core/graph/graph.h"

namespace tenon::optimizer {

struct Source;       // The parsed file (source.h): ONNX's own types stay in optimizer/onnx.
struct AddedWeight;  // A weight that was computed here.

// What an Opaque node stands for, for reports. An Opaque node with a negative output is a bundle of
// operands of the same ONNX node and has no existence in the file.
struct Foreign {
  std::string name, op_type, domain;
};

// Thread-compatible; a copy shares the file's contents and the weights.
class Model {
 public:
  // The graph that the model computes now. Its inputs are named as in the file.
  const graph::Graph& graph() const { return graph_; }

  // Replaces the graph by one that was derived from graph(): its symbols start with those of
  // graph(), its activations carry names and types of activations of the file, its weights are
  // weights of this model, and its outputs have the number and types of before. InvalidArgument
  // says which of these fails; the model stays as it was.
  Status SetGraph(graph::Graph graph);

  // A new weight that holds `value` rounded to `dtype` (a floating type); returns its name, which
  // is new to the model and made from `hint`. The caller adds the input of this name to his graph.
  std::string AddWeight(std::string_view hint, graph::DataType dtype,
                        const eval::Tensor<double>& value);
  // The elements of a weight of floating type; the file's external data is read here, each time.
  // NotFound: no such weight. DataLoss: the external data is gone or has changed its length.
  StatusOr<eval::Tensor<double>> WeightValue(std::string_view name) const;

  const std::string& path() const;
  const std::vector<std::string>& output_names() const;
  // What was noticed on import and does not keep the model from being used: one line each.
  const std::vector<std::string>& notes() const;
  // The ONNX node behind an Opaque node of this key.
  Foreign ForeignNode(std::int64_t key) const;
  // What tells the ONNX nodes of a file apart and survives writing and reading the file: the node's
  // name if no other has it, else its first output (by the name of the model's output, if it is
  // one).
  std::string ForeignIdentity(std::int64_t key) const;
  // Equal for two weights only if they are the same data; NotFound as above. Of two imports of one
  // file, no weight is the same.
  StatusOr<const void*> WeightIdentity(std::string_view name) const;
  // Whether two weights of any type have the same type, dims and bytes.
  static bool SameWeight(const Model& a, std::string_view name_a, const Model& b,
                         std::string_view name_b);
  // The opset of ONNX's own operators; 0 when the file uses none of them.
  int opset() const;
  int file_node_count() const;        // ONNX nodes in the file's main graph, Constants included.
  int understood_node_count() const;  // Those that became operators of the algebra (or aliases).

 private:
  friend class Importer;
  friend class Exporter;
  std::shared_ptr<const Source> source_;
  graph::Graph graph_;
  std::unordered_map<std::string, std::shared_ptr<const AddedWeight>> added_;
};

struct ImportOptions {
  // Off: every node becomes Opaque. For tests, and for models that must not be touched.
  bool understand = true;
};

// Reads an ONNX file. Nodes that are merely out of order are sorted. The weights of a file stay
// where they are: inline ones in the parsed file, external ones on disk.
// NotFound, InvalidArgument (the model is malformed or fails ONNX's checker; names the file, the
// node or value, the field and the way out), DataLoss (no protobuf, truncated, external data
// missing or too short), ResourceExhausted (over the 2 GiB of a protobuf, more than 2^40 elements).
StatusOr<Model> Import(const std::string& path, const ImportOptions& options = {});

struct ExportOptions {
  // Above this size of the model, new weights go to the data file.
  std::size_t inline_bytes_max = std::size_t{1900} << 20;
};

struct ExportSummary {
  int nodes = 0;       // ONNX nodes written.
  int kept_nodes = 0;  // Those that are the file's own, attributes and all.
  std::vector<std::string>
      files;  // What was written: the model, and its data file if there is one.
  std::vector<std::string> notes;  // For instance: why ONNX's checker was not asked.
};

// Writes the model: nodes that survived are written as they were in the file (name, attributes, doc
// string), new ones in the form of the file's opset. Values keep their names where they survive,
// graph inputs and outputs always. What no output depends on is left out, the weights of folded
// parts too.
//
// External data: beside the file it came from, the new model refers to the same data file, and
// nothing is copied. In another folder (where ONNX allows no reference to the old one), the parts
// that are still used are copied to `path`.data. New weights are stored inline, but go to that file
// as well if the model would come near the 2 GiB of a protobuf.
//
// The result passes ONNX's checker and strict shape inference before it is written (where the file
// itself did not pass all of that, as much as it did, and a note says so). Files are replaced as
// wholes: written beside the target, synced, renamed; a data file before the model that refers to
// it. FailedPrecondition: an operator has no form in the file's opset, or a size depends on a
// symbol where ONNX wants a number; the model is right but cannot be written. InvalidArgument,
// ResourceExhausted: the place cannot be written to, the disk is full. Internal: the checker
// refused what was made.
StatusOr<ExportSummary> Export(const Model& model, const std::string& path,
                               const ExportOptions& options = {});

}  // namespace tenon::optimizer
