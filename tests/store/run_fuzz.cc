// Any bytes are a run or DataLoss; a run that was read is written as the same records.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/check.h"
#include "store/run.h"

namespace {

// Nothing when the bytes are no run.
std::optional<std::vector<tenon::store::Record>> Decode(std::string_view bytes) {
  auto reader = tenon::store::RunReader::Open(bytes);
  if (!reader.ok()) return std::nullopt;
  std::vector<tenon::store::Record> records;
  while (reader->remaining() > 0) {
    const auto r = reader->Next();
    if (!r.ok()) return std::nullopt;
    records.push_back(*r);
  }
  return records;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto records = Decode({reinterpret_cast<const char*>(data), size});
  if (!records) return 0;
  const auto again = Decode(tenon::store::EncodeRun(*records));
  CHECK(again.has_value() && *again == *records);
  return 0;
}
