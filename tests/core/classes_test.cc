// Classes as bytes: what is written is read back to the same, and nothing else is accepted.
#include "core/graph/classes.h"

#include <random>

#include <gtest/gtest.h>

#include "core/base/bytes.h"
#include "core/ops/layout.h"
#include "core/ops/pointwise.h"
#include "tests/support/small_universe.h"

namespace tenon::graph {
namespace {

Universe TwoInputs() {
  Universe u;
  u.name = "two";
  u.inputs = {{"a", InputKind::kActivation, {2, 2}}, {"b", InputKind::kActivation, {2, 2}}};
  u.operators = {{.op = ops::Add{}, .arity = 2}, {.op = ops::Transpose{}, .arity = 1}};
  return u;
}

std::string FromHexText(std::string_view hex) {
  std::string out;
  for (std::size_t k = 0; k + 1 < hex.size(); k += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(k, 2)), nullptr, 16));
  }
  return out;
}

// The vector of docs/formats/classes.md.
const std::string kVector = FromHexText(
    "010401010201010100020403000204050202000302"
    "0401");

TermClasses FromVector() {
  const auto decoded = DecodeClasses(TwoInputs(), kVector);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? *decoded : TermClasses{};
}

TEST(ClassesTest, TheVectorOfTheFormatIsReadAndWritten) {
  const TermClasses classes = FromVector();
  ASSERT_EQ(classes.at, (std::vector<std::size_t>{0, 2, 4}));
  ASSERT_EQ(classes.members, (std::vector<TermId>{0, 3, 4, 5}));
  EXPECT_EQ(classes.table.Print(4), "Add(a, b)");
  EXPECT_EQ(classes.table.Print(5), "Add(b, a)");
  EXPECT_EQ(classes.table.term_size(3), 2);
  EXPECT_EQ(EncodeClasses(classes), kVector);
}

TEST(ClassesTest, AFragmentHasWhatIsNeededInTheSameOrder) {
  const Universe u = TwoInputs();
  TermTable table = TableOf(u);
  const auto add = [&](const ops::Operator& op, std::vector<TermId> operands) {
    return *table.Add(op, operands);
  };
  add(ops::Transpose{}, {1});  // Of no use to a class.
  const TermId t = add(ops::Transpose{}, {0});
  const TermId tt = add(ops::Transpose{}, {t});
  add(ops::Add{}, {tt, 1});
  const TermId ab = add(ops::Add{}, {0, 1});
  const TermId ba = add(ops::Add{}, {1, 0});
  const TermClasses fragment =
      Fragment(u, table, std::vector<std::size_t>{0, 2, 4}, std::vector<TermId>{0, tt, ab, ba});
  EXPECT_EQ(EncodeClasses(fragment), kVector);
}

TEST(ClassesTest, NothingElseIsAccepted) {
  const Universe u = TwoInputs();
  // Shorter, longer, and every change of one byte: refused, or other classes that are written as
  // they were read.
  for (std::size_t size = 0; size < kVector.size(); ++size) {
    EXPECT_FALSE(DecodeClasses(u, kVector.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(DecodeClasses(u, kVector + '\0').ok());
  int refused = 0;
  for (std::size_t k = 0; k < kVector.size(); ++k) {
    for (int v = 0; v < 256; ++v) {
      std::string changed = kVector;
      if (changed[k] == static_cast<char>(v)) continue;
      changed[k] = static_cast<char>(v);
      const auto decoded = DecodeClasses(u, changed);
      if (decoded.ok()) {
        EXPECT_EQ(EncodeClasses(*decoded), changed);
      }
      refused += decoded.ok() ? 0 : 1;
    }
  }
  EXPECT_GT(refused, 255 * int(kVector.size()) * 9 / 10);
}

TEST(ClassesTest, EachDamageHasItsReason) {
  const auto why = [](std::string_view hex) {
    return base::Message(DecodeClasses(TwoInputs(), FromHexText(hex)).status());
  };
  EXPECT_NE(why("0200").find("version"), std::string::npos);
  EXPECT_NE(why("01010201010000").find("not of the universe"), std::string::npos);
  EXPECT_NE(why("0101010103"
                "0000")
                .find("not before"),
            std::string::npos);
  EXPECT_NE(why("0101000102"
                "0000")
                .find("does not fit"),
            std::string::npos);
  EXPECT_NE(why("0102010102010103"
                "0000")
                .find("twice"),
            std::string::npos);
  EXPECT_NE(why("010101010200").find("no member needs it"), std::string::npos);
  EXPECT_NE(why("0101010102"
                "010100")
                .find("fewer than two"),
            std::string::npos);
}

// All classes of a small enumeration survive the way there and back.
TEST(ClassesTest, ClassesOfAnEnumerationComeBack) {
  const test::SmallUniverse small = test::MatrixUniverse(2);
  Universe u;
  u.inputs = {{"a", InputKind::kActivation, {4, 4}},
              {"b", InputKind::kActivation, {4, 4}},
              {"c", InputKind::kActivation, {4, 4}}};
  for (std::size_t k = 0; k < small.terms.operator_count(); ++k) {
    u.operators.push_back({.op = small.terms.operator_at(OpId(k)), .arity = 0});
  }
  std::vector<std::size_t> at{0};
  std::vector<TermId> members;
  for (const auto& c : small.classes) {
    if (c.size() < 2) continue;
    members.insert(members.end(), c.begin(), c.end());
    at.push_back(members.size());
  }
  ASSERT_GT(at.size(), 10u);
  const TermClasses fragment = Fragment(u, small.terms, at, members);
  const auto back = DecodeClasses(u, EncodeClasses(fragment));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->at, at);
  EXPECT_EQ(back->members, fragment.members);
  for (std::size_t k = 0; k < members.size(); ++k) {
    EXPECT_EQ(back->table.Print(back->members[k]), small.terms.Print(members[k]));
  }
}

}  // namespace
}  // namespace tenon::graph
