#include "worker/sets/orders.h"

#include <array>

#include "core/base/check.h"

namespace tenon::worker {

Orders::Orders() : cache_(std::size_t{1} << kCacheBits) {}

// By what is already placed: an element may come last of a set that has all that comes before it.
std::uint64_t Orders::Compute(int size, Before before) {
  CHECK(0 <= size && size <= kOrdersMax);
  std::array<std::uint64_t, std::size_t{1} << kOrdersMax> ways{};
  ways[0] = 1;
  const std::uint32_t all = (1u << size) - 1;
  for (std::uint32_t placed = 0; placed < all; ++placed) {
    if (ways[placed] == 0) continue;
    for (int k = 0; k < size; ++k) {
      const auto needs = static_cast<std::uint32_t>(before >> (8 * k) & 0xff);
      if ((placed >> k & 1) != 0 || (needs & ~placed) != 0) continue;
      ways[placed | 1u << k] += ways[placed];
    }
  }
  return ways[all];
}

}  // namespace tenon::worker
