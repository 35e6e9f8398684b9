#include "optimizer/device/measured.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/eval/eval.h"
#include "optimizer/device/cost_cache.h"

namespace tenon::optimizer {
namespace {

// Measured in turns. Few enough that their tensors fit in memory.
constexpr std::size_t kBatch = 8;
// Measurements of a search are written together: each writing takes some milliseconds.
constexpr std::size_t kUnsavedMax = 64;

// What calibrates the estimates: arithmetic, traffic between memory and the cores, and the least
// that a kernel takes.
constexpr std::int64_t kMatrix = 512, kLong = 1 << 22;
Operation Arithmetic() {
  const graph::Extents square{kMatrix, kMatrix};
  return {ops::MatMul{}, {{square, false, -1}, {square, true, -1}}, square};
}
Operation Traffic() { return {ops::Neg{}, {{{kLong}, false, -1}}, {kLong}}; }
Operation Least() { return {ops::Neg{}, {{{1}, false, -1}}, {1}}; }

}  // namespace

StatusOr<std::unique_ptr<MeasuredDevice>> MeasuredDevice::Create(std::string spec,
                                                                 std::unique_ptr<Meter> meter,
                                                                 const Options& options) {
  std::map<std::string, Measurement> costs;
  if (!options.cost_cache.empty()) {
    ASSIGN_OR_RETURN(costs, ReadCosts(options.cost_cache, meter->identity()));
  }
  return std::unique_ptr<MeasuredDevice>(
      new MeasuredDevice(std::move(spec), std::move(meter), options, std::move(costs)));
}

MeasuredDevice::MeasuredDevice(std::string spec, std::unique_ptr<Meter> meter, Options options,
                               std::map<std::string, Measurement> costs)
    : spec_(std::move(spec)),
      meter_(std::move(meter)),
      options_(std::move(options)),
      costs_(std::move(costs)) {}

MeasuredDevice::~MeasuredDevice() { Save().IgnoreError(); }

std::string MeasuredDevice::description() const {
  return fmt::format("{} ({}, {} caches)", spec_, meter_->identity(),
                     options_.state == CacheState::kWarm ? "warm" : "cold");
}

bool MeasuredDevice::IsKnown(const std::string& text) const {
  return costs_.contains(text) || unmeasurable_.contains(text);
}

double MeasuredDevice::CostOf(const graph::Graph& g, graph::NodeId id) const {
  const graph::Node& n = g.node(id);
  if (n.is_input() || n.weights_only || IsFree(*n.op)) return 0;
  base::MutexLock lock(mutex_);
  std::string what;
  if (const std::optional<Operation> operation = OperationOf(g, id)) {
    if (const std::optional<double> us = Price(*operation)) return *us;
    what = TextOf(*operation);
  } else {
    what = fmt::format("{} {}", ops::NameOf(*n.op), graph::NameOf(n.type->dtype));
  }
  estimated_.insert(what);
  return Estimator().CostOf(g, id);
}

std::optional<double> MeasuredDevice::Price(const Operation& operation) const {
  const std::string text = TextOf(operation);
  if (!IsKnown(text)) {
    Measure(std::span(&operation, 1));
    // What cannot be kept now is tried again at the end, not after each measurement.
    if (unsaved_.size() >= kUnsavedMax && save_error_.empty()) SaveLocked().IgnoreError();
  }
  const auto found = costs_.find(text);
  if (found == costs_.end()) return std::nullopt;
  return options_.state == CacheState::kWarm ? found->second.warm_us : found->second.cold_us;
}

void MeasuredDevice::Measure(std::span<const Operation> operations) const {
  const std::vector<std::optional<Measurement>> results = meter_->Measure(operations);
  CHECK(results.size() == operations.size());
  for (std::size_t k = 0; k < operations.size(); ++k) {
    std::string text = TextOf(operations[k]);
    if (!results[k]) {
      unmeasurable_.insert(std::move(text));
    } else if (costs_.emplace(text, *results[k]).second) {
      unsaved_.push_back(std::move(text));
    }
  }
}

const Roofline& MeasuredDevice::Estimator() const {
  if (estimator_ != nullptr) return *estimator_;
  // A meter without one of these kernels leaves figures of a slow machine.
  const double least_us = Price(Least()).value_or(1);
  const double arithmetic_us = Price(Arithmetic()).value_or(1e4) - least_us;
  const double traffic_us = Price(Traffic()).value_or(1e4) - least_us;
  RooflineParameters p{.name = spec_};
  p.launch_us = least_us;
  p.peak_flops = 2e6 * kMatrix * kMatrix * kMatrix / std::max(arithmetic_us, 1e-3);
  p.bandwidth = 1e6 * BytesOf(Traffic()) / std::max(traffic_us, 1e-3);
  p.element_bytes = 4;
  estimator_ = std::make_unique<Roofline>(spec_, p);
  return *estimator_;
}

std::vector<std::string> MeasuredDevice::Notes() const {
  base::MutexLock lock(mutex_);
  std::vector<std::string> notes;
  if (!estimated_.empty()) {
    notes.push_back(
        fmt::format("{} different operations were estimated and not measured by {}, {} among them",
                    estimated_.size(), spec_, *estimated_.begin()));
  }
  if (!save_error_.empty()) {
    notes.push_back(fmt::format("the measured costs could not be kept: {}", save_error_));
  }
  return notes;
}

std::vector<Operation> MeasuredDevice::Missing(const graph::Graph& g) const {
  std::vector<Operation> wanted{Arithmetic(), Traffic(), Least()};
  for (const graph::NodeId id : g.Reachable(g.outputs())) {
    const graph::Node& n = g.node(id);
    if (n.is_input() || n.weights_only || IsFree(*n.op)) continue;
    if (std::optional<Operation> operation = OperationOf(g, id)) {
      wanted.push_back(*std::move(operation));
    }
  }
  base::MutexLock lock(mutex_);
  std::set<std::string> seen;
  std::erase_if(wanted, [&](const Operation& operation) {
    mutex_.AssertHeld();
    std::string text = TextOf(operation);
    return IsKnown(text) || !seen.insert(std::move(text)).second;
  });
  return wanted;
}

StatusOr<MeasuredDevice::Measured> MeasuredDevice::MeasureAll(
    std::span<const Operation> operations, std::stop_token stop,
    const std::function<void(std::size_t done)>& progress) {
  Measured out;
  for (std::size_t first = 0; first < operations.size(); first += kBatch) {
    out.stopped = stop.stop_requested();
    if (out.stopped) break;
    const auto batch = operations.subspan(first, std::min(kBatch, operations.size() - first));
    base::MutexLock lock(mutex_);
    Measure(batch);
    for (const Operation& operation : batch) {
      const bool measured = costs_.contains(TextOf(operation));
      ++(measured ? out.measured : out.estimated);
    }
    RETURN_IF_ERROR(SaveLocked());
    if (progress) progress(first + batch.size());
  }
  return out;
}

Status MeasuredDevice::Save() const {
  base::MutexLock lock(mutex_);
  return SaveLocked();
}

Status MeasuredDevice::SaveLocked() const {
  if (options_.cost_cache.empty() || unsaved_.empty()) return OkStatus();
  std::vector<CostEntry> entries;
  for (const std::string& text : unsaved_) {
    entries.push_back({meter_->identity(), text, costs_.at(text)});
  }
  const Status status = AddCosts(options_.cost_cache, entries).status();
  save_error_ = base::Message(status);
  if (status.ok()) unsaved_.clear();
  return status;
}

}  // namespace tenon::optimizer
