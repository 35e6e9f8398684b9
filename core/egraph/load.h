// Terms and graphs into e-graphs.
#pragma once

#include <span>
#include <vector>

#include "core/egraph/egraph.h"
#include "core/graph/graph.h"
#include "core/graph/term_table.h"

namespace tenon::egraph {

// Adds terms of a table to e-graphs of one vocabulary; operators and types are translated once.
// Inputs keep their numbers. Thread-compatible; the table and the vocabulary must outlive it.
class TermLoader {
 public:
  TermLoader(Vocabulary& vocabulary, const graph::TermTable& terms);

  ClassId Add(EGraph& g, graph::TermId id);
  // The same with input k of the table as input renaming[k], which has the same type and kind.
  ClassId Add(EGraph& g, graph::TermId id, std::span<const std::int32_t> renaming);
  // Every term of the table; the class of each, not canonical after later unions.
  std::vector<ClassId> AddAll(EGraph& g);

 private:
  ClassId AddOne(EGraph& g, graph::TermId id, std::span<const std::int32_t> renaming,
                 std::vector<ClassId>& classes);
  OpId OpOf(graph::TermId id);
  TypeId TypeOf(graph::TermId id);

  Vocabulary& vocabulary_;
  const graph::TermTable& terms_;
  std::vector<OpId> ops_;      // By operator of the table; -1: not translated yet.
  std::vector<TypeId> types_;  // By type of the table.
  std::vector<graph::TermId> closure_;
  std::vector<ClassId> operands_, sparse_;  // sparse_: by term, what the current Add made.
};

// Adds the part of a concrete graph that `roots` reach; returns their classes. CHECKs that the
// extents are concrete.
std::vector<ClassId> AddGraph(EGraph& g, const graph::Graph& from,
                              std::span<const graph::NodeId> roots);

}  // namespace tenon::egraph
