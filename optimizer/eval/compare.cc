// The idea: both graphs are copied into one, where hash-consing makes one node of what they compute
// in the same way. Pairs of values that became one node are equal; of the others, both cones are
// evaluated in the order of ids, each node once, and its value is dropped after its last use.
#include "optimizer/eval/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/core.h>

namespace tenon::optimizer {
namespace {

using graph::Graph;
using graph::kNoNode;
using graph::NodeId;

std::uint64_t Mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

std::uint64_t HashOf(std::string_view text) {
  std::uint64_t h = text.size();
  for (char c : text) h = Mix(h ^ static_cast<unsigned char>(c));
  return h;
}

// A dim_param means the same size in both models; sizes nobody named are the same for all.
std::vector<std::int64_t> SizesOf(const base::Symbols& symbols) {
  std::vector<std::int64_t> sizes(symbols.size(), 1);
  for (std::size_t s = 1; s < sizes.size(); ++s) {
    sizes[s] = 2 + std::int64_t(HashOf(symbols.name(base::Symbol(s))) % 3);
  }
  return sizes;
}

class Comparer {
 public:
  Comparer(const Model& original, const Model& optimized, const CompareOptions& options)
      : original_(original),
        optimized_(optimized),
        options_(options),
        deadline_(std::chrono::steady_clock::now() + options.budget) {}

  StatusOr<Comparison> Run();

 private:
  // A value of the original, of the optimized model, and what it is.
  struct Pair {
    NodeId a = kNoNode, b = kNoNode;
    bool output = false;
    std::string what;
    bool covered = false;
  };
  struct Leaf {
    const Model* model = nullptr;
    std::string name;
  };
  // The image of a model's graph: of its outputs, and of its opaque nodes by (key, output).
  struct Image {
    std::vector<NodeId> outputs;
    std::map<std::pair<std::int64_t, std::int64_t>, NodeId> opaque;
  };

  StatusOr<Image> Merge(const Model& model);
  StatusOr<NodeId> MergeInput(const Model& model, const Graph& g, NodeId id);
  Status MakePairs(const Image& a, const Image& b);
  void MarkNeeded();
  Status EvaluateAll();
  StatusOr<Values> Value(NodeId id);
  Values Random(NodeId id, std::uint64_t seed) const;
  void Settle(Pair& pair, double error);
  void SettleIfKnown(Pair& pair);
  void Release(NodeId id);
  void CountNodes(const Image& optimized);
  // Two values that cannot be evaluated are equal if they are the same cut or weights of one
  // content.
  bool SameCut(NodeId a, NodeId b) const;
  bool Evaluable(NodeId id) const { return graph::IsFloating(merged_.node(id).type->dtype); }

