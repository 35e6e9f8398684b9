// Two sums of residues times random keys mod 2^61 - 1. Such a sum is equal for two different values
// with probability 1 / (2^61 - 1), whatever the values, and has no dependency chain: one product a
// residue and sum.
#include "worker/fingerprint.h"

#include "core/base/check.h"
#include "core/eval/exact.h"

namespace tenon::worker {
namespace {

using Wide = unsigned __int128;

Wide Fold(Wide t) { return (t & eval::kPrime) + (t >> 61); }
std::uint64_t Finish(Wide t) {
  t = Fold(Fold(Fold(t)));
  const std::uint64_t s = static_cast<std::uint64_t>(t);
  return s >= eval::kPrime ? s - eval::kPrime : s;
}

}  // namespace

Hasher::Hasher(std::uint64_t seed, std::int64_t elements) {
  base::SplitMix64 random(base::Mix64(seed ^ 0x66696e67));
  keys_.resize(static_cast<std::size_t>(elements) * kLanes * 2);
  for (std::uint64_t& key : keys_) key = 1 + random.Below(eval::kPrime - 1);
}

Fingerprint Hasher::Hash(const graph::Extents& extents, Value value) const {
  const std::size_t count = static_cast<std::size_t>(graph::ElementCount(extents)) * kLanes;
  CHECK(count * 2 <= keys_.size());
  Wide a = 0, b = 0;
  for (std::size_t k = 0; k < count;) {
    const std::size_t stop = std::min(count, k + 16);  // 32 products fit 128 bits.
    for (; k < stop; ++k) {
      a += Wide(value.residue[k]) * keys_[2 * k];
      b += Wide(value.residue[k]) * keys_[2 * k + 1];
    }
    a = Fold(a);
    b = Fold(b);
  }
  std::uint64_t shape = static_cast<std::uint64_t>(extents.size());
  for (std::int64_t e : extents) shape = base::Mix64(shape + static_cast<std::uint64_t>(e));
  return {base::Mix64(Finish(a) ^ base::Mix64(shape)), base::Mix64(Finish(b) + shape)};
}

Fingerprint CombineOutputs(std::span<const Fingerprint> outputs) {
  if (outputs.size() == 1) return outputs[0];
  Fingerprint sum;
  for (const Fingerprint& f : outputs) {
    sum.hi += base::Mix64(f.hi ^ 0x6f75747075747321ull);
    sum.lo += base::Mix64(f.lo ^ f.hi);
  }
  return {base::Mix64(sum.hi + outputs.size()), base::Mix64(sum.lo + outputs.size())};
}

Fingerprint Chain(const Fingerprint& so_far, const Fingerprint& next) {
  return {base::Mix64(so_far.hi) + next.hi, base::Mix64(so_far.lo) + next.lo};
}

}  // namespace tenon::worker
