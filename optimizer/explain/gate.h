// Gate: whether an optimization is good enough for whoever asked, and the decision in the forms
// that CI systems read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optimizer/explain/report.h"

namespace tenon::optimizer {

// A value type.
struct GateOptions {
  // The result must not cost more than the original, nor than that of the report `baseline`.
  bool fail_if_slower = false;
  std::optional<Report> baseline;            // Of an earlier run, on the same device.
  std::optional<double> min_speedup;         // Cost before / cost after, at least.
  std::optional<double> max_relative_error;  // Of the comparison with the original, at most.
  bool empty() const { return !fail_if_slower && !min_speedup && !max_relative_error; }
};

// One threshold: what was asked, what there is, and whether that will do.
struct GateCheck {
  std::string name;  // The flag that asks for it: "min-speedup".
  bool passed = false;
  std::string says;  // A line: "1.24 times as fast, at least 1.1 asked for".
};

struct Decision {
  std::vector<GateCheck> checks;  // Only of what was asked for.
  bool passed() const;            // All of them; also if there are none.
};

// A comparison that compared no output passes no limit on the error. InvalidArgument when a
// baseline is of another device: costs on two devices cannot be compared.
StatusOr<Decision> Decide(const Report& report, const GateOptions& options);

// The speed-up as a number; infinite when nothing is left to run, 1 when nothing ran at first.
double Speedup(const Report& report);

// JUnit's XML as GitLab, Jenkins and others read it: one suite, a case for the optimization itself
// (with what its report says as output) and one for each check.
std::string ToJunit(const Report& report, const Decision& decision);
// The same for an optimization that ended with an error: one case, which is an error.
std::string ToJunit(std::string_view model, const Status& error);

// A summary for people: GitHub's flavour of Markdown, for a job's page or a comment.
std::string ToMarkdown(const Report& report, const Decision& decision);
std::string ToMarkdown(std::string_view model, const Status& error);

}  // namespace tenon::optimizer
