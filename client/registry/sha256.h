// SHA-256 and hexadecimal text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::registry {

using Digest = std::array<std::uint8_t, 32>;

Digest Sha256(std::string_view bytes);

// Of bytes that come in parts. Thread-compatible.
class Sha256Stream {
 public:
  Sha256Stream();
  ~Sha256Stream();
  void Add(std::string_view bytes);
  Digest Finish();  // Once, at the end.

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

std::string ToHex(std::string_view bytes);
std::string ToHex(const Digest& digest);
// Lower-case digits, an even number; nothing otherwise.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace tenon::registry
