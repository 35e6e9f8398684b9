// The normal form means what the evaluator computes: before normalisation (the denotation), and
// after it, with lifted functions (the laws and case splits), for both sides of every rule of the
// corpora, at small sizes and random values.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/eval/eval.h"
#include "tests/verifier/corpus.h"
#include "verifier/hypotheses.h"
#include "verifier/nf/denote.h"
#include "verifier/nf/normalize.h"
#include "verifier/nf/unsupported.h"
#include "verifier/screen.h"
#include "verifier/smt/solver.h"

namespace tenon::verifier {
namespace {

using base::Condition;
using base::Poly;
using base::Symbol;

// Bound variables are tried over this range; sizes are small enough for it.
constexpr std::int64_t kFrom = -8, kTo = 12;

// A normal form as a number, by brute force over its binders.
class Number {
 public:
  Number(const nf::Session& s, const std::vector<eval::Tensor<double>>& inputs)
      : s_(s), inputs_(inputs) {}

  double Of(const nf::Nf& nf, std::vector<std::int64_t>& values) {
    double sum = 0;
    for (const nf::Term& t : nf) {
      ForAll(t.binders, t.guards, 0, values, [&] { sum += Product(t, values); });
    }
    return sum;
  }
  bool ok() const { return ok_; }

 private:
  // Calls f for all values of the binders that fulfil the guards.
  template <class F>
  void ForAll(const std::vector<Symbol>& binders, const std::vector<Condition>& guards,
              std::size_t next, std::vector<std::int64_t>& values, F f) {
    if (values.size() < s_.symbols.size()) values.resize(s_.symbols.size());
    std::vector<Condition> later;
    const std::span<const Symbol> open(binders.data() + next, binders.size() - next);
    for (const Condition& c : guards) {
      if (s_.Mentions(c.p, open)) {
        later.push_back(c);
        continue;
      }
      const auto holds = base::Holds(c, s_.symbols, values);
      ok_ = ok_ && holds.has_value();
      if (holds != true) return;
    }
    if (next == binders.size()) return f();
    for (std::int64_t v = kFrom; v <= kTo; ++v) {
      values[binders[next]] = v;
      ForAll(binders, later, next + 1, values, f);
    }
  }

  double Product(const nf::Term& t, std::vector<std::int64_t>& values) {
    double product = double(t.coefficient.numerator()) / double(t.coefficient.denominator());
    product *= At(t.count, values);
    product /= At(t.size, values);
    for (const nf::Atom& a : t.atoms) product *= Of(a, values);
    return product;
  }

  double At(const Poly& p, const std::vector<std::int64_t>& values) {
    const auto v = s_.symbols.Eval(p, values);
    ok_ = ok_ && v.has_value();
    return double(v.value_or(1));
  }

  double Of(const nf::Atom& a, std::vector<std::int64_t>& values) {
    switch (a.kind) {
      case nf::Atom::Kind::kFn:
        return Apply(a.fn, Of(*a.body, values));
      case nf::Atom::Kind::kMax: {
        double most = -INFINITY;
        ForAll(a.binders, a.guards, 0, values, [&] { most = std::max(most, Of(*a.body, values)); });
        return most;
      }
      case nf::Atom::Kind::kAccess:
        break;
    }
    std::vector<std::int64_t> at;
    for (const Poly& p : a.index) at.push_back(std::int64_t(At(p, values)));
    return Access(a.head, at);
  }

  double Access(nf::Head h, const std::vector<std::int64_t>& at) {
    const nf::HeadInfo& head = s_.heads[std::size_t(h)];
    std::vector<std::int64_t> own = globals_;
    switch (head.kind) {
      case nf::HeadInfo::Kind::kInput: {
        const eval::Tensor<double>& t = inputs_[std::size_t(h)];
        std::int64_t k = 0;
        for (int axis = 0; axis < t.extents.size(); ++axis) {
          const std::int64_t i = at[std::size_t(axis)];
          ok_ = ok_ && 0 <= i && i < t.extents[axis];
          k = k * t.extents[axis] + i;
        }
        return ok_ ? t.data[std::size_t(k)] : 0;
      }
      case nf::HeadInfo::Kind::kReal:
        return head.value;
      case nf::HeadInfo::Kind::kRecipOf:
        return 1 / Access(head.of, at);
      case nf::HeadInfo::Kind::kFunction:
      case nf::HeadInfo::Kind::kMax:
      case nf::HeadInfo::Kind::kSum:
        break;
    }
    own.resize(s_.symbols.size());
    for (std::size_t k = 0; k < at.size(); ++k) {
      own[const_cast<nf::Session&>(s_).Param(int(k))] = at[k];
    }
    if (head.kind != nf::HeadInfo::Kind::kMax) {
      const double body = Of(head.body, own);
      return head.kind == nf::HeadInfo::Kind::kSum ? body : Apply(head.fn, body);
    }
    double most = -INFINITY;
    for (const nf::Term& family : head.body) {
      ForAll(family.binders, family.guards, 0, own,
             [&] { most = std::max(most, Product(family, own)); });
    }
    return most;
  }

  static double Apply(ops::Fn fn, double x) {
    switch (fn) {
      case ops::Fn::kRelu:
        return std::max(x, 0.0);
      case ops::Fn::kSigmoid:
        return 1 / (1 + std::exp(-x));
      case ops::Fn::kTanh:
        return std::tanh(x);
      case ops::Fn::kExp:
        return std::exp(x);
      case ops::Fn::kRecip:
        return 1 / x;
      case ops::Fn::kSqrt:
        return std::sqrt(x);
      case ops::Fn::kErf:
        return std::erf(x);
    }
    return x;
  }

