// usage: etcd_writer ENDPOINTS PREFIX COUNT SIZE: becomes leader and writes one batch with COUNT
// values of SIZE bytes in place of all those that are there. For tests that kill it on the way.
#include <cstdio>
#include <cstdlib>

#include "coordinator/etcd/journal.h"

namespace tenon::coordinator {
namespace {

Status Main(char** argv) {
  ASSIGN_OR_RETURN(const auto client, etcd::Client::Open({.endpoints = argv[1]}));
  ASSIGN_OR_RETURN(const auto leadership,
                   Leadership::Win(*client, {.prefix = argv[2], .address = "writer:1"}, {}));
  ASSIGN_OR_RETURN(const auto journal,
                   EtcdJournal::Open(*client, *leadership, {.prefix = argv[2]}, {}));
  std::puts("opened");
  std::fflush(stdout);
  store::Batch batch;
  RETURN_IF_ERROR(journal->Scan(store::Family::kJobs, "", [&](std::string_view key, auto) {
    batch.Delete(store::Family::kJobs, key);
    return OkStatus();
  }));
  const std::string value(std::strtoul(argv[4], nullptr, 10), 'v');
  for (long k = 0; k < std::strtol(argv[3], nullptr, 10); ++k) {
    std::string key = "new";
    store::AppendU64(key, static_cast<std::uint64_t>(k));
    batch.Put(store::Family::kJobs, key, value);
  }
  return journal->Write(batch);
}

}  // namespace
}  // namespace tenon::coordinator

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const tenon::Status status = tenon::coordinator::Main(argv);
  if (!status.ok()) std::fprintf(stderr, "%s\n", tenon::base::Message(status).c_str());
  return status.ok() ? 0 : 1;
}
