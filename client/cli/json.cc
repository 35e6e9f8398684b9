#include "client/cli/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/check.h"

namespace tenon::cli {

std::string Quoted(std::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Json::Append(Json value) {
  CHECK(std::holds_alternative<List>(value_));
  std::get<List>(value_).push_back(std::move(value));
}

void Json::Set(std::string_view name, Json value) {
  CHECK(std::holds_alternative<Fields>(value_));
  auto& fields = std::get<Fields>(value_);
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const auto& field) { return field.first == name; });
  if (at != fields.end()) {
    at->second = std::move(value);
  } else {
    fields.emplace_back(std::string(name), std::move(value));
  }
}

std::string Json::Text() const {
  std::string out;
  Write(out, 0);
  out += '\n';
  return out;
}

void Json::Write(std::string& out, int indent) const {
  const std::string margin(static_cast<std::size_t>(indent) + 2, ' ');
  const std::string end_margin(static_cast<std::size_t>(indent), ' ');
  if (std::holds_alternative<std::monostate>(value_)) {
    out += "null";
  } else if (const bool* truth = std::get_if<bool>(&value_)) {
    out += *truth ? "true" : "false";
  } else if (const auto* integer = std::get_if<std::int64_t>(&value_)) {
    out += std::to_string(*integer);
  } else if (const double* number = std::get_if<double>(&value_)) {
    out += std::isfinite(*number) ? nlohmann::json(*number).dump() : "null";
  } else if (const auto* text = std::get_if<std::string>(&value_)) {
    out += Quoted(*text);
  } else if (const auto* list = std::get_if<List>(&value_)) {
    const bool flat = std::none_of(list->begin(), list->end(), [](const Json& entry) {
      return std::holds_alternative<List>(entry.value_) ||
             std::holds_alternative<Fields>(entry.value_) ||
             std::holds_alternative<std::string>(entry.value_);
    });
    out += '[';
    for (std::size_t k = 0; k < list->size(); ++k) {
      if (k > 0) out += flat ? ", " : ",";
      if (!flat) out += "\n" + margin;
      (*list)[k].Write(out, indent + 2);
    }
    out += flat ? "]" : "\n" + end_margin + "]";
  } else {
    const auto& fields = std::get<Fields>(value_);
    out += '{';
    for (std::size_t k = 0; k < fields.size(); ++k) {
      if (k > 0) out += ',';
      out += "\n" + margin + Quoted(fields[k].first) + ": ";
      fields[k].second.Write(out, indent + 2);
    }
    out += fields.empty() ? "}" : "\n" + end_margin + "}";
  }
}

}  // namespace tenon::cli
