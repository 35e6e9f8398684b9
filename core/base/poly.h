// Poly: integer polynomials over named symbols: the sizes, attributes and indices of everything.
//
// A concrete graph has constant polynomials, a rule has polynomials over its dims and attributes,
// the prover adds indices and bound variables. One type for all three means that shape inference,
// matching and proof read the same attribute the same way.
//
// Floor division is an opaque symbol with a numerator and a denominator, interned in Symbols, so
// that equal divisions are one symbol. Arithmetic that leaves 64 bits, or a degree above
// kDegreeMax, yields an *invalid* polynomial; it is contagious, equals nothing, and every decision
// about it must come out as "unknown".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::base {

// An index into Symbols; 0 is "none".
using Symbol = std::uint16_t;

inline constexpr int kDegreeMax = 8;

// A product of symbols, sorted descending with zeros at the end; all zeros is the constant 1.
using Monomial = std::array<Symbol, kDegreeMax>;

class Symbols;

// Immutable in use, a value type. Thread-compatible.
class Poly {
 public:
  struct Term {
    Monomial monomial;
    std::int64_t coefficient;
    friend bool operator==(const Term&, const Term&) = default;
    friend auto operator<=>(const Term&, const Term&) = default;
  };

  Poly() = default;                // Zero.
  Poly(std::int64_t constant);     // NOLINT: a constant is a polynomial.
  static Poly Var(Symbol symbol);  // `symbol` is not 0.
  static Poly Invalid();

  bool valid() const { return valid_; }
  // True for every valid polynomial without symbols, zero included.
  bool is_constant() const;
  // The value of a constant polynomial; CHECKs is_constant().
  std::int64_t constant() const;
  bool is_constant(std::int64_t value) const { return is_constant() && constant() == value; }
  // The part without symbols.
  std::int64_t constant_part() const;
  // Sorted by monomial, coefficients not 0.
  const std::vector<Term>& terms() const { return terms_; }

  // Appends each symbol that occurs, also inside divisions when `symbols` is given.
  void CollectSymbols(std::vector<Symbol>& out, const Symbols* symbols = nullptr) const;
  bool Mentions(Symbol symbol, const Symbols& symbols) const;
  // The coefficient of `symbol` if it occurs only linearly and in no product or division (0 if it
  // does not occur at all), else nothing.
  std::optional<std::int64_t> LinearCoefficient(Symbol symbol, const Symbols& symbols) const;

  Poly operator-() const;
  friend Poly operator+(const Poly& a, const Poly& b);
  friend Poly operator-(const Poly& a, const Poly& b);
  friend Poly operator*(const Poly& a, const Poly& b);
  Poly& operator+=(const Poly& b) { return *this = *this + b; }
  // An invalid polynomial equals nothing, not even itself.
  friend bool operator==(const Poly& a, const Poly& b) {
    return a.valid_ && b.valid_ && a.terms_ == b.terms_;
  }
  // A total order for sorting and maps (invalid ones last); no arithmetic meaning.
  static bool Before(const Poly& a, const Poly& b) {
    return a.valid_ != b.valid_ ? a.valid_ : a.terms_ < b.terms_;
  }
  std::size_t Hash() const;

 private:
  friend class Symbols;
  std::vector<Term> terms_;
  bool valid_ = true;
};

struct PolyBefore {
  bool operator()(const Poly& a, const Poly& b) const { return Poly::Before(a, b); }
};

// What a symbol stands for. The verifier uses the kinds from kIndex on.
enum class SymbolKind : std::uint8_t {
  kDim,     // An extent, at least 1.
  kAttr,    // An attribute: any integer; bounds are conditions of the rule.
  kDiv,     // floor(numerator / denominator), the denominator positive where it is used.
  kIndex,   // A free output index.
  kBinder,  // A bound variable of a sum or maximum.
  kCoord,   // An access coordinate.
  kParam,   // A parameter of a lifted function.
};

// The names, kinds and divisions behind the symbols of one rule, graph or proof. Symbols only grow.
// Thread-compatible. At most 65535 symbols; beyond that Add returns 0 and FloorDiv is invalid.
class Symbols {
 public:
  Symbols();

  // A new symbol; names need not differ (the text reader checks its own).
  Symbol Add(std::string_view name, SymbolKind kind);
  // The first symbol of kind kDim or kAttr with that name, or 0.
  Symbol Find(std::string_view name) const;

  std::size_t size() const { return entries_.size(); }  // Ids are 1 .. size()-1.
  SymbolKind kind(Symbol s) const { return entries_[s].kind; }
  const std::string& name(Symbol s) const { return entries_[s].name; }
  const Poly& numerator(Symbol s) const { return entries_[s].numerator; }
  const Poly& denominator(Symbol s) const { return entries_[s].denominator; }

  // floor(n / d): what d divides is pulled out, the rest becomes an interned division. Invalid when
  // d is a constant below 1. A non-constant d is taken to be positive: who divides requires it.
  Poly FloorDiv(const Poly& n, const Poly& d);
  // n - d * FloorDiv(n, d).
  Poly Mod(const Poly& n, const Poly& d);

  // `p` with each symbol s replaced by replacement.at(s); divisions are rebuilt.
  using Substitution = std::unordered_map<Symbol, Poly>;
  Poly Substitute(const Poly& p, const Substitution& replacement);

  // The value with symbol s at values[s] (divisions are computed, their entries ignored); nothing
  // on overflow, on division by a non-positive number, or if values is too short.
  std::optional<std::int64_t> Eval(const Poly& p, std::span<const std::int64_t> values) const;

  // Readable text: "2*a+1", "N*H-3", "div(H+1,2)"; the rule text grammar reads it back.
  std::string Print(const Poly& p) const;

 private:
  struct Entry {
    std::string name;
    SymbolKind kind = SymbolKind::kDim;
    Poly numerator, denominator;
  };
  Poly InternDiv(const Poly& n, const Poly& d);
  std::vector<Entry> entries_;
  std::unordered_multimap<std::size_t, Symbol> divisions_;  // By hash of the pair.
};

// A linear-looking fact about integers: p >= 0 or p = 0.
struct Condition {
  enum class Kind : std::uint8_t { kGe0 = 1, kEq0 = 2 };
  Kind kind = Kind::kGe0;
  Poly p;
  friend bool operator==(const Condition&, const Condition&) = default;
};

inline Condition Ge(const Poly& a, const Poly& b) { return {Condition::Kind::kGe0, a - b}; }
inline Condition Lt(const Poly& a, const Poly& b) { return {Condition::Kind::kGe0, b - a - 1}; }
inline Condition Eq(const Poly& a, const Poly& b) { return {Condition::Kind::kEq0, a - b}; }
// The negation as a disjunction of disjoint conditions: one for >=, two for =.
std::vector<Condition> Negate(const Condition& c);
// Decided by constants and by the gcd of the coefficients alone; nothing otherwise.
std::optional<bool> Trivial(const Condition& c);
// Divided by the gcd of its coefficients (rounding down the constant of a >=), an equality with its
// first coefficient positive: one spelling for one fact.
Condition Normal(const Condition& c);
bool Before(const Condition& a, const Condition& b);
// Whether the condition holds at `values`; nothing when it cannot be evaluated.
std::optional<bool> Holds(const Condition& c, const Symbols& s,
                          std::span<const std::int64_t> values);
// "m >= 1", "a = 2*b": the rule text grammar reads it back.
std::string Print(const Condition& c, const Symbols& s);

}  // namespace tenon::base
