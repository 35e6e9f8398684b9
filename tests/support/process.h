// Runs programs for tests and keeps what they said.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace tenon::testing {

struct RunOptions {
  std::string stdin_text;
  std::vector<std::pair<std::string, std::string>> environment;  // Added to ours.
  std::string directory;                                         // Empty: ours.
  std::chrono::seconds limit{100};                               // Then SIGKILL, and `timed_out`.
  // Sent once stderr or stdout has shown this text; 0: none.
  int signal = 0;
  std::string signal_after;
};

struct RunResult {
  int exit_code = -1;  // -1 when a signal ended it.
  int signal = 0;      // That signal.
  bool timed_out = false;
  std::string out, err;
  double seconds = 0;
};

// What exec takes: into `strings`, which outlive them, and a null at the end.
std::vector<char*> Pointers(std::vector<std::string>& strings);

// Runs `arguments` ([0] is the program, searched in PATH) to its end. CHECKs that it could start.
RunResult Run(const std::vector<std::string>& arguments, const RunOptions& options = {});

// The path of a binary of this build: $TENON_BIN_DIR/name. CHECKs that ctest set the variable.
std::string Binary(const std::string& name);

// Run with the `tenon` of this build in front.
RunResult Tenon(std::vector<std::string> arguments, const RunOptions& options = {});

// A folder of its own that is removed at the end. Thread-compatible.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file here and returns its path.
  std::string Write(const std::string& name, const std::string& text) const;
  // The names of what lies here, sorted.
  std::vector<std::string> Names() const;

 private:
  std::string path_;
};

std::string ReadFile(const std::string& path);  // CHECKs that it can be read.
int CountLines(const std::string& text);

}  // namespace tenon::testing
