// Every operator, every reading, many small shapes and attributes: the readings must agree. A new
// operator is covered by being in the list; nothing is edited here. (The prover's reading is
// compared in tests/verifier, the float engine in tests/optimizer.)
//
// Inputs are multiples of 1/4, so a result of ring operations is a multiple of 1 / (4^j * 3^k *
// 5^l) and its double tells which, which is how the residue is checked.
#include <gtest/gtest.h>

#include <cmath>

#include "core/eval/boxes.h"
#include "core/eval/eval.h"
#include "tests/support/random_operator.h"

namespace tenon {
namespace {

using test::Sample;

constexpr int kSamples = 60;

// The samples of one operator, for each that has a meaning.
template <class F>
void ForEachSample(F f) {
  for (const ops::Operator& listed : ops::AllOperators()) {
    if (ops::IsOpaque(listed)) continue;
    const std::vector<Sample> samples = test::Samples(listed, kSamples);
    EXPECT_EQ(int(samples.size()), kSamples)
        << ops::NameOf(listed) << ": too few attributes and shapes fit";
    for (const Sample& s : samples) f(s);
  }
}

// The residue of the number that a ring computation on multiples of 1/4 gave as `v`.
bool ResidueFits(const eval::Exact& x, double v) {
  for (double scale : {1.0, 3.0, 5.0, 9.0, 15.0, 45.0}) {
    const double whole = std::round(v * scale * 1048576.0);
    if (std::fabs(whole - v * scale * 1048576.0) > 1e-3) continue;
    const eval::Exact number = eval::FromDouble(whole / 1048576.0);
    const eval::Exact inverse = eval::FromFraction(1, std::int64_t(scale));
    if (eval::MulMod(number.residue, inverse.residue) == x.residue) return true;
  }
  return false;
}

// Whether the operator computes with additions, products and maxima only.
bool IsRing(const ops::Operator& op) {
  for (const ops::Attr& a : ops::AttrsOf(op)) {
    const auto* f = std::get_if<ops::Activation>(&a.value);
    if (f != nullptr && *f != ops::Activation::kNone && *f != ops::Activation::kRelu) return false;
  }
  for (std::string_view function :
       {"Sigmoid", "Tanh", "Exp", "Reciprocal", "Softmax", "BatchNormalization", "Div", "Sqrt",
        "Erf", "LeakyRelu", "Silu", "Gelu", "LayerNormalization", "RMSNormalization"}) {
    if (ops::NameOf(op) == function) return false;
  }
  return true;
}

TEST(ConformanceTest, DoublesAndExactNumbersAgree) {
  test::Draw draw(1);
  ForEachSample([&](const Sample& s) {
    // Variances, and what has a root, must be positive.
    const bool root = ops::NameOf(s.op) == "BatchNormalization" || ops::NameOf(s.op) == "Sqrt";
    const double shift = root ? 4 : 0;
    std::vector<eval::Tensor<double>> doubles;
    std::vector<eval::Tensor<eval::Exact>> exacts;
    for (const graph::Extents& e : s.operands) {
      doubles.push_back({e, {}});
      exacts.push_back({e, {}});
      for (std::int64_t n = graph::ElementCount(e); n > 0; --n) {
        double v = double(draw(-12, 12)) / 4 + shift;
        if (v == 0) v = 0.5;  // A reciprocal of 0 is an error in exact numbers.
        doubles.back().data.push_back(v);
        exacts.back().data.push_back(eval::FromDouble(v));
      }
    }
    std::vector<const eval::Tensor<double>*> in;
    std::vector<const eval::Tensor<eval::Exact>*> exact_in;
    for (std::size_t k = 0; k < doubles.size(); ++k) {
      in.push_back(&doubles[k]);
      exact_in.push_back(&exacts[k]);
    }
    const auto real = eval::Apply(s.op, in);
    const auto exact = eval::Apply(s.op, exact_in, 99);
    ASSERT_TRUE(real.ok()) << s.Text() << real.status();
    ASSERT_TRUE(exact.ok()) << s.Text() << exact.status();
    ASSERT_EQ(real->extents, s.output) << s.Text();
    ASSERT_EQ(exact->extents, s.output) << s.Text();
    for (std::size_t k = 0; k < real->data.size(); ++k) {
      EXPECT_NEAR(real->data[k], exact->data[k].approx, 1e-9) << s.Text();
      if (IsRing(s.op)) {
        EXPECT_TRUE(ResidueFits(exact->data[k], real->data[k])) << s.Text() << " " << real->data[k];
      }
    }
  });
}

TEST(ConformanceTest, WorkFitsTheNatureOfTheOperator) {
  ForEachSample([](const Sample& s) {
    const eval::Work work = eval::WorkOf(s.op, s.operands, s.output);
    double in = 0;
    for (const graph::Extents& e : s.operands) in += double(graph::ElementCount(e));
    EXPECT_EQ(work.elements_in, in);
    EXPECT_EQ(work.elements_out, double(graph::ElementCount(s.output)));
    const ops::Nature nature = ops::InfoOf(s.op).nature;
    if (nature == ops::Nature::kPointwise) {
      EXPECT_GE(work.flops, work.elements_out) << s.Text();
    }
    if (nature == ops::Nature::kMovement) {
      EXPECT_EQ(work.flops, 0) << s.Text();
    }
  });
}

TEST(ConformanceTest, WorkOfProductsAndConvolutionsIsTheTextbookCount) {
  using graph::Extents;
  const Extents a{512, 4096}, b{4096, 16}, ab{512, 16};
  EXPECT_EQ(eval::WorkOf(ops::MatMul{}, std::vector<Extents>{a, b}, ab).flops,
            2.0 * 512 * 4096 * 16);
  ops::Conv conv;
  conv.pads = {1, 1, 1, 1};
  const Extents x{32, 64, 56, 56}, w{64, 64, 3, 3};
  const eval::Work work = eval::WorkOf(conv, std::vector<Extents>{x, w}, x);
  EXPECT_NEAR(work.flops, 2.0 * 32 * 64 * 56 * 56 * 64 * 9, 0.001 * work.flops);
  EXPECT_EQ(work.elements_in, 32.0 * 64 * 56 * 56 + 64 * 64 * 9);
}

// Changing an element outside the box that is read for an output box must not change that part of
// the output.
TEST(ConformanceTest, NothingOutsideTheBoxesIsRead) {
  test::Draw draw(2);
  ForEachSample([&](const Sample& s) {
    eval::Box out;
    for (std::int64_t e : s.output) {
      out.begin.push_back(draw(0, e - 1));
      out.end.push_back(draw(out.begin[out.begin.size() - 1] + 1, e));
    }
    const auto boxes = eval::BoxesRead(s.op, s.operands, out);
    std::vector<eval::Tensor<double>> plain, changed;
    for (std::size_t k = 0; k < s.operands.size(); ++k) {
      plain.push_back({s.operands[k], {}});
      const std::int64_t count = graph::ElementCount(s.operands[k]);
      for (std::int64_t n = 0; n < count; ++n) plain[k].data.push_back(double(draw(1, 50)));
      changed.push_back(plain[k]);
      for (std::int64_t n = 0; n < count; ++n) {
        std::int64_t rest = n;
        bool inside = boxes[k].has_value();
        for (int a = s.operands[k].size() - 1; a >= 0; --a) {
          const std::int64_t i = rest % s.operands[k][a];
          rest /= s.operands[k][a];
          inside = inside && boxes[k]->begin[a] <= i && i < boxes[k]->end[a];
        }
        if (!inside) changed[k].data[std::size_t(n)] = 1e6 + double(n);
      }
    }
    std::vector<const eval::Tensor<double>*> in, in_changed;
    for (std::size_t k = 0; k < plain.size(); ++k) {
      in.push_back(&plain[k]);
      in_changed.push_back(&changed[k]);
    }
    const auto before = eval::Apply(s.op, in), after = eval::Apply(s.op, in_changed);
    ASSERT_TRUE(before.ok() && after.ok());
    for (std::int64_t n = 0; n < graph::ElementCount(s.output); ++n) {
      std::int64_t rest = n;
      bool inside = true;
      for (int a = s.output.size() - 1; a >= 0; --a) {
        const std::int64_t i = rest % s.output[a];
        rest /= s.output[a];
        inside = inside && out.begin[a] <= i && i < out.end[a];
      }
      if (inside) {
        EXPECT_EQ(before->data[std::size_t(n)], after->data[std::size_t(n)]) << s.Text();
      }
    }
  });
}

// .. and the boxes are not simply everything: for one element of an affine access they are exact.
TEST(ConformanceTest, BoxesOfOneElementAreTight) {
  const graph::Extents x{2, 3, 8, 8}, w{4, 3, 3, 3};
  ops::Conv conv;
  conv.pads = {1, 1, 1, 1};
  const auto boxes =
      eval::BoxesRead(conv, std::vector<graph::Extents>{x, w}, {{1, 2, 0, 4}, {2, 3, 1, 5}});
  EXPECT_EQ(*boxes[0], (eval::Box{{1, 0, 0, 3}, {2, 3, 2, 6}}));
  EXPECT_EQ(*boxes[1], (eval::Box{{2, 0, 0, 0}, {3, 3, 3, 3}}));
  const graph::Extents a{4, 6};
  const auto reshaped =
      eval::BoxesRead(ops::Reshape{{3, 8}}, std::vector<graph::Extents>{a}, {{1, 3}, {2, 4}});
  EXPECT_EQ(*reshaped[0], (eval::Box{{1, 5}, {2, 6}}));
}

}  // namespace
}  // namespace tenon
