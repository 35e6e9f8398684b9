// Bytes of files change on disk, or files are cut or go away: it is noticed and named, and there is
// neither a crash nor another pack.
#include <signal.h>

#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "store/store.h"
#include "tests/e2e/storm.h"

namespace tenon::faults {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using e2e::Cluster;
using e2e::Service;
using std::chrono::steady_clock;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::RunResult;

constexpr int kNeedsRepair = 3;  // The exit code of bad input.

// All that a store holds, or why it cannot be told.
StatusOr<std::string> ContentsOf(const std::string& directory) {
  ASSIGN_OR_RETURN(const auto store, store::Store::Open(directory, {.create = false}));
  std::string all;
  for (std::size_t k = 0; k < std::size(store::kFamilyNames); ++k) {
    RETURN_IF_ERROR(store->Scan(static_cast<store::Family>(k), "",
                                [&](std::string_view key, std::string_view value) {
                                  store::AppendU64(all, key.size());
                                  all += key;
                                  store::AppendU64(all, value.size());
                                  all += value;
                                  return OkStatus();
                                }));
  }
  return all;
}

void Write(const fs::path& path, const std::string& bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  ASSERT_EQ(std::fclose(file), 0);
}

// Where to damage a log: at `at` or a little later, but not in the head of a record (32 KiB blocks
// of records: a checksum of 4 bytes, a length of 2, a kind, the payload). A length that points
// behind the end is what a crash leaves, too; nobody can tell.
std::size_t InALogRecord(const std::string& bytes, std::size_t at) {
  constexpr std::size_t kBlock = 32768, kHead = 7;
  const auto byte = [&](std::size_t k) {
    return std::size_t(static_cast<unsigned char>(bytes[k]));
  };
  for (std::size_t head = 0; head + kHead < bytes.size();) {
    if (kBlock - head % kBlock < kHead) {
      head += kBlock - head % kBlock;
      continue;
    }
    const std::size_t end = head + kHead + byte(head + 4) + 256 * byte(head + 5);
    if (at < end && end > head + kHead) return std::max(at, head + kHead);
    head = end;
  }
  return bytes.size() - 1;
}

// Damages each file of a store in some places, one at a time, and expects its contents or an error
// that names the directory. How often there was an error, by kind of file.
std::map<std::string, int> Sweep(const std::string& directory, const std::string& scratch,
                                 const std::set<std::string>& kinds) {
  std::map<std::string, int> noticed;
  const auto copy = [&] {
    fs::remove_all(scratch);
    fs::copy(directory, scratch);
  };
  copy();  // Opening a store makes tables of its logs.
  const auto whole = ContentsOf(scratch);
  EXPECT_TRUE(whole.ok()) << whole.status();
  if (!whole.ok()) return noticed;
  EXPECT_FALSE(whole->empty());
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const std::string name = file.filename().string();
    if (name == "LOCK" || name.starts_with("LOG")) continue;
    const std::string bytes = testing::ReadFile(file.string());
    if (bytes.empty()) continue;
    const std::string kind = name.starts_with("MANIFEST")  ? "MANIFEST"
                             : name.starts_with("OPTIONS") ? "OPTIONS"
                             : file.has_extension()        ? file.extension().string()
                                                           : name;
    if (!kinds.contains(kind)) continue;
    const std::size_t places = kind == ".log" ? 16 : 6;
    for (std::size_t k = 0; k < places; ++k) {
      std::size_t at = k * bytes.size() / places + k % 7;
      if (kind == ".log") at = InALogRecord(bytes, at);
      if (at >= bytes.size()) continue;
      copy();
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << k % 8));
      Write(fs::path(scratch) / name, damaged);
      const auto found = ContentsOf(scratch);
      if (found.ok()) {
        EXPECT_TRUE(*found == *whole) << name << ", byte " << at << ": " << found->size() << " of "
                                      << whole->size() << " bytes, and no error";
      } else {
        ++noticed[kind];
        EXPECT_THAT(base::Message(found.status()), HasSubstr(scratch)) << name << at;
        EXPECT_FALSE(absl::IsInternal(found.status())) << name << ": " << found.status();
      }
    }
    // It is gone.
    if (kind == ".sst" || kind == ".blob" || kind == "MANIFEST" || kind == "CURRENT") {
      copy();
      fs::remove(fs::path(scratch) / name);
      const auto found = ContentsOf(scratch);
      EXPECT_FALSE(found.ok()) << name << " is gone, and nobody misses it";
    }
  }
  fs::remove_all(scratch);
  return noticed;
}

