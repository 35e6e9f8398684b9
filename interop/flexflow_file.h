// FlexFlow's rule files (JSON), both ways. Their operators and parameters are TASO's by name;
// parallel ones (OP_PARTITION, OP_REDUCE, ..) are read as foreign operators.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

// The rules of a file, in its order, under their own names ("rule.N" where they have none), each
// one valid (Validate). Parameters of foreign operators are not read. InvalidArgument: "FILE: rule
// N: what is wrong". ResourceExhausted: more than kPeerRulesMax rules.
StatusOr<std::vector<PeerRule>> ReadFlexFlow(std::string_view text, std::string_view file);

// The text of such a file. CHECKs that the rules are valid and have no foreign operator.
std::string WriteFlexFlow(const std::vector<PeerRule>& rules);

}  // namespace tenon::interop
