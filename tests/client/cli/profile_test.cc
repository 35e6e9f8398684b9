// tenon profile on the real binary: the cache of costs fills, travels, and survives interruptions.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/client/cli/home.h"

namespace tenon {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::RunResult;

class ProfileTest : public HomeTest {
 protected:
  std::string Model(const std::string& name) const {
    const RunResult r = testing::Run({"/usr/bin/python3", TENON_SOURCE_DIR "/tests/models/zoo.py",
                                      "--out", home_.path(), "--size", "small", "--only", name});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return home_ / (name + ".onnx");
  }
  json Profile(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "profile");
    arguments.insert(arguments.end(), {"--json", "-"});
    const RunResult r = Tenon(arguments);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return r.exit_code == 0 ? json::parse(r.out) : json();
  }
};

TEST_F(ProfileTest, TheSecondRunMeasuresNothing) {
  const std::string model = Model("resnet_block");
  const json first = Profile({model});
  EXPECT_GT(first["measured"], 3);
  EXPECT_EQ(first["measured"], first["missing"]);
  EXPECT_THAT(first["device"].get<std::string>(), HasSubstr("threads=1"));
  const json second = Profile({model});
  EXPECT_EQ(second["missing"], 0);
  EXPECT_EQ(second["measured"], 0);
  EXPECT_GT(Profile({model, "--device", "cpu:threads=2"})["measured"], 3);
}

TEST_F(ProfileTest, CostsTravelToAnotherCache) {
  const std::string model = Model("resnet_block"), costs = home_ / "costs.json";
  const int measured = Profile({model, "--export", costs})["measured"];
  EXPECT_EQ(json::parse(testing::ReadFile(costs))["costs"].size(), std::size_t(measured));
  EXPECT_EQ(Profile({model, "--import", costs, "--cost-cache", home_ / "other"})["missing"], 0);
  // What is there already stays.
  const RunResult again = Tenon({"profile", "--import", costs, "--cost-cache", home_ / "other"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("0 costs"));
}

TEST_F(ProfileTest, OneCacheGivesOneResult) {
  const std::string model = Model("squeezenet11"), costs = home_ / "costs.json";
  const auto optimize = [&](const std::string& name) {
    const RunResult r = Tenon({"optimize", model, "-o", home_ / (name + ".onnx"), "--device", "cpu",
                               "--time-limit", "60", "--report", home_ / (name + ".json")});
    EXPECT_EQ(r.exit_code, 0) << r.err;
  };
  optimize("a");
  optimize("b");
  EXPECT_EQ(testing::ReadFile(home_ / "a.onnx"), testing::ReadFile(home_ / "b.onnx"));
  const json a = json::parse(testing::ReadFile(home_ / "a.json"));
  const json b = json::parse(testing::ReadFile(home_ / "b.json"));
  EXPECT_EQ(a["cost_before_us"], b["cost_before_us"]);
  EXPECT_EQ(a["cost_after_us"], b["cost_after_us"]);
  EXPECT_GT(a["cost_before_us"], 0);
  EXPECT_THAT(a["device"].get<std::string>(), HasSubstr("oneDNN"));
  EXPECT_THAT(a["device"].get<std::string>(), HasSubstr("threads=1"));
}

TEST_F(ProfileTest, AnInterruptedRunLosesNothing) {
  std::vector<std::string> arguments = {"profile",       Model("nasnet_a_taso"), "--cost-cache",
                                        home_ / "costs", "--log-format",         "json"};
  const RunResult r = testing::Tenon(
      arguments,
      {.environment = {{"HOME", home_.path()}}, .signal = 9, .signal_after = "operators measured"});
  if (r.signal != 9) GTEST_SKIP() << "all was measured before the signal came";
  const json rest = Profile({arguments[1], "--cost-cache", home_ / "costs"});
  const json all = Profile({arguments[1], "--cost-cache", home_ / "fresh"});
  EXPECT_LT(rest["missing"], all["missing"]);
}

TEST_F(ProfileTest, MistakesAreNamed) {
  const auto fails = [&](std::vector<std::string> arguments, int code, const char* why) {
    arguments.insert(arguments.begin(), "profile");
    const RunResult r = Tenon(arguments);
    EXPECT_EQ(r.exit_code, code) << r.out << r.err;
    EXPECT_THAT(r.err, HasSubstr(why));
  };
  fails({}, 2, "models, --import or --export");
  fails({"none.onnx"}, 3, "none.onnx");
  fails({home_.Write("no.onnx", "text")}, 3, "no.onnx");
  fails({"none.onnx", "--device", "roofline:h100"}, 3, "measures nothing");
  fails({"--import", "none.json"}, 3, "none.json");
  fails({"--import", home_.Write("bad.json", "{}")}, 3, "bad.json");
  fails({"--export", home_ / "no/such/folder.json"}, 3, "folder.json");
  fails({"--export", home_ / "x.json", "--cost-cache", home_.Write("file", "")}, 3, "file");
}

}  // namespace
}  // namespace tenon
