#include "optimizer/onnx/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/core.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/message.h>

namespace tenon::optimizer {

StagedFile::~StagedFile() {
  if (fd_ >= 0) close(fd_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Status StagedFile::Failed(std::string_view what) const {
  const std::string message =
      fmt::format("{}: cannot {}: {}", target_.string(), what, std::strerror(errno));
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? base::ResourceExhausted(message)
                                                              : base::InvalidArgument(message);
}

Status StagedFile::Open(const std::filesystem::path& target) {
  target_ = target;
  struct stat info {};
  if (stat(target.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode)) errno = EISDIR;
    direct_ = !S_ISDIR(info.st_mode);
    if (direct_) fd_ = open(target.c_str(), O_WRONLY | O_CLOEXEC);
    return fd_ < 0 ? Failed("write it") : OkStatus();
  }
  std::string name = target.string() + ".XXXXXX";
  fd_ = mkostemp(name.data(), O_CLOEXEC);
  if (fd_ < 0) return Failed("create a file there");
  temporary_ = name;
  const mode_t mask = umask(0);
  umask(mask);
  return fchmod(fd_, 0666 & ~mask) == 0 ? OkStatus() : Failed("set its mode");
}

Status StagedFile::Write(std::string_view bytes) {
  size_ += std::int64_t(bytes.size());
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failed("write it");
    bytes.remove_prefix(std::size_t(n));
  }
  return OkStatus();
}

Status StagedFile::Write(const google::protobuf::Message& message) {
  google::protobuf::io::FileOutputStream out(fd_);
  const bool done = message.SerializeToZeroCopyStream(&out) && out.Flush();
  if (out.GetErrno() != 0) errno = out.GetErrno();
  if (!done && errno == 0) errno = EFBIG;
  size_ = out.ByteCount();
  return done ? OkStatus() : Failed("write it");
}

StatusOr<std::int64_t> StagedFile::Align(std::int64_t alignment) {
  const std::int64_t rest = (alignment - size_ % alignment) % alignment;
  RETURN_IF_ERROR(Write(std::string(std::size_t(rest), '\0')));
  return size_;
}

Status StagedFile::Sync() {
  if (direct_ || fsync(fd_) == 0) return OkStatus();
  return Failed("sync it");
}

Status StagedFile::Commit() {
  if (close(std::exchange(fd_, -1)) != 0) return Failed("write it");
  if (direct_) return OkStatus();
  if (rename(temporary_.c_str(), target_.c_str()) != 0) return Failed("replace it");
  temporary_.clear();
  // The folder, so that the name survives a crash, too.
  const std::string folder = target_.parent_path().empty() ? "." : target_.parent_path().string();
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd >= 0) {
    fsync(fd);
    close(fd);
  }
  return OkStatus();
}

}  // namespace tenon::optimizer
