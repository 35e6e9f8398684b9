#include "interop/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace tenon::interop {
namespace {

constexpr std::size_t kChoicesMax = 64;

Status NoCounterpart(const PeerOperator& op) {
  return absl::UnimplementedError(fmt::format("{} has no counterpart here", op.name()));
}

// Classes of tensors with one rank.
class Classes {
 public:
  std::size_t Add() {
    up_.push_back(up_.size());
    least_.push_back(0);
    fixed_.push_back(-1);
    return up_.size() - 1;
  }
  std::size_t Find(std::size_t k) const {
    while (up_[k] != k) k = up_[k];
    return k;
  }
  void Join(std::size_t a, std::size_t b) {
    a = Find(a), b = Find(b);
    if (a == b) return;
    up_[b] = a;
    AtLeast(a, least_[b]);
    if (fixed_[b] >= 0) Fix(a, fixed_[b]);
  }
  void Fix(std::size_t k, int rank) {
    k = Find(k);
    misfit_ = misfit_ || (fixed_[k] >= 0 && fixed_[k] != rank);
    fixed_[k] = rank;
  }
  void AtLeast(std::size_t k, int rank) {
    k = Find(k);
    least_[k] = std::max(least_[k], rank);
  }
  std::size_t size() const { return up_.size(); }
  int least(std::size_t k) const { return least_[Find(k)]; }
  int fixed(std::size_t k) const { return fixed_[Find(k)]; }
  bool misfit() const { return misfit_; }

 private:
  std::vector<std::size_t> up_;
  std::vector<int> least_, fixed_;
  bool misfit_ = false;
};

// What the rule's operators say of its ranks.
class Reader {
 public:
  explicit Reader(const PeerRule& rule) : rule_(rule) {}

  Status Read() {
    RETURN_IF_ERROR(ReadSide(rule_.source, source_));
    RETURN_IF_ERROR(ReadSide(rule_.target, target_));
    for (const PeerOutput& out : rule_.outputs) {
      classes_.Join(source_[std::size_t(out.source.op)], target_[std::size_t(out.target.op)]);
    }
    return OkStatus();
  }

  const Classes& classes() const { return classes_; }

  Ranks With(const std::vector<int>& rank_of_class) const {
    const auto rank = [&](std::size_t k) { return rank_of_class[classes_.Find(k)]; };
    Ranks ranks;
    for (const auto& [variable, k] : variables_) ranks.variables[variable] = rank(k);
    for (const std::size_t k : source_) ranks.source.push_back(rank(k));
    for (const std::size_t k : target_) ranks.target.push_back(rank(k));
    return ranks;
  }

 private:
  Status ReadSide(const std::vector<PeerOperator>& side, std::vector<std::size_t>& results) {
    for (const PeerOperator& op : side) {
      std::vector<std::size_t> in;
      for (const PeerTensor& tensor : op.inputs) {
        if (tensor.op >= 0) {
          in.push_back(results[std::size_t(tensor.op)]);
          continue;
        }
        const auto [it, is_new] = variables_.try_emplace(tensor.op, 0);
        if (is_new) it->second = classes_.Add();
        in.push_back(it->second);
      }
      results.push_back(classes_.Add());
      RETURN_IF_ERROR(ReadOperator(op, in, results.back()));
    }
    return OkStatus();
  }

