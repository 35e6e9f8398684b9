// A recursive-descent reader of docs/formats/rules.md. A rule is read in two passes over its
// tokens: first what declares names (attr, given, weight, scalar), then what uses them, so that
// clauses may stand in any order. Nesting is bounded, so hostile text cannot exhaust the stack.
#include <charconv>
#include <map>
#include <set>

#include <fmt/core.h>

#include "core/rules/complete.h"
#include "core/rules/lexer.h"
#include "core/rules/text.h"

namespace tenon::rules {
namespace {

constexpr int kNestingMax = 100;

// Reads one rule. Its error is of grammar; what does not fit in a term is kept in type_error_.
class RuleReader {
 public:
  RuleReader(const std::vector<Token>& tokens, std::size_t& at, std::string_view file)
      : tokens_(tokens), at_(at), file_(file) {}

  StatusOr<ParsedRule> Read() {
    ParsedRule out;
    out.line = Peek().line;
    RETURN_IF_ERROR(Take("rule"));
    out.name = Peek().text;
    if (Peek().kind != Token::Kind::kName) return Wrong("a rule needs a name");
    ++at_;
    RETURN_IF_ERROR(FindClauses());
    const std::size_t end = at_;
    for (std::string_view keyword :
         {"attr", "given", "weight", "scalar", "where", "source", "target", "expect"}) {
      const auto [first, last] = clauses_.equal_range(keyword);
      for (auto it = first; it != last; ++it) {
        at_ = it->second;
        RETURN_IF_ERROR(Clause(keyword));
        if (!AtClauseEnd()) return Wrong("expected a comma or the next clause");
      }
    }
    at_ = end;
    RETURN_IF_ERROR(CheckDivisors());
    if (clauses_.count("source") == 0) return Missing(out, "source");
    if (clauses_.count("target") == 0) return Missing(out, "target");
    rule_.both = clauses_.count("both") > 0;
    rule_.name = out.name;
    rule_.line = out.line;
    out.expect = rule_.expect;
    if (type_error_.ok() && rule_.source.size() != rule_.target.size()) {
      type_error_ = base::InvalidArgument(
          fmt::format("{}:{}: rule {}: {} outputs in the source and {} in the target", file_,
                      out.line, out.name, rule_.source.size(), rule_.target.size()));
    }
    if (type_error_.ok()) {
      out.rule = std::move(rule_);
    } else {
      out.rule = type_error_;
    }
    return out;
  }

 private:
  const Token& Peek() const { return tokens_[at_]; }
  bool Is(std::string_view text) const {
    return Peek().text == text &&
           (Peek().kind == Token::Kind::kPunct || Peek().kind == Token::Kind::kName);
  }
  bool AtClauseEnd() const {
    return Peek().kind == Token::Kind::kEnd ||
           (Peek().kind == Token::Kind::kName && IsKeyword(Peek().text));
  }
  Status Wrong(const std::string& what) const {
    return ErrorAt(file_, Peek(), fmt::format("{}, at '{}'", what, Peek().text));
  }
  Status Missing(const ParsedRule& rule, std::string_view what) const {
    return base::InvalidArgument(
        fmt::format("{}:{}: rule {} has no {}", file_, rule.line, rule.name, what));
  }
  Status Take(std::string_view text) {
    if (!Is(text)) return Wrong(fmt::format("expected '{}'", text));
    ++at_;
    return OkStatus();
  }
  bool TryTake(std::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }
  StatusOr<std::string> Name(std::string_view what) {
    if (Peek().kind != Token::Kind::kName || IsKeyword(Peek().text) || Is("and") || Is("mod") ||
        Is("div")) {
      return Wrong(fmt::format("expected {}", what));
    }
    return tokens_[at_++].text;
  }

  // Notes where each clause starts (after its keyword); leaves at_ behind the rule.
  Status FindClauses() {
    while (Peek().kind != Token::Kind::kEnd && !Is("rule")) {
      if (!AtClauseEnd()) {
        if (clauses_.empty()) return Wrong("expected a clause (given, source, ..)");
        ++at_;
        continue;
      }
      const std::string& keyword = Peek().text;
      const bool once = keyword == "source" || keyword == "target" || keyword == "expect";
      if (once && clauses_.count(keyword) > 0) return Wrong("a second clause of this kind");
      clauses_.emplace(keyword, ++at_);
    }
    return OkStatus();
  }

