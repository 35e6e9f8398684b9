// Any text is a universe or an error; a universe's canonical text reads back to it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.h"
#include "proto/convert/universe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto universe = tenon::convert::ParseUniverse(text, "fuzz");
  if (!universe.ok()) return 0;
  const std::string canonical = tenon::convert::CanonicalText(*universe);
  const auto back = tenon::convert::ParseUniverse(canonical, "canonical");
  CHECK(back.ok() && *back == *universe);
  CHECK(tenon::convert::CanonicalText(*back) == canonical);
  return 0;
}