 public:
  std::vector<std::int64_t> globals_;  // Values of dims and attributes.

 private:
  const nf::Session& s_;
  const std::vector<eval::Tensor<double>>& inputs_;
  bool ok_ = true;
};

bool Close(double a, double b) {
  return std::fabs(a - b) <= 1e-9 * std::max({1.0, std::fabs(a), std::fabs(b)});
}

// Compares both forms of one output with the evaluator. Returns how many elements were compared.
int Check(const rules::Rule& rule, graph::NodeId output, const std::vector<std::int64_t>& sizes,
          std::mt19937_64& random) {
  const graph::NodeId roots[] = {output};
  const auto concrete = graph::Instantiate(rule.graph, roots, sizes);
  if (!concrete.ok()) return 0;  // The target of a rule that is ill-formed.
  std::vector<eval::Tensor<double>> inputs;
  for (std::size_t k = 0; k < concrete->inputs().size(); ++k) {
    eval::Tensor<double> t;
    t.extents = graph::Concrete(concrete->shape(concrete->input_node(std::int32_t(k))));
    for (std::int64_t n = graph::ElementCount(t.extents); n > 0; --n) {
      t.data.push_back(double(std::int64_t(random() % 33) - 16) / 8 + 1.0 / 64);
    }
    inputs.push_back(std::move(t));
  }
  const auto expected = eval::Evaluate(*concrete, concrete->outputs(), inputs);
  if (!expected.ok()) return 0;

  base::Symbols symbols = rule.graph.symbols();
  const Solved solved = SolveEquations(symbols, ConditionsOf(rule, roots));
  smt::Solver solver(symbols, solved.rest, {});
  nf::Session s(symbols, solver, {}, nf::Fault::kNone);
  s.eliminated = solved.eliminated;
  nf::AddInputs(s, rule.graph);
  nf::IndexPlan plan;
  for (int tries = 0; tries < 8; ++tries) {
    try {
      plan.Begin(nf::IndexPlan::Side::kOutput);
      ops::Short<Poly> at;
      nf::Guards given;
      std::vector<nf::IndexPlan::Made> made;
      for (const Poly& extent : rule.graph.shape(output)) {
        made.push_back(plan.Make(s, nf::IndexPlan::Side::kOutput,
                                 s.Substitute(extent, s.eliminated), base::SymbolKind::kIndex));
        at.push_back(made.back().value);
        given = nf::Joined(given, made.back().range);
      }
      const nf::Nf raw =
          nf::Denote(s, rule.graph, output, at, given, plan, nf::IndexPlan::Side::kSource);
      const nf::Nf normal = nf::Normalizer(s).Normalize(raw, given);
      Number number(s, inputs);
      number.globals_ = sizes;
      int compared = 0;
      const eval::Tensor<double>& want = (*expected)[0];
      for (std::size_t e = 0; e < want.data.size(); e += 1 + e / 3) {
        // The digits of the element's position, by brute force over the indices.
        std::vector<std::int64_t> values = sizes;
        values.resize(symbols.size());
        std::int64_t rest = std::int64_t(e);
        for (int axis = want.extents.size(); axis-- > 0;) {
          std::int64_t i = rest % want.extents[axis];
          rest /= want.extents[axis];
          const auto& digits = made[std::size_t(axis)];
          for (std::size_t d = digits.symbols.size(); d-- > 0;) {
            // The upper bound of a digit is its last range condition: extent - 1 - digit >= 0.
            values[digits.symbols[d]] = 0;
            std::int64_t extent = want.extents[axis];
            if (digits.symbols.size() > 1) {
              const Condition& upper = digits.range[2 * d + 1];
              extent = *symbols.Eval(upper.p, values) + 1;
            }
            values[digits.symbols[d]] = d == 0 ? i : i % extent;
            i /= extent;
          }
        }
        if (!std::isfinite(want.data[e])) continue;
        const double before = number.Of(raw, values);
        const double after = number.Of(normal, values);
        EXPECT_TRUE(number.ok()) << rule.name << " cannot be evaluated";
        EXPECT_TRUE(Close(before, want.data[e]))
            << rule.name << ": denotation " << before << ", evaluator " << want.data[e];
        EXPECT_TRUE(Close(after, want.data[e]))
            << rule.name << ": normal form " << after << ", evaluator " << want.data[e];
        ++compared;
        if (testing::Test::HasFailure()) return compared;
      }
      return compared;
    } catch (const nf::Replan&) {
    }
  }
  return 0;
}

TEST(DenotationTest, NormalFormsMeanWhatTheEvaluatorComputes) {
  std::mt19937_64 random(7);
  int compared = 0, sides = 0, without = 0;
  for (const CorpusRule& c : ReadCorpus()) {
    if (!c.parsed.rule.ok()) continue;
    const rules::Rule& rule = *c.parsed.rule;
    const auto sizes = FindSizes(rule, random());
    if (!sizes) continue;
    for (const auto* outputs : {&rule.source, &rule.target}) {
      for (graph::NodeId output : *outputs) {
        try {
          const int n = Check(rule, output, *sizes, random);
          compared += n;
          n > 0 ? ++sides : ++without;
        } catch (const nf::Unsupported& u) {
          ADD_FAILURE() << rule.name << ": " << u.why;
        }
        ASSERT_FALSE(HasFailure()) << rule.name;
      }
    }
  }
  fmt::print("{} elements of {} outputs compared, {} outputs passed over\n", compared, sides,
             without);
  EXPECT_GT(compared, 1500);
  EXPECT_LT(without, sides / 10);
}

}  // namespace
}  // namespace tenon::verifier
