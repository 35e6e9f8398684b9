// Sets of at most size - 1 nodes are walked; each is a graph, and so is each of the largest ones
// with a node that is listed for it. Graphs one of whose nodes reaches all others come from the
// source. An id is the number of the set in that walk, or a unit of the source, and the node that
// is added, so that it is decoded by walking again.
#include "worker/sets/enumerate.h"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "core/base/check.h"
#include "worker/released/nodes.h"
#include "worker/sets/terms.h"

namespace tenon::worker {
namespace {

constexpr unsigned kNumberShift = 33;
constexpr std::uint64_t kNumberMax = std::uint64_t{1} << (64 - kNumberShift);
constexpr double kBucketRecords = 32'000;  // So that sorting a bucket stays in a core's cache.
constexpr int kPassesMax = 256;

// Measured, and rounded up.
constexpr double kGraphSeconds = 150e-9;    // To walk, sort, write and read back.
constexpr double kRepeatedSeconds = 20e-9;  // To walk in another pass.
constexpr double kBaseBytes = 80e6;         // RocksDB's buffers, and what every process has.
constexpr double kDiskBytes = 13;           // A record.
constexpr double kDiskBase = 1e6;

std::uint64_t IdOfSet(std::uint64_t number, std::uint64_t child) {
  return number << kNumberShift | child << 1;
}
std::uint64_t IdOfLast(std::uint64_t unit, std::uint64_t number) {
  return unit << kNumberShift | number << 1 | 1;
}

double Seconds(const rusage& usage) {
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// What using results of an operand node takes from a set, by which of them are used.
struct Taken {
  std::array<std::uint64_t, 4> sum{};
  std::array<int, 4> outputs{};

  Taken(const ClosedSet& set, int position) {
    if (position < 0) return;
    const auto p = static_cast<std::size_t>(position);
    for (std::size_t mask = 1; mask < 4; ++mask) {
      for (std::size_t slot = 0; slot < 2; ++slot) {
        if ((mask >> slot & 1) == 0 || (set.used[p] >> slot & 1) != 0) continue;
        sum[mask] += set.fp[p][slot];
        ++outputs[mask];
      }
    }
  }
};

StatusOr<std::unique_ptr<SetSource>> SourceOf(const graph::Universe& universe,
                                              const EnumerateOptions& options) {
  switch (universe.semantics) {
    case graph::Semantics::kTrue:
      return std::unique_ptr<SetSource>(std::make_unique<Terms>(universe, options.seed));
    case graph::Semantics::kTasoAsReleased: {
      ASSIGN_OR_RETURN(auto nodes, released::Nodes::Make(universe, options.seed));
      return std::unique_ptr<SetSource>(std::move(nodes));
    }
  }
  return base::Internal("a universe of no semantics");
}

}  // namespace

Status SetEnumerator::Report(std::string_view phase, std::uint64_t done,
                             std::uint64_t total) const {
  if (options_.progress && !options_.progress({phase, done, total})) {
    return absl::CancelledError("the enumeration was cancelled");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<SetEnumerator>> SetEnumerator::Prepare(const graph::Universe& universe,
                                                                const EnumerateOptions& options,
                                                                std::uint64_t free_disk_bytes) {
  RETURN_IF_ERROR(graph::Validate(universe));
  std::unique_ptr<SetEnumerator> e(new SetEnumerator(universe, options));
  e->size_ = options.max_operators == 0 ? universe.max_operators : options.max_operators;
  if (e->size_ < 1 || e->size_ > graph::kMaxOperatorsMax) {
    return base::InvalidArgument(fmt::format("universe {}: {} operators; give 1 to {}",
                                             universe.name, e->size_, graph::kMaxOperatorsMax));
  }
  if (options.shards < 1) return base::InvalidArgument("0 shards; give at least one");
  if (options.mode == Mode::kCanonical) {
    return base::InvalidArgument(
        fmt::format("universe {}: canonical mode is for single outputs; enumerate it exhaustively",
                    universe.name));
  }
  ASSIGN_OR_RETURN(e->source_, SourceOf(universe, options));
  for (int level = 1;; ++level) {
    ASSIGN_OR_RETURN(const LevelSize next, e->source_->EstimateLevel());
    // Nodes of the last level are records only.
    if (level == e->size_) {
      RETURN_IF_ERROR(e->Plan(free_disk_bytes, next));
      return e;
    }
    e->estimate_.memory_bytes += next.bytes;
    e->estimate_.cpu_seconds += next.cpu_seconds;
    e->estimate_.graphs = next.graphs;
    RETURN_IF_ERROR(e->CheckLimits(level, kBaseBytes + e->estimate_.memory_bytes, 0));
    RETURN_IF_ERROR(e->Report("values", std::uint64_t(level - 1), std::uint64_t(e->size_ - 1)));
    RETURN_IF_ERROR(e->source_->BuildLevel());
  }
}

Status SetEnumerator::CheckLimits(int level, double memory_bytes,
                                  std::uint64_t free_disk_bytes) const {
  const auto gib = [](double bytes) { return bytes / double(1 << 30); };
  std::string limit;
  if (options_.memory_limit_bytes != 0 && memory_bytes > double(options_.memory_limit_bytes)) {
    limit = fmt::format("the memory limit is {:.3g} GiB", gib(double(options_.memory_limit_bytes)));
  } else if (options_.time_limit_seconds != 0 &&
             estimate_.cpu_seconds > options_.time_limit_seconds) {
    limit = fmt::format("the time limit is {:.3g} s", options_.time_limit_seconds);
  } else if (free_disk_bytes != 0 && estimate_.disk_bytes > double(free_disk_bytes)) {
    limit = fmt::format("{:.3g} GiB of disk are free", gib(double(free_disk_bytes)));
  } else {
    return OkStatus();
  }
  return base::ResourceExhausted(fmt::format(
      "universe {}: graphs of {} operators: about {:.3g} of them would take {:.3g} s, {:.3g} GiB "
      "of memory and {:.3g} GiB of disk, and {}; ask for fewer operators, make the universe "
      "smaller, or raise the limit",
      name_, level, estimate_.graphs, estimate_.cpu_seconds, gib(memory_bytes),
      gib(estimate_.disk_bytes), limit));
}

// All sets of the walk and what is listed for them; of large walks, a sample of it.
double SetEnumerator::EstimateGraphs() const {
  constexpr int kSampledSize = 2;
  constexpr std::uint64_t kSampled = 64;
  const bool sampled = size_ > 4;
  double graphs = 0;
  std::uint64_t number = 0;
  source_->nodes().Walk(size_ - 1, [&](const WalkFrame& frame) {
    const ClosedSet& set = frame.set;
    if (sampled && set.size == kSampledSize && base::Mix64(number++) % kSampled != 0) return false;
    const double weight = sampled && set.size >= kSampledSize ? double(kSampled) : 1;
    graphs += weight;
    if (set.size < size_ - 1) return true;
    for (std::size_t k = 0; k < frame.list_count; ++k) {
      graphs += weight * double(frame.lists[k].end - frame.lists[k].at);
    }
    return false;
  });
  return graphs;
}

Status SetEnumerator::Plan(std::uint64_t free_disk_bytes, const LevelSize& last) {
  const double nodes = estimate_.memory_bytes;
  const double shards = double(options_.shards);
  estimate_.graphs = EstimateGraphs() + last.graphs;
  estimate_.disk_bytes = estimate_.graphs * kDiskBytes + kDiskBase;
  bucket_bits_ = std::clamp(int(std::ceil(std::log2(estimate_.graphs / kBucketRecords))), 0, 20);
  const double fixed = kBaseBytes + nodes + last.graphs * sizeof(store::NarrowRecord) / shards;
  const double records = RecordBuckets::BytesFor(estimate_.graphs / shards, bucket_bits_);
  estimate_.memory_bytes = fixed + records;
  const double room = double(options_.memory_limit_bytes) - fixed;
  const int most = std::min(kPassesMax, 1 << bucket_bits_);
  double memory = estimate_.memory_bytes;
  if (options_.memory_limit_bytes != 0) {
    estimate_.passes = int(std::clamp(std::ceil(records / std::max(room, 1.0)), 1.0, double(most)));
    memory = fixed + records / estimate_.passes;
  }
  estimate_.cpu_seconds += last.cpu_seconds + estimate_.graphs * kGraphSeconds +
                           (estimate_.passes - 1) * estimate_.graphs * kRepeatedSeconds;
  RETURN_IF_ERROR(CheckLimits(size_, memory, free_disk_bytes));
  if (estimate_.graphs < double(kNumberMax)) return OkStatus();
  // Their number is below that of the graphs.
  return base::ResourceExhausted(
      fmt::format("universe {}: too many graphs of {} operators to number; ask for fewer operators",
                  name_, size_));
}

void SetEnumerator::CountGraph(int size, int outputs, std::uint64_t graphs, std::uint64_t orders) {
  const auto s = static_cast<std::size_t>(size - 1);
  auto& by_outputs = counts_.outputs_by_size[s];
  if (by_outputs.size() < std::size_t(outputs)) by_outputs.resize(std::size_t(outputs), 0);
  by_outputs[std::size_t(outputs - 1)] += graphs;
  counts_.graphs_by_size[s] += graphs;
  counts_.sequences_by_size[s] += orders;
}

template <bool kCount>
void SetEnumerator::EmitChildren(const WalkFrame& frame, std::uint64_t number,
                                 RecordBuckets& buckets) {
  const NodeTable& nodes = source_->nodes();
  const ClosedSet& set = frame.set;
  std::array<std::uint64_t, 2 * kSetMax + 3> by_outputs{};
  std::uint64_t sequences = 0;
  for (std::size_t k = 0; k < frame.list_count; ++k) {
    const WalkFrame::List& list = frame.lists[k];
    const Taken first(set, list.first), second(set, list.second);
    std::array<std::uint64_t, 3> orders{};
    if constexpr (kCount) {
      Before uses = set.before;
      if (list.first >= 0) uses |= Before{1} << (8 * set.size + list.first);
      if (list.second >= 0) uses |= Before{1} << (8 * set.size + list.second);
      orders[0] = orders_.Count(set.size + 1, uses);
      if (list.second >= 0) {
        orders[1] = orders_.Count(set.size + 1, uses | Before{1} << (8 * list.second + list.first));
        orders[2] = orders_.Count(set.size + 1, uses | Before{1} << (8 * list.first + list.second));
      }
    }
    for (const Child* c = list.at; c != list.end; ++c) {
      std::uint64_t sum = set.sum + c->sum;
      int outputs = set.outputs + c->results;
      std::uint64_t own_orders = orders[c->order];
      if (c->flags != 0) {
        if (!nodes.Fits(set, *c)) continue;
        if ((c->flags & Child::kMany) != 0) {
          ClosedSet with;
          nodes.Extend(set, c->node, with);
          sum = with.sum;
          outputs = with.outputs;
          if constexpr (kCount) own_orders = orders_.Count(with.size, with.before);
        }
      }
      const std::size_t used = c->masks & 3u, also = c->masks >> 2;
      sum -= first.sum[used] + second.sum[also];
      buckets.Add(sum, IdOfSet(number, std::uint64_t{c->node} + 1));
      if constexpr (kCount) {
        ++by_outputs[std::size_t(outputs - first.outputs[used] - second.outputs[also])];
        sequences += own_orders;
      }
    }
  }
  if constexpr (kCount) {
    for (std::size_t n = 1; n < by_outputs.size(); ++n) {
      if (by_outputs[n] != 0) CountGraph(set.size + 1, int(n), by_outputs[n], 0);
    }
    counts_.sequences_by_size[std::size_t(set.size)] += sequences;
  }
}

template <bool kCount>
Status SetEnumerator::WalkSets(std::uint32_t shard, RecordBuckets& buckets) {
  Status status = OkStatus();
  std::uint64_t next = 0;
  const auto expected = std::uint64_t(estimate_.graphs);
  source_->nodes().Walk(size_ - 1, [&](const WalkFrame& frame) {
    const ClosedSet& set = frame.set;
    const std::uint64_t number = next++;
    if (number % (1 << 16) == 0 && status.ok()) {
      status = Report("graphs", std::min(number * 100, expected), expected);
    }
    if (!status.ok()) return false;
    if (base::Mix64(number) % options_.shards == shard) {
      if (set.size > 0) {
        buckets.Add(set.sum, IdOfSet(number, 0));
        if constexpr (kCount) {
          CountGraph(set.size, set.outputs, 1, orders_.Count(set.size, set.before));
        }
      }
      if (set.size == size_ - 1) EmitChildren<kCount>(frame, number, buckets);
    }
    return true;
  });
  return status;
}

Status SetEnumerator::WalkLast(std::uint32_t shard) {
  last_.clear();
  return source_->WalkLast(
      [&](std::uint64_t unit) { return base::Mix64(unit) % options_.shards == shard; },
      [&](const LastGraph& graph) {
        last_.push_back({graph.fingerprint, IdOfLast(graph.unit, graph.number)});
        CountGraph(size_, graph.outputs, 1, graph.orders);
        return last_.size() % (1 << 16) == 0 ? Report("graphs", 0, 0) : OkStatus();
      });
}

Status SetEnumerator::RunShard(std::uint32_t shard, store::Store& store,
                               const store::RunTable& table) {
  CHECK(shard < options_.shards);
  counts_.graphs_by_size.resize(std::size_t(size_));
  counts_.sequences_by_size.resize(std::size_t(size_));
  counts_.outputs_by_size.resize(std::size_t(size_));
  counts_.passes = estimate_.passes;
  ASSIGN_OR_RETURN(const auto writer, store::NarrowRunWriter::Open(store, table, shard));
  RecordBuckets buckets(table.bucket_bits);
  const std::uint64_t count = std::uint64_t{1} << table.bucket_bits;
  const auto passes = static_cast<std::uint64_t>(estimate_.passes);
  std::vector<store::NarrowRecord> records, buffer;
  RETURN_IF_ERROR(WalkLast(shard));
  for (std::uint64_t pass = 0; pass < passes; ++pass) {
    buckets.Take(std::uint32_t(count * pass / passes), std::uint32_t(count * (pass + 1) / passes));
    RETURN_IF_ERROR(pass == 0 ? WalkSets<true>(shard, buckets) : WalkSets<false>(shard, buckets));
    for (const store::NarrowRecord& r : last_) buckets.Add(r.fingerprint, r.id);
    for (std::uint32_t bucket = buckets.first(); bucket < buckets.end(); ++bucket) {
      buckets.Remove(bucket, records);
      store::SortNarrow(records, buffer);
      RETURN_IF_ERROR(writer->Put(bucket, records));
    }
  }
  last_ = {};
  RETURN_IF_ERROR(writer->Finish());
  return OkStatus();
}

StatusOr<SetEnumeration> SetEnumerator::Collect(const store::Store& store,
                                                const store::RunTable& table,
                                                const VisitClass& visit) const {
  SetEnumeration out = counts_;
  const std::uint64_t buckets = std::uint64_t{1} << table.bucket_bits;
  const auto read = [&](std::uint32_t bucket,
                        std::span<const store::NarrowRecord> records) -> Status {
    if (bucket % 64 == 0) RETURN_IF_ERROR(Report("classes", bucket, buckets));
    out.graphs += records.size();
    for (std::size_t first = 0, end = 0; first < records.size(); first = end) {
      while (end < records.size() && records[end].fingerprint == records[first].fingerprint) ++end;
      const std::uint64_t members = end - first;
      ++out.classes;
      if (members == 1) continue;
      ++out.shared_classes;
      out.graphs_in_shared += members;
      out.equivalent_pairs += members * (members - 1) / 2;
      if (visit)
        RETURN_IF_ERROR(visit(records[first].fingerprint, records.subspan(first, members)));
    }
    return OkStatus();
  };
  RETURN_IF_ERROR(store::ForEachNarrowBucket(store, table, read));
  out.record_bytes = store.DiskBytes(store::Family::kFingerprints);
  return out;
}

StatusOr<std::vector<std::vector<std::string>>> SetEnumerator::TextsOf(
    std::span<const std::uint64_t> ids) {
  std::vector<std::vector<std::string>> out(ids.size());
  std::vector<std::size_t> sets, lasts;
  for (std::size_t k = 0; k < ids.size(); ++k) {
    CHECK(k == 0 || ids[k - 1] <= ids[k]);
    ((ids[k] & 1) == 0 ? sets : lasts).push_back(k);
  }
  const NodeTable& nodes = source_->nodes();
  std::uint64_t number = 0;
  std::size_t at = 0;
  nodes.Walk(size_ - 1, [&](const WalkFrame& frame) {
    for (; at < sets.size() && ids[sets[at]] >> kNumberShift == number; ++at) {
      const std::uint64_t child = (ids[sets[at]] & ((std::uint64_t{1} << kNumberShift) - 1)) >> 1;
      ClosedSet with = frame.set;
      if (child != 0) nodes.Extend(frame.set, NodeNumber(child - 1), with);
      with.ForEachOutput([&](ResultNumber r) { out[sets[at]].push_back(source_->TextOf(r)); });
    }
    ++number;
    return at < sets.size();
  });
  std::size_t of_unit = 0;
  RETURN_IF_ERROR(source_->WalkLast(
      [&](std::uint64_t unit) {
        while (of_unit < lasts.size() && ids[lasts[of_unit]] >> kNumberShift < unit) ++of_unit;
        return of_unit < lasts.size() && ids[lasts[of_unit]] >> kNumberShift == unit;
      },
      [&](const LastGraph& graph) {
        const std::uint64_t id = IdOfLast(graph.unit, graph.number);
        if (of_unit < lasts.size() && ids[lasts[of_unit]] == id) {
          out[lasts[of_unit++]] = source_->TextsOfLast();
        }
        return OkStatus();
      }));
  for (std::vector<std::string>& texts : out) {
    if (texts.empty()) {
      return base::DataLoss(fmt::format("universe {}: an id that names no graph", name_));
    }
    std::sort(texts.begin(), texts.end());
  }
  return out;
}

StatusOr<SetEnumeration> EnumerateSets(const graph::Universe& universe,
                                       const EnumerateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                   store::Store::OpenTemporary(options.scratch_directory));
  ASSIGN_OR_RETURN(const std::uint64_t free, store->FreeBytes());
  ASSIGN_OR_RETURN(const auto e, SetEnumerator::Prepare(universe, options, free));
  const store::RunTable table = e->TableFor(1);
  for (std::uint32_t shard = 0; shard < options.shards; ++shard) {
    RETURN_IF_ERROR(e->RunShard(shard, *store, table));
  }
  ASSIGN_OR_RETURN(SetEnumeration result, e->Collect(*store, table, nullptr));
  getrusage(RUSAGE_SELF, &after);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.cpu_seconds = Seconds(after) - Seconds(before);
  result.peak_rss_bytes = std::uint64_t(after.ru_maxrss) * 1024;
  return result;
}

}  // namespace tenon::worker