class DamageTest : public ::testing::Test {
 protected:
  void Start() {
    cluster_ =
        std::make_unique<Cluster>(e2e::ClusterOptions{.stores = 1, .workers = 1, .verifiers = 1});
  }
  std::string FolderOf(const std::string& role) const {
    return role == "store" ? cluster_->folder() / "store0.data/store"
                           : cluster_->folder() / "coordinator.data/coordinator";
  }
  std::string StoreAddress() {
    return "127.0.0.1:" + std::to_string(cluster_->services()[1]->Port());
  }
  RunResult AskStore(const std::string& what) {
    return cluster_->Tenon({"store", what, "--server", StoreAddress()});
  }
  nlohmann::json Show(const std::string& job) {
    return nlohmann::json::parse(cluster_->Ask({"job", "show", job, "--json", "-"}).out, nullptr,
                                 false);
  }
  // A job whose worker stops when some of its shards are in the store.
  std::string HalfAJob(const std::string& version) {
    const RunResult r = cluster_->Ask({"job", "submit", "--universe", "matrix", "--max-operators",
                                       "2", "--shards", "400", "--name", "matrix@" + version});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    const std::string job = r.out.substr(0, r.out.find('\n'));
    const auto end = steady_clock::now() + 100s;
    while (Show(job).value("shards_done", 0) < 30 && steady_clock::now() < end) {
    }
    EXPECT_EQ(cluster_->Ask({"job", "pause", job}).exit_code, 0);
    while (Show(job).value("shards_leased", 0) > 0 && steady_clock::now() < end) {
    }
    EXPECT_LT(Show(job).value("shards_done", 400), 400) << "it was too fast to be paused";
    return job;
  }

  std::unique_ptr<Cluster> cluster_;
};

TEST_F(DamageTest, AnyDamageOfAnyFileIsNoticedOrHarmless) {
  Start();
  // Packs and verdicts, half of a second job's runs, in logs and in tables.
  ASSERT_EQ(e2e::Submit(*cluster_, "2", "1.0.0").exit_code, 0) << cluster_->Logs();
  HalfAJob("1.0.1");
  const std::string scratch = cluster_->folder() / "scratch";
  for (const auto& service : cluster_->services()) service->Kill();
  for (const char* role : {"store", "coordinator"}) {
    SCOPED_TRACE(role);
    auto noticed =
        Sweep(FolderOf(role), scratch, {".log", "MANIFEST", "CURRENT", "OPTIONS", "IDENTITY"});
    EXPECT_GE(noticed[".log"], 8);
    EXPECT_GE(noticed["MANIFEST"], 1);
    EXPECT_GE(noticed["CURRENT"], 1);
    {
      const auto store = store::Store::Open(FolderOf(role), {.create = false});
      ASSERT_TRUE(store.ok()) << store.status();
      ASSERT_TRUE((*store)->Compact().ok());
    }
    noticed = Sweep(FolderOf(role), scratch, {".sst", ".blob"});
    EXPECT_GE(noticed[".sst"], 3);
  }
}

TEST_F(DamageTest, ADamagedLogKeepsAStoreFromStartingUntilItIsReplaced) {
  Start();
  const std::string reference = e2e::Reference(*cluster_, "2");
  const std::string job = HalfAJob("1.0.0");
  Service& store = *cluster_->services()[1];
  store.Kill();
  fs::path log;
  for (const auto& entry : fs::directory_iterator(FolderOf("store"))) {
    if (entry.path().extension() == ".log" && entry.file_size() > 0) log = entry.path();
  }
  ASSERT_FALSE(log.empty());
  std::string bytes = testing::ReadFile(log.string());
  char& damaged = bytes[InALogRecord(bytes, bytes.size() / 3)];
  damaged = static_cast<char>(damaged ^ 4);
  Write(log, bytes);
  store.Start();
  EXPECT_EQ(store.Await(60s), kNeedsRepair);
  EXPECT_THAT(testing::ReadFile(store.log() + ".err"),
              AllOf(HasSubstr(FolderOf("store")), HasSubstr("restore a backup")));
  // What the operator's guide says: empty its data, cancel its jobs, submit them again.
  fs::remove_all(FolderOf("store"));
  store.Start();
  store.Port();
  EXPECT_EQ(cluster_->Ask({"job", "cancel", job}).exit_code, 0);
  EXPECT_EQ(e2e::Submit(*cluster_, "2", "1.0.0").exit_code, 0) << cluster_->Logs();
  e2e::ExpectSameContent(*cluster_, reference, "1.0.0");
}

