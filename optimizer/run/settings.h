// What a user says about an optimization.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::optimizer {

// What decides the result, besides the model and the packs. A value type.
struct RunSettings {
  std::string device = "roofline:h100";
  std::string cost_cache;            // Of a device that measures; empty: the user's.
  std::string search = "backtrack";  // Or "eqsat".
  double alpha = 1.5;
  double time_limit_s = 60;  // Of the search.
  bool fast_math = false;
  std::vector<std::string> without;  // Rules whose name or text contains one of these are left out.
  std::optional<double> tolerance;   // None: what the element types of the model explain.
  double check_time_limit_s = 60;
  std::uint64_t seed = 1;  // Of the inputs of the comparison.
};

}  // namespace tenon::optimizer
