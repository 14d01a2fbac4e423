// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"
#include "comm/create.h"
#include "launch/launcher.h"

namespace weft::comm {

Status joinFromEnv(const CommConfig& config, std::shared_ptr<Communicator>* out) {
  launch::Identity me;
  WEFT_TRY(launch::identify(&me));
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
