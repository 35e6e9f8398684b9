// Cuts come from the guards of both normal forms at every choice of the written digits; those of
// one choice of an axis' own digits are put together, whatever the digits of other axes are, so
// that the regions are a grid. Each region that the random filter does not find unequal is compared
// like an output of its own. In the end both programs are evaluated at a few sizes, against all
// that was found, and for regions that are still open.
#include "verifier/partial/regions.h"

#include <algorithm>

#include <fmt/format.h>

#include "verifier/cases.h"
#include "verifier/nf/unsupported.h"
#include "verifier/partial/cuts.h"
#include "verifier/partial/filter.h"
#include "verifier/partial/sample.h"

namespace tenon::partial {

using base::Condition;
using nf::Guards;

namespace {

constexpr std::size_t kRegionsMax = 600;
constexpr int kCases = 200;  // Of one region.
constexpr std::uint64_t kFilterSeed = 1;

Status Declined(const rules::Rule& pair, const std::string& why) {
  return base::FailedPrecondition(fmt::format("rule {}: {}", pair.name, why));
}

class Finder {
 public:
  Finder(Sizes& sizes, Reading& reading)
      : sizes_(sizes), reading_(reading), own_(reading.session().symbols) {}

  // The grid; nothing is decided.
  Regions Grid() {
    Regions out;
    for (std::size_t axis = 0; axis < reading_.axes().size(); ++axis) {
      out.axes.push_back(GridOf(axis));
    }
    std::size_t count = 1;
    for (const Axis& axis : out.axes) count *= axis.pieces.size();
    if (count > kRegionsMax) {
      throw nf::Unsupported(fmt::format("{} regions, more than {}", count, kRegionsMax));
    }
    for (std::size_t number = 0; number < count; ++number) {
      Region region;
      std::size_t rest = number;
      for (std::size_t axis = out.axes.size(); axis-- > 0;) {
        region.pieces.push_back(static_cast<int>(rest % out.axes[axis].pieces.size()));
        rest /= out.axes[axis].pieces.size();
      }
      std::reverse(region.pieces.begin(), region.pieces.end());
      out.regions.push_back(std::move(region));
    }
    return out;
  }

  // Compares the programs on a region of the grid.
  void Decide(const Regions& all, Region& region) {
    for (const Choice& choice : reading_.choices()) {
      Guards given = choice.given;
      bool here = true;
      for (std::size_t axis = 0; axis < all.axes.size() && here; ++axis) {
        const Piece& piece = all.axes[axis].pieces[std::size_t(region.pieces[axis])];
        here = piece.digits == choice.digits[axis];
        if (!here || choice.cut[axis] == 0) continue;
        const Poly index = Poly::Var(choice.cut[axis]);
        nf::AddGuard(given, base::Ge(index, piece.range.begin));
        nf::AddGuard(given, base::Lt(index, piece.range.end));
      }
      if (!here) continue;
      for (const Condition& c : sizes_.Assumed(own_)) nf::AddGuard(given, c);
      verifier::Cases cases(reading_.session(), kCases);
      try {
        if (cases.Equal(choice.source, choice.target, given)) {
          region.state = State::kEqual;
        } else {
          region.why = cases.stuck();
        }
      } catch (const nf::Unsupported& u) {
        region.why = u.why;
      }
      return;
    }
  }

 private:
  // Of the cut digit of `axis`, whose other digits are `digits`: in ascending order, within it.
  std::vector<Poly> OrderedCuts(std::size_t axis, const std::vector<std::int64_t>& digits) {
    const Digits& d = reading_.axes()[axis];
    if (d.cut < 0) return {};
    const Poly extent = d.extents[static_cast<std::size_t>(d.cut)];
    std::vector<Poly> ordered;
    for (const Choice& choice : reading_.choices()) {
      if (choice.digits[axis] != digits) continue;
      for (const nf::Nf* nf : {&choice.source, &choice.target}) {
        for (const Poly& e : CutsOf(reading_.session(), *nf, choice.cut[axis])) {
          Insert(e, extent, ordered);
        }
      }
    }
    return ordered;
  }

  void Insert(const Poly& e, const Poly& extent, std::vector<Poly>& ordered) {
    if (!e.valid() || std::find(ordered.begin(), ordered.end(), e) != ordered.end()) return;
    // Never inside: no cut. That sometimes it is inside and sometimes not is decided, and assumed.
    if (!sizes_.Decide(base::Ge(e, 1), own_) || !sizes_.Decide(base::Lt(e, extent), own_)) return;
    std::size_t k = 0;
    for (; k < ordered.size(); ++k) {
      if (sizes_.Implied(base::Eq(ordered[k], e), own_)) return;
      if (sizes_.Decide(base::Lt(e, ordered[k]), own_)) break;
      if (!sizes_.Decide(base::Lt(ordered[k], e), own_)) return;  // Equal, then.
    }
    ordered.insert(ordered.begin() + static_cast<std::ptrdiff_t>(k), e);
  }

