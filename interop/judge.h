// What is true of a peer's rule: proved, proved under conditions that it does not state, refuted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "interop/peer_rule.h"
#include "verifier/decide.h"
#include "verifier/verdict.h"

namespace tenon::interop {

// Ordered: of several ranks, the greatest counts.
enum class Finding : std::uint8_t {
  kProved,       // At all shapes that the peer accepts.
  kConditional,  // Under conditions besides; the peer does not check them.
  kUnknown,      // Not understood, or neither proved nor refuted.
  kRefuted,      // Wrong at shapes that the peer accepts; no conditions were found that help.
};
std::string_view NameOf(Finding finding);

// A rule at one choice of ranks.
struct Judgement {
  std::string label;  // "rank 3", or empty.
  Finding finding = Finding::kUnknown;
  std::string reason;  // Why it is unknown, or what is odd about the proof; may be empty.
  // The rule at the shapes that the peer accepts, and what is true of it. Absent where the rule is
  // not understood; no verdict where both sides are one program, which is no rewrite of ours.
  std::optional<rules::Rule> accepted;
  std::optional<verifier::Verdict> verdict;
  // The least conditions under which a proof was found, and the rule with them; kConditional only.
  std::vector<std::string> conditions;
  std::optional<rules::Rule> conditioned;
  // Fewer or weaker conditions that were neither refuted nor proved.
  std::vector<std::string> undecided;
};

struct Judged {
  Finding finding = Finding::kUnknown;
  std::vector<Judgement> ranks;  // Not empty.
};

// Judges `rule` at all its ranks. Conditions are looked for among a few equations (a convolution
// has one group, two agree in their groups, filters or channels), the fewest first, up to three at
// once; the tester drops the wrong ones and the prover decides. Deterministic; takes from
// milliseconds to some seconds. Internal: prover and tester contradict each other.
StatusOr<Judged> Judge(const PeerRule& rule, const verifier::Budget& budget = {});

}  // namespace tenon::interop
