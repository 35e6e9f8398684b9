// Result: an optimized model on disk and its report, as they are sent to a caller.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/base/status.h"

namespace tenon::optimizer {

// An open file, which stays readable when its name goes. Thread-safe.
class OpenFile {
 public:
  // NotFound, Internal: names the file.
  static StatusOr<std::shared_ptr<const OpenFile>> Open(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  std::uint64_t size() const { return size_; }
  // DataLoss: they are not all there.
  StatusOr<std::string> Read(std::uint64_t at, std::uint64_t bytes) const;
  // SHA-256 from `at` to the end, hexadecimal. Errors of Read.
  StatusOr<std::string> HashFrom(std::uint64_t at) const;

 private:
  OpenFile(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
  const int fd_;
  const std::uint64_t size_;
};

// A value type.
struct Result {
  std::string report_json;
  std::shared_ptr<const OpenFile> file;
  std::uint64_t offset = 0;  // Where the model begins in the file; it goes to its end.
  std::string sha256;        // Of the model, hexadecimal.
  bool cached = false;

  std::uint64_t model_bytes() const { return file->size() - offset; }
};

// Of two files. Errors of OpenFile and registry::ReadFile.
StatusOr<Result> OpenResult(const std::string& model, const std::string& report);

inline constexpr std::uint64_t kReportBytesMax = std::uint64_t{256} << 20;

}  // namespace tenon::optimizer
