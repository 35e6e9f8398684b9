#include "interop/flexflow_file.h"

#include <fmt/format.h>

#include <cctype>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/check.h"

namespace tenon::interop {
namespace {

using Json = nlohmann::ordered_json;

// Nesting of a real file is 7; anything much deeper would only exhaust the stack.
constexpr int kDepthMax = 32;

StatusOr<const Json*> Field(const Json& object, const char* name) {
  const auto it = object.is_object() ? object.find(name) : object.end();
  if (!object.is_object() || it == object.end()) {
    return base::InvalidArgument(fmt::format("\"{}\" is missing", name));
  }
  return &*it;
}

StatusOr<std::int32_t> Number(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(const Json* value, Field(object, name));
  using Limits = std::numeric_limits<std::int32_t>;
  if (!value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<std::uint64_t>() > Limits::max()) ||
      value->get<std::int64_t>() > Limits::max() || value->get<std::int64_t>() < Limits::min()) {
    return base::InvalidArgument(fmt::format("\"{}\" is no number of 32 bits", name));
  }
  return static_cast<std::int32_t>(value->get<std::int64_t>());
}

StatusOr<std::string> Text(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(const Json* value, Field(object, name));
  if (!value->is_string()) {
    return base::InvalidArgument(fmt::format("\"{}\" is no string", name));
  }
  return value->get<std::string>();
}

StatusOr<const Json*> List(const Json& object, const char* name) {
  ASSIGN_OR_RETURN(const Json* value, Field(object, name));
  if (!value->is_array()) return base::InvalidArgument(fmt::format("\"{}\" is no list", name));
  return value;
}

StatusOr<PeerOperator> ToOperator(const Json& json) {
  PeerOperator op;
  ASSIGN_OR_RETURN(const std::string type, Text(json, "type"));
  op.type = PeerTypeOf(type).value_or(PeerType::kForeign);
  if (op.type == PeerType::kForeign) op.foreign = type;
  ASSIGN_OR_RETURN(const Json* inputs, List(json, "input"));
  for (const Json& input : *inputs) {
    ASSIGN_OR_RETURN(const std::int32_t id, Number(input, "opId"));
    ASSIGN_OR_RETURN(const std::int32_t output, Number(input, "tsId"));
    op.inputs.push_back({id, output});
  }
  if (op.type == PeerType::kForeign) return op;
  ASSIGN_OR_RETURN(const Json* parameters, List(json, "para"));
  for (const Json& parameter : *parameters) {
    ASSIGN_OR_RETURN(const std::string key, Text(parameter, "key"));
    ASSIGN_OR_RETURN(const std::int32_t value, Number(parameter, "value"));
    const auto known = PeerKeyOf(key);
    if (!known) {
      return base::InvalidArgument(
          fmt::format("{} has a parameter {}, which is none", op.name(), key));
    }
    if (!op.parameters.emplace(*known, value).second) {
      return base::InvalidArgument(fmt::format("{} has {} twice", op.name(), key));
    }
  }
  return op;
}

// A name that rule text can carry.
std::string Readable(std::string name) {
  for (char& c : name) {
    const bool fine = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                      std::string_view("_.:/-").find(c) != std::string_view::npos;
    if (!fine) c = '_';
  }
  return name;
}

StatusOr<PeerRule> ToRule(const Json& json, std::size_t number) {
  PeerRule rule;
  rule.name = fmt::format("rule.{}", number);
  if (json.is_object() && json.contains("name")) {
    ASSIGN_OR_RETURN(std::string name, Text(json, "name"));
    if (!name.empty()) rule.name = Readable(std::move(name));
  }
  for (auto [field, side] : {std::pair{"srcOp", &rule.source}, std::pair{"dstOp", &rule.target}}) {
    ASSIGN_OR_RETURN(const Json* operators, List(json, field));
    for (std::size_t k = 0; k < operators->size(); ++k) {
      StatusOr<PeerOperator> op = ToOperator((*operators)[k]);
      if (!op.ok()) return base::Annotate(op.status(), fmt::format("operator {} of {}", k, field));
      side->push_back(*std::move(op));
    }
  }
  ASSIGN_OR_RETURN(const Json* outputs, List(json, "mappedOutput"));
  for (const Json& out : *outputs) {
    PeerOutput read;
    ASSIGN_OR_RETURN(read.source.op, Number(out, "srcOpId"));
    ASSIGN_OR_RETURN(read.source.output, Number(out, "srcTsId"));
    ASSIGN_OR_RETURN(read.target.op, Number(out, "dstOpId"));
    ASSIGN_OR_RETURN(read.target.output, Number(out, "dstTsId"));
    rule.outputs.push_back(read);
  }
  RETURN_IF_ERROR(Validate(rule));
  return rule;
}

// The parser recurses, and destroying a document does, too.
bool TooDeep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const char c = text[k];
    if (quoted) {
      if (c == '\\') ++k;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDepthMax) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

Json ToJson(const std::vector<PeerOperator>& side) {
  Json list = Json::array();
  for (const PeerOperator& op : side) {
    CHECK(op.type != PeerType::kForeign);
    Json inputs = Json::array(), parameters = Json::array();
    for (const PeerTensor& in : op.inputs) {
      inputs.push_back({{"_t", "Tensor"}, {"opId", in.op}, {"tsId", in.output}});
    }
    for (const auto& [key, value] : op.parameters) {
      parameters.push_back({{"_t", "Parameter"}, {"key", NameOf(key)}, {"value", value}});
    }
    list.push_back({{"_t", "Operator"},
                    {"type", NameOf(op.type)},
                    {"input", std::move(inputs)},
                    {"para", std::move(parameters)}});
  }
  return list;
}

}  // namespace

