#include "core/rules/lexer.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

namespace tenon::rules {
namespace {

constexpr std::size_t kTextMax = std::size_t{16} << 20;

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

bool IsKeyword(std::string_view word) {
  static constexpr std::array<std::string_view, 10> kKeywords{
      "rule", "given", "weight", "scalar", "attr", "source", "target", "where", "both", "expect"};
  return std::find(kKeywords.begin(), kKeywords.end(), word) != kKeywords.end();
}

Status ErrorAt(std::string_view file, const Token& at, const std::string& what) {
  return base::InvalidArgument(fmt::format("{}:{}:{}: {}", file, at.line, at.column, what));
}

StatusOr<std::vector<Token>> Lex(std::string_view text, std::string_view file) {
  if (text.size() > kTextMax) {
    return base::InvalidArgument(fmt::format("{}: above 16 MiB", file));
  }
  std::vector<Token> out;
  int line = 1;
  std::size_t line_start = 0;
  std::size_t i = 0;
  const auto push = [&](Token::Kind kind, std::size_t end) {
    out.push_back({kind, std::string(text.substr(i, end - i)), line, int(i - line_start) + 1});
    i = end;
  };
  bool after_rule = false;  // The name of a rule has its own alphabet.
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      line_start = ++i;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i;
    } else if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (after_rule) {
      std::size_t end = i;
      while (end < text.size() &&
             (IsLetter(text[end]) || IsDigit(text[end]) ||
              std::string_view(".:/-").find(text[end]) != std::string_view::npos)) {
        ++end;
      }
      if (end == i)
        return ErrorAt(file, {Token::Kind::kEnd, "", line, int(i - line_start) + 1},
                       "a rule needs a name");
      push(Token::Kind::kName, end);
      after_rule = false;
    } else if (IsLetter(c)) {
      std::size_t end = i;
      while (end < text.size() && (IsLetter(text[end]) || IsDigit(text[end]))) ++end;
      // The one name with a dash.
      for (std::string_view dashed : {"not-proved", "ill-formed"}) {
        if (text.substr(i, dashed.size()) == dashed) end = i + dashed.size();
      }
      push(Token::Kind::kName, end);
      after_rule = out.back().text == "rule";
    } else if (IsDigit(c) || (c == '.' && i + 1 < text.size() && IsDigit(text[i + 1]))) {
      std::size_t end = i;
      bool real = false;
      while (end < text.size()) {
        const char d = text[end];
        if (IsDigit(d)) {
          ++end;
        } else if (d == '.') {
          real = true;
          ++end;
        } else if (d == 'e' || d == 'E') {
          real = true;
          ++end;
          if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
        } else {
          break;
        }
      }
      push(real ? Token::Kind::kReal : Token::Kind::kInteger, end);
    } else if (text.substr(i, 2) == ">=" || text.substr(i, 2) == "<=") {
      push(Token::Kind::kPunct, i + 2);
    } else if (std::string_view("()[],=<>+-*").find(c) != std::string_view::npos) {
      push(Token::Kind::kPunct, i + 1);
    } else {
      const bool shown = c > ' ' && c < 127;
      return ErrorAt(file, {Token::Kind::kEnd, "", line, int(i - line_start) + 1},
                     shown ? fmt::format("unexpected character '{}'", c)
                           : fmt::format("unexpected byte {:#04x}", static_cast<unsigned char>(c)));
    }
  }
  out.push_back({Token::Kind::kEnd, "the end", line, int(i - line_start) + 1});
  return out;
}

}  // namespace tenon::rules
