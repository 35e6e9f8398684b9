// The contract of the command line that holds for every command: exit codes, which stream says
// what, errors in one line, help.
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
using testing::Tenon;

constexpr const char* kTiny = R"(name: "tiny"
outputs: SINGLE
max_operators: 2
input { name: "a" kind: ACTIVATION shape: [2, 3] }
operator { name: "Relu" }
)";

struct UsageCase {
  std::vector<std::string> arguments;
  std::string says;
};

TEST(UsageTest, WrongUsageExitsWithTwoAndOneLineThatNamesTheHelp) {
  const std::vector<UsageCase> cases = {
      {{}, "name a command"},
      {{"bogus"}, "bogus"},
      {{"universe"}, "name a command"},
      {{"universe", "bogus"}, "bogus"},
      {{"universe", "show"}, "universe"},
      {{"universe", "list", "--bogus"}, "--bogus"},
      {{"--log-format", "xml", "universe", "list"}, "xml"},
      {{"enumerate"}, "--universe"},
      {{"enumerate", "--universe", "matrix", "--max-operators", "0"}, "--max-operators"},
      {{"enumerate", "--universe", "matrix", "--mode", "sometimes"}, "sometimes"},
      {{"enumerate", "--universe", "matrix", "--memory-limit", "much"}, "much"},
      {{"generate", "--universe", "matrix"}, "--out"},
      {{"prove"}, "files"},
      {{"derive"}, "files"},
      {{"partial"}, "files"},
      {{"partial", "a.rules", "--svg", "x", "-o", "x"}, "--svg"},
      {{"pack", "diff", "a.pack"}, "b"},
      {{"pack", "keygen"}, "--out"},
      {{"rules"}, "name a command"},
      {{"rules", "import", "a.pb"}, "--format"},
      {{"rules", "import", "--format", "taso", "a.pb", "-o", "x", "--markdown", "x"}, "--markdown"},
      {{"pack", "export", "a.pack", "-o", "x"}, "--format"},
      {{"pack", "export", "a.pack", "--format", "onnx", "-o", "x"}, "onnx"},
      {{"optimize", "m.onnx"}, "--out"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--alpha", "0.5"}, "--alpha"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--alpha", "nan"}, "finite"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--tolerance", "nan"}, "--tolerance"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--report", "./o.onnx"}, "--report"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--search", "luck"}, "luck"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--time-limit", "-3"}, "--time-limit"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--min-speedup", "fast"}, "--min-speedup"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--min-speedup", "-1"}, "--min-speedup"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--max-relative-error", "nan"}, "finite"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--baseline", "r.json"}, "--fail-if-slower"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--junit", "x", "--markdown", "x"}, "--markdown"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--deadline", "5"}, "--server"},
      {{"optimize", "m.onnx", "-o", "o.onnx", "--server", "a:1", "--deadline", "0"}, "--deadline"},
      {{"serve", "optimizer", "--queue", "1000"}, "--queue"},
      {{"serve", "worker", "--pack", "nn"}, "--pack"},
      {{"explain"}, "report"},
  };
  for (const UsageCase& wrong : cases) {
    const RunResult r = Tenon(wrong.arguments);
    SCOPED_TRACE(r.err);
    EXPECT_EQ(r.exit_code, 2);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(CountLines(r.err), 1);
    EXPECT_THAT(r.err, StartsWith("tenon: "));
    EXPECT_THAT(r.err, HasSubstr(wrong.says));
    EXPECT_THAT(r.err, HasSubstr("--help"));
  }
}

TEST(HelpTest, EveryCommandHasHelpOnStdout) {
  const std::vector<std::vector<std::string>> commands = {
      {},
      {"universe"},
      {"universe", "list"},
      {"universe", "show"},
      {"enumerate"},
      {"generate"},
      {"prove"},
      {"derive"},
      {"partial"},
      {"rules"},
      {"rules", "import"},
      {"pack"},
      {"pack", "add"},
      {"pack", "list"},
      {"pack", "show"},
      {"pack", "verify"},
      {"pack", "diff"},
      {"pack", "export"},
      {"pack", "keygen"},
      {"pack", "sign"},
      {"optimize"},
      {"explain"},
  };
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--help");
    const RunResult r = Tenon(command);
    EXPECT_EQ(r.exit_code, 0);
    EXPECT_EQ(r.err, "");
    EXPECT_THAT(r.out, HasSubstr("Usage: tenon"));
  }
}

