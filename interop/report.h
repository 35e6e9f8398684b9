// What was found of a peer's rules, written down.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interop/judge.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

struct JudgedRule {
  PeerRule rule;
  Judged judged;
};

// The rules as rule text (docs/formats/rules.md), each with the verdict that `tenon prove` gives:
// what is proved, with its conditions; what is refuted, as the peer has it. What cannot be written
// down is a comment.
std::string RuleText(const std::vector<JudgedRule>& rules);

// "taso.24", "taso.24.rank3": the name of one of a rule's forms.
std::string NameOf(const PeerRule& rule, const Judgement& judgement);

// A sentence: the conditions, or why it is not proved; empty for a proof.
std::string Remark(const Judged& judged);

// A page: how it was made, the counts, and a table with a line for each rule. `file` is only a
// name.
std::string Markdown(const std::vector<JudgedRule>& rules, std::string_view format,
                     std::string_view file);

}  // namespace tenon::interop
