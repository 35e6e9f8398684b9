#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/convert/universe.h"
#include "tenon/v1/universe.pb.h"

namespace tenon::convert {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kHead[] = "name: \"u\" outputs: SINGLE max_operators: 2 ";
constexpr char kInput[] = "input { name: \"a\" kind: ACTIVATION shape: [2, 3] } ";
constexpr char kRelu[] = "operator { name: \"Relu\" } ";

std::string ErrorOf(const std::string& text) {
  const auto u = ParseUniverse(text, "u.textproto");
  return u.ok() ? "accepted" : base::Message(u.status());
}

TEST(UniverseTest, BuiltinsAreReadAndNamed) {
  EXPECT_THAT(BuiltinUniverseNames(),
              ElementsAre("conv", "matrix", "taso", "taso-as-released", "transformer"));
  for (const std::string& name : BuiltinUniverseNames()) {
    const auto u = LoadUniverse(name);
    ASSERT_TRUE(u.ok()) << u.status();
    EXPECT_EQ(u->name, name);
  }
  const auto from_file = LoadUniverse(TENON_SOURCE_DIR "/universes/matrix.textproto");
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  EXPECT_EQ(*from_file, *LoadUniverse("matrix"));
}

TEST(UniverseTest, CanonicalTextReadsBackAndIsItsOwnCanonicalText) {
  for (const std::string& name : BuiltinUniverseNames()) {
    const auto u = LoadUniverse(name);
    ASSERT_TRUE(u.ok());
    const std::string text = CanonicalText(*u);
    const auto back = ParseUniverse(text, "canonical");
    ASSERT_TRUE(back.ok()) << back.status() << text;
    EXPECT_EQ(*back, *u);
    EXPECT_EQ(CanonicalText(*back), text);
    const auto message = FromMessage(ToMessage(*u));
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(*message, *u);
  }
}

TEST(UniverseTest, OtherSemanticsGoWithAnyNumberOfOutputs) {
  const std::string rest = std::string(kInput) + kRelu + "semantics: TASO_AS_RELEASED ";
  EXPECT_THAT(ErrorOf(kHead + rest), HasSubstr("goes with outputs: MULTIPLE"));
  std::string head = kHead;
  head.replace(head.find("SINGLE"), 6, "MULTIPLE");
  const auto u = ParseUniverse(head + rest, "u");
  ASSERT_TRUE(u.ok()) << u.status();
  EXPECT_EQ(u->semantics, graph::Semantics::kTasoAsReleased);
  EXPECT_THAT(CanonicalText(*u), HasSubstr("outputs: MULTIPLE\nsemantics: TASO_AS_RELEASED\n"));
  EXPECT_THAT(ErrorOf(head + rest + "semantics: 9 "), HasSubstr("semantics"));
}

// The text vector of docs/formats/universe.md.
TEST(UniverseTest, CanonicalTextOfTheDocument) {
  const auto u = ParseUniverse(
      std::string(kHead) + kInput +
          "description: \"a \\\"b\\\"\" operator { name: \"Concat\" arity: 2 attribute { name: "
          "\"axis\" value { int: 0 } value { int: 1 } } operand { index: 1 shape: [0, 3] kind: "
          "WEIGHT } } operator { name: \"Add\" same_shape: true } "
          "operator { name: \"Mul\" same_shape: true or_scalar: true }",
      "doc");
  ASSERT_TRUE(u.ok()) << u.status();
  EXPECT_EQ(CanonicalText(*u),
            "name: \"u\"\n"
            "description: \"a \\\"b\\\"\"\n"
            "outputs: SINGLE\n"
            "max_operators: 2\n"
            "max_elements: 1024\n"
            "input { name: \"a\" kind: ACTIVATION shape: [2, 3] }\n"
            "operator { name: \"Concat\" arity: 2 operand { index: 1 shape: [0, 3] kind: WEIGHT } "
            "}\n"
            "operator { name: \"Concat\" arity: 2 attribute { name: \"axis\" value { int: 1 } } "
            "operand { index: 1 shape: [0, 3] kind: WEIGHT } }\n"
            "operator { name: \"Add\" arity: 2 same_shape: true }\n"
            "operator { name: \"Mul\" arity: 2 same_shape: true or_scalar: true }\n");
}

TEST(UniverseTest, AttributeValuesAreExpandedToEveryCombination) {
  const auto u = ParseUniverse(
      std::string(kHead) + kInput +
          "operator { name: \"Split\" attribute { name: \"axis\" value { int: 0 } value { int: 1 } "
          "} attribute { name: \"index\" value { int: 0 } value { int: 1 } } }",
      "u");
  ASSERT_TRUE(u.ok()) << u.status();
  ASSERT_EQ(u->operators.size(), 4u);
  EXPECT_EQ(std::get<ops::Split>(u->operators[3].op).axis, 1);
  EXPECT_EQ(std::get<ops::Split>(u->operators[3].op).index, 1);
}

TEST(UniverseTest, GrammarErrorNamesFileLineAndColumn) {
  EXPECT_THAT(ErrorOf("name: \"u\"\nnonsense: 3\n"), StartsWith("u.textproto:2:9: "));
  EXPECT_THAT(ErrorOf("name: \"u"), StartsWith("u.textproto:1:"));
}

TEST(UniverseTest, ErrorsNameFileFieldAndWayOut) {
  const std::string head = kHead, input = kInput, relu = kRelu;
  const auto all = [](auto... parts) {
    return AllOf(StartsWith("u.textproto: "), HasSubstr(parts)...);
  };
  EXPECT_THAT(ErrorOf("name: \"u\" max_operators: 2 " + input + relu),
              all("outputs", "give SINGLE"));
  EXPECT_THAT(ErrorOf("name: \"u/v\" outputs: SINGLE max_operators: 2 " + input + relu),
              all("name: 'u/v'"));
  EXPECT_THAT(ErrorOf("name: \"u\" outputs: SINGLE " + input + relu),
              all("max_operators: 0", "give 1 to 8"));
  EXPECT_THAT(ErrorOf("name: \"u\" outputs: SINGLE max_operators: 99 " + input + relu),
              all("max_operators: 99"));
  EXPECT_THAT(ErrorOf(head + "max_elements: 99999999 " + input + relu), all("max_elements"));
  EXPECT_THAT(ErrorOf(head + relu), all("input: there is none"));
  EXPECT_THAT(ErrorOf(head + input), all("operator: there is none"));
  EXPECT_THAT(ErrorOf(head + input + input + relu), all("input[1] 'a'", "rename"));
  EXPECT_THAT(ErrorOf(head + "input { name: \"a\" shape: [2] } " + relu), all("kind: give"));
  EXPECT_THAT(ErrorOf(head + "input { name: \"a\" kind: 7 shape: [2] } " + relu),
              HasSubstr("u.textproto"));
  EXPECT_THAT(ErrorOf(head + "input { name: \"a\" kind: WEIGHT shape: [2, 0] } " + relu),
              all("extent 0"));
  EXPECT_THAT(
      ErrorOf(head + "input { name: \"a\" kind: WEIGHT shape: [4000000000, 4000000000] } " + relu),
      all("max_elements = 1024"));
  EXPECT_THAT(
      ErrorOf(head + "input { name: \"a\" kind: WEIGHT shape: [1,1,1,1,1,1,1,1,1] } " + relu),
      all("rank 9"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Rellu\" }"),
              all("operator[0] 'Rellu'", "no such operator", "Relu"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Opaque\" arity: 1 }"), all("Opaque"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Concat\" }"), all("arity: missing"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Concat\" arity: 9 }"), all("arity: 9"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Relu\" arity: 2 }"), all("arity: 2"));
  EXPECT_THAT(ErrorOf(head + input + relu + relu), all("given twice"));
  const auto attribute = [&](const std::string& op, const std::string& text) {
    return ErrorOf(head + input + "operator { name: \"" + op + "\" arity: 2 attribute { " + text +
                   " } }");
  };
  EXPECT_THAT(attribute("Concat", "name: \"axes\" value { int: 1 }"), all("Concat", "'axes'"));
  EXPECT_THAT(attribute("Concat", "name: \"axis\" value { number: 1.5 }"),
              all("'axis'", "an integer"));
  EXPECT_THAT(attribute("Concat", "name: \"axis\" value { }"), all("'axis'", "without content"));
  EXPECT_THAT(attribute("Concat", "name: \"axis\""), all("'axis'", "no value"));
  EXPECT_THAT(attribute("Conv", "name: \"activation\" value { text: \"gelu\" }"), all("'gelu'"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Relu\" operand { index: 1 } }"),
              all("operand.index: 1"));
  EXPECT_THAT(ErrorOf(head + input + "operator { name: \"Relu\" operand { shape: [-1] } }"),
              all("operand.shape"));
}

TEST(UniverseTest, MissingUniverseNamesThoseThereAre) {
  const auto u = LoadUniverse("matrx");
  ASSERT_EQ(u.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::Message(u.status()), AllOf(HasSubstr("'matrx'"), HasSubstr("conv matrix")));
  EXPECT_EQ(LoadUniverse("./no/such.textproto").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tenon::convert
