// What a caller wants of an optimizer node, as plain values, and the conversion from and to
// messages (optimize.proto).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::v1 {
class OptimizeOptions;
}  // namespace tenon::v1

namespace tenon::convert {

// A value type. What is absent or empty is the server's to decide.
struct OptimizeOptions {
  std::string request_id;
  std::uint64_t model_bytes = 0;
  std::string model_sha256;  // Hexadecimal.
  std::vector<std::string> packs;
  std::string device, search;
  std::optional<double> alpha, tolerance;
  std::optional<std::chrono::milliseconds> time_limit, check_time_limit;
  bool fast_math = false;
  std::vector<std::string> without;
  std::optional<std::uint64_t> seed;
  friend bool operator==(const OptimizeOptions&, const OptimizeOptions&) = default;
};

inline constexpr std::size_t kWithoutMax = 1000, kWithoutBytesMax = 1000;
inline constexpr std::size_t kPacksMax = 64;

void ToMessage(const OptimizeOptions& options, v1::OptimizeOptions& message);
// InvalidArgument with every field that is wrong. A device is a name, never a path: what a server
// reads is not the caller's to say.
StatusOr<OptimizeOptions> FromMessage(const v1::OptimizeOptions& message);

// The same between two processes of one binary. Errors of FromMessage.
std::string Serialize(const OptimizeOptions& options);
StatusOr<OptimizeOptions> ParseOptimizeOptions(std::string_view bytes);

}  // namespace tenon::convert
