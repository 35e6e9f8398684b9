#include "optimizer/explain/report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "core/rules/text.h"

namespace tenon::optimizer {
namespace {

using Json = nlohmann::ordered_json;

std::string SideText(const graph::Graph& g, std::span<const graph::NodeId> roots) {
  std::string text;
  for (const graph::NodeId id : roots) {
    text += (text.empty() ? "" : ", ") + rules::PrintTerm(g, id);
  }
  return text;
}

Json Number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

Json PictureJson(const Picture& picture) {
  Json boxes = Json::array();
  for (const Box& b : picture.boxes) {
    Json box = {{"kind", int(b.kind)}, {"label", b.label}};
    if (!b.detail.empty()) box["detail"] = b.detail;
    if (!b.type.empty()) box["type"] = b.type;
    if (!b.operands.empty()) box["operands"] = b.operands;
    if (b.ordered) box["ordered"] = true;
    if (b.fresh) box["fresh"] = true;
    boxes.push_back(std::move(box));
  }
  return {{"title", picture.title}, {"boxes", std::move(boxes)}};
}

// Reads fields of one object; the first misfit is kept, and what follows reads as empty.
class FieldReader {
 public:
  FieldReader(const Json& object, std::string path, Status& status)
      : object_(object), path_(std::move(path)), status_(status) {
    if (!object.is_object()) Fail("", "is not an object");
  }

