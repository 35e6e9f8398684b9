// Our rules as TASO and FlexFlow write them.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

// A rule that was left out, or one direction of it.
struct LeftOut {
  std::string rule;
  std::string reason;
};

struct PeerExport {
  std::vector<PeerRule> rules;
  std::vector<LeftOut> left_out;
};

// The directions in which rules hold: each rule, and NAME.back for one that holds both ways.
std::vector<rules::Rule> Directions(const std::vector<rules::Rule>& rules);

// The rule from source to target; its name is kept. Unimplemented says which operator, attribute or
// shape the format has no way to write.
StatusOr<PeerRule> ToPeer(const rules::Rule& rule);

// Every rule that the peer may apply wherever it accepts it: what is written is judged again, as
// the peer reads it (interop/judge.h), and left out unless it is proved. So a condition that the
// format cannot state leaves a rule out exactly when the rule needs it. Each rule
// counts from source to target. Internal: prover and tester contradict each other.
StatusOr<PeerExport> ExportToPeer(const std::vector<rules::Rule>& rules);

}  // namespace tenon::interop
