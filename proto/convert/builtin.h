// The texts of universes/*.textproto, put into the library by CMake, so that a name means the same
// wherever the binary runs.
#pragma once

#include <span>
#include <string_view>

namespace tenon::convert {

struct BuiltinUniverse {
  std::string_view name;
  std::string_view text;
};

// Sorted by name.
std::span<const BuiltinUniverse> BuiltinUniverses();

}  // namespace tenon::convert
