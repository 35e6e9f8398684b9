// Signing keys: ed25519 by libsodium. A key file is text: a line that says what it is and a line of
// hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

#include "core/base/status.h"

namespace tenon::registry {

// 32 bytes; its hexadecimal text names the signer.
using PublicKey = std::string;

// Not printed, not copied, wiped when it goes. Immutable and thread-safe.
class SigningKey {
 public:
  SigningKey(SigningKey&& other) noexcept;
  SigningKey& operator=(SigningKey&&) = delete;
  ~SigningKey();

  static SigningKey Generate();
  // InvalidArgument when the text is no key.
  static StatusOr<SigningKey> FromText(std::string_view text);
  std::string ToText() const;

  PublicKey public_key() const;
  // 64 bytes.
  std::string Sign(std::string_view message) const;

 private:
  explicit SigningKey(std::string seed) : seed_(std::move(seed)) {}
  std::string seed_;
};

bool Verify(std::string_view message, std::string_view signature, const PublicKey& key);

// $XDG_CONFIG_HOME/tenon or $HOME/.config/tenon; InvalidArgument when neither is set.
StatusOr<std::string> ConfigDirectory();

// Reads `path`. InvalidArgument when others may read it (chmod 600) or it is no key; NotFound.
StatusOr<SigningKey> LoadKey(const std::string& path);
// Makes a key file that only its owner can read. InvalidArgument when there is one already: keys
// are never replaced.
Status CreateKey(const std::string& path);
// The key `key` of `directory`, made on first use.
StatusOr<SigningKey> LoadOrCreateKey(const std::string& directory);

}  // namespace tenon::registry
