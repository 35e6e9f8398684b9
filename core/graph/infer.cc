// The symbolic shape domain: an Index is a polynomial, a Bool a conjunction of conditions. Only
// Infer is run on it, so elements are a type without values.
#include "core/graph/infer.h"

#include <fmt/core.h>

namespace tenon::graph {
namespace {

struct ShapeDomain {
  struct Scalar {};
  using Index = base::Poly;
  using Bool = std::vector<base::Condition>;

  base::Symbols& symbols;
  std::vector<base::Condition> requirements;
  const char* error = nullptr;  // The first violation.

  Index Const(std::int64_t v) { return v; }
  Index Value(const ops::Size& s) { return s; }
  Index FloorDiv(const Index& n, const Index& d) { return symbols.FloorDiv(n, d); }
  Bool Lt(const Index& a, const Index& b) { return {base::Lt(a, b)}; }
  Bool Le(const Index& a, const Index& b) { return {base::Ge(b, a)}; }
  Bool Eq(const Index& a, const Index& b) { return {base::Eq(a, b)}; }
  Bool And(const Bool& a, const Bool& b) {
    Bool all = a;
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }
  bool IsOne(const Index& i) { return i.is_constant(1); }
  void Require(const Bool& all, const char* why) {
    for (const base::Condition& c : all) {
      if (!c.p.valid()) {
        Static(false, "a size overflows");
        return;
      }
      const auto decided = base::Trivial(c);
      if (!decided) {
        requirements.push_back(c);
      } else if (!*decided) {
        Static(false, why);
      }
    }
  }
  bool Static(bool ok, const char* why) {
    if (!ok && error == nullptr) error = why;
    return ok;
  }
  // Never called: Infer computes no elements.
  Scalar Lit(std::int64_t) { return {}; }
  Scalar Real(double) { return {}; }
  Scalar InverseOf(const Index&) { return {}; }
  Scalar Add(Scalar, Scalar) { return {}; }
  Scalar Sub(Scalar, Scalar) { return {}; }
  Scalar Mul(Scalar, Scalar) { return {}; }
  Scalar Div(Scalar, Scalar) { return {}; }
  Scalar Neg(Scalar) { return {}; }
  Scalar Apply(ops::Fn, Scalar) { return {}; }
};
static_assert(ops::Domain<ShapeDomain>);

struct Operands {
  std::span<const Shape> shapes;
  int size() const { return int(shapes.size()); }
  int rank(int k) const { return shapes[std::size_t(k)].size(); }
  const base::Poly& extent(int k, int a) const { return shapes[std::size_t(k)][a]; }
  const Shape& extents(int k) const { return shapes[std::size_t(k)]; }
};

}  // namespace

StatusOr<Inferred> InferShape(const ops::Operator& op, std::span<const Shape> operands,
                              base::Symbols& symbols) {
  const ops::Info& info = ops::InfoOf(op);
  const int count = int(operands.size());
  if (count < info.arity_min || count > info.arity_max) {
    return base::InvalidArgument(fmt::format(
        "{} takes {} operands, not {}", info.name,
        info.arity_min == info.arity_max ? fmt::format("{}", info.arity_min)
                                         : fmt::format("{} to {}", info.arity_min, info.arity_max),
        count));
  }
  ShapeDomain d{symbols, {}, nullptr};
  Inferred out;
  out.shape = std::visit([&](const auto& o) { return o.Infer(d, Operands{operands}); }, op);
  if (d.error != nullptr) {
    return base::InvalidArgument(fmt::format("{}: {}", info.name, d.error));
  }
  for (const base::Poly& extent : out.shape) {
    if (!extent.valid())
      return base::InvalidArgument(fmt::format("{}: a size overflows", info.name));
  }
  out.requirements = std::move(d.requirements);
  return out;
}

}  // namespace tenon::graph
