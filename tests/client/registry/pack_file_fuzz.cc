// Foreign bytes as a pack file, as they are and with a checksum that fits. What is accepted without
// a signature is written to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "client/registry/pack_file.h"
#include "client/registry/sha256.h"
#include "core/base/check.h"

namespace {

void Read(const std::string& bytes) {
  const auto pack = tenon::registry::DecodePackFile(bytes);
  if (!pack.ok()) return;
  if (!pack->signer) {
    const auto again = tenon::registry::EncodePackFile(*pack, nullptr);
    CHECK(again.ok() && *again == bytes);
  }
  (void)tenon::pack::TextView(pack->content, pack->reference());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Read(bytes);
  if (bytes.size() < 32) return 0;
  bytes.resize(bytes.size() - 32);
  const tenon::registry::Digest digest = tenon::registry::Sha256(bytes);
  bytes.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  Read(bytes);
  return 0;
}
