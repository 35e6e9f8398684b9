// A graph's id is its place in the walk: the unit of the last level and the number within it, or
// the number of a term of the levels below. Ids are decoded by walking the unit again, so a record
// needs no more than a fingerprint and an id.
#include "worker/enumerate.h"

#include <sys/resource.h>

#include <bit>
#include <chrono>

#include <fmt/format.h>

#include "core/base/check.h"
#include "worker/classes.h"
#include "worker/estimate.h"

namespace tenon::worker {
namespace {

int LastLevel(const graph::Universe& universe, const EnumerateOptions& options) {
  return options.max_operators == 0 ? universe.max_operators : options.max_operators;
}

Status CheckLimits(const EnumerateOptions& options, const std::string& name, int size,
                   const Estimate& e) {
  const bool memory =
      options.memory_limit_bytes != 0 && e.memory_bytes > double(options.memory_limit_bytes);
  const bool time = options.time_limit_seconds != 0 && e.cpu_seconds > options.time_limit_seconds;
  if (!memory && !time) return OkStatus();
  return base::ResourceExhausted(fmt::format(
      "universe {}: graphs of {} operators: about {:.3g} of them would take {:.3g} s and {:.3g} "
      "GiB, the {} limit is {}; ask for fewer operators, more shards or canonical mode, make the "
      "universe smaller, or raise the limit",
      name, size, e.graphs, e.cpu_seconds, e.memory_bytes / (1 << 30), memory ? "memory" : "time",
      memory ? fmt::format("{:.3g} GiB", double(options.memory_limit_bytes) / (1 << 30))
             : fmt::format("{:.3g} s", options.time_limit_seconds)));
}

double CpuSeconds(const rusage& usage) {
  const auto seconds = [](const timeval& t) { return double(t.tv_sec) + 1e-6 * double(t.tv_usec); };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

Enumerator::Enumerator(const graph::Universe& universe, const EnumerateOptions& options)
    : universe_(universe),
      options_(options),
      size_(LastLevel(universe, options)),
      levels_(universe_, options.mode == Mode::kCanonical),
      evaluator_(levels_),
      hasher_(options.seed, universe.max_elements) {
  const std::vector<InputValue> inputs = MainSamples(universe_, options.seed);
  evaluator_.SetInputs(inputs);
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    signatures_.push_back(0);  // Unused.
    fingerprints_.push_back(hasher_.Hash(universe_.inputs[k].extents, inputs[k].view()));
  }
}

Enumerator::~Enumerator() = default;

Status Enumerator::Report(std::string_view phase, std::uint64_t done, std::uint64_t total) const {
  if (options_.progress && !options_.progress({phase, done, total})) {
    return absl::CancelledError("the enumeration was cancelled");
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Enumerator>> Enumerator::Prepare(const graph::Universe& universe,
                                                          const EnumerateOptions& options) {
  RETURN_IF_ERROR(graph::Validate(universe));
  if (universe.outputs != graph::Outputs::kSingle) {
    return base::InvalidArgument(
        fmt::format("universe {}: outputs: MULTIPLE is for `tenon enumerate` on one machine: rules "
                    "are generated "
                    "from SINGLE",
                    universe.name));
  }
  const int size = LastLevel(universe, options);
  if (size < 1 || size > graph::kMaxOperatorsMax) {
    return base::InvalidArgument(fmt::format("universe {}: {} operators; give 1 to {}",
                                             universe.name, size, graph::kMaxOperatorsMax));
  }
  if (options.shards < 1) return base::InvalidArgument("0 shards; give at least one");
  std::unique_ptr<Enumerator> e(new Enumerator(universe, options));
  if (options.mode == Mode::kCanonical) {
    ASSIGN_OR_RETURN(e->renamings_, Renamings::Of(e->levels_));
    e->renaming_bits_ = unsigned(std::bit_width(e->renamings_->count() - 1));
  }
  std::vector<LevelEstimate>& levels = e->level_estimates_;
  for (int k = 1; k <= size; ++k) {
    ASSIGN_OR_RETURN(const LevelEstimate level,
                     EstimateLevel(e->levels_, e->evaluator_, e->hasher_));
    const double below = KeptBytes(levels, e->renamings());
    levels.push_back(level);
    const double bytes = k < size ? KeptBytes(levels, e->renamings())
                                  : below + LastLevelBytes(level.graphs, options.shards);
    e->estimate_ = {level.graphs, level.cpu_seconds, bytes};
    RETURN_IF_ERROR(CheckLimits(options, universe.name, k, e->estimate_));
    if (k < size) RETURN_IF_ERROR(e->BuildLevel());
  }
  const std::uint64_t ids = std::uint64_t{1} << (32 - e->renaming_bits_);
  if (std::uint64_t(e->levels_.end(size - 1)) >= ids || e->levels_.unit_count() >= 0xffffffff) {
    return base::ResourceExhausted(fmt::format(
        "universe {}: too many graphs below {} operators to number; ask for fewer operators",
        universe.name, size));
  }
  return e;
}

Status Enumerator::BuildLevel() {
  Status status = OkStatus();
  const std::uint64_t units = levels_.unit_count();
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    if (unit % 1024 == 0) RETURN_IF_ERROR(Report("values", unit, units));
    levels_.Walk(unit, [&](const Candidate& c) {
      if (!status.ok()) return;
      const TermId id = levels_.Add(c);
      signatures_.push_back(c.signature);
      status = evaluator_.Keep(id, c.signature);
      fingerprints_.push_back(
          hasher_.Hash(levels_.table().extents_at(c.type), evaluator_.value(id)));
    });
    RETURN_IF_ERROR(status);
  }
  levels_.CompleteLevel();
  if (renamings_) renamings_->ExtendTo(levels_);
  return OkStatus();
}

store::RunTable Enumerator::TableFor(std::uint64_t job) const {
  const auto expected = std::uint64_t(estimate_.graphs) + fingerprints_.size();
  return {job, store::BucketBits(expected, options_.shards)};
}

std::uint64_t Enumerator::IdOf(std::uint64_t unit, std::uint64_t child,
                               std::size_t renaming) const {
  return unit << 32 | child << renaming_bits_ | renaming;
}

Status Enumerator::EmitStored(std::uint32_t shard, std::vector<store::Record>& out) {
  for (std::size_t k = shard; k < fingerprints_.size(); k += options_.shards) {
    const TermId id = static_cast<TermId>(k);
    if (renamings_ && !renamings_->IsCanonical(id)) continue;
    graphs_ += id < levels_.end(0) ? 0 : 1;
    if (!renamings_) {
      out.push_back({fingerprints_[k], IdOf(0, k, 0)});
      continue;
    }
    // The function of a graph up to renaming is the least fingerprint of its images; a graph that
    // equals its own renaming has several images with it.
    const auto image = [&](std::size_t r) { return renamings_->Image(r, id); };
    Fingerprint least = fingerprints_[k];
    for (std::size_t r = 0; r < renamings_->count(); ++r) {
      least = std::min(least, fingerprints_[static_cast<std::size_t>(image(r))]);
    }
    for (std::size_t r = 0; r < renamings_->count(); ++r) {
      if (fingerprints_[static_cast<std::size_t>(image(r))] != least) continue;
      bool repeated = false;
      for (std::size_t q = 0; q < r; ++q) repeated = repeated || image(q) == image(r);
      if (!repeated) out.push_back({least, IdOf(0, k, r)});
    }
  }
  return OkStatus();
}

Status Enumerator::EmitRenamed(std::uint64_t unit, std::uint64_t child, const Candidate& c,
                               std::vector<store::Record>& out) {
  const ops::Operator& op = universe_.operators[std::size_t(c.operator_index)].op;
  if (!renamings_->IsCanonical(op, c.operands)) return OkStatus();
  ++graphs_;
  struct Image {
    Renamings::Buffer operands;
    Fingerprint fingerprint;
    std::size_t renaming;
  };
  std::vector<Image> images;
  for (std::size_t r = 0; r < renamings_->count(); ++r) {
    Image image{{}, {}, r};
    const std::span<const TermId> operands = renamings_->ImageOf(r, op, c.operands, image.operands);
    const bool repeated = std::any_of(images.begin(), images.end(), [&](const Image& other) {
      return std::equal(operands.begin(), operands.end(), other.operands.begin());
    });
    if (repeated) continue;
    std::array<TypeId, graph::kUniverseArityMax> types;
    for (std::size_t k = 0; k < operands.size(); ++k) {
      types[k] = levels_.table().type_id(operands[k]);
    }
    const Signature s = levels_.SignatureOf(c.operator_index, {types.data(), operands.size()});
    ASSIGN_OR_RETURN(const Value value, evaluator_.Compute(s, operands));
    image.fingerprint = hasher_.Hash(levels_.table().extents_at(c.type), value);
    images.push_back(image);
  }
  Fingerprint least = images[0].fingerprint;
  for (const Image& image : images) least = std::min(least, image.fingerprint);
  for (const Image& image : images) {
    if (image.fingerprint == least) out.push_back({least, IdOf(unit + 1, child, image.renaming)});
  }
  return OkStatus();
}

Status Enumerator::EmitUnit(std::uint64_t unit, std::vector<store::Record>& out) {
  Status status = OkStatus();
  std::uint64_t child = 0;
  const std::uint64_t children = std::uint64_t{1} << (32 - renaming_bits_);
  levels_.Walk(unit, [&](const Candidate& c) {
    if (!status.ok()) return;
    if (child == children) {
      status = base::ResourceExhausted(fmt::format(
          "universe {}: more than {} graphs with one operator and first operand; ask for fewer "
          "operators",
          universe_.name, children));
      return;
    }
    if (renamings_) {
      status = EmitRenamed(unit, child++, c, out);
      return;
    }
    ++graphs_;
    const auto value = evaluator_.Compute(c.signature, c.operands);
    status = value.status();
    if (!value.ok()) return;
    out.push_back(
        {hasher_.Hash(levels_.table().extents_at(c.type), *value), IdOf(unit + 1, child++, 0)});
  });
  return status;
}

// After a part was collected, whose samples are others.
Status Enumerator::RestoreValues() {
  if (!values_are_biased_) return OkStatus();
  evaluator_.SetInputs(MainSamples(universe_, options_.seed));
  for (TermId id = levels_.end(0); id < levels_.end(levels_.depth()); ++id) {
    RETURN_IF_ERROR(evaluator_.Keep(id, signatures_[std::size_t(id)]));
  }
  values_are_biased_ = false;
  return OkStatus();
}

Status Enumerator::RunShard(std::uint32_t shard, store::RunSink& sink,
                            const store::RunTable& runs) {
  CHECK(shard < options_.shards);
  graphs_ = 0;
  RETURN_IF_ERROR(RestoreValues());
  std::vector<store::Record> records;
  records.reserve(std::size_t(estimate_.graphs / options_.shards));
  RETURN_IF_ERROR(EmitStored(shard, records));
  const std::uint64_t units = levels_.unit_count();
  for (std::uint64_t unit = 0; unit < units; ++unit) {
    if (unit % 1024 == 0) {
      RETURN_IF_ERROR(Report("graphs", shard * units + unit, units * options_.shards));
    }
    // Hashed, because neighbouring units are alike.
    if (base::Mix64(unit) % options_.shards != shard) continue;
    RETURN_IF_ERROR(EmitUnit(unit, records));
  }
  ASSIGN_OR_RETURN(const std::uint64_t bytes, store::PutRuns(sink, runs, shard, records));
  record_bytes_ += bytes;
  records_ = records.size();
  return OkStatus();
}

StatusOr<Enumeration> Enumerator::Collect(const store::RunSource& source,
                                          const store::RunTable& runs) && {
  Collector collector(*this);
  return collector.Run(source, runs);
}

StatusOr<FoundClasses> Enumerator::CollectPart(const store::RunSource& source,
                                               const store::RunTable& runs) {
  Collector collector(*this);
  return collector.Part(source, runs);
}

StatusOr<Enumeration> Enumerator::Join(std::vector<FoundClasses> parts) && {
  Collector collector(*this);
  return collector.Join(std::move(parts));
}

Status Enumerator::RunShard(std::uint32_t shard, store::Store& store, const store::RunTable& runs) {
  store::StoreRuns sink(store);
  return RunShard(shard, sink, runs);
}

StatusOr<Enumeration> Enumerator::Collect(store::Store& store, const store::RunTable& runs) && {
  return std::move(*this).Collect(store::StoreRuns(store), runs);
}

StatusOr<Enumeration> Enumerate(const graph::Universe& universe, const EnumerateOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  ASSIGN_OR_RETURN(std::unique_ptr<Enumerator> e, Enumerator::Prepare(universe, options));
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                   store::Store::OpenTemporary(options.scratch_directory));
  store::StoreRuns store_runs(*store);
  const store::RunTable runs = e->TableFor(1);
  for (std::uint32_t shard = 0; shard < options.shards; ++shard) {
    RETURN_IF_ERROR(e->RunShard(shard, store_runs, runs));
  }
  ASSIGN_OR_RETURN(Enumeration result, std::move(*e).Collect(store_runs, runs));
  getrusage(RUSAGE_SELF, &after);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.cpu_seconds = CpuSeconds(after) - CpuSeconds(before);
  result.peak_rss_bytes = std::uint64_t(after.ru_maxrss) * 1024;
  return result;
}

}  // namespace tenon::worker
