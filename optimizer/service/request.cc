#include "optimizer/service/request.h"

#include <algorithm>

#include "client/registry/sha256.h"
#include "core/base/bytes.h"

namespace tenon::optimizer {
namespace {

using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

// Of the time up to a deadline, what the search leaves to the rest.
constexpr int kRestShare = 3;
constexpr milliseconds kRestMin{500}, kRestMax{60'000};
// Reading, folding and writing have no limits of their own; no healthy run comes near this.
constexpr std::chrono::minutes kOtherwise{20};

SteadyTime After(SteadyTime now, double seconds) {
  return now + std::chrono::duration_cast<SteadyTime::duration>(Seconds(std::min(seconds, 1e8)));
}

}  // namespace

RunSettings SettingsOf(const convert::OptimizeOptions& o) {
  RunSettings s;
  if (!o.device.empty()) s.device = o.device;
  if (!o.search.empty()) s.search = o.search;
  if (o.alpha) s.alpha = *o.alpha;
  if (o.time_limit) s.time_limit_s = Seconds(*o.time_limit).count();
  if (o.check_time_limit) s.check_time_limit_s = Seconds(*o.check_time_limit).count();
  if (o.seed) s.seed = *o.seed;
  s.fast_math = o.fast_math;
  s.without = o.without;
  s.tolerance = o.tolerance;
  return s;
}

std::string ResultKey(const std::string& model_sha256, std::span<const std::string> packs,
                      const RunSettings& s, const std::string& code_version) {
  std::string bytes;
  const auto put_all = [&](const auto& strings) {
    base::PutVarint(bytes, strings.size());
    for (const std::string& text : strings) base::PutString(bytes, text);
  };
  base::PutString(bytes, code_version);
  base::PutString(bytes, model_sha256);
  put_all(packs);
  base::PutString(bytes, s.device);
  base::PutString(bytes, s.search);
  base::PutDouble(bytes, s.alpha);
  base::PutDouble(bytes, s.time_limit_s);
  base::PutByte(bytes, s.fast_math ? 1 : 0);
  put_all(s.without);
  base::PutDouble(bytes, s.tolerance.value_or(0));
  base::PutDouble(bytes, s.check_time_limit_s);
  base::PutVarint(bytes, s.seed);
  return registry::ToHex(registry::Sha256(bytes));
}

TimeShares ShareTime(SteadyTime now, const std::optional<SteadyTime>& deadline,
                     const RunSettings& settings) {
  TimeShares out;
  out.kill_at = After(now, settings.time_limit_s + settings.check_time_limit_s) + kOtherwise;
  if (!deadline) return out;
  const auto all = std::max(*deadline - now, SteadyTime::duration(0));
  const auto rest =
      std::min(all, std::clamp<SteadyTime::duration>(all / kRestShare, kRestMin, kRestMax));
  out.search_end = *deadline - rest;
  out.check_end = *deadline - rest / 2;
  out.kill_at = std::min(out.kill_at, *deadline);
  return out;
}

}  // namespace tenon::optimizer