  Status Clause(std::string_view keyword) {
    if (keyword == "attr") return Attr();
    if (keyword == "given") return Inputs(graph::InputKind::kActivation);
    if (keyword == "weight") return Inputs(graph::InputKind::kWeight);
    if (keyword == "scalar") return Scalars();
    if (keyword == "where") return Where();
    if (keyword == "source") return Terms(rule_.source);
    if (keyword == "target") return Terms(rule_.target);
    return ExpectClause();
  }

  base::Symbols& symbols() { return rule_.graph.symbols(); }

  Status Attr() {
    do {
      const Token at = Peek();
      ASSIGN_OR_RETURN(const std::string name, Name("the name of an attribute"));
      if (symbols().Find(name) != 0)
        return ErrorAt(file_, at, fmt::format("{} is declared twice", name));
      const base::Symbol s = symbols().Add(name, base::SymbolKind::kAttr);
      if (s == 0) return Wrong("too many names");
      if (!Is(",") && !AtClauseEnd()) {
        RETURN_IF_ERROR(Compare(base::Poly::Var(s)));
      }
    } while (TryTake(","));
    return OkStatus();
  }

  Status Declare(const std::string& name, graph::InputKind kind, const graph::Shape& shape,
                 const Token& at) {
    if (inputs_.count(name) > 0) {
      return ErrorAt(file_, at, fmt::format("input {} is declared twice", name));
    }
    inputs_[name] = rule_.graph.AddInput(name, kind, {graph::DataType::kFloat, shape});
    return OkStatus();
  }

  Status Inputs(graph::InputKind kind) {
    while (!AtClauseEnd()) {
      const Token at = Peek();
      ASSIGN_OR_RETURN(const std::string name, Name("the name of an input"));
      RETURN_IF_ERROR(Take("["));
      graph::Shape shape;
      while (!Is("]")) {
        if (shape.size() == base::kRankMax)
          return Wrong(fmt::format("a rank above {}", base::kRankMax));
        declaring_dims_ = true;
        auto extent = Size(0);
        declaring_dims_ = false;
        RETURN_IF_ERROR(extent.status());
        if (extent->is_constant() && extent->constant() < 1) return Wrong("an extent below 1");
        shape.push_back(*extent);
        if (!TryTake(",")) break;
      }
      RETURN_IF_ERROR(Take("]"));
      RETURN_IF_ERROR(Declare(name, kind, shape, at));
      TryTake(",");
    }
    return OkStatus();
  }

  Status Scalars() {
    while (!AtClauseEnd()) {
      const Token at = Peek();
      ASSIGN_OR_RETURN(const std::string name, Name("the name of a scalar"));
      RETURN_IF_ERROR(Declare(name, graph::InputKind::kActivation, {}, at));
      TryTake(",");
    }
    return OkStatus();
  }

  // Reads "compare size" after `left` and adds the condition.
  Status Compare(const base::Poly& left) {
    const Token op = Peek();
    for (std::string_view known : {">=", "<=", ">", "<", "="}) {
      if (!TryTake(known)) continue;
      ASSIGN_OR_RETURN(const base::Poly right, Size(0));
      base::Condition c = known == ">="   ? base::Ge(left, right)
                          : known == "<=" ? base::Ge(right, left)
                          : known == ">"  ? base::Lt(right, left)
                          : known == "<"  ? base::Lt(left, right)
                                          : base::Eq(left, right);
      if (!c.p.valid()) return ErrorAt(file_, op, "a number is too large");
      rule_.where.push_back(std::move(c));
      return OkStatus();
    }
    return Wrong("expected >=, <=, >, < or =");
  }

  Status Where() {
    do {
      ASSIGN_OR_RETURN(const base::Poly left, Size(0));
      RETURN_IF_ERROR(Compare(left));
    } while (TryTake(",") || TryTake("and"));
    return OkStatus();
  }

  Status ExpectClause() {
    for (Expect e : {Expect::kProved, Expect::kRefuted, Expect::kNotProved, Expect::kIllFormed,
                     Expect::kVacuous}) {
      if (TryTake(NameOf(e))) {
        rule_.expect = e;
        return OkStatus();
      }
    }
    return Wrong("expected proved, refuted, not-proved, ill-formed or vacuous");
  }

