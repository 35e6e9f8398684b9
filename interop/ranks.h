// The numbers of axes of a peer's rule: fixed by its operators, or open.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/base/status.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

// The rank of everything in a rule: variables by their number, results by their operator.
struct Ranks {
  std::map<std::int32_t, int> variables;
  std::vector<int> source, target;
  bool open = false;  // Other ranks are possible, too.
};

// Every choice with open ranks from the least possible to `highest`. FailedPrecondition: there is
// none. Unimplemented: an operator without a counterpart, or more than 64 choices.
StatusOr<std::vector<Ranks>> AllRanks(const PeerRule& rule, int highest);

}  // namespace tenon::interop
