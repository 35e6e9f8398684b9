#include "optimizer/device/sample.h"

#include <algorithm>
#include <cmath>

namespace tenon::optimizer {
namespace {

constexpr int kRoundsMin = 5, kRoundsMax = 15, kRunsMax = 1000, kWarmUpRuns = 3;
// Whatever the clock's grain, a time is above 0.
constexpr double kLeastUs = 1e-3;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return std::max(*middle, kLeastUs);
}

struct Turns {
  Sampled* operation = nullptr;
  int runs = 1, rounds = kRoundsMin;
  std::vector<double> warm_us, cold_us;
};

Turns WarmUp(Sampled& operation, const SampleOptions& options) {
  double total = 0, best = INFINITY;
  for (int k = 0; k < kWarmUpRuns || (total < options.warm_up_us && k < kRunsMax); ++k) {
    const double us = operation.Time(1);
    total += us;
    best = std::min(best, us);
  }
  best = std::max(best, kLeastUs);
  Turns turns{&operation};
  turns.runs = int(std::clamp(std::ceil(options.sample_us / best), 1.0, double(kRunsMax)));
  turns.rounds = int(std::clamp(options.budget_us / (best * (turns.runs + 2)), double(kRoundsMin),
                                double(kRoundsMax)));
  return turns;
}

void TakeTurn(Turns& turns) {
  turns.operation->Time(1);
  turns.warm_us.push_back(turns.operation->Time(turns.runs) / turns.runs);
  turns.cold_us.push_back(turns.operation->TimeCold());
}

}  // namespace

std::vector<std::optional<Measurement>> SampleInTurns(
    std::span<const std::unique_ptr<Sampled>> operations, const SampleOptions& options) {
  std::vector<Turns> all(operations.size());
  for (std::size_t k = 0; k < operations.size(); ++k) {
    if (operations[k] != nullptr) all[k] = WarmUp(*operations[k], options);
  }
  for (int round = 0; round < kRoundsMax; ++round) {
    for (Turns& turns : all) {
      if (turns.operation != nullptr && round < turns.rounds) TakeTurn(turns);
    }
  }
  std::vector<std::optional<Measurement>> results(operations.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].operation == nullptr) continue;
    results[k] = Measurement{Median(all[k].warm_us), Median(all[k].cold_us), all[k].rounds};
  }
  return results;
}

}  // namespace tenon::optimizer
