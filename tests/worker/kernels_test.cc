// Every plan against the definition.
#include "worker/kernels.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/base/fingerprint.h"
#include "core/eval/eval.h"
#include "tests/support/random_operator.h"

namespace tenon::worker {
namespace {

struct Held {
  std::vector<std::uint64_t> residue;
  std::vector<double> approx;
  explicit Held(std::int64_t elements)
      : residue(std::size_t(elements) * kLanes), approx(std::size_t(elements) * kLanes) {}
  MutableValue view() { return {residue.data(), approx.data()}; }
};

// Numbers of all kinds: zeros, negatives, fractions.
eval::Exact Number(base::SplitMix64& random) {
  const auto n = static_cast<std::int64_t>(random.Below(2001)) - 1000;
  return random.Below(8) == 0 ? eval::Exact{} : eval::FromFraction(n, 64);
}

// Whether the plan agrees with the definition at kLanes random samples; nothing where the
// definition divides by 0.
::testing::AssertionResult Agrees(const test::Sample& sample, std::uint64_t seed, bool& generic) {
  base::SplitMix64 random(seed);
  std::vector<Held> operands;
  std::vector<std::vector<eval::Tensor<eval::Exact>>> lanes(kLanes);
  for (const graph::Extents& extents : sample.operands) {
    const auto count = graph::ElementCount(extents);
    operands.emplace_back(count);
    for (std::size_t l = 0; l < kLanes; ++l) {
      eval::Tensor<eval::Exact> t{extents, {}};
      for (std::size_t e = 0; e < std::size_t(count); ++e) {
        t.data.push_back(Number(random));
        operands.back().residue[e * kLanes + l] = t.data[e].residue;
        operands.back().approx[e * kLanes + l] = t.data[e].approx;
      }
      lanes[l].push_back(std::move(t));
    }
  }
  const auto plan = Plan::For(sample.op, sample.operands, sample.output);
  if (!plan.ok()) return ::testing::AssertionFailure() << plan.status();
  generic = plan->generic();
  Held out(graph::ElementCount(sample.output));
  std::vector<Value> values;
  for (Held& h : operands) values.push_back(h.view());
  const Status status = plan->Run(values, out.view());
  for (std::size_t l = 0; l < kLanes; ++l) {
    std::vector<const eval::Tensor<eval::Exact>*> pointers;
    for (const auto& t : lanes[l]) pointers.push_back(&t);
    const auto want = eval::Apply(sample.op, pointers, 1);
    if (!want.ok()) {
      return status.ok() ? ::testing::AssertionFailure() << "no error: " << want.status()
                         : ::testing::AssertionSuccess();
    }
    if (!status.ok()) continue;     // Another lane has the error.
    if (plan->generic()) continue;  // It is the definition, with a key of its own.
    for (std::size_t e = 0; e < want->data.size(); ++e) {
      const double approx = out.approx[e * kLanes + l];
      if (out.residue[e * kLanes + l] != want->data[e].residue ||
          std::fabs(approx - want->data[e].approx) > 1e-9 * (1 + std::fabs(approx))) {
        return ::testing::AssertionFailure() << "element " << e << " of lane " << l;
      }
    }
  }
  return ::testing::AssertionSuccess();
}

TEST(KernelsTest, EveryOperatorAgreesWithItsDefinition) {
  int fast = 0;
  for (const ops::Operator& op : ops::AllOperators()) {
    if (ops::IsOpaque(op)) continue;
    std::uint64_t seed = 0;
    const std::vector<test::Sample> samples = test::Samples(op, 60);
    for (const test::Sample& sample : samples) {
      bool generic = false;
      EXPECT_TRUE(Agrees(sample, ++seed, generic)) << sample.Text() << " seed " << seed;
      fast += generic ? 0 : 1;
    }
    EXPECT_GE(samples.size(), 10u) << ops::NameOf(op);
  }
  EXPECT_GT(fast, 400);
}

// Shapes that random tries seldom meet.
TEST(KernelsTest, ConvolutionsOfAllKindsAgree) {
  const auto conv = [](std::vector<std::int64_t> numbers, ops::Activation activation,
                       std::int64_t residual) {
    ops::Conv c;
    c.strides = {ops::Size(numbers[0]), ops::Size(numbers[1])};
    c.pads = {ops::Size(numbers[2]), ops::Size(numbers[3]), ops::Size(numbers[4]),
              ops::Size(numbers[5])};
    c.dilations = {ops::Size(numbers[6]), ops::Size(numbers[7])};
    c.group = ops::Size(numbers[8]);
    c.activation = activation;
    c.residual = residual;
    return c;
  };
  const graph::Extents x{2, 4, 5, 6}, w{6, 2, 3, 2}, bias{6};
  int checked = 0;
  for (const auto activation : {ops::Activation::kNone, ops::Activation::kRelu}) {
    for (const std::int64_t residual : {0, 1}) {
      for (const bool biased : {false, true}) {
        for (const auto& numbers :
             std::vector<std::vector<std::int64_t>>{{1, 1, 1, 1, 1, 1, 1, 1, 2},
                                                    {2, 1, 0, 1, 2, 0, 1, 2, 2},
                                                    {1, 2, 2, 0, 0, 3, 2, 1, 2}}) {
          test::Sample sample{conv(numbers, activation, 0), {x, w}, {}};
          if (biased) sample.operands.push_back(bias);
          base::Symbols none;
          std::vector<graph::Shape> shapes;
          for (const auto& e : sample.operands) shapes.push_back(graph::ToShape(e));
          const auto inferred = graph::InferShape(sample.op, shapes, none);
          ASSERT_TRUE(inferred.ok()) << inferred.status();
          sample.output = graph::Concrete(inferred->shape);
          if (residual == 1) {
            sample.op = conv(numbers, activation, 1);
            sample.operands.push_back(sample.output);
          }
          bool generic = true;
          EXPECT_TRUE(Agrees(sample, std::uint64_t(++checked), generic)) << sample.Text();
          EXPECT_FALSE(generic);
        }
      }
    }
  }
}

TEST(KernelsTest, PoolsOfAllKindsAgree) {
  int checked = 0;
  for (const auto& numbers : std::vector<std::vector<std::int64_t>>{
           {3, 3, 1, 1, 1, 1, 1, 1}, {2, 3, 2, 1, 0, 2, 1, 0}, {2, 2, 1, 2, 0, 0, 0, 0}}) {
    const auto pool = [&](auto p) -> ops::Operator {
      p.kernel_shape = {ops::Size(numbers[0]), ops::Size(numbers[1])};
      p.strides = {ops::Size(numbers[2]), ops::Size(numbers[3])};
      p.pads = {ops::Size(numbers[4]), ops::Size(numbers[5]), ops::Size(numbers[6]),
                ops::Size(numbers[7])};
      return p;
    };
    ops::AveragePool with_padding;
    with_padding.count_include_pad = 1;
    const bool padded = numbers[4] + numbers[5] + numbers[6] + numbers[7] > 0;
    for (const auto& [op, fast] :
         std::vector<std::pair<ops::Operator, bool>>{{pool(ops::MaxPool()), true},
                                                     {pool(with_padding), true},
                                                     {pool(ops::AveragePool()), !padded}}) {
      test::Sample sample{op, {{2, 3, 5, 6}}, {}};
      const std::vector<graph::Shape> shapes{graph::ToShape(sample.operands[0])};
      base::Symbols none;
      const auto inferred = graph::InferShape(op, shapes, none);
      ASSERT_TRUE(inferred.ok()) << inferred.status();
      sample.output = graph::Concrete(inferred->shape);
      bool generic = fast;
      EXPECT_TRUE(Agrees(sample, std::uint64_t(++checked), generic)) << sample.Text();
      EXPECT_EQ(generic, !fast) << sample.Text();
    }
  }
}

TEST(KernelsTest, LongSumsAreReducedInTime) {
  // 200 products of numbers just below the prime: 32 of them fit 128 bits.
  const graph::Extents a{1, 200}, b{200, 1}, out{1, 1};
  const std::vector<graph::Extents> operands{a, b};
  const auto plan = Plan::For(ops::MatMul{}, operands, out);
  ASSERT_TRUE(plan.ok());
  Held x(200), y(200), z(1);
  std::fill(x.residue.begin(), x.residue.end(), eval::kPrime - 1);
  std::fill(y.residue.begin(), y.residue.end(), eval::kPrime - 1);
  const std::vector<Value> values{x.view(), y.view()};
  ASSERT_TRUE(plan->Run(values, z.view()).ok());
  EXPECT_EQ(z.residue[0], 200u);  // (-1) * (-1), 200 times.
}

TEST(KernelsTest, ReluOfAResidueOfZeroIsZeroWhateverTheDouble) {
  const std::vector<graph::Extents> operands{{1}};
  const auto plan = Plan::For(ops::Relu{}, operands, {1});
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->sign_free());
  Held x(1), z(1);
  x.approx = {1e-9, 1e-9, -1.0, 1.0};
  x.residue = {0, 5, 5, 5};
  const std::vector<Value> values{x.view()};
  ASSERT_TRUE(plan->Run(values, z.view()).ok());
  EXPECT_EQ(z.residue, (std::vector<std::uint64_t>{0, 5, 0, 5}));
  EXPECT_EQ(z.approx[0], 0);
}

}  // namespace
}  // namespace tenon::worker
