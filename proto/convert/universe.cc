#include "proto/convert/universe.h"

#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "proto/convert/builtin.h"
#include "tenon/v1/universe.pb.h"

namespace tenon::convert {
namespace {

constexpr std::int64_t kMaxElementsDefault = 1024;

StatusOr<graph::Extents> ToExtents(const google::protobuf::RepeatedField<std::int64_t>& shape,
                                   const std::string& field) {
  if (shape.size() > base::kRankMax) {
    return base::InvalidArgument(
        fmt::format("{}: rank {}; at most {} is possible", field, shape.size(), base::kRankMax));
  }
  graph::Extents out;
  for (std::int64_t e : shape) out.push_back(e);
  return out;
}

StatusOr<std::optional<graph::InputKind>> ToKind(v1::Universe::Kind kind,
                                                 const std::string& field) {
  switch (kind) {
    case v1::Universe::KIND_UNSPECIFIED:
      return std::optional<graph::InputKind>();
    case v1::Universe::ACTIVATION:
      return std::optional(graph::InputKind::kActivation);
    case v1::Universe::WEIGHT:
      return std::optional(graph::InputKind::kWeight);
    default:  // Open enums: a number from a later version.
      return base::InvalidArgument(
          fmt::format("{}: kind: {} is unknown; give ACTIVATION or WEIGHT", field, int(kind)));
  }
}

StatusOr<ops::AttrValue> ToValue(const v1::Universe::Value& value, const std::string& field) {
  switch (value.value_case()) {
    case v1::Universe::Value::kInt:
      return ops::AttrValue(std::int64_t{value.int_()});
    case v1::Universe::Value::kNumber:
      return ops::AttrValue(value.number());
    case v1::Universe::Value::kInts: {
      ASSIGN_OR_RETURN(const graph::Extents list, ToExtents(value.ints().at(), field));
      return ops::AttrValue(list);
    }
    case v1::Universe::Value::kText: {
      const auto activation = ops::ActivationByName(value.text());
      if (!activation) {
        return base::InvalidArgument(fmt::format(
            "{}: '{}' is no activation; give none, relu, sigmoid or tanh", field, value.text()));
      }
      return ops::AttrValue(*activation);
    }
    case v1::Universe::Value::VALUE_NOT_SET:
      break;
  }
  return base::InvalidArgument(
      fmt::format("{}: a value without content; give int, number, ints or text", field));
}

// Each operator so far with each of the attribute's values.
StatusOr<std::vector<ops::Operator>> Expand(const std::vector<ops::Operator>& operators,
                                            const v1::Universe::Attribute& attribute,
                                            const std::string& field) {
  const std::string where = fmt::format("{}: attribute '{}'", field, attribute.name());
  if (attribute.value().empty()) {
    return base::InvalidArgument(fmt::format("{}: no value; give at least one", where));
  }
  std::vector<ops::Operator> out;
  for (const ops::Operator& op : operators) {
    for (const v1::Universe::Value& value : attribute.value()) {
      ASSIGN_OR_RETURN(const ops::AttrValue v, ToValue(value, where));
      out.push_back(op);
      if (const Status s = ops::SetAttr(out.back(), attribute.name(), v); !s.ok()) {
        return base::InvalidArgument(
            fmt::format("{}: {}; see `tenon universe show matrix`", field, base::Message(s)));
      }
      if (out.size() > std::size_t(graph::kUniverseOperatorsMax)) {
        return base::InvalidArgument(fmt::format("{}: more than {} combinations; give fewer values",
                                                 where, graph::kUniverseOperatorsMax));
      }
    }
  }
  return out;
}

Status AppendOperators(const v1::Universe::Operator& message, int number, graph::Universe& out) {
  const std::string field = fmt::format("operator[{}] '{}'", number, message.name());
  const auto named = ops::OperatorByName(message.name());
  if (!named) {
    std::string known;
    for (const ops::Operator& op : ops::AllOperators()) {
      if (!ops::IsOpaque(op)) known += fmt::format(" {}", ops::NameOf(op));
    }
    return base::InvalidArgument(
        fmt::format("{}: name: no such operator; there are{}", field, known));
  }
  const ops::Info& info = ops::InfoOf(*named);
  graph::Universe::Operator o;
  o.arity = message.arity() == 0 ? info.arity_min : message.arity();
  if (message.arity() == 0 && info.arity_min != info.arity_max) {
    return base::InvalidArgument(
        fmt::format("{}: arity: missing; give the number of operands, {} to {}", field,
                    info.arity_min, std::min(info.arity_max, graph::kUniverseArityMax)));
  }
  o.same_shape = message.same_shape();
  o.or_scalar = message.or_scalar();
  for (const v1::Universe::Operand& operand : message.operand()) {
    graph::Universe::Limit limit;
    limit.operand = operand.index();
    ASSIGN_OR_RETURN(limit.extents, ToExtents(operand.shape(), field + ": operand.shape"));
    ASSIGN_OR_RETURN(limit.kind, ToKind(operand.kind(), field + ": operand"));
    o.limits.push_back(limit);
  }
  std::vector<ops::Operator> operators{*named};
  for (const v1::Universe::Attribute& attribute : message.attribute()) {
    ASSIGN_OR_RETURN(operators, Expand(operators, attribute, field));
  }
  for (const ops::Operator& op : operators) {
    o.op = op;
    out.operators.push_back(o);
  }
  return OkStatus();
}

// The first error of protobuf's parser, with its place (from 1).
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text.empty()) text = fmt::format("{}:{}: {}", line + 1, column + 1, message);
  }
  std::string text;
};