  Axis GridOf(std::size_t axis) {
    Axis out;
    out.digits = reading_.axes()[axis];
    std::vector<std::vector<std::int64_t>> seen;
    for (const Choice& choice : reading_.choices()) {
      const auto& digits = choice.digits[axis];
      if (std::find(seen.begin(), seen.end(), digits) != seen.end()) continue;
      seen.push_back(digits);
      const Poly extent =
          out.digits.cut < 0 ? Poly(1) : out.digits.extents[std::size_t(out.digits.cut)];
      Poly begin = 0;
      for (const Poly& cut : OrderedCuts(axis, digits)) {
        out.pieces.push_back({digits, {begin, cut}});
        begin = cut;
      }
      out.pieces.push_back({digits, {begin, extent}});
    }
    return out;
  }

  Sizes& sizes_;
  Reading& reading_;
  base::Symbols& own_;
};

// In terms of the rule's own symbols.
void Rename(Regions& regions, const base::Symbols& from, base::Symbols& to) {
  for (Axis& axis : regions.axes) {
    for (Poly& e : axis.digits.extents) e = Translate(e, from, to);
    axis.extent = 1;
    for (const Poly& e : axis.digits.extents) axis.extent = axis.extent * e;
    for (Piece& piece : axis.pieces) {
      piece.range.begin = Translate(piece.range.begin, from, to);
      piece.range.end = Translate(piece.range.end, from, to);
    }
  }
}

// Regions that are not proved equal and have an element that differs are unequal.
Status LookAt(const rules::Rule& pair, Sizes& sizes, Regions& regions) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    std::vector<std::int64_t> values = sizes.Small();
    if (attempt == 1) {
      if (regions.Count(State::kUnknown) == 0) break;
      values = sizes.Larger(values);
    }
    const auto sample = SampleAt(pair, values, std::uint64_t(attempt) + 1);
    if (!sample.ok()) continue;
    const auto at = [&](const Poly& p) {
      return sizes.At(p, pair.graph.symbols(), values).value_or(1);
    };
    for (std::size_t k = 0; k < sample->differs.size(); ++k) {
      if (!sample->differs[k]) continue;
      const graph::Extents index = PositionOf(static_cast<std::int64_t>(k), sample->extents);
      for (Region& region : regions.regions) {
        if (region.state == State::kUnequal || !regions.Holds(region, index, at)) continue;
        if (region.state == State::kEqual) {
          return base::Internal(fmt::format(
              "rule {}: a region is proved equal, yet differs at [{}]; prover or evaluator is "
              "wrong",
              pair.name, fmt::join(std::vector<std::int64_t>(index.begin(), index.end()), ",")));
        }
        region.state = State::kUnequal;
      }
    }
  }
  return OkStatus();
}

}  // namespace

std::string NameOf(State state) {
  switch (state) {
    case State::kEqual:
      return "equal";
    case State::kUnequal:
      return "unequal";
    case State::kUnknown:
      return "unknown";
  }
  return "unknown";
}

Interval Axis::At(int piece) const {
  if (!ordered()) return {0, extent};
  const Piece& p = pieces[static_cast<std::size_t>(piece)];
  if (digits.cut < 0) return {0, extent};
  Poly base = 0;
  for (std::size_t k = 0; k < digits.extents.size(); ++k) {
    base = base * digits.extents[k];
    if (static_cast<int>(k) != digits.cut) base += p.digits[k];
  }
  return {base + p.range.begin, base + p.range.end};
}

int Regions::Count(State state) const {
  return static_cast<int>(std::count_if(regions.begin(), regions.end(),
                                        [&](const Region& r) { return r.state == state; }));
}

StatusOr<Regions> FindRegions(rules::Rule& pair, Sizes& sizes) {
  if (pair.source.size() != 1 || pair.target.size() != 1) {
    return Declined(pair, "partial equivalence is looked for in programs with one output");
  }
  const graph::Shape& source = pair.graph.shape(pair.source[0]);
  const graph::Shape& target = pair.graph.shape(pair.target[0]);
  bool same = source.size() == target.size();
  for (int axis = 0; same && axis < source.size(); ++axis) {
    same = sizes.Implied(base::Eq(source[axis], target[axis]), pair.graph.symbols());
  }
  if (!same) return Declined(pair, "the outputs of the two programs have different shapes");
  for (const Condition& c : pair.graph.Requirements(pair.target)) {
    if (!sizes.Decide(c, pair.graph.symbols())) {
      return Declined(pair, fmt::format("the target needs {}, which does not hold",
                                        base::Print(c, pair.graph.symbols())));
    }
  }
  try {
    Reading reading(pair);
    Finder finder(sizes, reading);
    const Regions grid = finder.Grid();
    Regions regions = grid;
    Rename(regions, reading.session().symbols, pair.graph.symbols());
    if (auto filtered = Filter(pair, regions, sizes, sizes.Small(), kFilterSeed); filtered.ok()) {
      regions.filtered = *std::move(filtered);
    }
    for (std::size_t k = 0; k < regions.regions.size(); ++k) {
      Region& region = regions.regions[k];
      if (regions.filtered && regions.filtered->differs[k]) {
        region.state = State::kUnequal;
        region.why = "a random test differs";
      } else {
        finder.Decide(grid, region);
      }
    }
    RETURN_IF_ERROR(LookAt(pair, sizes, regions));
    return regions;
  } catch (const nf::Unsupported& u) {
    return Declined(pair, u.why);
  }
}

}  // namespace tenon::partial
