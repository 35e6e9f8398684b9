#include "verifier/partial/filter.h"

#include <algorithm>

#include "verifier/partial/modular.h"

namespace tenon::partial {

namespace {

class Probe {
 public:
  Probe(const rules::Rule& pair, const Regions& regions, Sizes& sizes,
        const std::vector<std::int64_t>& at)
      : regions_(regions) {
    const base::Symbols& symbols = pair.graph.symbols();
    const auto value = [&](const Poly& p) { return sizes.At(p, symbols, at).value_or(1); };
    for (const Axis& axis : regions.axes) {
      std::vector<std::int64_t> extents;
      for (const Poly& e : axis.digits.extents) extents.push_back(value(e));
      std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
      for (const Piece& piece : axis.pieces) {
        ranges.emplace_back(value(piece.range.begin), value(piece.range.end));
      }
      extents_.push_back(std::move(extents));
      ranges_.push_back(std::move(ranges));
    }
  }

  // A corner, and one step along each axis on which there is room.
  std::vector<graph::Extents> Positions(const Region& region) const {
    graph::Extents corner;
    for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
      corner.push_back(Index(region, axis, 0));
    }
    std::vector<graph::Extents> out{corner};
    for (std::size_t axis = 0; axis < extents_.size(); ++axis) {
      const auto [begin, end] = ranges_[axis][std::size_t(region.pieces[axis])];
      if (end - begin < 2) continue;
      out.push_back(corner);
      out.back()[static_cast<int>(axis)] = Index(region, axis, 1);
    }
    return out;
  }

 private:
  std::int64_t Index(const Region& region, std::size_t axis, std::int64_t step) const {
    const Axis& a = regions_.axes[axis];
    const auto number = static_cast<std::size_t>(region.pieces[axis]);
    std::int64_t index = 0;
    for (std::size_t k = 0; k < extents_[axis].size(); ++k) {
      const bool cut = static_cast<int>(k) == a.digits.cut;
      const std::int64_t digit = a.pieces[number].digits[k];
      index = index * extents_[axis][k] +
              (cut ? ranges_[axis][number].first + step : std::max<std::int64_t>(digit, 0));
    }
    return index;
  }

  const Regions& regions_;
  std::vector<std::vector<std::int64_t>> extents_;  // Of each digit of each axis.
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> ranges_;  // Of each piece.
};

}  // namespace

StatusOr<Filtered> Filter(const rules::Rule& pair, const Regions& regions, Sizes& sizes,
                          const std::vector<std::int64_t>& at, std::uint64_t seed,
                          std::uint64_t prime) {
  std::vector<std::int64_t> values = at;
  values.resize(pair.graph.symbols().size(), 0);
  const std::vector<graph::NodeId> roots{pair.source[0], pair.target[0]};
  ASSIGN_OR_RETURN(const graph::Graph g, graph::Instantiate(pair.graph, roots, values));
  Filtered out;
  out.prime = prime;
  for (const graph::NodeId root : g.outputs()) {
    ASSIGN_OR_RETURN(const int degree, DegreeOf(g, root));
    out.degree = std::max(out.degree, degree);
  }
  out.elements = graph::ElementCount(graph::Concrete(g.shape(g.outputs()[0])));
  const Modular modular(g, prime, seed);
  const Probe probe(pair, regions, sizes, at);
  for (const Region& region : regions.regions) {
    bool differs = false;
    for (const graph::Extents& position : probe.Positions(region)) {
      const auto source = modular.At(g.outputs()[0], position);
      const auto target = modular.At(g.outputs()[1], position);
      if (!source || !target) return base::FailedPrecondition("an element takes too long");
      ++out.positions;
      differs = differs || *source != *target;
    }
    out.differs.push_back(differs);
  }
  return out;
}

}  // namespace tenon::partial
