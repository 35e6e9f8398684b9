#include "optimizer/device/cost_cache.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/base/bytes.h"
#include "store/store.h"

namespace tenon::optimizer {
namespace {

constexpr std::chrono::seconds kPatience{10};
constexpr std::size_t kCacheBytes = std::size_t{1} << 20;
constexpr char kVersion = 1;
constexpr std::size_t kValueBytes = 1 + 8 + 8 + 4;
constexpr int kSamplesMax = 1'000'000;
constexpr std::size_t kTextMax = 4096;
constexpr std::string_view kFormat = "tenon costs 1";

using Json = nlohmann::ordered_json;

// Device and operation hold no line break (IsText), so one ends the first.
std::string KeyOf(std::string_view device, std::string_view operation) {
  std::string key(device);
  key += '\n';
  key += operation;
  return key;
}

std::string ValueOf(const Measurement& m) {
  std::string value(1, kVersion);
  store::AppendU64(value, std::bit_cast<std::uint64_t>(m.warm_us));
  store::AppendU64(value, std::bit_cast<std::uint64_t>(m.cold_us));
  store::AppendU32(value, std::uint32_t(m.samples));
  return value;
}

bool IsTime(double us) { return std::isfinite(us) && us > 0; }

bool IsText(std::string_view text) {
  return !text.empty() && text.size() <= kTextMax &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

StatusOr<Measurement> ParseValue(std::string_view value, std::string_view key) {
  if (value.size() != kValueBytes || value[0] != kVersion) {
    return base::DataLoss(fmt::format("the cost of '{}' has another form; delete the cache", key));
  }
  Measurement m;
  m.warm_us = std::bit_cast<double>(store::ReadU64(value.substr(1)));
  m.cold_us = std::bit_cast<double>(store::ReadU64(value.substr(9)));
  m.samples = int(store::ReadU32(value.substr(17)));
  if (!IsTime(m.warm_us) || !IsTime(m.cold_us)) {
    return base::DataLoss(fmt::format("the cost of '{}' is no time; delete the cache", key));
  }
  return m;
}

StatusOr<std::unique_ptr<store::Store>> Open(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    return base::InvalidArgument(
        fmt::format("cost cache {}: {}; give another --cost-cache", directory, error.message()));
  }
  return store::Store::Open(directory, {.lock_patience = kPatience, .cache_bytes = kCacheBytes});
}

StatusOr<CostEntry> EntryOf(std::string_view key, std::string_view value) {
  const std::size_t end = key.find('\n');
  if (end == std::string_view::npos) {
    return base::DataLoss(fmt::format("'{}' is no key of a cost; delete the cache", key));
  }
  ASSIGN_OR_RETURN(const Measurement m, ParseValue(value, key.substr(end + 1)));
  return CostEntry{std::string(key.substr(0, end)), std::string(key.substr(end + 1)), m};
}

StatusOr<std::vector<CostEntry>> Read(const std::string& directory, std::string_view prefix) {
  std::vector<CostEntry> entries;
  if (!std::filesystem::exists(directory)) return entries;
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, Open(directory));
  const Status scanned = store->Scan(store::Family::kCosts, prefix,
                                     [&](std::string_view key, std::string_view value) -> Status {
                                       ASSIGN_OR_RETURN(CostEntry entry, EntryOf(key, value));
                                       entries.push_back(std::move(entry));
                                       return OkStatus();
                                     });
  if (!scanned.ok()) return base::Annotate(scanned, fmt::format("cost cache {}", directory));
  return entries;
}

// One element of "costs". Throws nlohmann's exceptions.
StatusOr<CostEntry> EntryOf(const Json& j) {
  CostEntry e{j.at("device").get<std::string>(),
              j.at("operation").get<std::string>(),
              {j.at("warm_us").get<double>(), j.at("cold_us").get<double>(), 0}};
  const std::int64_t samples = j.at("samples").get<std::int64_t>();
  const auto error = [&](std::string_view what) {
    return base::InvalidArgument(fmt::format("operation '{}': {}", e.operation, what));
  };
  if (!IsText(e.device) || !IsText(e.operation)) {
    return base::InvalidArgument("a device or an operation is no line of printable ASCII");
  }
  if (!IsTime(e.measurement.warm_us) || !IsTime(e.measurement.cold_us)) {
    return error("a time is not above 0");
  }
  if (samples < 1 || samples > kSamplesMax) return error("samples is out of range");
  e.measurement.samples = int(samples);
  return e;
}

StatusOr<std::vector<CostEntry>> EntriesOf(const Json& document) {
  if (document.at("format").get<std::string>() != kFormat) {
    return base::InvalidArgument(fmt::format("its format is not '{}'", kFormat));
  }
  std::vector<CostEntry> entries;
  std::set<std::string> seen;
  for (const Json& j : document.at("costs")) {
    ASSIGN_OR_RETURN(CostEntry entry, EntryOf(j));
    if (!seen.insert(KeyOf(entry.device, entry.operation)).second) {
      return base::InvalidArgument(fmt::format("operation '{}' is there twice", entry.operation));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

StatusOr<std::string> DefaultCostCache() {
  const char* xdg = std::getenv("XDG_CACHE_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/tenon/costs";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] != '\0') return std::string(home) + "/.cache/tenon/costs";
  return base::InvalidArgument(
      "neither HOME nor XDG_CACHE_HOME is set; give --cost-cache DIRECTORY");
}

StatusOr<std::map<std::string, Measurement>> ReadCosts(const std::string& directory,
                                                       std::string_view device) {
  ASSIGN_OR_RETURN(const std::vector<CostEntry> entries, Read(directory, KeyOf(device, "")));
  std::map<std::string, Measurement> costs;
  for (const CostEntry& e : entries) costs.emplace(e.operation, e.measurement);
  return costs;
}

StatusOr<std::vector<CostEntry>> ReadAllCosts(const std::string& directory) {
  return Read(directory, "");
}

StatusOr<int> AddCosts(const std::string& directory, std::span<const CostEntry> entries) {
  if (entries.empty()) return 0;
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store, Open(directory));
  store::Batch batch;
  for (const CostEntry& e : entries) {
    CHECK(IsText(e.device) && IsText(e.operation));
    const std::string key = KeyOf(e.device, e.operation);
    ASSIGN_OR_RETURN(const auto there, store->Get(store::Family::kCosts, key));
    if (!there) batch.Put(store::Family::kCosts, key, ValueOf(e.measurement));
  }
  if (!batch.empty()) RETURN_IF_ERROR(store->Write(batch));
  return int(batch.changes().size());
}

std::string CostsToJson(std::span<const CostEntry> entries) {
  Json costs = Json::array();
  for (const CostEntry& e : entries) {
    costs.push_back({{"device", e.device},
                     {"operation", e.operation},
                     {"warm_us", e.measurement.warm_us},
                     {"cold_us", e.measurement.cold_us},
                     {"samples", e.measurement.samples}});
  }
  return Json{{"format", kFormat}, {"costs", std::move(costs)}}.dump(2) + "\n";
}

StatusOr<std::vector<CostEntry>> ParseCosts(std::string_view json, std::string_view file) {
  StatusOr<std::vector<CostEntry>> entries = std::vector<CostEntry>();
  try {
    entries = EntriesOf(Json::parse(json));
  } catch (const nlohmann::json::exception& e) {
    entries = base::InvalidArgument(fmt::format("no file of costs: {}", e.what()));
  }
  if (!entries.ok()) return base::Annotate(entries.status(), file);
  return entries;
}

}  // namespace tenon::optimizer
