// A Domain is one reading of scalars, indices and truth: double, integers mod p, work counting,
// symbolic shapes, the prover's normal form. Operators state their meaning against a Domain and
// never name one.
//
// For operator authors: bounds, conditions and loops over a Domain's values go through Require,
// Select, Sum and MaxOver. A raw `if` or `for` on them would decide something that the prover has
// to decide; the archetype (core/ops/archetype.h) rejects it.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/base/poly.h"
#include "core/base/short.h"

namespace tenon::ops {

using base::Short;

// An attribute that may be symbolic in a rule: a stride, a pad, a bound. Constant in a graph.
using Size = base::Poly;

// Scalar functions of the algebra. The numbers are persisted.
enum class Fn : std::uint8_t {
  kRelu = 1,     // max(x, 0)
  kSigmoid = 2,  // 1 / (1 + exp(-x))
  kTanh = 3,
  kExp = 4,
  kRecip = 5,  // 1 / x; proofs take 1 / 0 to be 0: then 1 / (1 / x) = x everywhere
  kSqrt = 6,   // of a non-negative number; elsewhere any value, but always the same one
  kErf = 7,    // 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x
};

template <class D>
using Extents = Short<typename D::Index>;
template <class D>
using At = Short<typename D::Index>;

// The requirements that plain calls can express; the ones that take lambdas are stated here:
//
//   d.Select(b, then, otherwise) -> Scalar: then() where b holds, otherwise() elsewhere. Only the
//     chosen one is meaningful; concrete domains run only that one.
//   d.Sum(n, f) -> Scalar: f(0) + .. + f(n-1); 0 when n is 0. f takes an Index.
//   d.MaxOver(n, admits, value) -> Scalar: the greatest value(k) over the multi-indices k (Short of
//     Index) with 0 <= k[a] < n[a] for which admits(k) holds. There is at least one, by a Require.
//   d.Block(i, blocks, size, f) -> Scalar: f(floor(i / size)), for 0 <= i < blocks * size. Lets a
//     symbolic reading unroll a constant number of blocks.
//   d.Reindex(from, to, at, f) -> Scalar: f(the position in a tensor of extents `from` that has the
//     row-major number of position `at` in a tensor of extents `to`); both have equally many
//     elements.
template <class D>
concept Domain = requires(D& d, const typename D::Scalar x, const typename D::Index i,
                          const typename D::Bool b, const Size size) {
  // Indices and sizes.
  { d.Const(std::int64_t{}) } -> std::same_as<typename D::Index>;
  { d.Value(size) } -> std::same_as<typename D::Index>;
  { i + i } -> std::same_as<typename D::Index>;
  { i - i } -> std::same_as<typename D::Index>;
  { i* i } -> std::same_as<typename D::Index>;
  { d.FloorDiv(i, i) } -> std::same_as<typename D::Index>;
  // Truth about them.
  { d.Lt(i, i) } -> std::same_as<typename D::Bool>;
  { d.Le(i, i) } -> std::same_as<typename D::Bool>;
  { d.Eq(i, i) } -> std::same_as<typename D::Bool>;
  { d.And(b, b) } -> std::same_as<typename D::Bool>;
  // Whether the extent is written as 1, which is what makes an axis broadcast. A symbol that merely
  // could be 1 is not.
  { d.IsOne(i) } -> std::same_as<bool>;
  // Well-formedness. Require: a condition on sizes, assumed or proved by the reader. Static: on
  // ranks and attributes, decided here; returns its argument, and an Infer that gets false returns.
  { d.Require(b, "why") } -> std::same_as<void>;
  { d.Static(true, "why") } -> std::same_as<bool>;
  // Elements.
  { d.Lit(std::int64_t{}) } -> std::same_as<typename D::Scalar>;
  { d.Real(double{}) } -> std::same_as<typename D::Scalar>;  // Exactly this double; finite.
  { d.InverseOf(i) } -> std::same_as<typename D::Scalar>;    // 1 / i, i at least 1.
  { d.Add(x, x) } -> std::same_as<typename D::Scalar>;
  { d.Sub(x, x) } -> std::same_as<typename D::Scalar>;
  { d.Mul(x, x) } -> std::same_as<typename D::Scalar>;
  { d.Div(x, x) } -> std::same_as<typename D::Scalar>;  // x times kRecip of x.
  { d.Neg(x) } -> std::same_as<typename D::Scalar>;
  { d.Apply(Fn::kExp, x) } -> std::same_as<typename D::Scalar>;
};

}  // namespace tenon::ops
