// The idea: hash-consing makes a graph a term, so "every graph once" is "every operand tuple once",
// and tuples are found from what their operands share. Let U be the operators that the operands
// chosen so far reach. The next operand either lies within U (an input, or one of U, since U is
// closed), or is disjoint from it (a term of exactly the missing size), or overlaps (it is listed
// with one of U; the smallest shared one decides, so it comes up once). Together that is exactly
// the set of operands that bring |U| to where it has to be: nothing is generated to be thrown away,
// but for the overlap tests. Cost per graph is tens of nanoseconds.
//
// Rejected: walking sets of nodes in increasing order (each single-output graph is reached through
// all its many-output subsets), and a hash set of visited graphs (memory).
#include "worker/levels.h"

#include <cstring>

#include "core/base/check.h"

namespace tenon::worker {
namespace {

std::string Key(int operator_index, std::span<const TypeId> types) {
  std::string key(sizeof operator_index + types.size_bytes(), '\0');
  std::memcpy(key.data(), &operator_index, sizeof operator_index);
  if (!types.empty()) {
    std::memcpy(key.data() + sizeof operator_index, types.data(), types.size_bytes());
  }
  return key;
}

}  // namespace

Levels::Levels(const graph::Universe& universe, bool normal_order)
    : universe_(universe), normal_order_(normal_order), table_(graph::TableOf(universe)) {
  for (const graph::Universe::Operator& o : universe.operators) {
    op_ids_.push_back(table_.InternOperator(o.op));
    kinds_.emplace_back();
    kinds_.back().fill(0);
    for (const graph::Universe::Limit& limit : o.limits) {
      if (!limit.kind) continue;
      kinds_.back()[static_cast<std::size_t>(limit.operand)] =
          *limit.kind == graph::InputKind::kWeight ? 2 : 1;
    }
  }
  for (int k = 0; k < table_.input_count(); ++k) {
    if (table_.input(k).kind == graph::InputKind::kActivation) activations_ |= 1u << k;
    closure_at_.push_back(0);
  }
  CompleteLevel();
}

TermId Levels::Add(const Candidate& c) {
  const TermId id = table_.AddTyped(op_ids_[static_cast<std::size_t>(c.operator_index)], c.operands,
                                    c.type, depth() + 1);
  CHECK(static_cast<std::size_t>(id) + 1 == table_.size());  // The walk repeats nothing.
  Partial p;
  for (TermId operand : c.operands) CHECK(Push(p, operand));
  CHECK(p.reached_count == depth());
  const auto reached = p.reached.begin();
  closures_.insert(closures_.end(), reached, reached + p.reached_count);
  closures_.push_back(id);
  closure_at_.push_back(closures_.size());
  return id;
}

void Levels::CompleteLevel() {
  const TermId old_end = end_.empty() ? 0 : end_.back();
  const TermId new_end = static_cast<TermId>(table_.size());
  end_.push_back(new_end);
  types_ = table_.type_count();
  rows_.clear();
  by_type_.emplace_back();
  for (auto& level : by_type_) level.resize(types_);
  for (TermId id = old_end; id < new_end; ++id) by_type_.back()[table_.type_id(id)].push_back(id);

  containing_at_.assign(static_cast<std::size_t>(new_end) + 1, 0);
  const auto each_pair = [&](auto&& f) {
    for (TermId id = end_[0]; id < new_end; ++id) {
      for (TermId reached : closure(id)) {
        if (reached != id) f(static_cast<std::size_t>(reached), id);
      }
    }
  };
  each_pair([&](std::size_t reached, TermId) { ++containing_at_[reached + 1]; });
  for (std::size_t k = 1; k < containing_at_.size(); ++k)
    containing_at_[k] += containing_at_[k - 1];
  containing_.assign(containing_at_.back(), 0);
  std::vector<std::size_t> next(containing_at_.begin(), containing_at_.end() - 1);
  each_pair([&](std::size_t reached, TermId id) { containing_[next[reached]++] = id; });
}

TypeId Levels::Infer(int o, std::span<const TypeId> operands) {
  const graph::Universe::Operator& op = universe_.operators[static_cast<std::size_t>(o)];
  if (op.same_shape) {
    TypeId shape = graph::kNoType;
    for (TypeId t : operands) {
      if (op.or_scalar && table_.extents_at(t).empty()) continue;
      if (shape != graph::kNoType && t != shape) return graph::kNoType;
      shape = t;
    }
  }
  const TypeId type = table_.Infer(op_ids_[static_cast<std::size_t>(o)], operands);
  if (type == graph::kNoType) return type;
  std::int64_t elements = 1;
  for (std::int64_t e : table_.extents_at(type)) {
    if (__builtin_mul_overflow(elements, e, &elements)) return graph::kNoType;
  }
  return elements <= universe_.max_elements ? type : graph::kNoType;
}

bool Levels::ShapeAllowed(int o, int position, TypeId type) const {
  const graph::Extents& extents = table_.extents_at(type);
  for (const graph::Universe::Limit& limit :
       universe_.operators[static_cast<std::size_t>(o)].limits) {
    if (limit.operand != position || limit.extents.empty()) continue;
    if (limit.extents.size() != extents.size()) return false;
    for (int a = 0; a < extents.size(); ++a) {
      if (limit.extents[a] != 0 && limit.extents[a] != extents[a]) return false;
    }
  }
  return true;
}

bool Levels::Completable(int o, Partial& p, int position) {
  if (position == p.arity) {
    return Infer(o, {p.types.data(), static_cast<std::size_t>(p.arity)}) != graph::kNoType;
  }
  for (TypeId type = 0; type < types_; ++type) {
    if (!ShapeAllowed(o, position, type)) continue;
    p.types[static_cast<std::size_t>(position)] = type;
    if (Completable(o, p, position + 1)) return true;
  }
  return false;
}

const Levels::Row& Levels::RowFor(int o, const Partial& p, int position) {
  const std::size_t before = static_cast<std::size_t>(position);
  const auto [it, is_new] = rows_.try_emplace(Key(o, {p.types.data(), before}));
  Row& row = it->second;
  if (!is_new) return row;
  Partial trial = p;
  row.allowed.assign(types_, false);
  const bool last = position + 1 == p.arity;
  if (last) row.signatures.assign(types_, 0);
  for (TypeId type = 0; type < types_; ++type) {
    if (!ShapeAllowed(o, position, type)) continue;
    trial.types[before] = type;
    if (!Completable(o, trial, position + 1)) continue;
    row.allowed[type] = true;
    row.types.push_back(type);
    trial.types[before] = type;
    if (last) row.signatures[type] = SignatureOf(o, {trial.types.data(), before + 1});
  }
  return row;
}

Signature Levels::SignatureOf(int o, std::span<const TypeId> operands) {
  const auto [it, is_new] =
      signature_by_key_.try_emplace(Key(o, operands), static_cast<Signature>(signatures_.size()));
  if (is_new) {
    signatures_.push_back({o, {operands.begin(), operands.end()}, Infer(o, operands)});
    CHECK(signatures_.back().type != graph::kNoType);
  }
  return it->second;
}

// Adds what `id` reaches; false if that is more than the level has room for.
bool Levels::Push(Partial& p, TermId id) const {
  std::array<TermId, kSizeMax> merged;
  std::size_t count = 0;
  const std::span<const TermId> added = closure(id);
  std::size_t i = 0, j = 0;
  const std::size_t reached = static_cast<std::size_t>(p.reached_count);
  while (i < reached || j < added.size()) {
    if (count == static_cast<std::size_t>(depth())) return false;
    if (j == added.size() || (i < reached && p.reached[i] < added[j])) {
      merged[count++] = p.reached[i++];
    } else {
      if (i < reached && p.reached[i] == added[j]) ++i;
      merged[count++] = added[j++];
    }
  }
  p.reached = merged;
  p.reached_count = static_cast<int>(count);
  return true;
}

std::size_t Levels::memory_bytes() const {
  return table_.memory_bytes() + (closures_.capacity() + containing_.capacity()) * sizeof(TermId) +
         (closure_at_.capacity() + containing_at_.capacity()) * sizeof(std::size_t) +
         static_cast<std::size_t>(end_.back()) * sizeof(TermId);
}

}  // namespace tenon::worker