v1::Universe::Kind KindOf(graph::InputKind kind) {
  return kind == graph::InputKind::kWeight ? v1::Universe::WEIGHT : v1::Universe::ACTIVATION;
}
std::string_view NameOf(graph::InputKind kind) {
  return kind == graph::InputKind::kWeight ? "WEIGHT" : "ACTIVATION";
}

// The attributes that differ from their defaults.
std::vector<ops::Attr> ChangedAttrs(const ops::Operator& op) {
  const auto plain = ops::OperatorByWireId(ops::InfoOf(op).wire_id);
  const std::vector<ops::Attr> attrs = ops::AttrsOf(op), defaults = ops::AttrsOf(*plain);
  std::vector<ops::Attr> out;
  for (std::size_t k = 0; k < attrs.size(); ++k) {
    if (!(attrs[k].value == defaults[k].value)) out.push_back(attrs[k]);
  }
  return out;
}

// Text in double quotes; control bytes as three octal digits.
std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += fmt::format("\\{}", c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\{:03o}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

struct ValueText {
  std::string operator()(std::int64_t v) const { return fmt::format("int: {}", v); }
  // The shortest digits that read back to the same double.
  std::string operator()(double v) const { return fmt::format("number: {}", v); }
  std::string operator()(ops::Activation v) const {
    return fmt::format("text: \"{}\"", ops::NameOf(v));
  }
  std::string operator()(const ops::Size& v) const { return (*this)(v.constant()); }
  std::string operator()(const base::Short<std::int64_t>& v) const {
    return fmt::format("ints {{ at: [{}] }}", fmt::join(v, ", "));
  }
  std::string operator()(const base::Short<ops::Size>& v) const {
    return (*this)(graph::Concrete(v));
  }
};

struct SetValue {
  v1::Universe::Value& out;
  void operator()(std::int64_t v) const { out.set_int_(v); }
  void operator()(double v) const { out.set_number(v); }
  void operator()(ops::Activation v) const { out.set_text(std::string(ops::NameOf(v))); }
  void operator()(const ops::Size& v) const { out.set_int_(v.constant()); }
  void operator()(const base::Short<std::int64_t>& v) const {
    out.mutable_ints();  // Also when the list is empty.
    for (std::int64_t x : v) out.mutable_ints()->add_at(x);
  }
  void operator()(const base::Short<ops::Size>& v) const { (*this)(graph::Concrete(v)); }
};

std::string BuiltinNames() {
  std::string names;
  for (const std::string& name : BuiltinUniverseNames()) names += " " + name;
  return names;
}

}  // namespace

StatusOr<graph::Universe> FromMessage(const v1::Universe& message) {
  graph::Universe out;
  out.name = message.name();
  out.description = message.description();
  switch (message.outputs()) {
    case v1::Universe::SINGLE:
      out.outputs = graph::Outputs::kSingle;
      break;
    case v1::Universe::MULTIPLE:
      out.outputs = graph::Outputs::kMultiple;
      break;
    default:
      return base::InvalidArgument("outputs: missing or unknown; give SINGLE or MULTIPLE");
  }
  switch (message.semantics()) {
    case v1::Universe::SEMANTICS_UNSPECIFIED:
    case v1::Universe::TRUE:
      out.semantics = graph::Semantics::kTrue;
      break;
    case v1::Universe::TASO_AS_RELEASED:
      out.semantics = graph::Semantics::kTasoAsReleased;
      break;
    default:
      return base::InvalidArgument("semantics: unknown; give TRUE or TASO_AS_RELEASED");
  }
  out.max_operators = message.max_operators();
  out.max_elements = message.max_elements() == 0 ? kMaxElementsDefault : message.max_elements();
  for (int k = 0; k < message.input_size(); ++k) {
    const v1::Universe::Input& input = message.input(k);
    const std::string field = fmt::format("input[{}] '{}'", k, input.name());
    ASSIGN_OR_RETURN(const auto kind, ToKind(input.kind(), field));
    if (!kind) {
      return base::InvalidArgument(fmt::format("{}: kind: give ACTIVATION or WEIGHT", field));
    }
    ASSIGN_OR_RETURN(const graph::Extents extents, ToExtents(input.shape(), field + ": shape"));
    out.inputs.push_back({input.name(), *kind, extents});
  }
  for (int k = 0; k < message.operator__size(); ++k) {
    RETURN_IF_ERROR(AppendOperators(message.operator_(k), k, out));
  }
  RETURN_IF_ERROR(graph::Validate(out));
  return out;
}

