// Packs of an optimizer node, from a registry that lies and from files that change; the server is a
// fake, the wire is real.
#include <gmock/gmock.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include "client/registry/sha256.h"
#include "core/base/crc32c.h"
#include "core/rules/text.h"
#include "optimizer/service/packs.h"
#include "proto/convert/status.h"
#include "tenon/v1/registry.grpc.pb.h"
#include "tests/support/process.h"

namespace tenon::optimizer {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string PackBytes(const std::string& version, const registry::SigningKey* key,
                      const std::string& comment = "") {
  registry::PackFile file{.name = "matrix", .version = *pack::ParseVersion(version)};
  file.content.universe = "name: \"matrix\"\n" + comment;
  auto rule = rules::ParseRule("rule t given a[m,n] source Transpose(Transpose(a)) target a");
  EXPECT_TRUE(rule.ok());
  file.content.rules.push_back({*std::move(rule), ""});
  const auto bytes = registry::EncodePackFile(file, key);
  EXPECT_TRUE(bytes.ok()) << base::Message(bytes.status());
  return bytes.ok() ? *bytes : "";
}

// Says of itself whatever it is told to.
struct Registry : v1::RegistryService::Service {
  grpc::Status PullPack(grpc::ServerContext*, const v1::PullPackRequest*,
                        grpc::ServerWriter<v1::PullPackResponse>* writer) override {
    v1::PullPackResponse message;
    message.mutable_info()->set_name("matrix");
    message.mutable_info()->set_version(version);
    message.mutable_info()->set_size(file.size());
    message.mutable_info()->set_file_sha256(registry::ToHex(registry::Sha256(file)));
    writer->Write(message);
    message.mutable_chunk()->set_offset(0);
    message.mutable_chunk()->set_data(file);
    message.mutable_chunk()->set_crc32c(base::Crc32c(file));
    writer->Write(message);
    return grpc::Status::OK;
  }
  std::string version, file;
};

class PackSourceTest : public ::testing::Test {
 protected:
  PackSourceTest() : key_(registry::SigningKey::Generate()) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterService(&registry_);
    server_ = builder.BuildAndStart();
    endpoint_ = "127.0.0.1:" + std::to_string(port);
  }
  ~PackSourceTest() override { Stop(); }
  void Stop() {
    server_->Shutdown();
    server_->Wait();
  }
  void Offer(const std::string& version, const std::string& file) {
    registry_.version = version;
    registry_.file = file;
  }
  PackSource FromRegistry(const std::string& reference = "matrix@stable") {
    PackSourceOptions options{
        .origins = {{reference, true}}, .folder = folder_ / "packs", .signer = key_.public_key()};
    auto connection = rpc::Connection::Open(endpoint_);
    EXPECT_TRUE(connection.ok());
    options.registry = *std::move(connection);
    return PackSource(std::move(options));
  }
  static std::string Versions(const PackSource& packs, std::vector<std::string> names = {}) {
    const auto selected = packs.Select(names);
    if (!selected.ok()) return convert::DetailsOf(selected.status()).reason;
    std::string out;
    for (const auto& pack : *selected) out += pack::ToString(pack->version) + " ";
    return out;
  }
  static std::vector<int> Figures(const PackSource& packs) {
    const PackFigures f = packs.figures();
    return {f.served, f.stale, f.missing};
  }

  testing::TempFolder folder_;
  registry::SigningKey key_;
  Registry registry_;
  std::unique_ptr<grpc::Server> server_;
  std::string endpoint_;
};

TEST_F(PackSourceTest, ANewerPackIsTakenAndCallsThatRunKeepTheirs) {
  PackSource packs = FromRegistry();
  EXPECT_THAT(Figures(packs), ElementsAre(0, 0, 1));
  EXPECT_EQ(Versions(packs), "PACK_MISSING");
  Offer("1.0.0", PackBytes("1.0.0", &key_));
  ASSERT_TRUE(packs.Refresh().ok());
  EXPECT_EQ(Versions(packs), "1.0.0 ");
  const auto running = packs.Select({});
  ASSERT_TRUE(running.ok());
  Offer("1.1.0", PackBytes("1.1.0", &key_));
  ASSERT_TRUE(packs.Refresh().ok());
  EXPECT_EQ(Versions(packs), "1.1.0 ");
  EXPECT_THAT(Figures(packs), ElementsAre(1, 0, 0));
  EXPECT_EQ(pack::ToString((*running)[0]->version), "1.0.0");
}

