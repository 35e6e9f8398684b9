// The grid is cut like a board: along one axis into intervals, neighbours with the same regions
// taken together, and each of these along the next axis. All orders of the axes that have cuts are
// tried; they are few.
#include "verifier/partial/correct.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include <fmt/core.h>

#include "verifier/partial/restrict.h"

namespace tenon::partial {

using graph::NodeId;

namespace {

// Pieces [first, last) of each axis.
using Box = std::vector<std::pair<int, int>>;

struct Part {
  enum class Kind { kKeep, kRecompute, kSplit };
  Kind kind = Kind::kKeep;
  Box box;
  int axis = 0;             // kSplit
  std::vector<Part> parts;  // kSplit
};

class Board {
 public:
  explicit Board(const Regions& regions) : regions_(regions) {
    for (const Axis& axis : regions.axes) {
      counts_.push_back(axis.ordered() ? static_cast<int>(axis.pieces.size()) : 1);
    }
    bad_.assign(static_cast<std::size_t>(
                    std::accumulate(counts_.begin(), counts_.end(), 1, std::multiplies<>())),
                false);
    for (const Region& r : regions.regions) {
      std::size_t number = 0;
      for (std::size_t a = 0; a < counts_.size(); ++a) {
        const int piece = regions.axes[a].ordered() ? r.pieces[a] : 0;
        number = number * std::size_t(counts_[a]) + std::size_t(piece);
      }
      if (r.state != State::kEqual) bad_[number] = true;
    }
  }

  Box whole() const {
    Box box;
    for (const int count : counts_) box.emplace_back(0, count);
    return box;
  }
  std::vector<int> cut_axes() const {
    std::vector<int> out;
    for (std::size_t a = 0; a < counts_.size(); ++a) {
      if (counts_[a] > 1) out.push_back(static_cast<int>(a));
    }
    return out;
  }
  // The part of an axis that pieces [first, last) are.
  Interval At(int axis, std::pair<int, int> pieces) const {
    const Axis& a = regions_.axes[static_cast<std::size_t>(axis)];
    return {a.At(pieces.first).begin, a.At(pieces.second - 1).end};
  }
  bool IsWhole(int axis, std::pair<int, int> pieces) const {
    return pieces.first == 0 && pieces.second == counts_[static_cast<std::size_t>(axis)];
  }

  Part Cut(const Box& box, const std::vector<int>& order, std::size_t depth) const {
    const std::vector<bool> bad = Pattern(box);
    Part part;
    part.box = box;
    const auto count = std::count(bad.begin(), bad.end(), true);
    if (count == 0) return part;
    if (count == static_cast<std::ptrdiff_t>(bad.size())) {
      part.kind = Part::Kind::kRecompute;
      return part;
    }
    CHECK(depth < order.size());
    const int axis = order[depth];
    const auto [first, last] = box[static_cast<std::size_t>(axis)];
    part.kind = Part::Kind::kSplit;
    part.axis = axis;
    Box piece = box;
    for (int k = first; k < last;) {
      int end = k + 1;
      const std::vector<bool> own = Pattern(With(piece, axis, {k, k + 1}));
      while (end < last && Pattern(With(piece, axis, {end, end + 1})) == own) ++end;
      part.parts.push_back(Cut(With(piece, axis, {k, end}), order, depth + 1));
      k = end;
    }
    return part.parts.size() == 1 ? part.parts[0] : part;
  }

 private:
  static Box With(Box box, int axis, std::pair<int, int> pieces) {
    box[static_cast<std::size_t>(axis)] = pieces;
    return box;
  }
  std::vector<bool> Pattern(const Box& box) const {
    std::vector<bool> out;
    Collect(box, 0, 0, out);
    return out;
  }
  void Collect(const Box& box, std::size_t axis, std::size_t number, std::vector<bool>& out) const {
    if (axis == box.size()) {
      out.push_back(bad_[number]);
      return;
    }
    for (int k = box[axis].first; k < box[axis].second; ++k) {
      Collect(box, axis + 1, number * std::size_t(counts_[axis]) + std::size_t(k), out);
    }
  }

  const Regions& regions_;
  std::vector<int> counts_;
  std::vector<bool> bad_;
};

class Builder {
 public:
  Builder(const rules::Rule& pair, const Board& board, Sizes& sizes)
      : board_(board), sizes_(sizes), rule_(pair) {}

