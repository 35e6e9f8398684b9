// Cuts that a solution of the linear program breaks.
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/extract/landmark.h"
#include "optimizer/extract/must_have.h"
#include "optimizer/extract/program.h"

namespace tenon::optimizer::extract {

// What taking nodes n of class c with e in the must-have set of n implies: their x sum up to at
// most y_e. The cuts that are broken most, at most `limit`.
std::vector<Cut> BrokenMustHaves(const Instance& g, const MustHave& must, const Program& program,
                                 std::size_t limit);

// Landmarks of the roots and of up to `classes` other classes, whichever the solution needs;
// `round` makes the choice, and breaks ties, differently each time. Ends after `steps` edges.
std::vector<Cut> BrokenLandmarks(const Instance& g, LandmarkFinder& finder, const Program& program,
                                 std::size_t classes, std::int64_t steps, std::uint64_t round);

// Landmarks that the nodes `taken`, an integer solution, break because of their cycles.
std::vector<Cut> CycleLandmarks(const Instance& g, LandmarkFinder& finder,
                                const std::vector<NodeId>& taken);

}  // namespace tenon::optimizer::extract
