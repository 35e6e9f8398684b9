#include "optimizer/service/result.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "client/registry/file.h"
#include "client/registry/sha256.h"

namespace tenon::optimizer {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;

}  // namespace

StatusOr<std::shared_ptr<const OpenFile>> OpenFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) {
    return base::NotFound(fmt::format("{}: there is no such file", path));
  }
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    if (fd >= 0) close(fd);
    return base::Internal(fmt::format("{}: it cannot be read: {}", path, std::strerror(errno)));
  }
  return std::shared_ptr<const OpenFile>(new OpenFile(fd, std::uint64_t(info.st_size)));
}

OpenFile::~OpenFile() { close(fd_); }

StatusOr<std::string> OpenFile::Read(std::uint64_t at, std::uint64_t bytes) const {
  if (at > size_ || bytes > size_ - at) return base::DataLoss("the file is too short");
  std::string out(bytes, '\0');
  for (std::uint64_t done = 0; done < bytes;) {
    const ssize_t n = pread(fd_, out.data() + done, bytes - done, off_t(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return base::DataLoss("the file is shorter than it was, or cannot be read");
    done += std::uint64_t(n);
  }
  return out;
}

StatusOr<std::string> OpenFile::HashFrom(std::uint64_t at) const {
  registry::Sha256Stream hash;
  while (at < size_) {
    ASSIGN_OR_RETURN(const std::string block, Read(at, std::min(kBlockBytes, size_ - at)));
    hash.Add(block);
    at += block.size();
  }
  return registry::ToHex(hash.Finish());
}

StatusOr<Result> OpenResult(const std::string& model, const std::string& report) {
  Result out;
  ASSIGN_OR_RETURN(out.report_json, registry::ReadFile(report, kReportBytesMax));
  ASSIGN_OR_RETURN(out.file, OpenFile::Open(model));
  ASSIGN_OR_RETURN(out.sha256, out.file->HashFrom(0));
  return out;
}

}  // namespace tenon::optimizer
