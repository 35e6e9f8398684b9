#include "coordinator/board/limits.h"

#include <string>
#include <vector>

#include <fmt/format.h>

#include "proto/convert/status.h"

namespace tenon::board {
namespace {

struct Excess {
  std::string field, estimate, limit, what;
};

std::string Gib(double bytes) { return fmt::format("{:.3g} GiB", bytes / (1 << 30)); }

}  // namespace

Status CheckEstimate(const convert::JobSpec& spec, const convert::JobEstimate& estimate,
                     const Limits& limits) {
  std::vector<Excess> found;
  const auto check = [&](const char* field, double value, double limit, const char* format,
                         const auto& shown, const std::string& most) {
    if (value <= limit) return;
    found.push_back({field, fmt::format("{:.0f}", value), fmt::format("{:.0f}", limit),
                     fmt::format(fmt::runtime(format), shown, most)});
  };
  const std::uint64_t memory =
      spec.memory_limit_bytes != 0 ? spec.memory_limit_bytes : limits.memory_bytes;
  check("spec.memory_limit_bytes", estimate.memory_bytes, double(memory),
        "{} of memory in a slot, and {} are allowed", Gib(estimate.memory_bytes),
        Gib(double(memory)));
  if (spec.time_limit.count() != 0) {
    const double limit = double(spec.time_limit.count());
    check("spec.time_limit_ms", estimate.cpu_ms, limit, "{} of CPU time, and {} are allowed",
          fmt::format("{:.3g} s", estimate.cpu_ms / 1000), fmt::format("{:.3g} s", limit / 1000));
  }
  if (limits.graphs != 0) {
    check("graphs", estimate.graphs, double(limits.graphs), "{} records, and {} are allowed",
          fmt::format("{:.3g}", estimate.graphs), fmt::format("{:.3g}", double(limits.graphs)));
  }
  if (limits.disk_bytes) {
    check("disk", estimate.disk_bytes, double(*limits.disk_bytes),
          "{} on the disks of the stores, and {} are free", Gib(estimate.disk_bytes),
          Gib(double(*limits.disk_bytes)));
  }
  if (found.empty()) return OkStatus();
  std::string text;
  for (const Excess& e : found) text += (text.empty() ? "" : "; ") + e.what;
  return convert::WithDetails(
      base::ResourceExhausted(fmt::format(
          "universe and size ask for {}{:.3g} graphs: {}; ask for fewer operators, canonical mode "
          "or more shards, or make the universe smaller",
          estimate.extrapolated ? "roughly " : "about ", estimate.graphs, text)),
      {.reason = "ABOVE_LIMIT",
       .metadata = {
           {"field", found[0].field}, {"estimate", found[0].estimate}, {"limit", found[0].limit}}});
}

}  // namespace tenon::board
