// An axis is named by its place from the end, since broadcasting aligns ends: with `behind` axes
// behind it, it is axis rank-1-behind of every tensor that has it, and tensors of no more than
// `behind` axes broadcast along it. An operator follows if it treats the elements along the axis
// alike and puts them there again. Taking an axis away is undone by adding it, which is how that is
// checked.
//
// It ends because ranks are bounded and forms are kept in a set by their canonical bytes.
#include "core/rules/forms.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/rules/canonical.h"
#include "core/rules/complete.h"
#include "core/rules/instance.h"

namespace tenon::rules {
namespace {

using graph::NodeId;

constexpr int kTrials = 32;

// Which inputs get a new axis, of those that have enough axes.
enum class Who : std::uint8_t {
  kAll,          // Those with `behind` axes or more.
  kActivations,  // Of these, those on a left way.
  kLarger,       // Those with more than `behind` axes.
};

std::vector<NodeId> NodesOf(const Rule& rule) {
  std::vector<NodeId> roots = rule.source;
  roots.insert(roots.end(), rule.target.begin(), rule.target.end());
  return rule.graph.Reachable(roots);
}

// Marks the inputs on a left way.
void Descend(const graph::Graph& g, NodeId id, std::vector<bool>& marked) {
  const graph::Node& n = g.node(id);
  if (n.is_input()) {
    marked[std::size_t(id)] = true;
    return;
  }
  const std::size_t count = std::holds_alternative<ops::MatMul>(*n.op) ? 1 : n.operands.size();
  for (std::size_t k = 0; k < count; ++k) Descend(g, n.operands[k], marked);
}

std::int64_t* AxisOf(ops::Operator& op) {
  if (auto* o = std::get_if<ops::Concat>(&op)) return &o->axis;
  if (auto* o = std::get_if<ops::Slice>(&op)) return &o->axis;
  if (auto* o = std::get_if<ops::Split>(&op)) return &o->axis;
  if (auto* o = std::get_if<ops::Softmax>(&op)) return &o->axis;
  if (auto* o = std::get_if<ops::ReduceSum>(&op)) return &o->axis;
  if (auto* o = std::get_if<ops::ReduceMean>(&op)) return &o->axis;
  if (auto* o = std::get_if<ops::ReduceMax>(&op)) return &o->axis;
  return nullptr;
}

bool BroadcastsAny(const ops::Operator& op) {
  return ops::InfoOf(op).nature == ops::Nature::kPointwise &&
         !std::holds_alternative<ops::BatchNormalization>(op);
}

// One application of an operator while an axis is added or taken away: the operand that has the
// axis (or will have) has it as axis `at`.
struct Place {
  int behind = 0;
  std::int64_t at = 0;
  bool all = true;       // Every operand has it.
  bool aligned = false;  // Operands that have not have no more than `behind` axes.
};

std::optional<ops::Operator> WithAxis(const ops::Operator& op, const Place& p) {
  ops::Operator out = op;
  if (auto* transpose = std::get_if<ops::Transpose>(&out)) {
    const ops::Short<std::int64_t> old = transpose->perm;
    ops::Short<std::int64_t> perm;
    for (std::int64_t j = 0; j <= old.size(); ++j) {
      const std::int64_t from = j == p.at ? p.at : old[int(j < p.at ? j : j - 1)];
      perm.push_back(j == p.at ? p.at : from < p.at ? from : from + 1);
    }
    transpose->perm = perm;
    return out;
  }
  if (std::int64_t* axis = AxisOf(out)) {
    if (*axis >= p.at) ++*axis;
    return p.all ? std::optional(out) : std::nullopt;
  }
  const bool product = std::holds_alternative<ops::MatMul>(op) && p.behind >= 2;
  if ((product || BroadcastsAny(op)) && p.aligned) return out;
  return std::nullopt;
}

std::optional<ops::Operator> WithoutAxis(const ops::Operator& op, const Place& p) {
  ops::Operator out = op;
  if (auto* transpose = std::get_if<ops::Transpose>(&out)) {
    if (transpose->perm[int(p.at)] != p.at) return std::nullopt;
    ops::Short<std::int64_t> perm;
    for (int j = 0; j < transpose->perm.size(); ++j) {
      const std::int64_t from = transpose->perm[j];
      if (j != p.at) perm.push_back(from < p.at ? from : from - 1);
    }
    transpose->perm = perm;
    return out;
  }
  if (std::int64_t* axis = AxisOf(out)) {
    if (*axis == p.at || !p.all) return std::nullopt;
    if (*axis > p.at) --*axis;
    return out;
  }
  const bool product = std::holds_alternative<ops::MatMul>(op) && p.behind >= 2;
  if ((product || BroadcastsAny(op)) && p.aligned) return out;
  return std::nullopt;
}

// Copies a rule, with each input as `shape_of` says and operators as `change` says where an operand
// is touched.
class Rebuild {
 public:
  Rebuild(const Rule& rule, int behind) : rule_(rule), behind_(behind) {
    out_.graph.symbols() = rule.graph.symbols();
    out_.where = rule.where;
    touched_.assign(rule.graph.size(), false);
  }
  base::Symbols& symbols() { return out_.graph.symbols(); }

