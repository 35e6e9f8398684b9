// What roles know anyway, as samples for /metrics. docs/serving.md lists all of them.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "client/observe/metrics.h"
#include "client/rpc/node.h"
#include "coordinator/run/coordinator.h"
#include "optimizer/service/node.h"
#include "proto/convert/work.h"
#include "store/service.h"

namespace tenon::cli {

std::vector<observe::Sample> SamplesOf(const coordinator::Coordinator::Figures& figures);
std::vector<observe::Sample> SamplesOf(const store::ServerFigures& figures);
std::vector<observe::Sample> SamplesOf(const optimizer::NodeFigures& figures);

// Values of labels.
std::string_view LabelOf(convert::VerdictKind kind);
std::string_view LabelOf(rpc::NodeEvent::Kind kind);
std::string_view LabelOf(optimizer::CallOutcome outcome);
inline constexpr std::array<std::string_view, 6> kVerdictLabels{"proved",  "refuted",    "unproved",
                                                                "unknown", "ill_formed", "vacuous"};
inline constexpr std::array<std::string_view, 6> kOutcomeLabels{"leased",   "completed", "unneeded",
                                                                "released", "lost",      "trouble"};

inline constexpr std::array<std::string_view, 6> kCallLabels{"done",    "cached",    "refused",
                                                             "invalid", "cancelled", "failed"};

}  // namespace tenon::cli
