// A worker of its own process, for tests that stop it.
// usage: worker_node COORDINATOR NODE_ID
#include <cstdio>

#include <fmt/core.h>

#include "worker/serve.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  fmt::print("started\n");
  std::fflush(stdout);
  const tenon::Status s =
      tenon::worker::Serve({.coordinator = argv[1], .node_id = argv[2]}, std::stop_token());
  fmt::print(stderr, "{}\n", tenon::base::Message(s));
  return 1;
}
