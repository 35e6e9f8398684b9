#include "verifier/cert/ledger.h"

#include <algorithm>
#include <numeric>

#include "core/base/check.h"

namespace tenon::cert {
namespace {

using Kind = Condition::Kind;

// p over the reals with coefficients that have no common divisor: the same sign everywhere.
Poly Reduced(const Poly& p) {
  std::int64_t divisor = 0;
  for (const Poly::Term& t : p.terms()) divisor = std::gcd(divisor, t.coefficient);
  if (divisor <= 1) return p;
  Poly out;
  for (const Poly::Term& t : p.terms()) {
    Poly product(t.coefficient / divisor);
    for (const Symbol s : t.monomial) {
      if (s != 0) product = product * Poly::Var(s);
    }
    out += product;
  }
  return out;
}

// `sum` times a positive integer that makes its coefficients integers; the variable v is symbol
// v + 1. Invalid when a number leaves 64 bits.
Poly Cleared(const nf::RealSum& sum, std::int64_t denominator) {
  Poly out;
  for (const nf::RealTerm& t : sum) {
    std::int64_t factor = denominator / t.coefficient.denominator();
    Poly product = Poly(t.coefficient.numerator()) * Poly(factor);
    for (const int v : t.factors) product = product * Poly::Var(static_cast<Symbol>(v + 1));
    out += product;
  }
  return out;
}

// A common denominator; 0 when it leaves 31 bits.
std::int64_t DenominatorOf(const nf::RealSum& sum) {
  std::int64_t out = 1;
  for (const nf::RealTerm& t : sum) {
    out = out / std::gcd(out, t.coefficient.denominator());
    if (t.coefficient.denominator() > (std::int64_t{1} << 31) / out) return 0;
    out *= t.coefficient.denominator();
  }
  return out;
}

// (sum - variable) times something positive; invalid when a number leaves 64 bits.
Poly Above(const nf::RealSum& sum, int variable) {
  const std::int64_t d = DenominatorOf(sum);
  if (d == 0) return Poly::Invalid();
  return Cleared(sum, d) - Poly(d) * Poly::Var(static_cast<Symbol>(variable + 1));
}

}  // namespace

Ledger::Ledger(Numbers numbers, nf::Fault fault) : numbers_(numbers), fault_(fault) {
  CHECK(Add(Poly(1)));
}

Poly Ledger::Normal(const Poly& p) const {
  if (!p.valid() || p.is_constant()) return p;
  if (numbers_ == Numbers::kReals && !has(nf::Fault::kCheckRoundReals)) return Reduced(p);
  return base::Normal({Kind::kGe0, p}).p;
}

bool Ledger::Add(const Poly& p) {
  const Poly normal = Normal(p);
  if (!normal.valid()) return false;
  hashes_.push_back(normal.Hash());
  facts_.push_back(normal);
  return true;
}

bool Ledger::Add(const Condition& c) {
  if (!Add(c.p)) return false;
  return c.kind == Kind::kGe0 || Add(-c.p);
}

void Ledger::Shrink(std::size_t size) {
  facts_.resize(size);
  hashes_.resize(size);
}

bool Ledger::Has(const Poly& p) const {
  const Poly normal = Normal(p);
  if (!normal.valid()) return false;
  if (normal.is_constant()) return normal.constant() >= 0;
  const std::size_t hash = normal.Hash();
  for (std::size_t k = 0; k < facts_.size(); ++k) {
    if (hashes_[k] == hash && facts_[k] == normal) return true;
  }
  return false;
}

std::optional<bool> Ledger::Decided(const Condition& c) const {
  if (!c.p.valid()) return std::nullopt;
  if (Has(c.p) && (c.kind == Kind::kGe0 || Has(-c.p))) return true;
  if (numbers_ == Numbers::kReals) return std::nullopt;
  if (Has(-c.p - 1) || (c.kind == Kind::kEq0 && Has(c.p - 1))) return false;
  return std::nullopt;
}

std::optional<bool> Ledger::Decided(std::span<const Condition> all) const {
  bool every = true;
  for (const Condition& c : all) {
    const auto decided = Decided(c);
    if (decided == false) return false;
    every = every && decided == true;
  }
  if (every) return true;
  return std::nullopt;
}

std::optional<Poly> Ledger::Balance(const Goal& goal) const {
  Poly sum;
  for (const nf::Piece& p : goal.left) {
    const auto holds = Decided(p.when);
    if (!holds && !has(nf::Fault::kCheckUndecidedPieces)) return std::nullopt;
    if (holds == true) sum += p.weight;
  }
  return sum;
}

bool Ledger::Reached(const Goal& goal) const {
  if (has(nf::Fault::kCheckReached)) return true;
  // Nothing: some piece is undecided and none holds.
  const auto any = [&](std::span<const nf::Piece> pieces) -> std::optional<bool> {
    bool open = false;
    for (const nf::Piece& p : pieces) {
      const auto holds = Decided(p.when);
      if (holds == true) return true;
      open = open || !holds;
    }
    if (open) return std::nullopt;
    return false;
  };
  switch (goal.kind) {
    case Goal::Kind::kRefute:
      return false;
    case Goal::Kind::kClaims:
      return Decided(goal.claims) == true;
    case Goal::Kind::kBalanced: {
      const auto sum = Balance(goal);
      return sum && sum->valid() && Has(*sum) && Has(-*sum);
    }
    case Goal::Kind::kSameSets: {
      const auto left = any(goal.left), right = any(goal.right);
      return left && right && *left == *right;
    }
    case Goal::Kind::kZero:
      return goal.zero.valid() && Has(goal.zero) && Has(-goal.zero);
  }
  return false;
}

std::optional<Poly> AddPremises(const nf::RealProblem& problem, Ledger& ledger) {
  if (problem.variables > 60'000) return std::nullopt;
  bool ok = true;
  const auto variable = [](int v) { return Poly::Var(static_cast<Symbol>(v + 1)); };
  for (const int v : problem.positive) ok = ledger.Add(variable(v)) && ok;
  for (const int v : problem.non_negative) ok = ledger.Add(variable(v)) && ok;
  for (const auto& d : problem.definitions) {
    ok = ledger.Add(Condition{Kind::kEq0, Above(d.equals, d.variable)}) && ok;
  }
  for (const auto& m : problem.maxima) {
    for (const nf::RealSum& member : m.of) ok = ledger.Add(-Above(member, m.variable)) && ok;
  }
  const std::int64_t d = DenominatorOf(problem.goal);
  if (!ok || d == 0) return std::nullopt;
  return Cleared(problem.goal, d);
}

std::optional<std::vector<std::vector<Poly>>> CasesOf(const nf::RealProblem& problem) {
  std::vector<std::vector<Poly>> out;
  for (const auto& m : problem.maxima) {
    std::vector<Poly>& members = out.emplace_back();
    for (const nf::RealSum& member : m.of) {
      members.push_back(Above(member, m.variable));
      if (!members.back().valid()) return std::nullopt;
    }
  }
  return out;
}

}  // namespace tenon::cert
