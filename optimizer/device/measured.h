// MeasuredDevice: a device whose costs are measurements of a meter, remembered in a cost cache.
//
// What the cache holds is never measured again, so the same cache gives the same result. An
// operator is priced alone, which is what lets a search add prices up:
// - Fused forms (Conv with bias, residual and activation) run as the one kernel that they are.
// - Reshape is free; Split and Slice copy their part, because the kernels read dense tensors.
// - Tensors lie as the kernel that reads or writes them likes best (docs/devices.md says how);
//   what it takes to bring them there is not priced.
// What the meter has no kernel for, and what has no size or is not float32, is estimated by a
// roofline whose figures come from three measurements.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/mutex.h"
#include "optimizer/device/device.h"
#include "optimizer/device/meter.h"
#include "optimizer/device/roofline.h"

namespace tenon::optimizer {

enum class CacheState : std::uint8_t { kWarm, kCold };

// Thread-safe: one measurement runs at a time, and who asks for a price meanwhile waits.
class MeasuredDevice final : public Device {
 public:
  struct Options {
    CacheState state = CacheState::kWarm;  // Which of the two times is the cost.
    std::string cost_cache;                // A directory; empty: costs live as long as this object.
  };
  // Reads the cache. Errors of ReadCosts.
  static StatusOr<std::unique_ptr<MeasuredDevice>> Create(std::string spec,
                                                          std::unique_ptr<Meter> meter,
                                                          const Options& options);
  // Keeps what was measured, as Save does; a failure is lost, so call Save before.
  ~MeasuredDevice() override;

  const std::string& name() const override { return spec_; }
  std::string description() const override;
  double CostOf(const graph::Graph& g, graph::NodeId id) const override;
  // Says how many operations were estimated, and what went wrong with the cache.
  std::vector<std::string> Notes() const override;

  // The meter's identity: under which name the cache has its costs.
  const std::string& identity() const { return meter_->identity(); }

  // The operations of `g` that CostOf would have to measure, each once, and those that calibrate
  // the estimates; in a fixed order.
  std::vector<Operation> Missing(const graph::Graph& g) const;

  struct Measured {
    int measured = 0;   // Now.
    int estimated = 0;  // The meter has no kernel for them.
    bool stopped = false;
  };
  // Measures operations and saves after each batch, so that a run which is interrupted loses what
  // it was measuring then and nothing else. `progress`: how many are done. Errors of AddCosts.
  StatusOr<Measured> MeasureAll(std::span<const Operation> operations, std::stop_token stop,
                                const std::function<void(std::size_t done)>& progress);

  // Writes what was measured since to the cache. Errors of AddCosts; then it is kept for later.
  Status Save() const;

 private:
  MeasuredDevice(std::string spec, std::unique_ptr<Meter> meter, Options options,
                 std::map<std::string, Measurement> costs);

  // The cost in the chosen state, measuring it if need be; nothing: the meter cannot.
  std::optional<double> Price(const Operation& operation) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Measure(std::span<const Operation> operations) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status SaveLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Roofline& Estimator() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsKnown(const std::string& text) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string spec_;
  const std::unique_ptr<Meter> meter_;
  const Options options_;

  mutable base::Mutex mutex_;
  mutable std::map<std::string, Measurement> costs_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<std::string> unsaved_ ABSL_GUARDED_BY(mutex_);  // Keys of costs_.
  mutable std::set<std::string> unmeasurable_ ABSL_GUARDED_BY(mutex_);
  mutable std::set<std::string> estimated_ ABSL_GUARDED_BY(mutex_);  // By CostOf.
  mutable std::unique_ptr<Roofline> estimator_ ABSL_GUARDED_BY(mutex_);
  mutable std::string save_error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tenon::optimizer
