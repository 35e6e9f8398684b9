// Pairs are numbered: class by class, in a class by j, then i. The numbers are cut into `size_max`
// pieces of equal length (up to one), and one number is drawn from each: that spreads the sample
// over the classes by their pairs, needs no memory, and comes out in order.
#include "coordinator/reduce/pair_sample.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/rules/instance.h"

namespace tenon::reduce {
namespace {

// The drawn numbers, ascending.
class Sample {
 public:
  Sample(std::uint64_t pairs, const PairSampleOptions& options)
      : pairs_(pairs), size_(options.size_max), dice_(options.seed) {
    Draw();
  }

  // Past all numbers when there are no more.
  std::uint64_t current() const { return current_; }
  void Draw() {
    if (piece_ == size_) {
      current_ = UINT64_MAX;
      return;
    }
    const std::uint64_t low = StartOf(piece_), high = StartOf(++piece_);
    current_ = low + std::uint64_t(dice_.Between(0, std::int64_t(high - low) - 1));
  }

 private:
  std::uint64_t StartOf(std::uint64_t piece) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide(piece) * pairs_ / size_);
  }

  const std::uint64_t pairs_, size_;
  rules::Dice dice_;
  std::uint64_t piece_ = 0;
  std::uint64_t current_ = 0;
};

}  // namespace

std::uint64_t VisitPairs(
    std::span<const std::size_t> class_sizes, const PairSampleOptions& options,
    const std::function<bool(std::size_t c, std::size_t i, std::size_t j)>& visit) {
  CHECK(options.size_max >= 1);
  std::uint64_t pairs = 0;
  for (std::size_t n : class_sizes) pairs += n < 2 ? 0 : std::uint64_t{n} * (n - 1) / 2;
  // With as many pieces as pairs every pair is drawn.
  PairSampleOptions drawn = options;
  drawn.size_max = std::min(pairs, options.size_max);
  Sample sample(pairs, drawn);
  std::uint64_t calls = 0, row = 0;  // The number of the pair (0, j).
  for (std::size_t c = 0; c < class_sizes.size(); ++c) {
    for (std::size_t j = 1; j < class_sizes[c]; ++j) {
      ++calls;
      if (!visit(c, 0, j)) return calls;
      for (; sample.current() < row + j; sample.Draw()) {
        const std::size_t i = sample.current() - row;
        if (i == 0) continue;
        ++calls;
        if (!visit(c, i, j)) return calls;
      }
      row += j;
    }
  }
  return calls;
}

}  // namespace tenon::reduce
