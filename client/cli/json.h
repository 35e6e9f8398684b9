// Json: a document to be written, with fields in the order in which they were added.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tenon::cli {

// Value type; thread-compatible.
class Json {
 public:
  using List = std::vector<Json>;
  using Fields = std::vector<std::pair<std::string, Json>>;

  Json() = default;  // null
  Json(std::string text) : value_(std::move(text)) {}
  Json(std::string_view text) : value_(std::string(text)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(double number) : value_(number) {}  // Not finite: written as null.
  Json(bool truth) : value_(truth) {}
  template <class T>
  requires(std::is_integral_v<T> && !std::is_same_v<T, bool>) Json(T number)
      : value_(static_cast<std::int64_t>(number)) {}
  static Json Array(List list = {}) { return Json(Value(std::move(list))); }
  static Json Object(Fields fields = {}) { return Json(Value(std::move(fields))); }

  // Adds to an array or object; CHECKs that it is one.
  void Append(Json value);
  void Set(std::string_view name, Json value);

  // Indented by two spaces, lists of numbers in one line, with a final line break. Bytes that are
  // no UTF-8 are replaced.
  std::string Text() const;

 private:
  using Value = std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Fields>;
  explicit Json(Value value) : value_(std::move(value)) {}
  void Write(std::string& out, int indent) const;

  Value value_;
};

// `text` as a JSON string, quotes included.
std::string Quoted(std::string_view text);

}  // namespace tenon::cli
