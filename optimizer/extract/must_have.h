// Which classes cannot be avoided: the AND-OR dominators of an e-graph.
//
// M(c) = {c} with what every node of c needs: the intersection over the nodes of c of the union
// over their children d of M(d), as the greatest fixpoint. Whoever computes c without a cycle
// computes all of M(c). In planning these are landmarks of delete-free tasks, of which extraction
// is one (Keyder, Richter, Helmert, ECAI 2010; Imai and Fukunaga, JAIR 2015).
#pragma once

#include <cstdint>
#include <vector>

#include "optimizer/extract/instance.h"

namespace tenon::optimizer::extract {

// The sets for the living nodes of an instance, as rows of bits: num_classes^2 / 8 bytes.
// Immutable.
class MustHave {
 public:
  explicit MustHave(const Instance& g);

  // Is `e` in M(c)?
  bool Needs(ClassId c, ClassId e) const { return Bit(&bits_[Row(c)], e); }
  // Is `e` needed by the node, its own class aside?
  bool NodeNeeds(const Instance& g, NodeId n, ClassId e) const;
  // The union of M(d) over `classes`, as words() words.
  std::vector<std::uint64_t> Union(const std::vector<ClassId>& classes) const;

  std::size_t words() const { return words_; }
  static bool Bit(const std::uint64_t* row, ClassId e) {
    return (row[std::size_t(e) / 64] >> (std::size_t(e) % 64) & 1) != 0;
  }

 private:
  std::size_t Row(ClassId c) const { return std::size_t(c) * words_; }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

// Calls f(class) for each bit of a row.
template <class F>
void ForEachBit(const std::vector<std::uint64_t>& row, const F& f) {
  for (std::size_t w = 0; w < row.size(); ++w) {
    for (std::uint64_t z = row[w]; z != 0; z &= z - 1) {
      f(ClassId(w * 64 + std::size_t(__builtin_ctzll(z))));
    }
  }
}

}  // namespace tenon::optimizer::extract
