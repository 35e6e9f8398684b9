// Renamings: the ways to exchange inputs of one type and kind. Graphs that differ only by one of
// them say the same, and canonical mode visits one of them.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "worker/levels.h"

namespace tenon::worker {

// Number 0 is the identity. Thread-compatible.
class Renamings {
 public:
  static constexpr std::size_t kMax = 256;

  // ResourceExhausted when there are more than kMax.
  static StatusOr<Renamings> Of(const Levels& levels);

  std::size_t count() const { return to_.size(); }
  // First b, then a.
  std::size_t Compose(std::size_t a, std::size_t b) const;
  std::size_t Inverse(std::size_t a) const;

  // Learns the images of the terms of a level that was just completed.
  void ExtendTo(const Levels& levels);
  // The image of an input or a term of a complete level.
  TermId Image(std::size_t renaming, TermId id) const {
    return images_[renaming][static_cast<std::size_t>(id)];
  }
  // The image of operands, a commutative operator's in ascending order; it lies in `buffer`.
  using Buffer = std::array<TermId, graph::kUniverseArityMax>;
  std::span<const TermId> ImageOf(std::size_t renaming, const ops::Operator& op,
                                  std::span<const TermId> operands, Buffer& buffer) const;

  // Whether no renaming makes the graph smaller, in the order of operator and operands.
  bool IsCanonical(const ops::Operator& op, std::span<const TermId> operands) const;
  // The same for a term of a complete level.
  bool IsCanonical(TermId id) const;

 private:
  std::vector<std::vector<TermId>> to_;      // [renaming][input]
  std::vector<std::vector<TermId>> images_;  // [renaming][term]
};

}  // namespace tenon::worker
