// Foreign bytes as a certificate: of a true rule, of a false one, and as arguments with a checksum
// that fits. No bytes prove the false one.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/base/check.h"
#include "core/rules/canonical.h"
#include "core/rules/text.h"
#include "verifier/cert/check.h"

namespace {

tenon::rules::Rule RuleOf(const char* text) {
  const auto rule = tenon::rules::ParseRule(text);
  CHECK(rule.ok());
  return *rule;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const tenon::rules::Rule yes = RuleOf(
      "rule r given x[m,n] y[p,n] source Relu(Concat(x, y, axis=0)) "
      "target Concat(Relu(x), Relu(y), axis=0)");
  static const tenon::rules::Rule no =
      RuleOf("rule r given x[m,n] y[m,n] source Relu(Add(x, y)) target Add(Relu(x), Relu(y))");
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  (void)tenon::cert::Check(yes, bytes);
  for (const auto& [rule, is_true] : {std::pair(&yes, true), std::pair(&no, false)}) {
    std::string whole = tenon::cert::Begin(*tenon::rules::CanonicalBytes(*rule), {0, 2, 3, 4});
    // The witness of the second rule has one size less.
    if (!is_true) whole = tenon::cert::Begin(*tenon::rules::CanonicalBytes(*rule), {0, 2, 3});
    whole += bytes;
    tenon::cert::Finish(whole);
    const auto checked = tenon::cert::Check(*rule, whole);
    CHECK(is_true || !checked.ok());
  }
  return 0;
}
