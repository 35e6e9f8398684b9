#include "client/cli/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "client/registry/file.h"

namespace tenon::cli {
namespace {

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool Close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status WriteError(const std::string& path, int error) {
  const char* remedy = "name a place that can be written to";
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return base::ResourceExhausted(
          fmt::format("cannot write {}: {}; free space there or name another place", path,
                      std::strerror(error)));
    case ENOENT:
      remedy = "create the folder first, or name another place";
      break;
    case EISDIR:
      remedy = "it is a folder: name a file in it";
      break;
    default:
      break;
  }
  return base::InvalidArgument(
      fmt::format("cannot write {}: {}; {}", path, std::strerror(error), remedy));
}

bool IsSpecial(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

int WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

StatusOr<std::string> ReadText(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    const int error = errno;
    if (error == ENOENT) {
      return base::NotFound(
          fmt::format("cannot read {}: there is no such file; check the path", path));
    }
    return base::InvalidArgument(fmt::format(
        "cannot read {}: {}; check the path and its permissions", path, std::strerror(error)));
  }
  std::string text;
  char block[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.get(), block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return base::InvalidArgument(
          fmt::format("cannot read {}: {}; name a readable file", path, std::strerror(errno)));
    }
    if (n == 0) return text;
    text.append(block, static_cast<std::size_t>(n));
    if (text.size() > kTextBytesMax) {
      return base::ResourceExhausted(fmt::format(
          "cannot read {}: longer than {} MiB; is it the right file?", path, kTextBytesMax >> 20));
    }
  }
}

Status WriteText(const std::string& path, std::string_view text) {
  if (IsSpecial(path)) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (fd.get() < 0) return WriteError(path, errno);
    if (const int error = WriteAll(fd.get(), text); error != 0) return WriteError(path, error);
    return fd.Close() ? OkStatus() : WriteError(path, errno);
  }
  RETURN_IF_ERROR(CheckWritable(path));
  return registry::WriteFile(path, text);
}

Status CheckWritable(const std::string& path) {
  if (path.empty()) return base::InvalidArgument("cannot write a file without a name; name one");
  if (path == "-") {
    return base::InvalidArgument(
        "'-' stands for stdout with --json only; name a file, or ./- if it is to be called so");
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return WriteError(path, EISDIR);
    if (::access(path.c_str(), W_OK) != 0) return WriteError(path, errno);
    if (!S_ISREG(info.st_mode)) return OkStatus();
  }
  // Asking for permission is not enough: a file system may be read-only or hold no files.
  const std::string probe = fmt::format("{}.{}.probe", path, ::getpid());
  Fd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return WriteError(path, errno);
  ::unlink(probe.c_str());
  return OkStatus();
}

Status Deliver(const Json& document, const std::string& where, Console& console) {
  if (where.empty()) return OkStatus();
  if (where == "-") {
    console.PrintDocument(document.Text());
    return OkStatus();
  }
  return WriteText(where, document.Text());
}

Status CheckDeliverable(const std::string& where) {
  return where.empty() || where == "-" ? OkStatus() : CheckWritable(where);
}

}  // namespace tenon::cli