  // `shape_of(input node)`: the new shape, nothing: as it was. `change(op, place)`.
  template <class ShapeOf, class Change>
  std::optional<Rule> Run(const ShapeOf& shape_of, const Change& change) {
    const graph::Graph& g = rule_.graph;
    std::vector<NodeId> image(g.size(), graph::kNoNode);
    bool any = false;
    for (NodeId id : NodesOf(rule_)) {
      const graph::Node& n = g.node(id);
      if (n.is_input()) {
        graph::TensorType type = *n.type;
        if (auto shape = shape_of(id)) {
          type.shape = *std::move(shape);
          touched_[std::size_t(id)] = any = true;
        }
        const graph::Input& input = g.input(n.input);
        image[std::size_t(id)] = out_.graph.AddInput(input.name, input.kind, std::move(type));
        continue;
      }
      const std::optional<ops::Operator> op = Changed(n, id, change);
      if (!op) return std::nullopt;
      std::vector<NodeId> operands;
      for (NodeId o : n.operands) operands.push_back(image[std::size_t(o)]);
      const auto added = out_.graph.Add(*op, operands, n.type->dtype);
      if (!added.ok()) return std::nullopt;
      image[std::size_t(id)] = *added;
    }
    if (!any) return std::nullopt;
    for (NodeId id : rule_.source) out_.source.push_back(image[std::size_t(id)]);
    for (NodeId id : rule_.target) out_.target.push_back(image[std::size_t(id)]);
    return Finished();
  }

 private:
  template <class Change>
  std::optional<ops::Operator> Changed(const graph::Node& n, NodeId id, const Change& change) {
    Place p{.behind = behind_, .aligned = true};
    bool any = false;
    for (NodeId o : n.operands) {
      const int rank = rule_.graph.shape(o).size();
      if (touched_[std::size_t(o)]) {
        any = true;
        p.at = change.At(rank, behind_);
      } else {
        p.all = false;
        p.aligned = p.aligned && rank <= behind_;
      }
    }
    if (!any) return *n.op;
    touched_[std::size_t(id)] = true;
    return change(*n.op, p);
  }

  std::optional<Rule> Finished() {
    const Ways ways = rule_.both ? Ways::kEither : Ways::kForward;
    if (!CompleteAt(out_, nullptr, ways)) return std::nullopt;
    auto canonical = Canonical(out_);
    if (!canonical.ok()) return std::nullopt;
    canonical->name.clear();
    return *std::move(canonical);
  }

