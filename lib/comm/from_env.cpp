// SPDX-License-Identifier: Apache-2.0
#include "base/deadline.h"
#include "bootstrap/launcher.h"
#include "comm/create.h"

namespace weft {

Status joinFromEnv(const CommConfig& config, std::shared_ptr<Communicator>* out) {
  Identity me;
  WEFT_TRY(identify(&me));
  if (me.size == 1) {
    std::vector<std::shared_ptr<Communicator>> alone;
    WEFT_TRY(createAll(1, config, &alone));
    *out = std::move(alone[0]);
    return {};
  }
  UniqueId id;
  WEFT_TRY(rendezvousId(me, &id, Deadline::in(config.initTimeoutMs)));
  return joinCommunicator(id, me.size, me.rank, config, out);
}

}  // namespace weft