  Status Terms(std::vector<graph::NodeId>& out) {
    do {
      ASSIGN_OR_RETURN(const graph::NodeId id, Term(0));
      if (id != graph::kNoNode) out.push_back(id);
    } while (TryTake(","));
    return OkStatus();
  }

  // kNoNode when the term does not type-check; the first such error is kept.
  StatusOr<graph::NodeId> Term(int depth) {
    if (depth > kNestingMax) return Wrong("nested too deeply");
    const Token at = Peek();
    ASSIGN_OR_RETURN(const std::string name, Name("an input or an operator"));
    if (!Is("(")) {
      const auto it = inputs_.find(name);
      if (it == inputs_.end())
        return ErrorAt(file_, at, fmt::format("no input is called {}", name));
      return it->second;
    }
    auto op = ops::OperatorByName(name);
    if (!op || ops::IsOpaque(*op)) {
      return ErrorAt(file_, at, fmt::format("no operator is called {}", name));
    }
    RETURN_IF_ERROR(Take("("));
    std::vector<graph::NodeId> operands;
    bool attributes = false;
    while (!Is(")")) {
      const bool attribute =
          tokens_[at_ + 1].kind == Token::Kind::kPunct && tokens_[at_ + 1].text == "=";
      if (attribute) {
        attributes = true;
        RETURN_IF_ERROR(Attribute(*op));
      } else {
        if (attributes) return Wrong("operands stand before attributes");
        if (operands.size() == ops::kArityMax) return Wrong("too many operands");
        ASSIGN_OR_RETURN(const graph::NodeId id, Term(depth + 1));
        operands.push_back(id);
      }
      if (!TryTake(",")) break;
    }
    RETURN_IF_ERROR(Take(")"));
    for (graph::NodeId id : operands) {
      if (id == graph::kNoNode) return graph::kNoNode;
    }
    auto node = rule_.graph.Add(*op, operands);
    if (node.ok()) return *node;
    if (type_error_.ok()) type_error_ = ErrorAt(file_, at, base::Message(node.status()));
    return graph::kNoNode;
  }

  Status Attribute(ops::Operator& op) {
    const Token at = Peek();
    ASSIGN_OR_RETURN(const std::string name, Name("an attribute"));
    RETURN_IF_ERROR(Take("="));
    ASSIGN_OR_RETURN(const ops::AttrValue value, Value(op, name));
    const Status set = ops::SetAttr(op, name, value);
    return set.ok() ? set : ErrorAt(file_, at, base::Message(set));
  }

  StatusOr<ops::AttrValue> Value(const ops::Operator& op, std::string_view name) {
    for (const ops::Attr& attr : ops::AttrsOf(op)) {
      if (attr.name != name || !std::holds_alternative<ops::Activation>(attr.value)) continue;
      const auto activation = ops::ActivationByName(Peek().text);
      if (!activation) return Wrong("expected none, relu, sigmoid or tanh");
      ++at_;
      return *activation;
    }
    const bool negative_real = Is("-") && tokens_[at_ + 1].kind == Token::Kind::kReal;
    if (negative_real) ++at_;
    if (Peek().kind == Token::Kind::kReal) {
      const std::string& text = Peek().text;
      double v = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
      if (error != std::errc() || end != text.data() + text.size()) return Wrong("not a number");
      ++at_;
      return negative_real ? -v : v;
    }
    if (!TryTake("[")) {
      ASSIGN_OR_RETURN(const base::Poly size, Size(0));
      return size;
    }
    ops::Short<ops::Size> list;
    while (!Is("]")) {
      if (list.size() == base::kRankMax) return Wrong("the list is too long");
      ASSIGN_OR_RETURN(const base::Poly size, Size(0));
      list.push_back(size);
      if (!TryTake(",")) break;
    }
    RETURN_IF_ERROR(Take("]"));
    return list;
  }

  // Floor division is taken to be by something positive (base::Symbols::FloorDiv), so the rule must
  // say that it is.
  Status CheckDivisors() const {
    std::vector<base::Condition> known = rule_.where;
    for (base::Condition& c : rule_.graph.Requirements(rule_.source)) known.push_back(std::move(c));
    for (const auto& [at, divisor] : divisors_) {
      if (Implied(base::Ge(divisor, 1), known, rule_.graph.symbols())) continue;
      return ErrorAt(file_, at,
                     "a division by what may be 0 or less; say in `where` that it is at least 1");
    }
    return OkStatus();
  }

