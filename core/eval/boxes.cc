// Interval arithmetic over the index expressions of Element. A condition that an interval does not
// decide explores both branches, so the result is an over-approximation; what is read is clipped to
// the operand, since an operator never reads outside it (that is what its conditions are for).
#include "core/eval/boxes.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/integer.h"

namespace tenon::eval {
namespace {

// A closed interval.
struct Interval {
  std::int64_t lo = 0;
  std::int64_t hi = 0;
  friend Interval operator+(const Interval& a, const Interval& b) {
    return {a.lo + b.lo, a.hi + b.hi};
  }
  friend Interval operator-(const Interval& a, const Interval& b) {
    return {a.lo - b.hi, a.hi - b.lo};
  }
  friend Interval operator*(const Interval& a, const Interval& b) {
    const auto [least, most] = std::minmax({a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi});
    return {least, most};
  }
};

struct Maybe {
  bool can_hold = true;
  bool can_fail = true;
};

using base::FloorDivide;

struct Boxes {
  struct Scalar {};
  using Index = Interval;
  using Bool = Maybe;

  Index Const(std::int64_t v) { return {v, v}; }
  Index Value(const ops::Size& s) { return Const(s.constant()); }
  Index FloorDiv(const Index& n, const Index& d) {
    CHECK(d.lo >= 1);
    const auto [lo, hi] = std::minmax({FloorDivide(n.lo, d.lo), FloorDivide(n.lo, d.hi),
                                       FloorDivide(n.hi, d.lo), FloorDivide(n.hi, d.hi)});
    return {lo, hi};
  }
  Bool Lt(const Index& a, const Index& b) { return {a.lo < b.hi, a.hi >= b.lo}; }
  Bool Le(const Index& a, const Index& b) { return {a.lo <= b.hi, a.hi > b.lo}; }
  Bool Eq(const Index& a, const Index& b) {
    return {a.lo <= b.hi && b.lo <= a.hi, a.lo != a.hi || b.lo != b.hi || a.lo != b.lo};
  }
  Bool And(Bool a, Bool b) { return {a.can_hold && b.can_hold, a.can_fail || b.can_fail}; }
  bool IsOne(const Index& i) { return i.lo == 1 && i.hi == 1; }
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
  Scalar Apply(ops::Fn, Scalar) { return {}; }
  template <class T, class E>
  Scalar Select(Bool b, T then, E otherwise) {
    if (b.can_hold) then();
    if (b.can_fail) otherwise();
    return {};
  }
  template <class F>
  Scalar Sum(const Index& n, F f) {
    return f(Index{0, n.hi - 1});
  }
  template <class A, class V>
  Scalar MaxOver(const ops::Short<Index>& n, A, V value) {
    ops::Short<Index> k;
    for (const Index& extent : n) k.push_back({0, extent.hi - 1});
    return value(k);
  }
  template <class F>
  Scalar Block(const Index& i, const Index&, const Index& size, F f) {
    return f(FloorDiv(i, size));
  }
  // Exact for one element; else exact on the first axis that varies and everything after it.
  template <class F>
  Scalar Reindex(const ops::Short<Index>& from, const ops::Short<Index>& to,
                 const ops::Short<Index>& at, F f) {
    std::int64_t lo = 0, hi = 0;
    for (int a = 0; a < to.size(); ++a) {
      lo = lo * to[a].lo + at[a].lo;
      hi = hi * to[a].lo + at[a].hi;
    }
    ops::Short<Index> position = from;
    std::int64_t inner = 1;
    for (const Index& extent : from) inner *= extent.lo;
    bool whole = false;
    for (int a = 0; a < from.size(); ++a) {
      inner /= from[a].lo;
      position[a] = whole ? Index{0, from[a].lo - 1} : Index{lo / inner, hi / inner};
      whole = whole || lo / inner != hi / inner;
      lo %= inner;
      hi %= inner;
    }
    return f(position);
  }
};
static_assert(ops::Domain<Boxes>);

struct Tracked {
  std::span<const graph::Extents> all;
  std::vector<std::optional<Box>>* boxes;
  int size() const { return int(all.size()); }
  int rank(int k) const { return all[std::size_t(k)].size(); }
  Interval extent(int k, int a) const { return {all[std::size_t(k)][a], all[std::size_t(k)][a]}; }
  ops::Short<Interval> extents(int k) const {
    ops::Short<Interval> out;
    for (int a = 0; a < rank(k); ++a) out.push_back(extent(k, a));
    return out;
  }
  Boxes::Scalar operator()(int k, const ops::Short<Interval>& at) const {
    Box read;
    for (int a = 0; a < at.size(); ++a) {
      read.begin.push_back(std::max<std::int64_t>(at[a].lo, 0));
      read.end.push_back(std::min(at[a].hi + 1, all[std::size_t(k)][a]));
      if (read.begin[a] >= read.end[a]) return {};
    }
    std::optional<Box>& box = (*boxes)[std::size_t(k)];
    if (!box) {
      box = read;
      return {};
    }
    for (int a = 0; a < at.size(); ++a) {
      box->begin[a] = std::min(box->begin[a], read.begin[a]);
      box->end[a] = std::max(box->end[a], read.end[a]);
    }
    return {};
  }
};

}  // namespace

std::vector<std::optional<Box>> BoxesRead(const ops::Operator& op,
                                          std::span<const graph::Extents> operands,
                                          const Box& output) {
  CHECK(!ops::IsOpaque(op));
  std::vector<std::optional<Box>> boxes(operands.size());
  ops::Short<Interval> at;
  for (int a = 0; a < output.begin.size(); ++a) {
    at.push_back({output.begin[a], output.end[a] - 1});
  }
  Boxes d;
  std::visit([&](const auto& o) { o.Element(d, Tracked{operands, &boxes}, at); }, op);
  return boxes;
}

}  // namespace tenon::eval
