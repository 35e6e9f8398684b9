// The driver of the all-shape proof.
//
// For each output: one symbol for each index, the element of both sides as a normal form, and a
// comparison of the two by cases (verifier/cases.h). Where they are not equal as polynomials in
// what they read, the conditions that the terms still carry split the case in two and each is tried
// again; a case without open conditions is given to the pointwise step. What remains is unproved.
#include "verifier/driver.h"

#include <fmt/core.h>

#include <algorithm>

#include "verifier/cases.h"
#include "verifier/hypotheses.h"
#include "verifier/nf/denote.h"
#include "verifier/nf/unsupported.h"

namespace tenon::verifier {

using base::Condition;
using base::Poly;
using graph::NodeId;
using nf::Guards;
using nf::Nf;

namespace {

std::string Printed(const Condition& c, const base::Symbols& symbols) {
  return base::Print(c, symbols);
}

}  // namespace

class Driver::Impl {
 public:
  Impl(const rules::Rule& the_rule, const DriverLimits& the_limits, Oracle& the_oracle)
      : rule(the_rule), limits(the_limits), oracle(the_oracle), symbols(the_rule.graph.symbols()) {}

  const rules::Rule& rule;
  const DriverLimits limits;
  Oracle& oracle;
  base::Symbols symbols;
  Solved hypotheses;
  std::unique_ptr<nf::Entail> entail;
  std::unique_ptr<nf::Session> session;
  std::optional<Cases> cases;
  std::map<base::Symbol, std::int64_t> suspicion;

  std::vector<Condition> Rewritten(const std::vector<Condition>& conditions) {
    std::vector<Condition> out;
    for (const Condition& c : conditions) {
      out.push_back(base::Normal({c.kind, session->Substitute(c.p, session->eliminated)}));
    }
    return out;
  }

  // The first of `needed` that the facts do not imply.
  std::optional<Condition> Missing(const std::vector<Condition>& needed) {
    const std::vector<Condition> all = Rewritten(needed);
    if (session->facts.ImpliedAll({}, all)) return std::nullopt;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (!session->facts.Implied({}, all[k])) return needed[k];
    }
    return std::nullopt;
  }

  // Whether the outputs have the same types.
  std::optional<std::string> ShapesDiffer() {
    if (limits.fault == nf::Fault::kSkipShapes) return std::nullopt;
    for (std::size_t k = 0; k < rule.source.size(); ++k) {
      const graph::TensorType& a = *rule.graph.node(rule.source[k]).type;
      const graph::TensorType& b = *rule.graph.node(rule.target[k]).type;
      if (a.dtype != b.dtype) return fmt::format("output {} changes its element type", k);
      if (a.shape.size() != b.shape.size()) {
        return fmt::format("output {} has rank {} in the source and {} in the target", k,
                           a.shape.size(), b.shape.size());
      }
      for (int axis = 0; axis < a.shape.size(); ++axis) {
        if (Missing({base::Eq(a.shape[axis], b.shape[axis])})) {
          return fmt::format("axis {} of output {} is {} in the source and {} in the target", axis,
                             k, symbols.Print(a.shape[axis]), symbols.Print(b.shape[axis]));
        }
      }
    }
    return std::nullopt;
  }

  // The backward direction of a rule that holds both ways: its hypotheses are the target's. Returns
  // the requirement of the source that does not follow.
  std::optional<Condition> MissingBackwards() {
    base::Symbols own = rule.graph.symbols();
    const Solved solved = SolveEquations(own, ConditionsOf(rule, rule.target));
    if (solved.overflow) throw nf::Unsupported("a condition overflows");
    const std::unique_ptr<nf::Entail> other = oracle.Answering(own, solved.rest);
    nf::Facts facts(own, *other, limits.fault);
    for (const Condition& c : rule.graph.Requirements(rule.source)) {
      const Condition r = base::Normal({c.kind, own.Substitute(c.p, solved.eliminated)});
      if (!facts.Implied({}, r)) return c;
    }
    return std::nullopt;
  }

