// CRC-32C (Castagnoli), the checksum of chunks on the wire: against damage, not against malice.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tenon::base {

// Crc32c("123456789") = 0xe3069283.
inline std::uint32_t Crc32c(std::string_view bytes) {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t k = 0; k < 256; ++k) {
      std::uint32_t v = k;
      for (int bit = 0; bit < 8; ++bit) v = v >> 1 ^ ((v & 1) != 0 ? 0x82f63b78u : 0);
      table[k] = v;
    }
    return table;
  }();
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char c : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

}  // namespace tenon::base
