// The strictest Domain: its values convert to nothing and compare to nothing usable in an `if`.
// Every operator is compiled against it (core/ops/operator.cc), so that an operator that works for
// concrete sizes only does not compile.
#pragma once

#include <concepts>
#include <type_traits>

#include "core/ops/info.h"

namespace tenon::ops {

struct Archetype {
  struct Scalar {};
  struct Bool {};
  struct Index {
    friend Index operator+(const Index&, const Index&) { return {}; }
    friend Index operator-(const Index&, const Index&) { return {}; }
    friend Index operator*(const Index&, const Index&) { return {}; }
  };
  Index Const(std::int64_t) { return {}; }
  Index Value(const Size&) { return {}; }
  Index FloorDiv(const Index&, const Index&) { return {}; }
  Bool Lt(const Index&, const Index&) { return {}; }
  Bool Le(const Index&, const Index&) { return {}; }
  Bool Eq(const Index&, const Index&) { return {}; }
  Bool And(Bool, Bool) { return {}; }
  bool IsOne(const Index&) { return false; }
  void Require(Bool, const char*) {}
  bool Static(bool ok, const char*) { return ok; }
  Scalar Lit(std::int64_t) { return {}; }
  Scalar Real(double) { return {}; }
  Scalar InverseOf(const Index&) { return {}; }
  Scalar Add(Scalar, Scalar) { return {}; }
  Scalar Sub(Scalar, Scalar) { return {}; }
  Scalar Mul(Scalar, Scalar) { return {}; }
  Scalar Div(Scalar, Scalar) { return {}; }
  Scalar Neg(Scalar) { return {}; }
  Scalar Apply(Fn, Scalar) { return {}; }
  template <class T, class E>
  Scalar Select(Bool, T then, E otherwise) {
    then();
    return otherwise();
  }
  template <class F>
  Scalar Sum(const Index& n, F f) {
    return f(n);
  }
  template <class A, class V>
  Scalar MaxOver(const Short<Index>& n, A admits, V value) {
    Bool b = admits(n);
    (void)b;
    return value(n);
  }
  template <class F>
  Scalar Block(const Index& i, const Index&, const Index&, F f) {
    return f(i);
  }
  template <class F>
  Scalar Reindex(const Short<Index>& from, const Short<Index>&, const Short<Index>&, F f) {
    return f(from);
  }

  struct In {  // The strictest operand list.
    int size() const { return 2; }
    int rank(int) const { return 2; }
    Index extent(int, int) const { return {}; }
    Short<Index> extents(int) const { return {Index{}, Index{}}; }
    Scalar operator()(int, const Short<Index>&) const { return {}; }
  };
};
static_assert(Domain<Archetype>);

// What a type must offer to be an operator. A missing facet is a compile error that names it.
template <class Op>
concept Definition = std::equality_comparable<Op> && std::is_default_constructible_v<Op> &&
    requires(const Op& op, Archetype& d, const Archetype::In& in, const At<Archetype>& at) {
  { Op::kInfo } -> std::convertible_to<Info>;
  {Op::Fields()};
  { op.Infer(d, in) } -> std::same_as<Extents<Archetype>>;
  { op.Element(d, in, at) } -> std::same_as<Archetype::Scalar>;
};

}  // namespace tenon::ops
