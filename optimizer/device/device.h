// Device: what it takes to run one node of a graph, in microseconds; and the devices there are.
//
// A device is named by a spec. A roofline estimates and never measures: "roofline:h100" and
// "roofline:weak" are built in, "roofline:FILE" reads a device file (docs/formats/device.md) that
// holds one device, "roofline:FILE#NAME" picks one of several. "cpu" measures on this machine
// (docs/devices.md): "cpu:threads=2,cache=cold" with two threads and tensors that are in no cache;
// without them, one thread and warm caches. "cuda" measures on its GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/graph/graph.h"

namespace tenon::optimizer {

// Immutable after construction, thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  // The spec by which OpenDevice finds it again: "roofline:h100".
  virtual const std::string& name() const = 0;
  // The spec and, for a device that measures, on what: library, version, hardware, threads. One
  // line for reports.
  virtual std::string description() const { return name(); }

  // Microseconds of computing node `id` of `g` once its operands are there; at least 0, finite. 0
  // for inputs and for what depends on weights only, which is computed before run time. The cost
  // of a graph is the sum over its nodes: kernels run one after another.
  virtual double CostOf(const graph::Graph& g, graph::NodeId id) const = 0;

  // What a user should know of the prices given so far, a line each.
  virtual std::vector<std::string> Notes() const { return {}; }
};

struct DeviceOptions {
  // Where measured costs are kept: a directory, made if missing. Empty: not kept.
  std::string cost_cache;
};

// InvalidArgument for an unknown spec (the message lists the known ones) or a malformed file
// ("FILE:LINE: what is wrong"), NotFound for a file that cannot be read, FailedPrecondition for
// "cuda" where there is no GPU or no module for it; errors of the cost cache (cost_cache.h).
StatusOr<std::unique_ptr<const Device>> OpenDevice(std::string_view spec,
                                                   const DeviceOptions& options = {});

// Whether the spec names a device that measures.
bool IsMeasured(std::string_view spec);
class MeasuredDevice;
// The same for those only, to fill their cache (measured.h).
StatusOr<std::unique_ptr<MeasuredDevice>> OpenMeasured(std::string_view spec,
                                                       const DeviceOptions& options);

// What the nodes that `roots` reach cost together, each counted once.
struct GraphCost {
  double us = 0;
  int nodes = 0;         // Operators that run, that is, not those that depend on weights only.
  int opaque = 0;        // Of these, operators that the device knows only by their operands' sizes.
  int unknown_size = 0;  // Of these, operators with an extent known at run time only (taken as 1).
};
GraphCost CostOfGraph(const Device& device, const graph::Graph& g,
                      std::span<const graph::NodeId> roots);

// A bound that no graph with the same outputs falls below, whatever rules are applied: the cost of
// the opaque nodes that are outputs or operands of such a node. Rules never look into opaque nodes,
// so these stay. Everything else might turn out to be removable, so the bound is 0 for a graph that
// is understood in full; it is sound, not tight.
double LowerBound(const Device& device, const graph::Graph& g,
                  std::span<const graph::NodeId> roots);

}  // namespace tenon::optimizer