  template <class T>
  void Get(const char* name, T& value, bool required = true) {
    if (!status_.ok()) return;
    const auto it = object_.find(name);
    if (it == object_.end() || it->is_null()) {
      if (required) Fail(name, "is missing");
      return;
    }
    bool fits = false;
    if constexpr (std::is_same_v<T, bool>) {
      fits = it->is_boolean();
    } else if constexpr (std::is_same_v<T, std::string>) {
      fits = it->is_string();
    } else if constexpr (std::is_floating_point_v<T>) {
      fits = it->is_number();
    } else {
      fits = it->is_number_integer() && it->template get<double>() >= -2147483648.0 &&
             it->template get<double>() <= 2147483647.0;
      if constexpr (sizeof(T) == 8) fits = it->is_number_integer();
    }
    if (!fits) return Fail(name, "has the wrong type");
    value = it->template get<T>();
  }
  // Calls f(element, path) for each element of an array.
  template <class F>
  void Each(const char* name, const F& f, bool required = true) {
    if (!status_.ok()) return;
    const auto it = object_.find(name);
    if (it == object_.end() && !required) return;
    if (it == object_.end() || !it->is_array()) return Fail(name, "is not an array");
    for (std::size_t k = 0; k < it->size() && status_.ok(); ++k) {
      f((*it)[k], fmt::format("{}{}[{}]", path_, name, k));
    }
  }
  const Json* Object(const char* name) {
    if (!status_.ok()) return nullptr;
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  void Fail(const std::string& name, const std::string& what) {
    if (status_.ok()) status_ = base::InvalidArgument(fmt::format("{}{}: {}", path_, name, what));
  }

 private:
  const Json& object_;
  std::string path_;
  Status& status_;
};

void ReadStrings(FieldReader& from, const char* name, std::vector<std::string>& out) {
  from.Each(
      name,
      [&](const Json& element, const std::string& path) {
        if (!element.is_string()) return from.Fail(path, "is not a string");
        out.push_back(element.get<std::string>());
      },
      false);
}

Picture ReadPicture(const Json& json, const std::string& path, Status& status) {
  Picture picture;
  FieldReader fields(json, path, status);
  fields.Get("title", picture.title);
  fields.Each("boxes", [&](const Json& element, const std::string& where) {
    Box box;
    int kind = 0;
    FieldReader b(element, where + ".", status);
    b.Get("kind", kind);
    b.Get("label", box.label);
    b.Get("detail", box.detail, false);
    b.Get("type", box.type, false);
    b.Get("ordered", box.ordered, false);
    b.Get("fresh", box.fresh, false);
    if (status.ok() && (kind < int(BoxKind::kInput) || kind > int(BoxKind::kOutput))) {
      b.Fail("kind", "is no kind of box");
    }
    box.kind = BoxKind(kind);
    b.Each(
        "operands",
        [&](const Json& operand, const std::string& at) {
          const auto count = std::int64_t(picture.boxes.size());
          if (!operand.is_number_integer() || operand.get<std::int64_t>() < 0 ||
              operand.get<std::int64_t>() >= count) {
            return b.Fail(at, "is not the number of an earlier box");
          }
          box.operands.push_back(operand.get<int>());
        },
        false);
    picture.boxes.push_back(std::move(box));
  });
  return picture;
}

}  // namespace

Report MakeReport(const graph::Graph& original, const SearchResult& result,
                  std::span<const SearchRule> rules,
                  const std::function<std::string(const ops::Opaque&)>& opaque_name) {
  Report r;
  r.cost_before_us = result.cost_before_us;
  r.cost_after_us = result.cost_after_us;
  r.lower_bound_us = result.lower_bound_us;
  r.nodes_before = result.before.nodes;
  r.nodes_after = result.after.nodes;
  r.end = NameOf(result.end);
  r.steps_spent = result.steps_spent;
  r.graphs_explored = result.graphs_explored;
  r.windows = result.windows;
  r.windows_remembered = result.windows_remembered;
  r.opaque_before = result.before.opaque;
  r.opaque_after = result.after.opaque;
  r.unknown_size = result.after.unknown_size;
  if (const auto& e = result.extraction) {
    const double above = std::max(0.0, result.cost_after_us - e->lower_bound_us);
    r.extraction = {.pieces = e->pieces,
                    .optimal = e->optimal,
                    .saturated = e->saturated,
                    .nodes = e->nodes,
                    .nodes_max = e->nodes_max,
                    .lower_bound_us = e->lower_bound_us,
                    .gap = result.cost_after_us > 0 ? above / result.cost_after_us : 0};
  }
  r.rules_given = int(rules.size());
  r.rules_refused = result.rules_refused;
  for (const SearchStep& step : result.steps) {
    if (step.rule < 0) {
      r.steps.push_back({.rule = "merge_views",
                         .pack = "built-in",
                         .from = "views of views",
                         .to = "views",
                         .cost_us = step.cost_us,
                         .where = step.where});
      continue;
    }
    const SearchRule& rule = rules[std::size_t(step.rule)];
    std::string source = SideText(rule.rule->graph, rule.rule->source);
    std::string target = SideText(rule.rule->graph, rule.rule->target);
    if (!step.forward) std::swap(source, target);
    r.steps.push_back({.rule = rule.rule->name,
                       .pack = rule.pack,
                       .from = std::move(source),
                       .to = std::move(target),
                       .forward = step.forward,
                       .sites = step.sites,
                       .cost_us = step.cost_us,
                       .where = step.where});
  }
  PictureOptions options;
  options.opaque_name = opaque_name;
  options.title = fmt::format("before: {:.1f} us", r.cost_before_us);
  r.before = PictureOf(original, original.outputs(), options);
  options.title = fmt::format("after: {:.1f} us", r.cost_after_us);
  r.after = PictureOf(result.graph, result.graph.outputs(), options);
  MarkDifferences(r.before, r.after);
  return r;
}

std::string ToJson(const Report& r) {
  Json rules = Json::array(), steps = Json::array();
  for (const ReportStep& s : r.steps) {
    rules.push_back(s.rule);
    steps.push_back({{"rule", s.rule},
                     {"pack", s.pack},
                     {"direction", s.forward ? "forward" : "backward"},
                     {"from", s.from},
                     {"to", s.to},
                     {"sites", s.sites},
                     {"cost_us", Number(s.cost_us)},
                     {"where", s.where}});
  }
  Json coverage = {{"opaque_before", r.opaque_before}, {"opaque_after", r.opaque_after},
                   {"unknown_size", r.unknown_size},   {"outputs", nullptr},
                   {"outputs_compared", nullptr},      {"nodes_evaluated", nullptr},
                   {"skipped", Json::array()}};
  if (r.check) {
    coverage["outputs"] = r.check->outputs;
    coverage["outputs_compared"] = r.check->outputs_compared;
    coverage["nodes_evaluated"] = r.check->nodes_evaluated;
    coverage["skipped"] = r.check->skipped;
  }
  Json extraction = nullptr;
  if (const auto& e = r.extraction) {
    extraction = {{"pieces", e->pieces},       {"optimal", e->optimal},
                  {"saturated", e->saturated}, {"nodes", e->nodes},
                  {"nodes_max", e->nodes_max}, {"lower_bound_us", Number(e->lower_bound_us)},
                  {"gap", Number(e->gap)}};
  }
  const Json json = {
      {"model", r.model},
      {"result", r.result},
      {"device", r.device},
      {"search", r.search},
      {"alpha", Number(r.alpha)},
      {"cost_before_us", Number(r.cost_before_us)},
      {"cost_after_us", Number(r.cost_after_us)},
      {"lower_bound_us", Number(r.lower_bound_us)},
      {"nodes_before", r.nodes_before},
      {"nodes_after", r.nodes_after},
      {"rules", std::move(rules)},
      {"max_relative_error", r.check ? Number(r.check->max_relative_error) : Json(nullptr)},
      {"seconds", Number(r.seconds)},
      {"coverage", std::move(coverage)},
      {"steps", std::move(steps)},
      {"exploration",
       {{"end", r.end},
        {"seconds", Number(r.search_seconds)},
        {"steps", r.steps_spent},
        {"graphs", r.graphs_explored},
        {"pieces", r.windows},
        {"pieces_remembered", r.windows_remembered},
        {"rules", r.rules_given},
        {"rules_refused", r.rules_refused}}},
      {"extraction", std::move(extraction)},
      {"notes", r.notes},
      {"graphs", {{"before", PictureJson(r.before)}, {"after", PictureJson(r.after)}}},
  };
  // Names in foreign files need not be UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

StatusOr<Report> ParseReport(std::string_view text, std::string_view file) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto prefix = [&](const Status& s) {
    return base::InvalidArgument(fmt::format("{}: {}", file, base::Message(s)));
  };
  if (json.is_discarded()) return prefix(base::InvalidArgument("is not JSON"));
  Report r;
  Status status = OkStatus();
  FieldReader fields(json, "", status);
  fields.Get("model", r.model, false);
  fields.Get("result", r.result, false);
  fields.Get("device", r.device);
  fields.Get("search", r.search);
  fields.Get("alpha", r.alpha, false);
  fields.Get("cost_before_us", r.cost_before_us);
  fields.Get("cost_after_us", r.cost_after_us);
  fields.Get("lower_bound_us", r.lower_bound_us);
  fields.Get("nodes_before", r.nodes_before);
  fields.Get("nodes_after", r.nodes_after);
  fields.Get("seconds", r.seconds, false);
  fields.Each("steps", [&](const Json& element, const std::string& path) {
    ReportStep step;
    std::string direction;
    FieldReader s(element, path + ".", status);
    s.Get("rule", step.rule);
    s.Get("pack", step.pack);
    s.Get("direction", direction);
    s.Get("from", step.from);
    s.Get("to", step.to);
    s.Get("sites", step.sites);
    s.Get("cost_us", step.cost_us);
    s.Get("where", step.where);
    step.forward = direction == "forward";
    if (!step.forward && direction != "backward") s.Fail("direction", "is no direction");
    r.steps.push_back(std::move(step));
  });
  if (const Json* coverage = fields.Object("coverage")) {
    FieldReader c(*coverage, "coverage.", status);
    c.Get("opaque_before", r.opaque_before);
    c.Get("opaque_after", r.opaque_after);
    c.Get("unknown_size", r.unknown_size);
    if (fields.Object("max_relative_error") != nullptr) {
      ReportCheck check;
      fields.Get("max_relative_error", check.max_relative_error);
      c.Get("outputs", check.outputs);
      c.Get("outputs_compared", check.outputs_compared);
      c.Get("nodes_evaluated", check.nodes_evaluated);
      ReadStrings(c, "skipped", check.skipped);
      r.check = std::move(check);
    }
  }
  if (const Json* exploration = fields.Object("exploration")) {
    FieldReader e(*exploration, "exploration.", status);
    e.Get("end", r.end);
    e.Get("seconds", r.search_seconds, false);
    e.Get("steps", r.steps_spent);
    e.Get("graphs", r.graphs_explored);
    e.Get("pieces", r.windows);
    e.Get("pieces_remembered", r.windows_remembered);
    e.Get("rules", r.rules_given);
    e.Get("rules_refused", r.rules_refused);
  }
  if (const Json* extraction = fields.Object("extraction")) {
    ReportExtraction& into = r.extraction.emplace();
    FieldReader e(*extraction, "extraction.", status);
    e.Get("pieces", into.pieces);
    e.Get("optimal", into.optimal);
    e.Get("saturated", into.saturated);
    e.Get("nodes", into.nodes);
    e.Get("nodes_max", into.nodes_max);
    e.Get("lower_bound_us", into.lower_bound_us);
    e.Get("gap", into.gap);
  }
  ReadStrings(fields, "notes", r.notes);
  if (const Json* graphs = fields.Object("graphs")) {
    FieldReader g(*graphs, "graphs.", status);
    if (const Json* before = g.Object("before")) {
      r.before = ReadPicture(*before, "graphs.before.", status);
    }
    if (const Json* after = g.Object("after")) {
      r.after = ReadPicture(*after, "graphs.after.", status);
    }
  }
  if (!status.ok()) return prefix(status);
  return r;
}

}  // namespace tenon::optimizer
