// A prover child, as the tenon binary has one in a hidden command.
#include "verifier/child.h"

int main() { return tenon::verifier::RunProverChild(0, 1); }
