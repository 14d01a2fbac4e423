// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"
#include "base/threads.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"

namespace weft::comm {

// The bootstrap's connections serve the set-up only; afterwards peers watch each other directly.
Status joinCommunicator(const bootstrap::UniqueId& id, int ranks, int rank,
                        const CommConfig& config, Deadline deadline,
                        std::shared_ptr<Communicator>* out) {
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  WEFT_TRY(tryingTwice([&] {
    return bootstrap::Bootstrap::join(id, ranks, rank, semanticConfig(config), deadline,
                                      &bootstrap);
  }));
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
