// Units differ by orders of magnitude: with an input as first operand, nearly every large term can
// be the second. So units are sampled by strata: the operator and the size of the first operand.
#include "worker/estimate.h"

#include <chrono>
#include <optional>

namespace tenon::worker {
namespace {

constexpr std::uint64_t kUnitsPerStratum = 48;
constexpr int kTimedGraphs = 512;

// The units of an operator whose first operand has a size.
struct Stratum {
  std::uint64_t first = 0;  // First operands are numbered first .. first + count - 1.
  std::uint64_t count = 0;
};

}  // namespace

StatusOr<LevelEstimate> EstimateLevel(Levels& levels, Evaluator& evaluator, const Hasher& hasher) {
  const graph::TermTable& table = levels.table();
  const std::uint64_t operators = levels.universe().operators.size();
  LevelEstimate out;
  Status status = OkStatus();
  std::uint64_t seen = 0;
  int timed = 0;
  std::chrono::nanoseconds spent{0};
  const auto time_one = [&](const Candidate& c) {
    const auto begin = std::chrono::steady_clock::now();
    const auto value = evaluator.Compute(c.signature, c.operands);
    if (!value.ok()) {
      status = value.status();
      return;
    }
    static_cast<void>(hasher.Hash(table.extents_at(c.type), *value));
    spent += std::chrono::steady_clock::now() - begin;
    ++timed;
  };
  for (int s = 0; s <= levels.depth(); ++s) {
    const Stratum stratum{static_cast<std::uint64_t>(levels.begin(s)),
                          static_cast<std::uint64_t>(levels.end(s) - levels.begin(s))};
    const std::uint64_t sampled = std::min(stratum.count, kUnitsPerStratum);
    for (std::uint64_t o = 0; o < operators; ++o) {
      for (std::uint64_t k = 0; k < sampled; ++k) {
        const double weight = double(stratum.count) / double(sampled);
        const std::uint64_t operand = stratum.first + k * stratum.count / sampled;
        levels.Walk(operand * operators + o, [&](const Candidate& c) {
          out.graphs += weight;
          out.elements += weight * double(graph::ElementCount(table.extents_at(c.type)));
          // The first of a unit are not typical, so every 7th is timed.
          if (++seen % 7 == 0 && timed < kTimedGraphs && status.ok()) time_one(c);
        });
        RETURN_IF_ERROR(status);
      }
    }
  }
  if (timed > 0) {
    out.cpu_seconds = std::chrono::duration<double>(spent).count() / timed * out.graphs;
  }
  return out;
}

}  // namespace tenon::worker
