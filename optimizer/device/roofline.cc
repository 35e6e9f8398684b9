#include "optimizer/device/roofline.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include <fmt/core.h>

#include "core/eval/eval.h"

namespace tenon::optimizer {
namespace {

// An extent that only run time knows counts as 1, before and after alike.
graph::Extents KnownExtents(const graph::Shape& shape) {
  graph::Extents out;
  for (const base::Poly& p : shape) out.push_back(p.is_constant() ? p.constant() : 1);
  return out;
}

double Elements(const graph::Extents& extents) {
  double n = 1;
  for (const std::int64_t e : extents) n *= double(e);
  return n;
}

// Floating point operations. WorkOf counts each output element as if it were computed alone;
// Softmax and normalizations share their sums along the axes.
double Flops(const ops::Operator& op, std::span<const graph::Extents> operands,
             const graph::Extents& output) {
  if (std::holds_alternative<ops::Softmax>(op)) return 18 * Elements(output);
  if (std::holds_alternative<ops::LayerNormalization>(op)) return 8 * Elements(output);
  if (std::holds_alternative<ops::RMSNormalization>(op)) return 5 * Elements(output);
  if (const auto* fused = std::get_if<ops::Conv>(&op)) {
    ops::Conv plain = *fused;
    plain.residual = 0;
    plain.activation = ops::Activation::kNone;
    return eval::WorkOf(plain, operands.first(2), output).flops;
  }
  return eval::WorkOf(op, operands, output).flops;
}

bool IsView(const ops::Operator& op) {
  return std::holds_alternative<ops::Split>(op) || std::holds_alternative<ops::Slice>(op) ||
         std::holds_alternative<ops::Reshape>(op);
}

constexpr std::string_view kBuiltIn = R"(# peak_flops in FLOP/s, bandwidth in bytes/s.
device h100
  peak_flops 989e12
  bandwidth  3.35e12
  launch_us  4

device weak
  peak_flops 4e12
  bandwidth  100e9
  launch_us  10
)";

// One pass over the lines; a device ends where the next begins.
class DeviceReader {
 public:
  DeviceReader(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  StatusOr<std::vector<RooflineParameters>> Read() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++line_;
      line = line.substr(0, line.find('#'));
      RETURN_IF_ERROR(ReadLine(line));
    }
    RETURN_IF_ERROR(Finish());
    if (out_.empty()) return Error("no device is defined (a definition begins: device NAME)");
    return std::move(out_);
  }

 private:
  Status Error(const std::string& what) const {
    return base::InvalidArgument(fmt::format("{}:{}: {}", file_, line_, what));
  }
  static std::string_view Word(std::string_view& line) {
    constexpr std::string_view kBlank = " \t\r";
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(kBlank)));
    const std::string_view word = line.substr(0, line.find_first_of(kBlank));
    line.remove_prefix(word.size());
    return word;
  }
  Status ReadLine(std::string_view line) {
    const std::string_view key = Word(line);
    if (key.empty()) return OkStatus();
    const std::string_view value = Word(line);
    if (value.empty()) return Error(fmt::format("'{}' needs a value", key));
    if (!Word(line).empty()) return Error(fmt::format("more than one value for '{}'", key));
    if (key == "device") return Begin(value);
    if (out_.empty()) return Error("expected: device NAME");
    RooflineParameters& d = out_.back();
    double* field = key == "peak_flops"      ? &d.peak_flops
                    : key == "bandwidth"     ? &d.bandwidth
                    : key == "launch_us"     ? &d.launch_us
                    : key == "element_bytes" ? &d.element_bytes
                                             : nullptr;
    if (field == nullptr) {
      return Error(fmt::format(
          "unknown field '{}' (known: peak_flops, bandwidth, launch_us, element_bytes)", key));
    }
    const std::string number(value);
    char* end = nullptr;
    *field = std::strtod(number.c_str(), &end);
    if (*end != '\0' || !std::isfinite(*field) || *field < 0) {
      return Error(fmt::format("'{}' is not a number of 0 or more", number));
    }
    return OkStatus();
  }
  Status Begin(std::string_view name) {
    RETURN_IF_ERROR(Finish());
    for (const RooflineParameters& d : out_) {
      if (d.name == name) return Error(fmt::format("device '{}' is defined twice", name));
    }
    out_.push_back({.name = std::string(name)});
    return OkStatus();
  }
  Status Finish() const {
    if (out_.empty()) return OkStatus();
    const RooflineParameters& d = out_.back();
    if (!(d.peak_flops > 0) || !(d.bandwidth > 0) || !(d.element_bytes > 0)) {
      return Error(
          fmt::format("device '{}' needs peak_flops, bandwidth and element_bytes above 0", d.name));
    }
    return OkStatus();
  }

  std::string_view rest_, file_;
  int line_ = 0;
  std::vector<RooflineParameters> out_;
};

}  // namespace

Roofline::Roofline(std::string spec, RooflineParameters parameters)
    : spec_(std::move(spec)), parameters_(std::move(parameters)) {}

double Roofline::CostOf(const graph::Graph& g, graph::NodeId id) const {
  const graph::Node& n = g.node(id);
  if (n.is_input() || n.weights_only || IsView(*n.op)) return 0;
  const graph::Extents output = KnownExtents(n.shape());
  std::vector<graph::Extents> operands;
  double elements = Elements(output);
  for (std::size_t k = 0; k < n.operands.size(); ++k) {
    operands.push_back(KnownExtents(g.shape(n.operands[k])));
    const bool seen = std::find(n.operands.begin(), n.operands.begin() + std::ptrdiff_t(k),
                                n.operands[k]) != n.operands.begin() + std::ptrdiff_t(k);
    if (!seen) elements += Elements(operands.back());
  }
  double flops = 0;
  double launch_us = parameters_.launch_us;
  if (const auto* opaque = std::get_if<ops::Opaque>(n.op.get())) {
    if (opaque->output != 0) {
      elements = Elements(output);
      launch_us = 0;
    }
  } else {
    bool known = graph::IsConcrete(n.shape());
    for (const graph::NodeId o : n.operands) known = known && graph::IsConcrete(g.shape(o));
    if (known) flops = Flops(*n.op, operands, output);
  }
  const double seconds = std::max(flops / parameters_.peak_flops,
                                  elements * parameters_.element_bytes / parameters_.bandwidth);
  return seconds * 1e6 + launch_us;
}

StatusOr<std::vector<RooflineParameters>> ParseDevices(std::string_view text,
                                                       std::string_view file) {
  return DeviceReader(text, file).Read();
}

std::string_view BuiltInDevices() { return kBuiltIn; }

}  // namespace tenon::optimizer
