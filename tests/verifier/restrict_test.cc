// Restrict: for every operator that it follows, every interval of every axis has the values that it
// has in the whole output.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/rules/text.h"
#include "verifier/partial/restrict.h"
#include "verifier/partial/sample.h"

namespace tenon::partial {
namespace {

rules::Rule Program(const std::string& inputs, const std::string& term) {
  auto rule =
      rules::ParseRule("rule r\ngiven " + inputs + "\nsource " + term + "\ntarget " + term + "\n");
  EXPECT_TRUE(rule.ok()) << base::Message(rule.status());
  return rule.ok() ? *std::move(rule) : rules::Rule{};
}

// How many intervals could be followed; all of them are compared.
int Followed(const std::string& inputs, const std::string& term) {
  const rules::Rule program = Program(inputs, term);
  const auto sizes = Sizes::Of(program);
  EXPECT_TRUE(sizes.ok());
  const graph::Extents extents = graph::Concrete(program.graph.shape(program.source[0]));
  int followed = 0;
  for (int axis = 0; axis < extents.size(); ++axis) {
    for (std::int64_t begin = 0; begin < extents[axis]; ++begin) {
      for (std::int64_t end = begin + 1; end <= extents[axis]; ++end) {
        rules::Rule rule = program;
        const auto part = Restrict(rule.graph, **sizes, rule.source[0], axis, {begin, end});
        if (!part.ok()) {
          EXPECT_EQ(part.status().code(), absl::StatusCode::kFailedPrecondition);
          continue;
        }
        const auto slice =
            rule.graph.Add(ops::Slice{.axis = axis, .start = begin, .end = end}, {rule.source[0]});
        EXPECT_TRUE(slice.ok());
        rule.source = {*slice};
        rule.target = {*part};
        EXPECT_EQ(rule.graph.shape(*slice), rule.graph.shape(*part));
        const auto sample = SampleAt(rule, {}, 3);
        EXPECT_TRUE(sample.ok()) << base::Message(sample.status());
        if (!sample.ok()) continue;
        EXPECT_EQ(std::count(sample->differs.begin(), sample->differs.end(), true), 0)
            << term << ": axis " << axis << " [" << begin << ", " << end << ")";
        ++followed;
      }
    }
  }
  return followed;
}

// An axis of extent n has n (n + 1) / 2 intervals.
TEST(RestrictTest, OperatorsThatMoveElements) {
  EXPECT_EQ(Followed("a[2,3,4]", "Transpose(a, perm=[2,0,1])"), 10 + 3 + 6);
  EXPECT_EQ(Followed("a[2,5] b[2,2] c[2,1]", "Concat(a, b, c, axis=1)"), 3 + 36);
  EXPECT_EQ(Followed("a[4,5]", "Slice(a, axis=1, start=1, end=4)"), 10 + 6);
  EXPECT_EQ(Followed("a[4,6]", "Split(a, axis=1, parts=2, index=1)"), 10 + 6);
  // Intervals of zeros only, and the whole: [0, 1) and [4, 5), [4, 6), [5, 6) cannot be followed.
  EXPECT_EQ(Followed("a[2,3]", "Pad(a, begins=[0,1], ends=[0,2])"), 3 + 21 - 4);
}

TEST(RestrictTest, PointwiseOperatorsBroadcast) {
  EXPECT_EQ(Followed("a[2,3,4] b[3,1]", "Mul(Relu(a), b)"), 3 + 6 + 10);
  EXPECT_EQ(Followed("a[2,1] b[2,3]", "Add(a, b)"), 3 + 6);
}

TEST(RestrictTest, ProductsAndSums) {
  EXPECT_EQ(Followed("a[2,3,4] b[4,5]", "MatMul(a, b)"), 3 + 6 + 15);
  EXPECT_EQ(Followed("a[1,3,4] b[2,4,3]", "MatMul(a, b)"), 3 + 6 + 6);
  // Along the axis of the sum only the whole, which is one element.
  EXPECT_EQ(Followed("a[3,4]", "ReduceSum(a, axis=1)"), 6 + 1);
  EXPECT_EQ(Followed("a[3,2]", "Softmax(a, axis=1)"), 6 + 1);
}

TEST(RestrictTest, WindowsOfAllKinds) {
  const std::string image = "x[2,2,5,6] k[4,2,3,3]";
  const int all = 3 + 10 + 15 + 21;
  EXPECT_EQ(Followed(image, "Conv(x, k, pads=[1,1,1,1])"), all);
  EXPECT_EQ(Followed(image, "Conv(x, k, pads=[2,2,2,2], dilations=[2,2])"), all);
  EXPECT_EQ(Followed(image,
                     "Conv(Conv(x, k, pads=[1,1,1,1]), Transpose(Pad(k, begins=[0,0,0,0], "
                     "ends=[0,2,0,0]), perm=[0,1,3,2]), pads=[1,1,1,1])"),
            all);
  EXPECT_EQ(Followed(image, "Conv(x, k, strides=[2,2], pads=[1,1,1,1])"), 3 + 10 + 6 + 6);
  EXPECT_EQ(Followed("x[2,4,4,3] k[4,2,3,1]", "Conv(x, k, pads=[1,0,1,0], group=2)"),
            3 + 1 + 10 + 6);
  EXPECT_EQ(Followed("x[2,2,4,4] k[3,2,1,3] b[3] r[2,3,4,4]",
                     "Conv(x, k, b, r, pads=[0,1,0,1], residual=1, activation=relu)"),
            3 + 6 + 10 + 10);
  EXPECT_EQ(Followed("x[2,2,5,6]", "MaxPool(x, kernel_shape=[3,2], pads=[1,0,1,1])"),
            3 + 3 + 15 + 21);
  EXPECT_EQ(Followed("x[2,2,5,5]",
                     "AveragePool(x, kernel_shape=[3,3], strides=[2,1], "
                     "pads=[1,1,1,1])"),
            3 + 3 + 6 + 15);
}

TEST(RestrictTest, AReshapeIsNamed) {
  rules::Rule rule = Program("a[2,6]", "Reshape(a, shape=[3,4])");
  const auto sizes = Sizes::Of(rule);
  ASSERT_TRUE(sizes.ok());
  const auto part = Restrict(rule.graph, **sizes, rule.source[0], 1, {0, 2});
  EXPECT_EQ(base::Message(part.status()),
            "an interval of axis 1 cannot be followed through Reshape");
}

}  // namespace
}  // namespace tenon::partial
