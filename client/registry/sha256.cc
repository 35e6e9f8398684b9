#include "client/registry/sha256.h"

#include <openssl/evp.h>

#include "core/base/check.h"

namespace tenon::registry {

Digest Sha256(std::string_view bytes) {
  Digest digest{};
  unsigned size = 0;
  CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1);
  CHECK(size == digest.size());
  return digest;
}

struct Sha256Stream::Impl {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256Stream::Sha256Stream() : impl_(std::make_unique<Impl>()) {
  CHECK(EVP_DigestInit_ex(impl_->context, EVP_sha256(), nullptr) == 1);
}
Sha256Stream::~Sha256Stream() { EVP_MD_CTX_free(impl_->context); }

void Sha256Stream::Add(std::string_view bytes) {
  CHECK(EVP_DigestUpdate(impl_->context, bytes.data(), bytes.size()) == 1);
}

Digest Sha256Stream::Finish() {
  Digest digest{};
  unsigned size = 0;
  CHECK(EVP_DigestFinal_ex(impl_->context, digest.data(), &size) == 1);
  CHECK(size == digest.size());
  return digest;
}

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string ToHex(const Digest& digest) {
  return ToHex(std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::optional<std::string> FromHex(std::string_view hex) {
  if (hex.size() % 2 != 0) return std::nullopt;
  std::string out;
  int high = -1;
  for (const char c : hex) {
    const int v = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (v < 0) return std::nullopt;
    if (high < 0) {
      high = v;
    } else {
      out += static_cast<char>(high * 16 + v);
      high = -1;
    }
  }
  return out;
}

}  // namespace tenon::registry
