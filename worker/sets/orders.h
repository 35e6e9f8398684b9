// Orders: in how many ways the nodes of a graph can be created one after another.
//
// A generator that adds one operator at a time reaches a set of nodes once for each order that
// respects the edges: its count of graphs is our count of sets, each times its orders.
#pragma once

#include <cstdint>
#include <vector>

namespace tenon::worker {

// Byte i of `before` is the mask of the positions that come before position i.
using Before = std::uint64_t;
inline constexpr int kOrdersMax = 8;

// Thread-compatible.
class Orders {
 public:
  Orders();
  // The orders of `size` positions, at most kOrdersMax; 0 when the edges have a cycle.
  std::uint64_t Count(int size, Before before) {
    const Before key = before ^ static_cast<Before>(size) << 60;
    Entry& e = cache_[(key * 0x9e3779b97f4a7c15ull) >> (64 - kCacheBits)];
    if (e.before != before || e.size != size) e = {before, size, Compute(size, before)};
    return e.count;
  }

 private:
  static constexpr unsigned kCacheBits = 12;
  struct Entry {
    Before before = 0;
    int size = -1;
    std::uint64_t count = 0;
  };
  static std::uint64_t Compute(int size, Before before);
  std::vector<Entry> cache_;
};

}  // namespace tenon::worker