  // Every access of an input is inside it: a check of the operators' definitions.
  bool InBounds(const Nf& nf, const Guards& given) {
    for (const nf::Term& t : nf) {
      const Guards inside = nf::Joined(given, t.guards);
      Guards needed;
      for (const nf::Atom& a : t.atoms) {
        if (a.kind == nf::Atom::Kind::kFn && !InBounds(*a.body, inside)) return false;
        if (a.kind == nf::Atom::Kind::kMax && !InBounds(*a.body, nf::Joined(inside, a.guards))) {
          return false;
        }
        if (!a.is_access() || a.index.empty()) continue;
        if (session->heads[std::size_t(a.head)].kind != nf::HeadInfo::Kind::kInput) continue;
        const graph::Shape& shape = rule.graph.shape(rule.graph.input_node(a.head));
        for (int axis = 0; axis < shape.size(); ++axis) {
          const Poly extent = session->Substitute(shape[axis], session->eliminated);
          const Poly& at = a.index[std::size_t(axis)];
          if (!nf::AddGuard(needed, base::Ge(at, Poly(0)))) return false;
          if (!nf::AddGuard(needed, base::Lt(at, extent))) return false;
        }
      }
      if (!session->facts.ImpliedAll(inside, needed)) return false;
    }
    return true;
  }

  bool OutputEqual(std::size_t k) {
    nf::IndexPlan plan;
    for (int tries = 0;; ++tries) {
      if (tries > limits.replans) throw nf::Unsupported("an index with too many digits");
      try {
        return OutputEqual(k, plan);
      } catch (const nf::Replan&) {
      }
    }
  }

  bool OutputEqual(std::size_t k, nf::IndexPlan& plan) {
    using Side = nf::IndexPlan::Side;
    nf::Session& s = *session;
    plan.Begin(Side::kOutput);
    ops::Short<Poly> at;
    Guards given;
    for (const Poly& p : rule.graph.shape(rule.source[k])) {
      const Poly extent = s.Substitute(p, s.eliminated);
      if (extent.is_constant(1)) {
        at.push_back(Poly(0));
        continue;
      }
      const auto made = plan.Make(s, Side::kOutput, extent, base::SymbolKind::kIndex);
      at.push_back(made.value);
      given = nf::Joined(given, made.range);
    }
    const Nf source = nf::Denote(s, rule.graph, rule.source[k], at, given, plan, Side::kSource);
    const Nf target = nf::Denote(s, rule.graph, rule.target[k], at, given, plan, Side::kTarget);
    if (!InBounds(source, given) || !InBounds(target, given)) {
      throw nf::Unsupported("an access that may be out of bounds");
    }
    return cases->Equal(source, target, given);
  }
};

Driver::Driver(const rules::Rule& rule, const DriverLimits& limits, Oracle& oracle)
    : impl_(std::make_unique<Impl>(rule, limits, oracle)) {}

Driver::~Driver() = default;

const std::map<base::Symbol, std::int64_t>& Driver::suspicion() const { return impl_->suspicion; }

int Driver::steps() const { return impl_->session == nullptr ? 0 : impl_->session->steps(); }

int Driver::cells() const { return impl_->cases ? impl_->cases->count() : 0; }

