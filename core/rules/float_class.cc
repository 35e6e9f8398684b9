// One more reading of the operator structs. A scalar is a hash of the computation, the exact number
// beside it (functions are compared by their real arguments: exp(a + b) and exp(b + a) are the same
// function application), and the set of what it depends on.
//
// IEEE facts that are used: + and * commute; the sign of a product is the product of the signs;
// x * 1 is x; -(-x) is x; relu(relu x) is relu x; 0 + 0 is 0. A product with a structural zero
// (padding) depends on nothing: kernels skip it or add 0 to a sum that started at 0.
#include "core/rules/float_class.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "core/eval/dense.h"
#include "core/eval/exact.h"
#include "core/rules/instance.h"

namespace tenon::rules {
namespace {

using Uses = std::shared_ptr<const std::vector<std::uint64_t>>;  // Sorted; null: nothing.

constexpr std::uint64_t kMinus = 0x8000'0000'0000'0001ull;

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdull;
  x ^= x >> 32;
  return x * 0xc4ceb9fe1a85ec53ull;
}

enum Tag : std::uint64_t {
  kLiteral = 1,
  kInverse,
  kAdd,
  kMul,
  kSum,
  kMax,
  kFunction,
  kLeaf,
  kQuotient
};

// How a kernel computes one element.
struct Trace {
  std::uint64_t bits = 0;  // Equal computations have equal bits; xor kMinus for the negative.
  eval::Exact value;
  Uses uses;
  bool negative = false;    // `bits` includes kMinus.
  bool arithmetic = false;  // Something was computed, not just copied.
  bool sum = false;         // A sum is in it.
  bool rectified = false;   // The result of relu.
  bool zero = false;        // A structural zero, or a product with one.
  bool one = false;         // The literal 1.
  bool positive = false;    // Never below 0.
  // A sum of numbers of unknown signs is in it: where they cancel, little but rounding is left, and
  // a reciprocal or a root makes that large.
  bool cancels = false;

  std::uint64_t unsigned_bits() const { return negative ? bits ^ kMinus : bits; }
};

Uses Union(const Uses& a, const Uses& b) {
  if (a == nullptr || a == b) return b;
  if (b == nullptr) return a;
  std::vector<std::uint64_t> out;
  std::set_union(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(out));
  return std::make_shared<const std::vector<std::uint64_t>>(std::move(out));
}
Uses With(const Uses& a, std::uint64_t item) {
  return Union(a, std::make_shared<const std::vector<std::uint64_t>>(1, item));
}
bool Same(const Uses& a, const Uses& b) {
  const bool a_empty = a == nullptr || a->empty(), b_empty = b == nullptr || b->empty();
  return a_empty || b_empty ? a_empty == b_empty : *a == *b;
}

struct Computation : eval::ConcreteSizes {
  using Scalar = Trace;
  Status status() const { return OkStatus(); }

