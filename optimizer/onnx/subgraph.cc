#include "optimizer/onnx/subgraph.h"

#include <algorithm>

namespace tenon::optimizer {
namespace {

using onnx::GraphProto;
using onnx::NodeProto;
using Names = std::unordered_set<std::string>;

// The names that a graph defines itself, not those of graphs inside it.
Names Defined(const GraphProto& graph) {
  Names out;
  for (const auto& v : graph.input()) out.insert(v.name());
  for (const auto& t : graph.initializer()) out.insert(t.name());
  for (const auto& t : graph.sparse_initializer()) out.insert(t.values().name());
  for (const auto& n : graph.node()) out.insert(n.output().begin(), n.output().end());
  return out;
}

// Appends the free names of `graph`; `bound` are those of the graphs around it, up to the captured
// node.
void Free(const GraphProto& graph, Names bound, std::vector<std::string>& out) {
  bound.merge(Defined(graph));
  const auto use = [&](const std::string& name) {
    if (!name.empty() && !bound.contains(name) && std::ranges::find(out, name) == out.end()) {
      out.push_back(name);
    }
  };
  for (const auto& n : graph.node()) {
    for (const auto& name : n.input()) use(name);
    for (const GraphProto* g : SubgraphsOf(n)) Free(*g, bound, out);
  }
  for (const auto& v : graph.output()) use(v.name());
}

void ForEachGraph(NodeProto& node, const std::function<void(GraphProto&)>& f) {
  for (auto& a : *node.mutable_attribute()) {
    if (a.has_g()) f(*a.mutable_g());
    for (auto& g : *a.mutable_graphs()) f(g);
  }
}

void Rename(GraphProto& graph, std::unordered_map<std::string, std::string> new_names) {
  for (const std::string& own : Defined(graph)) new_names.erase(own);
  if (new_names.empty()) return;
  const auto rename = [&](std::string* name) {
    if (const auto it = new_names.find(*name); it != new_names.end()) *name = it->second;
  };
  for (auto& n : *graph.mutable_node()) {
    for (auto& name : *n.mutable_input()) rename(&name);
    ForEachGraph(n, [&](GraphProto& g) { Rename(g, new_names); });
  }
  for (auto& v : *graph.mutable_output()) rename(v.mutable_name());
}

}  // namespace

std::vector<const GraphProto*> SubgraphsOf(const NodeProto& node) {
  std::vector<const GraphProto*> out;
  for (const auto& a : node.attribute()) {
    if (a.has_g()) out.push_back(&a.g());
    for (const auto& g : a.graphs()) out.push_back(&g);
  }
  return out;
}

std::vector<std::string> CapturedNames(const NodeProto& node) {
  std::vector<std::string> out;
  for (const GraphProto* g : SubgraphsOf(node)) Free(*g, {}, out);
  return out;
}

void RenameCaptures(NodeProto& node, const std::unordered_map<std::string, std::string>& names) {
  ForEachGraph(node, [&](GraphProto& g) { Rename(g, names); });
}

void CollectNames(const GraphProto& graph, Names& names) {
  names.merge(Defined(graph));
  for (const auto& v : graph.value_info()) names.insert(v.name());
  for (const auto& v : graph.output()) names.insert(v.name());
  for (const auto& n : graph.node()) {
    names.insert(n.input().begin(), n.input().end());
    for (const GraphProto* g : SubgraphsOf(n)) CollectNames(*g, names);
  }
}

void ForEachTensor(NodeProto& node, const std::function<void(onnx::TensorProto&)>& f) {
  for (auto& a : *node.mutable_attribute()) {
    if (a.has_t()) f(*a.mutable_t());
    for (auto& t : *a.mutable_tensors()) f(t);
  }
  ForEachGraph(node, [&](GraphProto& g) {
    for (auto& t : *g.mutable_initializer()) f(t);
    for (auto& n : *g.mutable_node()) ForEachTensor(n, f);
  });
}

}  // namespace tenon::optimizer
