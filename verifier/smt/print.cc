#include "verifier/smt/print.h"

#include <map>

#include "core/base/check.h"

namespace tenon::smt {
namespace {

class Printer {
 public:
  // Collects the constants on the way: number to sort.
  std::map<int, bool> integers;

  void Print(const z3::expr& e) {
    switch (e.decl().decl_kind()) {
      case Z3_OP_ANUM:
        return Number(e);
      case Z3_OP_UNINTERPRETED:
        CHECK(e.num_args() == 0);
        integers.emplace(e.decl().name().to_int(), e.is_int());
        out += 'x';
        out += std::to_string(e.decl().name().to_int());
        return;
      case Z3_OP_TRUE:
        out += "true";
        return;
      case Z3_OP_FALSE:
        out += "false";
        return;
      // What is the same with one operand.
      case Z3_OP_ADD:
        return Flat("+", e);
      case Z3_OP_MUL:
        return Flat("*", e);
      case Z3_OP_AND:
        return Flat("and", e);
      case Z3_OP_OR:
        return Flat("or", e);
      case Z3_OP_SUB:
      case Z3_OP_UMINUS:
        return Applied("-", e);
      case Z3_OP_EQ:
        return Applied("=", e);
      case Z3_OP_DISTINCT:
        return Applied("distinct", e);
      case Z3_OP_ITE:
        return Applied("ite", e);
      case Z3_OP_NOT:
        return Applied("not", e);
      case Z3_OP_IMPLIES:
        return Applied("=>", e);
      case Z3_OP_LE:
        return Applied("<=", e);
      case Z3_OP_GE:
        return Applied(">=", e);
      case Z3_OP_LT:
        return Applied("<", e);
      case Z3_OP_GT:
        return Applied(">", e);
      default:
        CHECK(false);  // Encoder and solver make nothing else.
    }
  }

  std::string out;

 private:
  void Applied(const char* name, const z3::expr& e) {
    out += '(';
    out += name;
    for (unsigned k = 0; k < e.num_args(); ++k) {
      out += ' ';
      Print(e.arg(k));
    }
    out += ')';
  }

  void Flat(const char* name, const z3::expr& e) {
    CHECK(e.num_args() > 0);
    if (e.num_args() == 1) return Print(e.arg(0));
    Applied(name, e);
  }

  // "-3", "1/2" as (- 3), (/ 1.0 2.0).
  void Number(const z3::expr& e) {
    std::string digits = Z3_get_numeral_string(e.ctx(), e);
    const bool negative = digits[0] == '-';
    if (negative) digits.erase(0, 1);
    if (negative) out += "(- ";
    if (e.is_int()) {
      out += digits;
    } else if (const std::size_t at = digits.find('/'); at != std::string::npos) {
      out += "(/ " + digits.substr(0, at) + ".0 " + digits.substr(at + 1) + ".0)";
    } else {
      out += digits + ".0";
    }
    if (negative) out += ')';
  }
};

const char* StatusOf(Obligation::Answer answer) {
  switch (answer) {
    case Obligation::Answer::kUnsat:
      return "unsat";
    case Obligation::Answer::kSat:
      return "sat";
    case Obligation::Answer::kUnknown:
      return "unknown";
  }
  return "unknown";
}

}  // namespace

std::string Script(const char* logic, const z3::expr_vector& assertions, Obligation::Answer answer,
                   const std::function<std::string(int)>& names) {
  Printer printer;
  std::string body;
  for (unsigned k = 0; k < assertions.size(); ++k) {
    printer.out.clear();
    printer.Print(assertions[k]);
    body += "(assert " + printer.out + ")\n";
  }
  std::string text = "(set-info :smt-lib-version 2.6)\n(set-info :status ";
  text += StatusOf(answer);
  text += ")\n(set-logic ";
  text += logic;
  text += ")\n";
  for (const auto& [number, integer] : printer.integers) {
    text += "(declare-const x" + std::to_string(number) + (integer ? " Int)" : " Real)");
    const std::string name = names(number);
    if (!name.empty()) text += " ; " + name;
    text += '\n';
  }
  return text + body + "(check-sat)\n";
}

}  // namespace tenon::smt
