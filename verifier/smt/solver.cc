#include "verifier/smt/solver.h"

#include <z3++.h>

#include <algorithm>

#include "core/base/check.h"
#include "verifier/smt/encode.h"
#include "verifier/smt/print.h"
#include "verifier/smt/watchdog.h"

namespace tenon::smt {

using base::Condition;
using nf::Balance;

namespace {

z3::expr Real(z3::context& context, const nf::Rational& r) {
  return context.real_val(r.Print().c_str());
}

// The deepest product of variables.
std::size_t DegreeOf(const nf::RealSum& sum) {
  std::size_t degree = 0;
  for (const nf::RealTerm& t : sum) degree = std::max(degree, t.factors.size());
  return degree;
}

std::size_t DegreeOf(const nf::RealProblem& problem) {
  std::size_t degree = DegreeOf(problem.goal);
  for (const auto& d : problem.definitions) degree = std::max(degree, DegreeOf(d.equals));
  for (const auto& m : problem.maxima) {
    for (const nf::RealSum& sum : m.of) degree = std::max(degree, DegreeOf(sum));
  }
  return degree;
}

Balance BalanceOf(z3::check_result result, std::map<base::Symbol, std::int64_t> model) {
  switch (result) {
    case z3::unsat:
      return {Balance::Kind::kYes, {}};
    case z3::sat:
      return {Balance::Kind::kNo, std::move(model)};
    case z3::unknown:
      break;
  }
  return {Balance::Kind::kUnknown, {}};
}

}  // namespace

class Solver::Impl {
 public:
  Impl(const base::Symbols& symbols, const std::vector<Condition>& hypotheses,
       const SolverLimits& limits)
      : limits_(limits),
        symbols_(symbols),
        encoder_(context_, symbols),
        solver_(context_, "QF_LIA"),
        watchdog_(context_, limits.watchdog) {
    Configure(solver_, limits.integer_rlimit);
    for (std::size_t s = 1; s < symbols.size(); ++s) {
      const auto symbol = static_cast<base::Symbol>(s);
      if (symbols.kind(symbol) == base::SymbolKind::kDim) {
        solver_.add(encoder_.Of(base::Ge(base::Poly::Var(symbol), base::Poly(1))));
      }
    }
    for (const Condition& c : hypotheses) solver_.add(encoder_.Of(c));
    for (const z3::expr& lemma : encoder_.TakeLemmas()) solver_.add(lemma);
  }

  // Asks whether the hypotheses and what `assert_question` adds can hold.
  template <class F>
  z3::check_result Ask(F assert_question, std::map<base::Symbol, std::int64_t>* model) {
    const Scope scope(*this);
    solver_.add(assert_question());
    for (const z3::expr& lemma : encoder_.TakeLemmas()) solver_.add(lemma);
    const z3::check_result result = Check(solver_, "QF_LIA");
    if (result == z3::sat && model != nullptr) *model = encoder_.Values(solver_.get_model());
    return result;
  }

  // Left to itself, Z3 handles SIGINT while it checks: it takes the signal from the program, and
  // with several threads its handler may outlive what it points to.
  void Configure(z3::solver& solver, unsigned rlimit) {
    z3::params params(context_);
    params.set("rlimit", rlimit);
    params.set("ctrl_c", false);
    solver.set(params);
  }

  z3::check_result Check(z3::solver& solver, const char* logic) {
    ++counts_.queries;
    const std::uint64_t before = RlimitUsed(solver);
    watchdog_.Begin();
    z3::check_result result = z3::unknown;
    try {
      result = solver.check();
    } catch (const z3::exception&) {
      result = z3::unknown;  // An interrupt, or a limit that Z3 reports this way.
    }
    if (watchdog_.End()) {
      ++counts_.killed;
      result = z3::unknown;
    }
    if (result == z3::unknown) ++counts_.unknown;
    counts_.rlimit += static_cast<std::int64_t>(RlimitUsed(solver) - before);
    if (limits_.on_obligation) Tell(solver, logic, result);
    return result;
  }

  void Tell(const z3::solver& solver, const char* logic, z3::check_result result) {
    using Answer = Obligation::Answer;
    Obligation told;
    told.answer = result == z3::unsat ? Answer::kUnsat
                  : result == z3::sat ? Answer::kSat
                                      : Answer::kUnknown;
    const auto name = [&](int number) -> std::string {
      // Symbols stand for themselves; numbers above are products, and reals have no names.
      const bool symbol = &solver == &solver_ && std::size_t(number) < symbols_.size();
      return symbol ? symbols_.Print(base::Poly::Var(static_cast<base::Symbol>(number))) : "";
    };
    told.text = Script(logic, solver.assertions(), told.answer, name);
    limits_.on_obligation(told);
  }

  z3::expr Sum(const nf::RealSum& sum, const z3::expr_vector& variables) {
    z3::expr_vector terms(context_);
    for (const nf::RealTerm& t : sum) {
      z3::expr product = Real(context_, t.coefficient);
      for (int v : t.factors) product = product * variables[v];
      terms.push_back(product);
    }
    if (terms.empty()) return context_.real_val(0);
    return terms.size() == 1 ? terms[0] : z3::sum(terms);
  }

