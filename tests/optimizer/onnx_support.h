// What the tests of ONNX in and out share: models that scripts write, and running them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "core/eval/eval.h"
#include "optimizer/eval/compare.h"
#include "optimizer/onnx/model.h"
#include "optimizer/onnx/tensor_file.h"
#include "tests/support/process.h"

namespace tenon::optimizer::test {

inline void RunScript(const std::string& script, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"/usr/bin/python3", TENON_SOURCE_DIR "/tests/" + script});
  const auto run = testing::Run(arguments);
  ASSERT_EQ(run.exit_code, 0) << script << ": " << run.err
                              << "\ninstall the Debian packages python3-onnx and python3-numpy";
}

// The model files in a folder: NAME.onnx, and NAME/model.onnx.
inline std::vector<std::filesystem::path> ModelsIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  EXPECT_TRUE(std::filesystem::exists(folder)) << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto& path = entry.path();
    if (path.extension() == ".onnx") out.push_back(path);
    if (std::filesystem::exists(path / "model.onnx")) out.push_back(path / "model.onnx");
  }
  std::ranges::sort(out);
  return out;
}

// How many opaque nodes the outputs depend on.
inline int OpaqueCount(const graph::Graph& g) {
  int count = 0;
  for (graph::NodeId id : g.Reachable(g.outputs())) {
    count += !g.node(id).is_input() && ops::IsOpaque(*g.node(id).op) ? 1 : 0;
  }
  return count;
}

// Export, import again, compare; the second import.
inline StatusOr<Model> RoundTrip(const Model& model, const std::string& out,
                                 double tolerance = 1e-12) {
  const auto written = Export(model, out);
  EXPECT_TRUE(written.ok()) << model.path() << ": " << written.status();
  if (!written.ok()) return written.status();
  auto again = Import(out);
  EXPECT_TRUE(again.ok()) << model.path() << ": " << again.status();
  if (!again.ok()) return again;
  EXPECT_EQ(again->output_names(), model.output_names()) << model.path();
  const auto same = Compare(model, *again);
  EXPECT_TRUE(same.ok()) << model.path() << ": " << same.status();
  if (!same.ok()) return same.status();
  EXPECT_LE(same->max_relative_error, tolerance) << model.path() << ": " << same->worst;
  EXPECT_EQ(same->skipped, 0) << model.path();
  return again;
}

// The outputs by the fast engine.
inline std::vector<Values> EvaluateFast(const graph::Graph& g, const std::vector<Values>& inputs) {
  std::vector<Values> values(g.size());
  for (graph::NodeId id : g.Reachable(g.outputs())) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) {
      values[std::size_t(id)] = inputs[std::size_t(n.input)];
      continue;
    }
    std::vector<const Values*> operands;
    for (graph::NodeId o : n.operands) operands.push_back(&values[std::size_t(o)]);
    auto value = Apply(*n.op, operands, graph::Concrete(n.shape()));
    EXPECT_TRUE(value.ok()) << value.status();
    if (value.ok()) values[std::size_t(id)] = *std::move(value);
  }
  std::vector<Values> out;
  for (graph::NodeId id : g.outputs()) out.push_back(values[std::size_t(id)]);
  return out;
}

struct Errors {
  double definition = 0, engine = 0;
  bool floats = true;  // All outputs are.
};

// Runs the data set in `folder` on a model without opaque nodes, by the definition and by the fast
// engine.
inline Errors RunData(const Model& model, const std::filesystem::path& folder) {
  const graph::Graph& symbolic = model.graph();
  const std::vector<std::int64_t> sizes(symbolic.symbols().size(), 3);
  const auto g = graph::Instantiate(symbolic, symbolic.outputs(), sizes);
  EXPECT_TRUE(g.ok()) << g.status();
  if (!g.ok()) return {1, 1, true};
  std::vector<Values> inputs;
  int next = 0;
  for (const graph::Input& input : g->inputs()) {
    Values value;  // Stays empty for integers, which feed no operator.
    if (input.kind == graph::InputKind::kWeight) {
      const auto number = std::int32_t(inputs.size());
      if (graph::IsFloating(g->node(g->input_node(number)).type->dtype)) {
        value = model.WeightValue(input.name).value();
      }
    } else if (auto read = ReadTensorFile(folder / ("input_" + std::to_string(next++) + ".pb"));
               read.ok()) {
      value = std::move(read->value);
    }
    inputs.push_back(std::move(value));
  }
  const auto slow = eval::Evaluate(*g, g->outputs(), inputs);
  EXPECT_TRUE(slow.ok()) << slow.status();
  const std::vector<Values> fast = EvaluateFast(*g, inputs);
  Errors errors;
  for (std::size_t k = 0; slow.ok() && k < fast.size(); ++k) {
    const auto expected = ReadTensorFile(folder / ("output_" + std::to_string(k) + ".pb"));
    errors.floats = errors.floats && expected.ok();
    if (!expected.ok()) continue;
    EXPECT_EQ(expected->value.extents, fast[k].extents) << model.path();
    if (expected->value.extents != fast[k].extents) return {1, 1, true};
    errors.definition = std::max(errors.definition, RelativeError(expected->value, (*slow)[k]));
    errors.engine = std::max(errors.engine, RelativeError(expected->value, fast[k]));
  }
  return errors;
}

}  // namespace tenon::optimizer::test
