// What a peer's rule means: the operators as TASO runs them, at the most general shapes that it
// accepts, as a rule of ours.
//
// TASO matches a rule's source on a model and then builds the target's operators; each of them
// looks at its own operands, and where one does not fit the match is dropped. Nothing compares what
// comes out. So the shapes that it *accepts* are those at which every operator of both sides is
// defined, and a rule that differs at one of them is wrong.
//
// As TASO has it:
// - Conv has no group attribute: the channels of the image are divided by those of the kernel.
// - SAME padding is symmetric, of (total + 1) / 2 on each side, where total depends on the extent
//   modulo the stride. Where it comes out the same for every extent it is written down; elsewhere
//   (even kernels, strides above 2) the rule is not understood.
// - The average pool divides by the elements of the image in the window, without the padding.
// - Split cuts where the most recent Concat on that axis has joined; element-wise operators keep a
//   cut on which both operands agree. Where the source cuts what nothing joined, the place is
//   symbolic.
// - Element-wise operators take operands of equal extents. (Later versions broadcast; a match that
//   would need it is outside of what the translated rule says.)
// - The constant pool kernel is [C, 1, h, w], so a convolution with it is depthwise.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/poly.h"
#include "core/base/status.h"
#include "core/rules/rule.h"
#include "interop/peer_rule.h"

namespace tenon::interop {

// a = b, in sizes of the translator that made it.
struct Demand {
  std::string text;  // "the convolutions have one group each", for people.
  base::Poly a, b;
};

// One rule at one choice of ranks. Thread-compatible; movable.
class Translator {
 public:
  // One for every choice of ranks up to kRankTried that the operators leave open: the number of
  // axes is no symbol. Unimplemented: an operator, a parameter or a way of padding that has no
  // counterpart here. FailedPrecondition: the ranks contradict each other. Both are of the kind
  // "this rule cannot be judged"; the message says why.
  static StatusOr<std::vector<Translator>> ForAllRanks(const PeerRule& rule);
  static constexpr int kRankTried = 4;

  Translator(Translator&&) noexcept;
  ~Translator();

  // The rule at all shapes that TASO accepts and at which `demands` hold. Errors as above, and
  // FailedPrecondition where there is no such shape.
  StatusOr<rules::Rule> Build(const std::vector<Demand>& demands);

  // After Build({}): equations that a rule may lack, the likely ones first.
  const std::vector<Demand>& candidates() const;
  // After Build({}): equations without which the two sides do not even have one shape; nobody
  // checks them.
  const std::vector<Demand>& same_shape() const;
  // "" or "rank 3": which of several choices this is.
  const std::string& label() const;

 private:
  class Impl;
  explicit Translator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::interop