TEST_F(DamageTest, AStoreThatHasForgottenARunMakesNoPack) {
  Start();
  const std::string job = HalfAJob("1.0.0");
  Service& store = *cluster_->services()[1];
  store.Kill();
  fs::remove_all(FolderOf("store"));  // A disk that was replaced; its id lies beside it.
  store.Start();
  store.Port();
  EXPECT_EQ(cluster_->Ask({"job", "resume", job}).exit_code, 0);
  const RunResult watch = cluster_->Ask({"job", "watch", job});
  EXPECT_EQ(watch.exit_code, 1) << watch.out << watch.err;
  EXPECT_EQ(Show(job).value("state", ""), "failed");
  EXPECT_NE(cluster_->Ask({"pack", "pull", "matrix@1.0.0"}).exit_code, 0);
}

TEST_F(DamageTest, ADamagedTableFailsTheJobAndNamesTheStore) {
  Start();
  const std::string job = HalfAJob("1.0.0");
  ASSERT_EQ(AskStore("compact").exit_code, 0);
  EXPECT_EQ(AskStore("verify").exit_code, 0);
  Service& store = *cluster_->services()[1];
  store.Kill();
  // The table of the runs, where its first block is.
  fs::path table;
  for (const auto& entry : fs::directory_iterator(FolderOf("store"))) {
    if (entry.path().extension() != ".sst") continue;
    if (table.empty() || entry.file_size() > fs::file_size(table)) table = entry.path();
  }
  ASSERT_FALSE(table.empty());
  std::string bytes = testing::ReadFile(table.string());
  bytes[40] = static_cast<char>(bytes[40] ^ 1);
  Write(table, bytes);
  store.Start();
  store.Port();
  const RunResult verify = AskStore("verify");
  EXPECT_EQ(verify.exit_code, 3) << verify.err;
  EXPECT_THAT(verify.err, HasSubstr(FolderOf("store")));
  EXPECT_EQ(cluster_->Ask({"job", "resume", job}).exit_code, 0);
  const RunResult watch = cluster_->Ask({"job", "watch", job});
  EXPECT_EQ(watch.exit_code, 1) << watch.out << watch.err << cluster_->Logs();
  EXPECT_THAT(std::string(Show(job).value("error", "")), HasSubstr(FolderOf("store")));
  for (const auto& service : cluster_->services()) EXPECT_TRUE(service->IsRunning());
}

TEST_F(DamageTest, ADamagedCoordinatorDoesNotStart) {
  Start();
  ASSERT_EQ(e2e::Submit(*cluster_, "1", "1.0.0").exit_code, 0) << cluster_->Logs();
  Service& coordinator = cluster_->coordinator();
  coordinator.Kill();
  for (const auto& entry : fs::directory_iterator(FolderOf("coordinator"))) {
    if (entry.path().extension() != ".log" || entry.file_size() == 0) continue;
    std::string bytes = testing::ReadFile(entry.path().string());
    char& damaged = bytes[InALogRecord(bytes, bytes.size() / 2)];
    damaged = static_cast<char>(damaged ^ 16);
    Write(entry.path(), bytes);
  }
  coordinator.Start();
  EXPECT_EQ(coordinator.Await(60s), kNeedsRepair);
  EXPECT_THAT(testing::ReadFile(coordinator.log() + ".err"),
              AllOf(HasSubstr(FolderOf("coordinator")), HasSubstr("restore a backup")));
}

}  // namespace
}  // namespace tenon::faults
