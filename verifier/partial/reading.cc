#include "verifier/partial/reading.h"

#include <algorithm>

#include "verifier/hypotheses.h"
#include "verifier/nf/denote.h"
#include "verifier/nf/unsupported.h"

namespace tenon::partial {

using base::SymbolKind;
using nf::Guards;
using Side = nf::IndexPlan::Side;

namespace {

// Digits of a larger extent are not written out, nor more than so many choices.
constexpr std::int64_t kWrittenMax = 16;
constexpr std::size_t kChoicesMax = 64;
constexpr int kReplansMax = 16;
// Terms: many regions are compared, each like a rule of its own.
constexpr nf::Limits kLimits{.steps = 2'000'000};

// The extent that a digit's range says it has.
Poly ExtentOf(const nf::IndexPlan::Made& made, Symbol digit, const base::Symbols& symbols) {
  for (const base::Condition& c : made.range) {
    if (c.p.LinearCoefficient(digit, symbols) == -1) return c.p + Poly::Var(digit) + 1;
  }
  throw nf::Unsupported("an index without a range");
}

// Which digits are written out, and which one is cut.
Digits Arranged(std::vector<Poly> extents) {
  Digits d;
  const auto count = static_cast<int>(extents.size());
  const auto small = [&](int k) {
    const Poly& e = extents[static_cast<std::size_t>(k)];
    return e.is_constant() && e.constant() <= kWrittenMax;
  };
  d.cut = count - 1;
  // A small last digit below one that is no number: the other one is cut.
  for (int k = count - 1; k >= 0 && small(d.cut) && count > 1; --k) {
    if (!extents[static_cast<std::size_t>(k)].is_constant()) d.cut = k;
  }
  for (int k = 0; k < count; ++k) d.written.push_back(k != d.cut && small(k));
  d.extents = std::move(extents);
  return d;
}

}  // namespace

bool Digits::contiguous() const {
  if (cut < 0) return true;
  for (std::size_t k = 0; k < extents.size(); ++k) {
    if (static_cast<int>(k) != cut && !written[k]) return false;
  }
  return cut == static_cast<int>(extents.size()) - 1;
}

Reading::Reading(const rules::Rule& pair) : pair_(pair), symbols_(pair.graph.symbols()) {
  const verifier::Solved solved =
      verifier::SolveEquations(symbols_, verifier::ConditionsOf(pair, pair.source));
  if (solved.overflow || solved.contradiction) throw nf::Unsupported("conditions that never hold");
  solver_ = std::make_unique<smt::Solver>(symbols_, solved.rest, smt::SolverLimits{});
  session_ = std::make_unique<nf::Session>(symbols_, *solver_, kLimits, nf::Fault::kNone);
  session_->eliminated = solved.eliminated;
  nf::AddInputs(*session_, pair.graph);
  for (int tries = 0;; ++tries) {
    if (tries > kReplansMax) throw nf::Unsupported("an index with too many digits");
    try {
      choices_.clear();
      ReadAll();
      return;
    } catch (const nf::Replan&) {
    }
  }
}

void Reading::ReadAll() {
  axes_.clear();
  plan_.Begin(Side::kOutput);
  for (const Poly& p : pair_.graph.shape(pair_.source[0])) {
    const Poly extent = session_->Substitute(p, session_->eliminated);
    if (extent.is_constant(1)) {
      axes_.push_back(Digits{.extents = {Poly(1)}, .written = {false}, .cut = -1});
      continue;
    }
    const auto made = plan_.Make(*session_, Side::kOutput, extent, SymbolKind::kIndex);
    std::vector<Poly> extents;
    for (const Symbol s : made.symbols) extents.push_back(ExtentOf(made, s, symbols_));
    axes_.push_back(Arranged(std::move(extents)));
  }
  std::vector<std::vector<std::vector<std::int64_t>>> all(1);
  for (const Digits& axis : axes_) {
    std::vector<std::vector<std::int64_t>> own{{}};
    for (std::size_t k = 0; k < axis.extents.size(); ++k) {
      std::vector<std::vector<std::int64_t>> longer;
      const std::int64_t values = axis.written[k] ? axis.extents[k].constant() : 1;
      for (const auto& before : own) {
        for (std::int64_t v = 0; v < values; ++v) {
          longer.push_back(before);
          longer.back().push_back(axis.written[k] ? v : -1);
        }
      }
      own = std::move(longer);
    }
    std::vector<std::vector<std::vector<std::int64_t>>> product;
    for (const auto& before : all) {
      for (const auto& one : own) {
        product.push_back(before);
        product.back().push_back(one);
      }
    }
    all = std::move(product);
    if (all.size() > kChoicesMax) throw nf::Unsupported("an output of too many blocks");
  }
  for (auto& digits : all) ReadOne(std::move(digits));
}

void Reading::ReadOne(std::vector<std::vector<std::int64_t>> digits) {
  nf::Session& s = *session_;
  Choice choice;
  plan_.Begin(Side::kOutput);
  ops::Short<Poly> at;
  for (std::size_t axis = 0; axis < axes_.size(); ++axis) {
    if (axes_[axis].cut < 0) {
      at.push_back(Poly(0));
      choice.cut.push_back(0);
      continue;
    }
    Poly extent = 1;
    for (const Poly& e : axes_[axis].extents) extent = extent * e;
    const auto made = plan_.Make(s, Side::kOutput, extent, SymbolKind::kIndex);
    base::Symbols::Substitution by;
    for (std::size_t k = 0; k < made.symbols.size(); ++k) {
      if (digits[axis][k] >= 0) by[made.symbols[k]] = digits[axis][k];
    }
    at.push_back(s.Substitute(made.value, by));
    for (const base::Condition& c : made.range) {
      nf::AddGuard(choice.given, {c.kind, s.Substitute(c.p, by)});
    }
    choice.cut.push_back(made.symbols[static_cast<std::size_t>(axes_[axis].cut)]);
  }
  choice.digits = std::move(digits);
  const rules::Rule& r = pair_;
  choice.source = nf::Denote(s, r.graph, r.source[0], at, choice.given, plan_, Side::kSource);
  choice.target = nf::Denote(s, r.graph, r.target[0], at, choice.given, plan_, Side::kTarget);
  choices_.push_back(std::move(choice));
}

}  // namespace tenon::partial
