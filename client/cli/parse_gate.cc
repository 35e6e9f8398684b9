#include "client/cli/parse_gate.h"

#include "client/cli/finite.h"

namespace tenon::cli {
void AddGate(CLI::App& command, GateFlags& flags) {
  const char* const group = "Thresholds (exit code 1 if one is not met)";
  CLI::Option* slower =
      command
          .add_flag("--fail-if-slower", flags.fail_if_slower,
                    "The result may cost no more than the original, nor than --baseline")
          ->group(group);
  command.add_option("--baseline", flags.baseline, "The --report of an earlier run")
      ->needs(slower)
      ->group(group);
  command.add_option("--min-speedup", flags.min_speedup, "Cost before / cost after, at least")
      ->check(CLI::NonNegativeNumber & FiniteNumber())
      ->group(group);
  command
      .add_option("--max-relative-error", flags.max_relative_error,
                  "Of the outputs against the original's, at most")
      ->check(CLI::NonNegativeNumber & FiniteNumber())
      ->group(group);
  command.add_option("--junit", flags.junit, "Write the checks as JUnit XML")->group(group);
  command.add_option("--markdown", flags.markdown, "Write a summary in Markdown")->group(group);
}

}  // namespace tenon::cli
