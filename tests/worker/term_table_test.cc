#include "core/graph/term_table.h"

#include <gtest/gtest.h>

namespace tenon::graph {
namespace {

using ::testing::Test;

TensorType Matrix(std::int64_t rows, std::int64_t columns) {
  return {DataType::kFloat, ToShape({rows, columns})};
}

class TermTableTest : public Test {
 protected:
  TermTableTest() {
    a_ = table_.AddInput("a", InputKind::kActivation, Matrix(2, 3));
    b_ = table_.AddInput("b", InputKind::kWeight, Matrix(3, 4));
  }
  TermId Add(const ops::Operator& op, std::vector<TermId> operands) {
    const auto id = table_.Add(op, operands);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.ok() ? *id : kNoTerm;
  }
  TermTable table_;
  TermId a_, b_;
};

TEST_F(TermTableTest, EqualTermsAreOneNode) {
  const TermId ab = Add(ops::MatMul{}, {a_, b_});
  EXPECT_EQ(ab, Add(ops::MatMul{}, {a_, b_}));
  EXPECT_EQ(table_.size(), 3u);
  EXPECT_EQ(table_.Find(table_.InternOperator(ops::MatMul{}), std::vector<TermId>{a_, b_}), ab);
  EXPECT_EQ(table_.Find(table_.InternOperator(ops::Relu{}), std::vector<TermId>{a_}), kNoTerm);
}

TEST_F(TermTableTest, AttributesTellTermsApart) {
  const TermId c0 = Add(ops::Concat{.axis = 0}, {a_, a_});
  const TermId c1 = Add(ops::Concat{.axis = 1}, {a_, a_});
  EXPECT_NE(c0, c1);
  EXPECT_EQ(table_.extents(c0), (Extents{4, 3}));
  EXPECT_EQ(table_.extents(c1), (Extents{2, 6}));
}

TEST_F(TermTableTest, SizeCountsSharedOperatorsOnce) {
  const TermId ab = Add(ops::MatMul{}, {a_, b_});
  const TermId r = Add(ops::Relu{}, {ab});
  const TermId sum = Add(ops::Add{}, {ab, r});
  EXPECT_EQ(table_.term_size(a_), 0);
  EXPECT_EQ(table_.term_size(sum), 3);
  EXPECT_EQ(table_.term_size(Add(ops::Add{}, {sum, sum})), 4);
  EXPECT_EQ(table_.SizeOf(std::vector<TermId>{r, sum}), 3);
}

TEST_F(TermTableTest, MaskNamesTheInputs) {
  EXPECT_EQ(table_.input_mask(Add(ops::Relu{}, {b_})), 2u);
  EXPECT_EQ(table_.input_mask(Add(ops::MatMul{}, {a_, b_})), 3u);
}

TEST_F(TermTableTest, MisfitIsAnErrorThatNamesTheOperator) {
  const auto bad = table_.Add(ops::MatMul{}, std::vector<TermId>{b_, a_});
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(base::Message(bad.status()).find("MatMul"), std::string::npos);
  EXPECT_EQ(table_.size(), 2u);
}

TEST_F(TermTableTest, GraphAndBackIsTheSameTerm) {
  const TermId ab = Add(ops::MatMul{}, {a_, b_});
  const TermId t = Add(ops::Transpose{}, {Add(ops::Add{}, {ab, Add(ops::Relu{}, {ab})})});
  const Graph g = table_.ToGraph(std::vector<TermId>{t, ab});
  ASSERT_EQ(g.outputs().size(), 2u);
  EXPECT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.OperatorCount(g.outputs()), 4);
  const auto back = table_.FromGraph(g, g.outputs()[0], std::vector<TermId>{a_, b_});
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, t);
}

TEST_F(TermTableTest, PrintsOperandsThenChangedAttributes) {
  EXPECT_EQ(table_.Print(Add(ops::Concat{.axis = 1}, {a_, Add(ops::Relu{}, {a_})})),
            "Concat(a, Relu(a), axis=1)");
}

TEST_F(TermTableTest, TruncatedTermsAreForgottenAndTheOthersFound) {
  std::vector<TermId> terms{a_};
  for (int k = 0; k < 2000; ++k) terms.push_back(Add(ops::Relu{}, {terms.back()}));
  const OpId relu = table_.InternOperator(ops::Relu{});
  table_.Truncate(std::size_t(terms[700]));
  EXPECT_EQ(table_.size(), std::size_t(terms[700]));
  for (std::size_t k = 1; k < 700; ++k) {
    ASSERT_EQ(table_.Find(relu, std::vector<TermId>{terms[k - 1]}), terms[k]);
  }
  EXPECT_EQ(table_.Find(relu, std::vector<TermId>{terms[699]}), kNoTerm);
  EXPECT_EQ(Add(ops::Relu{}, {terms[699]}), terms[700]);
}

TEST_F(TermTableTest, GrowsWithoutLosingTerms) {
  std::vector<TermId> ids{a_};
  for (int k = 0; k < 5000; ++k) {
    ids.push_back(Add(ops::Concat{.axis = 1}, {ids[std::size_t(k)], a_}));
  }
  for (int k = 0; k < 5000; k += 7) {
    EXPECT_EQ(Add(ops::Concat{.axis = 1}, {ids[std::size_t(k)], a_}), ids[std::size_t(k) + 1]);
  }
  EXPECT_LT(table_.memory_bytes(), ids.size() * 80);
}

}  // namespace
}  // namespace tenon::graph
