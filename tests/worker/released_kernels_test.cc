// Every kernel of every instruction set that this machine has, against the definitions of core/ops.
#include "worker/released/kernels.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/fingerprint.h"
#include "core/eval/eval.h"

namespace tenon::worker::released {
namespace {

using Numbers = std::vector<std::uint32_t>;

// Small numbers of both signs, so that doubles are exact.
Numbers Random(base::SplitMix64& random, std::size_t count) {
  Numbers out(count);
  for (std::uint32_t& x : out) x = static_cast<std::uint32_t>(random.Below(2001)) - 1000;
  return out;
}

eval::Tensor<double> ToTensor(const Numbers& numbers, const graph::Extents& extents) {
  eval::Tensor<double> t{extents, {}};
  for (const std::uint32_t x : numbers) t.data.push_back(static_cast<std::int32_t>(x));
  return t;
}

std::vector<double> Apply(const ops::Operator& op, const std::vector<eval::Tensor<double>>& in) {
  std::vector<const eval::Tensor<double>*> pointers;
  for (const auto& t : in) pointers.push_back(&t);
  const auto out = eval::Apply(op, pointers);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? out->data : std::vector<double>{};
}

std::vector<double> ToDoubles(const Numbers& numbers) {
  std::vector<double> out;
  for (const std::uint32_t x : numbers) out.push_back(static_cast<std::int32_t>(x));
  return out;
}

std::string NameOf(const ConvShape& s) {
  return testing::PrintToString(std::vector<std::uint32_t>{s.batch, s.channels, s.height, s.width,
                                                           s.filters, s.kernel_height,
                                                           s.kernel_width, s.groups});
}

// Planes that fit a block of lanes and such that do not; groups; filters that are no multiple of
// how many are made at a time.
std::vector<ConvShape> ConvShapes() {
  std::vector<ConvShape> out;
  for (const std::uint32_t height : {1u, 3u, 5u, 6u}) {
    for (const std::uint32_t width : {1u, 3u, 5u}) {
      for (const std::uint32_t kernel : {0u, 1u, 2u, 3u}) {
        for (const std::uint32_t groups : {1u, 2u}) {
          for (const std::uint32_t filters : {1u, 3u, 4u, 9u}) {
            out.push_back({2, 2 * groups, height, width, filters * groups, kernel / 2 * 2 + 1,
                           kernel % 2 * 2 + 1, groups});
          }
        }
      }
    }
  }
  return out;
}

TEST(ReleasedKernelsTest, ConvolutionsAreThoseOfTheDefinition) {
  base::SplitMix64 random(1);
  for (const ConvShape& s : ConvShapes()) {
    const std::uint32_t channels = s.channels / s.groups;
    const Numbers image = Random(random, s.batch * s.channels * s.height * s.width);
    const Numbers kernel = Random(random, s.filters * channels * s.kernel_height * s.kernel_width);
    ops::Conv conv;
    conv.group = std::int64_t{s.groups};
    const std::int64_t top = s.kernel_height / 2, left = s.kernel_width / 2;
    conv.pads = {top, left, top, left};
    const auto want =
        Apply(conv, {ToTensor(image, {s.batch, s.channels, s.height, s.width}),
                     ToTensor(kernel, {s.filters, channels, s.kernel_height, s.kernel_width})});
    for (const Kernels* kernels : UsableKernels()) {
      Numbers out(s.batch * s.filters * s.height * s.width);
      kernels->conv(s, image.data(), kernel.data(), out.data());
      EXPECT_EQ(ToDoubles(out), want) << kernels->name << " " << NameOf(s);
    }
  }
}

TEST(ReleasedKernelsTest, ConvolutionsWrapAround) {
  const ConvShape s{1, 1, 1, 1, 1, 1, 1, 1};
  for (const Kernels* kernels : UsableKernels()) {
    const std::uint32_t image = 0x80000001, kernel = 6;
    std::uint32_t out = 0;
    kernels->conv(s, &image, &kernel, &out);
    EXPECT_EQ(out, 6u) << kernels->name;
  }
}

// An average pool that counts the padding is the sum over nine; a maximum with 0 is that of the
// positive parts.
TEST(ReleasedKernelsTest, PoolsAreSumsAndPositiveMaxima) {
  base::SplitMix64 random(2);
  for (const std::uint32_t height : {1u, 3u, 5u, 7u}) {
    for (const std::uint32_t width : {1u, 2u, 3u, 5u, 31u, 40u}) {
      const Planes planes{3, height, width};
      const Numbers in = Random(random, 3 * height * width);
      const eval::Tensor<double> tensor = ToTensor(in, {1, 3, height, width});
      ops::AveragePool average;
      average.kernel_shape = {3, 3};
      average.pads = {1, 1, 1, 1};
      average.count_include_pad = 1;
      ops::MaxPool maximum;
      maximum.kernel_shape = {3, 3};
      maximum.pads = {1, 1, 1, 1};
      std::vector<double> sums = Apply(average, {tensor});
      for (double& x : sums) x = std::round(x * 9);
      eval::Tensor<double> positive = tensor;
      positive.data = Apply(ops::Relu{}, {tensor});
      const std::vector<double> maxima = Apply(maximum, {positive});
      for (const Kernels* kernels : UsableKernels()) {
        Numbers out(in.size());
        kernels->sum_pool(planes, in.data(), out.data());
        EXPECT_EQ(ToDoubles(out), sums) << kernels->name << " " << height << "x" << width;
        kernels->max_pool(planes, in.data(), out.data());
        EXPECT_EQ(ToDoubles(out), maxima) << kernels->name << " " << height << "x" << width;
      }
    }
  }
}

TEST(ReleasedKernelsTest, AllInstructionSetsHaveTheSameSums) {
  base::SplitMix64 random(3);
  for (std::uint32_t count : {0u, 1u, 7u, 8u, 33u, 512u}) {
    Numbers data(count), first(count), second(count);
    std::uint64_t want_first = 0, want_second = 0;
    for (std::uint32_t k = 0; k < count; ++k) {
      data[k] = static_cast<std::uint32_t>(random.Next());
      first[k] = static_cast<std::uint32_t>(random.Next());
      second[k] = static_cast<std::uint32_t>(random.Next());
      want_first += std::uint64_t{data[k]} * first[k];
      want_second += std::uint64_t{data[k]} * second[k];
    }
    for (const Kernels* kernels : UsableKernels()) {
      const auto sums = kernels->sums(data.data(), count, {first.data(), second.data()});
      EXPECT_EQ(sums[0], want_first) << kernels->name;
      EXPECT_EQ(sums[1], want_second) << kernels->name;
    }
  }
}

}  // namespace
}  // namespace tenon::worker::released
