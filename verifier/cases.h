// Equality by cases: two elements are compared where a condition holds, and where they are not
// equal as they stand, the conditions that their terms still carry split the case.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verifier/nf/normalize.h"
#include "verifier/nf/session.h"

namespace tenon::verifier {

// Thread-compatible.
class Cases {
 public:
  // `session` outlives it. At most `limit` cases are compared, by all calls together.
  Cases(nf::Session& session, int limit) : session_(session), limit_(limit) {}

  // Whether `source` and `target`, as they were denoted, are equal for all inputs wherever `given`
  // holds. False: that was not shown, and stuck(), unknown() and model() say why. Throws
  // nf::Unsupported.
  bool Equal(const nf::Nf& source, const nf::Nf& target, const nf::Guards& given);

  int count() const { return count_; }
  // Of the last Equal that was false: the monomial; whether no answer was found rather than a
  // difference; sizes at which to look for a counterexample, maybe none.
  const std::string& stuck() const { return stuck_; }
  bool unknown() const { return unknown_; }
  const std::map<base::Symbol, std::int64_t>& model() const { return model_; }

 private:
  // A condition of some term, without its binders, that the case leaves open.
  std::optional<base::Condition> Open(const nf::Nf& nf, const nf::Guards& given);
  bool CaseEqual(const nf::Nf& source, const nf::Nf& target, const nf::Guards& given,
                 std::vector<nf::Guards>& more);

  nf::Session& session_;
  const int limit_;
  int count_ = 0;
  std::string stuck_;
  bool unknown_ = false;
  std::map<base::Symbol, std::int64_t> model_;
};

}  // namespace tenon::verifier
