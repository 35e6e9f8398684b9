// Rules of the tests, as the search takes them.
#pragma once

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "core/rules/text.h"
#include "optimizer/search/rule_set.h"

namespace tenon::optimizer {

inline std::vector<SearchRule> RulesFrom(std::string_view text, std::string_view pack) {
  const auto parsed = rules::ParseRules(text, pack);
  if (!parsed.ok()) std::fprintf(stderr, "%s\n", base::Message(parsed.status()).c_str());
  CHECK(parsed.ok());
  std::vector<SearchRule> out;
  for (const rules::ParsedRule& p : *parsed) {
    if (!p.rule.ok()) std::fprintf(stderr, "%s\n", base::Message(p.rule.status()).c_str());
    CHECK(p.rule.ok());
    out.push_back({std::make_shared<const rules::Rule>(*p.rule), std::string(pack)});
  }
  return out;
}

inline std::vector<SearchRule> LectureRules() {
  std::ifstream in(TENON_SOURCE_DIR "/tests/optimizer/lecture.rules");
  std::stringstream text;
  text << in.rdbuf();
  return RulesFrom(text.str(), "lecture.rules");
}

// Those of the rules whose names are not listed.
inline std::vector<SearchRule> Without(std::vector<SearchRule> rules,
                                       std::initializer_list<std::string_view> names) {
  std::erase_if(rules, [&](const SearchRule& r) {
    for (const std::string_view name : names) {
      if (r.rule->name == name) return true;
    }
    return false;
  });
  return rules;
}

}  // namespace tenon::optimizer
