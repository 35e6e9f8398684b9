#include "optimizer/service/serve.h"

#include <thread>

#include "core/base/mutex.h"
#include "optimizer/service/service.h"

namespace tenon::optimizer {
namespace {

bool FromRegistry(const PackSourceOptions& options) {
  for (const PackOrigin& origin : options.origins) {
    if (origin.from_registry) return true;
  }
  return false;
}

// Looks at the packs now and then. Whoever asks whether this server can be used hears no until all
// of them are there.
void KeepFresh(PackSource& packs, Server& server, std::chrono::seconds pause,
               const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    server.SetServing(packs.figures().missing == 0);
    base::SleepFor(pause, stop);
    if (stop.stop_requested()) return;
    packs.Refresh(stop).IgnoreError();  // Logged there, reference by reference.
  }
}

}  // namespace

Status Serve(const ServeOptions& options, std::stop_token stop) {
  PackSource packs(options.packs);
  const bool from_registry = FromRegistry(options.packs);
  // Files are there or not. A registry may be away: calls wait for its packs, not the start.
  if (!from_registry) RETURN_IF_ERROR(packs.Refresh(stop));
  ASSIGN_OR_RETURN(const std::unique_ptr<Node> node, Node::Open(options.node, packs));
  ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::Start(options, *node));
  std::jthread refreshing([&](const std::stop_token& ended) {
    if (from_registry) {
      server->SetServing(packs.figures().missing == 0);
      packs.Refresh(ended).IgnoreError();
    }
    KeepFresh(packs, *server, options.refresh, ended);
  });
  if (options.on_started) options.on_started(*node);
  if (options.on_listening) options.on_listening(server->port());
  base::AwaitStop(stop);
  refreshing.request_stop();
  refreshing.join();
  node->Drain();
  server->Drain(options.drain_limit);
  if (options.on_stopping) options.on_stopping();
  return OkStatus();
}

}  // namespace tenon::optimizer