  Trace Lit(std::int64_t v) {
    Trace t;
    t.bits = Mix(kLiteral, std::bit_cast<std::uint64_t>(double(v)));
    t.value = eval::FromInteger(v);
    t.zero = v == 0;
    t.one = v == 1;
    t.positive = v >= 0;
    return t;
  }
  Trace Real(double v) {
    Trace t;
    t.bits = Mix(kLiteral, std::bit_cast<std::uint64_t>(v));
    t.value = eval::FromDouble(v);
    t.one = v == 1;
    t.positive = v >= 0;
    // A zero that somebody wrote, unlike padding, is multiplied and added.
    if (v == 0) t.uses = With(nullptr, Mix(kLiteral, 0));
    return t;
  }
  Trace InverseOf(std::int64_t n) {
    if (n == 1) return Lit(1);
    Trace t;
    t.bits = Mix(kInverse, std::uint64_t(n));
    t.value = eval::FromFraction(1, n);
    t.positive = true;
    return t;
  }
  Trace Add(const Trace& a, const Trace& b) {
    if (PlainZero(a) && PlainZero(b)) return a;
    Trace t = Both(a, b);
    t.positive = a.positive && b.positive;
    t.cancels = t.cancels || !(t.positive || PlainZero(a) || PlainZero(b));
    t.bits = Mix(Mix(kAdd, std::min(a.bits, b.bits)), std::max(a.bits, b.bits));
    t.value = {eval::AddMod(a.value.residue, b.value.residue), a.value.approx + b.value.approx};
    return t;
  }
  Trace Sub(const Trace& a, const Trace& b) { return Add(a, Neg(b)); }
  Trace Neg(const Trace& a) {
    Trace t = a;
    t.bits ^= kMinus;
    t.negative = !a.negative;
    t.rectified = t.one = t.positive = false;
    const eval::Exact minus = eval::FromInteger(-1);
    t.value = {eval::MulMod(a.value.residue, minus.residue), -a.value.approx};
    return t;
  }
  Trace Mul(const Trace& a, const Trace& b) {
    if (a.one) return b;
    if (b.one) return a;
    Trace t = Both(a, b);
    t.zero = a.zero || b.zero;
    if (t.zero) t.uses = nullptr;
    t.negative = a.negative != b.negative;
    const std::uint64_t x = a.unsigned_bits(), y = b.unsigned_bits();
    t.positive = !t.negative && ((a.positive && b.positive) || x == y);
    t.bits = Mix(Mix(kMul, std::min(x, y)), std::max(x, y)) ^ (t.negative ? kMinus : 0);
    t.value = {eval::MulMod(a.value.residue, b.value.residue), a.value.approx * b.value.approx};
    return t;
  }
  // The reciprocal is in it as far as ranges go, and rounded in one step with the product.
  Trace Div(const Trace& a, const Trace& b) {
    const Trace inverse = Apply(ops::Fn::kRecip, b);
    if (a.one) return inverse;
    if (b.one) return a;
    Trace t = Mul(a, inverse);
    t.zero = false;
    t.uses = Union(a.uses, inverse.uses);
    t.negative = a.negative != b.negative;
    t.bits = Mix(Mix(kQuotient, a.unsigned_bits()), b.unsigned_bits()) ^ (t.negative ? kMinus : 0);
    return t;
  }
  Trace Apply(ops::Fn f, const Trace& a) {
    if (f == ops::Fn::kRelu) {
      if (a.rectified || PlainZero(a)) return a;
      Trace t = a;
      t.bits = Mix(Mix(kFunction, std::uint64_t(f)), a.bits);
      t.negative = t.one = t.zero = false;
      t.rectified = t.positive = true;
      if (!(a.value.approx > 0)) t.value = {};
      return t;
    }
    Trace t;
    t.bits = Mix(Mix(kFunction, std::uint64_t(f)), a.bits);
    t.arithmetic = true;
    t.sum = a.sum;
    t.positive = f == ops::Fn::kExp || f == ops::Fn::kSigmoid || f == ops::Fn::kSqrt || a.positive;
    // An absolute error of the argument is a relative one of exp and sigmoid.
    t.cancels = a.cancels && f != ops::Fn::kExp && f != ops::Fn::kSigmoid;
    const bool steep = f == ops::Fn::kRecip || f == ops::Fn::kSqrt;
    const std::uint64_t application =
        Mix(Mix(kFunction, 64 + std::uint64_t(f)), steep && a.cancels ? a.bits : a.value.residue);
    // Of constants, such as the number of elements under a window, everybody knows the value.
    t.uses = a.uses == nullptr || a.uses->empty() ? a.uses : With(a.uses, application);
    if (f == ops::Fn::kRecip && a.value.residue != 0) {
      t.value = {eval::InverseMod(a.value.residue), 1 / a.value.approx};
    } else {
      const std::uint64_t real = Mix(Mix(kFunction, 64 + std::uint64_t(f)), a.value.residue);
      t.value = {real % eval::kPrime, 0.5 + double(real >> 40) / 1e8};
    }
    return t;
  }
  template <class F>
  Trace Sum(std::int64_t n, F f) {
    Trace t;
    t.bits = Mix(kSum, std::uint64_t(n));
    t.arithmetic = t.sum = t.positive = true;
    for (std::int64_t k = 0; k < n; ++k) {
      const Trace x = f(k);
      t.bits = Mix(t.bits, x.bits);
      t.uses = Union(t.uses, x.uses);
      t.positive = t.positive && x.positive;
      t.cancels = t.cancels || x.cancels;
      t.value = {eval::AddMod(t.value.residue, x.value.residue), t.value.approx + x.value.approx};
    }
    t.cancels = t.cancels || (n > 1 && !t.positive);
    return t;
  }
  template <class A, class V>
  Trace MaxOver(const ops::Short<std::int64_t>& n, A admits, V value) {
    Trace best, t;
    std::uint64_t count = 0;
    ops::Short<std::int64_t> k = ops::Short<std::int64_t>::Filled(n.size(), 0);
    for (;;) {
      if (admits(k)) {
        const Trace x = value(k);
        if (count == 0 || x.value.approx > best.value.approx) best = x;
        t.bits = Mix(t.bits, x.bits);
        // A 0 among them makes what Relu makes.
        if (x.bits != Mix(kLiteral, std::bit_cast<std::uint64_t>(0.0))) {
          t.uses = Union(t.uses, x.uses);
        }
        t.arithmetic = t.arithmetic || x.arithmetic;
        t.sum = t.sum || x.sum;
        t.positive = t.positive || x.positive;
        t.cancels = t.cancels || x.cancels;
        ++count;
      }
      int a = n.size() - 1;
      for (; a >= 0 && ++k[a] == n[a]; --a) k[a] = 0;
      if (a < 0) break;
    }
    if (count == 1) return best;
    t.bits = Mix(Mix(kMax, count), t.bits);
    t.value = best.value;
    return t;
  }

