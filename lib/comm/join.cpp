// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"
#include "bootstrap/bootstrap.h"
#include "comm/create.h"

namespace weft {

// The bootstrap's connections serve the set-up only; afterwards peers watch each other directly.
Status joinCommunicator(const UniqueId& id, int ranks, int rank, const CommConfig& config,
                        std::shared_ptr<Communicator>* out) {
  const Deadline deadline = Deadline::in(config.initTimeoutMs);
  std::unique_ptr<Bootstrap> bootstrap;
  WEFT_TRY(Bootstrap::join(id, ranks, rank, semanticConfig(config), {}, deadline, &bootstrap));
  std::vector<RankPlace> members;
  for (const RankCard& card : bootstrap->ranks())
    members.push_back({card.host, card.hostId, card.pid});
  const Exchange exchange = [&](std::span<const std::byte> mine,
                                std::vector<std::vector<std::byte>>* all) {
    return bootstrap->allGather(mine, all, deadline);
  };
  const Status built =
      buildCommunicator(static_cast<std::uint32_t>(rank), members, exchange, config, out);
  if (built.ok())
    bootstrap->close();
  else
    bootstrap->abandon(built);
  return built;
}

}  // namespace weft
