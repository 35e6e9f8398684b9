// Report: what an optimization did and how it is known to be right; a JSON document and a readable
// derivation of it. The fields are described in docs/formats/json.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "optimizer/explain/picture.h"
#include "optimizer/search/optimize.h"

namespace tenon::optimizer {

struct ReportStep {
  std::string rule, pack;
  std::string from, to;  // The matched side of the rule and what replaced it, as text.
  bool forward = true;   // `from` is the rule's source.
  int sites = 1;         // Tensors replaced at once.
  double cost_us = 0;    // Of the whole model after the step.
  std::string where;     // The types of the tensors around which it happened.
};

// What the numeric comparison with the original saw.
struct ReportCheck {
  double max_relative_error = 0;
  int outputs_compared = 0, outputs = 0;
  int nodes_evaluated = 0;           // Operators of the original that were computed.
  std::vector<std::string> skipped;  // What was not compared, and why.
};

// What extraction says of the e-graphs of the last full pass (SearchExtraction).
struct ReportExtraction {
  int pieces = 0, optimal = 0, saturated = 0;
  std::int64_t nodes = 0, nodes_max = 0;
  double lower_bound_us = 0;
  double gap = 0;  // Of the result's cost: how much of it lies above the bound.
};

struct Report {
  std::string model, result, device;  // Names of files and the spec of the device.
  std::string search = "backtrack";
  double alpha = 1;
  double cost_before_us = 0, cost_after_us = 0, lower_bound_us = 0;
  int nodes_before = 0, nodes_after = 0;
  std::vector<ReportStep> steps;
  std::optional<ReportCheck> check;            // Absent when nothing was compared.
  std::optional<ReportExtraction> extraction;  // Of equality saturation.
  double seconds = 0;                          // All of it.
  double search_seconds = 0;
  std::string end;  // Why the search ended: NameOf(SearchEnd).
  std::int64_t steps_spent = 0, graphs_explored = 0;
  int windows = 0, windows_remembered = 0;
  int opaque_before = 0, opaque_after = 0;  // Operators that were carried and not looked into.
  int unknown_size = 0;                     // Operators priced with an extent taken as 1.
  int rules_given = 0, rules_refused = 0;   // Refused for their float class.
  std::vector<std::string> notes;
  Picture before, after;
};

// The part of a report that the search knows. `opaque_name` names foreign nodes in the pictures.
Report MakeReport(const graph::Graph& original, const SearchResult& result,
                  std::span<const SearchRule> rules,
                  const std::function<std::string(const ops::Opaque&)>& opaque_name = {});

// The JSON document, with a line break at its end. Numbers that are not finite become null.
std::string ToJson(const Report& report);
// Reads it back. InvalidArgument: "FILE: field: what is wrong".
StatusOr<Report> ParseReport(std::string_view json, std::string_view file);

// The readable derivation, several lines.
std::string Explain(const Report& report);

}  // namespace tenon::optimizer
