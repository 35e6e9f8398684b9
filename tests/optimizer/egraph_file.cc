#include <fmt/format.h>
#include <zlib.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/optimizer/egraphs.h"

namespace tenon::optimizer::extract {

using Json = nlohmann::json;

StatusOr<Problem> ParseProblem(const std::string& text) {
  const Json file = Json::parse(text, nullptr, false);
  if (!file.is_object() || !file.contains("nodes") || !file["nodes"].is_object() ||
      !file.contains("root_eclasses") || !file["root_eclasses"].is_array()) {
    return base::InvalidArgument("e-graph: not a JSON object with nodes and root_eclasses");
  }
  Problem problem;
  std::map<std::string, ClassId> classes;
  const auto class_of = [&](const std::string& name) {
    return classes.emplace(name, ClassId(classes.size())).first->second;
  };
  std::map<std::string, ClassId> node_class;
  for (const auto& [id, n] : file["nodes"].items()) {
    if (!n.is_object() || !n.contains("eclass") || !n["eclass"].is_string() ||
        !n.contains("cost") || !n["cost"].is_number() || !n.contains("children") ||
        !n["children"].is_array()) {
      return base::InvalidArgument(
          fmt::format("e-graph: node {}: needs eclass, cost and children", id));
    }
    node_class[id] = class_of(n["eclass"].get<std::string>());
  }
  for (const auto& [id, n] : file["nodes"].items()) {
    Node node{.eclass = node_class[id], .cost = n["cost"].get<double>(), .children = {}};
    for (const Json& child : n["children"]) {
      const auto found =
          child.is_string() ? node_class.find(child.get<std::string>()) : node_class.end();
      if (found == node_class.end()) {
        return base::InvalidArgument(
            fmt::format("e-graph: node {}: child: no node {}", id, child.dump()));
      }
      node.children.push_back(found->second);
    }
    problem.nodes.push_back(std::move(node));
  }
  for (const Json& root : file["root_eclasses"]) {
    const auto found = root.is_string() ? classes.find(root.get<std::string>()) : classes.end();
    if (found == classes.end()) {
      return base::InvalidArgument(fmt::format("e-graph: root: no class {}", root.dump()));
    }
    problem.roots.push_back(found->second);
  }
  problem.num_classes = ClassId(classes.size());
  RETURN_IF_ERROR(Validate(problem));
  return problem;
}

std::string PrintProblem(const Problem& problem) {
  // A child is named by a node of its class: a class without nodes cannot be written.
  std::vector<NodeId> first(std::size_t(problem.num_classes), kNoNode);
  for (std::size_t n = problem.nodes.size(); n-- > 0;) {
    first[std::size_t(problem.nodes[n].eclass)] = NodeId(n);
  }
  Json nodes = Json::object();
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& n = problem.nodes[i];
    Json children = Json::array();
    for (const ClassId c : n.children) children.push_back(std::to_string(first[std::size_t(c)]));
    nodes[std::to_string(i)] = {{"op", "node"},
                                {"cost", n.cost},
                                {"eclass", std::to_string(n.eclass)},
                                {"children", std::move(children)}};
  }
  Json roots = Json::array();
  for (const ClassId r : problem.roots) roots.push_back(std::to_string(r));
  return Json{{"nodes", std::move(nodes)}, {"root_eclasses", std::move(roots)}}.dump();
}

StatusOr<Problem> ReadProblem(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return base::NotFound(fmt::format("{}: cannot be opened", path));
  std::string text;
  char buffer[1 << 16];
  int count = 0;
  while ((count = gzread(file, buffer, sizeof buffer)) > 0) text.append(buffer, std::size_t(count));
  const bool whole = gzclose_r(file) == Z_OK && count == 0;
  if (!whole) return base::DataLoss(fmt::format("{}: cannot be read to its end", path));
  StatusOr<Problem> problem = ParseProblem(text);
  if (!problem.ok()) return base::Annotate(problem.status(), path);
  return problem;
}

}  // namespace tenon::optimizer::extract
