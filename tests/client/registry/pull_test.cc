// Pulling from a registry that breaks, lies and goes back in time; the server is a fake, the wire
// is real.
#include "client/registry/pull.h"

#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "client/registry/sha256.h"
#include "core/base/crc32c.h"
#include "core/rules/text.h"
#include "tenon/v1/registry.grpc.pb.h"

namespace tenon::registry {
namespace {

using ::testing::HasSubstr;

std::string PackBytes(const std::string& version, const SigningKey* key, std::size_t padding = 0) {
  PackFile file{.name = "matrix", .version = *pack::ParseVersion(version)};
  // A comment makes it as large as is wanted.
  file.content.universe = "name: \"matrix\"\n" + std::string(padding, '#');
  auto rule = rules::ParseRule("rule t given a[m,n] source Transpose(Transpose(a)) target a");
  EXPECT_TRUE(rule.ok());
  file.content.rules.push_back({*std::move(rule), ""});
  const auto bytes = EncodePackFile(file, key);
  EXPECT_TRUE(bytes.ok()) << base::Message(bytes.status());
  return bytes.ok() ? *bytes : "";
}

struct Fake : v1::RegistryService::Service {
  grpc::Status PullPack(grpc::ServerContext*, const v1::PullPackRequest* request,
                        grpc::ServerWriter<v1::PullPackResponse>* writer) override {
    offsets.push_back(request->offset());
    v1::PullPackResponse message;
    v1::PackInfo& info = *message.mutable_info();
    info.set_name(name);
    info.set_version(version);
    info.set_size(announced_size != 0 ? announced_size : file.size());
    info.set_file_sha256(ToHex(Sha256(announced_hash_of.empty() ? file : announced_hash_of)));
    writer->Write(message);
    const std::size_t chunk = std::size_t{64} << 10;
    int sent = 0;
    for (std::size_t at = request->offset(); at < file.size(); at += chunk) {
      if (offsets.size() <= breaks && ++sent > 2) {
        return {grpc::StatusCode::UNAVAILABLE, "the line is down"};
      }
      const std::string part = file.substr(at, chunk);
      message.mutable_chunk()->set_offset(at);
      message.mutable_chunk()->set_data(part);
      message.mutable_chunk()->set_crc32c(base::Crc32c(part) + wrong_crc);
      writer->Write(message);
    }
    return grpc::Status::OK;
  }

  std::string name = "matrix", version = "1.0.0", file, announced_hash_of;
  std::uint64_t announced_size = 0;
  std::size_t breaks = 0;  // So many calls break after two chunks.
  std::uint32_t wrong_crc = 0;
  std::vector<std::uint64_t> offsets;
};

class PullTest : public ::testing::Test {
 protected:
  PullTest() : key_(SigningKey::Generate()) {
    std::string path = ::testing::TempDir() + "/pull.XXXXXX";
    folder_ = ::mkdtemp(path.data());
    cache_ = std::make_unique<PackCache>(folder_);
    fake_.file = PackBytes("1.0.0", &key_);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&fake_);
    server_ = builder.BuildAndStart();
    auto connection = rpc::Connection::Open("127.0.0.1:" + std::to_string(port));
    EXPECT_TRUE(connection.ok());
    client_ = std::make_unique<rpc::RegistryClient>(*std::move(connection));
  }
  ~PullTest() override {
    server_->Shutdown();
    server_->Wait();
    std::filesystem::remove_all(folder_);
  }
  Status Get(const std::string& reference, const PullOptions& options = {}) {
    return Pull(*client_, *cache_, reference, options).status();
  }
  void ExpectRefused(absl::StatusCode code, const std::string& why) {
    const Status status = Get("matrix");
    EXPECT_EQ(status.code(), code) << base::Message(status);
    EXPECT_THAT(base::Message(status), HasSubstr(why));
    EXPECT_THAT(*cache_->List(), ::testing::IsEmpty());  // Nothing of it is kept.
  }

