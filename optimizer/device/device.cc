#include "optimizer/device/device.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "optimizer/device/cpu/meter.h"
#include "optimizer/device/cuda/meter.h"
#include "optimizer/device/measured.h"
#include "optimizer/device/roofline.h"

namespace tenon::optimizer {
namespace {

constexpr std::string_view kRoofline = "roofline:";
// Device files are a few lines; anything larger was named by mistake.
constexpr std::size_t kFileLimitBytes = 1 << 20;

StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return base::NotFound(fmt::format("{}: {} (built in are roofline:h100 and roofline:weak)", path,
                                      std::strerror(errno)));
  }
  std::string text(kFileLimitBytes + 1, '\0');
  in.read(text.data(), std::streamsize(text.size()));
  text.resize(std::size_t(in.gcount()));
  if (in.bad()) return base::NotFound(fmt::format("{}: cannot be read as a file", path));
  if (text.size() > kFileLimitBytes) {
    return base::InvalidArgument(fmt::format("{}: larger than 1 MiB, so no device file", path));
  }
  return text;
}

const RooflineParameters* FindDevice(const std::vector<RooflineParameters>& devices,
                                     std::string_view name) {
  const auto it = std::ranges::find(devices, name, &RooflineParameters::name);
  return it == devices.end() ? nullptr : &*it;
}

StatusOr<std::unique_ptr<const Device>> OpenFile(std::string_view spec, std::string_view target) {
  const std::size_t hash = target.rfind('#');
  const std::string path(target.substr(0, hash));
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(const std::vector<RooflineParameters> devices, ParseDevices(text, path));
  std::string names;
  for (const RooflineParameters& d : devices) names += (names.empty() ? "" : ", ") + d.name;
  const RooflineParameters* chosen = &devices.front();
  if (hash != std::string_view::npos) {
    chosen = FindDevice(devices, target.substr(hash + 1));
    if (chosen == nullptr) {
      return base::InvalidArgument(
          fmt::format("{}: no device '{}' (it has: {})", path, target.substr(hash + 1), names));
    }
  } else if (devices.size() > 1) {
    return base::InvalidArgument(
        fmt::format("{}: has several devices ({}): name one as roofline:{}#{}", path, names, path,
                    devices.front().name));
  }
  return std::make_unique<const Roofline>(std::string(spec), *chosen);
}

Status UnknownSpec(std::string_view spec) {
  return base::InvalidArgument(fmt::format(
      "device '{}' is unknown: name cpu, cpu:threads=N,cache=warm|cold, cuda, roofline:h100, "
      "roofline:weak or roofline:FILE with a device file",
      spec));
}

// "cpu" of "cpu:threads=2".
std::string_view NameOfSpec(std::string_view spec) { return spec.substr(0, spec.find(':')); }

// What follows the name of a device that measures.
struct MeterSpec {
  bool gpu = false;
  int threads = 1;  // Not of a GPU.
  CacheState state = CacheState::kWarm;
};

constexpr int kThreadsMax = 1024;

StatusOr<MeterSpec> ParseMeterSpec(std::string_view spec) {
  MeterSpec out{.gpu = NameOfSpec(spec) == "cuda"};
  std::string_view rest = spec.substr(NameOfSpec(spec).size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(word.size());
    constexpr std::string_view kThreads = "threads=";
    const char* end = word.data() + word.size();
    if (word == "cache=warm" || word == "cache=cold") {
      out.state = word == "cache=warm" ? CacheState::kWarm : CacheState::kCold;
    } else if (word.starts_with(kThreads) && !out.gpu) {
      const auto [last, error] = std::from_chars(word.data() + kThreads.size(), end, out.threads);
      if (error != std::errc() || last != end || out.threads < 1 || out.threads > kThreadsMax) {
        return base::InvalidArgument(fmt::format("device '{}': '{}' is not a number of threads",
                                                 spec, word.substr(kThreads.size())));
      }
    } else {
      return UnknownSpec(spec);
    }
  }
  return out;
}

bool HasUnknownSize(const graph::Graph& g, const graph::Node& n) {
  bool known = graph::IsConcrete(n.shape());
  for (const graph::NodeId o : n.operands) known = known && graph::IsConcrete(g.shape(o));
  return !known;
}

}  // namespace

StatusOr<std::unique_ptr<const Device>> OpenDevice(std::string_view spec,
                                                   const DeviceOptions& options) {
  if (IsMeasured(spec)) {
    ASSIGN_OR_RETURN(std::unique_ptr<MeasuredDevice> device, OpenMeasured(spec, options));
    return std::unique_ptr<const Device>(std::move(device));
  }
  if (!spec.starts_with(kRoofline) || spec.size() == kRoofline.size()) return UnknownSpec(spec);
  const std::string_view target = spec.substr(kRoofline.size());
  ASSIGN_OR_RETURN(const std::vector<RooflineParameters> built_in,
                   ParseDevices(BuiltInDevices(), "built-in devices"));
  if (const RooflineParameters* d = FindDevice(built_in, target)) {
    return std::make_unique<const Roofline>(std::string(spec), *d);
  }
  return OpenFile(spec, target);
}

bool IsMeasured(std::string_view spec) {
  return NameOfSpec(spec) == "cpu" || NameOfSpec(spec) == "cuda";
}

StatusOr<std::unique_ptr<MeasuredDevice>> OpenMeasured(std::string_view spec,
                                                       const DeviceOptions& options) {
  if (!IsMeasured(spec)) {
    return base::InvalidArgument(fmt::format(
        "device '{}' measures nothing: name cpu, cpu:threads=N,cache=cold, cuda or cuda:cache=cold",
        spec));
  }
  ASSIGN_OR_RETURN(const MeterSpec what, ParseMeterSpec(spec));
  ASSIGN_OR_RETURN(std::unique_ptr<Meter> meter, what.gpu ? cuda::OpenMeter(cuda::DefaultModule())
                                                          : cpu::OpenMeter(what.threads));
  return MeasuredDevice::Create(std::string(spec), std::move(meter),
                                {.state = what.state, .cost_cache = options.cost_cache});
}

GraphCost CostOfGraph(const Device& device, const graph::Graph& g,
                      std::span<const graph::NodeId> roots) {
  GraphCost cost;
  for (const graph::NodeId id : g.Reachable(roots)) {
    const graph::Node& n = g.node(id);
    if (n.is_input() || n.weights_only) continue;
    cost.us += device.CostOf(g, id);
    ++cost.nodes;
    cost.opaque += ops::IsOpaque(*n.op) ? 1 : 0;
    cost.unknown_size += HasUnknownSize(g, n) ? 1 : 0;
  }
  return cost;
}

double LowerBound(const Device& device, const graph::Graph& g,
                  std::span<const graph::NodeId> roots) {
  std::vector<bool> stays(g.size(), false);
  std::vector<graph::NodeId> open(roots.begin(), roots.end());
  double us = 0;
  while (!open.empty()) {
    const graph::NodeId id = open.back();
    open.pop_back();
    const graph::Node& n = g.node(id);
    if (n.is_input() || !ops::IsOpaque(*n.op) || stays[std::size_t(id)]) continue;
    stays[std::size_t(id)] = true;
    us += device.CostOf(g, id);
    open.insert(open.end(), n.operands.begin(), n.operands.end());
  }
  return us;
}

}  // namespace tenon::optimizer