  const Rule& rule_;
  const int behind_;
  Rule out_;
  std::vector<bool> touched_;  // By node of the rule.
};

struct Adding {
  static std::int64_t At(int rank, int behind) { return rank - behind; }
  std::optional<ops::Operator> operator()(const ops::Operator& op, const Place& p) const {
    return WithAxis(op, p);
  }
};
struct Taking {
  static std::int64_t At(int rank, int behind) { return rank - 1 - behind; }
  std::optional<ops::Operator> operator()(const ops::Operator& op, const Place& p) const {
    return WithoutAxis(op, p);
  }
};

int LargestRank(const Rule& rule) {
  int rank = 0;
  for (NodeId id : NodesOf(rule)) rank = std::max(rank, rule.graph.shape(id).size());
  return rank;
}

std::optional<Rule> Added(const Rule& rule, int behind, Who who) {
  const graph::Graph& g = rule.graph;
  std::vector<bool> left(g.size(), false);
  for (NodeId id : rule.source) Descend(g, id, left);
  for (NodeId id : rule.target) Descend(g, id, left);
  Rebuild rebuild(rule, behind);
  const base::Symbol extent = rebuild.symbols().Add("batch", base::SymbolKind::kDim);
  return rebuild.Run(
      [&](NodeId id) -> std::optional<graph::Shape> {
        graph::Shape shape = g.shape(id);
        const int rank = shape.size();
        const bool fits = rank > behind || (rank == behind && who != Who::kLarger);
        if (!fits || (who == Who::kActivations && !left[std::size_t(id)])) return std::nullopt;
        shape.insert(rank - behind, base::Poly::Var(extent));
        return shape;
      },
      Adding());
}

std::optional<Rule> Taken(const Rule& rule, int behind) {
  const graph::Graph& g = rule.graph;
  return Rebuild(rule, behind)
      .Run(
          [&](NodeId id) -> std::optional<graph::Shape> {
            const graph::Shape& shape = g.shape(id);
            if (shape.size() <= behind) return std::nullopt;
            graph::Shape less;
            for (int a = 0; a < shape.size(); ++a) {
              if (a != shape.size() - 1 - behind) less.push_back(shape[a]);
            }
            return less;
          },
          Taking());
}

constexpr Who kEveryone[] = {Who::kAll, Who::kActivations, Who::kLarger};

// Whether adding the axis to `lower` can give `rule`.
bool Adds(const Rule& lower, int behind, const Rule& rule) {
  const auto bytes = CanonicalBytes(rule);
  return std::any_of(std::begin(kEveryone), std::end(kEveryone), [&](Who who) {
    const auto again = Added(lower, behind, who);
    return again && *CanonicalBytes(*again) == *bytes;
  });
}

}  // namespace

std::vector<Rule> Forms(const Rule& rule, int rank_max) {
  std::map<std::string, std::optional<Rule>> seen;  // What looks false is nothing.
  const auto start = CanonicalBytes(rule);
  if (!start.ok()) return {};
  seen.emplace(*start, std::nullopt);
  std::vector<Rule> open{rule};
  const auto reach = [&](const std::optional<Rule>& form) {
    if (!form) return;
    const auto bytes = CanonicalBytes(*form);
    if (!bytes.ok() || seen.contains(*bytes)) return;
    Dice dice(1);
    const bool looks_true = LooksTrue(*form, dice, kTrials);
    seen.emplace(*bytes, looks_true ? form : std::nullopt);
    if (looks_true) open.push_back(*form);
  };
  for (std::size_t k = 0; k < open.size(); ++k) {
    const Rule at = open[k];
    const int rank = LargestRank(at);
    for (int behind = 0; behind <= rank && rank < rank_max; ++behind) {
      for (const Who who : kEveryone) reach(Added(at, behind, who));
    }
    for (int behind = 0; behind < rank && rank > 1; ++behind) {
      const auto form = Taken(at, behind);
      if (form && Adds(*form, behind, at)) reach(form);
    }
  }
  std::vector<Rule> out;
  for (auto& [bytes, form] : seen) {
    if (form) out.push_back(*std::move(form));
  }
  return out;
}

}  // namespace tenon::rules
