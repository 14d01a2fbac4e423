// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "bootstrap/crypto.h"
#include "bootstrap/socket.h"
#include "watch/liveness.h"

namespace weft {

// Starts the hub of a control link, a thread of rank 0's process: takes one connection of each rank
// until the deadline and then serves them, until all have left or the process ends.
Status startHub(std::vector<Socket> listeners, const Key& secret, std::vector<PeerName> names,
                Deadline deadline);

}  // namespace weft
