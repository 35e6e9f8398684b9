#include "core/rules/wire.h"

#include <algorithm>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/check.h"

namespace tenon::rules::wire {

using base::Poly;
using base::PutByte;
using base::PutSigned;
using base::PutVarint;

void WritePoly(std::string& out, const Poly& p, const base::Symbols& symbols,
               std::span<const int> number) {
  struct Piece {
    std::string monomial;
    std::int64_t coefficient;
  };
  std::vector<Piece> pieces;
  for (const Poly::Term& t : p.terms()) {
    std::vector<std::string> factors;
    for (base::Symbol s : t.monomial) {
      if (s == 0) break;
      std::string factor;
      if (symbols.kind(s) == base::SymbolKind::kDiv) {
        PutVarint(factor, 0);
        WritePoly(factor, symbols.numerator(s), symbols, number);
        WritePoly(factor, symbols.denominator(s), symbols, number);
      } else {
        CHECK(number[s] >= 0);
        PutVarint(factor, std::uint64_t(number[s]) + 1);
      }
      factors.push_back(std::move(factor));
    }
    std::sort(factors.begin(), factors.end());
    Piece piece{{}, t.coefficient};
    PutVarint(piece.monomial, factors.size());
    for (const std::string& f : factors) piece.monomial += f;
    pieces.push_back(std::move(piece));
  }
  std::sort(pieces.begin(), pieces.end(),
            [](const Piece& a, const Piece& b) { return a.monomial < b.monomial; });
  PutVarint(out, pieces.size());
  for (const Piece& piece : pieces) {
    PutSigned(out, piece.coefficient);
    out += piece.monomial;
  }
}

void WriteOperator(std::string& out, const ops::Operator& op,
                   const std::function<void(const Poly&)>& size) {
  const ops::Info& info = ops::InfoOf(op);
  const std::vector<ops::Attr> defaults = ops::AttrsOf(*ops::OperatorByWireId(info.wire_id));
  const std::vector<ops::Attr> attrs = ops::AttrsOf(op);
  std::vector<const ops::Attr*> written;
  for (std::size_t k = 0; k < attrs.size(); ++k) {
    if (!(attrs[k].value == defaults[k].value)) written.push_back(&attrs[k]);
  }
  PutVarint(out, info.wire_id);
  PutVarint(out, written.size());
  struct Write {
    std::string& out;
    const std::function<void(const Poly&)>& size;
    void operator()(std::int64_t v) { PutSigned(out, v); }
    void operator()(double v) { base::PutDouble(out, v); }
    void operator()(ops::Activation v) { PutByte(out, static_cast<std::uint8_t>(v)); }
    void operator()(const Poly& v) { size(v); }
    void operator()(const ops::Short<std::int64_t>& v) {
      PutVarint(out, std::uint64_t(v.size()));
      for (std::int64_t x : v) PutSigned(out, x);
    }
    void operator()(const ops::Short<Poly>& v) {
      PutVarint(out, std::uint64_t(v.size()));
      for (const Poly& x : v) size(x);
    }
  };
  for (const ops::Attr* attr : written) {
    PutByte(out, attr->number);
    std::visit(Write{out, size}, attr->value);
  }
}

}  // namespace tenon::rules::wire
