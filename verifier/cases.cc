#include "verifier/cases.h"

#include "verifier/nf/compare.h"
#include "verifier/nf/unsupported.h"

namespace tenon::verifier {

using base::Condition;
using nf::Guards;
using nf::Nf;

std::optional<Condition> Cases::Open(const Nf& nf, const Guards& given) {
  for (const nf::Term& t : nf) {
    for (const Condition& c : t.guards) {
      if (session_.Mentions(c.p, t.binders)) continue;
      if (!session_.facts.Decide(given, c)) return c;
    }
  }
  return std::nullopt;
}

bool Cases::CaseEqual(const Nf& source, const Nf& target, const Guards& given,
                      std::vector<Guards>& more) {
  nf::Normalizer normalizer(session_);
  const Nf a = normalizer.Normalize(source, given);
  const Nf b = normalizer.Normalize(target, given);
  nf::Comparison c;
  try {
    c = nf::Compare(session_, a, b, given);
  } catch (const nf::Unsupported& u) {
    c.where = u.why;
  }
  if (c.kind == nf::Comparison::Kind::kEqual) return true;
  auto open = Open(a, given);
  if (!open) open = Open(b, given);
  if (open && count_ < limit_) {
    std::vector<Condition> cases = base::Negate(*open);
    cases.push_back(*open);
    for (const Condition& one : cases) {
      more.push_back(given);
      if (!nf::AddGuard(more.back(), one)) more.pop_back();
    }
    return true;
  }
  if (nf::PointwiseEqual(session_, normalizer, a, b, given)) return true;
  unknown_ = c.kind == nf::Comparison::Kind::kUnknown;
  stuck_ = c.where;
  model_ = c.model;
  return false;
}

bool Cases::Equal(const Nf& source, const Nf& target, const Guards& given) {
  std::vector<Guards> work{given};
  while (!work.empty()) {
    const Guards one = std::move(work.back());
    work.pop_back();
    ++count_;
    if (one.size() > given.size() && session_.facts.Unsat(one)) continue;
    if (!CaseEqual(source, target, one, work)) return false;
  }
  return true;
}

}  // namespace tenon::verifier
