// Where a tensor was joined along an axis: what TASO's Split undoes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/base/poly.h"

namespace tenon::interop {

// The most recent joint and, on both sides of it, the ones before. Immutable; none is null.
struct Cut;
using CutTree = std::shared_ptr<const Cut>;
struct Cut {
  base::Poly at;        // From the start of this part.
  CutTree left, right;  // Counted from their own starts.
};

inline CutTree Joined(const base::Poly& at, CutTree left, CutTree right) {
  return std::make_shared<const Cut>(Cut{at, std::move(left), std::move(right)});
}

// What is left of two when an operator combines elements at the same places: both or nothing.
inline CutTree Agreed(const CutTree& a, const CutTree& b) {
  const auto equal = [](const auto& self, const CutTree& p, const CutTree& q) -> bool {
    if (p == nullptr || q == nullptr) return p == q;
    return p->at == q->at && self(self, p->left, q->left) && self(self, p->right, q->right);
  };
  return equal(equal, a, b) ? a : nullptr;
}

// A part of a tensor along an axis.
struct Piece {
  base::Poly start, end;
  CutTree cuts;
};

// The pieces of `extent` when `tree` is undone from its last joint on; nothing if it has too few.
inline std::optional<std::vector<Piece>> Undo(CutTree tree, const base::Poly& extent, int pieces) {
  std::vector<Piece> out(static_cast<std::size_t>(pieces));
  base::Poly end = extent;
  for (std::size_t k = out.size(); k-- > 1;) {
    if (tree == nullptr) return std::nullopt;
    out[k] = {tree->at, end, tree->right};
    end = tree->at;
    tree = tree->left;
  }
  out[0] = {0, end, tree};
  return out;
}

}  // namespace tenon::interop
