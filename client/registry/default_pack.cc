#include "client/registry/default_pack.h"

// The file as it is, from the folder that CMake names.
asm(R"(
  .section .rodata
  .balign 16
  .globl tenon_default_pack, tenon_default_pack_end
  .hidden tenon_default_pack, tenon_default_pack_end
tenon_default_pack:
  .incbin ")" TENON_DEFAULT_PACK R"("
tenon_default_pack_end:
  .previous
)");

extern "C" {
__attribute__((visibility("hidden"))) extern const char tenon_default_pack[];
__attribute__((visibility("hidden"))) extern const char tenon_default_pack_end[];
}

namespace tenon::registry {

std::string_view DefaultPackBytes() {
  return {tenon_default_pack,
          static_cast<std::size_t>(tenon_default_pack_end - tenon_default_pack)};
}

}  // namespace tenon::registry
