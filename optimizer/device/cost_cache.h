// Costs that were measured, on disk: a store (store/store.h) whose family `costs` is described in
// docs/formats/costs.md, and a JSON file to carry them to another machine.
//
// The store is open for moments only, so processes and devices share one; who finds it open waits.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "optimizer/device/meter.h"

namespace tenon::optimizer {

struct CostEntry {
  std::string device;     // Meter::identity().
  std::string operation;  // TextOf(operation).
  Measurement measurement;
  friend bool operator==(const CostEntry&, const CostEntry&) = default;
};

// $XDG_CACHE_HOME/tenon/costs or $HOME/.cache/tenon/costs. InvalidArgument: neither is set.
StatusOr<std::string> DefaultCostCache();

// The costs of one device by operation; none if there is no such store. Errors of store::Store;
// FailedPrecondition too when another process does not let go of it for ten seconds.
StatusOr<std::map<std::string, Measurement>> ReadCosts(const std::string& directory,
                                                       std::string_view device);
// Those of all devices, in the order of device, operation.
StatusOr<std::vector<CostEntry>> ReadAllCosts(const std::string& directory);

// Adds entries, all or none, durably. One that is there already stays as it is, so what a result
// was computed with does not change under it. The number of entries that were added.
StatusOr<int> AddCosts(const std::string& directory, std::span<const CostEntry> entries);

// The JSON document, with a line break at its end, and back. InvalidArgument: "FILE: what is
// wrong": no such document, a field missing or of another type, a time that is not above 0 and
// finite, text that is no printable ASCII, an operation twice.
std::string CostsToJson(std::span<const CostEntry> entries);
StatusOr<std::vector<CostEntry>> ParseCosts(std::string_view json, std::string_view file);

}  // namespace tenon::optimizer
