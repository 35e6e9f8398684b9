// Where two programs agree: the output cut into regions, each proved equal or shown unequal.
//
// Idea (after PET, Wang et al., OSDI 2021, with normal forms in the place of samples): the terms of
// an element change only where a guard begins or ceases to hold. Cuts there make a grid; the
// prover's comparison, restricted to one region, decides it for all shapes at once. A cut too few
// makes a region coarser, never wrong.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"
#include "verifier/partial/reading.h"
#include "verifier/partial/sizes.h"

namespace tenon::partial {

// Half open; not empty under what is assumed.
struct Interval {
  Poly begin = 0;
  Poly end = 1;
};

// The positions of an output axis with these digits and the cut digit in `range`.
struct Piece {
  std::vector<std::int64_t> digits;  // -1: the cut digit, or any value.
  Interval range;
};

struct Axis {
  Poly extent;
  Digits digits;
  std::vector<Piece> pieces;  // In ascending order.
  // Whether each piece is an interval of the axis, and they follow each other.
  bool ordered() const { return digits.contiguous(); }
  // The interval; the whole axis if the pieces are not ordered.
  Interval At(int piece) const;
};

enum class State : std::uint8_t {
  kEqual,    // Proved: equal for all inputs, at all sizes.
  kUnequal,  // Some element differs at some sizes, by evaluation.
  kUnknown,  // Neither. Counts as unequal.
};
std::string NameOf(State state);

struct Region {
  std::vector<int> pieces;  // For each axis, which one.
  State state = State::kUnknown;
  std::string why;  // Unless equal, for a person.
};

// What the random filter (verifier/partial/filter.h) said before anything was proved.
struct Filtered {
  std::int64_t positions = 0;  // Looked at ..
  std::int64_t elements = 0;   // .. of so many of the output.
  std::vector<bool> differs;   // For each region: some position differs.
  int degree = 0;              // Of the programs as polynomials.
  std::uint64_t prime = 0;
  // A position at which the programs differ is taken for equal with at most this probability.
  double bound() const { return double(degree) / double(prime); }
};

struct Regions {
  std::vector<Axis> axes;
  std::vector<Region> regions;       // The last axis varies fastest.
  std::optional<Filtered> filtered;  // Nothing for programs that are no polynomials.

  int Count(State state) const;
  bool all_equal() const { return Count(State::kEqual) == static_cast<int>(regions.size()); }
  // Whether the element at `index` of an output of these extents lies in the region; `at` gives the
  // value of a polynomial.
  template <class At>
  bool Holds(const Region& region, const graph::Extents& index, const At& at) const {
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      if (!InPiece(axes[axis], axes[axis].pieces[std::size_t(region.pieces[axis])],
                   index[static_cast<int>(axis)], at)) {
        return false;
      }
    }
    return true;
  }
  template <class At>
  static bool InPiece(const Axis& axis, const Piece& piece, std::int64_t index, const At& at) {
    for (int k = static_cast<int>(axis.digits.extents.size()); k-- > 0;) {
      const std::int64_t extent = at(axis.digits.extents[std::size_t(k)]);
      const std::int64_t digit = index % extent;
      index /= extent;
      const std::int64_t wanted = piece.digits[std::size_t(k)];
      if (wanted >= 0 && wanted != digit) return false;
      if (k == axis.digits.cut && (digit < at(piece.range.begin) || digit >= at(piece.range.end))) {
        return false;
      }
    }
    return true;
  }
};

// Regions of `pair`, a rule that need not hold. Where the grid depends on sizes, `sizes` assumes
// something about them; the regions hold under that. The polynomials are over pair.graph.symbols(),
// which may grow.
//
// FailedPrecondition: the method does not reach that far (several outputs, unequal shapes, a
// program that cannot be read, more than 600 regions); the message says what. Internal: a region
// that is proved equal differs in an evaluation, so one of the two is wrong.
StatusOr<Regions> FindRegions(rules::Rule& pair, Sizes& sizes);

}  // namespace tenon::partial
