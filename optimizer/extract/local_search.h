// Better choices from a choice, one small change after another.
#pragma once

#include <cstdint>

#include "optimizer/extract/instance.h"
#include "optimizer/extract/stop.h"

namespace tenon::optimizer::extract {

// Makes `choice`, which has a cost, cheaper by two kinds of changes until none helps: another node
// for one class; and joint switches, where all needed classes that could use a class take it at
// once, which pays when its cost is shared (two matmuls that become one and two slices).
// `steps`: classes that may be visited, reduced by those that were.
void LocalSearch(const Instance& g, Choice& choice, std::int64_t& steps, const Stop& stop);

}  // namespace tenon::optimizer::extract
