// What is wrong with the world: each case is one line on stderr, its exit code, and no half-written
// file. (Rule texts and universes have tables of their own in tests/client/cli.)
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/process.h"

namespace tenon {
namespace {

using ::testing::AllOf;
using testing::CountLines;
using ::testing::HasSubstr;
using testing::RunResult;
using ::testing::StartsWith;
using testing::TempFolder;
using testing::Tenon;

constexpr const char* kTiny = R"(name: "tiny"
outputs: SINGLE
max_operators: 2
input { name: "a" kind: ACTIVATION shape: [2, 3] }
operator { name: "Relu" }
operator { name: "Transpose" attribute { name: "perm" value { ints { at: [1, 0] } } } }
)";

// The last line: notes about a model may come before.
std::string LastLine(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const std::size_t start = text.rfind('\n', end);
  return text.substr(start == std::string::npos ? 0 : start + 1, end - (start + 1) + 1);
}

// A user's own folders, so that no test sees or leaves keys and packs of a person.
testing::RunOptions Home(const TempFolder& folder) {
  return {.environment = {{"HOME", folder.path()},
                          {"XDG_CONFIG_HOME", folder / "config"},
                          {"XDG_CACHE_HOME", folder / "cache"}}};
}

std::string TinyPack(const TempFolder& folder) {
  const RunResult r = Tenon({"generate", "--universe", folder.Write("tiny.textproto", kTiny),
                             "--out", folder / "tiny.pack"},
                            Home(folder));
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return folder / "tiny.pack";
}

// ---- models

TEST(BadModelTest, OneLineThatNamesFileAndNodeOrField) {
  struct Case {
    std::string name, says;
  };
  const std::vector<Case> table = {
      {"empty", "empty"},
      {"text", "not an ONNX model"},
      {"noise", "not an ONNX model"},
      {"truncated", "truncated"},
      {"truncated_by_one", "truncated"},
      {"cyclic", "product"},
      {"missing_initializer", "'w'"},
      {"absurd_dims", "'x'"},
      {"absurd_initializer", "'w'"},
      {"negative_initializer", "-4"},
      {"short_initializer", "raw_data"},
      {"external_missing", "nowhere.bin"},
      {"external_outside", "folder"},
      {"twice_defined", "'y'"},
      {"output_twice", "output 'z' of the graph is declared twice"},
      {"input_twice", "input 'x' of the graph is declared twice"},
      {"input_defined", "'y'"},
      {"output_unknown", "nobody"},
      {"no_graph", "graph"},
      {"zero_stride", "strides"},
  };
  TempFolder models;
  ASSERT_EQ(
      testing::Run({"/usr/bin/python3", TENON_SOURCE_DIR "/tests/e2e/bad_models.py", models.path()})
          .exit_code,
      0);
  for (const Case& bad : table) {
    SCOPED_TRACE(bad.name);
    TempFolder folder;
    const std::string model = models / (bad.name + ".onnx");
    const RunResult r = Tenon(
        {"optimize", model, "-o", folder / "o.onnx", "--report", folder / "r.json"}, Home(folder));
    EXPECT_EQ(r.exit_code, 3);
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(LastLine(r.err),
                AllOf(StartsWith("tenon: "), HasSubstr(model), HasSubstr(bad.says)));
    EXPECT_EQ(folder.Names(), std::vector<std::string>{});
  }
  // What is unusual and not wrong.
  for (const std::string name : {"good", "unsorted", "unknown_opset"}) {
    SCOPED_TRACE(name);
    TempFolder folder;
    const RunResult r =
        Tenon({"optimize", models / (name + ".onnx"), "-o", folder / "o.onnx"}, Home(folder));
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(folder.Names(), std::vector<std::string>{"o.onnx"});
  }
}

TEST(BadModelTest, EveryTruncationIsRefusedOrReadWhole) {
  TempFolder models;
  ASSERT_EQ(
      testing::Run({"/usr/bin/python3", TENON_SOURCE_DIR "/tests/e2e/bad_models.py", models.path()})
          .exit_code,
      0);
  const std::string whole = testing::ReadFile(models / "good.onnx");
  for (std::size_t n = 0; n < whole.size(); n += 5) {
    SCOPED_TRACE(n);
    TempFolder folder;
    const RunResult r =
        Tenon({"optimize", folder.Write("cut.onnx", whole.substr(0, n)), "-o", folder / "o.onnx"},
              Home(folder));
    EXPECT_EQ(r.signal, 0);
    EXPECT_EQ(r.exit_code, 3) << r.err;
    EXPECT_EQ(folder.Names(), std::vector<std::string>{"cut.onnx"});
  }
}

// ---- packs

TEST(BadPackTest, ADamagedPackIsNamedAndNeverUsed) {
  TempFolder home;
  const std::string whole = testing::ReadFile(TinyPack(home));
  TempFolder models;
  testing::Run({"/usr/bin/python3", TENON_SOURCE_DIR "/tests/e2e/bad_models.py", models.path()});
  std::vector<std::pair<std::string, std::string>> bad = {
      {"empty", ""},
      {"text", "rule x\n"},
      {"truncated", whole.substr(0, whole.size() / 2)},
      {"truncated by one", whole.substr(0, whole.size() - 1)},
      {"longer", whole + "x"},
  };
  for (std::size_t at = 0; at < whole.size(); at += 37) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 4);
    bad.emplace_back("bit " + std::to_string(at), flipped);
  }
  for (const auto& [name, bytes] : bad) {
    SCOPED_TRACE(name);
    TempFolder folder;
    const std::string pack = folder.Write("bad.pack", bytes);
    for (const std::vector<std::string>& command :
         {std::vector<std::string>{"pack", "verify", pack},
          std::vector<std::string>{"pack", "show", pack},
          std::vector<std::string>{"optimize", models / "good.onnx", "-o", folder / "o.onnx",
                                   "--pack", pack}}) {
      const RunResult r = Tenon(command, Home(home));
      EXPECT_EQ(r.exit_code, 3) << r.err;
      EXPECT_EQ(r.out, "");
      EXPECT_EQ(CountLines(r.err), 1) << r.err;
      EXPECT_THAT(r.err, AllOf(StartsWith("tenon: "), HasSubstr("bad.pack")));
    }
    EXPECT_EQ(folder.Names(), std::vector<std::string>{"bad.pack"});
  }
}

