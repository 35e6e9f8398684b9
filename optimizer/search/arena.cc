// Why rewriting cannot close a cycle here: nodes are only ever added, and a new node's operands are
// there before it. A joint rewriting whose second root depends on the first one would therefore not
// loop; it would keep the first root alive next to its replacement, which is right but never
// better. Such matches are refused, so that what the search proposes is what Rewrite
// (core/rules/match.h) would make of it.
#include "optimizer/search/arena.h"

#include <xxhash.h>

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/check.h"
#include "core/rules/match.h"
#include "core/rules/match_engine.h"
#include "core/rules/wire.h"

namespace tenon::optimizer {

using graph::kNoNode;
using graph::NodeId;

namespace {

Hash128 HashBytes(const std::string& bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

void PutHash(std::string& out, const Hash128& h) {
  for (const std::uint64_t part : {h.low, h.high}) {
    for (int k = 0; k < 64; k += 8) out.push_back(char(part >> k & 0xff));
  }
}

}  // namespace

// The running nodes of one graph as a host of matching (core/rules/match_engine.h). Operators below
// the roots are found through operands, so rules with one output need no list of nodes.
class ArenaHost {
 public:
  ArenaHost(const RuleSet::Entry& entry, const Arena& arena) : entry_(entry), arena_(arena) {}
  // For rules with several outputs. `users` is sorted.
  void SetGraph(std::span<const NodeId> running, std::span<const std::pair<NodeId, NodeId>> users) {
    running_ = running;
    users_ = users;
  }

  std::int32_t class_of(std::int32_t node) const { return node; }
  std::span<const std::int32_t> operands(std::int32_t node) const { return at(node).operands; }
  bool Accepts(std::int32_t node, NodeId pattern) const {
    const Arena::OperatorFacts* op = arena_.facts_[std::size_t(node)].op;
    if (op == nullptr || op->skeleton != entry_.skeletons[std::size_t(pattern)]) return false;
    const rules::PatternOp& p = entry_.compiled.pattern_op(pattern);
    return p.symbolic || *at(node).op == *p.op;
  }
  void CopySizes(std::int32_t node, std::int64_t* out) const {
    for (const std::int64_t s : arena_.facts_[std::size_t(node)].op->sizes) *out++ = s;
  }
  template <class F>
  bool ForEachNode(std::int32_t c, NodeId, const F& f) const {
    return f(c);
  }
  template <class F>
  void ForEachWith(NodeId pattern, const F& f) const {
    for (const NodeId id : running_) {
      if (Accepts(id, pattern)) f(id);
    }
  }
  template <class F>
  void ForEachUser(std::int32_t c, const F& f) const {
    auto it = std::lower_bound(users_.begin(), users_.end(), std::pair<NodeId, NodeId>(c, 0));
    for (; it != users_.end() && it->first == c; ++it) f(it->second);
  }
  graph::DataType dtype(std::int32_t c) const { return at(c).type->dtype; }
  const graph::Extents* extents(std::int32_t c) const {
    if (scratch_node_ != c) {
      scratch_ = graph::Concrete(at(c).shape());
      scratch_node_ = c;
    }
    return &scratch_;
  }
  bool weights_only(std::int32_t c) const { return at(c).weights_only; }
  bool both_orders() const { return true; }