  bool RealZero(const nf::RealProblem& problem) {
    z3::expr_vector v(context_);
    for (int k = 0; k < problem.variables; ++k) {
      v.push_back(context_.constant(context_.int_symbol(k), context_.real_sort()));
    }
    const char* logic = DegreeOf(problem) > 1 ? "QF_NRA" : "QF_LRA";
    z3::solver solver(context_, logic);
    Configure(solver, limits_.real_rlimit);
    for (const auto& d : problem.definitions) solver.add(v[d.variable] == Sum(d.equals, v));
    for (const auto& m : problem.maxima) {
      z3::expr_vector attained(context_);
      for (const nf::RealSum& member : m.of) {
        const z3::expr value = Sum(member, v);
        solver.add(v[m.variable] >= value);
        attained.push_back(v[m.variable] == value);
      }
      solver.add(z3::mk_or(attained));
    }
    for (int k : problem.positive) solver.add(v[k] > 0);
    for (int k : problem.non_negative) solver.add(v[k] >= 0);
    solver.add(Sum(problem.goal, v) != 0);
    return Check(solver, logic) == z3::unsat;
  }

  SolverLimits limits_;
  const base::Symbols& symbols_;
  z3::context context_;
  Encoder encoder_;
  z3::solver solver_;
  Watchdog watchdog_;
  SolverCounts counts_;

 private:
  // What one question asserts is gone after it, however it ends.
  class Scope {
   public:
    explicit Scope(Impl& impl) : impl_(impl) {
      impl_.encoder_.Mark();
      impl_.solver_.push();
    }
    ~Scope() {
      impl_.solver_.pop();
      impl_.encoder_.Restore();
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Impl& impl_;
  };

  static std::uint64_t RlimitUsed(const z3::solver& solver) {
    const z3::stats stats = solver.statistics();
    for (unsigned k = 0; k < stats.size(); ++k) {
      if (stats.key(k) == "rlimit count") return stats.uint_value(k);
    }
    return 0;
  }
};

Solver::Solver(const base::Symbols& symbols, std::vector<Condition> hypotheses,
               const SolverLimits& limits)
    : symbols_(symbols), hypotheses_(std::move(hypotheses)), limits_(limits) {}

Solver::~Solver() = default;

Solver::Impl& Solver::impl() {
  if (impl_ == nullptr) impl_ = std::make_unique<Impl>(symbols_, hypotheses_, limits_);
  return *impl_;
}

// Z3's exceptions end here: whatever it could not do is not known.
template <class F, class T>
T Entered(F f, T otherwise) {
  try {
    return f();
  } catch (const z3::exception&) {
    return otherwise;
  }
}

Solver::Answer Solver::HypothesesCanHold() {
  const auto ask = [&] {
    Impl& z = impl();
    return z.Ask([&] { return z.context_.bool_val(true); }, nullptr);
  };
  switch (Entered(ask, z3::unknown)) {
    case z3::sat:
      return Answer::kYes;
    case z3::unsat:
      return Answer::kNo;
    case z3::unknown:
      break;
  }
  return Answer::kUnknown;
}

bool Solver::Unsat(std::span<const Condition> all) {
  const auto ask = [&] {
    Impl& z = impl();
    return z.Ask([&] { return z.encoder_.All(all); }, nullptr);
  };
  return Entered(ask, z3::unknown) == z3::unsat;
}

bool Solver::Implies(std::span<const Condition> given, std::span<const Condition> claims) {
  const auto ask = [&] {
    Impl& z = impl();
    return z.Ask([&] { return z.encoder_.All(given) && !z.encoder_.All(claims); }, nullptr);
  };
  return Entered(ask, z3::unknown) == z3::unsat;
}

Balance Solver::Balanced(std::span<const Condition> given, std::span<const nf::Piece> pieces) {
  std::map<base::Symbol, std::int64_t> model;
  const auto ask = [&] {
    Impl& z = impl();
    const auto question = [&] {
      z3::expr_vector terms(z.context_);
      for (const nf::Piece& p : pieces) {
        const z3::expr weight = z.encoder_.Of(p.weight);
        const z3::expr zero = z.encoder_.Integer(0);
        terms.push_back(p.when.empty() ? weight : z3::ite(z.encoder_.All(p.when), weight, zero));
      }
      return z.encoder_.All(given) && z.encoder_.Sum(terms) != 0;
    };
    return z.Ask(question, &model);
  };
  const z3::check_result result = Entered(ask, z3::unknown);
  return BalanceOf(result, std::move(model));
}

Balance Solver::SameSets(std::span<const Condition> given, std::span<const nf::Piece> left,
                         std::span<const nf::Piece> right) {
  std::map<base::Symbol, std::int64_t> model;
  const auto ask = [&] {
    Impl& z = impl();
    const auto question = [&] {
      return z.encoder_.All(given) && z.encoder_.AnyOf(left) != z.encoder_.AnyOf(right);
    };
    return z.Ask(question, &model);
  };
  const z3::check_result result = Entered(ask, z3::unknown);
  return BalanceOf(result, std::move(model));
}

bool Solver::RealZero(const nf::RealProblem& problem) {
  return Entered([&] { return impl().RealZero(problem); }, false);
}

SolverCounts Solver::counts() const { return impl_ == nullptr ? SolverCounts{} : impl_->counts_; }

}  // namespace tenon::smt
