#include "coordinator/publish/packed.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/rules/canonical.h"
#include "core/rules/float_class.h"
#include "core/rules/forms.h"

namespace tenon::publish {
namespace {

// "concat_matmul__matmul_concat": the operators of both sides, from the roots down, each once.
std::string NameOf(const rules::Rule& rule) {
  const auto side = [&](const std::vector<graph::NodeId>& roots) {
    std::string out;
    std::set<std::string> seen;
    const std::vector<graph::NodeId> ids = rule.graph.Reachable(roots);
    for (auto it = ids.rbegin(); it != ids.rend(); ++it) {
      const graph::Node& n = rule.graph.node(*it);
      if (n.is_input()) continue;
      std::string word(ops::NameOf(*n.op));
      for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      if (!seen.insert(word).second) continue;
      out += (out.empty() ? "" : "_") + word;
    }
    return out.empty() ? std::string("input") : out;
  };
  const std::string name = side(rule.source) + "__" + side(rule.target);
  return rule.source.size() == 1 ? name : fmt::format("join{}_{}", rule.source.size(), name);
}

// Marks rules as forms of the first rule of their family.
void GatherFamilies(std::vector<pack::PackedRule>& all) {
  std::map<std::string, std::size_t> number;
  for (std::size_t k = 0; k < all.size(); ++k) {
    number.emplace(*rules::CanonicalBytes(all[k].rule), k);
  }
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (!all[k].form_of.empty()) continue;
    for (const rules::Rule& form : rules::Forms(all[k].rule)) {
      const auto found = number.find(*rules::CanonicalBytes(form));
      if (found == number.end() || found->second < k) continue;
      std::string& form_of = all[found->second].form_of;
      if (form_of.empty()) form_of = all[k].rule.name;
    }
  }
}

}  // namespace

StatusOr<std::vector<pack::PackedRule>> Packed(std::vector<rules::Rule> all) {
  struct Entry {
    std::string bytes;
    rules::Rule rule;
  };
  std::vector<Entry> entries;
  for (rules::Rule& rule : all) {
    ASSIGN_OR_RETURN(rule, rules::Canonical(rule));
    ASSIGN_OR_RETURN(std::string bytes, rules::CanonicalBytes(rule));
    entries.push_back({std::move(bytes), std::move(rule)});
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return a.bytes.size() != b.bytes.size() ? a.bytes.size() < b.bytes.size() : a.bytes < b.bytes;
  });
  std::map<std::string, int> used;
  std::vector<pack::PackedRule> out;
  for (Entry& e : entries) {
    const std::string name = NameOf(e.rule);
    const int number = ++used[name];
    e.rule.name = number == 1 ? name : fmt::format("{}_{}", name, number);
    e.rule.float_class = rules::FloatClassOf(e.rule);
    e.rule.expect = rules::Expect::kProved;
    out.push_back({std::move(e.rule), ""});
  }
  GatherFamilies(out);
  return out;
}

}  // namespace tenon::publish
