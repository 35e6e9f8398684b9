// Polynomials and conditions as Z3 terms.
//
// Products of symbols and floor divisions are integers of their own, tied to their parts by lemmas
// that hold for all integers (with a positive divisor), so that "unsat" stays right. The lemmas
// that a question needs are asserted with it: which ones depends on the question alone.
#pragma once

#include <z3++.h>

#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "verifier/nf/entail.h"

namespace tenon::smt {

// Thread-compatible.
class Encoder {
 public:
  Encoder(z3::context& context, const base::Symbols& symbols)
      : context_(context), symbols_(symbols) {}

  z3::expr Integer(std::int64_t v) { return context_.int_val(v); }
  z3::expr Of(const base::Poly& p);
  z3::expr Of(const base::Condition& c);
  z3::expr All(std::span<const base::Condition> all);
  z3::expr AnyOf(std::span<const nf::Piece> pieces);
  z3::expr And(const z3::expr_vector& list);
  z3::expr Or(const z3::expr_vector& list);
  z3::expr Sum(const z3::expr_vector& list);

  // Lemmas about all products and divisions that were encoded since the last call, and about what
  // the lemmas themselves mention.
  std::vector<z3::expr> TakeLemmas();
  // Forgets what TakeLemmas returned since `Mark`, because its scope was popped.
  void Mark();
  void Restore();

  // Values of the dims and attributes that were encoded.
  std::map<base::Symbol, std::int64_t> Values(const z3::model& model);

 private:
  using Monomial = base::Monomial;
  struct Before {
    bool operator()(const std::pair<base::Poly, Monomial>& a,
                    const std::pair<base::Poly, Monomial>& b) const {
      if (a.second != b.second) return a.second < b.second;
      return base::Poly::Before(a.first, b.first);
    }
  };
  z3::expr Variable(base::Symbol s);
  z3::expr Product(const Monomial& m);
  void Close(std::vector<z3::expr>& out);
  void DivisionLemmas(base::Symbol s, std::vector<z3::expr>& out);
  void SignLemmas(const Monomial& m, std::vector<z3::expr>& out);
  void OrderLemmas(const Monomial& a, const Monomial& b, std::vector<z3::expr>& out);
  void RestLemmas(base::Symbol s, const std::set<Monomial>& products, std::vector<z3::expr>& out);
  void BoundLemmas(std::vector<z3::expr>& out);
  // Notes the bounds of quotients that bounds of their numerators lead to.
  void NoteQuotients();
  // Notes a linear condition that the question mentions.
  void NoteBound(const base::Condition& c);

  z3::context& context_;
  const base::Symbols& symbols_;
  std::map<base::Symbol, z3::expr> variables_;
  std::map<Monomial, z3::expr> products_;
  // What has been mentioned but not been given lemmas, and what has.
  std::set<base::Symbol> open_divisions_, closed_divisions_, marked_divisions_;
  std::set<Monomial> open_products_, closed_products_, marked_products_;
  // Linear conditions of the question, as polynomials of at least 0, and the products with what
  // else stands beside one of their symbols that already have a lemma.
  std::set<base::Poly, base::PolyBefore> bounds_, marked_bounds_;
  // All inequalities of the question.
  std::set<base::Poly, base::PolyBefore> compared_, marked_compared_;
  std::set<std::pair<base::Poly, Monomial>, Before> used_bounds_, marked_used_bounds_;
};

}  // namespace tenon::smt
