// Universes that cannot be used: each one line, exit code 3, nothing written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/process.h"

namespace tenon {
namespace {

using testing::CountLines;
using ::testing::HasSubstr;
using testing::RunResult;
using ::testing::StartsWith;
using testing::TempFolder;
using testing::Tenon;

constexpr const char* kHead = "name: \"bad\"\noutputs: SINGLE\nmax_operators: 2\n";
constexpr const char* kInput = "input { name: \"a\" kind: ACTIVATION shape: [2, 3] }\n";
constexpr const char* kRelu = "operator { name: \"Relu\" }\n";

struct BadUniverse {
  std::string name, text, says;
};

std::vector<BadUniverse> Table() {
  const std::string head = kHead, input = kInput, relu = kRelu;
  return {
      {"empty", "", "bad.textproto"},
      {"noise", std::string("\x80\x00\xff{{{", 6), "bad.textproto:1"},
      {"cut", head + "input { name: \"a\"", "bad.textproto:4"},
      {"unknown field", head + input + relu + "colour: 3\n", "colour"},
      {"unknown operator", head + input + "operator { name: \"Rely\" }\n", "Rely"},
      {"unknown attribute",
       head + input +
           "operator { name: \"Concat\" arity: 2 attribute { name: \"axle\" value { int: 1 } } }\n",
       "axle"},
      {"wrong kind of value",
       head + input +
           "operator { name: \"Concat\" arity: 2 attribute { name: \"axis\" value { text: \"one\" "
           "} } }\n",
       "axis"},
      {"no value",
       head + input + "operator { name: \"Concat\" arity: 2 attribute { name: \"axis\" } }\n",
       "axis"},
      {"twice the same input", head + input + input + relu, "a"},
      {"no kind", head + "input { name: \"a\" shape: [2] }\n" + relu, "kind"},
      {"extent 0", head + "input { name: \"a\" kind: ACTIVATION shape: [0] }\n" + relu, "0"},
      {"absurd extent",
       head + "input { name: \"a\" kind: ACTIVATION shape: [4611686018427387904, 4] }\n" + relu,
       "a"},
      {"rank 9",
       head + "input { name: \"a\" kind: ACTIVATION shape: [1,1,1,1,1,1,1,1,1] }\n" + relu, "a"},
      {"no inputs", head + relu, "input"},
      {"no operators", head + input, "operator"},
      {"too many operators", "name: \"bad\"\noutputs: SINGLE\nmax_operators: 1000\n" + input + relu,
       "max_operators"},
      {"negative operators", "name: \"bad\"\noutputs: SINGLE\nmax_operators: -1\n" + input + relu,
       "max_operators"},
      {"no outputs", "name: \"bad\"\nmax_operators: 2\n" + input + relu, "outputs"},
  };
}

TEST(BadUniverseTest, OneLineThatNamesFileAndField) {
  for (const BadUniverse& bad : Table()) {
    SCOPED_TRACE(bad.name);
    TempFolder folder;
    const std::string file = folder.Write("bad.textproto", bad.text);
    const RunResult r = Tenon({"universe", "show", file});
    EXPECT_EQ(r.exit_code, 3) << r.out;
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(CountLines(r.err), 1) << r.err;
    EXPECT_THAT(r.err, StartsWith("tenon: "));
    EXPECT_THAT(r.err, HasSubstr(bad.says));
    EXPECT_THAT(r.err, HasSubstr("bad.textproto"));
  }
}

}  // namespace
}  // namespace tenon
