#include "optimizer/search/space.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <utility>

#include "core/base/check.h"

namespace tenon::optimizer {

using egraph::ClassId;
using egraph::NodeId;

namespace {

// Less than what costs may differ by and be the same (extract::kTolerance), all nodes together.
constexpr double kTrifle = 1e-11;

}  // namespace

Space::Space(const egraph::EGraph& g, const graph::Graph& piece, std::span<const ClassId> roots,
             const Device& device, double limit_us, const std::function<bool()>& late)
    : g_(g),
      piece_(piece),
      device_(device),
      trifle_us_(limit_us * kTrifle),
      nodes_(g.class_bound()),
      known_(g.class_bound(), -1),
      number_(g.class_bound(), -1) {
  for (NodeId n = 0; n < NodeId(g.node_bound()); ++n) {
    if (g.alive(n)) nodes_[std::size_t(g.class_of(n))].push_back(n);
  }
  for (const ClassId c : roots) roots_.push_back(g.Find(c));
  FixKnown();
  Number(roots_);
  // Those of the piece have a price already.
  const auto given = NodeId(piece.size());
  for (std::size_t c = 0; c < g.class_bound(); ++c) {
    if (number_[c] < 0) continue;
    for (const NodeId n : nodes_[c]) {
      complete_ = complete_ && !(late && late());
      if (!complete_ && n >= given) continue;
      const double us = Price(n);
      if (us > limit_us) continue;
      extract::Node node{.eclass = number_[c], .cost = us + trifle_us_, .children = {}};
      bool within = true;
      for (const ClassId o : g.operands(n)) {
        if (IsLeaf(o)) continue;
        within = within && number_[std::size_t(o)] >= 0;
        node.children.push_back(number_[std::size_t(o)]);
      }
      CHECK(within);
      problem_.nodes.push_back(std::move(node));
      node_of_.push_back(n);
    }
  }
  for (const ClassId c : roots_) {
    if (!IsLeaf(c)) problem_.roots.push_back(number_[std::size_t(c)]);
  }
}

// Leaves: inputs, and what depends on weights only, from the leaves up in the order of how many
// operators it takes as a tree (Knuth's generalisation of Dijkstra's algorithm).
void Space::FixKnown() {
  using Entry = std::pair<double, NodeId>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  std::vector<double> size(g_.class_bound(), std::numeric_limits<double>::infinity());
  for (std::size_t c = 0; c < nodes_.size(); ++c) {
    for (const NodeId n : nodes_[c]) {
      if (g_.is_input(n)) {
        ready.emplace(0, n);
      } else if (g_.operands(n).empty() && !ops::IsOpaque(g_.vocabulary().op(g_.op(n)))) {
        ready.emplace(1, n);
      }
    }
  }
  while (!ready.empty()) {
    const auto [cost, n] = ready.top();
    ready.pop();
    const ClassId c = g_.class_of(n);
    if (IsLeaf(c)) continue;
    known_[std::size_t(c)] = n;
    size[std::size_t(c)] = cost;
    if (!g_.weights_only(c)) continue;
    std::vector<NodeId> users;
    g_.ForEachUse(c, [&](NodeId user) {
      if (g_.alive(user) && g_.weights_only(g_.class_of(user))) users.push_back(user);
    });
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (const NodeId user : users) {
      if (ops::IsOpaque(g_.vocabulary().op(g_.op(user)))) continue;
      double sum = 1;
      bool complete = true;
      for (const ClassId o : g_.operands(user)) {
        complete = complete && IsLeaf(o) && g_.weights_only(o);
        sum += size[std::size_t(o)];
      }
      if (complete) ready.emplace(sum, user);
    }
  }
}

// Numbers for the classes that the roots reach above the leaves.
void Space::Number(std::span<const ClassId> roots) {
  std::vector<ClassId> open;
  const auto visit = [&](ClassId c) {
    if (IsLeaf(c) || number_[std::size_t(c)] >= 0) return;
    number_[std::size_t(c)] = problem_.num_classes++;
    open.push_back(c);
  };
  for (const ClassId c : roots) visit(c);
  for (std::size_t k = 0; k < open.size(); ++k) {
    for (const NodeId n : nodes_[std::size_t(open[k])]) {
      for (const ClassId o : g_.operands(n)) visit(o);
    }
  }
}

double Space::Price(NodeId n) const {
  graph::Graph one;
  std::vector<graph::NodeId> operands;
  std::vector<ClassId> met;
  std::vector<graph::NodeId> met_at;
  const egraph::Vocabulary& words = g_.vocabulary();
  for (const ClassId c : g_.operands(n)) {
    const auto at = std::find(met.begin(), met.end(), c);
    if (at != met.end()) {
      operands.push_back(met_at[std::size_t(at - met.begin())]);
      continue;
    }
    const egraph::TypeId type = g_.type(c);
    const auto kind =
        g_.weights_only(c) ? graph::InputKind::kWeight : graph::InputKind::kActivation;
    operands.push_back(
        one.AddInput("", kind, {words.dtype(type), graph::ToShape(words.extents(type))}));
    met.push_back(c);
    met_at.push_back(operands.back());
  }
  const graph::DataType dtype = words.dtype(g_.type(g_.class_of(n)));
  const auto id = one.Add(words.op(g_.op(n)), operands, dtype);
  CHECK(id.ok());
  return device_.CostOf(one, *id);
}

graph::Graph Space::Build(const extract::Choice& choice) const {
  graph::Graph out;
  for (std::int32_t k = 0; k < std::int32_t(piece_.inputs().size()); ++k) {
    const graph::Input& input = piece_.input(k);
    out.AddInput(input.name, input.kind, *piece_.node(piece_.input_node(k)).type);
  }
  std::vector<graph::NodeId> image(g_.class_bound(), graph::kNoNode);
  std::vector<ClassId> stack(roots_.rbegin(), roots_.rend());
  std::vector<graph::NodeId> operands;
  while (!stack.empty()) {
    const ClassId c = stack.back();
    graph::NodeId& made = image[std::size_t(c)];
    const NodeId n = IsLeaf(c)
                         ? known_[std::size_t(c)]
                         : node_of_[std::size_t(choice[std::size_t(number_[std::size_t(c)])])];
    if (made == graph::kNoNode && g_.is_input(n)) made = out.input_node(-1 - g_.op(n));
    if (made != graph::kNoNode) {
      stack.pop_back();
      continue;
    }
    operands.clear();
    const std::size_t waiting = stack.size();
    for (const ClassId o : g_.operands(n)) {
      operands.push_back(image[std::size_t(o)]);
      if (operands.back() == graph::kNoNode) stack.push_back(o);
    }
    if (stack.size() > waiting) {
      CHECK(stack.size() < 4 * g_.node_bound() + 64);  // The choice has no cycle.
      continue;
    }
    const graph::DataType dtype = g_.vocabulary().dtype(g_.type(c));
    const auto id = out.Add(g_.vocabulary().op(g_.op(n)), operands, dtype);
    CHECK(id.ok());
    made = *id;
    stack.pop_back();
  }
  std::vector<graph::NodeId> outputs;
  for (const ClassId c : roots_) outputs.push_back(image[std::size_t(c)]);
  out.SetOutputs(std::move(outputs));
  return out;
}

}  // namespace tenon::optimizer