  Status ReadOperator(const PeerOperator& op, const std::vector<std::size_t>& in, std::size_t out) {
    const auto arity = [&](std::size_t least, std::size_t most) -> Status {
      if (least <= in.size() && in.size() <= most) return OkStatus();
      return absl::UnimplementedError(
          fmt::format("{} with {} operands has no counterpart here", op.name(), in.size()));
    };
    const auto all_equal = [&] {
      for (const std::size_t k : in) classes_.Join(k, out);
    };
    const auto all_are = [&](int rank) {
      for (const std::size_t k : in) classes_.Fix(k, rank);
      classes_.Fix(out, rank);
    };
    const auto parameter = [&](PeerKey key, int otherwise) {
      const auto it = op.parameters.find(key);
      return it == op.parameters.end() ? otherwise : it->second;
    };
    switch (op.type) {
      case PeerType::kConv:
        RETURN_IF_ERROR(arity(2, 2));
        all_are(4);
        return OkStatus();
      case PeerType::kMaxPool:
      case PeerType::kAveragePool:
        // TASO keeps a kernel of ones as a second operand; a rule's variable stands for it.
        RETURN_IF_ERROR(arity(1, 2));
        all_are(4);
        return OkStatus();
      case PeerType::kEnlarge:
        RETURN_IF_ERROR(arity(1, 2));
        all_are(4);
        return OkStatus();
      case PeerType::kRelu:
      case PeerType::kSigmoid:
      case PeerType::kTanh:
        RETURN_IF_ERROR(arity(1, 1));
        all_equal();
        return OkStatus();
      case PeerType::kAdd:
      case PeerType::kMul:
        RETURN_IF_ERROR(arity(2, 2));
        all_equal();
        classes_.AtLeast(out, 1);
        return OkStatus();
      case PeerType::kMatMul:
        RETURN_IF_ERROR(arity(2, 2));
        all_equal();
        classes_.AtLeast(out, 2);
        return OkStatus();
      case PeerType::kScalarMul:
        RETURN_IF_ERROR(arity(2, 2));
        classes_.Join(in[0], out);
        classes_.Fix(in[1], 0);
        return OkStatus();
      case PeerType::kConcat:
      case PeerType::kSplit: {
        RETURN_IF_ERROR(op.type == PeerType::kConcat ? arity(1, kPeerOperatorsMax) : arity(1, 1));
        all_equal();
        const int axis = parameter(PeerKey::kAxis, -1);
        if (axis < 0 || axis >= 8) {
          return absl::FailedPreconditionError(
              fmt::format("{} is along axis {}, which is none", op.name(), axis));
        }
        classes_.AtLeast(out, axis + 1);
        return FixRank(op, out);
      }
      case PeerType::kTranspose:
        RETURN_IF_ERROR(arity(1, 1));
        all_equal();
        if (!op.parameters.contains(PeerKey::kRank)) return NoCounterpart(op);
        return FixRank(op, out);
      case PeerType::kIdentityMatrix:
        RETURN_IF_ERROR(arity(0, 0));
        classes_.Fix(out, 2);
        return OkStatus();
      case PeerType::kIdentityKernel:
      case PeerType::kPoolKernel:
        RETURN_IF_ERROR(arity(0, 0));
        classes_.Fix(out, 4);
        return OkStatus();
      case PeerType::kOnes:
        return arity(0, 0);
      case PeerType::kInput:
      case PeerType::kWeight:
      case PeerType::kAny:
      case PeerType::kDropout:
      case PeerType::kLinear:
      case PeerType::kBatchNorm:
      case PeerType::kReshape:
      case PeerType::kMergeGroups:
      case PeerType::kForeign:
        return NoCounterpart(op);
    }
    return NoCounterpart(op);
  }

  Status FixRank(const PeerOperator& op, std::size_t out) {
    const auto it = op.parameters.find(PeerKey::kRank);
    if (it == op.parameters.end()) return OkStatus();
    if (it->second < 1 || it->second > 8) {
      return absl::FailedPreconditionError(
          fmt::format("{} has {} axes; 1 to 8 are possible", op.name(), it->second));
    }
    classes_.Fix(out, it->second);
    return OkStatus();
  }

  const PeerRule& rule_;
  Classes classes_;
  std::map<std::int32_t, std::size_t> variables_;
  std::vector<std::size_t> source_, target_;
};

}  // namespace

StatusOr<std::vector<Ranks>> AllRanks(const PeerRule& rule, int highest) {
  Reader reader(rule);
  RETURN_IF_ERROR(reader.Read());
  const Classes& classes = reader.classes();
  if (classes.misfit()) {
    return absl::FailedPreconditionError("its operators need different numbers of axes");
  }
  std::vector<std::vector<int>> choices(1, std::vector<int>(classes.size(), 0));
  bool open = false;
  for (std::size_t k = 0; k < classes.size(); ++k) {
    if (classes.Find(k) != k) continue;
    const int fixed = classes.fixed(k), least = classes.least(k);
    if (fixed >= 0 && fixed < least) {
      return absl::FailedPreconditionError("an axis is outside of its tensor");
    }
    open = open || fixed < 0;
    std::vector<std::vector<int>> longer;
    for (const std::vector<int>& choice : choices) {
      for (int rank = fixed >= 0 ? fixed : std::max(1, least);
           rank <= (fixed >= 0 ? fixed : std::max(highest, least)); ++rank) {
        longer.push_back(choice);
        longer.back()[k] = rank;
      }
    }
    choices = std::move(longer);
    if (choices.size() > kChoicesMax) {
      return absl::UnimplementedError("it leaves too many ranks open to try them all");
    }
  }
  std::vector<Ranks> all;
  for (const std::vector<int>& choice : choices) {
    all.push_back(reader.With(choice));
    all.back().open = open;
  }
  return all;
}

}  // namespace tenon::interop
