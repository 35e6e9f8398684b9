// TASO's rule files (protobuf, proto/taso/graph_subst.proto), both ways.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

// The rules of a file, in its order, named "taso.N" with N from 0, each one valid (Validate).
// InvalidArgument: "FILE: rule N: what is wrong"; `file` is only a name. ResourceExhausted: more
// than kPeerRulesMax rules.
StatusOr<std::vector<PeerRule>> ReadTaso(std::string_view bytes, std::string_view file);

// The bytes of such a file. The format has no names, so those are lost. CHECKs that the rules are
// valid and have no foreign operator.
std::string WriteTaso(const std::vector<PeerRule>& rules);

}  // namespace tenon::interop
