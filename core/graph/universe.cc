#include "core/graph/universe.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

namespace tenon::graph {
namespace {

bool IsName(std::string_view name) {
  const auto letter = [](char c) { return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z'); };
  if (name.empty() || name.size() > 64 || !letter(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || ('0' <= c && c <= '9') || c == '_' || c == '-' || c == '.';
  });
}

Status ValidateInputs(const Universe& u) {
  if (u.inputs.empty()) {
    return base::InvalidArgument("input: there is none; give at least one typed input");
  }
  if (u.inputs.size() > std::size_t(TermTable::kInputsMax)) {
    return base::InvalidArgument(fmt::format("input: {} inputs; at most {} are possible",
                                             u.inputs.size(), TermTable::kInputsMax));
  }
  std::set<std::string> names;
  for (std::size_t k = 0; k < u.inputs.size(); ++k) {
    const Universe::Input& input = u.inputs[k];
    const std::string field = fmt::format("input[{}] '{}'", k, input.name);
    if (!IsName(input.name)) {
      return base::InvalidArgument(
          fmt::format("{}: name: give a letter, then letters, digits, '_', '-' or '.'", field));
    }
    if (!names.insert(input.name).second) {
      return base::InvalidArgument(
          fmt::format("{}: name: used by another input; rename one", field));
    }
    std::int64_t elements = 1;
    for (std::int64_t e : input.extents) {
      if (e < 1) {
        return base::InvalidArgument(
            fmt::format("{}: shape: extent {}; extents are at least 1", field, e));
      }
      if (__builtin_mul_overflow(elements, e, &elements) || elements > u.max_elements) {
        return base::InvalidArgument(
            fmt::format("{}: shape: more than max_elements = {} elements; make the input smaller",
                        field, u.max_elements));
      }
    }
  }
  return OkStatus();
}

Status ValidateLimits(const Universe::Operator& o, const std::string& field) {
  for (const Universe::Limit& limit : o.limits) {
    if (limit.operand < 0 || limit.operand >= o.arity) {
      return base::InvalidArgument(
          fmt::format("{}: operand.index: {} is not below the number of operands, {}", field,
                      limit.operand, o.arity));
    }
    for (std::int64_t e : limit.extents) {
      if (e < 0) {
        return base::InvalidArgument(
            fmt::format("{}: operand.shape: extent {}; 0 stands for any", field, e));
      }
    }
  }
  return OkStatus();
}

Status ValidateOperators(const Universe& u) {
  if (u.operators.empty()) {
    return base::InvalidArgument("operator: there is none; name at least one");
  }
  if (u.operators.size() > std::size_t(kUniverseOperatorsMax)) {
    return base::InvalidArgument(
        fmt::format("operator: {} after expanding attribute values; at most {} are possible",
                    u.operators.size(), kUniverseOperatorsMax));
  }
  for (std::size_t k = 0; k < u.operators.size(); ++k) {
    const Universe::Operator& o = u.operators[k];
    const ops::Info& info = ops::InfoOf(o.op);
    const std::string field = fmt::format("operator '{}'", info.name);
    if (ops::IsOpaque(o.op)) {
      return base::InvalidArgument(
          fmt::format("{}: has no meaning, so nothing can be found with it; remove it", field));
    }
    const int most = std::min(info.arity_max, kUniverseArityMax);
    if (o.arity < info.arity_min || o.arity > most) {
      return base::InvalidArgument(fmt::format("{}: arity: {} operands; {} to {} are possible",
                                               field, o.arity, info.arity_min, most));
    }
    if (o.or_scalar && !o.same_shape) {
      return base::InvalidArgument(
          fmt::format("{}: or_scalar: without same_shape every shape is allowed; add that", field));
    }
    RETURN_IF_ERROR(ValidateLimits(o, field));
    for (std::size_t j = 0; j < k; ++j) {
      if (u.operators[j].op == o.op && u.operators[j].arity == o.arity) {
        return base::InvalidArgument(fmt::format(
            "{}: given twice with equal attributes and arity; keep one of them", field));
      }
    }
  }
  return OkStatus();
}

}  // namespace

Status Validate(const Universe& u) {
  if (!IsName(u.name)) {
    return base::InvalidArgument(
        fmt::format("name: '{}'; give a letter, then letters, digits, '_', '-' or '.'", u.name));
  }
  if (u.max_operators < 1 || u.max_operators > kMaxOperatorsMax) {
    return base::InvalidArgument(
        fmt::format("max_operators: {}; give 1 to {}", u.max_operators, kMaxOperatorsMax));
  }
  if (u.max_elements < 1 || u.max_elements > kMaxElementsMax) {
    return base::InvalidArgument(
        fmt::format("max_elements: {}; give 1 to {}", u.max_elements, kMaxElementsMax));
  }
  if (u.semantics != Semantics::kTrue && u.outputs != Outputs::kMultiple) {
    return base::InvalidArgument("semantics: TASO_AS_RELEASED goes with outputs: MULTIPLE");
  }
  RETURN_IF_ERROR(ValidateInputs(u));
  return ValidateOperators(u);
}

TermTable TableOf(const Universe& u) {
  TermTable table;
  for (const Universe::Input& input : u.inputs) {
    table.AddInput(input.name, input.kind, {DataType::kFloat, ToShape(input.extents)});
  }
  for (const Universe::Operator& o : u.operators) table.InternOperator(o.op);
  return table;
}

}  // namespace tenon::graph