TEST(BadPackTest, AnotherSignerIsRefused) {
  TempFolder home;
  const std::string pack = TinyPack(home);
  ASSERT_EQ(Tenon({"pack", "keygen", "-o", home / "mine"}, Home(home)).exit_code, 0);
  ASSERT_EQ(Tenon({"pack", "keygen", "-o", home / "other"}, Home(home)).exit_code, 0);
  EXPECT_EQ(Tenon({"pack", "verify", pack}, Home(home)).exit_code, 0);
  const std::string mine = home / "mine.pub";
  const RunResult before = Tenon({"pack", "verify", pack, "--key", mine}, Home(home));
  EXPECT_EQ(before.exit_code, 1);
  EXPECT_EQ(CountLines(before.err), 1);
  ASSERT_EQ(Tenon({"pack", "sign", pack, "--key", home / "mine"}, Home(home)).exit_code, 0);
  EXPECT_EQ(Tenon({"pack", "verify", pack, "--key", mine}, Home(home)).exit_code, 0);
  EXPECT_EQ(Tenon({"pack", "verify", pack, "--key", home / "other.pub"}, Home(home)).exit_code, 1);
  EXPECT_EQ(Tenon({"pack", "verify", pack, "--key", pack}, Home(home)).exit_code, 3);
}

TEST(BadPackTest, KeysAreNeverOverwritten) {
  TempFolder home;
  ASSERT_EQ(Tenon({"pack", "keygen", "-o", home / "k"}, Home(home)).exit_code, 0);
  const std::string before = testing::ReadFile(home / "k");
  const RunResult r = Tenon({"pack", "keygen", "-o", home / "k"}, Home(home));
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(CountLines(r.err), 1);
  EXPECT_EQ(testing::ReadFile(home / "k"), before);
}

// ---- limits

