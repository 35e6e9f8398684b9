// The tokens of rule text (docs/formats/rules.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace tenon::rules {

struct Token {
  enum class Kind : std::uint8_t { kName, kInteger, kReal, kPunct, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;
  int line = 0;    // From 1.
  int column = 0;  // From 1, in bytes.
};

// The tokens of `text`, the last one of kind kEnd. InvalidArgument as ErrorAt says: a character
// that is none of the grammar's, a rule without a name, a text above 16 MiB.
StatusOr<std::vector<Token>> Lex(std::string_view text, std::string_view file);

// "FILE:LINE:COLUMN: what".
Status ErrorAt(std::string_view file, const Token& at, const std::string& what);

// The words that start a clause.
bool IsKeyword(std::string_view word);

}  // namespace tenon::rules