StatusOr<std::vector<PeerRule>> ReadFlexFlow(std::string_view text, std::string_view file) {
  const auto wrong = [&](const std::string& what) {
    return base::InvalidArgument(fmt::format("{}: {}", file, what));
  };
  if (TooDeep(text)) return wrong(fmt::format("it is nested deeper than {} levels", kDepthMax));
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) {
    return wrong("it is no JSON, or not all of it; rule files of FlexFlow are");
  }
  StatusOr<const Json*> list = List(document, "rule");
  if (!list.ok()) return wrong(base::Message(list.status()));
  if ((*list)->size() > kPeerRulesMax) {
    return base::ResourceExhausted(fmt::format("{}: more than {} rules", file, kPeerRulesMax));
  }
  std::vector<PeerRule> rules;
  for (const Json& json : **list) {
    StatusOr<PeerRule> rule = ToRule(json, rules.size());
    if (!rule.ok()) {
      return wrong(fmt::format("rule {}: {}", rules.size(), base::Message(rule.status())));
    }
    rules.push_back(*std::move(rule));
  }
  if (rules.empty()) return wrong("there is no rule in it");
  return rules;
}

std::string WriteFlexFlow(const std::vector<PeerRule>& rules) {
  Json list = Json::array();
  for (const PeerRule& rule : rules) {
    CHECK(Validate(rule).ok());
    Json outputs = Json::array();
    for (const PeerOutput& out : rule.outputs) {
      outputs.push_back({{"_t", "MapOutput"},
                         {"srcOpId", out.source.op},
                         {"srcTsId", out.source.output},
                         {"dstOpId", out.target.op},
                         {"dstTsId", out.target.output}});
    }
    list.push_back({{"_t", "Rule"},
                    {"name", rule.name},
                    {"srcOp", ToJson(rule.source)},
                    {"dstOp", ToJson(rule.target)},
                    {"mappedOutput", std::move(outputs)}});
  }
  const Json document = {{"_t", "RuleCollection"}, {"rule", std::move(list)}};
  return document.dump(2) + "\n";
}

}  // namespace tenon::interop
