// SHA-256 and hexadecimal text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tenon::registry {

using Digest = std::array<std::uint8_t, 32>;

Digest Sha256(std::string_view bytes);

std::string ToHex(std::string_view bytes);
std::string ToHex(const Digest& digest);
// Lower-case digits, an even number; nothing otherwise.
std::optional<std::string> FromHex(std::string_view hex);

}  // namespace tenon::registry
