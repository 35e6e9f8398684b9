// Enumeration: all graphs of a universe up to a size, grouped into classes that compute the same.
//
// `Enumerate` does it in one process. `Enumerator` has the parts that many machines run: every one
// prepares the levels below the last, which is cheap; the last level, nearly everything, is cut
// into shards; the records of all shards meet in a store; who collects them reads the classes back.
// Counts, classes and term ids depend on the universe, the mode and the size alone, not on shards,
// seed or who ran what.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/term_table.h"
#include "core/graph/universe.h"
#include "store/run.h"
#include "worker/evaluator.h"
#include "worker/fingerprint.h"
#include "worker/found.h"
#include "worker/levels.h"
#include "worker/renaming.h"

namespace tenon::worker {

enum class Mode : std::uint8_t {
  kExhaustive,  // Every graph.
  kCanonical,   // Up to renaming of inputs of one type and kind, and exchange of the operands of
                // commutative operators.
};

struct Progress {
  std::string_view phase;  // "values", "graphs", "classes", "samples".
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

struct EnumerateOptions {
  int max_operators = 0;  // 0: what the universe says.
  Mode mode = Mode::kExhaustive;
  std::uint32_t shards = 1;
  std::uint64_t seed = 0;  // Of samples and hashes.
  // Estimated before the work starts; 0 is no limit.
  std::uint64_t memory_limit_bytes = std::uint64_t{4} << 30;
  double time_limit_seconds = 3600;
  // Whether the table holds all graphs in the end, or only those that share their class.
  bool keep_all = true;
  std::string scratch_directory;  // For the temporary store; empty: TMPDIR.
  // Called now and then; false ends the work with CANCELLED.
  std::function<bool(const Progress&)> progress;
};

// What the last level will take.
struct Estimate {
  double graphs = 0;
  double cpu_seconds = 0;
  double memory_bytes = 0;
};

struct LevelEstimate;  // worker/estimate.h

// What was enumerated. A value type.
struct Enumeration {
  graph::Universe universe;
  Mode mode = Mode::kExhaustive;
  int max_operators = 0;
  graph::TermTable table;

  std::vector<std::uint64_t> graphs_by_size;  // [0] is size 1.
  std::uint64_t graphs = 0;
  std::uint64_t classes = 0;           // Distinct functions among the graphs.
  std::uint64_t equivalent_pairs = 0;  // Unordered pairs of different graphs with one function.
  // In canonical mode the three count canonical graphs, and functions up to renaming.
  std::uint64_t split_classes = 0;  // How many more classes the biased samples found.

  // The classes with at least two members, inputs among them, members ascending, classes by their
  // first member. In canonical mode members are named so that they compute the same; one graph may
  // appear under several names, when it equals its own renaming; and for each commutative operator
  // one class has op(a, b) and op(b, a), which is not counted.
  std::size_t class_count() const { return class_at.size() - 1; }
  std::span<const graph::TermId> members(std::size_t c) const {
    return {class_members.data() + class_at[c], class_at[c + 1] - class_at[c]};
  }
  std::vector<std::size_t> class_at{0};
  std::vector<graph::TermId> class_members;

  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;  // Of the process.
  std::uint64_t record_bytes = 0;    // In the store.
};

// Thread-compatible.
class Enumerator {
 public:
  ~Enumerator();
  // Builds and evaluates all levels below the last. ResourceExhausted when the work would exceed
  // the limits: the message has the estimate and the ways out. InvalidArgument for a universe with
  // several outputs, or max_operators out of range.
  static StatusOr<std::unique_ptr<Enumerator>> Prepare(const graph::Universe& universe,
                                                       const EnumerateOptions& options);

  const Estimate& estimate() const { return estimate_; }
  // Of each level, from size 1.
  const std::vector<LevelEstimate>& levels() const { return level_estimates_; }
  // How many ways there are to rename inputs; 1 but in canonical mode.
  double renamings() const { return renamings_ ? double(renamings_->count()) : 1; }
  // The bucket bits that suit the estimate; job is the caller's.
  store::RunTable TableFor(std::uint64_t job) const;

  // Evaluates the graphs of a shard and writes their records. Idempotent. shard < options.shards.
  Status RunShard(std::uint32_t shard, store::RunSink& sink, const store::RunTable& runs);
  Status RunShard(std::uint32_t shard, store::Store& store, const store::RunTable& runs);
  // What the last RunShard evaluated and wrote.
  std::uint64_t graphs() const { return graphs_; }
  std::uint64_t records() const { return records_; }
  std::uint64_t record_bytes() const { return record_bytes_; }  // Of all of them.
  // From now on called instead of EnumerateOptions::progress.
  void SetProgress(std::function<bool(const Progress&)> progress) {
    options_.progress = std::move(progress);
  }

  // Reads the classes back after all shards have been written, and ends this object's life.
  StatusOr<Enumeration> Collect(const store::RunSource& source, const store::RunTable& runs) &&;
  StatusOr<Enumeration> Collect(store::Store& store, const store::RunTable& runs) &&;
  // The same in parts, for several machines: each reads a range of the buckets, whose runs are what
  // its source has; Join brings all of them together, in any order. The outcome does not depend on
  // how the buckets were cut. Both need keep_all = false. DataLoss: parts that do not fit.
  StatusOr<FoundClasses> CollectPart(const store::RunSource& source, const store::RunTable& runs);
  StatusOr<Enumeration> Join(std::vector<FoundClasses> parts) &&;

 private:
  Enumerator(const graph::Universe& universe, const EnumerateOptions& options);

  Status BuildLevel();
  Status RestoreValues();
  Status EmitStored(std::uint32_t shard, std::vector<store::Record>& out);
  Status EmitUnit(std::uint64_t unit, std::vector<store::Record>& out);
  Status EmitRenamed(std::uint64_t unit, std::uint64_t child, const Candidate& c,
                     std::vector<store::Record>& out);
  Status Report(std::string_view phase, std::uint64_t done, std::uint64_t total) const;
  std::uint64_t IdOf(std::uint64_t unit, std::uint64_t child, std::size_t renaming) const;

  friend class Collector;
  graph::Universe universe_;
  EnumerateOptions options_;
  int size_ = 0;  // The last level.
  Levels levels_;
  Evaluator evaluator_;
  Hasher hasher_;
  std::optional<Renamings> renamings_;     // In canonical mode.
  unsigned renaming_bits_ = 0;             // Of an id.
  std::vector<Signature> signatures_;      // By term.
  std::vector<Fingerprint> fingerprints_;  // By term.
  bool values_are_biased_ = false;         // Those of the evaluator, after CollectPart.
  Estimate estimate_;
  std::vector<LevelEstimate> level_estimates_;
  std::uint64_t record_bytes_ = 0;  // That RunShard wrote.
  std::uint64_t graphs_ = 0, records_ = 0;
};

// All of it, with a temporary store. Errors of Enumerator and Store.
StatusOr<Enumeration> Enumerate(const graph::Universe& universe, const EnumerateOptions& options);

}  // namespace tenon::worker