namespace {

// An input that `to` reads and a match of `from` does not give.
std::optional<std::string> UnmatchedInput(const rules::Rule& rule, const std::vector<NodeId>& from,
                                          const std::vector<NodeId>& to) {
  const std::vector<NodeId> matched = rule.graph.Reachable(from);
  for (NodeId id : rule.graph.Reachable(to)) {
    const graph::Node& node = rule.graph.node(id);
    if (node.is_input() && !std::binary_search(matched.begin(), matched.end(), id)) {
      return rule.graph.input(node.input).name;
    }
  }
  return std::nullopt;
}

// Reasons why a rule is no rewrite, whatever it computes.
std::optional<std::string> NoRewrite(const rules::Rule& rule) {
  if (rule.source.empty() || rule.source.size() != rule.target.size()) {
    return "source and target have different numbers of outputs";
  }
  if (rule.source == rule.target) return "source and target are the same graph";
  if (auto name = UnmatchedInput(rule, rule.source, rule.target)) {
    return fmt::format("the target reads '{}', which the source does not mention", *name);
  }
  if (auto name = rule.both ? UnmatchedInput(rule, rule.target, rule.source) : std::nullopt) {
    return fmt::format("backwards, the source reads '{}', which the target does not mention",
                       *name);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Driver::Outcome> Driver::CheckForm() {
  Impl& p = *impl_;
  if (auto why = NoRewrite(p.rule)) return Outcome{VerdictKind::kIllFormed, *why};
  try {
    p.hypotheses = SolveEquations(p.symbols, ConditionsOf(p.rule, p.rule.source));
    if (p.hypotheses.overflow) return Outcome{VerdictKind::kUnknown, "a condition overflows"};
    const std::string never = "no sizes fulfil the conditions of the rule and of its source";
    if (p.hypotheses.contradiction) return Outcome{VerdictKind::kVacuous, never};
    p.entail = p.oracle.Answering(p.symbols, p.hypotheses.rest);
    switch (p.oracle.CanApply(p.rule)) {
      case Oracle::Answer::kYes:
        break;
      case Oracle::Answer::kNo:
        return Outcome{VerdictKind::kVacuous, never};
      case Oracle::Answer::kUnknown:
        return Outcome{VerdictKind::kUnknown,
                       "whether the rule's conditions can hold is not known"};
    }
    p.session = std::make_unique<nf::Session>(p.symbols, *p.entail, p.limits.terms, p.limits.fault);
    p.session->eliminated = p.hypotheses.eliminated;
    p.cases.emplace(*p.session, p.limits.cells);
    nf::AddInputs(*p.session, p.rule.graph);
    if (p.limits.fault != nf::Fault::kSkipTargetRequirements) {
      if (const auto c = p.Missing(p.rule.graph.Requirements(p.rule.target))) {
        return Outcome{VerdictKind::kIllFormed,
                       fmt::format("the target needs {}, which does not follow from the source and "
                                   "the rule's conditions",
                                   Printed(*c, p.symbols))};
      }
      if (p.rule.both && p.limits.fault != nf::Fault::kSkipBackwards) {
        if (const auto c = p.MissingBackwards()) {
          return Outcome{
              VerdictKind::kIllFormed,
              fmt::format("backwards, the source needs {}, which does not follow from the "
                          "target and the rule's conditions",
                          Printed(*c, p.symbols))};
        }
      }
    }
    if (auto why = p.ShapesDiffer()) return Outcome{VerdictKind::kIllFormed, *why};
  } catch (const nf::Unsupported& u) {
    return Outcome{VerdictKind::kUnknown, u.why};
  }
  return std::nullopt;
}

Driver::Outcome Driver::Equality() {
  Impl& p = *impl_;
  try {
    const bool all = p.limits.fault != nf::Fault::kFirstOutputOnly;
    for (std::size_t k = 0; k < (all ? p.rule.source.size() : 1); ++k) {
      if (p.rule.source[k] == p.rule.target[k] || p.OutputEqual(k)) continue;
      p.suspicion = p.cases->model();
      return Outcome{p.cases->unknown() ? VerdictKind::kUnknown : VerdictKind::kUnproved,
                     fmt::format("output {}: {}", k, p.cases->stuck())};
    }
  } catch (const nf::Unsupported& u) {
    return Outcome{VerdictKind::kUnknown, u.why};
  }
  return Outcome{VerdictKind::kProved, ""};
}

}  // namespace tenon::verifier
