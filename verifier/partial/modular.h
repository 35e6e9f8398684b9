// Single elements of a program, mod a prime: the random tests of partial equivalence.
//
// Only for programs that are polynomials in their inputs. Two different polynomials of degree at
// most d agree at random values mod p with probability at most d / p (Schwartz 1980, Zippel 1979),
// as long as the coefficients by which they differ are not all multiples of p; with the large prime
// they are small numbers. The prime is a parameter so that this can be measured with small ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace tenon::partial {

// An upper bound on the total degree of the elements of `node`. FailedPrecondition: it is no
// polynomial; names the operator.
StatusOr<int> DegreeOf(const graph::Graph& g, graph::NodeId node);

// Thread-compatible.
class Modular {
 public:
  // `g` is concrete and outlives it. `prime` is a prime below 2^62. The inputs have values that
  // depend on the seed.
  Modular(const graph::Graph& g, std::uint64_t prime, std::uint64_t seed);

  // The element at a position inside the shape of `node`, in [0, prime); nothing when a division by
  // 0 came up, or more than 4e6 elements had to be read. DegreeOf(node) is OK.
  std::optional<std::uint64_t> At(graph::NodeId node, const graph::Extents& position) const;

 private:
  const graph::Graph& g_;
  const std::uint64_t prime_;
  std::vector<std::vector<std::uint64_t>> inputs_;
};

}  // namespace tenon::partial