  StatusOr<base::Poly> Size(int depth) {
    ASSIGN_OR_RETURN(base::Poly sum, Product(depth));
    for (;;) {
      const bool minus = Is("-");
      if (!TryTake("+") && !TryTake("-")) return sum;
      ASSIGN_OR_RETURN(const base::Poly next, Product(depth));
      sum = minus ? sum - next : sum + next;
      if (!sum.valid()) return Wrong("a number is too large");
    }
  }

  void NoteDivisor(const Token& at, const base::Poly& divisor) {
    if (divisor.valid() && !divisor.is_constant()) divisors_.emplace_back(at, divisor);
  }

  StatusOr<base::Poly> Product(int depth) {
    ASSIGN_OR_RETURN(base::Poly product, Factor(depth));
    for (;;) {
      const bool modulo = Is("mod");
      if (!TryTake("*") && !TryTake("mod")) return product;
      const Token at = Peek();
      ASSIGN_OR_RETURN(const base::Poly next, Factor(depth));
      if (modulo) NoteDivisor(at, next);
      product = modulo ? symbols().Mod(product, next) : product * next;
      if (!product.valid()) return Wrong("a number is too large, or a division by 0");
    }
  }

  StatusOr<base::Poly> Factor(int depth) {
    if (depth > kNestingMax) return Wrong("nested too deeply");
    if (TryTake("-")) {
      ASSIGN_OR_RETURN(const base::Poly p, Factor(depth + 1));
      return -p;
    }
    if (TryTake("(")) {
      ASSIGN_OR_RETURN(const base::Poly p, Size(depth + 1));
      RETURN_IF_ERROR(Take(")"));
      return p;
    }
    if (Is("div")) {
      ++at_;
      RETURN_IF_ERROR(Take("("));
      ASSIGN_OR_RETURN(const base::Poly n, Size(depth + 1));
      RETURN_IF_ERROR(Take(","));
      const Token at = Peek();
      ASSIGN_OR_RETURN(const base::Poly d, Size(depth + 1));
      NoteDivisor(at, d);
      RETURN_IF_ERROR(Take(")"));
      const base::Poly q = symbols().FloorDiv(n, d);
      if (!q.valid()) return Wrong("a division by 0 or less");
      return q;
    }
    if (Peek().kind == Token::Kind::kInteger) {
      const std::string& text = Peek().text;
      std::int64_t v = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
      if (error != std::errc() || end != text.data() + text.size())
        return Wrong("a number is too large");
      ++at_;
      return base::Poly(v);
    }
    const Token at = Peek();
    ASSIGN_OR_RETURN(const std::string name, Name("a size"));
    base::Symbol s = symbols().Find(name);
    if (s == 0 && declaring_dims_) s = symbols().Add(name, base::SymbolKind::kDim);
    if (s == 0) {
      return ErrorAt(
          file_, at,
          fmt::format("{} is neither in the shape of an input nor declared by attr", name));
    }
    return base::Poly::Var(s);
  }

  const std::vector<Token>& tokens_;
  std::size_t& at_;
  std::string_view file_;
  std::multimap<std::string, std::size_t, std::less<>> clauses_;
  std::map<std::string, graph::NodeId> inputs_;
  bool declaring_dims_ = false;
  Status type_error_;
  std::vector<std::pair<Token, base::Poly>> divisors_;  // That are no constants.
  Rule rule_;
};

}  // namespace

StatusOr<std::vector<ParsedRule>> ParseRules(std::string_view text, std::string_view file) {
  ASSIGN_OR_RETURN(const std::vector<Token> tokens, Lex(text, file));
  std::vector<ParsedRule> out;
  std::set<std::string> names;
  std::size_t at = 0;
  while (tokens[at].kind != Token::Kind::kEnd) {
    ASSIGN_OR_RETURN(ParsedRule rule, RuleReader(tokens, at, file).Read());
    if (!names.insert(rule.name).second) {
      return base::InvalidArgument(
          fmt::format("{}:{}: a second rule is called {}", file, rule.line, rule.name));
    }
    out.push_back(std::move(rule));
  }
  return out;
}

StatusOr<Rule> ParseRule(std::string_view text) {
  ASSIGN_OR_RETURN(std::vector<ParsedRule> rules, ParseRules(text, "rule"));
  if (rules.size() != 1) return base::InvalidArgument("the text does not hold exactly one rule");
  return std::move(rules[0].rule);
}

}  // namespace tenon::rules
