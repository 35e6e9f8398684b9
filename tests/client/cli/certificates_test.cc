// tenon-check and tenon check-certificates on packs, as a stranger would use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "client/registry/pack_file.h"
#include "tests/client/cli/home.h"
#include "tests/support/process.h"

namespace tenon {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RunResult;

class CertificatesTest : public HomeTest {
 protected:
  RunResult Check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), testing::Binary("tenon-check"));
    return testing::Run(arguments);
  }
  void SetUp() override {
    const std::string universe = home_.Write("small.textproto", kSmall);
    ASSERT_EQ(Tenon({"generate", "--universe", universe, "--out", pack()}).exit_code, 0);
  }
  // The pack with the certificates changed by `change`, unsigned.
  template <class F>
  std::string Changed(F change) const {
    auto file = registry::ReadPackFile(pack());
    EXPECT_TRUE(file.ok());
    change(file->content.rules);
    const std::string path = home_ / "changed.pack";
    EXPECT_TRUE(registry::WritePackFile(path, *file, nullptr).ok());
    return path;
  }
  std::string pack() const { return home_ / "small.pack"; }
};

TEST_F(CertificatesTest, GeneratedPacksAreProvedByTheirCertificates) {
  const RunResult r = Check({"--json", pack()});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const json report = json::parse(r.out);
  EXPECT_EQ(report["proved"], report["rules"]);
  EXPECT_GE(report["rules"], 3);
  EXPECT_GT(report["median_milliseconds"], 0);
  EXPECT_GE(report["most_milliseconds"], report["median_milliseconds"]);
  const RunResult timed = Check({"--timing", pack()});
  EXPECT_EQ(testing::CountLines(timed.out), int(report["rules"]) + 1);
  const RunResult same = Tenon({"check-certificates", pack(), "--json", "-"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(json::parse(same.out)[0]["proved"], report["rules"]);
  const RunResult verified = Tenon({"pack", "verify", pack(), "--json", "-"});
  EXPECT_EQ(json::parse(verified.out)[0]["certificates"], report["rules"]);
}

TEST_F(CertificatesTest, ARuleWithoutOneIsRefusedAndCanGetOne) {
  const std::string path = Changed([](auto& rules) { rules[0].certificate.clear(); });
  EXPECT_EQ(Check({path}).exit_code, 1);
  EXPECT_EQ(Tenon({"check-certificates", path}).exit_code, 1);
  EXPECT_EQ(Tenon({"pack", "certify", path}).exit_code, 0);
  EXPECT_EQ(Check({path}).exit_code, 0);
  EXPECT_EQ(Tenon({"pack", "diff", "--content", pack(), path}).exit_code, 0);
}

TEST_F(CertificatesTest, TheCertificateOfAnotherRuleIsRefused) {
  const std::string path =
      Changed([](auto& rules) { rules[0].certificate = rules[1].certificate; });
  const RunResult r = Check({"--json", path});
  EXPECT_EQ(r.exit_code, 1);
  EXPECT_THAT(json::parse(r.out)["refused"][0]["reason"].template get<std::string>(),
              HasSubstr("of another rule"));
  EXPECT_EQ(Tenon({"check-certificates", path}).exit_code, 1);
  EXPECT_NE(Tenon({"pack", "verify", path}).exit_code, 0);
}

TEST_F(CertificatesTest, ExchangedAndShortenedOnesAreRefusedEachByItsRule) {
  const std::string path = Changed([](auto& rules) {
    std::swap(rules[0].certificate, rules[1].certificate);
    rules[2].certificate.resize(rules[2].certificate.size() / 2);
  });
  const RunResult r = Check({"--json", path});
  EXPECT_EQ(r.exit_code, 1);
  const json report = json::parse(r.out);
  EXPECT_EQ(report["refused"].size(), 3u);
  EXPECT_EQ(int(report["proved"]), int(report["rules"]) - 3);
}

TEST_F(CertificatesTest, APackOfOtherSemanticsIsRefused) {
  auto file = registry::ReadPackFile(pack());
  ASSERT_TRUE(file.ok());
  file->content.semantics += 1;
  const std::string path = home_ / "other.pack";
  ASSERT_TRUE(registry::WritePackFile(path, *file, nullptr).ok());
  const RunResult r = Check({path});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_THAT(r.err, HasSubstr("semantics"));
}

// docs/what-is-proved.md says how much there is to trust, in hundreds of lines; it need not follow
// every change, and must not be wrong.
TEST_F(CertificatesTest, TheDocumentCountsWhatIsTrusted) {
  const std::string document = testing::ReadFile(TENON_SOURCE_DIR "/docs/what-is-proved.md");
  const RunResult trusted = Check({"--trusted"});
  std::istringstream in(trusted.out);
  int parts = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    int lines = 0;
    std::string unit, path;
    words >> lines >> unit >> path;
    const std::string row = path == "in" ? "| all of it | " : "| `" + path + "` | ";
    const std::size_t at = document.find(row);
    ASSERT_NE(at, std::string::npos) << "no row '" << row << "'";
    const int said = std::stoi(document.substr(at + row.size()));
    EXPECT_NEAR(said, lines, std::max(100, lines / 10))
        << path << ": docs/what-is-proved.md says " << said << " lines";
    ++parts;
  }
  EXPECT_GE(parts, 9);
}

TEST_F(CertificatesTest, ExitCodesTellWhatWentWrong) {
  EXPECT_EQ(Check({}).exit_code, 2);
  EXPECT_EQ(Check({"--what", pack()}).exit_code, 2);
  EXPECT_EQ(Check({home_ / "none.pack"}).exit_code, 3);
  EXPECT_EQ(Check({home_.Write("bad.pack", "no pack")}).exit_code, 3);
  const RunResult trusted = Check({"--trusted"});
  EXPECT_EQ(trusted.exit_code, 0);
  EXPECT_THAT(trusted.out, HasSubstr("verifier/cert"));
}

// What it links is what has to be trusted.
TEST_F(CertificatesTest, TheCheckerContainsNoSolverNoGrpcAndNoDatabase) {
  const RunResult libraries = testing::Run({"ldd", testing::Binary("tenon-check")});
  ASSERT_EQ(libraries.exit_code, 0) << libraries.err;
  EXPECT_THAT(libraries.out, HasSubstr("libstdc++"));
  const RunResult symbols = testing::Run({"nm", "-C", testing::Binary("tenon-check")});
  ASSERT_EQ(symbols.exit_code, 0) << symbols.err;
  EXPECT_THAT(symbols.out, HasSubstr("tenon::cert::Check"));
  for (const char* name : {"z3", "grpc", "rocksdb", "protobuf"}) {
    EXPECT_THAT(libraries.out, Not(HasSubstr(name)));
  }
  for (const char* name : {"Z3_", "z3::", "grpc::", "rocksdb::", "tenon::smt", "tenon::certify"}) {
    EXPECT_EQ(symbols.out.find(name), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace tenon