  SigningKey key_;
  std::string folder_;
  std::unique_ptr<PackCache> cache_;
  Fake fake_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<rpc::RegistryClient> client_;
};

TEST_F(PullTest, APackIsFetchedCheckedAndKept) {
  EXPECT_TRUE(Get("matrix").ok());
  EXPECT_TRUE(cache_->Find("matrix@1.0.0").ok());
  EXPECT_TRUE(Get("matrix@1.0.0", {.signer = key_.public_key()}).ok());
}

TEST_F(PullTest, ABrokenStreamGoesOnWhereItBroke) {
  fake_.file = PackBytes("1.0.0", &key_, 500'000);
  fake_.breaks = 2;
  const Status status = Get("matrix");
  EXPECT_TRUE(status.ok()) << base::Message(status);
  EXPECT_THAT(fake_.offsets, ::testing::ElementsAre(0, 128 << 10, 256 << 10));
}

TEST_F(PullTest, WhatWasDamagedOnTheWayIsRefused) {
  fake_.wrong_crc = 1;
  ExpectRefused(absl::StatusCode::kDataLoss, "damaged");
}

TEST_F(PullTest, BytesThatWereNotAnnouncedAreRefused) {
  fake_.announced_hash_of = "something else";
  ExpectRefused(absl::StatusCode::kDataLoss, "not those");
}

TEST_F(PullTest, ATamperedPackIsRefusedWhateverTheRegistrySays) {
  fake_.file[fake_.file.size() / 2] ^= 1;
  ExpectRefused(absl::StatusCode::kDataLoss, "checksum");
}

TEST_F(PullTest, AStreamThatEndsEarlyIsRefused) {
  fake_.announced_size = fake_.file.size() + 1;
  ExpectRefused(absl::StatusCode::kDataLoss, "ended early");
}

TEST_F(PullTest, APackTooLargeIsRefusedBeforeItComes) {
  fake_.announced_size = kPackBytesMax + 1;
  ExpectRefused(absl::StatusCode::kResourceExhausted, "the limit is");
}

TEST_F(PullTest, AnotherPackThanWasAskedForIsRefused) {
  fake_.name = "conv";
  ExpectRefused(absl::StatusCode::kDataLoss, "conv@1.0.0");
  fake_.name = "matrix";
  fake_.version = "2.0.0";  // An old pack under a new version.
  ExpectRefused(absl::StatusCode::kDataLoss, "matrix@1.0.0");
}

TEST_F(PullTest, UnsignedAndForeignPacksAreRefused) {
  const SigningKey other = SigningKey::Generate();
  EXPECT_EQ(Get("matrix", {.signer = other.public_key()}).code(),
            absl::StatusCode::kFailedPrecondition);
  fake_.file = PackBytes("1.0.0", nullptr);
  ExpectRefused(absl::StatusCode::kFailedPrecondition, "not signed");
}

TEST_F(PullTest, AnOlderVersionIsTakenOnlyWhenToldTo) {
  fake_.version = "1.2.0";
  fake_.file = PackBytes("1.2.0", &key_);
  ASSERT_TRUE(Get("matrix").ok());
  fake_.version = "1.1.0";
  fake_.file = PackBytes("1.1.0", &key_);
  const Status status = Get("matrix@stable");
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::Message(status), HasSubstr("1.2.0"));
  EXPECT_TRUE(Get("matrix@1.1.0").ok());
  EXPECT_TRUE(Get("matrix@stable", {.allow_rollback = true}).ok());
  EXPECT_EQ(cache_->Newest("matrix"), (pack::Version{1, 2, 0}));
}

TEST_F(PullTest, AVersionThatChangedIsRefused) {
  ASSERT_TRUE(Get("matrix").ok());
  fake_.file = PackBytes("1.0.0", &key_, 10);
  EXPECT_EQ(Get("matrix").code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(PullTest, MalformedReferencesAreRefused) {
  for (const char* reference : {"", "@1.0.0", "Matrix", "a b", "../x"}) {
    EXPECT_EQ(Get(reference).code(), absl::StatusCode::kInvalidArgument) << reference;
  }
}

}  // namespace
}  // namespace tenon::registry