 private:
  const graph::Node& at(std::int32_t id) const { return arena_.graph().node(id); }
  const RuleSet::Entry& entry_;
  const Arena& arena_;
  std::span<const NodeId> running_;
  std::span<const std::pair<NodeId, NodeId>> users_;
  mutable graph::Extents scratch_;
  mutable std::int32_t scratch_node_ = -1;
};

namespace {

using Engine = rules::MatchEngine<ArenaHost>;

rules::Match MatchOf(const rules::CompiledRule& rule, const Engine& engine) {
  rules::Match m;
  m.nodes.assign(engine.classes().begin(), engine.classes().end());
  for (std::size_t k = 0; k < m.nodes.size(); ++k) {
    if (!rule.matched(NodeId(k))) m.nodes[k] = kNoNode;
  }
  m.values.assign(engine.values().begin(), engine.values().end());
  m.dtype = engine.dtype();
  return m;
}

// Beyond these a rule and a place are pathological, and the search has better things to do.
constexpr std::size_t kMatchesAtNode = 64;
constexpr std::size_t kJointMatches = 4096;

}  // namespace

std::size_t Arena::HashOfKey::operator()(const std::vector<std::int32_t>& key) const {
  return std::size_t(XXH3_64bits(key.data(), key.size() * sizeof(std::int32_t)));
}

Arena::Arena(graph::Graph g, const RuleSet& rules, const Device& device)
    : g_(std::move(g)), rules_(rules), device_(device) {
  Learn();
}

const Arena::OperatorFacts& Arena::FactsOf(const ops::Operator& op) {
  auto [it, added] = operators_.try_emplace(&op);
  OperatorFacts& facts = it->second;
  if (!added) return facts;
  std::string bytes;
  rules::wire::WriteOperator(bytes, op,
                             [&](const base::Poly& p) { base::PutSigned(bytes, p.constant()); });
  facts.hash = HashBytes(bytes);
  const rules::SplitOperator split = rules::SplitSizes(op);
  facts.skeleton = rules_.Skeleton(split.skeleton);
  for (const ops::Size& s : split.sizes) facts.sizes.push_back(s.constant());
  return facts;
}

Hash128 Arena::HashNode(const graph::Node& n) {
  std::string bytes;
  bytes.push_back(char(n.type->dtype));
  if (n.is_input()) {
    bytes.push_back('i');
    base::PutVarint(bytes, std::uint64_t(n.input));
    return HashBytes(bytes);
  }
  bytes.push_back('o');
  PutHash(bytes, FactsOf(*n.op).hash);
  std::vector<Hash128> operands;
  for (const NodeId o : n.operands) operands.push_back(facts_[std::size_t(o)].hash);
  if (ops::InfoOf(*n.op).commutative && operands[1] < operands[0]) {
    std::swap(operands[0], operands[1]);
  }
  for (const Hash128& h : operands) PutHash(bytes, h);
  return HashBytes(bytes);
}

void Arena::Learn() {
  while (facts_.size() < g_.size()) {
    const NodeId id = NodeId(facts_.size());
    Facts facts;
    facts.hash = HashNode(g_.node(id));
    if (!g_.node(id).is_input()) facts.op = &FactsOf(*g_.node(id).op);
    facts.canonical = by_hash_.try_emplace(facts.hash, id).first->second;
    // A copy of a node with other operands of equal content has the same hash and is not new.
    if (facts.canonical == id) facts.cost = device_.CostOf(g_, id);
    facts_.push_back(facts);
    alternatives_.emplace_back();
  }
}

NodeId Arena::Known(NodeId id) {
  Learn();
  return facts_[std::size_t(id)].canonical;
}

NodeId Arena::Clean(NodeId id) {
  const NodeId known = Known(id);
  if (known == id || facts_[std::size_t(known)].clean) {
    facts_[std::size_t(known)].clean = true;
    return known;
  }
  // The first of its kind was made of copies: this one takes its place.
  Facts& facts = facts_[std::size_t(id)];
  facts.canonical = facts_[std::size_t(known)].canonical = id;
  facts.cost = device_.CostOf(g_, id);
  facts.clean = true;
  by_hash_[facts.hash] = id;
  return id;
}

namespace {

// A part of a tensor along one axis.
struct Part {
  NodeId of = kNoNode;
  std::int64_t begin = 0, end = 0;
};

// What part of which tensor `id` is; all of itself if it is no view along that axis.
Part PartOf(const graph::Graph& g, NodeId id, std::int64_t axis) {
  const graph::Node& n = g.node(id);
  const std::int64_t extent = n.shape()[int(axis)].constant();
  if (!n.is_input()) {
    if (const auto* slice = std::get_if<ops::Slice>(n.op.get());
        slice != nullptr && slice->axis == axis && slice->step == 1) {
      return {n.operands[0], slice->start.constant(), slice->end.constant()};
    }
    if (const auto* split = std::get_if<ops::Split>(n.op.get());
        split != nullptr && split->axis == axis) {
      return {n.operands[0], split->index * extent, (split->index + 1) * extent};
    }
  }
  return {id, 0, extent};
}

}  // namespace

std::optional<NodeId> Arena::NormalSlice(const ops::Slice& slice, NodeId of) {
  if (slice.step != 1) return std::nullopt;
  const int axis = int(slice.axis);
  std::int64_t begin = slice.start.constant(), end = slice.end.constant();
  bool changed = false;
  for (;;) {
    const std::int64_t extent = g_.shape(of)[axis].constant();
    if (begin == 0 && end == extent) return of;
    const Part part = PartOf(g_, of, axis);
    if (part.of != of) {
      begin += part.begin;
      end += part.begin;
      of = part.of;
      changed = true;
      continue;
    }
    // A part of one piece of a Concat.
    const graph::Node& n = g_.node(of);
    const auto* concat = n.is_input() ? nullptr : std::get_if<ops::Concat>(n.op.get());
    if (concat == nullptr || concat->axis != axis) break;
    std::int64_t start = 0;
    NodeId piece = kNoNode;
    for (const NodeId p : n.operands) {
      const std::int64_t stop = start + g_.shape(p)[axis].constant();
      if (start <= begin && end <= stop) {
        piece = p;
        break;
      }
      start = stop;
    }
    if (piece == kNoNode) break;
    of = piece;
    begin -= start;
    end -= start;
    changed = true;
  }
  if (!changed) return std::nullopt;
  const auto added = g_.Add(ops::Slice{.axis = axis, .start = begin, .end = end}, {of});
  CHECK(added.ok());
  return Clean(*added);
}

std::optional<NodeId> Arena::NormalConcat(const ops::Concat& concat,
                                          std::span<const NodeId> pieces) {
  const int axis = int(concat.axis);
  std::vector<Part> parts;
  bool joined = false;
  for (const NodeId p : pieces) {
    const Part part = PartOf(g_, p, axis);
    if (!parts.empty() && parts.back().of == part.of && parts.back().end == part.begin) {
      parts.back().end = part.end;
      joined = true;
    } else {
      parts.push_back(part);
    }
  }
  if (!joined && pieces.size() > 1) return std::nullopt;
  std::vector<NodeId> operands;
  for (const Part& part : parts) {
    const ops::Slice slice{.axis = axis, .start = part.begin, .end = part.end};
    if (const auto normal = NormalSlice(slice, part.of)) {
      operands.push_back(*normal);
      continue;
    }
    const auto added = g_.Add(slice, {part.of});
    CHECK(added.ok());
    operands.push_back(Clean(*added));
  }
  if (operands.size() == 1) return operands[0];
  const auto added = g_.Add(concat, operands);
  CHECK(added.ok());
  return Clean(*added);
}

NodeId Arena::AddNormal(const graph::Node& n, std::vector<NodeId> operands) {
  std::optional<NodeId> normal;
  if (const auto* slice = std::get_if<ops::Slice>(n.op.get())) {
    normal = NormalSlice(*slice, operands[0]);
  } else if (const auto* concat = std::get_if<ops::Concat>(n.op.get())) {
    normal = NormalConcat(*concat, operands);
  }
  return normal ? *normal : Clean(g_.AddTrusted(n, operands));
}

NodeId Arena::Canonical(NodeId id) {
  if (Known(id) == id && facts_[std::size_t(id)].clean) return id;
  std::vector<NodeId> path;
  Running(std::span(&id, 1), path);
  image_.resize(g_.size(), kNoNode);
  for (const NodeId p : path) {
    const graph::Node n = g_.node(p);
    std::vector<NodeId> operands;
    for (const NodeId o : n.operands) {
      const bool inner = std::binary_search(path.begin(), path.end(), o);
      operands.push_back(inner ? image_[std::size_t(o)] : Known(o));
    }
    const NodeId image = AddNormal(n, std::move(operands));
    image_[std::size_t(p)] = image;
  }
  const bool running = std::binary_search(path.begin(), path.end(), id);
  return running ? image_[std::size_t(id)] : Known(id);
}

std::uint32_t Arena::NextEpoch(std::vector<std::uint32_t>& seen) {
  seen.resize(g_.size(), 0);
  return ++epoch_;
}

void Arena::Running(std::span<const NodeId> roots, std::vector<NodeId>& out) {
  const std::uint32_t epoch = NextEpoch(seen_);
  const std::size_t first = out.size();
  stack_.assign(roots.begin(), roots.end());
  while (!stack_.empty()) {
    const NodeId id = stack_.back();
    stack_.pop_back();
    if (seen_[std::size_t(id)] == epoch) continue;
    seen_[std::size_t(id)] = epoch;
    const graph::Node& n = g_.node(id);
    if (n.is_input() || n.weights_only) continue;
    out.push_back(id);
    stack_.insert(stack_.end(), n.operands.begin(), n.operands.end());
  }
  std::sort(out.begin() + std::ptrdiff_t(first), out.end());
}

void Arena::Mark(std::span<const NodeId> nodes) {
  mark_epoch_ = NextEpoch(marks_);
  for (const NodeId id : nodes) marks_[std::size_t(id)] = mark_epoch_;
}

bool Arena::marked(NodeId id) const {
  return std::size_t(id) < marks_.size() && marks_[std::size_t(id)] == mark_epoch_;
}

void Arena::RunningUnmarked(NodeId root, std::vector<NodeId>& out) {
  const std::uint32_t epoch = NextEpoch(seen_);
  stack_.assign(1, root);
  while (!stack_.empty()) {
    const NodeId id = stack_.back();
    stack_.pop_back();
    if (seen_[std::size_t(id)] == epoch || marked(id)) continue;
    seen_[std::size_t(id)] = epoch;
    const graph::Node& n = g_.node(id);
    if (n.is_input() || n.weights_only) continue;
    out.push_back(id);
    stack_.insert(stack_.end(), n.operands.begin(), n.operands.end());
  }
}

std::optional<std::vector<NodeId>> Arena::Targets(int rule, const rules::Match& match) {
  const rules::CompiledRule& compiled = rules_.entries()[std::size_t(rule)].compiled;
  const auto built = rules::BuildTarget(compiled, match, g_);
  if (!built.ok()) return std::nullopt;
  std::vector<NodeId> targets;
  for (const NodeId id : *built) targets.push_back(Canonical(id));
  return targets;
}

const std::vector<Rewriting>& Arena::Alternatives(NodeId id) {
  if (facts_[std::size_t(id)].alternatives_known) return alternatives_[std::size_t(id)];
  std::vector<Rewriting> out;
  for (const int r : rules_.single(*g_.node(id).op)) {
    const RuleSet::Entry& entry = rules_.entries()[std::size_t(r)];
    const rules::CompiledRule& compiled = entry.compiled;
    // Most rules fail at the root.
    const int root = entry.skeletons[std::size_t(compiled.roots()[0])];
    if (facts_[std::size_t(id)].op->skeleton != root) continue;
    std::vector<rules::Match> matches;
    const ArenaHost host(entry, *this);
    Engine engine(compiled, host);
    engine.At(id, [&] {
      matches.push_back(MatchOf(compiled, engine));
      return matches.size() < kMatchesAtNode;
    });
    for (const rules::Match& match : matches) {
      auto targets = Targets(r, match);
      if (!targets || (*targets)[0] == id) continue;
      const bool known = std::any_of(out.begin(), out.end(), [&](const Rewriting& other) {
        return other.targets == *targets;
      });
      if (!known) out.push_back({r, {id}, *std::move(targets)});
    }
  }
  facts_[std::size_t(id)].alternatives_known = true;
  return alternatives_[std::size_t(id)] = std::move(out);
}

bool Arena::DependsOn(NodeId node, NodeId on) {
  std::vector<NodeId> below;
  Running(std::span(&node, 1), below);
  return std::binary_search(below.begin(), below.end(), on);
}

std::vector<Rewriting> Arena::JointAlternatives(std::span<const NodeId> running) {
  std::vector<Rewriting> out;
  if (!rules_.has_multiple()) return out;
  std::vector<std::pair<NodeId, NodeId>> users;
  for (const NodeId id : running) {
    for (const NodeId o : g_.node(id).operands) users.emplace_back(o, id);
  }
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());

