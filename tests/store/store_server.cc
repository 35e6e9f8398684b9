// A store of its own process, for tests that kill it.
// usage: store_server DIRECTORY LISTEN; prints its port.
#include <cstdio>

#include <fmt/core.h>

#include "store/serve.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const tenon::Status s = tenon::store::Serve({.directory = argv[1],
                                               .listen = argv[2],
                                               .on_listening =
                                                   [](int port) {
                                                     fmt::print("{}\n", port);
                                                     std::fflush(stdout);
                                                   }},
                                              {});
  fmt::print(stderr, "{}\n", tenon::base::Message(s));
  return 1;
}
