// The enumeration of graphs with any number of outputs: walks over sets of nodes (node_table.h).
//
// The nodes that reach fewer operators than the largest size are built once, with their values. A
// graph's fingerprint is the sum of those of its outputs, so a graph of the last level costs an
// addition and a record of 16 bytes; only graphs one of whose nodes reaches all others are
// evaluated anew. Records go to buckets of a store as they are made; where they do not fit in
// memory the walk is repeated for one range of fingerprints after another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/graph/universe.h"
#include "store/narrow_run.h"
#include "worker/enumerate.h"
#include "worker/sets/record_buckets.h"
#include "worker/sets/source.h"

namespace tenon::worker {

struct SetEstimate {
  double graphs = 0;        // Of all sizes.
  double cpu_seconds = 0;   // Of all shards together.
  double memory_bytes = 0;  // Of one process, when the records fit into it all at once.
  double disk_bytes = 0;
  int passes = 1;  // Over ranges of fingerprints, so that memory is within the limit.
};

// What was enumerated. A value type.
struct SetEnumeration {
  std::vector<std::uint64_t> graphs_by_size;     // [0] is size 1.
  std::vector<std::uint64_t> sequences_by_size;  // Orders in which operators can be added, summed.
  std::vector<std::vector<std::uint64_t>> outputs_by_size;  // [size - 1][outputs - 1]
  std::uint64_t graphs = 0;
  std::uint64_t classes = 0;           // Distinct fingerprints.
  std::uint64_t shared_classes = 0;    // With at least two graphs.
  std::uint64_t graphs_in_shared = 0;  // How many graphs those have.
  std::uint64_t equivalent_pairs = 0;  // Unordered pairs of graphs in one class.
  std::uint64_t record_bytes = 0;      // In the store, keys and all.
  int passes = 1;
  double seconds = 0;
  double cpu_seconds = 0;
  std::uint64_t peak_rss_bytes = 0;  // Of the process.
};

// Thread-compatible.
class SetEnumerator {
 public:
  // Builds the nodes of all levels below the last. ResourceExhausted when the work would exceed the
  // limits of the options (memory, time) or the room that `free_disk_bytes` leaves (0: any): the
  // message has the estimate and the ways out. InvalidArgument: max_operators out of range, an
  // operator that the semantics of the universe do not have, or canonical mode.
  static StatusOr<std::unique_ptr<SetEnumerator>> Prepare(const graph::Universe& universe,
                                                          const EnumerateOptions& options,
                                                          std::uint64_t free_disk_bytes = 0);

  const SetEstimate& estimate() const { return estimate_; }
  store::RunTable TableFor(std::uint64_t job) const { return {job, bucket_bits_}; }

  // Walks a shard and writes its records; adds its graphs to the counts of this object. shard <
  // options.shards. Writing a shard again changes nothing in the store.
  Status RunShard(std::uint32_t shard, store::Store& store, const store::RunTable& table);

  // Reads the classes back after all shards have been written. `visit`, unless null, is called for
  // each class with at least two graphs; ids ascend.
  using VisitClass =
      std::function<Status(std::uint64_t fingerprint, std::span<const store::NarrowRecord>)>;
  StatusOr<SetEnumeration> Collect(const store::Store& store, const store::RunTable& table,
                                   const VisitClass& visit) const;

  // The texts of graphs, given by ids of records, ascending: their outputs, sorted.
  StatusOr<std::vector<std::vector<std::string>>> TextsOf(std::span<const std::uint64_t> ids);

 private:
  SetEnumerator(const graph::Universe& universe, const EnumerateOptions& options)
      : name_(universe.name), options_(options) {}

  Status Plan(std::uint64_t free_disk_bytes, const LevelSize& last);
  Status CheckLimits(int level, double memory_bytes, std::uint64_t free_disk_bytes) const;
  double EstimateGraphs() const;
  template <bool kCount>
  Status WalkSets(std::uint32_t shard, RecordBuckets& buckets);
  template <bool kCount>
  void EmitChildren(const WalkFrame& frame, std::uint64_t number, RecordBuckets& buckets);
  Status WalkLast(std::uint32_t shard);
  void CountGraph(int size, int outputs, std::uint64_t graphs, std::uint64_t orders);
  Status Report(std::string_view phase, std::uint64_t done, std::uint64_t total) const;

  std::string name_;
  EnumerateOptions options_;
  int size_ = 0;  // The last level.
  std::unique_ptr<SetSource> source_;
  SetEstimate estimate_;
  int bucket_bits_ = 0;
  Orders orders_;
  SetEnumeration counts_;
  std::vector<store::NarrowRecord> last_;  // Of graphs one of whose nodes reaches all others.
};

// All of it, with a temporary store. Errors of SetEnumerator and Store.
StatusOr<SetEnumeration> EnumerateSets(const graph::Universe& universe,
                                       const EnumerateOptions& options);

}  // namespace tenon::worker
