#include "client/cli/commands/counterexample.h"

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace tenon::cli {
namespace {

std::string Join(const graph::Extents& extents) {
  std::string text;
  for (const std::int64_t n : extents) text += fmt::format("{}{}", text.empty() ? "" : ",", n);
  return text;
}

// The elements of one input, as far as they are not 0: "[0,1] = 2, [1,1] = -3". Long ones are cut.
std::string Elements(const eval::Tensor<double>& tensor) {
  constexpr int kShown = 12;
  std::string text;
  int shown = 0, others = 0;
  for (std::size_t k = 0; k < tensor.data.size(); ++k) {
    if (tensor.data[k] == 0) continue;
    if (shown++ >= kShown) {
      ++others;
      continue;
    }
    graph::Extents at = tensor.extents;
    std::size_t rest = k;
    for (int a = at.size() - 1; a >= 0; --a) {
      at[a] = static_cast<std::int64_t>(rest) % tensor.extents[a];
      rest /= static_cast<std::size_t>(tensor.extents[a]);
    }
    text += fmt::format("{}[{}] = {:g}", text.empty() ? "" : ", ", Join(at), tensor.data[k]);
  }
  if (others > 0) text += fmt::format(", and {} more", others);
  return text.empty() ? "0 everywhere" : text;
}

}  // namespace

void PrintCounterexample(const verifier::Counterexample& example, Console& console) {
  std::string sizes;
  for (const auto& [name, value] : example.sizes) {
    sizes += fmt::format("{}{} = {}", sizes.empty() ? "" : ", ", name, value);
  }
  if (!sizes.empty()) console.Print(fmt::format("      with {}", sizes));
  for (const auto& [name, value] : example.inputs) {
    console.Print(fmt::format("      and  {}[{}]: {}", name, Join(value.extents), Elements(value)));
  }
  console.Print(
      fmt::format("      output {} at [{}] is {:.6g} by the source and {:.6g} by the target",
                  example.output, Join(example.index), example.source_value, example.target_value));
}

Json CounterexampleJson(const verifier::Counterexample& example) {
  Json sizes = Json::Object();
  for (const auto& [name, value] : example.sizes) sizes.Set(name, value);
  Json inputs = Json::Array();
  for (const auto& [name, value] : example.inputs) {
    Json extents = Json::Array(), values = Json::Array();
    for (const std::int64_t n : value.extents) extents.Append(n);
    for (const double v : value.data) values.Append(v);
    inputs.Append(Json::Object(
        {{"name", name}, {"extents", std::move(extents)}, {"values", std::move(values)}}));
  }
  Json index = Json::Array();
  for (const std::int64_t n : example.index) index.Append(n);
  return Json::Object({{"sizes", std::move(sizes)},
                       {"inputs", std::move(inputs)},
                       {"output", example.output},
                       {"index", std::move(index)},
                       {"source_value", example.source_value},
                       {"target_value", example.target_value}});
}

}  // namespace tenon::cli
