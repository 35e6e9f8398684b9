#include "core/egraph/load.h"

#include "core/base/check.h"

namespace tenon::egraph {

TermLoader::TermLoader(Vocabulary& vocabulary, const graph::TermTable& terms)
    : vocabulary_(vocabulary), terms_(terms) {}

OpId TermLoader::OpOf(graph::TermId id) {
  const graph::OpId op = terms_.op_id(id);
  if (ops_.size() <= op) ops_.resize(terms_.operator_count(), -1);
  if (ops_[op] < 0) ops_[op] = vocabulary_.InternOperator(terms_.op(id), terms_.type(id).dtype);
  return ops_[op];
}

TypeId TermLoader::TypeOf(graph::TermId id) {
  const graph::TypeId type = terms_.type_id(id);
  if (types_.size() <= type) types_.resize(terms_.type_count(), kNoType);
  if (types_[type] == kNoType) {
    types_[type] = vocabulary_.InternType(terms_.type(id).dtype, terms_.extents(id));
  }
  return types_[type];
}

ClassId TermLoader::AddOne(EGraph& g, graph::TermId id, std::span<const std::int32_t> renaming,
                           std::vector<ClassId>& classes) {
  if (terms_.is_input(id)) {
    const bool weight = terms_.input(id).kind == graph::InputKind::kWeight;
    const std::int32_t number = renaming.empty() ? id : renaming[std::size_t(id)];
    return g.AddInput(number, TypeOf(id), weight);
  }
  operands_.clear();
  for (graph::TermId o : terms_.operands(id)) operands_.push_back(classes[std::size_t(o)]);
  const ClassId c = g.Add(OpOf(id), operands_);
  CHECK(c != kNoClass);  // The table has only terms that fit.
  return c;
}

ClassId TermLoader::Add(EGraph& g, graph::TermId id) { return Add(g, id, {}); }

ClassId TermLoader::Add(EGraph& g, graph::TermId id, std::span<const std::int32_t> renaming) {
  if (sparse_.size() < terms_.size()) sparse_.resize(terms_.size(), kNoClass);
  if (terms_.is_input(id)) return AddOne(g, id, renaming, sparse_);
  // Inputs first, in the order of their use, then operators: equal terms up to renaming make equal
  // e-graphs.
  terms_.Closure(std::span(&id, 1), closure_);
  for (graph::TermId t : closure_) {
    for (graph::TermId o : terms_.operands(t)) {
      if (terms_.is_input(o)) sparse_[std::size_t(o)] = AddOne(g, o, renaming, sparse_);
    }
    sparse_[std::size_t(t)] = AddOne(g, t, renaming, sparse_);
  }
  return sparse_[std::size_t(id)];
}

std::vector<ClassId> TermLoader::AddAll(EGraph& g) {
  std::vector<ClassId> classes;
  classes.reserve(terms_.size());
  for (graph::TermId id = 0; id < graph::TermId(terms_.size()); ++id) {
    classes.push_back(AddOne(g, id, {}, classes));
  }
  return classes;
}

std::vector<ClassId> AddGraph(EGraph& g, const graph::Graph& from,
                              std::span<const graph::NodeId> roots) {
  std::vector<ClassId> classes(from.size(), kNoClass);
  std::vector<ClassId> operands;
  for (graph::NodeId id : from.Reachable(roots)) {
    const graph::Node& n = from.node(id);
    if (n.is_input()) {
      const TypeId type = g.vocabulary().InternType(n.type->dtype, graph::Concrete(n.shape()));
      classes[std::size_t(id)] = g.AddInput(n.input, type, n.weights_only);
      continue;
    }
    operands.clear();
    for (graph::NodeId o : n.operands) operands.push_back(classes[std::size_t(o)]);
    classes[std::size_t(id)] = g.Add(g.vocabulary().InternOperator(*n.op, n.type->dtype), operands);
    CHECK(classes[std::size_t(id)] != kNoClass);
  }
  std::vector<ClassId> out;
  for (graph::NodeId id : roots) out.push_back(classes[std::size_t(id)]);
  return out;
}

}  // namespace tenon::egraph
