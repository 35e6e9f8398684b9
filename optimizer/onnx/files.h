// Writing files as wholes.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace google::protobuf {
class Message;
}

namespace tenon::optimizer {

// A file under a temporary name beside its target until Commit. What is not committed is removed.
// A target that exists and is no regular file (a device, a pipe) is written to directly.
// Thread-compatible.
class StagedFile {
 public:
  StagedFile() = default;
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  // InvalidArgument: the folder does not exist or cannot be written to.
  Status Open(const std::filesystem::path& target);
  // ResourceExhausted: the disk is full.
  Status Write(std::string_view bytes);
  Status Write(const google::protobuf::Message& message);
  // Pads with zeros to a multiple of `alignment` and returns the size so far.
  StatusOr<std::int64_t> Align(std::int64_t alignment);
  // Synced to the disk, but not under its name yet.
  Status Sync();
  Status Commit();

 private:
  Status Failed(std::string_view what) const;
  std::filesystem::path target_, temporary_;
  int fd_ = -1;
  bool direct_ = false;
  std::int64_t size_ = 0;
};

}  // namespace tenon::optimizer
