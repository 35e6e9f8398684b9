// A check of the command line, for the files that parse it.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdlib>
#include <string>

namespace tenon::cli {

// CLI11's ranges let "nan" through, which compares with nothing.
inline CLI::Validator FiniteNumber() {
  return CLI::Validator(
      [](std::string& text) {
        return std::isfinite(std::strtod(text.c_str(), nullptr)) ? std::string()
                                                                 : "must be a finite number";
      },
      "");
}

}  // namespace tenon::cli
