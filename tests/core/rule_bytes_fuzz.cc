// Foreign bytes as a rule, a graph and the content of a pack: whatever is accepted is written again
// to the same bytes.
#include <cstddef>
#include <cstdint>

#include "core/base/check.h"
#include "core/pack/pack.h"
#include "core/rules/canonical.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto rule = tenon::rules::DecodeRule(bytes); rule.ok()) {
    CHECK(*tenon::rules::CanonicalBytes(*rule) == bytes);
  }
  (void)tenon::rules::DecodeGraph(bytes);
  if (const auto content = tenon::pack::DecodeContent(bytes); content.ok()) {
    CHECK(*tenon::pack::EncodeContent(*content) == bytes);
  }
  (void)tenon::pack::DecodeProvenance(bytes);
  return 0;
}
