#include "verifier/partial/sizes.h"

#include <algorithm>

#include <fmt/core.h>

#include "verifier/screen.h"

namespace tenon::partial {

using base::Symbol;
using base::SymbolKind;

namespace {

constexpr std::int64_t kLarge = 97;

}  // namespace

Poly Translate(const Poly& p, const base::Symbols& from, base::Symbols& to) {
  if (!p.valid()) return p;
  Poly out = 0;
  for (const Poly::Term& t : p.terms()) {
    Poly product = t.coefficient;
    for (const Symbol s : t.monomial) {
      if (s == 0) break;
      product = product * (from.kind(s) == SymbolKind::kDiv
                               ? to.FloorDiv(Translate(from.numerator(s), from, to),
                                             Translate(from.denominator(s), from, to))
                               : Poly::Var(s));
    }
    out += product;
  }
  return out;
}

Sizes::Sizes(const rules::Rule& pair)
    : symbols_(pair.graph.symbols()),
      named_(pair.graph.symbols().size()),
      conditions_(verifier::ConditionsOf(pair, pair.source)),
      solved_(verifier::SolveEquations(symbols_, conditions_)),
      solver_(symbols_, solved_.rest, {}),
      facts_(symbols_, solver_, nf::Fault::kNone) {}

StatusOr<std::unique_ptr<Sizes>> Sizes::Of(const rules::Rule& pair) {
  std::unique_ptr<Sizes> sizes(new Sizes(pair));
  if (sizes->solved_.overflow || sizes->solved_.contradiction || !sizes->FindTypical(pair)) {
    return base::FailedPrecondition(
        fmt::format("rule {}: no sizes were found that fulfil its conditions", pair.name));
  }
  return sizes;
}

bool Sizes::Complete(std::vector<std::int64_t>& values) const {
  values.resize(symbols_.size(), 0);
  for (const auto& [s, p] : solved_.eliminated) {
    const auto v = symbols_.Eval(p, values);
    if (!v) return false;
    values[s] = *v;
  }
  for (Symbol s = 1; s < named_; ++s) {
    if (symbols_.kind(s) == SymbolKind::kDim && values[s] < 1) return false;
  }
  const auto holds = [&](const Condition& c) { return base::Holds(c, symbols_, values) == true; };
  return std::all_of(conditions_.begin(), conditions_.end(), holds) &&
         std::all_of(assumed_.begin(), assumed_.end(), holds);
}

bool Sizes::FindTypical(const rules::Rule& pair) {
  // Symbols that give sizes to windows, and those of weights in general, are small.
  std::vector<bool> small(named_, false);
  for (std::size_t k = 0; k < pair.graph.inputs().size(); ++k) {
    const auto number = static_cast<std::int32_t>(k);
    const graph::Shape& shape = pair.graph.shape(pair.graph.input_node(number));
    if (pair.graph.input(number).kind != graph::InputKind::kWeight || shape.size() < 4) continue;
    for (int axis = 2; axis < shape.size(); ++axis) {
      std::vector<Symbol> mentioned;
      shape[axis].CollectSymbols(mentioned, &symbols_);
      for (const Symbol s : mentioned) {
        if (s < named_) small[s] = true;
      }
    }
  }
  for (const std::int64_t attribute : {1, 2, 0, 3}) {
    std::vector<std::int64_t> values(symbols_.size(), 0);
    for (Symbol s = 1; s < named_; ++s) {
      const bool dim = symbols_.kind(s) == SymbolKind::kDim;
      values[s] = dim && !small[s] ? kLarge + s : (dim ? 3 : attribute);
    }
    if (Complete(values)) {
      typical_ = std::move(values);
      return true;
    }
  }
  // Whatever there is, and then each dim made large if it may be.
  auto found = verifier::FindSizes(pair, verifier::SeedOf(pair));
  if (!found) return false;
  for (Symbol s = 1; s < named_; ++s) {
    if (symbols_.kind(s) != SymbolKind::kDim || solved_.eliminated.contains(s)) continue;
    std::vector<std::int64_t> more = *found;
    more[s] = small[s] ? more[s] : kLarge + s;
    if (Complete(more)) *found = std::move(more);
  }
  if (!Complete(*found)) return false;
  typical_ = *std::move(found);
  return true;
}

std::vector<std::int64_t> Sizes::Small() const {
  std::vector<std::int64_t> values = typical_;
  for (Symbol s = 1; s < named_; ++s) {
    if (symbols_.kind(s) != SymbolKind::kDim || solved_.eliminated.contains(s)) continue;
    for (std::int64_t v = 1; v < values[s]; ++v) {
      std::vector<std::int64_t> less = values;
      less[s] = v == 1 ? 2 : (v == 2 ? 1 : v);  // 2, 1, 3, 4, ..
      if (less[s] >= values[s] || !Complete(less)) continue;
      values = std::move(less);
      break;
    }
  }
  return values;
}

std::vector<std::int64_t> Sizes::Larger(std::vector<std::int64_t> values) const {
  for (Symbol s = 1; s < named_; ++s) {
    if (symbols_.kind(s) != SymbolKind::kDim || solved_.eliminated.contains(s)) continue;
    std::vector<std::int64_t> more = values;
    more[s] += 2;
    if (Complete(more)) values = std::move(more);
  }
  return values;
}

Condition Sizes::Own(const Condition& c, const base::Symbols& from) {
  const Poly p = Translate(c.p, from, symbols_);
  return base::Normal({c.kind, symbols_.Substitute(p, solved_.eliminated)});
}

bool Sizes::Implied(const Condition& c, const base::Symbols& from) {
  const Condition own = Own(c, from);
  if (!own.p.valid()) return false;
  if (const auto decided = base::Trivial(own)) return *decided;
  return facts_.Implied(assumed_, own);
}

bool Sizes::Decide(const Condition& c, const base::Symbols& from) {
  if (Implied(c, from)) return true;
  const Condition own = Own(c, from);
  const std::vector<Condition> no = base::Negate(own);
  for (const Condition& n : no) {
    if (Implied(n, symbols_)) return false;
  }
  std::vector<std::int64_t> values = typical_;
  values.resize(symbols_.size(), 0);
  const bool holds = base::Holds(own, symbols_, values) == true;
  if (holds) {
    assumed_.push_back(own);
    return true;
  }
  for (const Condition& n : no) {
    if (base::Holds(n, symbols_, values) == true) assumed_.push_back(n);
  }
  return false;
}

std::vector<Condition> Sizes::Assumed(base::Symbols& to) {
  nf::Guards kept = assumed_;
  for (std::size_t k = kept.size(); k-- > 0;) {
    nf::Guards others = kept;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(k));
    if (facts_.Implied(others, kept[k])) kept = std::move(others);
  }
  std::vector<Condition> out;
  for (const Condition& c : kept) out.push_back({c.kind, Translate(c.p, symbols_, to)});
  return out;
}

std::optional<std::int64_t> Sizes::At(const Poly& p, const base::Symbols& from,
                                      std::vector<std::int64_t> values) {
  const Poly own = Translate(p, from, symbols_);
  values.resize(symbols_.size(), 0);
  return symbols_.Eval(own, values);
}

}  // namespace tenon::partial
