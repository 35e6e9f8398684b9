#include "client/registry/cache.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include <fmt/core.h>

#include "client/registry/file.h"

namespace tenon::registry {
namespace {

constexpr std::uint64_t kSmallFileMax = 4096;
constexpr std::string_view kNewest = "newest";
constexpr const char* kSuffix = ".pack";

std::string Line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

StatusOr<std::string> PackCache::DefaultDirectory() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/tenon/packs";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] != '\0') return std::string(home) + "/.cache/tenon/packs";
  return base::InvalidArgument("neither HOME nor XDG_CACHE_HOME is set");
}

std::string PackCache::FilePath(std::string_view name, std::string_view version) const {
  return fmt::format("{}/{}/{}{}", directory_, name, version, kSuffix);
}

StatusOr<PackFile> PackCache::Put(std::string_view file_bytes) {
  ASSIGN_OR_RETURN(PackFile file, DecodePackFile(file_bytes));
  const std::string version = pack::ToString(file.version);
  const std::string path = FilePath(file.name, version);
  RETURN_IF_ERROR(MakeDirectories(fmt::format("{}/{}", directory_, file.name), 0755));
  const Status status = WriteFile(path, file_bytes, {.replace = false});
  if (absl::IsAlreadyExists(status)) {
    ASSIGN_OR_RETURN(const PackFile there, ReadPackFile(path, {.require_signature = false}));
    if (there.address != file.address) {
      return base::FailedPrecondition(fmt::format(
          "{} is known with other content ({}); a version never changes, publish a new one",
          file.reference(), there.address));
    }
  } else if (!status.ok()) {
    return status;
  }
  const std::string newest = fmt::format("{}/{}/{}", directory_, file.name, kNewest);
  const auto seen = ReadFile(newest, kSmallFileMax);
  const auto highest = pack::ParseVersion(seen.ok() ? Line(*seen) : "");
  if (!highest.ok() || *highest < file.version) RETURN_IF_ERROR(WriteFile(newest, version + "\n"));
  return file;
}

std::optional<pack::Version> PackCache::Newest(std::string_view name) const {
  const auto seen = ReadFile(fmt::format("{}/{}/{}", directory_, name, kNewest), kSmallFileMax);
  if (!seen.ok()) return std::nullopt;
  const auto version = pack::ParseVersion(Line(*seen));
  if (!version.ok()) return std::nullopt;
  return *version;
}

StatusOr<std::string> PackCache::Find(std::string_view reference) const {
  const std::size_t at = reference.find('@');
  const std::string name(reference.substr(0, at));
  if (!pack::IsPackName(name)) {
    return base::InvalidArgument(
        fmt::format("'{}' is no pack; write NAME or NAME@VERSION", reference));
  }
  const bool any = at == std::string_view::npos;
  std::string version(any ? "" : reference.substr(at + 1));
  if (any) {
    const auto newest = ReadFile(fmt::format("{}/{}/{}", directory_, name, kNewest), kSmallFileMax);
    if (!newest.ok()) {
      return base::NotFound(fmt::format("there is no pack {} in {}", name, directory_));
    }
    version = Line(*newest);
  }
  RETURN_IF_ERROR(pack::ParseVersion(version).status());
  const std::string path = FilePath(name, version);
  std::error_code error;
  if (std::filesystem::exists(path, error)) return path;
  if (any) {
    return base::FailedPrecondition(fmt::format(
        "the newest pack {} was version {} and is gone from {}; name an older one to go back", name,
        version, directory_));
  }
  return base::NotFound(fmt::format("there is no pack {} in {}", reference, directory_));
}

StatusOr<std::vector<PackCache::Entry>> PackCache::List() const {
  std::vector<Entry> out;
  std::error_code error;
  for (const auto& name : std::filesystem::directory_iterator(directory_, error)) {
    std::error_code inner;
    for (const auto& file : std::filesystem::directory_iterator(name.path(), inner)) {
      if (file.path().extension() != kSuffix) continue;
      const auto version = pack::ParseVersion(file.path().stem().string());
      if (!version.ok()) continue;
      out.push_back({name.path().filename().string(), *version, file.path().string()});
    }
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.name, a.version) < std::tie(b.name, b.version);
  });
  return out;
}

}  // namespace tenon::registry