  const Model& original_;
  const Model& optimized_;
  const CompareOptions options_;
  const std::chrono::steady_clock::time_point deadline_;
  Graph merged_;
  std::map<std::string, NodeId> activations_;
  std::map<const void*, NodeId> weights_;
  std::vector<Leaf> leaves_;                            // By input of the merged graph.
  std::unordered_map<std::string, std::int64_t> keys_;  // Of opaque nodes, by identity.
  std::vector<std::string> identities_;
  std::vector<std::string> opaque_names_;  // By key, for messages.
  std::vector<Pair> pairs_;
  std::vector<int> uses_;
  std::vector<bool> positive_;  // Wanted above 0: variances.
  std::vector<std::unique_ptr<Values>> values_;
  std::unordered_map<NodeId, std::vector<std::size_t>> pairs_of_;
  Comparison result_;
};

StatusOr<NodeId> Comparer::MergeInput(const Model& model, const Graph& g, NodeId id) {
  const graph::Input& input = g.input(g.node(id).input);
  NodeId* place = nullptr;
  if (input.kind == graph::InputKind::kActivation) {
    place = &activations_.emplace(input.name, kNoNode).first->second;
  } else {
    ASSIGN_OR_RETURN(const void* const identity, model.WeightIdentity(input.name));
    place = &weights_.emplace(identity, kNoNode).first->second;
  }
  if (*place == kNoNode) {
    *place = merged_.AddInput(input.name, input.kind, *g.node(id).type);
    leaves_.push_back({&model, input.name});
  }
  if (*merged_.node(*place).type != *g.node(id).type) {
    return base::InvalidArgument(
        fmt::format("input '{}' has another type in the other model", input.name));
  }
  return *place;
}

StatusOr<Comparer::Image> Comparer::Merge(const Model& model) {
  const Graph& symbolic = model.graph();
  ASSIGN_OR_RETURN(const Graph g,
                   graph::Instantiate(symbolic, symbolic.outputs(), SizesOf(symbolic.symbols())));
  Image image;
  std::vector<NodeId> to(g.size(), kNoNode);
  for (NodeId id : g.Reachable(g.outputs())) {
    const graph::Node& n = g.node(id);
    NodeId& place = to[std::size_t(id)];
    if (n.is_input()) {
      ASSIGN_OR_RETURN(place, MergeInput(model, g, id));
      continue;
    }
    std::vector<NodeId> operands;
    for (NodeId o : n.operands) operands.push_back(to[std::size_t(o)]);
    const auto* opaque = std::get_if<ops::Opaque>(n.op.get());
    if (opaque == nullptr) {
      ASSIGN_OR_RETURN(place, merged_.Add(*n.op, operands, n.type->dtype));
      continue;
    }
    ops::Opaque renamed = *opaque;
    const std::string identity = model.ForeignIdentity(opaque->key);
    const auto [key, fresh] = keys_.emplace(identity, std::int64_t(keys_.size()));
    renamed.key = key->second;
    if (fresh) {
      const Foreign foreign = model.ForeignNode(opaque->key);
      identities_.push_back(identity);
      opaque_names_.push_back(fmt::format("{} ({})", identity, foreign.op_type));
    }
    ASSIGN_OR_RETURN(place, merged_.Add(renamed, operands, n.type->dtype));
    image.opaque.emplace(std::pair(renamed.key, renamed.output), place);
  }
  for (NodeId id : g.outputs()) image.outputs.push_back(to[std::size_t(id)]);
  return image;
}

Status Comparer::MakePairs(const Image& a, const Image& b) {
  if (a.outputs.size() != b.outputs.size()) {
    return base::InvalidArgument(
        fmt::format("the models have {} and {} outputs", a.outputs.size(), b.outputs.size()));
  }
  for (std::size_t k = 0; k < a.outputs.size(); ++k) {
    pairs_.push_back({a.outputs[k], b.outputs[k], true,
                      fmt::format("output '{}'", original_.output_names()[k])});
  }
  for (const auto& [which, id] : b.opaque) {
    const std::string& name = opaque_names_[std::size_t(which.first)];
    const auto other = a.opaque.find(which);
    if (other == a.opaque.end()) {
      return base::InvalidArgument(fmt::format("{} is only in the optimized model", name));
    }
    const auto& left = merged_.node(other->second).operands;
    const auto& right = merged_.node(id).operands;
    if (left.size() != right.size()) {
      return base::InvalidArgument(fmt::format("{} has another number of operands", name));
    }
    // The outputs of a node have the same operands: one of them speaks for all.
    if (which.second > 0 && b.opaque.contains({which.first, 0})) continue;
    for (std::size_t k = 0; k < left.size(); ++k) {
      pairs_.push_back({left[k], right[k], false, fmt::format("operand {} of {}", k, name)});
    }
  }
  for (const Pair& p : pairs_) {
    // (Of a cut, one file may know less of the sizes than the other.)
    if (!SameCut(p.a, p.b) && *merged_.node(p.a).type != *merged_.node(p.b).type) {
      return base::InvalidArgument(fmt::format("{} has another type", p.what));
    }
  }
  return OkStatus();
}

bool Comparer::SameCut(NodeId a, NodeId b) const {
  if (a == b) return true;
  const auto& x = merged_.node(a);
  const auto& y = merged_.node(b);
  if (x.is_input() && y.is_input() && !Evaluable(a)) {
    const Leaf &p = leaves_[std::size_t(x.input)], &q = leaves_[std::size_t(y.input)];
    return Model::SameWeight(*p.model, p.name, *q.model, q.name);
  }
  if (x.is_input() || y.is_input()) return false;
  const auto* p = std::get_if<ops::Opaque>(x.op.get());
  const auto* q = std::get_if<ops::Opaque>(y.op.get());
  return p != nullptr && q != nullptr && p->key == q->key && p->output == q->output;
}

void Comparer::Settle(Pair& pair, double error) {
  pair.covered = true;
  if (pair.output) ++result_.outputs_covered;
  if (error > result_.max_relative_error || std::isnan(error) || result_.worst.empty()) {
    if (error > 0) result_.worst = pair.what;
    result_.max_relative_error = std::max(result_.max_relative_error, error);
  }
}

// Decides what needs no evaluation, and counts the uses of every value that does.
void Comparer::MarkNeeded() {
  uses_.assign(merged_.size(), 0);
  positive_.assign(merged_.size(), false);
  values_.resize(merged_.size());
  std::vector<NodeId> roots;
  for (std::size_t k = 0; k < pairs_.size(); ++k) {
    Pair& p = pairs_[k];
    ++result_.values;
    if (p.output) ++result_.outputs;
    if (SameCut(p.a, p.b)) {
      ++result_.identical;
      Settle(p, 0);
    } else if (!Evaluable(p.a)) {
      ++result_.compared;
      Settle(p, std::numeric_limits<double>::infinity());
    } else {
      for (NodeId id : {p.a, p.b}) {
        roots.push_back(id);
        ++uses_[std::size_t(id)];
        pairs_of_[id].push_back(k);
      }
    }
  }
  std::vector<bool> needed(merged_.size(), false);
  for (NodeId id : roots) needed[std::size_t(id)] = true;
  for (std::size_t k = merged_.size(); k-- > 0;) {
    const graph::Node& n = merged_.node(NodeId(k));
    if (!needed[k] || n.is_input() || ops::IsOpaque(*n.op)) continue;
    for (NodeId o : n.operands) {
      needed[std::size_t(o)] = true;
      ++uses_[std::size_t(o)];
    }
    if (std::holds_alternative<ops::BatchNormalization>(*n.op)) {
      positive_[std::size_t(n.operands[4])] = true;
    }
  }
}

Values Comparer::Random(NodeId id, std::uint64_t seed) const {
  Values out;
  out.extents = graph::Concrete(merged_.shape(id));
  out.data = RandomNumbers(Mix(seed ^ options_.seed), graph::ElementCount(out.extents));
  if (positive_[std::size_t(id)]) {
    for (double& v : out.data) v = 0.5 + std::fabs(v);
  }
  return out;
}

StatusOr<Values> Comparer::Value(NodeId id) {
  const graph::Node& n = merged_.node(id);
  if (n.is_input()) {
    const Leaf& leaf = leaves_[std::size_t(n.input)];
    if (merged_.input(n.input).kind == graph::InputKind::kWeight) {
      return leaf.model->WeightValue(leaf.name);
    }
    return Random(id, HashOf(leaf.name));
  }
  if (const auto* opaque = std::get_if<ops::Opaque>(n.op.get())) {
    return Random(id,
                  HashOf(identities_[std::size_t(opaque->key)]) + std::uint64_t(opaque->output));
  }
  std::vector<const Values*> operands;
  for (NodeId o : n.operands) operands.push_back(values_[std::size_t(o)].get());
  return Apply(*n.op, operands, graph::Concrete(n.shape()));
}

void Comparer::Release(NodeId id) {
  if (--uses_[std::size_t(id)] == 0) values_[std::size_t(id)].reset();
}

void Comparer::SettleIfKnown(Pair& p) {
  const Values* a = values_[std::size_t(p.a)].get();
  const Values* b = values_[std::size_t(p.b)].get();
  if (p.covered || a == nullptr || b == nullptr) return;
  ++result_.compared;
  Settle(p, RelativeError(*a, *b));
  Release(p.a);
  Release(p.b);
}

Status Comparer::EvaluateAll() {
  for (NodeId id = 0; id < NodeId(merged_.size()); ++id) {
    if (uses_[std::size_t(id)] == 0) continue;
    if (options_.stop.stop_requested() || std::chrono::steady_clock::now() > deadline_) break;
    ASSIGN_OR_RETURN(Values value, Value(id));
    values_[std::size_t(id)] = std::make_unique<Values>(std::move(value));
    const graph::Node& n = merged_.node(id);
    if (!n.is_input() && !ops::IsOpaque(*n.op)) {
      for (NodeId o : n.operands) Release(o);
    }
    if (const auto it = pairs_of_.find(id); it != pairs_of_.end()) {
      for (std::size_t k : it->second) SettleIfKnown(pairs_[k]);
    }
  }
  result_.skipped = result_.values - result_.identical - result_.compared;
  return OkStatus();
}

void Comparer::CountNodes(const Image& optimized) {
  std::vector<NodeId> all = optimized.outputs, covered;
  const auto count = [&](const std::vector<NodeId>& roots) {
    int nodes = 0;
    for (NodeId id : merged_.Reachable(roots)) {
      const graph::Node& n = merged_.node(id);
      nodes += !n.is_input() && !ops::IsOpaque(*n.op) ? 1 : 0;
    }
    return nodes;
  };
  for (const Pair& p : pairs_) {
    if (p.covered) covered.push_back(p.b);
  }
  result_.nodes = count(all);
  result_.nodes_covered = count(covered);
}

StatusOr<Comparison> Comparer::Run() {
  ASSIGN_OR_RETURN(const Image a, Merge(original_));
  ASSIGN_OR_RETURN(const Image b, Merge(optimized_));
  RETURN_IF_ERROR(MakePairs(a, b));
  MarkNeeded();
  RETURN_IF_ERROR(EvaluateAll());
  CountNodes(b);
  return std::move(result_);
}

}  // namespace

std::vector<double> RandomNumbers(std::uint64_t seed, std::int64_t count) {
  std::vector<double> out(static_cast<std::size_t>(count));
  std::uint64_t state = seed;
  for (double& v : out) {
    // Four 16-bit numbers: their sum has mean 2 and variance 1/3 in units of 2^16.
    const std::uint64_t bits = Mix(state++);
    const double sum = double(bits & 0xffff) + double(bits >> 16 & 0xffff) +
                       double(bits >> 32 & 0xffff) + double(bits >> 48);
    v = (sum / 65536.0 - 2.0) * 1.7320508075688772;
  }
  return out;
}

double RelativeError(const Values& a, const Values& b) {
  CHECK(a.data.size() == b.data.size());
  double squares = 0, worst = 0;
  std::size_t finite = 0;
  for (double v : a.data) {
    if (!std::isfinite(v)) continue;
    squares += v * v;
    ++finite;
  }
  const double scale = finite == 0 ? 0 : std::sqrt(squares / double(finite));
  for (std::size_t k = 0; k < a.data.size(); ++k) {
    const double x = a.data[k], y = b.data[k];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    if (!std::isfinite(x) || !std::isfinite(y)) return std::numeric_limits<double>::infinity();
    const double by = std::max({std::fabs(x), std::fabs(y), scale});
    worst = std::max(worst, std::fabs(x - y) / by);
  }
  return worst;
}

StatusOr<Comparison> Compare(const Model& original, const Model& optimized,
                             const CompareOptions& options) {
  return Comparer(original, optimized, options).Run();
}

}  // namespace tenon::optimizer
