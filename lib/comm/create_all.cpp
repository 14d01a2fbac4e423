// SPDX-License-Identifier: Apache-2.0
// Communicators whose ranks are threads of this process: no bootstrap, no socket.
#include <unistd.h>

#include "base/deadline.h"
#include "base/log.h"
#include "base/text.h"
#include "base/threads.h"
#include "comm/create.h"
#include "comm/thread_exchange.h"

namespace weft::comm {

Status createAll(int ranks, const CommConfig& config,
                 std::vector<std::shared_ptr<Communicator>>* out) {
  const std::size_t n = static_cast<std::size_t>(ranks);
  const Deadline deadline = Deadline::in(config.initTimeoutMs);
  ThreadExchange threads(n, deadline);
  std::vector<PeerName> names;
  for (int r = 0; r < ranks; ++r) names.push_back({r, hostName(), ::getpid(), "this process"});
  out->assign(n, nullptr);
  return onThreads(n, [&](std::size_t r) -> Status {
    const transport::Exchange exchange = [&threads, r](std::span<const std::byte> mine, auto* all) {
      return threads.gather(r, mine, all);
    };
    const Status built = withoutExceptions([&] {
      return buildCommunicator(static_cast<std::uint32_t>(r), names, exchange, config, deadline,
                               &(*out)[r]);
    });
    return built.ok() ? built : threads.leave(built);
  });
}

}  // namespace weft::comm
