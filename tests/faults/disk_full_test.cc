// Disks that are really full: small file systems of their own, filled to the last byte.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "client/registry/sha256.h"
#include "client/rpc/store_client.h"
#include "core/base/check.h"
#include "proto/convert/status.h"
#include "tests/e2e/storm.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
using e2e::Cluster;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::RunResult;

// A file system in memory. Needs root.
class SmallDisk {
 public:
  explicit SmallDisk(const char* size) {
    const std::string options = std::string("size=") + size;
    mounted_ = ::mount("none", folder_.path().c_str(), "tmpfs", 0, options.c_str()) == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool mounted() const { return mounted_; }
  std::string operator/(const std::string& name) const { return folder_ / name; }
  // Leaves so many bytes free, about.
  void Fill(std::size_t leave) {
    const int file = ::open((folder_ / "filler").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    CHECK(file >= 0);
    const std::string page(4096, 'x');
    while (Free() > leave && ::write(file, page.data(), page.size()) > 0) {
    }
    ::close(file);
  }
  void MakeRoom() { std::filesystem::remove(folder_ / "filler"); }
  std::size_t Free() const {
    struct statvfs s {};
    CHECK(::statvfs(folder_.path().c_str(), &s) == 0);
    return std::size_t{s.f_bavail} * s.f_frsize;
  }

 private:
  testing::TempFolder folder_;
  bool mounted_ = false;
};

#define SKIP_UNLESS_MOUNTED(disk)                                                    \
  if (!(disk).mounted()) {                                                           \
    GTEST_SKIP() << "**** NOT TESTED: a full disk needs root, to mount a small one"; \
  }

constexpr std::size_t kMiB = std::size_t{1} << 20;

template <class Done>
bool Eventually(const Done& done) {
  const auto end = steady_clock::now() + 120s;
  while (!done()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(100ms);
  }
  return true;
}

std::string Start(const Cluster& cluster, const std::string& version) {
  const RunResult r = cluster.Ask({"job", "submit", "--universe", "matrix", "--max-operators", "2",
                                   "--shards", "7", "--name", "matrix@" + version});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  return r.out.substr(0, r.out.find('\n'));
}

std::string StateOf(const Cluster& cluster, const std::string& job) {
  const RunResult r = cluster.Ask({"job", "show", job, "--json", "-"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  const auto document = nlohmann::json::parse(r.out, nullptr, false);
  return document.is_discarded() ? "" : std::string(document["state"]);
}

// `leave`: how much is free when the store has its disk full; `reserve`: what it keeps.
void StoreOfAFullDisk(std::size_t leave, const std::string& reserve) {
  SmallDisk disk("300m");
  SKIP_UNLESS_MOUNTED(disk);
  Cluster cluster({.stores = 1,
                   .workers = 1,
                   .verifiers = 1,
                   .of_stores = {"--disk-reserve", reserve},
                   .data = {{"store0", disk / "data"}}});
  const std::string reference = e2e::Reference(cluster, "2");
  const std::string store = "127.0.0.1:" + std::to_string(cluster.services()[1]->Port());
  const rpc::StoreClient client(*rpc::Connection::Open(store), 2s);
  const std::string bytes(3 * kMiB, 'x');
  const std::string sum = registry::ToHex(registry::Sha256(bytes));
  ASSERT_TRUE(client.PutArtifact(77, "before", bytes, sum).ok());
  // Logs are written into room that was set aside for them, so it starts on a disk without any.
  cluster.services()[1]->Kill();
  disk.Fill(8 * kMiB);
  cluster.services()[1]->Start();
  cluster.services()[1]->Port();
  // A job is not taken when there is no room for it, so it is there before, and waits for a worker.
  e2e::Service& worker = *cluster.services()[2];
  worker.Kill();
  const std::string job = Start(cluster, "1.0.0");
  disk.Fill(leave);
  worker.Start();
  Status full;
  ASSERT_TRUE(Eventually([&] {
    disk.Fill(leave);  // Old logs go, and leave room.
    full = client.PutArtifact(77, "during", bytes, sum);
    return absl::IsResourceExhausted(full);
  })) << full
      << cluster.Logs();
  EXPECT_EQ(convert::DetailsOf(full).reason, "DISK_FULL") << full;
  EXPECT_THAT(base::Message(full), HasSubstr(disk / "data"));
  std::this_thread::sleep_for(5s);  // Longer than a lease.
  EXPECT_EQ(StateOf(cluster, job), "enumerating") << cluster.Logs();
  EXPECT_EQ(client.GetArtifact(77, "before", 1 << 30).value_or(""), bytes);
  // Killed in this state, it comes back in it.
  cluster.services()[1]->Kill();
  cluster.services()[1]->Start();
  if (leave > 0) {
    cluster.services()[1]->Port();
    EXPECT_EQ(client.GetArtifact(77, "before", 1 << 30).value_or(""), bytes);
  }

  disk.MakeRoom();
  ASSERT_TRUE(Eventually([&] {
    // It may have had no room to start, and may still be about to say so.
    if (!cluster.services()[1]->IsRunning()) cluster.services()[1]->Start();
    const std::string state = StateOf(cluster, job);
    return state == "done" || state == "failed";
  })) << cluster.Logs();
  EXPECT_EQ(StateOf(cluster, job), "done") << cluster.Logs();
  e2e::ExpectSameContent(cluster, reference, "1.0.0");
  EXPECT_EQ(client.GetArtifact(77, "before", 1 << 30).value_or(""), bytes);
  EXPECT_TRUE(client.Verify().ok());
}

TEST(DiskFullTest, AStoreStopsAtItsReserveAndGoesOnWhenThereIsRoom) {
  StoreOfAFullDisk(12 * kMiB, "16MiB");
}

TEST(DiskFullTest, AStoreWithoutAReserveLosesNothingEither) { StoreOfAFullDisk(0, "0"); }

TEST(DiskFullTest, ACoordinatorTakesNothingThatItCannotKeepAndGoesOnWhenThereIsRoom) {
  SmallDisk disk("300m");
  SKIP_UNLESS_MOUNTED(disk);
  Cluster cluster(
      {.stores = 1, .workers = 1, .verifiers = 1, .data = {{"coordinator", disk / "data"}}});
  const std::string reference = e2e::Reference(cluster, "2");
  e2e::Service& coordinator = cluster.coordinator();
  e2e::Service& worker = *cluster.services()[2];
  worker.Kill();
  const std::string job = Start(cluster, "1.0.0");
  disk.Fill(2 * kMiB);

  const RunResult refused = cluster.Ask(
      {"job", "submit", "--universe", "matrix", "--max-operators", "1", "--name", "matrix@1.0.1"});
  EXPECT_NE(refused.exit_code, 0);
  EXPECT_THAT(refused.err, HasSubstr(disk / "data")) << cluster.Logs();
  EXPECT_THAT(refused.err, HasSubstr("free space on that disk"));
  // The worker keeps what it has done until it can be written down.
  worker.Start();
  std::this_thread::sleep_for(5s);
  EXPECT_EQ(StateOf(cluster, job), "enumerating") << cluster.Logs();
  coordinator.Kill();
  coordinator.Start();

  disk.MakeRoom();
  // It may have had no room to start, and is started again when it has said so.
  if (coordinator.Await(2s) != -1) coordinator.Start();
  coordinator.Port();
  ASSERT_TRUE(Eventually([&] {
    const std::string state = StateOf(cluster, job);
    return state == "done" || state == "failed";
  })) << cluster.Logs();
  EXPECT_EQ(StateOf(cluster, job), "done") << cluster.Logs();
  e2e::ExpectSameContent(cluster, reference, "1.0.0");
  EXPECT_EQ(StateOf(cluster, Start(cluster, "1.0.1")).empty(), false);
}

}  // namespace
}  // namespace tenon::faults
