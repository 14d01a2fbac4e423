// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"
#include "base/log.h"
#include "base/threads.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"
#include "launch/launcher.h"

namespace weft::comm {

// The bootstrap's connections serve the set-up only; afterwards peers watch each other directly.
Status joinCommunicator(const bootstrap::UniqueId& id, int ranks, int rank,
                        const CommConfig& config, Deadline deadline,
                        std::shared_ptr<Communicator>* out) {
  const SpeaksFor speaker(static_cast<std::uint32_t>(rank));
  std::unique_ptr<bootstrap::Bootstrap> bootstrap;
  WEFT_TRY(tryingTwice([&] {
    return bootstrap::Bootstrap::join(id, ranks, rank, semanticConfig(config), deadline,
                                      &bootstrap);
  }));
  const transport::Exchange exchange = [&](std::span<const std::byte> mine,
                                           std::vector<std::vector<std::byte>>* all) {
    return all == nullptr ? bootstrap->heard() : bootstrap->allGather(mine, all, deadline);
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

Status joinFromEnv(const CommConfig& config, std::shared_ptr<Communicator>* out) {
  launch::Identity me;
  WEFT_TRY(launch::identify(&me));
  const SpeaksFor speaker(static_cast<std::uint32_t>(me.rank));
  if (me.size == 1) {
    std::vector<std::shared_ptr<Communicator>> alone;
    WEFT_TRY(createAll(1, config, &alone));
    *out = std::move(alone[0]);
    return {};
  }
  const Deadline deadline = Deadline::in(config.initTimeoutMs);
  bootstrap::UniqueId id;
  WEFT_TRY(launch::rendezvousId(me, &id, deadline));
  return joinCommunicator(id, me.size, me.rank, config, deadline, out);
}

}  // namespace weft::comm
