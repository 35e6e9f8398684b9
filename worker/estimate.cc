// Units differ by orders of magnitude: with an input as first operand, nearly every large term can
// be the second. So units are sampled by strata: the operator and the size of the first operand.
#include "worker/estimate.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <vector>

namespace tenon::worker {
namespace {

constexpr std::uint64_t kUnitsPerStratum = 48;
constexpr int kTimedGraphs = 512;
constexpr std::chrono::milliseconds kTimedFor{500};

// What the tables take for a term of a level below the last, besides its value.
constexpr double kTermBytes = 120;
// What a graph of the last level takes until the classes are read back.
constexpr double kGraphBytes = 24 * 2.5;
constexpr double kCollectedBytes = 80;
// RocksDB's buffers, and what every process has.
constexpr double kBaseBytes = 100e6;
// On disk, compressed, while runs are merged.
constexpr double kDiskBytes = 40;

// What may be looked at for an estimate: candidates walked, and what building a level takes.
// Nothing that is measured in time: what is extrapolated does not depend on the machine.
constexpr double kWalksMax = 1e8;
constexpr double kBuildElementsMax = 2e7;
constexpr double kBuildBytesMax = 512e6;
constexpr double kGrowthMax = 1e12;  // So that eight levels are still a number.

std::chrono::nanoseconds ThreadCpu() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

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
    const auto begin = ThreadCpu();
    const auto value = evaluator.Compute(c.signature, c.operands);
    if (!value.ok()) {
      status = value.status();
      return;
    }
    static_cast<void>(hasher.Hash(table.extents_at(c.type), *value));
    spent += ThreadCpu() - begin;
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
          const bool more = timed < kTimedGraphs && spent < kTimedFor && status.ok();
          if (++seen % 7 == 0 && more) time_one(c);
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

double KeptBytes(std::span<const LevelEstimate> kept, double renamings) {
  double bytes = kBaseBytes;
  for (const LevelEstimate& level : kept) {
    bytes += level.graphs * (kTermBytes + renamings * sizeof(graph::TermId)) +
             level.elements * kLanes * (sizeof(std::uint64_t) + sizeof(double));
  }
  return bytes;
}

double LastLevelBytes(double graphs, std::uint32_t shards) {
  return graphs * kGraphBytes / double(shards) + graphs * kCollectedBytes;
}

namespace {

// How many candidates EstimateLevel walks at most when there are `terms` terms up to `depth`.
double WalksOf(const graph::Universe& universe, double terms, int depth) {
  double walks = 0;
  for (const graph::Universe::Operator& o : universe.operators) {
    walks += std::pow(terms, std::max(0, o.arity - 1));
  }
  return walks * double(kUnitsPerStratum) * (depth + 1);
}

// Levels grow by a factor that itself grows about linearly.
LevelEstimate NextLevel(const std::vector<LevelEstimate>& levels, double inputs) {
  const auto graphs = [&](std::size_t back) {
    return levels.size() >= back ? levels[levels.size() - back].graphs : inputs;
  };
  LevelEstimate next = levels.back();
  if (next.graphs < 1) return next;
  const double ratio = graphs(1) / std::max(1.0, graphs(2));
  const double before = levels.size() >= 2 ? graphs(2) / std::max(1.0, graphs(3)) : ratio;
  const double factor = std::min(ratio + std::max(0.0, ratio - before), kGrowthMax);
  next.graphs *= factor;
  next.elements *= factor;
  next.cpu_seconds *= factor;
  return next;
}

}  // namespace

StatusOr<EnumerationEstimate> EstimateEnumeration(const graph::Universe& universe,
                                                  const EnumerateOptions& options) {
  const int size = options.max_operators == 0 ? universe.max_operators : options.max_operators;
  EnumerateOptions how = options;
  how.memory_limit_bytes = 0;
  how.time_limit_seconds = 0;
  how.progress = nullptr;
  const double inputs = double(universe.inputs.size());
  EnumerationEstimate out;
  std::vector<LevelEstimate> levels;
  double renamings = 1;
  double terms = inputs;
  for (int k = 1; k <= size && !out.extrapolated; ++k) {
    const bool cheap = WalksOf(universe, terms, k - 1) <= kWalksMax &&
                       (levels.empty() || (levels.back().elements <= kBuildElementsMax &&
                                           KeptBytes(levels, renamings) <= kBuildBytesMax));
    if (!cheap) {
      out.extrapolated = true;
      break;
    }
    how.max_operators = k;
    ASSIGN_OR_RETURN(const std::unique_ptr<Enumerator> e, Enumerator::Prepare(universe, how));
    levels = e->levels();
    renamings = e->renamings();
    terms += levels.back().graphs;
  }
  if (levels.empty()) {
    // Already the graphs of one operator are too many to look at: as many as there are operands.
    LevelEstimate first;
    for (const graph::Universe::Operator& o : universe.operators) {
      first.graphs += std::pow(inputs, o.arity);
    }
    first.graphs = std::min(first.graphs, kGrowthMax);
    first.elements = first.graphs;
    levels.push_back(first);
  }
  while (int(levels.size()) < size) levels.push_back(NextLevel(levels, inputs));
  for (const LevelEstimate& level : levels) {
    out.graphs += level.graphs;
    out.cpu_seconds += level.cpu_seconds;
  }
  const std::span<const LevelEstimate> below(levels.data(), levels.size() - 1);
  out.memory_bytes =
      KeptBytes(below, renamings) + LastLevelBytes(levels.back().graphs, options.shards);
  out.record_bytes = out.graphs * kDiskBytes;
  return out;
}

}  // namespace tenon::worker
