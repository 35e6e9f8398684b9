// The pack that comes with Tenon: part of the program, so that models are optimized by proved rules
// without anything else. packs/README.md says how it is made.
#pragma once

#include <string_view>

#include "client/registry/pack_file.h"

namespace tenon::registry {

// What names it instead of a path or a pack of the cache.
inline constexpr std::string_view kDefaultPack = "default";

// The bytes of packs/default.pack, as a pack file has them. Thread-safe.
std::string_view DefaultPackBytes();

}  // namespace tenon::registry
