// The journal and the leadership, against a real etcd that is killed, stopped, compacted and
// filled.
#include <signal.h>

#include <random>
#include <thread>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/rpc/connection.h"
#include "coordinator/etcd/journal.h"
#include "proto/convert/status.h"
#include "tests/support/etcd.h"

namespace tenon::coordinator {
namespace {

using namespace std::chrono_literals;
using store::Family;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Content = std::map<std::string, std::string>;

constexpr char kPrefix[] = "/test/";

std::unique_ptr<etcd::Client> ClientOf(const testing::Etcd& etcd) {
  auto client = etcd::Client::Open({.endpoints = etcd.endpoints()});
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

// A leader with its journal.
struct Leader {
  std::unique_ptr<Leadership> leadership;
  std::unique_ptr<EtcdJournal> journal;

  Status Put(const std::string& key, const std::string& value) {
    store::Batch batch;
    batch.Put(Family::kJobs, key, value);
    return journal->Write(batch);
  }
};

Leader Lead(const etcd::Client& client, const std::string& address = "a:1",
            std::chrono::seconds ttl = 10s) {
  Leader out;
  auto won = Leadership::Win(client, {.prefix = kPrefix, .address = address, .ttl = ttl}, {});
  EXPECT_TRUE(won.ok()) << won.status();
  out.leadership = *std::move(won);
  auto journal = EtcdJournal::Open(client, *out.leadership, {.prefix = kPrefix}, {});
  EXPECT_TRUE(journal.ok()) << journal.status();
  out.journal = *std::move(journal);
  return out;
}

Content Read(const board::Journal& journal, Family family = Family::kJobs,
             const std::string& prefix = "") {
  Content out;
  const Status s = journal.Scan(family, prefix, [&](std::string_view key, std::string_view value) {
    out.emplace(key, value);
    return OkStatus();
  });
  EXPECT_TRUE(s.ok()) << s;
  return out;
}

std::string Random(std::mt19937& random, std::size_t size) {
  std::string out(size, ' ');
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

// As if its time had run out, without the wait.
void Expire(const etcd::Client& client) {
  const auto leader = client.Get(LeaderKey(kPrefix), 10s);
  ASSERT_TRUE(leader.ok() && *leader);
  ASSERT_TRUE(client.Revoke((*leader)->lease, 10s).ok());
}

std::size_t KeysOf(const etcd::Client& client, const std::string& prefix) {
  return client.Range(etcd::Prefix(prefix), {.count = 10'000}, 10s)->found.size();
}

TEST(EtcdJournalTest, HoldsWhatAStoreWouldHold) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  const auto store = *store::Store::OpenTemporary();
  board::StoreJournal expected(*store);
  std::mt19937 random(1);
  for (int term = 0; term < 3; ++term) {
    Leader leader = Lead(*client);
    const auto expect_same = [&] {
      for (const Family family : {Family::kJobs, Family::kVerdicts, Family::kPacks}) {
        ASSERT_EQ(Read(*leader.journal, family), Read(expected, family));
        ASSERT_EQ(Read(*leader.journal, family, "k1"), Read(expected, family, "k1"));
      }
    };
    expect_same();
    for (int n = 0; n < 25; ++n) {
      store::Batch batch;
      // Now and then more than a transaction can take, by number or by size.
      const int changes = n % 5 == 0 ? 300 : 1 + int(random() % 5);
      for (int c = 0; c < changes; ++c) {
        const std::string key = fmt::format("k{}{}", random() % 200, std::string(1, '\0'));
        const Family family = random() % 2 == 0 ? Family::kJobs : Family::kVerdicts;
        if (random() % 4 == 0) {
          batch.Delete(family, key);
        } else {
          const bool large = c == 0 && n % 7 == 0;
          batch.Put(family, key, Random(random, large ? 1'300'000 : random() % 5000));
        }
      }
      ASSERT_TRUE(leader.journal->Write(batch).ok());
      ASSERT_TRUE(expected.Write(batch).ok());
    }
    expect_same();
    EXPECT_FALSE((*leader.journal->Get(Family::kJobs, "none")).has_value());
  }
  // No chunk is left of values that are gone, and no redo record.
  Leader last = Lead(*client);
  std::size_t chunks = 0;
  for (const Family family : {Family::kJobs, Family::kVerdicts}) {
    for (const auto& [key, value] : Read(*last.journal, family)) {
      if (value.size() > kInlineBytesMax) {
        chunks += (value.size() + kEtcdChunkBytes - 1) / kEtcdChunkBytes;
      }
    }
  }
  EXPECT_GT(chunks, 0u);
  EXPECT_EQ(KeysOf(*client, std::string(kPrefix) + "c/"), chunks);
  EXPECT_EQ(KeysOf(*client, std::string(kPrefix) + "redo"), 0u);
}

TEST(EtcdJournalTest, ABatchIsThereAsAWholeOrNotAtAllWhereverItsWriterDies) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  {
    Leader leader = Lead(*client);
    ASSERT_TRUE(leader.Put("old", "o").ok());
    ASSERT_TRUE(leader.Put("older", "o").ok());
  }
  int before = 0, after = 0;
  const auto kill_at = [&](const std::string& point, const std::string& count,
                           const std::string& size) {
    SCOPED_TRACE(point);
    testing::Daemon writer({ETCD_WRITER, etcd.endpoints(), kPrefix, count, size},
                           {{"TENON_KILL_POINT", point}});
    ASSERT_EQ(writer.first_line(), "opened");
    ASSERT_EQ(writer.Wait(), SIGKILL);
    Expire(*client);
    Leader leader = Lead(*client, "b:1");
    const Content content = Read(*leader.journal);
    if (content.contains("old")) {
      ++before;
      EXPECT_EQ(content, (Content{{"old", "o"}, {"older", "o"}}));
    } else {
      ++after;
      EXPECT_EQ(content.size(), std::stoul(count));
      for (const auto& [key, value] : content) EXPECT_EQ(value.size(), std::stoul(size));
    }
    EXPECT_EQ(KeysOf(*client, std::string(kPrefix) + "redo"), 0u);
    if (std::stoul(size) <= kInlineBytesMax) {
      EXPECT_EQ(KeysOf(*client, std::string(kPrefix) + "c/"), 0u);
    }
    store::Batch back;
    for (const auto& [key, value] : content) back.Delete(Family::kJobs, key);
    back.Put(Family::kJobs, "old", "o");
    back.Put(Family::kJobs, "older", "o");
    ASSERT_TRUE(leader.journal->Write(back).ok());
    EXPECT_EQ(KeysOf(*client, std::string(kPrefix) + "c/"), 0u);
  };
  // Many changes: the redo record, then four transactions.
  kill_at("etcd.commit.before:1", "350", "10");
  EXPECT_EQ(before, 1);
  kill_at("etcd.commit.after:1", "350", "10");
  EXPECT_EQ(after, 1);
  kill_at("etcd.redo.part:1", "350", "10");
  kill_at("etcd.redo.part:3", "350", "10");
  kill_at("etcd.commit.before:6", "350", "10");  // The record is not removed.
  EXPECT_EQ(after, 4);
  // A redo record that is itself in chunks.
  kill_at("etcd.commit.after:2", "300", "5000");
  EXPECT_EQ(before, 2);
  kill_at("etcd.redo:1", "300", "5000");
  kill_at("etcd.redo.part:1", "300", "5000");
  EXPECT_EQ(after, 6);
  // Large values: their chunks, then one transaction.
  kill_at("etcd.commit.after:2", "2", "1300000");
  kill_at("etcd.commit.before:7", "2", "1300000");
  EXPECT_EQ(before, 4);
  kill_at("etcd.commit.after:7", "2", "1300000");
  EXPECT_EQ(after, 7);
}

TEST(EtcdJournalTest, WhoWasDeposedCanWriteNothing) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  Leader first = Lead(*client, "a:1", 60s);
  ASSERT_TRUE(first.Put("key", "first").ok());
  Expire(*client);
  Leader second = Lead(*client, "b:1");
  EXPECT_GT(second.leadership->fence().create_revision, first.leadership->fence().create_revision);
  ASSERT_TRUE(second.Put("key", "second").ok());
  // By its own clock the first one would lead for a minute.
  EXPECT_TRUE(first.leadership->Holds());
  store::Batch big;
  for (int k = 0; k < 500; ++k) big.Put(Family::kJobs, std::to_string(k), "x");
  big.Put(Family::kPacks, "pack", std::string(1'000'000, 'p'));
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Status refused = attempt == 0 ? first.Put("key", "late") : first.journal->Write(big);
    EXPECT_TRUE(absl::IsUnavailable(refused)) << refused;
    EXPECT_EQ(convert::DetailsOf(refused).reason, rpc::kNotLeader);
  }
  EXPECT_FALSE(first.leadership->Holds());
  EXPECT_TRUE(first.leadership->lost().stop_requested());
  EXPECT_EQ(Read(*second.journal), (Content{{"key", "second"}}));
  first = {};
  second = {};
  Leader third = Lead(*client, "c:1");
  EXPECT_EQ(Read(*third.journal), (Content{{"key", "second"}}));
  EXPECT_EQ(KeysOf(*client, std::string(kPrefix) + "c/"), 0u);
}

TEST(EtcdJournalTest, EtcdIsKilledRestartedAndCompacted) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  Leader leader = Lead(*client, "a:1", 60s);
  const std::string large(700'000, 'l');
  ASSERT_TRUE(leader.Put("large", large).ok());
  for (int k = 0; k < 50; ++k) ASSERT_TRUE(leader.Put("small", std::to_string(k)).ok());
  const auto now = client->Txn(leader.leadership->fence(), {}, 10s);
  ASSERT_TRUE(now.ok() && now->succeeded);
  EXPECT_THAT(etcd.Post("/v3/kv/compaction",
                        fmt::format(R"({{"revision":"{}","physical":true}})", now->revision)),
              HasSubstr("revision"));
  EXPECT_EQ(**leader.journal->Get(Family::kJobs, "large"), large);
  // A write waits for an etcd that is away.
  etcd.Kill(0);
  Status written;
  std::jthread writer([&] { written = leader.Put("after", "1"); });
  std::this_thread::sleep_for(300ms);
  etcd.Start(0);
  writer.join();
  EXPECT_TRUE(written.ok()) << written;
  EXPECT_TRUE(leader.leadership->Holds());
  const Content content = Read(*leader.journal);
  EXPECT_EQ(content, (Content{{"after", "1"}, {"large", large}, {"small", "49"}}));
  leader = {};
  EXPECT_EQ(Read(*Lead(*client).journal), content);
}

TEST(EtcdJournalTest, AnEtcdThatLosesItsLeaderLosesNothing) {
  testing::Etcd etcd(3);
  const auto client = ClientOf(etcd);
  Leader leader = Lead(*client, "a:1", 60s);
  Content expected;
  for (int k = 0; k < 90; ++k) {
    const std::string key = fmt::format("{:03}", k);
    if (k % 30 == 10) etcd.Kill(etcd.Leader());
    ASSERT_TRUE(leader.Put(key, "v").ok()) << k;
    expected[key] = "v";
    if (k % 30 != 25) continue;
    for (int member = 0; member < 3; ++member) {
      if (etcd.IsRunning(member)) continue;
      etcd.Start(member);
      etcd.AwaitHealth(member);
    }
  }
  EXPECT_TRUE(leader.leadership->Holds());
  leader = {};
  EXPECT_EQ(Read(*Lead(*client).journal), expected);
}

TEST(EtcdJournalTest, AFullEtcdIsAnErrorAndChangesNothing) {
  testing::Etcd etcd(1, {"--quota-backend-bytes", "4000000"});
  const auto client = ClientOf(etcd);
  Leader leader = Lead(*client, "a:1", 60s);
  Content expected;
  Status status;
  for (int k = 0; status.ok() && k < 200; ++k) {
    const std::string key = fmt::format("{:03}", k);
    status = leader.Put(key, std::string(100'000, 'x'));
    if (status.ok()) expected[key] = std::string(100'000, 'x');
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(Read(*leader.journal), expected);
  EXPECT_TRUE(leader.leadership->Holds());
}

TEST(EtcdJournalTest, ForeignAndDamagedContentsAreRefused) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  auto leadership = *Leadership::Win(*client, {.prefix = kPrefix, .address = "a:1"}, {});
  const auto put = [&](const std::string& key, const std::string& value) {
    const auto done =
        client->Txn(leadership->fence(), {{.key = kPrefix + key, .value = value}}, 10s);
    ASSERT_TRUE(done.ok() && done->succeeded);
  };
  const auto open = [&] {
    return EtcdJournal::Open(*client, *leadership, {.prefix = kPrefix}, {}).status();
  };
  put("format", "tenon etcd 99");
  EXPECT_TRUE(absl::IsFailedPrecondition(open()));
  put("format", "tenon etcd 1");
  put("v/jobs/x", "no checksum");
  EXPECT_TRUE(absl::IsDataLoss(open()));
  put("v/jobs/x", "");
  EXPECT_TRUE(absl::IsDataLoss(open()));
}

TEST(EtcdJournalTest, BytesAreAsDocumented) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  Leader leader = Lead(*client);
  ASSERT_TRUE(leader.Put("small", "v").ok());
  ASSERT_TRUE(leader.Put("large", std::string(200'000, 'v')).ok());
  const auto raw = [&](const std::string& key) {
    const auto found = client->Get(kPrefix + key, 10s);
    return found.ok() && *found ? (*found)->value : "none";
  };
  EXPECT_EQ(raw("format"), "tenon etcd 1");
  EXPECT_EQ(raw("leader"), "a:1");
  EXPECT_EQ(raw("v/jobs/small"), "\x01v\xb5\xfa\x5c\x40");
  const std::string upload = fmt::format("{:016x}-1", leader.leadership->fence().create_revision);
  const std::string large = raw("v/jobs/large");
  EXPECT_EQ(large.substr(0, large.size() - 4),
            "\x02\x12" + upload + "\xc0\x9a\x0c\x88\x9d\xeb\xde\x0e");
  EXPECT_EQ(raw("c/" + upload + "/" + std::string(4, '\0')).size(), 200'004u);
}

TEST(EtcdClientTest, OverTlsWithACertificateAndNotWithout) {
  testing::TempFolder folder;
  const auto openssl = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    const auto r = testing::Run(arguments);
    ASSERT_EQ(r.exit_code, 0) << r.err;
  };
  const std::string ca = folder / "ca.pem", key = folder / "key.pem", cert = folder / "cert.pem";
  openssl({"req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=ca",
           "-keyout", folder / "ca.key", "-out", ca});
  openssl({"req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=one", "-keyout", key, "-out",
           folder / "csr"});
  openssl({"x509", "-req", "-days", "2", "-in", folder / "csr", "-CA", ca, "-CAkey",
           folder / "ca.key", "-CAcreateserial", "-extfile",
           folder.Write("names", "subjectAltName=IP:127.0.0.1\n"), "-out", cert});
  testing::Etcd etcd(1, {}, {.authority = ca, .certificate = cert, .key = key});
  rpc::Credentials credentials{.tls = true,
                               .root_certificates = testing::ReadFile(ca),
                               .certificate = testing::ReadFile(cert),
                               .key = testing::ReadFile(key)};
  const auto get = [&] {
    const auto client =
        etcd::Client::Open({.endpoints = etcd.endpoints(), .credentials = credentials});
    EXPECT_TRUE(client.ok()) << client.status();
    return (*client)->Get("key", 5s).status();
  };
  EXPECT_TRUE(get().ok()) << get();
  credentials.certificate = credentials.key = "";
  EXPECT_TRUE(absl::IsUnavailable(get()) || absl::IsDeadlineExceeded(get())) << get();
  EXPECT_FALSE((*etcd::Client::Open({.endpoints = etcd.endpoints()}))->Get("key", 3s).ok());
}

TEST(LeadershipTest, OneLeadsAndTheNextOneFollows) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  auto first = *Leadership::Win(*client, {.prefix = kPrefix, .address = "a:1"}, {});
  std::vector<std::string> heard;
  std::atomic<bool> leads{false};
  std::unique_ptr<Leadership> second;
  std::jthread waits([&](std::stop_token stop) {
    auto won =
        Leadership::Win(*client,
                        {.prefix = kPrefix,
                         .address = "b:1",
                         .on_leader = [&](const auto& l) { heard.push_back(l.value_or("")); }},
                        stop);
    if (won.ok()) second = *std::move(won);
    leads = true;
  });
  std::this_thread::sleep_for(1s);
  EXPECT_FALSE(leads);
  EXPECT_TRUE(first->Holds());
  const std::int64_t revision = first->fence().create_revision;
  first.reset();  // Resigns: no lease has to run out.
  waits.join();
  ASSERT_NE(second, nullptr);
  EXPECT_TRUE(second->Holds());
  EXPECT_GT(second->fence().create_revision, revision);
  EXPECT_THAT(heard, ElementsAre("a:1"));
  // Who waits can be told to stop waiting.
  std::stop_source stop;
  stop.request_stop();
  EXPECT_TRUE(absl::IsCancelled(
      Leadership::Win(*client, {.prefix = kPrefix, .address = "c:1"}, stop.get_token()).status()));
}

TEST(LeadershipTest, WhoCannotReachEtcdStopsBeforeItsLeaseEnds) {
  testing::Etcd etcd;
  const auto client = ClientOf(etcd);
  auto leader = *Leadership::Win(*client, {.prefix = kPrefix, .address = "a:1", .ttl = 3s}, {});
  // Prolonged again and again.
  std::this_thread::sleep_for(4s);
  EXPECT_TRUE(leader->Holds());
  etcd.Signal(0, SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  auto held = stopped;
  for (auto now = stopped; leader->Holds() && now < stopped + 60s;
       now = std::chrono::steady_clock::now()) {
    held = now;
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_LT(held, stopped + 3s);
  etcd.Signal(0, SIGCONT);
  while (!leader->lost().stop_requested() && std::chrono::steady_clock::now() < stopped + 60s) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_TRUE(leader->lost().stop_requested());
}

}  // namespace
}  // namespace tenon::coordinator
