// Which pairs of members of classes the last check of reducing asks for.
//
// Classes of four operators have 12 million pairs, and most of them say what others say. Asked for,
// each alone, are: every member with the first of its class, so that each class is checked in full;
// and a sample of all pairs, spread evenly over the classes, in which every pair has the same
// chance. Where there are no more pairs than the sample may have, all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace tenon::reduce {

struct PairSampleOptions {
  std::uint64_t size_max = 1'000'000;  // Pairs of the sample; at least 1.
  std::uint64_t seed = 1;
};

// Calls visit(c, i, j), i < j, for members i and j of class c, each pair once, ascending by c, then
// j, then i. `class_sizes`: members of each class. Stops when `visit` returns false; returns the
// number of calls. A function of its arguments, in O(members + size_max).
std::uint64_t VisitPairs(
    std::span<const std::size_t> class_sizes, const PairSampleOptions& options,
    const std::function<bool(std::size_t c, std::size_t i, std::size_t j)>& visit);

}  // namespace tenon::reduce
