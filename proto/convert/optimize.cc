#include "proto/convert/optimize.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "core/pack/pack.h"
#include "proto/convert/jobs.h"
#include "proto/convert/status.h"
#include "tenon/v1/optimize.pb.h"

namespace tenon::convert {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMillisecondsMax = std::uint64_t{1} << 40;

bool IsHash(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) {
           return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f');
         });
}

// "roofline:h100", "cpu:threads=2,cache=cold".
bool IsDevice(std::string_view text) {
  return text.size() <= 100 && std::ranges::all_of(text, [](char c) {
           return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') ||
                  std::string_view("_-:=,").find(c) != std::string_view::npos;
         });
}

// NAME or NAME@VERSION.
bool IsReference(std::string_view text) {
  const std::size_t at = text.find('@');
  return pack::IsPackName(text.substr(0, at)) &&
         (at == std::string_view::npos || pack::ParseVersion(text.substr(at + 1)).ok());
}

class Reader {
 public:
  void Check(bool right, const char* field, const char* what) {
    if (!right) wrong_.push_back({field, what});
  }
  // 0: absent.
  std::optional<double> Number(double value, double least, const char* field, const char* what) {
    if (value == 0) return std::nullopt;
    Check(std::isfinite(value) && value >= least, field, what);
    return value;
  }
  std::optional<milliseconds> Time(std::uint64_t ms, const char* field) {
    if (ms == 0) return std::nullopt;
    Check(ms <= kMillisecondsMax, field, "too long");
    return milliseconds(std::min(ms, kMillisecondsMax));
  }
  Status Take() const { return Violations(wrong_); }

 private:
  std::vector<Violation> wrong_;
};

}  // namespace

void ToMessage(const OptimizeOptions& o, v1::OptimizeOptions& m) {
  m.Clear();
  m.set_request_id(o.request_id);
  m.set_model_bytes(o.model_bytes);
  m.set_model_sha256(o.model_sha256);
  for (const std::string& pack : o.packs) m.add_packs(pack);
  m.set_device(o.device);
  m.set_search(o.search);
  m.set_alpha(o.alpha.value_or(0));
  m.set_tolerance(o.tolerance.value_or(0));
  m.set_time_limit_ms(std::uint64_t(o.time_limit.value_or(milliseconds(0)).count()));
  m.set_check_time_limit_ms(std::uint64_t(o.check_time_limit.value_or(milliseconds(0)).count()));
  m.set_fast_math(o.fast_math);
  for (const std::string& text : o.without) m.add_without(text);
  if (o.seed) m.set_seed(*o.seed);
}

StatusOr<OptimizeOptions> FromMessage(const v1::OptimizeOptions& m) {
  Reader r;
  OptimizeOptions o;
  o.request_id = m.request_id();
  r.Check(IsId(o.request_id), "options.request_id", "give 1 to 64 of A-Za-z0-9._-");
  o.model_bytes = m.model_bytes();
  r.Check(o.model_bytes > 0, "options.model_bytes", "an empty model");
  o.model_sha256 = m.model_sha256();
  r.Check(IsHash(o.model_sha256), "options.model_sha256", "give 64 hexadecimal digits, lower case");
  o.packs.assign(m.packs().begin(), m.packs().end());
  r.Check(o.packs.size() <= kPacksMax && std::ranges::all_of(o.packs, IsReference), "options.packs",
          "give at most 64 of NAME or NAME@VERSION");
  o.device = m.device();
  r.Check(IsDevice(o.device), "options.device", "give the name of a device, not a path");
  o.search = m.search();
  r.Check(o.search.size() <= 32, "options.search", "there is no such search");
  o.alpha = r.Number(m.alpha(), 1, "options.alpha", "at least 1");
  o.tolerance = r.Number(m.tolerance(), 0, "options.tolerance", "above 0");
  o.time_limit = r.Time(m.time_limit_ms(), "options.time_limit_ms");
  o.check_time_limit = r.Time(m.check_time_limit_ms(), "options.check_time_limit_ms");
  o.fast_math = m.fast_math();
  o.without.assign(m.without().begin(), m.without().end());
  r.Check(o.without.size() <= kWithoutMax &&
              std::ranges::all_of(
                  o.without, [](const std::string& w) { return w.size() <= kWithoutBytesMax; }),
          "options.without", "at most 1000 texts of at most 1000 bytes");
  if (m.has_seed()) o.seed = m.seed();
  RETURN_IF_ERROR(r.Take());
  return o;
}

std::string Serialize(const OptimizeOptions& options) {
  v1::OptimizeOptions message;
  ToMessage(options, message);
  return message.SerializeAsString();
}

StatusOr<OptimizeOptions> ParseOptimizeOptions(std::string_view bytes) {
  v1::OptimizeOptions message;
  if (!message.ParseFromArray(bytes.data(), int(bytes.size()))) {
    return base::InvalidArgument("the bytes are no options of an optimization");
  }
  return FromMessage(message);
}

}  // namespace tenon::convert
