// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"
#include "base/threads.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"

namespace weft::comm {

namespace {

// Whoever fails before it has joined cannot tell the others, who would wait until their deadline. So
// without memory it tries again, once.
Status joinBootstrap(const bootstrap::UniqueId& id, int ranks, int rank, const CommConfig& config,
                     Deadline deadline, std::unique_ptr<bootstrap::Bootstrap>* out) {
  const auto once = [&] {
    return bootstrap::Bootstrap::join(id, ranks, rank, semanticConfig(config), deadline, out);
  };
  const Status joined = withoutExceptions(once);
  return joined.code() == Code::OutOfMemory ? once() : joined;
}

}  // namespace

// The bootstrap's connections serve the set-up only; afterwards peers watch each other directly.
Status joinCommunicator(const bootstrap::UniqueId& id, int ranks, int rank,
                        const CommConfig& config, Deadline deadline,
                        std::shared_ptr<Communicator>* out) {
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  WEFT_TRY(joinBootstrap(id, ranks, rank, config, deadline, &bootstrap));
  const transport::Exchange exchange = [&](std::span<const std::byte> mine,
                                           std::vector<std::vector<std::byte>>* all) {
    return bootstrap->allGather(mine, all, deadline);
  };
  const Status built = withoutExceptions([&] {
    return buildCommunicator(static_cast<std::uint32_t>(rank), bootstrap->ranks(), exchange, config,
                             deadline, out);
  });
  if (built.ok())
    bootstrap->close();
  else
    bootstrap->abandon(built);
  return built;
}

}  // namespace weft::comm
