// Every operator, every reading, many small shapes and attributes: the readings must agree. A new
// operator is covered by being in the list; nothing is edited here.
//
// Attributes and operand shapes are drawn at random (seeded) until enough of them fit. Inputs are
// multiples of 1/4, so a result of ring operations is a multiple of 1 / (4^j * 3^k * 5^l) and its
// double tells which, which is how the residue is checked.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/eval/eval.h"
#include "core/graph/infer.h"
#include "core/ops/operator.h"
#include "core/rules/text.h"

namespace tenon {
namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : rng_(seed) {}
  std::int64_t operator()(std::int64_t lo, std::int64_t hi) {
    return std::uniform_int_distribution<std::int64_t>(lo, hi)(rng_);
  }
  ops::AttrValue Attribute(const ops::AttrValue& like) {
    struct Visitor {
      Draw& draw;
      ops::AttrValue operator()(std::int64_t) { return draw(0, 2); }
      ops::AttrValue operator()(double v) { return v; }
      ops::AttrValue operator()(ops::Activation) { return ops::Activation(draw(0, 3)); }
      ops::AttrValue operator()(const ops::Size&) { return ops::Size(draw(0, 4)); }
      ops::AttrValue operator()(const ops::Short<std::int64_t>&) {
        ops::Short<std::int64_t> perm;
        const auto rank = draw(1, 4);
        for (int k = 0; k < rank; ++k) perm.insert(int(draw(0, k)), k);
        return perm;
      }
      ops::AttrValue operator()(const ops::Short<ops::Size>& v) {
        ops::Short<ops::Size> list;
        const auto length = v.empty() ? draw(0, 4) : v.size();
        for (int k = 0; k < length; ++k) list.push_back(draw(0, 3));
        return list;
      }
    };
    return std::visit(Visitor{*this}, like);
  }

 private:
  std::mt19937 rng_;
};

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

bool IsRing(const ops::Operator& op) {
  for (const ops::Attr& a : ops::AttrsOf(op)) {
    if (const auto* f = std::get_if<ops::Activation>(&a.value)) {
      if (*f != ops::Activation::kNone && *f != ops::Activation::kRelu) return false;
    }
  }
  for (std::string_view function :
       {"Sigmoid", "Tanh", "Exp", "Reciprocal", "Softmax", "BatchNormalization"}) {
    if (ops::NameOf(op) == function) return false;
  }
  return true;
}

TEST(ConformanceTest, DoublesExactNumbersAndWorkAgreeOnEveryOperator) {
  for (const ops::Operator& listed : ops::AllOperators()) {
    if (ops::IsOpaque(listed)) continue;
    const ops::Info& info = ops::InfoOf(listed);
    Draw draw(info.wire_id);
    int accepted = 0, residues = 0;
    for (int trial = 0; trial < 600000 && accepted < 60; ++trial) {
      ops::Operator op = listed;
      for (const ops::Attr& attr : ops::AttrsOf(listed)) {
        if (draw(0, 1) == 0) continue;
        ASSERT_TRUE(ops::SetAttr(op, attr.name, draw.Attribute(attr.value)).ok());
      }
      const auto operands = draw(info.arity_min, std::min(info.arity_max, 5));
      const auto rank = draw(0, 4);
      std::vector<graph::Shape> shapes;
      for (int k = 0; k < operands; ++k) {
        graph::Shape shape;
        const auto own = draw(0, 2) == 0 ? draw(0, 4) : rank;
        for (int a = 0; a < own; ++a) shape.push_back(draw(1, 3));
        if (k > 0 && draw(0, 2) == 0) shape = shapes[0];
        if (k > 0 && draw(0, 2) == 0) shape = shapes.back();
        shapes.push_back(shape);
      }
      base::Symbols none;
      const auto inferred = graph::InferShape(op, shapes, none);
      if (!inferred.ok()) continue;
      ++accepted;
      EXPECT_TRUE(inferred->requirements.empty());
      std::vector<eval::Tensor<double>> doubles;
      std::vector<eval::Tensor<eval::Exact>> exacts;
      std::vector<graph::Extents> extents;
      for (const graph::Shape& shape : shapes) {
        const graph::Extents e = graph::Concrete(shape);
        doubles.push_back({e, {}});
        exacts.push_back({e, {}});
        extents.push_back(e);
        for (std::int64_t n = graph::ElementCount(e); n > 0; --n) {
          const double v = double(draw(-12, 12)) / 4 + (info.name == "BatchNormalization" ? 4 : 0);
          doubles.back().data.push_back(v == 0 ? 0.5 : v);
          exacts.back().data.push_back(eval::FromDouble(v == 0 ? 0.5 : v));
        }
      }
      std::vector<const eval::Tensor<double>*> in;
      std::vector<const eval::Tensor<eval::Exact>*> exact_in;
      for (std::size_t k = 0; k < doubles.size(); ++k) {
        in.push_back(&doubles[k]);
        exact_in.push_back(&exacts[k]);
      }
      const auto real = eval::Apply(op, in);
      const auto exact = eval::Apply(op, exact_in, 99);
      const std::string what = rules::PrintOperator(op, none);
      ASSERT_TRUE(real.ok()) << what << real.status();
      ASSERT_TRUE(exact.ok()) << what << exact.status();
      const graph::Extents out = graph::Concrete(inferred->shape);
      ASSERT_EQ(real->extents, out) << what;
      ASSERT_EQ(exact->extents, out) << what;
      for (std::size_t k = 0; k < real->data.size(); ++k) {
        EXPECT_NEAR(real->data[k], exact->data[k].approx, 1e-9) << what;
        if (!IsRing(op)) continue;
        ++residues;
        EXPECT_TRUE(ResidueFits(exact->data[k], real->data[k])) << what << " " << real->data[k];
      }
      const eval::Work work = eval::WorkOf(op, extents, out);
      EXPECT_EQ(work.elements_out, double(graph::ElementCount(out)));
      if (info.nature == ops::Nature::kPointwise) {
        EXPECT_GE(work.flops, work.elements_out) << what;
      }
      if (info.nature == ops::Nature::kMovement) {
        EXPECT_EQ(work.flops, 0) << what;
      }
    }
    EXPECT_EQ(accepted, 60) << info.name << ": too few attributes and shapes fit";
    RecordProperty(std::string(info.name), residues);
  }
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
  EXPECT_NEAR(work.flops, 2.0 * 32 * 64 * 56 * 56 * 64 * 9, 0.02 * work.flops);
  EXPECT_EQ(work.elements_in, 32.0 * 64 * 56 * 56 + 64 * 64 * 9);
}

}  // namespace
}  // namespace tenon
