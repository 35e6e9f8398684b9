#include "core/egraph/vocabulary.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/graph/infer.h"
#include "core/rules/compiled.h"

namespace tenon::egraph {
namespace {

std::size_t HashInts(std::int32_t first, std::span<const std::int32_t> rest) {
  std::uint64_t h =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(first)) + 1) * 0x9e3779b97f4a7c15ull;
  for (std::int32_t v : rest) {
    h = (h ^ static_cast<std::uint32_t>(v)) * 0xff51afd7ed558ccdull;
    h ^= h >> 32;
  }
  return h;
}

}  // namespace

OpId Vocabulary::InternOperator(const ops::Operator& op, graph::DataType dtype) {
  const ops::Info& info = ops::InfoOf(op);
  const bool typed = info.nature == ops::Nature::kConstant || info.nature == ops::Nature::kOpaque;
  if (!typed) dtype = graph::DataType::kUndefined;
  const std::size_t hash = ops::Hash(op);
  const auto [first, last] = op_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Op& known = ops_[std::size_t(it->second)];
    if (known.dtype == dtype && *known.op == op) return it->second;
  }
  Op added;
  added.op = std::make_shared<const ops::Operator>(op);
  added.dtype = dtype;
  added.commutative = info.commutative;
  const rules::SplitOperator split = rules::SplitSizes(op);
  added.skeleton = InternSkeleton(split.skeleton);
  for (const ops::Size& s : split.sizes) added.sizes.push_back(s.constant());
  const OpId id = static_cast<OpId>(ops_.size());
  by_skeleton_[std::size_t(added.skeleton)].push_back(id);
  ops_.push_back(std::move(added));
  op_by_hash_.emplace(hash, id);
  return id;
}

std::int32_t Vocabulary::InternSkeleton(const ops::Operator& skeleton) {
  const std::size_t hash = ops::Hash(skeleton);
  const auto [first, last] = skeleton_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (skeletons_[std::size_t(it->second)] == skeleton) return it->second;
  }
  const auto id = static_cast<std::int32_t>(skeletons_.size());
  skeletons_.push_back(skeleton);
  by_skeleton_.emplace_back();
  skeleton_by_hash_.emplace(hash, id);
  return id;
}

TypeId Vocabulary::InternType(graph::DataType dtype, const graph::Extents& extents) {
  std::size_t hash = static_cast<std::size_t>(dtype);
  for (std::int64_t e : extents)
    hash = (hash ^ static_cast<std::size_t>(e)) * 0x9e3779b97f4a7c15ull;
  const auto [first, last] = type_by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Type& known = types_[std::size_t(it->second)];
    if (known.dtype == dtype && known.extents == extents) return it->second;
  }
  types_.push_back({dtype, extents});
  type_by_hash_.emplace(hash, static_cast<TypeId>(types_.size() - 1));
  return static_cast<TypeId>(types_.size() - 1);
}

TypeId Vocabulary::Infer(OpId op, std::span<const TypeId> operands) {
  if (inferred_count_ * 2 >= inferred_.size()) GrowInferred();
  const std::size_t mask = inferred_.size() - 1;
  std::size_t slot = HashInts(op, operands) & mask;
  for (; inferred_[slot].length != 0; slot = (slot + 1) & mask) {
    const Inferred& known = inferred_[slot];
    const std::span key(keys_.data() + known.at, known.length);
    if (key[0] == op && std::ranges::equal(key.subspan(1), operands)) return known.type;
  }
  Inferred& added = inferred_[slot];
  added.at = static_cast<std::uint32_t>(keys_.size());
  added.length = static_cast<std::uint32_t>(operands.size() + 1);
  keys_.push_back(op);
  keys_.insert(keys_.end(), operands.begin(), operands.end());
  ++inferred_count_;
  return added.type = InferAnew(op, operands);
}

TypeId Vocabulary::InferAnew(OpId op, std::span<const TypeId> operands) {
  std::vector<graph::Shape> shapes;
  graph::DataType dtype = ops_[std::size_t(op)].dtype;
  for (TypeId t : operands) {
    shapes.push_back(graph::ToShape(extents(t)));
    if (ops::IsOpaque(this->op(op))) continue;
    if (dtype == graph::DataType::kUndefined) dtype = this->dtype(t);
    if (dtype != this->dtype(t)) return kNoType;
  }
  base::Symbols none;
  const auto inferred = graph::InferShape(this->op(op), shapes, none);
  if (!inferred.ok()) return kNoType;
  CHECK(inferred->requirements.empty());  // Constants decide everything.
  return InternType(dtype, graph::Concrete(inferred->shape));
}

void Vocabulary::GrowInferred() {
  std::vector<Inferred> old(std::max<std::size_t>(256, inferred_.size() * 2));
  old.swap(inferred_);
  const std::size_t mask = inferred_.size() - 1;
  for (const Inferred& known : old) {
    if (known.length == 0) continue;
    const std::span key(keys_.data() + known.at, known.length);
    std::size_t slot = HashInts(key[0], key.subspan(1)) & mask;
    while (inferred_[slot].length != 0) slot = (slot + 1) & mask;
    inferred_[slot] = known;
  }
}

}  // namespace tenon::egraph
