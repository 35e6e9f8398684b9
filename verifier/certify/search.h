// The search for arguments: why a solver's "yes" is right, in steps that the checker can follow.
//
// Nothing here is trusted: what it writes is checked (verifier/cert). It may fail to find an
// argument for a true claim; then the rule goes without a certificate.
#pragma once

#include <string>

#include "verifier/cert/argument.h"
#include "verifier/cert/ledger.h"

namespace tenon::certify {

struct SearchLimits {
  int nodes = 4000;                    // Cases of one argument.
  int depth = 40;                      // Splits of whole numbers below one another.
  nf::Fault fault = nf::Fault::kNone;  // For the test of the tests only.
};

// Appends an argument for `question` from the facts of `ledger`; false, and nothing appended, when
// none was found. The ledger comes back as it was. Deterministic.
bool FindArgument(const cert::Question& question, cert::Ledger& ledger, const SearchLimits& limits,
                  std::string& out);

}  // namespace tenon::certify
