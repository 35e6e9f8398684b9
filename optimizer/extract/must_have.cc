// The fixpoint is found from above: all sets are full, and a queue shrinks them. Sets only lose
// elements, so it ends; taking classes children first, one pass is enough for an e-graph without
// cycles, and a few passes are for those seen in practice.
#include "optimizer/extract/must_have.h"

#include <algorithm>
#include <deque>

namespace tenon::optimizer::extract {

MustHave::MustHave(const Instance& g)
    : words_((std::size_t(g.num_classes()) + 63) / 64),
      bits_(std::size_t(g.num_classes()) * words_, ~std::uint64_t{0}) {
  const std::vector<ClassId> order = Completable(g);
  std::deque<ClassId> queue(order.begin(), order.end());
  std::vector<char> queued(std::size_t(g.num_classes()), 0);
  for (const ClassId c : order) queued[std::size_t(c)] = 1;
  std::vector<std::uint64_t> all(words_), any(words_);
  while (!queue.empty()) {
    const ClassId c = queue.front();
    queue.pop_front();
    queued[std::size_t(c)] = 0;
    std::fill(all.begin(), all.end(), ~std::uint64_t{0});
    for (const NodeId n : g.nodes(c)) {
      std::fill(any.begin(), any.end(), 0);
      for (const ClassId d : g.children(n)) {
        for (std::size_t w = 0; w < words_; ++w) any[w] |= bits_[Row(d) + w];
      }
      for (std::size_t w = 0; w < words_; ++w) all[w] &= any[w];
    }
    all[std::size_t(c) / 64] |= std::uint64_t{1} << (std::size_t(c) % 64);
    if (std::equal(all.begin(), all.end(), bits_.begin() + std::ptrdiff_t(Row(c)))) continue;
    std::copy(all.begin(), all.end(), bits_.begin() + std::ptrdiff_t(Row(c)));
    for (const NodeId n : g.users(c)) {
      const ClassId user = g.eclass(n);
      if (queued[std::size_t(user)]) continue;
      queued[std::size_t(user)] = 1;
      queue.push_back(user);
    }
  }
}

bool MustHave::NodeNeeds(const Instance& g, NodeId n, ClassId e) const {
  const auto& c = g.children(n);
  return std::any_of(c.begin(), c.end(), [&](ClassId d) { return Needs(d, e); });
}

std::vector<std::uint64_t> MustHave::Union(const std::vector<ClassId>& classes) const {
  std::vector<std::uint64_t> any(words_, 0);
  for (const ClassId d : classes) {
    for (std::size_t w = 0; w < words_; ++w) any[w] |= bits_[Row(d) + w];
  }
  return any;
}

}  // namespace tenon::optimizer::extract