v1::Universe ToMessage(const graph::Universe& u) {
  v1::Universe message;
  message.set_name(u.name);
  message.set_description(u.description);
  message.set_outputs(u.outputs == graph::Outputs::kSingle ? v1::Universe::SINGLE
                                                           : v1::Universe::MULTIPLE);
  if (u.semantics == graph::Semantics::kTasoAsReleased) {
    message.set_semantics(v1::Universe::TASO_AS_RELEASED);
  }
  message.set_max_operators(u.max_operators);
  message.set_max_elements(u.max_elements);
  for (const graph::Universe::Input& input : u.inputs) {
    v1::Universe::Input& to = *message.add_input();
    to.set_name(input.name);
    to.set_kind(KindOf(input.kind));
    for (std::int64_t e : input.extents) to.add_shape(e);
  }
  for (const graph::Universe::Operator& o : u.operators) {
    v1::Universe::Operator& to = *message.add_operator_();
    to.set_name(std::string(ops::NameOf(o.op)));
    to.set_arity(o.arity);
    to.set_same_shape(o.same_shape);
    to.set_or_scalar(o.or_scalar);
    for (const ops::Attr& attr : ChangedAttrs(o.op)) {
      v1::Universe::Attribute& a = *to.add_attribute();
      a.set_name(std::string(attr.name));
      std::visit(SetValue{*a.add_value()}, attr.value);
    }
    for (const graph::Universe::Limit& limit : o.limits) {
      v1::Universe::Operand& l = *to.add_operand();
      l.set_index(limit.operand);
      for (std::int64_t e : limit.extents) l.add_shape(e);
      if (limit.kind) l.set_kind(KindOf(*limit.kind));
    }
  }
  return message;
}

StatusOr<graph::Universe> ParseUniverse(std::string_view text, std::string_view file) {
  google::protobuf::TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  v1::Universe message;
  if (!parser.ParseFromString(std::string(text), &message)) {
    return base::InvalidArgument(fmt::format("{}:{}", file, error.text));
  }
  auto universe = FromMessage(message);
  if (!universe.ok()) return base::Annotate(universe.status(), file);
  return universe;
}

std::string CanonicalText(const graph::Universe& u) {
  std::string out =
      fmt::format("name: {}\ndescription: {}\noutputs: {}\n", Quote(u.name), Quote(u.description),
                  u.outputs == graph::Outputs::kSingle ? "SINGLE" : "MULTIPLE");
  if (u.semantics == graph::Semantics::kTasoAsReleased) out += "semantics: TASO_AS_RELEASED\n";
  out += fmt::format("max_operators: {}\nmax_elements: {}\n", u.max_operators, u.max_elements);
  for (const graph::Universe::Input& input : u.inputs) {
    out += fmt::format("input {{ name: {} kind: {} shape: [{}] }}\n", Quote(input.name),
                       NameOf(input.kind), fmt::join(input.extents, ", "));
  }
  for (const graph::Universe::Operator& o : u.operators) {
    out += fmt::format("operator {{ name: \"{}\" arity: {}", ops::NameOf(o.op), o.arity);
    for (const ops::Attr& attr : ChangedAttrs(o.op)) {
      out += fmt::format(" attribute {{ name: \"{}\" value {{ {} }} }}", attr.name,
                         std::visit(ValueText{}, attr.value));
    }
    for (const graph::Universe::Limit& limit : o.limits) {
      out += fmt::format(" operand {{ index: {}", limit.operand);
      if (!limit.extents.empty()) {
        out += fmt::format(" shape: [{}]", fmt::join(limit.extents, ", "));
      }
      if (limit.kind) out += fmt::format(" kind: {}", NameOf(*limit.kind));
      out += " }";
    }
    if (o.same_shape) out += " same_shape: true";
    out += o.or_scalar ? " or_scalar: true }\n" : " }\n";
  }
  return out;
}

std::vector<std::string> BuiltinUniverseNames() {
  std::vector<std::string> names;
  for (const BuiltinUniverse& u : BuiltinUniverses()) names.emplace_back(u.name);
  return names;
}

StatusOr<std::string> BuiltinUniverseText(std::string_view name) {
  for (const BuiltinUniverse& u : BuiltinUniverses()) {
    if (u.name == name) return std::string(u.text);
  }
  return base::NotFound(fmt::format(
      "no universe '{}' comes with Tenon; there are{}, or give the path of a .textproto file", name,
      BuiltinNames()));
}

StatusOr<graph::Universe> LoadUniverse(const std::string& name_or_path) {
  if (name_or_path.find_first_of("/.") == std::string::npos) {
    ASSIGN_OR_RETURN(const std::string text, BuiltinUniverseText(name_or_path));
    return ParseUniverse(text, name_or_path);
  }
  std::ifstream in(name_or_path, std::ios::binary);
  if (!in) {
    return base::NotFound(
        fmt::format("{}: cannot be read; give a readable universe file or one of{}", name_or_path,
                    BuiltinNames()));
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return base::DataLoss(fmt::format("{}: reading failed", name_or_path));
  return ParseUniverse(text, name_or_path);
}

}  // namespace tenon::convert
