// Forged certificates and arguments, each against one check of the checker. All are refused; the
// test of the tests shows that without that check they would be accepted.
#pragma once

#include <span>

#include "verifier/nf/faults.h"

namespace tenon::verifier {

struct Attack {
  const char* name;
  nf::Fault fault;                   // With it, the attack succeeds.
  bool (*accepted)(nf::Fault with);  // Whether a checker with that fault accepts the forgery.
};

std::span<const Attack> Attacks();

}  // namespace tenon::verifier
