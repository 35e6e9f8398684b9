// Pack files, keys and the cache: what is written is read back, and every damage is an error.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "client/registry/cache.h"
#include "client/registry/file.h"
#include "client/registry/keys.h"
#include "client/registry/pack_file.h"
#include "client/registry/sha256.h"
#include "core/rules/text.h"

namespace tenon::registry {
namespace {

class RegistryTest : public testing::Test {
 protected:
  RegistryTest() {
    std::string path = testing::TempDir() + "/registry.XXXXXX";
    directory_ = ::mkdtemp(path.data());
  }
  ~RegistryTest() override { std::filesystem::remove_all(directory_); }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::size_t FileCount() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }
  std::string directory_;
};

PackFile Sample(const std::string& rule = "Transpose(Transpose(a))") {
  PackFile file;
  file.name = "matrix";
  file.version = {1, 0, 0};
  file.content.universe = "name: \"matrix\"\n";
  auto parsed = rules::ParseRule("rule t given a[m,n] source " + rule + " target a");
  EXPECT_TRUE(parsed.ok());
  file.content.rules.push_back({*std::move(parsed), ""});
  file.provenance = {"test", "0.1.0", 1700000000};
  return file;
}

TEST(Sha256Test, KnownDigests) {
  EXPECT_EQ(ToHex(Sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(ToHex(Sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(FromHex("00ff"), std::string("\x00\xff", 2));
  EXPECT_FALSE(FromHex("0").has_value());
  EXPECT_FALSE(FromHex("0G").has_value());
}

TEST_F(RegistryTest, KeysSignAndOthersDoNot) {
  const SigningKey key = SigningKey::Generate(), other = SigningKey::Generate();
  const std::string signature = key.Sign("text");
  EXPECT_TRUE(Verify("text", signature, key.public_key()));
  EXPECT_FALSE(Verify("texT", signature, key.public_key()));
  EXPECT_FALSE(Verify("text", signature, other.public_key()));
  EXPECT_FALSE(Verify("text", "", key.public_key()));
  EXPECT_FALSE(Verify("text", signature, ""));
  // RFC 8032, section 7.1, test 1.
  const auto known = SigningKey::FromText(
      "tenon ed25519 secret key 1\n"
      "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n");
  ASSERT_TRUE(known.ok());
  EXPECT_EQ(ToHex(known->public_key()),
            "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_EQ(ToHex(known->Sign("")),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
            "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b");
}

TEST_F(RegistryTest, TheLocalKeyIsMadeOnceForItsOwnerOnly) {
  const auto first = LoadOrCreateKey(Path("config/tenon"));
  ASSERT_TRUE(first.ok()) << base::Message(first.status());
  const auto second = LoadOrCreateKey(Path("config/tenon"));
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(first->public_key(), second->public_key());
  struct stat info {};
  ASSERT_EQ(::stat(Path("config/tenon/key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  EXPECT_FALSE(CreateKey(Path("config/tenon/key")).ok());
  ::chmod(Path("config/tenon/key").c_str(), 0644);
  EXPECT_EQ(LoadKey(Path("config/tenon/key")).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(LoadKey(Path("nothing")).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(WriteFile(Path("bad"), "no key", {.mode = 0600}).ok());
  EXPECT_EQ(LoadKey(Path("bad")).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RegistryTest, WhatIsWrittenIsReadBack) {
  const SigningKey key = SigningKey::Generate();
  ASSERT_TRUE(WritePackFile(Path("a.pack"), Sample(), &key).ok());
  const auto file = ReadPackFile(Path("a.pack"), {.signer = key.public_key()});
  ASSERT_TRUE(file.ok()) << base::Message(file.status());
  EXPECT_EQ(file->reference(), "matrix@1.0.0");
  EXPECT_EQ(file->signer, key.public_key());
  EXPECT_EQ(file->address, *AddressOf(Sample().content));
  EXPECT_EQ(file->provenance, Sample().provenance);
  EXPECT_EQ(file->content.rules[0].rule.name, "t");
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(RegistryTest, TheAddressDoesNotDependOnNameProvenanceOrSigner) {
  const SigningKey key = SigningKey::Generate();
  PackFile other = Sample();
  other.name = "other";
  other.provenance = {};
  EXPECT_EQ(DecodePackFile(*EncodePackFile(Sample(), &key))->address,
            DecodePackFile(*EncodePackFile(other, nullptr))->address);
}

TEST_F(RegistryTest, EveryFlippedBitAndEveryCutIsAnError) {
  const SigningKey key = SigningKey::Generate();
  const std::string bytes = *EncodePackFile(Sample(), &key);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    EXPECT_FALSE(DecodePackFile(std::string_view(bytes).substr(0, k)).ok());
    std::string other = bytes;
    other[k] = static_cast<char>(other[k] ^ (1 << (k % 8)));
    const auto file = DecodePackFile(other);
    ASSERT_FALSE(file.ok()) << k;
    EXPECT_EQ(file.status().code(), absl::StatusCode::kDataLoss);
  }
  EXPECT_FALSE(DecodePackFile(bytes + "x").ok());
}

// Whoever changes a pack can make the checksum right again, but not the signature.
std::string WithChecksum(std::string body) {
  const Digest digest = Sha256(body);
  body.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  return body;
}

TEST_F(RegistryTest, AChangedPackWithARightChecksumIsAnError) {
  const SigningKey key = SigningKey::Generate();
  const std::string bytes = *EncodePackFile(Sample(), &key);
  const std::string body = bytes.substr(0, bytes.size() - 32);
  EXPECT_TRUE(DecodePackFile(WithChecksum(body)).ok());
  int wrong_signature = 0;
  for (std::size_t k = 0; k < body.size(); ++k) {
    std::string other = body;
    other[k] = static_cast<char>(other[k] ^ 1);
    const auto file = DecodePackFile(WithChecksum(other));
    // Only the provenance is free: it is not signed.
    if (file.ok()) {
      EXPECT_FALSE(file->provenance == Sample().provenance) << k;
      continue;
    }
    wrong_signature += base::Message(file.status()).find("signature") != std::string::npos;
  }
  EXPECT_GT(wrong_signature, 64);
  // A content under another name, or with the signature of another.
  PackFile renamed = Sample();
  renamed.version = {2, 0, 0};
  std::string relabelled = *EncodePackFile(renamed, &key);
  relabelled.replace(relabelled.find("2.0.0"), 5, "1.0.0");
  EXPECT_FALSE(DecodePackFile(WithChecksum(relabelled.substr(0, relabelled.size() - 32))).ok());
}

TEST_F(RegistryTest, PoliciesAndOtherVersionsAreToldApart) {
  const SigningKey key = SigningKey::Generate(), other = SigningKey::Generate();
  ASSERT_TRUE(WritePackFile(Path("unsigned.pack"), Sample(), nullptr).ok());
  EXPECT_EQ(ReadPackFile(Path("unsigned.pack")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ReadPackFile(Path("unsigned.pack"), {.require_signature = false}).ok());
  ASSERT_TRUE(WritePackFile(Path("signed.pack"), Sample(), &key).ok());
  EXPECT_EQ(ReadPackFile(Path("signed.pack"), {.signer = other.public_key()}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  PackFile future = Sample();
  future.content.semantics = 99;
  ASSERT_TRUE(WritePackFile(Path("future.pack"), future, &key).ok());
  const auto read = ReadPackFile(Path("future.pack"));
  EXPECT_EQ(read.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(base::Message(read.status()).find("semantics version 99"), std::string::npos);
  std::string bytes = *EncodePackFile(Sample(), &key);
  bytes[7] = '2';
  EXPECT_NE(base::Message(DecodePackFile(bytes).status()).find("another version"),
            std::string::npos);
  EXPECT_EQ(ReadPackFile(Path("missing.pack")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadPackFile(directory_).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(RegistryTest, AFailedWriteLeavesNothing) {
  EXPECT_EQ(WriteFile(Path("no/such/file"), "x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(FileCount(), 0u);
  ASSERT_TRUE(WriteFile(Path("file"), "old").ok());
  EXPECT_EQ(WriteFile(Path("file"), "new", {.replace = false}).code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*ReadFile(Path("file"), 10), "old");
  ASSERT_TRUE(WriteFile(Path("file"), "new").ok());
  EXPECT_EQ(*ReadFile(Path("file"), 10), "new");
  EXPECT_EQ(ReadFile(Path("file"), 2).status().code(), absl::StatusCode::kResourceExhausted);
  // Renaming onto a directory fails after the temporary file was written.
  ASSERT_TRUE(MakeDirectories(Path("directory/inner"), 0755).ok());
  EXPECT_FALSE(WriteFile(Path("directory"), "x").ok());
  EXPECT_EQ(FileCount(), 1u);
}

TEST_F(RegistryTest, TheCacheNeverChangesAVersionAndNeverRollsBack) {
  const SigningKey key = SigningKey::Generate();
  PackCache cache(Path("cache"));
  EXPECT_EQ(cache.Find("matrix").status().code(), absl::StatusCode::kNotFound);
  PackFile one = Sample(), two = Sample("Relu(Relu(Transpose(Transpose(a))))");
  two.version = {1, 10, 0};
  ASSERT_TRUE(cache.Put(*EncodePackFile(one, &key)).ok());
  ASSERT_TRUE(cache.Put(*EncodePackFile(two, &key)).ok());
  ASSERT_TRUE(cache.Put(*EncodePackFile(one, &key)).ok());  // Again changes nothing.
  EXPECT_EQ(ReadPackFile(*cache.Find("matrix"))->version, two.version);
  EXPECT_EQ(ReadPackFile(*cache.Find("matrix@1.0.0"))->version, one.version);
  EXPECT_EQ(cache.List()->size(), 2u);
  two.version = {1, 0, 0};
  EXPECT_EQ(cache.Put(*EncodePackFile(two, &key)).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(cache.Put("nonsense").status().code(), absl::StatusCode::kDataLoss);
  std::filesystem::remove(*cache.Find("matrix@1.10.0"));
  EXPECT_EQ(cache.Find("matrix").status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(cache.Find("matrix@1.0.0").ok());
  EXPECT_EQ(cache.Find("matrix@9.0.0").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(cache.Find("../matrix").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Find("matrix@../x").status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tenon::registry