TEST(HelpTest, VersionIsOneLine) {
  const RunResult r = Tenon({"--version"});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, ::testing::MatchesRegex("tenon [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(OutputTest, NoColorAndNoCursorMovementWithoutATerminal) {
  const RunResult r = Tenon({"universe", "list"}, {.environment = {{"TERM", "xterm"}}});
  EXPECT_THAT(r.out + r.err, ::testing::Not(HasSubstr("\x1b")));
}

TEST(OutputTest, FullStdoutIsAnError) {
  testing::TempFolder folder;
  folder.Write("tiny.textproto", kTiny);
  const RunResult r =
      testing::Run({"/bin/sh", "-c", "\"$0\" universe list >/dev/full", testing::Binary("tenon")},
                   {.environment = {{"TENON_UNIVERSES", folder.path()}}});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(CountLines(r.err), 1);
  EXPECT_THAT(r.err, HasSubstr("stdout"));
}

TEST(UniverseTest, ListNamesThoseOfTheEnvironmentFirst) {
  testing::TempFolder folder;
  const std::string path = folder.Write("tiny.textproto", kTiny);
  const testing::RunOptions options{.environment = {{"TENON_UNIVERSES", folder.path()}}};
  EXPECT_THAT(Tenon({"universe", "list"}, options).out, StartsWith("tiny "));
  const RunResult shown = Tenon({"universe", "show", "tiny"}, options);
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out, kTiny);
  EXPECT_EQ(Tenon({"universe", "show", path}).out, kTiny);
}

TEST(UniverseTest, AnUnknownNameListsTheKnownOnes) {
  testing::TempFolder folder;
  folder.Write("tiny.textproto", kTiny);
  const RunResult r =
      Tenon({"universe", "show", "huge"}, {.environment = {{"TENON_UNIVERSES", folder.path()}}});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.out, "");
  EXPECT_EQ(CountLines(r.err), 1);
  EXPECT_THAT(r.err, HasSubstr("huge"));
  EXPECT_THAT(r.err, HasSubstr("tiny"));
}

TEST(JsonTest, DashSendsTheDocumentAndNothingElseToStdout) {
  testing::TempFolder folder;
  folder.Write("tiny.textproto", kTiny);
  const testing::RunOptions options{.environment = {{"TENON_UNIVERSES", folder.path()}}};
  const RunResult r = Tenon({"universe", "list", "--json", "-"}, options);
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_THAT(r.out, StartsWith("[\n"));
  EXPECT_TRUE(r.out.ends_with("]\n"));
  const RunResult into_file = Tenon({"universe", "list", "--json", folder / "u.json"}, options);
  EXPECT_EQ(into_file.exit_code, 0);
  EXPECT_EQ(testing::ReadFile(folder / "u.json"), r.out);
  EXPECT_EQ(folder.Names(), (std::vector<std::string>{"tiny.textproto", "u.json"}));
}

TEST(JsonTest, APlaceThatCannotBeWrittenIsNamed) {
  testing::TempFolder folder;
  folder.Write("tiny.textproto", kTiny);
  for (const std::string& place :
       {folder / "none/u.json", folder.path(), std::string("/dev/full")}) {
    const RunResult r = Tenon({"universe", "list", "--json", place},
                              {.environment = {{"TENON_UNIVERSES", folder.path()}}});
    EXPECT_EQ(r.exit_code, 3) << place;
    EXPECT_EQ(CountLines(r.err), 1);
    EXPECT_THAT(r.err, HasSubstr(place));
  }
  EXPECT_EQ(folder.Names(), (std::vector<std::string>{"tiny.textproto"}));
}

}  // namespace
}  // namespace tenon
