// The text form of rules and graphs, both ways. Grammar: docs/formats/rules.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/rules/rule.h"

namespace tenon::rules {

// A rule that the text defines, or why it is none. Errors of grammar end the reading of a file;
// errors of type (a source or target whose shapes do not fit) are a value, because a rule file may
// expect them (`expect ill-formed`).
struct ParsedRule {
  std::string name;
  Expect expect = Expect::kNone;
  int line = 0;  // Of the `rule` keyword, from 1.
  StatusOr<Rule> rule = base::Internal("not read");
};

// Reads a rule file. InvalidArgument: "FILE:LINE:COLUMN: what is wrong"; `file` is only a name.
StatusOr<std::vector<ParsedRule>> ParseRules(std::string_view text, std::string_view file);

// Reads text that must hold exactly one well-typed rule.
StatusOr<Rule> ParseRule(std::string_view text);

// The text of a rule; ParseRule reads it back to the same rule (up to node numbering).
std::string PrintRule(const Rule& rule);

// The expression of `root`, inputs by name: "MatMul(Transpose(a, perm=[1,0]), b)".
std::string PrintTerm(const graph::Graph& g, graph::NodeId root);
// An operator with its attributes that differ from their defaults, without operands.
std::string PrintOperator(const ops::Operator& op, const base::Symbols& symbols);

std::string_view NameOf(Expect expect);

}  // namespace tenon::rules
