// Device files and reports are foreign bytes. The first byte chooses the reader.
#include <cstdint>
#include <string_view>

#include "core/base/check.h"
#include "optimizer/device/roofline.h"
#include "optimizer/explain/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tenon::optimizer;
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0) {
    const auto devices = ParseDevices(text, "fuzz");
    if (!devices.ok()) return 0;
    for (const RooflineParameters& d : *devices) CHECK(d.peak_flops > 0 && d.bandwidth > 0);
    return 0;
  }
  const auto report = ParseReport(text, "fuzz");
  if (!report.ok()) return 0;
  // What was read is written, read again and drawn.
  const auto again = ParseReport(ToJson(*report), "fuzz");
  CHECK(again.ok() && ToJson(*again) == ToJson(*report));
  Explain(*report);
  ToSvg(std::vector{report->before, report->after}, {});
  ToDot(std::vector{report->before, report->after});
  return 0;
}
