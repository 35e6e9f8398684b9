// The nodes of a universe as TASO's released generator has them.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "worker/released/evaluate.h"
#include "worker/sets/source.h"

namespace tenon::worker::released {

class Nodes final : public SetSource {
 public:
  // InvalidArgument: an operator or input that the generator does not have. `seed`: of inputs and
  // fingerprints; see Evaluator::InputValues.
  static StatusOr<std::unique_ptr<Nodes>> Make(const graph::Universe& universe, std::uint64_t seed);

  const NodeTable& nodes() const override { return table_; }
  int depth() const override { return depth_; }
  Status BuildLevel() override;
  StatusOr<LevelSize> EstimateLevel() override;
  Status WalkLast(const Wanted& wanted, const Visit& visit) override;
  std::string TextOf(ResultNumber result) const override;
  std::vector<std::string> TextsOfLast() const override;

 private:
  // An input, or inputs_ + a result of the table.
  using Ref = std::uint32_t;
  struct Made {
    Step step;
    std::array<Ref, 2> operands{};
    int operand_count = 0;
    std::array<std::uint64_t, 2> fingerprints{};

    int results() const { return step.results[1] == kNoType ? 1 : 2; }
  };
  static constexpr std::size_t kBlock = std::size_t{1} << 18;  // Elements.

  Nodes(const graph::Universe& universe, std::vector<Instance> instances, std::uint64_t seed);

  // Calls f(Step, operands) for each node on a set, all of whose nodes it reaches.
  template <class F>
  void ForEachOn(const ClosedSet& set, F&& f);
  template <class F>
  void ForEachOnInputs(F&& f);
  template <class F>
  void ForPair(Ref a, Ref b, bool a_first, bool b_first, F&& f);
  // Calls f for each set that can have such a node.
  template <class F>
  void ForEachBelow(F&& f);

  // Evaluates; false when a tensor would be there twice.
  bool Make1(const ClosedSet& set, const Step& step, std::span<const Ref> operands);
  void Keep();
  // The set after made_ was added to it, but for the node itself.
  ClosedSet WithMade(const ClosedSet& set) const;
  LastGraph GraphOf(const ClosedSet& set);
  const std::uint32_t* Store(const std::uint32_t* data, std::size_t elements);
  std::string TextOfRef(Ref r) const;
  std::string TextOf(const Step& step, std::span<const Ref> operands) const;

  std::vector<std::string> input_names_;
  std::vector<bool> is_weight_;
  Types types_;
  Evaluator evaluator_;
  Ref inputs_ = 0;
  NodeTable table_{true};
  int depth_ = 0;
  std::vector<Tensor> tensors_;  // By Ref.
  std::vector<std::uint64_t> input_fingerprints_;
  std::vector<Step> steps_;  // By node.
  struct Operands {
    std::array<Ref, 2> refs{};
    int count = 0;
  };
  std::vector<Operands> operands_;  // By node.
  std::vector<std::unique_ptr<std::uint32_t[]>> blocks_;
  std::size_t block_left_ = 0;
  Orders orders_;
  Made made_;
  bool made_is_conv_ = false;           // The evaluator holds the Conv of made_'s operands.
  const ClosedSet* visited_ = nullptr;  // What made_ is added to.
};

}  // namespace tenon::worker::released
