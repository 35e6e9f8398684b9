#include "client/security/tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/security/credentials.h"

namespace tenon::security {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kNow = 1'700'000'000;

TokenTable Table(const std::string& roles, const std::string& expiry) {
  const auto table =
      TokenTable::Parse("# who may\n\nci " + HashOf("secret") + " " + roles + " " + expiry, "file");
  EXPECT_TRUE(table.ok()) << base::Message(table.status());
  return table.ok() ? *table : TokenTable();
}

absl::StatusCode Check(const TokenTable& table, const std::string& authorization,
                       const std::string& method) {
  return table.Check(authorization, "/tenon.v1." + method, kNow).code();
}

TEST(RolesTest, PrintAndParseAreInverseAndIncludeRead) {
  for (const char* text :
       {"read", "read,submit", "read,publish", "read,node", "read,submit,publish,node"}) {
    const auto roles = ParseRoles(text);
    ASSERT_TRUE(roles.ok());
    EXPECT_EQ(ToString(*roles), text);
  }
  EXPECT_EQ(ToString(*ParseRoles("submit")), "read,submit");
  for (const char* text : {"", "admin", "read,", "read, submit", "Read"}) {
    EXPECT_EQ(ParseRoles(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(TokenTableTest, ALineIsReadBack) {
  const Token token{
      .name = "ci", .sha256 = HashOf("x"), .roles = *ParseRoles("node"), .expires = 12};
  const auto table = TokenTable::Parse(ToLine(token), "file");
  ASSERT_TRUE(table.ok());
  ASSERT_EQ(table->tokens().size(), 1u);
  EXPECT_EQ(table->tokens()[0].name, "ci");
  EXPECT_EQ(table->tokens()[0].sha256, token.sha256);
  EXPECT_EQ(table->tokens()[0].roles, token.roles);
  EXPECT_EQ(table->tokens()[0].expires, 12);
}

TEST(TokenTableTest, BadLinesAreNamed) {
  const std::string hash = HashOf("x");
  for (const std::string& line : std::vector<std::string>{
           "ci", "ci " + hash, "ci " + hash + " read", "ci short read never",
           "ci " + hash + " king never", "ci " + hash + " read soon", "ci " + hash + " read -1",
           "ci " + hash + " read never more", "ci " + hash.substr(1) + "G read never"}) {
    const Status status = TokenTable::Parse("# a comment\n" + line, "tokens").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(base::Message(status), HasSubstr("tokens:2: ")) << line;
  }
}

TEST(TokenTableTest, WithoutTheTokenNobodyIsLetIn) {
  const TokenTable table = Table("read", "never");
  for (const char* text : {"", "Bearer ", "Bearer other", "secret", "Basic secret", "bearer secret",
                           "Bearer  secret", "Bearer secret "}) {
    EXPECT_EQ(Check(table, text, "JobService/ListJobs"), absl::StatusCode::kUnauthenticated)
        << text;
  }
  // Not the hash either.
  EXPECT_EQ(Check(table, "Bearer " + HashOf("secret"), "JobService/ListJobs"),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Check(table, "Bearer secret", "JobService/ListJobs"), absl::StatusCode::kOk);
}

TEST(TokenTableTest, ATokenExpires) {
  EXPECT_EQ(Check(Table("read", std::to_string(kNow + 1)), "Bearer secret", "JobService/GetJob"),
            absl::StatusCode::kOk);
  EXPECT_EQ(Check(Table("read", std::to_string(kNow)), "Bearer secret", "JobService/GetJob"),
            absl::StatusCode::kUnauthenticated);
}

TEST(TokenTableTest, EveryMethodHasItsRole) {
  struct Case {
    const char* method;
    const char* may;  // Of the four roles, the first letters.
  };
  for (const Case& c : std::initializer_list<Case>{{"JobService/SubmitJob", "s"},
                                                   {"JobService/ControlJob", "s"},
                                                   {"JobService/GetJob", "rspn"},
                                                   {"JobService/ListJobs", "rspn"},
                                                   {"JobService/WatchJob", "rspn"},
                                                   {"WorkService/Lease", "n"},
                                                   {"WorkService/Heartbeat", "n"},
                                                   {"WorkService/Complete", "n"},
                                                   {"WorkService/Release", "n"},
                                                   {"StoreService/PutRuns", "n"},
                                                   {"StoreService/ScanRuns", "n"},
                                                   {"StoreService/PutArtifact", "n"},
                                                   {"StoreService/GetArtifact", "n"},
                                                   {"StoreService/DropTable", "n"},
                                                   {"StoreService/Compact", "n"},
                                                   {"StoreService/Checkpoint", "n"},
                                                   {"StoreService/Stats", "rspn"},
                                                   {"StoreService/Verify", "rspn"},
                                                   {"RegistryService/PushPack", "p"},
                                                   {"RegistryService/SetChannel", "p"},
                                                   {"RegistryService/ListPacks", "rspn"},
                                                   {"RegistryService/PullPack", "rspn"},
                                                   {"OptimizeService/Optimize", "rspn"},
                                                   {"NewService/Anything", ""},
                                                   {"StoreService/", "n"}}) {
    for (const char* role : {"read", "submit", "publish", "node"}) {
      const bool may = std::string_view(c.may).find(role[0]) != std::string_view::npos;
      EXPECT_EQ(Check(Table(role, "never"), "Bearer secret", c.method),
                may ? absl::StatusCode::kOk : absl::StatusCode::kPermissionDenied)
          << role << " " << c.method;
    }
  }
}

TEST(TokenTableTest, HealthIsOpen) {
  EXPECT_TRUE(TokenTable().Check("", "/grpc.health.v1.Health/Check", kNow).ok());
}

TEST(SecretTest, SecretsDifferAndTheirHashIsThatOfTheText) {
  EXPECT_NE(NewSecret(), NewSecret());
  EXPECT_EQ(NewSecret().size(), 6u + 64u);
  EXPECT_EQ(HashOf("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(CredentialsTest, HalfOfTlsIsRefused) {
  EXPECT_EQ(MakeServerCredentials({.certificate = "x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeServerCredentials({.key = "x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeServerCredentials({.client_root = "x"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*MakeServerCredentials({}), nullptr);
}

}  // namespace
}  // namespace tenon::security