TEST_F(PackSourceTest, ABadPackNeverReplacesAGoodOne) {
  PackSource packs = FromRegistry();
  Offer("1.1.0", PackBytes("1.1.0", &key_));
  ASSERT_TRUE(packs.Refresh().ok());
  const auto other = registry::SigningKey::Generate();
  std::string tampered = PackBytes("1.2.0", &key_);
  tampered[tampered.size() / 2] = static_cast<char>(tampered[tampered.size() / 2] ^ 1);
  const struct {
    std::string version, file, why;
  } lies[] = {{"1.2.0", tampered, ""},
              {"1.2.0", PackBytes("1.2.0", nullptr), "not signed"},
              {"1.2.0", PackBytes("1.2.0", &other), "signed by"},
              {"1.0.0", PackBytes("1.0.0", &key_), "seen here before"},  // Rolled back.
              {"1.2.0", PackBytes("1.1.0", &key_), "says that it is"},   // Under another name.
              {"1.1.0", PackBytes("1.1.0", &key_, "# more\n"), "other content"},
              {"1.2.0", "no pack at all", ""}};
  for (const auto& lie : lies) {
    Offer(lie.version, lie.file);
    const Status status = packs.Refresh();
    EXPECT_FALSE(status.ok()) << lie.why;
    EXPECT_THAT(base::Message(status), HasSubstr(lie.why));
    EXPECT_EQ(Versions(packs), "1.1.0 ");
    EXPECT_THAT(Figures(packs), ElementsAre(1, 1, 0));
  }
  Offer("1.2.0", PackBytes("1.2.0", &key_));
  EXPECT_TRUE(packs.Refresh().ok());
  EXPECT_EQ(Versions(packs), "1.2.0 ");
  EXPECT_THAT(Figures(packs), ElementsAre(1, 0, 0));
}

TEST_F(PackSourceTest, ANodeStartsWithWhatItHadWhileTheRegistryIsAway) {
  Offer("1.1.0", PackBytes("1.1.0", &key_));
  {
    PackSource packs = FromRegistry();
    ASSERT_TRUE(packs.Refresh().ok());
  }
  Stop();
  EXPECT_EQ(Versions(FromRegistry()), "1.1.0 ");
  EXPECT_THAT(Figures(FromRegistry()), ElementsAre(1, 1, 0));
  EXPECT_EQ(Versions(FromRegistry("matrix@beta")), "PACK_MISSING");
  // What lies there is checked again.
  std::string path;
  for (const auto& version : {"matrix/1.1.0.pack"}) path = folder_ / "packs/files/" + version;
  std::string bytes = testing::ReadFile(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  folder_.Write("packs/files/matrix/1.1.0.pack", bytes);
  EXPECT_EQ(Versions(FromRegistry()), "PACK_MISSING");
}

TEST_F(PackSourceTest, FilesAreLookedAtAgainAndJudgedAlike) {
  const std::string path = folder_.Write("m.pack", PackBytes("1.1.0", &key_));
  PackSource packs({.origins = {{path, false}},
                    .find = [](const std::string& reference) { return reference; },
                    .folder = folder_ / "packs"});
  ASSERT_TRUE(packs.Refresh().ok());
  for (const std::string& bad : {PackBytes("1.0.0", &key_), PackBytes("1.1.0", &key_, "# more\n"),
                                 PackBytes("1.2.0", nullptr), std::string("nonsense")}) {
    folder_.Write("m.pack", bad);
    EXPECT_FALSE(packs.Refresh().ok());
    EXPECT_EQ(Versions(packs), "1.1.0 ");
    EXPECT_THAT(Figures(packs), ElementsAre(1, 1, 0));
  }
  folder_.Write("m.pack", PackBytes("1.2.0", &key_));
  EXPECT_TRUE(packs.Refresh().ok());
  EXPECT_EQ(Versions(packs), "1.2.0 ");
}

TEST_F(PackSourceTest, CallsNameThemByNameOrVersion) {
  const std::string path = folder_.Write("m.pack", PackBytes("1.1.0", &key_));
  PackSource packs({.origins = {{path, false}},
                    .find = [](const std::string& reference) { return reference; },
                    .folder = folder_ / "packs"});
  ASSERT_TRUE(packs.Refresh().ok());
  EXPECT_EQ(Versions(packs, {"matrix"}), "1.1.0 ");
  EXPECT_EQ(Versions(packs, {"matrix@1.1.0"}), "1.1.0 ");
  const auto other = packs.Select(std::vector<std::string>{"matrix@1.0.0"});
  EXPECT_EQ(other.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::Message(other.status()), HasSubstr(path));
}

}  // namespace
}  // namespace tenon::optimizer
