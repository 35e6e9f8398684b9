// Who may do what: a real coordinator with tokens and certificates, and a registry that is not
// trusted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "tests/e2e/cluster.h"

namespace tenon::e2e {
namespace {

using ::testing::HasSubstr;
using testing::RunResult;

// A coordinator with a token file, and a token of each role.
class TokenTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* role : {"read", "submit", "publish", "node"}) Create(role, role);
    cluster_ = std::make_unique<Cluster>(Alone({"--token-file", Tokens()}));
    pack_ = Pack("1.0.0");
  }
  static ClusterOptions Alone(std::vector<std::string> flags) {
    ClusterOptions options{.stores = 0, .workers = 0, .verifiers = 0};
    options.of_coordinator = std::move(flags);
    return options;
  }

  std::string Tokens() const { return folder_ / "tokens"; }
  std::string TokenOf(const std::string& name) const { return folder_ / (name + ".token"); }
  void Create(const std::string& name, const std::string& roles) {
    const RunResult r = testing::Tenon(
        {"token", "create", "--token-file", Tokens(), "--name", name, "--role", roles});
    ASSERT_EQ(r.exit_code, 0) << r.err;
    folder_.Write(name + ".token", r.out);
  }
  // A signed pack without much in it.
  std::string Pack(const std::string& version) {
    const std::string path = folder_ / (version + ".pack");
    const RunResult r = cluster_->Tenon({"generate", "--universe", "matrix", "--max-operators", "1",
                                         "--out", path, "--name", "small@" + version});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    return path;
  }
  RunResult As(const std::string& name, std::vector<std::string> arguments) {
    if (!name.empty()) arguments.insert(arguments.end(), {"--token", TokenOf(name)});
    return cluster_->Ask(std::move(arguments));
  }
  RunResult SubmitAs(const std::string& name, const std::string& version) {
    return As(name, {"job", "submit", "--universe", "matrix", "--max-operators", "1", "--name",
                     "small@" + version});
  }

  testing::TempFolder folder_;
  std::unique_ptr<Cluster> cluster_;
  std::string pack_;
};

TEST_F(TokenTest, WithoutATokenNothingIsReadSubmittedOrPublished) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{"job", "list"},
                                                                     {"job", "cancel", "j1"},
                                                                     {"pack", "list"},
                                                                     {"pack", "pull", "small"},
                                                                     {"pack", "push", pack_}}) {
    const RunResult r = As("", arguments);
    EXPECT_EQ(r.exit_code, 4) << arguments[0] << arguments[1] << r.out << r.err;
    EXPECT_THAT(r.err, HasSubstr("token"));
  }
  EXPECT_EQ(SubmitAs("", "2.0.0").exit_code, 4);
  EXPECT_THAT(As("read", {"job", "list", "--all"}).out, HasSubstr("no jobs"));
  EXPECT_THAT(As("read", {"pack", "list"}).out, HasSubstr("no packs"));
}

TEST_F(TokenTest, EachRoleMayDoWhatItIsForAndNoMore) {
  EXPECT_EQ(As("read", {"job", "list"}).exit_code, 0);
  EXPECT_EQ(SubmitAs("read", "2.0.0").exit_code, 3);
  EXPECT_EQ(SubmitAs("publish", "2.0.0").exit_code, 3);
  EXPECT_EQ(SubmitAs("node", "2.0.0").exit_code, 3);
  EXPECT_EQ(SubmitAs("submit", "2.0.0").exit_code, 0);
  for (const char* role : {"read", "submit", "node"}) {
    const RunResult r = As(role, {"pack", "push", pack_});
    EXPECT_EQ(r.exit_code, 3) << role << r.out << r.err;
    EXPECT_THAT(r.err, HasSubstr("role"));
  }
  EXPECT_EQ(As("publish", {"pack", "push", pack_, "--channel", "stable"}).exit_code, 0);
  EXPECT_EQ(As("read", {"pack", "pull", "small@stable"}).exit_code, 0);
  // A node that is none is turned away, and says so.
  Service worker("worker",
                 {"worker", "--coordinator", cluster_->server(), "--token", TokenOf("submit")},
                 folder_ / "worker", folder_ / "home");
  worker.Start();
  EXPECT_EQ(worker.Await(std::chrono::seconds(60)), 3);
}

TEST_F(TokenTest, ExpiredAndUnknownTokensAreRefusedAndTheFileIsReadAgain) {
  folder_.Write("unknown.token", "tenon_0123456789\n");
  EXPECT_THAT(As("unknown", {"job", "list"}).err, HasSubstr("not known"));
  Create("late", "read");
  // The file is read again at most a second later.
  RunResult r;
  for (int k = 0; k < 50; ++k) {
    r = As("late", {"job", "list"});
    if (r.exit_code == 0) break;
  }
  EXPECT_EQ(r.exit_code, 0) << r.err;
  std::string text = testing::ReadFile(Tokens());
  const std::size_t at = text.find("never", text.find("late"));
  text.replace(at, 5, "1000000000");
  folder_.Write("tokens", text);
  for (int k = 0; k < 50; ++k) {
    r = As("late", {"job", "list"});
    if (r.exit_code != 0) break;
  }
  EXPECT_EQ(r.exit_code, 4);
  EXPECT_THAT(r.err, HasSubstr("expired"));
  EXPECT_EQ(As("read", {"job", "list"}).exit_code, 0);
}

