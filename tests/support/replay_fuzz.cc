// A libFuzzer target without libFuzzer: what is in the corpus, and small changes of it, as a test
// of every build.
//
// usage: NAME CHANGES [file or folder...]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Files(int argc, char** argv) {
  std::vector<fs::path> files;
  for (int k = 2; k < argc; ++k) {
    if (fs::is_regular_file(argv[k])) {
      files.emplace_back(argv[k]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[k])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

void Run(const std::string& bytes) {
  // A copy of its own, so that a sanitizer sees a read beyond the end.
  const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
  (void)LLVMFuzzerTestOneInput(data.data(), data.size());
}

std::string Changed(std::string bytes, std::mt19937& random) {
  for (std::size_t n = 1 + random() % 3; n > 0; --n) {
    const std::size_t at = bytes.empty() ? 0 : random() % bytes.size();
    switch (bytes.empty() ? 1 : random() % 5) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.insert(at, 1, static_cast<char>(random()));
        break;
      case 2:
        bytes.erase(at, 1 + random() % 8);
        break;
      case 3:
        bytes[at] = static_cast<char>(bytes[at] ^ (1u << random() % 8));
        break;
      default:
        bytes.resize(at);
    }
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s CHANGES [file or folder...]\n", argv[0]);
    return 2;
  }
  const int changes = std::atoi(argv[1]);
  const std::vector<fs::path> files = Files(argc, argv);
  Run("");
  for (const fs::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    if (!in.good() && !in.eof()) {
      std::fprintf(stderr, "%s cannot be read\n", file.c_str());
      return 3;
    }
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // The last line before a crash names its file.
    Run(bytes);
    std::mt19937 random(static_cast<unsigned>(bytes.size()));
    for (int k = 0; k < changes; ++k) Run(Changed(bytes, random));
  }
  std::printf("%zu files, each with %d changes\n", files.size(), changes);
  return files.empty() ? 1 : 0;  // A corpus that is not found is no corpus.
}
