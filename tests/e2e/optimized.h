// Networks of tests/models/zoo.py, and what `tenon optimize` makes of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/e2e/packs.h"
#include "tests/support/process.h"

namespace tenon::e2e {

inline constexpr const char* kPython = "/usr/bin/python3";

// Writes a network of tests/models/zoo.py and returns its path.
inline std::string Zoo(const testing::TempFolder& folder, const std::string& name,
                       const std::string& size) {
  const testing::RunResult r =
      testing::Run({kPython, TENON_SOURCE_DIR "/tests/models/zoo.py", "--out", folder.path(),
                    "--size", size, "--only", name});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return folder / (name + ".onnx");
}

struct Optimized {
  testing::RunResult run;
  nlohmann::json report;  // Null when the command failed.
  std::string model;
};

inline Optimized Optimize(const testing::TempFolder& folder, const std::string& model,
                          const std::string& device, const std::vector<std::string>& more = {}) {
  Optimized result;
  result.model = folder / ("optimized." + device + ".onnx");
  const std::string report = folder / ("report." + device + ".json");
  std::vector<std::string> arguments = {"optimize",     model,
                                        "-o",           result.model,
                                        "--pack",       PackPath("matrix"),
                                        "--pack",       PackPath("conv"),
                                        "--device",     "roofline:" + device,
                                        "--alpha",      "1.5",
                                        "--time-limit", "30",
                                        "--report",     report};
  arguments.insert(arguments.end(), more.begin(), more.end());
  result.run = testing::Tenon(arguments, {.limit = std::chrono::minutes(4)});
  EXPECT_EQ(result.run.exit_code, 0) << result.run.err;
  if (result.run.exit_code == 0) result.report = nlohmann::json::parse(testing::ReadFile(report));
  return result;
}

inline void ExpectSound(const nlohmann::json& report) {
  EXPECT_LE(report["cost_after_us"], report["cost_before_us"]);
  EXPECT_LE(report["max_relative_error"], 1e-4);
  EXPECT_LE(report["lower_bound_us"], report["cost_after_us"]);
  for (const char* field : {"nodes_before", "nodes_after", "rules", "seconds"}) {
    EXPECT_TRUE(report.contains(field)) << field;
  }
}

}  // namespace tenon::e2e