TEST_F(TokenTest, AClusterWithTokensMakesItsPack) {
  ClusterOptions options{.stores = 1, .workers = 1, .verifiers = 1};
  options.of_all = {"--token-file", Tokens(), "--token", TokenOf("node")};
  cluster_ = std::make_unique<Cluster>(options);
  const RunResult r = As("submit", {"job", "submit", "--universe", "matrix", "--max-operators", "1",
                                    "--name", "small@3.0.0", "--wait"});
  EXPECT_EQ(r.exit_code, 0) << r.out << r.err << cluster_->Logs();
  EXPECT_EQ(As("read", {"pack", "pull", "small@3.0.0"}).exit_code, 0);
}

TEST_F(TokenTest, DamagedUnsignedAndChangedPacksAreNotPublished) {
  std::string bytes = testing::ReadFile(pack_);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  EXPECT_EQ(As("publish", {"pack", "push", folder_.Write("bad.pack", bytes)}).exit_code, 3);
  EXPECT_EQ(As("publish", {"pack", "push", pack_}).exit_code, 0);
  EXPECT_EQ(As("publish", {"pack", "push", pack_}).exit_code, 0);  // The same bytes again.
  // The same version with other bytes: signed by somebody else.
  const std::string other = folder_ / "other.pack";
  ASSERT_EQ(cluster_->Tenon({"pack", "keygen", "-o", folder_ / "k"}).exit_code, 0);
  ASSERT_EQ(cluster_->Tenon({"pack", "sign", pack_, "--key", folder_ / "k", "-o", other}).exit_code,
            0);
  EXPECT_EQ(As("publish", {"pack", "push", other}).exit_code, 3);
  EXPECT_THAT(As("read", {"pack", "pull", "small", "--key", folder_ / "k.pub"}).err,
              HasSubstr("signed by"));
}

TEST_F(TokenTest, AnOlderVersionIsNotTakenForTheCurrentOne) {
  const std::string newer = Pack("1.1.0");
  ASSERT_EQ(As("publish", {"pack", "push", pack_, "--channel", "stable"}).exit_code, 0);
  ASSERT_EQ(As("publish", {"pack", "push", newer, "--channel", "stable"}).exit_code, 0);
  EXPECT_THAT(As("read", {"pack", "pull", "small@stable"}).out, HasSubstr("small@1.1.0"));
  // The channel is moved back: by mistake or by an attacker, who knows.
  ASSERT_EQ(As("publish", {"pack", "push", pack_, "--channel", "stable"}).exit_code, 0);
  const RunResult r = As("read", {"pack", "pull", "small@stable"});
  EXPECT_EQ(r.exit_code, 1) << r.out;
  EXPECT_THAT(r.err, HasSubstr("1.1.0"));
  EXPECT_EQ(As("read", {"pack", "pull", "small@stable", "--allow-rollback"}).exit_code, 0);
  EXPECT_EQ(As("read", {"pack", "pull", "small@1.0.0"}).exit_code, 0);
}

// Certificates of two authorities, made by the openssl program.
class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* ca : {"ours", "theirs"}) {
      Openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
               std::string("/CN=") + ca, "-keyout", folder_ / (std::string(ca) + ".key"), "-out",
               folder_ / (std::string(ca) + ".pem")});
      for (const char* who : {"server", "client"}) Issue(ca, who);
    }
    ClusterOptions options{.stores = 0, .workers = 0, .verifiers = 0};
    options.of_coordinator = {"--tls-certificate", folder_ / "ours.server.pem",
                              "--tls-key",         folder_ / "ours.server.key",
                              "--tls-client-ca",   folder_ / "ours.pem"};
    cluster_ = std::make_unique<Cluster>(options);
  }
  void Openssl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    const RunResult r = testing::Run(arguments);
    ASSERT_EQ(r.exit_code, 0) << r.err;
  }
  void Issue(const std::string& ca, const std::string& who) {
    const std::string base = folder_ / (ca + "." + who);
    Openssl({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + who, "-keyout",
             base + ".key", "-out", base + ".csr"});
    const std::string names = folder_.Write("names", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
    Openssl({"x509", "-req", "-days", "2", "-in", base + ".csr", "-CA", folder_ / (ca + ".pem"),
             "-CAkey", folder_ / (ca + ".key"), "-CAcreateserial", "-extfile", names, "-out",
             base + ".pem"});
  }
  RunResult List(const std::string& root, const std::string& own) {
    std::vector<std::string> arguments{"job", "list"};
    if (!root.empty()) arguments.insert(arguments.end(), {"--tls-ca", folder_ / (root + ".pem")});
    if (!own.empty()) {
      arguments.insert(arguments.end(), {"--tls-certificate", folder_ / (own + ".client.pem"),
                                         "--tls-key", folder_ / (own + ".client.key")});
    }
    return cluster_->Ask(arguments);
  }

  testing::TempFolder folder_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(TlsTest, OnlyCertificatesOfTheRightAuthorityAreAccepted) {
  EXPECT_EQ(List("ours", "ours").exit_code, 0);
  EXPECT_EQ(List("theirs", "ours").exit_code, 4);  // The server is not who it should be.
  EXPECT_EQ(List("ours", "theirs").exit_code, 4);  // The caller is not.
  EXPECT_EQ(List("ours", "").exit_code, 4);
  EXPECT_EQ(List("", "").exit_code, 4);  // Not encrypted.
}

}  // namespace
}  // namespace tenon::e2e
