#include <fmt/core.h>

#include "core/rules/derivation.h"
#include "optimizer/explain/report.h"

namespace tenon::optimizer {
namespace {

std::string Saving(const Report& r) {
  if (r.cost_after_us <= 0) return r.cost_before_us > 0 ? "nothing is left to run" : "nothing runs";
  if (r.steps.empty()) return "unchanged";
  return fmt::format("{:.2f} times as fast", r.cost_before_us / r.cost_after_us);
}

// How many of the steps from `first` on are the same but for the cost after them.
std::size_t RepeatsAt(const std::vector<ReportStep>& steps, std::size_t first) {
  std::size_t n = 1;
  while (first + n < steps.size()) {
    const ReportStep &a = steps[first], &b = steps[first + n];
    if (a.rule != b.rule || a.pack != b.pack || a.forward != b.forward || a.sites != b.sites) break;
    ++n;
  }
  return n;
}

std::string ExtractionText(const ReportExtraction& e) {
  return fmt::format(
      "  e-graphs  {} nodes in {} pieces, {} of them saturated; in {} the result is proved to be "
      "the\n"
      "         cheapest that its e-graph holds; together they hold nothing below {:.1f} us (gap "
      "{:.2g} %)\n",
      e.nodes, e.pieces, e.saturated, e.optimal, e.lower_bound_us, 100 * e.gap);
}

}  // namespace

std::string Explain(const Report& r) {
  std::string out = fmt::format("{} on {}\n", r.model.empty() ? "model" : r.model, r.device);
  out += fmt::format("  cost   {:.1f} us -> {:.1f} us ({})\n", r.cost_before_us, r.cost_after_us,
                     Saving(r));
  out += fmt::format("  nodes  {} -> {}\n", r.nodes_before, r.nodes_after);
  out += fmt::format("  bound  nothing that rules can reach costs less than {:.1f} us\n",
                     r.lower_bound_us);
  if (r.opaque_before > 0) {
    out += fmt::format("  {} operators are carried as they are and priced by their sizes only\n",
                       r.opaque_before);
  }
  if (r.unknown_size > 0) {
    out += fmt::format("  {} operators have sizes known at run time only, priced as 1\n",
                       r.unknown_size);
  }
  if (r.extraction) out += ExtractionText(*r.extraction);
  out += r.steps.empty() ? "\nNo rule of the packs makes it cheaper.\n" : "\nDerivation\n";
  double before = r.cost_before_us;
  for (std::size_t k = 0; k < r.steps.size();) {
    const std::size_t n = RepeatsAt(r.steps, k);
    const ReportStep &s = r.steps[k], &last = r.steps[k + n - 1];
    const std::string number =
        n == 1 ? fmt::format("{}.", k + 1) : fmt::format("{}-{}.", k + 1, k + n);
    out += fmt::format("{:>8} {}  {:+.2f} us -> {:.2f} us\n", number,
                       rules::StepName(s.rule, s.forward), last.cost_us - before, last.cost_us);
    out += fmt::format("           {}\n        => {}\n", s.from, s.to);
    out += fmt::format(
        "           {}{}{}\n", s.pack.empty() ? "" : fmt::format("pack {}; ", s.pack),
        n > 1 ? fmt::format("{} times; ", n) : "",
        s.sites > 1 ? fmt::format("{} tensors at once, in a part that makes {}", s.sites, s.where)
                    : fmt::format("in a part that makes {}", s.where));
    before = last.cost_us;
    k += n;
  }
  out += "\nCheck\n";
  if (r.check) {
    out += fmt::format(
        "  {} of {} outputs compared with the original on random inputs, "
        "{} operators computed: greatest relative error {:.2g}\n",
        r.check->outputs_compared, r.check->outputs, r.check->nodes_evaluated,
        r.check->max_relative_error);
    for (const std::string& s : r.check->skipped) out += fmt::format("  not compared: {}\n", s);
  } else {
    out += "  the result was not compared with the original by numbers\n";
  }
  out += fmt::format(
      "\nSearch: {}, {} steps, {} graphs, {} pieces ({} of them seen before), "
      "{} rules given",
      r.end, r.steps_spent, r.graphs_explored, r.windows, r.windows_remembered, r.rules_given);
  if (r.rules_refused > 0) {
    out +=
        fmt::format(", {} of them left out (float class domain, see --fast-math)", r.rules_refused);
  }
  out += fmt::format(", {:.2f} s\n", r.search_seconds);
  for (const std::string& note : r.notes) out += fmt::format("note: {}\n", note);
  return out;
}

}  // namespace tenon::optimizer
