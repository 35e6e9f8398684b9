// The roofline model: an operator takes the longer of its arithmetic and its memory traffic, and a
// launch.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "optimizer/device/device.h"

namespace tenon::optimizer {

struct RooflineParameters {
  std::string name;
  double peak_flops = 0;     // FLOP/s.
  double bandwidth = 0;      // Bytes/s.
  double launch_us = 0;      // Of each kernel.
  double element_bytes = 2;  // Of every tensor, whatever its type: the model is about shapes.
};

// max(FLOP / peak_flops, bytes / bandwidth) + launch, where bytes are those of each different
// operand and of the output, once. Free are: Split and Slice (strided views for whoever reads them)
// and Reshape. An opaque operator costs its bytes and a launch; if it has several outputs, each is
// charged for itself, and output 0 for the operands and the launch.
class Roofline : public Device {
 public:
  // `spec` is what name() returns.
  Roofline(std::string spec, RooflineParameters parameters);

  const std::string& name() const override { return spec_; }
  double CostOf(const graph::Graph& g, graph::NodeId id) const override;
  const RooflineParameters& parameters() const { return parameters_; }

 private:
  std::string spec_;
  RooflineParameters parameters_;
};

// Reads a device file; `file` is only a name. InvalidArgument: "FILE:LINE: what is wrong".
StatusOr<std::vector<RooflineParameters>> ParseDevices(std::string_view text,
                                                       std::string_view file);
// The text of the devices that are built in.
std::string_view BuiltInDevices();

}  // namespace tenon::optimizer
