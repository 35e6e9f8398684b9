// The reading that counts arithmetic. One element is representative: every element of an operator
// here takes equally much, the padding counted as if it were computed.
#include <algorithm>

#include "core/eval/dense.h"
#include "core/eval/eval.h"

namespace tenon::eval {
namespace {

struct Counter : ConcreteSizes {
  struct Scalar {};
  double flops = 0;
  int depth = 0;  // Of the sums that are open.

  Scalar Lit(std::int64_t) { return {}; }
  Scalar Real(double) { return {}; }
  Scalar InverseOf(std::int64_t) { return {}; }
  Scalar Add(Scalar, Scalar) { return Count(1); }
  Scalar Sub(Scalar, Scalar) { return Count(1); }
  Scalar Mul(Scalar, Scalar) { return Count(1); }
  Scalar Div(Scalar, Scalar) { return Count(1); }
  Scalar Neg(Scalar) { return Count(1); }
  Scalar Apply(ops::Fn f, Scalar) { return Count(f == ops::Fn::kRelu ? 1 : 8); }
  // The dearer branch: bounds are those of one element, the count is for all.
  template <class T, class E>
  Scalar Select(Bool, T then, E otherwise) {
    const double before = flops;
    then();
    const double with_then = flops;
    flops = before;
    otherwise();
    flops = std::max(flops, with_then);
    return {};
  }
  template <class F>
  Scalar Sum(std::int64_t n, F f) {
    const double before = flops;
    ++depth;
    f(0);
    --depth;
    // Nested sums count as one long sum into an accumulator: an addition for each innermost term.
    flops = n == 0 ? before : before + double(n) * (flops - before + 1) - (depth > 0 ? 1 : 0);
    return {};
  }
  template <class A, class V>
  Scalar MaxOver(const ops::Short<std::int64_t>& n, A, V value) {
    const double before = flops;
    value(ops::Short<std::int64_t>::Filled(n.size(), 0));
    double count = 1;
    for (std::int64_t e : n) count *= double(e);
    flops = before + count * (flops - before + 1);
    return {};
  }
  Scalar Count(double n) {
    flops += n;
    return {};
  }
};
static_assert(ops::Domain<Counter>);

struct CountedOperands {
  std::span<const graph::Extents> all;
  int size() const { return int(all.size()); }
  int rank(int k) const { return all[std::size_t(k)].size(); }
  std::int64_t extent(int k, int a) const { return all[std::size_t(k)][a]; }
  const graph::Extents& extents(int k) const { return all[std::size_t(k)]; }
  Counter::Scalar operator()(int, const ops::Short<std::int64_t>&) const { return {}; }
};

double ElementsOf(const graph::Extents& extents) {
  double n = 1;  // Beyond 64 bits is a size, too.
  for (std::int64_t e : extents) n *= double(e);
  return n;
}

}  // namespace

Work WorkOf(const ops::Operator& op, std::span<const graph::Extents> operands,
            const graph::Extents& output) {
  CHECK(!ops::IsOpaque(op));
  Work work;
  for (const graph::Extents& e : operands) work.elements_in += ElementsOf(e);
  work.elements_out = ElementsOf(output);
  Counter d;
  const auto at = ops::Short<std::int64_t>::Filled(output.size(), 0);
  std::visit([&](const auto& o) { o.Element(d, CountedOperands{operands}, at); }, op);
  work.flops = d.flops * work.elements_out;
  return work;
}

}  // namespace tenon::eval
