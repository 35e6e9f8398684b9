// The generic evaluator: one operator over dense tensors in any domain with concrete sizes.
// Included by the .cc of each reading only.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "core/base/integer.h"
#include "core/base/status.h"
#include "core/eval/tensor.h"
#include "core/graph/graph.h"
#include "core/graph/infer.h"
#include "core/ops/operator.h"

namespace tenon::eval {

// The part of a domain that concrete sizes decide. Shapes are checked by graph::InferShape before,
// so Require has nothing left to do.
struct ConcreteSizes {
  using Index = std::int64_t;
  using Bool = bool;
  Index Const(std::int64_t v) { return v; }
  Index Value(const ops::Size& s) { return s.constant(); }
  Index FloorDiv(Index n, Index d) { return base::FloorDivide(n, d); }
  Bool Lt(Index a, Index b) { return a < b; }
  Bool Le(Index a, Index b) { return a <= b; }
  Bool Eq(Index a, Index b) { return a == b; }
  Bool And(Bool a, Bool b) { return a && b; }
  bool IsOne(Index i) { return i == 1; }
  void Require(Bool, const char*) {}
  bool Static(bool ok, const char*) { return ok; }
  template <class T, class E>
  auto Select(Bool b, T then, E otherwise) {
    return b ? then() : otherwise();
  }
  template <class F>
  auto Block(Index i, Index, Index size, F f) {
    return f(i / size);
  }
  template <class F>
  auto Reindex(const ops::Short<Index>& from, const ops::Short<Index>& to,
               const ops::Short<Index>& at, F f) {
    Index flat = 0;
    for (int a = 0; a < to.size(); ++a) flat = flat * to[a] + at[a];
    ops::Short<Index> position = from;
    for (int a = from.size() - 1; a >= 0; --a) {
      position[a] = flat % from[a];
      flat /= from[a];
    }
    return f(position);
  }
};

template <class S>
struct DenseOperands {
  std::span<const Tensor<S>* const> tensors;
  int size() const { return int(tensors.size()); }
  int rank(int k) const { return extents(k).size(); }
  std::int64_t extent(int k, int a) const { return extents(k)[a]; }
  const graph::Extents& extents(int k) const { return tensors[std::size_t(k)]->extents; }
  const S& operator()(int k, const ops::Short<std::int64_t>& at) const {
    const graph::Extents& e = extents(k);
    std::int64_t offset = 0;
    for (int a = 0; a < at.size(); ++a) offset = offset * e[a] + at[a];
    return tensors[std::size_t(k)]->data[std::size_t(offset)];
  }
};

// Applies `op`; d.ok() says afterwards whether a value was outside the domain.
template <class D>
StatusOr<Tensor<typename D::Scalar>> ApplyDense(
    D& d, const ops::Operator& op, std::span<const Tensor<typename D::Scalar>* const> operands) {
  using S = typename D::Scalar;
  if (ops::IsOpaque(op)) return base::InvalidArgument("an opaque operator cannot be evaluated");
  std::vector<graph::Shape> shapes;
  for (const auto* t : operands) shapes.push_back(graph::ToShape(t->extents));
  base::Symbols none;
  ASSIGN_OR_RETURN(const graph::Inferred inferred, graph::InferShape(op, shapes, none));
  Tensor<S> out{graph::Concrete(inferred.shape), {}};
  const std::int64_t count = graph::ElementCount(out.extents);
  out.data.reserve(std::size_t(count));
  const DenseOperands<S> in{operands};
  std::visit(
      [&](const auto& o) {
        ops::Short<std::int64_t> at = ops::Short<std::int64_t>::Filled(out.extents.size(), 0);
        for (std::int64_t flat = 0; flat < count; ++flat) {
          out.data.push_back(o.Element(d, in, at));
          for (int a = at.size() - 1; a >= 0 && ++at[a] == out.extents[a]; --a) at[a] = 0;
        }
      },
      op);
  RETURN_IF_ERROR(d.status());
  return out;
}

// Evaluates the nodes that `roots` reach with `apply`(op, operands).
template <class S, class F>
StatusOr<std::vector<Tensor<S>>> EvaluateDense(const graph::Graph& g,
                                               std::span<const graph::NodeId> roots,
                                               std::span<const Tensor<S>> inputs, F apply) {
  std::vector<Tensor<S>> values(g.size());
  std::vector<const Tensor<S>*> value(g.size(), nullptr);
  for (graph::NodeId id : g.Reachable(roots)) {
    const graph::Node& n = g.node(id);
    if (n.is_input()) {
      const Tensor<S>& input = inputs[std::size_t(n.input)];
      CHECK(graph::ToShape(input.extents) == n.shape());
      value[std::size_t(id)] = &input;
      continue;
    }
    std::vector<const Tensor<S>*> operands;
    for (graph::NodeId o : n.operands) operands.push_back(value[std::size_t(o)]);
    auto result = apply(*n.op, std::span<const Tensor<S>* const>(operands));
    if (!result.ok()) return base::Annotate(result.status(), ops::NameOf(*n.op));
    values[std::size_t(id)] = *std::move(result);
    value[std::size_t(id)] = &values[std::size_t(id)];
  }
  std::vector<Tensor<S>> out;
  for (graph::NodeId id : roots) out.push_back(*value[std::size_t(id)]);
  return out;
}

}  // namespace tenon::eval