TEST(LimitTest, AUniverseBeyondMemoryOrTimeIsRefusedBeforeItStarts) {
  for (const auto& [flag, value, says] :
       {std::tuple{"--memory-limit", "1MiB", "memory"}, std::tuple{"--time-limit", "0.001", "s"}}) {
    for (const std::string command : {"enumerate", "generate"}) {
      TempFolder folder;
      std::vector<std::string> arguments = {command, "--universe", "matrix", "--max-operators", "5",
                                            flag,    value,        "--json", folder / "r.json"};
      if (command == "generate") {
        arguments.insert(arguments.end(), {"--out", folder / "m.pack"});
      }
      testing::RunOptions options = Home(folder);
      const RunResult r = Tenon(arguments, options);
      SCOPED_TRACE(command + " " + flag + ": " + r.err);
      EXPECT_EQ(r.exit_code, 3);
      EXPECT_EQ(r.out, "");
      EXPECT_THAT(LastLine(r.err), AllOf(StartsWith("tenon: "), HasSubstr(says)));
      EXPECT_LT(r.seconds, 60);
      EXPECT_FALSE(std::filesystem::exists(folder / "m.pack"));
      EXPECT_FALSE(std::filesystem::exists(folder / "r.json"));
    }
  }
}

// ---- places that cannot be written to

std::vector<std::vector<std::string>> Writers(const TempFolder& home, const TempFolder& models,
                                              const std::string& place) {
  return {
      {"generate", "--universe", home / "tiny.textproto", "--out", place},
      {"optimize", models / "good.onnx", "-o", place},
      {"optimize", models / "good.onnx", "-o", home / "fine.onnx", "--report", place},
      {"enumerate", "--universe", home / "tiny.textproto", "--json", place},
      {"pack", "show", home / "tiny.pack", "--rule", "transpose__input", "--svg", place},
      {"pack", "keygen", "-o", place},
  };
}

TEST(UnwritableTest, TheCommandEndsBeforeItsWorkAndNamesThePlace) {
  TempFolder home, models;
  TinyPack(home);
  testing::Run({"/usr/bin/python3", TENON_SOURCE_DIR "/tests/e2e/bad_models.py", models.path()});
  for (const std::string& place : {home / "none/x", home.path(), std::string("/proc/x")}) {
    for (const auto& command : Writers(home, models, place)) {
      const RunResult r = Tenon(command, Home(home));
      SCOPED_TRACE(command[0] + " to " + place + ": " + r.err);
      EXPECT_EQ(r.exit_code, 3);
      EXPECT_THAT(LastLine(r.err), AllOf(StartsWith("tenon: "), HasSubstr(place)));
      EXPECT_FALSE(std::filesystem::exists(home / "fine.onnx"));
    }
  }
}

// A file system of a few pages, already full. Needs the right to mount.
class FullDisk {
 public:
  explicit FullDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directories(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=16k") == 0;
    if (!mounted_) return;
    // Leaves no page for another file's content.
    testing::Run({"/bin/sh", "-c", "cat /dev/zero >\"$0/filler\" 2>/dev/null", path});
  }
  ~FullDisk() {
    if (mounted_) ::umount(path_.c_str());
  }
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

TEST(FullDiskTest, NothingHalfWrittenIsLeft) {
  TempFolder home, models;
  TinyPack(home);
  testing::Run({"/usr/bin/python3", TENON_SOURCE_DIR "/tests/e2e/bad_models.py", models.path()});
  const std::string disk = home / "full";
  const FullDisk full(disk);
  if (!full.mounted()) {
    GTEST_SKIP() << "no right to mount a tmpfs here: run as root to try a full disk";
  }
  for (const auto& command : Writers(home, models, disk + "/x")) {
    const RunResult r = Tenon(command, Home(home));
    SCOPED_TRACE(command[0] + ": " + r.err);
    EXPECT_EQ(r.exit_code, 3);
    EXPECT_THAT(LastLine(r.err), AllOf(StartsWith("tenon: "), HasSubstr(disk)));
    std::vector<std::string> left;
    for (const auto& entry : std::filesystem::directory_iterator(disk)) {
      left.push_back(entry.path().filename().string());
    }
    EXPECT_EQ(left, std::vector<std::string>{"filler"});
  }
}

TEST(InterruptTest, GenerateEndsBySignalAndWritesNothing) {
  TempFolder folder;
  // At the first line of progress ("PHASE: 1 of 2"); which phase that is depends on the machine.
  const RunResult r =
      Tenon({"generate", "--universe", "conv", "--out", folder / "c.pack"},
            {.environment = Home(folder).environment, .signal = SIGTERM, .signal_after = " of "});
  EXPECT_EQ(r.signal, SIGTERM) << r.exit_code << r.err;
  EXPECT_THAT(LastLine(r.err), HasSubstr("interrupted"));
  EXPECT_LT(r.seconds, 60);
  EXPECT_FALSE(std::filesystem::exists(folder / "c.pack"));
}

}  // namespace
}  // namespace tenon
