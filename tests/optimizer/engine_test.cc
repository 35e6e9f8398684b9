// The fast engine against the definitions: every operator of the list, many small shapes.
#include "optimizer/eval/engine.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/eval/eval.h"
#include "optimizer/eval/compare.h"
#include "tests/support/random_operator.h"

namespace tenon::optimizer {
namespace {

Values Random(const graph::Extents& extents, std::uint64_t seed) {
  return {extents, RandomNumbers(seed, graph::ElementCount(extents))};
}

void ExpectSame(const ops::Operator& op, const std::vector<Values>& values,
                const graph::Extents& out, const std::string& what) {
  std::vector<const Values*> operands;
  for (const Values& v : values) operands.push_back(&v);
  const auto fast = Apply(op, operands, out);
  const auto slow = eval::Apply(op, operands);
  ASSERT_TRUE(fast.ok() && slow.ok()) << what;
  ASSERT_EQ(fast->extents, slow->extents) << what;
  ASSERT_EQ(fast->data.size(), slow->data.size()) << what;
  EXPECT_LT(RelativeError(*slow, *fast), 1e-12) << what;
}

TEST(EngineTest, AgreesWithTheDefinitionOfEveryOperator) {
  std::uint64_t seed = 1;
  for (const ops::Operator& listed : ops::AllOperators()) {
    if (ops::IsOpaque(listed)) continue;
    const auto samples = test::Samples(listed, 60);
    EXPECT_EQ(int(samples.size()), 60) << ops::NameOf(listed);
    for (const test::Sample& s : samples) {
      std::vector<Values> operands;
      for (const graph::Extents& e : s.operands) operands.push_back(Random(e, ++seed));
      if (std::holds_alternative<ops::BatchNormalization>(s.op)) {
        for (double& v : operands[4].data) v = std::fabs(v);  // A variance.
      }
      if (std::holds_alternative<ops::Sqrt>(s.op)) {
        for (double& v : operands[0].data) v = std::fabs(v);
      }
      ExpectSame(s.op, operands, s.output, s.Text());
    }
  }
}

// Larger than the samples: several blocks of columns, groups, strides that leave rows unused.
TEST(EngineTest, ConvolutionsOfManyForms) {
  std::uint64_t seed = 1000;
  int tried = 0;
  for (std::int64_t group : {1, 2, 6}) {
    for (std::int64_t stride : {1, 2, 3}) {
      for (std::int64_t pad : {0, 1, 2}) {
        for (std::int64_t kernel : {1, 3}) {
          for (std::int64_t dilation : {1, 2}) {
            const ops::Conv op{.strides = {stride, 1},
                               .pads = {pad, 0, 1, pad},
                               .dilations = {dilation, 1},
                               .group = group,
                               .activation = ops::Activation::kRelu};
            std::vector<Values> in{Random({2, 6, 11, 9}, ++seed),
                                   Random({12, 6 / group, kernel, kernel}, ++seed),
                                   Random({12}, ++seed)};
            base::Symbols none;
            const std::vector<graph::Shape> shapes{graph::ToShape(in[0].extents),
                                                   graph::ToShape(in[1].extents),
                                                   graph::ToShape(in[2].extents)};
            const auto inferred = graph::InferShape(op, shapes, none);
            ASSERT_TRUE(inferred.ok()) << inferred.status();
            ExpectSame(op, in, graph::Concrete(inferred->shape), "conv");
            ++tried;
          }
        }
      }
    }
  }
  EXPECT_EQ(tried, 108);
}

TEST(EngineTest, ColumnsInSeveralBlocksGiveTheSameConvolution) {
  const Values x = Random({1, 64, 40, 40}, 5), w = Random({3, 64, 3, 3}, 6);
  ExpectSame(ops::Conv{.pads = {1, 1, 1, 1}}, {x, w}, {1, 3, 40, 40}, "conv");
}

// Infinities, NaN, zeros of both signs and what is next to them, in all pairs.
TEST(EngineTest, SpecialNumbersGoWhereTheDefinitionSendsThem) {
  const double special[] = {INFINITY, -INFINITY, NAN, 0.0, -0.0, 1, -1, 5e-324, -5e-324, 1e308};
  Values x{{100}, {}}, y{{100}, {}};
  for (const double a : special) {
    for (const double b : special) {
      x.data.push_back(a);
      y.data.push_back(b);
    }
  }
  const Values low{{}, {-2}}, high{{}, {3}};
  for (const ops::Operator& op : {ops::Operator(ops::Max{}), ops::Operator(ops::Min{}),
                                  ops::Operator(ops::Div{}), ops::Operator(ops::Add{})}) {
    ExpectSame(op, {x, y}, {100}, std::string(ops::NameOf(op)));
  }
  for (const ops::Operator& op :
       {ops::Operator(ops::LeakyRelu{}), ops::Operator(ops::Relu{}), ops::Operator(ops::Sqrt{}),
        ops::Operator(ops::Erf{}), ops::Operator(ops::Silu{}), ops::Operator(ops::Gelu{}),
        ops::Operator(ops::Reciprocal{}), ops::Operator(ops::Exp{})}) {
    ExpectSame(op, {x}, {100}, std::string(ops::NameOf(op)));
  }
  ExpectSame(ops::Clip{}, {x, low, high}, {100}, "Clip");
  // Rows with and without a NaN.
  x.extents = {10, 10};
  ExpectSame(ops::ReduceMax{.axis = 0}, {x}, {1, 10}, "ReduceMax");
  ExpectSame(ops::ReduceMax{.axis = 1}, {x}, {10, 1}, "ReduceMax");
}

TEST(EngineTest, DerivedOperatorsHaveTheValuesOfTables) {
  const auto at = [](const ops::Operator& op, double v) {
    const Values x{{1}, {v}};
    const Values* in[] = {&x};
    const auto y = Apply(op, in, {1});
    EXPECT_TRUE(y.ok());
    return y.ok() ? y->data[0] : NAN;
  };
  EXPECT_NEAR(at(ops::Gelu{}, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at(ops::Gelu{}, -2), -0.04550026389635842, 1e-15);
  EXPECT_NEAR(at(ops::Gelu{.approximate = 1}, 1), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(at(ops::Silu{}, 1), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(at(ops::Erf{}, 0.5), 0.5204998778130465, 1e-15);
  EXPECT_NEAR(at(ops::LeakyRelu{.alpha = 0.2}, -3), -0.6, 1e-15);
  const Values x{{1, 4}, {1, 2, 3, 6}}, one{{1}, {1}};
  const Values* in[] = {&x, &one};
  const auto layer = Apply(ops::LayerNormalization{.epsilon = 0.5}, in, {1, 4});
  ASSERT_TRUE(layer.ok());
  EXPECT_NEAR(layer->data[3], 3 / std::sqrt(3.5 + 0.5), 1e-15);  // Mean 3, variance 3.5.
  const auto rms = Apply(ops::RMSNormalization{.epsilon = 0.5}, in, {1, 4});
  ASSERT_TRUE(rms.ok());
  EXPECT_NEAR(rms->data[0], 1 / std::sqrt(12.5 + 0.5), 1e-15);
}

TEST(EngineTest, SoftmaxDoesNotOverflow) {
  const Values x{{2}, {1000, 999}};
  const Values* in[] = {&x};
  const auto y = Apply(ops::Softmax{.axis = 0}, in, {2});
  ASSERT_TRUE(y.ok());
  EXPECT_NEAR(y->data[0], 1 / (1 + std::exp(-1.0)), 1e-12);
}

TEST(RelativeErrorTest, SmallElementsAreMeasuredByTheScaleOfTheOthers) {
  const Values a{{4}, {1, -1, 1, 0}}, b{{4}, {1, -1, 1, 1e-6}};
  EXPECT_NEAR(RelativeError(a, b), 1e-6 / std::sqrt(0.75), 1e-9);
  EXPECT_EQ(RelativeError(a, a), 0);
}

TEST(RelativeErrorTest, InfinitiesAndNaNMustBeAtTheSamePlaces) {
  const double inf = INFINITY, nan = NAN;
  const Values a{{3}, {inf, nan, 1}};
  EXPECT_EQ(RelativeError(a, a), 0);
  for (const Values& b : {Values{{3}, {-inf, nan, 1}}, Values{{3}, {inf, 0, 1}},
                          Values{{3}, {inf, nan, nan}}, Values{{3}, {1e300, nan, 1}}}) {
    EXPECT_EQ(RelativeError(a, b), inf);
  }
}

}  // namespace
}  // namespace tenon::optimizer
