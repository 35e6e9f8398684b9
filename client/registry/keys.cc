#include "client/registry/keys.h"

#include <sodium.h>
#include <sys/stat.h>

#include <cstdlib>

#include <fmt/core.h>

#include "client/registry/file.h"
#include "client/registry/sha256.h"
#include "core/base/check.h"

namespace tenon::registry {
namespace {

constexpr std::string_view kHead = "tenon ed25519 secret key 1\n";

void Start() { CHECK(sodium_init() >= 0); }  // Idempotent and thread-safe.

const unsigned char* Bytes(std::string_view s) {
  return reinterpret_cast<const unsigned char*>(s.data());
}
unsigned char* Bytes(std::string& s) { return reinterpret_cast<unsigned char*>(s.data()); }

struct Pair {
  std::string public_key = std::string(crypto_sign_PUBLICKEYBYTES, '\0');
  std::string secret = std::string(crypto_sign_SECRETKEYBYTES, '\0');
  ~Pair() { sodium_memzero(secret.data(), secret.size()); }
};
void Derive(const std::string& seed, Pair& pair) {
  Start();
  CHECK(crypto_sign_seed_keypair(Bytes(pair.public_key), Bytes(pair.secret), Bytes(seed)) == 0);
}

}  // namespace

// Moving a short string copies it, so the old one is wiped here as well.
SigningKey::SigningKey(SigningKey&& other) noexcept : seed_(other.seed_) {
  sodium_memzero(other.seed_.data(), other.seed_.size());
  other.seed_.clear();
}

SigningKey::~SigningKey() { sodium_memzero(seed_.data(), seed_.size()); }

SigningKey SigningKey::Generate() {
  Start();
  std::string seed(crypto_sign_SEEDBYTES, '\0');
  randombytes_buf(seed.data(), seed.size());
  return SigningKey(std::move(seed));
}

StatusOr<SigningKey> SigningKey::FromText(std::string_view text) {
  const Status bad = base::InvalidArgument("it is no tenon signing key");
  if (text.substr(0, kHead.size()) != kHead) return bad;
  text.remove_prefix(kHead.size());
  if (!text.empty() && text.back() == '\n') text.remove_suffix(1);
  auto seed = FromHex(text);
  if (!seed || seed->size() != crypto_sign_SEEDBYTES) return bad;
  return SigningKey(*std::move(seed));
}

std::string SigningKey::ToText() const { return std::string(kHead) + ToHex(seed_) + "\n"; }

PublicKey SigningKey::public_key() const {
  Pair pair;
  Derive(seed_, pair);
  return pair.public_key;
}

std::string SigningKey::Sign(std::string_view message) const {
  Pair pair;
  Derive(seed_, pair);
  std::string signature(crypto_sign_BYTES, '\0');
  CHECK(crypto_sign_detached(Bytes(signature), nullptr, Bytes(message), message.size(),
                             Bytes(pair.secret)) == 0);
  return signature;
}

bool Verify(std::string_view message, std::string_view signature, const PublicKey& key) {
  Start();
  return signature.size() == crypto_sign_BYTES && key.size() == crypto_sign_PUBLICKEYBYTES &&
         crypto_sign_verify_detached(Bytes(signature), Bytes(message), message.size(),
                                     Bytes(key)) == 0;
}

StatusOr<std::string> ConfigDirectory() {
  // An empty or relative path does not count, says the XDG specification.
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  if (xdg != nullptr && xdg[0] == '/') return std::string(xdg) + "/tenon";
  const char* home = std::getenv("HOME");
  if (home != nullptr && home[0] != '\0') return std::string(home) + "/.config/tenon";
  return base::InvalidArgument("neither HOME nor XDG_CONFIG_HOME is set; name a key file");
}

StatusOr<SigningKey> LoadKey(const std::string& path) {
  ASSIGN_OR_RETURN(std::string text, ReadFile(path, 4096));
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    return base::InvalidArgument(
        fmt::format("{}: others can read this secret key; chmod 600 it", path));
  }
  auto key = SigningKey::FromText(text);
  sodium_memzero(text.data(), text.size());
  if (!key.ok()) return base::Annotate(key.status(), path);
  return key;
}

Status CreateKey(const std::string& path) {
  std::string text = SigningKey::Generate().ToText();
  const Status status = WriteFile(path, text, {.mode = 0600, .replace = false});
  sodium_memzero(text.data(), text.size());
  if (absl::IsAlreadyExists(status)) {
    return base::InvalidArgument(path + ": there is a key already; keys are not replaced");
  }
  return status;
}

StatusOr<SigningKey> LoadOrCreateKey(const std::string& directory) {
  const std::string path = directory + "/key";
  auto key = LoadKey(path);
  if (key.ok() || !absl::IsNotFound(key.status())) return key;
  RETURN_IF_ERROR(MakeDirectories(directory, 0700));
  const Status created = CreateKey(path);
  // Another process may have been faster.
  auto again = LoadKey(path);
  if (again.ok() || created.ok()) return again;
  return created;
}

}  // namespace tenon::registry
