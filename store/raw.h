// What lies in a store, without checks: for tests that damage it.
#pragma once

#include <string>

namespace tenon::store {

// The stored bytes of a key, checksum included. `directory` has a store that nobody has open, with
// that family and key; CHECKed.
std::string ReadRaw(const std::string& directory, const std::string& family,
                    const std::string& key);
void WriteRaw(const std::string& directory, const std::string& family, const std::string& key,
              const std::string& bytes);

}  // namespace tenon::store