  Poly Volume(const Part& part) const {
    if (part.kind == Part::Kind::kKeep) return 0;
    Poly volume = part.kind == Part::Kind::kRecompute ? 1 : 0;
    for (const Part& p : part.parts) volume += Volume(p);
    if (part.kind == Part::Kind::kSplit) return volume;
    for (std::size_t a = 0; a < part.box.size(); ++a) {
      const Interval at = board_.At(static_cast<int>(a), part.box[a]);
      volume = volume * (at.end - at.begin);
    }
    return volume;
  }
  static int Leaves(const Part& part) {
    int leaves = part.parts.empty() ? 1 : 0;
    for (const Part& p : part.parts) leaves += Leaves(p);
    return leaves;
  }

  StatusOr<NodeId> Build(const Part& part) {
    if (part.kind == Part::Kind::kSplit) {
      std::vector<NodeId> parts;
      for (const Part& p : part.parts) {
        ASSIGN_OR_RETURN(const NodeId id, Build(p));
        parts.push_back(id);
      }
      return rule_.graph.Add(ops::Concat{.axis = part.axis}, parts);
    }
    const bool keep = part.kind == Part::Kind::kKeep;
    NodeId id = keep ? rule_.target[0] : rule_.source[0];
    for (std::size_t a = 0; a < part.box.size(); ++a) {
      const int axis = static_cast<int>(a);
      if (board_.IsWhole(axis, part.box[a])) continue;
      const Interval at = board_.At(axis, part.box[a]);
      if (keep) {
        ASSIGN_OR_RETURN(
            id, rule_.graph.Add(ops::Slice{.axis = axis, .start = at.begin, .end = at.end}, {id}));
      } else {
        ASSIGN_OR_RETURN(id, Restrict(rule_.graph, sizes_, id, axis, at));
      }
    }
    return id;
  }

  rules::Rule Finish(NodeId target) {
    rule_.target = {target};
    return std::move(rule_);
  }
  base::Symbols& symbols() { return rule_.graph.symbols(); }

 private:
  const Board& board_;
  Sizes& sizes_;
  rules::Rule rule_;
};

}  // namespace

void Assume(rules::Rule& rule, Sizes& sizes) {
  for (const Condition& c : sizes.Assumed(rule.graph.symbols())) {
    if (std::find(rule.where.begin(), rule.where.end(), c) == rule.where.end()) {
      rule.where.push_back(c);
    }
  }
}

StatusOr<Corrected> Recompute(const rules::Rule& pair, const Regions& regions, Sizes& sizes) {
  if (regions.all_equal()) return base::FailedPrecondition("the programs are equal");
  if (regions.Count(State::kEqual) == 0) {
    return base::FailedPrecondition("no region is equal, so there is nothing to keep");
  }
  const Board board(regions);
  Builder builder(pair, board, sizes);
  std::vector<int> order = board.cut_axes();
  std::optional<Part> best;
  std::pair<double, int> least;
  do {
    const Part part = board.Cut(board.whole(), order, 0);
    const auto volume = sizes.At(builder.Volume(part), pair.graph.symbols(), sizes.typical());
    const std::pair<double, int> cost{
        volume ? double(*volume) : std::numeric_limits<double>::infinity(), builder.Leaves(part)};
    if (!best || cost < least) {
      best = part;
      least = cost;
    }
  } while (std::next_permutation(order.begin(), order.end()));
  if (best->kind == Part::Kind::kRecompute) {
    return base::FailedPrecondition(
        "the unequal regions repeat along an axis, so that no interval of it is equal");
  }
  ASSIGN_OR_RETURN(const NodeId target, builder.Build(*best));
  Corrected out;
  out.recomputed = builder.Volume(*best);
  out.elements = 1;
  for (const Axis& axis : regions.axes) out.elements = out.elements * axis.extent;
  const auto all = sizes.At(out.elements, pair.graph.symbols(), sizes.typical());
  out.share = all && *all > 0 ? least.first / double(*all) : 1;
  out.rule = builder.Finish(target);
  out.rule.name = pair.name + "/recomputed";
  out.rule.both = false;
  out.rule.expect = rules::Expect::kNone;
  Assume(out.rule, sizes);
  return out;
}

}  // namespace tenon::partial
