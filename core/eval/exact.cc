// The reading as exact numbers mod 2^61 - 1, and the same mod a pair of primes for graphs with
// exponentials.
//
// exp(a + b) = exp(a) * exp(b) has no image in one prime field: the exponent lives modulo the order
// of the base. So a value is a pair (mod P, mod Q) with P = 6 Q + 1 prime and G of order Q mod P,
// and exp(v) = (G^(v mod Q) mod P, nothing). The exponential of a value without a second half is a
// keyed hash like the other functions. The inputs of a pair are a hash of the plain input: any two
// distinct numbers stay distinct, 0 and 1 stay themselves, which is all that random inputs need.
#include "core/eval/exact.h"

#include <cmath>
#include <limits>

#include "core/eval/dense.h"
#include "core/eval/eval.h"
#include "core/eval/function.h"

namespace tenon::eval {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kP = 6917529027641080819ull;  // 6 * kQ + 1, prime
constexpr std::uint64_t kQ = 1152921504606846803ull;  // prime
constexpr std::uint64_t kG = 64;                      // of order kQ mod kP

std::uint64_t Scramble(std::uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ull;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
std::uint64_t Hash(std::uint64_t key, std::uint64_t salt, std::uint64_t x) {
  return Scramble(Scramble(Scramble(key + 0x9e3779b97f4a7c15ull) ^ salt) ^ x);
}

// Arithmetic mod a prime below 2^63, by the compiler's 128-bit remainder.
template <std::uint64_t kMod>
struct Field {
  static std::uint64_t Add(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t s = a + b;
    return s >= kMod ? s - kMod : s;
  }
  static std::uint64_t Sub(std::uint64_t a, std::uint64_t b) {
    return a >= b ? a - b : a + kMod - b;
  }
  static std::uint64_t Mul(std::uint64_t a, std::uint64_t b) {
    return std::uint64_t(Wide(a) * b % kMod);
  }
  static std::uint64_t Power(std::uint64_t a, std::uint64_t e) {
    std::uint64_t r = 1;
    for (; e != 0; e >>= 1, a = Mul(a, a)) {
      if ((e & 1) != 0) r = Mul(r, a);
    }
    return r;
  }
  static std::uint64_t Inverse(std::uint64_t a) { return Power(a, kMod - 2); }
  static std::uint64_t Of(std::int64_t v) {
    const std::uint64_t size = v < 0 ? std::uint64_t(-(v + 1)) + 1 : std::uint64_t(v);
    return v < 0 ? Sub(0, size % kMod) : size % kMod;
  }
  // The dyadic rational that a finite double is.
  static std::uint64_t OfDouble(double v) {
    int exponent = 0;
    const auto mantissa = std::int64_t(std::ldexp(std::frexp(v, &exponent), 53));
    exponent -= 53;
    const std::uint64_t scale =
        Power(exponent < 0 ? Inverse(2) : 2, std::uint64_t(exponent < 0 ? -exponent : exponent));
    return Mul(Of(mantissa), scale);
  }
};

// The Mersenne prime has a cheaper product.
template <>
std::uint64_t Field<kPrime>::Mul(std::uint64_t a, std::uint64_t b) {
  const Wide t = Wide(a) * b;
  return Add(std::uint64_t(t) & kPrime, std::uint64_t(t >> 61));
}

using F61 = Field<kPrime>;
using FP = Field<kP>;
using FQ = Field<kQ>;

double ApproxOf(ops::Fn f, double x) {
  if (f == ops::Fn::kRelu) return x > 0 ? x : 0;
  return InDoubles(f, f == ops::Fn::kSqrt ? std::fabs(x) : x);
}

// What the prover also knows of a function at 0; nothing for the others.
std::optional<std::pair<std::int64_t, std::int64_t>> AtZero(ops::Fn f) {
  switch (f) {
    case ops::Fn::kRelu:
    case ops::Fn::kTanh:
    case ops::Fn::kSqrt:
    case ops::Fn::kErf:
      return {{0, 1}};
    case ops::Fn::kSigmoid:
      return {{1, 2}};
    case ops::Fn::kExp:
      return {{1, 1}};
    case ops::Fn::kRecip:
      return std::nullopt;
  }
  return std::nullopt;
}

// The parts that do not depend on the representation.
struct ExactBase : ConcreteSizes {
  std::uint64_t key = 0;
  bool divided_by_zero = false;
  Status status() const {
    return divided_by_zero ? base::FailedPrecondition("a reciprocal of 0; take other inputs")
                           : OkStatus();
  }
  static constexpr std::uint64_t Salt(ops::Fn f) { return 0x100 + std::uint64_t(f); }
};

// Quotients, sums and maxima, shared by both domains; D has the rest, its scalars have residue and
// approx.
template <class D, class S>
struct Folds : ExactBase {
  using Scalar = S;
  S Div(const S& a, const S& b) {
    D& d = static_cast<D&>(*this);
    return d.Mul(a, d.Apply(ops::Fn::kRecip, b));
  }
  template <class F>
  S Sum(std::int64_t n, F f) {
    D& d = static_cast<D&>(*this);
    S sum = d.Lit(0);
    for (std::int64_t k = 0; k < n; ++k) sum = d.Add(sum, f(k));
    return sum;
  }
  template <class A, class V>
  S MaxOver(const ops::Short<std::int64_t>& n, A admits, V value) {
    D& d = static_cast<D&>(*this);
    S best = d.Lit(0);
    bool any = false;
    ops::Short<std::int64_t> k = ops::Short<std::int64_t>::Filled(n.size(), 0);
    for (;;) {
      if (admits(k)) {
        const S v = value(k);
        if (!any || v.approx > best.approx) best = v;
        any = true;
      }
      int a = n.size() - 1;
      for (; a >= 0 && ++k[a] == n[a]; --a) k[a] = 0;
      if (a < 0) return best;
    }
  }
};

struct Plain : Folds<Plain, Exact> {
  Exact Lit(std::int64_t v) { return FromInteger(v); }
  Exact Real(double v) { return FromDouble(v); }
  Exact InverseOf(std::int64_t n) { return FromFraction(1, n); }
  Exact Add(const Exact& a, const Exact& b) {
    return {F61::Add(a.residue, b.residue), a.approx + b.approx};
  }
  Exact Sub(const Exact& a, const Exact& b) {
    return {F61::Sub(a.residue, b.residue), a.approx - b.approx};
  }
  Exact Mul(const Exact& a, const Exact& b) {
    return {F61::Mul(a.residue, b.residue), a.approx * b.approx};
  }
  Exact Neg(const Exact& a) { return {F61::Sub(0, a.residue), -a.approx}; }
  Exact Apply(ops::Fn f, const Exact& x) {
    if (x.residue == 0) {
      if (const auto v = AtZero(f)) return FromFraction(v->first, v->second);
      divided_by_zero = true;
      return x;
    }
    if (f == ops::Fn::kRelu) return x.approx > 0 ? x : Exact{};
    if (f == ops::Fn::kRecip) return {F61::Inverse(x.residue), 1 / x.approx};
    return {Hash(key, Salt(f), x.residue) % kPrime, ApproxOf(f, x.approx)};
  }
};
static_assert(ops::Domain<Plain>);

struct Pair {
  std::uint64_t residue = 0;   // Mod kP.
  std::uint64_t exponent = 0;  // Mod kQ.
  bool has_exponent = true;
  double approx = 0;
};

struct Paired : Folds<Paired, Pair> {
  Pair Lit(std::int64_t v) { return {FP::Of(v), FQ::Of(v), true, double(v)}; }
  Pair Real(double v) { return {FP::OfDouble(v), FQ::OfDouble(v), true, v}; }
  Pair InverseOf(std::int64_t n) {
    return {FP::Inverse(FP::Of(n)), FQ::Inverse(FQ::Of(n)), true, 1.0 / double(n)};
  }
  Pair Add(const Pair& a, const Pair& b) {
    return {FP::Add(a.residue, b.residue), FQ::Add(a.exponent, b.exponent),
            a.has_exponent && b.has_exponent, a.approx + b.approx};
  }
  Pair Sub(const Pair& a, const Pair& b) { return Add(a, Neg(b)); }
  Pair Mul(const Pair& a, const Pair& b) {
    return {FP::Mul(a.residue, b.residue), FQ::Mul(a.exponent, b.exponent),
            a.has_exponent && b.has_exponent, a.approx * b.approx};
  }
  Pair Neg(const Pair& a) {
    return {FP::Sub(0, a.residue), FQ::Sub(0, a.exponent), a.has_exponent, -a.approx};
  }
  Pair Apply(ops::Fn f, const Pair& x) {
    if (f == ops::Fn::kExp && x.has_exponent) {
      return {FP::Power(kG, x.exponent), 0, false, std::exp(x.approx)};
    }
    if (x.residue == 0) {
      if (const auto v = AtZero(f)) return v->second == 1 ? Lit(v->first) : InverseOf(v->second);
      divided_by_zero = true;
      return x;
    }
    if (f == ops::Fn::kRelu) return x.approx > 0 ? x : Lit(0);
    if (f == ops::Fn::kRecip) {
      const bool invertible = x.has_exponent && x.exponent != 0;
      return {FP::Inverse(x.residue), invertible ? FQ::Inverse(x.exponent) : 0, invertible,
              1 / x.approx};
    }
    return {Hash(key, Salt(f), x.residue) % kP, Hash(key, ~Salt(f), x.residue) % kQ, true,
            ApproxOf(f, x.approx)};
  }
  Pair FromPlain(const Exact& x) {
    if (x.residue <= 1) return Lit(std::int64_t(x.residue));
    return {Hash(key, 1, x.residue) % kP, Hash(key, 2, x.residue) % kQ, true, x.approx};
  }
};
static_assert(ops::Domain<Paired>);

bool HasExponential(const ops::Operator& op) {
  return std::holds_alternative<ops::Exp>(op) || std::holds_alternative<ops::Softmax>(op);
}

}  // namespace

std::uint64_t AddMod(std::uint64_t a, std::uint64_t b) { return F61::Add(a, b); }
std::uint64_t MulMod(std::uint64_t a, std::uint64_t b) { return F61::Mul(a, b); }
std::uint64_t InverseMod(std::uint64_t a) { return F61::Inverse(a); }

Exact FromInteger(std::int64_t v) { return {F61::Of(v), double(v)}; }
Exact FromFraction(std::int64_t numerator, std::int64_t denominator) {
  return {F61::Mul(F61::Of(numerator), F61::Inverse(F61::Of(denominator))),
          double(numerator) / double(denominator)};
}
Exact FromDouble(double v) { return {F61::OfDouble(v), v}; }

StatusOr<Tensor<Exact>> Apply(const ops::Operator& op,
                              std::span<const Tensor<Exact>* const> operands, std::uint64_t key) {
  Plain d;
  d.key = key;
  return ApplyDense(d, op, operands);
}

StatusOr<std::vector<Tensor<Exact>>> Evaluate(const graph::Graph& g,
                                              std::span<const graph::NodeId> roots,
                                              std::span<const Tensor<Exact>> inputs,
                                              std::uint64_t key) {
  bool exponential = false;
  for (graph::NodeId id : g.Reachable(roots)) {
    exponential = exponential || (!g.node(id).is_input() && HasExponential(*g.node(id).op));
  }
  if (!exponential) {
    return EvaluateDense<Exact>(
        g, roots, inputs, [key](const ops::Operator& op, std::span<const Tensor<Exact>* const> in) {
          return Apply(op, in, key);
        });
  }
  Paired d;
  d.key = key;
  std::vector<Tensor<Pair>> pairs;
  for (const Tensor<Exact>& t : inputs) {
    Tensor<Pair> p{t.extents, {}};
    for (const Exact& x : t.data) p.data.push_back(d.FromPlain(x));
    pairs.push_back(std::move(p));
  }
  ASSIGN_OR_RETURN(
      const auto values,
      EvaluateDense<Pair>(g, roots, std::span<const Tensor<Pair>>(pairs),
                          [&](const ops::Operator& op, std::span<const Tensor<Pair>* const> in) {
                            return ApplyDense(d, op, in);
                          }));
  std::vector<Tensor<Exact>> out;
  for (const Tensor<Pair>& t : values) {
    Tensor<Exact> e{t.extents, {}};
    for (const Pair& x : t.data) e.data.push_back({x.residue, x.approx});
    out.push_back(std::move(e));
  }
  return out;
}

}  // namespace tenon::eval
