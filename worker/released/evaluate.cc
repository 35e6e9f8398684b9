#include "worker/released/evaluate.h"

#include <algorithm>
#include <cstring>

#include "core/base/check.h"
#include "core/base/fingerprint.h"

namespace tenon::worker::released {
namespace {

std::uint32_t Relu(std::uint32_t x) { return x * (x + 1) + 1; }

// Calls move(inside, whole, count) for each contiguous stretch of a piece of `whole` that has its
// extents but for `axis` and starts there at `offset`. Neither is a matrix by columns.
template <class Move>
void ForEachStretch(const Type& piece, const Type& whole, std::size_t axis, std::size_t offset,
                    Move&& move) {
  std::size_t outer = 1, inner = 1;
  for (std::size_t a = 0; a < piece.rank; ++a) {
    (a < axis ? outer : inner) *= a == axis ? 1 : piece.extents[a];
  }
  const std::size_t length = piece.extents[axis] * inner;
  for (std::size_t k = 0; k < outer; ++k) {
    move(k * length, (k * whole.extents[axis] + offset) * inner, length);
  }
}

// The same, element by element, for matrices of any storage.
template <class Move>
void ForEachEntry(const Type& piece, const Type& whole, std::size_t axis, std::size_t offset,
                  Move&& move) {
  const std::size_t down = axis == 0 ? offset : 0, right = axis == 1 ? offset : 0;
  for (std::size_t i = 0; i < piece.extents[0]; ++i) {
    for (std::size_t j = 0; j < piece.extents[1]; ++j) {
      move(i * piece.row_stride() + j * piece.column_stride(),
           (i + down) * whole.row_stride() + (j + right) * whole.column_stride(), 1);
    }
  }
}

template <class Move>
void ForEachPart(const Type& piece, const Type& whole, std::size_t axis, std::size_t offset,
                 Move&& move) {
  if (piece.rank == 2 && (piece.by_columns || whole.by_columns)) {
    ForEachEntry(piece, whole, axis, offset, move);
  } else {
    ForEachStretch(piece, whole, axis, offset, move);
  }
}

}  // namespace

Evaluator::Evaluator(const Types& types, std::int64_t elements_max, std::uint64_t seed)
    : types_(types), kernels_(BestKernels()) {
  const auto elements = static_cast<std::size_t>(elements_max);
  for (auto& r : results_) r.resize(elements);
  base::SplitMix64 random(base::Mix64(seed ^ 0x6b657973));
  for (std::size_t k = 0; k < elements; ++k) {
    first_keys_.push_back(static_cast<std::uint32_t>(random.Next()));
    second_keys_.push_back(static_cast<std::uint32_t>(random.Next()));
  }
}

std::vector<std::uint32_t> Evaluator::InputValues(std::uint64_t seed, std::size_t before,
                                                  std::size_t elements) {
  std::uint64_t state = 77 + base::Mix64(seed);
  const auto next = [&] {
    constexpr std::uint64_t kOdd = 0xd6e8feb86659fd93ull;
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::uint64_t x = state;
    for (int k = 0; k < 2; ++k) x = (x ^ x >> 32) * kOdd;
    return x ^ x >> 32;
  };
  for (std::size_t k = 0; k < before; ++k) next();
  std::vector<std::uint32_t> out(elements);
  for (std::uint32_t& x : out) x = static_cast<std::uint32_t>(next() % 0x7fffffff) - 0x3fffffff;
  return out;
}

// Each of the two sums is equal for two different values with probability 2^-32 over its keys.
std::uint64_t Evaluator::Fingerprint(TypeId type, const std::uint32_t* data) const {
  const auto sums =
      kernels_.sums(data, types_.at(type).elements(), {first_keys_.data(), second_keys_.data()});
  const std::uint64_t f =
      base::Mix64(base::Mix64(sums[0] ^ types_.hash(type)) + base::Mix64(sums[1]));
  return f == 0 ? 1 : f;
}

void Evaluator::Run(const Step& step, std::span<const Tensor> operands) {
  const Instance& instance = types_.instances()[step.instance];
  std::uint32_t* out = results_[0].data();
  const std::uint32_t n = types_.at(step.results[0]).elements();
  const std::uint32_t* a = operands.empty() ? nullptr : operands[0].data;
  const std::uint32_t* b = operands.size() < 2 ? nullptr : operands[1].data;
  switch (instance.kind) {
    case Kind::kAdd:
      for (std::uint32_t k = 0; k < n; ++k) out[k] = a[k] + b[k];
      return;
    case Kind::kMul:
      for (std::uint32_t k = 0; k < n; ++k) out[k] = a[k] * b[k];
      return;
    case Kind::kScalarMul:
      for (std::uint32_t k = 0; k < n; ++k) out[k] = a[k] * b[0];
      return;
    case Kind::kRelu:
      for (std::uint32_t k = 0; k < n; ++k) out[k] = Relu(a[k]);
      return;
    case Kind::kTranspose:
      std::copy(a, a + n, out);
      return;
    case Kind::kShuffle:
      RunShuffle(step, operands[0]);
      return;
    case Kind::kMatMul:
      RunMatMul(step, operands[0], operands[1]);
      return;
    case Kind::kConv: {
      const Type &image = types_.at(operands[0].type), &kernel = types_.at(operands[1].type);
      kernels_.conv({image.extents[0], image.extents[1], image.extents[2], image.extents[3],
                     kernel.extents[0], kernel.extents[2], kernel.extents[3],
                     std::uint32_t(image.extents[1] / kernel.extents[1])},
                    a, b, out);
      if (instance.relu) ApplyRelu(step.results[0]);
      return;
    }
    case Kind::kAveragePool:
    case Kind::kMaxPool: {
      const Type& t = types_.at(operands[0].type);
      const Planes planes{std::uint32_t(t.extents[0] * t.extents[1]), t.extents[2], t.extents[3]};
      (instance.kind == Kind::kMaxPool ? kernels_.max_pool : kernels_.sum_pool)(planes, a, out);
      return;
    }
    case Kind::kEnlarge:
      RunEnlarge(step, operands[0]);
      return;
    case Kind::kConstant:
      std::copy(instance.values.begin(), instance.values.end(), out);
      return;
    case Kind::kConcat:
      RunConcat(instance, step, operands[0], operands[1]);
      return;
    case Kind::kSplit:
      RunSplit(instance, step, operands[0]);
      return;
  }
}

void Evaluator::ApplyRelu(TypeId type) {
  const std::uint32_t n = types_.at(type).elements();
  std::uint32_t* out = results_[0].data();
  for (std::uint32_t k = 0; k < n; ++k) out[k] = Relu(out[k]);
}

void Evaluator::RunMatMul(const Step& step, const Tensor& a, const Tensor& b) {
  const Type &left = types_.at(a.type), &right = types_.at(b.type);
  const Type& t = types_.at(step.results[0]);
  std::uint32_t* out = results_[0].data();
  for (std::uint32_t i = 0; i < t.extents[0]; ++i) {
    for (std::uint32_t j = 0; j < t.extents[1]; ++j) {
      std::uint32_t sum = 0;
      for (std::uint32_t k = 0; k < left.extents[1]; ++k) {
        sum += a.data[i * left.row_stride() + k * left.column_stride()] *
               b.data[k * right.row_stride() + j * right.column_stride()];
      }
      *out++ = sum;
    }
  }
}

void Evaluator::RunConcat(const Instance& instance, const Step& step, const Tensor& a,
                          const Tensor& b) {
  const Type& whole = types_.at(step.results[0]);
  std::size_t offset = 0;
  for (const Tensor& part : {a, b}) {
    const Type& piece = types_.at(part.type);
    ForEachPart(piece, whole, instance.axis, offset,
                [&](std::size_t from, std::size_t to, std::size_t count) {
                  std::memcpy(results_[0].data() + to, part.data + from, count * sizeof *part.data);
                });
    offset += piece.extents[instance.axis];
  }
}

void Evaluator::RunSplit(const Instance& instance, const Step& step, const Tensor& a) {
  const Type& whole = types_.at(a.type);
  std::size_t offset = 0;
  for (std::size_t slot = 0; slot < 2; ++slot) {
    const Type& piece = types_.at(step.results[slot]);
    ForEachPart(piece, whole, instance.axis, offset,
                [&](std::size_t to, std::size_t from, std::size_t count) {
                  std::memcpy(results_[slot].data() + to, a.data + from, count * sizeof *a.data);
                });
    offset += piece.extents[instance.axis];
  }
}

void Evaluator::RunShuffle(const Step& step, const Tensor& a) {
  const Type &from = types_.at(a.type), &t = types_.at(step.results[0]);
  std::uint32_t* out = results_[0].data();
  for (std::uint32_t i = 0; i < t.extents[0]; ++i) {
    for (std::uint32_t j = 0; j < t.extents[1]; ++j) {
      *out++ = a.data[j * from.row_stride() + i * from.column_stride()];
    }
  }
}

void Evaluator::RunEnlarge(const Step& step, const Tensor& a) {
  const Type &from = types_.at(a.type), &t = types_.at(step.results[0]);
  std::uint32_t* out = results_[0].data();
  std::fill(out, out + t.elements(), 0u);
  const std::uint32_t top = (t.extents[2] - from.extents[2]) / 2u;
  const std::uint32_t left = (t.extents[3] - from.extents[3]) / 2u;
  const std::uint32_t* in = a.data;
  for (std::uint32_t c = 0; c < std::uint32_t(t.extents[0]) * t.extents[1]; ++c) {
    for (std::uint32_t y = 0; y < from.extents[2]; ++y) {
      for (std::uint32_t x = 0; x < from.extents[3]; ++x) {
        out[(c * t.extents[2] + y + top) * t.extents[3] + x + left] = *in++;
      }
    }
  }
}

}  // namespace tenon::worker::released