  struct Found {
    int rule;
    rules::Match match;
    std::vector<NodeId> roots;
  };
  std::vector<Found> found;
  std::vector<std::vector<std::int32_t>> taken;  // Rule and sorted roots.
  for (const NodeId id : running) {
    for (const int r : rules_.multiple(*g_.node(id).op)) {
      const RuleSet::Entry& entry = rules_.entries()[std::size_t(r)];
      const rules::CompiledRule& compiled = entry.compiled;
      const int first = entry.skeletons[std::size_t(compiled.roots()[0])];
      if (facts_[std::size_t(id)].op->skeleton != first) continue;
      ArenaHost host(entry, *this);
      host.SetGraph(running, users);
      Engine engine(compiled, host);
      engine.At(id, [&] {
        std::vector<NodeId> roots;
        for (const NodeId root : compiled.roots()) roots.push_back(engine.class_at(root));
        std::vector<std::int32_t> key(roots.begin(), roots.end());
        std::sort(key.begin(), key.end());
        key.push_back(r);
        if (std::find(taken.begin(), taken.end(), key) == taken.end()) {
          taken.push_back(std::move(key));
          found.push_back({r, MatchOf(compiled, engine), std::move(roots)});
        }
        return found.size() < kJointMatches;
      });
    }
  }
  for (Found& f : found) {
    std::vector<std::int32_t> key{f.rule};
    key.insert(key.end(), f.roots.begin(), f.roots.end());
    auto it = joint_.find(key);
    if (it == joint_.end()) {
      bool cyclic = false;
      for (const NodeId a : f.roots) {
        for (const NodeId b : f.roots) cyclic = cyclic || (a != b && DependsOn(a, b));
      }
      std::vector<NodeId> targets;
      if (!cyclic) targets = Targets(f.rule, f.match).value_or(std::vector<NodeId>());
      it = joint_.emplace(std::move(key), std::move(targets)).first;
    }
    if (it->second.empty() || it->second == f.roots) continue;
    out.push_back({f.rule, std::move(f.roots), it->second});
  }
  return out;
}

std::vector<NodeId> Arena::Replace(std::span<const NodeId> outputs, std::span<const NodeId> running,
                                   std::span<const NodeId> roots, std::span<const NodeId> targets) {
  const std::uint32_t epoch = NextEpoch(seen_);
  image_.resize(g_.size(), kNoNode);
  const std::size_t old_size = g_.size();
  const auto set = [&](NodeId id, NodeId image) {
    seen_[std::size_t(id)] = epoch;
    image_[std::size_t(id)] = image;
  };
  const auto image_of = [&](NodeId id) {
    return seen_[std::size_t(id)] == epoch ? image_[std::size_t(id)] : id;
  };
  for (std::size_t k = 0; k < roots.size(); ++k) set(roots[k], targets[k]);
  std::vector<NodeId> operands;
  for (const NodeId id : running) {
    CHECK(std::size_t(id) < old_size);
    if (seen_[std::size_t(id)] == epoch) continue;  // A root.
    const graph::Node& n = g_.node(id);
    bool changed = false;
    operands.clear();
    for (const NodeId o : n.operands) {
      operands.push_back(image_of(o));
      changed = changed || operands.back() != o;
    }
    if (!changed) continue;
    const graph::Node copy = n;  // Adding may move it.
    set(id, AddNormal(copy, operands));
  }
  std::vector<NodeId> out;
  for (const NodeId id : outputs) out.push_back(image_of(id));
  return out;
}

}  // namespace tenon::optimizer
