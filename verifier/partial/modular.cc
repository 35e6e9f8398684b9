// One more reading of the operators: each element by its definition, down to the inputs. Nothing is
// kept between elements, since few are asked for.
#include "verifier/partial/modular.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include <fmt/core.h>

#include "core/eval/dense.h"

namespace tenon::partial {

using graph::Graph;
using graph::NodeId;

namespace {

constexpr int kReadsMax = 4'000'000;

using Wide = unsigned __int128;
using Index = std::int64_t;

struct GaveUp {};  // Caught in Modular::At.

std::uint64_t Next(std::uint64_t& state) {  // SplitMix64.
  state += 0x9e3779b97f4a7c15ull;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

class ModularDomain : public eval::ConcreteSizes {
 public:
  using Scalar = std::uint64_t;

  ModularDomain(const Graph& g, std::uint64_t prime,
                const std::vector<std::vector<std::uint64_t>>& inputs)
      : g_(g), p_(prime), inputs_(inputs) {}

  Scalar Lit(std::int64_t v) {
    const auto p = static_cast<std::int64_t>(p_);
    return static_cast<Scalar>((v % p + p) % p);
  }
  // A finite double is an integer times a power of two.
  Scalar Real(double v) {
    int exponent = 0;
    const auto mantissa = static_cast<std::int64_t>(std::ldexp(std::frexp(v, &exponent), 53));
    exponent -= 53;
    const Scalar base = exponent < 0 ? Inverse(2 % p_) : 2 % p_;
    return Mul(Lit(mantissa), Power(base, static_cast<Scalar>(std::abs(exponent))));
  }
  Scalar InverseOf(Index n) { return Inverse(Lit(n)); }
  Scalar Add(Scalar a, Scalar b) { return static_cast<Scalar>((Wide(a) + b) % p_); }
  Scalar Sub(Scalar a, Scalar b) { return Add(a, Neg(b)); }
  Scalar Neg(Scalar a) { return a == 0 ? 0 : p_ - a; }
  Scalar Mul(Scalar a, Scalar b) { return static_cast<Scalar>(Wide(a) * b % p_); }
  Scalar Div(Scalar a, Scalar b) { return Mul(a, Inverse(b)); }
  // The one function that operators of a polynomial use: of how many elements there are.
  Scalar Apply(ops::Fn fn, Scalar a) {
    if (fn != ops::Fn::kRecip) throw GaveUp();
    return Inverse(a);
  }
  template <class F>
  Scalar Sum(Index n, F f) {
    Scalar sum = 0;
    for (Index k = 0; k < n; ++k) sum = Add(sum, f(k));
    return sum;
  }
  template <class A, class V>
  Scalar MaxOver(const ops::Short<Index>&, A, V) {
    throw GaveUp();
  }

  Scalar Element(NodeId id, const ops::Short<Index>& at) {
    if (++reads_ > kReadsMax) throw GaveUp();
    const graph::Node& node = g_.node(id);
    if (node.is_input()) {
      std::int64_t number = 0;
      for (int a = 0; a < at.size(); ++a) {
        number = number * node.shape()[a].constant() + at[a];
      }
      return inputs_[static_cast<std::size_t>(node.input)][static_cast<std::size_t>(number)];
    }
    const Operands in(*this, node);
    return std::visit([&](const auto& op) -> Scalar { return op.Element(*this, in, at); },
                      *node.op);
  }

 private:
  class Operands {
   public:
    Operands(ModularDomain& d, const graph::Node& node) : d_(d), node_(node) {
      for (const NodeId id : node.operands) extents_.push_back(graph::Concrete(d.g_.shape(id)));
    }
    int size() const { return static_cast<int>(extents_.size()); }
    int rank(int k) const { return extents(k).size(); }
    Index extent(int k, int a) const { return extents(k)[a]; }
    const graph::Extents& extents(int k) const { return extents_[static_cast<std::size_t>(k)]; }
    Scalar operator()(int k, const ops::Short<Index>& at) const {
      return d_.Element(node_.operands[static_cast<std::size_t>(k)], at);
    }

   private:
    ModularDomain& d_;
    const graph::Node& node_;
    std::vector<graph::Extents> extents_;
  };

  Scalar Power(Scalar a, std::uint64_t e) {
    Scalar r = 1 % p_;
    for (; e != 0; e >>= 1, a = Mul(a, a)) {
      if ((e & 1) != 0) r = Mul(r, a);
    }
    return r;
  }
  Scalar Inverse(Scalar a) {
    if (a == 0) throw GaveUp();
    return Power(a, p_ - 2);
  }

  const Graph& g_;
  const std::uint64_t p_;
  const std::vector<std::vector<std::uint64_t>>& inputs_;
  int reads_ = 0;
};

// How the degree of an operator's elements follows from those of its operands.
enum class Growth { kGreatest, kSum, kNone };

template <class Op>
constexpr Growth GrowthOf(const Op& op) {
  using namespace ops;
  if constexpr (std::is_same_v<Op, Mul> || std::is_same_v<Op, MatMul>) {
    return Growth::kSum;
  } else if constexpr (std::is_same_v<Op, Conv>) {
    return op.activation == Activation::kNone ? Growth::kSum : Growth::kNone;
  } else if constexpr (Op::kInfo.nature == Nature::kMovement ||
                       Op::kInfo.nature == Nature::kConstant || std::is_same_v<Op, ops::Add> ||
                       std::is_same_v<Op, Sub> || std::is_same_v<Op, Neg> ||
                       std::is_same_v<Op, ReduceSum> || std::is_same_v<Op, ReduceMean> ||
                       std::is_same_v<Op, AveragePool> || std::is_same_v<Op, GlobalAveragePool>) {
    return Growth::kGreatest;
  } else {
    return Growth::kNone;
  }
}

}  // namespace

StatusOr<int> DegreeOf(const Graph& g, NodeId node) {
  std::vector<int> degree(g.size(), 0);
  const std::vector<NodeId> roots{node};
  for (const NodeId id : g.Reachable(roots)) {
    const graph::Node& n = g.node(id);
    int& own = degree[static_cast<std::size_t>(id)];
    if (n.is_input()) {
      own = 1;
      continue;
    }
    const Growth growth = std::visit([](const auto& op) { return GrowthOf(op); }, *n.op);
    if (growth == Growth::kNone) {
      return base::FailedPrecondition(
          fmt::format("{} is no polynomial in its operands", ops::NameOf(*n.op)));
    }
    // The first two operands of a Conv are multiplied; what is added has its own degree.
    for (std::size_t k = 0; k < n.operands.size(); ++k) {
      const int d = degree[static_cast<std::size_t>(n.operands[k])];
      own = growth == Growth::kSum && k < 2 ? own + d : std::max(own, d);
    }
  }
  return degree[static_cast<std::size_t>(node)];
}

Modular::Modular(const Graph& g, std::uint64_t prime, std::uint64_t seed) : g_(g), prime_(prime) {
  std::uint64_t state = seed;
  // Values above the largest multiple of the prime would favour small residues.
  const std::uint64_t end = ~std::uint64_t{0} - ~std::uint64_t{0} % prime;
  for (std::size_t k = 0; k < g.inputs().size(); ++k) {
    const NodeId id = g.input_node(static_cast<std::int32_t>(k));
    std::vector<std::uint64_t> values;
    for (std::int64_t n = graph::ElementCount(graph::Concrete(g.shape(id))); n > 0; --n) {
      std::uint64_t v = Next(state);
      while (v >= end) v = Next(state);
      values.push_back(v % prime);
    }
    inputs_.push_back(std::move(values));
  }
}

std::optional<std::uint64_t> Modular::At(NodeId node, const graph::Extents& position) const {
  try {
    return ModularDomain(g_, prime_, inputs_).Element(node, position);
  } catch (const GaveUp&) {
    return std::nullopt;
  }
}

}  // namespace tenon::partial
