#include "client/registry/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

namespace tenon::registry {
namespace {

std::string Reason(int error) { return std::strerror(error); }  // NOLINT: messages only.

Status WriteError(const std::string& path, int error) {
  if (error == ENOSPC || error == EDQUOT) {
    return base::ResourceExhausted(
        fmt::format("{}: cannot be written: {}; free some space", path, Reason(error)));
  }
  return base::InvalidArgument(fmt::format("{}: cannot be written: {}", path, Reason(error)));
}

// Closes on the way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  // The error of closing, or 0: a full disk may show only here.
  int Close() {
    const int result = ::close(fd_);
    fd_ = -1;
    return result == 0 ? 0 : errno;
  }

 private:
  int fd_;
};

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
}

}  // namespace

StatusOr<std::string> ReadFile(const std::string& path, std::uint64_t max_bytes) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    const std::string message = fmt::format("{}: cannot be read: {}", path, Reason(errno));
    return errno == ENOENT ? base::NotFound(message) : base::InvalidArgument(message);
  }
  std::string out;
  std::string buffer(std::size_t{1} << 16, '\0');
  for (;;) {
    const ssize_t n = ::read(fd.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return base::InvalidArgument(fmt::format("{}: cannot be read: {}", path, Reason(errno)));
    }
    if (n == 0) return out;
    out.append(buffer.data(), static_cast<std::size_t>(n));
    if (out.size() > max_bytes) {
      return base::ResourceExhausted(
          fmt::format("{}: it is longer than {} bytes, so it cannot be right", path, max_bytes));
    }
  }
}

Status WriteFile(const std::string& path, std::string_view bytes, const WriteOptions& options) {
  std::string temporary = path + ".XXXXXX";
  Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) return WriteError(path, errno);
  const auto give_up = [&](int error) {
    ::unlink(temporary.c_str());
    return WriteError(path, error);
  };
  if (::fchmod(fd.get(), static_cast<mode_t>(options.mode)) != 0) return give_up(errno);
  if (const int error = WriteAll(fd.get(), bytes)) return give_up(error);
  if (const int error = fd.Close()) return give_up(error);
  if (options.replace) {
    if (::rename(temporary.c_str(), path.c_str()) != 0) return give_up(errno);
  } else {
    // A link, unlike a rename, does not replace.
    const int linked = ::link(temporary.c_str(), path.c_str());
    const int error = errno;
    ::unlink(temporary.c_str());
    if (linked != 0 && error == EEXIST) {
      return absl::AlreadyExistsError(path + " exists already");
    }
    if (linked != 0) return WriteError(path, error);
  }
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const Descriptor directory(
      ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
  return OkStatus();
}

Status MakeDirectories(const std::string& path, unsigned mode) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!parent.empty() && !std::filesystem::exists(parent, error)) {
    RETURN_IF_ERROR(MakeDirectories(parent.string(), mode));
  }
  if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) != 0 && errno != EEXIST) {
    return WriteError(path, errno);
  }
  return OkStatus();
}

}  // namespace tenon::registry
