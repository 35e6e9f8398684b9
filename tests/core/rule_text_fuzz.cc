// Any text is rules or an error; a rule that was read is printed and read again to the same rule.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = tenon::rules::ParseRules(text, "fuzz");
  if (!parsed.ok()) return 0;
  for (const tenon::rules::ParsedRule& one : *parsed) {
    if (!one.rule.ok()) continue;
    const auto again = tenon::rules::ParseRule(tenon::rules::PrintRule(*one.rule));
    CHECK(again.ok());
    const auto bytes = tenon::rules::CanonicalBytes(*one.rule);
    const auto bytes_again = tenon::rules::CanonicalBytes(*again);
    CHECK(bytes.ok() == bytes_again.ok());
    if (bytes.ok()) CHECK(*bytes == *bytes_again);
  }
  return 0;
}