 private:
  static bool PlainZero(const Trace& t) { return t.zero && !t.arithmetic && !t.negative; }
  static Trace Both(const Trace& a, const Trace& b) {
    Trace t;
    t.uses = Union(a.uses, b.uses);
    t.arithmetic = true;
    t.sum = a.sum || b.sum;
    t.cancels = a.cancels || b.cancels;
    return t;
  }
};
static_assert(ops::Domain<Computation>);

FloatClass ClassOf(const Trace& a, const Trace& b) {
  if (a.bits == b.bits && !a.sum && !b.sum) return FloatClass::kExact;
  if (!Same(a.uses, b.uses) || a.arithmetic != b.arithmetic) return FloatClass::kDomain;
  if (a.zero && b.zero && a.negative != b.negative) return FloatClass::kDomain;
  return FloatClass::kFinite;
}

eval::Tensor<Trace> RandomLeaves(const graph::Extents& extents, std::size_t input, Dice& dice) {
  const eval::Tensor<eval::Exact> values = RandomTensor(extents, dice);
  eval::Tensor<Trace> out{extents, {}};
  for (std::size_t k = 0; k < values.data.size(); ++k) {
    Trace t;
    t.bits = Mix(Mix(kLeaf, input), k);
    t.value = values.data[k];
    t.uses = With(nullptr, t.bits);
    out.data.push_back(std::move(t));
  }
  return out;
}

}  // namespace

FloatClass FloatClassOf(const Rule& rule, std::uint64_t seed) {
  constexpr int kTrials = 8;
  Dice dice(seed);
  FloatClass worst = FloatClass::kExact;
  bool seen = false;
  std::vector<graph::NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto values = RandomValues(rule, dice, 4);
    if (!values) continue;
    const auto g = graph::Instantiate(rule.graph, roots, *values);
    if (!g.ok()) continue;
    std::vector<eval::Tensor<Trace>> inputs;
    for (std::size_t k = 0; k < g->inputs().size(); ++k) {
      inputs.push_back(RandomLeaves(graph::Concrete(g->shape(g->input_node(int(k)))), k, dice));
    }
    Computation d;
    const auto out = eval::EvaluateDense<Trace>(
        *g, g->outputs(), std::span<const eval::Tensor<Trace>>(inputs),
        [&](const ops::Operator& op, std::span<const eval::Tensor<Trace>* const> in) {
          return eval::ApplyDense(d, op, in);
        });
    if (!out.ok()) continue;
    seen = true;
    const std::size_t half = rule.source.size();
    for (std::size_t k = 0; k < half; ++k) {
      const auto& a = (*out)[k].data;
      const auto& b = (*out)[half + k].data;
      if (a.size() != b.size()) return FloatClass::kDomain;
      for (std::size_t e = 0; e < a.size(); ++e) worst = std::max(worst, ClassOf(a[e], b[e]));
    }
  }
  return seen ? worst : FloatClass::kDomain;
}

}  // namespace tenon::rules
