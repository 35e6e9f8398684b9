// RunWriter: a stream of runs to one store that forgets a run only once it is durable there.
//
// Put queues; a thread of its own sends, a second one hears acknowledgements. When the stream
// breaks, because the store was restarted or its disk is full for a while, it is opened again with
// back-off and everything unacknowledged is sent anew, which changes nothing in the store.
#pragma once

#include <memory>
#include <stop_token>

#include "client/rpc/connection.h"
#include "client/rpc/store_client.h"

namespace tenon::rpc {

inline constexpr std::size_t kUnacknowledgedBytesMax = std::size_t{16} << 20;

// Thread-compatible. Destroying it gives up what is not acknowledged.
class RunWriter {
 public:
  // Gives up when there has been no acknowledgement for `patience` while one was owed.
  RunWriter(std::shared_ptr<Connection> connection, Milliseconds patience, std::stop_token stop);
  ~RunWriter();
  RunWriter(const RunWriter&) = delete;
  RunWriter& operator=(const RunWriter&) = delete;

  // Waits while more than kUnacknowledgedBytesMax are unacknowledged. Errors: of the store that do
  // not pass by themselves; UNAVAILABLE or what the store said last when patience is over;
  // CANCELLED after `stop`. After an error all calls return it.
  Status Put(Run run);
  // Until everything is acknowledged. Errors as above.
  Status Sync();
  // How often a stream was opened, for tests and metrics.
  std::uint64_t streams() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tenon::rpc
