#include "verifier/verdict.h"

#include <fmt/core.h>

namespace tenon::verifier {

std::string NameOf(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kProved:
      return "proved";
    case VerdictKind::kRefuted:
      return "refuted";
    case VerdictKind::kUnproved:
      return "unproved";
    case VerdictKind::kUnknown:
      return "unknown";
    case VerdictKind::kIllFormed:
      return "ill-formed";
    case VerdictKind::kVacuous:
      return "vacuous";
  }
  return "unknown";
}

std::string Print(const Counterexample& c) {
  std::string sizes, index;
  for (const auto& [name, value] : c.sizes) {
    sizes += fmt::format("{}{}={}", sizes.empty() ? "" : " ", name, value);
  }
  for (std::int64_t i : c.index) index += fmt::format("{}{}", index.empty() ? "" : ",", i);
  return fmt::format("{}: output {} at [{}] is {} in the source and {} in the target",
                     sizes.empty() ? "no sizes" : sizes, c.output, index, c.source_value,
                     c.target_value);
}

}  // namespace tenon::verifier
