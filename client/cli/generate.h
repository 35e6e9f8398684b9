// The embedded pipeline: from a universe to proved rules, in one process. The only place where the
// rooms meet; a cluster does the same with the same parts.
//
// enumerate (worker) -> classes -> reduce (coordinator): lift, prove (verifier), keep, prune, check
// -> their other forms, joins: proved like any rule -> float classes -> the content of a pack.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/universe.h"
#include "core/pack/pack.h"
#include "verifier/decide.h"
#include "worker/enumerate.h"

namespace tenon::cli {

struct GenerateProgress {
  std::string_view phase;  // "values", "graphs", "classes", "samples", "candidates", "proofs",
                           // "prune", "pairs", "joins".
  std::uint64_t done = 0;
  std::uint64_t total = 0;  // 0: not known.
};

struct GenerateOptions {
  int max_operators = 0;  // 0: what the universe says.
  worker::Mode mode = worker::Mode::kExhaustive;
  std::uint32_t shards = 1;
  std::uint64_t memory_limit_bytes = std::uint64_t{4} << 30;
  double time_limit_seconds = 3600;  // Of the enumeration, estimated before it starts.
  std::string scratch_directory;     // For the temporary store; empty: TMPDIR.
  unsigned threads = 0;              // For proofs; 0: as many as there are processors.
  verifier::Budget budget;
  // Called now and then, from one thread at a time; false ends the work with CANCELLED.
  std::function<bool(const GenerateProgress&)> progress;
};

// A form that the prover was asked about, and why it was not proved.
struct Rejected {
  std::string rule;     // Rule text.
  std::string verdict;  // "refuted", "unproved", ..
  std::string reason;
};

// The figures of `tenon generate --json`.
struct GenerateReport {
  std::uint64_t graphs = 0;
  std::vector<std::uint64_t> graphs_by_size;
  std::uint64_t classes = 0;
  std::uint64_t equivalent_pairs = 0;
  std::uint64_t candidates = 0;
  std::uint64_t proved = 0;
  std::uint64_t refuted = 0;
  std::uint64_t unproved = 0;
  std::uint64_t rules = 0;               // Families: a rule and its forms count as one.
  std::uint64_t forms = 0;               // All forms of the rules; what is matched.
  std::uint64_t multi_output_rules = 0;  // Of the rules.
  std::uint64_t pairs_checked = 0;       // Each alone, in the last check.
  std::uint64_t underivable = 0;         // Of those.
  std::string mode;
  double seconds = 0;  // Everything.
  double enumerate_seconds = 0;
  double reduce_seconds = 0;     // Proofs included.
  double proof_seconds = 0;      // Summed over threads.
  double graphs_per_second = 0;  // Of the enumeration.
  std::uint64_t peak_rss_bytes = 0;
  std::uint64_t rounds = 0;
  std::vector<Rejected> rejected;
  std::vector<std::string> underivable_examples;  // "TERM = TERM"
};

struct Generated {
  GenerateReport report;
  pack::Content content;  // Rules with names and float classes; its counts are the report's.
};

// Deterministic but for times and memory: equal universes, modes and sizes give equal contents.
// Errors of worker::Enumerate; Internal when prover and tester contradict each other; CANCELLED.
StatusOr<Generated> Generate(const graph::Universe& universe, const GenerateOptions& options);

}  // namespace tenon::cli
