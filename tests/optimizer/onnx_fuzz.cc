// Foreign bytes as an ONNX file: a model or an error. What is imported is exported, or an error
// says why it cannot be written; what was written is imported again.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/base/check.h"
#include "optimizer/onnx/model.h"

namespace {

// A folder in memory where there is one, removed at the end.
class Folder {
 public:
  Folder() {
    const bool memory = std::filesystem::is_directory("/dev/shm");
    std::string name = std::string(memory ? "/dev/shm" : "/tmp") + "/tenon_onnx_fuzz.XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string in = folder / "in.onnx", out = folder / "out.onnx";
  std::ofstream(in, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto model = tenon::optimizer::Import(in);
  if (!model.ok()) return 0;
  const auto written = tenon::optimizer::Export(*model, out);
  if (!written.ok()) {
    CHECK(written.status().code() != absl::StatusCode::kInternal);
    return 0;
  }
  CHECK(tenon::optimizer::Import(out).ok());
  return 0;
}
