// Canonical bytes: the test vectors of docs/formats/operator.md, invariance under renaming, and
// what hostile bytes meet.
#include "core/rules/canonical.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "core/rules/text.h"

namespace tenon::rules {
namespace {

Rule Parse(const std::string& text) {
  auto rule = ParseRule(text);
  EXPECT_TRUE(rule.ok()) << base::Message(rule.status());
  return *std::move(rule);
}
std::string Bytes(const Rule& rule) {
  auto bytes = CanonicalBytes(rule);
  EXPECT_TRUE(bytes.ok()) << base::Message(bytes.status());
  return bytes.ok() ? *bytes : "";
}
std::string Hex(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out;
}

TEST(CanonicalTest, VectorsOfTheFormatDocument) {
  const Rule rule =
      Parse("rule r given a[m,n] source Transpose(Transpose(a, perm=[1,0]), perm=[1,0]) target a");
  EXPECT_EQ(Hex(Bytes(rule)),
            "0101"
            "020101"
            "01"
            "010102"
            "01020101"
            "01020102"
            "02"
            "14000100"
            "14000101"
            "020200"
            "00"
            "00");
  const Rule graph = Parse("rule r given a[2,3] b[2,4] source Relu(Concat(a, b, axis=1)) target a");
  const auto bytes = CanonicalBytes(graph.graph, graph.source);
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(Hex(*bytes),
            "010200"
            "02"
            "010102010400010600"
            "010102010400010800"
            "02"
            "15010102020001"
            "05000102"
            "0103");
}

// Texts of one rule in pairs of spellings.
TEST(CanonicalTest, NamesNumbersAndCommutativeOrderDoNotMatter) {
  const std::pair<const char*, const char*> same[] = {
      {"rule r given a[m,n] b[n,k] source Transpose(MatMul(a, b)) "
       "target MatMul(Transpose(b), Transpose(a))",
       "rule other given y[q,z] x[p,q] source Transpose(MatMul(x, y)) "
       "target MatMul(Transpose(y), Transpose(x))"},
      {"rule r given a[m,n] b[m,n] c[m,n] source Add(Add(a, b), c) target Add(a, Add(b, c)) both",
       "rule r given a[m,n] b[m,n] c[m,n] source Add(b, Add(c, a)) target Add(Add(b, a), c) both"},
      {"rule r given a[m,n] b[k,n] source Add(a, b) target Add(b, a) where m >= k, k >= m+0",
       "rule r given a[k,n] b[m,n] source Add(b, a) target Add(a, b) where m >= k, k >= m"},
      {"rule r given x[n,c,h,w] k[f,c,3,3] attr s >= 1, p >= 0, q source "
       "Relu(Conv(x, k, strides=[s,s], pads=[p,q,p,q])) target "
       "Conv(x, k, strides=[s,s], pads=[p,q,p,q], activation=relu) where 2*q >= 3, p + q = 4",
       "rule r given x[b,c,i,j] k[f,c,3,3] attr q >= 0, p, s >= 1 source "
       "Relu(Conv(x, k, strides=[s,s], pads=[q,p,q,p])) target "
       "Conv(x, k, strides=[s,s], pads=[q,p,q,p], activation=relu) where 4 = p + q, p >= 2"},
  };
  for (const auto& [one, other] : same) EXPECT_EQ(Bytes(Parse(one)), Bytes(Parse(other))) << one;
}

TEST(CanonicalTest, DifferentRulesDiffer) {
  const char* texts[] = {
      "rule r given a[m,n] source Relu(Relu(a)) target Relu(a)",
      "rule r given a[m,n] source Relu(Relu(a)) target Relu(a) both",
      "rule r given a[m,m] source Relu(Relu(a)) target Relu(a)",
      "rule r given a[m,n] source Relu(Relu(a)) target Relu(a) where m >= n",
      "rule r given a[m,n] source Relu(Relu(a)) target Relu(a) where m >= n+1",
      "rule r weight a[m,n] source Relu(Relu(a)) target Relu(a)",
      "rule r given a[m,4] source Relu(Relu(a)) target Relu(a)",
      "rule r given a[m,n,k] source Relu(Relu(a)) target Relu(a)",
      "rule r given a[m,n] source Relu(a) target Relu(Relu(a))",
      "rule r given a[m,n] source Tanh(Relu(a)) target Relu(a)",
      "rule r given a[m,n] b[m,n] source Sub(a, b) target Sub(a, b)",
      "rule r given a[m,n] b[m,n] source Sub(a, b) target Sub(b, a)",
      "rule r given a[m,n] b[m,n] source Add(a, b) target Add(b, b)",
      "rule r given a[m,n] source Concat(a, a, axis=0) target Concat(a, a, axis=1)",
      "rule r given a[m,n] source Concat(a, a, axis=1) target Concat(a, a, axis=0)",
  };
  std::vector<std::string> all;
  for (const char* text : texts) all.push_back(Bytes(Parse(text)));
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST(CanonicalTest, ReadingWhatWasWrittenGivesTheSameBytes) {
  const char* texts[] = {
      "rule r given a[m,n] b[n,k] c[k,p] source MatMul(MatMul(a, b), c) target "
      "MatMul(a, MatMul(b, c)) both",
      "rule r given a[m+2*n,n,m,k] source Slice(a, axis=0, start=m, end=m+div(n*k+1,2)) "
      "target a where n = 2*m, m mod 3 = 1",
      "rule r given x[n,c,h,w] source AveragePool(x, kernel_shape=[3,3], pads=[1,1,1,1], "
      "count_include_pad=1) target Conv(x, PoolKernel(channels=c, kernel_shape=[3,3]), "
      "pads=[1,1,1,1], group=1)",
      "rule r given a[m,n] source Mul(a, Fill(shape=[m,n], value=0.5)) target a",
      "rule r given a[m,n] b[m,k] source Concat(a, b, axis=1), Relu(a) target Concat(b, a, "
      "axis=1), a "
      "where n = k",
      "rule r scalar s given a[m,n] source Mul(s, a) target Mul(a, s)",
  };
  for (const char* text : texts) {
    const std::string bytes = Bytes(Parse(text));
    auto again = DecodeRule(bytes);
    ASSERT_TRUE(again.ok()) << text << ": " << base::Message(again.status());
    EXPECT_EQ(Bytes(*again), bytes) << text;
    again->name = "again";
    const Rule printed = Parse(PrintRule(*again));
    EXPECT_EQ(Bytes(printed), bytes) << PrintRule(*again);
  }
}

TEST(CanonicalTest, EveryFlippedByteIsRefusedOrAnotherCanonicalRule) {
  const std::string bytes =
      Bytes(Parse("rule r given a[m,n] b[n,k] source Add(Relu(MatMul(a, b)), Fill(shape=[m,k])) "
                  "target Relu(MatMul(a, b)) where m >= n"));
  int refused = 0;
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    for (int v = 0; v < 256; ++v) {
      std::string other = bytes;
      other[k] = static_cast<char>(v);
      if (other == bytes) continue;
      const auto rule = DecodeRule(other);
      if (rule.ok()) {
        EXPECT_EQ(Bytes(*rule), other);
      } else {
        EXPECT_EQ(rule.status().code(), absl::StatusCode::kDataLoss);
        ++refused;
      }
    }
    EXPECT_FALSE(DecodeRule(bytes.substr(0, k)).ok());
  }
  EXPECT_FALSE(DecodeRule(bytes + '\0').ok());
  EXPECT_GT(refused, int(bytes.size()) * 200);
}

TEST(CanonicalTest, RandomBytesNeverCrash) {
  std::mt19937_64 random(5);
  for (int trial = 0; trial < 20000; ++trial) {
    std::string bytes = "\x01";
    bytes += char(1 + random() % 3);
    const auto size = random() % 60;
    for (std::uint64_t k = 0; k < size; ++k) bytes += char(random() % (random() % 2 != 0 ? 4 : 64));
    (void)DecodeRule(bytes);
    (void)DecodeGraph(bytes);
  }
}

TEST(CanonicalTest, TooMuchSymmetryIsAnError) {
  std::string term = "a0", given = "a0[n]";
  for (int k = 1; k < 20; ++k) {
    term = "Add(" + term + ", a" + std::to_string(k) + ")";
    given += " a" + std::to_string(k) + "[n]";
  }
  const auto bytes =
      CanonicalBytes(Parse("rule r given " + given + " source " + term + " target a0"));
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(InterfaceBytesTest, SameFunctionBySameOperatorsInAnyNodeOrder) {
  graph::Graph one, other;
  const graph::TensorType type{graph::DataType::kFloat, {2, 2}};
  const auto a1 = one.AddInput("a", graph::InputKind::kActivation, type);
  const auto b1 = one.AddInput("b", graph::InputKind::kActivation, type);
  const auto sum1 = *one.Add(ops::Add{}, {a1, b1});
  const auto relu1 = *one.Add(ops::Relu{}, {a1});
  const auto root1 = *one.Add(ops::MatMul{}, {sum1, relu1});
  const auto a2 = other.AddInput("x", graph::InputKind::kActivation, type);
  const auto b2 = other.AddInput("y", graph::InputKind::kActivation, type);
  const auto relu2 = *other.Add(ops::Relu{}, {a2});
  ASSERT_TRUE(other.Add(ops::Tanh{}, {a2}).ok());  // Reached by nothing.
  const auto sum2 = *other.Add(ops::Add{}, {b2, a2});
  const auto root2 = *other.Add(ops::MatMul{}, {sum2, relu2});
  const auto swapped = *other.Add(ops::MatMul{}, {relu2, sum2});
  const std::string bytes = InterfaceBytes(one, std::vector{root1});
  EXPECT_EQ(bytes, InterfaceBytes(other, std::vector{root2}));
  EXPECT_NE(bytes, InterfaceBytes(other, std::vector{swapped}));
  const auto again = DecodeGraph(bytes);
  ASSERT_TRUE(again.ok()) << base::Message(again.status());
  EXPECT_EQ(InterfaceBytes(*again, again->outputs()), bytes);
  // Inputs are not interchangeable here, but up to renaming they are.
  const auto mirrored = *other.Add(ops::MatMul{}, {sum2, *other.Add(ops::Relu{}, {b2})});
  EXPECT_NE(bytes, InterfaceBytes(other, std::vector{mirrored}));
  EXPECT_EQ(*CanonicalBytes(one, std::vector{root1}),
            *CanonicalBytes(other, std::vector{mirrored}));
}

}  // namespace
}  // namespace tenon::rules
