// The pointwise step.
//
// What is left after normalisation may be equal only by the signs of numbers: Relu(x) - Relu(-x) =
// x, or Relu(a + Relu(a)) = 2 Relu(a). Here each access is one real variable, a sum is one access
// of its own (equal sums are the same access, by lifting), and Relus and maxima are said by what
// they are. Whether the difference of the sides is then always 0 is a question of real arithmetic
// without quantifiers. Two accesses that could coincide are different variables: that only loses
// proofs.
#include <algorithm>

#include "verifier/nf/compare.h"
#include "verifier/nf/unsupported.h"

namespace tenon::nf {
namespace {

// Bodies within bodies; deeper ones stay opaque.
constexpr int kDepthMax = 8;

class Builder {
 public:
  Builder(Session& session, Normalizer& normalizer, const Guards& given)
      : s_(session), n_(normalizer), given_(given) {}

  // Adds sign * nf to `sum`. False when a guard is still open.
  bool Add(const Nf& nf, const Rational& sign, RealSum& sum, int depth) {
    for (const Term& t : nf) {
      if (t.binders.empty() && !t.guards.empty()) return false;
      Term one = t;
      if (!t.binders.empty()) one = n_.LiftedTerm(t, given_);
      RealTerm real{one.coefficient * sign, {}};
      for (const Atom& a : one.atoms) real.factors.push_back(Variable(a, depth));
      if (!one.count.is_constant(1) || !one.size.is_constant(1)) {
        real.factors.push_back(Ratio(one.count, one.size));
      }
      sum.push_back(std::move(real));
    }
    return true;
  }

  RealProblem& problem() { return problem_; }
  bool has_cases() const { return !problem_.maxima.empty(); }

 private:
  int Variable(const Atom& a, int depth) {
    const auto known = std::find(atoms_.begin(), atoms_.end(), a);
    if (known != atoms_.end()) return variables_[static_cast<std::size_t>(known - atoms_.begin())];
    const int v = problem_.variables++;
    atoms_.push_back(a);
    variables_.push_back(v);
    const HeadInfo head = s_.heads[static_cast<std::size_t>(a.head)];
    if (head.positive) {
      problem_.positive.push_back(v);
    } else if (head.non_negative) {
      problem_.non_negative.push_back(v);
    }
    if (depth < kDepthMax) Define(v, a, head, depth);
    return v;
  }

  void Define(int v, const Atom& a, const HeadInfo& head, int depth) {
    base::Symbols::Substitution arguments;
    for (std::size_t k = 0; k < a.index.size(); ++k) {
      arguments[s_.Param(static_cast<int>(k))] = a.index[k];
    }
    const bool relu = head.kind == HeadInfo::Kind::kFunction && head.fn == ops::Fn::kRelu;
    if (relu || head.kind == HeadInfo::Kind::kSum) {
      const auto bound = [](const Term& t) { return !t.binders.empty(); };
      // A single sum is opaque already: it would be lifted to itself.
      if (!relu && head.body.size() == 1 && bound(head.body[0])) return;
      Nf body;
      for (const Term& t : head.body) {
        if (auto u = s_.Substitute(s_.Renamed(t), arguments)) body.push_back(*std::move(u));
      }
      RealSum sum;
      if (!Add(body, 1, sum, depth + 1)) return;
      if (relu) {
        problem_.maxima.push_back({v, {RealSum{}, std::move(sum)}});
      } else {
        problem_.definitions.push_back({v, std::move(sum)});
      }
    } else if (head.kind == HeadInfo::Kind::kMax) {
      RealProblem::Maximum maximum{v, {}};
      for (const Term& family : head.body) {
        const auto t = s_.Substitute(family, arguments);
        if (!t || !t->binders.empty()) return;
        if (!t->guards.empty() && !s_.facts.ImpliedAll(given_, t->guards)) return;
        Term value;
        value.atoms = t->atoms;
        RealSum sum;
        if (!Add({value}, 1, sum, depth + 1)) return;
        maximum.of.push_back(std::move(sum));
      }
      problem_.maxima.push_back(std::move(maximum));
    }
  }

  // count / size as a number of its own.
  int Ratio(const Poly& count, const Poly& size) {
    for (const auto& [c, s, v] : ratios_) {
      if (c == count && s == size) return v;
    }
    ratios_.push_back({count, size, problem_.variables});
    return problem_.variables++;
  }

  struct RatioVariable {
    Poly count, size;
    int variable;
  };
  Session& s_;
  Normalizer& n_;
  const Guards& given_;
  RealProblem problem_;
  std::vector<Atom> atoms_;
  std::vector<int> variables_;
  std::vector<RatioVariable> ratios_;
};

}  // namespace

bool PointwiseEqual(Session& s, Normalizer& n, const Nf& a, const Nf& b, const Guards& given) {
  Builder builder(s, n, given);
  RealSum goal;
  if (!builder.Add(a, 1, goal, 0) || !builder.Add(b, -1, goal, 0)) return false;
  if (!builder.has_cases()) return false;  // Nothing that Compare did not see.
  builder.problem().goal = std::move(goal);
  return s.facts.RealZero(builder.problem());
}

}  // namespace tenon::nf
